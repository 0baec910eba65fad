"""Fitted attributes in a model file, by name, each with the shape it must have.

A new one is declared with ``learned`` in its class and has a line in ``ATTRIBUTES``; a
dataclass of arrays is a ``codec.record`` of its fields, as ``_UNCERTAINTY`` is. Then
``python tools/declare.py`` and a row in ``docs/model_file.md``.
"""

from __future__ import annotations

import base64
import math
import sys
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.allowed import (
    HASH_BYTES,
    MAX_HASHES,
    MAX_KEPT,
    N_BARS,
    SEARCH_ENDS,
)
from steelyard._common.arrays import Floats
from steelyard.io.dates import ORDERS
from steelyard.notices.notice import Notice
from steelyard.persistence import codec
from steelyard.persistence.codec import (
    LARGEST_LOG,
    LARGEST_NUMBER,
    LARGEST_SQUARE,
    LARGEST_WEIGHT,
    Field,
    ReadRecord,
    Sizes,
)
from steelyard.persistence.models import MARGINAL
from steelyard.persistence.reader import (
    ObjectReader,
    float_list,
    read_tagged,
    tagged_number,
)
from steelyard.table.dates import PARTS
from steelyard.table.schema import feature_labels

Records = list[dict[str, Any]]


# ---------------------------------------------------------------- records of any keys


def _tables(records: Records) -> Records:
    """Describe records as tables, a new one whenever their keys change."""
    return [
        {
            "columns": list(columns),
            "rows": [[_cell(value) for value in record.values()] for record in run],
        }
        for columns, run in groupby(records, key=tuple)
    ]


def _cell(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_cell(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.floating):  # extended precision stays what it is
        value = float(value)
    return tagged_number(value) if isinstance(value, float) else value


def _read_tables(reader: ObjectReader, key: str, sizes: Sizes) -> Records:
    records: Records = []
    for entries, i in reader.entries(key):
        table = entries.inner(i)
        columns, rows = table.items("columns"), table.items("rows")
        table.finish()
        if not all(type(name) is str for name in columns):
            raise table.complaint("columns", "must hold names")
        if len(set(columns)) != len(columns):
            raise table.complaint("columns", "must hold different names")
        for row in rows:
            if type(row) is not list or len(row) != len(columns):
                raise table.complaint("rows", "must have as many cells as columns")
            cells = [_read_cell(cell, table) for cell in row]
            records.append(dict(zip(columns, cells, strict=True)))
    return records


def _read_cell(cell: Any, reader: ObjectReader, nested: bool = False) -> Any:
    if type(cell) is dict:
        return read_tagged(cell, "content.fitted", ("inf", "-inf", "nan"))
    if type(cell) is list and not nested:
        return [_read_cell(item, reader, True) for item in cell]
    if cell is not None and type(cell) not in (bool, int, float, str):
        raise reader.complaint("rows", "must hold plain values")
    if type(cell) in (int, float) and not abs(cell) <= LARGEST_SQUARE:
        raise reader.complaint("rows", "must hold numbers that are not too large")
    return cell


_TABLES = Field(_tables, _read_tables)


def _read_path(reader: ObjectReader, key: str, sizes: Sizes) -> ReadRecord:
    def make(steps: Records) -> Any:
        return codec.class_of("classifiers.base.selection.RecordTable")(steps)

    return ReadRecord(make, steps=_read_tables(reader, key, sizes))


def _read_notices(reader: ObjectReader, key: str, sizes: Sizes) -> list[Notice]:
    notices = _read_tables(reader, key, sizes)
    for notice in notices:
        texts = [notice.get(name) for name in ("kind", "text", "done", "advice")]
        is_text = all(type(text) is str for text in texts)
        rows = notice.get("rows")
        if not is_text or type(rows) is not int or rows < 0 or len(notice) != 6:
            raise reader.complaint(key, "must hold texts and numbers of rows")
        if "column" not in notice or type(notice["column"]) not in (str, type(None)):
            raise reader.complaint(key, "must name columns")
    return [Notice(**notice) for notice in notices]


# -------------------------------------------------------------- counts and uncertainty


def _make_counts(counts: Any, schema: Any, values: dict[str, Any]) -> Any:
    by_class, by_code = values.pop("by_class"), values.pop("by_code")
    moments = codec.class_of("proba.counts.Moments")(**values)
    return counts(schema, by_class, by_code, moments)


def _are_bounded(counts: Any) -> bool:
    with np.errstate(over="ignore"):
        return bool((counts.squares <= LARGEST_SQUARE * counts.weight).all())


_COUNTS = codec.record(
    "proba.counts.Counts",
    by_class=codec.numbers("k", 0.0),
    by_code=codec.numbers("vk", 0.0),
    weight=codec.numbers("gk", 0.0),
    mean=codec.numbers("gk"),
    squares=codec.numbers("gk", 0.0, LARGEST_SQUARE),
    make=_make_counts,
    parts=lambda counts: {**vars(counts), **vars(counts.moments)},
    valid=_are_bounded,
    wrong="must have variances that are not too large",
)

_UNCERTAINTY = codec.record(
    "model.uncertainty.Uncertainty",
    base=codec.weights("o", 0.0),
    variances=codec.weights("vo", 0.0),
    means=codec.weights("do", 0.0),
)


# ------------------------------------------------------------------------------- edits


def _read_places(reader: ObjectReader, key: str, sizes: Sizes) -> list[int]:
    places, n = reader.items(key), math.prod(sizes.shape("vk"))
    if not all(type(place) is int and 0 <= place < n for place in places):
        raise reader.complaint(key, "must hold places of the table")
    return places


_LOGS = codec.list_of(codec.numbers("", -LARGEST_LOG, LARGEST_LOG))
_EDIT = codec.record(
    "model.edits.Edit",
    attribute=codec.text(),
    text=codec.text(),
    asked=codec.text(),
    reason=codec.text(),
    when=codec.text(),
    values=codec.list_of(codec.text()),
    before=_LOGS,
    after=_LOGS,
    places=Field(list, _read_places),
    table=_LOGS,
    log_prior=codec.logs(),
    centre=codec.numbers("dk", -LARGEST_LOG, LARGEST_LOG).or_null(),
    factors=codec.weights("gk").or_null(),
    marginal=MARGINAL.or_null(),
    valid=lambda edit: len(edit.places) == len(edit.table),
    wrong="must have a number for each place",
)


# ----------------------------------------------------------------------- training rows


def _read_reading(reader: ObjectReader, key: str, sizes: Sizes) -> dict[str, Any]:
    inner, optional = reader.inner(key), ["sheet", "missing_by_column"]
    if not reader.get(key):
        return {}
    # A spreadsheet has no marks.
    optional += ["separator", *_ASKED]
    absent = {name for name in optional if not inner.has(name)}
    if {*reader.get(key)} <= {*_ASKED}:
        absent |= {*_READING} - {*_ASKED}
    if "separator" in absent:
        absent |= {"decimal", "thousands"}
    fields = {name: field for name, field in _READING.items() if name not in absent}
    reading = codec.read_fields(inner, fields, sizes)
    if "separator" in reading and (
        len(reading["separator"]) != 1 or len(reading["thousands"]) > len("none")
    ):
        raise inner.complaint("separator", "must be a character, and so thousands")
    return reading


_MARKS = (".", ",")
_ASKED = dict.fromkeys(("file", "sha256", "title", "positive"), codec.text())
_READING = {
    "missing_values": codec.list_of(codec.text()),
    "separator": codec.text(),
    "decimal": codec.text(_MARKS),
    "thousands": codec.text(),
    "decimals": codec.by_name(codec.text(_MARKS)),
    "dates": codec.by_name(codec.text(tuple(ORDERS))),
    "units": codec.by_name(codec.text()),
    "sheet": codec.text(),
    "missing_by_column": codec.by_name(codec.list_of(codec.text())),
    **_ASKED,
}


def _increase(*spans: tuple[float, Any, float]) -> bool:
    points = [[low, *quartiles, high] for low, quartiles, high in spans]
    return points == list(map(sorted, points))


_WRONG_SPAN = "must have ends and quartiles that increase"
_RANGE = codec.record(
    "table.ranges.NumberRange",
    low=codec.numbers(),
    high=codec.numbers(),
    quartiles=codec.some_numbers(3),
    histogram=codec.some_numbers(N_BARS, 0.0, 1.0),
    weight=codec.numbers("", 0.0),
    valid=lambda span: _increase((span.low, span.quartiles, span.high)),
    wrong=_WRONG_SPAN,
)
_RANGES = codec.list_of(_RANGE.or_null(), "t")


def _read_ranges(reader: ObjectReader, key: str, sizes: Sizes) -> list[Any]:
    ranges: list[Any] = _RANGES.read(reader, key, sizes)
    features = sizes.schema.without_interactions.features
    for j, (span, feature) in enumerate(zip(ranges, features, strict=True)):
        if span is not None and feature.kind == "categorical":
            what = "must be null for a column of categories"
            raise reader.complaint(f"{key}.{j}", what)
    return ranges


# By columns, of which those of many classes are packed.
_SCORE_RANGES = codec.record(
    "table.ranges.NumberRange",
    low=codec.numbers("o"),
    high=codec.numbers("o"),
    quartiles=codec.numbers("oq"),
    histogram=codec.numbers("ob", 0.0, 1.0),
    weight=codec.numbers("o", 0.0),
    make=lambda number_range, schema, columns: [
        number_range(low, high, tuple(quartiles), tuple(histogram), weight)
        for low, high, quartiles, histogram, weight in zip(
            *(column.tolist() for column in columns.values()), strict=True
        )
    ],
    parts=lambda ranges: {
        name: np.array([getattr(span, name) for span in ranges])
        for name in ("low", "high", "quartiles", "histogram", "weight")
    },
    valid=lambda spans: _increase(
        *zip(
            *(of.tolist() for of in (spans.low, spans.quartiles, spans.high)),
            strict=True,
        )
    ),
    wrong=_WRONG_SPAN,
)


def _hash_text(hashes: Any) -> str:
    """Write hashes as their bytes, six each, in base64."""
    whole = b"".join(number.to_bytes(HASH_BYTES, "big") for number in hashes.tolist())
    return base64.b64encode(whole).decode("ascii")


def _read_hashes(reader: ObjectReader, key: str, sizes: Sizes) -> NDArray[Any]:
    try:
        whole = base64.b64decode(reader.text(key), validate=True)
    except ValueError:
        raise reader.complaint(key, "must be base64") from None
    starts = range(0, len(whole), HASH_BYTES)
    hashes = [int.from_bytes(whole[k : k + HASH_BYTES], "big") for k in starts]
    is_set = hashes == sorted({*hashes})
    if len(whole) % HASH_BYTES or not 0 < len(hashes) <= MAX_HASHES or not is_set:
        raise reader.complaint(key, "must hold different hashes, in order")
    return np.array(hashes, dtype=np.uint64)


_ROW_HASHES = codec.record(
    "notices.check.RowHashes",
    n_rows=codec.whole(1),
    n_hashed=codec.whole(1),
    repeated=codec.numbers("", 0.0, 1.0),
    hashes=Field(_hash_text, _read_hashes),
    valid=lambda hashes: hashes.n_hashed <= hashes.n_rows,
    wrong="must not hash more rows than there are",
)

_SUMMARY = codec.record(
    "notices.record.RowSummary",
    notices=Field(lambda notices: _tables(list(map(vars, notices))), _read_notices),
    row_hashes=_ROW_HASHES.or_null(),
    score_ranges=_SCORE_RANGES.or_null(),
    make=lambda summary, schema, values: codec.class_of(
        "notices.record.LazySummary"
    ).of(summary(**values)),
    parts=lambda summary: vars(summary.value),
)

_TRAINING = codec.record(
    "notices.record.TrainingRecord",
    reading=Field(
        lambda reading: codec.describe_fields(
            {name: _READING[name] for name in reading}, reading
        ),
        _read_reading,
    ),
    labels=codec.by_name(codec.text()),
    ranges=Field(_RANGES.describe, _read_ranges),
    cut_points_are_exact=codec.flag().or_null(),
    quality=_TABLES,
    summary=_SUMMARY,
)


# --------------------------------------------------------------------------- kept rows

# Microseconds since 1970 of all dates that there are in 64 bits.
_MAX_MICROS = 1 << 63

_FLAGS = ("is_category", "is_ordered", "is_integer")
_CELL_TYPES = {
    "text": (str,),
    "booleans": (bool,),
    # Numbers and booleans may have met in one column, over several chunks of rows.
    "numbers": (bool, int, float),
    "nothing": (),
}
_COLUMN_CLASSES = {
    "dates": "table.columns.DayColumn",
    "numbers": "table.columns.ArrayColumn",
    "values": "table.columns.FactorColumn",
}
_NUMBER_CELLS = codec.numbers(
    "n", -sys.float_info.max, sys.float_info.max, codec.MISSING
)


def _describe_column(column: Any) -> dict[str, Any]:
    homes = {codec.class_of(home): kind for kind, home in _COLUMN_CLASSES.items()}
    described = {"name": column.name, "kind": homes[type(column)]}
    if described["kind"] == "numbers":
        return {**described, "cells": _NUMBER_CELLS.describe(column.numbers())}
    if described["kind"] == "dates":
        micros = column.dates.astype("datetime64[us]")
        cells = micros.astype(np.int64).astype(object)
        cells[np.isnat(micros)] = None
        return {**described, "cells": cells.tolist()}
    factor = column.factor()
    return {
        **described,
        "storage": column.storage,
        "values": factor.values,
        **{flag: getattr(column, flag) for flag in _FLAGS},
        # 0 is a missing cell.
        "cells": (factor.indices + 1).tolist(),
    }


def _read_column(reader: ObjectReader, position: int, sizes: Sizes) -> ReadRecord:
    name, kind = reader.get("name"), reader.text("kind", tuple(_COLUMN_CLASSES))
    if name is not None and not isinstance(name, str):
        raise reader.complaint("name", "must be text or null")
    read = {"dates": _read_dates, "numbers": _NUMBER_CELLS.read, "values": _read_values}
    cells = read[kind](reader, "cells", sizes)
    reader.finish()

    def make(name: str | None, kind: str, cells: Any) -> Any:
        column = codec.class_of(_COLUMN_CLASSES[kind])
        if kind == "values":
            factor, storage, flags = cells
            return column(position, name, factor, storage, **flags)
        return column(position, name, cells)

    return ReadRecord(make, name=name, kind=kind, cells=cells)


def _read_dates(reader: ObjectReader, key: str, sizes: Sizes) -> NDArray[Any]:
    cells = reader.items(key)
    observed = [cell for cell in cells if cell is not None]
    is_whole = len(cells) == sizes.n and {*map(type, observed)} <= {int}
    if not is_whole or not all(abs(cell) < _MAX_MICROS for cell in observed):
        raise reader.complaint(key, f"must hold {sizes.n} dates, or null")
    # The smallest number is no date.
    micros = [-_MAX_MICROS if cell is None else cell for cell in cells]
    return np.array(micros, dtype="datetime64[us]")


def _read_values(reader: ObjectReader, key: str, sizes: Sizes) -> ReadRecord:
    storage = reader.text("storage", tuple(_CELL_TYPES))
    values = reader.values("values", _CELL_TYPES[storage], has_order=True)
    flags = {flag: reader.flag(flag) for flag in _FLAGS}
    if flags["is_integer"] and float in map(type, values):
        raise reader.complaint("is_integer", "must belong to whole numbers")
    cells = reader.wholes(key, sizes.n, len(values) + 1)

    def make(cells: Any) -> Any:
        factor = codec.class_of("table.factors.Factor")
        return factor(cells - np.int32(1), values), storage, flags

    return ReadRecord(make, cells=np.array(cells, dtype=np.int32))


def _read_columns(
    reader: ObjectReader, key: str, sizes: Sizes
) -> tuple[ReadRecord, ...]:
    """Return the columns of a table that the schema is of."""
    columns = tuple(
        _read_column(entries.inner(j), int(j), sizes)
        for entries, j in reader.entries(key)
    )
    names = [column.name for column in columns]
    if sizes.schema.names is None:
        is_table = names == [None] * sizes.schema.n_columns
    else:
        dates = [column.name for column in columns if column.kind == "dates"]
        parts = {f"{name}.{part}" for name in dates for part in PARTS}
        expected = {*sizes.schema.names}
        is_table = None not in names and len({*names}) == len(names)
        is_table = is_table and {*names} <= expected <= {*names} | parts
    if not is_table:
        raise reader.complaint(key, "must be the columns of the table")
    return columns


_RESERVOIR = codec.record(
    "fitting.default.continuation.Reservoir",
    counted="labels",
    columns=Field(lambda columns: list(map(_describe_column, columns)), _read_columns),
    labels=codec.positions("n", "k", "uint32"),
    weights=codec.weights("n", 0.0),
    priorities=codec.numbers("n", 0.0),
    threshold=codec.numbers("", 0.0),
    n_drawn_from=codec.whole(1),
    new_weight=codec.weights("", 0.0),
    valid=lambda rows: len(rows.labels) <= MAX_KEPT,
    wrong=f"must have at most {MAX_KEPT} rows",
)


# -------------------------------------------------------------------------- attributes


def _by_value(n_of_density: int) -> Field:
    """Return a field of weights of values, an array for each attribute."""

    def read(reader: ObjectReader, key: str, sizes: Sizes) -> list[Floats]:
        (n_classes,), features = sizes.shape("c"), sizes.schema.features
        arrays = []
        entries = reader.entries(key, len(features))
        for (entry, j), feature in zip(entries, features, strict=True):
            shape = (n_classes, feature.n_values if feature.is_coded else n_of_density)
            arrays.append(entry.floats(j, shape, -LARGEST_WEIGHT, LARGEST_WEIGHT))
        return arrays

    return Field(float_list, read).by_pair()


_ROW_WEIGHTS = codec.numbers("n", 0.0, LARGEST_WEIGHT, codec.MISSING)


def _read_row_weights(reader: ObjectReader, key: str, sizes: Sizes) -> Any:
    # One for each training row, whose number the model does not know.
    n_rows = len(reader.items(key))
    if not n_rows:
        raise reader.complaint(key, "must not be empty")
    return _ROW_WEIGHTS.read(reader, key, replace(sizes, n=n_rows))


def _read_subset(reader: ObjectReader, key: str, sizes: Sizes) -> list[Any]:
    chosen = reader.items(key)
    attributes = set(feature_labels(sizes.schema, range(len(sizes.schema))))
    if not all(type(item) in (int, str) and item in attributes for item in chosen):
        raise reader.complaint(key, "must hold attributes of the table")
    if len(set(chosen)) != len(chosen):
        raise reader.complaint(key, "must hold different attributes")
    return chosen


def _read_strength(reader: ObjectReader, key: str, sizes: Sizes) -> tuple[float, ...]:
    return tuple(reader.floats(key, (3,), sys.float_info.min, LARGEST_NUMBER).tolist())


def _read_term_names(reader: ObjectReader, key: str, sizes: Sizes) -> NDArray[Any]:
    labels = sizes.schema.labels()
    if reader.items(key) != labels:
        raise reader.complaint(key, "must name the attributes of the table")
    return np.array(labels, dtype=object)


def _read_parents(reader: ObjectReader, key: str, sizes: Sizes) -> NDArray[Any]:
    parents = sizes.schema.parents()
    if reader.items(key) != parents:
        what = "must be the parents in the interactions of the table"
        raise reader.complaint(key, what)
    return np.array(parents, dtype=np.int64)


# All fitted attributes that any classifier has, beside model and encoder.
ATTRIBUTES: dict[str, Field] = {
    "counts_": _COUNTS,
    "training_": _TRAINING,
    "class_count_": codec.numbers("k", 0.0),
    "class_log_prior_": codec.logs(),
    "attribute_weights_": codec.weights("pd"),
    "class_attribute_weights_": codec.weights("pcd"),
    # A density has no values, and so no effects.
    "value_effects_": _by_value(0),
    "value_weights_": _by_value(1),
    "intercept_": codec.weights("pc"),
    "strength_": Field(list, _read_strength),
    "scale_": codec.numbers("", 0.01, 100.0),
    "shape_losses_": Field(list, _read_strength),
    "step_factor_": codec.numbers("", 0.01, 1e6),
    "strength_path_": _TABLES,
    "interactions_": _TABLES,
    "term_names_": Field(list, _read_term_names),
    "prior_weight_": codec.weights("p"),
    "alpha_": codec.numbers("p", 0.0, 1.0),
    "objective_": codec.numbers(),
    "n_iter_": codec.whole(1),
    "diagnostics_": _TABLES,
    "instance_weights_": Field(_ROW_WEIGHTS.describe, _read_row_weights),
    "n_rounds_": codec.whole(0),
    "votes_": codec.weights("n", 0.0),
    "selected_features_": Field(list, _read_subset).by_pair(),
    "selection_path_": Field(_tables, _read_path),
    "case_processing_": Field(_tables, _read_path),
    "classification_table_": Field(_tables, _read_path),
    "search_end_": codec.text(SEARCH_ENDS),
    "edits_": codec.list_of(_EDIT),
    "kept_rows_": _RESERVOIR,
    "uncertainty_": _UNCERTAINTY,
    "target_name_": codec.text(),
    "parents_": Field(lambda parents: parents.tolist(), _read_parents),
    "parent_weights_": codec.weights("d", 0.0),
    "error_": codec.numbers("", 0.0, 1.0),
}
