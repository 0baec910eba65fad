"""Records in a model file: counts, ranges, hashes, kept rows, uncertainty, edits."""

from __future__ import annotations

import base64
import math
import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from steelyard._common import np
from steelyard._common.allowed import HASH_BYTES, MOST_HASHES, MOST_KEPT, N_BARS
from steelyard.persistence import codec
from steelyard.persistence.codec import (
    LARGEST_LOG,
    LARGEST_SQUARE,
    LARGEST_WEIGHT,
    Field,
    Sizes,
)
from steelyard.persistence.models import TRAINING_ROWS
from steelyard.persistence.reader import ObjectReader, float_list

if TYPE_CHECKING:
    from steelyard.fitting.default.kept_rows import KeptRows
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
    """Return so many numbers, or none."""
    size = size if reader.items(key) else 0
    return tuple(reader.floats(key, (size,), low, high).flat)


def _check_range(found: Any) -> str | None:
    points = [found.low, *found.quartiles, found.high]
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


def _check_scores(found: Any) -> str | None:
    columns = found.low, found.quartiles, found.high
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
    for j, views in enumerate(sizes.schema.by_column):
        if ranges[j] is not None and views[-1].kind == "categorical":
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
    if len(whole) % HASH_BYTES or not 0 < len(hashes) <= MOST_HASHES or not is_set:
        raise reader.complaint(key, "must hold different hashes, in order")
    return hashes


_SKETCH = {
    "n_rows": codec.whole(1),
    "n_hashed": codec.whole(1),
    "repeated": codec.numbers("", 0.0, 1.0),
    "hashes": Field(
        _hash_text,
        _read_hashes,
        lambda hashes, sizes: np.array(hashes, dtype=np.uint64),
    ),
}


def _check_sketch(found: Any) -> str | None:
    is_more = found.n_hashed > found.n_rows
    return "must not hash more rows than there are" if is_more else None


ROW_HASHES = codec.record(
    _SKETCH, codec.object_of("notices.check.RowHashes"), check=_check_sketch
)

_UNCERTAINTY = {
    "base": codec.numbers("o", 0.0, LARGEST_WEIGHT),
    "variances": codec.numbers("vo", 0.0, LARGEST_WEIGHT),
    # As many tables as there are, which are "models" here.
    "factors": codec.weights("nvo"),
    "means": replace(codec.numbers("do", 0.0, LARGEST_WEIGHT), is_optional=True),
}


def _read_uncertainty(reader: ObjectReader, key: str, sizes: Sizes) -> Any:
    inner = reader.inner(key)
    n_factors = inner.whole("n_factors", low=0)
    return codec.read_fields(inner, _UNCERTAINTY, replace(sizes, n=n_factors))


UNCERTAINTY = Field(
    lambda own: {
        "n_factors": len(own.factors),
        **codec.describe_fields(_UNCERTAINTY, vars(own)),
    },
    _read_uncertainty,
    lambda found, sizes: codec.class_of("model.beside.Uncertainty")(
        **codec.build_fields(_UNCERTAINTY, found, sizes)
    ),
)


def _read_places(reader: ObjectReader, key: str, sizes: Sizes) -> list[int]:
    places, n = reader.items(key), math.prod(sizes.shape("vk"))
    if not all(type(place) is int and 0 <= place < n for place in places):
        raise reader.complaint(key, "must hold places of the table")
    return places


def _check_edit(found: Any) -> str | None:
    is_whole = len(found.places) == len(found.table)
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
    codec.record(_EDIT, codec.object_of("model.beside.Edit"), check=_check_edit)
)
"""The fitted attribute ``edits_``."""


_ANY = sys.float_info.max
_AMOUNT = codec.numbers("", 0.0, LARGEST_WEIGHT)
# Codes without pairs of columns, and by all codes what the rows lack of a gradient.
_ROWS = {
    "columns": TRAINING_ROWS["columns"],
    "y": TRAINING_ROWS["y"],
    "numbers": codec.numbers("gn", special=codec.MISSING),
    "cells": replace(
        codec.list_of(
            codec.numbers("n", -_ANY, _ANY, special=codec.MISSING).or_null(),
            lambda sizes: sizes.schema.n_columns,
        ),
        is_optional=True,
    ),
    "weights": codec.numbers("n", 0.0, LARGEST_WEIGHT),
    "priorities": codec.numbers("n", 0.0, codec.LARGEST_NUMBER),
    "threshold": codec.numbers("", 0.0, codec.LARGEST_NUMBER),
    "since_choice": _AMOUNT,
}
_REST = {
    "base": codec.weights("k"),
    "table": codec.weights("vk"),
    "multipliers": codec.weights("gk"),
}


def _sizes(n_rows: int, sizes: Sizes) -> Sizes:
    return replace(sizes, schema=sizes.schema.without_pairs, n=n_rows)


def _describe(kept: KeptRows) -> dict[str, Any]:
    codes = kept.codes
    rows = {
        **vars(kept),
        "columns": codes.by_column(),
        "y": kept.labels,
        "cells": list(kept.numbers) or None,
        "numbers": codes.number_rows(slice(None)).T,
    }
    rest = codec.describe_fields(_REST, vars(kept.rest))
    return {**codec.describe_fields(_ROWS, rows), "rest": rest}


def _read(reader: ObjectReader, key: str, sizes: Sizes) -> Any:
    inner = reader.inner(key)
    n_rows = len(inner.items("y"))
    if not 0 < n_rows <= MOST_KEPT:
        raise inner.complaint("y", f"must have 1 to {MOST_KEPT} entries")
    rest = codec.read_fields(inner.inner("rest"), _REST, sizes)
    found = codec.read_fields(inner, _ROWS, _sizes(n_rows, sizes))
    return SimpleNamespace(rows=found, rest=rest)


def _build(found: Any, sizes: Sizes) -> KeptRows:
    from steelyard.fitting.default.kept_rows import KeptRows, codes_of
    from steelyard.weighting.base import Effect

    own = _sizes(len(found.rows["y"]), sizes)
    given = {key: value for key, value in found.rows.items() if value is not None}
    rows = codec.build_fields(_ROWS, given, own)
    codes = codes_of(own.schema, own.n, rows.pop("columns"), rows.pop("numbers"))
    rest = Effect(**codec.build_fields(_REST, found.rest, sizes))
    numbers = tuple(rows.pop("cells", ()))
    return KeptRows(codes, numbers, rows.pop("y"), **rows, rest=rest)


KEPT = Field(_describe, _read, _build)
