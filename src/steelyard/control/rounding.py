"""Whole numbers in place of values, chosen together so that the loss stays."""

from __future__ import annotations

import numpy as np

from steelyard._common.arrays import Floats, Ints


def rounded(values: Floats, curvature: Floats) -> Ints:
    r"""Return whole numbers that keep a loss with given second derivatives.

    The loss grows by :math:`\tfrac12 (z - v)^\top H (z - v)`. Values are rounded one
    after the other, those that matter most first; those that are left make up for each
    error as far as they can. Then numbers go up or down by one while that helps, from
    there and from the nearest numbers; the better of the two is taken.

    Examples
    --------
    >>> import numpy as np
    >>> rounded(np.array([0.4, 0.4]), np.array([[1.0, 0.9], [0.9, 1.0]])).tolist()
    [1, 0]
    """
    order = np.argsort(-np.diag(curvature), kind="stable")
    inverse = np.linalg.inv(curvature[np.ix_(order, order)])
    # Its factor has, row by row, how what is left makes up for an error.
    factor = np.linalg.cholesky(inverse).T
    wanted = values[order].astype(np.float64)
    for i in range(len(wanted)):
        error = (wanted[i] - np.round(wanted[i])) / factor[i, i]
        wanted[i] = np.round(wanted[i])
        wanted[i + 1 :] -= error * factor[i, i + 1 :]
    whole = np.empty_like(wanted)
    whole[order] = wanted
    found = [_improved(z, values, curvature) for z in (whole, np.round(values))]
    return min(found, key=lambda z: float((z - values) @ curvature @ (z - values)))


def _improved(whole: Floats, values: Floats, curvature: Floats) -> Ints:
    """Step up or down by one, the best first, while the loss falls."""
    half = np.diag(curvature) / 2.0
    slope = curvature @ (whole - values)
    for _ in range(20 * len(values)):
        gains = np.abs(slope) - half
        i = int(np.argmax(gains))
        if gains[i] <= 1e-12 * half[i]:
            break
        step = -np.sign(slope[i])
        whole[i] += step
        slope += step * curvature[:, i]
    return whole.astype(np.int64)
