"""From a fitted classifier to its plan; what has no plan is refused here.

Models are read as plain data: of a classifier, or of a file that was checked, for which
no class is loaded.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import isclose
from operator import add
from typing import TYPE_CHECKING, Any

from steelyard._common.allowed import DENSITY_DEPTH, SLOPE_LIMIT
from steelyard.exceptions import ParameterError
from steelyard.export.plan import (
    Bins,
    Column,
    Density,
    Grouping,
    Interaction,
    Lookup,
    Mixture,
    Node,
    Pairs,
    Plan,
    Row,
    Sum,
    Term,
    Vote,
    plan_data,
)
from steelyard.export.scorer import Scorer
from steelyard.table.dates import dates_in
from steelyard.table.schema import FeatureSchema, Side, TableSchema

if TYPE_CHECKING:
    from steelyard.classifiers.base.estimator import BaseNB

# Sums of two or three numbers, in units of their last digits and below one.
_ROUNDING = 1e-15

_INSTEAD = "Use `save`, or a method that is a sum, such as WANBIA-CLL."


def plan_of(clf: BaseNB, *, joined: bool = True) -> Plan:
    """Return a fitted classifier as a plan.

    Parameters
    ----------
    clf : BaseNB
        A classifier whose model is a sum, a mixture, one-vs-one or a vote of sums.
    joined : bool, default=True
        Whether the binned views of a column are one term, and terms that add nothing
        are left out. Otherwise there is a term for each view, as ``predict_proba`` adds
        them up.

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
    from steelyard.exceptions import check_fitted

    check_fitted(clf)
    if getattr(clf, "select_only", False):
        raise ParameterError(
            "With select_only=True there is no final model to export. Fit with "
            "select_only=False."
        )
    plan = plan_of_model(type(clf).__name__, _exportable(clf), joined)
    n_edits = len(getattr(clf, "edits_", ()))
    return replace(plan, unit=getattr(clf, "_unit", ""), n_edits=n_edits)


def scorer_of(clf: BaseNB) -> Scorer:
    """Return a function of one row that computes what ``predict_proba`` does."""
    return Scorer(plan_data(plan_of(clf, joined=False)))


def scorer_of_model(name: str, model: Any) -> Scorer:
    """Return the scorer of a model of a checked file, for which no class is loaded."""
    return Scorer(plan_data(plan_of_model(name, model, joined=False)))


def plan_of_model(name: str, model: Any, joined: bool) -> Plan:
    """Return the plan of a model: one of a classifier of some name, or of a file."""
    schema = model.schema
    labels = zip(schema.labels(), schema.is_first_view, strict=True)
    classes = _listed(model.classes)
    return Plan(
        name,
        tuple(_columns(schema)),
        tuple(label for label, is_first in labels if is_first),
        tuple(classes),
        _node(model, tuple(range(len(classes))), joined),
    )


def _exportable(clf: BaseNB) -> Any:
    """Return the model of a classifier, if there is a formula of it."""
    name, model = type(clf).__name__, clf.model_
    if getattr(model, "is_lazy", False):
        raise ParameterError(
            f"{name} keeps its {len(model.y)} training rows and fits a model to each "
            f"query: there is no formula to export. {_INSTEAD}"
        )
    if getattr(model, "kind", "") == "one-dependence":
        raise ParameterError(
            f"{name} averages joint probabilities of a model for each parent, which is "
            "not exported. Use `save`, or TreeAugmentedNB, in which each attribute has "
            "one parent: that is a sum."
        )
    if not _is_own(model, *_NODES):
        raise ParameterError(
            f"A model of type {type(model).__name__} cannot be exported: it is neither "
            f"a sum over attributes nor made of such sums. {_INSTEAD}"
        )
    return model


def _is_own(model: Any, *kinds: str) -> bool:
    """Whether a model is of the package, and of some kind; classes need no loading."""
    is_of_package = type(model).__module__.partition(".")[0] == "steelyard"
    return is_of_package and model.kind in kinds


def _columns(schema: TableSchema) -> Iterator[Column]:
    views = zip(schema.features, schema.columns, schema.is_first_view, strict=True)
    dates = dates_in(schema.features)
    for feature, position, is_first in views:
        if is_first and not feature.sides:
            yield Column(
                f"x{position}" if feature.name is None else feature.name,
                "category" if feature.kind == "categorical" else "number",
                feature.cells,  # type: ignore[arg-type]
                feature.values,
                dates.get(str(feature.name), ""),
            )


# ------------------------------------------------------------------------------- models


def _node(model: Any, classes: tuple[int, ...], joined: bool) -> Node:
    return _NODES[model.kind](model, classes, joined)


def _mixture(model: Any, classes: tuple[int, ...], joined: bool) -> Mixture:
    parts = tuple(_sum(m, classes, joined) for m in (model.specific, model.shared))
    shares = (float(model.alpha), 1.0 - float(model.alpha))
    return Mixture(classes, _tie_order(model.shared), parts, shares)


def _pairs(model: Any, classes: tuple[int, ...], joined: bool) -> Pairs:
    parts = []
    for (a, b), part in zip(model.pairs, model.models, strict=True):
        make = _mixture if _is_own(part, "mixture") else _sum
        parts.append(make(part, (classes[a], classes[b]), joined))
    return Pairs(classes, _tie_order(model), model.pairs, tuple(parts))


def _vote(model: Any, classes: tuple[int, ...], joined: bool) -> Sum | Vote:
    sums = tuple(_sum(part, classes, joined) for part in model.models)
    votes = tuple(map(float, _listed(model.votes)))
    # A vote of one is that one.
    return (
        sums[0]
        if len(sums) == 1
        else Vote(classes, sums[0].tie_order, sums, model.form, votes)
    )


def _sum(model: Any, classes: tuple[int, ...], joined: bool) -> Sum:
    if not _is_own(model, "sum"):
        raise ParameterError(
            f"A part of type {type(model).__name__} cannot be exported. {_INSTEAD}"
        )
    views = _views(model)
    return Sum(
        classes,
        tuple(_listed(model.log_prior)),
        float(model.link_scale),
        _tie_order(model),
        tuple(_joined(views) if joined else views),
        () if joined else _blocks(model.schema),
        _centre(model),
    )


def _centre(model: Any) -> tuple[Row, ...]:
    """Return what each attribute adds on average, its views together."""
    if model.centre is None:
        return ()
    columns: dict[int, list[Row]] = {}
    for own, row in zip(model.schema.columns, _listed(model.centre), strict=True):
        columns.setdefault(own, []).append(row)
    return tuple(_added(rows) for _, rows in sorted(columns.items()))


_NODES: dict[str, Any] = {
    "sum": _sum,
    "mixture": _mixture,
    "pairs": _pairs,
    "votes": _vote,
}


def _tie_order(model: Any) -> tuple[int, ...]:
    """Return classes by falling prior: the first of the best wins a tie."""
    prior = _listed(model.log_prior)
    return tuple(sorted(range(len(prior)), key=lambda c: -prior[c]))


def _blocks(schema: TableSchema) -> tuple[tuple[int, ...], ...]:
    """Return attributes in the order of the kernels: one byte, wider, interactions."""
    blocks: dict[tuple[int, int], list[int]] = {}
    for j, feature in enumerate(schema.features):
        width = sum(feature.n_codes > most for most in (256, 65536))
        if feature.is_coded:
            place = (2, width) if feature.sides else (1, j) if width else (0, 0)
            blocks.setdefault(place, []).append(j)
    return tuple(tuple(of) for _, of in sorted(blocks.items()))


# -------------------------------------------------------------------------------- terms


def _views(model: Any) -> list[Term]:
    """Return a term for each attribute of a sum."""
    schema, table = model.schema, _listed(model.table)
    if not all(math.isfinite(x) for row in table for x in row):
        raise ParameterError(
            "This model cannot be exported: its tables hold numbers that are not "
            "finite."
        )
    terms: list[Term] = []
    start = g = 0
    for feature, column in zip(schema.features, schema.columns, strict=True):
        rows = list(map(tuple, table[start : start + feature.n_codes]))
        start += feature.n_codes
        if not feature.is_coded:
            terms.append(_density(model.gaussian, g, feature, column))
            g += 1
        elif feature.sides:
            terms.append(_interaction(schema, feature, column, rows))
        else:
            terms.append(_by_code(feature, column, rows))
    return terms


def _by_code(feature: FeatureSchema, column: int, rows: list[Row]) -> Lookup | Bins:
    n_plain = feature.n_values - feature.missing_is_value
    known, missing = tuple(rows[1 : n_plain + 1]), rows[feature.missing_code]
    if any(rows[0]):
        raise ParameterError(
            "This model cannot be exported: values that it does not know add to its "
            "scores, which no fit gives."
        )
    if feature.kind == "categorical":
        return Lookup(column, feature.values, known, missing)
    return _union([Bins(column, feature.edges, known, missing)])


def _joined(views: list[Term]) -> list[Term]:
    """Return the terms that are not zero, by column, its binned views as one."""
    columns: dict[int, list[Term]] = {}
    for term in views:
        place = term.attribute if isinstance(term, Interaction) else term.column
        columns.setdefault(place, []).append(term)
    terms: list[Term] = []
    for _, own in sorted(columns.items()):
        bins = [term for term in own if isinstance(term, Bins)]
        terms += [_union(bins)] if bins else []
        terms += [term for term in own if not isinstance(term, Bins)]
    return [term for term in terms if not _is_zero(term)]


def _union(views: list[Bins]) -> Bins:
    """Join binned views of a column: edges at which the sum of their rows changes."""
    edges = sorted({edge for view in views for edge in view.edges})
    # The last interval is above all edges; any other ends at one.
    rows = [
        _added([view.rows[bisect_left(view.edges, x)] for view in views])
        for x in [*edges, math.inf]
    ]
    # Sums of views that differ by their rounding alone are one; a single view is exact.
    near = _ROUNDING if len(views) > 1 else 0.0
    kept: list[int] = []
    firsts = [rows[0]]
    for k, row in enumerate(rows[1:]):
        if not all(map(partial(isclose, rel_tol=near, abs_tol=near), row, firsts[-1])):
            kept.append(k)
            firsts.append(row)
    return Bins(
        views[0].column,
        tuple(edges[k] for k in kept),
        tuple(firsts),
        _added([view.missing for view in views]),
    )


def _added(rows: Sequence[Row]) -> Row:
    total: Sequence[float] = [0.0] * len(rows[0])
    for row in rows:
        total = list(map(add, total, row))
    return tuple(total)


def _density(gaussian: Any, g: int, feature: FeatureSchema, column: int) -> Density:
    mean, deviation = _listed(gaussian.mean)[g], _listed(gaussian.deviation)[g]
    form = {"gaussian-relative": "relative", "linear": "linear"}.get(feature.kind)
    if form is None:
        form = "interval" if feature.step else "plain"
    weight = gaussian.weight
    return Density(
        column,
        form,  # type: ignore[arg-type]
        tuple(mean),
        tuple(1.0 / d for d in deviation),
        _constant(deviation, form),
        (1.0,) * len(mean) if weight is None else tuple(_listed(weight)[g]),
        None if feature.fill is None else float(feature.fill),
        DENSITY_DEPTH if form == "relative" else 0.0,
        SLOPE_LIMIT if form == "linear" else 0.0,
        float(feature.step),
    )


def _constant(deviation: Sequence[float], form: str) -> Row:
    """Log-density at the mean, as the engine computes it where it is needed."""
    if form in ("linear", "interval"):
        return tuple(-0.5 * math.log(2.0 * math.pi) - math.log(d) for d in deviation)
    import numpy as np

    return tuple((-0.5 * np.log(2.0 * np.pi) - np.log(deviation)).tolist())


def _interaction(
    schema: TableSchema, feature: FeatureSchema, attribute: int, rows: list[Row]
) -> Interaction:
    first, second = (side_of(schema, side) for side in feature.sides)
    n = second.n_groups
    grid = (tuple(rows[n * k : n * (k + 1)]) for k in range(first.n_groups))
    return Interaction(attribute, (first, second), tuple(grid))


def side_of(schema: TableSchema, side: Side) -> Grouping:
    """Return the grouping of one side of an interaction; equal bins are joined."""
    feature = schema.features[side.feature]
    column = schema.columns[side.feature]
    missing = side.groups[feature.missing_code]
    groups = side.groups[1 : feature.n_values - feature.missing_is_value + 1]
    if feature.kind == "categorical":
        return Grouping(column, feature.values, (), groups, missing, side.n_groups)
    kept = [k for k in range(len(feature.edges)) if groups[k] != groups[k + 1]]
    edges = tuple(feature.edges[k] for k in kept)
    merged = tuple(groups[k] for k in [*kept, len(feature.edges)])
    return Grouping(column, (), edges, merged, missing, side.n_groups)


def _listed(values: Any) -> list[Any]:
    """Return an array, or numbers of a file, as nested lists; a list as it is."""
    return values if isinstance(values, list) else values.tolist()


def _is_zero(term: Term) -> bool:
    if isinstance(term, Density):
        return not any(term.weight)
    if isinstance(term, Interaction):
        return not any(any(row) for rows in term.rows for row in rows)
    return not any(term.missing) and not any(map(any, term.rows))
