"""Value tables: what each value of an attribute adds to the score of each class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats
from steelyard._common.text import day_text, signed, six_digits, text_table
from steelyard.exceptions import ParameterError
from steelyard.explain.shared import (
    InteractionSide,
    Tabular,
    column_mean,
    evidence_columns,
    evidence_of,
    interaction_sides,
    typical_numbers,
)
from steelyard.model.table_model import NBModel, numbers_by_class
from steelyard.model.uncertainty import Uncertainty, half_width
from steelyard.notices.curves import opposed
from steelyard.proba.counts import Counts
from steelyard.proba.gaussian import GaussianTable
from steelyard.table.encoding import on_grid
from steelyard.table.ranges import NumberRange
from steelyard.table.schema import FeatureSchema, TableSchema

# Numbers at which a density is tabulated.
_POINTS = 61

# Lines of text for merged bins and for the cells of an interaction, and points that a
# curve has at most in text.
_MAX_BINS, _MAX_CELLS, _MAX_POINTS = 10, 12, 12

# Columns of texts by header, evidence for those lines, and a note on what they are.
_Lines = tuple[dict[str, list[str]], Floats, str]


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
    """Means over the training rows, shape (K,), which are not in contributions."""

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
    """Range of a column of numbers in the training rows, if the model has it."""

    title: str = ""
    """The name in words, if a file had labels of columns."""

    half_width: Floats | None = None
    """Of the 90 % intervals of evidence, shape (values, K); None if not known."""

    importance_half_width: Floats | None = None
    """The same of the importance, shape (K,)."""

    alone: Floats | None = None
    """Evidence of the column without the others, shape (values, K), where a curve runs
    against it: that of plain naive Bayes."""

    is_date: bool = False
    """Whether its numbers are days since 1970, which are written as dates."""

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
        """Whether all observed cells of the training rows have the same value."""
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

        It is that for the second of two classes, or for any of several.
        """
        evidence = self.evidence
        if self.counts is not None and self.counts.any():
            evidence = evidence[self.counts.sum(axis=1) > 0.0]
        evidence = evidence[:, 1:] if len(self.classes) == 2 else evidence
        return float(evidence.min()), float(evidence.max())

    @property
    def span(self) -> tuple[float, float]:
        """Ends of the numbers of the training rows, or of a curve."""
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
        # Missing cells come first.
        return values.reshape(a, b, -1)[1:, 1:]

    def _asdict(self) -> dict[str, Any]:
        data: dict[str, Any] = {"name": self.name, "kind": self.kind}
        if self.sides:
            data["sides"] = self.sides
        data |= {"values": self.labels, "counts": self.counts}
        data |= {"contributions": self.contributions, "evidence": self.evidence}
        if self.half_width is not None:
            data["low"] = self.evidence - self.half_width
            data["high"] = self.evidence + self.half_width
        return data

    def _frame_columns(self) -> dict[str, Any]:
        columns: dict[str, Any] = {"value": list(self.labels)}
        if self.counts is not None:
            columns["rows"] = self.counts.sum(axis=1)
        return columns | evidence_columns(self.classes, self.evidence)

    def __repr__(self) -> str:
        """Lay the table out as text, one line per value or group of values."""
        columns, evidence, note = _lines(self, self.evidence)
        half = None if self.half_width is None else _lines(self, self.half_width)[1]
        two = len(self.classes) == 2
        for c in [1] if two else range(len(self.classes)):
            columns[f"for {self.classes[c]}"] = list(map(signed, evidence[:, c]))
            if half is not None:
                columns["±" + " " * c] = [f"{amount:.2f}" for amount in half[:, c]]
        against = f"against {self.classes[0]}" if two else "against the others"
        title = f"{self.name} ({self.kind}): evidence {against}, in log-odds{note}"
        title += "" if half is None else ", with 90 % intervals"
        rows = list(zip(*columns.values(), strict=True))
        texts = ("value", *(side.name for side in self.sides))
        numeric = [header not in texts for header in columns]
        return f"{title}\n{text_table(list(columns), rows, numeric)}"


def attribute_tables(
    model: NBModel,
    counts: Counts | None,
    ranges: Sequence[NumberRange | None],
    uncertainty: Uncertainty | None = None,
) -> list[AttributeTable]:
    """Tabulate every column of a model, and every interaction."""
    if counts is not None and (
        counts.schema != model.schema or counts.by_code.shape != model.table.shape
    ):
        # Counts of all classes do not describe a model of two of them.
        counts = None
    padded = range_by_column(model.schema, ranges)
    tables = [
        _attribute_table(model, counts, j, name, padded[j], uncertainty)
        for j, name in enumerate(model.schema.labels())
    ]
    for j, _ in () if counts is None else opposed(model, counts):
        rows = slice(model.schema.offsets[j], model.schema.offsets[j + 1])
        assert model.marginal is not None and counts is not None
        plain, n_rows = model.marginal.plain[rows], counts.by_code[rows].sum(axis=1)
        alone = evidence_of(plain - n_rows @ plain / n_rows.sum())
        tables[j] = replace(tables[j], alone=alone)
    return tables


def _attribute_table(
    model: NBModel,
    counts: Counts | None,
    j: int,
    name: str,
    where: NumberRange | None,
    uncertainty: Uncertainty | None,
) -> AttributeTable:
    schema, feature, mean = (
        model.schema,
        model.schema.features[j],
        column_mean(model, j),
    )
    rows = slice(schema.offsets[j], schema.offsets[j + 1])
    points = by_value = half = half_of_importance = None
    if feature.is_coded:
        contributions = model.table[rows] - mean
        by_value = None if counts is None else counts.by_code[rows]
        labels = [schema.describe(j, code) for code in range(feature.n_codes)]
        importance = _mean_evidence(model, contributions, by_value)
    else:
        points = gaussian_points(model.density(j), feature.step, where)
        contributions = model.density_scores(j, points) - mean
        labels = [f"{x:.5g}" for x in points]
        importance = _mean_density(model, counts, j)
    if uncertainty is not None:
        half = half_width(uncertainty.variances[rows])
        half = np.broadcast_to(half, contributions.shape)
        half_of_importance = half_width(uncertainty.means[j])
        half_of_importance = np.broadcast_to(half_of_importance, mean.shape)
    return AttributeTable(
        name=name,
        kind=feature.kind,
        is_date=schema.is_date(j),
        classes=model.classes,
        labels=labels,
        contributions=contributions,
        mean=mean,
        counts=by_value,
        points=points,
        edges=feature.edges,
        link_scale=model.link_scale,
        importance=importance,
        sides=interaction_sides(schema, j) if feature.sides else (),
        range=where,
        half_width=half,
        importance_half_width=half_of_importance,
    )


def range_by_column(
    schema: TableSchema, ranges: Sequence[NumberRange | None]
) -> list[NumberRange | None]:
    """Return the range of every attribute, None for interactions."""
    return [*ranges, *[None] * (len(schema) - len(ranges))]


def observed_rows(schema: TableSchema, counts: Counts | None) -> Floats | None:
    """Weight of the rows whose cell is observed, by attribute."""
    if counts is None or counts.schema != schema:
        return None
    out = np.zeros(len(schema))
    for j, feature in enumerate(schema.features):
        if feature.is_coded:
            rows = counts.by_code[schema.offsets[j] : schema.offsets[j + 1]]
            observed = feature.both_known if feature.sides else np.arange(len(rows)) > 0
            if feature.missing_is_value:
                observed[-1] = False
            out[j] = rows[observed].sum()
        else:
            g = schema.gaussian.tolist().index(j)
            out[j] = counts.moments.weight[g].sum()
    return out


def gaussian_points(
    table: GaussianTable, step: float, where: NumberRange | None
) -> Floats:
    """Return evenly spaced numbers from the smallest to the largest."""
    low, high = density_range(table) if where is None else (where.low, where.high)
    return np.unique(on_grid(np.linspace(low, high, _POINTS), step))


def density_range(table: GaussianTable) -> tuple[float, float]:
    """Return the ends of three deviations around all class means."""
    low = float((table.mean - 3.0 * table.deviation).min())
    return low, float((table.mean + 3.0 * table.deviation).max())


def _mean_evidence(
    model: NBModel, contributions: Floats, counts: Floats | None
) -> Floats | None:
    """Mean absolute evidence over the training rows, from their counts."""
    if counts is None or not counts.sum() > 0:
        return None
    share = counts.sum(axis=1) / counts.sum()
    evidence = np.abs(evidence_of(contributions)) * model.link_scale
    return np.asarray(share @ evidence)


def _mean_density(model: NBModel, counts: Counts | None, j: int) -> Floats | None:
    """Mean absolute evidence over numbers that represent the rows."""
    if counts is None or not counts.total > 0:
        return None
    mean, observed = column_mean(model, j), 0.0
    out = np.zeros(model.n_classes)
    for weight, shares, numbers in numbers_by_class(counts, j):
        evidence = evidence_of(model.density_scores(j, numbers) - mean)
        out += weight * (shares @ np.abs(evidence))
        observed += weight
    out += (counts.total - observed) * np.abs(evidence_of(mean))
    return out * model.link_scale / counts.total


# ---------------------------------------------------------------------- lines of text


def _lines(table: AttributeTable, evidence: Floats) -> _Lines:
    if table.sides:
        return _cell_lines(table, evidence)
    if table.points is not None:
        return _curve_lines(table, evidence)
    # Missing cells have separate lines.
    if table.edges and len(table.edges) + 1 > _MAX_POINTS:
        return _merged_lines(table, evidence)
    columns = {"value": table.labels}
    if table.counts is not None:
        columns["rows"] = _weights(table.counts.sum(axis=1))
    return columns, evidence, ""


def _curve_lines(table: AttributeTable, evidence: Floats) -> _Lines:
    """Read a curve off at the quartiles of the rows, or evenly spaced numbers."""
    points = table.points
    assert points is not None
    if table.range is None:
        step = max(1, len(points) // _MAX_POINTS)
        return {"value": table.labels[::step]}, evidence[::step], ""
    low, high = table.range.low, table.range.high
    shares = zip(table.range.quartiles, ("25 %", "50 %", "75 %"), strict=False)
    inside = {x: text for x, text in shares if low < x < high}
    up_to = {low: "smallest", **inside, high: "largest"}
    at = np.array(list(up_to))
    columns = {"value": [f"{x:.5g}" for x in at], "rows up to it": [*up_to.values()]}
    by_class = [np.interp(at, points, column) for column in evidence.T]
    return columns, np.stack(by_class, axis=1), ", along a curve"


def _merged_lines(table: AttributeTable, evidence: Floats) -> _Lines:
    """Merge neighbouring bins to groups of about equally many rows."""
    n_bins, n_codes = len(table.edges) + 1, len(table.labels)
    rows = np.ones(n_codes) if table.counts is None else table.counts.sum(axis=1)
    observed = rows[1 : n_bins + 1]
    observed = observed if observed.sum() > 0.0 else np.ones(n_bins)
    middle = (np.cumsum(observed) - observed / 2.0) / observed.sum()
    group = np.concatenate([[-1], (middle * _MAX_BINS).astype(int)])
    group = np.append(group, np.full(n_codes - len(group), _MAX_BINS))
    bins = FeatureSchema(None, "binned", "numbers", edges=table.edges)
    write = day_text if table.is_date else six_digits
    labels, weights, means = [], [], []
    for g in np.unique(group):
        codes = np.flatnonzero(group == g)
        label = table.labels[codes[0]]
        if 0 <= g < _MAX_BINS:
            label = bins.describe_merged(codes.tolist(), write)
        labels.append(label)
        weights.append(rows[codes].sum())
        share = rows[codes] if weights[-1] > 0.0 else np.ones(len(codes))
        means.append(np.average(evidence[codes], axis=0, weights=share))
    columns = {"value": labels}
    if table.counts is not None:
        columns["rows"] = _weights(np.array(weights))
    return columns, np.array(means), f", means of {n_bins} bins"


def _cell_lines(table: AttributeTable, evidence: Floats) -> _Lines:
    """List the cells of an interaction with the most evidence over all rows."""
    first, second = table.sides
    counts = table.cell_counts
    amounts = np.abs(table.cells).mean(axis=2) * (1.0 if counts is None else counts)
    order = np.argsort(-amounts, axis=None, kind="stable")[:_MAX_CELLS]
    a, b = np.unravel_index(order, amounts.shape)
    columns = {
        first.name: [first.labels[k] for k in a],
        second.name: [second.labels[k] for k in b],
    }
    if counts is not None:
        columns["rows"] = _weights(counts[a, b])
    is_cut = len(order) < amounts.size
    note = f"; {len(order)} of {amounts.size} cells" if is_cut else ""
    return columns, table.by_cell(evidence)[a, b], note


def _weights(rows: Floats) -> list[str]:
    return [f"{weight:g}" for weight in rows]
