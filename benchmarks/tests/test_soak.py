"""The soak counts what its clients were answered, and says how memory went."""

import collections

import pytest

from softlearning_bench.soak import Traffic, draw, main, summary


def test_growth_is_between_the_ends_after_the_warm_up(tmp_path):
    traffic = Traffic(1, [])
    traffic.seconds, traffic.statuses = [0.1] * 99 + [9.0], collections.Counter({"good 200": 100})
    lines = [(float(s), 500.0 if s < 60 else 100.0 + s / 100, s) for s in range(0, 600, 5)]
    told = summary(lines, traffic, "a 200 500 ms\nb 500 1 ms\n")
    assert told["memory_end_mb"] - told["memory_start_mb"] == pytest.approx(4.3, abs=0.2)
    assert (told["good_p50_s"], told["status_500"], told["tracebacks"]) == (0.1, 1, 0)
    draw(lines, tmp_path / "soak.svg")
    assert "minutes" in (tmp_path / "soak.svg").read_text()


@pytest.mark.slow
def test_a_short_soak_ends_with_a_sound_server(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["soak", "--minutes", "0.3", "--out", str(tmp_path / "soak.csv")])
    main()
    said = capsys.readouterr().out
    assert '"exit_code": 0' in said
    assert '"status_500": 0' in said
    assert '"good 200"' in said
