"""One thread for numerical libraries: sums in another order differ in the last bits."""

from __future__ import annotations

import threading
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def controller() -> ThreadpoolController:
    """The thread pools of the libraries that are loaded; looking them up takes milliseconds, so it is done once."""
    return ThreadpoolController()


class OneThread:
    """A context on one thread. The setting belongs to the process: of several threads inside, the last restores it."""

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
