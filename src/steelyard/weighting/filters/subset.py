"""Attribute weights from a subset that correlation-based selection (CFS) chooses."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from steelyard._common.arrays import Floats
from steelyard._common.greedy import Extended, Subset, search
from steelyard._common.settings import FLAG, setting, whole
from steelyard.model.base import RowsNeeded
from steelyard.model.training import TrainingSet
from steelyard.proba import GaussianTable
from steelyard.table.schema import feature_labels
from steelyard.weighting.base import LogProbs, Start
from steelyard.weighting.filters.counted import FilterWeighting, with_bins
from steelyard.weighting.filters.information import (
    class_uncertainty,
    training_uncertainty,
)

# As in Weka: what counts as an improvement of the merit, and as a correlation of zero.
_MIN_IMPROVEMENT = 1e-5
_MAX_ZERO_UNCERTAINTY = 1e-6

_SELECTED = 2.0


class SubsetWeighting(FilterWeighting):
    r"""DFWNB: weight 2 for attributes that CFS selects, 1 for the others.

    The weights multiply the counts too:

    .. math:: \theta_{j,v|c} = \frac{w_j N_{jvc} + f_j}{w_j N_c + n_j f_j}, \qquad
              z_c(x) = \log \pi_c + \sum_j w_j \log \theta_{j,x_j|c}

    CFS looks for the subset F with the largest merit

    .. math:: \frac{\sum_{j \in F} SU(A_j, C)}
              {\sqrt{|F| + 2 \sum_{j<k \in F} SU(A_j, A_k)}}

    by forward best-first search, where SU is symmetrical uncertainty.

    References
    ----------
    L. Jiang, C. Li, S. Wang, L. Zhang (2016), "Deep feature weighting for naive Bayes
    and its application to text classification", Engineering Applications of Artificial
    Intelligence 52, 26-39.

    M. A. Hall (2000), "Correlation-based feature selection for discrete and numeric
    class machine learning", ICML, 359-366.
    """

    rows_needed: ClassVar[RowsNeeded] = "pairs"

    max_stale: int = setting(
        default=5,
        allowed=whole(1),
        about="Expansions without improvement after which the search ends.",
    )
    locally_predictive: bool = setting(
        default=True,
        allowed=FLAG,
        about="Whether attributes are added afterwards that tell more about the class "
        "than about any attribute selected.",
    )
    zero_is_one: bool = setting(
        default=True,
        allowed=FLAG,
        about="Whether two attributes of uncertainty 0 count as fully correlated, as "
        "in Weka, where this is meant for constant attributes. It keeps independent "
        "attributes apart too.",
    )

    def start_from(
        self, training: TrainingSet, evidence: LogProbs, gaussian: GaussianTable
    ) -> Start:
        """Return weights 2 and 1, for exponents and counts, and the subset."""
        chosen = self.select(with_bins(training))
        weights = np.ones(len(training.schema))
        weights[chosen] = _SELECTED
        names = feature_labels(training.schema, chosen)
        return self._start(
            weights, count_factors=weights, named={"selected_features_": names}
        )

    def select(self, training: TrainingSet) -> list[int]:
        """Return the positions of the attributes that CFS selects, in its order."""
        relevance = class_uncertainty(training.count())
        redundancy = training_uncertainty(training)
        if self.zero_is_one:
            redundancy[redundancy < _MAX_ZERO_UNCERTAINTY] = 1.0
            np.fill_diagonal(redundancy, 0.0)
        chosen = best_subset(relevance, redundancy, int(self.max_stale))
        if self.locally_predictive:
            chosen = add_locally_predictive(chosen, relevance, redundancy)
        return chosen


def merit(chosen: Any, relevance: Floats, redundancy: Floats) -> float:
    """Merit of a subset, given SU with the class (d,) and between attributes (d, d)."""
    chosen = np.asarray(chosen, dtype=np.int64)
    if not chosen.size:
        return 0.0
    between = redundancy[np.ix_(chosen, chosen)]
    pairs = between.sum() - np.trace(between)
    return float(relevance[chosen].sum() / np.sqrt(len(chosen) + pairs))


def best_subset(relevance: Floats, redundancy: Floats, max_stale: int) -> list[int]:
    """Search for the subset of largest merit, best first, one attribute at a time.

    As in Weka, the list of subsets to expand is as long as ``max_stale``.
    """

    def extend(subset: Subset, rest: list[int]) -> Extended:
        members, facts = list(subset.members), subset.facts
        with_class = facts["relevance"] + relevance[rest]
        between = facts["redundancy"] + redundancy[members].sum(axis=0)[rest]
        merits = with_class / np.sqrt(len(members) + 1 + 2.0 * between)
        return merits, {"relevance": with_class, "redundancy": between}

    *_, best = (
        step
        for step in search(
            extend,
            Subset((), 0.0, {"relevance": 0.0, "redundancy": 0.0}),
            range(len(relevance)),
            least=_MIN_IMPROVEMENT,
            ties=0.0,
            patience=max_stale,
            blank=1,
            width=max_stale,
        )
        if step.is_gain
    )
    return list(best.members)


def add_locally_predictive(
    chosen: list[int], relevance: Floats, redundancy: Floats
) -> list[int]:
    """Add attributes that tell more about the class than about any one selected."""
    out = list(chosen)
    for j in np.argsort(-relevance, kind="stable").tolist():
        if j not in out and relevance[j] > redundancy[j, out].max(initial=0.0):
            out.append(j)
    return out
