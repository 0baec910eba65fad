"""Curves of columns, over the rows of a table: their steps, and the shapes of these.

The curve of a column is what all its views add to the log-odds of a class against each
other class. It is a sum of steps, one at each cut point of a view, or from a category
to the next; a shape says which of them go up and which down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from steelyard._common.arrays import Floats, Ints
from steelyard.table.schema import TableSchema

_SIGNS = {"decreasing": -1.0, "concave": -1.0, "valley": -1.0}


@dataclass(frozen=True)
class Step:
    """Where the curve of a column changes: table rows below and above, by view."""

    below: list[int]
    above: list[int]


@dataclass(frozen=True)
class Shape:
    """The shape of the curve of one column, for one class against the others."""

    column: int
    kind: str
    target: int
    """Position of the class."""

    views: tuple[int, ...]
    """Attributes that read the column."""

    @property
    def is_bent(self) -> bool:
        """Whether it is about slopes, not steps."""
        return self.kind in ("convex", "concave")

    @property
    def turns(self) -> bool:
        """Whether it goes up and down, and where it turns has to be found."""
        return self.kind in ("peak", "valley")

    @property
    def sign(self) -> float:
        """Whether first steps, or changes of slope, are up (1) or down (-1)."""
        return _SIGNS.get(self.kind, 1.0)

    @property
    def _coarse(self) -> Shape:
        """The views of a bent curve that would break it with their steps."""
        return replace(self, kind="increasing", views=self.views[:-1])

    def steps(self, schema: TableSchema) -> list[Step]:
        """Return the steps of the curve in order: one for each cut point of any view.

        Those of a bent curve are steps of its finest view.
        """
        steps: dict[float, Step] = {}
        for j in self.views[-1:] if self.is_bent else self.views:
            rows, cuts = _known(schema, j).tolist(), schema.features[j].edges
            for k, below in enumerate(rows[:-1]):
                step = steps.setdefault(cuts[k] if cuts else k, Step([], []))
                step.below.append(below)
                step.above.append(below + 1)
        return [steps[cut] for cut in sorted(steps)]

    def level_steps(self, schema: TableSchema) -> list[Step]:
        """Return the steps that must be 0: those of coarser views of a bent curve."""
        return self._coarse.steps(schema) if self.is_bent else []

    def gaps(self, schema: TableSchema) -> Floats:
        """Return how far apart the centres of neighbouring bins are, shape (steps,).

        Outer bins are as wide as the next ones; categories are at equal distances.
        """
        j = self.views[-1]
        edges = np.array(schema.features[j].edges, dtype=np.float64)
        if len(edges) < 2:
            return np.ones(max(len(_known(schema, j)) - 1, 0))
        edges = edges / np.abs(edges).max()
        first, last = 2.0 * edges[0] - edges[1], 2.0 * edges[-1] - edges[-2]
        ends = np.concatenate([[first], edges, [last]])
        gaps = (ends[2:] - ends[:-2]) / 2.0
        return np.maximum(gaps, 1e-12 * gaps.max())

    def turn(self, table: Floats, schema: TableSchema) -> int:
        """Return before which step a curve had best turn."""
        return _turn(self.sign * self._heights(table, self.steps(schema)))

    def violation(self, table: Floats, schema: TableSchema) -> float:
        """Return by how much a step of a curve is wrong at worst."""
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

        Where several views have a cut point in common, its step goes to the last of
        them, so that each keeps the shape by itself, in whatever order and precision
        they are added. All is said of the other classes: the target's entries are 0.
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
        moves = {s.above[-1]: h for s, h in zip(steps, heights, strict=True)}
        others = np.delete(np.arange(table.shape[1]), self.target)
        none = np.zeros(len(others))
        for j in self.views:
            rows = _known(schema, j)
            table[rows] -= table[rows, self.target][:, None]
            climb = [none, *(moves.get(row, none) for row in rows[1:].tolist())]
            new = table[rows[:1], others] - self.sign * np.cumsum(climb, axis=0)
            table[np.ix_(rows, others)] = new[: len(rows)]

    def _heights(self, table: Floats, steps: Sequence[Step]) -> Floats:
        """Return steps for the target against each other class, (steps, K - 1)."""
        odds = table[:, [self.target]] - np.delete(table, self.target, axis=1)
        found = [odds[s.above].sum(axis=0) - odds[s.below].sum(axis=0) for s in steps]
        return np.array(found).reshape(-1, odds.shape[1])


def _turn(heights: Floats) -> int:
    """Return before which step to turn, so that least is to be undone."""
    down = np.cumsum(np.maximum(-heights, 0.0).sum(axis=1))
    up = np.cumsum(np.maximum(heights, 0.0).sum(axis=1)[::-1])[::-1]
    return int(np.argmin(np.append(0.0, down) + np.append(up, 0.0)))


def _known(schema: TableSchema, j: int) -> Ints:
    """Return the table rows of bins or values, not of missing cells."""
    feature, first = schema.features[j], int(schema.offsets[j]) + 1
    n = len(feature.edges) + 1 if feature.kind == "binned" else len(feature.values)
    return np.arange(first, first + n)
