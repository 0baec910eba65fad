"""The result file of a comparison: a header, then one line of JSON per fit.

Lines are only appended, each by a single write, so that a run that is killed loses the
fits it was at alone. What it left of a line is cut off when the next run begins.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeGuard

from steelyard._common.text import as_plain, counted, shortened
from steelyard.exceptions import ParameterError, warn_user
from steelyard.lab.results import COLUMNS, KEY

FORMAT = 1
_MAX_VALUE_LENGTH = 80
_FIELDS = frozenset(COLUMNS)
_KEY_TYPES = dict(zip(KEY, (str, str, str, int, int), strict=True))


class JournalError(ParameterError):
    """A file cannot be used: other settings made it, or it is not a result file."""


class Journal(AbstractContextManager["Journal"]):
    """A result file that is open for adding rows, by one process."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        with _explained(self.path):
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
            self._file = os.open(self.path, flags, 0o666)
            self._cut_torn_line()

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return os.fstat(self._file).st_size

    def append(self, row: Mapping[str, Any]) -> None:
        """Add a line of what ``json`` can write; not a number becomes null.

        After an error the file is as it was.
        """
        text = json.dumps(as_plain(row), ensure_ascii=False, allow_nan=False)
        line = f"{text}\n".encode()
        with _explained(self.path):
            size = self.size
            try:
                if os.write(self._file, line) < len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            except BaseException:
                with suppress(OSError):
                    os.ftruncate(self._file, size)
                raise

    def close(self) -> None:
        """Have the system put the rows on the disk, and close the file."""
        try:
            with _explained(self.path):
                os.fsync(self._file)
        finally:
            os.close(self._file)

    def __exit__(self, *error: object) -> None:
        self.close()

    def _cut_torn_line(self) -> None:
        """Cut off what follows the last end of line: a write that was interrupted."""
        data = self.path.read_bytes()
        # Files of another kind are refused as they are.
        if data.startswith(b'{"steelyard": "res') and not data.endswith(b"\n"):
            os.ftruncate(self._file, data.rfind(b"\n") + 1)


def open_journal(
    path: str | os.PathLike[str],
    settings: Mapping[str, Any],
    versions: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """Begin a result file, or resume an earlier one; return the rows that it has.

    A file made with other settings is refused, since they determine the results;
    versions of libraries are for the record.
    """
    # Compared as they will be read back: tuples become lists.
    settings = json.loads(json.dumps(settings))
    header = {
        "steelyard": "results",
        "format": FORMAT,
        "settings": settings,
        "versions": dict(versions or {}),
    }
    with Journal(path) as file:
        if not file.size:
            file.append(header)
    header, rows = read_journal(path)
    if header["settings"] != settings:
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

    The header has ``settings`` and ``versions``. Of a fit that was run again the last
    row counts. A damaged line is left out with a warning: its fit has to be run again.
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
    if not isinstance(header.get("settings"), dict):
        raise JournalError(
            f"The header of the result file {str(path)!r} is damaged: it has no "
            "settings. Name another file."
        )
    if lines and not _is_row(_parse(lines[-1])):
        lines.pop()  # nothing, or what a killed process left of a line
    parsed = [_parse(line) for line in lines if line]
    whole = [row for row in parsed if _is_row(row)]
    key = itemgetter(*KEY)
    rows = {key(row): row for row in whole}
    if len(whole) < len(parsed):
        warn_user(
            f"{counted(len(parsed) - len(whole), 'line')} of the result file "
            f"{str(path)!r} cannot be read and will not count. Repeat the comparison "
            "to run those fits again.",
            UserWarning,
        )
    return header, list(rows.values())


def _is_row(row: Any) -> TypeGuard[dict[str, Any]]:
    """Return whether a line records a fit."""
    if not (isinstance(row, dict) and row.keys() >= _FIELDS):
        return False
    return all(type(row[name]) is kind for name, kind in _KEY_TYPES.items())


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
    pairs = {key: (key in old, old.get(key)) for key in [*new, *old]}
    key = next(k for k, pair in pairs.items() if pair != (k in new, new.get(k)))
    inner = f"{name}[{key!r}]" if name else str(key)
    if key not in old:
        return f"{inner} is new"
    if key not in new:
        return f"{inner} no longer exists"
    return _difference(old[key], new[key], inner)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Name the file in errors of writing, and say that its rows are safe."""
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
