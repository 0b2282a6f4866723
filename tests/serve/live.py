"""A server on a free port of the loopback, a model for it, and requests to send."""

import json
import socket
import threading
import time

import httpx
import numpy as np
import pandas as pd

from softlearning.serve.app import LOOPBACK
from softlearning.serve.limits import Limits
from softlearning.serve.metrics import Counters
from softlearning.serve.workers import Site

LIMITS = Limits(bytes=200_000, rows=50, text=1_000, seconds=5.0, body_seconds=1.0, head_seconds=1.0)
GOOD = {"age": 41.5, "town": "Riga", "member": True, "since": "2024-05-01", "id": 7}
HEAD = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def people(n=90):
    rng = np.random.default_rng(3)
    table = pd.DataFrame(
        {
            "age": rng.uniform(20, 80, n),
            "town": rng.choice(["Riga", "Bonn", "<b>Lima</b>"], n),
            "member": rng.random(n) > 0.5,
            "since": pd.date_range("2023-01-01", periods=n, freq="D").strftime("%Y-%m-%d"),
            "id": np.arange(n),
        }
    )
    return table, np.where(table["age"] + 20 * (table["town"] == "Riga") > 55, "yes", "no")


class Live:
    """A worker's server in a thread of this process, for the length of a with block."""

    def __init__(self, model, limits=LIMITS, token=None, hosts=LOOPBACK):
        self.counters = Counters()
        self.server = Site(model, limits, token, hosts, self.counters).server(0, 1)
        self.line = socket.create_server(("127.0.0.1", 0))
        self.port = self.line.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.server.run, args=([self.line],), daemon=True)

    def __enter__(self):
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        return self

    def __exit__(self, *_):
        self.server.should_exit = True
        self.thread.join(10)
        assert not self.thread.is_alive()

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=20)

    def count(self, name):
        return self.counters.table[0, self.counters.place[name]]


def send(live, body, **headers):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return httpx.post(f"{live.url}/predict", content=content, headers={"Content-Type": "application/json", **headers})


def rows(*changes):
    """A request with one good row for each change; "away" takes a key away."""
    return {"rows": [{k: v for k, v in {**GOOD, **c}.items() if v != "away"} for c in changes]}


def lines(caplog, count):
    """What was logged, but for the lines of the client, once there are so many: a line comes after its answer."""
    until = time.monotonic() + 10
    while True:
        found = [record.getMessage() for record in caplog.records if not record.name.startswith("http")]
        if len(found) >= count or time.monotonic() > until:
            return found
        time.sleep(0.01)


def raw(text):
    """A good request with one cell replaced by text as it stands."""
    return json.dumps(rows({"age": 0})).replace('"age": 0', f'"age": {text}').encode()
