"""Value tables in short: how important an attribute is, long tables in a few lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard._common.arrays import Floats
from steelyard._common.text import bar, counted, probability_text, signed, text_table
from steelyard.explain.shared import (
    column_mean,
    evidence_of,
    in_words,
    percent,
)
from steelyard.model.table_model import NBModel, numbers_by_class
from steelyard.proba.counts import Counts
from steelyard.table.schema import FeatureSchema

if TYPE_CHECKING:
    from steelyard.explain.local import LocalExplanation
    from steelyard.explain.overall import GlobalExplanation
    from steelyard.explain.value_tables import AttributeTable

# Lines of other curves, of merged bins and of the cells of an interaction.
_MAX_POINTS, _MAX_BINS, _MAX_CELLS = 12, 10, 12

# How many parts and base rates are shown as text.
_MAX_PARTS, _MAX_RATES = 20, 6

# How many rows, and parts of a model that explain them.
_MAX_ROWS, _MAX_PARTS_OF_ROW = 3, 10

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
    title = f"{table.name} ({table.kind}): evidence {against}, in log-odds{note}"
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
    if table.range is None:
        every = max(1, len(points) // _MAX_POINTS)
        return {"value": table.labels[::every]}, evidence[::every], ""
    at, texts = _places(table)
    columns = {"value": [f"{x:.5g}" for x in at], "rows up to it": texts}
    by_class = [np.interp(at, points, column) for column in evidence.T]
    return columns, np.stack(by_class, axis=1), ", along a curve"


def _places(table: AttributeTable) -> tuple[Floats, list[str]]:
    """Return numbers at which a curve is read off, and how many rows are up to each."""
    assert table.range is not None
    low, high = table.range.low, table.range.high
    shares = zip(table.range.quartiles, ("25 %", "50 %", "75 %"), strict=False)
    inside = {x: text for x, text in shares if low < x < high}
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
    """List the cells of an interaction that say most, the most rows of them first."""
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


def overall_layout(
    whole: GlobalExplanation,
) -> tuple[list[str], list[str], list[list[str]], list[str]]:
    """Return lines above, names of columns, lines of the table, lines below."""
    k, d = len(whole.classes), len(whole.attributes)
    n_interactions = sum(map(whole._is_interaction, range(d)))
    count = f"{d - n_interactions} attributes"
    if n_interactions:
        count += f" and {counted(n_interactions, 'interaction')}"
    head = [f"{whole.method}: {count}, {k} classes", whole.note]
    if whole.base_rates is not None and k <= _MAX_RATES:
        pairs = zip(whole.classes, whole.base_rates, strict=True)
        rates = ", ".join(f"{c} {percent(rate)}" for c, rate in pairs)
        head.append(f"With nothing known: {rates}.")
    columns = _columns(whole)
    changed = {name: f" ({shape})" for name, shape in whole.constraints.items()}
    for name in {edit.attribute for edit in whole.edits}:
        changed[name] = changed.get(name, "") + " (edited)"
    changed |= dict.fromkeys(whole.left_out, " (left out)")
    shown = [whole.attributes[j] for j in whole.order]
    words = zip(shown, in_words(shown, whole.titles), strict=True)
    names = [title + changed.get(name, "") for name, title in words]
    rows = list(map(list, zip(names, *columns.values(), strict=True)))
    tail = _notes(whole, columns) + [""] * bool(whole.parts)
    for part in whole.parts[:_MAX_PARTS]:
        tail.append(f"part: {part.name} (share {part.share:.3f})")
    if len(whole.parts) > _MAX_PARTS:
        tail.append(f"… and {len(whole.parts) - _MAX_PARTS} more parts")
    tail += [f"edited by hand: {edit}" for edit in whole.edits]
    return head, ["attribute", *columns], rows if columns else [], tail


def _notes(whole: GlobalExplanation, columns: dict[str, list[str]]) -> list[str]:
    """Say what the numbers of a table mean."""
    lines = []
    if whole.importance is not None:
        line = f"importance: mean absolute evidence over {whole.source}"
        lines.append(line + ", ± its 90 % interval" * ("±" in columns))
    if "most" in columns:
        of = f"for {whole.classes[1]}" if len(whole.classes) == 2 else "for a class"
        lines.append(f"least, most: range of what its values say {of}, in log-odds")
    if "rows" in columns:
        lines.append("rows: training rows in which its value is known, by weight")
    return lines


def _columns(whole: GlobalExplanation) -> dict[str, list[str]]:
    """Numbers of the attributes in order, one of each, as texts by header."""
    columns = {}
    weights: Any = whole.weights.get("attribute_weights_")
    # Beside effects of values, weights are only a part of the contributions.
    is_all = "value_effects_" not in whole.weights
    if is_all and np.shape(weights) == (d := len(whole.attributes),):
        # Interactions have effects and no weights.
        texts = [
            "" if whole._is_interaction(j) else f"{weights[j]:.3f}" for j in range(d)
        ]
        columns["weight"] = [texts[j] for j in whole.order]
    if whole.importance is not None:
        amounts = whole.importance[whole.order].tolist()
        largest = float(whole.importance.max())
        columns["importance"] = [f"{amount:.3f}" for amount in amounts]
        if whole.importance_half_width is not None:
            half = whole.importance_half_width[whole.order]
            columns["±"] = [f"{amount:.3f}" for amount in half]
        if whole.tables:
            ends = zip(*(whole.tables[j].ends for j in whole.order), strict=True)
            least, most = (list(map(signed, part)) for part in ends)
            columns |= {"least": least, "most": most}
        if whole.rows is not None:
            columns["rows"] = [f"{whole.rows[j]:g}" for j in whole.order]
        columns[""] = [bar(amount, largest) for amount in amounts]
    return columns


def rows_text(local: LocalExplanation) -> str:
    """Lay out explanations of up to three rows as text."""
    lines = [local.note] if local.kind != "sum" else []
    for row in range(min(len(local), _MAX_ROWS)):
        lines.append(f"\nrow {row}: {_prediction(local, row)}")
        if local.contributions is not None:
            lines.append(repr(local.evidence(row)))
        if local.neighbours:
            lines.append(repr(local.neighbours[row]))
        for part in local.parts[:_MAX_PARTS_OF_ROW]:
            shown = _prediction(part.explanation, row)
            lines.append(f"  {part.name} (share {part.share:.3f}): {shown}")
        if len(local.parts) > _MAX_PARTS_OF_ROW:
            lines.append(f"  … and {len(local.parts) - _MAX_PARTS_OF_ROW} more")
    if len(local) > _MAX_ROWS:
        lines.append(f"\n… and {len(local) - _MAX_ROWS} more rows")
    return "\n".join(lines).strip("\n")


def _prediction(local: LocalExplanation, row: int) -> str:
    largest = probability_text(local.probabilities[row].max())
    return f"{local.predicted[row]} (largest probability {largest})"


# --------------------------------------------------------------------------- importance


def mean_evidence(
    model: NBModel, contributions: Floats, counts: Floats | None
) -> Floats | None:
    """Mean absolute evidence over the training rows, from their counts."""
    if counts is None or not counts.sum() > 0:
        return None
    share = counts.sum(axis=1) / counts.sum()
    evidence = np.abs(evidence_of(contributions)) * model.link_scale
    return np.asarray(share @ evidence)


def mean_density(model: NBModel, counts: Counts | None, j: int) -> Floats | None:
    """Mean absolute evidence of the numbers that stand for the rows."""
    if counts is None or not counts.total > 0:
        return None
    mean, known = column_mean(model, j), 0.0
    out = np.zeros(model.n_classes)
    for weight, shares, numbers in numbers_by_class(counts, j):
        evidence = evidence_of(model.density_scores(j, numbers) - mean)
        out += weight * (shares @ np.abs(evidence))
        known += weight
    out += (counts.total - known) * np.abs(evidence_of(mean))
    return out * model.link_scale / counts.total
