"""Files that are whole or not there."""

import os
import stat

import pytest

from softlearning.data.outputs import whole_file


def write(path, text, **options):
    with whole_file(path, **options) as part:
        part.write_text(text)


def test_a_link_stays_and_its_file_is_replaced(tmp_path):
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    write(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"


@pytest.mark.skipif(os.name == "nt", reason="modes are a matter of POSIX systems")
def test_a_private_file_is_for_its_owner_alone(tmp_path):
    write(tmp_path / "private", "x", private=True)
    write(tmp_path / "public", "x")
    assert stat.S_IMODE((tmp_path / "private").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "public").stat().st_mode) & 0o400


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    write(tmp_path / "a", "old")
    with pytest.raises(TypeError):
        write(tmp_path / "a", 3)
    assert (tmp_path / "a").read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
