"""Forward selection of attributes by the average log-likelihood of the classes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.checks import warn_user
from steelyard._common.progress import progress
from steelyard._common.threads import pieces, row_blocks, run, thread_count
from steelyard.kernels import forward
from steelyard.model.table_model import NBModel, spread_table
from steelyard.proba.counts import Counts
from steelyard.table.codes import CodeBlock, Codes, FeatureTable, code_dtype

SEARCH_ENDS = ("complete", "time limit", "interrupted")


class OutOfTimeError(Exception):
    """The search has used up its time."""


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
    weights: NDArray[np.float64] | None = None
    n_jobs: int | None = None
    scores: NDArray[np.float64] = field(init=False)
    is_seen: NDArray[np.bool_] = field(init=False)
    """Rows with a known cell among the attributes of the subset."""

    def __post_init__(self) -> None:
        n_rows, workspace = self.codes.n_rows, self.codes.workspace
        self.scores = workspace.zeros((n_rows, self.model.n_classes), np.float64)
        self.scores[:] = self.model.log_prior
        self.is_seen = workspace.zeros(n_rows, np.bool_)
        table = np.exp(self.model.table)
        self._tables = [spread_table(b, self.codes, table) for b in self.codes.blocks]

    @property
    def total(self) -> float:
        """Total weight of the rows."""
        return float(self.codes.n_rows if self.weights is None else self.weights.sum())

    def add(self, feature: int) -> None:
        """Take an attribute into the subset."""
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

    def norms_with(
        self, candidates: NDArray[np.int64], deadline: float = np.inf
    ) -> NDArray[np.float64]:
        """Return the norm that each candidate would give, shape (candidates,)."""
        norm, gains = self._pass(candidates, deadline)
        return norm + gains[candidates]

    def log_likelihood(self, labels: NDArray[np.uint32]) -> float:
        """Average log posterior probability of the true classes."""
        of_truth = self.scores[np.arange(len(labels)), labels]
        return (
            float(np.average(of_truth, weights=self.weights)) - self.norm() / self.total
        )

    def seen_weight(self) -> float:
        """Weight of the rows with a known cell in the subset."""
        return self._weight_of(self.is_seen)

    def seen_weights_with(self, candidates: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the same for the subset with each candidate."""
        blind = ~self.is_seen
        out = np.full(len(candidates), self.seen_weight())
        for k, feature in enumerate(candidates if blind.any() else ()):
            out[k] += self._weight_of(blind & (self.codes.column(int(feature)) != 0))
        return out

    def _weight_of(self, rows: NDArray[np.bool_]) -> float:
        return float(rows.sum() if self.weights is None else self.weights[rows].sum())

    def _pass(
        self, candidates: NDArray[np.int64], deadline: float = np.inf
    ) -> tuple[float, NDArray[np.float64]]:
        """Return the norm of the rows, and what each candidate would add: (d,)."""
        codes = self.codes
        sought = [
            np.flatnonzero(np.isin(block.features, candidates))
            for block in codes.blocks
        ]

        def try_rows(rows: slice) -> tuple[float, NDArray[np.float64]]:
            u = np.empty(0) if self.weights is None else self.weights[rows]
            posterior = self.scores[rows].copy()
            norm = forward.log_total(posterior, u)
            gains = np.zeros(len(codes.schema))
            for block, (starts, table), columns in zip(
                codes.blocks, self._tables, sought, strict=True
            ):
                out = np.zeros(len(block.features))
                cells = (block.values[rows], starts)
                if self.weights is None:
                    sizes = _sizes(block, codes)
                    forward.try_columns(*cells, sizes, columns, table, posterior, out)
                else:
                    forward.weigh_columns(*cells, columns, table, posterior, u, out)
                gains[block.features] += out
            return norm, gains

        def work(block: slice) -> tuple[float, NDArray[np.float64]]:
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


def _sizes(block: CodeBlock, codes: Codes) -> NDArray[np.uint64]:
    """How many table rows each column of a block reads from."""
    if block.look_up is not None:
        return np.full(len(block.features), block.n_bytes, dtype=np.uint64)
    return np.diff(codes.offsets)[block.features].astype(np.uint64)


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


def _shares(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(values / values.sum())


@dataclass(frozen=True)
class Step:
    """A subset on the way, named by what was added last."""

    added: tuple[int, ...]
    """The forced attributes at the start, then one attribute at a time."""

    size: int
    a: float
    b: float
    test: float | None
    """Average log-likelihood of the test rows, where there are any."""

    @property
    def log_likelihood(self) -> float:
        """Average log-likelihood of the training rows."""
        return self.a + self.b


@dataclass
class Search:
    r"""The sequence of subsets: each adds the attribute with the best likelihood.

    .. math:: \bar l(J) = A(J) + B(J), \qquad
        A(J) = \frac1n \sum_c N_c \log \pi_c +
               \frac1n \sum_{c,\,j \in J,\,v} N_{jvc} \log \theta_{j,v|c}, \qquad
        B(J) = -\frac1n \sum_i \log \sum_c e^{S_{ic}}

    A needs counts alone; B needs the training rows, or simulated ones.
    """

    counts: Counts
    rows: Likelihood
    """Rows that give B."""

    test: Likelihood | None = None
    test_labels: NDArray[np.uint32] | None = None
    by_observed: bool = False
    """Whether B is divided by the weight of the rows with a known cell in the subset
    instead of the weight of all."""

    time_limit: float | None = None
    verbose: bool = False
    ended: str = "complete"
    """How the search came to its end, one of ``SEARCH_ENDS``."""

    def run(self, forced: list[int], candidates: list[int], n_steps: int) -> list[Step]:
        """Return the initial subset and those after it, at most ``n_steps``.

        Out of time or interrupted, the search returns the subsets found so far.
        """
        started = time.monotonic()
        deadline = np.inf if self.time_limit is None else started + self.time_limit
        steps = [self._start(forced)]
        left = np.array([j for j in candidates if j not in forced], dtype=np.int64)
        with progress("Forward selection", n_steps, self.verbose) as advance:
            try:
                for step in self._further(steps[0], left, n_steps, deadline):
                    steps.append(step)
                    advance(f"log-likelihood {step.log_likelihood:.6f}")
            except OutOfTimeError:
                self.ended = "time limit"
            except KeyboardInterrupt:
                self.ended = "interrupted"
        if self.ended != "complete":
            warn_user(
                f"The search for predictors ended early ({self.ended}) with "
                f"{steps[-1].size} predictors; the best subset so far is kept.",
                UserWarning,
            )
        return steps

    def _start(self, forced: list[int]) -> Step:
        table = self.rows.model.table
        by_code = (self.counts.by_code * table).sum(axis=1)
        collected = FeatureTable(table, self.counts.schema.offsets).collect(by_code)
        self._shares_of_a = collected / self.counts.total
        prior = self.counts.by_class @ self.rows.model.log_prior
        for feature in forced:
            self._add(feature)
        a = prior / self.counts.total + self._shares_of_a[forced].sum()
        # Without predictors the sum is that of the priors, and its logarithm 0.
        b = 0.0
        if forced:
            b = -self.rows.norm() / self._divisor(self.rows.seen_weight)
        return Step(tuple(forced), len(forced), float(a), b, self._tested())

    def _further(
        self, last: Step, left: NDArray[np.int64], n_steps: int, deadline: float
    ) -> Iterator[Step]:
        for _ in range(n_steps):
            if time.monotonic() > deadline:
                raise OutOfTimeError
            norms = self.rows.norms_with(left, deadline)
            b = -norms / self._divisor(self.rows.seen_weights_with, left)
            # Of equal ones the first.
            best = int(np.argmax(self._shares_of_a[left] + b))
            feature = int(left[best])
            left = np.delete(left, best)
            self._add(feature)
            a = last.a + float(self._shares_of_a[feature])
            size = last.size + 1
            last = Step((feature,), size, a, float(b[best]), self._tested())
            yield last

    def _add(self, feature: int) -> None:
        self.rows.add(feature)
        if self.test is not None:
            self.test.add(feature)

    def _tested(self) -> float | None:
        """Average log-likelihood of the test rows, where there are any."""
        if self.test is None or self.test_labels is None:
            return None
        return self.test.log_likelihood(self.test_labels)

    def _divisor(self, seen: Any, *given: Any) -> Any:
        return seen(*given) if self.by_observed else self.rows.total
