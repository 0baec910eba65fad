"""Any frame or array becomes a table of columns. The only place that knows frames."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Ints
from steelyard._common.text import did_you_mean
from steelyard.exceptions import ColumnError, TableError, warn_user
from steelyard.table.columns import (
    ArrayColumn,
    DayColumn,
    ObjectColumn,
    TableColumn,
    array_column,
    series_column,
)
from steelyard.table.dates import (
    PARTS,
    as_moments,
    as_seconds,
    date_of_part,
    date_parts,
)
from steelyard.table.factors import dates_refused
from steelyard.table.schema import TableSchema

# Cells of a column of objects among which nested ones are looked for.
_LOOKED_AT = 64

# Types of columns that may contain dates all the same.
_UNCLEAR = (nw.Object, nw.Unknown)


@dataclass(frozen=True)
class Table:
    """Columns of equal length, with or without names."""

    columns: list[TableColumn]
    n_rows: int
    names: list[str] | None
    matrix: NDArray[Any] | None = None
    """The array behind the columns, if they came from one of numbers."""

    parts: Mapping[str, TableColumn] = field(default_factory=dict)
    """Parts of dates by name, of which some are columns: see ``dates``."""

    nested: Sequence[str] = ()
    """Columns of lists and other nested values, which are left out."""

    @property
    def n_columns(self) -> int:
        """How many columns there are."""
        return len(self.columns)

    def take(self, rows: Ints) -> Table:
        """Return the rows at some positions, in that order; they may repeat.

        It is the table that ``as_table`` makes of these rows of the user's frame, which
        is not needed for it.
        """
        _check_size((len(rows), self.n_columns), None)
        if self.matrix is not None:
            return _table_of_matrix(self.matrix[rows])
        columns = [column.take(rows) for column in self.columns]
        by_name = dict(zip(self.names or (), columns, strict=False))
        parts = {
            name: by_name[name] if name in by_name else column.take(rows)
            for name, column in self.parts.items()
        }
        return Table(columns, len(rows), self.names, parts=parts)

    def with_empty(self, names: Iterable[str]) -> Table:
        """Return the table with columns of missing cells for names that it lacks."""
        lacking = [name for name in names if name not in (self.names or ())]
        if self.names is None or not lacking:
            return self
        nothing = np.full(self.n_rows, np.nan)
        empty = [array_column(self.n_columns, name, nothing) for name in lacking]
        columns, names = [*self.columns, *empty], [*self.names, *lacking]
        return replace(self, columns=columns, names=names)


def as_table(X: Any, estimator: object = None, *, is_whole: bool = True) -> Table:
    """Split any supported table into columns.

    Dates that are all at midnight have no hours, and those of one year no years, if all
    rows are there to tell.
    """
    if isinstance(X, Table):
        return X
    frame = _as_frame(X)
    if frame is None:
        return _table_of_array(X, estimator)
    names = list(map(str, frame.columns))
    _check_unique(names)
    _check_size(frame.shape, estimator)
    if not _are_names(frame.columns):
        series = enumerate(frame.iter_columns())
        columns = [series_column(j, None, cells) for j, cells in series]
        return Table(columns, frame.shape[0], None)
    return _named_table(names, frame, is_whole)


def _named_table(names: list[str], frame: nw.DataFrame[Any], is_whole: bool) -> Table:
    """Read columns with names, dates as columns of their parts, which come last."""
    columns: list[TableColumn] = []
    shown: set[str] = set()
    nested = []
    types = frame.schema.values()
    for name, series, dtype in zip(names, frame.iter_columns(), types, strict=True):
        j = len(columns)
        if not (dtype.is_nested() or dtype.is_temporal() or dtype in _UNCLEAR):
            columns.append(series_column(j, name, series, dtype))
        elif _is_nested(series):
            nested.append(name)
        elif (dates := as_moments(series)) is not None:
            columns.append(DayColumn(j, name, dates))
            if not is_whole:
                shown |= {f"{name}.{part}" for part in PARTS}
            if dtype == nw.Date:
                shown.discard(f"{name}.hour")
        elif (seconds := as_seconds(series)) is not None:
            columns.append(array_column(j, name, seconds))
        else:
            columns.append(series_column(j, name, series))
    if not columns:
        # Raises, and says what is wrong with it.
        series_column(0, nested[0], frame[nested[0]])
    return replace(with_date_parts(columns, frame.shape[0], shown), nested=nested)


def with_date_parts(
    columns: Sequence[TableColumn], n_rows: int, shown: Collection[str] = ()
) -> Table:
    """Make a table of columns with names, and of the parts of dates among them.

    Parts that are constant in these rows are left out, unless they are in ``shown``.
    """
    names = [str(column.name) for column in columns]
    parts: dict[str, TableColumn] = {}
    idle: set[str] = set()
    for column in columns:
        if isinstance(column, DayColumn):
            date = column.position, str(column.name), column.dates
            of_date, constant = date_parts(*date)
            parts |= of_date
            idle |= constant
    parts = {name: part for name, part in parts.items() if name not in names}
    idle -= {*shown}
    columns = [*columns, *(part for name, part in parts.items() if name not in idle)]
    for j, column in enumerate(columns):
        column.position = j
    return Table(columns, n_rows, [str(column.name) for column in columns], None, parts)


def _is_nested(series: Any) -> bool:
    if series.dtype != nw.Object:
        return bool(series.dtype.is_nested())
    kinds = {type(cell) for cell in series.to_numpy()[:_LOOKED_AT]}
    return any(issubclass(k, (list, tuple, dict, set, np.ndarray)) for k in kinds)


def take_columns(X: Any, columns: Sequence[TableColumn]) -> Any:
    """Return some columns of a table, as a table of the same library.

    Lists of rows become an array. The table has been through ``as_table`` before, so
    that whatever is no table is refused there. A part of a date is the date.
    """
    frame, positions = _as_frame(X), [column.position for column in columns]
    if frame is None:
        array = np.asarray(array_from_rows(X) if isinstance(X, (list, tuple)) else X)
        return array[:, np.asarray(positions, dtype=np.intp)]
    if frame.columns and isinstance(frame.columns[0], str):
        place = {name: j for j, name in enumerate(frame.columns)}
        names = (str(column.name) for column in columns)
        whole = (name if name in place else date_of_part(name) for name in names)
        positions = [place[name] for name in dict.fromkeys(whole)]
    # Nothing is kept by dropping all: pandas would otherwise lose its rows.
    kept = frame[:, list(positions)] if positions else frame.drop(frame.columns)
    return kept.to_native()


def take_rows(X: Any, rows: Ints | None) -> Any:
    """Return some rows of a table, as a table of the same library; None for all."""
    frame = _as_frame(X)
    if frame is None:
        array = array_from_rows(X) if isinstance(X, (list, tuple)) else np.asarray(X)
        return array if rows is None else array[rows]
    return frame.to_native() if rows is None else frame[rows.tolist()].to_native()


def split_column(X: Any, name: str) -> tuple[Any, list[Any]]:
    """Return a frame without one of its columns, and the cells of that."""
    frame = _as_frame(X)
    if frame is None or name not in frame.columns:
        names = [] if frame is None else list(map(str, frame.columns))
        hint = did_you_mean(name, names) if names else " The table has no names."
        raise ColumnError(f"There is no column {name!r}.{hint}")
    return frame.drop(name).to_native(), frame[name].to_list()


def as_series(y: Any) -> TableColumn:
    """Read labels, from any frame library or array, as a single column."""
    try:
        series = nw.from_native(y, series_only=True)
    except TypeError:
        values = y if isinstance(y, np.ndarray) else np.asarray(y)
        if values.dtype.kind not in "biufUO":
            raise TableError(
                f"Labels of type {values.dtype} are not supported. Use text, whole "
                "numbers or booleans."
            ) from None
        return array_column(0, "y", values)
    return series_column(0, "y", series)


def _as_frame(X: Any) -> nw.DataFrame[Any] | None:
    """Return an eager narwhals frame, or None when ``X`` is no frame."""
    if isinstance(X, (np.ndarray, list, tuple)):
        return None
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is not None and isinstance(X, pyarrow.RecordBatch):
        X = pyarrow.Table.from_batches([X])
    try:
        frame = nw.from_native(X, allow_series=True, pass_through=True)
    except ValueError as error:
        # pandas and pyarrow allow two columns of one name, narwhals does not.
        names: Any = getattr(X, "column_names", None) or getattr(X, "columns", ())
        _check_unique(list(map(str, names)))
        raise TableError(f"This table cannot be read: {error}") from error
    if isinstance(frame, nw.LazyFrame):
        raise TableError(
            "The table is lazy: its rows are not loaded. Learn from it by fit(rows, "
            "'target column') and predict by predict_chunks(rows), or call .collect() "
            "(or .compute()) on it first."
        )
    if isinstance(frame, nw.Series):
        raise TableError(
            "Expected a table with rows and columns, got a single column (1D). "
            "Reshape your data: pass a frame with one column, for example "
            "series.to_frame()."
        )
    return frame if isinstance(frame, nw.DataFrame) else None


def array_from_rows(rows: Sequence[Any]) -> NDArray[Any]:
    """Make an array of a list of rows; if types of cells differ, each keeps its own."""
    kinds = {
        type(cell) for row in rows if isinstance(row, (list, tuple)) for cell in row
    }
    mixed = any(issubclass(kind, (str, type(None))) for kind in kinds)
    try:
        return np.asarray(rows, dtype=object if mixed and len(kinds) > 1 else None)
    except ValueError:
        raise TableError(
            "The rows of the table differ in length, or their cells hold lists. Every "
            "row needs one plain value for each column."
        ) from None


def _table_of_array(X: Any, estimator: object) -> Table:
    from sklearn.utils.validation import check_array

    array: NDArray[Any] = check_array(
        _as_array(X), dtype=None, ensure_all_finite=False, estimator=estimator
    )
    if array.dtype.kind == "S":
        raise TableError(
            f"A table of bytes ({array.dtype}) is not supported. Turn it into text "
            "with numpy.char.decode(X)."
        )
    if array.dtype.kind not in "biufUOT":
        raise TableError(
            f"A table of type {array.dtype} is not supported. Use numbers, text, "
            "booleans or Python objects; dates have to be turned into numbers or text."
        )
    if array.dtype.kind == "T":
        array = array.astype(object)
    if array.dtype.kind == "f" and array.dtype.itemsize != 8:
        array = array.astype(np.float64)
    return _table_of_matrix(array)


def _as_array(X: Any) -> Any:
    """Return what scikit-learn makes an array of, refusing what it would misread."""
    if hasattr(X, "toarray") and hasattr(X, "nnz"):
        raise TypeError(
            "Sparse data was passed, but a dense table is required. "
            "Use .toarray() to convert it."
        )
    if hasattr(X, "is_repeatable"):
        raise TableError(
            "A source of rows is not a table in memory. Learn from it by fit(rows, "
            "'target column'), and predict by predict_chunks(rows)."
        )
    if isinstance(X, Mapping):
        raise TableError(
            "A mapping is not a table. Make a frame of it, for example with "
            "pandas.DataFrame(X)."
        )
    if isinstance(X, np.ma.MaskedArray):
        cells = np.array(X, dtype=object)
        cells[np.ma.getmaskarray(X)] = None
        return cells
    return array_from_rows(X) if isinstance(X, (list, tuple)) else X


def _table_of_matrix(matrix: NDArray[Any]) -> Table:
    kind: type[TableColumn] = ArrayColumn
    if matrix.dtype == object:
        kind = ObjectColumn
    columns = [kind(j, None, values) for j, values in enumerate(matrix.T)]
    has_numbers = matrix.dtype.kind in "biuf"
    return Table(columns, len(matrix), None, matrix if has_numbers else None)


def _are_names(labels: Sequence[Any]) -> bool:
    """Whether columns are named: the numbers that pandas gives are positions."""
    text = {isinstance(label, str) for label in labels}
    if len(text) > 1:
        raise ColumnError(
            "Some column names are text and some are not: "
            f"{_quoted(map(str, labels))}. Make all of them text, for "
            "example with df.columns = df.columns.astype(str)."
        )
    return text == {True}


def _check_unique(names: list[str]) -> None:
    repeated = sorted({name for name, count in Counter(names).items() if count > 1})
    if repeated:
        raise ColumnError(
            f"Column names occur more than once: {_quoted(repeated)}. "
            "Every column needs a name of its own; rename or drop the others."
        )


def check_names(names: list[str], expected: list[str]) -> None:
    """Refuse columns that are not those of the schema, in any order."""
    extra = sorted(set(names) - set(expected))
    lacking = sorted(set(expected) - set(names))
    if not extra and not lacking:
        return

    # Nobody named the parts of dates.
    whole = {name: date_of_part(name) for name in lacking}
    dates = ({*whole.values()} - {*lacking}) & {*names}
    lacking = [name for name in lacking if whole[name] not in dates]
    message = ""
    if extra or lacking:
        message = "The feature names should match those that were passed during fit.\n"
    for what, differing in (
        ("Feature names unseen at fit time:\n", extra),
        ("Feature names seen at fit time, yet now missing:\n", lacking),
    ):
        shown = [*differing[:5], *(["..."] if len(differing) > 5 else [])]
        message += "".join([what, *(f"- {name}\n" for name in shown)]) if shown else ""
    for date in sorted(dates):
        message += (
            f"Column {date!r} contained dates when the model was fitted, but now "
            "contains something else. Turn it into dates, for example with "
            "pandas.to_datetime.\n"
        )
    if len(extra) == len(lacking) == 1:
        message += f"Was {lacking[0]!r} renamed to {extra[0]!r}?\n"
    raise ColumnError(message)


def _check_size(shape: tuple[int, int], estimator: object) -> None:
    # The wording is scikit-learn's, which its users search for.
    context = f" by {type(estimator).__name__}" if estimator is not None else ""
    for count, unit, plural in zip(
        shape[::-1], ("feature", "sample"), ("columns", "rows"), strict=True
    ):
        if count == 0:
            raise TableError(
                f"Found array with 0 {unit}(s) (shape={shape}) while a minimum of 1 is "
                f"required{context}. The table has no {plural}."
            )


def _quoted(names: Iterable[str], limit: int = 5) -> str:
    names = list(names)
    shown = ", ".join(repr(name) for name in names[:limit])
    return shown + (f" and {len(names) - limit} more" if len(names) > limit else "")


def refuse_late_dates(schema: TableSchema, table: Table) -> None:
    """Refuse dates in a column that was empty when the schema was learned.

    It has no parts of them, and gets none when rows are only counted.
    """
    features, names = schema.features, schema.names or []
    empty = {f.name for f in features if f.cells == "nothing" and not f.left_out}
    for column in table.columns:
        late = isinstance(column, DayColumn) and column.name in empty
        if late and f"{column.name}.month" not in names:
            raise ColumnError(
                f"{column.label} was empty in the rows so far, but now contains dates. "
                "Give the first chunk a column of dates, all of them missing (NaT), "
                "or leave the column out."
            )


def names_for(table: Table, expected: Collection[str]) -> list[str]:
    """Return the names of columns, of dates those of the parts that a model has."""
    parts, names = table.parts, table.names or []
    names = [name for name in names if name not in parts or name in expected]
    return names + [name for name in expected if name in parts and name not in names]


def matched_columns(
    table: Table,
    expected: list[str] | None,
    n_expected: int,
    owner: str,
    empty: Collection[str] = (),
) -> list[TableColumn]:
    """Put the columns of a table into the order of the one that was fitted.

    Dates in columns that were ``empty`` at fit are values never seen.
    """
    names, parts = table.names, table.parts
    if expected is not None and names is not None:
        if names == expected:
            return table.columns
        unseen = set()
        for date in {date_of_part(part) for part in parts} & {*expected}:
            if f"{date}.month" not in expected:
                if date not in empty:
                    raise dates_refused(f"Column {date!r}", "not so at fit")
                unseen.add(date)
        check_names(names_for(table, expected), expected)
        by_name = {**parts, **{str(column.name): column for column in table.columns}}
        nothing = np.full(table.n_rows if unseen else 0, np.nan)
        for name in unseen:
            by_name[name] = array_column(by_name[name].position, name, nothing)
        return [by_name[name] for name in expected]
    if expected is not None or names is not None:
        now = "does not have valid" if names is None else "has"
        before = "without" if expected is None else "with"
        warn_user(
            f"X {now} feature names, but the model was fitted {before} feature "
            "names; columns are matched by position.",
            UserWarning,
        )
    if table.n_columns != n_expected:
        raise ColumnError(
            f"X has {table.n_columns} features, but {owner} is expecting {n_expected} "
            "features as input."
        )
    return table.columns
