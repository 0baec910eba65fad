"""The result file of a comparison: a header, then one line of JSON per fit.

Lines are only ever added, each by a single write, so a process that is killed loses at
most the fit it was at. Several processes may add to the same file at once.
"""

from __future__ import annotations

import errno
import gc
import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from operator import itemgetter
from pathlib import Path
from typing import Any

from steelyard._common.text import as_plain, counted, shortened
from steelyard.exceptions import ParameterError, warn_user
from steelyard.lab.results import COLUMNS, KEY

try:
    import fcntl
except ImportError:  # Windows appends whole lines without a lock.
    fcntl = None  # type: ignore[assignment]

FORMAT = 1
_SYNC_SECONDS = 1.0
_MAX_VALUE_LENGTH = 80
_FIELDS = frozenset(COLUMNS)
_KEY_TYPES = dict(zip(KEY, (str, str, str, int, int), strict=True))


class JournalError(ParameterError):
    """A file cannot be used: other settings made it, or it is not a result file."""


def settings_hash(settings: Mapping[str, Any]) -> str:
    """Return a hash that is the same for the same settings.

    Examples
    --------
    >>> settings_hash({"folds": 2, "seed": 1}) == settings_hash({"seed": 1, "folds": 2})
    True
    """
    text = json.dumps(settings, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Journal(AbstractContextManager["Journal"]):
    """A result file, checked by ``open_journal``, that is open for adding rows."""

    def __init__(self, path: str | os.PathLike[str], flags: int = 0) -> None:
        self.path = Path(path)
        self._synced = time.monotonic()
        with _explained(self.path):
            self._file = os.open(self.path, os.O_RDWR | os.O_APPEND | flags, 0o666)

    def append(self, row: Mapping[str, Any]) -> None:
        """Add one row of what ``json`` can write; not a number becomes null."""
        self.write(json.dumps(as_plain(row), ensure_ascii=False, allow_nan=False))

    def write(self, line: str, *, first: bool = False) -> None:
        """Add a line by one write; a ``first`` one where there is none yet."""
        with _explained(self.path):
            _write_line(self._file, f"{line}\n".encode(), first)
            if time.monotonic() - self._synced > _SYNC_SECONDS:
                self.sync()

    def whole_size(self) -> int:
        """Cut off a torn line, and return the size of what is left."""
        with _explained(self.path), _locked(self._file):
            return _cut_torn_line(self._file)

    def sync(self) -> None:
        """Have the system put what was written on the disk."""
        os.fsync(self._file)
        self._synced = time.monotonic()

    def close(self) -> None:
        """Put everything on the disk, and let go of the file."""
        try:
            with _explained(self.path):
                self.sync()
        finally:
            os.close(self._file)

    def __exit__(self, *error: object) -> None:
        self.close()


def open_journal(
    path: str | os.PathLike[str],
    settings: Mapping[str, Any],
    versions: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """Start a result file, or make an earlier one ready to resume.

    A file made with other settings, which determine the results, is refused; versions
    of libraries are for the record. What a killed process left of a line is cut off.
    Returns the rows of the earlier run, none if there was none.
    """
    path = Path(path)
    # Compared as they will be read back: tuples become lists.
    settings = json.loads(json.dumps(settings))
    size = 0
    if path.exists():
        with Journal(path) as file:
            size = file.whole_size()
    if not size:
        header = {
            "steelyard": "results",
            "format": FORMAT,
            "hash": settings_hash(settings),
            "settings": settings,
            "versions": dict(versions or {}),
        }
        with Journal(path, os.O_CREAT) as file:
            # Another run may have begun the file by now, and more.
            file.write(json.dumps(header), first=True)
    header, rows = read_journal(path)
    if header["hash"] != settings_hash(settings):
        raise JournalError(
            f"The result file {str(path)!r} was made with other settings: "
            f"{_difference(header['settings'], settings)}. Name another file, or "
            "repeat the settings of the first run to resume it."
        )
    return rows


def read_journal(
    path: str | os.PathLike[str],
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Read the header and the rows of a result file, one per fit.

    The header has ``settings``, their ``hash`` and ``versions``. Of a fit that was run
    again the last row counts. A line that is damaged is left out with a warning: the
    fit has to be run again.
    """
    first, *lines = Path(path).read_bytes().split(b"\n")
    header = _parse(first)
    if header is None or header.get("steelyard") != "results":
        raise JournalError(
            f"{str(path)!r} is not a result file of a comparison: its first line is "
            "not the header. Name another file."
        )
    if header.get("format") != FORMAT:
        raise JournalError(
            f"The result file {str(path)!r} has format {header.get('format')}, this "
            f"version of steelyard reads format {FORMAT}."
        )
    if not isinstance(header.get("settings"), dict) or "hash" not in header:
        raise JournalError(
            f"The header of the result file {str(path)!r} is damaged: it has no "
            "settings. Name another file."
        )
    if lines and not _is_row(_parse(lines[-1])):
        lines.pop()  # nothing, or what a killed process left of a line
    key = itemgetter(*KEY)
    with _no_garbage():
        parsed = _parse_all(lines)
        whole = [row for row in parsed if _is_row(row)]
        rows = {key(row): row for row in whole}
    if len(whole) < len(parsed):
        warn_user(
            f"{counted(len(parsed) - len(whole), 'line')} of the result file "
            f"{str(path)!r} cannot be read and will not count. Repeat the comparison "
            "to run those fits again.",
            UserWarning,
        )
    return header, list(rows.values())


def _is_row(row: Any) -> bool:
    """Whether a line records a fit."""
    if not (isinstance(row, dict) and row.keys() >= _FIELDS):
        return False
    return all(type(row[name]) is kind for name, kind in _KEY_TYPES.items())


# ------------------------------------------------------------------------------ reading


def _parse_all(lines: Iterable[bytes]) -> list[Any]:
    """Return what lines hold, None where that cannot be read."""
    lines = [line for line in lines if line]
    try:
        # One call for all lines takes a third of the time of a call for each.
        return list(json.loads(b"[%b]" % b",".join(lines)))
    except ValueError:
        return [_parse(line) for line in lines]


@contextmanager
def _no_garbage() -> Iterator[None]:
    """Keep Python from looking for garbage, which takes as long as reading rows."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _difference(old: Any, new: Any, name: str = "") -> str:
    """Return the first setting in which two files differ."""
    if not (isinstance(old, dict) and isinstance(new, dict)):
        was, now = (shortened(repr(value), _MAX_VALUE_LENGTH) for value in (old, new))
        return f"{name} was {was}, is {now}"
    for key in [*new, *(key for key in old if key not in new)]:
        inner = f"{name}[{key!r}]" if name else str(key)
        if key not in old:
            return f"{inner} is new"
        if key not in new:
            return f"{inner} is no longer there"
        if old[key] != new[key]:
            return _difference(old[key], new[key], inner)
    return f"the order of {name or 'settings'}"


# ------------------------------------------------------------------------------ writing


def _write_line(file: int, line: bytes, first: bool = False) -> None:
    """Add a line by one write, or leave the file as it was."""
    with _locked(file):
        size = _cut_torn_line(file)
        if first and size:
            return
        try:
            written = os.write(file, line)
        except BaseException:
            with suppress(OSError):
                os.ftruncate(file, size)
            raise
        if written < len(line):
            os.ftruncate(file, size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _cut_torn_line(file: int) -> int:
    """Cut off what follows the last end of line, and return the size that is left.

    The system may end a write in the middle when it kills the process; a row of another
    process must not be added to such a part of a line.
    """
    size = os.fstat(file).st_size
    if not size:
        return 0
    with open(file, "rb", buffering=0, closefd=False) as reader:
        reader.seek(size - 1)
        if reader.read() == b"\n":
            return size
        reader.seek(0)
        data = reader.read()
    whole = data.rfind(b"\n") + 1
    # A file without any line may be something else than a torn header.
    if whole or data.startswith(b'{"steelyard": "res'):
        os.ftruncate(file, whole)
        return whole
    return size


@contextmanager
def _locked(file: int) -> Iterator[None]:
    """Keep other processes from writing in between."""
    if fcntl is None:
        yield
        return
    fcntl.flock(file, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Raise an error on the file that cannot be written, and its rows."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise OSError(
            error.errno,
            f"The result file cannot be written ({reason}). Rows written before are "
            "safe: repeat the command to resume when this is fixed",
            str(path),
        ) from error
