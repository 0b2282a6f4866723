"""The studio in a real browser, by keyboard alone: from a file to predictions, killed and gone on with in between."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytest.importorskip("fastapi", reason="the studio needs FastAPI")
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = [
    pytest.mark.skipif(BROWSER is None, reason="no chromium here: apt-get install chromium"),
    pytest.mark.slow,
]
SHOTS = os.environ.get("SOFTLEARNING_SHOTS")  # folder for pictures of the steps


@pytest.fixture
def page():
    with sync_api.sync_playwright() as play:
        opened = play.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        page = opened.new_page(viewport={"width": 1100, "height": 900})
        page.set_default_timeout(240_000)
        yield page
        opened.close()


@pytest.fixture
def studio(tmp_path):
    """Starts the command in one folder; called again, it starts another studio there."""
    running = []

    def start():
        with socket.socket() as line:
            line.bind(("127.0.0.1", 0))
            port = line.getsockname()[1]
        words = ["-m", "softlearning", "studio", "--folder", str(tmp_path / "studio"), "--port", str(port)]
        process = subprocess.Popen([sys.executable, "-u", *words, "--no-browser"], stdout=subprocess.PIPE, text=True)
        running.append(process)
        return process, re.search(r"http://127\.0\.0\.1:\d+/#\S+", process.stdout.readline())[0]

    yield start
    for process in running:
        process.kill()
        process.communicate()


def shot(page, name):
    if SHOTS:
        page.screenshot(path=f"{SHOTS}/{name}.png")


def press(page, selector):
    """By keyboard: reach it with Tab alone, then press Enter."""
    page.evaluate("document.activeElement.blur()")
    for _ in range(120):
        page.keyboard.press("Tab")
        if page.evaluate("s => document.activeElement === document.querySelector(s)", selector):
            return page.keyboard.press("Enter")
    raise AssertionError(f"{selector} cannot be reached with Tab")


def choose(page, selector, text):
    """By keyboard: type the beginning of the choice."""
    page.locator(selector).focus()
    page.keyboard.type(text)


def test_from_a_file_to_predictions_by_keyboard_killed_in_between(studio, page, tmp_path, rng):
    n = 1200
    frame = pd.DataFrame(
        {"size": rng.normal(size=n), "town": rng.choice(["Riga", "Bonn"], n), "zip": rng.integers(5, size=n)}
    )
    frame["price"] = np.sin(3 * frame["size"]) + (frame["town"] == "Riga") + 0.2 * rng.normal(size=n)
    frame[:1000].to_csv(tmp_path / "houses.csv", index=False)
    frame[1000:].to_csv(tmp_path / "new.csv", index=False)
    first, address = studio()
    page.goto(address)
    page.locator("#file").set_input_files(tmp_path / "houses.csv")
    page.locator("#start").wait_for(state="visible")
    shot(page, "studio-table")
    choose(page, 'select[data-column="zip"]', "category")
    choose(page, "#target", "price")
    choose(page, "#library", "fast")
    press(page, "#start")
    page.locator("#grid td.finished").first.wait_for()
    shot(page, "studio-fit")
    first.send_signal(signal.SIGKILL)
    first.wait()
    page.get_by_text("The studio has ended").wait_for()

    _, address = studio()
    page.goto("about:blank")
    page.goto(address)
    page.locator("#go-on").wait_for(state="visible")
    assert page.locator('select[data-column="zip"]').input_value() == "category"  # settings are kept
    press(page, "#go-on")
    page.locator("#result").wait_for(state="visible")
    report = page.frame_locator("#report")
    report.get_by_role("heading", level=1).wait_for()
    assert "price" in report.locator("h1").inner_text()
    assert report.locator("button.copy").count() > 3  # its script runs, under the studio's policy
    assert '"restored"' in (tmp_path / "studio" / "events.jsonl").read_text()
    shot(page, "studio-report")

    page.locator("#new").set_input_files(tmp_path / "new.csv")
    page.locator("#get-predictions").wait_for(state="visible")
    assert "RMSE" in page.locator("#scores").inner_text()
    page.locator("#scores").scroll_into_view_if_needed()
    shot(page, "studio-scores")
    for button, name in (("#get-predictions", "predictions.csv"), ("#get-model", "model.soft")):
        with page.expect_download() as download:
            press(page, button)
        download.value.save_as(tmp_path / name)
    assert len(pd.read_csv(tmp_path / "predictions.csv")) == 200
    from softlearning import load

    assert load(tmp_path / "model.soft").score(frame[1000:].drop(columns="price"), frame["price"][1000:]) > 0.5


def test_a_wrong_token_and_a_broken_file_are_told(studio, page, tmp_path):
    _, address = studio()
    page.goto(address.split("#")[0] + "#wrong")
    page.get_by_text("send the token").wait_for()
    page.goto("about:blank")
    page.goto(address)
    (tmp_path / "t.parquet").write_bytes(b"nonsense")
    page.locator("#file").set_input_files(tmp_path / "t.parquet")
    page.get_by_text("not a readable parquet file").wait_for()


@pytest.mark.skipif(
    "AXE" not in os.environ, reason="axe-core is not here: npm install axe-core, and set AXE to its file"
)
def test_axe_finds_nothing(studio, tmp_path, page, rng):
    _, address = studio()
    page.goto(address)
    pd.DataFrame({"x": range(30), "y": ["a", "b"] * 15}).to_csv(tmp_path / "t.csv", index=False)
    page.locator("#file").set_input_files(tmp_path / "t.csv")
    page.locator("#start").wait_for(state="visible")
    script = Path(os.environ["AXE"]).read_text(encoding="utf-8")
    found = page.evaluate(script + "; axe.run().then(r => r.violations.map(v => [v.id, v.nodes[0].html]))")
    assert found == []
