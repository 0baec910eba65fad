"""From the cells of a training column to the schema of an attribute, and its codes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.exceptions import ColumnError
from steelyard.table import cells
from steelyard.table.columns import Column
from steelyard.table.factors import Factor
from steelyard.table.identifiers import suspicion
from steelyard.table.schema import FeatureSchema, sort_values
from steelyard.table.treatments import Treatment

# Deviations on a grid are a sixth of its step, and their inverses finite.
LEAST_STEP = 1e-300


class Target(NamedTuple):
    """What supervised discretizers and imputation look at, besides a column."""

    labels: NDArray[np.uint32] | None
    n_classes: int
    weights: NDArray[np.float64] | None


class Learned(NamedTuple):
    """One attribute: its schema, and the training cells encoded by it."""

    feature: FeatureSchema
    encoded: NDArray[Any]
    suspect: str | None
    """What makes the column look like an identifier."""


def learn_categories(
    column: Column,
    name: str | None,
    weights: NDArray[np.float64] | None,
    missing: str,
    cardinality: str,
) -> Learned:
    """Learn the values of a categorical column."""
    factor = cells.factor_of(column)
    values, n_missing = factor.held()
    suspect = suspicion(column, factor.indices.size, len(values))
    has_values = bool(values)
    if cardinality == "declared":
        values.extend(column.declared or ())
    feature = FeatureSchema(
        name,
        "categorical",
        column.cells,
        values=sort_values(values),
        missing_is_value=missing == "value" and n_missing > 0,
    )
    codes = cells.codes_of(feature, factor)
    if missing == "impute" and has_values:
        totals = np.bincount(codes, weights, minlength=feature.n_codes)
        feature = replace(feature, fill=1 + int(np.argmax(totals[1:])))
        if n_missing:
            codes[factor.indices < 0] = feature.missing_code
    return Learned(feature, codes, suspect)


def learn_numbers(
    column: Column, name: str | None, treatment: Treatment, target: Target, missing: str
) -> Learned:
    """Learn the cut points of a numeric column, or how its numbers are kept."""
    numbers = cells.numbers_of(column)
    suspect = suspicion(column, numbers.size, None)
    known = ~np.isnan(numbers)
    some_known, some_missing = bool(known.any()), not known.all()
    fill = None
    if missing == "impute" and some_known:
        weights = None if target.weights is None else target.weights[known]
        fill = float(np.average(numbers[known], weights=weights))
        if some_missing:
            numbers = np.where(known, numbers, fill)
    feature = FeatureSchema(name, treatment.kind, column.cells, fill=fill)
    if not feature.is_coded:
        if feature.kind == "gaussian-weka":
            feature = replace(feature, step=grid_step(numbers[~np.isnan(numbers)]))
        return Learned(feature, cells.on_grid(numbers, feature.step), suspect)
    edges = np.empty(0)
    # Of an empty column it is not known yet whether it will hold numbers.
    if some_known:
        place = (column.position, name)
        edges = treatment.known_edges(numbers, *target, column=place)
    feature = replace(
        feature,
        edges=tuple(edges.tolist()),
        # A column of missing values only stays without influence.
        missing_is_value=missing == "value" and some_missing and some_known,
        fill=None if fill is None else 1 + int(np.searchsorted(edges, fill)),
    )
    return Learned(feature, cells.bins_of(feature, numbers), suspect)


def grid_step(numbers: NDArray[np.float64]) -> float:
    """Mean distance of distinct neighbours, Weka's precision of an attribute."""
    distinct = np.unique(numbers)
    if distinct.size < 2:
        return 0.01
    with np.errstate(over="ignore"):
        step = float((distinct[-1] - distinct[0]) / (distinct.size - 1))
    return step if step >= LEAST_STEP and np.isfinite(step) else 0.01


class Grown(NamedTuple):
    """One attribute with the values of more rows taken in, and those rows encoded."""

    feature: FeatureSchema
    encoded: NDArray[Any]


def grown(
    feature: FeatureSchema,
    column: Column,
    missing: str,
    edges: Callable[[], tuple[float, ...]],
) -> Grown:
    """Take the new values of more rows into the schema of a column, and encode them.

    ``edges`` gives the cut points of a binned column that was empty so far.
    """
    cells.check_cells(feature, column)
    if feature.kind != "categorical" and column.cells == "text":
        # So far all cells were missing, and now it turns out what the column holds.
        if feature.kind != "binned":
            raise ColumnError(
                f"{column.label} was empty in the rows so far and was taken as numbers "
                "(`numeric`), and now holds text. Name it in `categorical_features`."
            )
        feature = replace(feature, kind="categorical")
    if feature.cells == "nothing" and column.cells != "nothing":
        cuts = edges() if feature.kind == "binned" else ()
        # All cells so far were missing: from now on that is a value among others.
        as_value = missing == "value" and feature.is_coded
        feature = replace(
            feature, cells=column.cells, edges=cuts, missing_is_value=as_value
        )
    if feature.kind == "categorical":
        factor = cells.factor_of(column)
        feature = _with_factor(feature, factor, missing)
        return Grown(feature, cells.codes_of(feature, factor))
    numbers = cells.numbers_of(column)
    if feature.kind == "binned" and feature.cells != "nothing":
        if missing == "value" and np.isnan(numbers).any():
            feature = replace(feature, missing_is_value=True)
    return Grown(feature, cells.encode_numbers(feature, numbers))


def _with_factor(feature: FeatureSchema, factor: Factor, missing: str) -> FeatureSchema:
    """Return the schema of a categorical column with the values of more rows."""
    if missing == "value" and not feature.missing_is_value and factor.some_missing:
        feature = replace(feature, missing_is_value=True)
    return with_values(feature, factor.values, lambda: factor.held()[0])


def with_values(
    feature: FeatureSchema, listed: Iterable[Any], held: Callable[[], Iterable[Any]]
) -> FeatureSchema:
    """Return the schema of a categorical column with the values that rows hold.

    That is asked only where not all that are listed are known already.
    """
    if all(value in feature.code_of for value in listed):
        return feature
    values = sort_values([*feature.values, *held()])
    fill = feature.fill
    if fill is not None:
        fill = 1 + values.index(feature.values[int(fill) - 1])
    return replace(feature, values=values, fill=fill)
