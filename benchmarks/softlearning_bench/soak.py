"""A soak of the server: good, bad and slow clients at once for as long as you like, memory and times written down.

    python -m softlearning_bench.soak --minutes 60 --out benchmarks/results/soak.csv --figure docs/figures/soak.svg

The server is the command, on the loopback, with two workers; the clients are threads of this process. A line of memory
every few seconds goes to the csv, and one line with all counts to the log of stress tests.
"""

from __future__ import annotations

import argparse
import csv
import http.client
import json
import random
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import closing, suppress
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from matplotlib.figure import Figure
from sklearn.datasets import load_breast_cancer

from softlearning import SoftClassifier
from softlearning_bench.drawing import BLUE, NARROW, blank, save_svg

LIBRARY = ["logistic", "naive_bayes", "decision_tree", "hist_gradient_boosting"]
WARM_UP = 60.0  # seconds until memory is compared
EVERY = 5.0  # seconds between two lines of the csv
HEAD = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2000000\r\n\r\n"
BAD = (
    *(b"", b"hello", b'{"rows": []}', b'{"rows": [{}]}', b"[" * 50_000, b'{"rows": [{"mean radius": NaN}]}'),
    *(b'{"rows": [{"mean radius": "old"}]}', b'{"rows": 1, "rows": 2}', b" " * 4_500_000, b"\xff\xfe" * 100),
)  # bodies that are refused


class Traffic:
    """Clients in threads until they are told to stop, and what they were answered."""

    def __init__(self, port: int, rows: list[dict[str, float]]):
        self.port, self.rows = port, rows
        self.stop = threading.Event()
        self.statuses: Counter[str] = Counter()
        self.seconds: list[float] = []
        kinds = [self.good, self.good, self.bad, self.idle, self.unfinished, self.sudden]
        self.threads = [threading.Thread(target=self.repeat, args=(kind, k)) for k, kind in enumerate(kinds)]

    def repeat(self, kind: Any, seed: int) -> None:
        """One kind of client, again and again."""
        rng = random.Random(seed)
        while not self.stop.is_set():
            with suppress(OSError, http.client.HTTPException):
                kind(rng)
            self.stop.wait(rng.uniform(0, 0.1))

    def post(self, kind: str, body: bytes) -> None:
        """Send a body and count the answer."""
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with closing(line):
            try:
                line.request("POST", "/predict", body, {"Content-Type": "application/json"})
                answer = line.getresponse()
                answer.read()
                self.statuses[f"{kind} {answer.status}"] += 1
            except (BrokenPipeError, ConnectionResetError):  # refused while it was sending
                self.statuses[f"{kind} closed"] += 1

    def good(self, rng: random.Random) -> None:
        """Up to 50 rows, timed."""
        body = json.dumps({"rows": rng.choices(self.rows, k=rng.randint(1, 50))}).encode()
        start = time.perf_counter()
        self.post("good", body)
        self.seconds.append(time.perf_counter() - start)

    def bad(self, rng: random.Random) -> None:
        """What is refused."""
        self.post("bad", rng.choice(BAD))

    def idle(self, rng: random.Random) -> None:
        """Many lines on which nothing comes, for a while."""
        lines = [socket.create_connection(("127.0.0.1", self.port)) for _ in range(rng.randint(1, 150))]
        self.stop.wait(rng.uniform(0, 15))
        for line in lines:
            line.close()
        self.statuses["idle lines"] += len(lines)

    def unfinished(self, rng: random.Random) -> None:
        """Bodies without their end."""
        lines = [socket.create_connection(("127.0.0.1", self.port)) for _ in range(rng.randint(1, 20))]
        for line in lines:
            with suppress(OSError):
                line.sendall(HEAD + b" " * rng.randint(0, 1_900_000))
        self.stop.wait(rng.uniform(0, 12))
        for line in lines:
            line.close()
        self.statuses["unfinished bodies"] += len(lines)

    def sudden(self, rng: random.Random) -> None:
        """Leaves in the middle."""
        with closing(socket.create_connection(("127.0.0.1", self.port))) as line:
            line.sendall(HEAD[: rng.randint(0, len(HEAD))])
        self.statuses["sudden leaves"] += 1


def memory(process: psutil.Process) -> float:
    """Megabytes of the server and its workers, shared pages counted once."""
    return sum(p.memory_full_info().pss for p in (process, *process.children())) / 1e6


def start_server(model: Path, log: Any) -> tuple[subprocess.Popen, int]:
    """The command on a free port, once it answers."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "softlearning", "serve", str(model), "--port", str(port), "--workers", "2"]
    process = subprocess.Popen(words, stdout=log, stderr=log)
    while process.poll() is None:
        with suppress(OSError), closing(socket.create_connection(("127.0.0.1", port))):
            return process, port
        time.sleep(0.1)
    raise RuntimeError("the server did not start")


def soak(minutes: float, folder: Path) -> tuple[list[tuple[float, float, int]], dict[str, Any]]:
    """(seconds, megabytes, answers) every few seconds, and the counts of the whole."""
    data = load_breast_cancer(as_frame=True)
    model = SoftClassifier(LIBRARY, cv=3).fit(data.data, data.target)
    model.save(folder / "model")
    with open(folder / "log", "w+") as log:
        process, port = start_server(folder / "model", log)
        server, traffic, lines = psutil.Process(process.pid), Traffic(port, data.data.to_dict("records")), []
        begun = time.monotonic()
        try:
            for thread in traffic.threads:
                thread.start()
            while (now := time.monotonic() - begun) < 60 * minutes:
                lines.append((now, memory(server), sum(traffic.statuses.values())))
                time.sleep(EVERY)
        finally:
            traffic.stop.set()
            for thread in traffic.threads:
                thread.join()
            end = time.monotonic()
            process.terminate()
            code = process.wait(60)
        log.seek(0)
        found = log.read()
    counts = summary(lines, traffic, found) | {"shutdown_s": time.monotonic() - end, "exit_code": code}
    return lines, {"minutes": minutes} | counts


def summary(lines: list[tuple[float, float, int]], traffic: Traffic, log: str) -> dict[str, Any]:
    """Growth of memory after the warm-up, times of good requests, answers, and what the log held."""
    warm = [mb for seconds, mb, _ in lines if seconds >= min(WARM_UP, lines[-1][0] / 2)]
    fifth = max(1, len(warm) // 5)
    p50, p99 = np.quantile(traffic.seconds, [0.5, 0.99])
    return {
        "answers": dict(sorted(traffic.statuses.items())),
        "good_p50_s": float(p50),
        "good_p99_s": float(p99),
        "memory_start_mb": float(np.mean(warm[:fifth])),
        "memory_end_mb": float(np.mean(warm[-fifth:])),
        "memory_most_mb": float(max(warm)),
        "status_500": len(re.findall(r" 500 \d+ ms", log)),
        "tracebacks": log.count("Traceback"),
    }


def draw(lines: list[tuple[float, float, int]], path: Path) -> None:
    """Memory over time."""

    def figure() -> Figure:
        drawn, axes = blank(NARROW, 2.4)
        axes.plot([s / 60 for s, _, _ in lines], [mb for _, mb, _ in lines], color=BLUE, linewidth=1)
        axes.set(xlabel="minutes", ylabel="memory of the server, MB", ylim=(0, None))
        return drawn

    save_svg(figure, path)


def main() -> None:
    """Run the soak, write csv, figure and log line, print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--log", type=Path, help="file of stress tests to append a line to")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lines, counts = soak(asked.minutes, Path(folder))
    with open(asked.out, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("seconds", "memory_mb", "answers"))
        writer.writerows((round(s, 1), round(mb, 2), n) for s, mb, n in lines)
    if asked.figure is not None:
        draw(lines, asked.figure)
    told = {"stress_test": "soak of the server", **counts, "version": version("softlearning")}
    told["date"] = datetime.now(UTC).date().isoformat()
    if asked.log is not None:
        with open(asked.log, "a") as file:
            print(json.dumps(told), file=file)
    print(json.dumps(told, indent=1))


if __name__ == "__main__":
    main()
