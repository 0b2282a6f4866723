"""`demo`, `serve` and `studio` by the command: what they refuse, and what they hand on."""

import pytest


def test_the_demo_makes_its_folder(run, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr("softlearning.demo.run_demo", lambda folder, jobs: asked.append((folder, jobs)))
    assert run("demo", "--out", tmp_path / "a" / "b", "--jobs", "1").exit_code == 0
    assert asked == [(tmp_path / "a" / "b", 1)]
    assert asked[0][0].is_dir()


def test_a_server_that_others_reach_needs_a_token(run, fitted):
    answer = run("serve", fitted, "--host", "0.0.0.0")
    assert answer.exit_code == 1
    assert "a token is required" in answer.output


def test_the_server_is_handed_the_model_and_what_was_asked(run, fitted, tmp_path, monkeypatch):
    (tmp_path / "token").write_text("0123456789abcdef\n")
    served = {}
    monkeypatch.setattr("softlearning.serve.serve_model", lambda model, **asked: served.update(asked, model=model))
    words = ("--workers", "2", "--allow-host", "here", "--token-file", tmp_path / "token")
    assert run("serve", fitted, *words).exit_code == 0
    assert callable(served.pop("tell"))
    assert served.pop("model").classes_.tolist() == ["a", "b"]
    expected = {"host": "127.0.0.1", "port": 8000, "workers": 2, "token": b"0123456789abcdef", "hosts": ("here",)}
    assert served == expected


@pytest.mark.parametrize("command", ["serve", "studio"])
def test_a_port_that_does_not_exist_is_refused(run, fitted, command):
    assert run(command, *([fitted] if command == "serve" else []), "--port", "70000").exit_code == 2


def test_the_studio_says_where_it_is_and_opens_no_browser_unasked(run, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("click.launch", opened.append)
    monkeypatch.setattr(
        "softlearning.studio.serve_studio", lambda folder, *, port, tell: tell(f"http://here:{port}/#x")
    )
    answer = run("studio", "--folder", tmp_path, "--no-browser", "--port", "9000")
    assert "http://here:9000/#x" in answer.output
    assert not opened
    run("studio", "--folder", tmp_path)
    assert opened == ["http://here:8811/#x"]
