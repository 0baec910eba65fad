"""Results of comparing new rows with those of training."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from steelyard._common.text import as_plain, counted
from steelyard.evaluation.result import MeasureTable
from steelyard.evaluation.shares import Comparison, Estimate
from steelyard.exceptions import ParameterError
from steelyard.notices.notice import Notice

__all__ = ["Drift"]

_NONE = Estimate(0.0, 0.0, 0.0)
# As risk departments read the index: no shift below it.
_MIN_SHIFT = 0.1


class Thresholds(NamedTuple):
    """Smallest differences that are reported, if they are more than chance."""

    psi: float = 0.25
    """Population stability index of scores and columns."""

    share: float = 0.05
    """By how much shares of missing, unseen and out-of-range cells may rise, and mean
    probabilities differ from shares of the class."""

    def check(self) -> None:
        """Raise an error if a threshold is not a positive number."""
        for name, value in self._asdict().items():
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not is_number or not 0.0 < value < np.inf:
                problem = f"`{name}` must be a number greater than 0. Got {value!r}."
                raise ParameterError(problem)


class ColumnDrift(NamedTuple):
    """A column or a score in a period, compared with training."""

    name: str
    is_score: bool
    compared: Comparison | None
    """Both histograms and their index; None if the model has none of training."""

    missing: Estimate = _NONE
    """Share of missing cells, with an interval at the level of an alarm."""

    missing_before: float | None = None
    unseen: Estimate = _NONE
    """Share of values that training never saw."""

    unseen_expected: float = 0.0
    """The share to be expected, estimated by the values that training saw once."""

    beyond: Estimate = _NONE
    """Share of numbers beyond those of training."""

    beyond_expected: float = 0.0

    def alarms(self, thresholds: Thresholds) -> Iterator[str]:
        """Describe each threshold that is exceeded."""
        if self.compared is not None:
            psi, limit = self.compared.psi, max(thresholds.psi, self.compared.limit)
            if psi > limit:
                yield f"PSI {psi:.2f}, over {limit:.2f}"
        for what, now, usual in (
            ("missing", self.missing, self.missing_before or 0.0),
            ("unseen", self.unseen, self.unseen_expected),
            ("out of range", self.beyond, self.beyond_expected),
        ):
            if now.low > usual + thresholds.share:
                yield f"{now.value:.1%} {what}, {usual:.1%} expected".replace("%", " %")

    def verdict(self, thresholds: Thresholds) -> str:
        """Return in a word how far the column has moved."""
        if any(self.alarms(thresholds)):
            return "shifted"
        comparison = self.compared
        if comparison is not None and comparison.psi > max(
            _MIN_SHIFT, comparison.limit
        ):
            return "some"
        return "stable"


class Performance(NamedTuple):
    """Measures of a period with labels."""

    rows: int
    accuracy: Estimate
    log_loss: Estimate
    auc: float
    calibration: Estimate
    """Mean probability minus the share of the class; with more than two classes mean
    confidence minus accuracy."""

    at_alarm: Estimate
    """The same, with an interval at the level of an alarm."""


@dataclass(frozen=True)
class Period:
    """The rows of a period."""

    name: str
    rows: int
    mean_score: float
    """Mean probability of the last class."""

    columns: list[ColumnDrift]
    """Scores first."""

    performance: Performance | None
    notices: tuple[Notice, ...] = ()

    def alarms(self, thresholds: Thresholds) -> list[str]:
        """Describe each threshold that is exceeded."""
        texts = [
            f"{column.name}: {text}"
            for column in self.columns
            for text in column.alarms(thresholds)
        ]
        measured = self.performance
        if measured is not None and measured.rows > 1:
            value, low, high = measured.at_alarm
            if abs(value) > thresholds.share and (low > 0.0 or high < 0.0):
                texts.append(f"calibration: predicted minus observed {value:+.3f}")
        return texts


@dataclass(frozen=True, repr=False)
class Drift:
    """New rows compared with those of training, by period.

    Examples
    --------
    >>> import steelyard as sy
    >>> X, y = [["a"], ["b"]] * 50, ["no", "yes"] * 50
    >>> drift = sy.NaiveBayes().fit(X, y).drift([["b"]] * 60)
    >>> drift.is_alarm, drift.alarms[0]
    (True, 'all rows: p(yes): PSI 2.36, over 0.25')
    """

    periods: list[Period]
    classes: list[Any]
    thresholds: Thresholds = field(default_factory=Thresholds)
    has_scores: bool = True
    """Whether the model has histograms of the scores of its training rows."""

    @property
    def alarms(self) -> list[str]:
        """Texts of all thresholds that are exceeded, with period and column."""
        return [
            f"{period.name}: {text}"
            for period in self.periods
            for text in period.alarms(self.thresholds)
        ]

    @property
    def is_alarm(self) -> bool:
        """Whether any threshold is exceeded."""
        return bool(self.alarms)

    def rows(self) -> list[dict[str, Any]]:
        """Return one mapping for each period and column, scores first."""
        return [
            {
                "period": period.name,
                "column": column.name,
                "rows": period.rows,
                "psi": None if comparison is None else comparison.psi,
                "psi_by_chance": None if comparison is None else comparison.by_chance,
                "missing": None if column.is_score else column.missing.value,
                "missing_before": column.missing_before,
                "unseen": None if column.is_score else column.unseen.value,
                "out_of_range": None if column.is_score else column.beyond.value,
                "verdict": column.verdict(self.thresholds),
            }
            for period in self.periods
            for column in period.columns
            for comparison in [column.compared]
        ]

    def to_frame(self) -> Any:
        """Return a pandas frame of ``rows``, one for each period and column."""
        import pandas as pd

        return pd.DataFrame(self.rows())

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        document = {
            "alarms": self.alarms,
            "thresholds": self.thresholds._asdict(),
            "columns": self.rows(),
            "periods": [
                {
                    "period": period.name,
                    "rows": period.rows,
                    "mean_score": period.mean_score,
                    "performance": period.performance
                    and {
                        name: value
                        for name, value in period.performance._asdict().items()
                        if name != "at_alarm"
                    },
                    "notices": [notice.to_dict() for notice in period.notices],
                }
                for period in self.periods
            ],
        }
        return as_plain(document)

    def tables(self) -> list[MeasureTable]:
        """Return columns and, with labels, measures, as texts; alarms have a star."""
        tables = [self._one_period() if len(self.periods) == 1 else self._by_period()]
        if any(period.performance for period in self.periods):
            tables.append(self._measures())
        return tables

    def __repr__(self) -> str:
        return "\n\n".join([*map(str, self.tables()), "\n".join(self.summary())])

    def _repr_html_(self) -> str:
        from steelyard.monitoring.page import drift_body

        return drift_body(self)

    def to_html(
        self,
        path: str | os.PathLike[str] | None = None,
        title: str = "Drift of a model's rows",
    ) -> str:
        """Write the comparison as one HTML page that needs nothing else.

        Parameters
        ----------
        path : str or path, default=None
            The file to write; replaced if it exists.
        title : str, default="Drift of a model's rows"
            Heading of the page.

        Returns
        -------
        str
            The page.
        """
        from steelyard.monitoring.page import drift_to_html

        page = drift_to_html(self, title)
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def summary(self) -> list[str]:
        """Return alarms, one a line, or that there are none."""
        alarms = self.alarms
        passed = f"{counted(len(alarms), 'threshold')} exceeded:"
        lines = [passed if alarms else "No threshold is exceeded."]
        lines += [f"- {text}" for text in alarms[:20]]
        if len(alarms) > 20:
            lines.append(f"- and {len(alarms) - 20} more")
        if not self.has_scores:
            lines.append("The model has no record of its training scores.")
        return lines

    def _one_period(self) -> MeasureTable:
        (period,) = self.periods
        header = ["column", "PSI", "by chance", "missing %", "before"]
        header += ["unseen %", "out of range %", ""]
        rows = []
        for column in period.columns:
            psi, cells = ["", ""], ["", "", "", ""]
            if (compared := column.compared) is not None:
                psi = [f"{compared.psi:.3f}", f"{compared.by_chance:.3f}"]
            if not column.is_score:
                now = column.missing.value, column.unseen.value, column.beyond.value
                shares = now[0], column.missing_before, *now[1:]
                cells = ["" if s is None else f"{100.0 * s:.1f}" for s in shares]
            rows.append([column.name, *psi, *cells, column.verdict(self.thresholds)])
        title = f"{period.name}: {period.rows:,} rows compared with training"
        return MeasureTable(title, header, rows)

    def _by_period(self) -> MeasureTable:
        names = [column.name for column in self.periods[0].columns]
        rows = []
        for k, name in enumerate(names):
            cells = [period.columns[k] for period in self.periods]
            rows.append([name, *(self._starred(cell) for cell in cells)])
        rows.append(["rows", *(f"{period.rows:,}" for period in self.periods)])
        header = ["PSI", *(period.name for period in self.periods)]
        return MeasureTable("Population stability index by period", header, rows)

    def _starred(self, column: ColumnDrift) -> str:
        star = "*" if any(column.alarms(self.thresholds)) else ""
        return ("" if column.compared is None else f"{column.compared.psi:.3f}") + star

    def _measures(self) -> MeasureTable:
        header = ["period", "rows", "AUC", "log-loss", "predicted - observed %"]
        rows = []
        for period in self.periods:
            measured = period.performance
            if measured is None:
                rows.append([period.name, "0", "", "", ""])
                continue
            loss, gap = measured.log_loss, [100.0 * v for v in measured.calibration]
            rows.append(
                [
                    period.name,
                    f"{measured.rows:,}",
                    "" if np.isnan(measured.auc) else f"{measured.auc:.3f}",
                    f"{loss.value:.3f} ({loss.low:.3f} to {loss.high:.3f})",
                    "{:+.1f} ({:+.1f} to {:+.1f})".format(*gap),
                ]
            )
        return MeasureTable("Rows with labels, with 95 % intervals", header, rows)
