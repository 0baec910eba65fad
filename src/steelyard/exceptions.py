"""Errors and warnings of the package: few, and each says what to do next.

Warnings are given at the line of the user.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

__all__ = [
    "ColumnError",
    "IdentifierWarning",
    "ModelFileError",
    "ParameterError",
    "StoppedError",
    "TableError",
]


class TableError(ValueError):
    """A table, its labels or its weights cannot be used as they are."""


class ColumnError(TableError):
    """One column, or the set of columns, is not what the model expects."""


class ParameterError(ValueError):
    """A setting has a value that is not allowed."""


class ModelFileError(ValueError):
    """A model file is damaged, was changed, or is not a model file at all."""


class StoppedError(RuntimeError):
    """A fit was stopped by the function that watched it; see ``steelyard.watch``."""


class IdentifierWarning(UserWarning):
    """A column has (nearly) as many values as rows and looks like an identifier."""


# Frames of these packages are between the user's line and a warning.
_OWN = ("steelyard", "sklearn")


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the line that called the package, however deep the call."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None:
        module = frame.f_globals.get("__name__", "")
        if module.partition(".")[0] not in _OWN:
            break
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def check_fitted(estimator: Any) -> None:
    """Raise scikit-learn's error if a classifier is not fitted."""
    if not hasattr(estimator, "model_"):
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(estimator)
