r"""Variances of log-odds, and intervals of probabilities that follow from them.

The log-odds of class c against the others have the variance

.. math:: v_c(x) = b_c + \sum_j D_{j,x_j,c}

over the cells of a row, interactions included, and an interval is
:math:`\sigma(\operatorname{logit} p_c \pm z \sqrt{v_c})`. All of it is plain data:
``base`` b (C,) and ``variances`` D (V, C), with a row for each row of the model's own
table and a column for each class, but a single one for two classes, whose log-odds have
the same variance. So a page or another program makes the same interval: it adds up rows
of D by the codes of a row, as it does for scores. What some cells add has the variance
:math:`\sum D` over these cells alone: that of a contribution or a point of a curve.
``means`` (d, C) has the variance of each importance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, ndtri

from steelyard._common.arrays import Floats
from steelyard._common.threads import pieces
from steelyard.kernels import scoring
from steelyard.model.table_model import spread_table
from steelyard.table.codes import Codes

LEVEL = 0.9
"""Level of the intervals of explanations."""


def half_width(variances: Floats, level: float = LEVEL) -> Floats:
    """Return half the width of intervals of log-odds with some variances."""
    return np.asarray(ndtri(0.5 + level / 2.0) * np.sqrt(np.maximum(variances, 0.0)))


@dataclass(frozen=True)
class Uncertainty:
    """Variances of log-odds, as tables by code."""

    base: Floats
    """Variance of the intercept, shape (C,): one for each class, or one for two."""

    variances: Floats
    """Variance of what each code adds, shape (V, C)."""

    means: Floats
    """Variance of the importance of each attribute, shape (d, C)."""

    def of_rows(self, codes: Codes, model: Any = None) -> Floats:
        """Return the variance of the log-odds of rows, shape (n, C).

        Of a ``model`` that averages over missing cells, rows with such cells have the
        variance of that average.
        """
        flat = np.ascontiguousarray(self.variances)
        blocks = [(b, *spread_table(b, codes, flat)) for b in codes.blocks]
        out = np.empty((codes.n_rows, len(self.base)))
        for rows in pieces(slice(0, codes.n_rows)):
            sums = np.zeros((rows.stop - rows.start, len(self.base)))
            for block, starts, table in blocks:
                scoring.gather(block.values[rows], starts, table, sums)
            out[rows] = self.base + sums
        partly = np.empty(0, np.int64) if model is None else model.partial_rows(codes)
        if partly.size:
            variances = model.conditional.variances
            out[partly] = variances(codes.take(partly), flat, self.base)
        return out

    def intervals(
        self, codes: Codes, log_proba: Floats, level: float, model: Any = None
    ) -> Floats:
        """Return low and high of probabilities, given their logarithms: (n, K, 2)."""
        half = half_width(self.of_rows(codes, model), level)
        share = np.exp(log_proba)
        # The others have what is left; of two classes exactly.
        rest = share.sum(axis=1, keepdims=True) - share
        with np.errstate(divide="ignore"):
            odds = log_proba - np.log(rest)
        return np.asarray(expit(np.stack([odds - half, odds + half], axis=-1)))

    def of_contributions(self, codes: Codes, model: Any) -> tuple[Floats, Floats]:
        """Return variances of contributions (n, d, K), and of rows (n, K)."""
        cells = codes.schema.offsets[:-1] + codes.by_column().T.astype(np.int64)
        zeros = np.zeros(model.n_classes)
        return self.variances[cells] + zeros, self.of_rows(codes, model) + zeros
