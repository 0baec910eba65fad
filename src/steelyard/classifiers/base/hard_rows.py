"""Reading of instance weights: which rows were hardest."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from steelyard.exceptions import ParameterError

__all__ = ["hardest_rows"]


def hardest_rows(self: Any, n_rows: int = 10) -> NDArray[np.int64]:
    """Return the training rows that the model found hardest, hardest first.

    Rows with a large weight are those that the model gets wrong: rare cases, or labels
    that are wrong themselves. A method of classifiers that learn instance weights.

    Parameters
    ----------
    n_rows : int, default=10
        How many; fewer where there are no more. Rows of weight zero are left out.

    Returns
    -------
    ndarray of shape (n_rows,)
        Positions of rows in the training table.
    """
    check_is_fitted(self)
    if not hasattr(self, "instance_weights_"):
        raise ParameterError(
            f"This {type(self).__name__} learned no instance weights. Set "
            "`instances`, for example to 'discriminative', and fit again."
        )
    if isinstance(n_rows, bool) or not isinstance(n_rows, Integral) or n_rows < 0:
        raise ParameterError(
            f"'n_rows' must be a whole number of at least 0. Got {n_rows!r} instead."
        )
    # NaN, of rows that took no part, comes last.
    order = np.argsort(-self.instance_weights_, kind="stable")
    known = np.count_nonzero(~np.isnan(self.instance_weights_))
    return order[: min(int(n_rows), known)]
