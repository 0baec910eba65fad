"""What a model file holds: settings, schema, model and fitted attributes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import steelyard
from steelyard.classifiers.base import BaseNB, NaiveBayes
from steelyard.classifiers.boosted import BoostedNB
from steelyard.classifiers.collaborative import CollaborativeNB
from steelyard.classifiers.cost_sensitive import CostSensitiveNB
from steelyard.classifiers.evolved import CorrelationAdjustedNB, EvolvedWeightsNB
from steelyard.classifiers.filters import (
    AUCWeightedNB,
    CorrelationWeightedNB,
    DeepWeightedNB,
    GainRatioWeightedNB,
    TreeWeightedNB,
)
from steelyard.classifiers.instance_weighted import InstanceWeightedNB
from steelyard.classifiers.joint import JointWeightedNB
from steelyard.classifiers.lazy import LazyAttributeInstanceNB, LocallyWeightedNB
from steelyard.classifiers.published import (
    AttributeWeightedNB,
    ClassAttributeWeightedNB,
    DevianceNB,
    ExponentialNB,
    GeneralizedDevianceNB,
    LogisticNB,
    RegularizedNB,
    SquaredErrorNB,
    ValueWeightedNB,
)
from steelyard.classifiers.selective import ForwardSelectedNB, SelectiveNB
from steelyard.classifiers.shrinkage import ShrinkageNB
from steelyard.classifiers.spss import SPSSNaiveBayes
from steelyard.classifiers.weighted import WeightedNB
from steelyard.exceptions import ParameterError
from steelyard.persistence.fitted import ATTRIBUTES, Sizes
from steelyard.persistence.models import describe_model, read_model
from steelyard.persistence.reader import InvalidContentError, Reader
from steelyard.persistence.settings import describe_settings, read_settings
from steelyard.persistence.table import (
    describe_classes,
    describe_schema,
    read_classes,
    read_schema,
)
from steelyard.table.encoder import TableEncoder

__all__ = ["ESTIMATORS", "Saved", "content_of", "estimator_from"]


@dataclass(frozen=True)
class Saved:
    """What a file holds of a class of classifiers, beside settings and schema."""

    estimator: type[BaseNB]
    models: tuple[str, ...]
    """Kinds of models it may have."""

    always: tuple[str, ...]
    """Fitted attributes that it always has."""

    sometimes: tuple[str, ...] = ()
    """Fitted attributes that only some settings give it."""


_COUNTED = ("counts_", "class_count_", "class_log_prior_")
_SOLVED = ("objective_", "n_iter_", "diagnostics_")
_WEIGHTS = (
    "attribute_weights_",
    "class_attribute_weights_",
    "value_weights_",
    "prior_weight_",
    "alpha_",
    "selected_features_",
    "value_effects_",
    "intercept_",
)
_HIERARCHY = (
    "attribute_weights_",
    "class_attribute_weights_",
    "value_effects_",
    "intercept_",
)
_CHOSEN = ("strength_", "strength_path_", "scale_", "view_names_")
_KINDS = ("sum", "mixture", "pairs")
_ROWS = ("instance_weights_", "diagnostics_")
_SELECTED = ("selected_features_", "selection_path_")

# Only these are ever created from a file. For another class: an entry here, and what is
# new about it in ALLOWED (settings), PARTS, ATTRIBUTES and MODELS.
ESTIMATORS: dict[str, Saved] = {
    saved.estimator.__name__: saved
    for saved in (
        Saved(NaiveBayes, ("sum",), _COUNTED),
        *(
            Saved(learned, _KINDS, _COUNTED + _SOLVED, (*_WEIGHTS, "instance_weights_"))
            for learned in (
                WeightedNB,
                AUCWeightedNB,
                AttributeWeightedNB,
                ClassAttributeWeightedNB,
                CorrelationAdjustedNB,
                CorrelationWeightedNB,
                DeepWeightedNB,
                DevianceNB,
                ExponentialNB,
                GainRatioWeightedNB,
                GeneralizedDevianceNB,
                LogisticNB,
                RegularizedNB,
                SquaredErrorNB,
                TreeWeightedNB,
                ValueWeightedNB,
            )
        ),
        Saved(InstanceWeightedNB, ("sum",), _COUNTED + _ROWS),
        Saved(
            SPSSNaiveBayes,
            ("sum",),
            (*_COUNTED, "selected_features_", "selection_path_", "search_end_"),
            ("error_",),
        ),
        *(
            Saved(selective, ("sum",), (*_COUNTED, *_SELECTED))
            for selective in (CostSensitiveNB, ForwardSelectedNB, SelectiveNB)
        ),
        Saved(
            ShrinkageNB,
            ("sum",),
            (*_COUNTED, *_SOLVED, *_HIERARCHY, *_CHOSEN),
            ("instance_weights_",),
        ),
        Saved(EvolvedWeightsNB, ("sum",), (*_COUNTED, *_SOLVED, "attribute_weights_")),
        Saved(BoostedNB, ("votes",), (*_COUNTED, *_ROWS, "votes_")),
        Saved(LocallyWeightedNB, ("neighbours",), _COUNTED),
        Saved(LazyAttributeInstanceNB, ("matches",), (*_COUNTED, "attribute_weights_")),
        Saved(
            CollaborativeNB,
            ("sum", "mixture"),
            (*_COUNTED, *_SOLVED, "instance_weights_", "n_rounds_"),
            _WEIGHTS,
        ),
        Saved(
            JointWeightedNB,
            ("sum",),
            (*_COUNTED, *_SOLVED, "instance_weights_"),
            _WEIGHTS,
        ),
    )
}


def content_of(estimator: BaseNB) -> dict[str, Any]:
    """Describe a fitted classifier in JSON's own types."""
    name = type(estimator).__name__
    saved = ESTIMATORS.get(name)
    if saved is None or saved.estimator is not type(estimator):
        raise ParameterError(
            f"{type(estimator).__module__}.{name} cannot be saved: a model file "
            f"describes {', '.join(ESTIMATORS)} only. Use pickle for classes of your "
            "own."
        )
    model = estimator.model_
    present = [key for key in saved.sometimes if hasattr(estimator, key)]
    content = {
        "library": steelyard.__version__,
        "estimator": name,
        "settings": describe_settings(estimator),
        "classes": describe_classes(model.classes),
        "features": describe_schema(model.schema),
        "model": describe_model(model),
        "fitted": {
            key: ATTRIBUTES[key].describe(getattr(estimator, key))
            for key in (*saved.always, *present)
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
    saved = ESTIMATORS[reader.text("estimator", list(ESTIMATORS))]
    settings = read_settings(reader.inner("settings"), saved.estimator)
    classes = read_classes(reader.inner("classes"))
    schema = read_schema(reader.items("features"))
    model = read_model(reader.inner("model"), schema, classes, saved.models)
    learned = reader.inner("fitted")
    present = [key for key in saved.sometimes if learned.has(key)]
    attributes = {
        key: ATTRIBUTES[key].read(learned, key, Sizes.of(model))
        for key in (*saved.always, *present)
    }
    learned.finish()
    reader.finish()
    estimator = saved.estimator(**settings)
    _restore(estimator, model, attributes)
    return estimator


def _restore(estimator: BaseNB, model: Any, attributes: dict[str, Any]) -> None:
    estimator.classes_ = model.classes
    estimator.encoder_ = TableEncoder(
        estimator.categorical_features,
        estimator.numeric,
        estimator.missing,
        estimator.cardinality,
        estimator.n_jobs,
    )
    for owner in (estimator.encoder_, estimator):
        owner.n_features_in_ = len(set(model.schema.columns))
        if model.schema.names is not None:
            owner.feature_names_in_ = np.asarray(model.schema.names, dtype=object)
    estimator.encoder_.schema_ = model.schema
    estimator.model_ = model
    for key, value in attributes.items():
        setattr(estimator, key, value)
