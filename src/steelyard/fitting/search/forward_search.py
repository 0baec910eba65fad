"""Forward selection by the average log-likelihood of the classes, as SPSS does it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats, Ints, Labels
from steelyard._common.greedy import Extended, OutOfTimeError, Subset
from steelyard._common.threads import pieces, row_blocks, run, thread_count
from steelyard.exceptions import ParameterError, TableError, warn_user
from steelyard.kernels import searching
from steelyard.model.table_model import NBModel, spread_table
from steelyard.model.training import TrainingSet
from steelyard.proba.counts import Counts
from steelyard.table.codes import CodeBlock, Codes, FeatureTable, code_dtype
from steelyard.table.frames import as_table
from steelyard.table.labels import known_labels, labels_of_rows
from steelyard.table.rows import labelled_rows
from steelyard.table.schema import TableSchema, feature_labels
from steelyard.table.treatments import column_positions


@dataclass
class Likelihood:
    r"""Rows with their scores under a growing subset of the attributes.

    .. math:: S_{ic} = \log \pi_c + \sum_{j \in J} \log \theta_{j,x_{ij}|c}

    A candidate is tried without an exponential: with the posteriors
    :math:`P_{ic}` of the subset so far,

    .. math:: \log \sum_c e^{S_{ic}} \theta_{k,x_{ik}|c} =
        \log \sum_c e^{S_{ic}} + \log \sum_c P_{ic} \theta_{k,x_{ik}|c}

    and products of many of the last sums need one logarithm.
    """

    codes: Codes
    model: NBModel
    weights: Floats | None = None
    n_jobs: int | None = None
    scores: Floats = field(init=False)
    is_seen: NDArray[np.bool_] = field(init=False)
    """Rows with a known cell among the attributes of the subset."""

    def __post_init__(self) -> None:
        n_rows, workspace = self.codes.n_rows, self.codes.workspace
        self.scores = workspace.zeros((n_rows, self.model.n_classes), np.float64)
        self.scores[:] = self.model.log_prior
        self.is_seen = workspace.zeros(n_rows, np.bool_)
        table = np.exp(self.model.table)
        self._size = 0
        self._tables = [spread_table(b, self.codes, table) for b in self.codes.blocks]

    @property
    def total(self) -> float:
        """Total weight of the rows."""
        return float(self.codes.n_rows if self.weights is None else self.weights.sum())

    def grow(self, members: tuple[int, ...]) -> None:
        """Take those attributes into the subset that it lacks."""
        for feature in members[self._size :]:
            self.add(feature)

    def add(self, feature: int) -> None:
        """Take an attribute into the subset."""
        self._size += 1
        first = self.codes.offsets[feature]
        column = self.codes.column(feature)

        def work(block: slice) -> None:
            for rows in pieces(block):
                at = first + column[rows].astype(np.int64)
                self.scores[rows] += self.model.table[at]
                self.is_seen[rows] |= column[rows] != 0

        for _ in run(work, row_blocks(len(column)), thread_count(self.n_jobs)):
            pass

    def norm(self) -> float:
        r"""Return :math:`\sum_i u_i \log \sum_c e^{S_{ic}}`."""
        return self._pass(np.empty(0, dtype=np.int64))[0]

    def norms_with(self, candidates: Ints, deadline: float = np.inf) -> Floats:
        """Return the norm that each candidate would give, shape (candidates,)."""
        norm, gains = self._pass(candidates, deadline)
        return norm + gains[candidates]

    def log_likelihood(self, labels: Labels) -> float:
        """Average log posterior probability of the true classes."""
        of_truth = self.scores[np.arange(len(labels)), labels]
        return (
            float(np.average(of_truth, weights=self.weights)) - self.norm() / self.total
        )

    def seen_weight(self) -> float:
        """Weight of the rows with a known cell in the subset."""
        return self._weight_of(self.is_seen)

    def seen_weights_with(self, candidates: Ints) -> Floats:
        """Return the same for the subset with each candidate."""
        blind = ~self.is_seen
        out = np.full(len(candidates), self.seen_weight())
        for k, feature in enumerate(candidates if blind.any() else ()):
            out[k] += self._weight_of(blind & (self.codes.column(int(feature)) != 0))
        return out

    def _weight_of(self, rows: NDArray[np.bool_]) -> float:
        return float(rows.sum() if self.weights is None else self.weights[rows].sum())

    def _pass(self, candidates: Ints, deadline: float = np.inf) -> tuple[float, Floats]:
        """Return the norm of the rows, and what each candidate would add: (d,)."""
        codes = self.codes
        sought = [
            np.flatnonzero(np.isin(block.features, candidates))
            for block in codes.blocks
        ]

        def try_rows(rows: slice) -> tuple[float, Floats]:
            u = np.empty(0) if self.weights is None else self.weights[rows]
            posterior = self.scores[rows].copy()
            norm = searching.log_total(posterior, u)
            gains = np.zeros(len(codes.schema))
            for block, (starts, table), columns in zip(
                codes.blocks, self._tables, sought, strict=True
            ):
                out = np.zeros(len(block.features))
                sizes = block.sizes(codes.offsets).astype(np.uint64)
                cells = block.values[rows], starts, sizes, columns, table
                searching.try_columns(*cells, posterior, u, out)
                gains[block.features] += out
            return norm, gains

        def work(block: slice) -> tuple[float, Floats]:
            norms, gains = zip(*map(try_rows, pieces(block)), strict=True)
            return sum(norms), reduce(add, gains)

        total, gains = 0.0, np.zeros(len(codes.schema))
        for norm, part in run(
            work, row_blocks(codes.n_rows), thread_count(self.n_jobs)
        ):
            total += norm
            gains += part
            if time.monotonic() > deadline:
                raise OutOfTimeError
        return total, gains


def simulate(model: NBModel, n_rows: int, rng: np.random.RandomState) -> Codes:
    """Draw rows from a model: a class by the prior, then every cell given the class.

    Natarajan and Pednault (2001) use such rows in place of data too large for memory.
    """
    schema = model.schema
    labels = rng.choice(model.n_classes, n_rows, p=_shares(np.exp(model.log_prior)))
    widest = max((feature.n_codes for feature in schema.features), default=1)
    values = np.zeros((n_rows, len(schema)), dtype=code_dtype(widest), order="F")
    for j, feature in enumerate(schema.features):
        first = schema.offsets[j] + 1
        theta = np.exp(model.table[first : first + feature.n_values])
        for c in range(model.n_classes):
            rows = np.flatnonzero(labels == c)
            if feature.n_values and rows.size:
                shares = _shares(theta[:, c])
                drawn = rng.choice(feature.n_values, rows.size, p=shares)
                values[rows, j] = drawn + 1
    block = CodeBlock(values, np.arange(len(schema), dtype=np.int64))
    return Codes(schema, n_rows, (block,))


def _shares(values: Floats) -> Floats:
    return np.asarray(values / values.sum())


@dataclass
class AverageLikelihood:
    r"""Average log-likelihood of the classes under a growing subset.

    .. math:: \bar l(J) = A(J) + B(J), \qquad
        A(J) = \frac1n \sum_c N_c \log \pi_c +
               \frac1n \sum_{c,\,j \in J,\,v} N_{jvc} \log \theta_{j,v|c}, \qquad
        B(J) = -\frac1n \sum_i \log \sum_c e^{S_{ic}}

    A needs counts alone; B needs the training rows, or simulated ones.
    """

    counts: Counts
    rows: Likelihood
    """Rows that give B."""

    by_observed: bool = False
    """Whether B is divided by the weight of the rows with a known cell in the subset
    instead of the weight of all."""

    deadline: float = np.inf

    @cached_property
    def _shares_of_a(self) -> Floats:
        """What each attribute adds to A, shape (d,)."""
        table = self.rows.model.table
        by_code = (self.counts.by_code * table).sum(axis=1)
        collected = FeatureTable(table, self.counts.schema.offsets).collect(by_code)
        return np.asarray(collected / self.counts.total)

    def start(self, forced: list[int]) -> Subset:
        """Return the subset of the forced attributes."""
        self.rows.grow(tuple(forced))
        prior = self.counts.by_class @ self.rows.model.log_prior
        a = prior / self.counts.total + self._shares_of_a[forced].sum()
        # Without predictors the sum is that of the priors, and its logarithm 0.
        b = 0.0
        if forced:
            b = -self.rows.norm() / self._divisor(self.rows.seen_weight)
        return Subset(tuple(forced), 0.0, _facts(float(a), b))

    def extend(self, subset: Subset, rest: list[int]) -> Extended:
        """Return scores and facts of a subset with each of the rest."""
        if time.monotonic() > self.deadline:
            raise OutOfTimeError
        self.rows.grow(subset.members)
        candidates = np.array(rest, dtype=np.int64)
        norms = self.rows.norms_with(candidates, self.deadline)
        b = -norms / self._divisor(self.rows.seen_weights_with, candidates)
        added = self._shares_of_a[candidates]
        return added + b, _facts(subset.facts["a"] + added, b)

    def _divisor(self, seen: Any, *given: Any) -> Any:
        return seen(*given) if self.by_observed else self.rows.total


def _facts(a: Any, b: Any) -> dict[str, Any]:
    return {"average_log_likelihood": a + b, "a": a, "b": b}


# ------------------------------------------------------------- predictors and rows


@dataclass(frozen=True)
class HeldOutRows:
    """Encoded test rows with their classes."""

    codes: Codes
    labels: Labels
    n_labelled: int
    """How many rows have a label, with a known predictor or without."""

    n_unlabelled: int

    def judged(
        self, path: list[Subset], model: NBModel, n_jobs: int | None
    ) -> list[Subset]:
        """Add the log-likelihood of these rows to what is known of subsets."""
        rows, out = Likelihood(self.codes, model, None, n_jobs), []
        for step in path:
            rows.grow(step.members)
            tested = {"test_log_likelihood": rows.log_likelihood(self.labels)}
            out.append(replace(step, facts={**step.facts, **tested}))
        return out


def usable_predictors(
    counts: Counts, forced: Any, excluded: Any
) -> tuple[list[int], list[int]]:
    """Return the forced predictors, and all that can be used.

    A predictor needs two observed categories.
    """
    schema = counts.schema
    if schema.gaussian.size:
        raise ParameterError(
            "SPSSNaiveBayes needs categories: cut numbers into bins with "
            "numeric='equal-width-merged' or a discretizer, instead of densities."
        )
    kept = _columns(forced, schema, "forced")
    left_out = _columns(excluded, schema, "excluded")
    both = [j for j in kept if j in left_out]
    if both:
        raise ParameterError(
            f"`forced` and `excluded` both name {feature_labels(schema, both)}. A "
            "column can be one of them."
        )
    parts = np.split(counts.by_code.sum(axis=1), schema.offsets[1:-1])
    usable = [j for j, part in enumerate(parts) if np.count_nonzero(part[1:]) > 1]
    useless = [j for j in kept if j not in usable]
    if useless:
        warn_user(
            f"Forced predictors {feature_labels(schema, useless)} have fewer than two "
            "observed categories and are left out.",
            UserWarning,
        )
    candidates = [j for j in usable if j not in left_out]
    if not candidates:
        warn_user(
            "No column can be used as a predictor: all are excluded or have fewer than "
            "two observed categories. The model predicts the largest class.",
            UserWarning,
        )
    return [j for j in kept if j in usable], candidates


def _columns(columns: Any, schema: TableSchema, setting: str) -> list[int]:
    """Positions of the columns that a setting names, each once."""
    if columns is None:
        return []
    positions = column_positions(columns, len(schema), schema.names, setting)
    return list(dict.fromkeys(positions))


def with_known_cells(training: TrainingSet, candidates: list[int]) -> TrainingSet:
    """Leave out the rows without a known predictor, and classes that lose all rows."""
    if not candidates:
        return training
    rows = training.workspace.rows_where(
        training.n_rows,
        lambda rows: _rows_with_cells(training.codes.part(rows), candidates),
    )
    if len(rows) == training.n_rows:
        return training
    taken = training.take(rows).without_empty_classes()
    if taken.n_classes < 2:
        raise TableError(
            "Fewer than two classes are left when rows without any known predictor are "
            "left out."
        )
    return taken


def encode_test_rows(
    X: Any, y: Any, training: TrainingSet, candidates: list[int], owner: object
) -> HeldOutRows:
    """Encode test rows that have a label and a known predictor."""
    table = as_table(X, owner)
    n_given = table.n_rows
    y = labels_of_rows(y, n_given)
    table, y, _ = labelled_rows(table, y, None)
    codes = training.encoder.encode(table)
    advice = "Leave those test rows out."
    labels = known_labels(y, training.classes, "y_test", advice)
    has_cells = _rows_with_cells(codes, candidates)
    if not has_cells.any():
        raise TableError(
            "No row of X_test has a known cell among the predictors. Leave X_test and "
            "y_test out, or check that categories are written alike."
        )
    n_unlabelled = n_given - table.n_rows
    kept = codes.take(has_cells), labels[has_cells]
    return HeldOutRows(*kept, table.n_rows, n_unlabelled)


def confusion(
    model: NBModel,
    rows: TrainingSet | HeldOutRows,
    weights: Floats | None,
    n_jobs: int | None,
) -> Floats:
    """Return the weight of the rows by class and predicted class, shape (K, K)."""
    k = model.n_classes
    cells = rows.labels * np.int64(k) + model.winners(rows.codes, n_jobs)
    return np.bincount(cells, weights, k * k).reshape(k, k).astype(np.float64)


def has_missing_cells(codes: Codes, attributes: list[int]) -> bool:
    """Return whether some attribute has a missing cell."""
    return any((codes.column(j) == 0).any() for j in attributes)


def _rows_with_cells(codes: Codes, attributes: list[int]) -> NDArray[np.bool_]:
    """Return which rows have an observed cell among some attributes."""
    has_cells = np.zeros(codes.n_rows, dtype=bool)
    for j in attributes:
        has_cells |= codes.column(j) != 0
        if has_cells.all():
            break
    return has_cells
