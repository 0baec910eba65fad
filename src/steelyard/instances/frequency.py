"""Instance weights from the frequencies of attribute values."""

from __future__ import annotations

import numpy as np

from steelyard._common.threads import pieces
from steelyard.instances.base import InstanceWeighting, Learned
from steelyard.kernels import scoring
from steelyard.model.table_model import spread_table
from steelyard.model.training import TrainingSet
from steelyard.table.codes import FeatureTable


class ValueFrequencyWeighting(InstanceWeighting):
    r"""Rows with frequent values count more.

    .. math:: u_i = \sum_j n_j \, \frac{\#\{k : x_{kj} = x_{ij}\}}{n}

    A missing cell adds nothing; a Gaussian attribute, which counts as one value, adds
    one where it is known.

    References
    ----------
    W. Xu, L. Jiang, L. Yu (2019), "An attribute value frequency-based instance
    weighting filter for naive Bayes", J. of Experimental & Theoretical Artificial
    Intelligence 31(2).
    """

    def weigh(self, training: TrainingSet) -> Learned:
        """Learn the weight of every row."""
        counts, schema = training.count(), training.codes.schema
        table = FeatureTable(counts.by_code, schema.offsets)
        share = counts.by_code.sum(axis=1) / counts.total
        share *= table.spread(schema.n_values.astype(np.float64))
        share[schema.first_codes] = 0.0
        weights = training.workspace.zeros(training.n_rows, np.float64)
        parts = list(pieces(slice(0, training.n_rows)))
        for block in training.codes.blocks:
            starts, values = spread_table(block, training.codes, share)
            scoring.gather_difference(block.values, starts, values, weights)
        for rows in parts if training.codes.n_numbers else ():
            numbers = training.codes.number_rows(rows)
            weights[rows] += (~np.isnan(numbers)).sum(axis=1)
        # A row with nothing in it would vanish; it counts as little as a row can.
        found = [weights[rows] for rows in parts]
        floor = min((w[w > 0].min(initial=1.0) for w in found), default=1.0)
        for part in found:
            part[~(part > 0)] = floor
        return Learned(weights)
