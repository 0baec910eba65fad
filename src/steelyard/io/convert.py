"""Columns of text converted to numbers and dates, with counts for the decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from steelyard.io.dates import read_date
from steelyard.io.numbers import ColumnTally, read_numbers

# Point and comma as decimal marks that numbers cannot do without: see ``dialect``.
_CERTAIN_DECIMAL = {
    mark: rf"^[-+]?(\d*{m}(\d\d?|\d{{4,}})|0{m}\d+|\d{{4,}}{m}\d+)$"
    for mark, m in ((".", r"\."), (",", ","))
}


def plain_numbers(column: Any, decimal: str = ".") -> Any:
    """Return cells as whole numbers or floats, None if a cell is neither."""
    numbers = _cast(column, pa.int64())
    if numbers is not None:
        return None if _has_hex(column) else numbers
    if decimal == ",":
        if pc.any(pc.match_substring(column, ".")).as_py():
            return None
        column = pc.replace_substring(column, ",", ".")
    numbers = _cast(column, pa.float64())
    if numbers is None:
        # A sign before a number.
        plain = pc.replace_substring_regex(column, r"^\+", "")
        numbers = _cast(plain, pa.int64())
        numbers = _cast(plain, pa.float64()) if numbers is None else numbers
    return numbers


def _cast(column: Any, kind: pa.DataType) -> Any:
    try:
        return column.cast(kind)
    except pa.ArrowInvalid:
        return None


def _has_hex(column: Any) -> bool:
    """Whether a cell may be written as 0x10, which is a number to pyarrow alone."""
    for chunk in column.chunks:
        letters = chunk.buffers()[2]
        if letters is not None and (np.frombuffer(letters, np.uint8) | 32 == 120).any():
            return True
    return False


def count_numbers(tally: ColumnTally, column: Any, numbers: Any) -> None:
    """Count cells that are all plain numbers."""
    are_whole = pa.types.is_integer(numbers.type)
    tally.dates.is_possible = False
    if tally.width != 0:
        _count_digits(tally, column, numbers)
    if are_whole and not tally.is_large:
        ends = pc.min_max(numbers).as_py()
        tally.is_large = max(-ends["min"], ends["max"]) >= 2**53
    if tally.is_large:
        # Those that are one number beside text are one here as well.
        numbers = numbers.cast(pa.float64(), safe=False)
    some = numbers.drop_null().unique().slice(0, 16).to_pylist()
    tally.add_numbers(len(numbers) - numbers.null_count, some, are_whole)
    for mark, pattern in _CERTAIN_DECIMAL.items():
        if not are_whole and mark == tally.decimal and mark not in tally.marks.certain:
            if pc.any(pc.match_substring_regex(column, pattern)).as_py():
                tally.marks.certain.add(mark)


def _count_digits(tally: ColumnTally, column: Any, numbers: Any) -> None:
    """Note how many digits cells have, and whether some begin with 0."""
    ends = pc.min_max(pc.binary_length(column)).as_py()
    width = ends["min"] if ends["min"] == ends["max"] else 0
    # As many digits as cells have letters, or a zero comes first.
    is_short = bool(width) and pc.min(numbers).as_py() < 10 ** (width - 1)
    if is_short and not pc.all(pc.ascii_is_decimal(column.drop_null())).as_py():
        width = 0
    tally.add_width(width, is_short)


def count_texts(tally: ColumnTally, column: Any) -> None:
    """Count cells, some of which are no plain numbers."""
    if tally.are_names:
        return
    texts = column.drop_null()
    first = texts.slice(0, 200).to_pylist()
    counts = {e["values"].as_py(): e["counts"].as_py() for e in texts.value_counts()}
    tally.add_texts(counts, first)


def as_decided(column: Any, tally: ColumnTally, order: str | None) -> Any:
    """Convert a column as was decided after all cells were counted."""
    if tally.are_codes:
        return column
    if order is not None:
        return dates_of(column, order, tally.dates.has_time)[0]
    if not tally.has_text:
        numbers = plain_numbers(column, tally.decimal)
        return numbers if tally.are_whole else numbers.cast(pa.float64(), safe=False)
    if not tally.is_numeric():
        return column
    return numbers_of(column, tally.mark, tally.thousands, tally.tally.unit)[0]


def numbers_of(
    column: Any, decimal: str, thousands: str, unit: str = ""
) -> tuple[Any, Counter[str]]:
    """Return a number for each text, missing if it is none, and the other texts."""

    def read(texts: list[str]) -> list[float | None]:
        numbers = read_numbers(texts, decimal, thousands, unit)
        return [numbers[text].value if text in numbers else None for text in texts]

    return _converted(column, read, pa.float64())


def dates_of(
    column: Any, order: str, has_time: bool = True
) -> tuple[Any, Counter[str]]:
    """Return a date for each text, missing if it is none, and the other texts."""

    def read(texts: list[str]) -> list[Any]:
        return [read_date(text, order) for text in texts]

    kind = pa.timestamp("us") if has_time else pa.date32()
    return _converted(column, read, kind)


def _converted(
    column: Any, read: Callable[[list[str]], list[Any]], kind: pa.DataType
) -> tuple[Any, Counter[str]]:
    """Convert distinct texts once; return cells, and texts that gave nothing."""
    coded = column.combine_chunks().dictionary_encode()
    values = pa.array(read(coded.dictionary.to_pylist()), kind)
    cells = pc.take(values, coded.indices)
    others: Counter[str] = Counter()
    if values.null_count:
        for e in column.filter(pc.is_null(cells)).drop_null().value_counts():
            others[e["values"].as_py()] = e["counts"].as_py()
    return pa.chunked_array([cells]), others
