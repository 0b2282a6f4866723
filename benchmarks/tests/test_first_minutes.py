"""The first minutes: each step is timed, and nothing of this environment leads the new one astray."""

from softlearning_bench import first_minutes


def test_the_new_environment_does_not_see_the_paths_of_this_one(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    assert "PYTHONPATH" not in first_minutes.alone()
    assert "PATH" in first_minutes.alone()


def test_every_command_of_the_first_minutes_is_one_of_the_library():
    assert {words[0] for words in first_minutes.COMMANDS.values()} == {"--help", "fit", "evaluate", "predict"}
