"""Columns that a model sees in several ways; a reader sees one column."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from steelyard.model.table_model import NBModel
from steelyard.table.cells import on_grid
from steelyard.table.schema import TableSchema

Floats = NDArray[np.float64]


def views_of(schema: TableSchema) -> list[list[int]]:
    """Return the positions of the attributes that read each column."""
    views: list[list[int]] = [[] for _ in set(schema.columns)]
    for k, column in enumerate(schema.columns):
        views[column].append(k)
    return views


def column_labels(schema: TableSchema) -> list[str]:
    """Name every column, by position where the table has no names."""
    labels = schema.labels()
    return [labels[views[0]] for views in views_of(schema)]


def add_views(values: Floats, schema: TableSchema, axis: int) -> Floats:
    """Add up what the views of each column have, along an axis of attributes."""
    views = views_of(schema)
    if len(views) == len(schema):
        return values
    moved = np.moveaxis(values, axis, 0)
    added = np.stack([moved[positions].sum(axis=0) for positions in views])
    return np.moveaxis(added, 0, axis)


def halve_pairs(values: Floats, schema: TableSchema) -> Floats:
    """Give half of what each pair has to the view of either side, and leave pairs out.

    Shapes are (n, views, K), with and without the pairs, which come last.
    """
    own = values[:, : len(schema.without_pairs)].copy()
    for j in np.flatnonzero(schema.is_pair):
        for side in schema.features[j].sides:
            own[:, side.feature] += values[:, j] / 2.0
    return own


def place_numbers(
    schema: TableSchema, views: list[int], numbers: Floats
) -> tuple[NDArray[np.int64], Floats]:
    """Encode known numbers for all views of a column: codes and numbers (n, views)."""
    codes = np.zeros((len(numbers), len(views)), dtype=np.int64)
    values = np.full((len(numbers), len(views)), np.nan)
    for k, j in enumerate(views):
        feature = schema.features[j]
        if feature.is_coded:
            codes[:, k] = np.searchsorted(feature.edges, numbers, side="left") + 1
        else:
            values[:, k] = on_grid(numbers, feature.step)
    return codes, values


def column_scores(model: NBModel, views: list[int], numbers: Floats) -> Floats:
    """Say what numbers of one column add to the scores of the classes, (n, K)."""
    schema = model.schema
    codes, values = place_numbers(schema, views, numbers)
    out = np.zeros((len(numbers), model.n_classes))
    for k, j in enumerate(views):
        if schema.features[j].is_coded:
            out += model.table[schema.offsets[j] + codes[:, k]]
        else:
            model.density(j).add_scores(np.ascontiguousarray(values[:, k, None]), out)
    return out


def typical_numbers(edges: Floats) -> Floats:
    """Return a number within each interval between edges, the outer ones included.

    Examples
    --------
    >>> typical_numbers(np.array([1.0, 3.0]))
    array([0., 2., 4.])
    """
    if not len(edges):
        return np.zeros(1)
    gap = float(np.diff(edges).mean()) if len(edges) > 1 else 0.0
    gap = gap or max(abs(float(edges[0])), 1.0)
    bounds = np.concatenate([[edges[0] - gap], edges, [edges[-1] + gap]])
    middle = bounds[:-1] + np.diff(bounds) / 2.0
    # A number that is short to write, where that leaves it in its interval.
    short = np.array([float(f"{x:.6g}") for x in middle])
    same = np.searchsorted(edges, short) == np.arange(len(short))
    return np.where(same & np.isfinite(short), short, middle)


def number_text(number: float) -> str:
    """Write a number so that it reads back as itself, short where that is possible."""
    short = f"{number:.6g}"
    is_same = float(short) == number or not math.isfinite(number)
    return short if is_same else f"{number!r}"
