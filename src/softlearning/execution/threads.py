"""What belongs to a whole process, set for a while without harm to its other threads."""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def controller() -> ThreadpoolController:
    """The thread pools of the libraries that are loaded; looking them up takes milliseconds, so it is done once."""
    return ThreadpoolController()


class OneThread:
    """A context in which numerical libraries use one thread: sums in another order differ in the last bits.

    The setting belongs to the process: of several threads inside, the last restores it.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside = 0
        self.limit: Any = None

    def __enter__(self) -> None:
        with self.lock:
            if not self.inside:
                self.limit = controller().limit(limits=1)
                self.limit.__enter__()
            self.inside += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.inside -= 1
            if not self.inside:
                self.limit.__exit__(None, None, None)


one_thread = OneThread()


class QuietThreads(threading.local):
    """Stands in for the pattern of a warning filter, and matches in threads that asked for quiet alone."""

    depth = 0

    def match(self, _: str) -> bool:
        """Called by the warnings machinery for every warning."""
        return self.depth > 0

    @property
    def pattern(self) -> str:
        """The same as a text, for scikit-learn, which copies filters for its own workers."""
        return ".*" if self.depth > 0 else "(?!)"


_quiet = QuietThreads()
_FILTER = ("ignore", _quiet, Warning, None, 0)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """No warnings from this thread; those of other threads go where they always go.

    `warnings.catch_warnings` would change the filters of all threads, and restore them in any order.
    """
    warnings.filters.insert(0, _FILTER)  # type: ignore[attr-defined]
    _quiet.depth += 1
    try:
        yield
    finally:
        _quiet.depth -= 1
        with contextlib.suppress(ValueError):  # a `catch_warnings` of another thread has taken it away
            warnings.filters.remove(_FILTER)  # type: ignore[attr-defined]
