"""Shapes that curves of columns must have, as linear constraints of the weights.

The curve of a column, its contribution to the log-odds of a class against another, is a
sum of steps, one at each cut point or from a category to the next; a shape fixes which
of them go up and which down.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, kron, vstack

from steelyard._common.allowed import SHAPES
from steelyard._common.arrays import Floats, Ints
from steelyard._common.text import did_you_mean
from steelyard.exceptions import ParameterError
from steelyard.model.table_model import NBModel
from steelyard.model.training import TrainingSet
from steelyard.solvers import Box, Cone, Solution
from steelyard.table.schema import FeatureSchema, TableSchema
from steelyard.table.treatments import column_positions
from steelyard.weighting import LogProbs, Weighting

if TYPE_CHECKING:
    from steelyard.fitting.problem import Problem
    from steelyard.fitting.recipe import Recipe

_SIGNS = {"decreasing": -1.0, "concave": -1.0, "valley": -1.0}


@dataclass(frozen=True)
class Shape:
    """The shape of the curve of one column, for one class against the others."""

    column: int
    kind: str
    target: int
    """Position of the class."""

    @property
    def is_bent(self) -> bool:
        """Whether it is about slopes, not steps."""
        return self.kind in ("convex", "concave")

    @property
    def turns(self) -> bool:
        """Whether it goes up and down, with a turning point to search for."""
        return self.kind in ("peak", "valley")

    @property
    def sign(self) -> float:
        """Whether first steps, or changes of slope, are up (1) or down (-1)."""
        return _SIGNS.get(self.kind, 1.0)

    def steps(self, schema: TableSchema) -> Ints:
        """Return the steps of the curve in order: table rows below each cut point.

        Those of a bent curve are at cut points of its finest encoding.
        """
        cuts = schema.features[self.column].cuts
        rows = _value_rows(schema, self.column)[:-1]
        return rows[[*cuts[-1]]] if self.is_bent and cuts else rows

    def level_steps(self, schema: TableSchema) -> Ints:
        """Return the steps that must be 0: other cut points of a bent curve."""
        return np.setdiff1d(_value_rows(schema, self.column)[:-1], self.steps(schema))

    def gaps(self, schema: TableSchema) -> Floats:
        """Return the distances between the centres of neighbouring bins, (steps,).

        Outer bins are as wide as the next ones; categories are at equal distances.
        """
        feature, steps = schema.features[self.column], self.steps(schema)
        edges = np.array(feature.edges, dtype=np.float64)
        if len(steps) < 2 or not len(edges):
            return np.ones(len(steps))
        edges = edges[steps - _value_rows(schema, self.column)[0]]
        edges = edges / np.abs(edges).max()
        first, last = 2.0 * edges[0] - edges[1], 2.0 * edges[-1] - edges[-2]
        ends = np.concatenate([[first], edges, [last]])
        gaps = (ends[2:] - ends[:-2]) / 2.0
        return np.maximum(gaps, 1e-12 * gaps.max())

    def turn(self, table: Floats, schema: TableSchema) -> int:
        """Return the step before which a curve turns with the fewest violations."""
        return _turn(self.sign * self._heights(table, self.steps(schema)))

    def violation(self, table: Floats, schema: TableSchema) -> float:
        """Return the largest violation of a step of a curve."""
        heights = self.sign * self._heights(table, self.steps(schema))
        if self.is_bent:
            gaps = self.gaps(schema)
            changes = np.diff(heights / gaps[:, None], axis=0) * gaps[1:, None]
            level = np.abs(self._heights(table, self.level_steps(schema)))
            return float(max(-changes.min(initial=0.0), level.max(initial=0.0)))
        if self.turns:
            heights[_turn(heights) :] *= -1.0
        return float(-heights.min(initial=0.0))

    def settle(self, table: Floats, schema: TableSchema) -> None:
        """Change the rows of a column by rounding alone, so that they have the shape.

        All is expressed by the other classes: the target's entries are 0.
        """
        steps = self.steps(schema)
        heights = self.sign * self._heights(table, steps)
        if self.is_bent:
            gaps = self.gaps(schema)[:, None]
            heights = np.maximum.accumulate(heights / gaps, axis=0) * gaps
        else:
            turn = _turn(heights) if self.turns else len(heights)
            heights[:turn] = np.maximum(heights[:turn], 0.0)
            heights[turn:] = np.minimum(heights[turn:], 0.0)
        rows = _value_rows(schema, self.column)
        if not len(rows):
            return
        others = np.delete(np.arange(table.shape[1]), self.target)
        table[rows] -= table[rows, self.target][:, None]
        climb = np.zeros((len(rows), len(others)))
        climb[steps + 1 - rows[0]] = heights
        new = table[rows[:1], others] - self.sign * np.cumsum(climb, axis=0)
        table[np.ix_(rows, others)] = new

    def _heights(self, table: Floats, steps: Ints) -> Floats:
        """Return steps for the target against each other class, (steps, K - 1)."""
        odds = table[:, [self.target]] - np.delete(table, self.target, axis=1)
        return np.asarray(odds[steps + 1] - odds[steps])


def _turn(heights: Floats) -> int:
    """Return the step before which to turn with the fewest violations."""
    down = np.cumsum(np.maximum(-heights, 0.0).sum(axis=1))
    up = np.cumsum(np.maximum(heights, 0.0).sum(axis=1)[::-1])[::-1]
    return int(np.argmin(np.append(0.0, down) + np.append(up, 0.0)))


def _value_rows(schema: TableSchema, j: int) -> Ints:
    """Return the table rows of bins or values, without those of missing cells."""
    feature, first = schema.features[j], int(schema.offsets[j]) + 1
    n = len(feature.edges) + 1 if feature.kind == "binned" else len(feature.values)
    return np.arange(first, first + n)


# Steps that are rounding, in log-odds.
_ROUNDING = 1e-9

# Accuracy of fits by which turns are compared, in that of the last.
_SEARCH_TOL = 10.0

# Rougher fits, of folds, have the turning points of free curves.
_MAX_SEARCHED_TOL = 1e-3


@dataclass(frozen=True)
class Shapes:
    """All shapes of a table."""

    schema: TableSchema
    n_classes: int
    shapes: tuple[Shape, ...]

    @property
    def columns(self) -> list[int]:
        """Columns that have a shape."""
        return [shape.column for shape in self.shapes]

    def cone(
        self, weighting: Weighting, evidence: LogProbs, turns: Mapping[int, int]
    ) -> Cone:
        """Return the constraints of the weights, given the steps where curves turn."""
        size, schema = weighting.size(evidence), self.schema
        rows, is_equal = [csr_array((0, size))], [np.zeros(0, dtype=bool)]
        for shape in self.shapes:
            steps, level = shape.steps(schema), shape.level_steps(schema)
            if shape.is_bent:
                moves = np.diff(np.eye(len(steps)), axis=0) / shape.gaps(schema)
            else:
                turn = turns.get(shape.column, len(steps))
                moves = np.diag(np.where(np.arange(len(steps)) < turn, 1.0, -1.0))
            signed = kron(csr_array(shape.sign * moves), np.eye(self.n_classes - 1))
            given = shape.target, weighting, evidence
            of_steps = signed @ _by_weights(steps, *given)
            of_level = _by_weights(level, *given)
            rows += [of_steps, of_level]
            is_equal.append(np.zeros(of_steps.shape[0], dtype=bool))
            is_equal.append(np.ones(of_level.shape[0], dtype=bool))
        free = np.full(size, np.inf)
        return Cone(-free, free, csr_array(vstack(rows)), np.concatenate(is_equal))

    def settled(self, model: NBModel) -> NBModel:
        """Return a model whose curves keep their shapes to the last bit.

        Solvers end within rounding of the constraints.
        """
        if not self.shapes:
            return model
        table = model.table.copy()
        for shape in self.shapes:
            shape.settle(table, self.schema)
        return replace(model, table=table)

    def broken(self, model: NBModel) -> list[str]:
        """Return the shapes, in words, that curves of a model do not have."""
        names = self.schema.labels()
        return [
            f"{names[shape.column]} is {shape.kind}"
            for shape in self.shapes
            if shape.violation(model.table, self.schema) > _ROUNDING
        ]


def shapes_of(recipe: Recipe, training: TrainingSet, box: Box) -> Shapes | None:
    """Return the shapes that a recipe asks for, if its weights can have them."""
    if not recipe.constraints:
        return None
    if not recipe.weighting.has_shapes or recipe.solver == "fixed":
        raise ParameterError(
            "`constraints` need a learned weight for each value. Use ShrinkageNB, or "
            "WeightedNB(weighting='value', bounds=None, lam=1.0)."
        )
    if not box.is_everywhere:
        raise ParameterError(
            "`constraints` and `bounds` exclude each other. Use bounds=None, and a "
            "penalty such as lam=1.0."
        )
    if recipe.one_vs_one and training.n_classes > 2:
        raise ParameterError(
            "multiclass='one-vs-one' makes several models, whose sum keeps no shape. "
            "Use multiclass='native' with `constraints`."
        )
    return resolve_shapes(recipe.constraints, training.schema, training.classes)


def resolve_shapes(
    setting: Mapping[Any, Any] | None, schema: TableSchema, classes: NDArray[Any]
) -> Shapes:
    """Check shapes that a user asks for against the columns and classes of a table."""
    setting = setting or {}
    names = schema.names
    positions = column_positions(setting, schema.n_columns, names, "constraints")
    asked: dict[int, Shape] = {}
    for (name, wanted), column in zip(setting.items(), positions, strict=True):
        kind, target = _kind_and_class(name, wanted, classes)
        _check_order(schema.features[column], name)
        if column in asked:
            raise ParameterError(
                f"`constraints` names column {name!r} twice. Give it one shape."
            )
        asked[column] = Shape(column, kind, target)
    for interaction in schema.features[schema.n_columns :]:
        for side in interaction.sides:
            if side.feature in asked:
                label = schema.labels()[side.feature]
                raise ParameterError(
                    f"`interactions` joins column {label!r}, to which `constraints` "
                    "gives a shape that holds for all rows. Leave one of them out."
                )
    return Shapes(schema, len(classes), tuple(asked.values()))


def _kind_and_class(name: Any, wanted: Any, classes: NDArray[Any]) -> tuple[str, int]:
    """Return a shape and the position of the class that it is about."""
    kind, *named = (wanted,) if isinstance(wanted, str) else wanted
    if kind not in SHAPES:
        hint = did_you_mean(str(kind), SHAPES)
        raise ParameterError(
            f"`constraints` gives column {name!r} the shape {kind!r}. Shapes are "
            f"{', '.join(SHAPES)}.{hint}"
        )
    if not named and len(classes) > 2:
        raise ParameterError(
            f"There are {len(classes)} classes: say for which of them {name!r} is "
            f"{kind}, such as constraints={{{name!r}: ({kind!r}, "
            f"{classes[0].item() if hasattr(classes[0], 'item') else classes[0]!r})}}."
        )
    if not named:
        return kind, 1
    names = [str(label) for label in classes]
    if str(named[0]) not in names:
        hint = did_you_mean(str(named[0]), names)
        raise ParameterError(
            f"`constraints` names class {named[0]!r} for column {name!r}. Classes are "
            f"{', '.join(names[:10])}.{hint}"
        )
    return kind, names.index(str(named[0]))


def _check_order(feature: FeatureSchema, name: Any) -> None:
    """Refuse an attribute without codes in an order, or that is left out."""
    if feature.left_out:
        raise ParameterError(
            f"`constraints` names column {name!r}, which is left out, since it looks "
            "like an identifier: nearly all its values differ. Keep it with "
            "`keep_identifiers=True`, or give it no shape."
        )
    if not feature.is_coded:
        raise ParameterError(
            f"`constraints` names column {name!r}, which is scored by a "
            f"{'slope' if feature.kind == 'linear' else 'density'}. A shape needs "
            "bins, such as numeric='mdl' or 'equal-frequency'."
        )
    is_text = feature.kind == "categorical" and feature.cells == "text"
    if is_text and not feature.ordered and feature.values:
        raise ParameterError(
            f"`constraints` names column {name!r}, whose values have no order. Make it "
            "an ordered category (`pandas.Categorical(values, ordered=True)`), or give "
            "it no shape."
        )


# ------------------------------------------------------------------------------- turns


def turning_solution(
    problem: Problem, shapes: Shapes, recipe: Recipe, start: Floats
) -> Solution:
    """Minimise under constraints, and search for the turning points of curves.

    The search begins at those of curves without a shape, and goes to both sides in
    shorter and shorter strides, one curve after the other.
    """
    weighting, evidence = problem.objective.weighting, problem.evidence
    bent = [shape for shape in shapes.shapes if shape.turns]

    def solved(turns: dict[int, int], tol: float, start: Floats) -> Solution:
        cone = shapes.cone(weighting, evidence, turns)
        if not len(cone.is_equal):  # such as two values, which have nothing to bend
            return replace(problem, shapes=None).solve(replace(recipe, tol=tol), start)
        return replace(problem, box=cone).solve(replace(recipe, tol=tol), start)

    if not bent:
        return solved({}, recipe.tol, start)
    rough = _SEARCH_TOL * recipe.tol
    free = replace(problem, shapes=None).solve(replace(recipe, tol=rough), start)
    table = weighting.apply(free.weights, evidence).table
    turns = {shape.column: shape.turn(table, shapes.schema) for shape in bent}
    if recipe.tol > _MAX_SEARCHED_TOL:
        return solved(turns, recipe.tol, free.weights)
    best = solved(turns, rough, free.weights)
    tried = {tuple(turns.values())}
    for shape in bent:
        n_steps = len(shape.steps(shapes.schema))
        stride = max(1, n_steps // 8)
        while stride:
            improved = False
            for way in (-stride, stride):
                turn = min(max(turns[shape.column] + way, 0), n_steps)
                other = {**turns, shape.column: turn}
                if tuple(other.values()) in tried:
                    continue
                tried.add(tuple(other.values()))
                solution = solved(other, rough, best.weights)
                if solution.value < best.value:
                    best, turns, improved = solution, other, True
            stride = stride if improved else stride // 2
    return solved(turns, recipe.tol, best.weights)


def _by_weights(
    steps: Ints, target: int, weighting: Weighting, evidence: LogProbs
) -> csr_array:
    """Return the derivative of steps by weights: shape (steps × other classes, p)."""
    k = evidence.n_classes
    rows = np.unique(np.concatenate([steps, steps + 1]))
    moves, at = np.zeros((len(steps), len(rows))), np.arange(len(steps))
    moves[at, np.searchsorted(rows, steps + 1)] = 1.0
    moves[at, np.searchsorted(rows, steps)] = -1.0
    odds = np.delete(np.eye(k)[target] - np.eye(k), target, axis=0)
    picks = csr_array(kron(csr_array(moves), odds))
    return picks @ weighting.jacobian(evidence, rows)
