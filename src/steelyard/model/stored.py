"""Training sets of rows that do not fit in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.model.training import Preparation, TrainingSet
from steelyard.table.encoder import TableEncoder
from steelyard.table.store import StoredRows


def stored_training(
    rows: StoredRows,
    encoder: TableEncoder,
    classes: NDArray[Any],
    preparation: Preparation,
    factors: NDArray[np.float64] | None,
) -> TrainingSet:
    """Return the training set of rows that were encoded chunk by chunk.

    The encoder is that of the rows; ``factors`` are those of classes, known from a
    summary of all rows.
    """
    return TrainingSet(
        None,
        encoder,
        rows.codes,
        classes,
        rows.labels,
        rows.weights,
        preparation,
        factors,
        rows.is_kept,
    )
