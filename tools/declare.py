"""Write the table of what classifiers and parts declare, for readers of model files.

    python tools/declare.py

A model file is checked against what classes declare, by this table: it is read before
any class is loaded, and by ``steelyard predict`` of a small file without them.
"""

from __future__ import annotations

import json
from typing import Any

from steelyard._common.settings import ANY, Declared, DeclaredPart
from steelyard.classifiers import registry
from steelyard.persistence.content import PARTS, estimator_class
from steelyard.persistence.declarations import TABLE

# Fitted attributes that are elsewhere in a file, or follow from what is there.
ELSEWHERE = ("classes_", "model_", "encoder_", "n_features_in_", "feature_names_in_")


def declared() -> dict[str, Any]:
    """Return what all classes declare: settings by the class that declares them."""
    settings: dict[str, Any] = {}
    estimators, parts = {}, {}
    for name in registry.classes():
        owner = estimator_class(name)
        add_settings(owner, settings)
        attributes = {
            name: entry.optional
            for name, entry in owner._learned.items()
            if name not in ELSEWHERE
        }
        entry = {"models": owner._models, "attributes": attributes}
        estimators[name] = {"kinds": names_of(owner), **entry}
    for name, part in PARTS.items():
        add_settings(part, settings)
        parts[name] = {"kinds": names_of(part)}
    return {"settings": settings, "estimators": estimators, "parts": parts}


def kinds_of(owner: type[Declared]) -> list[type[Declared]]:
    """Return a class and those above it that may declare something."""
    above = (Declared, DeclaredPart)
    return [k for k in owner.__mro__ if issubclass(k, Declared) and k not in above]


def names_of(owner: type[Declared]) -> list[str]:
    """Return the names of a class and of those above it."""
    return [kind.__name__ for kind in kinds_of(owner)]


def add_settings(owner: type[Declared], settings: dict[str, Any]) -> None:
    """Add what a class and those above it declare, each what is new in it."""
    known: dict[str, Any] = {}
    for kind in reversed(kinds_of(owner)):
        forms = {
            name: (entry.allowed or ANY).form for name, entry in kind._settings.items()
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
