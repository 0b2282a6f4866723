"""`python -m softlearning_bench.tables [FOLDER]`: which files the suite of real tables reads, by their SHA-256.

Writes `benchmarks/tables.csv`, so that a protocol names its tables to the last byte before they are run.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pandas as pd

from softlearning_bench.real import data_folder

FILE = Path(__file__).parents[1] / "tables.csv"


def fingerprints(folder: Path) -> pd.DataFrame:
    """name, part, task, rows, columns and SHA-256 of each table, by part and name."""
    index = pd.read_csv(folder / "index.csv").sort_values(["part", "name"], ignore_index=True)
    hashes = [hashlib.sha256((folder / f"{name}.parquet").read_bytes()).hexdigest() for name in index["name"]]
    return index[["name", "part", "task", "rows", "columns"]].assign(sha256=hashes)


if __name__ == "__main__":
    table = fingerprints(data_folder(Path(sys.argv[1]) if len(sys.argv) > 1 else None))
    table.to_csv(FILE, index=False, lineterminator="\n")
    print(f"{FILE}: {len(table)} tables")
