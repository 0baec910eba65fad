"""Bootstrap intervals of learned weights."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from steelyard._common.allowed import number, whole
from steelyard._common.arrays import Floats
from steelyard._common.text import text_table
from steelyard.classifiers.base.estimator import BaseNB
from steelyard.exceptions import IdentifierWarning, ParameterError, TableError
from steelyard.explain.overall import learned_weights
from steelyard.explain.shared import PlainData

__all__ = ["WeightIntervals", "explain_weights"]


# How often a bootstrap sample that lacks a class is drawn again.
_MAX_DRAWS = 1_000

_ALLOWED = {
    "level": number(0.0, 1.0, "()").called("between 0 and 1"),
    "n_bootstrap": whole(2),
}

# Weights by value change with the cut points of each refit.
_BY_VALUE = ("value_weights_", "value_effects_")


@dataclass(frozen=True, repr=False)
class WeightIntervals(PlainData):
    """Learned weights with lower and upper ends of intervals.

    Attributes
    ----------
    level : float
        Nominal coverage.
    attributes : list of str
        Names of the columns.
    estimate, low, high : dict
        Arrays by the names of the fitted attributes, such as ``attribute_weights_``.
    samples : dict
        Weights of every refit, with the refit as first axis.
    """

    level: float
    classes: NDArray[Any]
    attributes: list[str]
    estimate: dict[str, Floats]
    low: dict[str, Floats]
    high: dict[str, Floats]
    samples: dict[str, Floats]

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
        texts = [f"{100 * self.level:g} % intervals by bootstrap"]
        for name, values in self.estimate.items():
            numbers = [
                [f"{number:.3f}" for number in array.ravel()]
                for array in (values, self.low[name], self.high[name])
            ]
            rows = zip(self._labels(name), *numbers, strict=True)
            headers = [name, "weight", "low", "high"]
            texts.append(text_table(headers, rows, [False, True, True, True]))
        return "\n\n".join(texts)

    def _labels(self, name: str) -> list[str]:
        """Name the entries of an array of weights."""
        shape, names = self.estimate[name].shape, self.attributes
        by_class = [f"{attribute} in {c}" for c in self.classes for attribute in names]
        indices = [", ".join(map(str, index)) for index in np.ndindex(*shape)]
        k, d = len(self.classes), len(names)
        labels = {(): ["(one)"], (d,): names, (k, d): by_class}
        return labels.get(shape, indices)


def explain_weights(
    clf: BaseNB,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    n_bootstrap: int = 200,
    level: float = 0.95,
    random_state: Any = None,
    progress: Callable[[int, int], None] | None = None,
) -> WeightIntervals:
    """Give learned weights bootstrap intervals.

    The classifier is refitted to multinomial row weights, cut points of numeric columns
    included, and the quantiles of the refits are the ends.

    Parameters
    ----------
    clf : BaseNB
        A fitted classifier that learns weights.
    X, y : table of shape (n, d), array-like of shape (n,)
        Its training data.
    sample_weight : array-like of shape (n,), default=None
        Row weights of that fit.
    n_bootstrap : int, default=200
        Number of refits.
    level : float, default=0.95
        Nominal coverage of the intervals.
    random_state : int, Generator or None, default=None
        Seed of the bootstrap.
    progress : callable, default=None
        Called with the number of refits done and their total after each.

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
    >>> intervals = explain_weights(clf, X, y, n_bootstrap=20, random_state=0)
    >>> intervals.samples["attribute_weights_"].shape
    (20, 4)
    """
    check_is_fitted(clf)
    given = {"level": level, "n_bootstrap": n_bootstrap}
    for name, check in _ALLOWED.items():
        if not check.accepts(given[name]):
            problem = f"The {name!r} parameter must be {check.text}."
            raise ParameterError(f"{problem} Got {given[name]!r} instead.")
    estimates = {
        name: np.asarray(value, dtype=np.float64)
        for name, value in learned_weights(clf).items()
        if name not in _BY_VALUE
    }
    if not estimates:
        raise ParameterError(
            f"{type(clf).__name__} has no weights with a bootstrap: it learns none per "
            "attribute, and weights of values change with the cut points of each refit."
        )
    random = np.random.default_rng(random_state)
    labels = np.unique(np.asarray(y), return_inverse=True)[1]
    weights = np.ones(len(labels))
    if sample_weight is not None:
        weights = np.asarray(sample_weight, dtype=np.float64)
    fits = []
    for done in range(1, int(n_bootstrap) + 1):
        times = _resample(random, labels, weights > 0)
        with warnings.catch_warnings():
            # A refit that is separable or slow is part of the uncertainty.
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", IdentifierWarning)
            refit = clone(clf).fit(X, y, sample_weight=times * weights)
        fits.append({name: getattr(refit, name) for name in estimates})
        if progress is not None:
            progress(done, int(n_bootstrap))
    tail = 100.0 * (1.0 - float(level)) / 2.0
    samples, low, high = {}, {}, {}
    for name in estimates:
        samples[name] = np.array([fit[name] for fit in fits], dtype=np.float64)
        low[name] = np.percentile(samples[name], tail, axis=0)
        high[name] = np.percentile(samples[name], 100.0 - tail, axis=0)
    shown = float(level), clf.classes_, clf.encoder_.schema_.labels()
    return WeightIntervals(*shown, estimates, low, high, samples)


def _resample(
    random: np.random.Generator, labels: NDArray[Any], counts: NDArray[np.bool_]
) -> Floats:
    """Draw how often each row is in a sample, of which some rows count.

    Every class has a row that counts.
    """
    n, n_classes = len(labels), len(np.unique(labels[counts]))
    for _ in range(_MAX_DRAWS):
        times = random.multinomial(n, np.full(n, 1.0 / n)).astype(np.float64)
        if len(np.unique(labels[(times > 0) & counts])) == n_classes:
            return times
    raise TableError(
        f"No bootstrap sample of {n} rows has all {n_classes} classes. Leave out or "
        "merge classes with very few rows."
    )
