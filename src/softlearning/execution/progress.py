"""Who watches a fit: a live view of specialists x folds with the expected time, and scikit-learn's callbacks.

`Board` gathers the events of `execution.run` and knows nothing of the screen; `draw` turns it into a table of rich;
`watching` is the context that a fit runs in. scikit-learn's callback protocol is new in 1.9, and experimental there:
each task of a fit is a subtask of it. Older versions have none: fits are as ever, and `set_callbacks` is not there.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from softlearning.execution.tasks import Event

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn 1.8

    class NoContext:
        """Hears of the fit and tells nobody."""

        def call_on_fit_task_begin(self, **_: Any) -> None:
            """Nothing."""

        def call_on_fit_task_end(self, **_: Any) -> None:
            """Nothing."""

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """An estimator that takes no callbacks."""

        def _init_callback_context(self, **_: Any) -> NoContext:
            return NoContext()

    def with_callbacks(method: Callable) -> Callable:
        """The method as it is."""
        return method


MARKS = {"waiting": "·", "started": "▸", "finished": "✓", "restored": "↺", "failed": "✗"}
COLOURS = {"waiting": "dim", "started": "yellow", "finished": "green", "restored": "cyan", "failed": "red"}
WORST = ("failed", "started", "waiting", "restored", "finished")  # what several folds in one cell look like
MOST_COLUMNS = 12


@dataclass
class Cell:
    """One task as far as it is known."""

    state: str
    cost: float
    since: float
    seconds: float = 0.0


@dataclass
class Board:
    """The state of all tasks, from the events so far."""

    begin: float = field(default_factory=time.monotonic)
    cells: dict[tuple[str, int | str], Cell] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)  # specialist -> its first error
    most_at_once: int = 1

    def take(self, event: Event, now: float) -> None:
        self.cells[event.specialist, event.fold] = Cell(event.kind, event.cost, now, event.seconds)
        if event.error:
            self.errors.setdefault(event.specialist, event.error)
        self.most_at_once = max(self.most_at_once, len(self.in_state("started")))

    def in_state(self, *states: str) -> list[tuple[str, int | str]]:
        return [key for key, cell in self.cells.items() if cell.state in states]

    def specialists(self) -> list[str]:
        return list(dict.fromkeys(name for name, _ in self.cells))

    def folds(self) -> list[int | str]:
        """Folds in order, then the refit."""
        folds = {fold for _, fold in self.cells}
        return sorted(f for f in folds if isinstance(f, int)) + sorted(f for f in folds if isinstance(f, str))

    def expected(self, now: float) -> float | None:
        """Seconds that the known tasks will still take; None while none has finished."""
        done = [self.cells[key] for key in self.in_state("finished")]
        cost = sum(cell.cost for cell in done)
        if not cost:
            return None
        rate = sum(cell.seconds for cell in done) / cost
        waiting = sum(self._seconds(key, rate) for key in self.in_state("waiting"))
        running = sum(max(self._seconds(k, rate) - (now - self.cells[k].since), 0.0) for k in self.in_state("started"))
        return (waiting + running) / self.most_at_once

    def _seconds(self, key: tuple[str, int | str], rate: float) -> float:
        """Expected seconds of a task: the mean of its specialist's finished ones, or its cost at the general rate."""
        own = [c.seconds for (name, _), c in self.cells.items() if name == key[0] and c.state == "finished"]
        return sum(own) / len(own) if own else self.cells[key].cost * rate


def draw(board: Board, now: float) -> Any:
    """The board as a table: one row per specialist, one column per fold (or for several, where there are many)."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    columns = grouped(board.folds())
    table = Table(box=None, pad_edge=False)
    table.add_column("specialist")
    for group in columns:
        table.add_column(group_name(group), justify="center")
    table.add_column("seconds", justify="right")
    table.add_column("")
    for name in board.specialists():
        states = [worst(board, name, group) for group in columns]
        marks = [Text(MARKS.get(state, ""), style=COLOURS.get(state, "")) for state in states]
        spent = sum(cell.seconds for (n, _), cell in board.cells.items() if n == name)
        table.add_row(Text(name), *marks, f"{spent:.1f}" if spent else "", Text(board.errors.get(name, "")[:60], "red"))
    return Group(Text(headline(board, now)), table)


def grouped(folds: list[int | str]) -> list[list[int | str]]:
    """Folds, several to a column where there are more than fit on a line."""
    numbers = [f for f in folds if isinstance(f, int)]
    size = -(-len(numbers) // MOST_COLUMNS) or 1
    groups: list[list[int | str]] = [list(numbers[i : i + size]) for i in range(0, len(numbers), size)]
    return groups + [[f] for f in folds if isinstance(f, str)]


def group_name(group: list[int | str]) -> str:
    return str(group[0]) if len(group) == 1 else f"{group[0]}-{group[-1]}"


def worst(board: Board, name: str, group: list[int | str]) -> str:
    states = {board.cells[name, fold].state for fold in group if (name, fold) in board.cells}
    return next((state for state in WORST if state in states), "")


def headline(board: Board, now: float) -> str:
    if not board.cells:
        return f"Getting ready, {clock(now - board.begin)}"
    done = len(board.in_state("finished", "restored", "failed"))
    expected = board.expected(now)
    rest = "" if expected is None else f", about {clock(expected)} more"
    rest = ", now the weights" if done == len(board.cells) else rest
    failed = len(board.errors)
    lost = f", {failed} specialist{'s' * (failed > 1)} failed" if failed else ""
    return f"{done} of {len(board.cells)} tasks, {clock(now - board.begin)}{rest}{lost}"


def clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}" if minutes >= 60 else f"{minutes}:{rest:02d}"


@contextlib.contextmanager
def watching(progress: bool | Callable[[Event], Any] = True, console: Any = None) -> Iterator[Callable | None]:
    """Who watches a fit: nobody, the caller's own function of events, or a live view on the terminal."""
    if not progress or callable(progress):
        yield progress or None
        return
    from rich.console import Console
    from rich.live import Live

    board, lock = Board(), threading.Lock()

    def picture() -> Any:
        with lock:
            return draw(board, time.monotonic())

    def take(event: Event) -> None:
        with lock:
            board.take(event, time.monotonic())

    with Live(get_renderable=picture, console=console or Console(stderr=True), refresh_per_second=4):
        yield take


BEGINS, ENDS = ("started",), ("finished", "failed", "restored")


def telling(estimator: Any, context: Any, watch: Callable[[Event], Any] | None) -> Callable[[Event], Any] | None:
    """A watch that also calls the hooks of the estimator's callbacks.

    A hook that answers True stops the cross-fitting; what has finished is still weighed and refitted. Hooks run in
    the driver, so callbacks keep their state whatever process or machine the tasks run in.
    """
    if not getattr(estimator, "_skl_callbacks", None):
        return watch
    numbers, running = count(), {}

    def take(event: Event) -> bool:
        stop = bool(watch(event)) if watch is not None else False
        key = event.specialist, event.fold
        if event.kind in (*BEGINS, "restored"):
            subtask = context.subcontext(task_name=f"{event.specialist}, fold {event.fold}", task_id=next(numbers))
            running[key] = subtask.call_on_fit_task_begin(estimator=estimator)
        if event.kind in ENDS and key in running:
            stop = bool(running.pop(key).call_on_fit_task_end(estimator=estimator)) or stop
        return stop and event.fold != "refit"

    return take
