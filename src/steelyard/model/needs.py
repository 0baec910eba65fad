"""What methods keep of their rows: from this follows which tables they learn from."""

from __future__ import annotations

from typing import Literal

RowsNeeded = Literal["counts", "sums", "pairs", "per-row", "codes", "all"]

NEEDS: dict[RowsNeeded, str] = {
    "counts": "counts of single columns, in one pass; nothing of the rows is kept",
    "sums": "several passes over encoded rows, each a sum over rows",
    "pairs": "the same, and counts of pairs of columns, which are a sum too",
    "per-row": "the same, and a few numbers for each row",
    "codes": "codes by column and scores of each row, on one machine",
    "all": "all rows, which are the model",
}
"""From little to much; each but the last can be done from memory maps."""


def most_needed(*needs: RowsNeeded) -> RowsNeeded:
    """Return the largest of some needs.

    Examples
    --------
    >>> most_needed("sums", "per-row", "pairs")
    'per-row'
    """
    return max(needs, key=list(NEEDS).index)
