"""Cross-validation: assignment of rows to folds, and log-loss of held-out rows.

Everything is learned from scratch in each fold: encodings, counts and weights.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp
from sklearn.utils import check_random_state

from steelyard._common.allowed import Check, listed, whole
from steelyard._common.arrays import Floats, Ints, Labels
from steelyard.exceptions import ParameterError
from steelyard.fitting.default.sampling import (
    Keys,
    code_hashes,
    drawing_seed,
    mixed,
    number_hashes,
    ranks,
    sample_rows,
    sortable_bytes,
)
from steelyard.model.training import TrainingSet
from steelyard.table.codes import Codes, comparable
from steelyard.table.frames import Table

# Rows of a cross-validation; for longer tables the number grows by this power of the
# length. About that many are held out.
MAX_ROWS = 5_000
_ROW_GROWTH = 1.0 / 3.0

# Number of fold assignments, up to a number of rows and of cells: the fewer rows, the
# larger the variance between assignments. Main effects, which take fewer fits than
# interactions, are compared on more of them.
_ASSIGNMENTS = ((4, 500, 6_000), (2, 500, 25_000))
_MAIN_EFFECT_ASSIGNMENTS = ((4, 1_000, 8_000), (2, 2_000, 50_000))

# Ridge on the log of the scale of posteriors, in rows, the range of that log, and the
# largest absolute log posterior.
_SCALE_ROWS = 2.0
_LOG_SCALES = (np.log(0.1), np.log(4.0))
_MAX_LOG_POSTERIOR = 100.0

# Kinds of attributes that keep the number itself.
_EXACT_KINDS = ("gaussian", "gaussian-relative", "linear")

# Positions of rows, and their weights.
_Share = tuple[Ints, Floats]


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


@dataclass(frozen=True)
class Fold:
    """Rows to learn from, encoded by themselves, and rows to predict."""

    training: TrainingSet
    codes: Codes
    """Codes of the rows to predict."""

    rows: Ints
    """Their positions among all training rows."""

    weights: Floats


@dataclass(frozen=True)
class HeldOutFolds:
    """Folds of training rows; arrays by row follow the rows to predict, in order."""

    training: TrainingSet
    folds: tuple[Fold, ...]
    assignments: Ints
    """The fold assignment of each fold, from 0 on; rows are in one fold of each."""

    n_for_interactions: int = 1
    """How many of the assignments, the first ones, interactions are compared on."""

    @classmethod
    def of(cls, training: TrainingSet, cv: Any, random_state: Any) -> HeldOutFolds:
        """Assign rows to ``cv`` folds, or take folds that are given by positions.

        Of a long table a sample of rows is drawn first; no other row is read later.
        """
        folds, assignments, rng = [], [], check_random_state(random_state)
        if isinstance(cv, Integral):
            n_rows = int(MAX_ROWS * max(training.n_rows / MAX_ROWS, 1.0) ** _ROW_GROWTH)
            rows = sample_rows(training, n_rows, rng)
            # Each fold learns its encoding from the columns behind the codes.
            needs_table = training.encoder.uses_labels or _inexact_columns(training)
            training = training.in_memory(rows, bool(needs_table))
        elif not isinstance(training.table, Table):
            raise ParameterError(
                "`cv` names rows by position, but this table is read from a source, "
                "whose rows have no order. Give a number of folds."
            )
        for number, (rest, amounts), (fold, weights) in _splits(training, cv, rng):
            # A class without training rows has no bearing on the strengths.
            has_class = np.isin(training.labels[fold], training.labels[rest])
            fold, weights = fold[has_class], weights[has_class]
            if fold.size and len(np.unique(training.labels[rest])) > 1:
                learned_from, codes = _encoded(training, rest, amounts, fold)
                folds.append(Fold(learned_from, codes, fold, weights))
                assignments.append(number)
        of_folds = np.array(assignments, dtype=np.int64)
        return cls(training, tuple(folds), of_folds, _n_assignments(training))

    def first_assignments(self) -> HeldOutFolds:
        """Return the fold assignments that interactions are compared on."""
        if self.n_assignments <= self.n_for_interactions:
            return self
        kept = self.assignments[self.assignments < self.n_for_interactions]
        share = self.n_assignments / self.n_for_interactions
        folds = [replace(f, weights=share * f.weights) for f in self.folds[: len(kept)]]
        return replace(self, folds=tuple(folds), assignments=kept)

    @cached_property
    def rows(self) -> Ints:
        """Positions of the rows among all training rows."""
        return np.concatenate([fold.rows for fold in self.folds])

    @cached_property
    def weights(self) -> Floats:
        """Weights of the rows."""
        return np.concatenate([fold.weights for fold in self.folds])

    @cached_property
    def labels(self) -> Labels:
        """Classes of the rows."""
        return self.training.labels[self.rows]

    @cached_property
    def factors(self) -> Floats:
        """Class weights of the rows, which are in the log-loss as well."""
        factors = self.training.class_factors
        return np.ones(len(self.rows)) if factors is None else factors[self.labels]

    @property
    def n_assignments(self) -> int:
        """Number of fold assignments."""
        return len(np.unique(self.assignments))

    def by_assignment(self) -> list[tuple[slice, Ints]]:
        """Return the rows of each fold assignment, and the ends of its folds."""
        out, first = [], 0
        sizes = np.array([len(fold.rows) for fold in self.folds])
        for number in np.unique(self.assignments):
            ends = np.cumsum(sizes[self.assignments == number])
            out.append((slice(first, first + int(ends[-1])), ends))
            first += int(ends[-1])
        return out

    def judge(self, log_proba: Floats) -> Judgement:
        """Find the best scale (inverse temperature) of posteriors, and their log-loss.

        A model is overconfident about the rows that it was learned from; held-out rows
        show by how much. The scale is shrunk towards one by a weight of a few rows.
        Posteriors may be those of the first folds alone.
        """
        n = len(log_proba)
        weights, factors, labels = self.weights[:n], self.factors[:n], self.labels[:n]
        u = weights * factors
        # From the largest down, whatever the scale; classes first, to add them up fast.
        below = np.maximum(log_proba, -_MAX_LOG_POSTERIOR).T
        below = np.ascontiguousarray(below - below.max(axis=0))
        of_truth, cells = below[labels, np.arange(n)], np.empty_like(below)

        def losses(log_scale: float) -> Floats:
            scale = float(np.exp(log_scale))
            np.multiply(below, scale, out=cells)
            np.exp(cells, out=cells)
            return np.log(cells.sum(axis=0)) - scale * of_truth

        best = minimize_scalar(
            lambda t: u @ losses(t) + _SCALE_ROWS * t * t,
            bounds=_LOG_SCALES,
            method="bounded",
            options={"xatol": 1e-3},
        )
        error = float(u @ (log_proba.argmax(axis=1) != labels) / u.sum())
        scale, of_rows = float(np.exp(best.x)), losses(float(best.x))
        return Judgement(log_proba, of_rows, weights, factors, scale, error)


@dataclass(frozen=True)
class Judgement:
    """Log-loss of held-out rows, for one candidate."""

    log_proba: Floats
    losses: Floats
    """Log-loss of each row, at the best scale."""

    weights: Floats
    factors: Floats
    """Class weights: a row of weight 2 counts as two rows, one of factor 2 does not."""

    scale: float
    error: float

    @property
    def log_loss(self) -> float:
        """Mean log-loss."""
        u = self.weights * self.factors
        return float(u @ self.losses / u.sum())

    def beside(self, other: Judgement) -> Judgement:
        """Restrict another judgement to the rows of this one."""
        by_row, n = ("log_proba", "losses", "weights", "factors"), len(self.losses)
        return replace(other, **{name: getattr(other, name)[:n] for name in by_row})

    def is_better(
        self, other: Judgement, errors: float = 1.0, minimum: float = 0.0
    ) -> bool:
        """Whether the log-loss is lower by some standard errors and a minimum."""
        gain = other.log_loss - self.log_loss
        return gain > max(errors * self.standard_error(other), minimum)

    def standard_error(self, other: Judgement | None = None) -> float:
        """Return the standard error of the log-loss, or of its difference."""
        losses = self.losses - (0.0 if other is None else other.losses)
        u = self.weights * self.factors
        total = u.sum()
        mean = u @ losses / total
        spread = (u * self.factors) @ (losses - mean) ** 2 / total
        return float(np.sqrt(spread / max(total - 1.0, 1.0)))

    def record(self) -> dict[str, float]:
        """Return a record for ``strength_path_``."""
        return {
            "log_loss": self.log_loss,
            "standard_error": self.standard_error(),
            "error": self.error,
            "scale": self.scale,
        }

    def posteriors(self) -> Floats:
        """Posteriors at the best scale, shape (n, K)."""
        scores = self.scale * np.maximum(self.log_proba, -_MAX_LOG_POSTERIOR)
        return np.exp(scores - logsumexp(scores, axis=1, keepdims=True))


def _encoded(
    training: TrainingSet, rest: Ints, amounts: Floats, fold: Ints
) -> tuple[TrainingSet, Codes]:
    """Return the rows to learn from as a training set, and codes of held-out rows.

    Cut points that do not depend on labels are those of all rows: they leak nothing
    about the classes of held-out rows.
    """
    weights = None if (amounts == 1.0).all() else amounts
    if not training.encoder.uses_labels:
        learned_from = replace(training.take(rest), sample_weight=weights)
        return learned_from, training.codes.take(fold)
    assert training.table is not None
    with warnings.catch_warnings():
        # Warnings about the table were given for the whole table.
        warnings.simplefilter("ignore")
        learned_from = training.re_encoded(rest, weights)
        return learned_from, learned_from.encoder.encode(training.table.take(fold))


def _splits(
    training: TrainingSet, cv: Any, rng: np.random.RandomState
) -> Iterator[tuple[int, _Share, _Share]]:
    """Yield the number of an assignment, training rows and held-out rows, weighted."""
    if not isinstance(cv, Integral):
        u = training.sample_weight
        u = np.ones(training.n_rows) if u is None else u
        for split in cv:
            rest, fold = (_among_kept(training, rows) for rows in split)
            yield 0, (rest, u[rest]), (fold, u[fold])
        return
    numbered = _with_numbers(training)
    n_assignments = _n_assignments(training, _MAIN_EFFECT_ASSIGNMENTS)
    # Of a long table some folds are enough.
    n_folds = min(int(cv), max(2, -(-int(cv) * MAX_ROWS // training.n_rows)))
    for number in range(n_assignments):
        rows, fold_of, amount = assign_folds(numbered, int(cv), rng)
        for k in range(n_folds):
            is_out = fold_of == k
            held_out = rows[is_out], amount[is_out] / n_assignments
            yield number, (rows[~is_out], amount[~is_out]), held_out


def _n_assignments(
    training: TrainingSet, assignments: tuple[tuple[int, int, int], ...] = _ASSIGNMENTS
) -> int:
    """Return the number of fold assignments; a row of weight two counts as two."""
    total = training.given_counts.total
    cells = total * training.schema.n_columns
    for n, max_rows, max_cells in assignments:
        if total <= max_rows and cells <= max_cells:
            return n
    return 1


def _with_numbers(training: TrainingSet) -> TrainingSet:
    """Return rows with the numbers of all numeric columns.

    Equal rows are merged before they are assigned to folds. Each fold learns separate
    cut points, so that rows in the same bins are not equal.
    """
    numeric = _inexact_columns(training)
    if not numeric:
        return training
    densities = dict.fromkeys(numeric, "gaussian")
    encoding = replace(training.preparation.encoding, numeric=densities, missing="skip")
    encoder = encoding.encoder(training.n_jobs)
    u, table = training.sample_weight, training.table
    assert isinstance(table, Table)
    with warnings.catch_warnings():
        # Warnings about the table were given before.
        warnings.simplefilter("ignore")
        codes = encoder.learn(table, training.labels, training.n_classes, u)
    return replace(training, codes=codes, encoder=encoder)


def _inexact_columns(training: TrainingSet) -> list[int]:
    """Numeric columns, except if the codes of each keep its numbers."""
    nominal, features = ("categorical", "interaction"), training.schema.features
    numeric = [j for j, feature in enumerate(features) if feature.kind not in nominal]
    are_exact = all(
        features[j].kind in _EXACT_KINDS and features[j].fill is None for j in numeric
    )
    return [] if are_exact else numeric


def _among_kept(training: TrainingSet, rows: Any) -> Ints:
    """Turn positions in the user's table into positions among the training rows."""
    rows = np.asarray(rows, dtype=np.int64)
    kept = np.arange(training.n_rows)
    if training.is_kept is not None:
        kept = np.flatnonzero(training.is_kept)
    position = np.minimum(np.searchsorted(kept, rows), len(kept) - 1)
    return np.asarray(position[kept[position] == rows])


# ---------------------------------------------------------------- fold assignment


def assign_folds(
    training: TrainingSet, n_folds: int, rng: np.random.RandomState
) -> tuple[Ints, Labels, Floats]:
    """Assign rows to folds: positions of rows, their folds, and their weights there.

    Rows of a class are in the order of a hash of their content, whatever the order and
    the names of columns and of classes are, and each fold takes a run of them, so that
    a row more or less leaves nearly all others in their folds. Folds have the same size
    and the same classes. Equal rows are merged: each fold has as many whole parts of
    them as there are, and what is left is assigned one by one, as is every row with
    weights that are not whole numbers. New rows have such twins too.
    """
    labels, u = training.labels, training.sample_weight
    u = np.ones(len(labels)) if u is None else u
    first, kind = distinct_rows(training.codes, labels)
    keys, rank = _content_keys(training.codes, labels, first)
    keys = mixed(drawing_seed(rng), keys)
    if not (u == np.rint(u)).all():
        rows = np.lexsort((u, kind))
        fold = _runs(kind[rows], rank[labels[rows]], keys, n_folds)
        order = np.lexsort((keys[kind[rows]], fold))
        return rows[order], fold[order], u[rows[order]]
    whole, remainder = np.divmod(np.bincount(kind, u), n_folds)
    shares = np.repeat(whole[:, None], n_folds, axis=1)
    single = np.repeat(np.arange(len(first)), remainder.astype(np.int64))
    fold = _runs(single, rank[labels[first[single]]], keys, n_folds)
    np.add.at(shares, (single, fold), 1.0)
    order = np.argsort(keys, kind="stable")
    entry, folds = np.nonzero(shares[order])
    rows = order[entry]
    return first[rows], folds.astype(np.uint32), shares[rows, folds]


def _runs(kinds: Ints, classes: Ints, keys: Keys, n_folds: int) -> Labels:
    """Return the folds of rows, sorted by kind, whose keys are given.

    One class after the other, fold f has room for the positions that leave the
    remainder f; in the order of keys, each fold takes a run of the rows of a class.
    """
    n_earlier = np.arange(len(kinds)) - np.searchsorted(kinds, kinds)
    order = np.lexsort((mixed(keys[kinds], n_earlier), classes))
    position = np.arange(len(kinds))
    by_fold = np.lexsort((position % n_folds, classes[order]))
    fold = np.empty(len(kinds), dtype=np.uint32)
    fold[order] = by_fold % n_folds
    return fold


def _content_keys(codes: Codes, labels: Labels, first: Ints) -> tuple[Keys, Ints]:
    """Return keys of kinds of rows, and ranks of classes, by what they contain.

    The key of a kind is a hash of its cells in any order, so that a row more or less
    changes no other key. Only kinds with the same cells, in other columns, are
    distinguished by the columns, and these by what they contain.
    """
    classes = labels[first]
    sizes = np.bincount(classes)
    cells = []
    for j, feature in enumerate(codes.schema.features):
        if feature.is_coded:
            cells.append(code_hashes(feature)[codes.column(j)[first]])
    for g in range(codes.n_numbers):
        cells.append(number_hashes(codes.number_column(g)[first]))
    # Columns of one value, or none, are ignored.
    cells = [column for column in cells if (column != column[0]).any()]
    keys = mixed(np.uint64(7), sum(cells, np.zeros(len(first), dtype=np.uint64)))
    _, group, group_sizes = np.unique(
        mixed(keys, classes), return_inverse=True, return_counts=True
    )
    is_shared = group_sizes[group] > 1
    if is_shared.any():
        rows = mixed(keys, ranks(sizes.tolist())[classes])
        contents = [
            sortable_bytes(*np.unique(mixed(rows, column), return_counts=True))
            for column in cells
        ]
        salts = mixed(np.uint64(1), ranks(contents))
        for salt, column in zip(salts, cells, strict=True):
            keys[is_shared] += mixed(salt, column[is_shared])
    totals = np.zeros(len(sizes), dtype=np.uint64)
    np.add.at(totals, classes, keys)
    return keys, np.argsort(np.lexsort((totals, sizes)), kind="stable")


def distinct_rows(codes: Codes, labels: Labels) -> tuple[Ints, Ints]:
    """Return the first row of each kind, in order of content, and each row's kind."""
    parts = [labels[:, None].astype(">u4"), codes.by_column().T]
    if codes.n_numbers:
        parts.append(comparable(codes.number_rows(slice(None))))
    as_bytes = [
        np.ascontiguousarray(part).view(np.uint8).reshape(len(labels), -1)
        for part in parts
    ]
    content = np.ascontiguousarray(np.concatenate(as_bytes, axis=1))
    keys = content.view(f"V{content.shape[1]}").ravel()
    _, first, kind = np.unique(keys, return_index=True, return_inverse=True)
    return first, kind
