"""Predictors and rows as the SPSS procedure uses them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.checks import warn_user
from steelyard.exceptions import ParameterError, TableError
from steelyard.model.table_model import NBModel
from steelyard.model.training import TrainingSet
from steelyard.proba.counts import Counts
from steelyard.table.codes import Codes
from steelyard.table.frames import as_table
from steelyard.table.labels import as_label_column, encode_labels, labelled_rows
from steelyard.table.schema import TableSchema, feature_labels
from steelyard.table.treatments import column_positions


@dataclass(frozen=True)
class TestRows:
    """Encoded test rows with their classes."""

    codes: Codes
    labels: NDArray[np.uint32]


def usable_predictors(
    counts: Counts, forced: Any, excluded: Any
) -> tuple[list[int], list[int]]:
    """Return the forced predictors, and all that can be used.

    A predictor needs two observed categories.
    """
    schema = counts.schema
    if schema.gaussian.size:
        raise ParameterError(
            "SPSSNaiveBayes needs categories: cut numbers into bins with "
            "numeric='equal-width-merged' or a discretizer, instead of densities."
        )
    kept = _columns(forced, schema, "forced")
    left_out = _columns(excluded, schema, "excluded")
    both = [j for j in kept if j in left_out]
    if both:
        raise ParameterError(
            f"`forced` and `excluded` both name {feature_labels(schema, both)}. A "
            "column can be one of them."
        )
    parts = np.split(counts.by_code.sum(axis=1), schema.offsets[1:-1])
    usable = [j for j, part in enumerate(parts) if np.count_nonzero(part[1:]) > 1]
    useless = [j for j in kept if j not in usable]
    if useless:
        warn_user(
            f"Forced predictors {feature_labels(schema, useless)} have fewer than two "
            "observed categories and are left out.",
            UserWarning,
        )
    candidates = [j for j in usable if j not in left_out]
    if not candidates:
        warn_user(
            "No column can be used as a predictor: all are excluded or have fewer than "
            "two observed categories. The model predicts the largest class.",
            UserWarning,
        )
    return [j for j in kept if j in usable], candidates


def _columns(columns: Any, schema: TableSchema, setting: str) -> list[int]:
    """Positions of the columns that a setting names, each once."""
    if columns is None:
        return []
    positions = column_positions(columns, len(schema), schema.names, setting)
    return list(dict.fromkeys(positions))


def with_known_cells(training: TrainingSet, candidates: list[int]) -> TrainingSet:
    """Leave out the rows without a known predictor, and classes that lose all rows."""
    if not candidates:
        return training
    rows = training.workspace.rows_where(
        training.n_rows,
        lambda rows: _rows_with_cells(training.codes.part(rows), candidates),
    )
    if len(rows) == training.n_rows:
        return training
    taken = training.take(rows).without_empty_classes()
    if taken.n_classes < 2:
        raise TableError(
            "Fewer than two classes are left when rows without any known predictor are "
            "left out."
        )
    return taken


def encode_test_rows(
    X: Any, y: Any, training: TrainingSet, candidates: list[int], owner: object
) -> TestRows:
    """Encode test rows that have a label and a known predictor."""
    table, y = as_table(X, owner), as_label_column(y)
    if len(y) != table.n_rows:
        raise TableError(
            f"X_test has {table.n_rows} rows, but y_test has {len(y)} labels."
        )
    table, y, _ = labelled_rows(table, y, None)
    codes = training.encoder.encode(table)
    classes, labels = encode_labels(y)
    known = training.classes.tolist()
    unknown = [value for value in classes.tolist() if value not in known]
    if unknown:
        raise TableError(
            f"y_test holds {unknown}, which are not among the classes {known} of the "
            "training rows. Leave those test rows out."
        )
    position = np.array([known.index(value) for value in classes.tolist()])
    has_cells = _rows_with_cells(codes, candidates)
    if not has_cells.any():
        raise TableError(
            "No row of X_test has a known cell among the predictors. Leave X_test and "
            "y_test out, or check that categories are written alike."
        )
    kept = labels[has_cells]
    return TestRows(codes.take(has_cells), position[kept].astype(np.uint32))


def error_rate(model: NBModel, training: TrainingSet, test: TestRows | None) -> float:
    """Share of the test rows, or else training rows, that are classified wrongly."""
    rows = training if test is None else test
    weights = training.sample_weight if test is None else None
    return model.share(rows.codes, rows.labels, weights, False, training.n_jobs)


def _rows_with_cells(codes: Codes, attributes: list[int]) -> NDArray[np.bool_]:
    """Say which rows have a known cell among some attributes."""
    has_cells = np.zeros(codes.n_rows, dtype=bool)
    for j in attributes:
        has_cells |= codes.column(j) != 0
        if has_cells.all():
            break
    return has_cells
