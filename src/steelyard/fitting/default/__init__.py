"""The default's weights: a hierarchy with strengths, chosen on rows that are held out.

``strengths`` compares strengths and ``column_pairs`` on the folds of ``held_out``, of
rows that ``row_sample`` draws and deals out. ``preconditioner`` has units for the
weights of a hierarchy, and for those of wide tables within bounds. ``uncertainty`` says
how sure a fit is, with ``centred_columns`` and ``within_bins``.

Folds may be given by the positions of their rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from steelyard._common.allowed import Check, listed, whole


def _are_positions(rows: Any) -> bool:
    """Whether something is a list or array of whole numbers from 0 on."""
    try:
        rows = np.asarray(rows)
    except ValueError:  # a ragged list
        return False
    is_whole = rows.size == 0 or rows.dtype.kind in "iu"
    return rows.ndim == 1 and is_whole and bool((rows >= 0).all())


POSITIONS = Check("positions", _are_positions, form=listed(whole(0)).form)
"""Rows by their positions, for folds that are given."""
