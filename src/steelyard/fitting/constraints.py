"""What holds weights: bounds of attributes, and a penalty that draws to a centre."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from steelyard._common.arrays import Floats
from steelyard.exceptions import ParameterError
from steelyard.solvers import Box
from steelyard.table.schema import TableSchema
from steelyard.weighting import LogProbs, Weighting


def attribute_bounds(setting: Any, schema: TableSchema) -> tuple[Floats, Floats]:
    """Return lower and upper bounds per attribute, each of shape (d,).

    The setting is None, one pair for all, a pair for each attribute, or a mapping from
    name or position to pair.
    """
    d = len(schema)
    pairs = np.tile([-np.inf, np.inf], (d, 1))
    if isinstance(setting, Mapping):
        for j, pair in by_position(setting, schema, "bounds"):
            pairs[j] = _pair(pair)
    elif setting is not None:
        pairs_given = np.asarray(setting, dtype=object)
        if pairs_given.shape == (2,):
            pairs[:] = _pair(setting)
        elif pairs_given.shape == (d, 2):
            pairs[:] = [_pair(pair) for pair in pairs_given.tolist()]
        else:
            raise ParameterError(
                "The 'bounds' parameter must be None, a pair (low, high), one pair for "
                f"each of the {d} attributes, or a mapping from attribute to pair. Got "
                f"{setting!r} instead."
            )
    return pairs[:, 0], pairs[:, 1]


def by_position(
    mapping: Mapping[Any, Any], schema: TableSchema, setting: str
) -> Iterator[tuple[int, Any]]:
    """Yield positions and values of a mapping from names or positions of attributes."""
    d, names = len(schema), schema.labels()
    for key, value in mapping.items():
        if isinstance(key, str) and key in names:
            yield names.index(key), value
        elif isinstance(key, Integral) and -d <= int(key) < d:
            yield int(key), value
        else:
            raise ParameterError(
                f"`{setting}` names {key!r}, which is no column. Columns: "
                f"{', '.join(names)}; or give positions from 0 to {d - 1}."
            )


def _pair(pair: Any) -> tuple[float, float]:
    """Return one pair of bounds as numbers, checked."""
    try:
        low, high = pair
        low = -np.inf if low is None else float(low)
        high = np.inf if high is None else float(high)
    except (TypeError, ValueError):
        raise ParameterError(
            f"Each of `bounds` must be a pair (low, high) of numbers, with None for "
            f"none. Got {pair!r} instead."
        ) from None
    if low > high:
        raise ParameterError(
            f"`bounds` has a lower bound above the upper one ({low:g} > {high:g}). "
            "Give them as (low, high)."
        )
    if not (low < np.inf and high > -np.inf):
        raise ParameterError(
            f"`bounds` leaves no finite weight between {low:g} and {high:g}. Use "
            "numbers, with None for no bound."
        )
    return low, high


@dataclass(frozen=True)
class Penalty:
    r"""What keeps weights near a centre.

    Ridge is :math:`\lambda \sum (w - c)^2`; "l1" is :math:`\lambda \sum |w - c|`, for
    weights whose bounds lie on one side of the centre, where it is linear.
    """

    strength: float | Floats
    """One for all weights, or one each."""

    center: float | Floats
    sign: Floats | None = None
    """Side of the centre that each weight lies on, for "l1"; None for ridge."""

    free: int = 0
    """How many weights at the beginning of the vector are not penalised."""

    def value_and_gradient(self, weights: Floats) -> tuple[float, Floats]:
        """Return the penalty and its gradient."""
        distance = weights - self.center
        distance[: self.free] = 0.0
        if self.sign is not None:
            slope = self.strength * self.sign
            slope = np.where(np.arange(len(weights)) < self.free, 0.0, slope)
            return float(slope @ distance), slope
        pull = self.strength * distance
        return float(pull @ distance), 2.0 * pull

    def curvature(self, size: int) -> Floats:
        """Return the diagonal of the second derivative."""
        out = np.zeros(size)
        if self.sign is None:
            out += 2.0 * self.strength
            out[: self.free] = 0.0
        return out


@dataclass(frozen=True)
class PenaltySetting:
    """Which distance from where is penalised, and how strongly."""

    kind: str | None = None
    """"ridge", "l1", or None."""

    strength: float = 0.0
    center: float = 1.0

    def resolve(
        self, weighting: Weighting, evidence: LogProbs, box: Box
    ) -> Penalty | None:
        """Return the penalty on the weights within some bounds, None without one.

        A weighting with levels brings its own ridge; the share of a mixture is free.
        """
        ridge = weighting.strengths(evidence)
        if ridge is not None:
            return Penalty(*ridge)
        if self.kind is None or self.strength == 0.0:
            return None
        free = weighting.n_free
        if self.kind == "ridge":
            return Penalty(self.strength, self.center, None, free)
        above, below = box.lower >= self.center, box.upper <= self.center
        sign = np.where(above, 1.0, np.where(below, -1.0, 0.0))
        if not sign[free:].all():
            raise ParameterError(
                f"penalty='l1' towards {self.center:g} needs bounds that keep every "
                "weight on one side of it, where it is smooth: for example "
                "bounds=(0, 1) for center=1, or bounds=(0, inf) for center=0. Or use "
                "penalty='ridge'."
            )
        return Penalty(self.strength, self.center, sign, free)
