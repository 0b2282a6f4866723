"""The page of what was tried quotes lines that stand in the log, and figures that stand in the results."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "reliability.rst").read_text()
LOG = (ROOT / "benchmarks" / "results" / "stress_tests.jsonl").read_text().splitlines()


def test_every_property_has_its_row():
    assert re.findall(r"\* - (R\d+)", PAGE) == [f"R{k}" for k in range(1, 29)]


@pytest.mark.parametrize("quoted", sorted(set(re.findall(r'``("stress_test"[^`]+)``', PAGE))))
def test_every_quoted_line_is_in_the_log(quoted):
    assert any(line.startswith("{" + quoted) for line in LOG)


@pytest.mark.parametrize("path", sorted(set(re.findall(r"``(tests/[\w/]+\.py)``", PAGE))))
def test_every_named_test_exists(path):
    assert (ROOT / path).exists()


def last(name):
    *_, line = [line for line in map(json.loads, LOG) if line["stress_test"] == name]
    return line


def test_figures_of_the_rows_are_those_of_the_last_lines():
    flat = " ".join(PAGE.split())
    hang, kills = last("native hang under a limit of 5 s"), last("killed and resumed")
    assert (hang["in_time"], hang["latest"] <= 3) == (hang["fits"], True)
    assert f"{kills['kills']} kills: the same model each time, {kills['tasks_repeated']} tasks begun twice" in flat
    lines, made = last("idle, unfinished and sudden"), last("requests made from the description")
    assert f"answered within {lines['slowest_s']:.2f} s. Memory rose by {lines['memory_grown_mb']:.0f} MB" in flat
    assert f"ended {lines['shutdown_s']:.1f} s after SIGTERM" in flat
    assert f"no 5xx, memory + {made['memory_grown_mb']:.0f} MB" in flat
    assert made["status_5xx"] == 0
    assert f"memory + {last('fit-predict cycles')['memory_grown']:.2%}".replace("%", " %") in flat
    resealed = sum(line["harmless"] for line in map(json.loads, LOG) if "resealed from" in line["stress_test"])
    crafted, mutated = (last(f"hostile files: {kind}")["harmless"] for kind in ("crafted", "mutated"))
    assert f"{crafted} crafted, {mutated:,} mutated and {resealed:,} with repaired checksums" in flat
    measured = (ROOT / "docs" / "measured.md").read_text()
    assert f"{crafted + mutated + resealed:,} crafted, mutated and" in measured


def test_the_soak_is_told_as_it_went():
    told = last("soak of the server")
    answers, flat = told["answers"], " ".join(PAGE.split())
    bad = sum(count for kind, count in answers.items() if kind.startswith("bad"))
    for figure in (answers["good 200"], bad, answers["idle lines"], answers["sudden leaves"]):
        assert f"{figure:,}" in flat
    for key in ("memory_start_mb", "memory_end_mb", "memory_most_mb"):
        assert f"{told[key]:.0f} MB" in flat
    assert not [kind for kind in answers if kind.endswith((" 500", " 503"))]
    assert f"{told['status_500']} lines" in flat
    assert (told["tracebacks"], told["exit_code"]) == (0, 0)
    assert f"ended {told['shutdown_s']:.1f} s after" in flat
    assert f"{1000 * told['good_p99_s']:.0f} ms" in flat
