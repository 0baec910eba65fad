"""What explanations share: plain data; the kind, the parts, the classes of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from steelyard._common.text import as_plain
from steelyard.exceptions import ParameterError
from steelyard.model.base import Model
from steelyard.model.posteriors import softmax

if TYPE_CHECKING:
    import pandas

ModelKind = Literal["sum", "mixture", "pairs", "vote", "neighbours", "average"]


class PlainData:
    """What can be written as JSON, field by field."""

    _not_data: ClassVar[tuple[str, ...]] = ()
    """Names of fields that are left out."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        fields = vars(self).items()
        return {name: _plain(v) for name, v in fields if name not in self._not_data}


class Tabular(PlainData):
    """What is a frame of pandas as well, and a table in a notebook."""

    def to_frame(self) -> pandas.DataFrame:
        """Return a frame of pandas: a line for each attribute, value or cell."""
        # Imported here: frames know the explanations, not the other way round.
        from steelyard.explain.frames import frame_of

        return frame_of(self)

    def _repr_html_(self) -> str:
        from steelyard.explain.frames import html_of

        return html_of(self)


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    return value.to_dict() if hasattr(value, "to_dict") else as_plain(value)


@dataclass(frozen=True)
class ExplainedPart(PlainData):
    """One of the models that a model is made of, with its explanation."""

    name: str
    share: float
    explanation: Any

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON: the explanation after name and share."""
        plain = super().to_dict()
        return plain | plain.pop("explanation")


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


def base_rates_of(clf: Any, model: Model) -> NDArray[np.float64] | None:
    """Return the shares of the classes, where these are what a model begins with.

    A learned intercept or a weight of the prior begins elsewhere.
    """
    plain = model.first_sum() if model.is_sum else None
    if plain is None or not hasattr(clf, "class_log_prior_"):
        return None
    rates = softmax(plain.log_prior[None, :] * model.link_scale)[0]
    known = np.exp(clf.class_log_prior_)
    same = rates.shape == known.shape and np.allclose(rates, known, rtol=1e-9)
    return rates if same else None


def percent(share: float) -> str:
    """Write a share with three digits.

    Examples
    --------
    >>> percent(0.34896), percent(0.5), percent(0.00123)
    ('34.9 %', '50 %', '0.123 %')
    """
    return f"{100.0 * share:.3g} %"


def kind_of(model: Model) -> ModelKind:
    """Say of which kind a model is; a reader need not know how rows are weighted."""
    words = {"votes": "vote", "matches": "neighbours", "one-dependence": "average"}
    return cast(ModelKind, words.get(model.kind, model.kind))


def position_of(label: Any, classes: NDArray[Any]) -> int:
    """Return the position of a class among those of a model."""
    known = classes.tolist()
    if label not in known:
        raise ParameterError(f"{label!r} is not among the classes {known}.")
    return int(known.index(label))
