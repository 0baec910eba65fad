"""Smoothed estimates of class priors and value probabilities."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.settings import (
    NONE,
    DeclaredPart,
    check_settings,
    number,
    setting,
)
from steelyard.exceptions import ParameterError
from steelyard.proba.counts import Counts
from steelyard.table.codes import FeatureTable


class Smoothing(DeclaredPart):
    """How counts become probabilities that are never zero."""

    def prior_counts(self, counts: Counts) -> NDArray[np.float64]:
        """Pseudo-counts added to each class, shape (K,)."""
        raise NotImplementedError

    def value_counts(self, counts: Counts) -> NDArray[np.float64]:
        """Pseudo-counts added to each value of each attribute, shape (d,)."""
        raise NotImplementedError

    @property
    def depends_on_total(self) -> bool:
        """Whether pseudo-counts change with the total weight of the rows."""
        return False

    def factor_without(
        self, counts: Counts, removed: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Factor on all pseudo-counts when some weight is taken out of the counts.

        One, unless pseudo-counts depend on the total weight.
        """
        return np.ones_like(removed)

    def log_prior(self, counts: Counts) -> NDArray[np.float64]:
        """Logarithms of the smoothed class priors, shape (K,)."""
        check_settings(self)
        smoothed = counts.by_class + self.prior_counts(counts)
        prior = smoothed / smoothed.sum()
        return np.log(np.maximum(prior, np.finfo(np.float64).tiny))

    def log_prob(self, counts: Counts) -> FeatureTable:
        r"""Logarithms of the smoothed value probabilities, shape (V, K).

        .. math:: \theta_{j,v|c} = \frac{N_{jvc} + f_j}{N_c^{(j)} + n_j f_j}

        with :math:`N_c^{(j)}` the class total over rows whose cell is known, so that
        the probabilities of an attribute add up to one with missing cells too. The row
        of code 0 is zero: a missing or unseen cell says nothing.
        """
        check_settings(self)
        table = FeatureTable(counts.by_code, counts.schema.offsets)
        first = counts.schema.first_codes
        known = counts.by_code.copy()
        known[first] = 0.0
        added = self.value_counts(counts)
        totals = table.collect(known) + (added * counts.schema.n_values)[:, None]
        smoothed = known + table.spread(added)[:, None]
        smoothed[first] = 1.0
        totals_by_code = table.spread(totals)
        totals_by_code[first] = 1.0
        # The smallest constants vanish in the division; no probability is zero.
        prob = np.maximum(smoothed / totals_by_code, np.finfo(np.float64).tiny)
        return FeatureTable(np.log(prob), table.offsets)


class MEstimate(Smoothing):
    r"""m-estimate with a uniform prior, the smoothing of most weighted methods.

    .. math::
        \pi_c = \frac{N_c + m/q}{U + m}, \qquad
        \theta_{j,v|c} = \frac{N_{jvc} + m/n_j}{N_c^{(j)} + m}

    Examples
    --------
    >>> from steelyard import NaiveBayes
    >>> from steelyard.proba import MEstimate
    >>> clf = NaiveBayes(smoothing=MEstimate(m=2.0))
    """

    m: float = setting(
        default=1.0,
        allowed=number(0.0, ends="()"),
        about="Weight of the uniform prior, in rows.",
    )

    def prior_counts(self, counts: Counts) -> NDArray[np.float64]:
        """Pseudo-counts added to each class, shape (K,)."""
        return np.full(counts.n_classes, float(self.m) / counts.n_classes)

    def value_counts(self, counts: Counts) -> NDArray[np.float64]:
        """Pseudo-counts added to each value of each attribute, shape (d,)."""
        return float(self.m) / np.maximum(counts.schema.n_values, 1)


class Lidstone(Smoothing):
    r"""The same constant for every class and value.

    .. math::
        \pi_c = \frac{N_c + f}{U + q f}, \qquad
        \theta_{j,v|c} = \frac{N_{jvc} + f}{N_c^{(j)} + n_j f}
    """

    f: float | None = setting(
        default=1.0,
        allowed=NONE | number(0.0, ends="()"),
        about="The constant; 1 is Laplace's rule. None takes one over the total weight "
        "of the rows (Kohavi, Becker and Sommerfield, 1997).",
    )

    @property
    def depends_on_total(self) -> bool:
        """Whether pseudo-counts change with the total weight of the rows."""
        return self.f is None

    def _constant(self, counts: Counts) -> float:
        if self.f is None:
            return 1.0 / max(counts.total, 1e-300)
        return float(self.f)

    def prior_counts(self, counts: Counts) -> NDArray[np.float64]:
        """Pseudo-counts added to each class, shape (K,)."""
        return np.full(counts.n_classes, self._constant(counts))

    def value_counts(self, counts: Counts) -> NDArray[np.float64]:
        """Pseudo-counts added to each value of each attribute, shape (d,)."""
        return np.full(len(counts.schema), self._constant(counts))

    def factor_without(
        self, counts: Counts, removed: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Factor on all pseudo-counts when some weight is taken out of the counts."""
        if self.f is not None:
            return np.ones_like(removed)
        return counts.total / np.maximum(counts.total - removed, 1e-300)


SMOOTHINGS: dict[str, Smoothing] = {
    "m-estimate": MEstimate(),
    "laplace": Lidstone(1.0),
    "kohavi": Lidstone(None),
}


def resolve_smoothing(value: Any) -> Smoothing:
    """Return the smoothing that a value names."""
    if isinstance(value, Smoothing):
        check_settings(value)
        return value
    if isinstance(value, str) and value in SMOOTHINGS:
        return SMOOTHINGS[value]
    if not isinstance(value, (bool, np.bool_)) and _is_positive(value):
        return Lidstone(float(value))
    words = ", ".join(repr(name) for name in SMOOTHINGS)
    raise ParameterError(
        f"The 'smoothing' parameter must be one of {words}, a number greater than 0, "
        f"or a Smoothing object. Got {value!r} instead."
    )


def estimate_prior(
    setting: Any, counts: Counts, smoothing: Smoothing
) -> NDArray[np.float64]:
    """Return log class priors as ``prior`` asks: smoothed, frequency, or given."""
    if isinstance(setting, str):
        if setting == "smoothed":
            return smoothing.log_prior(counts)
        if setting == "frequency":
            with np.errstate(divide="ignore"):
                return np.log(counts.by_class / counts.by_class.sum())
    else:
        prior = np.asarray(setting, dtype=np.float64)
        if prior.shape != (counts.n_classes,):
            raise ParameterError(
                f"Number of priors must match number of classes: `prior` has "
                f"{prior.size} entries for {counts.n_classes} classes."
            )
        if (prior < 0).any() or not np.isclose(prior.sum(), 1.0):
            raise ParameterError(
                f"`prior` must hold probabilities that add up to 1, got "
                f"{prior.tolist()} with sum {prior.sum():g}."
            )
        with np.errstate(divide="ignore"):
            return np.log(prior)
    raise ParameterError(
        "The 'prior' parameter must be 'smoothed', 'frequency' or one probability per "
        f"class. Got {setting!r} instead."
    )


def _is_positive(value: Any) -> bool:
    """Whether a value is a number that float64 holds as one greater than 0."""
    try:
        return isinstance(value, Real) and 0.0 < float(value) < np.inf
    except OverflowError:
        return False
