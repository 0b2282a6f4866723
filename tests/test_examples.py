"""Examples and snippets run as they are printed; the default library is replaced by one of two specialists."""

import re
import runpy
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.neighbors import KNeighborsRegressor

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))
PAGES = ["index.rst", "quickstart.rst", "guide/specialists.rst"]


def test_the_examples_are_numbered():
    assert [path.name.split("_")[1] for path in EXAMPLES] == list("123456789")


DEFAULT = "plot_1_first_blend"  # fits the whole default library, as the README's example does below


@pytest.mark.parametrize(
    "path", [pytest.param(p, id=p.stem, marks=[pytest.mark.slow] * (p.stem == DEFAULT)) for p in EXAMPLES]
)
def test_an_example_runs(path, capsys, tmp_path, monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot", reason="the examples draw")
    plt.switch_backend("agg")
    monkeypatch.setattr(plt, "show", lambda: None)
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(path))
    assert capsys.readouterr().out
    assert plt.get_fignums()  # every card of the gallery has a picture
    plt.close("all")


QUICK = {"Classifier": ["logistic", "knn_15"], "Regressor": ["ridge", "knn_5"]}


def quick(code):
    """The same with two specialists wherever no library is named."""
    named = r"Soft(Classifier|Regressor)\((?!library|light|\[)"
    return re.sub(named, lambda found: f"{found[0]}library={QUICK[found[1]]}, ", code)


def run_blocks(blocks, names):
    assert blocks
    for block in blocks:
        exec(compile(quick(block), "snippet", "exec"), names)
    return names


def test_the_readme_runs_and_prints_what_it_shows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    first, *more = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    names = run_blocks([first], {"MyRegressor": KNeighborsRegressor})
    shown = re.search(r"```text\n(.*?)```", text, flags=re.DOTALL)[1].splitlines()
    printed = capsys.readouterr().out.splitlines()
    words = lambda line: re.sub(r"[\d.]+|better than|level with|single specialist, \w+", "", line)
    assert [words(line) for line in printed] == [words(line) for line in shown]
    run_blocks(more, names)
    assert {"model.html", "model.soft"} <= {p.name for p in tmp_path.iterdir()}
    assert set(names["larger"].weights_.index) >= set(names["model"].weights_.index)


@pytest.mark.parametrize("page", PAGES)
def test_the_snippets_of_the_guide_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    blocks = re.findall(r"\.\. code-block:: python\n\n((?:    .*\n|\n)+)", text)
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(150)
    X, y = X[order], y[order]
    run_blocks([dedent(b) for b in blocks], {"X": X[:120], "y": y[:120], "X_new": X[120:], "patient": order[:120] // 3})
