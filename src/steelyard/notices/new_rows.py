"""The rules for new rows, by what a model knows of its columns.

With the standard library alone: small files are checked without arrays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from steelyard._common.text import listed
from steelyard.notices.notice import Notice, arranged, rows_have
from steelyard.table.schema import FeatureSchema, TableSchema

# Of new rows a few are beyond the training rows in any case: those are said that are
# far beyond, by the range of the training rows, or many.
_FAR, _MANY = 0.25, 0.1
_MANY_ROWS = 3
_NAMED = 3
# Among so many values the nearest is looked for.
_MOST_VALUES = 2_000
# So many values that were never seen are told apart.
_MOST_UNSEEN = 1_000


@dataclass
class ColumnCheck:
    """A column of a model, and what new rows hold in it."""

    name: str
    feature: FeatureSchema
    """The first attribute that reads it."""

    ends: tuple[float, float] | None
    """Smallest and largest number of training; None where they are not known."""

    had_missing: bool
    """Whether a training row had a missing cell here, as far as is known."""

    n_rows: int = 0
    n_missing: int = 0
    n_unseen: int = 0
    unseen: Counter[Any] = field(default_factory=Counter)
    n_beyond: int = 0
    least: float = float("inf")
    most: float = float("-inf")

    def add_values(
        self, n_rows: int, n_missing: int, unseen: Mapping[Any, int]
    ) -> None:
        """Count categories, of which some were never seen."""
        self.n_rows += n_rows
        self.n_missing += n_missing
        for value, n in unseen.items():
            self.n_unseen += n
            if value in self.unseen or len(self.unseen) < _MOST_UNSEEN:
                self.unseen[value] += n

    def add_numbers(
        self, n_rows: int, n_missing: int, least: float, most: float, n_beyond: int
    ) -> None:
        """Count numbers, of which some are below or above the training rows."""
        self.n_rows += n_rows
        self.n_missing += n_missing
        self.n_beyond += n_beyond
        self.least, self.most = min(self.least, least), max(self.most, most)

    def notices(self) -> list[Notice]:
        """Return what is odd about the new cells."""
        found = self._unseen(), self._beyond(), self._missing()
        return [notice for notice in found if notice is not None]

    def _missing(self) -> Notice | None:
        n, n_rows = self.n_missing, self.n_rows
        if self.had_missing or n_rows < 2:
            return None
        if n == n_rows:
            text = f"missing in all {n_rows:,} rows, and in none of training"
            cure = "was the column lost or renamed?"
            return Notice("all-missing", text, self.name, n, "left out", cure)
        if n < max(_MANY_ROWS, _MANY * n_rows):
            return None
        text = f"{rows_have(n, n_rows)} no value, and all of training had one"
        cure = "learn from rows with missing cells too: answers may be too sure"
        return Notice("new-missing", text, self.name, n, "left out", cure)

    def _unseen(self) -> Notice | None:
        if not self.n_unseen:
            return None
        known = list(map(str, self.feature.values))
        names = []
        for value, _ in self.unseen.most_common(_NAMED):
            near = nearest(str(value), known) if len(known) <= _MOST_VALUES else None
            names.append(f"{str(value)!r}" + (f" (near {near!r})" if near else ""))
        more = ", …" if len(self.unseen) > _NAMED else ""
        text = f"{rows_have(self.n_unseen, self.n_rows)} a value that training never "
        text += f"saw: {', '.join(names)}{more}"
        cure = "correct the spelling, or fit again with such rows"
        return Notice("unseen", text, self.name, self.n_unseen, "left out", cure)

    def _beyond(self) -> Notice | None:
        if not self.n_beyond or self.ends is None:
            return None
        low, high = self.ends
        far = _FAR * (high - low)
        is_far = self.least < low - far or self.most > high + far
        many = max(_MANY_ROWS, _MANY * (self.n_rows - self.n_missing))
        if not is_far and self.n_beyond < many:
            return None
        held = [f"down to {self.least:.6g}"] * (self.least < low)
        held += [f"up to {self.most:.6g}"] * (self.most > high)
        text = f"{rows_have(self.n_beyond, self.n_rows)} a number beyond those of "
        text += f"training ({low:.6g} to {high:.6g}), {' and '.join(held)}"
        cure = "check unit and decimal mark"
        return Notice("beyond", text, self.name, self.n_beyond, "", cure)


def nearest(text: str, known: Iterable[str]) -> str | None:
    """Return the known text that is most like another, None if none is.

    Examples
    --------
    >>> nearest("biscoe", ["Biscoe", "Dream"]), nearest("Mars", ["Biscoe", "Dream"])
    ('Biscoe', None)
    """
    by_lower = {entry.strip().lower(): entry for entry in known}
    close = get_close_matches(text.strip().lower(), by_lower, 1, 0.7)
    return by_lower[close[0]] if close else None


def column_checks(
    schema: TableSchema,
    ranges: Sequence[Any] | None,
    totals: Sequence[float],
    by_code: Sequence[float],
) -> list[ColumnCheck]:
    """Return a check of each column, by what training counted.

    Parameters
    ----------
    schema : TableSchema
        The attributes.
    ranges : sequence of NumberRange or None
        Where the numbers of each column lie; None where that is not known.
    totals : sequence of K float
        Weight of each class.
    by_code : sequence of V * K float
        Weight of each code within each class, row by row.
    """
    checks: dict[int, ColumnCheck] = {}
    first, n_classes, total = 0, len(totals), sum(totals)
    for column, feature in zip(schema.columns, schema.features, strict=True):
        if column not in checks and not feature.sides:
            name = f"x{column}" if feature.name is None else feature.name
            where = None if ranges is None else ranges[column]
            ends = None if where is None else (where.low, where.high)
            n_missing = total
            if feature.missing_is_value:
                pass
            elif feature.is_coded:
                n_missing = sum(by_code[first * n_classes : (first + 1) * n_classes])
            elif where is not None and where.weight > 0.0:
                n_missing = total - where.weight
            had_missing = n_missing > 1e-9 * total or feature.fill is not None
            checks[column] = ColumnCheck(name, feature, ends, had_missing)
        first += feature.n_codes
    return [checks[column] for column in sorted(checks)]


def column_notices(
    names: Sequence[str], expected: Sequence[str], is_used: str
) -> tuple[list[Notice], dict[str, str]]:
    """Compare names of columns with those of a model.

    Returns
    -------
    notices : list of Notice
        Of columns that are missing, renamed or not used.
    found : dict
        Name of each column of the model that is there, and how it is called there.
    """
    found = {name: name for name in expected if name in set(names)}
    others = [name for name in names if name not in found]
    plain = {name.strip().casefold(): name for name in others}
    notices = []
    for name in expected:
        if name in found:
            continue
        other = plain.get(name.strip().casefold())
        if other is not None:
            found[name] = other
            text = f"is called {other!r} here"
            cure = f"rename it to {name!r}"
            notices.append(Notice("renamed-column", text, name, cure=cure))
            continue
        near = nearest(name, others)
        cure = f"is it {near!r}?" if near else "add it, empty where it is not known"
        notices.append(Notice("missing-column", "is missing", name, cure=cure))
    extra = [name for name in others if name not in found.values()]
    if extra:
        text = f"columns that the model does not use: {listed(extra, 6)}"
        notices.append(Notice("unused-column", text, cure=is_used))
    return notices, found


def all_notices(
    checks: Iterable[ColumnCheck], others: Iterable[Notice] = ()
) -> list[Notice]:
    """Return what is odd about new rows, worst first."""
    found = [notice for check in checks for notice in check.notices()]
    return arranged([*others, *found])
