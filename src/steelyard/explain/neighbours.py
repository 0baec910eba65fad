"""The model that a lazy classifier makes for one query, as an ordinary sum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.text import as_plain, text_table
from steelyard.classifiers.lazy import LazyModel, LocalModel, MatchingModel
from steelyard.explain.cells import Cells
from steelyard.kernels import lazy as kernels
from steelyard.model.table_model import NBModel
from steelyard.proba.gaussian import GaussianTable

__all__ = ["Neighbours", "query_model"]

_TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True, repr=False)
class Neighbours:
    """Training rows behind the model of one query, by falling weight."""

    rows: NDArray[np.int64]
    """Positions among the training rows; rows of weight zero are not counted."""

    labels: NDArray[Any]
    distances: NDArray[np.float64]
    weights: NDArray[np.float64]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        return as_plain(dict(vars(self)))

    def __repr__(self) -> str:
        """List the ten rows with the largest weight."""
        lines = [
            [str(row), str(label), f"{distance:.3f}", f"{weight:.3f}"]
            for row, label, distance, weight in zip(
                self.rows[:10],
                self.labels[:10],
                self.distances[:10],
                self.weights[:10],
                strict=True,
            )
        ]
        headers = ["training row", "class", "distance", "weight"]
        shown = text_table(headers, lines, [True, False, True, True])
        more = len(self.rows) - len(lines)
        return shown + (f"\n… and {more} more" if more > 0 else "")


def query_model(model: LazyModel, query: Cells) -> tuple[NBModel, Neighbours]:
    """Make the model of one query: naive Bayes on weighted training rows."""
    schema, k = model.schema, len(model.classes)
    codes = query.codes[0, schema.coded]
    same = model.columns == codes[:, None]
    matches = (same & (codes[:, None] != 0)).sum(axis=0)
    user = model.weights if model.weights.size else np.ones(len(model.y))
    exponents = np.ones(len(schema.coded))
    floors = np.zeros(0)
    numbers = np.zeros((0, len(model.y)))
    if isinstance(model, LocalModel):
        numbers, floors = model.numbers, model.floors
        squares = _squared_distances(model, query, matches)
        distance, mass = np.sqrt(squares), _kernel_weights(model, squares, user)
    else:
        assert isinstance(model, MatchingModel)
        distance = (len(codes) - matches).astype(np.float64)
        mass = (1.0 + matches) * user
        exponents = model.exponents[schema.coded]
    total = np.bincount(model.y, mass, minlength=k).astype(np.float64)
    own = NBModel(
        schema,
        model.classes,
        _log_prior(model, total),
        _value_table(model, mass, exponents),
        _densities(numbers, model.y, mass, floors, k),
    )
    order = np.lexsort((np.arange(len(mass)), distance, -mass))
    kept = order[mass[order] > 0.0]
    found = Neighbours(
        kept, model.classes[model.y[kept]], distance[kept], np.asarray(mass[kept])
    )
    return own, found


def _squared_distances(
    model: LocalModel, query: Cells, matches: NDArray[np.int64]
) -> NDArray[np.float64]:
    squares = (len(model.columns) - matches).astype(np.float64)
    low, span = model._scale
    for g, x in enumerate(query.numbers[0, model.schema.gaussian]):
        x = (x - low[g]) / span[g]
        t = (model.numbers[g] - low[g]) / span[g]
        # A missing number is as far away as it can be.
        far = np.maximum(x, 1.0 - x) if not np.isnan(x) else 1.0
        gap = np.abs(x - t) if not np.isnan(x) else np.maximum(t, 1.0 - t)
        squares += np.where(np.isnan(t), far, gap) ** 2
    return squares


def _kernel_weights(
    model: LocalModel, squares: NDArray[np.float64], user: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Weights of the nearest rows and those tied with the last of them."""
    k = min(model.neighbours, len(squares))
    radius = np.partition(squares, k - 1)[k - 1]
    kept = squares <= radius
    by_kernel = np.zeros(len(squares))
    if radius > 0.0:
        by_kernel[kept] = [
            kernels._kernel(model.kernel, s) for s in np.sqrt(squares[kept] / radius)
        ]
    else:
        by_kernel[kept] = 1.0
    mass = by_kernel * user
    return np.asarray(mass * (user[kept].sum() / mass.sum()))


def _log_prior(model: LazyModel, total: NDArray[np.float64]) -> NDArray[np.float64]:
    if model.log_prior.size:
        return model.log_prior
    share = total + model.prior_added
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(share / share.sum()))


def _value_table(
    model: LazyModel, mass: NDArray[np.float64], exponents: NDArray[np.float64]
) -> NDArray[np.float64]:
    schema, k = model.schema, len(model.classes)
    table = np.zeros((schema.n_codes, k))
    for position, j in enumerate(schema.coded.tolist()):
        n_codes = schema.features[j].n_codes
        both = model.columns[position].astype(np.int64) * k + model.y
        counts = np.bincount(both, mass, minlength=n_codes * k).reshape(n_codes, k)
        added = model.value_added[position]
        known = counts[1:].sum(axis=0)
        p = (counts[1:] + added) / (known + (n_codes - 1) * added)
        first = schema.offsets[j]
        table[first + 1 : first + n_codes] = exponents[position] * np.log(
            np.maximum(p, _TINY)
        )
    return table


def _densities(
    numbers: NDArray[np.float64],
    y: NDArray[np.uint32],
    mass: NDArray[np.float64],
    floors: NDArray[np.float64],
    n_classes: int,
) -> GaussianTable:
    """Means and deviations of the weighted rows; all rows where a class has none."""
    mean = np.zeros((len(numbers), n_classes))
    deviation = np.ones((len(numbers), n_classes))
    for g, column in enumerate(numbers):
        known = ~np.isnan(column) & (mass > 0.0)
        for c in range(n_classes):
            own = known & (y == c)
            rows = own if own.any() else known
            if not rows.any():
                continue
            mean[g, c] = np.average(column[rows], weights=mass[rows])
            square = (column[rows] - mean[g, c]) ** 2
            variance = max(float(np.average(square, weights=mass[rows])), floors[g])
            deviation[g, c] = np.sqrt(variance)
    return GaussianTable(mean, deviation, np.zeros(len(numbers)))
