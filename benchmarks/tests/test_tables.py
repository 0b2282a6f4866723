"""The tables of a protocol are named to the last byte."""

import hashlib

import pandas as pd

from softlearning_bench.tables import FILE, fingerprints


def test_a_changed_byte_changes_the_fingerprint_of_its_table_alone(tmp_path):
    columns = {"part": ["choose", "choose"], "task": ["binary"] * 2, "rows": [1, 2], "columns": [3, 4]}
    pd.DataFrame({"name": ["b", "a"], **columns}).to_csv(tmp_path / "index.csv", index=False)
    for name in "ab":
        (tmp_path / f"{name}.parquet").write_bytes(name.encode())
    before = fingerprints(tmp_path)
    assert before["name"].tolist() == ["a", "b"]
    assert before["sha256"][0] == hashlib.sha256(b"a").hexdigest()
    (tmp_path / "a.parquet").write_bytes(b"A")
    after = fingerprints(tmp_path)
    assert (before["sha256"] != after["sha256"]).tolist() == [True, False]


def test_the_protocol_has_all_sixty_tables():
    table = pd.read_csv(FILE)
    assert table["part"].value_counts().to_dict() == {"choose": 40, "confirm": 20}
    assert table["sha256"].str.fullmatch("[0-9a-f]{64}").all()
    assert table["name"].is_unique
