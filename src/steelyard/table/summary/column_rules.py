"""The rules: what is decided about a column, in memory or from chunks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard._common.agreed import LEAST_STEP
from steelyard._common.checks import warn_user
from steelyard.exceptions import IdentifierWarning
from steelyard.table.discretizers import Discretizer
from steelyard.table.schema import FeatureSchema, sort_values
from steelyard.table.summary.chunked_column import ChunkedColumn
from steelyard.table.summary.ranges import NumberRange
from steelyard.table.summary.whole_column import WholeColumn
from steelyard.table.treatments import EncoderSettings, Treatment

ColumnSummary = WholeColumn | ChunkedColumn
"""What is known of a column: both kinds answer the same questions."""

# Weka's step of numbers that are all the same.
_ONLY_STEP = 0.01

# A column looks like an identifier when nearly all its values differ; below this many
# rows that is what an ordinary column may look like.
_MIN_ROWS = 20
_MIN_SHARE = 0.95


class LearnedColumn(NamedTuple):
    """What is decided about a column."""

    label: str
    features: list[FeatureSchema]
    """An attribute for each view of it."""

    range: NumberRange | None
    suspect: str | None
    """What makes the column look like an identifier."""


def learned_column(
    column: ColumnSummary,
    views: Sequence[Treatment],
    settings: EncoderSettings,
    n_rows: int,
) -> LearnedColumn:
    """Decide on the schema of a column of so many rows, under each treatment."""
    features = [_feature(column, view, settings) for view in views]
    where = None if column.is_category else column.known_range()
    return LearnedColumn(column.label, features, where, _suspicion(column, n_rows))


def _feature(
    column: ColumnSummary, treatment: Treatment, settings: EncoderSettings
) -> FeatureSchema:
    if treatment.kind == "categorical":
        return _category(column, settings)
    feature = FeatureSchema(column.name, treatment.kind, column.cells)
    if column.cells == "nothing":
        # It is not known yet whether it will hold numbers. A column of missing values
        # only stays without influence.
        is_grid = treatment.kind == "gaussian-weka"
        return replace(feature, step=_ONLY_STEP) if is_grid else feature
    fill = column.mean() if settings.missing == "impute" else None
    if isinstance(treatment, Discretizer):
        edges = column.edges(treatment, fill)
        return replace(
            feature,
            edges=tuple(edges.tolist()),
            missing_is_value=settings.missing == "value" and column.some_missing,
            fill=None if fill is None else 1 + int(np.searchsorted(edges, fill)),
        )
    if treatment.kind == "gaussian-weka":
        return replace(feature, fill=fill, step=_grid_step(column.distinct(fill)))
    return feature if fill is None else replace(feature, fill=fill)


def _category(column: ColumnSummary, settings: EncoderSettings) -> FeatureSchema:
    held = values = column.held
    if settings.cardinality == "declared":
        values = [*held, *(column.declared or [])]
    feature = FeatureSchema(
        column.name,
        "categorical",
        column.cells,
        sort_values(values),
        missing_is_value=settings.missing == "value" and column.some_missing,
    )
    if settings.missing != "impute" or not held:
        return feature
    most = int(np.argmax(column.weights_by_code(feature)[1:]))
    return replace(feature, fill=1 + most)


def _grid_step(distinct: NDArray[np.float64]) -> float:
    """Mean distance of distinct neighbours, Weka's precision of an attribute."""
    if distinct.size < 2:
        return _ONLY_STEP
    with np.errstate(over="ignore"):
        step = float((distinct[-1] - distinct[0]) / (distinct.size - 1))
    return step if step >= LEAST_STEP and np.isfinite(step) else _ONLY_STEP


def _suspicion(column: ColumnSummary, n_rows: int) -> str | None:
    """Say what makes a column look like an identifier, None for other columns."""
    if column.cells == "text":
        return too_many_values(n_rows, len(column.held))
    if n_rows < _MIN_ROWS or not column.is_integer or column.some_missing:
        return None
    if column.is_category:
        held = column.held
        is_running = len(held) == n_rows and max(held) - min(held) == n_rows - 1
    else:
        is_running = column.is_running
    return "a running number" if is_running else None


def too_many_values(n_rows: int, n_values: int) -> str | None:
    """Say that nearly all cells of a column of text differ, if they do."""
    if n_rows < _MIN_ROWS or n_values < _MIN_SHARE * n_rows:
        return None
    return f"{n_values} different values"


def warn_identifiers(columns: Iterable[LearnedColumn], n_rows: int) -> None:
    """Warn of every column that looks like an identifier."""
    for column in columns:
        if column.suspect is not None:
            warn_user(
                f"{column.label} looks like an identifier: {column.suspect} in "
                f"{n_rows} rows. It tells nothing about new rows; consider leaving it "
                "out.",
                IdentifierWarning,
            )
