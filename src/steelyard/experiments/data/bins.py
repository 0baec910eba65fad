"""Numbers to predict, cut into classes whose names say where."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.exceptions import ParameterError

_LABEL = re.compile(r"\d+: (?:≤ (?P<low>\S+)|> (?P<high>\S+)|\S+ to (?P<up_to>\S+))")


def cut(numbers: ArrayLike, n_bins: int) -> NDArray[Any]:
    """Return classes of about as many rows each, named by their bounds.

    Bounds have four digits at most where that leaves them apart, so that they read
    well.

    Examples
    --------
    >>> cut([1.5, 2.25, 3.125, 40.0], 2).tolist()
    ['1: ≤ 2.25', '1: ≤ 2.25', '2: > 2.25', '2: > 2.25']
    """
    if n_bins < 2:
        raise ParameterError(f"`bins` must be 2 or more. Got {n_bins}.")
    values = np.asarray(numbers, dtype=np.float64)
    # A quantile that occurs, so that rounding is the exception.
    shares = np.arange(1, n_bins) / n_bins
    exact = np.unique(np.quantile(values, shares, method="lower"))
    for digits in (4, 6, 17):
        bounds = [f"{bound:.{digits}g}" for bound in exact]
        if len({*map(float, bounds)}) == len(exact):
            break
    edges = np.array([float(bound) for bound in bounds if float(bound) < values.max()])
    if not len(edges):
        raise ParameterError(
            f"The numbers cannot be cut into {n_bins} classes: most of them are equal. "
            "Try more `bins`, or another target."
        )
    return _named(edges)[np.searchsorted(edges, values)]


def cut_as(numbers: ArrayLike, classes: Sequence[Any]) -> NDArray[Any] | None:
    """Return the class of each number, None where classes are no ranges of numbers.

    Examples
    --------
    >>> cut_as([1, 5], ["1: ≤ 2.25", "2: > 2.25"]).tolist()
    ['1: ≤ 2.25', '2: > 2.25']
    >>> cut_as([1, 5], ["no", "yes"])
    """
    found = [_LABEL.fullmatch(str(name)) for name in classes]
    bounds = [float(m["low"] or m["up_to"]) for m in found if m and not m["high"]]
    if not all(found) or len(bounds) != len(classes) - 1:
        return None
    edges = np.sort(bounds)
    return _named(edges)[np.searchsorted(edges, np.asarray(numbers, dtype=float))]


def _named(edges: NDArray[np.float64]) -> NDArray[Any]:
    """Return names of the ranges between bounds, which sort as they follow."""
    texts = [
        f"{edge:.17g}" if float(f"{edge:.6g}") != edge else f"{edge:.6g}"
        for edge in edges
    ]
    width = len(str(len(edges) + 1))
    ranges = [f"≤ {texts[0]}"]
    ranges += [f"{a} to {b}" for a, b in pairwise(texts)]
    ranges.append(f"> {texts[-1]}")
    return np.array([f"{k:0{width}}: {name}" for k, name in enumerate(ranges, 1)])
