"""Where the table of a text file begins: below titles, comments and blank lines.

With the standard library alone.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

Cells = Sequence[Any]

MAX_ROWS = 500
"""Rows that are examined."""

_MAX_TITLES = 50
# Share of the rows below titles, or with row names, that have the usual width.
_MIN_REGULAR_SHARE = 0.9
_NUMBER = re.compile(r"[-+\u2212(]?[\d.,' ]*\d[\d.,%)]*")


@dataclass(frozen=True)
class Top:
    """The lines above the names of columns, and whether rows have names too."""

    n_lines: int = 0
    """How many lines, blank ones and titles."""

    titles: tuple[str, ...] = ()
    has_row_names: bool = False
    """Whether rows begin with a name that has no column, as R writes them."""

    def in_words(self) -> str:
        """Return a note on the lines that are left out.

        Examples
        --------
        >>> Top(2, ("Penguins", "by island")).in_words()
        "2 lines above the names are left out, 'Penguins' first"
        """
        if not self.titles:
            return ""
        n, first = len(self.titles), self.titles[0][:40]
        return (
            f"a line above the names is left out, {first!r}"
            if n == 1
            else f"{n} lines above the names are left out, {first!r} first"
        )


def read_top(
    lines: Sequence[str], separator: str, quote: str, *, may_skip: bool = True
) -> tuple[Top, list[list[str]]]:
    """Return the lines above the names, and some rows from the names on.

    ``may_skip`` allows titles and row names.
    """
    rows, ends = [], []
    reader = csv.reader(
        iter(lines), delimiter=separator, quotechar=quote, skipinitialspace=True
    )
    try:
        for row in islice(reader, MAX_ROWS + _MAX_TITLES):
            rows.append(row)
            ends.append(reader.line_num)
    except csv.Error:
        pass
    filled = [k for k, row in enumerate(rows) if any(map(str.strip, row))]
    kept = [rows[k] for k in filled]
    if not kept:
        return Top(), []
    start = first_names(kept) if may_skip else 0
    above = [separator.join(filter(None, row)).strip() for row in kept[:start]]
    n_lines = ends[filled[start] - 1] if filled[start] else 0
    kept = kept[start:]
    named = may_skip and have_names(kept)
    return Top(n_lines, tuple(above), named), kept


def first_names(rows: Sequence[Cells]) -> int:
    """Return how many of the first rows are titles: narrow, with names below them."""
    if len(rows) < 3:
        return 0
    width, _ = max(Counter(map(len, rows)).items(), key=lambda e: (e[1], e[0]))
    for k, row in enumerate(rows[:_MAX_TITLES]):
        if _is_title(row, width):
            continue
        below = rows[k + 1 :]
        is_regular = _share_of(below, width) >= _MIN_REGULAR_SHARE
        return k if k and len(row) == width and is_regular and are_names(row) else 0
    return 0


def _is_title(row: Cells, width: int) -> bool:
    n_filled = sum(_is_filled(cell) for cell in row)
    is_narrow = len(row) < width - 1 or (len(row) < width and n_filled == 1)
    is_narrow |= len(row) < width and not are_names(row)
    is_narrow |= len(row) != width and str(row[0]).startswith("#")
    # Names of groups of columns stand above some of them.
    is_narrow |= n_filled <= width // 2 and width > 2 and not _has_numbers(row)
    return is_narrow or (n_filled <= 1 and width > 2)


def _is_filled(cell: Any) -> bool:
    return cell is not None and bool(str(cell).strip())


def are_names(row: Cells) -> bool:
    """Whether cells may be names of columns: filled, distinct, and no numbers."""
    texts = [str(cell).strip() for cell in row if _is_filled(cell)]
    are_distinct = len(set(texts)) == len(texts)
    return len(texts) > len(row) // 2 and are_distinct and not _has_numbers(row)


def _has_numbers(row: Cells) -> bool:
    return any(_NUMBER.fullmatch(str(cell).strip()) for cell in row)


def have_names(rows: Sequence[list[str]]) -> bool:
    """Whether rows begin with a name that has no column, as R writes them."""
    n, below = len(rows[0]) + 1, rows[1:MAX_ROWS]
    if not below or _share_of(below, n) < _MIN_REGULAR_SHARE:
        return False
    full = [row for row in below if len(row) == n]
    first = {row[0].strip() for row in full}
    # Otherwise lines end with a separator.
    return len(first) == len(full) and any(row[-1].strip() for row in full)


def _share_of(rows: Sequence[Cells], width: int) -> float:
    return sum(len(row) == width for row in rows) / max(len(rows), 1)
