"""Interface of fitted models, and of places where training rows are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats, Ints
from steelyard._common.threads import pieces
from steelyard.kernels import scoring
from steelyard.proba.counts import Counts, count
from steelyard.table.codes import Codes
from steelyard.table.schema import TableSchema

if TYPE_CHECKING:
    from steelyard.model.table_model import NBModel
    from steelyard.model.training import TrainingSet

TwoArrays = tuple[Floats, Floats]

# Positions of the classes of a model among those of the whole; None for all of them.
SomeClasses = tuple[int, ...] | None
# Of a sum and its classes: what its attributes add on average.
MeanTerms = Callable[["NBModel", SomeClasses], "Floats | None"]

RowsNeeded = Literal["counts", "sums", "pairs", "per-row", "codes", "all"]

NEEDS: dict[RowsNeeded, str] = {
    "counts": "counts of single columns, in one pass; nothing of the rows is kept",
    "sums": "several passes over encoded rows, each a sum over rows",
    "pairs": "the same, and counts of pairs of columns, which are a sum too",
    "per-row": "the same, and a few numbers for each row",
    "codes": "codes by column and scores of each row, on one machine",
    "all": "all rows, which are the model",
}
"""From little to much; each but the last can be done from memory maps."""


@dataclass(frozen=True)
class ModelPart:
    """One of the models that a model is made of."""

    name: str
    share: float
    """Its weight: a factor of a mixture, a vote, one over the number of pairs."""

    model: Model
    classes: tuple[int, ...]
    """Positions of its classes among those of the whole."""


class Model:
    """A fitted model: plain data, with predictions for encoded rows.

    What a model does not override follows from its posterior probabilities.
    """

    kind: ClassVar[str]
    """Name of the kind, as in model files."""

    is_sum: ClassVar[bool] = False
    """Whether the score of a class is its prior plus one number per attribute."""

    takes_prior: ClassVar[bool] = False
    """Whether its scores begin with ``log_prior``, which may be replaced."""

    is_lazy: ClassVar[bool] = False
    """Whether it keeps its training rows and makes a sum for each query."""

    link_scale: float = 1.0
    """Factor on the scores before they are turned into probabilities."""

    centre: Floats | None = None
    """Mean contributions of the attributes of a sum over the training rows, (d, K).

    Explanations are relative to them; predictions do without.
    """

    if TYPE_CHECKING:
        # Fields of some models, properties of others.

        @property
        def schema(self) -> TableSchema:
            """Attributes of the table."""

        @property
        def classes(self) -> NDArray[Any]:
            """Classes, shape (K,)."""

        @property
        def tie_order(self) -> Ints:
            """Classes by falling prior."""

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    def proba(self, codes: Codes, n_jobs: int | None = None) -> Floats:
        """Posterior probabilities, shape (n, K)."""
        raise NotImplementedError

    def log_proba(self, codes: Codes, n_jobs: int | None = None) -> Floats:
        """Log posterior probabilities, shape (n, K)."""
        with np.errstate(divide="ignore"):
            return np.log(self.proba(codes, n_jobs))

    def scores(self, codes: Codes, n_jobs: int | None = None) -> Floats:
        """Joint log-probabilities; log posteriors if a model has no joint ones."""
        return self.log_proba(codes, n_jobs)

    def true_proba(
        self, codes: Codes, y: NDArray[Any], n_jobs: int | None = None
    ) -> Floats:
        """Posterior probability of the true class of every row, shape (n,)."""
        out = codes.workspace.zeros(codes.n_rows, np.float64)
        for rows in pieces(slice(0, codes.n_rows)):
            proba = self.proba(codes.part(rows), n_jobs)
            out[rows] = proba[np.arange(len(proba)), y[rows]]
        return out

    def predict(self, codes: Codes, n_jobs: int | None = None) -> NDArray[Any]:
        """Most probable class of every row; ties go to the larger prior."""
        return self.classes[self.winners(codes, n_jobs)]

    def winners(self, codes: Codes, n_jobs: int | None = None) -> Ints:
        """Position of the most probable class of every row."""
        return self._winners(codes, lambda some: self.proba(some, n_jobs))

    def _winners(self, codes: Codes, scores: Callable[[Codes], Floats]) -> Ints:
        """Position of the largest score of every row, a piece of the rows at a time."""
        order, out = self.tie_order, codes.workspace.zeros(codes.n_rows, np.int64)
        for rows in pieces(slice(0, codes.n_rows)):
            best = np.argmax(scores(codes.part(rows))[:, order], axis=1)
            out[rows] = order[best]
        return out

    def share(
        self,
        codes: Codes,
        y: NDArray[Any],
        weights: Floats | None,
        n_jobs: int | None = None,
    ) -> float:
        """Weighted share of the rows that are classified correctly."""
        counted = total = 0.0
        for rows in pieces(slice(0, codes.n_rows)):
            is_correct = self.winners(codes.part(rows), n_jobs) == y[rows]
            u = np.ones(len(is_correct)) if weights is None else weights[rows]
            counted += float((is_correct * u).sum())
            total += float(u.sum())
        return counted / total

    def note(self) -> str:
        """Return a sentence that describes the model."""
        raise NotImplementedError

    def parts(self) -> list[ModelPart]:
        """Return its submodels; none for a single sum or a lazy model."""
        return []

    @property
    def summed(self) -> Model:
        """The same model, to whose sums missing cells add nothing."""
        return self

    def simplified(self) -> Model:
        """Return a simpler model with the same predictions, of one voter that voter."""
        return self

    def first_sum(self) -> NBModel | None:
        """Return the first sum among itself and its submodels, None without any."""
        parts = self.parts()
        return parts[0].model.first_sum() if parts else None

    def centred(self, mean: MeanTerms, classes: tuple[int, ...] | None = None) -> Model:
        """Return the same model with the centre of each of its sums."""
        return self

    def terms(self, codes: Codes) -> TwoArrays | None:
        """Return the intercepts of rows (n, K) and their contributions (n, d, K).

        None if the scores of rows are not one sum.
        """
        return None


class ScoredModel(Model):
    """A model whose joint log-probabilities are computed, and all else from these."""

    def log_proba(self, codes: Codes, n_jobs: int | None = None) -> Floats:
        """Log posterior probabilities, exact even if probabilities underflow."""
        scores = self.scores(codes, n_jobs)
        scoring.log_softmax(scores)
        return scores

    def proba(self, codes: Codes, n_jobs: int | None = None) -> Floats:
        """Posterior probabilities, shape (n, K)."""
        return softmax(self.scores(codes, n_jobs))

    def winners(self, codes: Codes, n_jobs: int | None = None) -> Ints:
        """Position of the most probable class of every row."""
        return self._winners(codes, lambda some: self.scores(some, n_jobs))


@dataclass(frozen=True)
class Curvature:
    """Second derivatives of a loss in the scores of rows.

    Either full matrices (s, K, K), or ``diag(diagonal) - vector vectorᵀ`` for losses of
    that form, which saves a factor of K in everything made from them.
    """

    diagonal: Floats | None = None
    vector: Floats | None = None
    full: Floats | None = None

    def matrices(self) -> Floats:
        """Return full matrices, shape (s, K, K)."""
        if self.full is not None:
            return self.full
        assert self.diagonal is not None and self.vector is not None
        out = -self.vector[:, :, None] * self.vector[:, None, :]
        k = np.arange(out.shape[1])
        out[:, k, k] += self.diagonal
        return np.asarray(out)


def one_hot(y: NDArray[np.uint32], n_classes: int) -> Floats:
    """Return the indicator matrix of the classes, shape (n, K)."""
    return np.eye(n_classes)[y]


def softmax(scores: Floats) -> Floats:
    """Return posterior probabilities of scores, shape (n, K)."""
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def weighted(values: Floats, weights: Floats | None) -> Floats:
    """Multiply rows by their weights."""
    if weights is None:
        return values
    return values * weights.reshape(-1, *[1] * (values.ndim - 1))


def softmax_jacobian(p: Floats) -> Floats:
    """Return diag(p) - p pᵀ for every row, shape (n, K, K)."""
    return Curvature(p, p).matrices()


def most_needed(*needs: RowsNeeded) -> RowsNeeded:
    """Return the largest of some needs, by the order of ``NEEDS``.

    >>> most_needed("sums", "per-row", "pairs")
    'per-row'
    """
    return max(needs, key=list(NEEDS).index)


class RowPlace:
    """The backend of rows in arrays of this process, in memory or in memory maps.

    Other backends have partitions, each a training set. What a method asks of all rows
    is a function of a training set, run where each partition is; results are added in
    the order of partitions. A backend may have its own passes as well, which is all
    that a device with separate memory needs.
    """

    is_here: bool = True
    """Whether codes, labels and weights of a training set are arrays of this process.

    Elsewhere its codes know the schema and the number of rows, and have no columns.
    """

    def each(
        self,
        training: TrainingSet,
        function: Callable[..., Any],
        given: Sequence[Any] | None = None,
    ) -> list[Any]:
        """Return a function of each partition, in their order.

        With ``given`` the function gets the partition's item as a second argument.
        """
        return [function(training, *(() if given is None else given[:1]))]

    def sum(
        self,
        training: TrainingSet,
        function: Callable[[TrainingSet], Any],
        is_exact: bool = False,
    ) -> Any:
        """Return the sum of a function over partitions, in their order.

        If ``is_exact``, sums do not depend on the order, and partitions that are
        together may be added first.
        """
        return function(training)

    def map(
        self, training: TrainingSet, function: Callable[[TrainingSet], TrainingSet]
    ) -> TrainingSet:
        """Return the training set of partitions that a function makes of these."""
        return function(training)

    def count(self, training: TrainingSet, weights: Floats | None) -> Counts:
        """Count rows in arrays of this process by weights, None for ones."""
        rows = training.codes, training.labels
        return count(*rows, weights, training.n_classes, training.n_jobs)

    def take(self, training: TrainingSet, rows: Ints) -> TrainingSet:
        """Return some rows in arrays of this process, encoded as they are."""
        return training.taken(rows)

    def here(self, training: TrainingSet) -> TrainingSet:
        """Return all rows in arrays of this process."""
        return training

    def passes(self, training: TrainingSet, missing: Any, gaussian: Any) -> Any:
        """Return the rows prepared for many passes, None for those over arrays here.

        See ``fitting.rows.Passes``, and ``prepare_rows`` for the arguments.
        """
        return None


HERE = RowPlace()
