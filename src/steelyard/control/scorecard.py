"""Making a scorecard of a fitted model: cells, values and whole points."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.allowed import Check, number, whole
from steelyard._common.arrays import Floats, Ints
from steelyard.control.card import Card, CardModel, CardRow, Scorecard
from steelyard.control.card_cells import (
    CardFit,
    cross_entropy,
    design,
    merged_fit,
    pooled,
)
from steelyard.control.card_columns import (
    card_columns,
    card_schema,
    cell_rows,
    made_rows,
)
from steelyard.exceptions import ParameterError, check_fitted
from steelyard.explain.shared import model_of, position_of
from steelyard.model.table_model import NBModel
from steelyard.proba.gaussian import GaussianTable
from steelyard.table.labels import known_labels, labels_of_rows

__all__ = ["scorecard_of"]


def rounded(values: Floats, curvature: Floats) -> Ints:
    r"""Return whole numbers that keep a loss with given second derivatives.

    The loss grows by :math:`\tfrac12 (z - v)^\top H (z - v)`. Values are rounded one
    after the other, those that matter most first; those that are left make up for each
    error as far as they can. Then numbers go up or down by one while that helps, from
    there and from the nearest numbers; the better of the two is taken.

    Examples
    --------
    >>> import numpy as np
    >>> rounded(np.array([0.4, 0.45]), np.array([[1.0, 0.9], [0.9, 1.0]])).tolist()
    [0, 1]
    """
    order = np.argsort(-np.diag(curvature), kind="stable")
    inverse = np.linalg.inv(curvature[np.ix_(order, order)])
    # Its factor has, row by row, how what is left makes up for an error.
    factor = np.linalg.cholesky(inverse).T
    wanted = values[order].astype(np.float64)
    for i in range(len(wanted)):
        error = (wanted[i] - np.round(wanted[i])) / factor[i, i]
        wanted[i] = np.round(wanted[i])
        wanted[i + 1 :] -= error * factor[i, i + 1 :]
    whole = np.empty_like(wanted)
    whole[order] = wanted
    candidates = [_improved(z, values, curvature) for z in (whole, np.round(values))]
    return min(candidates, key=lambda z: float((z - values) @ curvature @ (z - values)))


def _improved(whole: Floats, values: Floats, curvature: Floats) -> Ints:
    """Step up or down by one, the best first, while the loss falls."""
    half = np.diag(curvature) / 2.0
    slope = curvature @ (whole - values)
    for _ in range(20 * len(values)):
        gains = np.abs(slope) - half
        i = int(np.argmax(gains))
        if gains[i] <= 1e-12 * half[i]:
            break
        step = -np.sign(slope[i])
        whole[i] += step
        slope += step * curvature[:, i]
    return whole.astype(np.int64)


# Cells are chosen on at most this number of rows, evenly spaced.
_MAX_ROWS = 20_000


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
) -> Scorecard:
    r"""Return a fitted classifier as a card of whole points.

    .. math:: \mathrm{points} = b + \frac{d}{\log 2} \log \frac{\mathrm{odds}}{o}

    with ``base_points`` b, ``points_to_double`` d and ``base_odds`` o. Bins and
    categories are merged where that costs least; the values of what is left come
    nearest to the probabilities of the model, and are rounded together so that their
    log-loss stays. A curve that never falls, or never rises, does so on the card.

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
        Most cells of a column.
    max_cells : int, default=80
        Most cells of a card.
    max_loss : float, default=0.001
        How much of the log-loss merges may cost, beyond what the above ask for.
    interactions : int, default=0
        How many interactions are on the card, the most important first. What
        others say is taken over by their columns as far as that goes.

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
        some = np.linspace(0, codes.n_rows - 1, _MAX_ROWS).astype(np.int64)
        codes, labels = codes.take(some), None if labels is None else labels[some]
    proba = model.proba(codes)
    new_schema = card_schema(schema, codes)
    encoder = copy.copy(clf.encoder_)
    encoder.schema_ = new_schema
    positions = _targets(clf.classes_, target)
    cards = []
    for c in positions:
        columns = card_columns(
            model, schema, new_schema, codes, proba[:, c], c, interactions
        )
        fit = merged_fit(columns, proba[:, c], max_bins, max_cells, max_loss)
        truth = proba[:, c] if labels is None else (labels == c).astype(np.float64)
        cards.append(_card(clf, fit, c, new_schema, encoder, scale, truth))
    on = "given rows" if X is not None else "rows made of the counts in the model"
    on += ", probabilities of the model" if y is None else ", labels"
    name = getattr(clf, "target_name_", None)
    edits = getattr(clf, "edits_", ())
    return Scorecard(cards, clf.classes_, name, on, codes.n_rows, edits)


def _check_options(*values: Any) -> None:
    for (name, allowed), value in zip(_OPTIONS.items(), values, strict=True):
        if not allowed.accepts(value):
            raise ParameterError(f"`{name}` must be {allowed.text}. Got {value!r}.")


def _targets(classes: NDArray[Any], target: Any) -> list[int]:
    if target is not None:
        return [position_of(target, classes)]
    return [1] if len(classes) == 2 else list(range(len(classes)))


def _card(
    clf: Any,
    fit: CardFit,
    c: int,
    schema: Any,
    encoder: Any,
    scale: tuple[float, float, float],
    truth: Floats,
) -> Card:
    """Round the values of a card, and say what its lines hold."""
    to_double, base_points, base_odds = map(float, scale)
    unit = float(np.log(2.0) / to_double)
    zero = float(base_points - to_double * np.log2(base_odds))
    while True:
        whole = rounded(fit.values / unit + zero * _is_start(fit), fit.curvature)
        again = pooled(fit, whole)
        if again is None:
            break
        fit = again
    rows = design(fit.columns, len(truth))
    odds = {"merged": rows @ fit.values, "points": unit * (rows @ whole - zero)}
    p = fit.target.clip(1e-15, 1.0 - 1e-15)
    loss = {"model": cross_entropy(np.log(p) - np.log1p(-p), truth)}
    loss |= {name: cross_entropy(own, truth) for name, own in odds.items()}
    table = np.zeros((schema.n_codes, 2))
    for column, own in zip(fit.columns, fit.by_column(whole), strict=True):
        start = int(schema.offsets[column.attribute])
        points = np.concatenate([[0], own])[column.groups]
        table[start : start + len(points), 1] = points
    classes = clf.classes_
    others = [label for k, label in enumerate(classes.tolist()) if k != c]
    both = [others[0] if len(others) == 1 else f"not {classes[c]}", classes.tolist()[c]]
    if len(others) > 1:
        both[1] = str(both[1])
    model = NBModel(
        schema,
        np.array(both, dtype=object if len(others) > 1 else classes.dtype),
        np.array([zero, float(whole[0])]),
        table,
        _no_densities(schema),
        unit,
    )
    lines = cell_rows(clf, fit, schema, c, whole)
    return Card(
        classes.tolist()[c],
        int(whole[0]),
        tuple(CardRow(*line) for line in lines),
        to_double,
        zero,
        CardModel(model, encoder),
        loss,
        fit.n_cells,
    )


def _is_start(fit: CardFit) -> Floats:
    out = np.zeros(len(fit.values))
    out[0] = 1.0
    return out


def _no_densities(schema: Any) -> GaussianTable:
    """Return densities that add nothing, for what a card does without."""
    features = [schema.features[j] for j in schema.gaussian.tolist()]
    shape = (len(features), 2)
    return GaussianTable.of(features, np.zeros(shape), np.ones(shape), np.zeros(shape))
