"""Attribute weights that are computed from counts: a start, or the answer itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from steelyard.counts import Counts
from steelyard.information import correlation_weights
from steelyard.table.codes import Codes
from steelyard.weighting.attribute import AttributeWeighting
from steelyard.weighting.base import Evidence

__all__ = ["CorrelationWeighting"]


class CorrelationWeighting(AttributeWeighting):
    r"""Attribute weights that start from the correlation-based filter CFW.

    .. math:: w_j = \sigma(\text{normalised relevance}_j -
                           \text{mean normalised redundancy}_j)

    With ``solver="fixed"`` they stay there; any other solver starts from them.

    References
    ----------
    L. Jiang, L. Zhang, C. Li, J. Wu (2019), "A correlation-based feature weighting
    filter for naive Bayes", IEEE TKDE 31(2), 201-213.
    """

    def start_from(
        self,
        codes: Codes,
        counts: Counts,
        weights: NDArray[np.float64] | None,
        evidence: Evidence,
        n_jobs: int | None,
    ) -> NDArray[np.float64]:
        """Return the filter's weights, with one for the prior if that is weighted."""
        found = correlation_weights(counts, codes, weights, n_jobs)
        return np.concatenate([np.ones(int(self.prior_weight)), found])
