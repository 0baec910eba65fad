"""The cells that speak loudest for or against a prediction."""

from __future__ import annotations

from typing import Any

__all__ = ["reasons"]


def reasons(clf: Any, table: Any, most: int) -> list[list[str]]:
    """Return the loudest evidence of every row, as texts.

    Evidence is what a cell adds to the log-odds of the most probable class against the
    next. In a model that is not one sum no cell adds a fixed amount; there it is what
    is lost when the cell is left out.

    Parameters
    ----------
    clf : BaseNB
        A fitted classifier.
    table : DataFrame
        Some rows.
    most : int
        How many reasons.

    Returns
    -------
    list of list of str
        For each row ``attribute = value (evidence)``, filled up with empty texts.
    """
    import numpy as np

    from steelyard._common.text import signed

    found = clf.explain_local(table)
    order = np.argsort(-found.probabilities, axis=1, kind="stable")
    each = np.arange(len(found))
    if found.contributions is not None:
        parts = found.contributions * found.link_scale
        amounts = parts[each, :, order[:, 0]] - parts[each, :, order[:, 1]]
    else:
        amounts = _losses(found, order)
    ranked = np.argsort(-np.abs(amounts), axis=1, kind="stable")[:, :most]
    lines = []
    for i, columns in enumerate(ranked.tolist()):
        texts = [
            f"{found.attributes[j]} = {found.values[i][j]} ({signed(amounts[i, j])})"
            for j in columns
            if amounts[i, j]
        ]
        lines.append(texts + [""] * (most - len(texts)))
    return lines


def _losses(found: Any, order: Any) -> Any:
    """Return by how much log-odds fall without each cell, shape (n, d)."""
    import numpy as np

    from steelyard.explain.cells import Cells
    from steelyard.explain.views import views_of

    each = np.arange(len(found))

    def log_odds(cells: Cells) -> Any:
        logs = found.model.log_proba(cells.encoded())
        # A vote may be unanimous; the smallest probability stands for none.
        logs = np.maximum(logs, np.log(np.finfo(float).tiny))
        return logs[each, order[:, 0]] - logs[each, order[:, 1]]

    cells = found.cells
    whole = log_odds(cells)
    views = views_of(cells.schema)
    amounts = np.zeros((len(cells.codes), len(views)))
    for j, own in enumerate(views):
        codes, numbers = cells.codes.copy(), cells.numbers.copy()
        codes[:, own], numbers[:, own] = 0, np.nan
        amounts[:, j] = whole - log_odds(Cells(cells.schema, codes, numbers))
    return amounts
