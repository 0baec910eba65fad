"""How fits went: by iteration, along a path of a setting, and by strength."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from steelyard._common.arrays import Floats
from steelyard.displays import drawing as draw
from steelyard.exceptions import ParameterError

# What may be drawn over rounds, the first that a record has.
_BY_ROUND = ("objective", "log_loss", "error", "accuracy", "total_weight")

DEFAULT_PATH = tuple(float(x) for x in np.logspace(-2, 4, 19))


@dataclass(eq=False, repr=False)
class SolverTraceDisplay(draw.Display):
    """The objective above its end, and the gradient, over iterations.

    Parameters
    ----------
    records : list of dict
        ``diagnostics_`` of a classifier.

    Examples
    --------
    >>> from steelyard.displays import SolverTraceDisplay
    >>> from steelyard import WeightedNB
    >>> from sklearn.datasets import load_wine
    >>> clf = WeightedNB(lam=1.0).fit(*load_wine(return_X_y=True))
    >>> display = SolverTraceDisplay.from_estimator(clf)
    """

    records: list[dict[str, Any]]

    @classmethod
    def from_estimator(cls, clf: Any, *, ax: Any = None) -> SolverTraceDisplay:
        """Draw the fit of a classifier that has ``diagnostics_``.

        Parameters
        ----------
        clf : BaseNB
            A fitted classifier.
        """
        records = getattr(clf, "diagnostics_", None)
        if not records:
            raise ParameterError(
                f"{type(clf).__name__} has no record of iterations: it is not fitted "
                "by a solver, or has not been fitted."
            )
        return cls(records).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        ax = self._axes(ax, 6.4, 4.0)
        steps = [r for r in self.records if "iteration" in r and "objective" in r]
        if steps:
            self._draw_iterations(ax, steps)
        else:
            self._draw_rounds(ax)
        draw.bare(ax, "top", "right")

    def _draw_iterations(self, ax: Any, steps: list[dict[str, Any]]) -> None:
        traces: dict[Any, list[dict[str, Any]]] = {}
        for record in steps:
            traces.setdefault(str(record.get("pair", "")), []).append(record)
        many, is_named = len(traces) > 1, len(traces) <= len(draw.LINES)
        for k, (pair, records) in enumerate(traces.items()):
            x = np.arange(1, len(records) + 1)
            value = np.array([record["objective"] for record in records], dtype=float)
            # The last is the end itself; a share of it stands for rounding.
            above = np.maximum(value - value.min(), 1e-16 * max(1.0, abs(value.min())))
            name = (pair if is_named else None) if many else "objective above its end"
            style = {"color": draw.line_colour(k), "markersize": 4, "label": name}
            ax.plot(x, above, "o-", **style)
            if not many:
                slope = [float(record.get("gradient", np.nan)) for record in records]
                style = {**style, "color": draw.LINES[1]}
                style["label"] = "largest projected gradient"
                ax.plot(x, slope, "s--", **style)
        ax.set_yscale("log")
        self._name(ax, "iteration", "objective above its end" if many else "")
        if is_named:
            ax.legend(frameon=False, fontsize=8)
        else:
            draw.headline(ax, f"{len(traces)} pairs of classes")

    def _draw_rounds(self, ax: Any) -> None:
        first = self.records[0]
        name = next((key for key in _BY_ROUND if key in first), None)
        if name is None:
            raise ParameterError(
                f"The records hold none of {', '.join(_BY_ROUND)}: {sorted(first)}."
            )
        records = [record for record in self.records if name in record]
        x = [record.get("round", k) for k, record in enumerate(records, start=1)]
        ax.plot(x, [record[name] for record in records], "o-", color=draw.LINES[0])
        self._name(ax, "round", name.replace("_", " "))

    def _name(self, ax: Any, steps: str, what: str) -> None:
        """Name both axes; steps are whole numbers."""
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_xlabel(steps)
        ax.set_ylabel(what)
        draw.horizontal_grid(ax)


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
    values: Floats
    weights: Floats
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
    weights: list[Floats] = []
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


def _flat_weights(clf: Any) -> tuple[Floats, list[str]]:
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
class RegularizationPathDisplay(draw.Display):
    """Weights as lines over a setting.

    Parameters
    ----------
    path : WeightPath
        From ``regularization_path``.
    max_named : int, default=12
        How many lines to name, those that move most; the others are pale.

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
        """
        fitted = regularization_path(clf, X, y, path=path, parameter=parameter)
        return cls(fitted, max_named).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        ax = self._axes(ax, 8.4, 4.8)
        values, weights = self.path.values, self.path.weights
        named = draw.largest(np.ptp(weights, axis=0), self.max_named)
        others = np.delete(weights, named, axis=1)
        ax.plot(values, others, color=draw.PALE, linewidth=0.9, zorder=0)
        for i, k in enumerate(named):
            style = ("-", "--", ":")[i // len(draw.LINES) % 3]
            ax.plot(values, weights[:, k], style, color=draw.line_colour(i))
        if (values > 0).all():
            ax.set_xscale("log")
        # Lines are named where they start, since a ridge makes them meet at the end.
        low, high = ax.get_ylim()
        places = draw.spread(weights[0, named], 0.045 * (high - low))
        thin = {"arrowstyle": "-", "linewidth": 0.5, "shrinkA": 1.0, "shrinkB": 0.0}
        beside: dict[str, Any] = {"ha": "right", "va": "center", "fontsize": 8}
        beside |= {"textcoords": ax.get_yaxis_transform(), "annotation_clip": False}
        for i, (k, y) in enumerate(zip(named, places, strict=True)):
            name, start = draw.label(self.path.names[k], 32), (values[0], weights[0, k])
            beside["color"] = draw.line_colour(i)
            arrow = {**thin, "color": beside["color"]}
            ax.annotate(name, start, (-0.03, y), arrowprops=arrow, **beside)
        ax.margins(x=0.0)
        ax.yaxis.tick_right()
        ax.yaxis.set_label_position("right")
        ax.set_ylabel("weight")
        ax.set_xlabel(self.path.parameter)
        draw.bare(ax, "top", "left")


@dataclass(eq=False, repr=False)
class StrengthPathDisplay(draw.Display):
    """Cross-validated log-loss of the strengths that were compared.

    Bars are one standard error to either side; the chosen strengths are marked. The
    error rate is drawn beside it, on an axis of its own.

    Parameters
    ----------
    path : list of dict
        ``strength_path_`` of a ``ShrinkageNB``.
    chosen : tuple of three floats, default=None
        Strengths to mark; those of the least loss if not given.

    Examples
    --------
    >>> from steelyard.displays import StrengthPathDisplay
    >>> from steelyard import ShrinkageNB
    >>> from sklearn.datasets import load_wine
    >>> clf = ShrinkageNB().fit(*load_wine(return_X_y=True))
    >>> display = StrengthPathDisplay.from_estimator(clf)
    """

    path: list[dict[str, float]]
    chosen: tuple[float, float, float] | None = None

    @classmethod
    def from_estimator(cls, clf: Any, *, ax: Any = None) -> StrengthPathDisplay:
        """Draw the path of a fitted classifier.

        Parameters
        ----------
        clf : ShrinkageNB
            Fitted with ``strength="auto"``.
        """
        path = getattr(clf, "strength_path_", None)
        if not path:
            raise ParameterError(
                f"{type(clf).__name__} has compared no strengths: fit a ShrinkageNB "
                "with strength='auto'."
            )
        return cls(path, clf.strength_).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        loss = np.array([record["log_loss"] for record in self.path])
        spread = np.array([record.get("standard_error", 0.0) for record in self.path])
        error = np.array([record.get("error", np.nan) for record in self.path])
        strengths = itemgetter("shared", "by_class", "by_value")
        triples = [strengths(record) for record in self.path]
        ax = self._axes(ax, max(6.4, 1.0 + 0.9 * len(triples)), 4.2)
        places = np.arange(len(triples))
        if np.isfinite(error).any():
            # The loss is what was compared: it lies above.
            beside = draw.behind(ax)
            beside.plot(places, 100.0 * error, "s--", color=draw.LINES[1], markersize=4)
            beside.set_ylabel("error rate in % (squares)", color=draw.LINES[1])
            draw.bare(beside, "top")
        ax.errorbar(places, loss, yerr=spread, fmt="o-", color=draw.LINES[0], capsize=3)
        best = int(np.nanargmin(loss)) if np.isfinite(loss).any() else 0
        if self.chosen is not None and self.chosen in triples:
            best = triples.index(self.chosen)
        if np.isfinite(loss[best]):
            ax.plot([best], [loss[best]], "o", color=draw.FOR, markersize=10, zorder=3)
            style = {"ha": "center", "fontsize": 9, "bbox": draw.paper(0.8)}
            at = (best, loss[best])
            draw.mark(ax, "chosen", at, (0, 11), color=draw.INK, **style)
        ax.set_xticks(places, ["\n".join(map("{:g}".format, t)) for t in triples])
        ax.set_xlim(-0.5, len(triples) - 0.5)
        ax.set_xlabel("strengths of shared weights, class weights and value effects")
        ax.set_ylabel("cross-validated log-loss")
        draw.horizontal_grid(ax)
        draw.bare(ax, "top")
