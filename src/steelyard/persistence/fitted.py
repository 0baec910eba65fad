"""Fitted attributes in a model file, by name, each with the shape it must have."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import groupby
from typing import Any

from steelyard._common import np
from steelyard._common.allowed import SEARCH_ENDS
from steelyard.io.dates import ORDERS
from steelyard.notices.notice import Notice
from steelyard.persistence import codec
from steelyard.persistence.codec import (
    LARGEST_NUMBER,
    LARGEST_SQUARE,
    LARGEST_WEIGHT,
    Field,
    Sizes,
)
from steelyard.persistence.reader import (
    ObjectReader,
    ReadNumbers,
    float_list,
    read_tagged,
    tagged_number,
)
from steelyard.persistence.records import (
    COUNTS,
    EDITS,
    KEPT,
    RANGES,
    ROW_HASHES,
    SCORE_RANGES,
    UNCERTAINTY,
)
from steelyard.table.schema import feature_labels

Records = list[dict[str, Any]]


def _by_pair(field: Field) -> Field:
    """Return a field of one value for each pair of classes, where pairs are learned."""

    def read(reader: ObjectReader, key: str, sizes: Sizes) -> Any:
        if not sizes.by_pair:
            return field.read(reader, key, sizes)
        return [field.read(*entry, sizes) for entry in reader.entries(key, sizes.n)]

    return Field(field.describe, read)


def _by_value(n_of_density: int) -> Field:
    """Return a field of weights of values, an array for each attribute."""

    def read(reader: ObjectReader, key: str, sizes: Sizes) -> list[ReadNumbers]:
        (n_classes,), features = sizes.shape("c"), sizes.schema.features
        arrays = []
        for (entry, j), feature in zip(
            reader.entries(key, len(features)), features, strict=True
        ):
            shape = (n_classes, feature.n_values if feature.is_coded else n_of_density)
            arrays.append(entry.floats(j, shape, -LARGEST_WEIGHT, LARGEST_WEIGHT))
        return arrays

    return _by_pair(Field(float_list, read))


# ------------------------------------------------------------------------------ records


def _records(records: Records) -> Records:
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


def _read_records(reader: ObjectReader, key: str, sizes: Sizes) -> Records:
    records: Records = []
    for runs, i in reader.entries(key):
        run = runs.inner(i)
        columns, rows = run.items("columns"), run.items("rows")
        run.finish()
        if not all(type(name) is str for name in columns):
            raise run.complaint("columns", "must hold names")
        if len(set(columns)) != len(columns):
            raise run.complaint("columns", "must hold different names")
        for row in rows:
            if type(row) is not list or len(row) != len(columns):
                raise run.complaint("rows", "must have as many cells as columns")
            cells = [_read_cell(cell, run) for cell in row]
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


# ------------------------------------------------------------------------------- others


_ROW_WEIGHTS = codec.numbers("n", 0.0, LARGEST_WEIGHT, codec.MISSING)


def _read_row_weights(reader: ObjectReader, key: str, sizes: Sizes) -> Any:
    # One for each training row, whose number the model does not know.
    n_rows = len(reader.items(key))
    if not n_rows:
        raise reader.complaint(key, "must not be empty")
    return _ROW_WEIGHTS.read(reader, key, replace(sizes, n=n_rows))


def _read_subset(reader: ObjectReader, key: str, sizes: Sizes) -> list[Any]:
    chosen = reader.items(key)
    known = set(feature_labels(sizes.schema, range(len(sizes.schema))))
    if not all(type(item) in (int, str) and item in known for item in chosen):
        raise reader.complaint(key, "must hold attributes of the table")
    if len(set(chosen)) != len(chosen):
        raise reader.complaint(key, "must hold different attributes")
    return chosen


def _read_strength(reader: ObjectReader, key: str, sizes: Sizes) -> tuple[float, ...]:
    return tuple(reader.floats(key, (3,), sys.float_info.min, LARGEST_NUMBER).flat)


def _read_term_names(reader: ObjectReader, key: str, sizes: Sizes) -> list[str]:
    labels = sizes.schema.labels()
    if reader.items(key) != labels:
        raise reader.complaint(key, "must name the attributes of the table")
    return labels


def _read_parents(reader: ObjectReader, key: str, sizes: Sizes) -> list[int]:
    parents = sizes.schema.parents()
    if reader.items(key) != parents:
        raise reader.complaint(
            key, "must be the parents in the interactions of the table"
        )
    return parents


def _read_notices(reader: ObjectReader, key: str, sizes: Sizes) -> Records:
    notices = _read_records(reader, key, sizes)
    for notice in notices:
        rows = notice.pop("rows", None)
        texts = [notice.get(name) for name in ("kind", "text", "done", "advice")]
        is_text = all(type(text) is str for text in texts)
        if not is_text or type(rows) is not int or rows < 0 or len(notice) != 5:
            raise reader.complaint(key, "must hold texts and numbers of rows")
        if "column" not in notice or type(notice["column"]) not in (str, type(None)):
            raise reader.complaint(key, "must name columns")
        notice["rows"] = rows
    return notices


def _read_reading(reader: ObjectReader, key: str, sizes: Sizes) -> dict[str, Any]:
    inner = reader.inner(key)
    if not reader.get(key):
        return {}
    reading: dict[str, Any] = {"missing_values": inner.items("missing_values")}
    # A spreadsheet has no marks.
    if inner.has("separator"):
        reading["separator"] = inner.text("separator")
        reading["decimal"] = inner.text("decimal", (".", ","))
        reading["thousands"] = inner.text("thousands")
        if len(reading["separator"]) != 1 or len(reading["thousands"]) > len("none"):
            raise inner.complaint("separator", "must be a character, and so thousands")
    if not all(isinstance(word, str) for word in reading["missing_values"]):
        raise inner.complaint("missing_values", "must hold words")
    reading["decimals"] = _read_texts(inner, "decimals", (".", ","))
    reading["dates"] = _read_texts(inner, "dates", tuple(ORDERS))
    reading["units"] = _read_texts(inner, "units")
    if inner.has("sheet"):
        reading["sheet"] = inner.text("sheet")
    if inner.has("missing_by_column"):
        words = inner.inner("missing_by_column")
        names = inner.get("missing_by_column")
        reading["missing_by_column"] = {name: words.items(name) for name in names}
        if not all(isinstance(w, str) for of in names.values() for w in of):
            raise inner.complaint("missing_by_column", "must hold words")
    inner.finish()
    return reading


def _read_texts(
    reader: ObjectReader, key: str, allowed: tuple[str, ...] | None = None
) -> dict[str, str]:
    """Return a text for each of some names."""
    inner = reader.inner(key)
    return {name: inner.text(name, allowed) for name in reader.get(key)}


_RECORDS = Field(_records, _read_records)

_SUMMARY: dict[str, Field] = {
    "notices": Field(
        lambda notices: _records([vars(notice) for notice in notices]),
        _read_notices,
        lambda notices, sizes: [Notice(**notice) for notice in notices],
    ),
    "row_hashes": ROW_HASHES.or_null(),
    "score_ranges": SCORE_RANGES.or_null(),
}
_RECORD: dict[str, Field] = {
    "reading": Field(
        lambda reading: {
            **reading,
            **({"missing_values": [*reading["missing_values"]]} if reading else {}),
        },
        _read_reading,
    ),
    "labels": Field(dict, lambda reader, key, sizes: _read_texts(reader, key)),
    "ranges": RANGES,
    "cut_points_are_exact": Field(
        bool, lambda reader, key, sizes: reader.flag(key)
    ).or_null(),
    "quality": _RECORDS,
    "summary": codec.record(_SUMMARY, codec.object_of("notices.record.RowSummary")),
}


def _training_record(sizes: Sizes, summary: Any, **values: Any) -> Any:
    lazy = codec.class_of("notices.record.LazySummary").of(summary)
    return codec.class_of("notices.record.TrainingRecord")(**values, summary=lazy)


_TRAINING = codec.record(
    _RECORD,
    _training_record,
    lambda record: {**vars(record), "summary": record.summary.value},
)

# All fitted attributes that any classifier has, beside model and encoder.
ATTRIBUTES: dict[str, Field] = {
    "counts_": COUNTS,
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
    "strength_path_": _RECORDS,
    "interactions_": _RECORDS,
    "term_names_": Field(
        list, _read_term_names, lambda names, sizes: np.asarray(names, dtype=object)
    ),
    "prior_weight_": codec.weights("p"),
    "alpha_": codec.numbers("p", 0.0, 1.0),
    "objective_": codec.numbers(""),
    "n_iter_": codec.whole(1),
    "diagnostics_": _RECORDS,
    "instance_weights_": Field(_ROW_WEIGHTS.describe, _read_row_weights),
    "n_rounds_": codec.whole(0),
    "votes_": codec.numbers("n", 0.0, LARGEST_WEIGHT),
    "selected_features_": _by_pair(Field(list, _read_subset)),
    "selection_path_": replace(
        _RECORDS,
        build=lambda records, sizes: codec.class_of(
            "classifiers.base.selection.SelectionPath"
        )(records),
    ),
    "search_end_": codec.word(SEARCH_ENDS),
    "edits_": EDITS,
    "kept_rows_": KEPT,
    "uncertainty_": UNCERTAINTY,
    "target_name_": codec.text(),
    "parents_": Field(
        lambda parents: parents.tolist(),
        _read_parents,
        lambda parents, sizes: np.array(parents, dtype=np.int64),
    ),
    "parent_weights_": codec.numbers("d", 0.0, LARGEST_WEIGHT),
    "error_": codec.numbers("", 0.0, 1.0),
}
