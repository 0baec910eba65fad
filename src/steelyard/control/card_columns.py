"""Columns of a card, and the rows that it is made on: given ones, or made of counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from steelyard._common.arrays import Floats, Ints
from steelyard.control.card_cells import CardColumn, CardFit
from steelyard.explain.shared import evidence_of, typical_numbers
from steelyard.model.base import Model
from steelyard.model.table_model import NBModel
from steelyard.proba.counts import Counts
from steelyard.table.by_schema import bins_of, encode_numbers
from steelyard.table.codes import BlockBuilder, Codes, code_dtype
from steelyard.table.schema import FeatureSchema, TableSchema

# Rows that are made, and seed of the order in which columns meet.
_MADE_ROWS, _SEED = 4000, 0


def made_rows(schema: TableSchema, counts: Counts, ranges: Any) -> Codes:
    """Return rows with the counts of a model, columns independent within a class."""
    random = np.random.default_rng(_SEED)
    shares = counts.by_class / counts.total
    sizes = np.maximum(np.round(_MADE_ROWS * shares), 1).astype(np.int64)
    plain = schema.without_interactions
    builder = BlockBuilder(int(sizes.sum()), len(plain.coded))
    for j, feature in enumerate(plain.features):
        parts = [
            random.permutation(_cells(schema, counts, j, c, int(size), ranges[j]))
            for c, size in enumerate(sizes)
        ]
        cells = np.concatenate(parts)
        if feature.kind == "categorical":
            builder.add(feature, cells.astype(code_dtype(feature.n_codes)))
        else:
            builder.add(feature, encode_numbers(feature, cells))
    codes = builder.finish(plain)
    return codes if plain is schema else codes.with_interactions(schema)


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


# Bins of a column that the model knows by a density alone.
_DENSITY_BINS = 32

Line = tuple[str, str, int, float, float]


def card_schema(schema: TableSchema, codes: Codes) -> TableSchema:
    """Return the schema of a card: bins in place of densities that stand alone."""
    features = list(schema.features)
    for g, j in enumerate(schema.gaussian.tolist()):
        features[j] = _binned(features[j], codes.number_column(g))
    return TableSchema(tuple(features))


def _binned(feature: FeatureSchema, numbers: Floats) -> FeatureSchema:
    known = np.sort(numbers[~np.isnan(numbers)])
    places = np.linspace(0, len(known), _DENSITY_BINS + 1)[1:-1].astype(np.int64)
    edges = sorted({float(f"{x:.4g}") for x in known[places]}) if len(known) else []
    fill = feature.fill
    new = FeatureSchema(feature.name, "binned", feature.cells, edges=tuple(edges))
    if fill is None:
        return new
    return replace(new, fill=int(bins_of(new, np.array([float(fill)]))[0]))


def card_columns(
    model: Model,
    schema: TableSchema,
    new: TableSchema,
    codes: Codes,
    proba: Floats,
    c: int,
    interactions: int,
) -> list[CardColumn]:
    """Return the columns of a card for one class, a cell for each code.

    What the model says nothing of, for example since it was edited out, is left out: a
    card would let it stand for others.
    """
    columns = []
    own_columns = [j for j in range(schema.n_columns) if _has_a_say(model, j)]
    for j in [*own_columns, *_loudest_interactions(model, codes, c, interactions)]:
        feature = new.features[j]
        own = _codes(schema, feature, codes, j).astype(np.int64)
        n_free = feature.n_values - feature.missing_is_value
        groups = np.arange(feature.n_codes)
        if feature.sides:
            known = feature.both_known
            groups = np.where(known, np.cumsum(known), 0)
        said = _said(model, new, j, own, proba, c)
        in_line = feature.kind == "binned" or feature.ordered
        columns.append(
            CardColumn(
                j,
                own,
                groups,
                said,
                in_line,
                np.arange(n_free + 1, feature.n_codes),
                *_direction(
                    said[1 : n_free + 1] if in_line and model.is_sum else said[:0]
                ),
            )
        )
    return columns


def _has_a_say(model: Model, j: int) -> bool:
    """Whether a sum says anything of a column, alone or in an interaction."""
    if not isinstance(model, NBModel):
        return True
    schema = model.schema
    interactions = [
        int(k)
        for k in np.flatnonzero(schema.is_interaction)
        if any(side.feature == j for side in schema.features[k].sides)
    ]
    is_said = [
        model.table[schema.offsets[k] : schema.offsets[k + 1]].any()
        if schema.features[k].is_coded
        else model.density(k).factors.any()
        for k in [j, *interactions]
    ]
    return any(is_said)


def _codes(schema: TableSchema, feature: FeatureSchema, codes: Codes, j: int) -> Ints:
    if schema.features[j].is_coded:
        return np.asarray(codes.column(j))
    numbers = codes.number_column(schema.gaussian.tolist().index(j))
    return encode_numbers(feature, np.ascontiguousarray(numbers))


def _loudest_interactions(model: Model, codes: Codes, c: int, most: int) -> list[int]:
    """Return the interactions that say most in some rows."""
    found = np.flatnonzero(model.schema.is_interaction)
    if not most or not len(found) or not isinstance(model, NBModel):
        return []
    said = evidence_of(model.contributions(codes)[:, found])[..., c].std(axis=0)
    return [int(j) for j in found[np.argsort(-said, kind="stable")[:most]]]


def _said(
    model: Model, new: TableSchema, j: int, own: Ints, proba: Floats, c: int
) -> Floats:
    """Return what a model says of each code of a column for a class, in log-odds."""
    feature = new.features[j]
    if not isinstance(model, NBModel):
        # What it says of rows with the code, of all others as they are.
        p = proba.clip(1e-6, 1.0 - 1e-6)
        odds = np.log(p) - np.log1p(-p)
        n = np.bincount(own, minlength=feature.n_codes)
        said = np.bincount(own, odds - odds.mean(), feature.n_codes)
        return np.where(n > 0, said / np.maximum(n, 1), 0.0)
    start = int(model.schema.offsets[j])
    if model.schema.features[j].is_coded:
        rows = model.table[start : start + feature.n_codes]
    else:
        numbers = typical_numbers(np.array(feature.edges))
        known = model.density_scores(j, numbers)
        rows = np.vstack([np.zeros(model.n_classes), known])
    return np.asarray(evidence_of(rows)[:, c] * model.link_scale)


def _direction(said: Floats) -> tuple[int, int]:
    """Say whether codes rise (1) or fall (-1), and from which code on not; else 0."""
    steps = np.diff(said)
    if not steps.any():
        return 0, 0
    rises, falls = steps >= -1e-9, steps <= 1e-9
    if rises.all() or falls.all():
        return int(rises.all()) - int(falls.all()), 0
    for way, first, last in ((1, rises, falls), (-1, falls, rises)):
        turn = int(np.argmin(first))
        if last[turn:].all():
            return way, turn + 1
    return 0, 0


# -------------------------------------------------------------------------------- lines


def cell_rows(
    clf: Any, fit: CardFit, schema: TableSchema, c: int, points: Ints
) -> Iterator[Line]:
    """Yield the lines of a card: name, cell, points, rows and rate of the class."""
    names = schema.labels()
    for column, own in zip(fit.columns, fit.by_column(points), strict=True):
        j = column.attribute
        feature, name = schema.features[j], names[j]
        rows, rate_rows = _counted(clf, fit, schema, column, c)
        for cell in range(column.n_cells + 1):
            codes = np.flatnonzero(column.groups == cell)
            if cell == 0:
                codes = codes[:1]
            else:
                value = _cell_text(schema, j, codes.tolist())
                total, part = rows[codes].sum(), rate_rows[codes].sum()
                yield _line(name, value, int(own[cell - 1]), total, part)
        if feature.missing_code and not feature.missing_is_value:
            own_cell = column.groups[feature.missing_code]
            yield _line(name, "(missing)", int(own[own_cell - 1]), 0.0, 0.0)
        unknown = "(unseen)" if feature.missing_code else "(unknown)"
        codes = np.flatnonzero(column.groups == 0)
        yield _line(name, unknown, 0, rows[codes].sum(), rate_rows[codes].sum())


def _line(name: str, value: str, points: int, rows: float, part: float) -> Line:
    return name, value, points, float(rows), float(part / rows) if rows else np.nan


def _counted(
    clf: Any, fit: CardFit, schema: TableSchema, column: CardColumn, c: int
) -> tuple[Floats, Floats]:
    """Return rows of each code, all and those of a class; about so for densities."""
    counts, n = getattr(clf, "counts_", None), len(column.groups)
    j = column.attribute
    if counts is not None and len(counts.schema) > j:
        own = counts.schema.features[j]
        if own == schema.features[j]:
            start = int(counts.schema.offsets[j])
            by_code = counts.by_code[start : start + n]
            return by_code.sum(axis=1), by_code[:, c]
    share = 1.0 if counts is None else counts.total / len(column.codes)
    rows = np.bincount(column.codes, minlength=n) * share
    return rows, np.bincount(column.codes, fit.target, n) * share


def _cell_text(schema: TableSchema, j: int, codes: list[int]) -> str:
    """Name a cell so that all that belongs to it can be told."""
    feature = schema.features[j]
    if feature.sides:
        return "; ".join(schema.describe(j, code) for code in codes)
    if feature.kind == "categorical" or codes[-1] > len(feature.edges) + 1:
        return ", ".join(map(feature.describe, codes))
    low = feature.edges[codes[0] - 2] if codes[0] > 1 else None
    high = feature.edges[codes[-1] - 1] if codes[-1] <= len(feature.edges) else None
    if low is None or high is None:
        known = high if low is None else low
        if known is None:
            return "known"
        return f"{'≤' if low is None else '>'} {_short(known)}"
    return f"> {_short(low)} to {_short(high)}"


def _short(edge: float) -> str:
    """Write a cut point without the last digits, which nobody reads."""
    return f"{edge:.10g}" if abs(edge) >= 1e5 else f"{edge:.6g}"
