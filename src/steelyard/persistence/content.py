"""From a fitted classifier to the content of a model file, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from importlib import import_module
from numbers import Integral, Real
from typing import Any

import numpy as np

import steelyard
from steelyard._common.settings import Declared, DeclaredPart
from steelyard.classifiers import registry
from steelyard.classifiers.base.estimator import BaseNB
from steelyard.exceptions import ParameterError
from steelyard.instances import INSTANCES
from steelyard.losses import LOSSES
from steelyard.persistence.codec import Sizes, build_fields
from steelyard.persistence.declarations import Catalogue, Declaration
from steelyard.persistence.files import read_content
from steelyard.persistence.fitted import ATTRIBUTES
from steelyard.persistence.models import build_model, describe_model
from steelyard.persistence.reader import InvalidContentError, tagged_number
from steelyard.persistence.table import describe_classes, describe_schema
from steelyard.proba.smoothing import SMOOTHINGS
from steelyard.solvers import (
    LBFGS,
    Fixed,
    GradientDescent,
    Newton,
    SpectralGradient,
)
from steelyard.table.discretizers.unsupervised import CLASSES as DISCRETIZERS
from steelyard.weighting import WEIGHTINGS

# Fitted attributes that are elsewhere in a file, or follow from what is there.
_ELSEWHERE = ("classes_", "model_", "encoder_", "n_features_in_", "feature_names_in_")


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
    """Return the classifier that a content describes; InvalidContentError if none."""
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
    estimator.encoder_.ranges_ = estimator.training_.ranges
    return estimator


# Only these parts are ever created from a file.
PARTS: dict[str, type[Declared]] = {
    part.__name__: part
    for part in (
        *WEIGHTINGS.values(),
        *LOSSES.values(),
        *INSTANCES.values(),
        *(type(smoothing) for smoothing in SMOOTHINGS.values()),
        *DISCRETIZERS,
        Fixed,
        GradientDescent,
        LBFGS,
        Newton,
        SpectralGradient,
    )
}


def estimator_class(name: str) -> type[BaseNB]:
    """Return a classifier of the package."""
    cls: type[BaseNB] = getattr(import_module(registry.classes()[name]), name)
    return cls


def kinds_of(owner: type[Declared]) -> list[type[Declared]]:
    """Return a class and those above it that may declare something."""
    above = (Declared, DeclaredPart)
    return [k for k in owner.__mro__ if issubclass(k, Declared) and k not in above]


def declaration_of(owner: type[Declared]) -> Declaration:
    """Return what a classifier or part declares."""
    kinds = tuple(kind.__name__ for kind in kinds_of(owner))
    settings = {name: entry.allowed for name, entry in owner._settings.items()}
    if not issubclass(owner, BaseNB):
        return Declaration(kinds, settings, owner)
    attributes = {
        name: entry.optional
        for name, entry in owner._learned.items()
        if name not in _ELSEWHERE
    }
    return Declaration(kinds, settings, owner, owner._models, attributes)


# The catalogue that is the classes themselves; only these are ever created.
CLASSES = Catalogue(
    list(registry.classes()),
    list(PARTS),
    lambda name: declaration_of(PARTS.get(name) or estimator_class(name)),
)


def describe_settings(owner: Declared) -> dict[str, Any]:
    """Describe all settings of a classifier or part in JSON's own types."""
    settings = owner.get_params(deep=False)
    return {key: _describe(value, key) for key, value in settings.items()}


def _describe(value: Any, key: str) -> Any:
    if value is None:
        return None
    for kinds, plain in ((str, str), ((bool, np.bool_), bool), (Integral, int)):
        if isinstance(value, kinds):
            return plain(value)
    if isinstance(value, Real):
        return tagged_number(float(value))
    if isinstance(value, Mapping):
        pairs = [[_describe(k, key), _describe(v, key)] for k, v in value.items()]
        return {"mapping": pairs}
    if isinstance(value, Set):
        # In one order, so that equal models make equal files.
        return sorted((_describe(item, key) for item in value), key=repr)
    if isinstance(value, tuple):
        return {"tuple": [_describe(item, key) for item in value]}
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return [_describe(item, key) for item in value]
    if PARTS.get(type(value).__name__) is type(value):
        return {"part": type(value).__name__, "settings": describe_settings(value)}
    if hasattr(value, "__array__") and np.ndim(value) > 0:
        return [_describe(item, key) for item in np.asarray(value)]
    raise ParameterError(
        f"The setting {key!r} holds a {type(value).__module__}.{type(value).__name__}, "
        "which a model file cannot describe. Use one of the package's own parts, or "
        "pickle."
    )
