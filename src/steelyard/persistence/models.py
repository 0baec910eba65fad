"""Models in a file: sums, mixtures, pairs of classes, votes, and training rows."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate, combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.allowed import FORMS, KERNELS
from steelyard._common.arrays import Floats
from steelyard.exceptions import ParameterError
from steelyard.persistence import codec
from steelyard.persistence.codec import (
    LARGEST_LOG,
    LARGEST_SQUARE,
    LARGEST_WEIGHT,
    Field,
    ReadRecord,
    Sizes,
)
from steelyard.persistence.reader import ObjectReader, float_list
from steelyard.table.codes import code_dtype

# The smallest deviation whose inverse does not overflow.
_MIN_DEVIATION = 1e-307
_MIN_SCALE = 1e-50
_TINY = sys.float_info.min


def describe_model(model: Any) -> dict[str, Any]:
    """Describe a model, with the name of its kind."""
    kind = MODELS.get(getattr(model, "kind", ""))
    if kind is None:
        raise _cannot_be_saved(model)
    described: dict[str, Any] = kind.describe(model)
    return described


def _cannot_be_saved(model: Any) -> ParameterError:
    return ParameterError(
        f"A {type(model).__module__}.{type(model).__name__} cannot be saved: a model "
        "file cannot describe it. Use pickle."
    )


def model_of(*kinds: str) -> Field:
    """Return a field of a model of one of some kinds, read with its schema and classes.

    The class of a model may have schema and classes as fields, or as properties that
    follow from others.
    """

    def read(reader: ObjectReader, key: str, sizes: Sizes) -> ReadRecord:
        kind = reader.inner(key).text("kind", kinds)
        model: ReadRecord = MODELS[kind].read(reader, key, sizes)
        model.schema, model.classes = sizes.schema, sizes.classes
        return model

    return Field(describe_model, read)


def _kind(home: str, counted: str = "", **fields: Any) -> Field:
    """Return the field of a kind of model, by module and class below ``model``."""
    home = f"model.{home}"

    def parts(model: Any) -> dict[str, Any]:
        if type(model) is not codec.class_of(home):
            raise _cannot_be_saved(model)
        return {"kind": model.kind, **vars(model)}

    def make(model: Any, schema: Any, values: dict[str, Any]) -> Any:
        names = {field.name for field in dataclasses.fields(model)}
        return model(**{name: values[name] for name in values.keys() & names})

    kind = codec.text()
    return codec.record(
        home, counted=counted, make=make, parts=parts, kind=kind, **fields
    )


# ------------------------------------------------------------------- models of models


def _models(classes: Callable[[Sizes], Sequence[NDArray[Any]]], *kinds: str) -> Field:
    """Return a field of several models, each of some of the classes."""
    model = model_of(*kinds)

    def read(reader: ObjectReader, key: str, sizes: Sizes) -> tuple[ReadRecord, ...]:
        entries = zip(reader.entries(key, sizes.n), classes(sizes), strict=True)
        return tuple(
            model.read(*entry, replace(sizes, classes=some)) for entry, some in entries
        )

    return Field(lambda models: list(map(describe_model, models)), read)


def _pairs_of(sizes: Sizes) -> list[NDArray[Any]]:
    """Return the two classes of every pair."""
    return [
        sizes.classes[[*pair]] for pair in combinations(range(len(sizes.classes)), 2)
    ]


def _read_pairs(
    reader: ObjectReader, key: str, sizes: Sizes
) -> tuple[tuple[int, int], ...]:
    k = len(sizes.classes)
    # Counted before the pairs are made: a file of many classes is still a small file.
    if sizes.n == k * (k - 1) // 2:
        pairs = tuple(combinations(range(k), 2))
        if reader.items(key) == list(map(list, pairs)):
            return pairs
    raise reader.complaint(key, "must be all pairs of classes in order")


def _read_form(reader: ObjectReader, key: str, sizes: Sizes) -> str:
    form = reader.text(key, FORMS)
    if form == "elkan" and len(sizes.classes) != 2:
        raise reader.complaint(key, "is for two classes")
    return form


# ----------------------------------------------------------------------- training rows


def _n_codes(sizes: Sizes) -> list[int]:
    """Count the codes of each attribute that has any."""
    return [feature.n_codes for feature in sizes.schema.features if feature.is_coded]


def _refuse_densities(reader: ObjectReader, key: str, sizes: Sizes) -> None:
    if not all(feature.is_coded for feature in sizes.schema.features):
        raise reader.complaint(key, "must hold the codes of all attributes")


def _read_columns(reader: ObjectReader, key: str, sizes: Sizes) -> NDArray[Any]:
    n_codes, shape = _n_codes(sizes), sizes.shape("en")
    columns = zip(reader.entries(key, len(n_codes)), n_codes, strict=True)
    codes = [entry.wholes(i, sizes.n, high) for (entry, i), high in columns]
    return np.array(codes, dtype=code_dtype(max(n_codes, default=1))).reshape(shape)


_ORDER = codec.positions("k", "k", "int64")


def _read_order(reader: ObjectReader, key: str, sizes: Sizes) -> NDArray[Any]:
    order: NDArray[Any] = _ORDER.read(reader, key, sizes)
    if len(np.unique(order)) != len(order):
        raise reader.complaint(key, "must hold every class once")
    return order


def _read_exponents(reader: ObjectReader, key: str, sizes: Sizes) -> Any:
    _refuse_densities(reader, "columns", sizes)
    return codec.weights("d").read(reader, key, sizes)


def _read_shares(reader: ObjectReader, key: str, sizes: Sizes) -> Floats:
    _refuse_densities(reader, key, sizes)
    shares = reader.floats(key, sizes.shape("v"), 0.0, LARGEST_WEIGHT)
    # Before the first code of each attribute are all of those before it.
    if shares[[*accumulate(_n_codes(sizes)[:-1], initial=0)]].any():
        raise reader.complaint(key, "must be 0 for unknown values")
    return shares


_EMPTY = np.zeros(0)
_TRAINING_ROWS = {
    "columns": Field(lambda columns: columns.tolist(), _read_columns),
    "y": codec.positions("n", "k", "uint32"),
    "weights": codec.weights("n", _MIN_SCALE).or_null(_EMPTY),
    "log_prior": codec.logs().or_null(_EMPTY),
    "value_added": codec.weights("e", _TINY),
    "prior_added": codec.weights("k", 0.0),
    "tie_order": Field(_ORDER.describe, _read_order),
}


# -------------------------------------------------------------------------------- kinds


_GAUSSIAN = codec.record(
    "proba.gaussian.GaussianTable",
    mean=codec.numbers("gk"),
    deviation=codec.numbers("gk", _MIN_DEVIATION),
    weight=codec.weights("gk").or_null(),
    make=lambda table, schema, values: table.of(
        [feature for feature in schema.features if not feature.is_coded], **values
    ),
)
MARGINAL = codec.record(
    "model.marginal.Marginal",
    value_odds=codec.numbers("t", 0.0, special=("inf", math.inf)),
    means=codec.numbers("do", -LARGEST_LOG, LARGEST_LOG),
    # By factor.
    loadings=codec.rounded("do", -LARGEST_LOG, LARGEST_LOG, is_repeated=True),
    noise=codec.numbers("do", _MIN_DEVIATION, LARGEST_SQUARE),
    base_rates=codec.numbers("k", 0.0, 1.0),
    plain=codec.rounded("vk", -LARGEST_LOG, LARGEST_LOG),
    plain_loadings=codec.rounded("t", -LARGEST_LOG, LARGEST_LOG, is_repeated=True),
    plain_noise=codec.numbers("t", 0.0, LARGEST_SQUARE),
    shift=codec.numbers("o", -LARGEST_LOG, LARGEST_LOG),
    log_ratio=codec.numbers("k", -LARGEST_LOG, LARGEST_LOG),
    parts=lambda moments: {
        **vars(moments),
        "loadings": np.moveaxis(moments.loadings, 2, 0),
        "plain_loadings": moments.plain_loadings.T,
    },
    make=lambda marginal, schema, values: marginal(
        **{
            **values,
            "loadings": np.ascontiguousarray(np.moveaxis(values["loadings"], 0, 2)),
            "plain_loadings": np.ascontiguousarray(values["plain_loadings"].T),
        }
    ),
)
_CONDITIONAL = codec.record(
    "model.combined.ConditionalTable",
    log_prob=codec.numbers("vk", -LARGEST_LOG, 0.0),
    counts=codec.weights("vvk", 0.0),
    strength=codec.weights(low=_MIN_SCALE),
    make=lambda table, schema, values: table(schema.offsets, **values),
)

MODELS: dict[str, Field] = {
    "sum": _kind(
        "table_model.NBModel",
        log_prior=codec.logs(),
        table=codec.numbers("vk", -LARGEST_LOG, LARGEST_LOG),
        gaussian=_GAUSSIAN,
        link_scale=codec.weights(low=_MIN_SCALE),
        centre=codec.numbers("dk", -LARGEST_LOG, LARGEST_LOG).or_null(),
        marginal=MARGINAL.or_null(),
    ),
    "mixture": _kind(
        "combined.MixtureModel",
        alpha=codec.numbers("", 0.0, 1.0),
        specific=model_of("sum"),
        shared=model_of("sum"),
    ),
    "pairs": _kind(
        "combined.PairwiseModel",
        "pairs",
        pairs=Field(lambda pairs: list(map(list, pairs)), _read_pairs),
        models=_models(_pairs_of, "sum", "mixture"),
        log_prior=codec.logs(),
    ),
    "votes": _kind(
        "combined.BoostedModel",
        "models",
        form=Field(str, _read_form),
        votes=codec.weights("n", 0.0),
        models=_models(lambda sizes: [sizes.classes] * sizes.n, "sum"),
    ),
    "one-dependence": _kind(
        "combined.OneDependenceModel",
        log_prior=codec.logs(),
        shares=Field(float_list, _read_shares),
        conditional=_CONDITIONAL,
    ),
    "neighbours": _kind(
        "lazy.LocalModel",
        "y",
        **_TRAINING_ROWS,
        numbers=codec.numbers("gn", special=codec.MISSING),
        floors=codec.numbers("g", _MIN_DEVIATION, LARGEST_SQUARE),
        neighbours=codec.whole(1),
        kernel=Field(
            KERNELS.__getitem__,
            lambda reader, key, sizes: KERNELS.index(reader.text(key, KERNELS)),
        ),
    ),
    "matches": _kind(
        "lazy.MatchingModel",
        "y",
        **_TRAINING_ROWS,
        exponents=Field(float_list, _read_exponents),
    ),
}
