"""From a fitted classifier to the content of a model file, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from importlib import import_module
from numbers import Integral, Real
from typing import Any

import numpy as np

import steelyard
from steelyard._common.allowed import DescribedPart
from steelyard._common.settings import Declared
from steelyard.classifiers import registry
from steelyard.classifiers.base.estimator import BaseNB
from steelyard.classifiers.fitted import answering_model
from steelyard.exceptions import ParameterError
from steelyard.instances import INSTANCES
from steelyard.losses import LOSSES
from steelyard.persistence.codec import built
from steelyard.persistence.declarations import declaration, read_settings
from steelyard.persistence.files import read_content
from steelyard.persistence.fitted import ATTRIBUTES
from steelyard.persistence.models import describe_model
from steelyard.persistence.reader import (
    InvalidContentError,
    ObjectReader,
    tagged_number,
)
from steelyard.persistence.table import describe_classes, describe_schema
from steelyard.proba.smoothing import SMOOTHINGS
from steelyard.solvers import (
    LBFGS,
    Fixed,
    GradientDescent,
    Newton,
    SpectralGradient,
)
from steelyard.table.treatments import DISCRETIZERS
from steelyard.weighting import WEIGHTINGS


def content_of(estimator: BaseNB) -> dict[str, Any]:
    """Describe a fitted classifier in JSON's own types."""
    recipe = describe_unfitted(estimator)
    model = answering_model(estimator)
    content = {
        "library": steelyard.__version__,
        **recipe,
        "classes": describe_classes(model.classes),
        "features": describe_schema(model.schema),
        "model": describe_model(model),
        "fitted": {
            key: ATTRIBUTES[key].describe(getattr(estimator, key))
            for key, is_optional in declaration(recipe["estimator"]).attributes.items()
            if not is_optional or hasattr(estimator, key)
        },
    }
    # What is written can be read: nobody wants to learn later that it cannot.
    try:
        read_content(content)
    except InvalidContentError as error:
        raise ParameterError(
            f"This model cannot be saved, for no file could be loaded: {error}."
        ) from None
    return content


def describe_unfitted(estimator: BaseNB) -> dict[str, Any]:
    """Describe class and settings of a classifier in JSON's own types."""
    name = type(estimator).__name__
    if name not in registry.classes() or estimator_class(name) is not type(estimator):
        raise ParameterError(
            f"{type(estimator).__module__}.{name} cannot be saved: a model file "
            f"describes {', '.join(registry.classes())} only. Use pickle for classes "
            "of your own."
        )
    return {"estimator": name, "settings": describe_settings(estimator)}


def unfitted(recipe: Any) -> BaseNB:
    """Return the classifier that ``describe_unfitted`` described."""
    reader = ObjectReader(recipe, "classifier")
    name = reader.text("estimator", list(registry.classes()))
    settings = read_settings(reader.inner("settings"), name)
    reader.finish()
    return estimator_class(name)(**with_parts(settings))


def estimator_from(content: Any) -> BaseNB:
    """Return the classifier that a content describes; InvalidContentError if none."""
    checked = read_content(content)
    settings = with_parts(checked.settings)
    estimator: BaseNB = estimator_class(checked.estimator)(**settings)
    model = checked.model.build()
    estimator.classes_, estimator.model_ = model.classes, model
    estimator.encoder_ = estimator._encoding().encoder(estimator.n_jobs)
    for owner in (estimator.encoder_, estimator):
        owner.n_features_in_ = model.schema.n_columns
        if model.schema.names is not None:
            owner.feature_names_in_ = np.asarray(model.schema.names, dtype=object)
    estimator.encoder_.schema_ = model.schema
    for key, value in checked.attributes.items():
        setattr(estimator, key, built(value))
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


def with_parts(value: Any) -> Any:
    """Return settings that were read with parts in place of their descriptions."""
    if isinstance(value, DescribedPart):
        return PARTS[value.name](**with_parts(value.settings))
    if isinstance(value, dict):
        return {key: with_parts(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(with_parts, value))
    return value


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
