"""Columns that look like identifiers, and the warning they draw."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from steelyard._common.checks import warn_user
from steelyard.exceptions import IdentifierWarning
from steelyard.table.columns import Column
from steelyard.table.frames import Table

# A column looks like an identifier when nearly all its values differ; below this many
# rows that is what an ordinary column may look like.
_MIN_ROWS = 20
_MIN_SHARE = 0.95


def suspicion(column: Column, n_rows: int, n_values: int | None) -> str | None:
    """Say what makes a column look like an identifier, None for other columns.

    ``n_values`` is the number of values that rows hold, None where not known.
    """
    if n_rows < _MIN_ROWS:
        return None
    if column.cells == "text" and n_values is not None:
        if n_values >= _MIN_SHARE * n_rows:
            return f"{n_values} different values"
    elif n_values is None or n_values == n_rows:
        if column.is_integer and _is_running_number(column.numbers()):
            return "a running number"
    return None


def warn_identifiers(table: Table, suspects: list[str | None]) -> None:
    """Warn of every column that looks like an identifier."""
    for column, what in zip(table.columns, suspects, strict=True):
        if what is not None:
            warn_user(
                f"{column.label} looks like an identifier: {what} in {table.n_rows} "
                "rows. It tells nothing about new rows; consider leaving it out.",
                IdentifierWarning,
            )


def _is_running_number(numbers: NDArray[np.float64]) -> bool:
    """Whether the numbers are a, a + 1, a + 2, … in some order."""
    spread = numbers.max() - numbers.min()
    return bool(spread == numbers.size - 1 and np.unique(numbers).size == numbers.size)
