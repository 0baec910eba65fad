"""What each attribute adds in the average training row: there, readers begin.

The constant of a column is arbitrary in a sum: what one adds to all its values another
may take off. Contributions that are shown differ from the mean over the training rows,
so that a sign means more or less than there; the base is the mean score.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard._common.arrays import Floats
from steelyard._common.threads import pieces
from steelyard.model.base import Model
from steelyard.model.table_model import NBModel
from steelyard.proba.counts import Counts
from steelyard.proba.gaussian import GaussianTable
from steelyard.table.by_schema import on_grid
from steelyard.table.codes import FeatureTable

if TYPE_CHECKING:
    from steelyard.model.training import TrainingSet

# Nodes of means under a normal distribution.
_HERMITE = 64


def centred(model: Any, counts: Counts | None, training: Any = None) -> Any:
    """Return a model whose sums know what each attribute adds on average.

    Codes are averaged by their counts, by ``sample_weight`` alone, Gaussian densities
    by the moments of their numbers. Other numbers are averaged over the rows of a
    training set that has them all; without one, by their moments, and about so.
    """
    if counts is None or not isinstance(model, Model):
        return model
    if training is not None and training.earlier is not None:
        training = None
    mean = partial(_mean_terms, counts=counts, training=training)
    return model.centred(mean, tuple(range(model.n_classes)))


def centred_model(clf: Any) -> Any:
    """Return the model of a fitted classifier, centred if its file was not."""
    model = clf.model_
    is_whole = not isinstance(model, Model) or model.first_sum() is None
    if is_whole or model.first_sum().centre is not None:
        return model
    return centred(model, getattr(clf, "counts_", None))


def _mean_terms(
    model: NBModel,
    classes: tuple[int, ...],
    counts: Counts,
    training: TrainingSet | None,
) -> Floats | None:
    """Return what each attribute of a sum adds on average, (d, K), None if unknown."""
    own, schema = counts.of_classes(classes), model.schema
    if own.schema != schema or not own.total > 0.0:
        return None
    rows = own.by_code.sum(axis=1, keepdims=True)
    added = np.where(rows > 0.0, rows * np.where(rows > 0.0, model.table, 0.0), 0.0)
    sums = FeatureTable(model.table, schema.offsets).collect(added)
    by_row = [
        j
        for j in schema.gaussian.tolist()
        if training is not None and not _is_quadratic(model.density(j))
    ]
    for j in np.setdiff1d(schema.gaussian, by_row).tolist():
        for weight, share, numbers in numbers_by_class(own, j):
            sums[j] += weight * (share @ model.density_scores(j, numbers))
    if by_row and training is not None:
        of_part = partial(_number_sums, model=model, classes=classes, columns=by_row)
        sums[by_row] = training.place.sum(training, of_part)
    # Impossible values have no mean: their column is shown as it is.
    return np.where(np.isfinite(sums).all(axis=1, keepdims=True), sums / own.total, 0.0)


def _is_quadratic(density: GaussianTable) -> bool:
    """Whether log-densities are quadratic, so that moments give their mean."""
    forms = (density.step, density.depth, density.limit)
    return not any(form is not None and form.any() for form in forms)


def _number_sums(
    training: TrainingSet,
    model: NBModel,
    classes: tuple[int, ...],
    columns: list[int],
) -> Floats:
    """Add up what numbers of rows in arrays here add to the scores, by column, (K,)."""
    places = np.searchsorted(model.schema.gaussian, columns).tolist()
    sums = np.zeros((len(columns), model.n_classes))
    for rows in pieces(slice(0, training.n_rows)):
        kept = np.isin(training.labels[rows], classes)
        numbers = training.codes.number_rows(rows)[kept]
        weights = np.ones(len(numbers))
        if training.sample_weight is not None:
            weights = training.sample_weight[rows][kept]
        for k, (j, g) in enumerate(zip(columns, places, strict=True)):
            sums[k] += weights @ model.density_scores(j, numbers[:, g])
    return sums


def numbers_by_class(counts: Counts, j: int) -> Iterator[tuple[float, Floats, Floats]]:
    """Yield for each class its weight, and numbers that stand for it with their shares.

    They are nodes of a normal distribution with mean and variance of the rows.
    """
    nodes, shares = _nodes()
    moments = counts.moments
    g, step = counts.schema.gaussian.tolist().index(j), counts.schema.features[j].step
    for c, weight in enumerate(moments.weight[g].tolist()):
        if weight > 0.0:
            deviation = np.sqrt(2.0 * moments.squares[g, c] / weight)
            numbers = moments.mean[g, c] + deviation * nodes
            yield weight, shares, on_grid(numbers, step)


@cache
def _nodes() -> tuple[Floats, Floats]:
    """Return nodes of a normal distribution, and their shares."""
    nodes, shares = np.polynomial.hermite.hermgauss(_HERMITE)
    return nodes, shares / shares.sum()
