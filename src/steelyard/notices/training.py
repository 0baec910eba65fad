"""The rules at fit, by what is counted already."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import chain, compress
from typing import Any

import numpy as np

from steelyard._common.arrays import Ints
from steelyard._common.text import listed
from steelyard.model.training import SAMPLE, TrainingSet
from steelyard.notices.check import RowHashes, row_hashes, sketch_of
from steelyard.notices.notice import Notice, arranged, rows_have
from steelyard.notices.training_look import (
    FEW,
    LEAVE_OUT,
    TrainingLook,
    alike,
    column_notices_at_fit,
    quoted,
)
from steelyard.proba.counts import Counts
from steelyard.table.codes import FeatureTable
from steelyard.table.dates import dates_in
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
_MAX_LEAKS = 2

# A column nearly gives the class away if its area under the ROC curve, the mean over
# classes against the others, is so large, and that of no other column comes near.
# Of 116 tables of the literature that is so of the odour of mushrooms, and of TSH,
# by which thyroid disease is diagnosed.
_MIN_AREA, _MIN_GAP_BELOW_ONE = 0.96, 0.01
_KNOWN = f"is it known before the class is? If not, {LEAVE_OUT}"
# Classes that are looked at one by one.
_MAX_CLASSES = 50

# Rows in which columns are compared, and how many of them must differ from the most
# frequent value.
_MAX_COMPARED, _MIN_VARYING = 100_000, 10

# Rows with at most so many known cells among columns of which most rows know more.
_FEW_CELLS, _USUAL_CELLS, _RARE = 1, 4, 0.02

# Rows are looked at one by one in tables up to so long, in longer ones evenly spaced;
# a matrix that is not copied is counted in less time than its rows are hashed.
_MAX_ROWS, _MAX_OF_MATRIX = 100_000, 2_048
_REPEATED, _MEASURE, _BY_CHANCE = 0.05, 0.05, 5.0


def notices_at_fit(
    training: TrainingSet, counts: Counts, n_rows: int, suspects: Mapping[int, str]
) -> tuple[list[Notice], RowHashes | None]:
    """Return what is odd about training rows, worst first, and a sketch of the rows.

    There is no sketch of rows that are not in memory. Those of a long matrix may be
    some of its ``n_rows``.
    """
    look = TrainingLook(training, counts, n_rows, suspects)
    leaks = [*_leaks(look)] or [*_near_leaks(look)]
    notices = [*_class_notices(look), *column_notices_at_fit(look), *leaks]
    if look.table is None:
        return arranged(notices), None
    notices += _same_columns(look)
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
        advice = "cut them into classes as they are read (`bins=5`), or make them text"
        yield Notice("number-target", text, None, look.n_rows, "", advice)
    if joined := look.training.joined:
        advice = "measures that compare with y need it so too (`y.str.strip()`)"
        yield Notice("class-spelling", joined, None, 0, "taken as one class", advice)
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
        advice = "leave such rows out, as footers and totals; or join classes"
        yield Notice("small-class", text, None, round(rows[few].sum()), "", advice)
    usual = rows[rows > _FEW_ROWS]
    if len(usual) > 1 and usual.min() < min(_SHARE * rows.sum(), usual.max() / _RATIO):
        k = int(np.flatnonzero(rows == usual.min())[0])
        text = f"class {names[k]!r} has {rows[k]:.0f} of {look.n_rows:,} rows, and the "
        text += f"largest {usual.max():,.0f}"
        advice = "look at balanced accuracy, or try `class_weight='balanced'`"
        yield Notice("unequal-classes", text, None, round(rows[k]), "", advice)


# ------------------------------------------------------------------------------- leaks


def _leaks(look: TrainingLook) -> Iterator[Notice]:
    """Say which columns give the class away: the codes alone do, in nearly all rows."""
    # Interactions come after all columns.
    by_class, n_columns = look.counts.by_class, look.counts.schema.n_columns
    columns = look.encodings.columns
    columns = columns[columns < n_columns]
    known, n_used, right = (own[: len(columns)] for own in look.known)
    share = by_class.max() / by_class.sum()
    # Of single rows any code is right.
    is_dense = (known >= look.total / 2) & (n_used * _ROWS_OF_CODE <= known)
    wrong = np.where(is_dense, 1.0 - right / np.maximum(known, 1.0), 1.0)
    is_pure = wrong <= min(1.0 - _PURE, _ERROR_SHARE * (1.0 - float(share)))
    pure = {int(columns[j]): j for j in np.flatnonzero(is_pure)[::-1]}
    honest = wrong[~np.isin(columns, [*pure])].min(initial=1.0)
    found = {
        column: j
        for column, j in pure.items()
        if look.n_values(column, int(n_used[j])) <= _VALUES * len(by_class)
    }
    if not 0 < len(found) <= _MAX_LEAKS or len(found) == n_columns:
        return
    if honest < _NEXT_ERRORS * max(wrong[j] for j in found.values()):
        return
    for column, j in sorted(found.items()):
        rows = rows_have(round(right[j]), round(known[j]))
        text = f"alone gives the class away: {rows} the class that its value says"
        yield Notice("leak", text, look.names[column], round(right[j]), "", _KNOWN)


def _near_leaks(look: TrainingLook) -> Iterator[Notice]:
    """Say which column tells the classes apart nearly alone, where no other does."""
    areas = _areas(look)
    columns = [j for j, area in areas.items() if not np.isnan(area)]
    columns.sort(key=lambda j: -areas[j])
    if not columns or areas[columns[0]] < _MIN_AREA or len(look.names) < 2:
        return
    area = areas[columns[0]]
    second = areas[columns[1]] if len(columns) > 1 else 0.5
    if 1.0 - second < _NEXT_ERRORS * max(1.0 - area, _MIN_GAP_BELOW_ONE):
        return
    text = "alone tells the classes apart nearly always: area under the ROC curve "
    text += f"{area:.3f}, and {second:.3f} of the next column"
    name, rows = look.names[columns[0]], round(look.total)
    yield Notice("near-leak", text, name, rows, "", _KNOWN)


def _areas(look: TrainingLook) -> dict[int, float]:
    """Return the area under the ROC curve of each column; NaN where it is not known.

    Codes are ranked by their share of a class, against all others; the area is the mean
    over classes by their weights. Codes of a few rows would tell too much.
    """
    counts, schema = look.by_encoding, look.by_encoding.schema
    known, n_used, _ = look.known
    of_class = counts.by_code.copy()
    of_class[schema.first_codes] = 0.0
    table = FeatureTable(of_class, schema.offsets)
    total = of_class.sum(axis=1)
    rows = table.collect(of_class)
    area = np.zeros(len(schema))
    classes = np.argsort(-counts.by_class, kind="stable")[:_MAX_CLASSES]
    weight = counts.by_class[classes] / counts.by_class[classes].sum()
    for c, share in zip(classes, weight, strict=True):
        own, others = of_class[:, c], total - of_class[:, c]
        order = np.lexsort((own / np.maximum(total, 1e-300), table.owners))
        below = np.cumsum(others[order]) - others[order]
        below -= below[schema.offsets[table.owners]]
        right = np.empty_like(total)
        right[order] = own[order] * (below + 0.5 * others[order])
        both = rows[:, c] * (known - rows[:, c])
        half = np.full(len(area), 0.5)
        area += share * np.divide(table.collect(right), both, half, where=both > 0.0)
    is_dense = (known >= look.total / 2) & (n_used * _ROWS_OF_CODE <= known)
    area = np.where(is_dense, area, np.nan)
    first = np.flatnonzero(look.encodings.is_first)
    best = np.fmax.reduceat(area, first)[: look.counts.schema.n_columns]
    return dict(enumerate(best.tolist()))


# ---------------------------------------------------------------------- equal columns


def _same_columns(look: TrainingLook) -> Iterator[Notice]:
    """Say which columns tell rows apart alike: one is a copy of the other, or scaled.

    Columns that are equal in some rows are compared in more of them.
    """
    schema = look.counts.schema
    dates = dates_in(schema.features)
    # Names of rows tell all rows apart alike.
    left_out = {*schema.left_out, *look.suspects}
    columns = [
        column
        for column, name in enumerate(look.names)
        if column not in left_out and name not in dates
    ]
    groups = [columns]
    for n_rows in (FEW, _MAX_COMPARED):
        rows, found = evenly(look.training.n_rows, n_rows), []
        for group in groups:
            by_content: dict[bytes, list[int]] = {}
            for column in group:
                if (content := _content(look, column, rows)) is not None:
                    by_content.setdefault(content, []).append(column)
            found += [own for own in by_content.values() if len(own) > 1]
        groups = found
    for group in groups:
        names = [look.names[column] for column in group]
        text = f"{listed(names, 6)} hold the same information, perhaps in other units "
        text += "or words"
        advice = "keep one of them: the others add nothing, and plain naive Bayes "
        advice += "counts them again"
        yield Notice("same-columns", text, None, round(look.total), "", advice)


def _content(look: TrainingLook, column: int, rows: Ints) -> bytes | None:
    """Return how a column tells some rows apart, None if it does so hardly.

    Values are numbered by their first row, many different numbers by their size.
    """
    is_category = look.counts.schema.features[column].kind == "categorical"
    cells: Any = look.training.codes.column(column)[rows] if is_category else None
    if cells is None:
        cells = look.numbers(column, rows)
    values, starts, places, counts = np.unique(
        cells, return_index=True, return_inverse=True, return_counts=True
    )
    if len(rows) - counts.max() < _MIN_VARYING:
        return None
    if not is_category and 2 * len(values) > len(rows):
        # Numbered from the end that the first row is nearer to, whatever the sign.
        ends = len(values) - 1 - np.isnan(values[-1])
        known = places <= ends
        flipped = np.where(known, ends - places, places)
        both = places.astype(np.int64), flipped.astype(np.int64)
        return min(own.tobytes() for own in both)
    order = np.empty(len(values), np.int64)
    order[np.argsort(starts, kind="stable")] = np.arange(len(values))
    return order[places].tobytes()


# -------------------------------------------------------------------------------- rows


def _hashes(look: TrainingLook) -> Any:
    """Hash all rows, or of a long table some."""
    table, codes = look.table, look.training.codes
    assert table is not None
    most = SAMPLE if table.matrix is None else _MAX_OF_MATRIX
    rows = None
    if table.n_rows > (_MAX_ROWS if table.matrix is None else _MAX_OF_MATRIX):
        rows = evenly(table.n_rows, most)
        codes = codes.take(rows)

    def content(column: int) -> Any:
        if codes.schema.features[column].kind == "categorical":
            return codes.column(column)
        return look.numbers(column, rows)

    return row_hashes(map(content, range(table.n_columns)))


def _row_notices(look: TrainingLook, n_repeated: int) -> Iterator[Notice]:
    yield from _sparse_rows(look)
    n_rows = look.training.n_rows
    if n_repeated >= _REPEATED * n_rows and _are_copies(look, n_repeated):
        text = f"{n_repeated:,} of {n_rows:,} rows occur more than once, and folds "
        text += "share them: measures may be too good"
        advice = "leave copies out before splitting (`X.drop_duplicates()`), if they "
        advice += "are not different cases"
        yield Notice("repeated-rows", text, None, n_repeated, "", advice)


def _are_copies(look: TrainingLook, n_repeated: int) -> bool:
    """Whether so many equal rows are no chance.

    A column needs many different numbers; and columns that were independent, which have
    the product of their chances to be equal, would give far fewer equal rows.
    """
    chances = []
    for column, where in enumerate(look.ranges):
        if where is None:
            rows = look.of_code(column)
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
    columns = [j for j in range(schema.n_columns) if j not in schema.left_out]
    missing = sorted(map(look.n_missing, columns))
    # A row of one cell lacks all columns but one.
    if len(columns) <= _USUAL_CELLS or missing[1] <= 0.0:
        return
    codes, known = look.training.codes, np.zeros(look.training.n_rows, np.int64)
    for j in columns:
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
        advice = f"leave such rows out; the last is row {last}"
        yield Notice("sparse-rows", text, None, n, "", advice)
