"""Rows that a model keeps to go on learning from, in a model file."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from steelyard._common.agreed import MOST_KEPT
from steelyard._common.later import Later
from steelyard.persistence import codec
from steelyard.persistence.codec import LARGEST_WEIGHT, Field, Sizes
from steelyard.persistence.models import TRAINING_ROWS
from steelyard.persistence.reader import ObjectReader

if TYPE_CHECKING:
    import numpy as np

    from steelyard.fitting.default.kept_rows import KeptRows
else:
    np = Later("numpy")

_AMOUNT = codec.numbers("", 0.0, LARGEST_WEIGHT)
# Codes without pairs of columns, and by all codes what the rows lack of a gradient.
_ROWS = {
    "columns": TRAINING_ROWS["columns"],
    "y": TRAINING_ROWS["y"],
    "numbers": codec.numbers("gn", special=codec.MISSING),
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
    rows = codec.build_fields(_ROWS, found.rows, own)
    codes = codes_of(own.schema, own.n, rows.pop("columns"), rows.pop("numbers"))
    rest = Effect(**codec.build_fields(_REST, found.rest, sizes))
    return KeptRows(codes, rows.pop("y"), **rows, rest=rest)


KEPT = Field(_describe, _read, _build)
