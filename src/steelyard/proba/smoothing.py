"""Smoothed estimates of class priors and value probabilities; all in `Estimation`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import gammaln, ndtr

from steelyard._common.arrays import Floats
from steelyard._common.settings import (
    NONE,
    DeclaredPart,
    check_settings,
    number,
    setting,
)
from steelyard.exceptions import ParameterError
from steelyard.proba.basis import EffectBasis
from steelyard.proba.counts import Counts
from steelyard.proba.encodings import Encodings
from steelyard.proba.gaussian import GaussianTable, estimate_gaussian
from steelyard.table.codes import FeatureTable


class Smoothing(DeclaredPart):
    """How counts become probabilities that are never zero."""

    def prior_counts(self, counts: Counts) -> Floats:
        """Pseudo-counts added to each class, shape (K,)."""
        raise NotImplementedError

    def value_counts(self, counts: Counts) -> Floats:
        """Pseudo-counts added to each value of each attribute, shape (d,).

        A smoothing without them refuses methods that need them.
        """
        words = [word for word, part in SMOOTHINGS.items() if type(part) is type(self)]
        raise ParameterError(
            f"smoothing={words[0]!r} has no pseudo-counts per value, which this method "
            "needs. Use 'm-estimate', 'laplace' or a number."
        )

    @property
    def depends_on_total(self) -> bool:
        """Whether pseudo-counts change with the total weight of the rows."""
        return False

    @property
    def leaves_zeros(self) -> bool:
        """Whether a count of zero stays one."""
        return False

    def factor_without(self, counts: Counts, removed: Floats) -> Floats:
        """Factor on all pseudo-counts when some weight is taken out of the counts.

        One, unless pseudo-counts depend on the total weight.
        """
        return np.ones_like(removed)

    def log_prior(self, counts: Counts) -> Floats:
        """Logarithms of the smoothed class priors, shape (K,)."""
        check_settings(self)
        smoothed = counts.by_class + self.prior_counts(counts)
        prior = smoothed / smoothed.sum()
        return np.log(np.maximum(prior, np.finfo(np.float64).tiny))

    def log_prob(self, counts: Counts) -> FeatureTable:
        r"""Logarithms of the smoothed value probabilities, shape (V, K).

        .. math:: \theta_{j,v|c} = \frac{N_{jvc} + f_j}{N_c^{(j)} + n_j f_j}

        with :math:`N_c^{(j)}` the class total over rows whose cell is observed, so that
        the probabilities of an attribute add up to one with missing cells too. The row
        of code 0 is zero: a missing or unseen cell adds nothing.
        """
        check_settings(self)
        table = FeatureTable(counts.by_code, counts.schema.offsets)
        first = counts.schema.first_codes
        observed = counts.by_code.copy()
        observed[first] = 0.0
        added = self.value_counts(counts)
        totals = table.collect(observed) + (added * counts.schema.n_values)[:, None]
        smoothed = observed + table.spread(added)[:, None]
        smoothed[first] = 1.0
        totals_by_code = table.spread(totals)
        totals_by_code[totals_by_code == 0.0] = 1.0
        totals_by_code[first] = 1.0
        # The smallest constants vanish in the division; 0 leaves zeros itself.
        tiny = np.finfo(np.float64).tiny
        prob = np.maximum(smoothed / totals_by_code, tiny)
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

    def prior_counts(self, counts: Counts) -> Floats:
        """Pseudo-counts added to each class, shape (K,)."""
        return np.full(counts.n_classes, float(self.m) / counts.n_classes)

    def value_counts(self, counts: Counts) -> Floats:
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
        allowed=NONE | number(0.0),
        about="The constant; 1 is Laplace's rule, 0 takes frequencies as they are, a "
        "count of zero for the least probability above zero. None takes one over the "
        "total weight of the rows (Kohavi, Becker and Sommerfield, 1997).",
    )

    @property
    def depends_on_total(self) -> bool:
        """Whether pseudo-counts change with the total weight of the rows."""
        return self.f is None

    @property
    def leaves_zeros(self) -> bool:
        """Whether a count of zero stays one."""
        return self.f == 0

    def _constant(self, counts: Counts) -> float:
        if self.f is None:
            return 1.0 / max(counts.total, 1e-300)
        return float(self.f)

    def prior_counts(self, counts: Counts) -> Floats:
        """Pseudo-counts added to each class, shape (K,)."""
        return np.full(counts.n_classes, self._constant(counts))

    def value_counts(self, counts: Counts) -> Floats:
        """Pseudo-counts added to each value of each attribute, shape (d,)."""
        return np.full(len(counts.schema), self._constant(counts))

    def factor_without(self, counts: Counts, removed: Floats) -> Floats:
        """Factor on all pseudo-counts when some weight is taken out of the counts."""
        if self.f is not None:
            return np.ones_like(removed)
        return counts.total / np.maximum(counts.total - removed, 1e-300)


class EmpiricalBayes(Smoothing):
    r"""Values drawn towards the class prior, as far as their column's counts ask for.

    .. math::
        P(c \mid v) = \frac{N_{jvc} + m_j \pi^{(j)}_c}{N_{jv} + m_j}, \qquad
        \log \theta_{j,v|c} = \log \frac{P(c \mid v)}{\pi^{(j)}_c}

    The strength :math:`m_j` of a column maximises the likelihood of its counts, the
    product over its values of Dirichlet-multinomial probabilities
    :math:`\mathrm{DirMult}(N_{jv\cdot} \mid m \pi^{(j)})`. Where the values differ in
    their classes no more than by chance, it is large and the column adds next to
    nothing: a column of random text, or of names that hardly repeat, does no harm. It
    is the largest allowed, a million, unless another gains at least a twentieth for
    each category in log-likelihood, or 2 for more than 40 of them; so for an
    identifier, each value of which occurs once. :math:`\pi^{(j)}` are the class shares
    of the rows whose cell is observed, themselves smoothed by one row in all.

    Up to a factor that all classes share, these are the probabilities of values that
    other smoothings estimate. There are no pseudo-counts per value: methods that need
    these refuse this smoothing.

    Examples
    --------
    >>> import numpy as np
    >>> from steelyard import NaiveBayes
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.integers(0, 50, (200, 1)), rng.integers(0, 2, 200)
    >>> clf = NaiveBayes(categorical_features="all", smoothing="empirical-bayes")
    >>> float(np.ptp(clf.fit(X, y).predict_proba(X)[:, 1]).round(3))
    0.0
    """

    def prior_counts(self, counts: Counts) -> Floats:
        """Pseudo-counts added to each class: Laplace's rule, shape (K,)."""
        return np.ones(counts.n_classes)

    def log_prob(self, counts: Counts) -> FeatureTable:
        r"""Logarithms of :math:`P(c \mid v) / \pi^{(j)}_c`, shape (V, K).

        The row of code 0 is zero: a missing or unseen cell adds nothing.
        """
        table = FeatureTable(counts.by_code, counts.schema.offsets)
        observed = counts.by_code.copy()
        observed[counts.schema.first_codes] = 0.0
        base = np.exp(self.log_prior(counts))
        by_class = table.collect(observed) + base
        share = by_class / by_class.sum(axis=1, keepdims=True)
        asked = _GAIN_PER_CATEGORY * counts.schema.n_categories
        least_gain = np.clip(asked, _FLAT, _MAX_GAIN).astype(np.float64)
        strength = _dirichlet_strengths(table, observed, share, least_gain)
        smoothed = observed + table.spread(strength[:, None] * share)
        posterior = smoothed / smoothed.sum(axis=1, keepdims=True)
        # The smallest shares vanish in the division; no probability is zero.
        tiny = np.finfo(np.float64).tiny
        log_prob = np.log(np.maximum(posterior, tiny) / table.spread(share))
        log_prob[counts.schema.first_codes] = 0.0
        return FeatureTable(log_prob, table.offsets)


# Strengths that are tried, in rows, and how often their neighbourhood is narrowed.
_STRENGTHS = np.geomspace(1e-2, 1e6, 9)
_REFINEMENTS = 3

# Log-likelihoods that differ by less are equal up to rounding.
_FLAT = 1e-4

# How much more likely counts must be than at the largest strength, for each category of
# the column and at most: a row of a rare value speaks for itself when weights are
# learned, so that chance must not be taken for evidence. Chance alone gains 2 in a
# fiftieth of all columns; without a bound half of them would be believed.
_GAIN_PER_CATEGORY = 0.05
_MAX_GAIN = 2.0


def _dirichlet_strengths(
    table: FeatureTable,
    observed: Floats,
    share: Floats,
    least_gain: Floats,
) -> Floats:
    """Strengths under which the counts of each attribute are most likely, shape (d,).

    The best of a coarse grid, the largest of equals, then ever smaller steps from
    there; all attributes at once. The largest of all if that gains too little.
    """
    row, c = np.nonzero(observed)
    of_cell, of_row = observed[row, c], observed.sum(axis=1)
    cell = table.owners[row] * share.shape[1] + c

    def log_likelihood(strength: Floats) -> Floats:
        added = (strength[:, None] * share).ravel()
        by_row = table.spread(gammaln(strength))
        by_row -= gammaln(of_row + table.spread(strength))
        rises = gammaln(of_cell + added[cell]) - gammaln(added)[cell]
        by_row += np.bincount(row, rises, minlength=len(by_row))
        return np.asarray(table.collect(by_row))

    grid = np.stack([log_likelihood(np.full(len(share), m)) for m in _STRENGTHS])
    is_best = grid >= grid.max(axis=0) - _FLAT
    best = len(_STRENGTHS) - 1 - np.argmax(is_best[::-1], axis=0)
    middle, step = np.log(_STRENGTHS[best]), np.log(_STRENGTHS[1] / _STRENGTHS[0])
    value = np.take_along_axis(grid, best[None], axis=0)[0]
    for _ in range(_REFINEMENTS):
        step /= 2.0
        left, right = (log_likelihood(np.exp(middle + s)) for s in (-step, step))
        shift = np.where(right > value, step, np.where(left > value, -step, 0.0))
        middle, value = middle + shift, np.maximum(value, np.maximum(left, right))
    # The top of the parabola through the last three.
    left, right = (log_likelihood(np.exp(middle + s)) for s in (-step, step))
    bend = np.maximum(2.0 * value - left - right, 1e-300)
    middle += np.clip((right - left) / (2.0 * bend), -1.0, 1.0) * step
    is_chance = value - grid[-1] < least_gain
    return np.where(is_chance, _STRENGTHS[-1], np.exp(middle))


# Weka never lets a factor fall below this.
_MIN_DENSITY = 1e-75


class KernelDensity(Smoothing):
    r"""A normal kernel on each number, the "flexible" naive Bayes of John and Langley.

    For the bins :math:`v` of a column of numbers, counted from the left,

    .. math::
        \theta_{j,v|c} = \frac{1}{N_c^{(j)}} \sum_{v'} N_{jv'c} \left[
            \Phi\left(\frac{v - v' + \frac12}{h_c}\right) -
            \Phi\left(\frac{v - v' - \frac12}{h_c}\right)\right], \qquad
        h_c = \max\left(\frac{R_c}{\sqrt{N_c^{(j)}}}, \frac16\right)

    where :math:`R_c` is how many bins lie between the smallest and the largest number
    of the class: Weka's kernel estimator (``NaiveBayes -K``), on bins of one width,
    such as those of ``numeric="grid"``. Categories have Laplace's rule.

    References
    ----------
    G. H. John, P. Langley (1995), "Estimating continuous distributions in Bayesian
    classifiers", UAI-95, 338-345.

    Examples
    --------
    >>> import steelyard as sy
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = sy.NaiveBayes(numeric="grid", smoothing="kernel").fit(X, y)
    >>> round(clf.score(X, y), 3)
    0.967
    """

    def prior_counts(self, counts: Counts) -> Floats:
        """Pseudo-counts added to each class: Laplace's rule, shape (K,)."""
        return np.ones(counts.n_classes)

    def log_prob(self, counts: Counts) -> FeatureTable:
        """Logarithms of the probabilities of bins and values, shape (V, K)."""
        table = Lidstone(1.0).log_prob(counts)
        for j, feature in enumerate(counts.schema.features):
            if feature.kind == "binned":
                first = counts.schema.offsets[j] + 1
                bins = slice(first, first + len(feature.edges) + 1)
                by_class = counts.by_code[bins].T
                prob = np.stack([_kernel_shares(n) for n in by_class], axis=1)
                # A missing cell that is a value has its share by Laplace's rule.
                prob *= np.exp(table.values[bins]).sum(axis=0)
                table.values[bins] = np.log(np.maximum(prob, _MIN_DENSITY))
        return table


def _kernel_shares(counts: Floats) -> Floats:
    """Return the probabilities of bins, from the counts of a class, by kernels."""
    n_bins, total = len(counts), counts.sum()
    observed = np.flatnonzero(counts)
    if not observed.size:
        return np.full(n_bins, 1.0 / max(n_bins, 1))
    width = max((observed[-1] - observed[0]) / np.sqrt(total), 1.0 / 6.0)
    # In the lower tail differences keep their digits.
    apart = -np.abs(np.arange(1 - n_bins, n_bins))
    kernel = ndtr((apart + 0.5) / width) - ndtr((apart - 0.5) / width)
    return np.convolve(counts, kernel)[n_bins - 1 : 2 * n_bins - 1] / total


SMOOTHINGS: dict[str, Smoothing] = {
    "m-estimate": MEstimate(),
    "laplace": Lidstone(1.0),
    "kohavi": Lidstone(None),
    "empirical-bayes": EmpiricalBayes(),
    "kernel": KernelDensity(),
}


def resolve_smoothing(value: Any) -> Smoothing:
    """Return the smoothing that a value names."""
    if isinstance(value, Smoothing):
        check_settings(value)
        return value
    if isinstance(value, str) and value in SMOOTHINGS:
        return SMOOTHINGS[value]
    if number(0.0).accepts(value):
        return Lidstone(float(value))
    words = ", ".join(repr(name) for name in SMOOTHINGS)
    raise ParameterError(
        f"The 'smoothing' parameter must be one of {words}, a number of at least 0, "
        f"or a Smoothing object. Got {value!r} instead."
    )


def estimate_prior(setting: Any, counts: Counts, smoothing: Smoothing) -> Floats:
    """Return log class priors, as the setting asks: smoothed, frequency, or given."""
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


@dataclass(frozen=True)
class Estimation:
    """How counts become probabilities."""

    smoothing: Smoothing
    prior: Any
    """"smoothed", "frequency", or one probability per class."""

    variance_floor: float
    unbiased: bool = False
    """Whether variances divide by n - 1."""

    count_factors: Floats | None = None
    """Factors on the counts of each attribute before they are smoothed, shape (d,)."""

    n_bins: tuple[int, ...] = ()
    """Length scales as numbers of bins; empty for bins as they are."""

    def tables(
        self, counts: Counts, basis: EffectBasis | None = None
    ) -> tuple[Floats, FeatureTable, GaussianTable]:
        """Return log priors, log-probabilities of codes, and densities.

        With several length scales log-probabilities are averages over these, and
        smooth. Interactions have none: their rows are zero. The basis of the schema may
        be given.
        """
        if basis is None:
            basis = EffectBasis(Encodings.joint(counts.schema), self.n_bins)
        log_prior = estimate_prior(self.prior, counts, self.smoothing)
        log_prob = self._log_prob(self._factored(counts), basis)
        no_attributes = np.zeros((0, counts.n_classes))
        gaussian = GaussianTable(no_attributes, no_attributes, np.zeros(0))
        if len(counts.moments.weight):
            gaussian = estimate_gaussian(counts, self.variance_floor, self.unbiased)
        return log_prior, log_prob, gaussian

    def _log_prob(self, counts: Counts, basis: EffectBasis) -> FeatureTable:
        schema = counts.schema
        if not self.n_bins and not schema.is_interaction.any():
            return self.smoothing.log_prob(counts)
        scales = basis.length_scales
        log_prob = scales.added(self.smoothing.log_prob(scales.counts(counts)).values)
        n_scales = np.maximum(np.bincount(scales.columns, minlength=len(schema)), 1)
        table = FeatureTable(log_prob, schema.offsets)
        averages = log_prob / table.spread(n_scales)[:, None]
        return replace(table, values=basis.smoothed(averages))

    def _factored(self, counts: Counts) -> Counts:
        """Return counts of codes times the factors of their attributes."""
        if self.count_factors is None:
            return counts
        table = FeatureTable(counts.by_code, counts.schema.offsets)
        factors = table.spread(self.count_factors)[:, None]
        return replace(counts, by_code=counts.by_code * factors)
