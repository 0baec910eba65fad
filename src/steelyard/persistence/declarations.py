"""Settings and fitted attributes of classes, which a model file must agree with.

They are declared in class bodies. Files are read without the classes, by a table of
what these declare, ``declared.json``, which ``tools/declare.py`` writes.
"""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from steelyard._common.allowed import Check, DescribedPart, check_of
from steelyard.persistence.reader import InvalidContentError, ObjectReader, read_tagged

TABLE = Path(__file__).with_name("declared.json")

# A part inside a mapping inside a part is as deep as settings go.
_MAX_DEPTH = 8
_INFINITIES = ("inf", "-inf")


class Declaration(NamedTuple):
    """What the class of a classifier or part declares."""

    kinds: tuple[str, ...]
    """Its name, and those of the classes above it."""

    settings: dict[str, Check]
    """What each setting may be."""

    models: tuple[str, ...]
    """Kinds of models that a file may contain; empty for a part."""

    attributes: dict[str, bool]
    """Fitted attributes in a file, and whether each is optional."""


@cache
def declared_table() -> dict[str, Any]:
    """Return the table: ``settings`` by class, ``estimators`` and ``parts``."""
    table: dict[str, Any] = json.loads(TABLE.read_text("utf-8"))
    return table


@cache
def declaration(name: str) -> Declaration:
    """Return what the class of a classifier or part declares."""
    table = declared_table()
    entry = (table["estimators"] | table["parts"])[name]
    forms: dict[str, Any] = {}
    for kind in reversed(entry["kinds"]):
        forms |= table["settings"].get(kind, {})
    checks = {name: check_of(form) for name, form in forms.items()}
    models = tuple(entry.get("models", ()))
    return Declaration(
        tuple(entry["kinds"]), checks, models, entry.get("attributes", {})
    )


def read_settings(reader: ObjectReader, name: str, depth: int = 0) -> dict[str, Any]:
    """Return the settings of a classifier or part, with parts as they are described.

    What is allowed, the class declares. Whether names and numbers fit the table is left
    to ``fit``, as for any classifier.
    """
    settings: dict[str, Any] = {}
    for key, allowed in declaration(name).settings.items():
        value = read_value(reader.get(key), depth + 1)
        if not allowed.accepts(value):
            raise reader.complaint(key, "is not a value of that setting")
        settings[key] = value
    reader.finish()
    return settings


def read_value(value: Any, depth: int = 1) -> Any:
    """Return the value of a setting: plain, a tuple, a mapping or a described part."""
    if depth > _MAX_DEPTH:
        raise InvalidContentError("content.settings is nested too deeply")
    if isinstance(value, list):
        return [read_value(item, depth + 1) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidContentError("content.settings holds a number that is not finite")
    if not isinstance(value, dict):
        return value
    if "number" in value:
        return read_tagged(value, "content.settings", _INFINITIES)
    reader = ObjectReader(value, "content.settings")
    result: Any
    if "tuple" in value:
        items = reader.items("tuple")
        result = tuple(read_value(item, depth + 1) for item in items)
    elif "mapping" in value:
        result = _read_mapping(reader, depth)
    else:
        name = reader.text("part", list(declared_table()["parts"]))
        inner = read_settings(reader.inner("settings"), name, depth + 1)
        result = DescribedPart(name, declaration(name).kinds, inner)
    reader.finish()
    return result


def _read_mapping(reader: ObjectReader, depth: int) -> dict[Any, Any]:
    mapping: dict[Any, Any] = {}
    for pair in reader.items("mapping"):
        if not isinstance(pair, list) or len(pair) != 2:
            raise reader.complaint("mapping", "must be a list of pairs")
        key, item = pair
        if isinstance(key, (list, dict)) or key in mapping:
            raise reader.complaint("mapping", "must have different plain keys")
        mapping[key] = read_value(item, depth + 1)
    return mapping
