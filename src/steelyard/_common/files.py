"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from os import PathLike
from pathlib import Path


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
    # Mode 0o666 less the user's mask, as for any new file.
    os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    try:
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
        # Where the disk is full the system names no file, or one that is gone.
        if isinstance(error, OSError) and error.filename in (None, str(partial)):
            error.filename = str(path)
        raise
    # The rename itself has to reach the disk; not every system opens folders.
    with contextlib.suppress(OSError):
        _flush(target.parent, os.O_RDONLY)


def _followed(path: str | PathLike[str]) -> Path:
    """Return where links lead, unless somebody else may have placed one as a trap.

    The rule is that of Linux with ``fs.protected_symlinks``, which does not hold for
    programs that read links themselves.
    """
    at = Path(path)
    for _ in range(40):
        if not at.is_symlink():
            break
        owner, folder = os.lstat(at).st_uid, os.stat(at.parent)
        own = os.geteuid() if hasattr(os, "geteuid") else owner
        if folder.st_mode & stat.S_IWOTH and owner not in (own, folder.st_uid):
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
