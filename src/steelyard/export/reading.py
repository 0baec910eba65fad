"""From a fitted classifier to its plan; what has no plan is refused here."""

from __future__ import annotations

from itertools import groupby

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from steelyard.classifiers.base import BaseNB
from steelyard.exceptions import ParameterError
from steelyard.export.data import plan_data
from steelyard.export.plan import (
    Bins,
    Column,
    Density,
    Lookup,
    Mixture,
    Node,
    Pair,
    Pairs,
    Plan,
    Row,
    Side,
    Sum,
    Term,
    Vote,
)
from steelyard.export.scorer import Scorer
from steelyard.model.base import Model
from steelyard.model.combined import BoostedModel, MixtureModel, PairwiseModel
from steelyard.model.lazy import LazyModel
from steelyard.model.one_dependence import OneDependenceModel
from steelyard.model.table_model import NBModel
from steelyard.proba.estimation import GaussianTable
from steelyard.table.schema import FeatureSchema, TableSchema
from steelyard.table.schema import Side as SchemaSide

_INSTEAD = "Use `save`, or a method that is a sum, such as WANBIA-CLL."


def plan_of(clf: BaseNB) -> Plan:
    """Return a fitted classifier as a plan.

    Parameters
    ----------
    clf : BaseNB
        A classifier whose model is a sum, a mixture, one-vs-one or a vote of sums.

    Returns
    -------
    Plan
        Plain terms that add up to what ``predict_proba`` computes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from steelyard import NaiveBayes
    >>> clf = NaiveBayes().fit(*load_iris(return_X_y=True, as_frame=True))
    >>> plan = plan_of(clf)
    >>> plan.root.terms[2].edges
    (2.45, 4.75)
    """
    check_is_fitted(clf)
    if getattr(clf, "select_only", False):
        raise ParameterError(
            "With select_only=True there is no final model to export. Fit with "
            "select_only=False."
        )
    model = _exportable(clf)
    schema = model.schema
    labels = schema.labels()
    attributes = [labels[j] for j in np.flatnonzero(schema.is_first_view)]
    return Plan(
        type(clf).__name__,
        tuple(_columns(schema)),
        tuple(attributes),
        tuple(model.classes.tolist()),
        _node(model, tuple(range(model.n_classes))),
    )


def scorer_of(clf: BaseNB) -> Scorer:
    """Return a function of one row that computes what ``predict_proba`` does."""
    return Scorer(plan_data(plan_of(clf)))


def _exportable(clf: BaseNB) -> Model:
    """Return the model of a classifier, if there is a formula of it."""
    name, model = type(clf).__name__, clf.model_
    if isinstance(model, LazyModel):
        raise ParameterError(
            f"{name} keeps its {len(model.y)} training rows and fits a model to each "
            f"query: there is no formula to export. {_INSTEAD}"
        )
    if isinstance(model, OneDependenceModel):
        raise ParameterError(
            f"{name} averages joint probabilities of a model for each parent, which is "
            "not exported. Use `save`, or TreeAugmentedNB, in which each attribute has "
            "one parent: that is a sum."
        )
    if type(model) not in (NBModel, MixtureModel, PairwiseModel, BoostedModel):
        raise ParameterError(
            f"A model of type {type(model).__name__} cannot be exported: it is neither "
            f"a sum over attributes nor made of such sums. {_INSTEAD}"
        )
    return model.simplified()


def _columns(schema: TableSchema) -> list[Column]:
    features = [
        schema.features[j]
        for j in np.flatnonzero(schema.is_first_view & ~schema.is_pair)
    ]
    return [
        Column(
            f"x{position}" if feature.name is None else feature.name,
            "category" if feature.kind == "categorical" else "number",
            feature.cells,  # type: ignore[arg-type]
            feature.values,
        )
        for position, feature in enumerate(features)
    ]


# ------------------------------------------------------------------------------- models


def _node(model: Model, classes: tuple[int, ...]) -> Node:
    order = tuple(model.tie_order.tolist())
    if isinstance(model, MixtureModel):
        return _mixture(model, classes)
    if isinstance(model, PairwiseModel):
        parts = tuple(
            _pair_part(part, (classes[a], classes[b]))
            for (a, b), part in zip(model.pairs, model.models, strict=True)
        )
        return Pairs(classes, order, model.pairs, parts)
    if isinstance(model, BoostedModel):
        sums = tuple(_sum(part, classes) for part in model.models)
        votes = tuple(np.asarray(model.votes, dtype=float).tolist())
        return Vote(classes, order, sums, votes, model.form)  # type: ignore[arg-type]
    return _sum(model, classes)


def _mixture(model: MixtureModel, classes: tuple[int, ...]) -> Mixture:
    return Mixture(
        classes,
        tuple(model.tie_order.tolist()),
        (_sum(model.specific, classes), _sum(model.shared, classes)),
        (float(model.alpha), 1.0 - float(model.alpha)),
    )


def _pair_part(model: Model, classes: tuple[int, ...]) -> Sum | Mixture:
    if isinstance(model, MixtureModel):
        return _mixture(model, classes)
    return _sum(model, classes)


def _sum(model: Model, classes: tuple[int, ...]) -> Sum:
    if type(model) is not NBModel:
        raise ParameterError(
            f"A part of type {type(model).__name__} cannot be exported. {_INSTEAD}"
        )
    if not np.isfinite(model.table).all():
        raise ParameterError(
            "This model cannot be exported: its tables hold numbers that are not "
            "finite."
        )
    return Sum(
        classes,
        tuple(model.log_prior.tolist()),
        float(model.link_scale),
        tuple(model.tie_order.tolist()),
        tuple(_terms(model)),
    )


# -------------------------------------------------------------------------------- terms


def _terms(model: NBModel) -> list[Term]:
    """Return the terms of a sum that are not zero, by column, then the pairs."""
    schema = model.schema
    terms: list[Term] = []
    of = zip(schema.columns, range(len(schema)), strict=True)
    for column, views in groupby(sorted(of), key=lambda item: item[0]):
        positions = [j for _, j in views]
        kinds = [schema.features[j].kind for j in positions]
        if kinds[0] == "pair":
            terms.append(_pair(model, positions[0], column))
        elif kinds[0] == "categorical":
            terms.append(_lookup(model, positions[0], column))
        else:
            binned = [j for j, k in zip(positions, kinds, strict=True) if k == "binned"]
            if binned:
                terms.append(_bins(model, binned, column))
            terms += [_density(model, j, column) for j in positions if j not in binned]
    return [term for term in terms if not _is_zero(term)]


def _rows(model: NBModel, j: int) -> NDArray[np.float64]:
    """Table rows of an attribute by code."""
    offsets = model.schema.offsets
    return model.table[offsets[j] : offsets[j + 1]]


def _lookup(model: NBModel, j: int, column: int) -> Lookup:
    feature, table = model.schema.features[j], _rows(model, j)
    rows = _tuples(table[1 : len(feature.values) + 1])
    missing = tuple(table[feature.missing_code].tolist())
    return Lookup(column, feature.values, rows, missing)


def _bins(model: NBModel, views: list[int], column: int) -> Bins:
    """Join the binned views of a column: the union of their edges, rows added."""
    features = [model.schema.features[j] for j in views]
    edges = np.unique([edge for feature in features for edge in feature.edges])
    rows = np.zeros((len(edges) + 1, model.n_classes))
    missing = np.zeros(model.n_classes)
    for j, feature in zip(views, features, strict=True):
        table = _rows(model, j)
        # The last interval is above all edges; any other ends at one.
        below = np.append(np.searchsorted(feature.edges, edges), len(feature.edges))
        rows += table[below + 1]
        missing += table[feature.missing_code]
    kept = [k for k in range(len(edges)) if (rows[k] != rows[k + 1]).any()]
    return Bins(
        column,
        tuple(edges[kept].tolist()),
        _tuples(rows[[*kept, len(edges)]]),
        tuple(missing.tolist()),
    )


def _density(model: NBModel, j: int, column: int) -> Density:
    feature, table = model.schema.features[j], model.density(j)
    depth = 0.0 if table.depth is None else float(table.depth[0])
    limit = 0.0 if table.limit is None else float(table.limit[0])
    step = float(table.step[0])
    form = "relative" if depth else "linear" if limit else "plain"
    deviation = table.deviation[0]
    weight = np.ones_like(deviation) if table.weight is None else table.weight[0]
    return Density(
        column,
        "interval" if step else form,  # type: ignore[arg-type]
        tuple(table.mean[0].tolist()),
        tuple((1.0 / deviation).tolist()),
        _constant(table),
        tuple(weight.tolist()),
        None if feature.fill is None else float(feature.fill),
        depth,
        limit,
        step,
    )


def _constant(table: GaussianTable) -> Row:
    """Log-density at the mean, as the engine computes it."""
    constant = -0.5 * np.log(2.0 * np.pi) - np.log(table.deviation[0])
    return tuple(constant.tolist())


def _pair(model: NBModel, j: int, attribute: int) -> Pair:
    schema = model.schema
    first, second = (side_of(schema, side) for side in schema.features[j].sides)
    grid = _rows(model, j).reshape(first.n_groups, second.n_groups, -1)
    return Pair(attribute, (first, second), tuple(map(_tuples, grid)))


def side_of(schema: TableSchema, side: SchemaSide) -> Side:
    """Return how cells of a side of a pair become groups; equal bins are joined."""
    feature = schema.features[side.feature]
    column = schema.columns[side.feature]
    missing = side.groups[feature.missing_code]
    n_values = len(_values(feature))
    groups = side.groups[1 : n_values + 1]
    if feature.kind == "categorical":
        return Side(column, feature.values, (), groups, missing, side.n_groups)
    kept = [k for k in range(len(feature.edges)) if groups[k] != groups[k + 1]]
    edges = tuple(feature.edges[k] for k in kept)
    merged = tuple(groups[k] for k in [*kept, len(feature.edges)])
    return Side(column, (), edges, merged, missing, side.n_groups)


def _values(feature: FeatureSchema) -> range:
    """Codes of values or bins: neither missing cells nor values never seen."""
    return range(feature.n_values - feature.missing_is_value)


def _tuples(rows: NDArray[np.float64]) -> tuple[Row, ...]:
    return tuple(map(tuple, rows.tolist()))


def _is_zero(term: Term) -> bool:
    if isinstance(term, Density):
        return not any(term.weight)
    if isinstance(term, Pair):
        return not any(any(row) for rows in term.rows for row in rows)
    return not any(term.missing) and not any(map(any, term.rows))
