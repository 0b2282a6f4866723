"""What to begin under a time limit: whole specialists, cheap ones and new families first, if they can be finished.

A specialist counts only when all its folds and its refit are done, so the question before each task is whether all
that is left of its specialist can be done in the time that remains. Seconds are foreseen from the relative costs of
the library, scaled by what has finished so far; once a fold of a specialist has finished, its own seconds count.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

DOUBT = 2.0  # a cost from the library may be wrong by this factor before a specialist is left out for it
SLACK = 1.5  # folds differ: a task may take so much longer than its share of the time


@dataclass
class Plan:
    """The tasks of each specialist, against the time that remains.

    costs : relative seconds of one task of each specialist.
    tasks : how many tasks each has.
    workers : how many tasks run at once.
    refits : tasks of the same size that each specialist needs later.
    """

    costs: Mapping[str, float]
    tasks: Mapping[str, int]
    workers: int = 1
    refits: int = 0
    finished: dict[str, list[float]] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)
    given_up: set[str] = field(default_factory=set)

    def note(self, name: str, seconds: float) -> None:
        """A task of a specialist has finished."""
        self.finished.setdefault(name, []).append(seconds)

    def give_up(self, name: str) -> None:
        self.given_up.add(name)

    def seconds(self, name: str) -> float | None:
        """Expected seconds of one task; None while nothing is known."""
        if own := self.finished.get(name):
            return sum(own) / len(own)
        known = sum(self.costs[n] * len(times) for n, times in self.finished.items())
        spent = sum(sum(times) for times in self.finished.values())
        return self.costs[name] * spent / known if known else None

    def left(self, name: str) -> int:
        """Tasks of a specialist that have not finished."""
        return self.tasks[name] - len(self.finished.get(name, ()))

    def needs(self, name: str) -> float:
        """Seconds until a specialist is done, with all workers at its service."""
        rounds = math.ceil(self.left(name) / self.workers) + math.ceil(self.refits / self.workers)
        return rounds * (self.seconds(name) or 0.0)

    def owed(self, name: str) -> float:
        """Seconds that the other specialists under way still need."""
        others = self.begun - self.given_up - {name}
        return sum((self.left(n) + self.refits) * (self.seconds(n) or 0.0) for n in others) / self.workers

    def refusal(self, name: str, remaining: float) -> str:
        """Why the next task of a specialist is not begun; empty when it is."""
        doubt = 1.0 if name in self.finished else DOUBT
        needed, free = self.needs(name), remaining - self.owed(name)
        if needed <= doubt * free:
            return ""
        return f"left out: needs about {rounded(needed)} s, {rounded(max(free, 0.0))} s remain"

    def allowance(self, name: str, remaining: float) -> float:
        """Seconds for one task: if it takes longer, not all of its specialist can be finished."""
        rounds = math.ceil(self.left(name) / self.workers) + math.ceil(self.refits / self.workers)
        return min(remaining, SLACK * max(remaining - self.owed(name), 0.1 * remaining) / max(rounds, 1))


def rounded(seconds: float) -> str:
    return f"{seconds:.0f}" if seconds >= 10 else f"{seconds:.2g}"


def order(costs: Mapping[str, float], families: Mapping[str, str] | None = None) -> list[str]:
    """Specialists by value for time: the cheapest first, each further one of a family counted as dearer.

    A blend lives on differences, so the first of a family is worth more than the third.
    """
    families = families or {}
    chosen: list[str] = []
    seen: Counter[str] = Counter()
    while len(chosen) < len(costs):
        rest = [name for name in costs if name not in chosen]
        best = min(rest, key=lambda n: (costs[n] * (1 + seen[families.get(n, n)]), n))
        chosen.append(best)
        seen[families.get(best, best)] += 1
    return chosen
