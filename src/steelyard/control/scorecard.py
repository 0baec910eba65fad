"""Making a scorecard of a fitted model: rows, columns and their cells, whole points."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np

from steelyard._common.allowed import Check, number, whole
from steelyard._common.arrays import Floats, Ints
from steelyard.classifiers.fitted import answering_model
from steelyard.control.card import (
    SIGNATURES,
    Card,
    CardModel,
    CardRow,
    Scorecard,
    with_woe,
)
from steelyard.control.card_cells import (
    CardColumn,
    CardFit,
    cross_entropy,
    design,
    merged_fit,
    pooled,
    rounded,
    unknown_values,
)
from steelyard.exceptions import ParameterError, check_fitted
from steelyard.explain.page_card import document, read_card
from steelyard.explain.shared import (
    evidence_of,
    model_of,
    position_of,
    typical_numbers,
)
from steelyard.model.base import Model
from steelyard.model.table_model import NBModel
from steelyard.proba.counts import Counts
from steelyard.proba.gaussian import GaussianTable
from steelyard.table.codes import BlockBuilder, Codes, code_dtype
from steelyard.table.encoding import bins_of, encode_numbers
from steelyard.table.labels import known_labels, labels_of_rows
from steelyard.table.ranges import evenly
from steelyard.table.schema import FeatureSchema, TableSchema

# Cells are chosen on at most this number of rows, evenly spaced.
_MAX_ROWS = 20_000

# Rows that are made of counts, and the seed of the order in which columns meet.
_MADE_ROWS, _SEED = 4000, 0

# Bins of a column that the model scores by a density.
_DENSITY_BINS = 32

_OPTIONS: dict[str, Check] = {
    "points_to_double": number(0.01, 1e6, "[]"),
    "base_points": number(-1e9, 1e9, "[]"),
    "base_odds": number(0.0, ends="()"),
    "max_bins": whole(2),
    "max_cells": whole(1),
    "max_loss": number(0.0),
    "interactions": whole(0),
}


def scorecard_of(
    clf: Any,
    X: Any = None,
    y: Any = None,
    *,
    target: Any = None,
    points_to_double: float = 20,
    base_points: float = 600,
    base_odds: float = 50,
    max_bins: int = 8,
    max_cells: int = 80,
    max_loss: float = 0.001,
    interactions: int = 0,
    card: Mapping[str, Any] | str | PathLike[str] | None = None,
) -> Scorecard:
    r"""Return a fitted classifier as a card of whole points.

    .. math:: \mathrm{points} = b + \frac{d}{\log 2} \log \frac{\mathrm{odds}}{o}

    with ``base_points`` b, ``points_to_double`` d and ``base_odds`` o. Bins and
    categories are merged where that costs least; the values of what is left come
    nearest to the probabilities of the model, and are rounded together so that their
    log-loss stays. A curve that never falls, or never rises, does so on the card.
    What is not known adds nothing. If the model averages over unknown cells, as the
    default does, the points of a column are counted from the value that suits partly
    known rows best.

    Parameters
    ----------
    clf : classifier
        A fitted classifier of this package.
    X : table of shape (n, d), default=None
        Rows to make the card on, best those of training. Without them rows are made of
        the counts in the model, as if columns were independent within a class.
    y : array-like of shape (n,), default=None
        Their labels, for ``loss`` alone.
    target : label, default=None
        The class that points speak for; by default the second of two. With more
        classes there is a card for each, or one for the target against the others.
    points_to_double, base_points, base_odds : float
        Points that double the odds, from 0.01 to a million; points at which odds are
        ``base_odds`` to one, up to a billion.
    max_bins : int, default=8
        Maximum number of cells of a column.
    max_cells : int, default=80
        Maximum number of cells of a card.
    max_loss : float, default=0.001
        How much of the log-loss merges may cost, beyond what the above ask for.
    interactions : int, default=0
        How many interactions are on the card, the most important first. Contributions
        of the others are taken over by their columns as far as that goes.
    card : mapping or path of a TOML file, default=None
        Author, date, intended use and who signs, as on the page of a model
        (``clf.page``), and texts of adverse reasons by column.

    Returns
    -------
    Scorecard

    Examples
    --------
    >>> import pandas as pd, steelyard as sy
    >>> X = pd.DataFrame({"sky": ["sun", "rain", "snow"] * 8, "wind": [1, 2, 3, 4] * 6})
    >>> clf = sy.NaiveBayes(categorical_features="all").fit(X, ["play", "stay"] * 12)
    >>> card = scorecard_of(clf, X, base_points=0, base_odds=1)
    >>> card.points(X[:4]).tolist()
    [-93, 93, -93, 93]
    >>> card.to_frame()[["column", "value", "points"]].values.tolist()[1:]
    [['wind', '1, 3', -93], ['wind', '2, 4', 93], ['wind', '(unknown)', 0]]
    """
    check_fitted(clf)
    scale = points_to_double, base_points, base_odds
    _check_options(*scale, max_bins, max_cells, max_loss, interactions)
    model, schema = model_of(clf), clf.encoder_.schema_
    if X is None and y is not None:
        raise ParameterError("Labels `y` need their rows: give `X` as well.")
    if X is None:
        codes = made_rows(schema, clf.counts_, clf.training_.ranges)
    else:
        codes = clf._encode(X)
    labels = None
    if y is not None:
        labels = known_labels(labels_of_rows(y, codes.n_rows), clf.classes_)
    if codes.n_rows > _MAX_ROWS:
        some = evenly(codes.n_rows, _MAX_ROWS)
        codes, labels = codes.take(some), None if labels is None else labels[some]
    proba = model.proba(codes)
    new_schema = card_schema(schema, codes)
    encoder = copy.copy(clf.encoder_)
    encoder.schema_ = new_schema
    positions = [1] if len(clf.classes_) == 2 else list(range(len(clf.classes_)))
    if target is not None:
        positions = [position_of(target, clf.classes_)]
    cards = []
    for c in positions:
        columns = card_columns(
            model, schema, new_schema, codes, proba[:, c], c, interactions
        )
        fit = merged_fit(columns, proba[:, c], max_bins, max_cells, max_loss)
        truth = proba[:, c] if labels is None else (labels == c).astype(np.float64)
        cards.append(_card(clf, fit, c, new_schema, encoder, scale, truth))
    on = "given rows" if X is not None else "rows drawn from the counts in the model"
    on += ", probabilities of the model" if y is None else " and labels"
    name = getattr(clf, "target_name_", None)
    edits = getattr(clf, "edits_", ())
    entries = read_card(card)
    made = Scorecard(cards, clf.classes_, name, on, codes.n_rows, edits)
    made.document = document(clf, entries)
    made.signatures = tuple(entries.get("signatures", SIGNATURES))
    made.reason_texts = {
        column: about.get("reason") or about.get("label") or column
        for column, about in entries.get("columns", {}).items()
    }
    return made


def _check_options(*values: Any) -> None:
    for (name, allowed), value in zip(_OPTIONS.items(), values, strict=True):
        if not allowed.accepts(value):
            raise ParameterError(f"`{name}` must be {allowed.text}. Got {value!r}.")


def _card(
    clf: Any,
    fit: CardFit,
    c: int,
    schema: TableSchema,
    encoder: Any,
    scale: tuple[float, float, float],
    truth: Floats,
) -> Card:
    """Return the card of the fitted cells for one class, rounded to whole points."""
    to_double, base_points, base_odds = map(float, scale)
    unit = float(np.log(2.0) / to_double)
    zero = float(base_points - to_double * np.log2(base_odds))
    again: CardFit | None = fit
    while again is not None:
        fit = again
        exact = fit.values / unit
        exact[0] += zero
        points = rounded(exact, fit.curvature)
        again = pooled(fit, points)
    points = _from_unknown(clf, fit, schema, points, unit, zero)
    rows = design(fit.columns, len(truth))
    odds = {"merged": rows @ fit.values, "points": unit * (rows @ points - zero)}
    p = fit.target.clip(1e-15, 1.0 - 1e-15)
    loss = {"model": cross_entropy(np.log(p) - np.log1p(-p), truth)}
    loss |= {name: cross_entropy(log_odds, truth) for name, log_odds in odds.items()}
    table = np.zeros((schema.n_codes, 2))
    for column, of_cells in zip(fit.columns, fit.by_column(points), strict=True):
        start = int(schema.offsets[column.attribute])
        of_codes = np.concatenate([[0], of_cells])[column.groups]
        table[start : start + len(of_codes), 1] = of_codes
    labels = clf.classes_.tolist()
    target, others = labels[c], [label for label in labels if label != labels[c]]
    classes = np.array([*others, target], dtype=clf.classes_.dtype)
    if len(others) > 1:
        classes = np.array([f"not {clf.classes_[c]}", str(target)], dtype=object)
    prior, none = np.array([zero, float(points[0])]), np.zeros((0, 2))
    densities = GaussianTable.of([], none, none, none)
    model = NBModel(schema, classes, prior, table, densities, unit)
    return Card(
        target,
        int(points[0]),
        with_woe(_card_rows(clf, fit, schema, c, points)),
        to_double,
        zero,
        CardModel(model, encoder),
        loss,
        fit.n_cells,
    )


def _from_unknown(
    clf: Any, fit: CardFit, schema: TableSchema, points: Ints, unit: float, zero: float
) -> Ints:
    """Return points relative to those of an unknown cell; totals of rows are the same.

    That is for columns whose missing cells the model averages over.
    """
    moments = getattr(answering_model(clf), "marginal", None)
    if moments is None or not fit.columns:
        return points
    averaged = []
    for column in fit.columns:
        sides = schema.features[column.attribute].sides
        names = tuple(side.feature for side in sides) or (column.attribute,)
        averaged.append(names if moments.columns[list(names)].all() else ())
    values = np.asarray(unit * points, dtype=np.float64)
    values[0] -= unit * zero
    shifts: Ints = np.round(unknown_values(fit, values, averaged) / unit)
    sizes = [column.n_cells for column in fit.columns]
    return points + np.concatenate([[shifts.sum()], -np.repeat(shifts, sizes)])


def _card_rows(
    clf: Any, fit: CardFit, schema: TableSchema, c: int, points: Ints
) -> Iterator[CardRow]:
    """Yield the lines of the card of a class: cells, missing and unseen values."""
    names = schema.labels()
    for column, of_cells in zip(fit.columns, fit.by_column(points), strict=True):
        j = column.attribute
        feature, name = schema.features[j], names[j]
        rows, target_rows = _rows_of_codes(clf, fit, schema, column, c)
        for cell in range(1, column.n_cells + 1):
            codes = np.flatnonzero(column.groups == cell)
            value = _cell_text(schema, j, codes.tolist())
            n, n_target = rows[codes].sum(), target_rows[codes].sum()
            yield _card_row(name, value, of_cells[cell - 1], n, n_target)
        if feature.missing_code and not feature.missing_is_value:
            missing = of_cells[column.groups[feature.missing_code] - 1]
            yield _card_row(name, "(missing)", missing, 0.0, 0.0)
        unseen = "(unseen)" if feature.missing_code else "(unknown)"
        codes = np.flatnonzero(column.groups == 0)
        yield _card_row(name, unseen, 0, rows[codes].sum(), target_rows[codes].sum())


def _card_row(
    name: str, value: str, points: int, rows: float, target_rows: float
) -> CardRow:
    rate = float(target_rows / rows) if rows else np.nan
    return CardRow(name, value, int(points), float(rows), rate)


def _rows_of_codes(
    clf: Any, fit: CardFit, schema: TableSchema, column: CardColumn, c: int
) -> tuple[Floats, Floats]:
    """Return rows of each code, all and those of a class; estimated for densities."""
    counts, n = getattr(clf, "counts_", None), len(column.groups)
    j = column.attribute
    if counts is not None and len(counts.schema) > j:
        if counts.schema.features[j] == schema.features[j]:
            start = int(counts.schema.offsets[j])
            by_code = counts.by_code[start : start + n]
            return by_code.sum(axis=1), by_code[:, c]
    share = 1.0 if counts is None else counts.total / len(column.codes)
    rows = np.bincount(column.codes, minlength=n) * share
    return rows, np.bincount(column.codes, fit.target, n) * share


def _cell_text(schema: TableSchema, j: int, codes: list[int]) -> str:
    """Name a cell so that it is clear which values belong to it."""
    feature = schema.features[j]
    if feature.sides:
        return "; ".join(schema.describe(j, code) for code in codes)
    if feature.kind == "categorical" or codes[-1] > len(feature.edges) + 1:
        return ", ".join(map(feature.describe, codes))
    low = feature.edges[codes[0] - 2] if codes[0] > 1 else None
    high = feature.edges[codes[-1] - 1] if codes[-1] <= len(feature.edges) else None
    write = schema.writer(j, _short)
    if low is None:
        return "known" if high is None else f"≤ {write(high)}"
    return f"> {write(low)}" + ("" if high is None else f" to {write(high)}")


def _short(edge: float) -> str:
    """Write a cut point without the last digits, which nobody reads."""
    return f"{edge:.10g}" if abs(edge) >= 1e5 else f"{edge:.6g}"


# ------------------------------------------------------------------------------ columns


def card_schema(schema: TableSchema, codes: Codes) -> TableSchema:
    """Return the schema of a card, with bins in place of densities."""
    features = list(schema.features)
    for g, j in enumerate(schema.gaussian.tolist()):
        features[j] = _binned(features[j], codes.number_column(g))
    return TableSchema(tuple(features))


def _binned(feature: FeatureSchema, numbers: Floats) -> FeatureSchema:
    observed = np.sort(numbers[~np.isnan(numbers)])
    ranks = np.linspace(0, len(observed), _DENSITY_BINS + 1)[1:-1].astype(np.int64)
    edges = (
        sorted({float(f"{x:.4g}") for x in observed[ranks]}) if len(observed) else []
    )
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

    Columns that contribute nothing, for example since they were edited out, are left
    out: on a card they would take the place of others.
    """
    columns = []
    used = [j for j in range(schema.n_columns) if _contributes(model, j)]
    for j in [*used, *_largest_interactions(model, codes, c, interactions)]:
        feature = new.features[j]
        coded = _codes(schema, feature, codes, j).astype(np.int64)
        n_free = feature.n_values - feature.missing_is_value
        groups = np.arange(feature.n_codes)
        if feature.sides:
            groups = np.where(feature.both_known, np.cumsum(feature.both_known), 0)
        evidence = _evidence(model, new, j, coded, proba, c)
        in_line = feature.kind == "binned" or feature.ordered
        single = np.arange(n_free + 1, feature.n_codes)
        way, turn = 0, 0
        if in_line and model.is_sum:
            way, turn = _direction(evidence[1 : n_free + 1])
        columns.append(
            CardColumn(j, coded, groups, evidence, in_line, single, way, turn)
        )
    return columns


def _contributes(model: Model, j: int) -> bool:
    """Whether a column of a sum adds anything, alone or in an interaction."""
    if not isinstance(model, NBModel):
        return True
    schema = model.schema
    interactions = [
        k
        for k in range(schema.n_columns, len(schema))
        if any(side.feature == j for side in schema.features[k].sides)
    ]
    return any(
        model.table[schema.offsets[k] : schema.offsets[k + 1]].any()
        if schema.features[k].is_coded
        else model.density(k).factors.any()
        for k in [j, *interactions]
    )


def _codes(schema: TableSchema, feature: FeatureSchema, codes: Codes, j: int) -> Ints:
    if schema.features[j].is_coded:
        return np.asarray(codes.column(j))
    numbers = codes.number_column(schema.gaussian.tolist().index(j))
    return encode_numbers(feature, np.ascontiguousarray(numbers))


def _largest_interactions(model: Model, codes: Codes, c: int, n: int) -> list[int]:
    """Return the interactions whose evidence varies most between rows."""
    interactions = np.flatnonzero(model.schema.is_interaction)
    if not n or not len(interactions) or not isinstance(model, NBModel):
        return []
    contributions = model.contributions(codes)[:, interactions]
    spread = evidence_of(contributions)[..., c].std(axis=0)
    return [int(j) for j in interactions[np.argsort(-spread, kind="stable")[:n]]]


def _evidence(
    model: Model, new: TableSchema, j: int, coded: Ints, proba: Floats, c: int
) -> Floats:
    """Return the evidence of each code of a column for a class, in log-odds."""
    feature = new.features[j]
    if not isinstance(model, NBModel):
        # The mean of rows with the code, with all other columns as they are.
        p = proba.clip(1e-6, 1.0 - 1e-6)
        odds = np.log(p) - np.log1p(-p)
        n = np.bincount(coded, minlength=feature.n_codes)
        total = np.bincount(coded, odds - odds.mean(), feature.n_codes)
        return np.where(n > 0, total / np.maximum(n, 1), 0.0)
    start = int(model.schema.offsets[j])
    if model.schema.features[j].is_coded:
        rows = model.table[start : start + feature.n_codes]
    else:
        numbers = typical_numbers(np.array(feature.edges))
        scores = model.density_scores(j, numbers)
        rows = np.vstack([np.zeros(model.n_classes), scores])
    return np.asarray(evidence_of(rows)[:, c] * model.link_scale)


def _direction(evidence: Floats) -> tuple[int, int]:
    """Return whether evidence rises (1) or falls (-1), and the code where it turns.

    Both are 0 for evidence that turns more than once.
    """
    steps = np.diff(evidence)
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


# --------------------------------------------------------------------- rows from counts


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
    schema: TableSchema, counts: Counts, j: int, c: int, size: int, limits: Any
) -> Any:
    """Return codes of a category, or numbers, for some rows of one class."""
    feature, start = schema.features[j], int(schema.offsets[j])
    if not feature.is_coded:
        return _density_cells(counts, j, c, size)
    weights = counts.by_code[start : start + feature.n_codes, c]
    total = float(weights.sum())
    codes = np.zeros(size, dtype=np.int64)
    if total > 0.0:
        # In order, each as often as its weight.
        steps = (np.arange(size) + 0.5) / size * total
        codes = np.searchsorted(np.cumsum(weights), steps).clip(max=len(weights) - 1)
    return codes if feature.kind == "categorical" else _within(feature, codes, limits)


def _within(feature: FeatureSchema, codes: Ints, limits: Any) -> Floats:
    """Return numbers evenly within the bins of codes; NaN for missing cells."""
    edges = np.array(feature.edges, dtype=np.float64)
    gap = float(np.diff(edges).mean()) if len(edges) > 1 else 1.0
    low, high = (edges[0] - gap, edges[-1] + gap) if len(edges) else (0.0, 1.0)
    if limits is not None:
        low, high = limits.low, limits.high
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
    n_observed = round(size * weight / total) if total > 0.0 else 0
    out = np.full(size, np.nan)
    if n_observed:
        deviation = np.sqrt(counts.moments.squares[g, c] / weight)
        quantiles = ndtri((np.arange(n_observed) + 0.5) / n_observed)
        out[:n_observed] = counts.moments.mean[g, c] + deviation * quantiles
    return out
