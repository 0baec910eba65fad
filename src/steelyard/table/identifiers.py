"""Whether a column looks like an identifier, and why."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from steelyard.table.ranges import NumberRange

if TYPE_CHECKING:
    from steelyard.table.learning import ColumnSummary

# A column looks like an identifier if nearly all its values differ; below this many
# rows that is what an ordinary column may look like.
_MIN_ROWS = 20
_MIN_SHARE = 0.95
# Whole numbers of a column with such a name need not all differ, nor run on.
_MIN_NAMED_SHARE = 0.9
ID_NAME = re.compile(
    r"(?:^|[^a-z])(?:id|identifier)(?:$|[^a-z])|(?-i:[a-z](?:ID|Id)$)", re.IGNORECASE
)

# Whole numbers that are all different are running numbers if few between the ends are
# left out: a fold has those of most rows.
_MANY_ROWS, _MAX_GAPS, _MAX_GAPS_OF_FEW = 100, 2.0, 1.3
# Of few rows, numbers between these may be steps of a measurement, and these be years.
_STEPS, _YEARS = (2, 999), (1800, 2100)
# Numbers this long that are all different are names, if they are no moments since 1970
# in milli-, micro- or nanoseconds.
_LONG = 1e11
_MOMENTS = (9e11, 2.3e12)
_UNITS = (1.0, 1e3, 1e6)


def suspicion(
    column: ColumnSummary, where: NumberRange | None, n_rows: int
) -> str | None:
    """Return what makes a column look like an identifier, None for other columns."""
    if n_rows < _MIN_ROWS:
        return None
    if where is not None:
        how = column.numbering(where, n_rows)
        if how is None and ID_NAME.search(str(column.name)):
            n = column.n_whole_numbers()
            if n >= _MIN_NAMED_SHARE * n_rows:
                how = f"its name, and {n} different whole numbers"
        return how
    if not column.is_category or column.cells not in ("text", "numbers"):
        return None
    held = column.held
    if column.cells == "text":
        is_name = len(held) >= _MIN_SHARE * n_rows
        return f"{len(held)} different values" if is_name else None
    is_name = column.is_integer and len(held) == n_rows
    return numbering(NumberRange(min(held), max(held)), n_rows) if is_name else None


def numbering(where: NumberRange, n_rows: int) -> str | None:
    """Return how whole numbers in a range number rows, if all are different.

    >>> numbering(NumberRange(1, 150), 120), numbering(NumberRange(1, 500), 120)
    ('a running number', None)
    >>> numbering(NumberRange(1980, 2020), 41)  # years
    >>> numbering(NumberRange(4000123412340000, 4999123412340000), 50)
    'whole numbers of 16 digits, all different'
    """
    low, high, is_few = where.low, where.high, n_rows < _MANY_ROWS
    if not float(low).is_integer() or not float(high).is_integer():
        return None
    if high - low < (_MAX_GAPS_OF_FEW if is_few else _MAX_GAPS) * n_rows:
        is_measured = any(a <= low and high <= b for a, b in (_STEPS, _YEARS))
        return None if is_few and is_measured else "a running number"
    are_moments = any(
        _MOMENTS[0] <= low / unit and high / unit <= _MOMENTS[1] for unit in _UNITS
    )
    if low < _LONG or are_moments:
        return None
    return f"whole numbers of {len(str(int(high)))} digits, all different"
