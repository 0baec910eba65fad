"""The rules at fit, by what is counted already."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import chain, compress
from typing import Any

import numpy as np

from steelyard.model.training import SAMPLE, TrainingSet
from steelyard.notices import Notice, arranged, rows_have
from steelyard.notices.check import RowHashes, row_hashes, sketch_of
from steelyard.notices.training_look import (
    FEW,
    TrainingLook,
    alike,
    column_notices_at_fit,
    quoted,
)
from steelyard.proba.counts import Counts
from steelyard.table.labels import is_measured
from steelyard.table.summary.whole_column import evenly

# A class of so few rows is a slip of the pen as often as a class.
_FEW_ROWS = 2
# Classes so unequal, and a smallest one so small a share, need other measures.
_RATIO, _SHARE = 100.0, 0.01

# A column gives the class away if its codes do in nearly all rows, with many rows for
# each code, and no honest column beside it comes near. Petal lengths of irises are
# right in 95 % of rows, the odour of mushrooms in 98.5 %.
_PURE, _ROWS_OF_CODE, _ERROR_SHARE = 0.995, 10, 0.02
# A measurement that tells classes apart, as petals tell setosa, has many values.
_VALUES = 5
_NEXT_ERRORS = 5.0
_MOST_LEAKS = 2

# Rows with at most so many known cells among columns of which most rows know more.
_FEW_CELLS, _USUAL_CELLS, _RARE = 1, 4, 0.02

# Rows are looked at one by one in tables up to so long, in longer ones evenly spaced;
# a matrix that is not copied is counted in less time than its rows are hashed.
_MOST_ROWS, _MOST_OF_MATRIX = 100_000, 2_048
_REPEATED, _MEASURE, _BY_CHANCE = 0.05, 0.05, 5.0


def notices_at_fit(
    training: TrainingSet, counts: Counts, n_rows: int, suspects: Mapping[int, str]
) -> tuple[list[Notice], RowHashes | None]:
    """Return what is odd about training rows, worst first, and a sketch of the rows.

    There is no sketch of rows that are not in memory. Those of a long matrix may be
    some of its ``n_rows``.
    """
    look = TrainingLook(training, counts, n_rows, suspects)
    notices = [*_class_notices(look), *column_notices_at_fit(look), *_leaks(look)]
    if look.table is None:
        return arranged(notices), None
    sketch, n_repeated = sketch_of(_hashes(look), n_rows)
    if sketch.n_hashed == sketch.n_rows:
        notices += _row_notices(look, n_repeated)
    return arranged(notices), sketch


# ----------------------------------------------------------------------------- classes


def _class_notices(look: TrainingLook) -> Iterator[Notice]:
    classes, rows = look.training.classes, look.counts.by_class
    names = [str(label) for label in classes.tolist()]
    if is_measured(classes):
        text = f"the target holds {len(names)} whole numbers, each taken for a class"
        cure = "cut them into classes (--bins 5), or turn them into text"
        yield Notice("number-target", text, None, look.n_rows, "", cure)
    if joined := look.training.joined:
        cure = "measures that compare with y need y.str.strip()"
        yield Notice("class-spelling", joined, None, 0, "taken as one class", cure)
    if groups := alike(names):
        n = round(sum(min(rows[names.index(name)] for name in g) for g in groups))
        text = f"classes differ by case or blanks only: {quoted([*chain(*groups)])}"
        yield Notice("class-spelling", text, None, n, "", "write them alike")
    if look.training.sample_weight is not None:
        return
    few = [k for k, n in enumerate(rows) if 0 < n <= _FEW_ROWS]
    if few:
        shown = quoted([names[k] for k in few])
        text = f"{shown} {'is a class' if len(few) == 1 else 'are classes'} of one or "
        text += "two rows, too few to learn from or to check by"
        cure = "leave such rows out, as footers and totals; or join classes"
        yield Notice("small-class", text, None, round(rows[few].sum()), "", cure)
    usual = rows[rows > _FEW_ROWS]
    if len(usual) > 1 and usual.min() < min(_SHARE * rows.sum(), usual.max() / _RATIO):
        k = int(np.flatnonzero(rows == usual.min())[0])
        text = f"class {names[k]!r} has {rows[k]:.0f} of {look.n_rows:,} rows, and the "
        text += f"largest {usual.max():,.0f}"
        cure = "look at balanced accuracy, or set class_weight='balanced'"
        yield Notice("unequal-classes", text, None, round(rows[k]), "", cure)


# ------------------------------------------------------------------------------- leaks


def _leaks(look: TrainingLook) -> Iterator[Notice]:
    """Say which columns give the class away: the codes alone do, in nearly all rows."""
    # Pairs of columns come after all columns.
    by_class, n_plain = look.counts.by_class, look.counts.schema.n_plain
    known, n_used, right = (own[:n_plain] for own in look.known)
    share = by_class.max() / by_class.sum()
    # Of single rows any code is right.
    is_dense = (known >= look.total / 2) & (n_used * _ROWS_OF_CODE <= known)
    wrong = np.where(is_dense, 1.0 - right / np.maximum(known, 1.0), 1.0)
    is_pure = wrong <= min(1.0 - _PURE, _ERROR_SHARE * (1.0 - float(share)))
    columns = np.array(look.counts.schema.columns[:n_plain])
    pure = {int(columns[j]): j for j in np.flatnonzero(is_pure)[::-1]}
    honest = wrong[~np.isin(columns, [*pure])].min(initial=1.0)
    found = {
        column: j
        for column, j in pure.items()
        if look.n_values(column, int(n_used[j])) <= _VALUES * len(by_class)
    }
    if not 0 < len(found) <= _MOST_LEAKS or len(found) == len(look.views):
        return
    if honest < _NEXT_ERRORS * max(wrong[j] for j in found.values()):
        return
    for column, j in sorted(found.items()):
        rows = rows_have(round(right[j]), round(known[j]))
        text = f"alone gives the class away: {rows} the class that its value says"
        cure = "is it known before the class is? If not, leave it out (--drop)"
        yield Notice("leak", text, look.names[column], round(right[j]), "", cure)


# -------------------------------------------------------------------------------- rows


def _hashes(look: TrainingLook) -> Any:
    """Hash all rows, or of a long table some."""
    table, codes = look.table, look.training.codes
    assert table is not None
    most = SAMPLE if table.matrix is None else _MOST_OF_MATRIX
    rows = None
    if table.n_rows > (_MOST_ROWS if table.matrix is None else _MOST_OF_MATRIX):
        rows = evenly(table.n_rows, most)
        codes = codes.take(rows)

    def content(column: int) -> Any:
        first = look.views[column][0]
        if codes.schema.features[first].kind == "categorical":
            return codes.column(first)
        return look.numbers(column, rows)

    return row_hashes(map(content, range(table.n_columns)))


def _row_notices(look: TrainingLook, n_repeated: int) -> Iterator[Notice]:
    yield from _sparse_rows(look)
    n_rows = look.training.n_rows
    if n_repeated >= _REPEATED * n_rows and _are_copies(look, n_repeated):
        text = f"{n_repeated:,} of {n_rows:,} rows occur more than once, and folds "
        text += "share them: measures may be too good"
        cure = "drop_duplicates() before splitting, if they are not different cases"
        yield Notice("repeated-rows", text, None, n_repeated, "", cure)


def _are_copies(look: TrainingLook, n_repeated: int) -> bool:
    """Whether so many equal rows are no chance.

    A column needs many different numbers; and columns that were independent, which have
    the product of their chances to be equal, would give far fewer equal rows.
    """
    chances = []
    for column, where in enumerate(look.ranges):
        if where is None:
            rows = look.of_code(look.views[column][0])
        else:
            numbers = look.sampled(column, FEW)
            rows = np.unique(numbers, return_counts=True)[1].astype(np.float64)
        chances.append(float(((rows / max(rows.sum(), 1.0)) ** 2).sum()) or 1.0)
    is_measure = [where is not None for where in look.ranges]
    least = min(compress(chances, is_measure), default=1.0)
    expected = look.training.n_rows**2 * math.prod(chances)
    return least < _MEASURE and n_repeated > _BY_CHANCE * expected


def _sparse_rows(look: TrainingLook) -> Iterator[Notice]:
    """Say which rows have hardly a known cell where others have many."""
    schema = look.counts.schema
    columns = [j for j in range(len(look.views)) if j not in schema.left_out]
    firsts = [look.views[column][0] for column in columns]
    missing = sorted(map(look.n_missing, columns))
    # A row of one cell lacks all columns but one.
    if len(firsts) <= _USUAL_CELLS or missing[1] <= 0.0:
        return
    codes, known = look.training.codes, np.zeros(look.training.n_rows, np.int64)
    for j in firsts:
        if schema.features[j].is_coded:
            known += codes.column(j) > 0
        else:
            k = int(np.flatnonzero(schema.gaussian == j)[0])
            known += ~np.isnan(codes.number_column(k))
    sparse = known <= _FEW_CELLS
    n = int(sparse.sum())
    if 0 < n <= max(_RARE * len(known), 1.0) and np.median(known) >= _USUAL_CELLS:
        most = "one known cell" if known[sparse].any() else "no known cell"
        text = f"{rows_have(n, len(known))} {most}, as footers have"
        last = int(np.flatnonzero(sparse)[-1]) + 1
        cure = f"leave such rows out; the last is row {last}"
        yield Notice("sparse-rows", text, None, n, "", cure)
