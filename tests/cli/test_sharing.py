"""`card` and `export` by the command: what they write, and what they say where they cannot."""

import importlib.util

import pytest


def test_a_card_is_printed_or_written(run, fitted, tmp_path):
    printed = run("card", fitted)
    written = run("card", fitted, "--out", "card.md")
    assert "# A model of `Species`" in printed.output
    assert written.output.strip() == "Card: card.md"
    assert (tmp_path / "card.md").read_text(encoding="utf-8").strip() == printed.output.strip()


@pytest.mark.parametrize("command", ["card", "export"])
def test_a_model_that_is_not_there_is_named(run, command):
    answer = run(command, "nowhere.soft", *(("--onnx", "m.onnx") if command == "export" else ()))
    assert answer.exit_code == 2
    assert "nowhere.soft" in answer.output


@pytest.mark.skipif(importlib.util.find_spec("skl2onnx") is not None, reason="the extra [onnx] is here")
def test_an_export_without_its_extra_says_what_to_install(run, fitted, tmp_path):
    answer = run("export", fitted, "--onnx", "m.onnx")
    assert answer.exit_code == 1
    assert "softlearning[onnx]" in answer.output
    assert not (tmp_path / "m.onnx").exists()
