"""From a fitted classifier to its plan, or an error if it has none."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard._common.allowed import DENSITY_DEPTH, SLOPE_LIMIT
from steelyard._common.quadrature import HERMITE, radii
from steelyard.exceptions import ParameterError
from steelyard.export.plan import (
    Bins,
    Column,
    Density,
    Grouping,
    Interaction,
    Lookup,
    Marginal,
    Mixture,
    Pairs,
    Plan,
    Row,
    Sum,
    Term,
    Vote,
    merged_bins,
    plan_data,
)
from steelyard.export.scorer import Scorer
from steelyard.table.dates import dates_in
from steelyard.table.schema import FeatureSchema, Side, TableSchema

if TYPE_CHECKING:
    from steelyard.classifiers.base.estimator import BaseNB

_INSTEAD = "Use `save`, or a method that is a sum, such as WANBIA-CLL."


def plan_of(clf: BaseNB, *, is_exact: bool = False) -> Plan:
    """Return a fitted sum, mixture, one-vs-one or vote of sums as a plan.

    With ``is_exact`` there is a term for each attribute, in the order in which
    ``predict_proba`` adds them up; otherwise terms that add nothing are left out.

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
    name, model = type(clf).__name__, _exportable(clf)
    schema, classes = model.schema, model.classes.tolist()
    return Plan(
        name,
        tuple(columns_of(schema)),
        tuple(schema.labels()),
        tuple(classes),
        _NODES[model.kind](model, tuple(range(len(classes))), is_exact),
        unit=getattr(clf, "_unit", ""),
        n_edits=len(getattr(clf, "edits_", ())),
    )


def scorer_of(clf: BaseNB) -> Scorer:
    """Return a function of one row, for services: no frames, no arrays.

    Returns
    -------
    Scorer
        ``score(row)`` gives the probabilities of the classes, for a mapping from
        column names to cells; ``score.predict(row)`` and ``score.reasons(row)`` go
        with it. It can be pickled and shared by threads.
    """
    return Scorer(plan_data(plan_of(clf, is_exact=True)))


def _exportable(clf: BaseNB) -> Any:
    """Return the model of a classifier, if there is a formula of it."""
    from steelyard.classifiers.fitted import answering_model

    name, model = type(clf).__name__, answering_model(clf)
    if getattr(model, "is_lazy", False):
        raise ParameterError(
            f"{name} keeps its {len(model.y)} training rows and fits a model to each "
            f"query: there is no formula to export. {_INSTEAD}"
        )
    if getattr(model, "kind", "") == "one-dependence":
        raise ParameterError(
            f"{name} averages joint probabilities of a model for each parent, which is "
            "not exported. Use `save`, or TreeAugmentedNB, in which each column has "
            "one parent: that is a sum."
        )
    if not _is_of_package(model, *_NODES):
        raise ParameterError(
            f"A model of type {type(model).__name__} cannot be exported: it is neither "
            f"a sum over columns nor made of such sums. {_INSTEAD}"
        )
    return model


def _is_of_package(model: Any, *kinds: str) -> bool:
    """Whether a model is of the package, and of some kind; classes need no loading."""
    is_of_package = type(model).__module__.partition(".")[0] == "steelyard"
    return is_of_package and model.kind in kinds


def columns_of(schema: TableSchema) -> Iterator[Column]:
    """Yield the columns of a table, without interactions."""
    dates = dates_in(schema.features)
    for j, feature in enumerate(schema.features):
        if not feature.sides:
            yield Column(
                f"x{j}" if feature.name is None else feature.name,
                "category" if feature.kind == "categorical" else "number",
                feature.cells,  # type: ignore[arg-type]
                feature.values,
                dates.get(str(feature.name), ""),
                tuple(feature.text_of.items()),
            )


# ------------------------------------------------------------------------------- models


def _mixture(model: Any, classes: tuple[int, ...], is_exact: bool) -> Mixture:
    parts = tuple(_sum(m, classes, is_exact) for m in (model.specific, model.shared))
    shares = (float(model.alpha), 1.0 - float(model.alpha))
    return Mixture(classes, _tie_order(model.shared), parts, shares)


def _pairs(model: Any, classes: tuple[int, ...], is_exact: bool) -> Pairs:
    parts = []
    for (a, b), part in zip(model.pairs, model.models, strict=True):
        make = _mixture if _is_of_package(part, "mixture") else _sum
        parts.append(make(part, (classes[a], classes[b]), is_exact))
    return Pairs(classes, _tie_order(model), model.pairs, tuple(parts))


def _vote(model: Any, classes: tuple[int, ...], is_exact: bool) -> Sum | Vote:
    sums = tuple(_sum(part, classes, is_exact) for part in model.models)
    if len(sums) == 1:
        return sums[0]
    votes = tuple(map(float, model.votes.tolist()))
    return Vote(classes, sums[0].tie_order, sums, model.form, votes)


def _sum(model: Any, classes: tuple[int, ...], is_exact: bool) -> Sum:
    if not _is_of_package(model, "sum"):
        raise ParameterError(
            f"A part of type {type(model).__name__} cannot be exported. {_INSTEAD}"
        )
    terms = _terms(model)
    if not is_exact:
        terms = [term for term in terms if not _is_zero(term)]
    return Sum(
        classes,
        tuple(model.log_prior.tolist()),
        float(model.link_scale),
        _tie_order(model),
        tuple(terms),
        _blocks(model.schema) if is_exact else (),
        () if model.centre is None else tuple(map(tuple, model.centre.tolist())),
        _marginal(model, classes),
    )


def _marginal(model: Any, classes: tuple[int, ...]) -> Marginal | None:
    """Return how rows with missing cells are answered, None if by what they add."""
    moments = model.marginal
    if moments is None:
        return None
    features, n_columns = model.schema.features, model.schema.n_columns
    means, noise = _nested(moments.means.tolist()), _nested(moments.noise.tolist())
    loadings = _nested(moments.loadings.tolist())
    plain_loadings = _nested(moments.plain_loadings.tolist())
    odds = [x if math.isfinite(x) else None for x in moments.value_odds.tolist()]
    log_ratio = tuple(moments.log_ratio.tolist())
    scale = float(model.link_scale)
    priors = zip(model.log_prior.tolist(), log_ratio, strict=True)
    start = _channels([prior - ratio / scale for prior, ratio in priors])
    sides = [tuple(side.feature for side in f.sides) for f in features[n_columns:]]
    # A column that is left out is in no interaction.
    left_out = {j for j, x in enumerate(odds) if x is None}
    rest = [j for j in range(len(means)) if j not in left_out]
    variance = 0.0
    for c in range(len(start)):
        start[c] += math.fsum(mean[c] for mean in means)
        factors = zip(*(loadings[j][c] for j in rest), strict=True)
        variance += math.fsum(math.fsum(factor) ** 2 for factor in factors)
        variance += math.fsum(noise[j][c] for j in rest)
    base = tuple(map(math.log, moments.base_rates.tolist()))
    plain: list[Term] = []
    in_plain = []
    rows, offset = list(map(tuple, moments.plain.tolist())), 0
    for j, feature in enumerate(features[:n_columns]):
        of_column = rows[offset : offset + feature.n_codes]
        in_plain.append(any(map(any, of_column)))
        if feature.is_coded:
            plain.append(_by_code(feature, j, of_column))
        offset += feature.n_codes
    two = len(classes) == 2
    return Marginal(
        tuple(odds),
        tuple(
            feature.missing_code == 0 if feature.is_coded else feature.fill is None
            for feature in features[:n_columns]
        ),
        tuple(in_plain),
        tuple(sides),
        *(means, loadings, noise, tuple(start), tuple(moments.shift.tolist())),
        *(variance, HERMITE if two else radii(len(classes))),
        Sum(classes, base, 1.0, _tie_order(model), tuple(plain)),
        *(plain_loadings, tuple(moments.plain_noise.tolist()), log_ratio),
    )


def _channels(values: list[float]) -> list[float]:
    """Return numbers by class as by channel: see ``steelyard.model.marginal``."""
    if len(values) == 2:
        return [values[1] - values[0]]
    mean = math.fsum(values) / len(values)
    return [value - mean for value in values]


def _nested(values: Any) -> Any:
    """Return nested lists as nested tuples."""
    return tuple(map(_nested, values)) if isinstance(values, list) else values


_NODES: dict[str, Any] = {
    "sum": _sum,
    "mixture": _mixture,
    "pairs": _pairs,
    "votes": _vote,
}


def _tie_order(model: Any) -> tuple[int, ...]:
    """Return classes by falling prior: the first of the best wins a tie."""
    prior = model.log_prior.tolist()
    return tuple(sorted(range(len(prior)), key=lambda c: -prior[c]))


def _blocks(schema: TableSchema) -> tuple[tuple[int, ...], ...]:
    """Return attributes in the order of the kernels: one byte, wider, interactions."""
    blocks: dict[tuple[int, int], list[int]] = {}
    for j, feature in enumerate(schema.features):
        width = sum(feature.n_codes > limit for limit in (256, 65536))
        if feature.is_coded:
            key = (2, width) if feature.sides else (1, j) if width else (0, 0)
            blocks.setdefault(key, []).append(j)
    return tuple(tuple(block) for _, block in sorted(blocks.items()))


# -------------------------------------------------------------------------------- terms


def _terms(model: Any) -> list[Term]:
    """Return a term for each attribute of a sum."""
    schema, table = model.schema, model.table.tolist()
    if not all(math.isfinite(x) for row in table for x in row):
        raise ParameterError(
            "This model cannot be exported: its tables hold numbers that are not "
            "finite."
        )
    terms: list[Term] = []
    start = g = 0
    for column, feature in enumerate(schema.features):
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
    of_values, missing = tuple(rows[1 : n_plain + 1]), rows[feature.missing_code]
    if any(rows[0]):
        raise ParameterError(
            "This model cannot be exported: values that it does not know add to its "
            "scores, which no fit gives."
        )
    if feature.kind == "categorical":
        return Lookup(column, feature.values, of_values, missing)
    return Bins(column, *merged_bins(feature.edges, of_values), missing)


def _density(gaussian: Any, g: int, feature: FeatureSchema, column: int) -> Density:
    mean, deviation = gaussian.mean.tolist()[g], gaussian.deviation.tolist()[g]
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
        (1.0,) * len(mean) if weight is None else tuple(weight.tolist()[g]),
        None if feature.fill is None else float(feature.fill),
        DENSITY_DEPTH if form == "relative" else 0.0,
        SLOPE_LIMIT if form == "linear" else 0.0,
        float(feature.step),
    )


def _constant(deviation: Sequence[float], form: str) -> Row:
    """Return log-densities at the means, with the bits of the engine if it has them."""
    if form in ("linear", "interval"):
        return tuple(-0.5 * math.log(2.0 * math.pi) - math.log(d) for d in deviation)
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
    column = side.feature
    missing = side.groups[feature.missing_code]
    groups = side.groups[1 : feature.n_values - feature.missing_is_value + 1]
    if feature.kind == "categorical":
        return Grouping(column, feature.values, (), groups, missing, side.n_groups)
    edges, groups = merged_bins(feature.edges, groups)
    return Grouping(column, (), edges, groups, missing, side.n_groups)


def _is_zero(term: Term) -> bool:
    if isinstance(term, Density):
        return not any(term.weight)
    if isinstance(term, Interaction):
        return not any(any(row) for rows in term.rows for row in rows)
    return not any(term.missing) and not any(map(any, term.rows))
