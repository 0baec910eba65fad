"""What a table by code leaves open within its bins, and at the ends of columns.

A curve is level within a bin, and the truth goes on. How far values of a bin lie apart,
ranks say: they are put in the order of a normal distribution. So a number and its
logarithm have the same intervals.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from steelyard._common.arrays import Floats
from steelyard.table.resolutions import closeness

# Bins from which a slope is taken, as a share of all, and the outer bins whose steepest
# one goes on: single steps are those of cut points.
_BINS_OF_A_SLOPE, _OUTER = 1.0 / 12.0, 0.3

# What a bin has at least of the rows of a mean one, so that no slope is endless.
_LEAST_SHARE = 0.1


class Scores(NamedTuple):
    """Normal scores of the values of neighbouring bins, shape (n,)."""

    means: Floats
    variances: Floats

    @classmethod
    def of(cls, counts: Floats) -> Scores:
        """Take the moments of a normal distribution that is cut as bins cut rows."""
        share = counts + _LEAST_SHARE * max(float(counts.mean()), 1e-300)
        share = share / share.sum()
        edges = ndtri(np.cumsum(share)[:-1])
        density = np.exp(-0.5 * edges**2) / np.sqrt(2.0 * np.pi)
        first = -np.diff(density, prepend=0.0, append=0.0) / share
        second = 1.0 - np.diff(edges * density, prepend=0.0, append=0.0) / share
        return cls(first, np.maximum(second - first**2, 0.0))


@lru_cache(maxsize=256)
def _nearby(n: int, n_bins: tuple[int, ...]) -> Floats:
    """Return the share of each bin in what a smooth curve is at every bin."""
    near = closeness(n, n_bins)
    return near / near.sum(axis=1, keepdims=True)


def within_bins(
    curve: Floats, counts: Floats, unlearned: Floats, n_bins: tuple[int, ...]
) -> Floats:
    """Return variances within bins of a curve (n, C), and of what smoothing takes off.

    At an end there are bins on one side alone. What is averaged there lags behind a
    trend, as far as rows have not told better: ``unlearned`` is the share of the prior
    variance that they leave, and ``n_bins`` are the resolutions of smooth curves.
    """
    n, scores = len(curve), Scores.of(counts)
    slope = np.gradient(curve, scores.means, axis=0)
    width = max(int(n * _BINS_OF_A_SLOPE), 1)
    rise = (curve[width:] - curve[:-width]) ** 2
    rise /= (scores.means[width:] - scores.means[:-width])[:, None] ** 2
    outer = max(int(n * _OUTER) - width, 1)
    lag = np.zeros(n)
    if n_bins:
        lag = scores.means - _nearby(n, n_bins) @ scores.means
    lags = lag[:, None] ** 2 * np.clip(unlearned, 0.0, 1.0)
    out = scores.variances[:, None] * slope**2
    for end, steepest, half in (
        (0, rise[:outer].max(axis=0), slice(0, n // 2)),
        (n - 1, rise[-outer:].max(axis=0), slice(n - n // 2, n)),
    ):
        out[end] = scores.variances[end] * steepest
        out[half] += lags[half] * steepest
    return out


def within_cells(grid: Floats, counts: Floats) -> Floats:
    """Return variances within cells of a pair, along bins of its first side.

    Cells have the shape (n, m, C), rows of the bins (n,). In the outermost bins the
    steepest slope nearby goes on.
    """
    scores, outer = Scores.of(counts), max(int(len(grid) * _OUTER), 1)
    slope = np.abs(np.gradient(grid, scores.means, axis=0))
    slope[0], slope[-1] = slope[:outer].max(axis=0), slope[-outer:].max(axis=0)
    return np.asarray(scores.variances[:, None, None] * slope**2)
