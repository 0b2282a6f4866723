"""The page: whole, self-contained, readable without script, and deaf to what the data says."""

import base64
import copy
import hashlib
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from softlearning import SoftClassifier
from softlearning.report import report_model, to_html, write_page
from softlearning.report.draw import draw_figures
from softlearning.report.render import compared
from softlearning.report.svg import clean
from tests.report.payloads import PAYLOADS

VOID = {"meta"}
QUICK = PAYLOADS[::13]


class Outline(HTMLParser):
    """Tags with the names of their attributes, the text between them, and whether all tags are closed."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text, self.open, self.values = [], [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, tuple(sorted(name for name, _ in attrs))))
        self.values += [value for _, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, tuple(sorted(name for name, _ in attrs))))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def test_a_page_has_everything_and_every_figure_a_sentence(summary):
    outline = Outline(to_html(summary))
    tags = [tag for tag, _ in outline.tags]
    assert not outline.open
    assert tags.count("figure") == tags.count("figcaption") == tags.count("svg") == len(draw_figures(summary))
    assert tags.count("svg") > 10
    assert tags.count("desc") == tags.count("svg")
    said = " ".join(outline.text)
    for words in ("The answer", "Who carries the blend", "How sure", "What failed", "softlearning fit people.csv"):
        assert words in said


def test_a_page_needs_nothing_from_outside_and_runs_its_own_script_alone(summary):
    page = to_html(summary)
    tags = [tag for tag, _ in Outline(page).tags]
    script = page[page.index("<script>") + len("<script>") : page.index("</script>")]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'\"" in page
    assert tags.count("script") == 1
    assert not set(tags) & {"link", "img", "iframe", "object", "embed", "base", "form", "a"}
    assert "default-src 'none'; style-src 'unsafe-inline'; img-src data:" in page
    assert "http://" not in page
    assert "https://" not in page
    assert "url(" not in page
    assert "@import" not in page


def test_light_dark_and_paper_have_their_colours(summary):
    page = to_html(summary)
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page


def in_column(s, text):
    s["table"]["details"][0]["name"] = text
    s["importance"]["columns"][0]["column"] = text


def in_category(s, text):
    next(c for c in s["table"]["details"] if c["examples"])["examples"][0] = text


def in_class(s, text):
    s["classes"][1] = text
    s["confusion"]["classes"][1] = text


def in_specialist(s, text):
    old = s["weights"][0]["specialist"]
    for line in (*s["weights"], *s["leaderboard"]):
        line["specialist"] = text if line["specialist"] == old else line["specialist"]
    s["diversity"]["names"][0] = text
    s["comparisons"]["oracle"]["rival"] = text


def in_failure(s, text):
    s["failures"][0]["why"] = s["failures"][0]["specialist"] = text


def in_command(s, text):
    s["provenance"]["command"] = text


def in_setting(s, text):
    s["provenance"]["settings"]["library"] = s["target"] = text


def in_reason(s, text):
    s["table"]["details"][0]["reason"] = s["leaderboard"][0]["reason"] = text


PLACES = (in_column, in_category, in_class, in_specialist, in_failure, in_command, in_setting, in_reason)


def attacked(summary, place, text):
    s = copy.deepcopy(summary)
    s["failures"] = [{"specialist": "knn", "what": "failed", "why": "why", "seconds": 0.1}]
    place(s, text)
    return Outline(to_html(s))


@pytest.mark.parametrize("place", PLACES)
def test_no_text_from_the_data_changes_the_structure_of_the_page(class_summary, place):
    harmless = attacked(class_summary, place, "harmless")
    for payload in QUICK:
        outline = attacked(class_summary, place, payload)
        assert outline.tags == harmless.tags
        assert clean(payload, 500) in "".join(outline.text)


@pytest.mark.slow
@pytest.mark.parametrize("payload", PAYLOADS)
def test_none_of_1200_attacks_changes_the_structure_of_the_page(class_summary, payload):
    for place in PLACES:
        assert attacked(class_summary, place, payload).tags == attacked(class_summary, place, "harmless").tags


def test_a_model_learnt_from_hostile_names_has_a_harmless_page(tmp_path, rng):
    n = 80
    X = pd.DataFrame({PAYLOADS[0]: rng.normal(size=n), PAYLOADS[10]: rng.choice([PAYLOADS[20], PAYLOADS[30]], n)})
    y = np.where(X.iloc[:, 0] > 0, PAYLOADS[40], PAYLOADS[50])
    model = SoftClassifier(["logistic", "naive_bayes"]).fit(X, y)
    page = report_model(model, tmp_path / "page.html", X=X[:70], y=y[:70], command=PAYLOADS[60]).read_text()
    outline = Outline(page)
    assert not {tag for tag, _ in outline.tags} & {"img", "iframe", "object", "a"}
    assert [tag for tag, _ in outline.tags].count("script") == 1
    assert not [name for _, names in outline.tags for name in names if name.startswith("on")]
    assert PAYLOADS[20] in "".join(outline.text)


def test_a_page_is_never_left_half_written(tmp_path, summary):
    (tmp_path / "page.html").write_text("old")
    del summary["answer"]
    with pytest.raises(Exception, match="answer"):
        write_page(summary, tmp_path / "page.html")
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]
    assert (tmp_path / "page.html").read_text() == "old"


def test_a_blend_of_one_says_that_there_is_no_disagreement(summary):
    summary["uncertainty"] = None
    assert "no disagreement to read" in "".join(Outline(to_html(summary)).text)


def test_the_title_names_target_and_table_and_the_metric_that_was_asked_for_comes_first(summary):
    summary["name"] = "people.csv"
    assert "<title>outcome in people.csv: " in to_html(summary)
    summary["answer"]["metric"] = {"name": "balanced accuracy", "value": 0.5, "low": 0.4, "high": 0.6}
    page = to_html(summary)
    assert "<title>outcome in people.csv: balanced accuracy 0.5</title>" in page
    assert "<h1>The metric that was asked for, balanced accuracy, is 0.5" in page


def test_two_models_side_by_side_show_weights_and_settings_that_differ(summary):
    other = copy.deepcopy(summary)
    other["provenance"]["settings"]["rule"] = "uniform"
    other["weights"] = [{"specialist": "stranger", "weight": 1.0, "low": None, "high": None}]
    outline = Outline(compared([summary, other], ["a.soft", PAYLOADS[0]]))
    said = "".join(outline.text)
    assert "stranger" in said
    assert "Where their settings differ" in said
    assert clean(PAYLOADS[0], 60) in said


def test_models_of_different_tasks_are_not_set_side_by_side(class_summary, number_summary):
    with pytest.raises(ValueError, match="classification, the other a regression"):
        compared([class_summary, number_summary], ["a", "b"])


def test_no_line_ends_between_a_number_and_its_percent_sign(class_summary):
    page = to_html(class_summary)
    assert "95\u00a0% interval" in page
    assert not re.search(r"<h1>[^<]*\d %", page)
