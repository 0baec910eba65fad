"""Naive Bayes without weights."""

from __future__ import annotations

from typing import ClassVar

from steelyard.classifiers.base.chunked import LearnsInChunks
from steelyard.classifiers.base.estimator import DEVICE_SETTING
from steelyard.model.base import RowsNeeded

__all__ = ["NaiveBayes"]


class NaiveBayes(LearnsInChunks):
    r"""Naive Bayes for any table: categories, numbers and missing cells.

    .. math:: P(c \mid x) \propto \pi_c \prod_j \theta_{j,x_j|c}

    Fitting is one pass of counting; a prediction adds up one number per cell and class.
    Missing cells and values never seen at fit are left out of the sum.

    See Also
    --------
    TableEncoder : The way from a table to codes.

    References
    ----------
    P. Langley, W. Iba, K. Thompson (1992), "An analysis of Bayesian classifiers",
    AAAI-92, 223-228.

    Examples
    --------
    >>> import numpy as np
    >>> from steelyard import NaiveBayes
    >>> X = np.array(
    ...     [["sunny", 30.0], ["rain", 12.0], ["rain", None], ["sunny", 25.0]],
    ...     dtype=object,
    ... )
    >>> clf = NaiveBayes().fit(X, ["out", "in", "in", "out"])
    >>> clf.predict(X)
    array(['out', 'in', 'in', 'out'], dtype='<U3')

    A value that was never seen, or is missing, adds nothing; the prior decides:

    >>> clf.predict_proba(np.array([["hail", None]], dtype=object))
    array([[0.5, 0.5]])
    """

    _rows_needed: ClassVar[RowsNeeded] = "counts"

    device: str = DEVICE_SETTING
