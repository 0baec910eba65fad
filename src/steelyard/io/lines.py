"""The lines of one text file as rows of cells, with errors that name the line.

With the standard library alone. ``text`` reads the same rows by pyarrow if lines are
regular; irregular lines are decided here.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import IO, Any, NoReturn

from steelyard.exceptions import ColumnError, TableError
from steelyard.io.dialect import (
    HEAD,
    LATIN,
    CsvDialect,
    codec_of,
    find_encoding,
    first_lines,
    top_of,
)
from steelyard.io.paths import DAMAGED, File, check_distinct

LARGEST_CELL = 2**22


class CsvLines:
    """The lines of a file whose first line was read for the names."""

    def __init__(self, file: File, dialect: CsvDialect, may_change: bool) -> None:
        if may_change:
            dialect = replace(dialect, encoding=find_encoding(file.head(HEAD)))
        self.file, self.dialect, self.may_change = file, dialect, may_change
        self.header = self._read_header()
        self.names = [name for name in self.header if name]
        check_distinct(self.names, file.name)
        self._short: list[int] = []

    def left_out(self) -> list[str]:
        """Return notes on what is left out and what is treated as missing."""
        notes = [self.top.in_words()] if self.top.titles else []
        if self.dialect.no_header:
            notes.append(f"columns are called {self.names[0]} to {self.names[-1]}")
        if self.top.has_row_names:
            notes.append("row names at the start of each line are skipped")
        elif len(self.names) < len(self.header):
            places = [str(k) for k, name in enumerate(self.header, 1) if not name]
            notes.append(f"dropped, because it has no name: column {', '.join(places)}")
        if self._short:
            first, n = self._short[0], len(self._short)
            lines = f"{n} lines have" if n > 1 else "a line has"
            notes.append(
                f"{lines} fewer cells than there are names, line {first} first; the "
                "others are treated as missing"
            )
        return [f"{self.file.name}: {note}" for note in notes]

    def text(self, data: IO[bytes]) -> io.TextIOWrapper:
        """Decode a stream."""
        codec = codec_of(self.dialect.encoding)
        return io.TextIOWrapper(data, encoding=codec, newline="")

    def cells(self, text: io.TextIOWrapper) -> Any:
        """Return a reader of the cells of lines, from the names of columns on."""
        csv.field_size_limit(max(csv.field_size_limit(), LARGEST_CELL))
        lines: Iterable[str] = text
        if comment := self.dialect.comment:
            lines = (line for line in text if not line.startswith(comment))
        for _ in range(self.dialect.skip):
            next(text, None)
        for _ in range(self.n_above - self.dialect.skip):
            next(iter(lines), None)
        return csv.reader(
            lines,
            delimiter=self.dialect.separator,
            quotechar=self.dialect.quote,
            skipinitialspace=True,
        )

    def _read_header(self) -> list[str]:
        first = first_lines(self.file.head(HEAD), self.dialect)
        self.top, _ = top_of(first, self.dialect)
        self.n_above = self.dialect.skip + self.top.n_lines
        try:
            with self.file.open() as raw, self.text(self.file.unpacked(raw)) as text:
                header = next(self.cells(text), None)
        except UnicodeDecodeError as error:
            if self.change_encoding():
                return self._read_header()
            self.refuse(error)
        except Exception as error:
            self.refuse(error)
        if header is None or not any(map(str.strip, header)):
            raise TableError(
                f"{self.file.name} is empty. Its first line must contain the "
                "column names."
            )
        if "\0" in "".join(header):
            order = "le" if header[0][1:2] == "\0" else "be"
            raise TableError(
                f"{self.file.name} is not text: it contains zero bytes. If it is "
                f"UTF-16, say so with `encoding=utf-16-{order}`."
            )
        if self.dialect.no_header:
            return [f"x{k}" for k in range(1, len(header) + 1)]
        names = [name.strip() for name in header]
        return ["", *names] if self.top.has_row_names else names

    def change_encoding(self) -> bool:
        """Fall back to another encoding if UTF-8 was a guess; return whether it was."""
        if not self.may_change or self.dialect.encoding != "utf-8":
            return False
        self.dialect, self.may_change = replace(self.dialect, encoding=LATIN), False
        return True

    # ----------------------------------------------------------------------------- rows

    def rows(self, raw: IO[bytes], skipped: int = 0) -> Iterator[list[str]]:
        """Yield the rows after some, each with as many cells as there are names."""
        # Not closed here, but by the caller that opened the file.
        text, row, n_rows = self.text(self.file.unpacked(raw)), [], 0
        self._short = []
        try:
            lines = self.cells(text)
            if not self.dialect.no_header:
                next(lines)
            for row in filter(None, lines):
                if len(row) != len(self.header):
                    if not any(map(str.strip, row)):
                        continue
                    self._fit(row, self.n_above + lines.line_num, n_rows)
                n_rows += 1
                if n_rows > skipped:
                    yield row
            self.check_end(row)
        finally:
            text.detach()

    def _fit(self, row: list[str], line: int, n_before: int) -> None:
        """Fill a short row with missing cells, and cut empty ones off a long one."""
        n = len(self.header)
        if len(row) < n:
            self._short.append(line)
            row += [""] * (n - len(row))
        elif not any(map(str.strip, row[n:])):
            del row[n:]
        elif not n_before:
            raise TableError(
                f"{self.file.name} has more cells in its rows than names in its first "
                f"line: {len(row)} in line {line}, and {n} columns. Name all columns, "
                "or skip lines above the names with `skip`."
            )
        else:
            raise TableError(
                f"{self.file.name} has {len(row)} cells in line {line}, and {n} "
                "columns. Correct the line; if it is a comment, say how such lines "
                "begin with `comment`; if it is the last one, the file may have been "
                "cut short."
            )

    def check_end(self, last: list[str]) -> None:
        """Refuse an open quote, which takes in all that follows."""
        cell, tail = next((cell for cell in last if "\n" in cell), None), b""
        if cell is None or self.file.is_read_once:
            return
        with self.file.open() as raw:
            data = self.file.unpacked(raw)
            while block := data.read(2**20):
                tail = (tail + block)[-16:]
        end = self.dialect.quote.encode(self.dialect.encoding)[-2:].strip(b"\0")
        if not tail.strip(b"\0").rstrip().rstrip(b"\0").endswith(end):
            raise TableError(
                f"{self.file.name} ends within a quoted cell, which begins with "
                f"{cell[:20]!r}. Close the quote; the file may have been cut short."
            )

    # --------------------------------------------------------------------------- errors

    def refuse(self, error: Exception) -> NoReturn:
        """Raise an error that names the file and what is wrong with it."""
        text = " ".join(str(error).split())
        if isinstance(error, (TableError, ColumnError)):
            raise error
        if isinstance(error, UnicodeDecodeError):
            self._refuse_encoding(error)
        if isinstance(error, gzip.BadGzipFile):
            problem = "is not compressed by gzip, or is damaged."
        elif isinstance(error, DAMAGED):
            problem = "was cut short or is damaged."
        elif "field larger" in text or "straddling" in text:
            problem = (
                f"has a cell of more than {LARGEST_CELL // 2**20} MB. Is there a quote "
                "that nothing closes?"
            )
        elif isinstance(error, (csv.Error, OSError)):
            problem = f"cannot be read: {text}"
        else:
            raise error
        raise TableError(f"{self.file.name} {problem}") from None

    def _refuse_encoding(self, error: UnicodeDecodeError) -> NoReturn:
        line, encoding = 1, self.dialect.encoding
        with self.file.open() as raw:
            for cells in self.file.unpacked(raw):
                try:
                    cells.decode(encoding)
                except UnicodeDecodeError as first_error:
                    error = first_error
                    break
                line += 1
        byte = error.object[error.start]
        raise TableError(
            f"{self.file.name} is not {encoding} text (line {line}, byte 0x{byte:02x})."
            " Say how it is encoded with `encoding`, for example latin-1, or convert "
            "it to UTF-8."
        ) from None


class WatchedStream(io.RawIOBase):
    """A stream as UTF-8 that notes whether it contains some bytes."""

    def __init__(self, data: IO[bytes], encoding: str, mark: bytes) -> None:
        self._data, self._mark = data, mark
        self._decode: Any = None
        if encoding != "utf-8":
            self._decode = codecs.getincrementaldecoder(encoding)().decode
        self.is_marked = False
        self._tail = b""

    def readable(self) -> bool:
        """Whether it can be read."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return about ``size`` bytes of UTF-8."""
        data = self._data.read(size) if self._decode is None else self._decoded(size)
        if data:
            seam = self._tail + data[:8]
            self.is_marked |= self._mark in data or self._mark in seam
            self._tail = (self._tail + data[-8:])[-8:]
        return data

    def _decoded(self, size: int) -> bytes:
        while True:
            # A byte becomes four at most, and no more than ``size`` are asked for.
            read = self._data.read(max(size // 4, 1) if size > 0 else size)
            data = self._decode(read, final=not read).encode()
            if data or not read:
                return data
