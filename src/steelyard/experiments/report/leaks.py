"""What preparing the whole data set beforehand adds to a measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.experiments.report.measures import Measure
from steelyard.experiments.report.summary import Summary

__all__ = ["Leak", "leaks"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Leak:
    """What a published protocol adds to the honest one, by data set and method."""

    measure: Measure
    protocol: str
    """The published protocol."""

    datasets: list[str]
    methods: list[str]
    difference: Floats
    """Published minus honest, shape (data sets, methods); NaN where one is missing."""

    @property
    def by_dataset(self) -> Floats:
        """Averages over methods, shape (data sets,)."""
        return np.array([_mean(row) for row in self.difference])

    @property
    def by_method(self) -> Floats:
        """Averages over data sets, shape (methods,)."""
        return np.array([_mean(column) for column in self.difference.T])

    @property
    def average(self) -> float:
        """The average of data sets' averages."""
        return _mean(self.by_dataset)


def leaks(group: Sequence[Summary], metric: str = "accuracy") -> list[Leak]:
    """Compare each published protocol with the honest one, cell by cell.

    There is one leak for each protocol whose name begins with ``published`` and that
    shares a data set and a method with the honest one.
    """
    by_protocol = {s.protocol: s for s in group if s.measure.name == metric}
    honest = by_protocol.pop("honest", None)
    if honest is None:
        return []
    every = [
        _leak(published, honest)
        for name, published in by_protocol.items()
        if name.startswith("published")
    ]
    return [leak for leak in every if leak.difference.size]


def _leak(published: Summary, honest: Summary) -> Leak:
    datasets = [name for name in published.datasets if name in honest.datasets]
    methods = [name for name in published.methods if name in honest.methods]
    common = [
        summary.whole_means[[summary.row(name) for name in datasets]][
            :, [summary.position(name) for name in methods]
        ]
        for summary in (published, honest)
        if datasets and methods
    ]
    difference = common[0] - common[1] if common else np.zeros((0, 0))
    return Leak(honest.measure, published.protocol, datasets, methods, difference)


def _mean(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else np.nan
