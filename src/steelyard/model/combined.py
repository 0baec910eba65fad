"""Models that are not one sum: a mixture of two, pairs of classes, a vote."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from steelyard.kernels import scoring
from steelyard.model.base import Model, ModelPart
from steelyard.model.posteriors import softmax
from steelyard.model.table_model import NBModel
from steelyard.table.codes import Codes
from steelyard.table.schema import TableSchema


@dataclass(frozen=True)
class MixtureModel(Model):
    r"""Two naive Bayes posteriors, mixed: :math:`\alpha P^D + (1 - \alpha) P^I`."""

    kind: ClassVar[str] = "mixture"

    alpha: float
    specific: NBModel
    """The half with weights per class and attribute."""

    shared: NBModel
    """The half with weights per attribute."""

    @property
    def classes(self) -> NDArray[Any]:
        """Classes, shape (K,)."""
        return self.shared.classes

    @property
    def schema(self) -> TableSchema:
        """Attributes of the table."""
        return self.shared.schema

    @property
    def tie_order(self) -> NDArray[np.int64]:
        """Classes by falling prior."""
        return self.shared.tie_order

    def proba(self, codes: Codes, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Posterior probabilities, shape (n, K)."""
        out = self.alpha * self.specific.proba(codes, n_jobs)
        out += (1.0 - self.alpha) * self.shared.proba(codes, n_jobs)
        return out

    def log_proba(self, codes: Codes, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Log posterior probabilities, exact where probabilities underflow."""
        with np.errstate(divide="ignore"):
            shares = np.log([self.alpha, 1.0 - self.alpha])
        return np.logaddexp(
            shares[0] + self.specific.log_proba(codes, n_jobs),
            shares[1] + self.shared.log_proba(codes, n_jobs),
        )

    def note(self) -> str:
        """Say in a sentence what the model is."""
        return (
            "Not one sum: two posteriors are mixed, "
            f"{self.alpha:.3f} of the class-specific half and "
            f"{1.0 - self.alpha:.3f} of the shared half. Each half is a sum."
        )

    def parts(self) -> list[ModelPart]:
        """Return the two halves."""
        every = tuple(range(self.n_classes))
        return [
            ModelPart("class-specific half", self.alpha, self.specific, every),
            ModelPart("shared half", 1.0 - self.alpha, self.shared, every),
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
    log_prior: NDArray[np.float64]

    @property
    def schema(self) -> TableSchema:
        """Attributes of the table."""
        return self.models[0].schema

    @cached_property
    def tie_order(self) -> NDArray[np.int64]:
        """Classes by falling prior."""
        return np.argsort(-self.log_prior, kind="stable")

    def proba(self, codes: Codes, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Shares of the summed pairwise probabilities, shape (n, K)."""
        out = np.zeros((codes.n_rows, len(self.classes)))
        for (a, b), model in zip(self.pairs, self.models, strict=True):
            p = model.proba(codes, n_jobs)
            out[:, a] += p[:, 0]
            out[:, b] += p[:, 1]
        return out / len(self.pairs)

    def note(self) -> str:
        """Say in a sentence what the model is."""
        return (
            f"Not one sum: {len(self.pairs)} models of two classes each; a class "
            "scores the mean of its probabilities against the others. Each pair is a "
            "model of its own."
        )

    def parts(self) -> list[ModelPart]:
        """Return the model of every pair."""
        share = 1.0 / len(self.pairs)
        return [
            ModelPart(f"{self.classes[a]} or {self.classes[b]}", share, model, (a, b))
            for (a, b), model in zip(self.pairs, self.models, strict=True)
        ]


@dataclass(frozen=True)
class BoostedModel(Model):
    r"""A weighted vote of naive Bayes models.

    AdaBoost.M1: :math:`P(c) \propto \exp \sum_{t: \hat y_t = c} a_t`, and a single
    model's own posterior. Elkan's form, with :math:`b_t = \log(1/\beta_t)` and the
    models' probabilities :math:`h_t` of the second class:
    :math:`P = 1 / (1 + \prod_t \beta_t^{2 r - 1})`,
    :math:`r = \sum_t b_t h_t / \sum_t b_t`.
    """

    kind: ClassVar[str] = "votes"

    models: tuple[NBModel, ...]
    votes: NDArray[np.float64]
    form: str

    @property
    def classes(self) -> NDArray[Any]:
        """Classes, shape (K,)."""
        return self.models[0].classes

    @property
    def schema(self) -> TableSchema:
        """Attributes of the table."""
        return self.models[0].schema

    @property
    def tie_order(self) -> NDArray[np.int64]:
        """Classes by falling prior."""
        return self.models[0].tie_order

    def proba(self, codes: Codes, n_jobs: int | None = None) -> NDArray[np.float64]:
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

    def log_proba(self, codes: Codes, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Log posterior probabilities, exact where probabilities underflow."""
        if len(self.models) == 1:
            return self.models[0].log_proba(codes, n_jobs)
        if self.form == "elkan":
            return super().log_proba(codes, n_jobs)
        scores = self._summed(codes, n_jobs)
        scoring.log_softmax(scores)
        return scores

    def _summed(self, codes: Codes, n_jobs: int | None) -> NDArray[np.float64]:
        """Sum of the votes for each class, shape (n, K)."""
        scores = np.zeros((codes.n_rows, len(self.classes)))
        for vote, model in zip(self.votes, self.models, strict=True):
            chosen = model.winners(codes, n_jobs)
            scores[np.arange(codes.n_rows), chosen] += vote
        return scores

    def note(self) -> str:
        """Say in a sentence what the model is."""
        return (
            f"Not one sum: {len(self.models)} models vote, each with a weight of its "
            "own. Each voter is a sum."
        )

    def parts(self) -> list[ModelPart]:
        """Return the voters."""
        every = tuple(range(self.n_classes))
        return [
            ModelPart(f"voter {t}", float(vote), voter, every)
            for t, (vote, voter) in enumerate(
                zip(self.votes, self.models, strict=True), start=1
            )
        ]

    def simplified(self) -> Model:
        """Return the only voter of a vote of one."""
        return self.models[0] if len(self.models) == 1 else self
