"""Naive Bayes on weighted rows: the counts are made with learned instance weights."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from steelyard._common.settings import NONE, learned, part, setting
from steelyard.classifiers.base import StandardNB, hard_rows
from steelyard.fitting.problem import Fit
from steelyard.fitting.recipe import Recipe
from steelyard.instances import (
    INSTANCES,
    InstanceWeighting,
    Learned,
    resolve_instances,
)
from steelyard.model.base import RowsNeeded
from steelyard.model.training import TrainingSet

__all__ = ["InstanceWeightedNB"]


class InstanceWeightedNB(StandardNB):
    r"""Naive Bayes whose counts are made with learned instance weights.

    .. math:: N_{jvc} = \sum_i u_i\, [x_{ij} = v]\, [y_i = c]

    Instance weights act through the counts alone. Smoothing is Laplace's rule by
    default, as in the papers.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from steelyard import InstanceWeightedNB
    >>> clf = InstanceWeightedNB().fit(*load_iris(return_X_y=True))
    >>> len(clf.diagnostics_)
    15
    >>> clf.hardest_rows(3)
    array([106,  70, 119])
    """

    _rows_needed: ClassVar[RowsNeeded] = "per-row"

    instances: Any = setting(
        default="discriminative",
        allowed=NONE | part(InstanceWeighting, INSTANCES),
        about='"discriminative" (DWNB: rows that the model gets wrong count more, 15 '
        'rounds), "value-frequency" (AVFWNB: rows with frequent values count more), or '
        "an object.",
    )
    smoothing: Any = setting(default="laplace")

    instance_weights_: NDArray[np.float64] = learned(
        "ndarray of shape (n,)",
        "What the method learned for each training row, without ``sample_weight``; NaN "
        "for rows of weight zero, which are as if absent.",
    )
    diagnostics_: list[dict[str, Any]] = learned(
        "list of dict", "One record per round."
    )

    hardest_rows = hard_rows.hardest_rows

    def _fit(self, recipe: Recipe, training: TrainingSet) -> Fit:
        weighed = Learned(training.workspace.full(training.n_rows, 1.0))
        if self.instances is not None:
            weighed = resolve_instances(self.instances).weigh(training)
        model = training.estimate(training.count(weighed.weights))
        named = {"diagnostics_": weighed.records}
        return Fit(model, model.log_prior, named, weighed.weights)
