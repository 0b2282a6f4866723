"""The demonstration shows what it says, on a library of three where the default would take a minute."""

import inspect

from click.testing import CliRunner

from softlearning.cli import main
from softlearning.demo import run_demo


def test_the_demo_fits_a_real_table_beside_rivals_and_names_the_next_commands(tmp_path, capsys):
    run_demo(tmp_path, jobs=1, library=["ridge", "knn_5", "decision_tree"])
    said = capsys.readouterr().out
    for words in (
        "1192 rows, 5 columns",
        "512 rows kept aside",
        "CatBoost()",
        "RMSE",
        "softlearning evaluate",
        "softlearning fit",
    ):
        assert words in said
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.soft", "report.html", "test.csv"]
    assert "Which columns matter?" in (tmp_path / "report.html").read_text()
    scored = CliRunner().invoke(main, ["evaluate", str(tmp_path / "model.soft"), str(tmp_path / "test.csv")])
    assert "Scored on 512 rows" in scored.output


def test_the_demo_fits_the_default_library():
    assert inspect.signature(run_demo).parameters["library"].default == "default"
