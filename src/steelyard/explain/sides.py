"""The two sides of a pair of columns, as a reader sees them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.explain.parts import PlainData
from steelyard.table.schema import FeatureSchema, Side, TableSchema


@dataclass(frozen=True)
class PairSide(PlainData):
    """One side of a pair: a column, and the groups that its values are merged to."""

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


def pair_sides(schema: TableSchema, j: int) -> tuple[PairSide, ...]:
    """Describe both sides of a pair."""
    names, columns = schema.labels(), schema.columns
    return tuple(
        # The first view has the name of the column.
        _side(
            schema.features[side.feature],
            side,
            names[columns.index(columns[side.feature])],
        )
        for side in schema.features[j].sides
    )


def _side(feature: FeatureSchema, side: Side, name: str) -> PairSide:
    groups = np.asarray(side.groups)
    members = [np.flatnonzero(groups == g) for g in range(1, side.n_groups)]
    labels = [feature.describe_merged(codes.tolist()) for codes in members]
    edges: list[float] = []
    bins = groups[1 : len(feature.edges) + 2]
    if feature.kind == "binned" and (np.diff(bins) >= 0).all():
        ends = np.flatnonzero(np.diff(bins))
        edges = [feature.edges[k] for k in ends]
    return PairSide(name, labels, tuple(edges))
