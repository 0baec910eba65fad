"""Records in a model file: counts, ranges, hashes, kept rows, uncertainty, edits."""

from __future__ import annotations

import base64
import math
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from steelyard._common import np
from steelyard._common.allowed import HASH_BYTES, MAX_HASHES, MAX_KEPT, N_BARS
from steelyard.persistence import codec
from steelyard.persistence.codec import (
    LARGEST_LOG,
    LARGEST_SQUARE,
    LARGEST_WEIGHT,
    Field,
    Sizes,
)
from steelyard.persistence.reader import ObjectReader, float_list
from steelyard.table.dates import PARTS

if TYPE_CHECKING:
    from steelyard.proba.counts import Counts


def _counts(sizes: Sizes, by_class: Any, by_code: Any, **moments: Any) -> Counts:
    from steelyard.proba.counts import Counts, Moments

    return Counts(sizes.schema, by_class, by_code, Moments(**moments))


def _check_counts(counts: Any) -> str | None:
    pairs = zip(counts.squares.flat, counts.weight.flat, strict=True)
    if any(squares > LARGEST_SQUARE * weight for squares, weight in pairs):
        return "must have variances that are not too large"
    return None


_COUNTS = {
    "by_class": codec.numbers("k", 0.0),
    "by_code": codec.numbers("vk", 0.0),
    "weight": codec.numbers("gk", 0.0),
    "mean": codec.numbers("gk"),
    "squares": codec.numbers("gk", 0.0, LARGEST_SQUARE),
}

COUNTS = codec.record(
    _COUNTS,
    _counts,
    lambda counts: {**vars(counts), **vars(counts.moments)},
    _check_counts,
)


_RANGE = {
    "low": codec.numbers(""),
    "high": codec.numbers(""),
    "quartiles": Field(list, lambda reader, key, sizes: _read_list(reader, key, 3)),
    "histogram": Field(
        list, lambda reader, key, sizes: _read_list(reader, key, N_BARS, 0.0, 1.0)
    ),
    "weight": codec.numbers("", 0.0),
}


def _read_list(
    reader: ObjectReader,
    key: str,
    size: int,
    low: float = -math.inf,
    high: float = math.inf,
) -> tuple[float, ...]:
    """Return ``size`` numbers, or an empty tuple."""
    size = size if reader.items(key) else 0
    return tuple(reader.floats(key, (size,), low, high).flat)


def _check_range(span: Any) -> str | None:
    points = [span.low, *span.quartiles, span.high]
    increases = points == sorted(points)
    return None if increases else "must have ends and quartiles that increase"


_NUMBER_RANGE = codec.record(
    _RANGE,
    codec.object_of("table.summary.whole_column.NumberRange"),
    check=_check_range,
)
_RANGES = codec.list_of(_NUMBER_RANGE.or_null(), lambda sizes: sizes.schema.n_columns)


def _of_scores(width: int = 0, low: float = -math.inf, high: float = math.inf) -> Field:
    """Return a field of some numbers for each of the log-odds."""

    def read(reader: ObjectReader, key: str, sizes: Sizes) -> Any:
        shape = sizes.shape("o")
        return reader.floats(key, (*shape, width) if width else shape, low, high)

    return Field(float_list, read)


def _build_scores(sizes: Sizes, **columns: Any) -> list[Any]:
    number_range = codec.class_of("table.summary.whole_column.NumberRange")
    plain = {
        name: list(map(tuple, values.tolist())) if values.ndim > 1 else values.tolist()
        for name, values in columns.items()
    }
    cells = zip(*plain.values(), strict=True)
    return [number_range(**dict(zip(plain, own, strict=True))) for own in cells]


def _check_scores(spans: Any) -> str | None:
    columns = spans.low, spans.quartiles, spans.high
    for low, quartiles, high in zip(*(c.tolist() for c in columns), strict=True):
        points = [low, *quartiles, high]
        if points != sorted(points):
            return "must have ends and quartiles that increase"
    return None


# By columns, of which those of many classes are packed.
SCORE_RANGES = codec.record(
    {
        "low": _of_scores(),
        "high": _of_scores(),
        "quartiles": _of_scores(3),
        "histogram": _of_scores(N_BARS, 0.0, 1.0),
        "weight": _of_scores(low=0.0),
    },
    _build_scores,
    lambda ranges: {
        name: np.array([getattr(own, name) for own in ranges])
        for name in ("low", "high", "quartiles", "histogram", "weight")
    },
    _check_scores,
)


def _read_ranges(reader: ObjectReader, key: str, sizes: Sizes) -> list[Any]:
    ranges = _RANGES.read(reader, key, sizes)
    for j, feature in enumerate(sizes.schema.without_interactions.features):
        if ranges[j] is not None and feature.kind == "categorical":
            what = "must be null for a column of categories"
            raise reader.complaint(f"{key}.{j}", what)
    return ranges


RANGES = replace(_RANGES, read=_read_ranges)


def _hash_text(hashes: Any) -> str:
    """Write hashes as their bytes, six each, in base64."""
    whole = b"".join(number.to_bytes(HASH_BYTES, "big") for number in hashes.tolist())
    return base64.b64encode(whole).decode("ascii")


def _read_hashes(reader: ObjectReader, key: str, sizes: Sizes) -> list[int]:
    try:
        whole = base64.b64decode(reader.text(key), validate=True)
    except ValueError:
        raise reader.complaint(key, "must be base64") from None
    cuts = range(0, len(whole), HASH_BYTES)
    hashes = [int.from_bytes(whole[k : k + HASH_BYTES], "big") for k in cuts]
    is_set = hashes == sorted({*hashes})
    if len(whole) % HASH_BYTES or not 0 < len(hashes) <= MAX_HASHES or not is_set:
        raise reader.complaint(key, "must hold different hashes, in order")
    return hashes


_ROW_HASHES = {
    "n_rows": codec.whole(1),
    "n_hashed": codec.whole(1),
    "repeated": codec.numbers("", 0.0, 1.0),
    "hashes": Field(
        _hash_text,
        _read_hashes,
        lambda hashes, sizes: np.array(hashes, dtype=np.uint64),
    ),
}


def _check_hashes(hashes: Any) -> str | None:
    is_more = hashes.n_hashed > hashes.n_rows
    return "must not hash more rows than there are" if is_more else None


ROW_HASHES = codec.record(
    _ROW_HASHES, codec.object_of("notices.check.RowHashes"), check=_check_hashes
)

_UNCERTAINTY = {
    "base": codec.numbers("o", 0.0, LARGEST_WEIGHT),
    "variances": codec.numbers("vo", 0.0, LARGEST_WEIGHT),
    "means": codec.numbers("do", 0.0, LARGEST_WEIGHT),
}

UNCERTAINTY = codec.record(
    _UNCERTAINTY, codec.object_of("model.uncertainty.Uncertainty")
)


def _read_places(reader: ObjectReader, key: str, sizes: Sizes) -> list[int]:
    places, n = reader.items(key), math.prod(sizes.shape("vk"))
    if not all(type(place) is int and 0 <= place < n for place in places):
        raise reader.complaint(key, "must hold places of the table")
    return places


def _check_edit(edit: Any) -> str | None:
    is_whole = len(edit.places) == len(edit.table)
    return None if is_whole else "must have a number for each place"


_NUMBERS = codec.list_of(codec.numbers("", -LARGEST_LOG, LARGEST_LOG))
_EDIT: dict[str, Field] = {
    **dict.fromkeys(("attribute", "text", "asked", "reason", "when"), codec.text()),
    "values": codec.list_of(codec.text()),
    **dict.fromkeys(("before", "after", "table"), _NUMBERS),
    "places": Field(list, _read_places),
    "log_prior": codec.logs(),
    "centre": codec.numbers("dk", -LARGEST_LOG, LARGEST_LOG).or_null(),
    "factors": codec.weights("gk").or_null(),
}

EDITS = codec.list_of(
    codec.record(_EDIT, codec.object_of("model.edits.Edit"), check=_check_edit)
)
"""The fitted attribute ``edits_``."""


_ANY = sys.float_info.max
# Microseconds since 1970 of all dates that there are in 64 bits.
_MAX_MICROS = 1 << 63


class _KeptColumn(NamedTuple):
    """How the cells of one kind of kept column are described, read and built."""

    home: str
    """The class of the column."""

    describe: Callable[[Any], dict[str, Any]]
    read: Callable[[ObjectReader, int], dict[str, Any]]
    build: Callable[[dict[str, Any]], tuple[tuple[Any, ...], dict[str, Any]]]
    """Arguments of the column after its position and its name."""


_NUMBER_CELLS = codec.numbers("n", -_ANY, _ANY, special=codec.MISSING)


def _describe_dates(column: Any) -> dict[str, Any]:
    micros = column.dates.astype("datetime64[us]")
    missing, whole = np.isnat(micros).tolist(), micros.astype(np.int64).tolist()
    both = zip(missing, whole, strict=True)
    return {"cells": [None if is_missing else cell for is_missing, cell in both]}


def _read_dates(reader: ObjectReader, n_rows: int) -> dict[str, Any]:
    cells = reader.items("cells")
    known = [cell for cell in cells if cell is not None]
    is_whole = len(cells) == n_rows and {*map(type, known)} <= {int}
    if not is_whole or not all(abs(cell) < _MAX_MICROS for cell in known):
        raise reader.complaint("cells", f"must hold {n_rows} dates, or null")
    return {"cells": cells}


def _build_dates(column: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    nat = np.iinfo(np.int64).min
    micros = [nat if cell is None else cell for cell in column["cells"]]
    return (np.array(micros, np.int64).view("datetime64[us]"),), {}


_FLAGS = ("is_category", "is_ordered", "is_integer")
_CELL_TYPES = {
    "text": (str,),
    "booleans": (bool,),
    # Numbers and booleans may have met in one column, over several chunks of rows.
    "numbers": (bool, int, float),
    "nothing": (),
}


def _describe_values(column: Any) -> dict[str, Any]:
    factor = column.factor()
    return {
        "storage": column.storage,
        "values": factor.values,
        **{flag: getattr(column, flag) for flag in _FLAGS},
        # 0 is a missing cell.
        "cells": (factor.indices + 1).tolist(),
    }


def _read_values(reader: ObjectReader, n_rows: int) -> dict[str, Any]:
    storage = reader.text("storage", tuple(_CELL_TYPES))
    values = reader.values("values", _CELL_TYPES[storage], has_order=True)
    flags = {flag: reader.flag(flag) for flag in _FLAGS}
    if flags["is_integer"] and float in map(type, values):
        raise reader.complaint("is_integer", "must belong to whole numbers")
    cells = reader.wholes("cells", n_rows, len(values) + 1)
    return {"storage": storage, "values": values, **flags, "cells": cells}


def _build_values(column: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    indices = np.array(column["cells"], dtype=np.int32) - np.int32(1)
    factor = codec.class_of("table.factors.Factor")(indices, column["values"])
    return (factor, column["storage"]), {flag: column[flag] for flag in _FLAGS}


_KEPT_COLUMNS = {
    "dates": _KeptColumn(
        "table.columns.DayColumn", _describe_dates, _read_dates, _build_dates
    ),
    "numbers": _KeptColumn(
        "table.columns.ArrayColumn",
        lambda column: {"cells": _NUMBER_CELLS.describe(column.numbers())},
        lambda reader, n_rows: {
            "cells": reader.floats("cells", (n_rows,), -_ANY, _ANY, codec.MISSING)
        },
        lambda column: ((column["cells"].to_array(),), {}),
    ),
    "values": _KeptColumn(
        "table.columns.FactorColumn", _describe_values, _read_values, _build_values
    ),
}


def _describe_column(column: Any) -> dict[str, Any]:
    kind = next(
        kind
        for kind, how in _KEPT_COLUMNS.items()
        if type(column) is codec.class_of(how.home)
    )
    described = _KEPT_COLUMNS[kind].describe(column)
    return {"name": column.name, "kind": kind, **described}


def _read_kept_columns(reader: ObjectReader, key: str, sizes: Sizes) -> list[Any]:
    """Return the columns of a table that the schema is of."""
    columns, names = list[Any](), list[Any]()
    for entries, i in reader.entries(key):
        entry = entries.inner(i)
        name, kind = entry.get("name"), entry.text("kind", tuple(_KEPT_COLUMNS))
        if name is not None and not isinstance(name, str):
            raise entry.complaint("name", "must be text or null")
        names.append(name)
        columns.append((kind, name, _KEPT_COLUMNS[kind].read(entry, sizes.n)))
        entry.finish()
    if sizes.schema.names is None:
        is_table = names == [None] * sizes.schema.n_columns
    else:
        parts = {
            f"{name}.{p}" for kind, name, _ in columns if kind == "dates" for p in PARTS
        }
        expected = {*sizes.schema.names}
        is_table = None not in names and len({*names}) == len(names)
        is_table = is_table and {*names} <= expected <= {*names} | parts
    if not is_table:
        raise reader.complaint(key, "must be the columns of the table")
    return columns


def _build_kept_columns(columns: list[Any], sizes: Sizes) -> tuple[Any, ...]:
    out = []
    for j, (kind, name, cells) in enumerate(columns):
        how = _KEPT_COLUMNS[kind]
        arguments, flags = how.build(cells)
        out.append(codec.class_of(how.home)(j, name, *arguments, **flags))
    return tuple(out)


_KEPT = {
    "columns": Field(
        lambda columns: list(map(_describe_column, columns)),
        _read_kept_columns,
        _build_kept_columns,
    ),
    "labels": Field(
        lambda labels: labels.tolist(),
        lambda reader, key, sizes: reader.wholes(key, sizes.n, len(sizes.classes)),
        lambda labels, sizes: np.array(labels, dtype=np.uint32),
    ),
    "weights": codec.numbers("n", 0.0, LARGEST_WEIGHT),
    "priorities": codec.numbers("n", 0.0, codec.LARGEST_NUMBER),
    "threshold": codec.numbers("", 0.0, codec.LARGEST_NUMBER),
    "n_drawn_from": codec.whole(1),
    "new_weight": codec.numbers("", 0.0, LARGEST_WEIGHT),
}


def _read_kept(reader: ObjectReader, key: str, sizes: Sizes) -> Any:
    inner = reader.inner(key)
    n_rows = len(inner.items("labels"))
    if not 0 < n_rows <= MAX_KEPT:
        raise inner.complaint("labels", f"must have 1 to {MAX_KEPT} entries")
    return codec.read_fields(inner, _KEPT, replace(sizes, n=n_rows))


KEPT = Field(
    lambda kept: codec.describe_fields(_KEPT, vars(kept)),
    _read_kept,
    lambda values, sizes: codec.class_of("fitting.default.continuation.Reservoir")(
        **codec.build_fields(_KEPT, values, sizes)
    ),
)
