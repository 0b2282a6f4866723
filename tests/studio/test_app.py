"""What the studio's page calls: only with the token, only by our own name, every mistake answered."""

import asyncio

import pandas as pd
import pytest

pytest.importorskip("fastapi", reason="the studio needs FastAPI")
httpx = pytest.importorskip("httpx", reason="httpx is not installed")

from softlearning.studio import Session, make_studio  # noqa: E402
from softlearning.studio.app import page  # noqa: E402

TOKEN = "secret"


class Client:
    """Calls of the application, without a port."""

    def __init__(self, app):
        self.app = app

    def __call__(self, method, path, headers=None, **given):
        async def answer():
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8811") as client:
                token = {"Authorization": f"Bearer {TOKEN}"}
                return await client.request(method, path, headers=token | (headers or {}), **given)

        return asyncio.run(answer())

    def get(self, path, **given):
        return self("GET", path, **given)

    def post(self, path, **given):
        return self("POST", path, **given)


@pytest.fixture
def client(tmp_path):
    return Client(make_studio(Session(tmp_path / "studio"), TOKEN))


@pytest.mark.parametrize(("headers", "status"), [
    ({"Authorization": ""}, 401), ({"Authorization": "Bearer wrong"}, 401), ({"Host": "evil.example"}, 421), ({}, 200),
])  # fmt: skip
def test_only_who_has_the_token_and_means_us_is_answered(client, headers, status):
    assert client.get("/api/state", headers=headers).status_code == status


def test_the_page_is_empty_without_the_token_and_runs_its_own_script_alone(client):
    answer = client.get("/", headers={"Authorization": ""})
    assert answer.status_code == 200
    assert TOKEN not in answer.text
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert policy.count("sha256-") == 2
    assert "http://" not in page()[0]
    assert "https://" not in page()[0]


def test_a_table_is_taken_and_nonsense_is_named(client):
    csv = pd.DataFrame({"x": range(30), "y": ["a", "b"] * 15}).to_csv(index=False)
    state = client.post("/api/table", params={"name": "t.csv"}, content=csv).json()
    assert (state["step"], state["facts"]["rows"]) == ("table", 30)
    refused = client.post("/api/table", params={"name": "t.parquet"}, content=b"nonsense")
    assert refused.status_code == 422
    assert "parquet" in refused.json()["error"]


@pytest.mark.parametrize(
    ("body", "status"), [(b"{", 400), (b"[]", 400), (b'{"types": 3}', 400), (b"{}", 422), (b"", 422)]
)
def test_settings_that_make_no_sense_are_refused(client, body, status):
    assert client.post("/api/fit", content=body).status_code == status


@pytest.mark.parametrize("what", ["report", "model", "predictions", "session.json", "../session.json", "%2e%2e"])
def test_there_are_no_other_results_than_ours(client, what):
    assert client.get(f"/api/results/{what}").status_code == 404
