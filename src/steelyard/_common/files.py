"""Files that appear whole or not at all, and temporary folders that go in any case."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
import sys
import tempfile
import weakref
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Self

from steelyard.exceptions import TableError

PREFIX = "steelyard-work-"
_LOCK = "lock"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_ADVICE = "Name a folder on another disk with `work_folder`"


def atomic_write(path: str | PathLike[str], data: bytes) -> None:
    """Write a file in one step: whenever it is stopped, the old file or the new one."""
    with replacing(path) as partial:
        partial.write_bytes(data)


@contextlib.contextmanager
def replacing(path: str | PathLike[str]) -> Iterator[Path]:
    """Give an empty file in the same folder, which is renamed when all went well.

    It is flushed to the disk before, and removed after an error. The mode of the file
    that is replaced is kept; a link stays, and what it points to is replaced, as when a
    file is opened for writing. Links that others put into a folder that everybody may
    write to are not followed.
    """
    target = _followed(path)
    mode = None
    with contextlib.suppress(FileNotFoundError):
        mode = target.stat().st_mode
    if mode is not None and not stat.S_ISREG(mode):
        code = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
        raise OSError(code, "This is not a file", str(target))
    partial = target.parent / f".steelyard-{secrets.token_hex(8)}.tmp"
    try:
        # Mode 0o666 less the user's mask, as for any new file.
        os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        yield partial
        _flush(partial, os.O_RDWR)
        if mode is not None:
            # Not every file system knows modes.
            with contextlib.suppress(OSError):
                os.chmod(partial, stat.S_IMODE(mode))
        os.replace(partial, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        # If the disk is full the system names no file, or one that is gone.
        if isinstance(error, OSError) and error.filename in (None, str(partial)):
            error.filename = str(path)
        raise
    # The rename itself has to reach the disk; not every system opens folders.
    with contextlib.suppress(OSError):
        _flush(target.parent, os.O_RDONLY)


def _followed(path: str | PathLike[str]) -> Path:
    """Return where links lead, unless somebody else may have placed one as a trap.

    The rule is that of Linux with ``fs.protected_symlinks``, which does not apply to
    programs that read links themselves.
    """
    at = Path(path)
    for _ in range(40):
        if not at.is_symlink():
            break
        owner, folder = os.lstat(at).st_uid, os.stat(at.parent)
        user = os.geteuid() if hasattr(os, "geteuid") else owner
        if folder.st_mode & stat.S_IWOTH and owner not in (user, folder.st_uid):
            why = "This is a link of another user, in a folder that all may write to"
            raise PermissionError(errno.EACCES, why, str(at))
        at = at.parent / os.readlink(at)
    return Path(os.path.realpath(at.parent)) / at.name


def _flush(path: Path, access: int) -> None:
    handle = os.open(path, access)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class WorkFolder:
    """A new folder below `base`, removed when it is closed or no longer referred to.

    That is so after an error or an interrupt too. A process that is killed leaves its
    folder behind; the next one that works below the same base removes it. It knows by
    a lock, which the system releases when a process ends: unlike its number that
    cannot be mistaken for another process, nor for one of another container.

    >>> with WorkFolder() as folder:
    ...     _ = (folder.path / "codes.u8").write_bytes(b"123")
    >>> folder.path.exists()
    False
    """

    def __init__(self, base: str | PathLike[str] | None = None) -> None:
        self.base = Path(tempfile.gettempdir() if base is None else base)
        remove_leftovers(self.base)
        self.path, lock = _create(self.base)
        self._remove = weakref.finalize(
            self, _remove_folder, self.path, lock, os.getpid()
        )

    def close(self) -> None:
        """Remove the folder with all that is in it; once more does nothing."""
        self._remove()

    @property
    def is_open(self) -> bool:
        """Whether the folder is still there."""
        return self._remove.alive

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ensure_space(self, n_bytes: int) -> None:
        """Raise an error if fewer than ``n_bytes`` are free."""
        free = shutil.disk_usage(self.path).free
        if free < n_bytes:
            raise TableError(
                f"Temporary files need {in_bytes(n_bytes)}, and {self.base} has "
                f"{in_bytes(free)} left. {_ADVICE}, or learn from fewer columns."
            )

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Turn the error of a full disk in a ``with`` block into one that names it."""
        try:
            yield
        except OSError as error:
            if error.errno not in _FULL:
                raise
            raise TableError(
                f"No space is left for temporary files in {self.base}. {_ADVICE}."
            ) from error


def remove_leftovers(base: str | PathLike[str] | None = None) -> None:
    """Remove work folders of processes that were killed."""
    base = tempfile.gettempdir() if base is None else base
    with contextlib.suppress(OSError):
        for path in Path(base).glob(f"{PREFIX}*"):
            with contextlib.suppress(OSError):
                _remove_if_dead(path)


def in_bytes(count: float) -> str:
    """Write a size.

    >>> in_bytes(812), in_bytes(2_450_000), in_bytes(5e9)
    ('812 B', '2.5 MB', '5.0 GB')
    """
    if count < 1000:
        return f"{int(count)} B"
    for unit in ("kB", "MB", "GB", "TB"):
        count /= 1000
        if count < 1000 or unit == "TB":
            break
    return f"{count:.1f} {unit}"


def _create(base: Path) -> tuple[Path, int]:
    """Make a folder and lock it, so that no other process removes it."""
    while True:
        try:
            path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=base))
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise TableError(
                f"No folder for temporary files can be made in {base}: {reason}. "
                f"{_ADVICE}."
            ) from None
        # Between these lines another process may see a folder without a lock, and
        # remove it. Then there is nothing to open, or what is held is not there.
        with contextlib.suppress(FileNotFoundError):
            handle = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
            if lock(handle) is not False and (path / _LOCK).exists():
                return path, handle
            os.close(handle)


def _remove_folder(path: Path, lock: int, owner: int) -> None:
    # A fork has the object too, and must not remove what its parent works with.
    if os.getpid() == owner:
        _empty(path)
        os.close(lock)
        _drop(path)


def _remove_if_dead(path: Path) -> None:
    status = os.lstat(path)
    is_own = sys.platform == "win32" or status.st_uid == os.getuid()
    if not stat.S_ISDIR(status.st_mode) or not is_own:
        return
    try:
        handle = os.open(path / _LOCK, os.O_RDWR)
    except FileNotFoundError:
        # Killed before there was a lock; nothing else can be in it.
        os.rmdir(path)
        return
    try:
        is_dead = lock(handle) is True
        if is_dead:
            _empty(path)
    finally:
        os.close(handle)
    if is_dead:
        _drop(path)


def _empty(path: Path) -> None:
    """Remove all but the lock, so that whoever is killed here leaves a dead folder."""
    for entry in path.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        elif entry.name != _LOCK:
            with contextlib.suppress(OSError):
                entry.unlink()


def _drop(path: Path) -> None:
    with contextlib.suppress(OSError):
        (path / _LOCK).unlink()
        path.rmdir()


def lock(handle: int) -> bool | None:
    """Lock an open file: whether it worked, None if the file system has no locks."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        is_taken = error.errno in (errno.EAGAIN, errno.EACCES, errno.EDEADLK)
        return False if is_taken else None
    return True
