"""Model files, and what their models expect of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from steelyard.exceptions import ModelFileError

__all__ = ["expected_columns", "load_model"]


def load_model(path: str) -> Any:
    """Read a model file whose columns have names."""
    import steelyard

    if not Path(path).is_file():
        raise FileNotFoundError(f"The model file {path} is not there.")
    clf = steelyard.load(path)
    if clf.encoder_.schema_.names is None:
        raise ModelFileError(
            f"{path} holds a model that was fitted without column names, so that the "
            "columns of a file cannot be matched. Fit it to a table with names."
        )
    return clf


def expected_columns(clf: Any) -> dict[str, str]:
    """Return for each column what its cells must hold: numbers, text or booleans."""
    schema = clf.encoder_.schema_
    found = {feature.name: feature.cells for feature in schema.features}
    return {name: found[name] for name in schema.names}
