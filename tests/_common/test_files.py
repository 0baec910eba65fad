"""Files that appear whole or not at all."""

import errno
import os

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


def test_where_there_is_no_folder_the_error_names_the_file(tmp_path):
    path = tmp_path / "nowhere" / "model.json"
    with pytest.raises(FileNotFoundError) as caught:
        atomic_write(path, b"")
    assert caught.value.filename == str(path)


def test_a_full_disk_is_an_error_that_names_the_file(tmp_path):
    path = tmp_path / "a.txt"
    with pytest.raises(OSError, match=r"No space left.*a\.txt") as failed:
        with replacing(path):
            raise OSError(errno.ENOSPC, "No space left on device")
    assert failed.value.filename == str(path)


@pytest.fixture
def planted(tmp_path):
    """A file of mine, and a link to it in a folder that all may write to."""
    mine, shared = tmp_path / "mine.txt", tmp_path / "shared"
    mine.write_text("mine")
    shared.mkdir()
    os.chmod(shared, 0o1777)
    link = shared / "page.html"
    link.symlink_to(mine)
    return mine, link


def test_links_of_mine_are_followed(planted, tmp_path):
    mine, link = planted
    relative = tmp_path / "relative"
    relative.symlink_to("shared/page.html")
    for path in (link, relative):
        atomic_write(path, str(path).encode())
        assert mine.read_text() == str(path)
        assert path.is_symlink()
    missing = tmp_path / "to a new file"
    missing.symlink_to("new")
    atomic_write(missing, b"new")
    assert (tmp_path / "new").read_text() == "new"


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away"
)
def test_links_of_others_in_a_folder_for_all_are_refused(planted, tmp_path):
    mine, link = planted
    os.lchown(link, 65534, 65534)
    through = tmp_path / "mine too"
    through.symlink_to(link)
    for path in (link, through):
        with pytest.raises(PermissionError, match="a link of another user"):
            atomic_write(path, b"theirs")
    assert mine.read_text() == "mine"
    assert len(list(link.parent.iterdir())) == 1
    os.chmod(link.parent, 0o755)
    atomic_write(link, b"a folder of my own")
    assert mine.read_text() == "a folder of my own"


def test_links_in_a_circle_are_an_error(tmp_path):
    for a, b in (("one", "two"), ("two", "one")):
        (tmp_path / a).symlink_to(b)
    with pytest.raises(OSError):
        atomic_write(tmp_path / "one", b"")
