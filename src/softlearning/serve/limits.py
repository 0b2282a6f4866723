"""What one client may cost, and the way a request is turned down."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What requests and connections may cost; each worker keeps them for itself."""

    bytes: int = 4_000_000  # of one body
    rows: int = 1_000
    text: int = 100_000  # characters of one cell
    buffered: int = 32_000_000  # bytes of all bodies that are held at once
    waiting: int = 64  # requests that wait for a thread
    connections: int = 500
    per_address: int = 100  # connections from one address
    head_seconds: float = 10.0  # for a connection to send the head of a request
    body_seconds: float = 10.0  # to send the body
    seconds: float = 30.0  # to wait for the answer
    write_seconds: float = 10.0  # for the client to take the answer

    @property
    def exchange_seconds(self) -> float:
        """From the head of a request to the last byte of its answer."""
        return self.body_seconds + self.seconds + self.write_seconds


class Refused(Exception):
    """A request that is not answered: the status and a reason that repeats nothing of it."""

    def __init__(self, status: int, reason: str):
        self.status, self.reason = status, reason
