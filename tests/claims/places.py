"""Where experiments leave what they measured."""

from pathlib import Path

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
