"""Training sets of rows that do not fit in memory."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from steelyard.model.training import (
    Preparation,
    TrainingSet,
    check_two_classes,
    class_factors,
    class_totals,
)
from steelyard.table.encoder import TableEncoder
from steelyard.table.store import StoredRows


def stored_training(
    rows: StoredRows,
    encoder: TableEncoder,
    classes: NDArray[Any],
    preparation: Preparation,
) -> TrainingSet:
    """Return the training set of rows that were encoded chunk by chunk.

    The encoder is that of the rows.
    """
    check_two_classes(classes)
    factors = None
    if preparation.class_weight is not None:
        totals = class_totals(rows.labels, rows.weights, len(classes))
        factors = class_factors(preparation.class_weight, classes, totals)
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
