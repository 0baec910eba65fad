"""The model that is explained: its kind, its parts, its classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast

from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from steelyard.exceptions import ParameterError
from steelyard.model.base import Model

__all__ = ["ExplainedPart", "ModelKind", "kind_of", "model_of", "position_of"]

ModelKind = Literal["sum", "mixture", "pairs", "vote", "neighbours"]


@dataclass(frozen=True)
class ExplainedPart:
    """One of the models that a model is made of, with its explanation."""

    name: str
    share: float
    explanation: Any

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        head = {"name": self.name, "share": self.share}
        return {**head, **self.explanation.to_dict()}


def model_of(clf: Any) -> Model:
    """Return the model of a fitted classifier; of a vote of one, the voter."""
    check_is_fitted(clf)
    if not isinstance(clf.model_, Model):
        raise ParameterError(
            f"A model of type {type(clf.model_).__name__} cannot be explained: it is "
            "neither a sum over attributes nor made of such sums. Use a classifier of "
            "this package, for example NaiveBayes or WeightedNB."
        )
    return clf.model_.simplified()


def kind_of(model: Model) -> ModelKind:
    """Say of which kind a model is; a reader need not know how rows are weighted."""
    words = {"votes": "vote", "matches": "neighbours"}
    return cast(ModelKind, words.get(model.kind, model.kind))


def position_of(label: Any, classes: NDArray[Any]) -> int:
    """Return the position of a class among those of a model."""
    known = classes.tolist()
    if label not in known:
        raise ParameterError(f"{label!r} is not among the classes {known}.")
    return int(known.index(label))
