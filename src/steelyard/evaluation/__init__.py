"""Measures of a fitted classifier on labelled rows, by group and cost too."""

from typing import TYPE_CHECKING

from steelyard._common import names_of

if TYPE_CHECKING:
    from steelyard.evaluation.evaluate import *  # noqa: F403
    from steelyard.evaluation.result import *  # noqa: F403

__getattr__, __all__ = names_of(
    "steelyard.evaluation", evaluate="evaluate evaluate_chunks", result="Evaluation"
)
