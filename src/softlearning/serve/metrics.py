"""Counts of what the server did, shared by its workers and shown as Prometheus text."""

from __future__ import annotations

import mmap
from collections.abc import Sequence

import numpy as np

STATUSES = (200, 400, 401, 404, 405, 408, 413, 415, 421, 422, 499, 500, 503)  # 499: the client left
REASONS = ("no request in time", "no end in time", "made room", "refused", "not HTTP")  # why a connection was closed
BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds, upper ends of the histogram
SINGLE = ("rows", "seconds", "open", "restarts")
NAMES = [
    *(f"status {s}" for s in STATUSES),
    *(f"closed {r}" for r in REASONS),
    *SINGLE,
    *(f"within {b}" for b in BOUNDS),
]


class Counters:
    """One row of numbers per worker, in memory that forked workers share; a row is written by one worker alone."""

    def __init__(self, workers: int = 1):
        self.memory = mmap.mmap(-1, 8 * workers * len(NAMES))
        self.table = np.frombuffer(self.memory, np.float64).reshape(workers, len(NAMES))
        self.place = {name: k for k, name in enumerate(NAMES)}
        self.worker = 0

    def add(self, name: str, amount: float = 1) -> None:
        """Count something that this worker did."""
        self.table[self.worker, self.place[name]] += amount

    def set(self, name: str, amount: float) -> None:
        """Note how many there are now."""
        self.table[self.worker, self.place[name]] = amount

    def answered(self, status: int, seconds: float) -> None:
        """Count an answer and its time."""
        self.add(f"status {status if status in STATUSES else 500 if status >= 500 else 400}")
        self.add("seconds", seconds)
        for bound in BOUNDS:
            if seconds <= bound:
                self.add(f"within {bound}")

    def text(self) -> str:
        """All counts of all workers, in the format that Prometheus reads."""
        sums = dict(zip(NAMES, self.table.sum(axis=0).tolist()))
        total = sum(sums[f"status {s}"] for s in STATUSES)
        times = [(f'_bucket{{le="{b}"}}', sums[f"within {b}"]) for b in BOUNDS]
        times += [('_bucket{le="+Inf"}', total), ("_sum", sums["seconds"]), ("_count", total)]
        return "".join(
            [
                _family("requests_total", "counter", "Answers, by status.",
                        [(f'{{status="{s}"}}', sums[f"status {s}"]) for s in STATUSES]),
                _family("request_seconds", "histogram", "From the head of a request to its answer.", times),
                _family("rows_total", "counter", "Rows that were predicted.", [("", sums["rows"])]),
                _family("connections", "gauge", "Connections that are open.", [("", sums["open"])]),
                _family("connections_closed_total", "counter", "Connections that the server ended, by reason.",
                        [(f'{{reason="{r}"}}', sums[f"closed {r}"]) for r in REASONS]),
                _family("worker_restarts_total", "counter", "Workers that died and were replaced.",
                        [("", sums["restarts"])]),
            ]
        )  # fmt: skip


def _family(name: str, kind: str, words: str, samples: Sequence[tuple[str, float]]) -> str:
    full = f"softlearning_{name}"
    lines = [
        f"# HELP {full} {words}",
        f"# TYPE {full} {kind}",
        *(f"{full}{label} {value:.12g}" for label, value in samples),
    ]
    return "\n".join(lines) + "\n"
