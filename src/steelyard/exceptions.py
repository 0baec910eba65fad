"""Errors and warnings of the package: few, and each says what to do next."""

from __future__ import annotations

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
