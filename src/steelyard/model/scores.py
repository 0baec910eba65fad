"""Where the scores of rows lie: by which it is seen whether new rows are alike."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from steelyard._common.arrays import Floats
from steelyard.model.base import softmax
from steelyard.model.training import TrainingSet
from steelyard.table.summary.ranges import NumberRange, range_of, sampled

# Beyond these log-odds a row is as good as decided.
_MOST = 12.0


def log_odds(proba: Floats) -> Floats:
    r"""Return the log-odds of classes, :math:`\log p / (1 - p)`, within ±12, (n, S).

    Of two classes those of the second, S = 1; of more those of each, S = K.

    Examples
    --------
    >>> log_odds(np.array([[0.5, 0.5], [0.0, 1.0]]))
    array([[ 0.],
           [12.]])
    """
    least = 1.0 / (1.0 + math.exp(_MOST))
    chosen = proba[:, 1:] if proba.shape[1] == 2 else proba
    p = np.clip(chosen, least, 1.0 - least)
    return np.asarray(np.clip(np.log(p) - np.log1p(-p), -_MOST, _MOST))


def score_ranges(
    model: Any, training: TrainingSet, held_out: tuple[Floats, Floats] | None
) -> list[NumberRange] | None:
    """Return where the log-odds of training rows lie, None where that is not known.

    Those of rows that were held out, with their weights, are best: a model is more sure
    of the rows that it has learned from. Otherwise they are of up to 4,096 rows, evenly
    spaced. Nothing is known of rows that were only counted, and of a model that looks
    for its neighbours among them.
    """
    if training.earlier is not None or getattr(model, "is_lazy", True):
        return None
    weights: Floats | None
    if held_out is None or training.class_factors is not None:
        rows = sampled(training.n_rows)
        some = training.take(
            np.arange(training.n_rows) if isinstance(rows, slice) else rows
        )
        # In NumPy: a fit of few rows is not to wait for a compiler.
        scores = model.scores(some.codes, training.n_jobs)
        proba = softmax(getattr(model, "link_scale", 1.0) * scores)
        weights = some.sample_weight
    else:
        proba, weights = held_out
    ranges = [range_of(scores, weights) for scores in log_odds(proba).T]
    return [found for found in ranges if found is not None] or None
