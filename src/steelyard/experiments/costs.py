"""What errors cost, and what to decide for by probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.exceptions import ParameterError
from steelyard.experiments.statistics.shares import Estimate, mean_cost

Pair = tuple[float, float]
Costs = Any
"""A checked pair or matrix, or None."""


class Decision(NamedTuple):
    """Classes that cost least by their probabilities, and what they cost per row."""

    decided: NDArray[np.intp]
    cost: Estimate


def check_costs(costs: Any) -> Costs:
    """Return costs of a false alarm and of a miss, or of all errors of several classes.

    Examples
    --------
    >>> check_costs({"fp": 1, "fn": 5}), check_costs([1, 20])
    ((1.0, 5.0), (1.0, 20.0))
    >>> check_costs([[0, 1, 1], [5, 0, 1], [9, 1, 0]]).shape
    (3, 3)
    """
    if costs is None:
        return None
    given = costs
    if isinstance(costs, Mapping):
        given = [costs[key] for key in ("fp", "fn") if key in costs]
        given = given if len(given) == len(costs) else []
    try:
        array = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)
    is_matrix = array.ndim == 2 and array.shape[0] == array.shape[1] >= 2
    are_costs = (array >= 0.0).all() and 0.0 < array.sum() < np.inf
    if not (is_matrix or array.shape == (2,)) or not are_costs:
        raise ParameterError(
            "`costs` takes the cost of a false alarm and of a miss, such as 1,20 or "
            "fp=1,fn=20, or for several classes a matrix with a row for each true "
            f"class and a column for each decision. Got {costs!r}."
        )
    return array if is_matrix else (float(array[0]), float(array[1]))


def decide(
    proba: NDArray[np.float64] | None,
    true: NDArray[np.intp],
    costs: Costs,
    positive: int | None,
) -> Decision | None:
    r"""Decide for the class whose expected cost is least, :math:`\sum_c p_c C_{ck}`.

    Of two classes the positive one is decided for from a probability of :math:`c_{fp} /
    (c_{fp} + c_{fn})`. None without costs.
    """
    if costs is None:
        return None
    if proba is None:
        problem = "`costs` need probabilities, which this classifier does not have."
        raise ParameterError(problem)
    k, matrix = proba.shape[1], costs
    if isinstance(costs, tuple):
        if k != 2 or positive is None:
            raise ParameterError(
                "`costs` of a false alarm and of a miss are for two classes; there are "
                f"{k}. In Python give a matrix of {k} × {k}: "
                "evaluate(..., costs=matrix), rows the true classes."
            )
        matrix = np.zeros((2, 2))
        matrix[1 - positive, positive], matrix[positive, 1 - positive] = costs
    if matrix.shape != (k, k):
        size = f"{len(matrix)} × {len(matrix)}"
        raise ParameterError(f"`costs` are {size}, and there are {k} classes.")
    decided = (proba @ matrix).argmin(axis=1)
    if isinstance(costs, tuple) and positive is not None:
        # To the bit where `thresholds` cuts.
        chosen = proba[:, positive] >= costs[0] / sum(costs)
        decided = np.where(chosen, positive, 1 - positive)
    cells = np.bincount(true * k + decided, minlength=k * k)
    return Decision(decided, mean_cost(cells.tolist(), matrix.ravel(), len(true)))
