"""From rows of a comparison to the figures that tables and pictures show.

A measure defines how a field of the rows is shown: title, unit, digits, direction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.text import number
from steelyard.evaluation.metrics import METRICS
from steelyard.exceptions import ParameterError
from steelyard.lab.results import Results, numbers
from steelyard.lab.statistics import (
    Friedman,
    WilcoxonMatrix,
    WinTieLoss,
    average_ranks,
    critical_difference,
    friedman,
    wilcoxon_matrix,
    win_tie_loss,
)

Floats = NDArray[np.float64]

_SMALLEST_SHOWN_P = 0.0005

ALPHA = 0.05
"""The level of all tests of a report."""


@dataclass(frozen=True)
class Measure:
    """How a field of the rows is shown: its scale, digits and direction."""

    name: str
    title: str
    scale: float = 1.0
    digits: int = 3
    larger_is_better: bool = False

    def text(self, value: float, signed: bool = False) -> str:
        """Return a value as it is shown, a dash for NaN."""
        return number(value * self.scale, self.digits, sign=signed)

    @property
    def sign(self) -> float:
        """The factor by which larger values become better ones."""
        return 1.0 if self.larger_is_better else -1.0

    @property
    def direction(self) -> str:
        """Return in words which values are better."""
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


def check_metric(metric: str) -> None:
    """Raise an error for an unknown measure, with all measures."""
    if metric not in MEASURES:
        raise ParameterError(
            f"There is no metric {metric!r}. Metrics: {', '.join(MEASURES)}."
        )


@dataclass(frozen=True)
class MeasureSummary:
    """One measure under one protocol: folds, averages, ranks and tests.

    Averages, ranks and tests over data sets are made on those data sets on which
    every method has all folds.
    """

    measure: Measure
    protocol: str
    datasets: list[str]
    methods: list[str]
    folds: Floats
    """Shape (data sets, methods, folds), NaN if there is no value."""

    ratio: Floats
    """Rows tested by rows trained on, shape (data sets,)."""

    failed: NDArray[np.int64]
    """How many fits failed, shape (data sets, methods)."""

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
            deviations = np.sqrt(squares / (self.counts - 1))
        return np.where(self.counts > 1, deviations, np.nan)

    @cached_property
    def partial(self) -> NDArray[np.bool_]:
        """Whether some folds are missing, shape (data sets, methods)."""
        return self.counts < self.counts.max(axis=1, initial=1, keepdims=True)

    @cached_property
    def whole_means(self) -> Floats:
        """Averages over all folds, NaN if some are missing."""
        return np.where(self.partial, np.nan, self.means)

    @cached_property
    def complete(self) -> NDArray[np.int64]:
        """Positions of the data sets on which every method has all folds."""
        return np.flatnonzero(~self.partial.any(axis=1))

    @cached_property
    def scores(self) -> Floats:
        """Averages on complete data sets, shape (complete data sets, methods)."""
        return self.means[self.complete]

    @cached_property
    def gains(self) -> Floats:
        """`scores` with the sign by which larger is better."""
        return self.measure.sign * self.scores

    @cached_property
    def averages(self) -> Floats:
        """Average of each method over complete data sets, NaN without any."""
        return self.scores.mean(axis=0) if self.complete.size else self._unknown

    @cached_property
    def ranks(self) -> Floats:
        """Average rank of each method over complete data sets, NaN without any."""
        return average_ranks(self.gains) if self.complete.size else self._unknown

    @property
    def _unknown(self) -> Floats:
        return np.full(len(self.methods), np.nan)

    @cached_property
    def best(self) -> NDArray[np.bool_]:
        """Whether a method with all folds is among the best on a data set, as shown."""
        shown = np.round(self.whole_means * self.measure.scale, self.measure.digits)
        shown *= self.measure.sign
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
        gains = self.measure.sign * self.folds
        return win_tie_loss(gains, self.ratio, alpha=ALPHA)

    @cached_property
    def friedman(self) -> Friedman:
        """Friedman's test over complete data sets."""
        return friedman(self.gains)

    @cached_property
    def critical_difference(self) -> float:
        """Nemenyi's critical difference of average ranks."""
        return critical_difference(len(self.methods), len(self.complete), alpha=ALPHA)

    @cached_property
    def wilcoxon(self) -> WilcoxonMatrix:
        """Wilcoxon's test of every pair over complete data sets."""
        return wilcoxon_matrix(self.gains)

    def position(self, method: str) -> int:
        """Return the position of a method, or raise an error with all methods."""
        if method not in self.methods:
            raise ParameterError(
                f"The results contain no method {method!r} under the protocol "
                f"{self.protocol!r}. Methods: {', '.join(self.methods)}."
            )
        return self.methods.index(method)

    def control(self, method: str | None) -> int:
        """Return the position of a method, that of the leader if None."""
        return self.leader if method is None else self.position(method)


def summarize(
    results: Results, metric: str = "accuracy", protocol: str | None = None
) -> MeasureSummary:
    """Summarize one measure under one protocol; tests are computed when needed.

    The protocol may be left out if the results contain only one.
    """
    check_metric(metric)
    chosen = [results.resolve_protocol(protocol)]
    (summary,) = summaries(results, [metric], chosen)
    return summary


def summaries(
    results: Results,
    metrics: Sequence[str] | None = None,
    protocols: Sequence[str] | None = None,
) -> list[MeasureSummary]:
    """Summarize several measures in one pass over the rows, protocol by protocol.

    Without names, all measures that have a value, under all protocols.
    """
    wanted = list(MEASURES) if metrics is None else list(metrics)
    group = []
    for protocol in results.protocols if protocols is None else protocols:
        rows = [row for row in results.rows if row["protocol"] == protocol]
        present = {row["dataset"] for row in rows}, {row["method"] for row in rows}
        datasets = [name for name in results.datasets if name in present[0]]
        methods = [name for name in results.methods if name in present[1]]
        slots = sorted({(row["repeat"], row["fold"]) for row in rows})
        cells = (
            _places(datasets, (row["dataset"] for row in rows)),
            _places(methods, (row["method"] for row in rows)),
            _places(slots, ((row["repeat"], row["fold"]) for row in rows)),
        )
        ratio = _ratio(rows, cells[0], len(datasets))
        failed = np.zeros((len(datasets), len(methods)), dtype=np.int64)
        np.add.at(failed, cells[:2], [row.get("status", "ok") != "ok" for row in rows])
        for measure in (MEASURES[name] for name in wanted):
            # Of two rows of one fit the last one counts.
            folds = np.full((len(datasets), len(methods), len(slots)), np.nan)
            folds[cells] = numbers(rows, measure.name)
            if metrics is None and not np.isfinite(folds).any():
                continue
            about = (measure, protocol, datasets, methods)
            group.append(MeasureSummary(*about, folds, ratio, failed))
    return group


def friedman_sentence(summary: MeasureSummary) -> str:
    """Describe Friedman's test and Nemenyi's critical difference."""
    test = summary.friedman
    verdict = "differ" if test.f_p_value <= ALPHA else "do not differ"
    return (
        f"Friedman's test on {test.n_datasets} data sets, {summary.measure.title}, "
        f"protocol {summary.protocol}: chi-squared {test.chi2:.2f} "
        f"(p {p_text(test.p_value)}), Iman-Davenport F {test.f_statistic:.2f} "
        f"(p {p_text(test.f_p_value)}). The methods {verdict} significantly at "
        f"{ALPHA:g}. Nemenyi's critical difference of average ranks is "
        f"{summary.critical_difference:.2f}."
    )


def p_text(p: float) -> str:
    """Write p with three digits."""
    return f"{p:.3f}" if p >= _SMALLEST_SHOWN_P else "<.001"


def _places(order: Sequence[Any], names: Iterable[Any]) -> NDArray[np.int64]:
    place = {name: i for i, name in enumerate(order)}
    return np.array([place[name] for name in names], dtype=np.int64)


def _ratio(
    rows: list[dict[str, Any]], places: NDArray[np.int64], n_datasets: int
) -> Floats:
    """Return rows tested by rows trained on, of each data set."""
    # For rows without sizes: with ten folds, one is tested for nine trained on.
    n_folds = max(2, len({row["fold"] for row in rows}))
    ratio = np.full(n_datasets, 1.0 / (n_folds - 1))
    sizes = np.array([numbers(rows, "n_test"), numbers(rows, "n_train")])
    has_sizes = np.isfinite(sizes).all(axis=0)
    tested, trained = (
        np.bincount(places[has_sizes], size[has_sizes], n_datasets) for size in sizes
    )
    return np.divide(tested, trained, out=ratio, where=trained > 0)
