"""The documentation says what happens: its examples give what they show, and its messages exist."""

import doctest
import re
from pathlib import Path

import pytest

import softlearning

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
pytestmark = pytest.mark.skipif(not DOCS.is_dir(), reason="the documentation is not part of an installed package")
PAGES = [
    page
    for folder in ("guide", "coming_from")
    for page in sorted((DOCS / folder).glob("*.rst"))
    if ">>>" in page.read_text(encoding="utf-8")
    and page.name not in ("tables.rst", "aims.rst")  # which have tests of their own
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_example_gives_what_it_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testfile(str(page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert tried > 3
    assert failed == 0


def test_every_message_of_the_troubleshooting_page_exists():
    text = (DOCS / "guide" / "troubleshooting.rst").read_text(encoding="utf-8")
    messages = re.findall(r"^   \* - ``(.+?)``$", text, flags=re.MULTILINE)
    source = " ".join(path.read_text(encoding="utf-8") for path in Path(softlearning.__file__).parent.rglob("*.py"))
    source = re.sub(r'"\s+f?"', "", source)  # strings that go on in the next line
    assert len(messages) > 10
    for message in messages:
        for part in re.split(r"'[A-Za-z]+'|\.\.|\?", message):
            assert part.strip(" ;:,") in source, message


def test_every_page_is_in_a_table_of_contents():
    for folder in ("guide", "coming_from"):
        listed = (DOCS / folder / "index.rst").read_text(encoding="utf-8")
        for page in (DOCS / folder).glob("*.rst"):
            assert page.stem == "index" or re.search(rf"^   {page.stem}$", listed, flags=re.MULTILINE), page.name


def test_every_picture_is_there_and_small():
    pages = [*DOCS.glob("*.rst"), *(DOCS / "guide").glob("*.rst"), ROOT / "README.md"]
    for page in pages:
        text = page.read_text(encoding="utf-8")
        for found in re.findall(r"\.\. image:: (\S+)|!\[[^\]]*\]\((\S+?)\)", text):
            path = (page.parent / "".join(found)).resolve()
            assert path.is_file(), f"{page.name}: {path.name}"
            assert path.suffix != ".png" or path.stat().st_size < 200_000
