"""What a notice is, how a list of them is ordered, and the rules for new rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches
from typing import Any

from steelyard._common.text import counted, listed
from steelyard.table.schema import FeatureSchema, TableSchema

# Severity of each kind, and what several columns of it have in common; 1 for others.
_KINDS = {
    "leak": (3, "give the class away"),
    "class-spelling": (3, ""),
    "number-target": (3, ""),
    "small-class": (3, ""),
    "sparse-rows": (3, ""),
    "digits": (3, "are text, although nearly all cells start with a digit"),
    "missing-code": (3, "have a number far from all others that occurs often"),
    "missing-column": (3, "are missing"),
    "renamed-column": (3, "are spelled differently than in training"),
    "other-kind": (3, "have other kinds of cells than in training"),
    "unknown-class": (3, ""),
    "seen-rows": (3, ""),
    "unseen": (3, "have values that training never saw"),
    "beyond": (3, "have numbers far outside the training range"),
    "all-missing": (3, "are missing throughout, but never in training"),
    "new-missing": (2, "have missing cells, but had none in training"),
    "spelling": (2, "have values that differ only in case or blanks"),
    "identifier": (2, "look like identifiers"),
    "row-groups": (2, "are named like identifiers, with a few rows for each value"),
    "near-leak": (2, ""),
    "no-errors": (2, ""),
    "same-columns": (2, ""),
    "repeated-rows": (2, ""),
    "shape-cost": (2, ""),
    "few-interactions": (2, ""),
    "opposed-curve": (1, "have curves that run against their own class rates"),
    "other-subset": (2, ""),
    "nearly-empty": (1, "are nearly empty"),
    "constant": (1, "have only one value"),
    "unknown-cells": (1, ""),
    "cut-points": (1, ""),
}

# More columns with the same are one notice.
_MAX_OF_A_KIND = 3
_MAX_LINES = 12

# Share of errors in held-out rows that is suspiciously small, also as a share of those
# without a model.
_MAX_ERRORS, _MAX_SHARE_OF_ERRORS = 0.001, 0.05

# Standard errors, and log-loss, from which on the cost of shapes is reported.
_MIN_ERRORS_OF_COST, _MIN_COST = 2.0, 0.002


@dataclass(frozen=True)
class Notice:
    """Something about rows that may make results wrong, and what to do about it.

    Examples
    --------
    >>> notice = Notice("unseen", "1 of 3 rows has 'Mars'", "island", 1, "ignored")
    >>> print(notice)
    island: 1 of 3 rows has 'Mars'; ignored
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
    """Number of rows; 0 if unknown."""

    done: str = ""
    """What was done about it."""

    advice: str = ""
    """What to do about it; calls and settings are in backquotes."""

    @property
    def severity(self) -> int:
        """3 if results may well be wrong, 2 if it is worth a look, 1 otherwise."""
        return _KINDS.get(self.kind, (1, ""))[0]

    def __str__(self) -> str:
        where = "" if self.column is None else f"{self.column}: "
        return where + "; ".join(filter(None, (self.text, self.done, self.advice)))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        return {**asdict(self), "severity": self.severity}


def arranged(notices: Iterable[Notice]) -> list[Notice]:
    """Return notices worst first; many columns with the same are one notice.

    >>> many = [Notice("constant", "one value", f"x{k}") for k in range(4)]
    >>> for notice in arranged([*many, Notice("leak", "gives it away", "code")]):
    ...     print(notice)
    code: gives it away
    4 columns have only one value: x0, x1, x2, x3
    """
    by_kind: dict[str, list[Notice]] = {}
    for notice in notices:
        by_kind.setdefault(notice.kind, []).append(notice)
    if by_kind.keys() & {"leak", "near-leak"}:  # which explain the lack of errors
        by_kind.pop("no-errors", None)
    joined: list[Notice] = []
    for kind, same in by_kind.items():
        columns = [notice.column for notice in same if notice.column is not None]
        if len(columns) > _MAX_OF_A_KIND:
            common = _KINDS.get(kind, (1, "are suspicious"))[1]
            text = f"{len(columns)} columns {common}: {listed(columns, 6)}"
            rows = max(notice.rows for notice in same)
            same = [Notice(kind, text, None, rows, same[0].done, same[0].advice)]
        joined += same
    return sorted(joined, key=lambda notice: (-notice.severity, -notice.rows))


def shape_notices(
    columns: Sequence[Any], has_interactions: bool, losses: Sequence[float] | None
) -> Iterator[Notice]:
    """Report what shapes of columns cost, and that these are in no interaction.

    ``losses`` are log-loss without and with shapes, and the standard error.
    """
    names = listed(columns)
    if has_interactions:
        verb = "takes" if len(columns) == 1 else "take"
        text = f"{names} {verb} part in no interaction, so the shape constraint always"
        yield Notice("shape-interactions", f"{text} holds")
    free, shaped, error = losses or (0.0, 0.0, 0.0)
    if shaped - free > max(_MIN_ERRORS_OF_COST * error, _MIN_COST):
        text = f"the shape constraints on {names} raise held-out log-loss "
        text += f"from {free:.4f} to {shaped:.4f}"
        advice = "compare with the curves without them"
        yield Notice("shape-cost", text, advice=advice)


def few_interactions_notice(
    n_asked: int, n_kept: int, was_compared: bool
) -> Iterator[Notice]:
    """Report that a model has fewer interactions than were asked for, and why.

    >>> [notice] = few_interactions_notice(12, 3, True)
    >>> notice.text.partition(":")[0]
    '12 interactions were requested, and 3 were kept'
    """
    if n_kept >= n_asked:
        return
    text = f"{counted(n_asked, 'interaction')} were requested, and {n_kept or 'none'} "
    text += f"{'was' if n_kept < 2 else 'were'} kept: "
    text += (
        "no other pair of columns has values or bins to combine"
        if was_compared
        else "a class has too few rows to compare interactions on"
    )
    yield Notice("few-interactions", text)


def no_error_notice(accuracy: float, majority: float, n_rows: int) -> Iterator[Notice]:
    """Report that held-out rows are predicted nearly without an error.

    Two columns can give the class away together, and neither of them alone.
    ``majority`` is the accuracy of the most frequent class, which has few errors if the
    others are rare.

    >>> [notice.text for notice in no_error_notice(1.0, 0.6, 500)]
    ['held-out rows are predicted with an accuracy of 100.0 %']
    >>> list(no_error_notice(0.9995, 0.999, 4000))
    []
    """
    errors = 1.0 - accuracy
    if errors <= _MAX_ERRORS and errors <= _MAX_SHARE_OF_ERRORS * (1.0 - majority):
        text = f"held-out rows are predicted with an accuracy of {100 * accuracy:.1f} %"
        advice = "are all columns really available beforehand? Are rows duplicates?"
        yield Notice("no-errors", text, None, n_rows, "", advice)


def in_lines(notices: Sequence[Notice]) -> list[str]:
    """Return a line for each notice, no more than fit a screen."""
    lines = [str(notice) for notice in notices[:_MAX_LINES]]
    rest = len(notices) - len(lines)
    return [*lines, f"and {rest} more"] if rest else lines


def in_one_line(notices: Sequence[Notice]) -> str:
    """Return the worst in one line; empty if there are none.

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


_AVERAGED = "predictions average over their possible values"


def unknown_cells_notice(n: int, n_rows: int) -> Iterator[Notice]:
    """Report in how many rows a model averages over unknown cells.

    >>> [notice.text for notice in unknown_cells_notice(2, 5)]
    ['2 of 5 rows have unknown cells']
    """
    if n:
        text = f"{rows_have(n, n_rows)} unknown cells"
        yield Notice("unknown-cells", text, None, n, _AVERAGED)


def rows_have(n: int, of: int) -> str:
    """Return how many rows of how many, as a sentence begins.

    >>> rows_have(1, 5), rows_have(3, 3)
    ('1 of 5 rows has', 'all 3 rows have')
    """
    if n == of:
        return f"all {of:,} rows have" if of > 1 else "the row has"
    return f"{n:,} of {of:,} rows {'has' if n == 1 else 'have'}"


# Of new rows a few are beyond the training rows in any case: those are reported that
# are far beyond, as a share of the range in training, or many.
_MIN_DISTANCE, _MIN_SHARE, _MIN_ROWS = 0.25, 0.1, 3
_MAX_NAMED = 3
# The nearest value is searched among at most this number.
_MAX_VALUES = 2_000
# Values that were never seen are counted separately, at most this number.
_MAX_UNSEEN = 1_000


@dataclass
class ColumnCheck:
    """A column of a model, and counts of its cells in new rows."""

    name: str
    feature: FeatureSchema
    """The first attribute that reads it."""

    ends: tuple[float, float] | None
    """Smallest and largest number of training, None if unknown."""

    had_missing: bool
    """Whether a training row had a missing cell here, or may have had."""

    is_averaged: bool = False
    """Whether the model averages over values never seen, and over missing cells if
    these have no code or number in their place."""

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
            if value in self.unseen or len(self.unseen) < _MAX_UNSEEN:
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
        """Return what is suspicious about the new cells."""
        return [*self._unseen(), *self._beyond(), *self._missing()]

    @property
    def averages_missing(self) -> bool:
        """Whether the model averages over missing cells."""
        feature = self.feature
        return self.is_averaged and not feature.missing_code and feature.fill is None

    def _missing(self) -> Iterator[Notice]:
        n, n_rows = self.n_missing, self.n_rows
        done = _AVERAGED if self.averages_missing else "ignored"
        if self.had_missing or n_rows < 2:
            return
        if n == n_rows:
            text = f"missing in all {n_rows:,} rows, but never in training"
            advice = "was the column lost or renamed?"
            yield Notice("all-missing", text, self.name, n, done, advice)
        elif n >= max(_MIN_ROWS, _MIN_SHARE * n_rows):
            text = f"{rows_have(n, n_rows)} no value; all training rows had one"
            advice = "train on rows with missing cells too"
            advice += (
                "" if self.averages_missing else ": predictions may be overconfident"
            )
            yield Notice("new-missing", text, self.name, n, done, advice)

    def _unseen(self) -> Iterator[Notice]:
        if not self.n_unseen:
            return
        values, names = list(map(str, self.feature.values)), []
        for value, _ in self.unseen.most_common(_MAX_NAMED):
            near = _nearest(str(value), values) if len(values) <= _MAX_VALUES else None
            names.append(f"{str(value)!r}" + (f" (near {near!r})" if near else ""))
        names += ["…"] * (len(self.unseen) > _MAX_NAMED)
        text = f"{rows_have(self.n_unseen, self.n_rows)} a value that training never "
        text += f"saw: {', '.join(names)}"
        advice = "correct the spelling, or retrain with such rows"
        done = _AVERAGED if self.is_averaged else "ignored"
        yield Notice("unseen", text, self.name, self.n_unseen, done, advice)

    def _beyond(self) -> Iterator[Notice]:
        if not self.n_beyond or self.ends is None:
            return
        low, high = self.ends
        far = _MIN_DISTANCE * (high - low)
        is_far = self.least < low - far or self.most > high + far
        n_numbers = self.n_rows - self.n_missing
        if is_far or self.n_beyond >= max(_MIN_ROWS, _MIN_SHARE * n_numbers):
            ends = [f"down to {self.least:.6g}"] * (self.least < low)
            ends += [f"up to {self.most:.6g}"] * (self.most > high)
            text = f"{rows_have(self.n_beyond, self.n_rows)} a number outside the "
            text += f"training range ({low:.6g} to {high:.6g}), {' and '.join(ends)}"
            advice = "check the unit and the decimal mark"
            yield Notice("beyond", text, self.name, self.n_beyond, "", advice)


def _nearest(text: str, texts: Iterable[str]) -> str | None:
    """Return the most similar of some texts, None if none is similar.

    >>> _nearest("biscoe", ["Biscoe", "Dream"]), _nearest("Mars", ["Biscoe", "Dream"])
    ('Biscoe', None)
    """
    by_lower = {entry.strip().lower(): entry for entry in texts}
    close = get_close_matches(text.strip().lower(), by_lower, 1, 0.7)
    return by_lower[close[0]] if close else None


def column_checks(
    schema: TableSchema,
    ranges: Sequence[Any],
    totals: Sequence[float],
    by_code: Sequence[float],
    value_odds: Sequence[float] | None = None,
) -> list[ColumnCheck]:
    """Return a check of each column by the ranges and counts of training.

    ``by_code`` is the weight of each code within each class, row by row; ``value_odds``
    are those of ``steelyard.model.marginal``.
    """
    checks: list[ColumnCheck] = []
    first, n_classes, total = 0, len(totals), sum(totals)
    for column, feature in enumerate(schema.features):
        if not feature.sides:
            name = f"x{column}" if feature.name is None else feature.name
            numbers = ranges[column]
            ends = None if numbers is None else (numbers.low, numbers.high)
            n_missing = total
            if feature.missing_is_value:
                pass
            elif feature.is_coded:
                n_missing = sum(by_code[first * n_classes : (first + 1) * n_classes])
            elif numbers is not None and numbers.weight > 0.0:
                n_missing = total - numbers.weight
            had_missing = n_missing > 1e-9 * total or feature.fill is not None
            is_averaged = value_odds is not None and value_odds[column] == 0.0
            checks.append(ColumnCheck(name, feature, ends, had_missing, is_averaged))
        first += feature.n_codes
    return checks


def column_notices(
    names: Sequence[str],
    expected: Sequence[str],
    advice_on_extra: str,
    averages: bool = False,
) -> tuple[list[Notice], dict[str, str]]:
    """Compare names of columns with those of a model, which may average over them.

    Returns notices of columns that are missing, renamed or not used, and by column of
    the model the name that it has in the table.
    """
    matched = {name: name for name in expected if name in set(names)}
    others = [name for name in names if name not in matched]
    plain = {name.strip().casefold(): name for name in others}
    notices = []
    for name in expected:
        if name in matched:
            continue
        other = plain.get(name.strip().casefold())
        if other is not None:
            matched[name] = other
            text, advice = f"is called {other!r} here", f"rename it to {name!r}"
            notices.append(Notice("renamed-column", text, name, advice=advice))
            continue
        near = _nearest(name, others)
        advice = f"is it {near!r}?" if near else "add it, with empty cells if unknown"
        advice += f": {_AVERAGED}" if averages and not near else ""
        notices.append(Notice("missing-column", "is missing", name, advice=advice))
    extra = [name for name in others if name not in matched.values()]
    if extra:
        text = f"columns that the model does not use: {listed(extra, 6)}"
        notices.append(Notice("unused-column", text, advice=advice_on_extra))
    return notices, matched


def all_notices(
    checks: Iterable[ColumnCheck], others: Iterable[Notice] = ()
) -> list[Notice]:
    """Return what is suspicious about new rows, worst first."""
    return arranged(
        [*others, *(notice for check in checks for notice in check.notices())]
    )
