"""One table, one fit and its results, in a folder; all that is known can be read from the folder again."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from softlearning.data.files import FORMATS, PACKED_ENDINGS, read_table, whole_file
from softlearning.data.schema import COLUMN_TYPES, infer_schema, summary
from softlearning.execution.progress import MARKS, Board, headline
from softlearning.execution.tasks import Event

TEXT_ENDINGS = (".csv", ".tsv", ".txt", ".tab", ".data")
PREVIEW = 5  # rows shown
MOST_LOG = 20_000  # characters of what the fit printed
CHOICES = {
    "task": ("auto", "classification", "regression"),
    "library": ("fast", "default", "best"),
}
OPTIONS = ("target", "task", "library", "time_limit", "metric", "group", "time")  # of a fit, beside types and drop


class Session:
    """The state of a studio; its methods may be called from several threads."""

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.lock = threading.RLock()
        self.child: subprocess.Popen | None = None
        self.board, self.stage, self.read_bytes = Board(), "", 0
        about = self.folder / "session.json"
        self.about: dict[str, Any] = json.loads(about.read_text(encoding="utf-8")) if about.exists() else {}

    # -- the table ----------------------------------------------------------------------------------------------------

    def place_for(self, name: str, role: str) -> Path:
        """Where an uploaded file goes: a name of ours, with the endings of the given one."""
        suffixes = [s.lower() for s in Path(name).suffixes[-2:]]
        known = [s for s in suffixes if s in FORMATS or s in PACKED_ENDINGS or s in TEXT_ENDINGS]
        return self.folder / (role + ("".join(known) or ".csv"))

    def take_table(self, path: Path, name: str) -> dict[str, Any]:
        """A new table: what was fitted on another is forgotten."""
        with self.lock:
            self.stop()
            frame = read_table(path)
            facts = summary(infer_schema(frame, {}))
            for old in ("model.soft", "report.html", "predictions.csv", "events.jsonl", "said.txt"):
                (self.folder / old).unlink(missing_ok=True)
            preview = json.loads(frame.head(PREVIEW).astype(str).to_json(orient="split"))
            shown = {"columns": [str(c) for c in preview["columns"]], "rows": preview["data"]}
            self._keep({"table": path.name, "name": name[:200], "facts": facts, "preview": shown})
            return self.state()

    def _keep(self, about: dict[str, Any]) -> None:
        self.about = about
        with whole_file(self.folder / "session.json", private=True) as part:
            part.write_text(json.dumps(about, default=str), encoding="utf-8")

    # -- the fit ------------------------------------------------------------------------------------------------------

    def command(self, asked: dict[str, Any]) -> list[str]:
        """What is asked for, as the command that anybody could have typed; ValueError where it makes no sense."""
        names = [c["name"] for c in self.about["facts"]["details"]] or self.about["preview"]["columns"]
        for option, choices in CHOICES.items():
            if asked.get(option) and asked[option] not in choices:
                raise ValueError(f"{option} is one of {', '.join(choices)}")
        columns = [asked.get("target"), asked.get("group") or None, asked.get("time") or None, *asked.get("types", {})]
        if any(c is not None and c not in names for c in columns):
            raise ValueError("choose columns of the table")
        words = ["fit", self.about["table"], "--out", "model.soft", "--report", "report.html"]
        words += ["--checkpoint", "work", "--events", "events.jsonl", "--allow-useless", f"--name={self.about['name']}"]
        for option in OPTIONS:
            if asked.get(option):
                words += [f"--{option.replace('_', '-')}={asked[option]}"]
        for column, type_ in asked.get("types", {}).items():
            if type_ == "drop":
                words += [f"--drop={column}"]
            elif type_ in COLUMN_TYPES:
                words += [f"--type={column}={type_}"]
        return words

    def start(self, asked: dict[str, Any] | None = None) -> dict[str, Any]:
        """Begin the fit, or go on with the one that was interrupted."""
        with self.lock:
            if "table" not in self.about or self.running():
                raise ValueError("there is no table yet" if "table" not in self.about else "a fit is under way")
            asked = self.about.get("asked") if asked is None else asked
            if not asked or not asked.get("target"):
                raise ValueError("choose what to predict")
            words = self.command(asked)
            self._keep(self.about | {"asked": asked})
            for old in ("model.soft", "report.html", "events.jsonl", "predictions.csv"):
                (self.folder / old).unlink(missing_ok=True)
            self.board, self.stage, self.read_bytes = Board(), "", 0
            with (self.folder / "said.txt").open("wb") as said:
                self.child = subprocess.Popen(
                    [sys.executable, "-m", "softlearning", *words], cwd=self.folder, stdin=subprocess.PIPE,
                    stdout=said, stderr=subprocess.STDOUT,
                )  # fmt: skip  # the pipe closes when the studio ends, and the fit with it
            return self.state()

    def running(self) -> bool:
        """Whether a fit is under way."""
        if self.child is None or self.child.poll() is None:
            return self.child is not None
        if self.child.stdin is not None:
            self.child.stdin.close()
        return False

    def stop(self) -> dict[str, Any]:
        """End the fit; what has finished is kept."""
        with self.lock:
            if self.running() and self.child is not None:
                self.child.kill()
                self.child.wait()
                self.running()  # lets go of its pipe
            return self.state()

    # -- what is known ------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """All that the page shows."""
        with self.lock:
            said = self._said()
            found = {key: self.about.get(key) for key in ("name", "facts", "preview", "asked", "scored")}
            found |= {"step": self._step(), "said": said, "types": COLUMN_TYPES, "choices": CHOICES}
            if found["step"] == "fitting":
                self._hear()
                found["grid"], found["headline"] = self._grid(), self.stage or headline(self.board, time.monotonic())
            return found

    def _step(self) -> str:
        if "table" not in self.about:
            return "empty"
        if self.running():
            return "fitting"
        if (self.folder / "model.soft").exists() and (self.folder / "report.html").exists():
            return "done"
        if "asked" not in self.about:
            return "table"
        return "failed" if self.child is not None and (self.child.returncode or 0) > 0 else "stopped"

    def _said(self) -> str:
        path = self.folder / "said.txt"
        return path.read_text(encoding="utf-8", errors="replace")[-MOST_LOG:] if path.exists() else ""

    def _hear(self) -> None:
        """Events of the fit since the last look."""
        path = self.folder / "events.jsonl"
        if not path.exists():
            return
        with path.open("rb") as file:
            file.seek(self.read_bytes)
            whole, _, _ = file.read().rpartition(b"\n")
        self.read_bytes += len(whole) + 1 if whole else 0
        for line in whole.splitlines():
            news = json.loads(line)
            if "stage" in news:
                self.stage = news["stage"]
            else:
                self.board.take(Event(**news), time.monotonic())

    def _grid(self) -> dict[str, Any]:
        folds = self.board.folds()
        rows = [
            {"specialist": name, "states": [self._state_of(name, fold) for fold in folds]}
            for name in self.board.specialists()
        ]
        names = [str(fold + 1 if isinstance(fold, int) else fold) for fold in folds]  # people count from 1
        return {"folds": names, "rows": rows, "marks": MARKS, "errors": self.board.errors}

    def _state_of(self, name: str, fold: int | str) -> str:
        cell = self.board.cells.get((name, fold))
        return "" if cell is None else cell.state

    # -- scoring ------------------------------------------------------------------------------------------------------

    def score(self, path: Path, name: str) -> dict[str, Any]:
        """Predict another file; where the target is in it, the scores are in what was said."""
        words = ["predict", "model.soft", path.name, "--out", "predictions.csv"]
        done = subprocess.run(
            [sys.executable, "-m", "softlearning", *words], cwd=self.folder, capture_output=True, text=True
        )
        if done.returncode:
            raise ValueError(re.sub(r"(?s).*Error: ", "", done.stderr).strip()[:500] or "the file cannot be predicted")
        table = read_table(self.folder / "predictions.csv")
        shown = {"columns": [str(c) for c in table], "rows": table.head(PREVIEW).astype(str).to_numpy().tolist()}
        with self.lock:
            scored = {"name": name[:200], "rows": len(table), "preview": shown, "said": done.stdout + done.stderr}
            self._keep(self.about | {"scored": scored})
            return self.state()
