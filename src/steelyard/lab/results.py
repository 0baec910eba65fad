"""Results of a comparison: one row per fit, and the tables made of them."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.html import element, escape, html_table
from steelyard._common.text import counted, number, text_table
from steelyard.evaluation.metrics import METRICS
from steelyard.exceptions import ParameterError

KEY = ("dataset", "method", "protocol", "repeat", "fold")
"""The fields that identify a fit."""

COLUMNS = (
    *(*KEY, "status", "error"),
    *("n_train", "n_test", "n_unseen_class", "n_classes"),
    *METRICS,
    *("fit_seconds", "predict_seconds", "peak_memory_mb"),
    *("warnings", "extra"),
)
"""The fields of a row."""

_NAMES = ("protocol", "dataset", "method")
_MEASURES = tuple(
    name for name in COLUMNS if name not in (*KEY, "status", "error", "extra")
)


class Results:
    """Rows of a comparison, one per fit, and the settings behind them.

    Parameters
    ----------
    rows : iterable of dict
        One per fit, with the fields ``COLUMNS``. A metric that has no value is None.
    settings : mapping, default=None
        How the rows were made.

    Attributes
    ----------
    rows : list of dict
        The rows, ordered by protocol, data set, repeat, fold and method.
    settings : dict
        How they were made; empty if unknown.
    protocols, datasets, methods : list of str
        Their names, in the order they were asked for.

    Examples
    --------
    >>> rows = [
    ...     {"dataset": "iris", "method": name, "protocol": "honest", "repeat": 0,
    ...      "fold": fold, "status": "ok", "accuracy": accuracy}
    ...     for name, scores in {"NB": (0.9, 1.0), "RNB": (1.0, 1.0)}.items()
    ...     for fold, accuracy in enumerate(scores)
    ... ]
    >>> results = Results(rows)
    >>> results.methods, results.datasets
    (['NB', 'RNB'], ['iris'])
    >>> results.matrix("accuracy")
    array([[0.95, 1.  ]])
    >>> results.select(method="NB").values("accuracy", "iris", "NB")
    array([0.9, 1. ])
    """

    def __init__(
        self, rows: Iterable[dict[str, Any]], settings: Mapping[str, Any] | None = None
    ) -> None:
        self.settings: dict[str, Any] = dict(settings or {})
        self.rows: list[dict[str, Any]] = list(rows)
        protocols, datasets, methods = (
            {name: i for i, name in enumerate(self._names(field))} for field in _NAMES
        )
        self.rows.sort(
            key=lambda row: (
                protocols[row["protocol"]],
                datasets[row["dataset"]],
                row["repeat"],
                row["fold"],
                methods[row["method"]],
            )
        )
        self.protocols, self.datasets, self.methods = map(self._names, _NAMES)

    @classmethod
    def from_journal(cls, path: str | os.PathLike[str]) -> Results:
        """Read the result file of a comparison, finished or not.

        Parameters
        ----------
        path : str or path
            The file named by ``journal=`` of ``compare``.

        Returns
        -------
        Results
            All rows that were written.
        """
        from steelyard.lab.journal import read_journal

        header, rows = read_journal(path)
        return cls(rows, header["settings"])

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.rows)

    def __repr__(self) -> str:
        failed = len(self.failures)
        return (
            f"<Results: {counted(len(self.rows), 'fit')} of "
            f"{counted(len(self.methods), 'method')} on "
            f"{counted(len(self.datasets), 'data set')}, {', '.join(self.protocols)}"
            f"{f', {failed} failed' if failed else ''}>"
        )

    @property
    def failures(self) -> list[dict[str, Any]]:
        """Rows of fits that raised an error."""
        return [row for row in self.rows if row["status"] != "ok"]

    def select(self, **filters: Any) -> Results:
        """Keep some of the rows.

        Parameters
        ----------
        **filters
            Fields, each with the value, or a list of values, to keep.

        Returns
        -------
        Results
            The rows that pass all filters.
        """
        rows = self.rows
        for field, value in filters.items():
            if field not in COLUMNS:
                raise ParameterError(
                    f"Rows have no field {field!r}. Fields: {', '.join(COLUMNS)}."
                )
            kept = set(value) if isinstance(value, (list, tuple, set)) else {value}
            rows = [row for row in rows if row.get(field) in kept]
        return Results(rows, self.settings)

    def values(
        self, metric: str, dataset: str, method: str, protocol: str | None = None
    ) -> NDArray[np.float64]:
        """Return a metric of each fit, in order of repeat and fold.

        Parameters
        ----------
        metric, protocol
            See `matrix`.
        dataset, method : str
            Names.

        Returns
        -------
        ndarray of shape (repeats * folds,)
            NaN if the fit failed or the metric has no value.
        """
        _check_metric(metric)
        rows = self._by_cell.get((self.resolve_protocol(protocol), dataset, method))
        if rows is None:
            raise ParameterError(
                f"There are no fits of {method!r} on {dataset!r}. Methods: "
                f"{', '.join(self.methods)}. Data sets: {', '.join(self.datasets)}."
            )
        return numbers(rows, metric)

    def matrix(self, metric: str, protocol: str | None = None) -> NDArray[np.float64]:
        """Average a metric over the fits of each data set and method.

        A fold in which a metric has no value, such as the AUC of one class, is left
        out of the average.

        Parameters
        ----------
        metric : str
            One of ``METRICS``, or another field of numbers.
        protocol : str, default=None
            Needed if the results contain several.

        Returns
        -------
        ndarray of shape (data sets, methods)
            In the order of ``datasets`` and ``methods``; NaN if a fit failed, or there
            is none.
        """
        _check_metric(metric)
        chosen = self.resolve_protocol(protocol)
        table = np.full((len(self.datasets), len(self.methods)), np.nan)
        for i, j in np.ndindex(*table.shape):
            rows = self._by_cell.get((chosen, self.datasets[i], self.methods[j]), [])
            values = numbers(rows, metric)
            scores = values[~np.isnan(values)]
            if len(scores) and all(row["status"] == "ok" for row in rows):
                table[i, j] = scores.mean()
        return table

    def table(self, metric: str = "accuracy", protocol: str | None = None) -> str:
        """Write the matrix of a metric as text, with the average of each method.

        Parameters
        ----------
        metric, protocol
            See `matrix`.

        Returns
        -------
        str
            One line per data set, with a dash if a fit failed or the metric has no
            value. Averages are over the data sets on which no method failed.
        """
        header, rows = self._layout(metric, protocol)
        numeric = [False, *[True] * len(self.methods)]
        return text_table(header, rows, numeric, rule=False, max_width=None)

    def _repr_html_(self) -> str:
        if len(self.protocols) != 1:
            return element("p", escape(repr(self)))
        return element("p", escape(repr(self))) + html_table(*self._layout(), 1)

    def _layout(
        self, metric: str = "accuracy", protocol: str | None = None
    ) -> tuple[list[str], list[list[str]]]:
        """Return names and lines of a table."""
        means = self.matrix(metric, protocol)
        useful = ~np.isnan(means).all(axis=0)
        complete = ~np.isnan(means[:, useful]).any(axis=1)
        average = means[complete].mean(axis=0) if complete.any() else means[:1] * np.nan
        names = [*self.datasets, "average"]
        rows = [
            [name, *(number(value, 4) for value in values)]
            for name, values in zip(names, np.vstack([means, average]), strict=True)
        ]
        return [metric, *self.methods], rows

    def resolve_protocol(self, protocol: str | None) -> str:
        """Return the name of a protocol, None standing for the only one."""
        protocols = self.protocols
        if protocol is None and len(protocols) <= 1:
            return "".join(protocols)
        if protocol not in protocols:
            problem = (
                "The results contain several protocols: name one."
                if protocol is None
                else f"The results contain no protocol {protocol!r}."
            )
            raise ParameterError(f"{problem} Protocols: {', '.join(protocols)}.")
        return protocol

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write all rows to a CSV file.

        Parameters
        ----------
        path : str or path
            The file; replaced if it exists.
        """
        with open(path, "w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(self.rows)

    def _names(self, field: str) -> list[str]:
        """Return the values of a field: in the order of the settings, then of rows."""
        present = dict.fromkeys(row[field] for row in self.rows)
        asked = [name for name in self.settings.get(f"{field}s", ()) if name in present]
        return list(dict.fromkeys([*asked, *present]))

    @cached_property
    def _by_cell(self) -> dict[tuple[str, str, str], list[dict[str, Any]]]:
        cells: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
        for row in self.rows:
            cells.setdefault(itemgetter(*_NAMES)(row), []).append(row)
        return cells


def _check_metric(metric: str) -> None:
    if metric not in _MEASURES:
        raise ParameterError(
            f"There is no metric {metric!r}. Metrics: {', '.join(_MEASURES)}."
        )


def numbers(rows: Sequence[Mapping[str, Any]], metric: str) -> NDArray[np.float64]:
    """Return a field of each row, NaN if it has no value."""
    values = (row.get(metric) for row in rows)
    return np.array([np.nan if x is None or x == "" else x for x in values], float)
