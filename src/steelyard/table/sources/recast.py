"""Columns that are read as names, as numbers or as classes, whatever their type."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from steelyard.exceptions import ColumnError, TableError
from steelyard.table.sources.chunks import Part
from steelyard.table.sources.reader import Reader
from steelyard.table.sources.text import TextFiles, as_numbers
from steelyard.table.sources.types import is_number, is_text

# As many digits as a float64 can be trusted with.
_DIGITS = "{:.15g}".format


class Recast(Reader):
    """Another reader, with the types of columns that the command line asks for.

    Parameters
    ----------
    reader : Reader
        What reads the rows.
    text, numbers : sequences of str
        Columns whose cells are names, or numbers.
    target : str
        The column of classes: whole numbers stay numbers, booleans become text.
    """

    def __init__(
        self, reader: Reader, text: Sequence[str], numbers: Sequence[str], target: str
    ) -> None:
        self._reader, self._target = reader, target
        self._text, self._numbers = set(text), set(numbers)
        if isinstance(reader, TextFiles):
            # Before they are numbers, which would lose leading zeros.
            reader.keep_text(self._text)
        self.name, self.names = reader.name, reader.names
        self.n_rows, self.n_bytes = reader.n_rows, reader.n_bytes
        self.is_repeatable, self.is_cheap = reader.is_repeatable, reader.is_cheap
        self.needs_copy, self.reads_ahead = reader.needs_copy, reader.reads_ahead
        self.n_read = self.n_unlabelled = 0
        """Rows of the last reading, and those of them without a class."""

    def check_names(self, wanted: Sequence[str] | None) -> None:
        """Raise an error if a part lacks one of some columns, or differs in any."""
        self._reader.check_names(wanted)

    def types(self, names: Sequence[str]) -> dict[str, pa.DataType]:
        """Return the types of some columns."""
        return {
            name: self._type(name, kind)
            for name, kind in self._reader.types(names).items()
        }

    def _type(self, name: str, kind: pa.DataType) -> pa.DataType:
        held = kind.value_type if pt.is_dictionary(kind) else kind
        if _is_date(held):
            return pa.string()
        if name == self._target and not is_text(held) and not pt.is_null(held):
            is_class = is_number(kind)
            return pa.int64() if is_class else pa.string()
        if name in self._text and is_number(held):
            return pa.string()
        return pa.float64() if name in self._numbers and is_text(held) else kind

    def read(self, names: Sequence[str], most_rows: int) -> Iterator[Part]:
        """Yield some columns of all rows."""
        self.n_read = self.n_unlabelled = 0
        for part in self._reader.read(names, most_rows):
            cells = part.cells
            for k, name in enumerate(cells.column_names):
                column = self._column(name, cells.column(k), part)
                cells = cells.set_column(k, name, column)
            self.n_read += cells.num_rows
            if self._target in names:
                self.n_unlabelled += cells.column(self._target).null_count
            yield Part(cells, part.places, part.n_bytes)

    def _column(self, name: str, column: Any, part: Part) -> Any:
        kind = column.type
        if pt.is_null(kind):
            return column
        held = kind.value_type if pt.is_dictionary(kind) else kind
        if _is_date(held):
            column, held = _dates_as_text(column), pa.string()
        if name == self._target and not is_text(held):
            return _as_classes(column, name)
        if name in self._text and is_number(held):
            return _as_text(column)
        if name in self._numbers and not is_number(held):
            numbers = as_numbers(column.cast(pa.string())) if is_text(held) else None
            if numbers is None:
                raise _not_numbers(column, name, part)
            return numbers.cast(pa.float64())
        return column


def _is_date(kind: pa.DataType) -> bool:
    return bool(pt.is_date(kind) or pt.is_timestamp(kind))


def _dates_as_text(column: Any) -> Any:
    """Write dates as text files have them, without the time where it is midnight."""
    if pt.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    texts = column.cast(pa.string())
    texts = pc.replace_substring_regex(texts, r"(\.\d*?)0+(Z?)$", r"\1\2")
    texts = pc.replace_substring_regex(texts, r"\.(Z?)$", r"\1")
    return pc.replace_substring_regex(texts, " 00:00:00$", "")


def _as_classes(column: Any, name: str) -> Any:
    """Return whole numbers as such, and everything else as text."""
    kind = column.type
    if pt.is_dictionary(kind):
        return _as_text(column.cast(kind.value_type))
    if pt.is_boolean(kind):
        return pc.if_else(column, "True", "False")
    if not is_number(kind):
        return column
    if pt.is_floating(kind):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, kind), column)
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:
        raise TableError(
            f"The classes in column {name!r} are numbers with fractions. Choose a "
            "column of classes with `target`, or cut the numbers into classes first."
        ) from None


def _as_text(column: Any) -> Any:
    """Write numbers as text, whole ones without a point."""
    kind = column.type
    if pt.is_dictionary(kind):
        column = column.cast(kind.value_type)
    if pt.is_integer(column.type):
        return column.cast(pa.string())
    parts = column.cast(pa.float64()).dictionary_encode().chunks
    texts = []
    for part in parts:
        written = pa.array([_DIGITS(v) for v in part.dictionary.to_pylist()], "string")
        texts.append(pc.take(written, part.indices))
    return pa.chunked_array(texts, pa.string())


def _not_numbers(column: Any, name: str, part: Part) -> ColumnError:
    cells = enumerate(column.to_pylist())
    wrong = (k for k, cell in cells if cell is not None and not _is_number(cell))
    row = next(wrong, 0)
    place = part.cut(row, row + 1).places[0][1]
    return ColumnError(
        f"Column {name!r} of {place.name} must hold numbers, but row "
        f"{place.row + 1:,} has {str(column[row].as_py())!r}. Correct it, leave it "
        "empty, or name it in `missing_values`."
    )


def _is_number(cell: Any) -> bool:
    return as_numbers(pa.chunked_array([[str(cell)]])) is not None
