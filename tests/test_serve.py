"""The server is sent what no client should send, and answers with a status that says so."""

import json
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress

import numpy as np
import pandas as pd
import psutil
import pytest

httpx = pytest.importorskip("httpx")
uvicorn = pytest.importorskip("uvicorn")
pytest.importorskip("fastapi")

from hypothesis import HealthCheck, given, seed, settings  # noqa: E402

from softlearning import SoftClassifier, SoftRegressor  # noqa: E402
from softlearning.serve import Limits, make_app  # noqa: E402

LIMITS = Limits(bytes=200_000, rows=50, text=1_000, seconds=5.0)
GOOD = {"age": 41.5, "town": "Riga", "member": True, "since": "2024-05-01", "id": 7}


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


@pytest.fixture(scope="module")
def classifier():
    X, y = people()
    return SoftClassifier(["logistic", "naive_bayes", "decision_tree"], column_types={}).fit(X, y)


class Live:
    """An application on a free port of the loopback, for the length of a with block."""

    def __init__(self, app, limits=LIMITS):
        config = uvicorn.Config(
            app, port=0, log_level="error", limit_concurrency=limits.connections, server_header=False
        )
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, daemon=True)

    def __enter__(self):
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        self.port = self.server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        return self

    def __exit__(self, *_):
        self.server.should_exit = True
        self.thread.join(10)


@pytest.fixture(scope="module")
def live(classifier):
    with Live(make_app(classifier, LIMITS)) as running:
        yield running


def send(live, body, **headers):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return httpx.post(f"{live.url}/predict", content=content, headers={"Content-Type": "application/json", **headers})


def rows(*changes):
    """A request with one good row for each change; None takes a key away."""
    return {"rows": [{k: v for k, v in {**GOOD, **c}.items() if v != "away"} for c in changes]}


def raw(text):
    """A good request with one cell replaced by text as it stands."""
    return json.dumps(rows({"age": 0})).replace('"age": 0', f'"age": {text}').encode()


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
    for path in ("/", "/docs", "/redoc", "/model", "/predict/..", "/..%2f..%2fetc/passwd"):
        assert httpx.get(live.url + path).status_code in (404, 405)
    assert httpx.get(f"{live.url}/predict").status_code == 405
    assert httpx.get(f"{live.url}/health").json() == {"status": "ok"}
    assert "server" not in httpx.get(f"{live.url}/health").headers


def test_a_large_body_is_refused_before_it_is_read(live):
    assert send(live, b" " * (LIMITS.bytes + 1)).status_code == 413
    with closing(socket.create_connection(("127.0.0.1", live.port), timeout=10)) as line:
        head = (
            "POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        line.sendall(head.encode())
        sent = 0
        while sent < 20 * LIMITS.bytes:
            try:
                line.sendall(b"4000\r\n" + b" " * 0x4000 + b"\r\n")
            except OSError:
                break
            sent += 0x4000
        line.settimeout(10)
        assert b" 413 " in line.recv(100)


def test_a_slow_client_is_sent_away_and_blocks_nobody(live):
    head = b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    lines = [socket.create_connection(("127.0.0.1", live.port), timeout=30) for _ in range(100)]
    try:
        for line in lines:
            line.sendall(head)
        assert send(live, rows({})).status_code == 200
        assert b" 408 " in lines[0].recv(100)
    finally:
        for line in lines:
            line.close()


def test_numbers_come_with_an_interval(rng):
    X = rng.normal(size=(60, 2))
    model = SoftRegressor(["ridge", "knn_5"]).fit(X, X[:, 0] + rng.normal(size=60))
    with Live(make_app(model, LIMITS)) as running:
        line = send(running, {"rows": [{"x0": 0.5, "x1": None}]}).json()["predictions"][0]
        assert line["low"] < line["prediction"] < line["high"]
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
    seen = fuzz(live.url, mode, 25)
    assert (200 in seen) == (mode == "positive")


@pytest.fixture
def command(classifier, tmp_path):
    """The command, serving in a process of its own."""
    classifier.save(tmp_path / "model")
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "softlearning", "serve", str(tmp_path / "model"), "--port", str(port)]
    with subprocess.Popen(words) as process:
        url = f"http://127.0.0.1:{port}"
        while process.poll() is None:
            with suppress(httpx.TransportError):
                httpx.get(f"{url}/health")
                break
            time.sleep(0.1)
        yield url, psutil.Process(process.pid)
        process.terminate()


def test_the_command_serves_a_saved_model(command):
    url, _ = command
    answer = httpx.post(f"{url}/predict", json=rows({}))
    assert answer.status_code == 200
    assert answer.json()["predictions"][0]["prediction"] in ("yes", "no")


@pytest.mark.slow
def test_ten_thousand_requests_never_break_the_server_nor_fill_its_memory(command):
    url, process = command
    fuzz(url, "positive", 200)
    before, sent = process.memory_info().rss, 0
    for number in range(20):  # in parts, because the generator remembers all it drew
        sent += sum(len(fuzz(url, mode, 250, number)) for mode in ("positive", "negative"))
    assert sent >= 10_000
    assert httpx.get(f"{url}/health").status_code == 200
    assert process.memory_info().rss - before < 50e6
