"""Processes that serve: they share a port and a model, are replaced when they die, and end when they are told to."""

import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import httpx
import psutil
import pytest

from softlearning.serve import serve_model
from softlearning.serve.workers import is_loopback
from tests.serve.live import HEAD, rows
from tests.serve.test_app import fuzz
from tests.stress_log import record


class Command:
    """The command, serving in a process of its own, for the length of a with block."""

    def __init__(self, path, *options):
        with closing(socket.socket()) as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        words = [sys.executable, "-m", "softlearning", "serve", str(path), "--port", str(self.port), *options]
        self.log = Path(f"{path}.log").open("w+")  # noqa: SIM115
        self.process = subprocess.Popen(words, stderr=self.log)

    def __enter__(self):
        while self.process.poll() is None:
            with suppress(httpx.TransportError):
                httpx.get(f"{self.url}/health")
                return self
            time.sleep(0.1)
        raise AssertionError(self.told())

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.end()
        self.log.close()

    def end(self):
        """Tell it to end; how many seconds it took."""
        start = time.monotonic()
        self.process.terminate()
        self.process.wait(120)
        return time.monotonic() - start

    def workers(self):
        return psutil.Process(self.process.pid).children()

    def told(self):
        self.log.seek(0)
        return self.log.read()


@pytest.fixture(scope="module")
def saved(classifier, tmp_path_factory):
    path = tmp_path_factory.mktemp("served") / "model"
    classifier.save(path)
    return path


forked = pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux alone")


@forked
def test_workers_share_a_port_and_are_replaced_and_end_in_time(saved):
    """One slow client under way does not keep the server from ending."""
    with Command(saved, "--workers", "2") as server:
        assert httpx.post(f"{server.url}/predict", json=rows({})).status_code == 200
        first = server.workers()
        assert len(first) == 2
        first[0].kill()
        while len({p.pid for p in server.workers() if p.status() != "zombie"} - {first[0].pid}) < 2:
            time.sleep(0.05)
        for _ in range(10):
            assert httpx.post(f"{server.url}/predict", json=rows({})).status_code == 200
        assert "softlearning_worker_restarts_total 1\n" in httpx.get(f"{server.url}/metrics").text
        with closing(socket.create_connection(("127.0.0.1", server.port))) as line:
            line.sendall(HEAD + b"Content-Length: 100\r\n\r\n{")
            time.sleep(0.2)
            last = server.workers()
            server.end()
        assert server.process.returncode == 0
        assert not [p for p in last if p.is_running()]
        assert "was ended by SIGKILL" in server.told()
        assert "Traceback" not in server.told()


@pytest.mark.slow  # starting the command takes seconds
@forked
def test_workers_end_with_a_parent_that_was_killed(saved):
    with Command(saved) as server:
        workers = server.workers()
        server.process.kill()
        _, left = psutil.wait_procs(workers, timeout=10)
        assert not left


@pytest.mark.slow
def test_ctrl_c_ends_the_command(saved):
    with Command(saved) as server:
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(20) in (0, 130)


def test_beyond_the_loopback_a_token_is_required(classifier):
    with pytest.raises(ValueError, match="a token is required"):
        serve_model(classifier, host="0.0.0.0", tell=pytest.fail)
    assert all(map(is_loopback, ("127.0.0.9", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "192.0.2.1", "example.test")))


def test_a_port_that_is_taken_is_said_in_words(classifier):
    with closing(socket.create_server(("127.0.0.1", 0))) as taken, pytest.raises(OSError, match="cannot listen on"):
        serve_model(classifier, port=taken.getsockname()[1])


def test_the_address_is_told_once_it_is_listened_at(classifier):
    def tell(address):
        told.append(address)
        raise KeyboardInterrupt

    told = []
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    for host in ("127.0.0.1", "::1"):
        with pytest.raises((KeyboardInterrupt, OSError)):  # a machine without IPv6 has nothing to listen at
            serve_model(classifier, host=host, port=port, tell=tell)
    assert told[0] == f"http://127.0.0.1:{port}"
    assert told[1:] in ([], [f"http://[::1]:{port}"])


def memory(server):
    return sum(p.memory_info().rss for p in server.workers())


@pytest.mark.slow
@pytest.mark.timeout(7200)
@forked
def test_ten_thousand_requests_never_break_the_server_nor_fill_its_memory(saved):
    with Command(saved) as server:
        fuzz(server.url, "positive", 200)
        before, sent = memory(server), 0
        for number in range(20):  # in parts, because the generator remembers all it drew
            sent += sum(len(fuzz(server.url, mode, 250, number)) for mode in ("positive", "negative"))
        assert sent >= 10_000
        assert httpx.get(f"{server.url}/health").status_code == 200
        grown = memory(server) - before
        record("requests made from the description", requests=sent, status_5xx=0, memory_grown_mb=grown / 1e6)
        assert grown < 50e6


@pytest.mark.slow
@forked
def test_idle_lines_unfinished_bodies_and_sudden_leaves_by_the_hundred(saved):
    """505 idle lines, 100 bodies without their last bytes, 100 clients that leave: a healthy client is answered."""
    halves = {"idle": b"", "body": HEAD + b"Content-Length: 4000000\r\n\r\n" + b" " * 3_900_000}
    with Command(saved) as server, ExitStack() as stack:
        httpx.post(f"{server.url}/predict", json=rows({}))
        before, answers, slowest, grown = memory(server), [], 0.0, 0
        for kind, count in (("idle", 505), ("body", 100)):
            for _ in range(count):
                line = stack.enter_context(closing(socket.create_connection(("127.0.0.1", server.port))))
                with suppress(OSError):  # refused while it was sending
                    line.sendall(halves[kind])
            start = time.monotonic()
            answers.append(httpx.post(f"{server.url}/predict", json=rows({}), timeout=20).status_code)
            slowest = max(slowest, time.monotonic() - start)
            grown = max(grown, memory(server) - before)
        for _ in range(100):
            with closing(socket.create_connection(("127.0.0.1", server.port))) as line:
                line.sendall(halves["body"][:1000])
        seconds = server.end()
        told = server.told()
    counts = {"connections": 705, "healthy": answers, "slowest_s": slowest, "memory_grown_mb": grown / 1e6}
    record("idle, unfinished and sudden", **counts, log_lines=len(told.splitlines()), shutdown_s=seconds)
    assert answers == [200, 200]
    assert grown < 64e6  # 32 MB of bodies, what they grow by while they arrive, and the lines themselves
    assert "Traceback" not in told
    assert len(told.splitlines()) <= 2 * 705
    # `shutdown_s` is in the log: 5 s by design, more where the machine has no time for the command
