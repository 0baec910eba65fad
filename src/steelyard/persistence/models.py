"""Models in a file: sums, mixtures, pairs of classes, votes, and training rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.exceptions import ParameterError
from steelyard.model.base import Model
from steelyard.model.combined import FORMS, BoostedModel, MixtureModel, PairwiseModel
from steelyard.model.lazy import KERNELS, LocalModel, MatchingModel
from steelyard.model.one_dependence import ConditionalTable, OneDependenceModel
from steelyard.model.table_model import NBModel
from steelyard.persistence import codec
from steelyard.persistence.codec import (
    LARGEST_LOG,
    LARGEST_SQUARE,
    LARGEST_WEIGHT,
    Field,
    Sizes,
)
from steelyard.persistence.reader import Reader, float_list
from steelyard.proba import GaussianTable
from steelyard.table.codes import code_dtype

# The smallest deviation whose inverse does not overflow.
_MIN_DEVIATION = 1e-307
_MIN_SCALE = 1e-50
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class ModelKind:
    """A kind of model: what it holds besides attributes and classes."""

    model: type[Model]
    counted: str | None
    """The field that has an item for each model or training row."""

    fields: dict[str, Field]


def describe_model(model: Any) -> dict[str, Any]:
    """Describe a model, with the name of its kind."""
    kind = MODELS.get(getattr(model, "kind", ""))
    if kind is not None and type(model) is kind.model:
        return {"kind": model.kind, **codec.describe_fields(kind.fields, vars(model))}
    raise ParameterError(
        f"A {type(model).__module__}.{type(model).__name__} cannot be saved: a model "
        "file cannot describe it. Use pickle."
    )


def read_model(reader: Reader, sizes: Sizes, kinds: Sequence[str]) -> Any:
    """Return a model of one of some kinds, for attributes and classes."""
    kind = MODELS[reader.text("kind", kinds)]
    names = {field.name for field in dataclasses.fields(kind.model)}  # type: ignore[arg-type]
    table = {key: getattr(sizes, key) for key in names & {"schema", "classes"}}
    if kind.counted is not None:
        sizes = replace(sizes, n=len(reader.items(kind.counted)))
        if sizes.n == 0:
            raise reader.complaint(kind.counted, "must not be empty")
    return kind.model(**table, **codec.read_fields(reader, kind.fields, sizes))


# ------------------------------------------------------------------- models of models


def _models(*kinds: str, by_pair: bool) -> Field:
    """Return a field of several models, for pairs of classes or for all of them."""

    def read(reader: Reader, key: str, sizes: Sizes) -> tuple[Any, ...]:
        entries = reader.entries(key, sizes.n)
        parts: Iterable[NDArray[Any]] = repeat(sizes.classes)
        if by_pair:
            pairs = combinations(range(len(sizes.classes)), 2)
            parts = (sizes.classes[list(pair)] for pair in pairs)
        return tuple(
            read_model(entry.inner(i), replace(sizes, classes=classes), kinds)
            for (entry, i), classes in zip(entries, parts, strict=False)
        )

    return Field(lambda models: list(map(describe_model, models)), read)


def _read_pairs(reader: Reader, key: str, sizes: Sizes) -> tuple[tuple[int, int], ...]:
    k = len(sizes.classes)
    # Counted before the pairs are made: a file of many classes is still a small file.
    if sizes.n == k * (k - 1) // 2:
        pairs = tuple(combinations(range(k), 2))
        if reader.items(key) == list(map(list, pairs)):
            return pairs
    raise reader.complaint(key, "must be all pairs of classes in order")


def _read_form(reader: Reader, key: str, sizes: Sizes) -> str:
    form = reader.text(key, FORMS)
    if form == "elkan" and len(sizes.classes) != 2:
        raise reader.complaint(key, "is for two classes")
    return form


# ----------------------------------------------------------------------- training rows


def _read_columns(reader: Reader, key: str, sizes: Sizes) -> NDArray[Any]:
    schema = sizes.schema
    n_codes = [schema.features[j].n_codes for j in schema.coded.tolist()]
    entries = reader.entries(key, len(n_codes))
    columns = np.empty(sizes.shape("en"), dtype=code_dtype(max(n_codes, default=1)))
    for j, (entry, i) in enumerate(entries):
        columns[j] = entry.wholes(i, sizes.shape("n"), n_codes[j])
    return columns


def _read_labels(reader: Reader, key: str, sizes: Sizes) -> NDArray[np.uint32]:
    y = reader.wholes(key, sizes.shape("n"), len(sizes.classes))
    return y.astype(np.uint32)


def _read_order(reader: Reader, key: str, sizes: Sizes) -> NDArray[np.int64]:
    k = len(sizes.classes)
    order = reader.wholes(key, (k,), k)
    if len(set(order.tolist())) != k:
        raise reader.complaint(key, "must hold every class once")
    return order


def _read_exponents(reader: Reader, key: str, sizes: Sizes) -> Any:
    if len(sizes.schema.gaussian):
        raise reader.complaint("columns", "must hold the codes of all attributes")
    return codec.weights("d").read(reader, key, sizes)


def _read_shares(reader: Reader, key: str, sizes: Sizes) -> NDArray[np.float64]:
    if len(sizes.schema.gaussian):
        raise reader.complaint(key, "must hold the codes of all attributes")
    shares = reader.floats(key, sizes.shape("v"), 0.0, LARGEST_WEIGHT)
    if shares[sizes.schema.first_codes].any():
        raise reader.complaint(key, "must be 0 for unknown values")
    return shares


_ROWS = {
    "columns": Field(np.ndarray.tolist, _read_columns),
    "y": Field(np.ndarray.tolist, _read_labels),
    "weights": codec.numbers("n", _MIN_SCALE, LARGEST_WEIGHT).or_null(np.empty(0)),
    "log_prior": codec.logs().or_null(np.empty(0)),
    "value_added": codec.numbers("e", _TINY, LARGEST_WEIGHT),
    "prior_added": codec.numbers("k", 0.0, LARGEST_WEIGHT),
    "tie_order": Field(np.ndarray.tolist, _read_order),
}


# -------------------------------------------------------------------------------- kinds


def _gaussian_table(sizes: Sizes, **values: Any) -> GaussianTable:
    features = [sizes.schema.features[j] for j in sizes.schema.gaussian]
    return GaussianTable.of(features, **values)


_GAUSSIAN = {
    "mean": codec.numbers("gk"),
    "deviation": codec.numbers("gk", _MIN_DEVIATION),
    "weight": codec.weights("gk").or_null(),
}
_CONDITIONAL = {
    "log_prob": codec.numbers("vk", -LARGEST_LOG, 0.0),
    "counts": codec.numbers("vvk", 0.0, LARGEST_WEIGHT),
    "strength": codec.numbers("", _MIN_SCALE, LARGEST_WEIGHT),
}


def _conditional_table(sizes: Sizes, **values: Any) -> ConditionalTable:
    return ConditionalTable(sizes.schema.offsets, **values)


_SUM = Field(
    describe_model,
    lambda reader, key, sizes: read_model(reader.inner(key), sizes, ["sum"]),
)
_NUMBERS = codec.numbers("gn", special=codec.MISSING)
_KERNEL = Field(
    KERNELS.__getitem__,
    lambda reader, key, sizes: KERNELS.index(reader.text(key, KERNELS)),
)


def _kind(model: type[Model], counted: str | None = None, **fields: Field) -> ModelKind:
    return ModelKind(model, counted, fields)


MODELS: dict[str, ModelKind] = {
    kind.model.kind: kind
    for kind in (
        _kind(
            NBModel,
            log_prior=codec.logs(),
            table=codec.numbers("vk", -LARGEST_LOG, LARGEST_LOG),
            gaussian=codec.record(_GAUSSIAN, _gaussian_table),
            link_scale=codec.numbers("", _MIN_SCALE, LARGEST_WEIGHT),
        ),
        _kind(
            MixtureModel, alpha=codec.numbers("", 0.0, 1.0), specific=_SUM, shared=_SUM
        ),
        _kind(
            PairwiseModel,
            "pairs",
            pairs=Field(lambda pairs: list(map(list, pairs)), _read_pairs),
            models=_models("sum", "mixture", by_pair=True),
            log_prior=codec.logs(),
        ),
        _kind(
            BoostedModel,
            "models",
            form=Field(str, _read_form),
            votes=codec.numbers("n", 0.0, LARGEST_WEIGHT),
            models=_models("sum", by_pair=False),
        ),
        _kind(
            OneDependenceModel,
            log_prior=codec.logs(),
            shares=Field(float_list, _read_shares),
            conditional=codec.record(_CONDITIONAL, _conditional_table),
        ),
        _kind(
            LocalModel,
            "y",
            **_ROWS,
            numbers=_NUMBERS,
            floors=codec.numbers("g", _MIN_DEVIATION, LARGEST_SQUARE),
            neighbours=codec.whole(1),
            kernel=_KERNEL,
        ),
        _kind(
            MatchingModel,
            "y",
            **_ROWS,
            exponents=Field(codec.weights("d").describe, _read_exponents),
        ),
    )
}
