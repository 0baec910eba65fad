"""Explanations in short: reasons of a row, frames of pandas, tables of a notebook."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats
from steelyard._common.html import Markup, element, escape, html_bars, html_table
from steelyard._common.text import cell_text, signed
from steelyard.exceptions import ParameterError
from steelyard.explain.local import LocalExplanation, explain_local
from steelyard.explain.overall import GlobalExplanation, explain_global
from steelyard.explain.row_cells import Evidence, RowCells
from steelyard.explain.shared import evidence_of
from steelyard.explain.value_tables import AttributeTable

if TYPE_CHECKING:
    import pandas


class Reason(NamedTuple):
    """What one cell says for the most probable class, in log-odds."""

    attribute: str
    value: str
    amount: float
    label: str

    def __str__(self) -> str:
        cell = cell_text(self.attribute, self.value)
        return f"{cell} ({signed(self.amount)} for {self.label})"


def reasons(
    clf: Any,
    X: Any,
    most: int = 3,
    *,
    interactions: Literal["shown", "split"] = "shown",
) -> list[list[Reason]]:
    """Return the loudest evidence of every row, at most so many reasons of each.

    Evidence is what a cell adds to the log-odds of the most probable class against the
    next. In a model that is not one sum no cell adds a fixed amount; there it is what
    is lost when the cell is left out. Cells that say nothing are left out. An
    interaction is a separate reason, or split between its columns, half and half.

    Examples
    --------
    >>> import steelyard as sy
    >>> X = [["sunny", "dry"], ["sunny", "wet"], ["foggy", "wet"], ["foggy", "dry"]]
    >>> clf = sy.NaiveBayes().fit(X, ["walk", "walk", "read", "read"])
    >>> [str(reason) for reason in reasons(clf, X[:1], most=1)[0]]
    ['x0 = sunny (+1.61 for walk)']
    """
    explanation = explain_local(clf, X, interactions=interactions)
    order = np.argsort(-explanation.probabilities, axis=1, kind="stable")
    if explanation.contributions is not None:
        each = np.arange(len(explanation))
        parts = explanation.contributions * explanation.link_scale
        amounts = parts[each, :, order[:, 0]] - parts[each, :, order[:, 1]]
    else:
        # Without a cell its interactions are lost as well.
        amounts = _losses(explanation, order)[:, : len(explanation.attributes)]
    loudest = np.argsort(-np.abs(amounts), axis=1, kind="stable")[:, :most]
    names, values = explanation.attributes, explanation.values
    labels = [str(explanation.classes[c]) for c in order[:, 0]]
    return [
        [
            Reason(names[j], values[i][j], float(amounts[i, j]), labels[i])
            for j in columns
            if amounts[i, j]
        ]
        for i, columns in enumerate(loudest.tolist())
    ]


def _losses(explanation: LocalExplanation, order: NDArray[np.intp]) -> Floats:
    """Return by how much log-odds fall without each cell, shape (n, d)."""
    each = np.arange(len(explanation))

    def log_odds(cells: RowCells) -> Any:
        logs = explanation.model.log_proba(cells.encoded())
        # A vote may be unanimous; the smallest probability stands for none.
        logs = np.maximum(logs, np.log(np.finfo(float).tiny))
        return logs[each, order[:, 0]] - logs[each, order[:, 1]]

    cells = explanation.cells
    whole = log_odds(cells)
    amounts = np.zeros(cells.codes.shape)
    for j in range(len(cells.schema)):
        codes, numbers = cells.codes.copy(), cells.numbers.copy()
        codes[:, j], numbers[:, j] = 0, np.nan
        without = RowCells(cells.schema, codes, numbers)
        if j < cells.schema.n_columns:
            without = without.joined()
        amounts[:, j] = whole - log_odds(without)
    return amounts


def column_importance(clf: Any) -> Floats:
    """Return the importance of every column; of an interaction either side has half."""
    whole = explain_global(clf)
    if whole.importance is None:
        raise AttributeError(
            f"{type(clf).__name__} has no feature_importances_ without rows: "
            "explain_global(X).importance takes them over the rows of X."
        )
    schema = clf.encoder_.schema_
    out = np.array(whole.importance[: schema.n_columns])
    interactions = (feature.sides for feature in schema.features if feature.sides)
    for amount, sides in zip(whole.importance[len(out) :], interactions, strict=True):
        for side in sides:
            out[side.feature] += amount / 2.0
    return out


# ------------------------------------------------------------------------------- frames


_SHOWN_ROWS = 3


def frame_of(explanation: Any) -> pandas.DataFrame:
    """Return an explanation as a frame, one line for each attribute, value or cell."""
    try:
        import pandas as pd
    except ImportError:
        raise ImportError(
            "Frames need pandas, which is not installed. Install it with: "
            "pip install pandas"
        ) from None
    return pd.DataFrame(columns_of(explanation))


@singledispatch
def columns_of(explanation: Any) -> dict[str, Any]:
    """Return the columns of the frame by name."""
    raise ParameterError(f"There is no frame of a {type(explanation).__name__}.")


@columns_of.register
def _(explanation: Evidence) -> dict[str, Any]:
    start, items = explanation.start, explanation.items
    return {
        "attribute": [start[0], *(item.attribute for item in items)],
        "value": [start[1], *(item.value for item in items)],
        "evidence": [explanation.prior, *(item.amount for item in items)],
        "missing": [False, *(item.missing for item in items)],
    }


@columns_of.register
def _(explanation: AttributeTable) -> dict[str, Any]:
    columns: dict[str, Any] = {"value": list(explanation.labels)}
    if explanation.counts is not None:
        columns["rows"] = explanation.counts.sum(axis=1)
    return columns | _by_class(explanation.classes, explanation.evidence)


@columns_of.register
def _(explanation: GlobalExplanation) -> dict[str, Any]:
    order = explanation.order
    columns: dict[str, Any] = {
        "attribute": [explanation.attributes[j] for j in order],
    }
    if explanation.importance is not None:
        columns["importance"] = explanation.importance[order]
    if explanation.tables:
        ends = [explanation.tables[j].ends for j in order]
        columns["least"], columns["most"] = np.array(ends).reshape(-1, 2).T
    if explanation.rows is not None:
        columns["rows"] = explanation.rows[order]
    return columns


@columns_of.register
def _(explanation: LocalExplanation) -> dict[str, Any]:
    base, contributions = explanation.base, explanation.contributions
    if base is None or contributions is None:
        raise ParameterError(
            f"{explanation.note} Ask its parts: explanation.parts[0].explanation."
            "to_frame()."
        )
    n, names = len(explanation), explanation.attributes
    parts = np.concatenate([base[:, None, :], contributions], axis=1)
    evidence = evidence_of(parts * explanation.link_scale).reshape(
        n * (len(names) + 1), -1
    )
    missing = np.column_stack([np.zeros(n, dtype=bool), explanation.missing])
    return {
        "row": np.repeat(np.arange(n), len(names) + 1),
        "attribute": ["(base)", *names] * n,
        "value": [value for row in explanation.values for value in ("", *row)],
        "missing": missing.ravel(),
        **_by_class(explanation.classes, evidence),
    }


def _by_class(classes: Any, evidence: Floats) -> dict[str, Any]:
    """Evidence for each class; of two, for the second alone."""
    chosen = [1] if len(classes) == 2 else range(len(classes))
    return {f"evidence for {classes[c]}": evidence[:, c] for c in chosen}


# --------------------------------------------------------------------------- notebooks


@singledispatch
def html_of(explanation: Any) -> str:
    """Return an explanation as HTML: its text, where it is no table."""
    return element("pre", escape(repr(explanation)))


@html_of.register
def _(explanation: Evidence) -> str:
    title, header, rows = explanation.layout()
    bars = html_bars(explanation.amounts, [row[2] for row in rows])
    drawn = [[*row[:2], bar] for row, bar in zip(rows, bars, strict=False)]
    last = rows[-1][:3]
    table = html_table([*header[:2], ""], [*drawn, last], 2)
    return element("p", escape(title)) + table


@html_of.register
def _(explanation: GlobalExplanation) -> str:
    head, header, rows, notes = explanation.layout()
    if rows and explanation.importance is not None:
        bars = html_bars(explanation.importance[explanation.order].tolist())
        rows = [[*row[:-1], bar] for row, bar in zip(rows, bars, strict=True)]
    if rows and explanation.tables:
        curves = [_curve(explanation.tables[j]) for j in explanation.order]
        header = [*header, ""]
        rows = [[*row, curve] for row, curve in zip(rows, curves, strict=True)]
    table = html_table(header, rows, 1) if rows else ""
    return f"{_lines(head)}{table}{_lines(notes)}"


@html_of.register
def _(explanation: LocalExplanation) -> str:
    if explanation.contributions is None:
        return element("pre", escape(repr(explanation)))
    n = len(explanation)
    shown = [
        element("p", escape(f"row {row}")) + html_of(explanation.evidence(row))
        for row in range(min(n, _SHOWN_ROWS))
    ]
    more = [] if n <= _SHOWN_ROWS else [f"… and {n - _SHOWN_ROWS} more rows"]
    return "".join(shown) + _lines(more)


# Width and height of a small curve, and how many classes have a line in it.
_WIDE, _HIGH, _MAX_LINES = 120.0, 26.0, 6


def _curve(table: AttributeTable) -> Markup:
    """Draw what an attribute says along its values, about the line of no evidence."""
    if table.sides:
        return Markup("")
    evidence = np.nan_to_num(table.evidence)
    where = table.points
    if where is None:
        # Missing cells come first; every value is a step.
        evidence = np.repeat(evidence[1:], 2, axis=0)
        where = np.repeat(np.arange(len(evidence) / 2 + 1), 2)[1:-1]
    if not len(evidence):
        return Markup("")
    low, high = min(0.0, float(evidence.min())), max(0.0, float(evidence.max()))
    x = _WIDE * (where - where.min()) / ((np.ptp(where)) or 1.0)
    y = _HIGH * (high - evidence) / ((high - low) or 1.0)
    zero = f"{_HIGH * high / ((high - low) or 1.0):.1f}"
    axis = {"x1": 0, "x2": int(_WIDE), "y1": zero, "y2": zero}
    lines = [element("line", stroke="currentColor", stroke_dasharray="1 2", **axis)]
    chosen = [1] if len(table.classes) == 2 else range(len(table.classes))[:_MAX_LINES]
    for c in chosen:
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y[:, c], strict=True))
        style = {"fill": "none", "stroke": "#2a7f62", "stroke_width": 1.5}
        lines.append(element("polyline", points=points, **style))
    box = f"-1 -1 {_WIDE + 2:.0f} {_HIGH + 2:.0f}"
    size = {"width": int(_WIDE), "height": int(_HIGH), "viewBox": box}
    return Markup(element("svg", "".join(lines), aria_hidden="true", **size))


def _lines(lines: list[str]) -> str:
    return element("p", "<br>".join(map(escape, lines))) if lines else ""
