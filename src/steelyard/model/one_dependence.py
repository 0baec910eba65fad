"""A model in which each attribute in turn is the parent of all others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from steelyard._common.threads import pieces, run, thread_count
from steelyard.kernels import pairs, scoring
from steelyard.model.base import ModelPart, ScoredModel, TwoArrays
from steelyard.proba.conditional import log_conditional
from steelyard.table.codes import Codes
from steelyard.table.schema import TableSchema

# Rows that one thread takes at a time: each costs d * d * K additions.
_ROWS_PER_BLOCK = 256


@dataclass(frozen=True)
class ConditionalTable:
    """How values depend on one another within the classes: counts of pairs of codes."""

    offsets: NDArray[np.int64]
    """First table row of each attribute and their total, shape (d + 1,)."""

    log_prob: NDArray[np.float64]
    """Log-probabilities of codes within each class, shape (V, K); 0 for code 0."""

    counts: NDArray[np.float64]
    """Weight of the rows by two codes and class, shape (V, V, K)."""

    strength: float
    """Weight of ``log_prob`` in what is conditional on a parent's value, in rows."""

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """Log-probabilities of codes given a parent's code and class, (V, V, K).

        Those of code 0 and of the parent itself are 0.
        """
        out = np.zeros_like(self.counts)
        for low, high in zip(self.offsets[:-1], self.offsets[1:], strict=True):
            own = slice(int(low), int(high))
            log_prob = self.log_prob[own]
            out[:, own] = log_conditional(self.counts[:, own], log_prob, self.strength)
            out[own, own] = 0.0
        return out


@dataclass(frozen=True)
class OneDependenceModel(ScoredModel):
    r"""Averaged one-dependence estimators.

    .. math:: P(c, x) = \frac{1}{\sum_p w_{p,x_p}} \sum_p w_{p,x_p}\, \pi_c\,
        \theta_{p,x_p|c} \prod_{j \ne p} \theta_{j,x_j|x_p,c}

    Where no value of a row is a parent, the model is naive Bayes.
    """

    kind: ClassVar[str] = "one-dependence"

    schema: TableSchema
    classes: NDArray[Any]
    log_prior: NDArray[np.float64]
    """Shape (K,)."""

    shares: NDArray[np.float64]
    """Weight of each code as a parent, shape (V,); 0 for those that are none."""

    conditional: ConditionalTable

    @cached_property
    def tie_order(self) -> NDArray[np.int64]:
        """Classes by falling prior."""
        return np.argsort(-self.log_prior, kind="stable")

    def scores(self, codes: Codes, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Joint log-probabilities of rows and classes, shape (n, K)."""
        if codes.schema is not self.schema and codes.schema != self.schema:
            raise ValueError("The codes were made with another schema than the model.")
        out = np.tile(self.log_prior, (codes.n_rows, 1))
        offsets = self.schema.offsets[:-1]
        plain, given = self.conditional.log_prob, self.conditional.values
        tables = (offsets, self.shares, self.log_prior + plain, plain, given)

        for piece in pieces(slice(0, codes.n_rows)):
            values, scores = codes.part(piece).to_array(), out[piece]

            def work(first: int, values: Any = values, scores: Any = scores) -> None:
                rows = slice(first, first + _ROWS_PER_BLOCK)
                scoring.average_scores(values[rows], *tables, scores[rows])

            blocks = range(0, len(values), _ROWS_PER_BLOCK)
            for _ in run(work, blocks, thread_count(n_jobs)):
                pass
        return out

    @cached_property
    def parents(self) -> list[int]:
        """Attributes that have a value which is a parent."""
        owner = np.repeat(np.arange(len(self.schema)), np.diff(self.schema.offsets))
        return sorted(set(owner[self.shares > 0].tolist()))

    def note(self) -> str:
        """Say in a sentence what the model is."""
        if len(self.parents) <= 1:
            return "The score of a class is a sum in which values depend on one other."
        return (
            f"Not one sum: joint probabilities of {len(self.parents)} models are "
            "averaged, in each of which all attributes depend on one. For one row each "
            "of these is a sum."
        )

    def parts(self) -> list[ModelPart]:
        """Return a model for each attribute that is a parent of the others."""
        if len(self.parents) <= 1:
            return []
        offsets, labels = self.schema.offsets, self.schema.labels()
        owned = [slice(offsets[p], offsets[p + 1]) for p in self.parents]
        total = sum(float(self.shares[own].max()) for own in owned)
        parts = []
        for p, own in zip(self.parents, owned, strict=True):
            shares = np.zeros_like(self.shares)
            shares[own] = self.shares[own]
            part = replace(self, shares=shares)
            name, share = f"{labels[p]} as the parent", float(shares.max()) / total
            parts.append(ModelPart(name, share, part, tuple(range(self.n_classes))))
        return parts

    def terms(self, codes: Codes) -> TwoArrays | None:
        """Say where the scores of rows start, and what each attribute adds.

        None where several attributes are parents.
        """
        if len(self.parents) > 1:
            return None
        rows = codes.to_array().astype(np.int64) + self.schema.offsets[:-1]
        added = self.conditional.log_prob[rows]
        if self.parents:
            parent = rows[:, self.parents[0]]
            given = self.conditional.values[parent[:, None], rows]
            given[:, self.parents[0]] = added[:, self.parents[0]]
            added = np.where(self.shares[parent][:, None, None] > 0, given, added)
        return np.tile(self.log_prior, (codes.n_rows, 1)), added


def count_code_pairs(
    codes: Codes,
    y: NDArray[np.uint32],
    weights: NDArray[np.float64] | None,
    n_classes: int,
    n_jobs: int | None = None,
) -> NDArray[np.float64]:
    """Count the rows by every two codes and class, shape (V, V, K).

    All attributes have codes. An attribute is not counted with itself.
    """
    offsets, d = codes.offsets, len(codes.schema)
    table = np.zeros((codes.schema.n_codes, codes.schema.n_codes, n_classes))
    columns = codes.by_column()

    def with_later(j: int) -> None:
        for rows in pieces(slice(0, codes.n_rows)):
            u = None if weights is None else weights[rows]
            truth = np.asarray(y[rows], dtype=np.uint32)
            cells = columns[:, rows], offsets[:-1], j
            pairs.count_later_pairs(*cells, truth, u, table)
        own = slice(offsets[j], offsets[j + 1])
        later = slice(offsets[j + 1], offsets[-1])
        table[later, own] = table[own, later].transpose(1, 0, 2)

    for _ in run(with_later, range(d), thread_count(n_jobs)):
        pass
    return table
