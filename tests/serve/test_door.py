"""Idle, half-open and slow connections take nothing from anybody else, and are ended."""

import logging
import time
from contextlib import ExitStack, closing

import pytest

from softlearning.serve.limits import Limits
from tests.serve.live import HEAD, Live, lines, rows, send

HALVES = {
    "nothing": b"",
    "half a head": b"POST /predict HTTP/1.1\r\nHost: loc",
    "half a body": HEAD + b"Content-Length: 100\r\n\r\n{",
}
SHORT = Limits(connections=60, per_address=40, head_seconds=0.5, body_seconds=0.5, seconds=1, write_seconds=0.5)


@pytest.mark.parametrize("half", HALVES)
def test_whoever_does_not_send_a_whole_request_makes_room_and_is_ended(classifier, half):
    with Live(classifier, SHORT) as running, ExitStack() as stack:
        for _ in range(3 * SHORT.connections):
            line = stack.enter_context(closing(running.connect()))
            line.sendall(HALVES[half])
        assert send(running, rows({})).status_code == 200
        assert running.count("closed made room") >= 2 * SHORT.connections
        answer = line.recv(100)  # the last one: ended by its deadline
        assert answer == b"" if half != "half a body" else b" 408 " in answer


def test_an_idle_connection_after_an_answer_is_ended(classifier):
    with Live(classifier, SHORT) as running, closing(running.connect()) as line:
        line.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        told = b"".join(iter(lambda: line.recv(1000), b""))  # until the other end closes
        assert told.endswith(b'{"status":"ok"}')
        assert running.count("open") == 0


def test_a_client_that_never_reads_is_ended(classifier):
    with Live(classifier, SHORT) as running, closing(running.connect()) as line:
        while True:  # many answers, none taken: the server stops reading, then ends the connection
            try:
                line.sendall(100 * b"GET /docs HTTP/1.1\r\nHost: localhost\r\n\r\n")
            except OSError:
                break
        assert send(running, rows({})).status_code == 200


def test_requests_that_are_answered_do_not_make_room(classifier):
    one = Limits(connections=1, per_address=1, seconds=5)

    class Patient:
        record_, feature_names_in_ = classifier.record_, classifier.feature_names_in_

        def predict_full(self, table):
            time.sleep(0.5)
            return classifier.predict_full(table)

    with Live(Patient(), one) as running, closing(running.connect()) as line:
        body = b'{"rows": [{"age": 1, "town": "Riga", "member": true, "since": "2024-05-01"}]}'
        line.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        time.sleep(0.2)
        with closing(running.connect()) as other:
            assert b"503 Service Unavailable" in other.recv(1000)
        assert b" 200 " in line.recv(1000)
        assert running.count("closed refused") == 1


def test_what_is_not_http_is_one_line(live, caplog):
    with caplog.at_level(logging.INFO), closing(live.connect()) as line:
        line.sendall(b"\x16\x03\x01 hello\r\n\r\n")
        assert b" 400 " in line.recv(100)
    assert lines(caplog, 1) == ["127.0.0.1 closed: not HTTP"]
