"""Weights along a path of settings: how a penalty moves them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from steelyard.displays._base import Display
from steelyard.displays._style import (
    LINES,
    PALE,
    bare,
    label,
    largest,
    line_colour,
    spread,
)
from steelyard.exceptions import ParameterError

__all__ = ["RegularizationPathDisplay", "WeightPath", "regularization_path"]

DEFAULT_PATH = tuple(float(x) for x in np.logspace(-2, 4, 19))


@dataclass(frozen=True)
class WeightPath:
    """Weights at every point of a path.

    Attributes
    ----------
    parameter : str
        What varies.
    values : ndarray of shape (p,)
        Its values.
    weights : ndarray of shape (p, m)
        Attribute weights at each.
    names : list of str
        What the m weights are of.
    """

    parameter: str
    values: NDArray[np.float64]
    weights: NDArray[np.float64]
    names: list[str]


def regularization_path(
    clf: Any,
    X: Any,
    y: Any,
    *,
    path: Sequence[float] = DEFAULT_PATH,
    parameter: str = "lam",
    sample_weight: Any = None,
    progress: Callable[[int, int], None] | None = None,
) -> WeightPath:
    """Refit a classifier along a path of values of one setting.

    Parameters
    ----------
    clf : WeightedNB
        A classifier with attribute or class-attribute weights; it is cloned.
    X, y : table of shape (n, d), array-like of shape (n,)
        Training data.
    path : sequence of float, default=19 values from 0.01 to 10,000
        Values of the setting.
    parameter : str, default="lam"
        The setting: a penalty, or any other number.
    sample_weight : array-like of shape (n,), default=None
        Row weights.
    progress : callable, default=None
        Called with the number of fits done and their total after each.

    Returns
    -------
    WeightPath
        Weights at every value.

    Examples
    --------
    >>> from steelyard import WeightedNB
    >>> from steelyard.displays import regularization_path
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> path = regularization_path(WeightedNB(), X, y, path=[0.1, 10.0, 1e6])
    >>> path.weights[-1].round(2)
    array([1., 1., 1., 1.])
    """
    if parameter not in clf.get_params():
        raise ParameterError(
            f"{type(clf).__name__} has no setting {parameter!r}; a path needs one, for "
            "example WeightedNB and 'lam'."
        )
    if len(path) < 1:
        raise ParameterError("`path` must hold at least one value.")
    weights: list[NDArray[np.float64]] = []
    names: list[str] = []
    for done, value in enumerate(path, start=1):
        with warnings.catch_warnings():
            # Without a penalty rows may be separable; the picture shows it.
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted = clone(clf).set_params(**{parameter: value})
            fitted.fit(X, y, sample_weight=sample_weight)
        vector, names = _flat_weights(fitted)
        weights.append(vector)
        if progress is not None:
            progress(done, len(path))
    return WeightPath(parameter, np.asarray(path, float), np.array(weights), names)


def _flat_weights(clf: Any) -> tuple[NDArray[np.float64], list[str]]:
    names = clf.encoder_.schema_.labels()
    vector = np.asarray(getattr(clf, "attribute_weights_", 0.0))
    if vector.ndim == 1:
        return vector, list(getattr(clf, "view_names_", names))
    matrix = np.asarray(getattr(clf, "class_attribute_weights_", 0.0))
    if matrix.ndim == 2:
        return matrix.ravel(), [f"{name}, {c}" for c in clf.classes_ for name in names]
    raise ParameterError(
        f"{type(clf).__name__} learns no weights per attribute with these settings."
    )


@dataclass(eq=False, repr=False)
class RegularizationPathDisplay(Display):
    """Weights as lines over a setting.

    Parameters
    ----------
    path : WeightPath
        From ``regularization_path``.
    max_named : int, default=12
        Name so many lines, those that move most; the others are pale.

    Attributes
    ----------
    ax_, figure_
        Where it was drawn.

    Examples
    --------
    >>> from steelyard.displays import RegularizationPathDisplay
    >>> from steelyard import WeightedNB
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> display = RegularizationPathDisplay.from_estimator(WeightedNB(), X, y)
    """

    path: WeightPath
    max_named: int = 12

    @classmethod
    def from_estimator(
        cls,
        clf: Any,
        X: Any,
        y: Any,
        *,
        path: Sequence[float] = DEFAULT_PATH,
        parameter: str = "lam",
        max_named: int = 12,
        ax: Any = None,
    ) -> RegularizationPathDisplay:
        """Refit along a path and draw the weights.

        Parameters
        ----------
        clf, X, y, path, parameter
            As in ``regularization_path``.
        max_named
            As in ``RegularizationPathDisplay``.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if not given.

        Returns
        -------
        RegularizationPathDisplay
            The picture.
        """
        fitted = regularization_path(clf, X, y, path=path, parameter=parameter)
        return cls(fitted, max_named).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        """Draw the lines."""
        ax = self._axes(ax, 8.4, 4.8)
        values, weights = self.path.values, self.path.weights
        named = largest(np.ptp(weights, axis=0), self.max_named)
        for k in range(weights.shape[1]):
            if k not in named:
                ax.plot(values, weights[:, k], color=PALE, linewidth=0.9, zorder=0)
        for i, k in enumerate(named):
            style = ("-", "--", ":")[i // len(LINES) % 3]
            ax.plot(values, weights[:, k], style, color=line_colour(i))
        if (values > 0).all():
            ax.set_xscale("log")
        # Lines are named where they start, since a ridge makes them meet at the end.
        low, high = ax.get_ylim()
        places = spread([float(weights[0, k]) for k in named], 0.045 * (high - low))
        thin = {"arrowstyle": "-", "linewidth": 0.5, "shrinkA": 1.0, "shrinkB": 0.0}
        for i, (k, y) in enumerate(zip(named, places, strict=True)):
            ax.annotate(
                label(self.path.names[k], 32),
                (values[0], weights[0, k]),
                (-0.03, y),
                textcoords=ax.get_yaxis_transform(),
                ha="right",
                va="center",
                fontsize=8,
                color=line_colour(i),
                annotation_clip=False,
                arrowprops={**thin, "color": line_colour(i)},
            )
        ax.margins(x=0.0)
        ax.yaxis.tick_right()
        ax.yaxis.set_label_position("right")
        ax.set_ylabel("weight")
        ax.set_xlabel(self.path.parameter)
        bare(ax, "top", "left")
