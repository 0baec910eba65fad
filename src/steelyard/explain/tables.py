"""Value tables: what each value of an attribute adds to the score of each class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.counts import Counts
from steelyard.explain.parts import evidence_of
from steelyard.explain.text import as_plain, signed, text_table
from steelyard.model import NBModel
from steelyard.proba.gaussian import GaussianTable
from steelyard.table.cells import on_grid

__all__ = ["AttributeTable", "gaussian_points", "value_tables"]

_POINTS = 61
_HERMITE = 64


@dataclass(frozen=True, repr=False)
class AttributeTable:
    """One attribute of one sum: its values, how often they occur, what they add.

    A Gaussian attribute is tabulated at evenly spaced numbers up to three standard
    deviations from the class means.
    """

    name: str
    kind: str
    classes: NDArray[Any]
    labels: list[str]
    """Values, intervals or numbers; missing cells, which add nothing, come first."""

    contributions: NDArray[np.float64]
    """To the scores of the classes, shape (values, K)."""

    counts: NDArray[np.float64] | None
    """Weight of the training rows by value and class; None for densities."""

    points: NDArray[np.float64] | None
    """The numbers of a Gaussian attribute; None for others."""

    edges: tuple[float, ...]
    """Cut points of a binned attribute."""

    link_scale: float
    importance: NDArray[np.float64] | None
    """Mean absolute evidence for each class over the training rows, shape (K,)."""

    @property
    def evidence(self) -> NDArray[np.float64]:
        """Evidence for each class against the mean of the others, shape (values, K).

        With two classes that is log-odds.
        """
        return evidence_of(self.contributions) * self.link_scale

    def to_dict(self) -> dict[str, Any]:
        """Return the table as plain data, for JSON."""
        return as_plain(
            {
                "name": self.name,
                "kind": self.kind,
                "values": self.labels,
                "counts": self.counts,
                "contributions": self.contributions,
                "evidence": self.evidence,
            }
        )

    def __repr__(self) -> str:
        """Lay the table out as text, one line per value."""
        two = len(self.classes) == 2
        shown = [1] if two else list(range(len(self.classes)))
        every = max(1, len(self.labels) // 12) if self.points is not None else 1
        headers = ["value", *(["rows"] if self.counts is not None else [])]
        headers += [f"for {self.classes[c]}" for c in shown]
        evidence = self.evidence
        rows = []
        for v in range(0, len(self.labels), every):
            line = [self.labels[v]]
            if self.counts is not None:
                line.append(f"{self.counts[v].sum():g}")
            rows.append(line + [signed(evidence[v, c]) for c in shown])
        against = f"against {self.classes[0]}" if two else "against the others"
        title = f"{self.name} ({self.kind}): evidence {against}, in log-odds"
        numeric = [False] + [True] * (len(headers) - 1)
        return f"{title}\n{text_table(headers, rows, numeric)}"


def value_tables(model: NBModel, counts: Counts | None) -> list[AttributeTable]:
    """Tabulate every attribute of a model."""
    schema, offsets = model.schema, model.schema.offsets
    if counts is not None and (
        counts.schema != schema or counts.by_code.shape != model.table.shape
    ):
        # Counts of all classes do not describe a model of two of them.
        counts = None
    names = schema.labels()
    gaussian = schema.gaussian.tolist()
    tables = []
    for j, feature in enumerate(schema.features):
        own = slice(offsets[j], offsets[j + 1])
        points, found = None, None
        if feature.is_coded:
            contributions = model.table[own]
            labels = [feature.describe(code) for code in range(feature.n_codes)]
            if counts is not None:
                found = counts.by_code[own]
            importance = _mean_evidence(model, contributions, found)
        else:
            table = model.gaussian.only(gaussian.index(j))
            points = gaussian_points(table, feature.step)
            contributions = _densities(table, points, model.n_classes)
            labels = [f"{x:.5g}" for x in points]
            importance = _mean_density(model, table, counts, gaussian.index(j))
        tables.append(
            AttributeTable(
                names[j],
                feature.kind,
                model.classes,
                labels,
                contributions,
                found,
                points,
                feature.edges,
                model.link_scale,
                importance,
            )
        )
    return tables


def gaussian_points(table: GaussianTable, step: float) -> NDArray[np.float64]:
    """Return numbers to look at: three deviations around all class means."""
    low = float((table.mean - 3.0 * table.deviation).min())
    high = float((table.mean + 3.0 * table.deviation).max())
    points = on_grid(np.linspace(low, high, _POINTS), step)
    return np.unique(points)


def _densities(
    table: GaussianTable, points: NDArray[np.float64], n_classes: int
) -> NDArray[np.float64]:
    out = np.zeros((len(points), n_classes))
    table.add_scores(np.ascontiguousarray(points[:, None]), out)
    return out


def _mean_evidence(
    model: NBModel,
    contributions: NDArray[np.float64],
    counts: NDArray[np.float64] | None,
) -> NDArray[np.float64] | None:
    """Mean absolute evidence over the training rows, from their counts."""
    if counts is None or not counts.sum() > 0:
        return None
    share = counts.sum(axis=1) / counts.sum()
    evidence = np.abs(evidence_of(contributions)) * model.link_scale
    return np.asarray(share @ evidence)


def _mean_density(
    model: NBModel, table: GaussianTable, counts: Counts | None, g: int
) -> NDArray[np.float64] | None:
    """Mean absolute evidence under the fitted densities of the classes.

    Moments do not tell the rows; the densities that were fitted stand for them.
    """
    if counts is None or not counts.total > 0:
        return None
    nodes, weights = np.polynomial.hermite.hermgauss(_HERMITE)
    weights = weights / weights.sum()
    mass = counts.moments.weight[g] / counts.total
    out = np.zeros(model.n_classes)
    for c in range(model.n_classes):
        points = table.mean[0, c] + np.sqrt(2.0) * table.deviation[0, c] * nodes
        points = on_grid(points, float(table.step[0]))
        evidence = evidence_of(_densities(table, points, model.n_classes))
        out += mass[c] * (weights @ np.abs(evidence))
    return out * model.link_scale
