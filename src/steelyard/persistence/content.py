"""What a model file holds: settings, schema, model and fitted attributes."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

import steelyard
from steelyard.classifiers import registry
from steelyard.classifiers.base import BaseNB
from steelyard.exceptions import ParameterError
from steelyard.persistence.codec import Sizes, read_fields
from steelyard.persistence.fitted import ATTRIBUTES
from steelyard.persistence.models import describe_model, read_model
from steelyard.persistence.reader import InvalidContentError, Reader
from steelyard.persistence.settings import describe_settings, read_settings
from steelyard.persistence.table import (
    describe_classes,
    describe_schema,
    read_classes,
    read_schema,
)

# What a file says of every classifier in a place of its own.
_ELSEWHERE = ("classes_", "model_", "encoder_", "n_features_in_", "feature_names_in_")


def estimator_class(name: str) -> type[BaseNB]:
    """Return a classifier of the package; only these are created from a file."""
    cls: type[BaseNB] = getattr(import_module(registry.classes()[name]), name)
    return cls


def saved_attributes(estimator: type[BaseNB]) -> dict[str, bool]:
    """Return the fitted attributes that a file holds, and whether each is optional."""
    declared = {
        name: entry.optional
        for name, entry in estimator._learned.items()
        if name not in _ELSEWHERE
    }
    return {**dict.fromkeys(estimator._dropped_attributes, True), **declared}


def content_of(estimator: BaseNB) -> dict[str, Any]:
    """Describe a fitted classifier in JSON's own types."""
    name = type(estimator).__name__
    if name not in registry.classes() or estimator_class(name) is not type(estimator):
        raise ParameterError(
            f"{type(estimator).__module__}.{name} cannot be saved: a model file "
            f"describes {', '.join(registry.classes())} only. Use pickle for classes "
            "of your own."
        )
    model = estimator.model_
    attributes = saved_attributes(type(estimator))
    content = {
        "library": steelyard.__version__,
        "estimator": name,
        "settings": describe_settings(estimator),
        "classes": describe_classes(model.classes),
        "features": describe_schema(model.schema),
        "model": describe_model(model),
        "fitted": {
            key: ATTRIBUTES[key].describe(getattr(estimator, key))
            for key, is_optional in attributes.items()
            if not is_optional or hasattr(estimator, key)
        },
    }
    # What is written can be read: nobody wants to learn later that it cannot.
    try:
        estimator_from(content)
    except InvalidContentError as error:
        raise ParameterError(
            f"This model cannot be saved, for no file could be loaded: {error}."
        ) from None
    return content


def estimator_from(content: Any) -> BaseNB:
    """Build the classifier that a content describes, or say what is wrong with it."""
    reader = Reader(content, "content")
    reader.text("library")
    cls = estimator_class(reader.text("estimator", list(registry.classes())))
    settings = read_settings(reader.inner("settings"), cls)
    classes = read_classes(reader.inner("classes"))
    schema = read_schema(reader.items("features"))
    model = read_model(reader.inner("model"), Sizes(schema, classes), cls._models)
    learned = reader.inner("fitted")
    fields = {
        key: ATTRIBUTES[key]
        for key, is_optional in saved_attributes(cls).items()
        if not is_optional or learned.has(key)
    }
    attributes = read_fields(learned, fields, Sizes.of(model))
    reader.finish()
    estimator = cls(**settings)
    estimator.classes_ = model.classes
    estimator.encoder_ = estimator._encoding().encoder(estimator.n_jobs)
    for owner in (estimator.encoder_, estimator):
        owner.n_features_in_ = model.schema.n_columns
        if model.schema.names is not None:
            owner.feature_names_in_ = np.asarray(model.schema.names, dtype=object)
    estimator.encoder_.schema_ = model.schema
    estimator.model_ = model
    for key, value in attributes.items():
        setattr(estimator, key, value)
    if "ranges_" in attributes:
        estimator.encoder_.ranges_ = attributes["ranges_"]
    return estimator
