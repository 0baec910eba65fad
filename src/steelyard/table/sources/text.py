"""CSV files, by the rules of the command line: the same file gives the same columns.

A column holds numbers if all its cells do, besides empty ones and words for a missing
number; otherwise it holds text, and those words are values.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from steelyard._common.text import MISSING_NUMBERS
from steelyard.exceptions import ColumnError, ParameterError
from steelyard.table.sources.chunks import Part, Place
from steelyard.table.sources.columnar import types_of_keys, with_keys
from steelyard.table.sources.lines import Lines, Spelling
from steelyard.table.sources.paths import File, listed
from steelyard.table.sources.reader import Reader, TypesChangedError

_WORDS = pa.array(MISSING_NUMBERS)


class TextFiles(Reader):
    """CSV files, whose types of columns are known when all cells were seen."""

    is_cheap = False
    needs_copy = True
    reads_ahead = True

    def __init__(
        self,
        files: Sequence[File],
        separator: str = ",",
        missing_values: tuple[str, ...] = (),
        encoding: str = "utf-8",
    ) -> None:
        spelling = Spelling(_separator(separator), _encoding(encoding), missing_values)
        self._files = [Lines(file, spelling) for file in files]
        first = self._files[0]
        self._keys = types_of_keys(files, first.names)
        self.name = files[0].path if len(files) == 1 else f"{len(files)} files"
        self.names = [*first.names, *self._keys]
        self.n_bytes = sum(file.size for file in files)
        self.notes = [note for lines in self._files for note in lines.notes]
        self._text: set[str] = set()
        """Columns with a cell that is not a number."""
        self._numbers: set[str] = set()
        """Columns with a number."""

    def check_names(self, wanted: Sequence[str] | None) -> None:
        """Raise an error if a file lacks a column, or has one more."""
        first = self._files[0]
        expected = set(first.names if wanted is None else wanted) - {*self._keys}
        for other in self._files[1:]:
            if lacking := expected - set(other.names):
                raise ColumnError(
                    f"{other.path} has no column {min(lacking)!r} that {first.path} "
                    f"has. Its columns: {listed(other.names)}."
                )
            extra = set(other.names) - expected - {*self._keys}
            if wanted is None and extra:
                raise ColumnError(
                    f"{other.path} has a column {min(extra)!r} that {first.path} has "
                    "not. Say with `columns` which to read."
                )

    def keep_text(self, names: Iterable[str]) -> None:
        """Read some columns as they are written, also where all cells are numbers."""
        self._text.update(names)

    def types(self, names: Sequence[str]) -> dict[str, pa.DataType]:
        """Return nothing that would last: types are those of the copy."""
        return dict.fromkeys(names, pa.null())

    def read(self, names: Sequence[str], most_rows: int) -> Iterator[Part]:
        """Yield numbers and text, as far as cells up to there tell.

        When a later cell tells otherwise the rest is looked at too, so that there is
        one restart whatever else is found.
        """
        stored = [name for name in names if name not in self._keys]
        words: set[str] = set()
        is_valid = True
        for lines in self._files:
            lines.file.check()
            row = 0
            for block, n_bytes in lines.blocks(stored):
                cells, agrees = self._convert(block, words)
                is_valid = is_valid and agrees
                if is_valid:
                    cells = with_keys(cells, lines.file, self._keys, names)
                    place = Place(lines.path, None, row)
                    yield Part(cells.select(list(names)), [(0, place)], n_bytes)
                row += block.num_rows
        if not is_valid:
            raise TypesChangedError

    def _convert(self, block: pa.Table, words: set[str]) -> tuple[pa.Table, bool]:
        """Return a block with its numbers, and whether blocks before agree with it.

        `words` collects columns that were taken for text because their cells were words
        for a missing number only.
        """
        columns, agrees = [], True
        for name in block.column_names:
            column = block.column(name)
            numbers = None if name in self._text else as_numbers(column)
            if numbers is None:
                agrees &= name in self._text or name not in self._numbers
                self._text.add(name)
            elif numbers.null_count < len(numbers):
                agrees &= name not in words
                self._numbers.add(name)
            elif name not in self._numbers and column.null_count < len(column):
                words.add(name)
                numbers = None
            columns.append(column if numbers is None else numbers)
        return pa.table(columns, names=block.column_names), agrees


def as_numbers(column: Any) -> Any:
    """Return cells as whole numbers or floats, None if one of them is text."""
    if column.null_count == len(column):
        return pa.chunked_array([pa.nulls(len(column))])
    numbers = _cast(column)
    if numbers is None:
        # Blanks after a number, and words for a missing one.
        trimmed = pc.utf8_rtrim_whitespace(column)
        is_word = pc.is_in(trimmed, value_set=_WORDS)
        trimmed = pc.if_else(is_word, pa.scalar(None, trimmed.type), trimmed)
        numbers = _cast(pc.replace_substring_regex(trimmed, r"^\+", ""))
    return numbers


def _cast(column: Any) -> Any:
    for kind in (pa.int64(), pa.float64()):
        try:
            numbers = column.cast(kind)
        except pa.ArrowInvalid:
            continue
        return None if kind == pa.int64() and _has_hex(column) else numbers
    return None


def _has_hex(column: Any) -> bool:
    """Whether a cell may be written as 0x10, which is a number to pyarrow alone."""
    for chunk in column.chunks:
        letters = chunk.buffers()[2]
        if letters is not None and (np.frombuffer(letters, np.uint8) | 32 == 120).any():
            return True
    return False


def _separator(separator: str) -> str:
    separator = {"\\t": "\t", "tab": "\t"}.get(separator, separator)
    if not isinstance(separator, str) or len(separator) != 1:
        raise ParameterError(f"`separator` must be one character. Got {separator!r}.")
    return separator


def _encoding(encoding: str) -> str:
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        raise ParameterError(f"There is no encoding {encoding!r}.") from None
