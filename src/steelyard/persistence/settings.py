"""Settings in a model file: plain values as they are, everything else tagged."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from numbers import Integral, Real
from typing import Any

import numpy as np

from steelyard._common.settings import Declared
from steelyard.exceptions import ParameterError
from steelyard.instances import INSTANCES
from steelyard.losses import LOSSES
from steelyard.persistence.reader import (
    InvalidContentError,
    Reader,
    read_tagged,
    tagged_number,
)
from steelyard.proba.smoothing import SMOOTHINGS
from steelyard.solvers import LBFGS, Fixed, Newton, SpectralGradient
from steelyard.table.discretizers import CLASSES as DISCRETIZERS
from steelyard.weighting import WEIGHTINGS

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
        LBFGS,
        Newton,
        SpectralGradient,
    )
}

# A part inside a mapping inside a part is as deep as settings go.
_DEEPEST = 8
_INFINITIES = ("inf", "-inf")


def describe_settings(owner: Declared) -> dict[str, Any]:
    """Describe all settings of a classifier or part in JSON's own types."""
    settings = owner.get_params(deep=False)
    return {key: _describe(value, key) for key, value in settings.items()}


def read_settings(
    reader: Reader, owner: type[Declared], depth: int = 0
) -> dict[str, Any]:
    """Return the settings of a classifier or part, refusing those it cannot have.

    What is allowed, the class declares. Whether names and numbers fit the table is left
    to ``fit``, as for any classifier.
    """
    settings: dict[str, Any] = {}
    for name, entry in owner._settings.items():
        if name in owner._added_settings and not reader.has(name):
            settings[name] = owner._added_settings[name]
            continue
        value = _read(reader.get(name), depth + 1)
        if entry.allowed is not None and not entry.allowed.accepts(value):
            raise reader.complaint(name, "is not a value of that setting")
        settings[name] = value
    for name in owner._dropped_settings:
        if reader.has(name):
            _read(reader.get(name), depth + 1)
    reader.finish()
    return settings


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
