"""A model that answers the base rate where nothing is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from steelyard.model.table_model import NBModel
from steelyard.proba.counts import Counts
from steelyard.table.codes import FeatureTable

_Floats = NDArray[np.float64]


def with_base_rate(model: NBModel, counts: Counts, log_prior: _Floats) -> NBModel:
    r"""Begin at the base rate, and give columns what the intercept differs from it by.

    .. math:: \tilde b = \frac{1}{s} \log \pi, \qquad \tilde T_{jvc} = T_{jvc} +
        \omega_{jc} (b_c - \tilde b_c)

    with the base rates :math:`\pi`, the scale s of the scores, and shares
    :math:`\omega` of columns in the variance of scores over the training rows. Scores
    of rows without a missing cell stay as they are, up to rounding and up to what all
    classes share. A missing cell goes on to add nothing, now to the base rate.
    """
    if not np.isfinite(log_prior).all():
        return model
    schema = model.schema
    known = np.ones(schema.n_codes, dtype=bool)
    known[schema.first_codes] = False
    for j in np.flatnonzero(schema.is_pair).tolist():
        # A pair is known where both its sides are.
        known[schema.offsets[j] : schema.offsets[j + 1]] = schema.features[j].both_known
    table = FeatureTable(model.table, schema.offsets)
    weight = np.where(known, counts.by_code.sum(axis=1), 0.0)[:, None]
    weight = weight / np.maximum(table.spread(table.collect(weight)), 1e-300)
    mean = table.spread(table.collect(weight * model.table))
    variance = table.collect(weight * (model.table - mean) ** 2)
    total = variance.sum(axis=0)
    base = log_prior / model.link_scale
    left = model.log_prior - base
    left -= left.mean()
    if not (total > 0.0).all():
        return model
    shift = table.spread(variance / total * left)
    moved = model.table + np.where(known[:, None], shift, 0.0)
    return replace(model, log_prior=base, table=moved)
