"""What explanations share: plain data and frames, models and classes, evidence.

Evidence is what supports one class against another, or against all others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats
from steelyard._common.html import element, escape
from steelyard._common.loading import import_optional
from steelyard._common.text import as_plain, did_you_mean
from steelyard.classifiers.fitted import answering_model
from steelyard.exceptions import ParameterError, check_fitted
from steelyard.model.base import Model, softmax
from steelyard.model.table_model import NBModel
from steelyard.table.schema import Side, TableSchema

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
        return cast(dict[str, Any], as_plain(self))

    def _asdict(self) -> dict[str, Any]:
        """Return what is plain data once entries are: see ``as_plain``."""
        fields = vars(self).items()
        return {name: value for name, value in fields if name not in self._not_data}


class Tabular(PlainData):
    """What is a frame of pandas as well, and shown in a notebook."""

    def to_frame(self) -> pandas.DataFrame:
        """Return a frame of pandas: a line for each attribute, value or cell."""
        pd = import_optional("pandas", "Frames need", "pandas")
        return cast("pandas.DataFrame", pd.DataFrame(self._frame_columns()))

    def _frame_columns(self) -> dict[str, Any]:
        """Return the columns of the frame by name."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return element("pre", escape(repr(self)))


@dataclass(frozen=True)
class ExplainedPart(PlainData):
    """One of the submodels of a model, with its explanation."""

    name: str
    share: float
    explanation: Any

    def _asdict(self) -> dict[str, Any]:
        return {"name": self.name, "share": self.share, **self.explanation._asdict()}


def model_of(clf: Any) -> Model:
    """Return the model of a fitted classifier; of a vote of one, the voter."""
    check_fitted(clf)
    if not isinstance(clf.model_, Model):
        raise ParameterError(
            f"A model of type {type(clf.model_).__name__} cannot be explained: it is "
            "neither a sum over columns nor made of such sums. Use a classifier of "
            "this package, for example NaiveBayes or WeightedNB."
        )
    return answering_model(clf).simplified()


def base_rates_of(clf: Any, model: Model) -> Floats | None:
    """Return the shares of the classes, if a model begins with them.

    A learned intercept or a weight of the prior begins elsewhere.
    """
    plain = model.first_sum() if model.is_sum else None
    if plain is None or not hasattr(clf, "class_log_prior_"):
        return None
    rates = softmax(plain.log_prior[None, :] * model.link_scale)[0]
    prior = np.exp(clf.class_log_prior_)
    same = rates.shape == prior.shape and np.allclose(rates, prior, rtol=1e-9)
    return rates if same else None


def percent(share: float) -> str:
    """Write a share with three digits.

    >>> percent(0.34896), percent(0.5), percent(0.00123)
    ('34.9 %', '50 %', '0.123 %')
    """
    return f"{100.0 * share:.3g} %"


def kind_of(model: Model) -> ModelKind:
    """Return the kind of a model; a reader need not know how rows are weighted."""
    words = {"votes": "vote", "matches": "neighbours", "one-dependence": "average"}
    return cast(ModelKind, words.get(model.kind, model.kind))


def position_of(label: Any, classes: NDArray[Any]) -> int:
    """Return the position of a class among those of a model."""
    labels = classes.tolist()
    if label not in labels:
        hint = did_you_mean(str(label), map(str, labels))
        raise ParameterError(f"{label!r} is not among the classes {labels}.{hint}")
    return int(labels.index(label))


def two_classes(
    probabilities: Floats, classes: NDArray[Any], target: Any, against: Any
) -> tuple[int, int]:
    """Return the positions of two classes; the most probable one by default."""
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
    """Return the titles of columns and interactions, or their names.

    >>> in_words(["mass", "mass × sex", "age"], {"mass": "Body mass in g"})
    ['Body mass in g', 'Body mass in g × sex', 'age']
    """
    return [
        _INTERACTION.join(titles.get(n, n) for n in name.split(_INTERACTION))
        for name in names
    ]


def halve_interactions(values: Floats, schema: TableSchema) -> Floats:
    """Give half of each interaction to either of its columns.

    Values (n, d, K) of columns and interactions become those of columns alone.
    """
    halved = values[:, : schema.n_columns].copy()
    for j in np.flatnonzero(schema.is_interaction):
        for side in schema.features[j].sides:
            halved[:, side.feature] += values[:, j] / 2.0
    return halved


def column_mean(model: NBModel, j: int) -> Floats:
    """Return the mean contribution of an attribute over the training rows, shape (K,).

    It is 0 if that is not known.
    """
    return np.zeros(model.n_classes) if model.centre is None else model.centre[j]


def typical_numbers(edges: Floats) -> Floats:
    """Return a number within each interval between edges, the outer ones included.

    >>> typical_numbers(np.array([1.0, 3.0]))
    array([0., 2., 4.])
    """
    if not len(edges):
        return np.zeros(1)
    gap = float(np.diff(edges).mean()) if len(edges) > 1 else 0.0
    gap = gap or max(abs(float(edges[0])), 1.0)
    bounds = np.concatenate([[edges[0] - gap], edges, [edges[-1] + gap]])
    middle = bounds[:-1] + np.diff(bounds) / 2.0
    # A number that is short to write, if it is in the same interval.
    short = np.array([float(f"{x:.6g}") for x in middle])
    same = np.searchsorted(edges, short) == np.arange(len(short))
    return np.where(same & np.isfinite(short), short, middle)


def number_text(number: float) -> str:
    """Write a number so that it reads back as itself, short if that is possible."""
    short = f"{number:.6g}"
    is_same = float(short) == number or not math.isfinite(number)
    return short if is_same else f"{number!r}"


@dataclass(frozen=True)
class InteractionSide(PlainData):
    """One side of an interaction: a column, and the groups of its values."""

    name: str
    labels: list[str]
    """Names of the groups; that of missing cells is left out."""

    edges: tuple[float, ...]
    """Cut points between the first groups, which are intervals; empty for categories.
    A group after the last interval is that of missing cells."""

    @property
    def n_intervals(self) -> int:
        """How many of the groups are intervals."""
        return len(self.edges) + 1 if self.edges else 0


def interaction_sides(schema: TableSchema, j: int) -> tuple[InteractionSide, ...]:
    """Describe both sides of an interaction; nothing of a column."""
    names = schema.labels()
    return tuple(
        _side(schema, side, names[side.feature]) for side in schema.features[j].sides
    )


def _side(schema: TableSchema, side: Side, name: str) -> InteractionSide:
    feature, write = schema.features[side.feature], schema.writer(side.feature)
    groups = np.asarray(side.groups)
    members = [np.flatnonzero(groups == g) for g in range(1, side.n_groups)]
    labels = [feature.describe_merged(codes.tolist(), write) for codes in members]
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

    >>> evidence_of(np.array([-1.0, -3.0]))
    array([ 2., -2.])
    """
    k = contributions.shape[-1]
    total = contributions.sum(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore"):
        return np.asarray((k * contributions - total) / (k - 1))


def evidence_columns(classes: NDArray[Any], evidence: Floats) -> dict[str, Floats]:
    """Return evidence (n, K) by class, as columns of a frame; of two, the second."""
    chosen = [1] if len(classes) == 2 else range(len(classes))
    return {f"evidence for {classes[c]}": evidence[:, c] for c in chosen}
