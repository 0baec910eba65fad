"""The rows that a card is made on: those given, or rows made of a model's counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from steelyard._common.arrays import Floats, Ints
from steelyard.proba.counts import Counts
from steelyard.table.by_schema import encode_numbers
from steelyard.table.codes import BlockBuilder, Codes, code_dtype
from steelyard.table.schema import FeatureSchema, TableSchema

# Rows that are made, and seed of the order in which columns meet.
_MADE_ROWS, _SEED = 4000, 0


def finest_views(schema: TableSchema) -> dict[int, int]:
    """Return the attribute by which each column is on a card: its last with codes.

    That of a column of densities alone is its last one.
    """
    views: dict[int, int] = {}
    for j in range(schema.n_plain):
        column, is_coded = schema.columns[j], schema.features[j].is_coded
        if is_coded or column not in views:
            views[column] = j
    return views


def made_rows(schema: TableSchema, counts: Counts, ranges: Any) -> Codes:
    """Return rows with the counts of a model, columns independent within a class."""
    random = np.random.default_rng(_SEED)
    shares = counts.by_class / counts.total
    sizes = np.maximum(np.round(_MADE_ROWS * shares), 1).astype(np.int64)
    cells: dict[int, Any] = {}
    for column, j in finest_views(schema).items():
        where = ranges[column] if ranges is not None else None
        parts = [
            random.permutation(_cells(schema, counts, j, c, int(size), where))
            for c, size in enumerate(sizes)
        ]
        cells[column] = np.concatenate(parts)
    plain = schema.without_pairs
    builder = BlockBuilder(int(sizes.sum()), len(plain.coded))
    for j, feature in enumerate(plain.features):
        own = cells[schema.columns[j]]
        if feature.kind == "categorical":
            builder.add(feature, own.astype(code_dtype(feature.n_codes)))
        else:
            builder.add(feature, encode_numbers(feature, own))
    codes = builder.finish(plain)
    return codes if plain is schema else codes.with_pairs(schema)


def _cells(
    schema: TableSchema, counts: Counts, j: int, c: int, size: int, where: Any
) -> Any:
    """Return codes of a category, or numbers, of some rows of one class."""
    feature, start = schema.features[j], int(schema.offsets[j])
    if not feature.is_coded:
        return _density_cells(counts, j, c, size)
    weights = counts.by_code[start : start + feature.n_codes, c]
    codes = _shared_out(weights, size)
    if feature.kind == "categorical":
        return codes
    return _within(feature, codes, where)


def _shared_out(weights: Floats, size: int) -> Ints:
    """Return codes in order, each as often as its weight says."""
    total = float(weights.sum())
    if not total > 0.0:
        return np.zeros(size, dtype=np.int64)
    steps = (np.arange(size) + 0.5) / size * total
    return np.searchsorted(np.cumsum(weights), steps).clip(max=len(weights) - 1)


def _within(feature: FeatureSchema, codes: Ints, where: Any) -> Floats:
    """Return numbers evenly within the bins of codes; NaN for missing cells."""
    edges = np.array(feature.edges, dtype=np.float64)
    gap = float(np.diff(edges).mean()) if len(edges) > 1 else 1.0
    low, high = (edges[0] - gap, edges[-1] + gap) if len(edges) else (0.0, 1.0)
    if where is not None:
        low, high = where.low, where.high
    ends = np.concatenate([[min([low, *edges])], edges, [max([high, *edges])]])
    out = np.full(len(codes), np.nan)
    for code in range(1, len(edges) + 2):
        rows = np.flatnonzero(codes == code)
        share = (np.arange(len(rows)) + 1.0) / max(len(rows), 1)
        out[rows] = ends[code - 1] + share * (ends[code] - ends[code - 1])
    return out


def _density_cells(counts: Counts, j: int, c: int, size: int) -> Floats:
    """Return numbers of a normal distribution with the moments of one class."""
    from scipy.special import ndtri

    g = counts.schema.gaussian.tolist().index(j)
    weight, total = float(counts.moments.weight[g, c]), float(counts.by_class[c])
    known = round(size * weight / total) if total > 0.0 else 0
    out = np.full(size, np.nan)
    if known:
        deviation = np.sqrt(counts.moments.squares[g, c] / weight)
        places = ndtri((np.arange(known) + 0.5) / known)
        out[:known] = counts.moments.mean[g, c] + deviation * places
    return out
