"""Numeric attributes as Gaussian densities, or as Weka's intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from steelyard._common.allowed import DENSITY_DEPTH, SLOPE_LIMIT
from steelyard._common.arrays import Floats, Ints
from steelyard.kernels import scoring
from steelyard.proba.counts import Counts, Moments
from steelyard.table.schema import FeatureSchema

_LOG_2_PI = float(np.log(2.0 * np.pi))

# Log-densities of rows, attributes and classes that are in memory at a time.
_DENSITY_CELLS = 1 << 16

# Weka never lets a factor fall below this.
_WEKA_FLOOR = 1e-75

# Shares of a column's variance below this are no floor: their inverse would overflow.
_MIN_FLOOR = 1e-18
# A number of float64 is known to this share of itself, and squares are within a range.
_ROUNDING = float(np.finfo(np.float64).eps)
_MIN_VARIANCE, _MAX_SIZE = 1e-300, 1e150

# Relative densities: rows by which variances are drawn together.
_DRAWN_ROWS = 3.0


@dataclass(frozen=True)
class GaussianTable:
    """Means and standard deviations by attribute and class.

    An attribute with a ``step`` is scored as the probability of an interval of that
    width around its rounded value, one with a ``limit`` by its standardised number, the
    others by their density.
    """

    mean: Floats
    """Shape (g, K)."""

    deviation: Floats
    """Shape (g, K), greater than 0."""

    step: Floats
    """Shape (g,), 0 for densities."""

    weight: Floats | None = None
    """Factors on the log-densities, shape (g, K); None if all are one."""

    depth: Floats | None = None
    """Shape (g,): an attribute with a depth is taken relative to the class in which its
    density is largest, and no lower than minus this; 0, or None for all, is plain."""

    limit: Floats | None = None
    """Shape (g,): an attribute with a limit adds its distance from the mean in
    deviations to every class, up to the limit; 0, or None for all, is no limit."""

    @classmethod
    def of(
        cls,
        features: Sequence[FeatureSchema],
        mean: Floats,
        deviation: Floats,
        weight: Floats | None = None,
    ) -> GaussianTable:
        """Return the table of some Gaussian attributes, by their kinds."""
        step = np.array([feature.step for feature in features], dtype=np.float64)
        relative = [feature.kind == "gaussian-relative" for feature in features]
        depth = np.where(relative, DENSITY_DEPTH, 0.0) if any(relative) else None
        linear = [feature.kind == "linear" for feature in features]
        limit = np.where(linear, SLOPE_LIMIT, 0.0) if any(linear) else None
        return cls(mean, deviation, step, weight, depth, limit)

    def repeated(self, n: int) -> GaussianTable:
        """Return the table of one kind of attribute, n times; it has n means."""
        depth, limit = (
            None if part is None else np.repeat(part, n)
            for part in (self.depth, self.limit)
        )
        return replace(self, step=np.repeat(self.step, n), depth=depth, limit=limit)

    def only(self, attributes: int | Ints) -> GaussianTable:
        """Return the table of one attribute, or some."""
        arrays = {k: array for k, array in vars(self).items() if array is not None}
        chosen = np.atleast_1d(attributes)
        return GaussianTable(**{k: array[chosen] for k, array in arrays.items()})

    @property
    def factors(self) -> Floats:
        """Factors on the log-densities, shape (g, K)."""
        return np.ones_like(self.mean) if self.weight is None else self.weight

    @property
    def is_plain(self) -> bool:
        """Whether all attributes are densities or intervals, without weights."""
        return self.weight is None and self.depth is None and self.limit is None

    def add_scores(self, numbers: Floats, scores: Floats) -> None:
        """Add the weighted log-densities of numbers (n, g) to scores (n, K)."""
        if not self.is_plain:
            rows = np.ascontiguousarray(numbers)
            scoring.add_weighted(rows, self.forms, self.factors, scores)
            return
        plain = np.flatnonzero(self.step == 0)
        intervals = np.flatnonzero(self.step)
        if plain.size:
            mean, scale, constant = self.only(plain).forms[:3]
            rows = _columns(numbers, plain)
            scoring.add_densities(rows, mean, scale, constant, scores)
        if intervals.size:
            table = self.only(intervals)
            rows = np.ascontiguousarray(_columns(numbers, intervals))
            scoring.add_weighted(rows, table.forms, table.factors, scores)

    def log_densities(self, numbers: Floats) -> Iterator[tuple[slice, Floats]]:
        """Yield log-densities (rows, g, K) of numbers (n, g), a few rows at a time.

        Missing cells have log-density 0: they add nothing. If all attributes are
        linear, what they yield is the same for all classes, without a copy for each.
        """
        if self.limit is not None and self.mean.shape[1] > 1 and (self.limit > 0).all():
            one = replace(self, mean=self.mean[:, :1], deviation=self.deviation[:, :1])
            for rows, out in one.log_densities(numbers):
                yield rows, np.broadcast_to(out, (*out.shape[:2], self.mean.shape[1]))
            return
        g, k = self.mean.shape
        forms = self.forms
        size = max(1, _DENSITY_CELLS // max(1, g * k))
        for lo in range(0, len(numbers), size):
            rows = slice(lo, min(lo + size, len(numbers)))
            part = np.ascontiguousarray(numbers[rows])
            out = np.empty((len(part), g, k))
            scoring.density_block(part, forms, out)
            yield rows, out

    @property
    def forms(self) -> tuple[Floats | float, ...]:
        """Parameters of the attributes for kernels."""
        none = np.zeros(len(self.mean))
        # Numba 0.60 takes a tuple with an array that is not contiguous for one of those
        # that it compiled before, and reads wrong numbers.
        return (
            np.ascontiguousarray(self.mean),
            1.0 / self.deviation,
            -0.5 * _LOG_2_PI - np.log(self.deviation),
            0.5 * self.step,
            _WEKA_FLOOR,
            none if self.depth is None else self.depth,
            none if self.limit is None else self.limit,
        )


def estimate_gaussian(
    counts: Counts, floor: float, unbiased: bool = False
) -> GaussianTable:
    r"""Estimate means and standard deviations from moments, of one attribute at least.

    Densities: the variance divides by the weight (less one, if ``unbiased``) and is at
    least ``floor`` times the variance of the attribute over all rows, whatever the unit
    of the attribute or of those beside it,

    .. math:: \sigma_{jc}^2 = \max(s_{jc}^2,\ \text{floor} \cdot s_j^2).

    An attribute of a single number does not separate classes: its deviation is its
    size in all of them, so that other numbers do not outweigh the other attributes.

    Intervals: the deviation is at least a sixth of the grid's step (John and Langley,
    1995, as programmed in Weka). A class without a known cell takes the attribute's
    overall mean and variance. Relative densities: the variance is drawn towards that
    within classes by three rows' worth,

    .. math:: \sigma_{jc}^2 = \frac{N_{jc} s_{jc}^2 + 3 s_j^2}{N_{jc} + 3}.

    Linear attributes have the mean and deviation of all rows in every class.
    """
    moments = counts.moments
    features = [counts.schema.features[j] for j in counts.schema.gaussian]
    parts = mean_and_deviation(features, moments, moments.pooled(), floor, unbiased)
    return GaussianTable.of(features, *parts)


def least_variance(overall: Moments, floor: float) -> Floats:
    """Return the smallest variance within a class that attributes of all rows allow."""
    variance = overall.squares / np.maximum(overall.weight, 1e-300)
    size = np.minimum(np.abs(overall.mean), _MAX_SIZE)
    rounding = np.maximum((_ROUNDING * size) ** 2, _MIN_VARIANCE)
    least = np.maximum(max(floor, _MIN_FLOOR) * variance, rounding)
    constant = np.where(size**2 > _MIN_VARIANCE, size, 1.0) ** 2
    return np.where(variance > rounding, least, constant)


def mean_and_deviation(
    features: Sequence[FeatureSchema],
    moments: Moments,
    overall: Moments,
    floor: float,
    unbiased: bool = False,
) -> tuple[Floats, Floats]:
    """Return means and deviations as ``estimate_gaussian`` estimates them.

    Moments (m, K) and overall (m, 1) are of m attributes, or of one for each of m rows.
    """
    variance_of_all = overall.squares / np.maximum(overall.weight, 1e-300)
    is_observed = moments.weight > 0
    mean = np.where(is_observed, moments.mean, overall.mean)
    divisor = moments.weight - 1.0 if unbiased else moments.weight
    divisor = np.where(divisor > 0, divisor, np.where(is_observed, moments.weight, 1.0))
    variance = np.where(is_observed, moments.squares / divisor, variance_of_all)
    kinds = np.array([feature.kind for feature in features])[:, None]
    if (kinds == "gaussian-relative").any():
        total = np.maximum(moments.weight.sum(axis=1, keepdims=True), 1e-300)
        within = moments.squares.sum(axis=1, keepdims=True) / total
        drawn = (moments.squares + _DRAWN_ROWS * within) / (
            moments.weight + _DRAWN_ROWS
        )
        variance = np.where(kinds == "gaussian-relative", drawn, variance)
    deviation = np.sqrt(np.maximum(variance, least_variance(overall, floor)))
    linear = np.sqrt(np.maximum(variance_of_all, least_variance(overall, 0.0)))
    mean = np.where(kinds == "linear", overall.mean, mean)
    deviation = np.where(kinds == "linear", linear, deviation)
    step = np.array([feature.step for feature in features])[:, None]
    exact = np.sqrt(variance)
    on_grid = np.where(exact > 1e-10, np.maximum(step / 6.0, exact), step / 6.0)
    return mean, np.where(step > 0, on_grid, deviation)


def _columns(numbers: Floats, chosen: Ints) -> Floats:
    """Take columns, without a copy when all are taken."""
    return numbers if len(chosen) == numbers.shape[1] else numbers[:, chosen]
