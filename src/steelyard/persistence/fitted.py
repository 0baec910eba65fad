"""Fitted attributes in a model file, by name, each with the shape it must have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.classifiers.selection import SelectionPath
from steelyard.fitting.forward_search import SEARCH_ENDS
from steelyard.persistence.models import LARGEST_LOG, LARGEST_WEIGHT
from steelyard.persistence.reader import (
    Reader,
    float_list,
    gap_list,
    log_list,
    read_tagged,
    tagged_number,
)
from steelyard.proba.counts import Counts, Moments
from steelyard.table.schema import TableSchema, feature_labels

__all__ = ["ATTRIBUTES", "Attribute", "Sizes"]


@dataclass(frozen=True)
class Sizes:
    """What the shapes of fitted attributes are made of."""

    schema: TableSchema
    n_classes: int
    n_pairs: int | None = None
    """How many pairs of classes have weights of their own; None where none has."""

    n_votes: int = 1
    """How many models vote."""

    @classmethod
    def of(cls, model: Any) -> Sizes:
        """Return the sizes of a model."""
        n_pairs = len(model.pairs) if model.kind == "pairs" else None
        n_votes = len(model.models) if model.kind == "votes" else 1
        return cls(model.schema, len(model.classes), n_pairs, n_votes)

    @property
    def learners(self) -> tuple[int, ...]:
        """Leading axis of what is learned for each pair: none without pairs."""
        return () if self.n_pairs is None else (self.n_pairs,)

    @property
    def learned_classes(self) -> int:
        """Classes that one set of weights tells apart."""
        return self.n_classes if self.n_pairs is None else 2


@dataclass(frozen=True)
class Attribute:
    """How a fitted attribute is described, and how it is read."""

    describe: Callable[[Any], Any]
    read: Callable[[Reader, str, Sizes], Any]


def _array(
    shape: Callable[[Sizes], tuple[int, ...]], low: float, high: float
) -> Attribute:
    """Return an attribute that is an array of finite numbers, or one such number."""

    def read(reader: Reader, key: str, sizes: Sizes) -> Any:
        array = reader.floats(key, shape(sizes), low=low, high=high)
        return array if array.ndim else float(array)

    return Attribute(float_list, read)


def _weights(shape: Callable[[Sizes], tuple[int, ...]]) -> Attribute:
    return _array(
        lambda sizes: (*sizes.learners, *shape(sizes)), -LARGEST_WEIGHT, LARGEST_WEIGHT
    )


# ------------------------------------------------------------------------------- counts


def _counts(counts: Counts) -> dict[str, Any]:
    return {
        "by_class": float_list(counts.by_class),
        "by_code": float_list(counts.by_code),
        "weight": float_list(counts.moments.weight),
        "mean": float_list(counts.moments.mean),
        "squares": float_list(counts.moments.squares),
    }


def _read_counts(reader: Reader, key: str, sizes: Sizes) -> Counts:
    schema, k = sizes.schema, sizes.n_classes
    v, g = schema.n_codes, len(schema.gaussian)
    counted = reader.inner(key)
    counts = Counts(
        schema,
        counted.floats("by_class", (k,), low=0.0),
        counted.floats("by_code", (v, k), low=0.0),
        Moments(
            counted.floats("weight", (g, k), low=0.0),
            counted.floats("mean", (g, k)),
            counted.floats("squares", (g, k), low=0.0),
        ),
    )
    counted.finish()
    return counts


# ------------------------------------------------------------------- weights of values


def _value_weights(weights: list[Any]) -> list[Any]:
    return [
        _value_weights(one) if isinstance(one, list) else float_list(one)
        for one in weights
    ]


def _read_value_weights(
    reader: Reader, key: str, sizes: Sizes, density: int = 1
) -> list[Any]:
    if sizes.n_pairs is None:
        return _read_by_attribute(reader, key, sizes, density)
    pairs = reader.numbered(key, sizes.n_pairs)
    return [
        _read_by_attribute(pairs, str(i), sizes, density) for i in range(sizes.n_pairs)
    ]


def _read_by_attribute(
    reader: Reader, key: str, sizes: Sizes, density: int
) -> list[NDArray[np.float64]]:
    features = sizes.schema.features
    entries = reader.numbered(key, len(features))
    return [
        entries.floats(
            str(j),
            (sizes.learned_classes, feature.n_values if feature.is_coded else density),
            low=-LARGEST_WEIGHT,
            high=LARGEST_WEIGHT,
        )
        for j, feature in enumerate(features)
    ]


def _read_value_effects(reader: Reader, key: str, sizes: Sizes) -> list[Any]:
    # A density has no values, and so no effects.
    return _read_value_weights(reader, key, sizes, 0)


# ------------------------------------------------------------------------------ records


def _records(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
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


def _read_records(reader: Reader, key: str, sizes: Sizes) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    runs = reader.numbered(key, len(reader.items(key)))
    for i in range(len(reader.items(key))):
        run = runs.inner(str(i))
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


def _read_cell(cell: Any, reader: Reader, nested: bool = False) -> Any:
    if type(cell) is dict:
        return read_tagged(cell, "content.fitted", ("inf", "-inf", "nan"))
    if type(cell) is list and not nested:
        return [_read_cell(item, reader, True) for item in cell]
    if cell is not None and type(cell) not in (bool, int, float, str):
        raise reader.complaint("rows", "must hold plain values")
    return cell


# ----------------------------------------------------------------------- rows' weights


def _row_weights(weights: NDArray[np.float64]) -> list[Any]:
    return gap_list(weights)


def _read_row_weights(reader: Reader, key: str, sizes: Sizes) -> NDArray[np.float64]:
    # One for each training row, whose number the model does not know.
    weights = reader.gaps(key, (len(reader.items(key)),), low=0.0, high=LARGEST_WEIGHT)
    if not weights.size:
        raise reader.complaint(key, "must not be empty")
    return weights


# --------------------------------------------------------------- selected attributes


def _read_selected(reader: Reader, key: str, sizes: Sizes) -> list[Any]:
    if sizes.n_pairs is None:
        return _read_subset(reader, key, sizes)
    subsets = reader.numbered(key, sizes.n_pairs)
    return [_read_subset(subsets, str(i), sizes) for i in range(sizes.n_pairs)]


def _read_subset(reader: Reader, key: str, sizes: Sizes) -> list[Any]:
    chosen = reader.items(key)
    known = set(feature_labels(sizes.schema, range(len(sizes.schema))))
    if not all(type(item) in (int, str) and item in known for item in chosen):
        raise reader.complaint(key, "must hold attributes of the table")
    if len(set(chosen)) != len(chosen):
        raise reader.complaint(key, "must hold different attributes")
    return chosen


def _read_path(reader: Reader, key: str, sizes: Sizes) -> SelectionPath:
    return SelectionPath(_read_records(reader, key, sizes))


def _read_strength(reader: Reader, key: str, sizes: Sizes) -> tuple[float, ...]:
    least = float(np.finfo(np.float64).tiny)
    return tuple(reader.floats(key, (3,), low=least).tolist())


def _read_view_names(reader: Reader, key: str, sizes: Sizes) -> NDArray[Any]:
    labels = sizes.schema.labels()
    if reader.items(key) != labels:
        raise reader.complaint(key, "must name the attributes of the table")
    return np.asarray(labels, dtype=object)


# All fitted attributes that any classifier has, beside model and encoder.
ATTRIBUTES: dict[str, Attribute] = {
    "counts_": Attribute(_counts, _read_counts),
    "class_count_": _array(lambda sizes: (sizes.n_classes,), 0.0, np.inf),
    "class_log_prior_": Attribute(
        log_list,
        lambda reader, key, sizes: reader.logs(key, sizes.n_classes, LARGEST_LOG),
    ),
    "attribute_weights_": _weights(lambda sizes: (len(sizes.schema),)),
    "class_attribute_weights_": _weights(
        lambda sizes: (sizes.learned_classes, len(sizes.schema))
    ),
    "value_effects_": Attribute(_value_weights, _read_value_effects),
    "value_weights_": Attribute(_value_weights, _read_value_weights),
    "intercept_": _weights(lambda sizes: (sizes.learned_classes,)),
    "strength_": Attribute(list, _read_strength),
    "scale_": _array(lambda sizes: (), 0.01, 100.0),
    "strength_path_": Attribute(_records, _read_records),
    "view_names_": Attribute(list, _read_view_names),
    "prior_weight_": _weights(lambda sizes: ()),
    "alpha_": _array(lambda sizes: sizes.learners, 0.0, 1.0),
    "objective_": _array(lambda sizes: (), -np.inf, np.inf),
    "n_iter_": Attribute(int, lambda reader, key, sizes: reader.whole(key, low=1)),
    "diagnostics_": Attribute(_records, _read_records),
    "instance_weights_": Attribute(_row_weights, _read_row_weights),
    "n_rounds_": Attribute(int, lambda reader, key, sizes: reader.whole(key)),
    "votes_": _array(lambda sizes: (sizes.n_votes,), 0.0, LARGEST_WEIGHT),
    "selected_features_": Attribute(list, _read_selected),
    "selection_path_": Attribute(_records, _read_path),
    "search_end_": Attribute(
        str, lambda reader, key, sizes: reader.text(key, SEARCH_ENDS)
    ),
    "error_": _array(lambda sizes: (), 0.0, 1.0),
}
