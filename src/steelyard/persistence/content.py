"""What a model file holds: settings, schema, tables and counts of a classifier."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

import steelyard
from steelyard.classifier import BaseNB, NaiveBayes
from steelyard.counts import Counts, Moments
from steelyard.exceptions import ParameterError
from steelyard.model import NBModel
from steelyard.persistence.reader import InvalidContentError, Reader, float_list
from steelyard.proba import GaussianTable, Lidstone, MEstimate
from steelyard.table.discretizers import (
    EqualFrequencyDiscretizer,
    EqualWidthDiscretizer,
    FixedEdgesDiscretizer,
    MDLDiscretizer,
)
from steelyard.table.encoder import TableEncoder
from steelyard.table.schema import FeatureSchema, TableSchema

__all__ = ["content_of", "estimator_from"]

# Only these are ever created from a file.
_ESTIMATORS: dict[str, type[BaseNB]] = {"NaiveBayes": NaiveBayes}
_PARTS: dict[str, type[BaseEstimator]] = {
    part.__name__: part
    for part in (
        EqualFrequencyDiscretizer,
        EqualWidthDiscretizer,
        FixedEdgesDiscretizer,
        Lidstone,
        MDLDiscretizer,
        MEstimate,
    )
}
_KINDS = ("categorical", "binned", "gaussian", "gaussian-weka")
_CELLS = ("numbers", "text", "booleans", "nothing")


def content_of(estimator: BaseNB) -> dict[str, Any]:
    """Describe a fitted classifier in JSON's own types."""
    name = type(estimator).__name__
    if _ESTIMATORS.get(name) is not type(estimator):
        raise ParameterError(
            f"{name} cannot be saved: only {', '.join(_ESTIMATORS)} can. Use pickle "
            "for classes of your own."
        )
    assert isinstance(estimator, NaiveBayes)
    model, counts = estimator.model_, estimator.counts_
    settings = estimator.get_params(deep=False)
    return {
        "library": steelyard.__version__,
        "estimator": name,
        "settings": {key: _setting(value, key) for key, value in settings.items()},
        "classes": _classes(model.classes),
        "features": [_feature(feature) for feature in model.schema.features],
        "log_prior": float_list(model.log_prior),
        "table": float_list(model.table),
        "gaussian": {
            "mean": float_list(model.gaussian.mean),
            "deviation": float_list(model.gaussian.deviation),
            "step": float_list(model.gaussian.step),
        },
        "counts": {
            "by_class": float_list(counts.by_class),
            "by_code": float_list(counts.by_code),
            "weight": float_list(counts.moments.weight),
            "mean": float_list(counts.moments.mean),
            "squares": float_list(counts.moments.squares),
        },
        "class_count": float_list(estimator.class_count_),
    }


def estimator_from(content: Any) -> BaseNB:
    """Build the classifier that a content describes, or say what is wrong with it."""
    reader = Reader(content, "content")
    reader.text("library")
    name = reader.text("estimator", list(_ESTIMATORS))
    settings = _settings(reader.inner("settings"), _ESTIMATORS[name])
    classes = _read_classes(reader.inner("classes"))
    schema = _read_schema(reader.items("features"))
    k, v, g = len(classes), schema.n_codes, len(schema.gaussian)
    log_prior = reader.floats("log_prior", (k,), log=True)
    table = reader.floats("table", (v, k))
    density = reader.inner("gaussian")
    gaussian = GaussianTable(
        density.floats("mean", (g, k)),
        density.floats("deviation", (g, k)),
        density.floats("step", (g,)),
    )
    density.finish()
    if (gaussian.deviation <= 0).any() or (gaussian.step < 0).any():
        raise InvalidContentError("content.gaussian must hold positive deviations")
    counted = reader.inner("counts")
    counts = Counts(
        schema,
        counted.floats("by_class", (k,)),
        counted.floats("by_code", (v, k)),
        Moments(
            counted.floats("weight", (g, k)),
            counted.floats("mean", (g, k)),
            counted.floats("squares", (g, k)),
        ),
    )
    counted.finish()
    class_count = reader.floats("class_count", (k,))
    for array in (counts.by_class, counts.by_code, counts.moments.weight, class_count):
        if (array < 0).any():
            raise InvalidContentError("content.counts must not be negative")
    reader.finish()
    estimator = _ESTIMATORS[name](**settings)
    assert isinstance(estimator, NaiveBayes)
    model = NBModel(schema, classes, log_prior, table, gaussian)
    _restore(estimator, model, counts, class_count)
    return estimator


def _restore(
    estimator: NaiveBayes,
    model: NBModel,
    counts: Counts,
    class_count: NDArray[np.float64],
) -> None:
    estimator.classes_ = model.classes
    estimator.encoder_ = TableEncoder(
        estimator.categorical_features,
        estimator.numeric,
        estimator.missing,
        estimator.cardinality,
        estimator.n_jobs,
    )
    for owner in (estimator.encoder_, estimator):
        owner.n_features_in_ = len(model.schema)
        if model.schema.names is not None:
            owner.feature_names_in_ = np.asarray(model.schema.names, dtype=object)
    estimator.encoder_.schema_ = model.schema
    estimator.model_ = model
    estimator.counts_ = counts
    estimator.class_count_ = class_count
    estimator.class_log_prior_ = model.log_prior


# ------------------------------------------------------------------------------ pieces


def _classes(classes: NDArray[Any]) -> dict[str, Any]:
    return {"dtype": classes.dtype.str, "values": classes.tolist()}


def _read_classes(reader: Reader) -> NDArray[Any]:
    values = reader.values("values")
    word = reader.text("dtype")
    reader.finish()
    if len(values) < 2:
        raise InvalidContentError("content.classes must hold at least two classes")
    allowed = {str: "UO", bool: "bO", int: "iufO", float: "fO"}[type(values[0])]
    # A type name is at most a few characters; a string type says how long they are.
    if word == "|O":
        classes = np.empty(len(values), dtype=object)
        classes[:] = values
        return classes
    if word.lstrip("<>=|")[:1] not in tuple(allowed) or len(word) > 12:
        raise InvalidContentError("content.classes.dtype does not fit the classes")
    classes = np.array(values)
    if classes.dtype.kind in "biuf":
        widths = {f"{kind}{size}" for kind in "iuf" for size in (2, 4, 8)} | {
            "i1",
            "u1",
            "b1",
        }
        if word.lstrip("<>=|") not in widths:
            raise InvalidContentError("content.classes.dtype is not a type of numbers")
        with np.errstate(over="ignore"):
            try:
                cast = np.array(values, dtype=np.dtype(word))
            except (OverflowError, ValueError, TypeError):
                raise InvalidContentError(
                    "content.classes.dtype does not fit"
                ) from None
        if cast.tolist() != values:
            raise InvalidContentError("content.classes.dtype does not fit the classes")
        return cast
    return classes


def _feature(feature: FeatureSchema) -> dict[str, Any]:
    return {
        "name": feature.name,
        "kind": feature.kind,
        "cells": feature.cells,
        "values": list(feature.values),
        "edges": list(feature.edges),
        "missing_is_value": feature.missing_is_value,
        "fill": feature.fill,
        "step": feature.step,
    }


def _read_schema(items: list[Any]) -> TableSchema:
    if not items:
        raise InvalidContentError("content.features must not be empty")
    features = [
        _read_feature(Reader(item, f"content.features[{j}]"))
        for j, item in enumerate(items)
    ]
    names = [feature.name for feature in features]
    named = [name for name in names if name is not None]
    if named and (len(named) != len(names) or len(set(named)) != len(named)):
        raise InvalidContentError(
            "content.features must all have different names, or none"
        )
    return TableSchema(tuple(features))


def _read_feature(reader: Reader) -> FeatureSchema:
    name = reader.get("name")
    if name is not None and not isinstance(name, str):
        raise InvalidContentError("the name of an attribute must be text or null")
    kind: Any = reader.text("kind", _KINDS)
    edges = reader.values("edges")
    if any(isinstance(edge, (str, bool)) for edge in edges):
        raise InvalidContentError("edges must be numbers")
    fill = reader.get("fill")
    feature = FeatureSchema(
        name,
        kind,
        reader.text("cells", _CELLS),
        values=tuple(reader.values("values")),
        edges=tuple(map(float, edges)),
        missing_is_value=reader.flag("missing_is_value"),
        fill=None if fill is None else reader.number("fill"),
        step=reader.number("step"),
    )
    if feature.fill is not None and feature.is_coded:
        code = feature.fill
        if code != int(code) or not 1 <= code <= feature.n_values:
            raise InvalidContentError(
                "the imputed code of an attribute is out of range"
            )
        feature = FeatureSchema(**{**vars(feature), "fill": int(code)})
    if feature.step < 0 or (feature.step > 0) != (kind == "gaussian-weka"):
        raise InvalidContentError("the step of an attribute does not fit its kind")
    reader.finish()
    return feature


# ---------------------------------------------------------------------------- settings


def _setting(value: Any, key: str) -> Any:
    """Describe a setting: plain values as they are, parts and mappings tagged."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, np.generic):
        return _setting(value.item(), key)
    if isinstance(value, (list, tuple, set, np.ndarray)):
        return [_setting(item, key) for item in np.asarray(value, object).tolist()]
    if isinstance(value, Mapping):
        pairs = [[_setting(k, key), _setting(v, key)] for k, v in value.items()]
        return {"mapping": pairs}
    if _PARTS.get(type(value).__name__) is type(value):
        settings = value.get_params(deep=False)
        return {
            "part": type(value).__name__,
            "settings": {k: _setting(v, k) for k, v in settings.items()},
        }
    raise ParameterError(
        f"The setting {key!r} holds a {type(value).__name__}, which a model file "
        "cannot describe. Use one of the package's own parts, or pickle."
    )


def _settings(reader: Reader, owner: type[BaseEstimator]) -> dict[str, Any]:
    names = owner._get_param_names()
    settings = {name: _read_setting(reader.get(name)) for name in names}
    reader.finish()
    return settings


def _read_setting(value: Any) -> Any:
    if isinstance(value, list):
        return [_read_setting(item) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"mapping"}:
        pairs = value["mapping"]
        if not isinstance(pairs, list) or not all(
            isinstance(pair, list) and len(pair) == 2 for pair in pairs
        ):
            raise InvalidContentError(
                "a mapping among the settings is not a list of pairs"
            )
        if any(isinstance(key, (list, dict)) for key, _ in pairs):
            raise InvalidContentError(
                "a key of a mapping among the settings is not a plain value"
            )
        return {key: _read_setting(item) for key, item in pairs}
    reader = Reader(value, "content.settings")
    part = _PARTS[reader.text("part", list(_PARTS))]
    settings = _settings(reader.inner("settings"), part)
    reader.finish()
    return part(**settings)
