"""The zip: written whole, read after every member was measured. Files made to do harm are in `crafted`."""

import io
import zipfile

import numpy as np
import pytest

from softlearning.storage.container import (
    MAGIC,
    ModelFileError,
    check_key,
    description,
    pack,
    read_file,
    read_key,
    unpack,
    write_file,
)

MEMBERS = {"a.npy": b"numbers" * 100, "b.bin": b"", "schema.json": b"{}"}


def test_members_come_back_with_the_manifest(tmp_path):
    write_file(tmp_path / "m", {"model": "x"}, MEMBERS, None)
    data, manifest, members = read_file(tmp_path / "m", 1 << 20, None)
    assert members == MEMBERS
    assert manifest["model"] == "x"
    assert zipfile.ZipFile(io.BytesIO(data)).namelist()[0] == MAGIC


def test_another_file_is_refused_by_its_name(tmp_path):
    (tmp_path / "other.zip").write_bytes(b"PK but not ours")
    with pytest.raises(ModelFileError, match=r"other\.zip is not a softlearning model file"):
        read_file(tmp_path / "other.zip", 1 << 20, None)


def test_equal_members_give_equal_bytes(tmp_path):
    for name in "ab":
        write_file(tmp_path / name, {"model": "x"}, MEMBERS, b"key")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_no_flipped_bit_changes_what_is_read(tmp_path):
    """The others stand where a zip keeps times and flags that nobody reads."""
    write_file(tmp_path / "m", {}, {"a.bin": np.random.default_rng(0).bytes(200)}, None)
    good, noticed = (tmp_path / "m").read_bytes(), 0
    for at in range(len(good)):
        (tmp_path / "m").write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        try:
            assert read_file(tmp_path / "m", 1 << 20, None)[1:] == read_bytes(tmp_path, good)
        except ModelFileError:
            noticed += 1
    assert noticed > 0.7 * len(good)


def read_bytes(folder, data):
    (folder / "other").write_bytes(data)
    return read_file(folder / "other", 1 << 20, None)[1:]


def test_a_signature_covers_every_member(tmp_path):
    write_file(tmp_path / "m", {}, MEMBERS, b"key")
    assert read_file(tmp_path / "m", 1 << 20, b"key")[2] == MEMBERS
    with pytest.raises(ModelFileError, match="another key"):
        read_file(tmp_path / "m", 1 << 20, b"other")


def test_more_members_than_the_old_directory_can_count():
    buffer = io.BytesIO()
    many = {f"m{k}": b"" for k in range(70_000)}
    pack(buffer, {MAGIC: b"2", **many}, compress=False)
    assert len(unpack(buffer.getvalue(), 100_000_000)) == 70_001
    with pytest.raises(ModelFileError, match="70,001 members, too many"):
        unpack(buffer.getvalue(), 64 << 20)


def test_what_shrinks_like_a_bomb_is_stored_as_it_is():
    buffer = io.BytesIO()
    pack(buffer, {MAGIC: b"2", "zeros.npy": bytes(1 << 20)})
    assert len(unpack(buffer.getvalue(), 1 << 21)["zeros.npy"]) == 1 << 20


def test_a_description_is_short_and_valid_json():
    assert description(b'{"a": 1}', 1 << 20) == {"a": 1}
    with pytest.raises(ModelFileError, match="too long"):
        description(b" " * 1000, 1000)
    with pytest.raises(ModelFileError, match="key twice"):
        description(b'{"a": 1, "a": 2}', 1 << 20)


def test_a_key_is_read_from_a_file_without_its_line_end(tmp_path):
    (tmp_path / "key").write_bytes(b"0123456789abcdef\n")
    assert read_key(tmp_path / "key") == b"0123456789abcdef"
    (tmp_path / "short").write_bytes(b"secret\n" + b" " * 20)
    with pytest.raises(ValueError, match="shorter than 16"):
        read_key(tmp_path / "short")


def test_no_key_is_not_an_empty_key():
    check_key(None)
    with pytest.raises(ValueError, match="empty"):
        check_key(b"")
