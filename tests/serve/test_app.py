"""The application is sent what no client should send, and answers with a status that says so."""

import gc
import json
import logging
import os
import re
import threading
import time
import tracemalloc
from contextlib import closing

import httpx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings

from softlearning import SoftRegressor
from softlearning.serve import Limits
from tests.serve.live import GOOD, HEAD, LIMITS, Live, lines, people, raw, rows, send

ANSWERED = {
    "one good row": rows({}),
    "two rows": rows({}, {"age": 20}),
    "most rows allowed": rows(*[{}] * LIMITS.rows),
    "a missing value": rows({"age": None}),
    "all values missing": rows(dict.fromkeys(GOOD)),
    "an unseen category": rows({"town": "Atlantis"}),
    "a category in another script": rows({"town": "リガ"}),
    "a number where a category is": rows({"town": 3}),
    "a flag as a number": rows({"member": 1}),
    "a column that was dropped is left away": rows({"id": "away"}),
    "anything in a column that was dropped": rows({"id": [{"x": [1]}]}),
    "a very large number": rows({"age": 1e200}),
    "a tiny number": rows({"age": 5e-324}),
    "a negative zero": raw("-0.0"),
    "an integer": raw("42"),
    "markup in a category": rows({"town": "<script>alert(1)</script>"}),
    "a null character in a category": rows({"town": "a\x00b"}),
    "a pair of surrogates": rows({"town": "🙂"}),
    "an empty category": rows({"town": ""}),
    "a date far away": rows({"since": "1900-01-01"}),
}
REFUSED = {
    "nothing": (b"", 400),
    "blanks": (b"   ", 400),
    "not JSON": (b"hello", 400),
    "half of JSON": (b'{"rows": [', 400),
    "two documents": (b"{}{}", 400),
    "a comment": (b"{} // x", 400),
    "NaN": (raw("NaN"), 400),
    "Infinity": (raw("Infinity"), 400),
    "minus infinity": (raw("-Infinity"), 400),
    "an overflow": (raw("1e999"), 400),
    "5000 digits": (raw("9" * 5000), 400),
    "400 digits": (raw("9" * 400), 422),
    "1e300": (raw("1e300"), 422),
    "a repeated key": (b'{"rows": [], "rows": []}', 400),
    "a repeated column": (raw('1, "age": 2'), 400),
    "deep nesting": (b"[" * 100_000, 400),
    "deep objects": (b'{"a":' * 30_000, 400),
    "bad UTF-8": (b'{"rows": ["\xff\xfe"]}', 400),
    "UTF-16": ('{"rows": []}'.encode("utf-16"), 400),
    "half a pair": (json.dumps(rows({"town": "X"})).replace('"X"', '"\\ud800"').encode(), 400),
    "half a pair in a key": (b'{"rows": [{"\\ud800": 1}]}', 400),
    "a list": ([], 422),
    "a number": (3, 422),
    "null": (None, 422),
    "an empty object": ({}, 422),
    "another key": ({"rows": [GOOD], "path": "/etc/passwd"}, 422),
    "rows as an object": ({"rows": {}}, 422),
    "rows as text": ({"rows": "x"}, 422),
    "no rows": ({"rows": []}, 422),
    "too many rows": (rows(*[{}] * (LIMITS.rows + 1)), 422),
    "a row as a list": ({"rows": [[1, 2]]}, 422),
    "a row as null": ({"rows": [None]}, 422),
    "an empty row": ({"rows": [{}]}, 422),
    "a column missing": (rows({"age": "away"}), 422),
    "a column unknown": (rows({"secret": 1}), 422),
    "thousands of columns": ({"rows": [{f"c{k}": 1 for k in range(5_000)}]}, 422),
    "text for a number": (rows({"age": "old"}), 422),
    "a flag for a number": (rows({"age": True}), 422),
    "a list for a number": (rows({"age": [1]}), 422),
    "an object for a category": (rows({"town": {"$ne": 1}}), 422),
    "text for a flag": (rows({"member": "maybe"}), 422),
    "two for a flag": (rows({"member": 2}), 422),
    "no date": (rows({"since": "tomorrow"}), 422),
    "an impossible date": (rows({"since": "2024-13-45"}), 422),
    "a number for a date": (rows({"since": 20240101}), 422),
    "a text too long": (rows({"town": "x" * 2_000}), 422),
}


@pytest.mark.parametrize("name", ANSWERED)
def test_what_fits_is_answered(live, name):
    answer = send(live, ANSWERED[name])
    assert answer.status_code == 200, answer.text
    for line in answer.json()["predictions"]:
        assert set(line) == {"prediction", "disagreement", "probabilities", "set"}
        assert sum(line["probabilities"].values()) == pytest.approx(1)
        assert line["prediction"] in line["set"]


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused_without_repeating_it(live, name):
    body, status = REFUSED[name]
    answer = send(live, body)
    assert answer.status_code == status, answer.text
    assert set(answer.json()) == {"error"}
    assert len(answer.text) < 200
    for secret in ("old", "tomorrow", "secret", "passwd", "Traceback", "/home", "site-packages"):
        assert secret not in answer.text


def test_at_least_sixty_requests_are_written_by_hand():
    assert len(ANSWERED) + len(REFUSED) >= 60


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "multipart/form-data; boundary=x"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content-Type": "application/octet-stream"}, 415),
        ({"Content-Encoding": "gzip"}, 415),
        ({"Content-Type": "application/json; charset=utf-8"}, 200),
    ],
)
def test_only_plain_json_is_read(live, headers, status):
    assert send(live, rows({}), **headers).status_code == status


def test_other_ways_in_do_not_exist(live):
    for path in ("/", "/redoc", "/model", "/predict/..", "/..%2f..%2fetc/passwd"):
        assert httpx.get(live.url + path).status_code in (404, 405)
    assert httpx.get(f"{live.url}/predict").status_code == 405
    assert httpx.get(f"{live.url}/health").json() == {"status": "ok"}
    assert "server" not in httpx.get(f"{live.url}/health").headers


def test_a_large_body_is_refused_before_it_is_read(live):
    assert send(live, b" " * (LIMITS.bytes + 1)).status_code == 413
    with closing(live.connect()) as line:
        line.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        sent = 0
        while sent < 20 * LIMITS.bytes:
            try:
                line.sendall(b"4000\r\n" + b" " * 0x4000 + b"\r\n")
            except OSError:
                break
            sent += 0x4000
        line.settimeout(10)
        assert b" 413 " in line.recv(100)


def test_numbers_come_with_an_interval(rng):
    X = rng.normal(size=(60, 2))
    model = SoftRegressor(["ridge", "knn_5"]).fit(X, X[:, 0] + rng.normal(size=60))
    with Live(model) as running:
        line = send(running, {"rows": [{"x0": 0.5, "x1": None}]}).json()["predictions"][0]
        assert line["low"] < line["prediction"] < line["high"]
        spread = model.predict([[0.5, np.nan]], return_std=True)[1]
        assert line["disagreement"] == pytest.approx(spread[0])
        again = send(running, {"rows": [{"x0": 1e299, "x1": -1e299}]})
        assert again.status_code in (200, 422)


def test_the_answer_is_that_of_the_model(live, classifier):
    X, _ = people()
    table = json.loads(X[:20].to_json(orient="records"))
    lines = send(live, {"rows": table}).json()["predictions"]
    assert [line["prediction"] for line in lines] == classifier.predict(X[:20]).tolist()
    np.testing.assert_allclose([line["disagreement"] for line in lines], classifier.disagreement(X[:20]))


def fuzz(url, mode, count, number=0):
    """Requests made from the server's own description, right or wrong on purpose; `number` draws others."""
    schemathesis = pytest.importorskip("schemathesis")
    operation = schemathesis.openapi.from_url(f"{url}/openapi.json")["/predict"]["POST"]
    seen = []

    @seed(number)
    @settings(max_examples=count, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(case=operation.as_strategy(generation_mode=schemathesis.GenerationMode(mode)))
    def attack(case):
        answer = case.call(base_url=url)
        assert answer.status_code in (200, 400, 413, 415, 422), answer.content
        seen.append(answer.status_code)

    attack()
    return seen


@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_requests_made_from_the_description_never_break_the_server(live, mode):
    seen = fuzz(live.url, mode, 12)
    assert (200 in seen) == (mode == "positive")


def test_a_refused_body_is_let_go_at_once(classifier):
    """Without waiting for a garbage collection: an error that somebody keeps would keep the body."""
    request = HEAD + b"Connection: close\r\nContent-Length: 3000000\r\n\r\n" + b" " * 3_000_000
    with Live(classifier, Limits()) as live:
        gc.collect()
        gc.disable()
        tracemalloc.start()
        try:
            for _ in range(6):
                with closing(live.connect()) as line:
                    line.sendall(request)
                    assert b" 400 " in line.recv(100)
            held = tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()
            gc.enable()
    assert held < 12e6  # two of the six would be as much


def test_the_probes_and_the_page_answer(live):
    assert httpx.get(f"{live.url}/ready").json() == {"status": "ready"}
    page = httpx.get(f"{live.url}/docs")
    assert page.status_code == 200
    assert "default-src 'none'" in page.headers["content-security-policy"]


def test_no_other_site_may_read_the_answers(live):
    answer = httpx.options(
        f"{live.url}/predict", headers={"Origin": "http://evil", "Access-Control-Request-Method": "POST"}
    )
    assert answer.status_code == 405
    answer = send(live, rows({}), Origin="http://evil")
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    ("host", "status"), [("localhost", 200), ("127.0.0.1:80", 200), ("evil.example", 421), ("", 421)]
)
def test_a_page_that_was_made_to_resolve_to_us_is_refused(live, host, status):
    assert send(live, rows({}), Host=host).status_code == status
    assert httpx.get(f"{live.url}/health", headers={"Host": host}).status_code == 200


def test_with_a_token_only_the_probes_are_open(classifier):
    with Live(classifier, token=b"correct horse battery") as running:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "correct horse battery"}):
            answer = send(running, rows({}), **headers)
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        for path in ("/docs", "/openapi.json", "/metrics"):
            assert httpx.get(running.url + path).status_code == 401
        for path in ("/health", "/ready"):
            assert httpx.get(running.url + path).status_code == 200
        assert send(running, rows({}), Authorization="Bearer correct horse battery").status_code == 200


LINE = re.compile(r"127\.0\.0\.1 (GET|POST|-) (/[a-z.]+|-) \d{3} \d+ ms")


def test_every_request_is_one_line_without_anything_that_was_sent(live, caplog):
    with caplog.at_level(logging.INFO, "softlearning.serve"):
        send(live, rows({"town": "SECRET"}))
        send(live, rows({"age": "SECRET"}))
        httpx.get(f"{live.url}/SECRET?SECRET=1")
        httpx.request("SECRET", live.url)
        found = lines(caplog, 4)
    assert len(found) == 4
    assert all(LINE.fullmatch(line) for line in found)


class Broken:
    """A model that fails where no model should."""

    def __init__(self, model):
        self.record_, self.feature_names_in_ = model.record_, model.feature_names_in_

    def predict_full(self, table):
        raise RuntimeError(f"SECRET {table}")


def test_a_failure_is_a_500_whose_place_is_in_the_log_and_whose_values_are_not(classifier, caplog):
    with Live(Broken(classifier)) as running, caplog.at_level(logging.INFO):
        answer = send(running, rows({}))
        assert (answer.status_code, answer.json()) == (500, {"error": "the server failed; its log says where"})
        [line] = lines(caplog, 1)
    assert re.search(r"POST /predict 500 \d+ ms RuntimeError in test_app.py:\d+$", line)


def test_who_leaves_is_one_line_and_no_error(live, caplog):
    with caplog.at_level(logging.INFO):
        for _ in range(20):
            with closing(live.connect()) as line:
                line.sendall(HEAD + b"Content-Length: 100\r\n\r\n{")
        send(live, rows({}))
        found = lines(caplog, 21)
    assert len(found) == 21
    assert len([line for line in found if " 499 " in line]) == 20


def test_bodies_that_are_held_at_once_are_limited(classifier):
    small = Limits(bytes=100_000, buffered=300_000, per_address=50, body_seconds=20)
    part = HEAD + b"Content-Length: 100000\r\n\r\n" + b" " * 90_000
    with Live(classifier, small) as running:
        lines = [running.connect() for _ in range(8)]
        for line in lines:
            line.sendall(part)
        answers = [line.recv(100) for line in lines[-1:]]
        assert b" 503 " in answers[0]
        for line in lines:
            line.close()
        while send(running, rows({})).status_code == 503:  # until the server has noticed that they left
            time.sleep(0.05)
        assert send(running, rows({})).status_code == 200


class Slow(Broken):
    """A model that waits until it is told to go on."""

    go = threading.Event()

    def predict_full(self, table):
        self.go.wait(20)
        raise ValueError


def test_requests_that_wait_are_limited_and_given_up_on(classifier):
    tight = Limits(waiting=0, seconds=0.3)
    with Live(Slow(classifier), tight) as running:
        for _ in range(os.cpu_count() or 1):  # a thread each, and none comes back
            answer = send(running, rows({}))
            assert (answer.status_code, answer.json()["error"][:10]) == (503, "the answer")
        answer = send(running, rows({}))
        assert (answer.status_code, answer.json()["error"]) == (503, "busy: come back")
        assert httpx.get(f"{running.url}/ready").status_code == 503
        assert httpx.get(f"{running.url}/health").status_code == 200
        Slow.go.set()
