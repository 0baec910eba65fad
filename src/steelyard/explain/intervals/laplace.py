"""Laplace's approximation: the Hessian of a fit, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from steelyard._common.arrays import Floats
from steelyard._common.text import signed, text_table
from steelyard.classifiers.base import BaseNB
from steelyard.classifiers.weighted import SolvedNB
from steelyard.exceptions import ParameterError
from steelyard.explain.intervals.covariance import Covariance, covariance_of
from steelyard.explain.intervals.maps import named_weights
from steelyard.explain.views import PlainData, add_views, column_labels, evidence_of
from steelyard.fitting.default.strengths import Strengths
from steelyard.fitting.problem import Problem, build_problem, weigh_rows
from steelyard.fitting.recipe import Penalty, Recipe
from steelyard.model.table_model import NBModel
from steelyard.table.codes import Codes
from steelyard.table.schema import TableSchema
from steelyard.weighting import HierarchicalWeighting

# Strengths are as plausible as the best ones where their cross-validated log-loss is
# larger by no more than so many of its standard errors.
_HARDLY_WORSE = 0.5

_LEVELS = ("shared", "by_class", "by_value", "by_pair", "intervals")


@dataclass(frozen=True, repr=False)
class EvidenceIntervals(PlainData):
    r"""Evidence of rows with intervals, for each class against the mean of the others.

    With two classes that is log-odds. Attributes are arrays: ``estimate``, ``low`` and
    ``high`` of shape (n, d, K) by column, ``total``, ``total_low`` and ``total_high``
    of shape (n, K) for the sum of prior and all columns. Columns are relative to the
    average training row, as in ``explain_local``, which is taken as it is.
    """

    level: float
    classes: NDArray[Any]
    attributes: list[str]
    estimate: Floats
    low: Floats
    high: Floats
    total: Floats
    total_low: Floats
    total_high: Floats

    def __repr__(self) -> str:
        """List the evidence of up to three rows for their likeliest classes."""
        lines = []
        for i in range(min(len(self.total), 3)):
            c = int(np.argmax(self.total[i]))
            order = np.argsort(-np.abs(self.estimate[i, :, c]), kind="stable")
            columns = np.stack([self.estimate, self.low, self.high])[:, i, order, c].T
            sums = [self.total[i, c], self.total_low[i, c], self.total_high[i, c]]
            names = [*(self.attributes[j] for j in order), "sum, with the prior"]
            rows = [
                [name, *map(signed, numbers)]
                for name, numbers in zip(names, [*columns, sums], strict=True)
            ]
            title = f"row {i}: evidence for {self.classes[c]}"
            headers = [title, "evidence", "low", "high"]
            lines.append(text_table(headers, rows, [False, True, True, True]))
        return f"{100 * self.level:g} % intervals\n\n" + "\n\n".join(lines)


@dataclass(frozen=True)
class Solved:
    """The training problem of a classifier, with its solution."""

    recipe: Recipe
    problem: Problem
    weights: Floats
    codes: Codes
    """Codes of the training rows."""

    scale: float
    """Factor on the scores before they become probabilities."""

    def with_strengths(self, entry: Mapping[str, float]) -> Solved:
        """Return the same problem with other strengths, solved."""
        named = {level: entry[level] for level in _LEVELS if level in entry}
        weighting = self.problem.objective.weighting
        assert isinstance(weighting, HierarchicalWeighting)
        weighting = Strengths(**named).weighting(weighting.intercept)
        ridge = Penalty(*weighting.strengths(self.problem.evidence))
        objective = self.problem.objective
        objective = replace(objective, weighting=weighting, penalty=ridge)
        problem = replace(self.problem, objective=objective)
        weights = problem.solve(self.recipe, self.weights).weights
        return replace(self, problem=problem, weights=weights, scale=entry["scale"])

    @property
    def is_free(self) -> NDArray[np.bool_]:
        """Which weights are at no bound, shape (p,)."""
        near, box = 1e-8 * np.maximum(1.0, np.abs(self.weights)), self.problem.box
        above = self.weights > box.lower + near
        return np.asarray(above & (self.weights < box.upper - near))

    def covariance(self) -> Covariance:
        """Return the covariance of the weights near the solution."""
        return covariance_of(self.problem, self.weights, self.is_free, self.codes)

    def scores(self, codes: Codes) -> tuple[Floats, Floats]:
        """Return the evidence of rows: by column (n, d, K), and its sum (n, K)."""
        weighting, evidence = self.problem.objective.weighting, self.problem.evidence
        effect = weighting.apply(self.weights, evidence)
        return _evidence(self.problem.sum_model(effect), codes, self.scale)


def evidence_intervals(
    clf: BaseNB, own: Solved, covariance: Covariance, asked: Any, level: float
) -> EvidenceIntervals:
    """Give the evidence of some rows intervals: it is linear in the weights."""
    codes = clf._encode(asked)
    estimates = own.scores(codes)
    variances = [np.zeros_like(estimate) for estimate in estimates]
    rivals = [(own, covariance)]
    rivals += [(rival, rival.covariance()) for rival in _rivals(clf, own)]
    for rival, spread in rivals:
        parts = zip(estimates, rival.scores(codes), spread.evidence(codes), strict=True)
        for variance, (estimate, other, deviation) in zip(
            variances, parts, strict=True
        ):
            own_variance = (deviation * own.recipe.link_scale) ** 2
            variance += (own_variance + (other - estimate) ** 2) / len(rivals)
    z = float(ndtri(0.5 + level / 2.0))
    # The model may begin at another base than the solution does.
    published = _evidence(clf.model_, codes, float(clf.model_.link_scale))
    arrays = []
    for estimate, variance in zip(published, variances, strict=True):
        half = z * np.sqrt(variance)
        arrays += [estimate, estimate - half, estimate + half]
    labels = column_labels(codes.schema)
    return EvidenceIntervals(level, clf.classes_, labels, *arrays)


def _evidence(model: NBModel, codes: Codes, scale: float) -> tuple[Floats, Floats]:
    """Return the evidence of rows by a model: by column (n, d, K), and its sum."""
    base, by_view = model.terms(codes)
    total = base + by_view.sum(axis=1)
    if model.centre is not None:
        by_view = by_view - model.centre
    by_column = add_views(by_view, model.schema, axis=1)
    return evidence_of(by_column) * scale, evidence_of(total) * scale


def _rivals(clf: BaseNB, own: Solved) -> Iterator[Solved]:
    """Solve with other strengths that are hardly worse than those of the model."""
    has_pairs = bool(own.codes.schema.is_pair.any())
    path = [
        entry
        for entry in getattr(clf, "strength_path_", ())
        if ("by_pair" in entry) == has_pairs and np.isfinite(entry["log_loss"])
    ]
    if not path:
        return
    best = min(path, key=lambda entry: entry["log_loss"])
    most = best["log_loss"] + _HARDLY_WORSE * best["standard_error"]
    for entry in path:
        if entry is not best and entry["log_loss"] <= most:
            yield own.with_strengths(entry)


def solved(clf: BaseNB, X: Any, y: Any, sample_weight: Any) -> Solved:
    """Set the training problem of a classifier up again, and solve it."""
    if not isinstance(clf, SolvedNB) or not clf._has_one_objective:
        raise ParameterError(
            f"{type(clf).__name__} does not learn its weights from one objective, so "
            "there is no Hessian. Use method='bootstrap'."
        )
    recipe = clf._fitted_recipe()
    training = clf._fitted_training(recipe, X, y, sample_weight)
    if recipe.one_vs_one and training.n_classes > 2:
        raise ParameterError(
            "One-vs-one fits a model for each pair of classes. Use "
            "method='bootstrap' for its weights."
        )
    weighed = weigh_rows(recipe, training)
    rows = None if weighed is None else weighed.weights
    problem = build_problem(recipe, training, rows)
    if not recipe.loss.is_likelihood or recipe.weighting.is_mixture:
        raise ParameterError(
            "Laplace's approximation needs a loss that is a negative log-likelihood: "
            "'log' or 'deviance', and no mixture. Use method='bootstrap'."
        )
    weights = problem.solve(recipe).weights
    scale = float(clf.model_.link_scale)
    return Solved(recipe, problem, weights, training.codes, scale)


def named_bounds(
    problem: Problem, named: dict[str, Floats]
) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Bounds of the weights as they are named; none where no weight has any."""
    if problem.box.is_everywhere:
        none = {name: np.full(value.shape, np.inf) for name, value in named.items()}
        return {name: -value for name, value in none.items()}, none
    box = problem.box
    return named_weights(problem, box.lower), named_weights(problem, box.upper)


def value_names(schema: TableSchema, classes: NDArray[Any], name: str) -> list[str]:
    """Name weights by class, attribute and value; a density has at most one."""
    if name == "intercept_":
        return [str(c) for c in classes]
    names = []
    for j, (label, feature) in enumerate(
        zip(schema.labels(), schema.features, strict=True)
    ):
        if feature.is_coded:
            values = (schema.describe(j, v) for v in range(1, feature.n_codes))
            names += [f"{label} = {value}" for value in values]
        elif name == "value_weights_":
            names.append(label)
    return [f"{entry} in {c}" for c in classes for entry in names]
