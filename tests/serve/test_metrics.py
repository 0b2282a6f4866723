"""Counts add up over workers and read as Prometheus reads them."""

import re

from softlearning.serve.metrics import BOUNDS, Counters

SAMPLE = re.compile(r'softlearning_[a-z_]+(\{[a-z]+="[^"]*"\})? [0-9.e+-]+')


def test_workers_are_added_up():
    counters = Counters(workers=2)
    for worker in (0, 1):
        counters.worker = worker
        counters.answered(200, 0.02)
        counters.add("rows", 5)
        counters.set("open", 3)
    text = counters.text()
    for line in ('requests_total{status="200"} 2', "rows_total 10", "connections 6", "request_seconds_count 2"):
        assert f"softlearning_{line}\n" in text


def test_an_unknown_status_counts_as_its_kind():
    counters = Counters()
    counters.answered(418, 0.1)
    counters.answered(599, 0.1)
    text = counters.text()
    assert 'requests_total{status="400"} 1\n' in text
    assert 'requests_total{status="500"} 1\n' in text


def test_the_text_has_a_head_per_family_and_samples_of_one_form():
    counters = Counters()
    counters.answered(200, 1e9)
    lines = counters.text().splitlines()
    samples = [line for line in lines if not line.startswith(("# HELP softlearning_", "# TYPE softlearning_"))]
    assert all(SAMPLE.fullmatch(line) for line in samples)
    buckets = [float(line.split()[-1]) for line in lines if "_bucket" in line]
    assert buckets == [0.0] * len(BOUNDS) + [1.0]
