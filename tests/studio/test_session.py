"""A session is what its folder says: table, settings, fit, results; killed at any point, the next goes on."""

import json
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from softlearning.execution.tasks import Event
from softlearning.studio.session import Session


@pytest.fixture
def table(tmp_path, rng):
    frame = pd.DataFrame({"size": rng.normal(size=60), "town": rng.choice(["a", "b"], 60), "id": range(60)})
    frame["price"] = 2 * frame["size"] + (frame["town"] == "a") + 0.1 * rng.normal(size=60)
    return frame


@pytest.fixture
def session(tmp_path, table):
    session = Session(tmp_path / "studio")
    path = session.place_for("houses.csv", "table")
    table.to_csv(path, index=False)
    session.take_table(path, "houses.csv")
    yield session
    session.stop()


def wait(session, *steps):
    """The state, as soon as it is at one of these steps."""
    for _ in range(1200):
        state = session.state()
        if state["step"] in steps:
            return state
        time.sleep(0.1)
    raise AssertionError(state["said"])


def test_a_table_is_understood_and_kept(session):
    state = session.state()
    assert state["step"] == "table"
    assert {c["name"]: c["type"] for c in state["facts"]["details"]}["town"] == "category"
    assert len(state["preview"]["rows"]) == 5
    again = Session(session.folder).state()
    assert (again["step"], again["name"]) == ("table", "houses.csv")


@pytest.mark.parametrize(("name", "kept"), [
    ("houses.csv", "table.csv"), ("a.b.csv.gz", "table.csv.gz"), ("x.PARQUET", "table.parquet"),
    ("../../etc/passwd", "table.csv"), ("x.sh", "table.csv"), ("a.xlsx", "table.xlsx"),
])  # fmt: skip
def test_an_uploaded_file_gets_a_name_of_ours(session, name, kept):
    assert session.place_for(name, "table") == session.folder / kept


def test_what_is_asked_for_is_a_command_that_anybody_could_type(session):
    asked = {"target": "price", "library": "fast", "time_limit": "60", "types": {"town": "text", "id": "drop"}}
    words = session.command(asked)
    assert words[:2] == ["fit", "table.csv"]
    assert {"--target=price", "--library=fast", "--time-limit=60", "--type=town=text", "--drop=id"} <= set(words)


@pytest.mark.parametrize(("asked", "said"), [
    ({"target": "prise"}, "columns of the table"), ({"target": "price", "library": "other"}, "library is one of"),
    ({}, "what to predict"), ({"target": "price", "types": {"nope": "drop"}}, "columns of the table"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused(session, asked, said):
    with pytest.raises(ValueError, match=said):
        session.start(asked)
    assert session.state()["step"] == "table"


def test_a_file_that_is_no_table_leaves_the_old_one(session):
    (session.folder / "table.parquet").write_bytes(b"nonsense")
    with pytest.raises(ValueError, match="parquet"):
        session.take_table(session.folder / "table.parquet", "x.parquet")
    assert session.state()["name"] == "houses.csv"


def test_folds_are_counted_from_one(session):
    for fold in (0, 1, "refit"):
        session.board.take(Event("waiting", "ridge", fold, 0.0, 0, 3), 0.0)
    assert session._grid()["folds"] == ["1", "2", "refit"]


def test_a_fit_is_watched_read_and_scored_and_failures_are_told(session, table, monkeypatch):
    monkeypatch.setitem(sys.modules["softlearning.studio.session"].CHOICES, "library", ("ridge,knn_5", "nobody"))
    session.start({"target": "price", "library": "nobody"})
    assert "no specialist is called 'nobody'" in wait(session, "failed")["said"]
    session.start({"target": "price", "library": "ridge,knn_5", "types": {"id": "drop"}})
    assert wait(session, "fitting", "done")
    state = wait(session, "done")
    assert "Report: report.html" in state["said"]
    news = [json.loads(line) for line in (session.folder / "events.jsonl").read_text().splitlines()]
    assert {"finished"} <= {n.get("kind") for n in news}
    assert any("stage" in n for n in news)
    path = session.place_for("new.csv", "new")
    table.to_csv(path, index=False)
    scored = session.score(path, "new.csv")["scored"]
    assert scored["rows"] == 60
    assert "RMSE" in scored["said"]
    assert Session(session.folder).state()["step"] == "done"
    table.drop(columns="size").to_csv(path, index=False)
    with pytest.raises(ValueError, match="size"):
        session.score(path, "new.csv")


@pytest.mark.slow
def test_a_fit_whose_studio_is_killed_ends_and_the_next_studio_goes_on(tmp_path, rng):
    """The studio is killed outright in the middle of a fit; the fit notices, and the next one restores its work."""
    X = rng.normal(size=(1500, 8))
    frame = pd.DataFrame(X, columns=list("abcdefgh")).assign(y=np.sin(X[:, 0]) + X[:, 1] ** 2)
    folder = tmp_path / "studio"
    session = Session(folder)
    frame.to_csv(session.place_for("t.csv", "table"), index=False)
    session.take_table(folder / "table.csv", "t.csv")
    code = (
        "import sys, time; from softlearning.studio import Session; s = Session(sys.argv[1]);"
        "s.start({'target': 'y', 'library': 'fast'}); print(s.child.pid, flush=True); time.sleep(600)"
    )
    studio = subprocess.Popen([sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE, text=True)
    fit = int(studio.stdout.readline())
    events = folder / "events.jsonl"
    deadline = time.monotonic() + 120
    while not (events.exists() and '"finished"' in events.read_text()) and time.monotonic() < deadline:
        time.sleep(0.05)
    studio.kill()
    studio.communicate()
    while alive(fit) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(fit)
    again = Session(folder)
    assert again.state()["step"] == "stopped"
    again.start()
    state = wait(again, "done", "failed")
    assert state["step"] == "done", state["said"]
    assert '"restored"' in events.read_text()


def alive(pid):
    import psutil

    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
