"""A model that answers the base rate where nothing is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from steelyard.model.table_model import NBModel
from steelyard.proba.counts import Counts

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
    schema, by_code = model.schema, counts.by_code.sum(axis=1)
    variance = np.zeros((len(schema), model.n_classes))
    known = np.zeros(schema.n_codes, dtype=bool)
    for j in schema.coded.tolist():
        feature, rows = schema.features[j], slice(*schema.offsets[j : j + 2])
        # A pair is known where both its sides are.
        own = feature.both_known if feature.sides else np.arange(feature.n_codes) > 0
        known[rows] = own
        weight, added = by_code[rows][own], model.table[rows][own]
        if weight.sum() > 0.0:
            mean = np.average(added, axis=0, weights=weight)
            variance[j] = np.average((added - mean) ** 2, axis=0, weights=weight)
    total = variance.sum(axis=0)
    base = log_prior / model.link_scale
    left = model.log_prior - base
    left -= left.mean()
    if not (total > 0.0).all():
        return model
    owners = np.repeat(np.arange(len(schema)), np.diff(schema.offsets))
    shift = (variance / total * left)[owners]
    table = model.table + np.where(known[:, None], shift, 0.0)
    return replace(model, log_prior=base, table=table)
