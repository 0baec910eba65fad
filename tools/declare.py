"""Write the table of what classifiers and parts declare, for readers of model files.

    python tools/declare.py

A model file is checked against what classes declare. Where no class is loaded, as in
``steelyard predict`` of a small file, this table stands for them.
"""

from __future__ import annotations

import json
from typing import Any

from steelyard._common.settings import Declared
from steelyard.persistence.content import (
    CLASSES,
    PARTS,
    declaration_of,
    estimator_class,
    kinds_of,
)
from steelyard.persistence.declarations import TABLE


def declared() -> dict[str, Any]:
    """Return what all classes declare: settings by the class that declares them."""
    settings: dict[str, Any] = {}
    estimators = {}
    for name in CLASSES.estimators:
        add_settings(estimator_class(name), settings)
        own = declaration_of(estimator_class(name))
        entry = {"models": own.models, "attributes": own.attributes}
        estimators[name] = {"kinds": own.kinds, **entry}
    parts = {}
    for name, part in PARTS.items():
        add_settings(part, settings)
        parts[name] = {"kinds": declaration_of(part).kinds}
    return {"settings": settings, "estimators": estimators, "parts": parts}


def add_settings(owner: type[Declared], settings: dict[str, Any]) -> None:
    """Add what a class and those above it declare, each what is new in it."""
    known: dict[str, Any] = {}
    for kind in reversed(kinds_of(owner)):
        forms = {
            name: entry.allowed and entry.allowed.form
            for name, entry in kind._settings.items()
        }
        new = {name: form for name, form in forms.items() if known.get(name, 0) != form}
        if new:
            settings[kind.__name__] = new
        known |= new


def text_of(table: dict[str, Any]) -> str:
    """Lay the table out as JSON, with a line for each setting and each class."""
    parts = []
    for key, entries in table.items():
        lines = (f'\n"{name}": {_entry(entry)}' for name, entry in entries.items())
        parts.append(f'"{key}": {{{",".join(lines)}}}')
    return "{" + ",\n".join(parts) + "}\n"


def _entry(entry: dict[str, Any]) -> str:
    lines = (f'\n  "{key}": {json.dumps(value)}' for key, value in entry.items())
    return f"{{{','.join(lines)}}}"


if __name__ == "__main__":
    TABLE.write_text(text_of(declared()), encoding="utf-8")
