"""The command as a whole: instant help, all commands, those of other packages."""

import subprocess
import sys

import click
import pytest

from softlearning.cli import main, plain_errors


def test_help_needs_neither_numpy_nor_scikit_learn():
    heavy = "print({'numpy', 'pandas', 'sklearn', 'scipy', 'jinja2'} & set(sys.modules))"
    code = f"import sys; from softlearning.cli import main\ntry: main(['--help'])\nexcept SystemExit: {heavy}"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "fit" in said
    assert said.strip().endswith("set()")


def test_the_package_can_be_run_as_the_command():
    said = subprocess.run([sys.executable, "-m", "softlearning", "--version"], capture_output=True, text=True).stdout
    assert said.startswith("softlearning, version")


@pytest.mark.parametrize("command", ["fit", "evaluate", "compare", "predict", "report", "demo", "bench", "serve"])
def test_every_command_explains_itself(run, command):
    answer = run(command, "--help")
    assert answer.exit_code == 0
    assert "Usage" in answer.output


def test_no_line_of_the_list_of_commands_is_cut(run):
    said = run("--help", terminal_width=80).output.split("Commands:")[1]
    assert "studio" in said
    assert "..." not in said


def test_a_reader_that_has_enough_is_no_error():
    def have_enough(*_):
        raise BrokenPipeError

    context = click.Context(main, obj={"traceback": False})
    with pytest.raises(BrokenPipeError), plain_errors(context):  # which click answers without a word
        have_enough()


def test_the_library_by_itself_has_help_and_names_the_package_of_other_commands(run, monkeypatch):
    monkeypatch.setattr("softlearning.cli.entry_points", lambda **_: [])
    answer = run("--help")
    assert answer.exit_code == 0, answer.output
    assert "bench" not in answer.output
    assert "softlearning-bench" in run("bench", "report").output
