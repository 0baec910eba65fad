"""Kinds of columns: numbers, text or booleans, as cells look or as a model expects."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from steelyard.exceptions import ColumnError
from steelyard.experiments.data.numbers import Parsed, is_blank, parse

if TYPE_CHECKING:
    import pandas

    from steelyard.experiments.data.source import Source

_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[ T].*)?|\d\d?[./-]\d\d?[./-]\d{4}(?: .*)?")
_TRUTH = {"true": True, "1": True, "false": False, "0": False}


def numbers_if_nearly_all_are(
    column: pandas.Series, name: str, source: Source
) -> pandas.Series:
    """Return numbers where text holds them, except for a few cells; say so."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column):
        return column
    known = column.dropna()
    # The first cells tell text from numbers in nearly all columns.
    head = _parse(known.head(200), source)
    if 2 * head.values.notna().sum() < head.n_known or not head.n_known:
        return column
    parsed = _parse(column, source)
    if not parsed.is_numeric():
        return column
    source.notes.extend(parsed.notes(name))
    return parsed.values


def dates_as_text(column: pandas.Series, name: str, source: Source) -> pandas.Series:
    """Write dates as text files have them, and say that dates are taken as names.

    A date is written as such where a time of day is that of midnight.
    """
    texts = _without_dates(column)
    known = texts.dropna().head(50)
    if len(known) and not _is_number_or_category(texts):
        if all(isinstance(text, str) and _DATE.fullmatch(text) for text in known):
            source.notes.append(
                f"{name}: dates, taken as names, such as {known.iloc[0]!r}. Numbers "
                "say more, such as days since a date; or leave the column out"
            )
    return texts


def _without_dates(column: pandas.Series) -> pandas.Series:
    from pandas.api.types import infer_dtype

    is_date = column.dtype.kind == "M" or (
        column.dtype == object and infer_dtype(column) in ("date", "datetime")
    )
    if not is_date:
        return column
    texts = column.map(lambda cell: str(cell).removesuffix(" 00:00:00"), "ignore")
    return texts.astype(object).where(column.notna(), None)


def _is_number_or_category(column: pandas.Series) -> bool:
    from pandas import CategoricalDtype
    from pandas.api.types import is_numeric_dtype

    return is_numeric_dtype(column) or isinstance(column.dtype, CategoricalDtype)


def conform(
    column: pandas.Series,
    name: str,
    cells: str,
    source: Source,
    seen: int,
    wrong: Counter[str] | None = None,
) -> pandas.Series:
    """Turn a column into numbers, booleans or text, as a model expects its cells.

    Messages count rows after the ``seen`` ones. A few cells that are no numbers are
    missing, and counted in ``wrong``.
    """
    column = _without_dates(column)
    if cells == "numbers":
        return as_numbers(column, name, source, seen, wrong)
    if cells == "text" and wrong is not None:
        # The library knows which category a number is.
        return column
    if cells != "booleans" or column.dtype == bool:
        return as_text(column)
    texts = as_text(column).map(lambda cell: str(cell).lower(), na_action="ignore")
    booleans = texts.astype(object).map(_TRUTH)
    bad = column[booleans.isna() & column.notna()]
    if len(bad):
        problem = f"must hold true or false, not {str(bad.iloc[0])!r}."
        raise ColumnError(f"Column {name!r} of {source.name} {problem}")
    return booleans.astype(object)


def as_numbers(
    column: pandas.Series,
    name: str,
    source: Source,
    seen: int,
    wrong: Counter[str] | None = None,
) -> pandas.Series:
    """Turn text into numbers; refuse a cell that is not one, unless they are counted.

    Where half of the cells are no numbers they are refused in any case.
    """
    import pandas as pd

    if column.dtype != bool and pd.api.types.is_numeric_dtype(column):
        return column
    if column.dtype.kind == "m" or isinstance(column.dtype, pd.ArrowDtype):
        # The library has a message for durations.
        return column
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object)
    parsed = _parse(column, source)
    bad = Counter({t: n for t, n in parsed.wrong.items() if not is_blank(t)})
    if bad and (wrong is None or 2 * bad.total() > parsed.n_known):
        texts = column.map(lambda cell: str(cell).strip(), na_action="ignore")
        first = texts[texts.isin(bad)]
        raise ColumnError(
            f"Column {name!r} of {source.name} must hold numbers, but row "
            f"{seen + column.index.get_loc(first.index[0]) + 1} has "
            f"{first.iloc[0]!r}. Correct it, leave it empty, or name it in "
            "`missing_values`."
        )
    if wrong is None:
        source.notes.extend(parsed.notes(name))
    else:
        wrong.update(parsed.wrong)
    return parsed.values


def _parse(column: pandas.Series, source: Source) -> Parsed:
    return parse(column, source.spelling.decimal, source.thousands)


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
