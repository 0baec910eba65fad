"""Edits in a model file: texts, and numbers that the model had before."""

from __future__ import annotations

import math
from typing import Any

from steelyard.persistence import codec
from steelyard.persistence.codec import LARGEST_LOG, Field, Sizes
from steelyard.persistence.reader import ObjectReader


def _read_numbers(reader: ObjectReader, key: str, sizes: Sizes) -> list[float]:
    shape = (len(reader.items(key)),)
    return list(reader.floats(key, shape, -LARGEST_LOG, LARGEST_LOG).flat)


def _read_places(reader: ObjectReader, key: str, sizes: Sizes) -> list[int]:
    places, n = reader.items(key), math.prod(sizes.shape("vk"))
    if not all(type(place) is int and 0 <= place < n for place in places):
        raise reader.complaint(key, "must hold places of the table")
    return places


def _read_values(reader: ObjectReader, key: str, sizes: Sizes) -> list[str]:
    values = reader.items(key)
    if not all(type(value) is str for value in values):
        raise reader.complaint(key, "must hold texts")
    return values


def _check(found: Any) -> str | None:
    is_whole = len(found.places) == len(found.table)
    return None if is_whole else "must have a number for each place"


_NUMBERS = Field(list, _read_numbers)
_EDIT: dict[str, Field] = {
    **dict.fromkeys(("attribute", "text", "asked", "reason", "when"), codec.text()),
    "values": Field(list, _read_values),
    **dict.fromkeys(("before", "after", "table"), _NUMBERS),
    "places": Field(list, _read_places),
    "log_prior": codec.logs(),
    "centre": codec.numbers("dk", -LARGEST_LOG, LARGEST_LOG).or_null(),
    "factors": codec.weights("gk").or_null(),
}

EDITS = codec.list_of(
    codec.record(_EDIT, codec.object_of("model.edit_log.Edit"), check=_check)
)
"""The fitted attribute ``edits_``."""
