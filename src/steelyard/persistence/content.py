"""What a model file holds, of a classifier and as one."""

from __future__ import annotations

from typing import Any

import numpy as np

import steelyard
from steelyard.classifiers import registry
from steelyard.classifiers.base import BaseNB
from steelyard.exceptions import ParameterError
from steelyard.persistence.checked import read_content
from steelyard.persistence.codec import Sizes, build_fields
from steelyard.persistence.fitted import ATTRIBUTES
from steelyard.persistence.models import build_model, describe_model
from steelyard.persistence.reader import InvalidContentError
from steelyard.persistence.settings import (
    CLASSES,
    declaration_of,
    describe_settings,
    estimator_class,
)
from steelyard.persistence.table import describe_classes, describe_schema


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
    attributes = declaration_of(type(estimator)).attributes
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
        read_content(content, CLASSES)
    except InvalidContentError as error:
        raise ParameterError(
            f"This model cannot be saved, for no file could be loaded: {error}."
        ) from None
    return content


def estimator_from(content: Any) -> BaseNB:
    """Build the classifier that a content describes, or say what is wrong with it."""
    checked = read_content(content, CLASSES)
    estimator: BaseNB = checked.declaration.make(**checked.settings)
    schema = checked.model.schema
    model = build_model(checked.model, Sizes(schema, checked.classes.to_array()))
    attributes = build_fields(ATTRIBUTES, checked.attributes, Sizes.of(model))
    estimator.classes_ = model.classes
    estimator.encoder_ = estimator._encoding().encoder(estimator.n_jobs)
    for owner in (estimator.encoder_, estimator):
        owner.n_features_in_ = schema.n_columns
        if schema.names is not None:
            owner.feature_names_in_ = np.asarray(schema.names, dtype=object)
    estimator.encoder_.schema_ = schema
    estimator.model_ = model
    for key, value in attributes.items():
        setattr(estimator, key, value)
    if "ranges_" in attributes:
        estimator.encoder_.ranges_ = attributes["ranges_"]
    return estimator
