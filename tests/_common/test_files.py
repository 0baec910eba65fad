"""Files that appear whole or not at all."""

import errno

import pytest

from steelyard._common.files import atomic_write, replacing


def test_a_file_is_written_and_replaced(tmp_path):
    path = tmp_path / "a.txt"
    for data in (b"first", b""):
        atomic_write(str(path), data)
        assert path.read_bytes() == data
    assert list(tmp_path.iterdir()) == [path]


def test_the_old_file_is_there_until_the_new_one_is_whole(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with replacing(path) as partial:
        partial.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), replacing(path) as partial:
        partial.write_text("half")
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_is_an_error_that_names_the_file(tmp_path):
    path = tmp_path / "a.txt"
    with pytest.raises(OSError, match=r"No space left.*a\.txt") as failed:
        with replacing(path):
            raise OSError(errno.ENOSPC, "No space left on device")
    assert failed.value.filename == str(path)
