"""Rules at fit: what is suspicious about training rows, by counts and some rows."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats, Ints
from steelyard._common.one_cell import DATE_TEXT, number_in
from steelyard._common.text import listed
from steelyard.model.training import SAMPLE, TrainingSet
from steelyard.notices.check import RowHashes, row_hashes, sketch_of
from steelyard.notices.notice import Notice, arranged, rows_have
from steelyard.proba.counts import Counts
from steelyard.proba.encodings import Encodings
from steelyard.table.codes import FeatureTable
from steelyard.table.dates import dates_in
from steelyard.table.frames import Table
from steelyard.table.identifiers import ID_NAME
from steelyard.table.labels import is_measured
from steelyard.table.ranges import NumberRange, evenly

# The command line has an option by the name of the call.
_LEAVE_OUT = "drop it (`X.drop(columns=...)`)"

# Rows by which columns are compared first.
_FEW = 512

# A class of this number of rows is a slip of the pen as often as a class.
_FEW_ROWS = 2
# Ratio of the largest to the smallest class, and share of the smallest, from which on
# other measures are needed.
_MAX_RATIO, _MIN_SHARE = 100.0, 0.01

# A column gives the class away if its codes do in nearly all rows, with many rows for
# each code, and no honest column beside it comes near. Petal lengths of irises are
# right in 95 % of rows, the odour of mushrooms in 98.5 %.
_PURE, _ROWS_OF_CODE, _ERROR_SHARE = 0.995, 10, 0.02
# A measurement that separates classes, as petals separate setosa, has many values.
_VALUES = 5
_NEXT_ERRORS = 5.0
_MAX_LEAKS = 2

# A column nearly gives the class away if its area under the ROC curve, the mean over
# classes against the others, is larger, and that of no other column comes near.
# Of 116 tables of the literature that is so of the odour of mushrooms, and of TSH,
# by which thyroid disease is diagnosed.
_MIN_AREA, _MIN_GAP_BELOW_ONE = 0.96, 0.01
_KNOWN = f"is it really available beforehand? If not, {_LEAVE_OUT}"
# Classes that are looked at one by one.
_MAX_CLASSES = 50

# Two columns give the class away by which of them is larger, if none does on its own.
# Rows for that, numbers columns that are compared, and the largest area of each alone.
_MIN_ROWS_OF_TWO, _MAX_COLUMNS_OF_TWO, _MAX_AREA_ALONE = 100, 100, 0.9

# Rows in which columns are compared, and how many of them must differ from the most
# frequent value.
_MAX_COMPARED, _MIN_VARYING = 100_000, 10

# Cells of nearly empty rows, usual cells of a row, and the share of such rows.
_FEW_CELLS, _USUAL_CELLS, _RARE = 1, 4, 0.02

# Rows of a table that are all hashed, of a longer one evenly spaced rows; a matrix that
# is not copied is counted in less time than its rows are hashed.
_MAX_ROWS, _MAX_OF_MATRIX = 100_000, 2_048
_REPEATED, _MEASURE, _BY_CHANCE = 0.05, 0.05, 5.0


@dataclass
class _TrainingData:
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
        """The columns, if they are in memory."""
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
    def areas(self) -> dict[int, float]:
        """Area under the ROC curve of each column, NaN if unknown."""
        return _areas(self)

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
        """Rows as notices state them, the weight of all if they have weights."""
        return round(self.total)

    @property
    def ranges(self) -> list[NumberRange | None]:
        """Ends and histograms of the numbers of each column."""
        return self.training.encoder.ranges_

    def n_missing(self, column: int) -> float:
        """Return the weight of the missing cells of a column."""
        numbers = self.ranges[column]
        if self.counts.schema.features[column].is_coded:
            return float(self.weight_by_code(column)[0])
        return self.total - (0.0 if numbers is None else numbers.weight)

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

    def weight_by_code(self, j: int) -> Floats:
        """Return the weight of each code of an attribute, that of missing first."""
        offsets = self.counts.schema.offsets
        return self.counts.by_code[offsets[j] : offsets[j + 1]].sum(axis=1)

    @cached_property
    def non_missing(self) -> FeatureTable:
        """Weight by code of an encoding and class, without missing cells."""
        by_code, schema = self.by_encoding.by_code.copy(), self.by_encoding.schema
        by_code[schema.first_codes] = 0.0
        return FeatureTable(by_code, schema.offsets)

    @cached_property
    def coverage(self) -> tuple[Floats, Ints, Floats]:
        """Weight of non-missing cells, codes in use and right rows, by encoding.

        A row is right if its class is the most frequent one of its code.
        """
        table = self.non_missing
        weight, right = table.values.sum(axis=1), table.values.max(axis=1)
        is_used = (weight > 0.0).astype(np.int64)
        return table.collect(weight), table.collect(is_used), table.collect(right)

    @property
    def is_dense(self) -> NDArray[np.bool_]:
        """Whether half of an encoding's cells are there, with many rows by code.

        Of single rows any code is right.
        """
        weight, n_used, _ = self.coverage
        return (weight >= self.total / 2) & (n_used * _ROWS_OF_CODE <= weight)

    def sample(self, column: int, limit: int = SAMPLE) -> Floats:
        """Return some of the numbers of a column, without missing ones."""
        numbers = self.numbers(column, evenly(self.training.n_rows, limit))
        return numbers[~np.isnan(numbers)]


def _alike(values: Sequence[str]) -> list[list[str]]:
    """Return groups of texts that differ by blanks, or as people write in capitals.

    A capital within a word is meant: "hAd" is another vowel than "had".

    >>> _alike(["Adelie", "adelie", "hAd", "had", "a  b", "a b"])
    [['Adelie', 'adelie'], ['a  b', 'a b']]
    """
    groups: dict[str, list[str]] = {}
    for value in values:
        plain = " ".join(value.split())
        lower = plain.lower()
        usual = (lower, plain.upper(), plain.capitalize(), plain.title())
        groups.setdefault(lower if plain in usual else plain, []).append(value)
    return [group for group in groups.values() if len(group) > 1]


def _quoted(names: Iterable[str]) -> str:
    """Return the first few names, in quotes."""
    return listed(map(repr, names), 4)


def notices_at_fit(
    training: TrainingSet, counts: Counts, n_rows: int, suspects: Mapping[int, str]
) -> tuple[list[Notice], RowHashes | None]:
    """Return what is suspicious about training rows, worst first, and hashes of rows.

    There are no hashes of rows that are not in memory. Those of a long matrix may be
    some of its ``n_rows``.
    """
    data = _TrainingData(training, counts, n_rows, suspects)
    leaks = [*_leaks(data)] or [*_near_leaks(data)] or [*_leaks_of_two(data)]
    notices = [*_class_notices(data), *_column_notices(data), *leaks]
    if training.cut_points_are_exact is False:
        text = "columns with very many different numbers were summarised as they were "
        text += "read, so some cut points may differ from those of a fit in "
        advice = "if you need the same ones, give them (`FixedEdgesDiscretizer`)"
        notices.append(Notice("cut-points", f"{text}memory", advice=advice))
    if data.table is None:
        return arranged(notices), None
    notices += _same_columns(data)
    sketch, n_repeated = sketch_of(_hashes(data), n_rows)
    if sketch.n_hashed == sketch.n_rows:
        notices += _row_notices(data, n_repeated)
    return arranged(notices), sketch


# ----------------------------------------------------------------------------- classes


def _class_notices(data: _TrainingData) -> Iterator[Notice]:
    classes, rows = data.training.classes, data.counts.by_class
    names = [str(label) for label in classes.tolist()]
    if is_measured(classes):
        text = f"the target has {len(names)} whole numbers, each treated as a class"
        advice = "bin them when reading (`bins=5`), or convert them to text"
        yield Notice("number-target", text, None, data.n_rows, "", advice)
    if joined := data.training.joined:
        advice = "clean y before computing metrics too (`y.str.strip()`)"
        yield Notice("class-spelling", joined, None, 0, "treated as one class", advice)
    if groups := _alike(names):
        n = round(sum(min(rows[names.index(name)] for name in g) for g in groups))
        text = f"classes differ only in case or blanks: {_quoted(chain(*groups))}"
        yield Notice("class-spelling", text, None, n, "", "spell them alike")
    if data.training.sample_weight is not None:
        return
    few = [k for k, n in enumerate(rows) if 0 < n <= _FEW_ROWS]
    if few:
        shown = _quoted(names[k] for k in few)
        text = (
            f"{shown} {'has' if len(few) == 1 else 'have'} only one or two rows, too "
        )
        text += "few to learn from or to validate on"
        advice = "drop such rows if they are footers or totals, or merge classes"
        yield Notice("small-class", text, None, round(rows[few].sum()), "", advice)
    usual = rows[rows > _FEW_ROWS]
    if len(usual) > 1 and usual.min() < min(
        _MIN_SHARE * rows.sum(), usual.max() / _MAX_RATIO
    ):
        k = int(np.flatnonzero(rows == usual.min())[0])
        text = (
            f"class {names[k]!r} has only {rows[k]:.0f} of {data.n_rows:,} rows; the "
        )
        text += f"largest has {usual.max():,.0f}"
        advice = "look at balanced accuracy, or try `class_weight='balanced'`"
        yield Notice("unequal-classes", text, None, round(rows[k]), "", advice)


# ------------------------------------------------------------------------------- leaks


def _leaks(data: _TrainingData) -> Iterator[Notice]:
    """Report columns whose codes alone predict the class in nearly all rows."""
    # Interactions come after all columns.
    by_class, n_columns = data.counts.by_class, data.counts.schema.n_columns
    columns = data.encodings.columns
    columns = columns[columns < n_columns]
    weight, n_used, right = (values[: len(columns)] for values in data.coverage)
    error = 1.0 - right / np.maximum(weight, 1.0)
    error = np.where(data.is_dense[: len(columns)], error, 1.0)
    share = float(by_class.max() / by_class.sum())
    is_pure = error <= min(1.0 - _PURE, _ERROR_SHARE * (1.0 - share))
    pure = {int(columns[j]): j for j in np.flatnonzero(is_pure)[::-1]}
    least_of_others = error[~np.isin(columns, [*pure])].min(initial=1.0)
    leaks = {}
    for column, j in pure.items():
        n_values = int(n_used[j])
        if data.table is not None and data.ranges[column] is not None:
            n_values = len(np.unique(data.sample(column, _FEW)))
        if n_values <= _VALUES * len(by_class):
            leaks[column] = j
    if not 0 < len(leaks) <= _MAX_LEAKS or len(leaks) == n_columns:
        return
    if least_of_others < _NEXT_ERRORS * max(error[j] for j in leaks.values()):
        return
    for column, j in sorted(leaks.items()):
        rows = rows_have(round(right[j]), round(weight[j]))
        text = f"gives the class away on its own: {rows} the usual class of their value"
        yield Notice("leak", text, data.names[column], round(right[j]), "", _KNOWN)


def _near_leaks(data: _TrainingData) -> Iterator[Notice]:
    """Report a column that alone nearly separates the classes, if no other does."""
    areas = data.areas
    columns = [j for j, area in areas.items() if not np.isnan(area)]
    columns.sort(key=lambda j: -areas[j])
    if not columns or areas[columns[0]] < _MIN_AREA or len(data.names) < 2:
        return
    area = areas[columns[0]]
    second = areas[columns[1]] if len(columns) > 1 else 0.5
    if 1.0 - second < _NEXT_ERRORS * max(1.0 - area, _MIN_GAP_BELOW_ONE):
        return
    text = "separates the classes almost perfectly on its own: area under the ROC "
    text += f"curve {area:.3f}; the next best column has {second:.3f}"
    yield Notice("near-leak", text, data.names[columns[0]], data.n_rows, "", _KNOWN)


def _leaks_of_two(data: _TrainingData) -> Iterator[Notice]:
    """Report two columns of numbers, or dates, if the larger one tells the class."""
    columns = [j for j, where in enumerate(data.ranges) if where is not None]
    columns = [j for j in columns if j not in data.suspects]
    if (
        data.table is None
        or data.training.n_rows < _MIN_ROWS_OF_TWO
        or not 2 <= len(columns) <= _MAX_COLUMNS_OF_TWO
        or any(area >= _MAX_AREA_ALONE for area in data.areas.values())
    ):
        return
    rows = evenly(data.training.n_rows, SAMPLE)
    is_class = np.eye(len(data.training.classes))[data.training.labels[rows]]
    by_class, pairs = is_class.sum(axis=0), []
    max_error = 1.0 - by_class.max() / len(rows)
    numbers = np.column_stack([data.numbers(j, rows) for j in columns])
    for k, j in enumerate(columns[:-1]):
        first, others = numbers[:, k, None], numbers[:, k + 1 :]
        larger, smaller = is_class.T @ (first > others), is_class.T @ (first < others)
        equal = by_class[:, None] - larger - smaller
        right = sum(counts.max(axis=0) for counts in (larger, smaller, equal))
        error = 1.0 - right / len(rows)
        is_pure = error <= min(1.0 - _PURE, _ERROR_SHARE * max_error)
        pairs += [(j, columns[k + 1 + m], right[m]) for m in np.flatnonzero(is_pure)]
    if len(pairs) > _MAX_LEAKS:
        return
    for j, other, n in pairs:
        names = f"{data.names[j]} and {data.names[other]}"
        text = f"{names} give the class away together, by which of them is larger: "
        text += f"{rows_have(round(n), len(rows))} the usual class"
        advice = "are both really available beforehand? If not, drop one of them "
        advice += "(`X.drop(columns=...)`)"
        yield Notice("leak", text, None, round(n), "", advice)


def _areas(data: _TrainingData) -> dict[int, float]:
    """Return the area under the ROC curve of each column, NaN if unknown.

    Codes are ranked by their share of a class, against all others; the area is the mean
    over classes by their weights. Codes of a few rows would separate too well.
    """
    counts, table = data.by_encoding, data.non_missing
    by_code, offsets = table.values, counts.schema.offsets
    total, n_rows = by_code.sum(axis=1), table.collect(by_code)
    area = np.zeros(len(counts.schema))
    classes = np.argsort(-counts.by_class, kind="stable")[:_MAX_CLASSES]
    shares = counts.by_class[classes] / counts.by_class[classes].sum()
    for c, share in zip(classes, shares, strict=True):
        positive, negative = by_code[:, c], total - by_code[:, c]
        order = np.lexsort((positive / np.maximum(total, 1e-300), table.owners))
        below = np.cumsum(negative[order]) - negative[order]
        below -= below[offsets[table.owners]]
        in_order = np.empty_like(total)
        in_order[order] = positive[order] * (below + 0.5 * negative[order])
        n_pairs = n_rows[:, c] * (data.coverage[0] - n_rows[:, c])
        half = np.full(len(area), 0.5)
        of_class = np.divide(
            table.collect(in_order), n_pairs, half, where=n_pairs > 0.0
        )
        area += share * of_class
    area = np.where(data.is_dense, area, np.nan)
    first = np.flatnonzero(data.encodings.is_first)
    best = np.fmax.reduceat(area, first)[: data.counts.schema.n_columns]
    return dict(enumerate(best.tolist()))


# ---------------------------------------------------------------------- equal columns


def _same_columns(data: _TrainingData) -> Iterator[Notice]:
    """Report columns that distinguish the same rows: copies, perhaps scaled.

    Columns that are equal in some rows are compared in more of them.
    """
    schema = data.counts.schema
    dates = dates_in(schema.features)
    # Names of rows are different in all rows.
    left_out = {*schema.left_out, *data.suspects}
    columns = [
        column
        for column, name in enumerate(data.names)
        if column not in left_out and name not in dates
    ]
    groups = [columns]
    for n_rows in (_FEW, _MAX_COMPARED):
        rows, equal = evenly(data.training.n_rows, n_rows), []
        for group in groups:
            by_content: dict[bytes, list[int]] = {}
            for column in group:
                if (content := _content(data, column, rows)) is not None:
                    by_content.setdefault(content, []).append(column)
            equal += [same for same in by_content.values() if len(same) > 1]
        groups = equal
    for group in groups:
        names = [data.names[column] for column in group]
        text = f"{listed(names, 6)} carry the same information, perhaps in other units "
        text += "or words"
        advice = "keep one of them; the others add nothing, and plain naive Bayes "
        advice += "counts them twice"
        yield Notice("same-columns", text, None, data.n_rows, "", advice)


def _content(data: _TrainingData, column: int, rows: Ints) -> bytes | None:
    """Return which of some rows have equal cells, None if nearly all have.

    Values are numbered by their first row, many different numbers by their size.
    """
    is_category = data.counts.schema.features[column].kind == "categorical"
    cells: Any = (
        data.training.codes.column(column)[rows]
        if is_category
        else data.numbers(column, rows)
    )
    values, starts, places, counts = np.unique(
        cells, return_index=True, return_inverse=True, return_counts=True
    )
    if len(rows) - counts.max() < _MIN_VARYING:
        return None
    if not is_category and 2 * len(values) > len(rows):
        # Numbered from the end that the first row is nearer to, whatever the sign.
        last = len(values) - 1 - np.isnan(values[-1])
        flipped = np.where(places <= last, last - places, places)
        return min(order.astype(np.int64).tobytes() for order in (places, flipped))
    order = np.empty(len(values), np.int64)
    order[np.argsort(starts, kind="stable")] = np.arange(len(values))
    return order[places].tobytes()


# -------------------------------------------------------------------------------- rows


def _hashes(data: _TrainingData) -> Any:
    """Hash all rows, or of a long table some."""
    table, codes = data.table, data.training.codes
    assert table is not None
    is_matrix, rows = table.matrix is not None, None
    if table.n_rows > (_MAX_OF_MATRIX if is_matrix else _MAX_ROWS):
        rows = evenly(table.n_rows, _MAX_OF_MATRIX if is_matrix else SAMPLE)
        codes = codes.take(rows)

    def content(column: int) -> Any:
        if codes.schema.features[column].kind == "categorical":
            return codes.column(column)
        return data.numbers(column, rows)

    return row_hashes(map(content, range(table.n_columns)))


def _row_notices(data: _TrainingData, n_repeated: int) -> Iterator[Notice]:
    yield from _sparse_rows(data)
    n_rows = data.training.n_rows
    if n_repeated >= _REPEATED * n_rows and _are_copies(data, n_repeated):
        text = f"{n_repeated:,} of {n_rows:,} rows are duplicates, which folds share: "
        text += "cross-validated figures may be too optimistic"
        advice = (
            "drop duplicates before splitting (`X.drop_duplicates()`), unless they "
        )
        advice += "are separate cases"
        yield Notice("repeated-rows", text, None, n_repeated, "", advice)


def _are_copies(data: _TrainingData, n_repeated: int) -> bool:
    """Whether there are more equal rows than chance explains.

    A column needs many different numbers; and columns that were independent, which have
    the product of their chances to be equal, would give far fewer equal rows.
    """
    chances = []
    for column, numbers in enumerate(data.ranges):
        if numbers is None:
            rows = data.weight_by_code(column)
        else:
            values = np.unique(data.sample(column, _FEW), return_counts=True)
            rows = values[1].astype(np.float64)
        chances.append(float(((rows / max(rows.sum(), 1.0)) ** 2).sum()) or 1.0)
    is_measure = [numbers is not None for numbers in data.ranges]
    least = min(compress(chances, is_measure), default=1.0)
    expected = data.training.n_rows**2 * math.prod(chances)
    return least < _MEASURE and n_repeated > _BY_CHANCE * expected


def _sparse_rows(data: _TrainingData) -> Iterator[Notice]:
    """Report rows that are nearly empty among rows with many cells."""
    schema = data.counts.schema
    columns = [j for j in range(schema.n_columns) if j not in schema.left_out]
    missing = sorted(map(data.n_missing, columns))
    # A row of one cell lacks all columns but one.
    if len(columns) <= _USUAL_CELLS or missing[1] <= 0.0:
        return
    codes, n_cells = data.training.codes, np.zeros(data.training.n_rows, np.int64)
    for j in columns:
        if schema.features[j].is_coded:
            n_cells += codes.column(j) > 0
        else:
            k = int(np.flatnonzero(schema.gaussian == j)[0])
            n_cells += ~np.isnan(codes.number_column(k))
    sparse = n_cells <= _FEW_CELLS
    n = int(sparse.sum())
    if 0 < n <= max(_RARE * len(n_cells), 1.0) and np.median(n_cells) >= _USUAL_CELLS:
        most = "only one value" if n_cells[sparse].any() else "no value at all"
        text = f"{rows_have(n, len(n_cells))} {most}, like a footer"
        last = int(np.flatnonzero(sparse)[-1]) + 1
        advice = f"drop such rows; the last is row {last}"
        yield Notice("sparse-rows", text, None, n, "", advice)


# ---------------------------------------------------------------------- single columns

# Values are compared with each other in columns of up to this number.
_MAX_VALUES = 1_000
# Text like numbers: this number of values, and share of cells that begin with a digit.
_MANY_VALUES, _MIN_DIGITS = 20, 0.9
_DIGIT = re.compile(r"[-+(<>~$€£]{0,2}\s*\.?\d")
_MIN_KNOWN_SHARE = 0.05
# Rows of a value, on average, of a column that is called an identifier.
_MAX_ROWS_OF_ID = 10

# A code for missing values: its distance from all other numbers in quartile ranges,
# and its rows.
_MIN_GAP, _MIN_CODE_ROWS, _MAX_CODE_SHARE = 1.5, 5, 0.5
_MIN_MEASURED = 10


def _column_notices(data: _TrainingData) -> Iterator[Notice]:
    """Yield what is suspicious about each column."""
    first = np.flatnonzero(data.encodings.is_first)
    weight, n_used, _ = (values[first] for values in data.coverage)
    has_cells = (n_used > 1) & (weight >= _MIN_KNOWN_SHARE * data.total)
    dates = dates_in(data.counts.schema.features)
    for column, name in enumerate(data.names):
        feature = data.counts.schema.features[column]
        # Parts of dates are made here: notices are about the days.
        if dates.get(name, name) != name:
            continue
        if ID_NAME.search(name) and column not in data.suspects:
            yield from _of_groups(data, column, int(n_used[column]))
        # Most columns of a wide table are passed quickly.
        is_plain = feature.kind == "categorical" and feature.cells != "text"
        if is_plain and has_cells[column] and not feature.missing_is_value:
            continue
        if reason := data.suspects.get(column):
            text = f"{reason}, like an identifier, so it cannot generalise"
            done, advice = "", _LEAVE_OUT
            if feature.left_out:
                done, advice = "dropped", "keep it with `keep_identifiers=True`"
            yield Notice("identifier", text, name, data.n_table, done, advice)
        elif feature.kind == "categorical":
            yield from _of_categories(data, column, weight[column], n_used[column])
        elif data.ranges[column] is not None or feature.cells == "nothing":
            yield from _of_numbers(data, column)


def _of_groups(data: _TrainingData, column: int, n_values: int) -> Iterator[Notice]:
    """Report a column called an identifier, with several rows for each value."""
    numbers = data.ranges[column]
    if numbers is not None:
        is_code = numbers.is_whole and data.table is not None
        n_values = len(np.unique(data.sample(column))) if is_code else 0
    n_rows = data.training.n_rows
    if n_values < _MANY_VALUES:
        return
    text, advice = f"named like an identifier, with {n_values:,} values", _LEAVE_OUT
    if n_rows <= _MAX_ROWS_OF_ID * n_values:
        text += f" in {n_rows:,} rows: rows that belong together may be in different "
        text += "folds, so that cross-validated figures are too optimistic"
    elif numbers is not None:
        text += ", whose sizes count as if they measured something"
        advice = f"declare them as categories, or {_LEAVE_OUT}"
    else:
        return
    yield Notice("row-groups", text, data.names[column], n_rows, "", advice)


def _of_categories(
    data: _TrainingData, column: int, weight: float, n_used: int
) -> Iterator[Notice]:
    name, feature = data.names[column], data.counts.schema.features[column]
    rows = data.weight_by_code(column)[1 : len(feature.values) + 1]
    n_used -= feature.missing_is_value and bool(rows.sum() > 0.0)
    yield from _empty_or_constant(data, name, weight, n_used)
    if feature.cells != "text" or len(feature.values) > _MAX_VALUES:
        return
    if groups := _alike(feature.values):
        n = round(sum(min(rows[feature.code_of[v] - 1] for v in g) for g in groups))
        text = f"values differ only in case or blanks: {_quoted(chain(*groups))}"
        yield Notice("spelling", text, name, n, "", "spell them alike")
    digits = [bool(_DIGIT.match(value)) for value in feature.values]
    if len(digits) > _MANY_VALUES and rows[digits].sum() >= _MIN_DIGITS * rows.sum():
        yield from _like_numbers(data, column, rows[digits])


def _like_numbers(data: _TrainingData, column: int, rows: Floats) -> Iterator[Notice]:
    """Report text that looks like numbers, unless it is codes or declared as names."""
    values = data.counts.schema.features[column].values
    if len({*map(len, values)}) == 1 and values[0].isalnum():
        return
    texts = [value for value in values if number_in(value) is None]
    if not texts and data.table and data.table.columns[column].declared is not None:
        return
    shown = [*texts, *values][:2]
    text = f"text with {len(values)} values, nearly all of which start with a "
    text += f"digit, such as {' and '.join(map(repr, shown))}"
    advice = "if they are numbers, remove units and other marks"
    if all(map(DATE_TEXT.fullmatch, shown)):
        advice = "if they are dates, convert them (`pandas.to_datetime(...)`)"
    name, n = data.names[column], round(rows.sum())
    yield Notice("digits", text, name, n, "treated as categories", advice)


def _empty_or_constant(
    data: _TrainingData, name: str, weight: float, n_values: int
) -> Iterator[Notice]:
    n = round(weight)
    if n_values < 2:
        text = "has only one value" if n_values else "is empty"
        yield Notice("constant", text, name, n, "has no effect", _LEAVE_OUT)
    elif weight < _MIN_KNOWN_SHARE * data.total:
        text = f"only {weight:.0f} of {data.n_rows:,} rows have a value"
        yield Notice("nearly-empty", text, name, n, "", "is that right?")


def _of_numbers(data: _TrainingData, column: int) -> Iterator[Notice]:
    name, numbers = data.names[column], data.ranges[column]
    if numbers is None:
        yield from _empty_or_constant(data, name, 0.0, 0)
        return
    n_values = 1 if numbers.low == numbers.high else 2
    yield from _empty_or_constant(data, name, numbers.weight, n_values)
    if n_values == 1 or data.table is None or not numbers.histogram:
        return
    bars = numbers.histogram
    # Nothing is beside the outermost bar: its numbers may be far from others.
    if any(
        bars[end] <= _MAX_CODE_SHARE
        and bars[end] * numbers.weight >= _MIN_CODE_ROWS
        and not bars[beside]
        for end, beside in ((0, 1), (-1, -2))
    ):
        yield from _missing_code(data, name, data.sample(column), numbers)


def _missing_code(
    data: _TrainingData, name: str, sample: Floats, numbers: NumberRange
) -> Iterator[Notice]:
    """Report a smallest or largest number that may mean missing cells."""
    scale = max(data.n_table / SAMPLE, 1.0)
    for code, others in (
        (numbers.low, sample[sample > numbers.low]),
        (numbers.high, sample[sample < numbers.high]),
    ):
        n = len(sample) - len(others)
        if n < _MIN_CODE_ROWS or n > _MAX_CODE_SHARE * len(sample) or not len(others):
            continue
        low, high = np.quantile(others, [0.25, 0.75])
        gap = float(np.abs(others - code).min())
        is_far = high > low and gap >= _MIN_GAP * (high - low)
        if not is_far or len(np.unique(others)) < _MIN_MEASURED:
            continue
        about = "" if scale == 1.0 else "about "
        text = f"{code:.10g} occurs in {about}{round(scale * n):,} rows; all other "
        text += f"numbers lie between {others.min():.6g} and {others.max():.6g}"
        advice = "if it marks missing values, read it as one: "
        advice += f"`missing_values={[f'{name}={code:.10g}']!r}`"
        yield Notice("missing-code", text, name, round(scale * n), "", advice)
