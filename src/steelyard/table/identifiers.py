"""Columns that look like identifiers, and the warning they draw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from steelyard._common.checks import warn_user
from steelyard.exceptions import IdentifierWarning
from steelyard.table.columns import Column

# A column looks like an identifier when nearly all its values differ; below this many
# rows that is what an ordinary column may look like.
MIN_ROWS = 20
_MIN_SHARE = 0.95

RUNNING_NUMBER = "a running number"
"""What makes a column of whole numbers look like an identifier."""


class _Labelled(Protocol):
    @property
    def label(self) -> str: ...


class _Described(Protocol):
    """A table, or a summary of one."""

    @property
    def columns(self) -> Sequence[_Labelled]: ...

    @property
    def n_rows(self) -> int: ...


def suspicion(column: Column, n_rows: int, n_values: int | None) -> str | None:
    """Say what makes a column look like an identifier, None for other columns.

    ``n_values`` is the number of values that rows hold, None where not known.
    """
    if column.cells == "text" and n_values is not None:
        return too_many_values(n_rows, n_values)
    if n_rows < MIN_ROWS or n_values not in (None, n_rows):
        return None
    if column.is_integer and _is_running_number(column.numbers()):
        return RUNNING_NUMBER
    return None


def too_many_values(n_rows: int, n_values: int) -> str | None:
    """Say that nearly all cells of a column of text differ, if they do."""
    if n_rows < MIN_ROWS or n_values < _MIN_SHARE * n_rows:
        return None
    return f"{n_values} different values"


def warn_identifiers(table: _Described, suspects: list[str | None]) -> None:
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
