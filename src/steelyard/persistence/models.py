"""Models in a file: sums, mixtures, pairs of classes, votes, and training rows."""

from __future__ import annotations

import dataclasses
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, combinations, repeat
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from steelyard._common import np
from steelyard._common.allowed import FORMS, KERNELS
from steelyard.exceptions import ParameterError
from steelyard.persistence import codec
from steelyard.persistence.codec import (
    LARGEST_LOG,
    LARGEST_SQUARE,
    LARGEST_WEIGHT,
    Field,
    Sizes,
)
from steelyard.persistence.reader import ObjectReader, ReadNumbers, float_list

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from steelyard.model.base import Model

# The smallest deviation whose inverse does not overflow.
_MIN_DEVIATION = 1e-307
_MIN_SCALE = 1e-50
_TINY = sys.float_info.min


@dataclass(frozen=True)
class ModelKind:
    """A kind of model: what it holds besides attributes and classes."""

    home: str
    """Module and class, below ``steelyard.model``."""

    counted: str | None
    """The field that has an item for each model or training row."""

    fields: dict[str, Field]

    @property
    def model(self) -> type[Model]:
        """The class, loaded when it is asked for."""
        model: type[Model] = codec.class_of(f"model.{self.home}")
        return model


class ReadModel(SimpleNamespace):
    """A model of a file, checked: its kind, attributes, classes and plain values."""

    kind: str


def describe_model(model: Any) -> dict[str, Any]:
    """Describe a model, with the name of its kind."""
    kind = MODELS.get(getattr(model, "kind", ""))
    if kind is not None and type(model) is kind.model:
        return {"kind": model.kind, **codec.describe_fields(kind.fields, vars(model))}
    raise ParameterError(
        f"A {type(model).__module__}.{type(model).__name__} cannot be saved: a model "
        "file cannot describe it. Use pickle."
    )


def read_model(reader: ObjectReader, sizes: Sizes, kinds: Sequence[str]) -> ReadModel:
    """Return a model of one of some kinds, for attributes and classes."""
    name = reader.text("kind", kinds)
    kind = MODELS[name]
    if kind.counted is not None:
        sizes = replace(sizes, n=len(reader.items(kind.counted)))
        if sizes.n == 0:
            raise reader.complaint(kind.counted, "must not be empty")
    values = codec.read_fields(reader, kind.fields, sizes)
    return ReadModel(kind=name, schema=sizes.schema, classes=sizes.classes, **values)


def build_model(read: ReadModel, sizes: Sizes) -> Any:
    """Build the model that was read, for an array of its classes."""
    kind = MODELS[read.kind]
    if kind.counted is not None:
        sizes = replace(sizes, n=len(getattr(read, kind.counted)))
    values = {key: getattr(read, key) for key in kind.fields}
    names = {field.name for field in dataclasses.fields(kind.model)}  # type: ignore[arg-type]
    table = {key: getattr(sizes, key) for key in names & {"schema", "classes"}}
    return kind.model(**table, **codec.build_fields(kind.fields, values, sizes))


# ------------------------------------------------------------------- models of models


def _models(*kinds: str, by_pair: bool) -> Field:
    """Return a field of several models, for pairs of classes or for all of them."""

    def parts(sizes: Sizes) -> Iterator[Sizes]:
        of_parts: Iterable[Any] = repeat(sizes.classes)
        if by_pair:
            of_parts = _pairs_of(sizes.classes)
        return (replace(sizes, classes=classes) for classes in of_parts)

    def read(reader: ObjectReader, key: str, sizes: Sizes) -> tuple[ReadModel, ...]:
        entries = zip(reader.entries(key, sizes.n), parts(sizes), strict=False)
        return tuple(
            read_model(entry.inner(i), of, kinds) for (entry, i), of in entries
        )

    def build(models: tuple[ReadModel, ...], sizes: Sizes) -> tuple[Any, ...]:
        return tuple(map(build_model, models, parts(sizes)))

    return Field(lambda models: list(map(describe_model, models)), read, build)


def _pairs_of(classes: Any) -> Iterator[Any]:
    """Yield the two classes of every pair: lists of a list, arrays of an array."""
    for pair in combinations(range(len(classes)), 2):
        is_list = isinstance(classes, list)
        yield [classes[k] for k in pair] if is_list else classes[list(pair)]


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


def _has_densities(sizes: Sizes) -> bool:
    return not all(feature.is_coded for feature in sizes.schema.features)


def _read_columns(reader: ObjectReader, key: str, sizes: Sizes) -> list[list[int]]:
    n_codes = _n_codes(sizes)
    entries = reader.entries(key, len(n_codes))
    columns = zip(entries, n_codes, strict=True)
    return [entry.wholes(i, sizes.n, high) for (entry, i), high in columns]


def _build_columns(columns: list[list[int]], sizes: Sizes) -> NDArray[Any]:
    from steelyard.table.codes import code_dtype

    dtype = code_dtype(max(_n_codes(sizes), default=1))
    return np.array(columns, dtype=dtype).reshape(sizes.shape("en"))


def _read_labels(reader: ObjectReader, key: str, sizes: Sizes) -> list[int]:
    return reader.wholes(key, sizes.n, len(sizes.classes))


def _read_order(reader: ObjectReader, key: str, sizes: Sizes) -> list[int]:
    k = len(sizes.classes)
    order = reader.wholes(key, k, k)
    if len(set(order)) != k:
        raise reader.complaint(key, "must hold every class once")
    return order


def _read_exponents(reader: ObjectReader, key: str, sizes: Sizes) -> Any:
    if _has_densities(sizes):
        raise reader.complaint("columns", "must hold the codes of all attributes")
    return codec.weights("d").read(reader, key, sizes)


def _read_shares(reader: ObjectReader, key: str, sizes: Sizes) -> ReadNumbers:
    if _has_densities(sizes):
        raise reader.complaint(key, "must hold the codes of all attributes")
    shares = reader.floats(key, sizes.shape("v"), 0.0, LARGEST_WEIGHT)
    # Before the first code of each attribute are all of those before it.
    firsts = accumulate(_n_codes(sizes)[:-1], initial=0)
    if any(shares.flat[k] for k in firsts):
        raise reader.complaint(key, "must be 0 for unknown values")
    return shares


def _listed(array: NDArray[Any]) -> Any:
    return array.tolist()


_EMPTY = ReadNumbers(array("d"), (0,))
TRAINING_ROWS = {
    "columns": Field(_listed, _read_columns, _build_columns),
    "y": Field(_listed, _read_labels, lambda y, sizes: np.array(y, dtype=np.uint32)),
    "weights": codec.numbers("n", _MIN_SCALE, LARGEST_WEIGHT).or_null(_EMPTY),
    "log_prior": codec.logs().or_null(_EMPTY),
    "value_added": codec.numbers("e", _TINY, LARGEST_WEIGHT),
    "prior_added": codec.numbers("k", 0.0, LARGEST_WEIGHT),
    "tie_order": Field(
        _listed, _read_order, lambda order, sizes: np.array(order, dtype=np.int64)
    ),
}


# -------------------------------------------------------------------------------- kinds


def _gaussian_table(sizes: Sizes, **values: Any) -> Any:
    features = [feature for feature in sizes.schema.features if not feature.is_coded]
    return codec.class_of("proba.gaussian.GaussianTable").of(features, **values)


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


def _conditional_table(sizes: Sizes, **values: Any) -> Any:
    table = codec.class_of("model.combined.ConditionalTable")
    return table(sizes.schema.offsets, **values)


_SUM = Field(
    describe_model,
    lambda reader, key, sizes: read_model(reader.inner(key), sizes, ["sum"]),
    build_model,
)
_NUMBERS = codec.numbers("gn", special=codec.MISSING)
_KERNEL = Field(
    KERNELS.__getitem__,
    lambda reader, key, sizes: KERNELS.index(reader.text(key, KERNELS)),
)


def _kind(home: str, counted: str | None = None, **fields: Field) -> ModelKind:
    return ModelKind(home, counted, fields)


MODELS: dict[str, ModelKind] = {
    "sum": _kind(
        "table_model.NBModel",
        log_prior=codec.logs(),
        table=codec.numbers("vk", -LARGEST_LOG, LARGEST_LOG),
        gaussian=codec.record(_GAUSSIAN, _gaussian_table),
        link_scale=codec.numbers("", _MIN_SCALE, LARGEST_WEIGHT),
        centre=codec.numbers("dk", -LARGEST_LOG, LARGEST_LOG).or_null(),
    ),
    "mixture": _kind(
        "combined.MixtureModel",
        alpha=codec.numbers("", 0.0, 1.0),
        specific=_SUM,
        shared=_SUM,
    ),
    "pairs": _kind(
        "combined.PairwiseModel",
        "pairs",
        pairs=Field(lambda pairs: list(map(list, pairs)), _read_pairs),
        models=_models("sum", "mixture", by_pair=True),
        log_prior=codec.logs(),
    ),
    "votes": _kind(
        "combined.BoostedModel",
        "models",
        form=Field(str, _read_form),
        votes=codec.numbers("n", 0.0, LARGEST_WEIGHT),
        models=_models("sum", by_pair=False),
    ),
    "one-dependence": _kind(
        "combined.OneDependenceModel",
        log_prior=codec.logs(),
        shares=Field(float_list, _read_shares),
        conditional=codec.record(_CONDITIONAL, _conditional_table),
    ),
    "neighbours": _kind(
        "lazy.LocalModel",
        "y",
        **TRAINING_ROWS,
        numbers=_NUMBERS,
        floors=codec.numbers("g", _MIN_DEVIATION, LARGEST_SQUARE),
        neighbours=codec.whole(1),
        kernel=_KERNEL,
    ),
    "matches": _kind(
        "lazy.MatchingModel",
        "y",
        **TRAINING_ROWS,
        exponents=Field(codec.weights("d").describe, _read_exponents),
    ),
}
