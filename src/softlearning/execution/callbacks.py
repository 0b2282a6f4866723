"""scikit-learn's callback protocol (new in 1.9, experimental there): each task of a fit is a subtask of it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from softlearning.execution.tasks import Event

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
