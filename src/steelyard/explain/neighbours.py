"""The training rows behind the model of one query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.text import text_table
from steelyard.explain.parts import PlainData
from steelyard.explain.views import Floats
from steelyard.table.codes import Codes

# How many are shown as text.
_MAX_NEIGHBOURS = 10


@dataclass(frozen=True, repr=False)
class Neighbours(PlainData):
    """Training rows behind the model of one query, by falling weight."""

    rows: NDArray[np.int64]
    """Positions among the training rows; rows of weight zero are not counted."""

    labels: NDArray[Any]
    distances: Floats
    weights: Floats

    def __repr__(self) -> str:
        """List the ten rows with the largest weight."""
        columns = (self.rows, self.labels, self.distances, self.weights)
        lines = [
            [str(row), str(label), f"{distance:.3f}", f"{weight:.3f}"]
            for row, label, distance, weight in zip(
                *(column[:_MAX_NEIGHBOURS] for column in columns), strict=True
            )
        ]
        headers = ["training row", "class", "distance", "weight"]
        shown = text_table(headers, lines, [True, False, True, True])
        more = len(self.rows) - len(lines)
        return shown + (f"\n… and {more} more" if more > 0 else "")


def neighbours_of(model: Any, codes: Codes) -> tuple[Neighbours, ...]:
    """Return the training rows that count for each query, if a model has kept them."""
    if not model.is_lazy:
        return ()
    by_query = []
    for i in range(codes.n_rows):
        distance, mass = model.row_weights(codes.take(np.array([i])))
        order = np.lexsort((np.arange(len(mass)), distance, -mass))
        kept = order[mass[order] > 0.0]
        labels = model.classes[model.y[kept]]
        by_query.append(Neighbours(kept, labels, distance[kept], mass[kept]))
    return tuple(by_query)
