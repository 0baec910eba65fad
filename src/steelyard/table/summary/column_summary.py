"""From what is known of a column to its schema: the rules, for memory and chunks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from steelyard._common.checks import warn_user
from steelyard.exceptions import IdentifierWarning
from steelyard.table.discretizers import Discretizer
from steelyard.table.factors import Cells
from steelyard.table.schema import FeatureSchema, sort_values
from steelyard.table.summary.ranges import NumberRange
from steelyard.table.treatments import Treatment

_Floats = NDArray[np.float64]

LEAST_STEP = 1e-300
"""Deviations on a grid are a sixth of its step, and their inverses finite."""

# Weka's step of numbers that are all the same.
_ONLY_STEP = 0.01

# A column looks like an identifier when nearly all its values differ; below this many
# rows that is what an ordinary column may look like.
_MIN_ROWS = 20
_MIN_SHARE = 0.95


class Settings(Protocol):
    """The settings of an encoder that decide on a schema."""

    missing: str
    cardinality: str


class LearnedColumn(NamedTuple):
    """What is decided about a column."""

    label: str
    features: list[FeatureSchema]
    """An attribute for each view of it."""

    range: NumberRange | None
    suspect: str | None
    """What makes the column look like an identifier."""


class ColumnSummary:
    """What a schema needs to know of one column, and what is decided from it.

    There are two: of a column in memory, whose cells are looked at when something is
    asked for, and of chunks of a column, which add up.
    """

    position: int
    name: str | None
    storage: Cells
    """What the type of the column can hold, "nothing" if it does not say."""

    cells: Cells
    """What the cells hold, "nothing" if all are missing, whatever the type."""

    is_category: bool
    is_integer: bool
    declared: list[Any] | None
    """Values declared by a category or enum type."""

    label: str
    """How messages call this column."""

    @property
    def some_missing(self) -> bool:
        """Whether any cell is missing."""
        raise NotImplementedError

    @property
    def held(self) -> Sequence[Any]:
        """The values that rows hold, of categories."""
        raise NotImplementedError

    def weights_by_code(self, feature: FeatureSchema) -> _Floats:
        """Return the weight of each category, shape (n_codes,)."""
        raise NotImplementedError

    def is_running(self, n_rows: int) -> bool:
        """Whether whole numbers are a, a + 1, a + 2, … in some order."""
        raise NotImplementedError

    def mean(self) -> float:
        """Return the mean of the known numbers."""
        raise NotImplementedError

    def edges(self, discretizer: Discretizer, fill: float | None) -> _Floats:
        """Return the cut points of the numbers, missing ones filled in."""
        raise NotImplementedError

    def distinct(self, fill: float | None) -> _Floats:
        """Return the different numbers, sorted, missing ones filled in."""
        raise NotImplementedError

    def known_range(self) -> NumberRange | None:
        """Return where the numbers lie; None if there are none."""
        raise NotImplementedError

    # ------------------------------------------------------------------- the rules

    def learned(
        self, views: Sequence[Treatment], settings: Settings, n_rows: int
    ) -> LearnedColumn:
        """Decide on the schema of a column of so many rows, under each treatment."""
        features = [self._feature(view, settings) for view in views]
        where = None if self.is_category else self.known_range()
        return LearnedColumn(self.label, features, where, self._suspicion(n_rows))

    def _feature(self, treatment: Treatment, settings: Settings) -> FeatureSchema:
        if treatment.kind == "categorical":
            return self._category(settings)
        feature = FeatureSchema(self.name, treatment.kind, self.cells)
        if self.cells == "nothing":
            # It is not known yet whether it will hold numbers. A column of missing
            # values only stays without influence.
            is_grid = treatment.kind == "gaussian-weka"
            return replace(feature, step=_ONLY_STEP) if is_grid else feature
        fill = self.mean() if settings.missing == "impute" else None
        if isinstance(treatment, Discretizer):
            edges = self.edges(treatment, fill)
            return replace(
                feature,
                edges=tuple(edges.tolist()),
                missing_is_value=settings.missing == "value" and self.some_missing,
                fill=None if fill is None else 1 + int(np.searchsorted(edges, fill)),
            )
        if treatment.kind == "gaussian-weka":
            return replace(feature, fill=fill, step=_grid_step(self.distinct(fill)))
        return feature if fill is None else replace(feature, fill=fill)

    def _category(self, settings: Settings) -> FeatureSchema:
        held, values = self.held, self.held
        if settings.cardinality == "declared":
            values = [*held, *(self.declared or [])]
        feature = FeatureSchema(
            self.name,
            "categorical",
            self.cells,
            sort_values(values),
            missing_is_value=settings.missing == "value" and self.some_missing,
        )
        if settings.missing != "impute" or not held:
            return feature
        most = int(np.argmax(self.weights_by_code(feature)[1:]))
        return replace(feature, fill=1 + most)

    def _suspicion(self, n_rows: int) -> str | None:
        """Say what makes a column look like an identifier, None for other columns."""
        if self.cells == "text":
            return too_many_values(n_rows, len(self.held))
        if n_rows < _MIN_ROWS or not self.is_integer or self.some_missing:
            return None
        return "a running number" if self.is_running(n_rows) else None


def too_many_values(n_rows: int, n_values: int) -> str | None:
    """Say that nearly all cells of a column of text differ, if they do."""
    if n_rows < _MIN_ROWS or n_values < _MIN_SHARE * n_rows:
        return None
    return f"{n_values} different values"


def are_running(values: Sequence[int], n_rows: int) -> bool:
    """Whether different values are a, a + 1, a + 2, … in so many rows."""
    return len(values) == n_rows and max(values) - min(values) == n_rows - 1


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


def _grid_step(distinct: _Floats) -> float:
    """Mean distance of distinct neighbours, Weka's precision of an attribute."""
    if distinct.size < 2:
        return _ONLY_STEP
    with np.errstate(over="ignore"):
        step = float((distinct[-1] - distinct[0]) / (distinct.size - 1))
    return step if step >= LEAST_STEP and np.isfinite(step) else _ONLY_STEP
