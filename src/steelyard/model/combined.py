"""Models that are not one sum: a mixture, pairs of classes, a vote, many parents."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats, Ints
from steelyard._common.threads import pieces, run, thread_count
from steelyard.kernels import scoring
from steelyard.model.base import (
    MeanTerms,
    Model,
    ModelPart,
    ScoredModel,
    SomeClasses,
    TwoArrays,
    softmax,
)
from steelyard.model.table_model import NBModel
from steelyard.proba.counts import log_conditional
from steelyard.table.codes import Codes
from steelyard.table.schema import TableSchema

# Rows that one thread takes at a time: each costs d * d * K additions.
_ROWS_PER_BLOCK = 256


class _OfSums(Model):
    """A model made of others of the same classes and attributes."""

    @property
    def classes(self) -> NDArray[Any]:
        """Classes, shape (K,)."""
        return self._like.classes

    @property
    def schema(self) -> TableSchema:
        """Attributes of the table."""
        return self._like.schema

    @property
    def tie_order(self) -> Ints:
        """Classes by falling prior."""
        return self._like.tie_order

    @property
    def _like(self) -> Model:
        raise NotImplementedError


@dataclass(frozen=True)
class MixtureModel(_OfSums):
    r"""Two naive Bayes posteriors, mixed: :math:`\alpha P^D + (1 - \alpha) P^I`."""

    kind: ClassVar[str] = "mixture"

    alpha: float
    specific: NBModel
    """The half with weights per class and attribute."""

    shared: NBModel
    """The half with weights per attribute."""

    @property
    def _like(self) -> Model:
        return self.shared

    def proba(self, codes: Codes, n_jobs: int | None = None) -> Floats:
        """Posterior probabilities, shape (n, K)."""
        out = self.alpha * self.specific.proba(codes, n_jobs)
        out += (1.0 - self.alpha) * self.shared.proba(codes, n_jobs)
        return out

    def log_proba(self, codes: Codes, n_jobs: int | None = None) -> Floats:
        """Log posterior probabilities, exact even if probabilities underflow."""
        with np.errstate(divide="ignore"):
            shares = np.log([self.alpha, 1.0 - self.alpha])
        return np.logaddexp(
            shares[0] + self.specific.log_proba(codes, n_jobs),
            shares[1] + self.shared.log_proba(codes, n_jobs),
        )

    def note(self) -> str:
        """Return a sentence that describes the model."""
        return (
            "Not one sum: two posteriors are mixed, "
            f"{self.alpha:.3f} of the class-specific half and "
            f"{1.0 - self.alpha:.3f} of the shared half. Each half is a sum."
        )

    def centred(self, mean: MeanTerms, classes: SomeClasses = None) -> MixtureModel:
        """Return the same model with the centres of both halves."""
        halves = (half.centred(mean, classes) for half in (self.specific, self.shared))
        return MixtureModel(self.alpha, *halves)

    def parts(self) -> list[ModelPart]:
        """Return the two halves."""
        classes = tuple(range(self.n_classes))
        return [
            ModelPart("class-specific half", self.alpha, self.specific, classes),
            ModelPart("shared half", 1.0 - self.alpha, self.shared, classes),
        ]


@dataclass(frozen=True)
class PairwiseModel(Model):
    r"""One two-class model for each pair of classes.

    A class scores the sum of its probabilities against the others,
    :math:`\sum_b p_{ab}`; divided by the number of pairs these add up to one.

    References
    ----------
    T. Kim, J.-S. Lee (2022), IEEE Access 10, equation 22.
    """

    kind: ClassVar[str] = "pairs"

    classes: NDArray[Any]
    pairs: tuple[tuple[int, int], ...]
    models: tuple[Model, ...]
    log_prior: Floats

    @property
    def schema(self) -> TableSchema:
        """Attributes of the table."""
        return self.models[0].schema

    @cached_property
    def tie_order(self) -> Ints:
        """Classes by falling prior."""
        return np.argsort(-self.log_prior, kind="stable")

    def proba(self, codes: Codes, n_jobs: int | None = None) -> Floats:
        """Shares of the summed pairwise probabilities, shape (n, K)."""
        out = np.zeros((codes.n_rows, len(self.classes)))
        for (a, b), model in zip(self.pairs, self.models, strict=True):
            p = model.proba(codes, n_jobs)
            out[:, a] += p[:, 0]
            out[:, b] += p[:, 1]
        return out / len(self.pairs)

    def note(self) -> str:
        """Return a sentence that describes the model."""
        return (
            f"Not one sum: {len(self.pairs)} models of two classes each; a class "
            "scores the mean of its probabilities against the others. Each pair is a "
            "model of its own."
        )

    def centred(self, mean: MeanTerms, classes: SomeClasses = None) -> PairwiseModel:
        """Return the same model with the centre of each pair, of its rows alone."""
        pairs = zip(self.models, self.pairs, strict=True)
        models = tuple(model.centred(mean, pair) for model, pair in pairs)
        return replace(self, models=models)

    def parts(self) -> list[ModelPart]:
        """Return the model of every pair."""
        share = 1.0 / len(self.pairs)
        return [
            ModelPart(f"{self.classes[a]} or {self.classes[b]}", share, model, (a, b))
            for (a, b), model in zip(self.pairs, self.models, strict=True)
        ]


@dataclass(frozen=True)
class BoostedModel(_OfSums):
    r"""A weighted vote of naive Bayes models.

    AdaBoost.M1: :math:`P(c) \propto \exp \sum_{t: \hat y_t = c} a_t`, and a single
    model's own posterior. Elkan's form, with :math:`b_t = \log(1/\beta_t)` and the
    models' probabilities :math:`h_t` of the second class:
    :math:`P = 1 / (1 + \prod_t \beta_t^{2 r - 1})`,
    :math:`r = \sum_t b_t h_t / \sum_t b_t`.
    """

    kind: ClassVar[str] = "votes"

    models: tuple[NBModel, ...]
    votes: Floats
    form: str

    @property
    def _like(self) -> Model:
        return self.models[0]

    def proba(self, codes: Codes, n_jobs: int | None = None) -> Floats:
        """Posterior probabilities, shape (n, K)."""
        if len(self.models) == 1:
            return self.models[0].proba(codes, n_jobs)
        if self.form == "elkan":
            shares = sum(
                vote * model.proba(codes, n_jobs)[:, 1]
                for vote, model in zip(self.votes, self.models, strict=True)
            )
            # log of prod beta^(2r - 1), with b = -log beta and r the mean share.
            power = -(2.0 * shares - self.votes.sum())
            second = 1.0 / (1.0 + np.exp(np.clip(power, -700.0, 700.0)))
            return np.stack([1.0 - second, second], axis=1)
        return softmax(self._summed(codes, n_jobs))

    def log_proba(self, codes: Codes, n_jobs: int | None = None) -> Floats:
        """Log posterior probabilities, exact even if probabilities underflow."""
        if len(self.models) == 1:
            return self.models[0].log_proba(codes, n_jobs)
        if self.form == "elkan":
            return super().log_proba(codes, n_jobs)
        scores = self._summed(codes, n_jobs)
        scoring.log_softmax(scores)
        return scores

    def _summed(self, codes: Codes, n_jobs: int | None) -> Floats:
        """Sum of the votes for each class, shape (n, K)."""
        scores = np.zeros((codes.n_rows, len(self.classes)))
        for vote, model in zip(self.votes, self.models, strict=True):
            chosen = model.winners(codes, n_jobs)
            scores[np.arange(codes.n_rows), chosen] += vote
        return scores

    def note(self) -> str:
        """Return a sentence that describes the model."""
        return (
            f"Not one sum: {len(self.models)} models vote, each with a weight of its "
            "own. Each voter is a sum."
        )

    def centred(self, mean: MeanTerms, classes: SomeClasses = None) -> BoostedModel:
        """Return the same model with the centre of each voter."""
        models = tuple(voter.centred(mean, classes) for voter in self.models)
        return replace(self, models=models)

    def parts(self) -> list[ModelPart]:
        """Return the voters."""
        classes, voters = tuple(range(self.n_classes)), enumerate(self.models)
        return [
            ModelPart(f"voter {t + 1}", float(self.votes[t]), voter, classes)
            for t, voter in voters
        ]

    def simplified(self) -> Model:
        """Return the only voter of a vote of one."""
        return self.models[0] if len(self.models) == 1 else self


@dataclass(frozen=True)
class ConditionalTable:
    """How values depend on one another within the classes: counts of pairs of codes."""

    offsets: Ints
    """First table row of each attribute and their total, shape (d + 1,)."""

    log_prob: Floats
    """Log-probabilities of codes within each class, shape (V, K); 0 for code 0."""

    counts: Floats
    """Weight of the rows by two codes and class, shape (V, V, K)."""

    strength: float
    """Weight of ``log_prob`` in what is conditional on a parent's value, in rows."""

    @cached_property
    def values(self) -> Floats:
        """Log-probabilities of codes given a parent's code and class, (V, V, K).

        Those of code 0 and of the parent itself are 0.
        """
        out = np.zeros_like(self.counts)
        for low, high in zip(self.offsets[:-1], self.offsets[1:], strict=True):
            codes = slice(int(low), int(high))
            counts, log_prob = self.counts[:, codes], self.log_prob[codes]
            out[:, codes] = log_conditional(counts, log_prob, self.strength)
            out[codes, codes] = 0.0
        return out


@dataclass(frozen=True)
class OneDependenceModel(ScoredModel):
    r"""Averaged one-dependence estimators.

    .. math:: P(c, x) = \frac{1}{\sum_p w_{p,x_p}} \sum_p w_{p,x_p}\, \pi_c\,
        \theta_{p,x_p|c} \prod_{j \ne p} \theta_{j,x_j|x_p,c}

    If no value of a row is a parent, the model is naive Bayes.
    """

    kind: ClassVar[str] = "one-dependence"
    takes_prior: ClassVar[bool] = True

    schema: TableSchema
    classes: NDArray[Any]
    log_prior: Floats
    """Shape (K,)."""

    shares: Floats
    """Weight of each code as a parent, shape (V,); 0 for those that are none."""

    conditional: ConditionalTable

    @cached_property
    def tie_order(self) -> Ints:
        """Classes by falling prior."""
        return np.argsort(-self.log_prior, kind="stable")

    def scores(self, codes: Codes, n_jobs: int | None = None) -> Floats:
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
        """Return a sentence that describes the model."""
        if len(self.parents) <= 1:
            return "The score of a class is a sum in which values depend on one other."
        return (
            f"Not one sum: joint probabilities of {len(self.parents)} models are "
            "averaged, in each of which all columns depend on one. For one row each "
            "of these is a sum."
        )

    def parts(self) -> list[ModelPart]:
        """Return a model for each attribute that is a parent of the others."""
        if len(self.parents) <= 1:
            return []
        offsets, labels = self.schema.offsets, self.schema.labels()
        classes, parts = tuple(range(self.n_classes)), []
        codes = {p: slice(offsets[p], offsets[p + 1]) for p in self.parents}
        total = sum(float(self.shares[codes[p]].max()) for p in self.parents)
        for p in self.parents:
            shares = np.zeros_like(self.shares)
            shares[codes[p]] = self.shares[codes[p]]
            name, share = f"{labels[p]} as the parent", float(shares.max()) / total
            parts.append(ModelPart(name, share, replace(self, shares=shares), classes))
        return parts

    def terms(self, codes: Codes) -> TwoArrays | None:
        """Return the intercepts of rows and their contributions.

        None if several attributes are parents.
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
