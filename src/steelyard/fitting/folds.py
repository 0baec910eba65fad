"""Rows dealt to folds, whatever their order and however they are repeated."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from steelyard.model.training import TrainingSet
from steelyard.table.codes import Codes


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


def distinct_rows(
    codes: Codes, labels: NDArray[np.uint32]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first row of each kind, in order of content, and each row's kind."""
    parts = [labels[:, None].astype(">u4"), codes.by_column().T]
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
