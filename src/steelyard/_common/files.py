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
    file is opened for writing.
    """
    target = Path(os.path.realpath(path))
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


def _flush(path: Path, access: int) -> None:
    handle = os.open(path, access)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
