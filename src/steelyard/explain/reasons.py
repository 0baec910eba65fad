"""Reasons of a row in short: its most important cells."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats
from steelyard._common.text import cell_text, signed
from steelyard.explain.local import LocalExplanation, explain_local
from steelyard.explain.row_cells import RowCells


class Reason(NamedTuple):
    """The evidence of one cell for the most probable class, in log-odds."""

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
    """Return the cells of every row with the most evidence, at most ``most`` of each.

    Evidence is the contribution of a cell to the log-odds of the most probable class
    against the next. In a model that is not one sum no cell has a fixed contribution;
    there it is the loss without the cell. Cells without evidence are left out. An
    interaction is a separate reason, or split between its columns, half and half.

    >>> import steelyard as sy
    >>> X = [["sunny", "dry"], ["sunny", "wet"], ["foggy", "wet"], ["foggy", "dry"]]
    >>> clf = sy.NaiveBayes().fit(X, ["walk", "walk", "read", "read"])
    >>> [str(reason) for reason in reasons(clf, X[:1], most=1)[0]]
    ['x0 = sunny (+1.61 for walk)']
    """
    explanation = explain_local(clf, X, interactions=interactions)
    order = np.argsort(-explanation.probabilities, axis=1, kind="stable")
    if explanation.contributions is not None:
        rows = np.arange(len(explanation))
        scaled = explanation.contributions * explanation.link_scale
        amounts = scaled[rows, :, order[:, 0]] - scaled[rows, :, order[:, 1]]
    else:
        # Without a cell its interactions are lost as well.
        amounts = _losses(explanation, order)[:, : len(explanation.attributes)]
    largest = np.argsort(-np.abs(amounts), axis=1, kind="stable")[:, :most]
    names, values = explanation.attributes, explanation.values
    labels = [str(explanation.classes[c]) for c in order[:, 0]]
    return [
        [
            Reason(names[j], values[i][j], float(amounts[i, j]), labels[i])
            for j in columns
            if amounts[i, j]
        ]
        for i, columns in enumerate(largest.tolist())
    ]


def _losses(explanation: LocalExplanation, order: NDArray[np.intp]) -> Floats:
    """Return how much the log-odds fall without each cell, shape (n, d)."""
    rows = np.arange(len(explanation))

    def log_odds(cells: RowCells) -> Any:
        logs = explanation.model.log_proba(cells.encoded())
        # A vote may be unanimous: zero becomes the smallest probability.
        logs = np.maximum(logs, np.log(np.finfo(float).tiny))
        return logs[rows, order[:, 0]] - logs[rows, order[:, 1]]

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
