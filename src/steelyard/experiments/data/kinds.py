"""Kinds of columns: numbers, text or booleans, as cells look or as a model expects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard._common.text import MISSING_NUMBERS
from steelyard.exceptions import ColumnError

if TYPE_CHECKING:
    import pandas

_TRUTH = {"true": True, "1": True, "false": False, "0": False}


def numbers_if_all_are(column: pandas.Series) -> pandas.Series:
    """Return numbers where text holds nothing else, besides words for a missing one."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column):
        return column
    cells = _known(column)
    # The first cells tell text from numbers in nearly all columns.
    for part in (cells.head(20), cells):
        numbers = pd.to_numeric(part, errors="coerce")
        if not len(part) or numbers.isna().any():
            return column
    return numbers.reindex(column.index)


def conform(
    column: pandas.Series, name: str, cells: str, where: str, seen: int
) -> pandas.Series:
    """Turn a column into numbers, booleans or text, as a model expects its cells.

    Messages name the file as ``where`` and count its rows after the ``seen`` ones.
    """
    if cells == "numbers":
        return as_numbers(column, name, where, seen)
    if cells != "booleans" or column.dtype == bool:
        return as_text(column)
    texts = as_text(column).map(lambda cell: str(cell).lower(), na_action="ignore")
    booleans = texts.astype(object).map(_TRUTH)
    wrong = column[booleans.isna() & column.notna()]
    if len(wrong):
        problem = f"must hold true or false, not {str(wrong.iloc[0])!r}."
        raise ColumnError(f"Column {name!r} of {where} {problem}")
    return booleans.astype(object)


def as_numbers(
    column: pandas.Series, name: str, where: str, seen: int
) -> pandas.Series:
    """Turn text into numbers; refuse a cell that is not a number."""
    import pandas as pd

    if column.dtype != bool and pd.api.types.is_numeric_dtype(column):
        return column
    if column.dtype.kind in "mM" or isinstance(column.dtype, pd.ArrowDtype):
        # The library has a message for dates.
        return column
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object)
    texts = _known(column).map(str)
    numbers = pd.to_numeric(texts, errors="coerce")
    wrong = texts[numbers.isna()]
    if len(wrong):
        row = seen + column.index.get_loc(wrong.index[0]) + 1
        raise ColumnError(
            f"Column {name!r} of {where} must hold numbers, but row {row} has "
            f"{wrong.iloc[0]!r}. Correct it, leave it empty, or name it in "
            "`missing_values`."
        )
    return numbers.reindex(column.index).astype(float)


def _known(column: pandas.Series) -> pandas.Series:
    """Return the cells that are not missing, nor a word for a missing number."""
    return column[column.notna() & ~column.isin(MISSING_NUMBERS)]


def as_text(column: pandas.Series) -> pandas.Series:
    """Write numbers as text, whole ones without a point; keep everything else."""
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        if not pd.api.types.is_numeric_dtype(column.cat.categories):
            return column
        column = column.astype(column.cat.categories.dtype)
    if column.dtype == bool or not pd.api.types.is_numeric_dtype(column):
        return column
    write = str if pd.api.types.is_integer_dtype(column) else "{:.15g}".format
    return column.map(write, na_action="ignore").astype(object)
