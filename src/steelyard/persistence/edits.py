"""Edits in a model file: texts, and numbers that the model had before."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from steelyard.persistence import codec
from steelyard.persistence.codec import LARGEST_LOG, Field, Sizes
from steelyard.persistence.reader import ObjectReader

if TYPE_CHECKING:
    from steelyard.model.edit_log import Edit


def _read_numbers(reader: ObjectReader, key: str, sizes: Sizes) -> list[float]:
    shape = (len(reader.items(key)),)
    return list(reader.floats(key, shape, -LARGEST_LOG, LARGEST_LOG).flat)


def _read_values(reader: ObjectReader, key: str, sizes: Sizes) -> list[str]:
    values = reader.items(key)
    if not all(type(value) is str for value in values):
        raise reader.complaint(key, "must hold texts")
    return values


def _read_places(reader: ObjectReader, key: str, sizes: Sizes) -> list[int]:
    places, n = reader.items(key), math.prod(sizes.shape("vk"))
    if not all(type(place) is int and 0 <= place < n for place in places):
        raise reader.complaint(key, "must hold places of the table")
    return places


_TEXT = Field(str, lambda reader, key, sizes: reader.text(key))
_NUMBERS = Field(list, _read_numbers)
_EDIT: dict[str, Field] = {
    **dict.fromkeys(("attribute", "text", "asked", "reason", "when"), _TEXT),
    "values": Field(list, _read_values),
    **dict.fromkeys(("before", "after", "table"), _NUMBERS),
    "places": Field(list, _read_places),
    "log_prior": codec.logs(),
    "centre": codec.numbers("dk", -LARGEST_LOG, LARGEST_LOG).or_null(),
    "factors": codec.weights("gk").or_null(),
}


def _read(reader: ObjectReader, key: str, sizes: Sizes) -> list[dict[str, Any]]:
    edits = []
    for entry, k in reader.entries(key):
        found = codec.read_fields(entry.inner(k), _EDIT, sizes)
        if len(found["places"]) != len(found["table"]):
            raise entry.complaint(k, "must have a number for each place")
        edits.append(found)
    return edits


def _build(edits: list[dict[str, Any]], sizes: Sizes) -> list[Edit]:
    from steelyard.model.edit_log import Edit

    return [Edit(**codec.build_fields(_EDIT, found, sizes)) for found in edits]


EDITS = Field(
    lambda edits: [codec.describe_fields(_EDIT, vars(edit)) for edit in edits],
    _read,
    _build,
)
"""The fitted attribute ``edits_``."""
