"""Rows dealt to folds, whatever their order and however they are repeated."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.kernels import leave_one_out as kernels
from steelyard.model.training import TrainingSet
from steelyard.table.codes import Codes, code_dtype


def code_columns(codes: Codes) -> NDArray[Any]:
    """Codes by column, shape (coded, n)."""
    schema = codes.schema
    most = max((schema.features[j].n_codes for j in schema.coded), default=1)
    dtype = code_dtype(most)
    out = np.empty((len(schema.coded), codes.n_rows), dtype=dtype)
    for block in codes.blocks:
        target = np.searchsorted(schema.coded, block.features)
        look_up = np.empty((0, 0), dtype) if block.look_up is None else block.look_up
        kernels.transpose_codes(block.values, look_up.astype(dtype), target, out)
    return out


def deal(
    training: TrainingSet, n_folds: int, rng: np.random.RandomState
) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.float64]]:
    """Deal rows to folds: positions of rows, their folds, and their weights there.

    Equal rows of a class are merged and put in an order that depends on their content
    alone. Then each class is shuffled, and one class after the other dealt out in
    turns, so that folds have the same size and the same classes. With weights that are
    not whole numbers rows are not merged, but each is dealt as a whole.
    """
    labels, u = training.labels, training.sample_weight
    u = np.ones(len(labels)) if u is None else u
    first, unit = distinct_rows(training.codes, labels)
    if not (u == np.rint(u)).all():
        sorted_rows = np.lexsort((u, unit))
        rows = sorted_rows[_shuffled_by_class(labels[sorted_rows], rng)]
        return rows, (np.arange(len(rows)) % n_folds).astype(np.uint32), u[rows]
    order = _shuffled_by_class(labels[first], rng)
    amount = np.bincount(unit, u).astype(np.float64)[order]
    # A unit takes the places from `start` to `stop` of the deal; fold f has those that
    # leave the remainder f.
    stop = np.cumsum(amount)
    start = stop - amount
    turns = np.arange(float(n_folds))
    shares = np.ceil((stop[:, None] - turns) / n_folds) - np.ceil(
        (start[:, None] - turns) / n_folds
    )
    entry, turn = np.nonzero(shares)
    return first[order][entry], turn.astype(np.uint32), shares[entry, turn]


def sample_rows(
    training: TrainingSet, most: int, rng: np.random.RandomState
) -> NDArray[np.int64]:
    """Draw rows without looking at their order, all if there are no more.

    A row is drawn by a hash of its content, its weight and how many equal rows came
    before it: whatever the order of the table, equal rows are drawn as often.
    """
    if training.n_rows <= most:
        return np.arange(training.n_rows)
    key = _mixed(np.full(training.n_rows, drawing_seed(rng)), training.labels)
    for block in training.codes.blocks:
        for k, j in enumerate(block.features.tolist()):
            values = block.values[:, k]
            codes = values if block.look_up is None else block.look_up[k][values]
            key = _mixed(key, codes) + np.uint64(j)
    for g in range(training.codes.n_numbers):
        # Zeros of either sign are equal, and so are all missing ones.
        number = training.codes.number_column(g) + 0.0
        number = np.where(np.isnan(number), np.nan, number)
        key = _mixed(key, number.view(np.uint64))
    if training.sample_weight is not None:
        key = _mixed(key, training.sample_weight.view(np.uint64))
    order = np.argsort(key, kind="stable")
    is_new = np.concatenate([[True], np.diff(key[order]) != 0])
    first = np.flatnonzero(is_new)[np.cumsum(is_new) - 1]
    turn = np.empty(len(key), dtype=np.int64)
    turn[order] = np.arange(len(key)) - first
    drawn = np.argpartition(_mixed(key, turn), most)[:most]
    return np.sort(drawn)


def drawing_seed(rng: np.random.RandomState) -> np.uint64:
    """Return the number by which the hashes of a drawing start."""
    return np.uint64(rng.randint(1 << 31))


def _mixed(key: NDArray[np.uint64], values: NDArray[Any]) -> NDArray[np.uint64]:
    """Mix values into hashes, by the finaliser of MurmurHash3."""
    key = key ^ values.astype(np.uint64)
    key = (key ^ (key >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    key = (key ^ (key >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return key ^ (key >> np.uint64(33))


def distinct_rows(
    codes: Codes, labels: NDArray[np.uint32]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first row of each kind, in order of content, and each row's kind."""
    parts = [labels[:, None].astype(">u4"), code_columns(codes).T]
    if codes.n_numbers:
        # Zeros of either sign are equal, and so are all missing ones.
        numbers = codes.number_rows(slice(None)) + 0.0
        parts.append(np.where(np.isnan(numbers), np.nan, numbers))
    content = np.concatenate(
        [
            np.ascontiguousarray(part).view(np.uint8).reshape(len(labels), -1)
            for part in parts
        ],
        axis=1,
    )
    keys = np.ascontiguousarray(content).view(f"V{content.shape[1]}").ravel()
    _, first, unit = np.unique(keys, return_index=True, return_inverse=True)
    return first, unit


def _shuffled_by_class(
    labels: NDArray[np.uint32], rng: np.random.RandomState
) -> NDArray[np.int64]:
    """Positions, class by class, in random order within each."""
    key = rng.permutation(len(labels))
    return np.lexsort((key, labels))
