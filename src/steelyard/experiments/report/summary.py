"""From rows of a comparison to the figures that tables and pictures show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.exceptions import ParameterError
from steelyard.experiments.results import METRICS, Results
from steelyard.experiments.statistics.two_methods import (
    BayesianSignedRank,
    Friedman,
    WilcoxonMatrix,
    WinTieLoss,
    average_ranks,
    bayesian_against,
    critical_difference,
    friedman,
    wilcoxon_matrix,
    win_tie_loss,
)

__all__ = ["MEASURES", "Leak", "Measure", "Summary", "leaks", "summaries", "summarize"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Measure:
    """How a field of the rows is shown."""

    name: str
    title: str
    scale: float = 1.0
    """What a value is multiplied by where it is shown."""

    digits: int = 3
    larger_is_better: bool = False
    rope: float = 0.01
    """Half the width of the region of practical equivalence."""

    def text(self, value: float, signed: bool = False) -> str:
        """Return a value as it is shown, a dash for NaN."""
        if not np.isfinite(value):
            return "-"
        return f"{value * self.scale:{'+' if signed else ''}.{self.digits}f}"

    @property
    def is_quality(self) -> bool:
        """Whether this is about predictions, not about time or memory."""
        return self.name in METRICS

    @property
    def direction(self) -> str:
        """Say which values are good."""
        return "larger is better" if self.larger_is_better else "smaller is better"


_SHOWN = {
    "accuracy": ("accuracy (%)", 100.0, 2),
    "balanced_accuracy": ("balanced accuracy (%)", 100.0, 2),
    "f1": ("F1 (%)", 100.0, 2),
    "log_loss": ("log-loss", 1.0, 4),
    "brier": ("Brier score", 1.0, 4),
    "auc": ("AUC", 1.0, 4),
    "ece": ("calibration error", 1.0, 4),
    "fit_seconds": ("fit time (s)", 1.0, 3),
    "predict_seconds": ("predict time (s)", 1.0, 3),
    "peak_memory_mb": ("peak memory (MB)", 1.0, 1),
}

MEASURES = {
    name: Measure(name, *shown, larger_is_better=METRICS.get(name, False))
    for name, shown in _SHOWN.items()
}
"""The fields of rows that can be summarized."""


@dataclass(frozen=True)
class Summary:
    """One measure under one protocol: folds, averages, ranks and tests.

    Averages, ranks and tests over data sets are made on those data sets on which
    every method has all folds.
    """

    measure: Measure
    protocol: str
    datasets: list[str]
    methods: list[str]
    folds: Floats
    """Shape (data sets, methods, folds), NaN where there is no value."""

    ratio: Floats
    """Rows tested by rows trained on, shape (data sets,)."""

    failed: NDArray[np.int64]
    """How many fits failed, shape (data sets, methods)."""

    alpha: float = 0.05
    zeros: str = "split"

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """How many folds have a value, shape (data sets, methods)."""
        return np.isfinite(self.folds).sum(axis=2)

    @cached_property
    def means(self) -> Floats:
        """Averages over the folds that have a value, shape (data sets, methods)."""
        with np.errstate(invalid="ignore"):
            return np.nansum(self.folds, axis=2) / self.counts

    @cached_property
    def spreads(self) -> Floats:
        """Standard deviations over folds, shape (data sets, methods)."""
        squares = np.nansum((self.folds - self.means[:, :, None]) ** 2, axis=2)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(
                self.counts > 1, np.sqrt(squares / (self.counts - 1)), np.nan
            )

    @cached_property
    def partial(self) -> NDArray[np.bool_]:
        """Whether some folds are missing, shape (data sets, methods)."""
        return self.counts < self.counts.max(axis=1, initial=1, keepdims=True)

    @cached_property
    def complete(self) -> NDArray[np.int64]:
        """Positions of the data sets on which every method has all folds."""
        return np.flatnonzero(~self.partial.any(axis=1))

    @cached_property
    def scores(self) -> Floats:
        """Averages on complete data sets, shape (complete data sets, methods)."""
        return self.means[self.complete]

    @cached_property
    def averages(self) -> Floats:
        """Average of each method over complete data sets, NaN without any."""
        if len(self.complete) == 0:
            return np.full(len(self.methods), np.nan)
        return self.scores.mean(axis=0)

    @cached_property
    def ranks(self) -> Floats:
        """Average rank of each method over complete data sets, NaN without any."""
        if len(self.complete) == 0:
            return np.full(len(self.methods), np.nan)
        return average_ranks(
            self.scores, larger_is_better=self.measure.larger_is_better
        )

    @cached_property
    def best(self) -> NDArray[np.bool_]:
        """Whether a method with all folds is among the best on a data set, as shown."""
        means = np.where(self.partial, np.nan, self.means)
        shown = np.round(means * self.measure.scale, self.measure.digits)
        if not self.measure.larger_is_better:
            shown = -shown
        top = np.where(np.isfinite(shown), shown, -np.inf).max(axis=1, keepdims=True)
        return np.asarray(shown == top)

    @property
    def testable(self) -> bool:
        """Whether there are enough methods and data sets to test over data sets."""
        return len(self.methods) >= 2 and len(self.complete) >= 2

    @cached_property
    def leader(self) -> int:
        """Position of the method with the best average rank, the first of equals."""
        return int(np.argmin(np.nan_to_num(self.ranks, nan=np.inf)))

    @cached_property
    def win_tie_loss(self) -> WinTieLoss:
        """Significant differences by data set, of every pair of methods."""
        return win_tie_loss(
            self.folds,
            self.ratio,
            alpha=self.alpha,
            larger_is_better=self.measure.larger_is_better,
        )

    @cached_property
    def friedman(self) -> Friedman:
        """Friedman's test over complete data sets."""
        return friedman(self.scores, larger_is_better=self.measure.larger_is_better)

    @cached_property
    def critical_difference(self) -> float:
        """Nemenyi's critical difference of average ranks."""
        return critical_difference(
            len(self.methods), len(self.complete), alpha=self.alpha
        )

    @cached_property
    def wilcoxon(self) -> WilcoxonMatrix:
        """Wilcoxon's test of every pair over complete data sets."""
        return wilcoxon_matrix(
            self.scores,
            zeros=self.zeros,  # type: ignore[arg-type]
            larger_is_better=self.measure.larger_is_better,
        )

    def bayesian(self, control: int) -> list[BayesianSignedRank]:
        """Compare one method, `first` in each comparison, with every method."""
        return bayesian_against(
            self.scores,
            control,
            rope=self.measure.rope,
            n_samples=10_000,
            larger_is_better=self.measure.larger_is_better,
        )

    def position(self, method: str) -> int:
        """Return the position of a method, or say which there are."""
        if method not in self.methods:
            raise ParameterError(
                f"The results hold no method {method!r} under the protocol "
                f"{self.protocol!r}. Methods: {', '.join(self.methods)}."
            )
        return self.methods.index(method)

    def row(self, dataset: str) -> int:
        """Return the position of a data set, or say which there are."""
        if dataset not in self.datasets:
            raise ParameterError(
                f"The results hold no data set {dataset!r} under the protocol "
                f"{self.protocol!r}. Data sets: {', '.join(self.datasets)}."
            )
        return self.datasets.index(dataset)


def summarize(
    results: Results,
    metric: str = "accuracy",
    protocol: str | None = None,
    *,
    alpha: float = 0.05,
    zeros: str = "split",
) -> Summary:
    """Gather one measure under one protocol.

    Parameters
    ----------
    results : Results
        What a comparison found.
    metric : str, default="accuracy"
        One of ``MEASURES``.
    protocol : str, default=None
        May be left out where the results hold only one.
    alpha : float, default=0.05
        Level of all tests.
    zeros : {"split", "drop"}, default="split"
        How Wilcoxon's test treats differences of zero.

    Returns
    -------
    Summary
        Folds, averages, ranks, and tests that are made when asked for.

    Examples
    --------
    >>> rows = [
    ...     {"dataset": "iris", "method": name, "protocol": "honest", "repeat": 0,
    ...      "fold": fold, "status": "ok", "accuracy": accuracy}
    ...     for name, scores in {"NB": (0.9, 1.0), "RNB": (1.0, 1.0)}.items()
    ...     for fold, accuracy in enumerate(scores)
    ... ]
    >>> summary = summarize(Results(rows))
    >>> summary.means, summary.ranks
    (array([[0.95, 1.  ]]), array([2., 1.]))
    """
    check_metric(metric)
    known = results.protocols
    if protocol is None and len(known) == 1:
        protocol = known[0]
    if protocol not in known:
        problem = (
            "The results hold several protocols: name one."
            if protocol is None and known
            else f"The results hold no protocol {protocol!r}."
        )
        raise ParameterError(f"{problem} Protocols: {', '.join(known) or 'none'}.")
    (found,) = summaries(results, [metric], [protocol], alpha=alpha, zeros=zeros)
    return found


def summaries(
    results: Results,
    metrics: Sequence[str] | None = None,
    protocols: Sequence[str] | None = None,
    *,
    alpha: float = 0.05,
    zeros: str = "split",
) -> list[Summary]:
    """Gather several measures in one pass over the rows.

    Parameters
    ----------
    results : Results
        What a comparison found.
    metrics : sequence of str, default=None
        Some of ``MEASURES``; all if None. Those without any value are left out,
        unless they were asked for.
    protocols : sequence of str, default=None
        All of the results if None.
    alpha, zeros
        See `summarize`.

    Returns
    -------
    list of Summary
        For each protocol in turn, one for each metric.
    """
    wanted = list(MEASURES) if metrics is None else list(metrics)
    found = []
    for protocol in results.protocols if protocols is None else protocols:
        rows = [row for row in results.rows if row["protocol"] == protocol]
        grid = _Grid.of(rows, results)
        for metric in wanted:
            folds = grid.cube([_number(row.get(metric)) for row in rows])
            if metrics is None and not np.isfinite(folds).any():
                continue
            found.append(
                Summary(
                    measure=MEASURES[metric],
                    protocol=protocol,
                    datasets=grid.datasets,
                    methods=grid.methods,
                    folds=folds,
                    ratio=grid.ratio,
                    failed=grid.failed,
                    alpha=alpha,
                    zeros=zeros,
                )
            )
    return found


@dataclass(frozen=True)
class Leak:
    """What preparing the whole data set beforehand adds, by data set and method."""

    measure: Measure
    protocol: str
    """The published protocol."""

    datasets: list[str]
    methods: list[str]
    difference: Floats
    """Published minus honest, shape (data sets, methods); NaN where one is missing."""

    averages: Floats = field(repr=False)
    """Over methods, then over data sets: shape (data sets + 1,), the total last."""


def leaks(group: Sequence[Summary], metric: str = "accuracy") -> list[Leak]:
    """Compare each published protocol with the honest one, cell by cell.

    Parameters
    ----------
    group : sequence of Summary
        Measures under one or several protocols.
    metric : str, default="accuracy"
        One of ``MEASURES``.

    Returns
    -------
    list of Leak
        One for each protocol whose name begins with ``published`` and that shares a
        data set and a method with the honest one.
    """
    found = {s.protocol: s for s in group if s.measure.name == metric}
    honest = found.pop("honest", None)
    if honest is None:
        return []
    every = [
        _leak(published, honest)
        for name, published in found.items()
        if name.startswith("published")
    ]
    return [one for one in every if one.difference.size]


def _leak(published: Summary, honest: Summary) -> Leak:
    datasets = [name for name in published.datasets if name in honest.datasets]
    methods = [name for name in published.methods if name in honest.methods]
    cells = [
        np.where(summary.partial, np.nan, summary.means)[
            np.ix_(
                np.array([summary.row(name) for name in datasets], dtype=np.int64),
                np.array([summary.position(name) for name in methods], dtype=np.int64),
            )
        ]
        for summary in (published, honest)
    ]
    difference = cells[0] - cells[1]
    rows = [_mean(row) for row in difference]
    return Leak(
        honest.measure,
        published.protocol,
        datasets,
        methods,
        difference,
        np.array([*rows, _mean(np.array(rows))]),
    )


@dataclass(frozen=True)
class _Grid:
    """Where each row of a protocol lies among data sets, methods and folds."""

    datasets: list[str]
    methods: list[str]
    cells: tuple[NDArray[np.int64], ...]
    shape: tuple[int, int, int]
    ratio: Floats
    failed: NDArray[np.int64]

    @classmethod
    def of(cls, rows: list[dict[str, Any]], results: Results) -> _Grid:
        """Place the rows; of two for one fit the later counts."""
        present = [{row[name] for row in rows} for name in ("dataset", "method")]
        datasets = [name for name in results.datasets if name in present[0]]
        methods = [name for name in results.methods if name in present[1]]
        folds = sorted({(row["repeat"], row["fold"]) for row in rows})
        place = [{name: i for i, name in enumerate(x)} for x in (datasets, methods)]
        slot = {name: i for i, name in enumerate(folds)}
        cells = (
            np.array([place[0][row["dataset"]] for row in rows], dtype=np.int64),
            np.array([place[1][row["method"]] for row in rows], dtype=np.int64),
            np.array([slot[row["repeat"], row["fold"]] for row in rows], np.int64),
        )
        sizes = np.array(
            [[_number(row.get("n_test")), _number(row.get("n_train"))] for row in rows]
        ).reshape(-1, 2)
        known = np.isfinite(sizes).all(axis=1)
        tested, trained = (
            np.bincount(cells[0][known], sizes[known, i], len(datasets)) for i in (0, 1)
        )
        # Rows that do not say their sizes: ten folds are tested on one ninth.
        n_folds = max(2, len({fold for _, fold in folds}))
        ratio = np.full(len(datasets), 1.0 / (n_folds - 1))
        np.divide(tested, trained, out=ratio, where=trained > 0)
        failed = np.zeros((len(datasets), len(methods)), dtype=np.int64)
        bad = np.array([row.get("status", "ok") != "ok" for row in rows], dtype=bool)
        np.add.at(failed, (cells[0][bad], cells[1][bad]), 1)
        shape = (len(datasets), len(methods), len(folds))
        return cls(datasets, methods, cells, shape, ratio, failed)

    def cube(self, values: Sequence[float]) -> Floats:
        """Lay values out by data set, method and fold."""
        cube = np.full(self.shape, np.nan)
        cube[self.cells] = values
        return cube


def check_metric(metric: str) -> None:
    """Refuse what is not a measure, and say which there are."""
    if metric not in MEASURES:
        raise ParameterError(
            f"There is no metric {metric!r}. Metrics: {', '.join(MEASURES)}."
        )


def _number(value: Any) -> float:
    return np.nan if value is None or value == "" else float(value)


def _mean(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else np.nan
