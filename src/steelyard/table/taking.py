"""Some columns or rows of a table, in the library that the table came from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.table.frames import array_from_rows, as_frame

__all__ = ["take_columns", "take_rows"]


def take_columns(X: Any, positions: Sequence[int]) -> Any:
    """Return the columns at some positions, as a table of the same library.

    Lists of rows become an array. The table has been through ``as_table`` before, so
    that whatever is no table is refused there.
    """
    frame = as_frame(X)
    if frame is None:
        return _array(X)[:, np.asarray(positions, dtype=np.intp)]
    # Nothing is kept by dropping all: pandas would otherwise lose its rows.
    kept = frame[:, list(positions)] if positions else frame.drop(frame.columns)
    return kept.to_native()


def take_rows(X: Any, positions: NDArray[np.int64]) -> Any:
    """Return the rows at some positions, as ``take_columns`` does columns."""
    frame = as_frame(X)
    return _array(X)[positions] if frame is None else frame[positions].to_native()


def _array(X: Any) -> NDArray[Any]:
    array = array_from_rows(X) if isinstance(X, (list, tuple)) else X
    return array if isinstance(array, np.ndarray) else np.asarray(array)
