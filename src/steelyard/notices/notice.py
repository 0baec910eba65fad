"""Notice: one thing that was noticed. With the standard library alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from steelyard._common.text import counted, listed

__all__ = ["Notice"]

# How grave each kind is, and what several columns of it have in common.
_KINDS = {
    "leak": (3, "give the class away"),
    "class-spelling": (3, ""),
    "number-target": (3, ""),
    "small-class": (3, ""),
    "sparse-rows": (3, ""),
    "digits": (3, "hold text, and nearly all cells begin with a digit"),
    "missing-code": (3, "have a number far from all others that occurs often"),
    "missing-column": (3, "are missing"),
    "renamed-column": (3, "are written otherwise than in the training rows"),
    "other-kind": (3, "hold other kinds of cells than the training rows"),
    "unknown-class": (3, ""),
    "seen-rows": (3, ""),
    "unseen": (3, "hold values that training never saw"),
    "beyond": (3, "hold numbers far beyond the training rows"),
    "all-missing": (3, "are missing throughout, and had no missing cell in training"),
    "new-missing": (2, "have missing cells, and had none in training"),
    "spelling": (2, "have values that differ by case or blanks only"),
    "identifier": (2, "look like identifiers"),
    "repeated-rows": (2, ""),
    "shape-cost": (2, ""),
    "shape-pairs": (1, ""),
    "unused-column": (1, ""),
    "unequal-classes": (1, ""),
    "nearly-empty": (1, "are nearly empty"),
    "constant": (1, "hold one value only"),
}

# Of more columns with the same, one notice says it.
_MOST_OF_A_KIND = 3
_MOST_LINES = 12

# Standard errors, and log-loss, from which on shapes cost much.
_MUCH, _LEAST_COST = 2.0, 0.002


@dataclass(frozen=True)
class Notice:
    """Something about rows that may make results wrong, and what to do about it.

    Examples
    --------
    >>> notice = Notice("unseen", "1 of 3 rows holds 'Mars'", "island", 1, "left out")
    >>> print(notice)
    island: 1 of 3 rows holds 'Mars'; left out
    >>> notice.severity
    3
    """

    kind: str
    """A short word for what it is, such as "leak" or "unseen"."""

    text: str
    """What was noticed."""

    column: str | None = None
    """The column it is about; None if it is about rows, classes or several columns."""

    rows: int = 0
    """In how many rows; 0 where that is not known."""

    done: str = ""
    """What was done about it."""

    cure: str = ""
    """What to do about it: a call, or an option of the command line."""

    @property
    def severity(self) -> int:
        """3 if results may well be wrong, 2 if it is worth a look, 1 otherwise."""
        return _KINDS.get(self.kind, (1, ""))[0]

    def __str__(self) -> str:
        where = "" if self.column is None else f"{self.column}: "
        return where + "; ".join(filter(None, (self.text, self.done, self.cure)))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        return {**asdict(self), "severity": self.severity}


def arranged(notices: Iterable[Notice]) -> list[Notice]:
    """Return notices worst first; many columns with the same are one notice.

    Examples
    --------
    >>> many = [Notice("constant", "one value", f"x{k}") for k in range(4)]
    >>> for notice in arranged([*many, Notice("leak", "gives it away", "code")]):
    ...     print(notice)
    code: gives it away
    4 columns hold one value only: x0, x1, x2, x3
    """
    by_kind: dict[str, list[Notice]] = {}
    for notice in notices:
        by_kind.setdefault(notice.kind, []).append(notice)
    found: list[Notice] = []
    for kind, same in by_kind.items():
        columns = [notice.column for notice in same if notice.column is not None]
        if len(columns) > _MOST_OF_A_KIND:
            common = _KINDS.get(kind, (1, "are odd"))[1]
            text = f"{len(columns)} columns {common}: {listed(columns, 6)}"
            rows = max(notice.rows for notice in same)
            same = [Notice(kind, text, None, rows, same[0].done, same[0].cure)]
        found += same
    return sorted(found, key=lambda notice: (-notice.severity, -notice.rows))


def shape_notices(
    columns: Sequence[Any], has_pairs: bool, losses: Sequence[float] | None
) -> Iterator[Notice]:
    """Say what shapes of columns cost, and what goes with them."""
    names = listed(columns)
    if has_pairs:
        said = "is" if len(columns) == 1 else "are"
        text = f"{names} {said} joined to no other column, so that shapes hold"
        yield Notice("shape-pairs", f"{text} in all rows")
    free, shaped, error = losses or (0.0, 0.0, 0.0)
    if shaped - free > max(_MUCH * error, _LEAST_COST):
        text = f"shapes of {names} raise log-loss on held-out rows"
        cure = "look at the curves without `constraints`"
        yield Notice("shape-cost", f"{text} from {free:.4f} to {shaped:.4f}", cure=cure)


def in_lines(notices: Sequence[Notice], most: int = _MOST_LINES) -> list[str]:
    """Return a line for each notice, no more than fit a screen."""
    lines = [str(notice) for notice in notices[:most]]
    rest = len(notices) - len(lines)
    return [*lines, f"and {rest} more"] if rest else lines


def in_one_line(notices: Sequence[Notice]) -> str:
    """Return the worst in one line; empty where there are none.

    Examples
    --------
    >>> in_one_line([Notice("beyond", "1 row", c) for c in ("a", "b", "c", "d")])
    'noticed: a: 1 row. b: 1 row. c: 1 row. And 1 more (--json lists all)'
    """
    if not notices:
        return ""
    shown, rest = notices[:3], len(notices) - 3
    texts = [
        str(Notice(n.kind, n.text, n.column, done=n.done)).rstrip(".") for n in shown
    ]
    more = f". And {rest} more (--json lists all)" if rest > 0 else ""
    return f"noticed: {'. '.join(texts)}{more}"


def rows_have(n: int, of: int) -> str:
    """Return how many rows of how many, as a sentence begins.

    Examples
    --------
    >>> rows_have(1, 5), rows_have(3, 3)
    ('1 of 5 rows has', 'all 3 rows have')
    """
    if n == of:
        return f"all {of} rows have" if of > 1 else "the row has"
    return f"{n:,} of {counted(of, 'row')} {'has' if n == 1 else 'have'}"
