"""What some formats cannot hold."""

from __future__ import annotations

from steelyard.exceptions import ParameterError
from steelyard.export.plan import Density, Plan

# Numbers of a model that is written as text.
_MOST_NUMBERS = 1_000_000


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
