"""Who may hold a connection, and for how long.

A connection has a deadline to send the head of a request, and one from there to the end of the answer. Where there are
too many, the oldest that has not sent a whole request makes room: first one of the same address, then any. Who finds no
room is told to come back.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from uvicorn.protocols.http.h11_impl import H11Protocol

from softlearning.serve.limits import Limits
from softlearning.serve.metrics import Counters

log = logging.getLogger("softlearning.serve")
FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: 46\r\n"
    b'Retry-After: 1\r\nConnection: close\r\n\r\n{"error": "too many connections; come back"}\r\n'
)


@dataclass(eq=False)
class Connection:
    """One client's line: who it is, and the alarm that ends it."""

    transport: asyncio.Transport
    address: str
    alarm: asyncio.TimerHandle | None = None
    answered: bool = False  # a whole request is here, and being answered


class Door:
    """All connections of a worker, oldest first, by (address, port)."""

    def __init__(self, limits: Limits, counters: Counters):
        self.limits, self.counters = limits, counters
        self.inside: dict[tuple, Connection] = {}

    def enter(self, transport: asyncio.Transport) -> None:
        """Let a connection in, or turn it away."""
        client = tuple(transport.get_extra_info("peername") or ("-", id(transport)))[:2]
        alike = [c for c in self.inside.values() if c.address == client[0]]
        everyone = list(self.inside.values())
        for group, most in ((alike, self.limits.per_address), (everyone, self.limits.connections)):
            if len(group) >= most and not self._make_room(group):
                self.counters.add("closed refused")
                log.warning("%s refused: %d connections", client[0], len(group))
                transport.write(FULL)
                transport.close()
                return
        self.inside[client] = Connection(transport, client[0])
        self.counters.set("open", len(self.inside))
        self.end(client)

    def begin(self, client: tuple) -> None:
        """The head of a request has arrived."""
        self._watch(client, self.limits.exchange_seconds, "no end in time")

    def hold(self, client: tuple) -> None:
        """A whole request has arrived: its connection is kept until it is answered."""
        if line := self.inside.get(tuple(client)[:2]):
            line.answered = True

    def end(self, client: tuple) -> None:
        """The answer was handed over: the next request may come."""
        self._watch(client, self.limits.head_seconds, "no request in time")

    def leave(self, transport: asyncio.Transport) -> None:
        """The connection is gone."""
        for client, line in list(self.inside.items()):
            if line.transport is transport:
                if line.alarm is not None:
                    line.alarm.cancel()
                del self.inside[client]
        self.counters.set("open", len(self.inside))

    def _watch(self, client: tuple, seconds: float, reason: str) -> None:
        line = self.inside.pop(tuple(client)[:2], None)
        if line is None:  # turned away, or gone
            return
        self.inside[tuple(client)[:2]] = line  # now the youngest
        if line.alarm is not None:
            line.alarm.cancel()
        line.answered = False
        line.alarm = asyncio.get_running_loop().call_later(seconds, self._close, line, reason)

    def _make_room(self, group: list[Connection]) -> bool:
        for line in group:
            if not line.answered and not line.transport.is_closing():
                self._close(line, "made room")
                return True
        return False

    def _close(self, line: Connection, reason: str) -> None:
        self.counters.add(f"closed {reason}")
        log.info("%s closed: %s", line.address, reason)
        self.leave(line.transport)
        line.transport.abort()


def protocol(door: Door) -> type[asyncio.Protocol]:
    """uvicorn's HTTP/1.1 with this door in front."""

    class Watched(H11Protocol):
        """A connection that reports to the door."""

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            door.enter(transport)

        def connection_lost(self, exc: Exception | None) -> None:
            door.leave(self.transport)
            super().connection_lost(exc)

        def send_400_response(self, msg: str) -> None:
            door.counters.add("closed not HTTP")
            log.info("%s closed: not HTTP", self.client[0] if self.client else "-")
            super().send_400_response(msg)

    return Watched
