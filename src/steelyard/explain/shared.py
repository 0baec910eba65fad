"""What explanations share: plain data, parts of a model, sides of interactions.

Evidence is what speaks for one class against another, or against all others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats
from steelyard._common.text import as_plain, did_you_mean
from steelyard.exceptions import ParameterError, check_fitted
from steelyard.model.base import Model, softmax
from steelyard.model.table_model import NBModel
from steelyard.table.schema import FeatureSchema, Side, TableSchema

if TYPE_CHECKING:
    import pandas

# Between the names of two columns, as schemas have it.
_INTERACTION = " × "

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
        from steelyard.explain.reasons import frame_of

        return frame_of(self)

    def _repr_html_(self) -> str:
        from steelyard.explain.reasons import html_of

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
    check_fitted(clf)
    if not isinstance(clf.model_, Model):
        raise ParameterError(
            f"A model of type {type(clf.model_).__name__} cannot be explained: it is "
            "neither a sum over attributes nor made of such sums. Use a classifier of "
            "this package, for example NaiveBayes or WeightedNB."
        )
    return clf.model_.simplified()


def base_rates_of(clf: Any, model: Model) -> Floats | None:
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
        hint = did_you_mean(str(label), map(str, known))
        raise ParameterError(f"{label!r} is not among the classes {known}.{hint}")
    return int(known.index(label))


def two_classes(
    probabilities: Floats, classes: NDArray[Any], target: Any, against: Any
) -> tuple[int, int]:
    """Return the positions of two classes; the likeliest where one is not said."""
    order = np.argsort(-probabilities, kind="stable").tolist()
    second = None if against is None else position_of(against, classes)
    if target is not None:
        first = position_of(target, classes)
    else:
        first = next(c for c in order if c != second)
    if second is None:
        second = next(c for c in order if c != first)
    if first == second:
        raise ParameterError("`target` and `against` must be two different classes.")
    return first, second


def in_words(names: Iterable[str], titles: Mapping[str, str]) -> list[str]:
    """Return columns, and interactions, as they are called in words.

    Examples
    --------
    >>> in_words(["mass", "mass × sex", "age"], {"mass": "Body mass in g"})
    ['Body mass in g', 'Body mass in g × sex', 'age']
    """
    return [
        _INTERACTION.join(titles.get(n, n) for n in name.split(_INTERACTION))
        for name in names
    ]


def halve_interactions(values: Floats, schema: TableSchema) -> Floats:
    """Give half of each interaction to the column of either side, and drop them.

    Shapes are (n, d, K), with and without the interactions, which come last.
    """
    own = values[:, : schema.n_columns].copy()
    for j in np.flatnonzero(schema.is_interaction):
        for side in schema.features[j].sides:
            own[:, side.feature] += values[:, j] / 2.0
    return own


def column_mean(model: NBModel, j: int) -> Floats:
    """Return what an attribute adds on average over the training rows, shape (K,).

    It is 0 if that is not known.
    """
    return np.zeros(model.n_classes) if model.centre is None else model.centre[j]


def typical_numbers(edges: Floats) -> Floats:
    """Return a number within each interval between edges, the outer ones included.

    Examples
    --------
    >>> typical_numbers(np.array([1.0, 3.0]))
    array([0., 2., 4.])
    """
    if not len(edges):
        return np.zeros(1)
    gap = float(np.diff(edges).mean()) if len(edges) > 1 else 0.0
    gap = gap or max(abs(float(edges[0])), 1.0)
    bounds = np.concatenate([[edges[0] - gap], edges, [edges[-1] + gap]])
    middle = bounds[:-1] + np.diff(bounds) / 2.0
    # A number that is short to write, where that leaves it in its interval.
    short = np.array([float(f"{x:.6g}") for x in middle])
    same = np.searchsorted(edges, short) == np.arange(len(short))
    return np.where(same & np.isfinite(short), short, middle)


def number_text(number: float) -> str:
    """Write a number so that it reads back as itself, short where that is possible."""
    short = f"{number:.6g}"
    is_same = float(short) == number or not math.isfinite(number)
    return short if is_same else f"{number!r}"


@dataclass(frozen=True)
class InteractionSide(PlainData):
    """One side of an interaction: a column, and the groups of its values."""

    name: str
    labels: list[str]
    """Names of the groups; that of unknown cells is left out."""

    edges: tuple[float, ...]
    """Numbers between the first groups, which are intervals in order; none for
    categories. A group after the last interval is that of missing cells."""

    @property
    def n_intervals(self) -> int:
        """How many of the groups are intervals."""
        return len(self.edges) + 1 if self.edges else 0


def interaction_sides(schema: TableSchema, j: int) -> tuple[InteractionSide, ...]:
    """Describe both sides of an interaction."""
    names = schema.labels()
    return tuple(
        _side(schema.features[side.feature], side, names[side.feature])
        for side in schema.features[j].sides
    )


def _side(feature: FeatureSchema, side: Side, name: str) -> InteractionSide:
    groups = np.asarray(side.groups)
    members = [np.flatnonzero(groups == g) for g in range(1, side.n_groups)]
    labels = [feature.describe_merged(codes.tolist()) for codes in members]
    edges: list[float] = []
    bins = groups[1 : len(feature.edges) + 2]
    if feature.kind == "binned" and (np.diff(bins) >= 0).all():
        ends = np.flatnonzero(np.diff(bins))
        edges = [feature.edges[k] for k in ends]
    return InteractionSide(name, labels, tuple(edges))


def evidence_of(contributions: Floats) -> Floats:
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
