"""Training rows: a table, its labels and its weights, and which rows are left out."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from steelyard._common.allowed import LARGEST_WEIGHT, MIN_WEIGHT
from steelyard._common.arrays import Floats, Ints
from steelyard.exceptions import TableError, warn_user
from steelyard.table.frames import Table, as_series, as_table
from steelyard.table.labels import as_label_column, labels_of_rows

TrainingRows = tuple[Table, Any, Floats | None]
"""A table, its labels and its weights."""


def training_rows(
    X: Any, y: Any, sample_weight: Any, estimator: object
) -> TrainingRows:
    """Check lengths and weights, and leave out the rows of weight zero.

    Labels may be None; otherwise they come back as ``as_label_column`` makes them.
    """
    return weighted_rows(*read_rows(X, y, sample_weight, estimator))


def read_rows(X: Any, y: Any, sample_weight: Any, estimator: object) -> TrainingRows:
    """Read a table, its labels (or None) and its weights, and check their lengths."""
    table = as_table(X, estimator)
    if table.nested:
        shown = ", ".join(map(repr, table.nested))
        warn_user(f"Left out, since they hold nested values: {shown}.", UserWarning)
    if y is not None:
        y = labels_of_rows(y, table.n_rows)
    return table, y, check_weights(sample_weight, table.n_rows)


def check_weights(sample_weight: Any, n_rows: int) -> Floats | None:
    """Check row weights, and return them as float64; None stays None."""
    if sample_weight is None:
        return None
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TableError(f"sample_weight must hold numbers: {error}.") from None
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.ndim != 1:
        raise TableError(
            f"Sample weights must be 1D array or scalar, got {weights.ndim}D array."
        )
    if weights.shape[0] != n_rows:
        raise TableError(
            f"sample_weight.shape == {weights.shape}, expected {(n_rows,)}: one weight "
            "for each row."
        )
    if not np.isfinite(weights).all():
        row = int(np.flatnonzero(~np.isfinite(weights))[0])
        raise TableError(
            f"sample_weight contains NaN or infinity (row {row}). Weights must be "
            "finite; use 0 to leave a row out."
        )
    if (weights < 0).any():
        row = int(np.flatnonzero(weights < 0)[0])
        raise TableError(
            f"Negative values in data passed to `sample_weight` (row {row}: "
            f"{weights[row]:g}). Weights must be 0 or more."
        )
    outside = (weights > LARGEST_WEIGHT) | (weights < MIN_WEIGHT) & (weights > 0)
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        raise TableError(
            f"sample_weight holds {weights[row]:g} (row {row}). Weights must be 0, or "
            f"from {MIN_WEIGHT:g} to {LARGEST_WEIGHT:g}. Divide all of them by a "
            "power of ten; use 0 to leave a row out."
        )
    if not weights.any():
        raise TableError("All sample weights are zero: no row is left to learn from.")
    return weights


def chunk_rows(table: Table, y: Any, weights: Any) -> TrainingRows | None:
    """Check a chunk of rows as `training_rows` does; None if it has no weight."""
    if weights is not None and not np.any(weights):
        return None
    weights = check_weights(weights, table.n_rows)
    return weighted_rows(table, as_label_column(y), weights)


def weighted_rows(table: Table, y: Any, weights: Floats | None) -> TrainingRows:
    """Leave out the rows of weight zero."""
    if weights is None or weights.all():
        return table, y, weights
    return take_rows(np.flatnonzero(weights), table, y, weights)


def labelled_rows(table: Table, y: Any, weights: Floats | None) -> TrainingRows:
    """Leave out the rows without a label, with a warning.

    Labels are as ``as_label_column`` makes them, one for each row of the table.
    """
    has_label = as_series(y).factor().indices >= 0
    n_missing = int(np.count_nonzero(~has_label))
    if not n_missing:
        return table, y, weights
    if n_missing == table.n_rows:
        raise TableError("Every label is missing: no row is left to learn from.")
    warn_user(
        f"{n_missing} of {table.n_rows} rows have no target and are left out.",
        UserWarning,
    )
    table, y, weights = take_rows(np.flatnonzero(has_label), table, y, weights)
    # Checked again: the weights that are left may all be zero.
    return table, y, check_weights(weights, table.n_rows)


def take_rows(rows: Ints, table: Table, y: Any, weights: Floats | None) -> TrainingRows:
    """Return some rows of a table with their labels and weights."""
    if isinstance(y, np.ndarray):
        y = y[rows]
    elif y is not None:
        y = nw.from_native(y, series_only=True)[rows].to_native()
    return table.take(rows), y, None if weights is None else weights[rows]
