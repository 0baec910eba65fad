"""Some columns or rows of a table, in the library that the table came from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.table.frames import _array_from_rows, _as_frame

__all__ = ["take_columns", "take_rows"]


def take_columns(X: Any, positions: Sequence[int]) -> Any:
    """Return the columns at some positions, as a table of the same library.

    Lists of rows become an array. The table has been through ``as_table`` before, so
    that whatever is no table is refused there.
    """
    frame = _as_frame(X)
    if frame is not None:
        # Nothing is kept by dropping all: pandas would otherwise lose its rows.
        kept = frame[:, list(positions)] if positions else frame.drop(frame.columns)
        return kept.to_native()
    array = _array_from_rows(X) if isinstance(X, (list, tuple)) else X
    if not isinstance(array, np.ndarray):
        array = np.asarray(array)
    return array[:, np.asarray(positions, dtype=np.intp)]


def take_rows(X: Any, positions: NDArray[np.int64]) -> Any:
    """Return the rows at some positions, as a table of the same library.

    Lists of rows become an array, as in ``take_columns``.
    """
    frame = _as_frame(X)
    if frame is not None:
        return frame[positions].to_native()
    array = _array_from_rows(X) if isinstance(X, (list, tuple)) else X
    if not isinstance(array, np.ndarray):
        array = np.asarray(array)
    return array[positions]
