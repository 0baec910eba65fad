"""What a fit tells of itself: its columns, and how it does on rows it has not seen."""

from __future__ import annotations

import warnings
from typing import Any

from steelyard.cli.output import note

FOLDS = 5
_MOST_ROWS = 5_000
# Of the processor, for all folds; the first fit of a machine compiles kernels too.
_MOST_SECONDS = 300.0
_MOST_COLUMNS = 30
# Whole numbers that are all different and lie so close are running numbers.
_DENSE = 1.1


def cross_validated(
    clf: Any, data: Any, weights: Any, seconds: float
) -> dict[str, float] | None:
    """Return accuracy and log-loss over five folds, None where that is not to be had.

    Long tables are measured on 5,000 of their rows. ``seconds`` are those of the
    processor for the fit, by which a check that would take minutes is left out.
    """
    import numpy as np

    from steelyard.experiments.evaluate import evaluate

    n_rows = min(len(data), _MOST_ROWS)
    if seconds * FOLDS * n_rows / len(data) > _MOST_SECONDS:
        note("not checked, since that would take long: see 'steelyard evaluate'")
        return None
    rows = np.arange(len(data))
    if n_rows < len(data):
        rows = np.sort(np.random.default_rng(1).choice(rows, n_rows, replace=False))
    if weights is not None:
        weights = np.asarray(weights)[rows]
    table, labels = data.table.iloc[rows], data.target[rows]
    try:
        with warnings.catch_warnings():
            # The fit has warned of the same table.
            warnings.simplefilter("ignore")
            found = evaluate(clf, table, labels, sample_weight=weights, folds=FOLDS)
    except ValueError as error:
        note(f"not checked by cross-validation: {error}")
        return None
    measures = {name: found.metrics[name] for name in ("accuracy", "log_loss")}
    return {**measures, "folds": FOLDS, "rows": n_rows}  # type: ignore[dict-item]


def majority(labels: Any) -> dict[str, Any]:
    """Return what is right without a model: always the most frequent class."""
    import numpy as np

    classes, counts = np.unique(labels, return_counts=True)
    shares = counts / counts.sum()
    return {
        "class": classes[counts.argmax()],
        "accuracy": float(shares.max()),
        "log_loss": float(-(shares * np.log(shares)).sum()),
    }


def describe(table: Any) -> list[dict[str, Any]]:
    """Return kind, missing cells, values and remarks of each column."""
    import pandas as pd

    from steelyard.table.summary.column_rules import too_many_values

    lines = []
    for name in table.columns:
        known = table[name].dropna()
        n_values = int(known.nunique())
        is_number = pd.api.types.is_numeric_dtype(known) and known.dtype != bool
        remark = "constant" if n_values < 2 else ""
        if not is_number and too_many_values(len(known), n_values):
            remark = "like an identifier"
        elif is_number and _is_running(known, n_values):
            remark = "like an identifier"
        lines.append(
            {
                "column": str(name),
                "kind": "numbers" if is_number else "categories",
                "missing": int(len(table) - len(known)),
                "distinct": n_values,
                "remark": remark,
            }
        )
    return lines


def _is_running(numbers: Any, n_values: int) -> bool:
    if len(numbers) < 20 or n_values < len(numbers):
        return False
    # Rows without a label leave gaps.
    is_dense = numbers.max() - numbers.min() < _DENSE * len(numbers)
    return bool(is_dense and (numbers == numbers.round()).all())


def column_rows(lines: list[dict[str, Any]]) -> tuple[list[list[str]], int]:
    """Return texts of the columns to show, those with remarks first if they are many.

    The number is that of the columns that are not shown.
    """
    shown = lines
    if len(lines) > _MOST_COLUMNS:
        shown = sorted(lines, key=lambda line: (not line["remark"], -line["missing"]))
        shown = shown[:_MOST_COLUMNS]
    names = ("column", "kind", "remark", "missing", "distinct")
    texts = [[str(line[name] or "") for name in names] for line in shown]
    return texts, len(lines) - len(shown)
