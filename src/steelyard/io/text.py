"""Text files: one set of rules, whatever their size and however many there are.

A column is numeric if its cells are numbers, besides missing ones and a few others;
otherwise text. That, and the decimal mark, is decided by all cells of all files: the
first reading counts them, and if it has yielded rows that must be read otherwise, they
are read once more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from steelyard.io.chunks import Chunk, Place
from steelyard.io.columnar import types_of_keys, with_keys
from steelyard.io.convert import (
    as_decided,
    count_numbers,
    count_texts,
    plain_numbers,
)
from steelyard.io.dialect import HEAD, USUAL, decimal_in, decimal_of, find_dialect
from steelyard.io.lines import LARGEST_CELL, CsvLines, WatchedStream
from steelyard.io.numbers import ColumnTally, column_reading
from steelyard.io.paths import File
from steelyard.io.reader import Reader, TypesChangedError

_ROWS = 2**15


class TextFiles(Reader):
    """CSV files, whose types of columns are decided when all cells were read."""

    is_cheap = False
    needs_copy = True
    reads_ahead = True

    def __init__(
        self,
        files: Sequence[File],
        asked: Mapping[str, Any],
        block_bytes: int = LARGEST_CELL,
        like: Mapping[str, Any] = {},
    ) -> None:
        usual = USUAL[files[0].format]
        self.dialect = find_dialect(files[0].head(HEAD), asked, usual, like)
        self._like = like
        self.asked, self._usual, self._block_bytes = asked, usual, block_bytes
        is_guess = asked.get("encoding") is None
        self._files = [CsvLines(file, self.dialect, is_guess) for file in files]
        self.columns = [(lines.file.name, lines.names) for lines in self._files]
        first = self._files[0]
        self.keys = types_of_keys(files, first.names)
        self.name = files[0].name if len(files) == 1 else f"{len(files)} files"
        self.names = [*first.names, *self.keys]
        self.n_bytes = sum(file.size for file in files)
        self.as_text: set[str] = set()
        """Columns that are kept as written."""
        self.decided: dict[str, ColumnTally] = {}
        """Counts of the other columns, once all cells were read."""
        self.is_settled = asked.get("decimal") is not None
        """Whether the decimal mark is known, and not that of the first lines."""

    @property
    def notes(self) -> list[str]:  # type: ignore[override]
        """What was detected and left out, a sentence each."""
        first = self._files[0].dialect
        dialect = replace(self.dialect, encoding=first.encoding)
        words = dialect.in_words(self.asked, self._usual, self._like)
        line = ", ".join(filter(None, (words, self._thousands())))
        notes = [f"{self.name}: {line}"] if line else []
        for lines in self._files[1:]:
            if lines.dialect.encoding != first.encoding:
                notes.append(f"{lines.file.name}: encoding {lines.dialect.encoding}")
        notes += [note for lines in self._files for note in lines.left_out()]
        for name, tally in self.decided.items():
            notes += tally.notes(name, self.dialect.decimal, self.date_order(name))
            if self._may_be_thousands(tally):
                notes.append(
                    f"{name}: all points have three digits behind them. They are read "
                    "as decimal points; if they mark thousands, set thousands '.'"
                )
        return notes

    def _thousands(self) -> str:
        """Describe the separators of thousands in numbers."""
        numbers = [
            t.tally for t in self.decided.values() if t.has_text and t.is_numeric()
        ]
        marks = {m for tally in numbers for m in tally.forms if m not in ("()", "D")}
        is_asked = self.asked.get("thousands") is not None
        shown = " or ".join(map(repr, sorted(marks)))
        return f"thousands marked by {shown}" if marks and not is_asked else ""

    def _may_be_thousands(self, tally: ColumnTally) -> bool:
        """Whether points that are read as decimal points may separate thousands."""
        if tally.are_codes or tally.has_text or tally.are_whole:
            return False
        is_open = self.asked.get("decimal") is None and "decimal" not in self._like
        is_german = self.dialect.separator == ";" and self.dialect.decimal == "."
        votes = any(t.marks.certain for t in self.decided.values())
        return is_open and is_german and not votes

    def date_order(self, name: str) -> str | None:
        """Return the order of days and months of a column of dates, else None."""
        if (tally := self.decided.get(name)) is None:
            return None
        usual = "dmy" if self.dialect.separator == ";" else ""
        return tally.dates.order(self._like.get("dates", {}).get(name, usual))

    @property
    def reading(self) -> dict[str, Any]:  # type: ignore[override]
        """How the files are read, for files to predict."""
        orders = {name: self.date_order(name) for name in self.decided}
        columns = column_reading(self.decided, orders, self.dialect.decimal)
        return {**self.dialect.reading, **columns}

    # ------------------------------------------------------------------------- reading

    def read(self, names: Sequence[str], max_rows: int) -> Iterator[Chunk]:
        """Yield numbers and text, as decided by the cells so far.

        If a later cell refutes that, the rest is still counted, so that one restart is
        enough.
        """
        stored = [name for name in names if name not in self.keys]
        counting = _Counting(self, stored)
        for lines in self._files:
            lines.file.check()
            row = 0
            for block, n_bytes in self._blocks(lines, stored):
                cells = counting.converted(block)
                if counting.is_valid:
                    cells = with_keys(cells, lines.file, self.keys, names)
                    place = Place(lines.file.name, None, row)
                    yield Chunk(cells.select(list(names)), [(0, place)], n_bytes)
                row += block.num_rows
            # A file rewritten meanwhile would be read as a mixture.
            lines.file.check()
        counting.finish()

    def _blocks(
        self, lines: CsvLines, names: list[str]
    ) -> Iterator[tuple[pa.Table, int]]:
        """Yield some columns as text, empty cells missing, and bytes of the file."""
        # Blanks as separators may be several, and pyarrow knows no comments.
        is_regular = not lines.dialect.comment and lines.dialect.separator != " "
        is_regular &= len(lines.header) > 1 and not lines.file.is_read_once
        n_rows = 0
        while True:
            read = self._by_pyarrow if is_regular else self._by_line
            done = 0
            with lines.file.open() as raw:
                try:
                    for block in read(lines, raw, names, n_rows):
                        position = raw.tell() if raw.seekable() else 0
                        yield self._trimmed(block, lines), max(position - done, 0)
                        n_rows, done = n_rows + block.num_rows, position
                    return
                except GeneratorExit:
                    raise
                except _IrregularError:
                    # What was yielded stays; what follows is read line by line.
                    is_regular = False
                except UnicodeDecodeError as error:
                    if not lines.change_encoding():
                        lines.refuse(error)
                except Exception as error:
                    lines.refuse(error)

    def _by_pyarrow(
        self, lines: CsvLines, raw: IO[bytes], names: list[str], skipped: int
    ) -> Iterator[pa.Table]:
        """Read by pyarrow, which allows no blanks between separator and quote."""
        dialect = lines.dialect
        mark = f"{dialect.separator} {dialect.quote}".encode()
        stream = WatchedStream(lines.file.unpacked(raw), dialect.encoding, mark)
        labels = [name or f"\0{k}" for k, name in enumerate(lines.header)]
        last: Any = None
        try:
            for batch in self._open_csv(stream, lines, labels, names):
                if stream.is_marked:
                    raise _IrregularError
                block = pa.Table.from_batches([batch]).slice(skipped)
                skipped = max(skipped - batch.num_rows, 0)
                last = block.slice(block.num_rows - 1) if block.num_rows else last
                yield block
        except pa.ArrowInvalid as error:
            if "invalid UTF8" in str(error):
                # Python's error has the bytes that cannot be decoded.
                with lines.file.open() as again:
                    text = lines.text(lines.file.unpacked(again))
                    while text.read(2**20):
                        pass
            if "straddling" in str(error) and self._block_bytes == LARGEST_CELL:
                raise
            raise _IrregularError from None
        if last is not None:
            lines.check_end([column[0].as_py() or "" for column in last.columns])

    def _open_csv(
        self,
        stream: WatchedStream,
        lines: CsvLines,
        labels: list[str],
        names: list[str],
    ) -> Any:
        dialect = lines.dialect
        return pyarrow.csv.open_csv(
            pa.PythonFile(stream, "r"),
            read_options=pyarrow.csv.ReadOptions(
                use_threads=False,
                column_names=labels,
                skip_rows=lines.n_above,
                skip_rows_after_names=int(not dialect.no_header),
                block_size=self._block_bytes,
            ),
            parse_options=pyarrow.csv.ParseOptions(
                delimiter=dialect.separator,
                quote_char=dialect.quote,
                newlines_in_values=True,
            ),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(labels, pa.string()),
                include_columns=names,
                null_values=list(dialect.empty),
                strings_can_be_null=True,
            ),
        )

    def _by_line(
        self, lines: CsvLines, raw: IO[bytes], names: list[str], skipped: int
    ) -> Iterator[pa.Table]:
        """Read irregular lines, slowly."""
        chosen = [lines.header.index(name) for name in names]
        schema = pa.schema([(name, pa.string()) for name in names])
        rows = lines.rows(raw, skipped)
        step = min(_ROWS, max(self._block_bytes // (16 * len(lines.header)), 1))
        while some_rows := list(islice(rows, step)):
            cells = [
                pa.array([row[k] for row in some_rows], pa.string()) for k in chosen
            ]
            yield pa.table(cells, schema=schema)

    def _trimmed(self, cells: pa.Table, lines: CsvLines) -> pa.Table:
        """Drop blanks around cells; cells of blanks alone are missing."""
        empty = pa.array(lines.dialect.empty)
        columns = []
        for column in cells.columns:
            column = pc.utf8_trim_whitespace(column)
            is_empty = pc.is_in(column, value_set=empty)
            if pc.any(is_empty).as_py():
                column = pc.if_else(is_empty, pa.scalar(None, column.type), column)
            columns.append(column)
        return pa.table(columns, names=cells.column_names)


class _IrregularError(Exception):
    """Lines that pyarrow misreads."""


class _Counting:
    """One reading of all files: converts blocks and counts cells of columns."""

    def __init__(self, source: TextFiles, names: Sequence[str]) -> None:
        self.source = source
        dialect = source.dialect
        others = "." if source.asked.get("decimal") == "." else ".,"
        self.tallies = {
            name: ColumnTally(
                decimal_in(name, dialect, source._like), dialect.thousands, others
            )
            for name in names
            if name not in source.as_text
        }
        self.is_valid = True
        """Whether the rows yielded agree with all cells so far."""

    def converted(self, block: pa.Table) -> pa.Table:
        """Return a block with its columns converted."""
        columns = [
            self._column(name, column)
            for name, column in zip(block.column_names, block.columns, strict=True)
        ]
        return pa.table(columns, names=block.column_names)

    def _column(self, name: str, column: Any) -> Any:
        if name not in self.tallies:
            return column
        if column.null_count == len(column):
            return pa.chunked_array([pa.nulls(len(column))])
        if name in self.source.decided:
            order = self.source.date_order(name)
            return as_decided(column, self.source.decided[name], order)
        tally = self.tallies[name]
        if not tally.has_text:
            numbers = plain_numbers(column, tally.decimal)
            if numbers is not None:
                count_numbers(tally, column, numbers)
                # Large ones were yielded as whole numbers, and are no floats.
                self.is_valid &= tally.are_whole or not tally.is_large
                return numbers
            # Numbers of earlier blocks were yielded as such.
            self.is_valid &= not tally.marks.n_known
        count_texts(tally, column)
        return column

    def finish(self) -> None:
        """Decide the kinds of columns; raise an error if rows must be read again."""
        decided, dialect = self.source.decided, self.source.dialect
        new = {name: t for name, t in self.tallies.items() if name not in decided}
        if not decided and not self.source.is_settled:
            self.source.is_settled = True
            marks = [t.marks for t in new.values() if not t.are_names]
            # The first lines were read as the file of a model if they left it open.
            of_model = dialect.decimal if "decimal" in self.source._like else None
            decimal = decimal_of(marks, dialect.separator, dialect.decimal, of_model)
            if decimal != dialect.decimal:
                self.source.dialect = replace(dialect, decimal=decimal)
                raise TypesChangedError
        decided.update(new)
        is_other = any(
            (t.has_text and t.is_numeric())
            or (not t.has_text and t.are_codes)
            or self.source.date_order(name) is not None
            for name, t in new.items()
        )
        if is_other or not self.is_valid:
            raise TypesChangedError
