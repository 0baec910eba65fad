"""The cells with the most evidence for a prediction, and how much each column says."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats
from steelyard._common.text import cell_text, signed
from steelyard.explain.local import LocalExplanation, explain_local
from steelyard.explain.overall import explain_global
from steelyard.explain.row_cells import RowCells
from steelyard.explain.views import views_of


class Reason(NamedTuple):
    """What one cell says for the predicted class, in log-odds."""

    attribute: str
    value: str
    amount: float

    def __str__(self) -> str:
        return f"{cell_text(self.attribute, self.value)} ({signed(self.amount)})"


def reasons(
    clf: Any, X: Any, most: int = 3, *, pairs: Literal["shown", "split"] = "shown"
) -> list[list[Reason]]:
    """Return the loudest evidence of every row, at most so many reasons of each.

    Evidence is what a cell adds to the log-odds of the most probable class against the
    next. In a model that is not one sum no cell adds a fixed amount; there it is what
    is lost when the cell is left out. Cells that say nothing are left out. A pair of
    columns is a reason of its own, or split between the two, half and half.

    Examples
    --------
    >>> import steelyard as sy
    >>> X = [["sunny", "dry"], ["sunny", "wet"], ["foggy", "wet"], ["foggy", "dry"]]
    >>> clf = sy.NaiveBayes().fit(X, ["walk", "walk", "read", "read"])
    >>> [str(reason) for reason in reasons(clf, X[:1], most=1)[0]]
    ['x0 = sunny (+1.61)']
    """
    explanation = explain_local(clf, X, pairs=pairs)
    order = np.argsort(-explanation.probabilities, axis=1, kind="stable")
    if explanation.contributions is not None:
        each = np.arange(len(explanation))
        parts = explanation.contributions * explanation.link_scale
        amounts = parts[each, :, order[:, 0]] - parts[each, :, order[:, 1]]
    else:
        # Without a cell its pairs are lost as well.
        amounts = _losses(explanation, order)[:, : len(explanation.attributes)]
    loudest = np.argsort(-np.abs(amounts), axis=1, kind="stable")[:, :most]
    names, values = explanation.attributes, explanation.values
    return [
        [
            Reason(names[j], values[i][j], float(amounts[i, j]))
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
    views = views_of(cells.schema)
    amounts = np.zeros((len(cells.codes), len(views)))
    for j, columns in enumerate(views):
        codes, numbers = cells.codes.copy(), cells.numbers.copy()
        codes[:, columns], numbers[:, columns] = 0, np.nan
        without = RowCells(cells.schema, codes, numbers)
        if j < cells.schema.n_columns:
            without = without.joined()
        amounts[:, j] = whole - log_odds(without)
    return amounts


def column_importance(clf: Any) -> Floats:
    """Return the importance of every column; of a pair either side has half."""
    whole = explain_global(clf)
    if whole.importance is None:
        raise AttributeError(
            f"{type(clf).__name__} has no feature_importances_ without rows: "
            "explain_global(X).importance takes them over the rows of X."
        )
    schema = clf.encoder_.schema_
    out = np.array(whole.importance[: schema.n_columns])
    pairs = (feature.sides for feature in schema.features if feature.sides)
    for amount, sides in zip(whole.importance[len(out) :], pairs, strict=True):
        for side in sides:
            out[schema.columns[side.feature]] += amount / 2.0
    return out
