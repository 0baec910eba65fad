"""Tables of spreadsheets and of statistics programs, which are read whole."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from steelyard._common.text import listed
from steelyard.exceptions import TableError
from steelyard.experiments.data.kinds import numbers_if_nearly_all_are

if TYPE_CHECKING:
    import pandas

    from steelyard.experiments.data.source import Source

_MIXED = ("string", "mixed", "mixed-integer")


def read_whole(source: Source) -> pandas.DataFrame:
    """Read a file of Arrow, Excel, SPSS or Stata.

    Values that are labelled in SPSS and Stata are categories, named by their labels.
    """
    try:
        frame = _READERS[source.format](source)
    except (ImportError, OSError):
        raise
    except Exception as error:
        # Libraries have errors of their own for what is no such file.
        line = str(error).partition("\n")[0]
        raise TableError(
            f"{source.name} cannot be read as {source.format}: {line}"
        ) from None
    frame.columns = frame.columns.map(lambda name: str(name).strip())
    return frame


def _data(source: Source) -> Any:
    return io.BytesIO(sys.stdin.buffer.read()) if source.path == "-" else source.path


def _library(name: str, source: Source) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise ModuleNotFoundError(
            f"{source.name} is read by {name}, which is not installed. Install it with "
            "`pip install 'steelyard[formats]'`, or save the table as CSV.",
            name=name,
        ) from None


def _read_arrow(source: Source) -> pandas.DataFrame:
    from pyarrow import feather

    return feather.read_table(_data(source)).to_pandas()


def _read_excel(source: Source) -> pandas.DataFrame:
    import pandas as pd

    _library("openpyxl", source)
    with pd.ExcelFile(_data(source), engine="openpyxl") as book:
        first, *others = book.sheet_names
        empty = {"na_values": source.empty, "keep_default_na": False}
        frame = pd.read_excel(book, sheet_name=first, **empty)
    if others:
        sheets = f"the sheet {first!r} is read, and not {listed(map(repr, others))}"
        source.notes.append(f"{source.name}: {sheets}")
    for name in frame.columns[frame.dtypes.map(str) == "object"]:
        if pd.api.types.infer_dtype(frame[name]) in _MIXED:
            texts = frame[name].map(_cell_text, na_action="ignore")
            frame[name] = numbers_if_nearly_all_are(texts, str(name), source)
    return frame


def _cell_text(cell: Any) -> str:
    is_whole = isinstance(cell, float) and cell.is_integer()
    return str(int(cell) if is_whole else cell)


def _read_spss(source: Source) -> pandas.DataFrame:
    frame, about = _library("pyreadstat", source).read_sav(_path(source))
    for name, labels in about.variable_value_labels.items():
        frame[name] = _labelled(frame[name], labels)
    return frame


def _labelled(column: pandas.Series, labels: dict[Any, str]) -> pandas.Series:
    """Return names in place of numbers, where each that occurs has one."""
    if not len(known := column.dropna()) or not known.isin(list(labels)).all():
        return column
    return column.map(labels).astype("category")


def _read_stata(source: Source) -> pandas.DataFrame:
    import pandas as pd

    frame = pd.read_stata(_path(source), convert_categoricals=False)
    try:
        named = pd.read_stata(_path(source))
    except ValueError:
        # Two values of one label, which a category cannot have.
        return frame
    for name in frame.columns:
        if isinstance(named[name].dtype, pd.CategoricalDtype):
            names = named[name].cat.remove_unused_categories()
            # A few labels among many numbers are those of missing values.
            if all(isinstance(value, str) for value in names.cat.categories):
                frame[name] = names.cat.as_unordered()
    return frame


def _path(source: Source) -> str:
    if source.path == "-":
        problem = f"{source.format} files cannot be read from standard input."
        raise TableError(problem)
    return source.path


_READERS: dict[str, Callable[[Source], pandas.DataFrame]] = {
    "arrow": _read_arrow,
    "xlsx": _read_excel,
    "sav": _read_spss,
    "dta": _read_stata,
}
