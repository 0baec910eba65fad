"""The content of a model file, checked in full; nothing of a classifier is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from steelyard.persistence.codec import Sizes, read_fields
from steelyard.persistence.declarations import (
    Catalogue,
    Declaration,
    declared_table,
    read_settings,
)
from steelyard.persistence.fitted import ATTRIBUTES
from steelyard.persistence.models import ReadModel, read_model
from steelyard.persistence.reader import ObjectReader
from steelyard.persistence.table import ReadClasses, read_classes, read_schema


@dataclass(frozen=True)
class ReadContent:
    """What a file holds, every value of it of the type, shape and range it must be."""

    estimator: str
    declaration: Declaration
    settings: dict[str, Any]
    classes: ReadClasses
    model: ReadModel
    """With the schema of the table, and a list of the classes."""

    attributes: dict[str, Any]
    """Fitted attributes by name, as plain values."""


def read_content(content: Any, catalogue: Catalogue | None = None) -> ReadContent:
    """Return the checked content of a file, or say what is wrong with it.

    Without a catalogue it is compared with the table of what classes declare.
    """
    catalogue = declared_table() if catalogue is None else catalogue
    reader = ObjectReader(content, "content")
    reader.text("library")
    estimator = reader.text("estimator", catalogue.estimators)
    own = catalogue.declaration(estimator)
    settings = read_settings(reader.inner("settings"), own, catalogue)
    classes = read_classes(reader.inner("classes"))
    schema = read_schema(reader.items("features"))
    sizes = Sizes(schema, classes.values)
    model = read_model(reader.inner("model"), sizes, own.models)
    fitted = reader.inner("fitted")
    fields = {
        name: ATTRIBUTES[name]
        for name, is_optional in own.attributes.items()
        if not is_optional or fitted.has(name)
    }
    attributes = read_fields(fitted, fields, Sizes.of(model))
    reader.finish()
    return ReadContent(estimator, own, settings, classes, model, attributes)
