"""One CSV file as blocks of cells, all of them text, with errors that name the line."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import IO, Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from steelyard.exceptions import ColumnError, TableError
from steelyard.table.sources.paths import File
from steelyard.table.sources.reader import TypesChangedError

_BLOCK = 2**22
_ROWS = 2**15
_COUNT = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")


@dataclass(frozen=True)
class Spelling:
    """How cells are written."""

    separator: str
    encoding: str
    missing_values: tuple[str, ...]

    @property
    def empty(self) -> list[str]:
        """Cells that are missing in every column."""
        return ["", *self.missing_values]


class Lines:
    """The lines of one file; its first line was read for the names."""

    def __init__(self, file: File, spelling: Spelling) -> None:
        self.file, self.path = file, file.path
        separator = spelling.separator
        if file.format == "tsv" and separator == ",":
            separator = "\t"
        self._spelling = Spelling(separator, spelling.encoding, spelling.missing_values)
        self._is_loose = False
        self.notes: list[str] = []
        self._header = self._read_header()
        self.names = [name for name in self._header if name]
        if len(self.names) < len(self._header):
            places = [str(k) for k, name in enumerate(self._header, 1) if not name]
            self.notes.append(
                f"{self.path}: left out, for want of a name: column {', '.join(places)}"
            )
        for name in self.names:
            if self.names.count(name) > 1:
                raise ColumnError(
                    f"{self.path} has two columns named {name!r}. Rename one of them."
                )

    def _open(self) -> IO[bytes]:
        if self.file.is_compressed:
            return gzip.open(self.path)  # type: ignore[return-value]
        return open(self.path, "rb")

    def _text(self, data: IO[bytes]) -> io.TextIOWrapper:
        # A mark of byte order at the start is no part of the first name.
        encoding = self._spelling.encoding
        encoding = "utf-8-sig" if encoding == "utf-8" else encoding
        return io.TextIOWrapper(data, encoding=encoding, newline="")

    def _rows(self, text: io.TextIOWrapper) -> Any:
        return csv.reader(
            text, delimiter=self._spelling.separator, skipinitialspace=True
        )

    def _read_header(self) -> list[str]:
        try:
            with self._open() as data, self._text(data) as text:
                header = next(self._rows(text), None)
        except Exception as error:
            self._refuse(error)
        if header is None or not any(header):
            raise TableError(
                f"{self.path} is empty. Its first line must hold the names of columns."
            )
        if "\0" in "".join(header):
            raise TableError(f"{self.path} is not text: it holds zero bytes.")
        return [name.strip() for name in header]

    # ------------------------------------------------------------------------ cells

    def blocks(self, names: Sequence[str]) -> Iterator[tuple[pa.Table, int]]:
        """Yield some columns as text, empty cells missing, and bytes of the file."""
        read = self._read_loose if self._is_loose else self._read_strict
        done = 0
        with open(self.path, "rb") as raw:
            try:
                for cells in read(raw, list(names)):
                    position = raw.tell()
                    yield cells, position - done
                    done = position
            except (TypesChangedError, GeneratorExit):
                raise
            except Exception as error:
                self._refuse(error)

    def _read_strict(self, raw: IO[bytes], names: list[str]) -> Iterator[pa.Table]:
        """Let pyarrow read it, which knows no blanks between separator and quote."""
        mark = f'{self._spelling.separator} "'.encode()
        stream = _Watched(self._unpacked(raw), self._spelling.encoding, mark)
        labels = [name or f"\0{k}" for k, name in enumerate(self._header)]
        cells = None
        try:
            for batch in self._open_csv(stream, labels, names):
                if stream.is_marked:
                    break
                cells = self._trimmed(pa.Table.from_batches([batch]))
                yield cells
        except pa.ArrowInvalid:
            if not stream.is_marked:
                raise
        if stream.is_marked:
            self._is_loose = True
            raise TypesChangedError
        if cells and not stream.tail.rstrip().endswith(b'"'):
            self._check_end(cells)

    def _open_csv(self, stream: _Watched, labels: list[str], names: list[str]) -> Any:
        return pyarrow.csv.open_csv(
            pa.PythonFile(stream, "r"),
            read_options=pyarrow.csv.ReadOptions(
                use_threads=False,
                column_names=labels,
                skip_rows_after_names=1,
                block_size=_BLOCK,
            ),
            parse_options=pyarrow.csv.ParseOptions(
                delimiter=self._spelling.separator, newlines_in_values=True
            ),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(labels, pa.string()),
                include_columns=names,
                null_values=self._spelling.empty,
                strings_can_be_null=True,
            ),
        )

    def _unpacked(self, raw: IO[bytes]) -> IO[bytes]:
        return gzip.GzipFile(fileobj=raw) if self.file.is_compressed else raw  # type: ignore[return-value]

    def _trimmed(self, cells: pa.Table) -> pa.Table:
        """Drop blanks before cells; where nothing else is in one, it is empty."""
        for k, column in enumerate(cells.columns):
            if pc.any(pc.starts_with(column, " ")).as_py():
                column = pc.utf8_ltrim(column, characters=" ")
                is_empty = pc.is_in(column, value_set=pa.array(self._spelling.empty))
                column = pc.if_else(is_empty, pa.scalar(None, column.type), column)
                cells = cells.set_column(k, cells.column_names[k], column)
        return cells

    def _check_end(self, cells: pa.Table) -> None:
        """Refuse a quote that nothing closes, which takes all that follows."""
        for column in cells.columns:
            cell = column[-1].as_py() or ""
            if "\n" in cell:
                raise TableError(
                    f"{self.path} ends within a quoted cell, which begins with "
                    f"{cell[:20]!r}. Close the quote; the file may have been cut short."
                )

    def _read_loose(self, raw: IO[bytes], names: list[str]) -> Iterator[pa.Table]:
        """Read blanks between separator and quote too: slowly."""
        # Not closed here: the file is, by who opened it.
        text = self._text(self._unpacked(raw))
        rows = self._checked(self._rows(text))
        empty = {*self._spelling.empty}
        chosen = [self._header.index(name) for name in names]
        try:
            next(rows)
            while part := list(islice(rows, _ROWS)):
                cells = [[row[k] for row in part] for k in chosen]
                yield pa.table(
                    [
                        pa.array([None if cell in empty else cell for cell in column])
                        for column in cells
                    ],
                    schema=pa.schema([(name, pa.string()) for name in names]),
                )
        finally:
            text.detach()

    def _checked(self, rows: Any) -> Iterator[list[str]]:
        for row in filter(None, rows):
            if len(row) != len(self._header):
                self._refuse_count(len(row), rows.line_num)
            yield row

    # ----------------------------------------------------------------------- errors

    def _refuse(self, error: Exception) -> NoReturn:
        """Say what is wrong with a file in terms of the file."""
        text = " ".join(str(error).split())
        if isinstance(error, TableError):
            raise error
        if isinstance(error, UnicodeDecodeError) or "invalid UTF8" in text:
            self._refuse_encoding(error)
        if counts := _COUNT.search(text):
            number, _, saw = map(int, counts.groups())
            self._refuse_count(saw, self._line_of(number))
        problem = f"cannot be read: {text}"
        if isinstance(error, gzip.BadGzipFile):
            problem = "is not compressed by gzip."
        elif isinstance(error, (EOFError, zlib.error)):
            problem = "was cut short or is damaged."
        elif "straddling" in text:
            problem = (
                f"has a cell of more than {_BLOCK // 2**20} MB. Is there a quote that "
                "nothing closes?"
            )
        elif not isinstance(error, (pa.ArrowException, csv.Error, OSError)):
            raise error
        raise TableError(f"{self.path} {problem}") from None

    def _refuse_count(self, saw: int, line: int) -> NoReturn:
        raise TableError(
            f"{self.path} has {saw} cells in line {line}, and {len(self._header)} "
            "columns. Correct the line; if it is the last one, the file may have been "
            "cut short."
        ) from None

    def _line_of(self, number: int) -> int:
        """Return the line in which a row ends; cells may hold some, some are empty."""
        with self._open() as data, self._text(data) as text:
            rows = self._rows(text)
            for k, _ in enumerate(filter(None, rows), 1):
                if k == number:
                    break
            return int(rows.line_num)

    def _refuse_encoding(self, error: Exception) -> NoReturn:
        line, encoding = 1, self._spelling.encoding
        with self._open() as data:
            for cells in data:
                try:
                    cells.decode(encoding)
                except UnicodeDecodeError as found:
                    error = found
                    break
                line += 1
        where = f"line {line}"
        if isinstance(error, UnicodeDecodeError):
            where += f", byte 0x{error.object[error.start]:02x}"
        raise TableError(
            f"{self.path} is not {encoding} text ({where}). Say how it is encoded with "
            "`encoding`, for example latin-1, or convert it to UTF-8."
        ) from None


class _Watched(io.RawIOBase):
    """A stream as UTF-8 that knows its end, and whether some bytes were in it."""

    def __init__(self, data: IO[bytes], encoding: str, mark: bytes) -> None:
        self._data, self._mark = data, mark
        self._decode: Any = None
        if encoding != "utf-8":
            self._decode = codecs.getincrementaldecoder(encoding)().decode
        self.is_marked = False
        self.tail = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._data.read(size) if self._decode is None else self._decoded(size)
        if data:
            seam = self.tail + data[:8]
            self.is_marked |= self._mark in data or self._mark in seam
            self.tail = (self.tail + data[-8:])[-8:]
        return data

    def _decoded(self, size: int) -> bytes:
        while True:
            # A byte becomes four at most, and no more than size are wanted.
            read = self._data.read(max(size // 4, 1) if size > 0 else size)
            data = self._decode(read, final=not read).encode()
            if data or not read:
                return data
