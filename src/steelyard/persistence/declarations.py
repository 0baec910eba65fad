"""Settings and fitted attributes of classes, which a model file must agree with.

There are two sources of the same declarations: the classes, for those who build a
classifier of a file, and a table of what they declare, ``declared.json``, for those who
load no classes. ``tools/declare.py`` writes the table, and a test compares the two.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from steelyard._common.allowed import Check, DescribedPart, check_of
from steelyard.persistence.reader import InvalidContentError, ObjectReader, read_tagged

TABLE = Path(__file__).with_name("declared.json")

# A part inside a mapping inside a part is as deep as settings go.
_MAX_DEPTH = 8
_INFINITIES = ("inf", "-inf")


@dataclass(frozen=True)
class Declaration:
    """What one class declares."""

    kinds: tuple[str, ...]
    """Its name, and those of the classes above it."""

    settings: Mapping[str, Check | None]
    """What each setting may be."""

    make: Callable[..., Any]
    """Makes an object with some settings."""

    models: tuple[str, ...] = ()
    """Kinds of models that a file may contain; empty for a part."""

    attributes: Mapping[str, bool] = field(default_factory=dict)
    """Fitted attributes in a file, and whether each is optional."""


class Catalogue(NamedTuple):
    """All classifiers and parts that a file may name."""

    estimators: list[str]
    parts: list[str]
    declaration: Callable[[str], Declaration]
    """Returns what the class of a name declares."""


@cache
def declared_table() -> Catalogue:
    """Return the catalogue that is a table, for which no class is loaded."""
    table = json.loads(TABLE.read_text("utf-8"))
    estimators, parts = table["estimators"], table["parts"]
    classes = estimators | parts

    def declaration(name: str) -> Declaration:
        entry = classes[name]
        kinds = tuple(entry["kinds"])
        forms: dict[str, Any] = {}
        for kind in reversed(kinds):
            forms |= table["settings"].get(kind, {})
        checks = (form if form is None else check_of(form) for form in forms.values())
        return Declaration(
            kinds,
            dict(zip(forms, checks, strict=True)),
            lambda **settings: DescribedPart(name, kinds, settings),
            tuple(entry.get("models", ())),
            entry.get("attributes", {}),
        )

    return Catalogue(list(estimators), list(parts), declaration)


# ---------------------------------------------------------------------------- settings


def read_settings(
    reader: ObjectReader, declaration: Declaration, catalogue: Catalogue, depth: int = 0
) -> dict[str, Any]:
    """Return the settings of a classifier or part, refusing those it cannot have.

    What is allowed, the class declares. Whether names and numbers fit the table is left
    to ``fit``, as for any classifier.
    """
    settings: dict[str, Any] = {}
    for name, allowed in declaration.settings.items():
        value = _read(reader.get(name), catalogue, depth + 1)
        if allowed is not None and not allowed.accepts(value):
            raise reader.complaint(name, "is not a value of that setting")
        settings[name] = value
    reader.finish()
    return settings


def _read(value: Any, catalogue: Catalogue, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        raise InvalidContentError("content.settings is nested too deeply")
    if isinstance(value, list):
        return [_read(item, catalogue, depth + 1) for item in value]
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
        result = tuple(_read(item, catalogue, depth + 1) for item in items)
    elif "mapping" in value:
        result = _read_mapping(reader, catalogue, depth)
    else:
        part = catalogue.declaration(reader.text("part", catalogue.parts))
        inner = reader.inner("settings")
        result = part.make(**read_settings(inner, part, catalogue, depth + 1))
    reader.finish()
    return result


def _read_mapping(
    reader: ObjectReader, catalogue: Catalogue, depth: int
) -> dict[Any, Any]:
    mapping: dict[Any, Any] = {}
    for pair in reader.items("mapping"):
        if not isinstance(pair, list) or len(pair) != 2:
            raise reader.complaint("mapping", "must be a list of pairs")
        key, item = pair
        if isinstance(key, (list, dict)) or key in mapping:
            raise reader.complaint("mapping", "must have different plain keys")
        mapping[key] = _read(item, catalogue, depth + 1)
    return mapping
