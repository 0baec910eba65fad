"""Temporary folders are gone after success, error, interrupt and kill."""

import errno
import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from steelyard._common.files import PREFIX, WorkFolder, remove_leftovers
from steelyard.exceptions import TableError

WORK = """
import sys, time
from steelyard._common.files import WorkFolder
folder = WorkFolder(sys.argv[1])
(folder.path / "inner").mkdir()
(folder.path / "inner" / "codes.u8").write_bytes(b"12345")
(folder.path / "labels.u8").write_bytes(b"12345")
print("ready", flush=True)
"""


@contextmanager
def at_work(base, end):
    """Run a process that works below a folder; it has ended after the block."""
    with subprocess.Popen(
        [sys.executable, "-c", WORK + end, str(base)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout.readline().strip() == b"ready"
        yield process


def test_a_folder_is_removed_with_all_that_is_in_it(tmp_path):
    with WorkFolder(tmp_path) as folder:
        (folder.path / "a" / "b").mkdir(parents=True)
        (folder.path / "a" / "b" / "c").write_bytes(b"1")
        assert folder.path.parent == tmp_path
        assert folder.is_open
    assert list(tmp_path.iterdir()) == []
    assert not folder.is_open
    folder.close()


def test_a_folder_nobody_refers_to_is_removed(tmp_path):
    folder = WorkFolder(tmp_path)
    del folder
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("end", ["", "raise ValueError", "sys.exit(3)"])
def test_a_process_that_ends_removes_its_folder(tmp_path, end):
    with at_work(tmp_path, end):
        pass
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_process_removes_its_folder(tmp_path):
    with at_work(tmp_path, "time.sleep(60)") as process:
        process.send_signal(signal.SIGINT)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path):
    with at_work(tmp_path, "time.sleep(60)") as process:
        process.kill()
    [left] = tmp_path.iterdir()
    assert sorted(entry.name for entry in left.iterdir()) == [
        "inner",
        "labels.u8",
        "lock",
    ]
    with WorkFolder(tmp_path) as folder:
        assert list(tmp_path.iterdir()) == [folder.path]


def test_the_folder_of_a_process_at_work_is_kept(tmp_path):
    with at_work(tmp_path, "sys.stdin.read()"):
        [busy] = tmp_path.iterdir()
        with WorkFolder(tmp_path):
            remove_leftovers(tmp_path)
            assert (busy / "inner" / "codes.u8").read_bytes() == b"12345"


def test_a_folder_killed_before_its_lock_is_removed_and_others_are_kept(tmp_path):
    (tmp_path / f"{PREFIX}empty").mkdir()
    (tmp_path / f"{PREFIX}unknown").mkdir()
    (tmp_path / f"{PREFIX}unknown" / "mine.txt").write_text("mine")
    (tmp_path / f"{PREFIX}file").write_text("mine")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "lock").touch()
    (tmp_path / f"{PREFIX}link").symlink_to(elsewhere)
    remove_leftovers(tmp_path)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [
        "elsewhere",
        f"{PREFIX}file",
        f"{PREFIX}link",
        f"{PREFIX}unknown",
    ]
    assert (elsewhere / "lock").exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_fork_does_not_remove_the_folder_of_its_parent(tmp_path):
    end = (
        "import os\n"
        "if os.fork() == 0: sys.exit(0)\n"
        "os.wait()\n"
        "print(folder.path.exists(), flush=True)"
    )
    with at_work(tmp_path, end) as process:
        assert process.stdout.read().strip() == b"True"
    assert list(tmp_path.iterdir()) == []


def test_processes_that_start_at_once_leave_each_other_alone(tmp_path):
    end = "sys.stdin.read(); assert (folder.path / 'labels.u8').exists()"
    with at_work(tmp_path, end) as one, at_work(tmp_path, end) as other:
        for _ in range(50):
            WorkFolder(tmp_path).close()
    assert (one.returncode, other.returncode) == (0, 0)
    assert list(tmp_path.iterdir()) == []


def test_too_little_space_is_known_before_anything_is_written(tmp_path):
    with WorkFolder(tmp_path) as folder:
        folder.ensure_space(10)
        with pytest.raises(TableError, match=r"need 1000000\.0 TB, and .*work_folder"):
            folder.ensure_space(10**18)


def test_a_full_disk_is_named(tmp_path):
    with WorkFolder(tmp_path) as folder:
        with pytest.raises(TableError, match=f"No space is left .* in {tmp_path}"):
            with folder.writing():
                raise OSError(errno.ENOSPC, "No space left on device")
        with pytest.raises(PermissionError), folder.writing():
            raise PermissionError(errno.EACCES, "denied")


def test_a_base_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(TableError, match=r"in .*nowhere: no such file or directory\."):
        WorkFolder(tmp_path / "nowhere")
