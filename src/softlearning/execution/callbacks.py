"""scikit-learn's callback protocol (new in 1.9, experimental there): each task of a fit is a subtask of it.

Older versions have none: then fits are as ever, and `set_callbacks` is not there.
"""

from __future__ import annotations

from collections.abc import Callable
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


__all__ = ["CallbackSupportMixin", "telling", "with_callbacks"]

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
