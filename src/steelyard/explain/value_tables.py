"""Value tables: what each value of an attribute adds to the score of each class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats
from steelyard._common.text import as_plain
from steelyard.exceptions import ParameterError
from steelyard.explain.shared import (
    InteractionSide,
    Tabular,
    column_mean,
    evidence_of,
    interaction_sides,
    typical_numbers,
)
from steelyard.explain.value_summary import (
    mean_density,
    mean_evidence,
    table_text,
)
from steelyard.model.table_model import NBModel
from steelyard.model.uncertainty import Uncertainty, half_width
from steelyard.proba.counts import Counts
from steelyard.proba.gaussian import GaussianTable
from steelyard.table.by_schema import on_grid
from steelyard.table.schema import TableSchema
from steelyard.table.summary.whole_column import NumberRange

# Numbers at which a density is tabulated.
_POINTS = 61


@dataclass(frozen=True, repr=False)
class AttributeTable(Tabular):
    """One attribute of one sum: its values, how often they occur, what they add.

    It is relative to the average training row: the mean over all rows is 0.

    A Gaussian attribute is tabulated at evenly spaced numbers from the smallest to the
    largest of the training rows.
    """

    name: str
    kind: str
    classes: NDArray[Any]
    labels: list[str]
    """Values, intervals or numbers; missing cells come first."""

    contributions: Floats
    """To the scores of the classes, shape (values, K)."""

    mean: Floats
    """What was taken off them: means over the training rows, shape (K,)."""

    counts: Floats | None
    """Weight of the training rows by value and class; None for densities."""

    points: Floats | None
    """The numbers of an attribute with a density; None for others."""

    edges: tuple[float, ...]
    """Cut points of a binned attribute."""

    link_scale: float
    importance: Floats | None
    """Mean absolute evidence for each class over the training rows, about their mean,
    shape (K,)."""

    sides: tuple[InteractionSide, ...] = ()
    """The two columns of an interaction."""

    range: NumberRange | None = None
    """Where the training rows of a column of numbers lie, if the model says it."""

    title: str = ""
    """The name in words, where a file had labels of columns."""

    half_width: Floats | None = None
    """Of the 90 % intervals of evidence, shape (values, K); None where not known."""

    importance_half_width: Floats | None = None
    """The same of the importance, shape (K,)."""

    @property
    def has_values(self) -> bool:
        """Whether it has more than missing cells; columns that are left out do not."""
        return self.points is not None or len(self.labels) > 1

    @property
    def evidence(self) -> Floats:
        """Evidence for each class against the mean of the others, shape (values, K).

        With two classes that is log-odds.
        """
        return evidence_of(self.contributions) * self.link_scale

    @property
    def is_constant(self) -> bool:
        """Whether all known cells of the training rows hold the same value."""
        if self.sides or self.labels[-1] == "(missing)":
            return False
        if self.range is not None:
            return self.range.low == self.range.high
        if self.counts is None:
            return False
        return int(np.count_nonzero(self.counts[1:].sum(axis=1))) <= 1

    @property
    def ends(self) -> tuple[float, float]:
        """Least and largest evidence of values that training rows have.

        With two classes for the second; with more for any of them.
        """
        evidence = self.evidence
        if self.counts is not None and self.counts.any():
            evidence = evidence[self.counts.sum(axis=1) > 0.0]
        evidence = evidence[:, 1:] if len(self.classes) == 2 else evidence
        return float(evidence.min()), float(evidence.max())

    @property
    def span(self) -> tuple[float, float]:
        """Ends of the numbers of a curve where training rows are."""
        if self.range is not None:
            return self.range.low, self.range.high
        assert self.points is not None
        return float(self.points[0]), float(self.points[-1])

    @property
    def numbers(self) -> Floats:
        """The numbers of a curve, or one of each interval."""
        edges = np.array(self.edges)
        return typical_numbers(edges) if self.points is None else self.points

    @property
    def cells(self) -> Floats:
        """Evidence by the groups of both sides of an interaction, shape (A, B, K)."""
        return self.by_cell(self.evidence)

    @property
    def cell_counts(self) -> Floats | None:
        """Weight of the training rows in the cells of an interaction, shape (A, B)."""
        return None if self.counts is None else self.by_cell(self.counts).sum(axis=2)

    def by_cell(self, values: Floats) -> Floats:
        """Reshape values by the codes of an interaction (codes, K) to (A, B, K)."""
        if not self.sides:
            raise ParameterError(f"{self.name} is not an interaction.")
        a, b = (len(side.labels) + 1 for side in self.sides)
        # Unknown cells come first.
        return values.reshape(a, b, -1)[1:, 1:]

    def to_dict(self) -> dict[str, Any]:
        """Return the table as plain data, for JSON."""
        head: dict[str, Any] = {"name": self.name, "kind": self.kind}
        if self.sides:
            head["sides"] = [side.to_dict() for side in self.sides]
        numbers = {"counts": self.counts, "contributions": self.contributions}
        values = {"values": self.labels, **numbers, "evidence": self.evidence}
        if self.half_width is not None:
            values["low"] = self.evidence - self.half_width
            values["high"] = self.evidence + self.half_width
        return as_plain({**head, **values})

    def __repr__(self) -> str:
        """Lay the table out as text: long ones in a few lines."""
        return table_text(self)


def attribute_tables(
    model: NBModel,
    counts: Counts | None,
    ranges: Sequence[NumberRange | None],
    uncertainty: Uncertainty | None = None,
) -> list[AttributeTable]:
    """Tabulate every column of a model, and every interaction."""
    schema = model.schema
    where = range_by_column(schema, ranges)
    if counts is not None and (
        counts.schema != schema or counts.by_code.shape != model.table.shape
    ):
        # Counts of all classes do not describe a model of two of them.
        counts = None
    tables = [
        _attribute_table(model, counts, j, name, where[j])
        for j, name in enumerate(schema.labels())
    ]
    if uncertainty is None:
        return tables
    return [
        _with_intervals(own, uncertainty, schema, j) for j, own in enumerate(tables)
    ]


def _with_intervals(
    table: AttributeTable, uncertainty: Uncertainty, schema: TableSchema, j: int
) -> AttributeTable:
    """Return a table with intervals of its contributions and of its importance."""
    evidence = table.evidence
    half = half_width(uncertainty.variances[schema.offsets[j] : schema.offsets[j + 1]])
    mean = half_width(uncertainty.means[j])
    return replace(
        table,
        half_width=np.broadcast_to(half, evidence.shape),
        importance_half_width=np.broadcast_to(mean, evidence.shape[1:]),
    )


def range_by_column(
    schema: TableSchema, ranges: Sequence[NumberRange | None]
) -> list[NumberRange | None]:
    """Return the range of every column, None for interactions and other columns."""
    return [*ranges, *[None] * (len(schema) - len(ranges))]


def known_rows(schema: TableSchema, counts: Counts | None) -> Floats | None:
    """Weight of the rows whose cell is known, by attribute."""
    if counts is None or counts.schema != schema:
        return None
    out = np.zeros(len(schema))
    for j, feature in enumerate(schema.features):
        if feature.is_coded:
            by_code = counts.by_code[schema.offsets[j] : schema.offsets[j + 1]]
            known = feature.both_known if feature.sides else np.arange(len(by_code)) > 0
            if feature.missing_is_value:
                known[-1] = False
            out[j] = by_code[known].sum()
        else:
            g = schema.gaussian.tolist().index(j)
            out[j] = counts.moments.weight[g].sum()
    return out


def _attribute_table(
    model: NBModel, counts: Counts | None, j: int, name: str, where: NumberRange | None
) -> AttributeTable:
    feature, offsets = model.schema.features[j], model.schema.offsets
    points = by_value = None
    mean = column_mean(model, j)
    if feature.is_coded:
        rows = slice(offsets[j], offsets[j + 1])
        contributions = model.table[rows] - mean
        by_value = None if counts is None else counts.by_code[rows]
        labels = [model.schema.describe(j, v) for v in range(feature.n_codes)]
        importance = mean_evidence(model, contributions, by_value)
    else:
        points = gaussian_points(model.density(j), feature.step, where)
        contributions = model.density_scores(j, points) - mean
        labels = [f"{x:.5g}" for x in points]
        importance = mean_density(model, counts, j)
    head = (name, feature.kind, model.classes, labels, contributions, mean, by_value)
    made = AttributeTable(*head, points, feature.edges, model.link_scale, importance)
    sides = interaction_sides(model.schema, j) if feature.sides else ()
    return replace(made, sides=sides, range=where)


def gaussian_points(
    table: GaussianTable, step: float, where: NumberRange | None
) -> Floats:
    """Return numbers to look at, evenly from the smallest to the largest."""
    low, high = density_range(table) if where is None else (where.low, where.high)
    return np.unique(on_grid(np.linspace(low, high, _POINTS), step))


def density_range(table: GaussianTable) -> tuple[float, float]:
    """Return the ends of three deviations around all class means."""
    low = float((table.mean - 3.0 * table.deviation).min())
    return low, float((table.mean + 3.0 * table.deviation).max())
