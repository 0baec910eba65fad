"""From the cells of a training column to the schema of an attribute, and its codes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.table.cells import (
    bins_of,
    codes_of,
    factor_of,
    grid_step,
    numbers_of,
    on_grid,
)
from steelyard.table.columns import Column
from steelyard.table.identifiers import suspicion
from steelyard.table.schema import FeatureSchema, sort_values
from steelyard.table.treatments import Treatment

__all__ = ["Learned", "Target", "learn_categories", "learn_numbers"]


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
    factor = factor_of(column)
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
    codes = codes_of(feature, factor)
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
    numbers = numbers_of(column)
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
        return Learned(feature, on_grid(numbers, feature.step), suspect)
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
    return Learned(feature, bins_of(feature, numbers), suspect)
