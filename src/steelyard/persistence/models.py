"""Models in a file: sums, mixtures, pairs of classes, votes, and training rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.exceptions import ParameterError
from steelyard.model.base import Model
from steelyard.model.combined import (
    FORMS,
    BoostedModel,
    MixtureModel,
    PairwiseModel,
)
from steelyard.model.lazy import KERNELS, LocalModel, MatchingModel
from steelyard.model.table_model import NBModel
from steelyard.persistence.reader import Reader, float_list, gap_list, log_list
from steelyard.proba import GaussianTable
from steelyard.table.codes import code_dtype
from steelyard.table.schema import TableSchema

__all__ = ["LARGEST_LOG", "LARGEST_WEIGHT", "MODELS", "describe_model", "read_model"]

# Far more than any logarithm of a probability, yet any number of them adds up without
# overflow; and the smallest deviation whose inverse does not overflow. A log-density is
# 5e199 at most in size, so that with a weight and a link scale it stays finite too.
LARGEST_LOG = 1e100
LARGEST_WEIGHT = 1e50
_SMALLEST_SCALE = 1e-50
_SMALLEST_DEVIATION = 1e-307
# Differences of such numbers can be squared.
_LARGEST_NUMBER = 1e150


@dataclass(frozen=True)
class ModelKind:
    """A kind of model: how it is described, and how it is read."""

    model: type[Model]
    describe: Callable[[Any], dict[str, Any]]
    read: Callable[[Reader, TableSchema, NDArray[Any]], Any]


def describe_model(model: Any) -> dict[str, Any]:
    """Describe a model, with the name of its kind."""
    kind = MODELS.get(getattr(model, "kind", ""))
    if kind is not None and type(model) is kind.model:
        return {"kind": model.kind, **kind.describe(model)}
    raise ParameterError(
        f"A {type(model).__module__}.{type(model).__name__} cannot be saved: a model "
        "file cannot describe it. Use pickle."
    )


def read_model(
    reader: Reader, schema: TableSchema, classes: NDArray[Any], kinds: Sequence[str]
) -> Any:
    """Return a model of one of some kinds, for attributes and classes."""
    model = MODELS[reader.text("kind", kinds)].read(reader, schema, classes)
    reader.finish()
    return model


# -------------------------------------------------------------------------------- kinds


def _sum(model: NBModel) -> dict[str, Any]:
    gaussian = model.gaussian
    weight = gaussian.weight
    return {
        "log_prior": log_list(model.log_prior),
        "table": float_list(model.table),
        "gaussian": {
            "mean": float_list(gaussian.mean),
            "deviation": float_list(gaussian.deviation),
            "weight": None if weight is None else float_list(weight),
        },
        "link_scale": float(model.link_scale),
    }


def _read_sum(reader: Reader, schema: TableSchema, classes: NDArray[Any]) -> NBModel:
    k, v, g = len(classes), schema.n_codes, len(schema.gaussian)
    log_prior = reader.logs("log_prior", k, LARGEST_LOG)
    table = reader.floats("table", (v, k), low=-LARGEST_LOG, high=LARGEST_LOG)
    density = reader.inner("gaussian")
    weight = None
    if density.get("weight") is not None:
        weight = density.floats(
            "weight", (g, k), low=-LARGEST_WEIGHT, high=LARGEST_WEIGHT
        )
    gaussian = GaussianTable.of(
        [schema.features[j] for j in schema.gaussian],
        density.floats("mean", (g, k)),
        density.floats("deviation", (g, k), low=_SMALLEST_DEVIATION),
        weight,
    )
    density.finish()
    scale = reader.floats("link_scale", (), low=_SMALLEST_SCALE, high=LARGEST_WEIGHT)
    return NBModel(schema, classes, log_prior, table, gaussian, float(scale))


def _mixture(model: MixtureModel) -> dict[str, Any]:
    return {
        "alpha": float(model.alpha),
        "specific": describe_model(model.specific),
        "shared": describe_model(model.shared),
    }


def _read_mixture(
    reader: Reader, schema: TableSchema, classes: NDArray[Any]
) -> MixtureModel:
    return MixtureModel(
        float(reader.floats("alpha", (), low=0.0, high=1.0)),
        read_model(reader.inner("specific"), schema, classes, ["sum"]),
        read_model(reader.inner("shared"), schema, classes, ["sum"]),
    )


def _pairs(model: PairwiseModel) -> dict[str, Any]:
    return {
        "pairs": [list(pair) for pair in model.pairs],
        "models": [describe_model(one) for one in model.models],
        "log_prior": log_list(model.log_prior),
    }


def _read_pairs(
    reader: Reader, schema: TableSchema, classes: NDArray[Any]
) -> PairwiseModel:
    k = len(classes)
    n = k * (k - 1) // 2
    # Counted before the pairs are made: a file of many classes is still a small file.
    found = reader.items("pairs")
    if len(found) != n or found != [list(pair) for pair in combinations(range(k), 2)]:
        raise reader.complaint("pairs", "must be all pairs of classes in order")
    pairs = tuple(combinations(range(k), 2))
    models = reader.numbered("models", n)
    return PairwiseModel(
        classes,
        pairs,
        tuple(
            read_model(
                models.inner(str(i)), schema, classes[list(pair)], ["sum", "mixture"]
            )
            for i, pair in enumerate(pairs)
        ),
        reader.logs("log_prior", k, LARGEST_LOG),
    )


def _votes(model: BoostedModel) -> dict[str, Any]:
    return {
        "form": model.form,
        "votes": float_list(model.votes),
        "models": [describe_model(one) for one in model.models],
    }


def _read_votes(
    reader: Reader, schema: TableSchema, classes: NDArray[Any]
) -> BoostedModel:
    form = reader.text("form", FORMS)
    if form == "elkan" and len(classes) != 2:
        raise reader.complaint("form", "is for two classes")
    n = len(reader.items("models"))
    if n == 0:
        raise reader.complaint("models", "must not be empty")
    models = reader.numbered("models", n)
    return BoostedModel(
        tuple(
            read_model(models.inner(str(t)), schema, classes, ["sum"]) for t in range(n)
        ),
        reader.floats("votes", (n,), low=0.0, high=LARGEST_WEIGHT),
        form,
    )


def _training_rows(model: LocalModel | MatchingModel) -> dict[str, Any]:
    """Describe what both models that keep their training rows have."""
    return {
        "columns": model.columns.tolist(),
        "y": model.y.tolist(),
        "weights": float_list(model.weights) if model.weights.size else None,
        "log_prior": log_list(model.log_prior) if model.log_prior.size else None,
        "value_added": float_list(model.value_added),
        "prior_added": float_list(model.prior_added),
        "tie_order": model.tie_order.tolist(),
    }


def _read_training_rows(
    reader: Reader, schema: TableSchema, classes: NDArray[Any]
) -> dict[str, Any]:
    k, n = len(classes), len(reader.items("y"))
    if n == 0:
        raise reader.complaint("y", "must not be empty")
    sizes = [schema.features[j].n_codes for j in schema.coded.tolist()]
    columns = np.empty((len(sizes), n), dtype=code_dtype(max(sizes, default=1)))
    given = reader.numbered("columns", len(sizes))
    for j, size in enumerate(sizes):
        columns[j] = given.wholes(str(j), (n,), size)
    weights, log_prior = np.empty(0), np.empty(0)
    if reader.get("weights") is not None:
        weights = reader.floats(
            "weights", (n,), low=_SMALLEST_SCALE, high=LARGEST_WEIGHT
        )
    if reader.get("log_prior") is not None:
        log_prior = reader.logs("log_prior", k, LARGEST_LOG)
    order = reader.wholes("tie_order", (k,), k)
    if len(set(order.tolist())) != k:
        raise reader.complaint("tie_order", "must hold every class once")
    least = {"low": np.finfo(np.float64).tiny, "high": LARGEST_WEIGHT}
    return {
        "schema": schema,
        "classes": classes,
        "columns": columns,
        "y": reader.wholes("y", (n,), k).astype(np.uint32),
        "weights": weights,
        "log_prior": log_prior,
        "value_added": reader.floats("value_added", (len(sizes),), **least),
        "prior_added": reader.floats("prior_added", (k,), high=LARGEST_WEIGHT, low=0.0),
        "tie_order": order,
    }


def _neighbours(model: LocalModel) -> dict[str, Any]:
    return {
        **_training_rows(model),
        "numbers": gap_list(model.numbers),
        "floors": float_list(model.floors),
        "neighbours": model.neighbours,
        "kernel": KERNELS[model.kernel],
    }


def _read_neighbours(
    reader: Reader, schema: TableSchema, classes: NDArray[Any]
) -> LocalModel:
    rows = _read_training_rows(reader, schema, classes)
    g, n = len(schema.gaussian), len(rows["y"])
    return LocalModel(
        **rows,
        numbers=reader.gaps(
            "numbers", (g, n), low=-_LARGEST_NUMBER, high=_LARGEST_NUMBER
        ),
        floors=reader.floats("floors", (g,), low=_SMALLEST_DEVIATION),
        neighbours=reader.whole("neighbours", low=1),
        kernel=KERNELS.index(reader.text("kernel", KERNELS)),
    )


def _matches(model: MatchingModel) -> dict[str, Any]:
    return {**_training_rows(model), "exponents": float_list(model.exponents)}


def _read_matches(
    reader: Reader, schema: TableSchema, classes: NDArray[Any]
) -> MatchingModel:
    if len(schema.gaussian):
        raise reader.complaint("columns", "must hold the codes of all attributes")
    return MatchingModel(
        **_read_training_rows(reader, schema, classes),
        exponents=reader.floats(
            "exponents", (len(schema),), low=-LARGEST_WEIGHT, high=LARGEST_WEIGHT
        ),
    )


MODELS: dict[str, ModelKind] = {
    kind.model.kind: kind
    for kind in (
        ModelKind(NBModel, _sum, _read_sum),
        ModelKind(MixtureModel, _mixture, _read_mixture),
        ModelKind(PairwiseModel, _pairs, _read_pairs),
        ModelKind(BoostedModel, _votes, _read_votes),
        ModelKind(LocalModel, _neighbours, _read_neighbours),
        ModelKind(MatchingModel, _matches, _read_matches),
    )
}
