"""Settings in a model file: plain values as they are, everything else tagged."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from steelyard.classifiers.collaborative import VARIANTS
from steelyard.classifiers.evolved import FITNESSES
from steelyard.classifiers.selective import EVALUATIONS, MEASURES, TIES
from steelyard.classifiers.spss import B_METHODS, DIVISORS, SELECTIONS
from steelyard.classifiers.weighted import MULTICLASS, VARIANCES
from steelyard.exceptions import ParameterError
from steelyard.instances import (
    DiscriminativeWeighting,
    ValueFrequencyWeighting,
    resolve_instances,
)
from steelyard.losses import (
    BrierLoss,
    DevianceLoss,
    ExponentialLoss,
    LogLoss,
    resolve_loss,
)
from steelyard.model.combined import FORMS
from steelyard.model.lazy import KERNELS
from steelyard.persistence.reader import (
    InvalidContentError,
    Reader,
    read_tagged,
    tagged_number,
)
from steelyard.proba import Lidstone, MEstimate, resolve_smoothing
from steelyard.solvers import LBFGS, SOLVERS, Fixed, Newton, Solver
from steelyard.table.discretizers import (
    Discretizer,
    EqualFrequencyDiscretizer,
    EqualWidthDiscretizer,
    FixedEdgesDiscretizer,
    MDLDiscretizer,
)
from steelyard.table.encoder import CARDINALITIES, MISSING
from steelyard.weighting import (
    WEIGHTINGS,
    AttributeWeighting,
    AUCWeighting,
    ClassAttributeWeighting,
    CorrelationWeighting,
    GainRatioWeighting,
    HierarchicalWeighting,
    MixtureWeighting,
    OneTreeWeighting,
    SubsetWeighting,
    TreeWeighting,
    ValueWeighting,
    Weighting,
)
from steelyard.weighting.filters.trees import CATEGORIES

__all__ = ["ALLOWED", "PARTS", "describe_settings", "read_settings"]

# Only these parts are ever created from a file.
PARTS: dict[str, type[BaseEstimator]] = {
    part.__name__: part
    for part in (
        AUCWeighting,
        AttributeWeighting,
        BrierLoss,
        ClassAttributeWeighting,
        CorrelationWeighting,
        DevianceLoss,
        DiscriminativeWeighting,
        EqualFrequencyDiscretizer,
        EqualWidthDiscretizer,
        ExponentialLoss,
        Fixed,
        FixedEdgesDiscretizer,
        GainRatioWeighting,
        HierarchicalWeighting,
        LBFGS,
        Lidstone,
        LogLoss,
        MDLDiscretizer,
        MEstimate,
        MixtureWeighting,
        Newton,
        OneTreeWeighting,
        SubsetWeighting,
        TreeWeighting,
        ValueFrequencyWeighting,
        ValueWeighting,
    )
}

# Settings that files of earlier releases do not have, and what they were then.
_ADDED = {"instances": None}

# A part inside a mapping inside a part is as deep as settings go.
_DEEPEST = 8
_INFINITIES = ("inf", "-inf")


def describe_settings(owner: BaseEstimator) -> dict[str, Any]:
    """Describe all settings of a classifier or part in JSON's own types."""
    settings = owner.get_params(deep=False)
    return {key: _describe(value, key) for key, value in settings.items()}


def read_settings(
    reader: Reader, owner: type[BaseEstimator], depth: int = 0
) -> dict[str, Any]:
    """Return the settings of a classifier or part, refusing those it cannot have.

    They are compared by type. Whether names and numbers fit the table is left to
    ``fit``, as for any classifier.
    """
    settings: dict[str, Any] = {}
    for name in owner._get_param_names():
        if name in _ADDED and not reader.has(name):
            settings[name] = _ADDED[name]
            continue
        value = _read(reader.get(name), depth + 1)
        if not ALLOWED.get(name, _anything)(value):
            raise reader.complaint(name, "is not a value of that setting")
        settings[name] = value
    reader.finish()
    return settings


def _describe(value: Any, key: str) -> Any:
    if value is None:
        return None
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
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


def _read(value: Any, depth: int) -> Any:
    if depth > _DEEPEST:
        raise InvalidContentError("content.settings is nested too deeply")
    if isinstance(value, list):
        return [_read(item, depth + 1) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidContentError("content.settings holds a number that is not finite")
    if not isinstance(value, dict):
        return value
    if "number" in value:
        return read_tagged(value, "content.settings", _INFINITIES)
    reader = Reader(value, "content.settings")
    result: Any
    if "tuple" in value:
        result = tuple(_read(item, depth + 1) for item in reader.items("tuple"))
    elif "mapping" in value:
        result = _read_mapping(reader, depth)
    else:
        part = PARTS[reader.text("part", list(PARTS))]
        result = part(**read_settings(reader.inner("settings"), part, depth + 1))
    reader.finish()
    return result


def _read_mapping(reader: Reader, depth: int) -> dict[Any, Any]:
    mapping: dict[Any, Any] = {}
    for pair in reader.items("mapping"):
        if not isinstance(pair, list) or len(pair) != 2:
            raise reader.complaint("mapping", "must be a list of pairs")
        key, item = pair
        if isinstance(key, (list, dict)) or key in mapping:
            raise reader.complaint("mapping", "must have different plain keys")
        mapping[key] = _read(item, depth + 1)
    return mapping


# ------------------------------------------------------------------ what is allowed


def _anything(value: Any) -> bool:
    return True


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_number(value: Any) -> bool:
    """Whether a value is a finite number that float64 can hold."""
    if not isinstance(value, (bool, int, float)):
        return False
    return abs(value) < 1 << 1000 and math.isfinite(value)


def _is_amount(value: Any) -> bool:
    return _is_number(value) and value >= 0


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and 1 <= value < 1 << 63


def _is_rounds(value: Any) -> bool:
    return isinstance(value, int) and 0 <= value < 1 << 63


def _is_column(value: Any) -> bool:
    return isinstance(value, str) or _is_number(value)


def _one_of(*words: str | None) -> Callable[[Any], bool]:
    return lambda value: value in words


def _list_of(
    is_item: Callable[[Any], bool], *words: str | None
) -> Callable[[Any], bool]:
    """Allow a list or tuple, or one of some words."""
    return lambda value: (
        all(map(is_item, value)) if isinstance(value, (list, tuple)) else value in words
    )


def _mapping_of(
    is_key: Callable[[Any], bool], is_item: Callable[[Any], bool], *words: str | None
) -> Callable[[Any], bool]:
    """Allow a mapping, or one of some words."""
    return lambda value: (
        all(map(is_key, value)) and all(map(is_item, value.values()))
        if isinstance(value, dict)
        else value in words
    )


def _part_or(kind: type, words: Sequence[str]) -> Callable[[Any], bool]:
    return lambda value: (
        isinstance(value, kind) or (isinstance(value, str) and value in words)
    )


def _accepted_by(resolve: Callable[[Any], Any]) -> Callable[[Any], bool]:
    """Allow what the package's own function for a setting does not refuse."""

    def accepted(value: Any) -> bool:
        try:
            resolve(value)
        except ParameterError:
            return False
        return True

    return accepted


def _is_bound(value: Any) -> bool:
    infinite = isinstance(value, float) and math.isinf(value)
    return value is None or infinite or _is_number(value)


def _is_pair(value: Any) -> bool:
    return _list_of(_is_bound)(value) and len(value) == 2


def _is_bounds(value: Any) -> bool:
    return (
        _is_pair(value)
        or _list_of(_is_pair, None)(value)
        or _mapping_of(_is_column, _is_pair)(value)
    )


def _is_costs(value: Any) -> bool:
    return _list_of(_is_amount, None)(value) or _mapping_of(_is_column, _is_amount)(
        value
    )


def _is_treatment(value: Any) -> bool:
    return isinstance(value, (str, Discretizer))


def _is_views(value: Any) -> bool:
    several = isinstance(value, (list, tuple)) and len(value) > 0
    return all(map(_is_treatment, value)) if several else _is_treatment(value)


def _is_numeric(value: Any) -> bool:
    return _is_views(value) or _mapping_of(_is_column, _is_views)(value)


def _is_split(value: Any) -> bool:
    return (
        isinstance(value, (list, tuple))
        and len(value) == 2
        and all(map(_list_of(_is_rounds), value))
    )


def _is_strengths(value: Any) -> bool:
    return (
        isinstance(value, (list, tuple))
        and len(value) == 3
        and all(_is_amount(one) and one > 0 for one in value)
    )


def _is_n_jobs(value: Any) -> bool:
    return value is None or (isinstance(value, int) and value != 0)


# Values of settings by name, of classifiers and of their parts alike. A setting of a
# classifier has an entry; one of a part may go without, and is checked by ``fit``.
ALLOWED: dict[str, Callable[[Any], bool]] = {
    "attribute_weights": _is_flag,
    "b_method": _one_of(*B_METHODS),
    "bounds": _is_bounds,
    "calibrated": _is_flag,
    "cardinality": _one_of(*CARDINALITIES),
    "categories": _one_of(*CATEGORIES),
    "categorical_features": _list_of(_is_column, None, "auto", "all"),
    "center": _is_number,
    "class_weight": _mapping_of(_anything, _is_number, None, "balanced"),
    "costs": _is_costs,
    "criterion": lambda value: isinstance(value, str),  # of a discretizer too
    "crossover": _is_amount,
    "cv": lambda value: _is_count(value) or _list_of(_is_split)(value),
    "divisor": _one_of(*DIVISORS),
    "evaluation": _one_of(*EVALUATIONS),
    "exact_size": lambda value: value is None or _is_rounds(value),
    "excluded": _list_of(_is_column, None),
    "fitness": _one_of(*FITNESSES),
    "folds": _is_count,
    "forced": _list_of(_is_column, None),
    "form": _one_of(*FORMS),
    "generations": _is_count,
    "gradient_tol": lambda value: value is None or _is_amount(value),
    "grid": _list_of(_is_strengths, None),
    "instance_bound": _is_amount,
    "instance_lam": _is_amount,
    "instances": _accepted_by(resolve_instances),
    "intercept": _is_amount,
    "keep": _one_of("best", "last"),
    "kernel": _one_of(*KERNELS),
    "lam": _is_amount,
    "locally_predictive": _is_flag,
    "loss": _accepted_by(lambda value: resolve_loss(value).parameter),
    "max_iter": _is_count,
    "max_rounds": _is_count,
    "max_stale": _is_count,
    "max_size": lambda value: value == "auto" or _is_rounds(value),
    "measure": _one_of(*MEASURES),
    "memory": _is_count,
    "memory_limit": _is_amount,
    "missing": _one_of(*MISSING),
    "multiclass": _one_of(*MULTICLASS),
    "mutation": _is_amount,
    "n_jobs": _is_n_jobs,
    "n_neighbors": lambda value: value is None or _is_count(value),
    "n_trees": _is_count,
    "n_simulated": _is_count,
    "numeric": _is_numeric,
    "overall": lambda value: _is_amount(value) or value == math.inf,
    "penalty": _one_of(None, "ridge", "l1"),
    "population_size": _is_count,
    "prior": _list_of(_is_number, "smoothed", "frequency"),
    "prior_weight": _is_flag,
    "published_gradient": _is_flag,
    "random_state": lambda value: value is None or _is_rounds(value),
    "rescaled": _is_flag,
    "rounds": _is_rounds,
    "select_only": _is_flag,
    "selection": _one_of(*SELECTIONS),
    "share": lambda value: value is None or _is_amount(value),
    "smoothing": _accepted_by(resolve_smoothing),
    "solver": _part_or(Solver, SOLVERS),
    "strength": lambda value: value == "auto" or _is_strengths(value),
    "threshold": lambda value: value is None or _is_amount(value),
    "ties": _one_of(*TIES),
    "time_limit": lambda value: value is None or _is_amount(value),
    "tol": _is_amount,
    "variance": _one_of(*VARIANCES),
    "variance_floor": _is_amount,
    "variant": _one_of(*VARIANTS),
    "verbose": _is_flag,
    "weighting": _part_or(Weighting, tuple(WEIGHTINGS)),
    "zero_is_one": _is_flag,
}
