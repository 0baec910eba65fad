"""A save that fails or is killed leaves the old file or the new one, no other."""

from __future__ import annotations

import errno
import os
import random
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import steelyard as sy
from steelyard.exceptions import ModelFileError

POSIX = pytest.mark.skipif(os.name != "posix", reason="signals and limits of POSIX")


@pytest.fixture
def old(tmp_path, small_model):
    """Return a path that holds a model already."""
    path = tmp_path / "model.json"
    small_model.save(path)
    return path


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.plain
@pytest.mark.parametrize(
    "owner, step", [(Path, "write_bytes"), (os, "fsync"), (os, "replace")]
)
@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()]
)
def test_a_failed_save_leaves_the_old_file_alone(
    owner, step, error, old, model, monkeypatch
):
    before = old.read_bytes()

    def fail(*args, **kwargs):
        raise error

    monkeypatch.setattr(owner, step, fail)
    with pytest.raises(type(error)):
        model.save(old)
    monkeypatch.undo()
    assert old.read_bytes() == before
    assert names_in(old.parent) == ["model.json"]


FULL_DISK = """
import resource, sys
import steelyard as sy
clf = sy.load(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))
try:
    clf.save(sys.argv[2])
except OSError as error:
    print("OSError", error.errno)
"""


@POSIX
def test_a_file_system_that_takes_no_more_leaves_the_old_file_alone(old, tmp_path):
    before = old.read_bytes()
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(old), str(old)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.split() == ["OSError", str(errno.EFBIG)], done.stderr
    assert old.read_bytes() == before
    assert names_in(tmp_path) == ["model.json"]


@pytest.mark.plain
def test_a_folder_that_cannot_be_written_is_an_ordinary_error(
    old, model, tmp_path, monkeypatch
):
    with pytest.raises(FileNotFoundError):
        model.save(tmp_path / "nowhere" / "model.json")

    def refuse(*args, **kwargs):
        raise PermissionError(errno.EACCES, "Permission denied")

    before = old.read_bytes()
    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(PermissionError):
        model.save(old)
    monkeypatch.undo()
    assert old.read_bytes() == before
    assert names_in(tmp_path) == ["model.json"]


@pytest.mark.plain
def test_a_folder_is_not_replaced(tmp_path, model):
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        model.save(tmp_path / "folder")
    assert names_in(tmp_path) == ["folder"]


@pytest.mark.plain
@POSIX
def test_a_device_or_pipe_is_not_replaced(tmp_path, model):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a file"):
        model.save(tmp_path / "pipe")
    assert names_in(tmp_path) == ["pipe"]


@pytest.mark.plain
@POSIX
def test_a_link_stays_and_its_target_is_written(tmp_path, old, model, frame):
    (tmp_path / "link").symlink_to(old)
    model.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert sy.load(old).n_features_in_ == frame.shape[1]


@pytest.mark.plain
@POSIX
def test_the_mode_of_the_old_file_is_kept_and_a_new_one_follows_the_mask(
    tmp_path, old, model
):
    old.chmod(0o640)
    model.save(old)
    assert stat.S_IMODE(old.stat().st_mode) == 0o640
    mask = os.umask(0o027)
    try:
        model.save(tmp_path / "new.json")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "new.json").stat().st_mode) == 0o640


@pytest.mark.plain
@pytest.mark.parametrize("name", ["m" * 250, "no suffix", ".hidden", "ж😀.json"])
def test_any_file_name_will_do(name, tmp_path, small_model, assert_same_models):
    small_model.save(str(tmp_path / name))
    assert names_in(tmp_path) == [name]
    assert_same_models(small_model, sy.load(str(tmp_path / name)))


@pytest.mark.plain
def test_a_relative_path_will_do(tmp_path, small_model, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small_model.save("model.json")
    assert sy.load("model.json").n_features_in_ == 2


# Each line read starts a child that saves two models in turn until it is killed.
SAVER = """
import os, sys
import steelyard as sy
target, models = sys.argv[1], [sy.load(path) for path in sys.argv[2:]]
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        print(os.getpid(), flush=True)
        while True:
            for model in models:
                model.save(target)
    os.waitpid(child, 0)
    print("gone", flush=True)
"""


@POSIX
def test_a_kill_at_any_moment_leaves_the_old_file_or_the_new_one(tmp_path):
    rng = np.random.default_rng(0)
    contents = []
    for k in range(2):
        X = rng.normal(size=(400, 20))
        clf = sy.NaiveBayes(numeric="equal-width").fit(X, np.arange(400) % 2)
        clf.save(tmp_path / f"{k}.json")
        contents.append((tmp_path / f"{k}.json").read_bytes())
    target = tmp_path / "target.json"
    target.write_bytes(contents[0])
    saver = subprocess.Popen(
        [
            sys.executable,
            "-c",
            SAVER,
            str(target),
            *(str(tmp_path / f"{k}.json") for k in range(2)),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    random_ = random.Random(1)
    rounds = interrupted = 0
    try:
        while rounds < 40 or (not interrupted and rounds < 400):
            rounds += 1
            saver.stdin.write("\n")
            saver.stdin.flush()
            child = int(saver.stdout.readline())
            # Longer later: a busy machine may not have begun a save by then.
            time.sleep(random_.uniform(0.0, 0.001 * rounds))
            os.kill(child, signal.SIGKILL)
            assert saver.stdout.readline() == "gone\n"
            assert target.read_bytes() in contents
            sy.load(target)
            partial = list(Path(tmp_path).glob(".steelyard-*.tmp"))
            interrupted += bool(partial)
            for path in partial:
                with pytest.raises(ModelFileError):  # what a plain write leaves
                    if path.read_bytes() in contents:
                        raise ModelFileError
                    sy.load(path)
                path.unlink()
    finally:
        saver.stdin.close()
        saver.wait(timeout=30)
        saver.stdout.close()
    assert interrupted, "no kill hit a save: the test shows nothing"
