"""Rows that can be used: those with a label and a known cell."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from steelyard._common.checks import check_weights, warn_user
from steelyard.exceptions import TableError
from steelyard.model.training import Training
from steelyard.table.codes import Codes
from steelyard.table.frames import as_series, as_table
from steelyard.table.labels import as_label_column

__all__ = ["known_rows", "rows_with_cells", "with_target"]


def with_target(
    X: Any, y: Any, sample_weight: Any, estimator: object
) -> tuple[Any, Any, Any]:
    """Leave out the rows without a label, with a warning."""
    y = as_label_column(y)
    has_label = as_series(y).factor().indices >= 0
    n_rows, n_missing = len(has_label), int(np.count_nonzero(~has_label))
    if not n_missing or as_table(X, estimator).n_rows != n_rows:
        return X, y, sample_weight
    if n_missing == n_rows:
        raise TableError("Every label is missing: no row is left to learn from.")
    warn_user(
        f"{n_missing} of {n_rows} rows have no target and are left out.", UserWarning
    )
    kept = np.flatnonzero(has_label)
    weights = check_weights(sample_weight, n_rows)
    y = _safe_indexing(y, kept)
    return _safe_indexing(X, kept), y, None if weights is None else weights[kept]


def rows_with_cells(codes: Codes, features: list[int]) -> NDArray[np.bool_]:
    """Say which rows have a known cell among some attributes."""
    found = np.zeros(codes.n_rows, dtype=bool)
    for feature in features:
        found |= codes.column(feature) != 0
        if found.all():
            break
    return found


def known_rows(training: Training, candidates: list[int]) -> Training:
    """Leave out the rows without a known predictor, and classes that lose all rows."""
    kept = rows_with_cells(training.codes, candidates)
    if kept.all() or not candidates:
        return training
    used, labels = np.unique(training.labels[kept], return_inverse=True)
    if len(used) < 2:
        raise TableError(
            "Fewer than two classes are left when rows without any known predictor are "
            "left out."
        )
    weights = None if training.weights is None else training.weights[kept]
    known = Training(
        training.encoder, training.classes[used], labels.astype(np.uint32), weights
    )
    known.codes = training.codes.take(kept)
    return known
