"""Value tables as text: long ones in a few lines that say what they stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from steelyard._common.arrays import Floats
from steelyard._common.text import signed, text_table
from steelyard.table.schema import FeatureSchema

if TYPE_CHECKING:
    from steelyard.explain.value_tables import AttributeTable

# Numbers at which a curve is read off, where it is known how the rows are spread.
N_QUANTILES = 10

# Lines of other curves, of merged bins and of the cells of a pair.
_MAX_POINTS, _MAX_BINS, _MAX_CELLS = 12, 10, 12

# Columns of texts by header, evidence for those lines, and what they are.
_Lines = tuple[dict[str, list[str]], Floats, str]


def table_text(table: AttributeTable) -> str:
    """Lay a value table out as text, one line per value or group of values."""
    columns, evidence, note = _lines(table, table.evidence)
    half = None if table.half_width is None else _lines(table, table.half_width)[1]
    two = len(table.classes) == 2
    for c in [1] if two else range(len(table.classes)):
        columns[f"for {table.classes[c]}"] = list(map(signed, evidence[:, c]))
        if half is not None:
            columns["±" + " " * c] = [f"{amount:.2f}" for amount in half[:, c]]
    against = f"against {table.classes[0]}" if two else "against the others"
    # How a column is seen matters to few; what its values say, to all.
    kind = "" if table.is_joint else f" ({table.kind})"
    title = f"{table.name}{kind}: evidence {against}, in log-odds{note}"
    title += "" if half is None else ", with 90 % intervals"
    rows = list(zip(*columns.values(), strict=True))
    texts = ("value", *(side.name for side in table.sides))
    numeric = [header not in texts for header in columns]
    return f"{title}\n{text_table(list(columns), rows, numeric)}"


def _lines(table: AttributeTable, evidence: Floats) -> _Lines:
    if table.sides:
        return _cell_lines(table, evidence)
    if table.points is not None:
        return _curve_lines(table, evidence)
    # Missing cells are beside the bins.
    if table.edges and len(table.edges) + 1 > _MAX_POINTS:
        return _merged_lines(table, evidence)
    columns = {"value": table.labels}
    if table.counts is not None:
        columns["rows"] = _weights(table.counts.sum(axis=1))
    return columns, evidence, ""


def _curve_lines(table: AttributeTable, evidence: Floats) -> _Lines:
    """Read a curve off where the rows are, or at numbers that are evenly spaced."""
    points = table.points
    assert points is not None
    if table.quantiles is None and table.range is None:
        every = max(1, len(points) // _MAX_POINTS)
        return {"value": table.labels[::every]}, evidence[::every], ""
    at, texts = _places(table)
    columns = {"value": [f"{x:.5g}" for x in at], "rows up to it": texts}
    by_class = [np.interp(at, points, column) for column in evidence.T]
    return columns, np.stack(by_class, axis=1), ", along a curve"


def _places(table: AttributeTable) -> tuple[Floats, list[str]]:
    """Return numbers at which a curve is read off, and how many rows are up to each."""
    places: dict[float, str] = {}
    if table.quantiles is not None:
        for x, share in table.quantiles.tolist():
            places[x] = f"{100 * share:.0f} %"
    elif table.range is not None:
        places = dict(
            zip(table.range.quartiles, ("25 %", "50 %", "75 %"), strict=False)
        )
    if table.range is not None:
        low, high = table.range.low, table.range.high
        inside = {x: text for x, text in places.items() if low < x < high}
        places = {low: "smallest", **inside, high: "largest"}
    return np.array(list(places)), list(places.values())


def _merged_lines(table: AttributeTable, evidence: Floats) -> _Lines:
    """Merge neighbouring bins to groups with about as many rows."""
    n_bins, n_codes = len(table.edges) + 1, len(table.labels)
    rows = np.ones(n_codes) if table.counts is None else table.counts.sum(axis=1)
    known = rows[1 : n_bins + 1]
    known = known if known.sum() > 0.0 else np.ones(n_bins)
    middle = (np.cumsum(known) - known / 2.0) / known.sum()
    group = np.concatenate([[-1], (middle * _MAX_BINS).astype(int)])
    group = np.append(group, np.full(n_codes - len(group), _MAX_BINS))
    whole = FeatureSchema(None, "binned", "numbers", edges=table.edges)
    labels, weights, means = [], [], []
    for g in np.unique(group):
        codes = np.flatnonzero(group == g)
        is_bin = 0 <= g < _MAX_BINS
        name = (
            whole.describe_merged(codes.tolist()) if is_bin else table.labels[codes[0]]
        )
        labels.append(name)
        weights.append(rows[codes].sum())
        share = rows[codes] if weights[-1] > 0.0 else np.ones(len(codes))
        means.append(np.average(evidence[codes], axis=0, weights=share))
    columns = {"value": labels}
    if table.counts is not None:
        columns["rows"] = _weights(np.array(weights))
    return columns, np.array(means), f", means of {n_bins} bins"


def _cell_lines(table: AttributeTable, evidence: Floats) -> _Lines:
    """List the cells of a pair that say most, the most rows of them first."""
    first, second = table.sides
    counts = table.cell_counts
    loudness = np.abs(table.cells).mean(axis=2) * (1.0 if counts is None else counts)
    order = np.argsort(-loudness, axis=None, kind="stable")[:_MAX_CELLS]
    a, b = np.unravel_index(order, loudness.shape)
    columns = {
        first.name: [first.labels[k] for k in a],
        second.name: [second.labels[k] for k in b],
    }
    if counts is not None:
        columns["rows"] = _weights(counts[a, b])
    more = loudness.size - len(order)
    note = f"; {len(order)} of {loudness.size} cells" if more else ""
    return columns, table.by_cell(evidence)[a, b], note


def _weights(rows: Floats) -> list[str]:
    return [f"{weight:g}" for weight in rows]
