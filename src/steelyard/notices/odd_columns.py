"""What is odd about single columns of training rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

import numpy as np

from steelyard._common.arrays import Floats
from steelyard._common.one_cell import number_in
from steelyard.model.training import SAMPLE
from steelyard.notices.notice import Notice
from steelyard.notices.training_look import TrainingLook, alike, quoted
from steelyard.table.dates import dates_in
from steelyard.table.schema import FeatureSchema

# Values are compared with each other in columns of up to so many.
_MOST_VALUES = 1_000
# Text like numbers: so many values, and such a share of cells that begin with a digit.
_MANY_VALUES, _MOST_DIGITS = 20, 0.9
_DIGIT = re.compile(r"[-+(<>~$€£]{0,2}\s*\.?\d")
_KNOWN_SHARE = 0.05

# A code for missing values: farther from all other numbers than those are spread, and
# so often.
_GAP, _CODE_ROWS, _CODE_SHARE = 1.5, 5, 0.5
_MEASURED = 10


def column_notices_at_fit(look: TrainingLook) -> Iterator[Notice]:
    """Yield what is odd about each column."""
    known, n_used, _ = look.known
    is_known = (n_used > 1) & (known >= _KNOWN_SHARE * look.total)
    dates = dates_in(look.counts.schema.features)
    for column, views in enumerate(look.views):
        name, feature = look.names[column], look.counts.schema.features[views[0]]
        # Parts of dates are made here: of the days it is said.
        if dates.get(name, name) != name:
            continue
        # A quick word for most columns of a wide table.
        is_plain = feature.kind == "categorical" and feature.cells != "text"
        if is_plain and is_known[views[0]] and not feature.missing_is_value:
            continue
        if suspect := look.training.encoder.suspects.get(column):
            yield _identifier(look, name, suspect, feature.left_out)
        elif feature.kind == "categorical":
            yield from _of_categories(look, name, feature, views[0])
        elif look.ranges[column] is not None or feature.cells == "nothing":
            yield from _of_numbers(look, column)


def _identifier(look: TrainingLook, name: str, why: str, is_left_out: bool) -> Notice:
    text = f"{why}, as identifiers have: it tells nothing of new rows"
    done, cure = "", "leave it out (--drop)"
    if is_left_out:
        done, cure = "left out", "keep_identifiers=True (--keep-identifiers) keeps it"
    return Notice("identifier", text, name, look.n_table, done, cure)


def _of_categories(
    look: TrainingLook, name: str, feature: FeatureSchema, j: int
) -> Iterator[Notice]:
    rows = look.of_code(j)[1 : len(feature.values) + 1]
    n_used = look.known[1][j] - (feature.missing_is_value and rows.sum() > 0.0)
    yield from _empty_or_constant(look, name, look.known[0][j], n_used)
    if feature.cells != "text" or len(feature.values) > _MOST_VALUES:
        return
    if groups := alike(feature.values):
        n = round(sum(min(rows[feature.code_of[v] - 1] for v in g) for g in groups))
        text = f"values differ by case or blanks only: {quoted([*chain(*groups)])}"
        yield Notice("spelling", text, name, n, "", "write them alike")
    digits = [bool(_DIGIT.match(value)) for value in feature.values]
    if len(digits) > _MANY_VALUES and rows[digits].sum() >= _MOST_DIGITS * rows.sum():
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
    cure = "if they are numbers, write them without units and other marks"
    yield Notice("digits", text, name, round(rows.sum()), "taken as names", cure)


def _empty_or_constant(
    look: TrainingLook, name: str, known: float, n_values: int
) -> Iterator[Notice]:
    if n_values < 2:
        text = "holds one value only" if n_values else "holds nothing"
        cure = "leave it out (--drop)"
        yield Notice("constant", text, name, round(known), "without effect", cure)
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
        cure = f"if it stands for a missing value: --missing-values {name}={code:.10g}"
        yield Notice("missing-code", text, name, round(share * n), "", cure)
