"""Probabilities of values given the value of another attribute, and the class."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_TINY = np.finfo(np.float64).tiny


def log_conditional(
    counts: NDArray[np.float64], log_prob: NDArray[np.float64], strength: float
) -> NDArray[np.float64]:
    r"""Logarithms of value probabilities, given a parent's value and the class.

    .. math:: \theta_{v|a,c} = \frac{N_{avc} + m\,\theta_{v|c}}{N_{a \cdot c} + m}

    An m-estimate towards what is known without the parent: where its value is rare it
    says little, and an unknown one says nothing.

    Parameters
    ----------
    counts : ndarray of shape (A, B, K)
        Weight of the rows by code of the parent, of the child, and class.
    log_prob : ndarray of shape (B, K)
        Logarithms of the probabilities of the child's codes within each class.
    strength : float
        The weight m, in rows.

    Returns
    -------
    ndarray of shape (A, B, K)
        Logarithms; those of code 0 of the child, the first, are 0.

    Examples
    --------
    >>> counts = np.array([[[0.0], [0.0], [0.0]], [[0.0], [3.0], [0.0]]])
    >>> log_prob = np.log([[1.0], [0.5], [0.5]])
    >>> np.exp(log_conditional(counts, log_prob, 1.0))[:, :, 0]
    array([[1.   , 0.5  , 0.5  ],
           [1.   , 0.875, 0.125]])
    """
    known = counts[:, 1:]
    totals = known.sum(axis=1, keepdims=True) + strength
    out = np.zeros_like(counts)
    prob = (known + strength * np.exp(log_prob[1:])) / totals
    np.log(np.maximum(prob, _TINY), out=out[:, 1:])
    return out
