"""What to begin under a time limit: whole specialists in the order of their rank, if they can be finished.

The cheapest of the first few leads: soon there is something to predict with, and it is known how fast this machine is.

A specialist counts only when all its folds and its refit are done, so the question before each task is whether all
that is left of its specialist can be done in the time that remains. Seconds are those that were expected, corrected by
how wrong the expectations were so far; once a fold of a specialist has finished, its own seconds count.

One that would take more than its portion of the time is not skipped but takes a smaller task, if it can: it learns from
fewer rows, the same number in all its folds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import fmean, median

UNSURE = 5.0  # an expectation may be wrong by this factor before a specialist is skipped for it
CORRECTED = 2.0  # the same once others have shown how wrong expectations are on this machine
PORTION = 0.25  # of the time that remains, for one specialist while others wait
LEADERS = 4  # specialists by rank, of which the cheapest is begun first
LEAST = 0.1  # of its seconds, even beyond its portion; a specialist for which there is no time for that is skipped
SLACK = 1.5  # folds differ: a task may take so much longer than its share of the time


@dataclass
class Plan:
    """The tasks of each specialist, against the time that remains.

    costs : expected seconds of one task of each specialist.
    tasks : how many tasks each has.
    workers : how many tasks run at once.
    refits : tasks of the same size that each specialist needs later.
    least : the smallest share of its seconds that a task of each specialist can be given, where that is not small.
    """

    costs: Mapping[str, float]
    tasks: Mapping[str, int]
    workers: int = 1
    refits: int = 0
    least: Mapping[str, float] = field(default_factory=dict)
    finished: dict[str, list[float]] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)
    given_up: set[str] = field(default_factory=set)
    shares: dict[str, float] = field(default_factory=dict)
    late: list[float] = field(default_factory=list)  # how much longer than expected those took that were ended
    allowed: dict[str, float] = field(default_factory=dict)  # after which a task of theirs is ended

    def note(self, name: str, seconds: float) -> None:
        """A task of a specialist has finished."""
        self.finished.setdefault(name, []).append(seconds)

    def note_late(self, name: str, seconds: float) -> None:
        """A task was ended by the clock: it would have taken at least so long."""
        self.late.append(seconds / max(self._cost(name), 1e-9))

    def give_up(self, name: str) -> None:
        """A specialist will not be finished: it is owed nothing more."""
        self.given_up.add(name)

    def seconds(self, name: str) -> float:
        """Expected seconds of one task."""
        if own := self.finished.get(name):
            return fmean(own)
        ratios = [time / self._cost(n) for n, times in self.finished.items() if self._cost(n) > 0 for time in times]
        ratios += self.late
        return self._cost(name) * (median(ratios) if ratios else 1.0)

    def _cost(self, name: str) -> float:
        return self.costs[name] * self.shares.get(name, 1.0)

    def share(self, name: str, remaining: float) -> float:
        """How large a task of a specialist may be, 1 for all of it; the same for all its tasks."""
        if name not in self.shares and name not in self.finished:
            work = self.workers * remaining / (self.left(name) + self.refits)
            waiting = set(self.tasks) - self.begun - self.given_up - {name}
            clock = max(remaining - self.owed(name), 0.0) / SLACK / max(self.rounds(name), 1)
            needed, least = max(self.seconds(name), 1e-9), max(LEAST, self.least.get(name, 0.0))
            fits = min(max(PORTION * work, least * needed) if waiting else work, clock) / needed
            self.shares[name] = min(max(fits, least), 1.0)
        return self.shares.get(name, 1.0)

    def left(self, name: str) -> int:
        """Tasks of a specialist that have not finished."""
        return self.tasks[name] - len(self.finished.get(name, ()))

    def rounds(self, name: str) -> int:
        """How often all workers are busy with a specialist until it is done."""
        return math.ceil(self.left(name) / self.workers) + math.ceil(self.refits / self.workers)

    def needs(self, name: str) -> float:
        """Seconds until a specialist is done, with all workers at its service."""
        return self.rounds(name) * self.seconds(name)

    def owed(self, name: str) -> float:
        """Seconds that the other specialists under way still need."""
        others = self.begun - self.given_up - {name}
        each = {n: min(self.seconds(n), self.allowed.get(n, float("inf"))) for n in others}
        return sum((self.left(n) + self.refits) * each[n] for n in others) / self.workers

    def refusal(self, name: str, remaining: float) -> str:
        """Why the next task of a specialist is not begun; empty when it is."""
        sure = name in self.finished or self.shares.get(name, 1.0) < 1
        factor = 1.0 if sure else CORRECTED if self.finished else UNSURE
        needed, free = self.needs(name), remaining - self.owed(name)
        if needed <= factor * free:
            return ""
        return f"needs about {rounded(needed)} s, {rounded(max(free, 0.0))} s remain"

    def allowance(self, name: str, remaining: float) -> float:
        """Seconds for one task: if it takes longer, not all of its specialist can be finished."""
        share = max(remaining - self.owed(name), 0.1 * remaining) / max(self.rounds(name), 1)
        self.allowed[name] = min(remaining, SLACK * share)
        return self.allowed[name]


def rounded(seconds: float) -> str:
    """Seconds as one would say them."""
    return f"{seconds:.0f}" if seconds >= 10 else f"{seconds:.2g}"


def order(costs: Mapping[str, float], ranks: Mapping[str, float] | None = None) -> list[str]:
    """Specialists by rank, the smallest first; among equals the cheapest first, and of the first few in any case."""
    names = sorted(costs, key=lambda name: ((ranks or {}).get(name, 0.0), costs[name], name))
    lead = names[:LEADERS].index(min(names[:LEADERS], key=costs.__getitem__)) if names else 0
    return [*names[lead : lead + 1], *names[:lead], *names[lead + 1 :]]
