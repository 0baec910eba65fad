"""Classes and attributes in a model file."""

from __future__ import annotations

import operator
import sys
from dataclasses import fields, replace
from itertools import chain
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from steelyard._common.allowed import MIN_STEP
from steelyard.persistence.codec import LARGEST_NUMBER
from steelyard.persistence.reader import ObjectReader
from steelyard.table.schema import FeatureSchema, Kind, Side, TableSchema

_KINDS = get_args(Kind)
_CELLS = ("numbers", "text", "booleans", "nothing")
_TEXT = (str,)
_NUMBERS = (bool, int, float)
_LARGEST_FLOAT = sys.float_info.max

# What the values of an array of classes may be, by the name of its type. A width of
# text is not among the names: a file must not say how much memory to reserve.
_CLASS_KINDS: dict[str, tuple[type, ...]] = {
    "object": (str, bool, int, float),
    "str": _TEXT,
    "bool": (bool,),
    **{f"{sign}int{bits}": (int,) for sign in ("", "u") for bits in (8, 16, 32, 64)},
    **{f"float{bits}": (float,) for bits in (16, 32, 64)},
}

# Text of one width takes the room of the longest class for each: 64 MB at most.
_MAX_CHARACTERS = 1 << 24


def describe_classes(classes: NDArray[Any]) -> dict[str, Any]:
    """Describe an array of classes: values, and what they are made of."""
    name = "str" if classes.dtype.kind == "U" else classes.dtype.name
    if name not in _CLASS_KINDS:  # a type of numbers that not every machine has
        classes, name = classes.astype(np.float64), "float64"
    return {"dtype": name, "values": classes.tolist()}


def read_classes(reader: ObjectReader) -> NDArray[Any]:
    """Return at least two classes."""
    name = reader.text("dtype", list(_CLASS_KINDS))
    kinds = _CLASS_KINDS[name]
    if name == "object":
        text = any(isinstance(value, str) for value in reader.items("values"))
        kinds = _TEXT if text else _NUMBERS
    values = reader.values("values", kinds)
    reader.finish()
    if len(values) < 2:
        raise reader.complaint("values", "must hold at least two classes")
    width = max(map(len, values)) if name == "str" else 0
    if len(values) * width > _MAX_CHARACTERS:
        raise reader.complaint("values", "is too long for text of one width")
    # A type too narrow would turn two classes into one.
    if not all(_holds(name, value) for value in values):
        raise reader.complaint("dtype", "does not fit the classes")
    return np.array(values, dtype=f"U{width}" if width else name)


def _holds(name: str, value: Any) -> bool:
    """Whether a type of NumPy holds a value, to which it comes back."""
    if name == "str":
        # Text of one width is filled up with zeros.
        return not value.endswith("\0")
    kind = np.dtype(name)
    if kind.kind in "iu":
        return bool(np.iinfo(kind).min <= value <= np.iinfo(kind).max)
    with np.errstate(over="ignore"):
        return kind.kind != "f" or float(kind.type(value)) == value


def describe_schema(schema: TableSchema) -> list[dict[str, Any]]:
    """Describe the attributes of a table."""
    names = [field.name for field in fields(FeatureSchema)]
    return [
        {
            **{name: getattr(feature, name) for name in names},
            "values": list(feature.values),
            "edges": list(feature.edges),
            "cuts": list(map(list, feature.cuts)),
            "sides": [{**vars(s), "groups": list(s.groups)} for s in feature.sides],
        }
        for feature in schema.features
    ]


def read_schema(reader: ObjectReader) -> TableSchema:
    """Return the attributes of a table, at least one."""
    entries = reader.entries("features")
    if not entries:
        raise reader.complaint("features", "must not be empty")
    schema = TableSchema(tuple(_read_feature(entry.inner(j)) for entry, j in entries))
    _check_interactions(reader, schema)
    names = [feature.name for feature in schema.without_interactions.features]
    named = {name for name in names if name is not None}
    if named and len(named) != len(names):
        raise reader.complaint("features", "must all have different names, or none")
    return schema


def _check_interactions(reader: ObjectReader, schema: TableSchema) -> None:
    """Refuse interactions before other attributes, and sides that these do not have."""
    columns = schema.features[: schema.n_columns]
    if not columns or any(feature.sides for feature in columns):
        raise reader.complaint("features", "must have its interactions last")
    for j, interaction in enumerate(schema.features[len(columns) :], len(columns)):
        for side in interaction.sides:
            if side.feature >= len(columns) or not columns[side.feature].is_coded:
                what = "must be of attributes with codes"
            elif len(side.groups) != columns[side.feature].n_codes:
                what = "must have a group for each code of its attribute"
            else:
                continue
            raise reader.complaint(f"features.{j}.sides", what)


def _read_sides(reader: ObjectReader) -> tuple[Side, ...]:
    """Return the two sides of an interaction, none of other attributes."""
    sides = []
    for entry, k in reader.entries("sides", 2 if reader.items("sides") else 0):
        inner = entry.inner(k)
        feature, n_codes = inner.whole("feature"), len(inner.items("groups"))
        groups = inner.wholes("groups", n_codes, max(n_codes, 1))
        inner.finish()
        if not groups or groups[0] != 0 or set(groups) != set(range(max(groups) + 1)):
            raise inner.complaint("groups", "must be numbered from 0 on, code 0 first")
        sides.append(Side(feature, tuple(groups)))
    return tuple(sides)


def _read_cuts(reader: ObjectReader, n_edges: int) -> tuple[tuple[int, ...], ...]:
    """Return the cut points of each of several discretizers among the edges."""
    cuts = tuple(
        tuple(entry.wholes(k, len(entry.items(k)), n_edges))
        for entry, k in reader.entries("cuts")
    )
    if not all(cut == tuple(sorted({*cut})) for cut in cuts):
        raise reader.complaint("cuts", "must be increasing positions among the edges")
    if cuts and (len(cuts) == 1 or {*chain(*cuts)} != {*range(n_edges)}):
        raise reader.complaint("cuts", "must be of several encodings, with all edges")
    return cuts


def _read_number(reader: ObjectReader, key: str) -> float:
    return reader.number(key, -LARGEST_NUMBER, LARGEST_NUMBER)


def _read_feature(reader: ObjectReader) -> FeatureSchema:
    name = reader.get("name")
    if name is not None and not isinstance(name, str):
        raise reader.complaint("name", "must be text or null")
    kind: Any = reader.text("kind", _KINDS)
    cells = reader.text("cells", _CELLS)
    n_edges = len(reader.items("edges"))
    # Cut points are compared and no more: they may be as large as cells are.
    edges = reader.floats("edges", (n_edges,), -_LARGEST_FLOAT, _LARGEST_FLOAT).tolist()
    is_ordered = reader.flag("ordered")
    # Numbers and booleans may have met in one column, over several chunks of rows.
    feature = FeatureSchema(
        name,
        kind,
        cells,
        values=tuple(
            reader.values("values", _TEXT if cells == "text" else _NUMBERS, is_ordered)
        ),
        edges=tuple(edges),
        missing_is_value=reader.flag("missing_is_value"),
        fill=None if reader.get("fill") is None else _read_number(reader, "fill"),
        step=_read_number(reader, "step"),
        cuts=_read_cuts(reader, n_edges),
        sides=_read_sides(reader),
        ordered=is_ordered,
        left_out=reader.flag("left_out"),
    )
    reader.finish()
    if feature.left_out and (kind, cells) != ("categorical", "nothing"):
        raise reader.complaint("left_out", "must belong to categories without values")
    if bool(feature.sides) != (kind == "interaction"):
        raise reader.complaint(
            "kind", "must be interaction for two sides, and only then"
        )
    if feature.sides and (name, cells) != (None, "nothing"):
        raise reader.complaint("name", "does not fit an interaction, nor do cells")
    if feature.sides and (feature.missing_is_value or feature.fill is not None):
        raise reader.complaint(
            "fill", "does not fit an interaction, nor does a missing value"
        )
    increases = all(map(operator.lt, edges, edges[1:]))
    if not increases or ((n_edges or feature.cuts) and kind != "binned"):
        raise reader.complaint("edges", "must increase, and belong to bins")
    if is_ordered and not feature.values:
        raise reader.complaint("ordered", "must belong to values")
    if feature.values and (kind != "categorical" or cells == "nothing"):
        raise reader.complaint("values", "must belong to categories")
    if kind != "categorical" and cells == "text":
        raise reader.complaint("cells", "must not be text in a numeric attribute")
    if feature.missing_is_value and (feature.fill is not None or not feature.is_coded):
        raise reader.complaint("missing_is_value", "does not fit the attribute")
    if not (feature.step == 0 or feature.step >= MIN_STEP):
        raise reader.complaint("step", f"must be 0 or at least {MIN_STEP:g}")
    if (feature.step > 0) != (kind == "gaussian-weka"):
        raise reader.complaint("step", "does not fit the kind of the attribute")
    if feature.fill is not None and feature.is_coded:
        code = feature.fill
        if not 1 <= code <= feature.n_values or code != int(code):
            raise reader.complaint("fill", "must be a code of the attribute")
        feature = replace(feature, fill=int(code))
    return feature
