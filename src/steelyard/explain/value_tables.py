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
from steelyard.explain.value_summary import (
    N_QUANTILES,
    joint_importance,
    mean_density,
    mean_evidence,
    table_text,
)
from steelyard.explain.views import (
    InteractionSide,
    Tabular,
    column_mean,
    column_scores,
    evidence_of,
    interaction_sides,
    place_numbers,
    typical_numbers,
    views_of,
)
from steelyard.model.table_model import NBModel
from steelyard.model.uncertainty import Uncertainty, half_width
from steelyard.proba.counts import Counts
from steelyard.proba.gaussian import GaussianTable
from steelyard.table.by_schema import on_grid
from steelyard.table.schema import FeatureSchema, TableSchema
from steelyard.table.summary.whole_column import NumberRange

# Numbers at which a density is tabulated.
_POINTS = 61

# Intervals of a column with several views that are listed; with more it is a curve.
_MAX_INTERVALS = 20


@dataclass(frozen=True, repr=False)
class AttributeTable(Tabular):
    """One attribute of one sum: its values, how often they occur, what they add.

    It is relative to the average training row: the mean over all rows is 0.

    A Gaussian attribute is tabulated at evenly spaced numbers from the smallest to the
    largest of the training rows; so is a column with several views, one of them a
    density or of many bins, whose contributions are the sums over its views.
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

    quantiles: Floats | None = None
    """About ten cut points of a column with a density and bins, and the share of the
    training rows up to each, shape (m, 2)."""

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
    def is_joint(self) -> bool:
        """Whether the column has several views."""
        return " + " in self.kind

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
) -> tuple[list[AttributeTable], list[AttributeTable]]:
    """Tabulate every column of a model, all its views together; and every view."""
    schema = model.schema
    where = range_by_column(schema, ranges)
    if counts is not None and (
        counts.schema != schema or counts.by_code.shape != model.table.shape
    ):
        # Counts of all classes do not describe a model of two of them.
        counts = None
    by_view = [
        _view_table(model, counts, j, name, where[schema.columns[j]])
        for j, name in enumerate(schema.labels())
    ]
    by_column = [
        by_view[views[0]]
        if len(views) == 1
        else _joint_table(model, counts, [by_view[k] for k in views], views)
        for views in views_of(schema)
    ]
    if uncertainty is not None:
        by_column = [
            _with_intervals(table, uncertainty, schema, views)
            for table, views in zip(by_column, views_of(schema), strict=True)
        ]
    return by_column, by_view


def _with_intervals(
    table: AttributeTable,
    uncertainty: Uncertainty,
    schema: TableSchema,
    views: list[int],
) -> AttributeTable:
    """Return a table with intervals of its contributions and of its importance."""
    if table.points is None and len(views) == 1:
        codes = np.arange(len(table.labels))[:, None]
    else:
        codes, _ = place_numbers(schema, views, table.numbers)
    if len(codes) < len(table.labels):  # unknown cells come first, missing ones last
        last = [schema.features[j].missing_code for j in views]
        codes = np.vstack([np.zeros_like(codes[:1]), codes, last])[: len(table.labels)]
    evidence = table.evidence
    half = half_width(uncertainty.of_cells(schema.offsets[views] + codes))
    mean = half_width(uncertainty.means[views].sum(axis=0))
    return replace(
        table,
        half_width=np.broadcast_to(half, evidence.shape),
        importance_half_width=np.broadcast_to(mean, evidence.shape[1:]),
    )


def range_by_column(
    schema: TableSchema, ranges: Sequence[NumberRange | None]
) -> list[NumberRange | None]:
    """Return the range of every column, None for interactions and other columns."""
    n_all = len(set(schema.columns))
    return [*ranges, *[None] * (n_all - len(ranges))]


def known_rows(schema: TableSchema, counts: Counts | None) -> Floats | None:
    """Weight of the rows whose cell is known, by attribute."""
    if counts is None or counts.schema != schema:
        return None
    out = np.zeros(len(set(schema.columns)))
    for j, feature in enumerate(schema.features):
        if feature.is_coded:
            by_code = counts.by_code[schema.offsets[j] : schema.offsets[j + 1]]
            known = feature.both_known if feature.sides else np.arange(len(by_code)) > 0
            if feature.missing_is_value:
                known[-1] = False
            out[schema.columns[j]] = by_code[known].sum()
        else:
            g = schema.gaussian.tolist().index(j)
            out[schema.columns[j]] = counts.moments.weight[g].sum()
    return out


def _view_table(
    model: NBModel, counts: Counts | None, j: int, name: str, where: NumberRange | None
) -> AttributeTable:
    feature, offsets = model.schema.features[j], model.schema.offsets
    points = by_value = None
    mean = column_mean(model, [j])
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


def _joint_table(
    model: NBModel,
    counts: Counts | None,
    tables: list[AttributeTable],
    views: list[int],
) -> AttributeTable:
    """Tabulate a column with several views: along numbers, or by common intervals."""
    edges = np.unique(np.concatenate([table.edges for table in tables]))
    points, span = None, tables[0].range
    grids = [table.points for table in tables if table.points is not None]
    if span is not None and len(edges) >= _MAX_INTERVALS:
        grids.append(np.array([span.low, span.high]))
    if grids:
        # Both sides of every jump.
        after = np.nextafter(edges, np.inf)
        points = np.unique(np.concatenate([*grids, edges, after]))
        if span is not None:
            points = span.clipped(points)
        contributions = column_scores(model, views, points)
        labels = [f"{x:.5g}" for x in points]
    else:
        inner = column_scores(model, views, typical_numbers(edges))
        unknown = -column_mean(model, views)
        # Where missing is a value it is so in all views of a column.
        last = [table.contributions[-1] for table in tables]
        is_value = model.schema.features[views[0]].missing_is_value
        contributions = np.vstack([unknown, inner, *([sum(last)] if is_value else [])])
        whole = FeatureSchema(
            None, "binned", "numbers", edges=tuple(edges), missing_is_value=is_value
        )
        labels = [whole.describe(code) for code in range(whole.n_codes)]
    kind = " + ".join(table.kind for table in tables)
    importance = joint_importance(model, counts, views, edges)
    mean = column_mean(model, views)
    head = (tables[0].name, kind, model.classes, labels, contributions, mean, None)
    where = None if points is None else _quantiles(model, counts, views)
    all_edges = tuple(edges.tolist())
    rest = (points, all_edges, model.link_scale, importance, where)
    made = AttributeTable(*head, *rest)
    return replace(made, range=span)


def _quantiles(
    model: NBModel, counts: Counts | None, views: list[int]
) -> Floats | None:
    """Return cut points of the finest bins that part the rows in about ten."""
    schema = model.schema
    binned = [j for j in views if schema.features[j].edges]
    if counts is None or not binned:
        return None
    finest = max(binned, key=lambda j: schema.features[j].n_codes)
    edges, first = schema.features[finest].edges, schema.offsets[finest] + 1
    rows = counts.by_code[first : first + len(edges) + 1].sum(axis=1)
    if not rows.sum() > 0.0:
        return None
    shares = np.cumsum(rows)[:-1] / rows.sum()
    middle = (np.arange(N_QUANTILES) + 0.5) / N_QUANTILES
    chosen = np.unique(np.searchsorted(shares, middle).clip(max=len(edges) - 1))
    return np.stack([np.asarray(edges)[chosen], shares[chosen]], axis=1)


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
