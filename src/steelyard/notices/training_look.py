"""What is odd about single columns of training rows, and what several rules ask."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

import numpy as np

from steelyard._common.arrays import Floats, Ints
from steelyard._common.one_cell import DATE_TEXT, number_in
from steelyard._common.text import listed
from steelyard.model.training import SAMPLE, TrainingSet
from steelyard.notices.notice import Notice
from steelyard.proba.counts import Counts
from steelyard.proba.encodings import Encodings
from steelyard.table.codes import FeatureTable
from steelyard.table.dates import dates_in
from steelyard.table.frames import Table
from steelyard.table.schema import FeatureSchema
from steelyard.table.summary.whole_column import NumberRange, evenly

LEAVE_OUT = "leave it out (`X.drop(columns=...)`)"
"""Advice on a column; the command line has an option by the name of the call."""

FEW = 512
"""Rows of a column that stand for all of them where they are compared."""


@dataclass
class TrainingLook:
    """Training rows, and what several rules ask of them."""

    training: TrainingSet
    """All rows, or some of a long table."""

    counts: Counts
    n_table: int
    """Rows of the whole table."""

    suspects: Mapping[int, str]
    """Columns that look like identifiers, and why."""

    _numbers: dict[int, Floats] = field(default_factory=dict)

    @cached_property
    def table(self) -> Table | None:
        """The columns, where they are in memory."""
        table, place = self.training.table, self.training.place
        return table if isinstance(table, Table) and place.is_here else None

    @cached_property
    def encodings(self) -> Encodings:
        """The encodings of each column: of fine bins there are few rows in each."""
        return Encodings.separate(self.counts.schema)

    @cached_property
    def by_encoding(self) -> Counts:
        """Counts by the codes of encodings."""
        return self.encodings.counts(self.counts)

    @cached_property
    def names(self) -> list[str]:
        """Names of the columns."""
        schema = self.counts.schema
        return schema.names or [f"x{j}" for j in range(schema.n_columns)]

    @cached_property
    def total(self) -> float:
        """Weight of all rows."""
        return self.counts.total

    @property
    def n_rows(self) -> int:
        """Rows as they are said, the weight of all where they have weights."""
        return round(self.total)

    @cached_property
    def ranges(self) -> list[NumberRange | None]:
        """Where the numbers of each column lie."""
        return self.training.encoder.ranges_

    def n_missing(self, column: int) -> float:
        """Return the weight of the missing cells of a column."""
        where = self.ranges[column]
        if self.counts.schema.features[column].is_coded:
            return float(self.of_code(column)[0])
        return self.total - (0.0 if where is None else where.weight)

    def numbers(self, column: int, rows: Ints | None) -> Floats:
        """Return the numbers of a column in memory, in some rows."""
        assert self.table is not None
        if self.table.matrix is None:
            if column not in self._numbers:
                self._numbers[column] = self.table.columns[column].numbers()
            numbers = self._numbers[column]
            return numbers if rows is None else numbers[rows]
        chosen = slice(None) if rows is None else rows
        return self.table.matrix[chosen, column].astype(np.float64)

    @cached_property
    def by_code(self) -> Floats:
        """Weight of each code."""
        return self.counts.by_code.sum(axis=1)

    def of_code(self, j: int) -> Floats:
        """Return the weight of each code of an attribute, that of missing first."""
        offsets = self.counts.schema.offsets
        return self.by_code[offsets[j] : offsets[j + 1]]

    @cached_property
    def known(self) -> tuple[Floats, Ints, Floats]:
        """Of each encoding the weight of known cells, their codes, and right rows.

        A row is right where its class is the most frequent one of its code.
        """
        counts = self.by_encoding
        of_class = counts.by_code.copy()
        of_class[counts.schema.first_codes] = 0.0
        table = FeatureTable(of_class, counts.schema.offsets)
        rows = of_class.sum(axis=1)
        is_used, most = (rows > 0.0).astype(np.int64), of_class.max(axis=1)
        return table.collect(rows), table.collect(is_used), table.collect(most)

    def sampled(self, column: int, most: int = SAMPLE) -> Floats:
        """Return some of the known numbers of a column."""
        numbers = self.numbers(column, evenly(self.training.n_rows, most))
        return numbers[~np.isnan(numbers)]

    def n_values(self, column: int, n_codes: int) -> int:
        """Return how many values a column of so many codes has, in some rows."""
        if self.table is None or self.ranges[column] is None:
            return n_codes
        return len(np.unique(self.sampled(column, FEW)))


def alike(values: Sequence[str]) -> list[list[str]]:
    """Return groups of texts that differ by blanks, or as people write in capitals.

    A capital within a word is meant: "hAd" is another vowel than "had".

    Examples
    --------
    >>> alike(["Adelie", "adelie", "hAd", "had", "a  b", "a b"])
    [['Adelie', 'adelie'], ['a  b', 'a b']]
    """
    groups: dict[str, list[str]] = {}
    for value in values:
        plain = " ".join(value.split())
        lower = plain.lower()
        usual = (lower, plain.upper(), plain.capitalize(), plain.title())
        groups.setdefault(lower if plain in usual else plain, []).append(value)
    return [group for group in groups.values() if len(group) > 1]


def quoted(names: Sequence[str]) -> str:
    """Return the first few names, in quotes."""
    return listed(map(repr, names), 4)


# Values are compared with each other in columns of up to so many.
_MAX_VALUES = 1_000
# Text like numbers: so many values, and such a share of cells that begin with a digit.
_MANY_VALUES, _MAX_DIGITS = 20, 0.9
_DIGIT = re.compile(r"[-+(<>~$€£]{0,2}\s*\.?\d")
_KNOWN_SHARE = 0.05

# A code for missing values: farther from all other numbers than those are spread, and
# so often.
_GAP, _CODE_ROWS, _CODE_SHARE = 1.5, 5, 0.5
_MEASURED = 10


def column_notices_at_fit(look: TrainingLook) -> Iterator[Notice]:
    """Yield what is odd about each column."""
    first = np.flatnonzero(look.encodings.is_first)
    known, n_used, _ = (own[first] for own in look.known)
    is_known = (n_used > 1) & (known >= _KNOWN_SHARE * look.total)
    dates = dates_in(look.counts.schema.features)
    for column, name in enumerate(look.names):
        feature = look.counts.schema.features[column]
        # Parts of dates are made here: of the days it is said.
        if dates.get(name, name) != name:
            continue
        # A quick word for most columns of a wide table.
        is_plain = feature.kind == "categorical" and feature.cells != "text"
        if is_plain and is_known[column] and not feature.missing_is_value:
            continue
        if suspect := look.suspects.get(column):
            yield _identifier(look, name, suspect, feature.left_out)
        elif feature.kind == "categorical":
            given = known[column], n_used[column]
            yield from _of_categories(look, name, feature, column, *given)
        elif look.ranges[column] is not None or feature.cells == "nothing":
            yield from _of_numbers(look, column)


def _identifier(look: TrainingLook, name: str, why: str, is_left_out: bool) -> Notice:
    text = f"{why}, as identifiers have: it tells nothing of new rows"
    done, advice = "", LEAVE_OUT
    if is_left_out:
        done, advice = "left out", "`keep_identifiers=True` keeps it"
    return Notice("identifier", text, name, look.n_table, done, advice)


def _of_categories(
    look: TrainingLook,
    name: str,
    feature: FeatureSchema,
    column: int,
    known: float,
    n_used: int,
) -> Iterator[Notice]:
    rows = look.of_code(column)[1 : len(feature.values) + 1]
    n_used -= feature.missing_is_value and bool(rows.sum() > 0.0)
    yield from _empty_or_constant(look, name, known, n_used)
    if feature.cells != "text" or len(feature.values) > _MAX_VALUES:
        return
    if groups := alike(feature.values):
        n = round(sum(min(rows[feature.code_of[v] - 1] for v in g) for g in groups))
        text = f"values differ by case or blanks only: {quoted([*chain(*groups)])}"
        yield Notice("spelling", text, name, n, "", "write them alike")
    digits = [bool(_DIGIT.match(value)) for value in feature.values]
    if len(digits) > _MANY_VALUES and rows[digits].sum() >= _MAX_DIGITS * rows.sum():
        yield from _like_numbers(look, name, feature, rows[digits])


def _like_numbers(
    look: TrainingLook, name: str, feature: FeatureSchema, rows: Floats
) -> Iterator[Notice]:
    """Say that text looks like numbers, unless it is codes or declared as names."""
    if len({*map(len, feature.values)}) == 1 and feature.values[0].isalnum():
        return
    odd = [value for value in feature.values if number_in(value) is None]
    column = look.names.index(name)
    if not odd and look.table and look.table.columns[column].declared is not None:
        return
    shown = [*odd, *feature.values][:2]
    text = f"text of {len(feature.values)} values, nearly all of which begin with a "
    text += f"digit, such as {' and '.join(map(repr, shown))}"
    advice = "if they are numbers, write them without units and other marks"
    if all(map(DATE_TEXT.fullmatch, shown)):
        advice = "if they are dates, make them so (`pandas.to_datetime(...)`)"
    yield Notice("digits", text, name, round(rows.sum()), "taken as names", advice)


def _empty_or_constant(
    look: TrainingLook, name: str, known: float, n_values: int
) -> Iterator[Notice]:
    if n_values < 2:
        text = "holds one value only" if n_values else "holds nothing"
        yield Notice("constant", text, name, round(known), "without effect", LEAVE_OUT)
    elif known < _KNOWN_SHARE * look.total:
        text = f"known in {known:.0f} of {look.n_rows:,} rows"
        yield Notice("nearly-empty", text, name, round(known), "", "is that so?")


def _of_numbers(look: TrainingLook, column: int) -> Iterator[Notice]:
    name, where = look.names[column], look.ranges[column]
    if where is None or where.low == where.high:
        known = 0.0 if where is None else where.weight
        yield from _empty_or_constant(look, name, known, 0 if where is None else 1)
        return
    yield from _empty_or_constant(look, name, where.weight, 2)
    if look.table is None or not where.histogram:
        return
    bars = where.histogram
    # Where nothing is beside the outermost bar, its numbers may be far from others.
    if any(
        bars[end] <= _CODE_SHARE
        and bars[end] * where.weight >= _CODE_ROWS
        and not bars[beside]
        for end, beside in ((0, 1), (-1, -2))
    ):
        yield from _missing_code(look, column)


def _missing_code(look: TrainingLook, column: int) -> Iterator[Notice]:
    numbers, where = look.sampled(column), look.ranges[column]
    assert where is not None
    share = max(look.n_table / SAMPLE, 1.0)
    for code, others in (
        (where.low, numbers[numbers > where.low]),
        (where.high, numbers[numbers < where.high]),
    ):
        n, known = len(numbers) - len(others), len(numbers)
        if n < _CODE_ROWS or n > _CODE_SHARE * known or not len(others):
            continue
        quarters = np.quantile(others, [0.25, 0.75])
        gap = float(np.abs(others - code).min())
        spread = float(quarters[1] - quarters[0])
        is_far = spread > 0.0 and gap >= _GAP * spread
        if not is_far or len(np.unique(others)) < _MEASURED:
            continue
        about = "" if share == 1.0 else "about "
        text = f"{code:.10g} occurs in {about}{round(share * n):,} rows, and all other "
        text += f"numbers are from {others.min():.6g} to {others.max():.6g}"
        name = look.names[column]
        advice = "if it stands for a missing value, read it as one: "
        advice += f"`missing_values={[f'{name}={code:.10g}']!r}`"
        yield Notice("missing-code", text, name, round(share * n), "", advice)
