"""The page in a real browser: nothing overlaps, nothing is cut, nothing is asked of the network."""

import copy
import os
import shutil

import pytest

from softlearning.report import write_comparison, write_page
from tests.report.payloads import PAYLOADS
from tests.report.test_render import PLACES

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no chromium here: apt-get install chromium")
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

AXE = os.environ.get("AXE")
SIZES = [(1280, "light"), (1280, "dark"), (420, "light"), (390, "dark")]

FAULTS = """() => {
  const faults = [], near = 1.5;
  const named = (text) => '"' + text.textContent.trim() + '"';
  if (document.documentElement.scrollWidth > window.innerWidth) faults.push("the page is wider than the window");
  for (const svg of document.querySelectorAll("svg")) {
    const frame = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll("text")].map((t) => [t, t.getBoundingClientRect()]);
    for (const [text, box] of texts) {
      if (box.left < frame.left - near || box.right > frame.right + near || box.top < frame.top - near ||
          box.bottom > frame.bottom + near) faults.push(named(text) + " is cut");
    }
    for (let i = 0; i < texts.length; i++) for (let j = i + 1; j < texts.length; j++) {
      const [a, b] = [texts[i][1], texts[j][1]];
      const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const upright = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (across > near && upright > 0.35 * Math.min(a.height, b.height))
        faults.push(named(texts[i][0]) + " overlaps " + named(texts[j][0]));
    }
  }
  for (const box of document.querySelectorAll("h1, h2, h3, p, figcaption, .tile, dd, pre")) {
    if (box.scrollWidth > box.clientWidth + 1) faults.push(named(box).slice(0, 60) + " runs out of its box");
  }
  return faults;
}"""


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as play:
        opened = play.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield opened
        opened.close()


def look(browser, path, width, scheme):
    """Faults of a page, requests it made besides itself, and scripts or handlers in its tree."""
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    asked, spoken = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: spoken.append(dialog.message))
    page.on("console", lambda message: spoken.append(message.text))
    page.goto(path.as_uri())
    faults = page.evaluate(FAULTS)
    alive = page.evaluate("[...document.querySelectorAll('*')].filter(e => e.localName == 'script' || "
                          "[...e.attributes].some(a => a.name.startsWith('on'))).length")  # fmt: skip
    page.close()
    return faults, [url for url in asked if url != path.as_uri()], spoken, alive


def strained(summary):
    """The same with names as long, as wide and as many as they come, and large numbers."""
    s = copy.deepcopy(summary)
    names = [
        "an_extremely_long_name_of_a_specialist_that_goes_on",
        "W" * 60,
        "日本語の非常に長い名前の専門家",
        "🙂" * 30,
        "i",
    ]
    lines = [{**s["weights"][0], "specialist": f"{names[k % 5]}{k}"} for k in range(24)]
    s["leaderboard"] = [{**s["leaderboard"][0], "specialist": line["specialist"]} for line in lines]
    s["weights"] = lines
    s["diversity"]["names"] = [line["specialist"] for line in lines]
    s["diversity"]["correlation"] = [[(-1.0) ** (i + j) * 0.7 for j in range(24)] for i in range(24)]
    s["importance"]["columns"] = [{"column": n, "mean": 1.5e9 / (k + 1), "error": 1e8} for k, n in enumerate(names)]
    s["times"] = [{"specialist": name, "folds": 1e4, "final": 2.0} for name in names]
    for line in s["along"]:
        line |= {"column": names[1], "of": names[2] if s["classes"] else ""}
        line["parts"] = [{**part, "name": names[k % 5]} for k, part in enumerate(line["parts"])]
    s["provenance"]["command"] = "softlearning fit " + "x" * 400
    if s["classes"]:
        s["confusion"] |= {"classes": names, "counts": [[123_456] * 5] * 5}
        s["classes"] = names
    else:
        s["residuals"] |= {key: [v * 1e9 for v in s["residuals"][key]] for key in ("predicted", "true", "edges")}
    return s


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_no_text_overlaps_or_is_cut_and_nothing_is_fetched(browser, summary, tmp_path, width, scheme):
    path = write_page(summary, tmp_path / "page.html")
    assert look(browser, path, width, scheme) == ([], [], [], 1)  # its own script


@pytest.mark.parametrize("width", [1280, 390])
def test_long_wide_and_many_names_fit_too(browser, summary, tmp_path, width):
    path = write_page(strained(summary), tmp_path / "page.html")
    assert look(browser, path, width, "light")[0] == []


def test_hostile_texts_run_nothing_and_fetch_nothing(browser, class_summary, tmp_path):
    for payload in PAYLOADS[::10]:
        s = copy.deepcopy(class_summary)
        s["failures"] = [{"specialist": "knn", "what": "failed", "why": "why", "seconds": 0.1}]
        for place in PLACES:
            place(s, payload)
        path = write_page(s, tmp_path / "page.html")
        assert look(browser, path, 1280, "light")[1:] == ([], [], 1)


def test_a_page_prints_without_losing_a_figure(browser, class_summary, tmp_path):
    path = write_page(class_summary, tmp_path / "page.html")
    page = browser.new_page(color_scheme="dark")
    page.goto(path.as_uri())
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("[...document.querySelectorAll('figure')].every(f => f.offsetHeight > 50)")
    assert len(page.pdf(format="A4")) > 10_000
    page.close()


def test_a_table_is_copied_as_csv_by_keyboard(browser, class_summary, tmp_path):
    path = write_page(class_summary, tmp_path / "page.html")
    context = browser.new_context()
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(path.as_uri())
    assert page.locator("button.copy").count() == page.locator("table").count() > 3
    page.locator("button.copy").first.press("Enter")
    page.get_by_text("Copied").wait_for()
    first, *rows = page.evaluate("navigator.clipboard.readText()").splitlines()
    assert first == '"against","accuracy","loss","gain","95 % interval","verdict"'
    assert len(rows) == len(class_summary["comparisons"])
    context.close()


@pytest.mark.skipif(AXE is None, reason="axe-core is not here: npm install axe-core, and set AXE to its axe.min.js")
@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_axe_finds_nothing(browser, summary, tmp_path, width, scheme):
    other = copy.deepcopy(summary)
    for path in (write_page(summary, tmp_path / "page.html"),
                 write_comparison([summary, other], ["a", "b"], tmp_path / "two.html")):  # fmt: skip
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True)
        page.goto(path.as_uri())
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        page.add_script_tag(path=AXE)
        found = page.evaluate("axe.run().then(r => r.violations.map(v => [v.id, v.nodes[0].html.slice(0, 200)]))")
        page.close()
        assert found == []


def test_two_models_side_by_side_fit_on_both_widths(browser, summary, tmp_path):
    path = write_comparison([summary, copy.deepcopy(summary)], ["a.soft", "b.soft"], tmp_path / "two.html")
    for width in (1280, 390):
        assert look(browser, path, width, "light") == ([], [], [], 1)


def test_the_eye_of_these_tests_sees_overlaps_cuts_and_requests(browser, tmp_path):
    bad = '<svg viewBox="0 0 99 20" width="99"><text y="12">one</text><text x="5" y="13">two</text>'
    (tmp_path / "bad.html").write_text(f'<body onload="1">{bad}<text x="90" y="12">long</text></svg><img src="x.png">')
    faults, asked, _, alive = look(browser, tmp_path / "bad.html", 390, "light")
    assert any("overlaps" in fault for fault in faults)
    assert any("cut" in fault for fault in faults)
    assert len(asked) == 1
    assert alive == 1
