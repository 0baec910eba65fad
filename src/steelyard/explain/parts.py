"""What a model consists of: one sum, or several with a rule that combines them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from steelyard.classifiers.lazy import LazyModel, LocalModel
from steelyard.exceptions import ParameterError
from steelyard.model.combined import BoostedModel, MixtureModel, PairwiseModel
from steelyard.model.table_model import NBModel

__all__ = ["ModelKind", "Part", "evidence_of", "kind_of", "note_of", "one", "parts_of"]

ModelKind = Literal["sum", "mixture", "pairs", "vote", "neighbours"]


@dataclass(frozen=True)
class Part:
    """One of the models that a model is made of."""

    name: str
    share: float
    """Its part in the whole: a factor of a mixture, a vote, one over the pairs."""

    model: Any


def one(model: Any) -> Any:
    """Return the only voter of a vote of one, any other model as it is."""
    if isinstance(model, BoostedModel) and len(model.models) == 1:
        return model.models[0]
    return model


def kind_of(model: Any) -> ModelKind:
    """Say of which kind a model is."""
    if isinstance(model, NBModel):
        return "sum"
    if isinstance(model, MixtureModel):
        return "mixture"
    if isinstance(model, PairwiseModel):
        return "pairs"
    if isinstance(model, BoostedModel):
        return "vote"
    if isinstance(model, LazyModel):
        return "neighbours"
    raise ParameterError(
        f"A model of type {type(model).__name__} cannot be explained: it is neither a "
        "sum over attributes nor made of such sums. Use a classifier of this package, "
        "for example NaiveBayes or WeightedNB."
    )


def note_of(model: Any) -> str:
    """Say in a sentence what a model is."""
    kind = kind_of(model)
    if kind == "sum":
        return "The score of a class is its prior plus one contribution per attribute."
    if kind == "mixture":
        return (
            "Not one sum: two posteriors are mixed, "
            f"{model.alpha:.3f} of the class-specific half and "
            f"{1.0 - model.alpha:.3f} of the shared half. Each half is a sum."
        )
    if kind == "pairs":
        return (
            f"Not one sum: {len(model.pairs)} models of two classes each; a class "
            "scores the mean of its probabilities against the others. Each pair is a "
            "model of its own."
        )
    if kind == "vote":
        return (
            f"Not one sum: {len(model.models)} models vote, each with a weight of its "
            "own. Each voter is a sum."
        )
    if isinstance(model, LocalModel):
        rows = f"its {model.neighbours} nearest of {len(model.y)} training rows"
    else:
        rows = f"all {len(model.y)} training rows, weighted by the cells they share"
    return (
        f"Not one sum: each query has a model of its own, fitted to {rows}. For one "
        "query that model is a sum."
    )


def parts_of(model: Any) -> list[Part]:
    """Return the models that a model is made of; none for one sum or for queries."""
    if isinstance(model, MixtureModel):
        return [
            Part("class-specific half", model.alpha, model.specific),
            Part("shared half", 1.0 - model.alpha, model.shared),
        ]
    if isinstance(model, PairwiseModel):
        share = 1.0 / len(model.pairs)
        return [
            Part(f"{model.classes[a]} or {model.classes[b]}", share, own)
            for (a, b), own in zip(model.pairs, model.models, strict=True)
        ]
    if isinstance(model, BoostedModel):
        return [
            Part(f"voter {t}", float(vote), own)
            for t, (vote, own) in enumerate(
                zip(model.votes, model.models, strict=True), start=1
            )
        ]
    return []


def evidence_of(contributions: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Turn contributions (..., K) into evidence for each class against the others.

    .. math:: e_c = t_c - \frac{1}{K - 1} \sum_{k \ne c} t_k

    With two classes that is the log-odds, with its sign for each class.

    Examples
    --------
    >>> evidence_of(np.array([-1.0, -3.0]))
    array([ 2., -2.])
    """
    k = contributions.shape[-1]
    total = contributions.sum(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore"):
        return np.asarray((k * contributions - total) / (k - 1))
