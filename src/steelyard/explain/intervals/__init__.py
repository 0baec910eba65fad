"""Intervals of learned weights and of evidence: bootstrap, and Laplace's approximation.

``laplace`` has the problem of a fit at its minimum, ``covariance`` how uncertain
functions of its weights are, and ``maps`` these functions.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from steelyard._common.arrays import Floats
from steelyard._common.text import text_table
from steelyard.classifiers.base import BaseNB
from steelyard.exceptions import IdentifierWarning, ParameterError, TableError
from steelyard.explain.intervals.laplace import (
    EvidenceIntervals,
    evidence_intervals,
    named_bounds,
    solved,
    value_names,
)
from steelyard.explain.intervals.maps import BY_VALUE, named_weights, side_by_side
from steelyard.explain.overall import learned_weights
from steelyard.explain.views import PlainData

__all__ = ["EvidenceIntervals", "WeightIntervals", "explain_weights"]


# How often a bootstrap sample that lacks a class is drawn again.
_MAX_DRAWS = 1_000


@dataclass(frozen=True, repr=False)
class WeightIntervals(PlainData):
    """Learned weights with lower and upper ends of intervals.

    Attributes
    ----------
    method : {"bootstrap", "laplace"}
        How the intervals were made.
    level : float
        Nominal coverage.
    attributes : list of str
        Names of the columns.
    estimate, low, high : dict
        Arrays by the names of the fitted attributes, such as ``attribute_weights_``.
    samples : dict
        Weights of every bootstrap fit, with the fit as first axis; empty for Laplace.
    at_bound : dict
        Which weights lie at a bound, where a Laplace interval has no width; empty for
        the bootstrap.
    entries : dict
        Names of the entries of weights that are not by attribute.
    evidence : EvidenceIntervals or None
        Evidence of the given rows with intervals; None without rows.
    """

    method: str
    level: float
    classes: NDArray[Any]
    attributes: list[str]
    estimate: dict[str, Floats]
    low: dict[str, Floats]
    high: dict[str, Floats]
    samples: dict[str, Floats]
    at_bound: dict[str, NDArray[np.bool_]]
    entries: dict[str, list[str]] = field(default_factory=dict)
    evidence: EvidenceIntervals | None = None

    def plot(self, **options: Any) -> Any:
        """Draw the weights as bars with their intervals.

        Parameters
        ----------
        **options
            Passed to ``WeightBarsDisplay.from_intervals``.

        Returns
        -------
        WeightBarsDisplay
            The picture.
        """
        from steelyard.displays import WeightBarsDisplay

        return WeightBarsDisplay.from_intervals(self, **options)

    def __repr__(self) -> str:
        """List weights and intervals."""
        texts = [f"{100 * self.level:g} % intervals by {self.method}"]
        for name, values in self.estimate.items():
            held = self.at_bound.get(name, np.zeros(values.shape, dtype=bool))
            marks = ["at bound" * is_held for is_held in held.ravel().tolist()]
            numbers = [
                [f"{number:.3f}" for number in array.ravel()]
                for array in (values, self.low[name], self.high[name])
            ]
            rows = zip(self._labels(name), *numbers, marks, strict=True)
            headers = [name, "weight", "low", "high", ""]
            texts.append(text_table(headers, rows, [False, True, True, True, False]))
        return "\n\n".join(texts)

    def _labels(self, name: str) -> list[str]:
        """Name the entries of an array of weights."""
        shape, names = self.estimate[name].shape, self.attributes
        by_class = [f"{attribute} in {c}" for c in self.classes for attribute in names]
        indices = [", ".join(map(str, index)) for index in np.ndindex(*shape)]
        k, d = len(self.classes), len(names)
        known = {(): ["(one)"], (d,): names, (k, d): by_class}
        return self.entries.get(name) or known.get(shape, indices)


def explain_weights(
    clf: BaseNB,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    method: str = "bootstrap",
    n_bootstrap: int = 200,
    level: float = 0.95,
    random_state: Any = None,
    progress: Callable[[int, int], None] | None = None,
    rows: Any = None,
) -> WeightIntervals:
    r"""Give learned weights intervals.

    The bootstrap refits the classifier to multinomial row weights, cut points of
    numeric columns included, and takes quantiles. Laplace's approximation takes

    .. math:: w_k \pm z\, \sqrt{[H^{-1}]_{kk}}

    with the Hessian H of the objective at its minimum, over the weights that are not at
    a bound, and cut off at the bounds. It needs a loss that is a negative
    log-likelihood, and takes the probabilities that are weighted as given.

    Evidence of rows is a linear function :math:`a^T w` of the weights, times the scale
    s of the scores. Its interval is

    .. math:: s\, a^T w \pm z \sqrt{\frac{1}{M} \sum_m \left[a^T H_m^{-1} a +
              (s_m\, a^T w_m - s\, a^T w)^2\right]}

    over the strengths of ``strength_path_``, with or without pairs as in the model,
    whose log-loss is within half a standard error of the best; over the model alone
    where it has no such path. The user guide says how often it covers.

    Parameters
    ----------
    clf : BaseNB
        A fitted classifier that learns weights.
    X, y : table of shape (n, d), array-like of shape (n,)
        Its training data.
    sample_weight : array-like of shape (n,), default=None
        Row weights of that fit.
    method : {"bootstrap", "laplace"}, default="bootstrap"
        How to make intervals.
    n_bootstrap : int, default=200
        Number of refits.
    level : float, default=0.95
        Nominal coverage of the intervals.
    random_state : int, Generator or None, default=None
        Seed of the bootstrap.
    progress : callable, default=None
        Called with the number of refits done and their total after each.
    rows : table of shape (m, d), default=None
        Rows whose evidence gets intervals too; Laplace only.

    Returns
    -------
    WeightIntervals
        Estimates and intervals by name.

    References
    ----------
    B. Efron (1979), "Bootstrap methods: another look at the jackknife", Annals of
    Statistics 7, 1-26.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from steelyard import WeightedNB
    >>> from steelyard.explain import explain_weights
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> clf = WeightedNB(bounds=(0, 2), lam=1.0).fit(X, y)
    >>> explain_weights(clf, X, y, method="laplace")
    95 % intervals by laplace
    <BLANKLINE>
    attribute_weights_  weight    low   high
    ----------------------------------------
    sepal length (cm)    0.128  0.000  0.976
    sepal width (cm)     0.365  0.000  1.463
    petal length (cm)    0.670  0.255  1.086
    petal width (cm)     0.710  0.338  1.082
    """
    check_is_fitted(clf)
    if not isinstance(level, Real) or not 0.0 < float(level) < 1.0:
        raise _refusal("level", "between 0 and 1", level)
    if method == "laplace":
        return _laplace(clf, X, y, sample_weight, float(level), rows)
    named = _bootstrapped_weights(clf, method, n_bootstrap, rows)
    refits = _refits(clf, X, y, sample_weight, np.random.default_rng(random_state))
    fits = []
    for done, refit in enumerate(islice(refits, int(n_bootstrap)), start=1):
        fits.append({name: getattr(refit, name) for name in named})
        if progress is not None:
            progress(done, int(n_bootstrap))
    tail = 100.0 * (1.0 - float(level)) / 2.0
    samples, low, high = {}, {}, {}
    for name in named:
        samples[name] = np.array([fit[name] for fit in fits], dtype=np.float64)
        low[name] = np.percentile(samples[name], tail, axis=0)
        high[name] = np.percentile(samples[name], 100.0 - tail, axis=0)
    what = (method, float(level), clf.classes_, clf.encoder_.schema_.labels())
    return WeightIntervals(*what, named, low, high, samples, {})


def _bootstrapped_weights(
    clf: BaseNB, method: str, n_bootstrap: int, rows: Any
) -> dict[str, Floats]:
    """Check the settings of a bootstrap; return the weights it compares, by name."""
    if method != "bootstrap":
        raise _refusal("method", "'bootstrap' or 'laplace'", method)
    if rows is not None:
        raise ParameterError(
            "Evidence of rows has intervals with method='laplace' only. Leave `rows` "
            "out for the bootstrap of weights."
        )
    named = {
        name: np.asarray(value, dtype=np.float64)
        for name, value in learned_weights(clf).items()
        if name not in BY_VALUE
    }
    if not named:
        raise ParameterError(
            f"{type(clf).__name__} has no weights with a bootstrap: it learns none per "
            "attribute. Weights of values change with the cut points of each refit; "
            "use method='laplace' for them."
        )
    if not isinstance(n_bootstrap, Integral) or n_bootstrap < 2:
        raise _refusal("n_bootstrap", "a whole number of at least 2", n_bootstrap)
    return named


def _refusal(name: str, allowed: str, value: Any) -> ParameterError:
    text = f"The {name!r} parameter must be {allowed}. Got {value!r} instead."
    return ParameterError(text)


def _refits(
    clf: BaseNB, X: Any, y: Any, sample_weight: Any, random: np.random.Generator
) -> Iterator[BaseNB]:
    """Fit clones to resampled rows, without end."""
    labels = np.unique(np.asarray(y), return_inverse=True)[1]
    weights = np.ones(len(labels))
    if sample_weight is not None:
        weights = np.asarray(sample_weight, dtype=np.float64)
    while True:
        times = _resample(random, labels, weights > 0)
        with warnings.catch_warnings():
            # A refit that is separable or slow is part of the uncertainty.
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", IdentifierWarning)
            refit = clone(clf).fit(X, y, sample_weight=times * weights)
        yield refit


def _resample(
    random: np.random.Generator, labels: NDArray[np.intp], counts: NDArray[np.bool_]
) -> Floats:
    """Say how often each row is drawn; every class is, of the rows that count."""
    n, n_classes = len(labels), len(np.unique(labels[counts]))
    for _ in range(_MAX_DRAWS):
        times = random.multinomial(n, np.full(n, 1.0 / n)).astype(np.float64)
        if len(np.unique(labels[(times > 0) & counts])) == n_classes:
            return times
    raise TableError(
        f"No bootstrap sample of {n} rows has all {n_classes} classes. Leave out or "
        "merge classes with very few rows, or use method='laplace'."
    )


def _laplace(
    clf: BaseNB, X: Any, y: Any, sample_weight: Any, level: float, asked: Any
) -> WeightIntervals:
    own = solved(clf, X, y, sample_weight)
    problem, schema = own.problem, clf.encoder_.schema_
    named = named_weights(problem, own.weights)
    for name, value in named.items():
        fitted = side_by_side(name, getattr(clf, name))
        if fitted.shape != value.shape or not np.allclose(fitted, value, atol=1e-6):
            raise ParameterError(
                "A fit to these rows has other weights than the classifier. Pass its "
                "training data and the row weights of that fit."
            )
    held = named_weights(problem, (~own.is_free).astype(np.float64))
    covariance = own.covariance()
    z = float(ndtri(0.5 + level / 2.0))
    deviation = covariance.named()
    lower, upper = named_bounds(problem, named)
    low, high, at_bound, entries = {}, {}, {}, {}
    for name, value in named.items():
        low[name] = np.maximum(value - z * deviation[name], lower[name])
        high[name] = np.minimum(value + z * deviation[name], upper[name])
        at_bound[name] = held[name] != 0.0
        if name in (*BY_VALUE, "intercept_"):
            entries[name] = value_names(schema, clf.classes_, name)
    evidence = None
    if asked is not None:
        evidence = evidence_intervals(clf, own, covariance, asked, level)
    what = ("laplace", level, clf.classes_, schema.labels())
    return WeightIntervals(*what, named, low, high, {}, at_bound, entries, evidence)
