"""Drift: new rows compared with the counts and histograms of the training rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import numpy as np

from steelyard._common.allowed import N_BARS
from steelyard._common.arrays import Floats, Ints
from steelyard.classifiers.fitted import answering_model
from steelyard.evaluation.evaluate import grouped, label_names
from steelyard.evaluation.metrics import (
    MISSING,
    auc,
    group_name,
    row_losses,
)
from steelyard.evaluation.shares import (
    Comparison,
    Estimate,
    compare_counts,
    mean_estimate,
    share_estimate,
)
from steelyard.exceptions import ParameterError, TableError, check_fitted
from steelyard.io import as_source
from steelyard.model.table_model import log_odds
from steelyard.monitoring.result import (
    ColumnDrift,
    Drift,
    Performance,
    Period,
    Thresholds,
)
from steelyard.notices.check import NewRows
from steelyard.notices.notice import ColumnCheck
from steelyard.proba.counts import Counts
from steelyard.table.dates import date_of_part
from steelyard.table.factors import is_missing
from steelyard.table.frames import as_table, take_rows
from steelyard.table.labels import check_n_labels
from steelyard.table.ranges import NumberRange, bar_edges, counted_bars
from steelyard.table.schema import TableSchema

__all__ = ["DriftMonitor", "drift_of"]

# Chance of any false alarm if nothing has changed.
_FALSE_ALARMS = 0.05
_MAX_PERIODS = 120
# Histograms of numbers are made of at most this many rows.
_MAX_HISTOGRAM_ROWS = 4096.0
# Bins that separate classes may be few, or one.
_MIN_BINS = 8
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_ALL = "all rows"


def drift_of(
    clf: Any,
    X: Any,
    y: Any = None,
    by: Any = None,
    *,
    psi: float = 0.25,
    share: float = 0.05,
) -> Drift:
    """Compare new rows with what the model stores of its training rows.

    Population stability indices of scores and columns, and shares of missing,
    unseen and out-of-range cells; with labels AUC, log-loss and calibration. A
    threshold is passed where a difference is larger than it and than chance: where
    nothing has changed, one comparison in twenty is significant.

    Parameters
    ----------
    X : table of shape (n, d), or source of rows
        The rows. Nothing of the training table is needed.
    y : array-like of shape (n,), default=None
        Their labels, as far as they are known; of a source a column's name.
    by : str or array-like of shape (n,), default=None
        Periods: cells or the name of a column, of which dates are cut to months.
    psi : float, default=0.25
        Threshold of the index.
    share : float, default=0.05
        Threshold of shares, in which a rise is meant, and of calibration.

    Returns
    -------
    Drift
        With ``alarms``, ``to_frame()`` and ``to_html(path)``.

    Examples
    --------
    >>> import steelyard as sy
    >>> clf = sy.NaiveBayes().fit([["a"], ["b"]] * 50, ["no", "yes"] * 50)
    >>> clf.drift([["a"], ["b"]] * 20).alarms, clf.drift([["a"]] * 40).is_alarm
    ([], True)
    """
    check_fitted(clf)
    monitor, source = DriftMonitor(clf, psi=psi, share=share), as_source(X)
    if source is None:
        groups = None
        if by is not None:
            X, groups = grouped(X, by, getattr(clf, "feature_names_in_", None))
        monitor.add(X, y, groups)
        return monitor.result()
    for what, value in (("y", y), ("by", by)):
        if value is not None and not isinstance(value, str):
            problem = f"Of a source of rows `{what}` is the name of a column."
            raise ParameterError(problem)
    with source:
        names = [*map(str, getattr(clf, "feature_names_in_", source.features))]
        wanted = [n if n in source.names else date_of_part(n) for n in names]
        wanted = list(dict.fromkeys(wanted))
        also = [name for name in (y, by) if name is not None]
        for chunk in source.chunks(list(dict.fromkeys([*wanted, *also])), keep=False):
            cells = {name: chunk.column(name).to_pylist() for name in also}
            monitor.add(chunk.cells.select(wanted), cells.get(y), cells.get(by))
    return monitor.result()


def period_of(cell: Any) -> str:
    """Return the period of a cell: the month of a date, the text of others.

    >>> period_of("2024-05-31"), period_of(date(2024, 5, 31)), period_of(7.0)
    ('2024-05', '2024-05', '7')
    """
    if isinstance(cell, date) and not is_missing(cell):
        return f"{cell:%Y-%m}"
    text = group_name(cell)
    return text[:7] if _DAY.match(text) else text


@dataclass
class _Tally:
    """Counts, histograms and predictions of the rows of a period."""

    checks: NewRows
    codes: dict[int, Ints] = field(default_factory=dict)
    """Rows of each code of the attributes that are compared."""

    bars: dict[int, Floats] = field(default_factory=dict)
    """Histograms of columns, and of scores at -1, -2 and so on."""

    true: list[Any] = field(default_factory=list)
    proba: list[Floats] = field(default_factory=list)
    n_rows: int = 0
    mean: float = 0.0


class DriftMonitor:
    """Compare new rows with those of training, chunk by chunk.

    Parameters
    ----------
    clf : classifier
        A fitted one.
    **thresholds
        ``psi`` and ``share``: smallest differences that are reported.
    """

    def __init__(self, clf: Any, **thresholds: float) -> None:
        self._clf, self._thresholds = clf, Thresholds(**thresholds)
        self._thresholds.check()
        self.schema: TableSchema = clf.encoder_.schema_
        counts = getattr(clf, "counts_", None)
        is_alike = counts is not None and counts.schema == self.schema
        self._before: Counts | None = counts if is_alike else None
        self.ranges: list[NumberRange | None] = clf.training_.ranges
        # Scores of training rows are those without the edits.
        scores = None if hasattr(clf, "edits_") else clf.training_.score_ranges
        self._scores: list[NumberRange] = scores or []
        self.by_bars = [self._has_bars(j) for j in range(self.schema.n_columns)]
        self._places = {str(c): k for k, c in enumerate(clf.classes_.tolist())}
        self._tallies: dict[str, _Tally] = {}

    def add(self, X: Any, y: Any = None, by: Sequence[Any] | None = None) -> None:
        """Count a chunk of rows, with labels and the cells of a grouping column."""
        if by is None:
            self._add(_ALL, X, y)
            return
        names = np.array([period_of(cell) for cell in by], dtype=object)
        n_rows = len(take_rows(X, None))
        if len(names) != n_rows:
            problem = f"`by` has {len(names)} cells, and there are {n_rows} rows."
            raise TableError(problem)
        if len({*self._tallies, *names.tolist()}) > _MAX_PERIODS:
            raise TableError(
                f"`by` has more than {_MAX_PERIODS} values. Group rows by month, or "
                "by a column of fewer values; a column of dates is grouped by month."
            )
        labels = None if y is None else list(y)
        if labels is not None:
            check_n_labels(len(labels), n_rows)
        for name in dict.fromkeys(names.tolist()):
            rows = np.flatnonzero(names == name)
            some = None if labels is None else [labels[k] for k in rows.tolist()]
            self._add(name, take_rows(X, rows), some)

    def _add(self, name: str, X: Any, y: Any) -> None:
        clf, table = self._clf, as_table(X, self._clf)
        columns = clf.encoder_.match(table)
        codes = clf.encoder_.encode(table)
        if y is not None:
            check_n_labels(len(y), codes.n_rows)
        proba = answering_model(clf).proba(codes, clf.n_jobs)
        tally = self._tallies.setdefault(name, _Tally(NewRows(clf)))
        for j in self.schema.without_interactions.coded.tolist():
            size = self.schema.features[j].n_codes
            rows = np.bincount(codes.column(j), minlength=size)
            tally.codes[j] = tally.codes.get(j, 0) + rows
        tally.checks.add(X)
        tally.n_rows += codes.n_rows
        tally.mean += float(proba[:, -1].sum())
        if self._scores:
            scores = zip(self._scores, log_odds(proba).T, strict=True)
            for k, (where, odds) in enumerate(scores):
                self._add_bars(tally, -1 - k, where, odds)
        for j in np.flatnonzero(self.by_bars).tolist():
            numbers = columns[j].finite_numbers
            present = numbers[~np.isnan(numbers)]
            self._add_bars(tally, j, self.ranges[j], present)
        if y is not None:
            self._add_labels(tally, y, proba)

    def _add_bars(self, tally: _Tally, key: int, where: Any, numbers: Floats) -> None:
        if where is not None and where.histogram:
            bars = counted_bars((where.low, where.high), numbers)
            tally.bars[key] = tally.bars.get(key, 0.0) + bars

    def _add_labels(self, tally: _Tally, y: Any, proba: Floats) -> None:
        """Store labels that are classes of the model, with the probabilities."""
        names = label_names(y, self._places)
        rows = [k for k, name in enumerate(names) if name in self._places]
        tally.true += [self._places[names[k]] for k in rows]
        tally.proba.append(proba[rows])

    def _has_bars(self, column: int) -> bool:
        """Whether a column of numbers is compared by its histogram, not by its bins."""
        where = self.ranges[column]
        if where is None or not where.histogram:
            return False
        return self.schema.features[column].n_values < _MIN_BINS

    # ------------------------------------------------------------------------ results

    def result(self) -> Drift:
        """Return the differences from the training rows, by period and column."""
        if not self._tallies:
            raise TableError("There are no rows to compare.")
        # Four tests of each column, one of each score and one of labels.
        n_of_period = 4 * self.schema.n_columns + len(self._scores) + 1
        n_tests = len(self._tallies) * n_of_period
        chance = _FALSE_ALARMS / n_tests
        periods = [
            Period(
                name,
                tally.n_rows,
                tally.mean / tally.n_rows,
                [*self._score_drift(tally, chance), *self._columns(tally, chance)],
                self._performance(tally, chance),
                tuple(tally.checks.notices()),
            )
            for name, tally in sorted(self._tallies.items(), key=_in_order)
        ]
        classes = self._clf.classes_.tolist()
        return Drift(periods, classes, self._thresholds, bool(self._scores))

    def _score_drift(self, tally: _Tally, chance: float) -> Iterator[ColumnDrift]:
        classes = self._clf.classes_.tolist()
        names = classes[1:] if len(classes) == 2 else classes
        for k, where in enumerate(self._scores):
            compared = _compare_bars(where, tally.bars.get(-1 - k), chance, (0.0, 0.0))
            yield ColumnDrift(f"p({names[k]})", True, compared)

    def _columns(self, tally: _Tally, chance: float) -> Iterator[ColumnDrift]:
        for j, check in enumerate(tally.checks.columns):
            if j in self.schema.left_out:
                continue
            n, m = check.n_rows, 0.0 if self._before is None else self._before.total
            usual = _unseen_share(self.schema, self._before, j)
            before = self.missing_before(j)
            level = 1.0 - 2.0 * chance
            yield ColumnDrift(
                check.name,
                False,
                self._compare(tally, j, check, chance),
                share_estimate(check.n_missing, n, level),
                None if before is None else before / m,
                share_estimate(check.n_unseen, n, level),
                usual,
                share_estimate(check.n_beyond, n, level),
                2.0 / (m + 1.0),
            )

    def missing_before(self, column: int) -> float | None:
        """Return the weight of training rows with a missing cell, None if unknown."""
        if self._before is None:
            return None
        feature = self.schema.features[column]
        if feature.fill is not None:
            return None
        if feature.is_coded:
            row = self.schema.offsets[column] + feature.missing_code
            return float(self._before.by_code[row].sum())
        where = self.ranges[column]
        return None if where is None else max(self._before.total - where.weight, 0.0)

    def histogram_before(self, column: int) -> tuple[list[float] | None, list[float]]:
        """Return rows of training by value or interval, and the ends of intervals."""
        feature, where = self.schema.features[column], self.ranges[column]
        if self._before is None:
            return None, []
        if self.by_bars[column] and where is not None:
            bars = [share * where.weight for share in where.histogram]
            return bars, bar_edges(where.low, where.high)
        if not feature.is_coded:
            return None, []
        first = self.schema.offsets[column] + 1
        n_values = feature.n_values - feature.missing_is_value
        rows = self._before.by_code[first : first + n_values]
        return rows.sum(axis=1).tolist(), list(feature.edges)

    def _compare(
        self, tally: _Tally, column: int, check: ColumnCheck, chance: float
    ) -> Comparison | None:
        if self._before is None:
            return None
        feature = self.schema.features[column]
        gone = self.missing_before(column)
        missing = (0.0, 0.0) if gone is None else (gone, float(check.n_missing))
        if self.by_bars[column]:
            where, bars = self.ranges[column], tally.bars.get(column)
            return _compare_bars(where, bars, chance, missing)
        if not feature.is_coded:
            return None
        n_values = feature.n_values - feature.missing_is_value
        before, _ = self.histogram_before(column)
        assert before is not None
        now = tally.codes[column][1 : 1 + n_values].astype(np.float64).tolist()
        if feature.kind == "binned":
            write = self.schema.writer(column)
            return compare_counts(
                before,
                now,
                lambda group: feature.describe_merged([k + 1 for k in group], write),
                chance,
                missing=missing,
            )
        names = [feature.describe(code) for code in range(1, 1 + n_values)]
        if check.n_unseen:
            # Beside values that are as rare.
            before, now = [*before, 0.0], [*now, float(check.n_unseen)]
            names.append("(unseen)")
        return compare_counts(
            before, now, names, chance, ordered=feature.ordered, missing=missing
        )

    def _performance(self, tally: _Tally, chance: float) -> Performance | None:
        if not tally.true:
            return None
        true, proba = np.array(tally.true), np.concatenate(tally.proba)
        right = proba.argmax(axis=1) == true
        chances, hits = proba.max(axis=1), right
        if proba.shape[1] == 2:
            chances, hits = proba[:, 1], true == 1
        gap = mean_estimate(chances - hits, 1.0 - chance)
        if self._before is not None:
            # The mean prediction in training is an estimate too, from these rows.
            wider = np.sqrt(1.0 + len(true) / max(self._before.total, 1.0))
            ends = (gap.value + wider * (end - gap.value) for end in gap[1:])
            gap = Estimate(gap.value, *map(float, ends))
        return Performance(
            len(true),
            share_estimate(int(right.sum()), len(true)),
            mean_estimate(row_losses(true, proba)),
            auc(true, proba),
            mean_estimate(chances - hits),
            gap,
        )


def _compare_bars(
    where: NumberRange | None,
    bars: Floats | None,
    chance: float,
    missing: tuple[float, float],
) -> Comparison | None:
    """Compare a histogram with that of training; ``missing`` is the weight of both."""
    if where is None or bars is None:
        return None
    ends = np.linspace(where.low, where.high, N_BARS + 1)
    return compare_counts(
        [share * where.weight for share in where.histogram],
        bars.tolist(),
        lambda group: f"{ends[group[0]]:.3g} to {ends[group[-1] + 1]:.3g}",
        chance,
        missing=missing,
        n_before=min(where.weight, _MAX_HISTOGRAM_ROWS),
    )


def _unseen_share(schema: TableSchema, before: Counts | None, j: int) -> float:
    """Estimate the share of unseen values by that of values seen once (Good-Turing)."""
    if before is None or not before.total > 0.0:
        return 0.0
    if schema.features[j].kind != "categorical":
        return 0.0
    rows = before.by_code[schema.offsets[j] + 1 : schema.offsets[j + 1]]
    weights = rows.sum(axis=1)
    return float(weights[(weights > 0.0) & (weights <= 1.0)].sum() / before.total)


def _in_order(entry: tuple[str, Any]) -> tuple[bool, float, str]:
    """Sort numbers by size and others as text; unknown periods come last."""
    try:
        return (False, float(entry[0]), "")
    except ValueError:
        return (entry[0] == MISSING, np.inf, entry[0])
