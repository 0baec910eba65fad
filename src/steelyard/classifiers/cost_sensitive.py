"""TCSFS-NB: attributes chosen by accuracy and by what it costs to measure them."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from itertools import count as counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from steelyard._common.progress import progress
from steelyard._common.settings import (
    FLAG,
    NONE,
    SEED,
    listed,
    mapped,
    number,
    setting,
    whole,
)
from steelyard.classifiers.selective import (
    EQUAL,
    SelectedNB,
    first_best,
    warn_interrupted,
)
from steelyard.exceptions import ParameterError
from steelyard.fitting.constraints import by_position
from steelyard.fitting.leave_one_out import HeldOut, cross_validated
from steelyard.model.training import TrainingSet
from steelyard.table.encoder import COLUMN
from steelyard.table.schema import TableSchema, feature_labels

__all__ = ["CostSensitiveNB", "attribute_costs"]


class CostSensitiveNB(SelectedNB):
    r"""TCSFS-NB: a subset of attributes that is accurate and cheap to measure.

    .. math:: \max_S \; \mathrm{Acc}_{cv}(S) - \lambda \,
              \frac{\sum_{j \in S} t_j}{\sum_j t_j}

    by best-first search forward from the empty set, with stratified cross-validation on
    the training rows. Folds have counts of their own, which add up; nothing is encoded
    or fitted again. A search that ends early, by ``max_stale`` or an interruption,
    keeps the best subset it has seen.

    References
    ----------
    L. Jiang, G. Kong, C. Li (2019), "Wrapper framework for test-cost-sensitive feature
    selection", IEEE Trans. SMC: Systems. Its evaluation function could not be read; the
    one here is a plain form of what its abstract says.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from steelyard import CostSensitiveNB
    >>> X, y = load_iris(return_X_y=True)
    >>> CostSensitiveNB(costs={3: 100}, lam=0.2, random_state=0).fit(
    ...     X, y
    ... ).selected_features_
    [2]
    """

    costs: Any = setting(
        default=None,
        allowed=(NONE | listed(number()) | mapped(COLUMN, number())).called(
            "None, a finite number for each column, or a mapping from column to such "
            "a number"
        ),
        about="Cost of each attribute: all one, by name or position (one where left "
        "out), or in the order of the columns.",
    )
    lam: float = setting(
        default=0.01,
        allowed=number(0.0),
        about="Accuracy that is given up for saving all of the cost.",
    )
    folds: int = setting(
        default=5,
        allowed=whole(2),
        about="Folds of the cross-validation. Equal rows are interchangeable: a weight "
        "of 2 is dealt like the row twice.",
    )
    max_stale: int = setting(
        default=5,
        allowed=whole(1),
        about="Expansions in a row without a better subset, after which the search "
        "ends.",
    )
    random_state: Any = setting(default=None, allowed=SEED, about="Seed of the folds.")
    verbose: bool = setting(
        default=False, allowed=FLAG, about="Whether to show progress."
    )

    def _select(self, training: TrainingSet) -> tuple[list[int], list[dict[str, Any]]]:
        costs = attribute_costs(self.costs, training.schema)
        rng = check_random_state(self.random_state)
        held = cross_validated(training, int(self.folds), rng)
        path: list[dict[str, Any]] = []
        with progress("expansions", None, bool(self.verbose)) as advance:
            try:
                self._search(held, costs, path, advance)
            except KeyboardInterrupt:
                if not path:
                    raise
                warn_interrupted(self, f"{len(path) - 1} expansions")
        best = first_best([record["score"] for record in path])
        path[best]["chosen"] = True
        chosen = path[best]["subset"]
        for record in path:
            record["subset"] = feature_labels(training.schema, record["subset"])
        return chosen, path

    def _search(
        self,
        held: HeldOut,
        costs: NDArray[np.float64],
        path: list[dict[str, Any]],
        advance: Callable[[str], None],
    ) -> None:
        """Expand the best open subset, again and again; add a record for each."""
        share = costs / max(float(costs.sum()), np.finfo(np.float64).tiny)
        lam, number = float(self.lam), counter()
        accuracy = held.accuracy(held.base)
        path.append(_subset([], accuracy, 0.0, lam))
        best, stale = path[0]["score"], 0
        waiting: list[tuple[float, int, list[int]]] = [(-best, next(number), [])]
        seen = {frozenset[int]()}
        while waiting and stale < self.max_stale:
            _, _, subset = heapq.heappop(waiting)
            rest = [
                j
                for j in range(len(costs))
                if j not in subset and frozenset({*subset, j}) not in seen
            ]
            if not rest:
                continue
            scores = held.base.copy()
            held.add(subset, scores)
            accuracies = held.accuracies(scores, rest)
            found = [
                _subset(
                    [*subset, j], float(accuracy), float(share[[*subset, j]].sum()), lam
                )
                for j, accuracy in zip(rest, accuracies, strict=True)
            ]
            for record in found:
                seen.add(frozenset(record["subset"]))
                entry = (-record["score"], next(number), record["subset"])
                heapq.heappush(waiting, entry)
            path.append(found[first_best([record["score"] for record in found])])
            stale = stale + 1 if path[-1]["score"] <= best + EQUAL else 0
            best = max(best, path[-1]["score"])
            advance(f"best {best:.4f}")


def attribute_costs(setting: Any, schema: TableSchema) -> NDArray[np.float64]:
    """Return the cost of every attribute, shape (d,).

    The setting is None for all one, a mapping from name or position to cost, or a cost
    for each attribute.
    """
    d, names = len(schema), schema.labels()
    costs = np.ones(d)
    if isinstance(setting, Mapping):
        for j, cost in by_position(setting, schema, "costs"):
            costs[j] = float(cost)
    elif setting is not None:
        costs = np.asarray(setting, dtype=np.float64)
    if costs.shape != (d,):
        raise ParameterError(
            f"`costs` must hold one number for each of the {d} columns, or be a "
            f"mapping from column to cost. Got an array of shape {costs.shape}."
        )
    if (costs < 0).any():
        j = int(np.flatnonzero(costs < 0)[0])
        raise ParameterError(
            f"`costs` must be at least 0. Got {costs[j]:g} for column {names[j]!r}."
        )
    return costs


def _subset(
    subset: list[int], accuracy: float, cost: float, lam: float
) -> dict[str, Any]:
    return {
        "subset": subset,
        "accuracy": accuracy,
        "cost": cost,
        "score": accuracy - lam * cost,
        "chosen": False,
    }
