"""Predictions of a sum model for codes in the memory of a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.gpu.device_codes import ColumnPairs, DeviceCodes, padded
from steelyard.gpu.device_numbers import DeviceNumbers
from steelyard.kernels.cuda import gathering, passes
from steelyard.kernels.cuda.launching import (
    blocks_for,
    copies_for,
    empty,
    launch,
    most_shared,
    threads_for,
    to_device,
)
from steelyard.model.table_model import NBModel

# Cells of a joint table of two or more columns.
_MOST_JOINT = 1024

# Scores that are kept at a time, 128 MB of them.
_MOST_SCORES = 1 << 24

# Copies of tables in shared memory.
_COPIES = 8


def proba_on_device(model: NBModel, codes: DeviceCodes, out: Any = None) -> Any:
    """Posterior probabilities, (n, K) float64 on the device; in ``out`` if given."""
    if out is None:
        out = empty((codes.n_rows, model.n_classes), np.float64)
    is_narrow = codes.wide is None and codes.numbers is None
    if is_narrow and model.n_classes == 2 and np.isfinite(model.log_prior).all():
        tables = _known(_spread(model.table[:, 1] - model.table[:, 0], codes), codes)
        pairs = ColumnPairs.of(np.array(list(map(len, tables))), 1, _MOST_JOINT)
        if 8 * int(pairs.places[-1]) <= most_shared():
            _logistic(model, codes, pairs, pairs.join(tables), out)
            return out
    _softmax(model, codes, out)
    return out


def _known(
    tables: list[NDArray[np.float64]], codes: DeviceCodes
) -> list[NDArray[np.float64]]:
    """Leave out stored values that mean nothing, all but the first after the others."""
    known = (np.flatnonzero(stored).max(initial=0) for stored in codes.meanings)
    return [table[: last + 2] for table, last in zip(tables, known, strict=True)]


def _spread(
    table: NDArray[np.float64], codes: DeviceCodes
) -> list[NDArray[np.float64]]:
    """Return the table of each column by its stored values."""
    offsets = codes.schema.offsets
    both = zip(codes.features.tolist(), codes.meanings, strict=True)
    return [table[offsets[j] + stored] for j, stored in both]


def _logistic(
    model: NBModel,
    codes: DeviceCodes,
    pairs: ColumnPairs,
    table: NDArray[np.float64],
    out: Any,
) -> None:
    plan = pairs.plan(codes.narrow.shape[1] // 4)
    shared = 8 * len(table)
    launch(
        gathering.logistic,
        blocks_for(shared),
        shared,
        *(codes.words, codes.n_rows, *plan),
        *(to_device(table), float(model.log_prior[1] - model.log_prior[0])),
        *(float(model.link_scale), out),
    )


def _softmax(model: NBModel, codes: DeviceCodes, out: Any) -> None:
    width = model.n_classes
    kernel, copies, shared, given = _gatherer(model, codes)
    threads = threads_for(shared)
    blocks = blocks_for(shared, threads, width)
    numbers = DeviceNumbers(codes.numbers, model.gaussian)
    factors = to_device(model.gaussian.factors)
    base, n_rows = to_device(model.log_prior), padded(codes.n_rows)
    most = padded(min(_MOST_SCORES // width, n_rows))
    for row in range(0, n_rows, most):
        size = min(most, n_rows - row)
        inside = min(size, codes.n_rows - row)
        scores = empty((width, size), np.float64)
        place = (np.uint32(copies), base, row // 4, size // 4, scores)
        launch(kernel, blocks, shared, *given, *place, threads=threads)
        if codes.wide is not None:
            wide = codes.wide, to_device(codes.wide_starts), to_device(model.table)
            launch(passes.gather_wide, blocks_for(0), 0, *wide, row, inside, scores)
        if codes.numbers is not None:
            numbers.add(factors, row, inside, scores)
        rows = (row, codes.n_rows, out)
        scale = float(model.link_scale)
        launch(gathering.softmax, blocks_for(0), 0, scores, scale, *rows)


def _gatherer(
    model: NBModel, codes: DeviceCodes
) -> tuple[Any, int, int, tuple[Any, ...]]:
    """Return a kernel, copies of its table, their bytes, and what it is given first."""
    # Without narrow columns there is one of zeros, which says nothing.
    spread, words = _spread(model.table, codes), codes.words_or_zeros()
    known = _known(spread, codes) or [np.zeros((1, model.n_classes))]
    pairs = ColumnPairs.of(np.array(list(map(len, known))), 1, _MOST_JOINT)
    n_bytes = 8 * int(pairs.places[-1])
    if n_bytes <= most_shared():
        plan, table = pairs.plan(words.size // len(known)), pairs.join(known)
        copies = copies_for(n_bytes, _COPIES)
        given = (words, *plan, to_device(table.T))
        return gathering.gather_pairs, copies, copies * n_bytes, given
    starts = np.cumsum([0, *map(len, spread)])[:-1].astype(np.uint32)
    given = (words, to_device(starts), to_device(np.concatenate(spread).T))
    return passes.gather_far, 1, 0, given
