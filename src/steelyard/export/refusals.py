"""What some formats cannot hold."""

from __future__ import annotations

from steelyard.exceptions import ParameterError
from steelyard.export.plan import Density, Plan

# Numbers of a model that is written as text.
_MOST_NUMBERS = 1_000_000

# Whole numbers that doubles tell apart are smaller.
_WHOLE = 2**53


def refuse_intervals(plan: Plan, where: str) -> None:
    """Refuse Weka's intervals, for formats that have no error function."""
    for term in plan.terms():
        if isinstance(term, Density) and term.form == "interval":
            raise ParameterError(
                f"Column {plan.columns[term.column].name!r} is scored by Weka's "
                "intervals (numeric='gaussian-weka'), which need the error function; "
                f"{where} has none. Use numeric='gaussian'."
            )


def refuse_large(plan: Plan, where: str) -> None:
    """Refuse models that are too large to be written as text."""
    size = plan.n_numbers()
    if size > _MOST_NUMBERS:
        raise ParameterError(
            f"The model has {size:,} numbers, more than the {_MOST_NUMBERS:,} that are "
            f"written as {where}. Use `save`, or a format for large models: ONNX, "
            "JavaScript or Python."
        )


def refuse_large_categories(plan: Plan, where: str) -> None:
    """Refuse categories that are one number as doubles, where all numbers are that."""
    for column in plan.columns:
        large = [v for v in column.values if isinstance(v, int) and abs(v) >= _WHOLE]
        if large:
            raise ParameterError(
                f"Column {column.name!r} has the category {large[0]}: {where} takes "
                "numbers as doubles, which do not tell whole numbers from 2**53 on "
                "apart. Turn the column into text."
            )
