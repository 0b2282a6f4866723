"""The screens of the documentation: demo, command, report in both widths and colours, studio; real runs, real browser.

    python docs/screens.py docs/figures

Needs playwright, Pillow and a chromium; takes some minutes. A second folder gets the reports from top to bottom.
"""

from __future__ import annotations

import html
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright
from plotly.data import tips

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
COMMAND = [sys.executable, "-u", "-m", "softlearning"]
COLOURS = 48  # of a picture: a quarter of the bytes
WIDTHS = {"": 1200, "-phone": 420}
TERMINAL = """<style>
body {{ margin: 0; background: #14171b }} b {{ color: #3ecf9f; font-weight: 400 }}
pre {{ margin: 0; padding: 22px 26px; color: #e8eaed; display: inline-block; font: 14px/1.45 monospace }}
</style><pre>{}</pre>"""
FIT = ["fit", "tips.csv", "--target", "tip", "--out", "tips.soft", "--library", "fast", "--test", "new.csv",
       "--report", "tips.html", "--learning-curve"]  # fmt: skip


def main(out: str, whole: str | None = None) -> None:
    folder = Path(tempfile.mkdtemp())
    table = tips()
    table[:200].to_csv(folder / "tips.csv", index=False)
    table[200:].to_csv(folder / "new.csv", index=False)
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"])
        terminal(browser, folder, Path(out) / "demo.png", ["demo"], last=25)
        terminal(browser, folder, Path(out) / "command.png", FIT)
        reports(browser, folder / "demo" / "report.html", Path(out), None if whole is None else Path(whole))
        studio(browser, folder, Path(out))
        browser.close()
    shutil.rmtree(folder)


def terminal(browser: Browser, folder: Path, path: Path, words: list[str], last: int = 60) -> None:
    """What a command prints, as a terminal shows it; its last lines."""
    run = subprocess.run([*COMMAND, *words], cwd=folder, capture_output=True, text=True, check=True)
    shown = "\n".join(run.stdout.rstrip().splitlines()[-last:])
    page = browser.new_page(viewport={"width": 900, "height": 300}, device_scale_factor=1.5)
    page.set_content(TERMINAL.format(f"<b>$ softlearning {html.escape(' '.join(words))}</b>\n{html.escape(shown)}"))
    keep(page, path, part="pre")


def reports(browser: Browser, report: Path, out: Path, whole: Path | None) -> None:
    """The page of a model in both widths and both colour schemes."""
    for scheme in ("light", "dark"):
        for kind, width in WIDTHS.items():
            page = browser.new_page(viewport={"width": width, "height": 1000}, color_scheme=scheme)  # type: ignore[arg-type]
            page.goto(report.as_uri())
            name = f"report{kind}{'-dark' if scheme == 'dark' else ''}.png"
            if whole is not None:
                page.screenshot(path=whole / name, full_page=True)
            keep(page, out / name)


def studio(browser: Browser, folder: Path, out: Path) -> None:
    """The studio with a table, at work, and with the report and predictions."""
    words = ["studio", "--folder", "studio", "--port", "8813", "--no-browser"]
    process = subprocess.Popen([*COMMAND, *words], cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:\d+/#\S+", process.stdout.readline())
        assert found is not None
        page = browser.new_page(viewport={"width": 1100, "height": 1000})
        page.set_default_timeout(300_000)
        page.goto(found[0])
        page.locator("#file").set_input_files(folder / "tips.csv")
        page.locator("#start").wait_for(state="visible")
        page.locator("#target").select_option("tip")
        page.locator("#library").select_option("fast")
        keep(page, out / "studio-table.png", close=False)
        page.locator("#start").click()
        page.locator("#grid td.finished").first.wait_for()
        keep(page, out / "studio-fit.png", close=False)
        page.locator("#result").wait_for(state="visible")
        page.frame_locator("#report").get_by_role("heading", level=1).wait_for()
        page.locator("#result").scroll_into_view_if_needed()
        keep(page, out / "studio-report.png")
    finally:
        process.kill()
        process.wait()


def keep(page: Page, path: Path, *, part: str | None = None, close: bool = True) -> None:
    """A picture of the page, or of a part, with few colours."""
    (page if part is None else page.locator(part)).screenshot(path=path)
    Image.open(path).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    if close:
        page.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
