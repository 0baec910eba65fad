"""What a model file holds: settings, schema, tables and counts of a classifier."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from numbers import Integral, Real
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
from steelyard.proba import GaussianTable, Lidstone, MEstimate, resolve_smoothing
from steelyard.table.discretizers import (
    Discretizer,
    EqualFrequencyDiscretizer,
    EqualWidthDiscretizer,
    FixedEdgesDiscretizer,
    MDLDiscretizer,
)
from steelyard.table.encoder import CARDINALITIES, MISSING, TableEncoder
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
_TEXT = (str,)
_NUMBERS = (bool, int, float)

# What the values of an array of classes may be, by the name of its type. A width of
# text is not among the names: a file must not say how much memory to set aside.
_CLASS_KINDS: dict[str, tuple[type, ...]] = {
    "object": (str, bool, int, float),
    "str": _TEXT,
    "bool": (bool,),
    **{f"{sign}int{bits}": (int,) for sign in ("", "u") for bits in (8, 16, 32, 64)},
    **{f"float{bits}": (float,) for bits in (16, 32, 64)},
}

# Far more than any logarithm of a probability, yet any number of them adds up without
# overflow; and the smallest deviation whose inverse does not overflow.
_LARGEST_LOG = 1e100
_SMALLEST_DEVIATION = 1e-307

# Text of one width takes the room of the longest class for each: 64 MB at most.
_MOST_CHARACTERS = 1 << 24

# A part inside a mapping inside a part is as deep as settings go.
_DEEPEST_SETTING = 8


def content_of(estimator: BaseNB) -> dict[str, Any]:
    """Describe a fitted classifier in JSON's own types."""
    name = type(estimator).__name__
    if _ESTIMATORS.get(name) is not type(estimator):
        raise ParameterError(
            f"{type(estimator).__module__}.{name} cannot be saved: a model file "
            f"describes {', '.join(_ESTIMATORS)} only. Use pickle for classes of your "
            "own."
        )
    assert isinstance(estimator, NaiveBayes)
    model, counts = estimator.model_, estimator.counts_
    settings = estimator.get_params(deep=False)
    content = {
        "library": steelyard.__version__,
        "estimator": name,
        "settings": {key: _setting(value, key) for key, value in settings.items()},
        "classes": _classes(model.classes),
        "features": [_feature(feature) for feature in model.schema.features],
        "log_prior": [
            "-inf" if x == -math.inf else x for x in float_list(model.log_prior)
        ],
        "table": float_list(model.table),
        "gaussian": {
            "mean": float_list(model.gaussian.mean),
            "deviation": float_list(model.gaussian.deviation),
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
    name = reader.text("estimator", list(_ESTIMATORS))
    estimator = _ESTIMATORS[name](
        **_read_settings(reader.inner("settings"), _ESTIMATORS[name])
    )
    assert isinstance(estimator, NaiveBayes)
    _check_settings(estimator)
    classes = _read_classes(reader.inner("classes"))
    schema = _read_schema(reader.items("features"))
    k, v, g = len(classes), schema.n_codes, len(schema.gaussian)
    log_prior = reader.logs("log_prior", k, _LARGEST_LOG)
    table = reader.floats("table", (v, k), low=-_LARGEST_LOG, high=_LARGEST_LOG)
    density = reader.inner("gaussian")
    gaussian = GaussianTable(
        density.floats("mean", (g, k)),
        density.floats("deviation", (g, k), low=_SMALLEST_DEVIATION),
        np.array([schema.features[j].step for j in schema.gaussian], dtype=np.float64),
    )
    density.finish()
    counted = reader.inner("counts")
    counts = Counts(
        schema,
        counted.floats("by_class", (k,), low=0.0),
        counted.floats("by_code", (v, k), low=0.0),
        Moments(
            counted.floats("weight", (g, k), low=0.0),
            counted.floats("mean", (g, k)),
            counted.floats("squares", (g, k), low=0.0),
        ),
    )
    counted.finish()
    class_count = reader.floats("class_count", (k,), low=0.0)
    reader.finish()
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
    name = "str" if classes.dtype.kind == "U" else classes.dtype.name
    if name not in _CLASS_KINDS:  # a type of numbers that not every machine has
        classes, name = classes.astype(np.float64), "float64"
    return {"dtype": name, "values": classes.tolist()}


def _read_classes(reader: Reader) -> NDArray[Any]:
    name = reader.text("dtype", list(_CLASS_KINDS))
    kinds = _CLASS_KINDS[name]
    if name == "object":
        text = any(isinstance(value, str) for value in reader.items("values"))
        kinds = _TEXT if text else _NUMBERS
    values = reader.values("values", kinds)
    reader.finish()
    if len(values) < 2:
        raise reader.complaint("values", "must hold at least two classes")
    if name == "str" and len(values) * max(map(len, values)) > _MOST_CHARACTERS:
        raise reader.complaint("values", "is too long for text of one width")
    try:
        with np.errstate(over="ignore"):
            classes = np.array(values, dtype=name)
    except (OverflowError, ValueError):
        raise reader.complaint("dtype", "does not fit the classes") from None
    # A type too narrow would turn two classes into one.
    if classes.tolist() != values:
        raise reader.complaint("dtype", "does not fit the classes")
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
        raise reader.complaint("name", "must be text or null")
    kind: Any = reader.text("kind", _KINDS)
    cells = reader.text("cells", _CELLS)
    n_edges = len(reader.items("edges"))
    edges = reader.floats("edges", (n_edges,))
    # Numbers and booleans may have met in one column, over several chunks of rows.
    feature = FeatureSchema(
        name,
        kind,
        cells,
        values=tuple(reader.values("values", _TEXT if cells == "text" else _NUMBERS)),
        edges=tuple(edges.tolist()),
        missing_is_value=reader.flag("missing_is_value"),
        fill=None if reader.get("fill") is None else reader.number("fill"),
        step=reader.number("step"),
    )
    reader.finish()
    if not (edges[1:] > edges[:-1]).all() or (n_edges and kind != "binned"):
        raise reader.complaint("edges", "must increase, and belong to bins")
    if feature.values and (kind != "categorical" or cells == "nothing"):
        raise reader.complaint("values", "must belong to categories")
    if kind != "categorical" and cells == "text":
        raise reader.complaint("cells", "must not be text in a numeric attribute")
    if feature.missing_is_value and (feature.fill is not None or not feature.is_coded):
        raise reader.complaint("missing_is_value", "does not fit the attribute")
    if feature.step < 0 or (feature.step > 0) != (kind == "gaussian-weka"):
        raise reader.complaint("step", "does not fit the kind of the attribute")
    if feature.fill is not None and feature.is_coded:
        code = feature.fill
        if not 1 <= code <= feature.n_values or code != int(code):
            raise reader.complaint("fill", "must be a code of the attribute")
        feature = replace(feature, fill=int(code))
    return feature


# ---------------------------------------------------------------------------- settings


def _setting(value: Any, key: str) -> Any:
    """Describe a setting: plain values as they are, parts and mappings tagged."""
    if value is None:
        return None
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    if isinstance(value, Mapping):
        pairs = [[_setting(k, key), _setting(v, key)] for k, v in value.items()]
        return {"mapping": pairs}
    if isinstance(value, Set):
        # In one order, so that equal models make equal files.
        return sorted((_setting(item, key) for item in value), key=repr)
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return [_setting(item, key) for item in value]
    if _PARTS.get(type(value).__name__) is type(value):
        settings = value.get_params(deep=False)
        return {
            "part": type(value).__name__,
            "settings": {k: _setting(v, k) for k, v in settings.items()},
        }
    if hasattr(value, "__array__") and np.ndim(value) > 0:
        return [_setting(item, key) for item in np.asarray(value)]
    raise ParameterError(
        f"The setting {key!r} holds a {type(value).__module__}.{type(value).__name__}, "
        "which a model file cannot describe. Use one of the package's own parts, or "
        "pickle."
    )


def _read_settings(
    reader: Reader, owner: type[BaseEstimator], depth: int = 0
) -> dict[str, Any]:
    names = owner._get_param_names()
    settings = {name: _read_setting(reader.get(name), depth + 1) for name in names}
    reader.finish()
    return settings


def _read_setting(value: Any, depth: int) -> Any:
    if depth > _DEEPEST_SETTING:
        raise InvalidContentError("content.settings is nested too deeply")
    if isinstance(value, list):
        return [_read_setting(item, depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    reader = Reader(value, "content.settings")
    if "mapping" not in value:
        part = _PARTS[reader.text("part", list(_PARTS))]
        settings = _read_settings(reader.inner("settings"), part, depth + 1)
        reader.finish()
        return part(**settings)
    mapping: dict[Any, Any] = {}
    for pair in reader.items("mapping"):
        if not isinstance(pair, list) or len(pair) != 2:
            raise reader.complaint("mapping", "must be a list of pairs")
        key, item = pair
        if isinstance(key, (list, dict)) or key in mapping:
            raise reader.complaint("mapping", "must have different plain keys")
        mapping[key] = _read_setting(item, depth + 1)
    reader.finish()
    return mapping


def _check_settings(estimator: NaiveBayes) -> None:
    """Refuse settings that no fitted classifier has, by their types.

    Whether names and numbers fit the table is left to ``fit``, as for any classifier.
    """
    chosen, numeric = estimator.categorical_features, estimator.numeric
    treatments = numeric if isinstance(numeric, dict) else {0: numeric}
    prior, weight = estimator.prior, estimator.class_weight
    n_jobs, floor = estimator.n_jobs, estimator.variance_floor
    allowed = {
        "categorical_features": chosen in (None, "auto", "all")
        or (isinstance(chosen, list) and all(map(_is_column, chosen))),
        "numeric": all(isinstance(t, (str, Discretizer)) for t in treatments.values())
        and all(map(_is_column, treatments)),
        "missing": estimator.missing in MISSING,
        "smoothing": _is_smoothing(estimator.smoothing),
        "cardinality": estimator.cardinality in CARDINALITIES,
        "prior": prior in ("smoothed", "frequency")
        or (isinstance(prior, list) and all(map(_is_number, prior))),
        "variance_floor": _is_number(floor) and floor >= 0,
        "class_weight": weight in (None, "balanced")
        or (isinstance(weight, dict) and all(map(_is_number, weight.values()))),
        "n_jobs": n_jobs is None or (isinstance(n_jobs, int) and n_jobs != 0),
    }
    for name, is_allowed in allowed.items():
        if not is_allowed:
            raise InvalidContentError(
                f"content.settings.{name} is not a value of that setting"
            )


def _is_number(value: Any) -> bool:
    """Whether a value is a finite number that float64 can hold."""
    if not isinstance(value, (bool, int, float)):
        return False
    return abs(value) < 1 << 1000 and math.isfinite(value)


def _is_column(value: Any) -> bool:
    return isinstance(value, str) or _is_number(value)


def _is_smoothing(setting: Any) -> bool:
    try:
        resolve_smoothing(setting)
    except ParameterError:
        return False
    return True
