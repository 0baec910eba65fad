"""Models that are not one sum: a mixture of two, pairs of classes, a vote."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.kernels import scoring
from steelyard.model.posteriors import softmax
from steelyard.model.table_model import NBModel
from steelyard.table.codes import Codes
from steelyard.table.schema import TableSchema

__all__ = ["FORMS", "BoostedModel", "ByProbability", "MixtureModel", "PairwiseModel"]

FORMS = ("adaboost-m1", "elkan")
"""Forms of boosting."""


class ByProbability:
    """Predictions of a model that knows posterior probabilities only."""

    classes: NDArray[Any]
    tie_order: NDArray[np.int64]

    def proba(self, codes: Codes, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Posterior probabilities, shape (n, K)."""
        raise NotImplementedError

    def log_proba(self, codes: Codes, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Log posterior probabilities, shape (n, K)."""
        with np.errstate(divide="ignore"):
            return np.log(self.proba(codes, n_jobs))

    def scores(self, codes: Codes, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Log posterior probabilities: there is no joint probability to speak of."""
        return self.log_proba(codes, n_jobs)

    def predict(self, codes: Codes, n_jobs: int | None = None) -> NDArray[Any]:
        """Most probable class of every row; ties go to the larger prior."""
        return self.classes[self.winners(codes, n_jobs)]

    def winners(self, codes: Codes, n_jobs: int | None = None) -> NDArray[np.int64]:
        """Position of the most probable class of every row."""
        order = self.tie_order
        return order[np.argmax(self.proba(codes, n_jobs)[:, order], axis=1)]


@dataclass(frozen=True)
class MixtureModel(ByProbability):
    r"""Two naive Bayes posteriors, mixed: :math:`\alpha P^D + (1 - \alpha) P^I`."""

    alpha: float
    specific: NBModel
    """The half with weights per class and attribute."""

    shared: NBModel
    """The half with weights per attribute."""

    @property
    def classes(self) -> NDArray[Any]:  # type: ignore[override]
        """Classes, shape (K,)."""
        return self.shared.classes

    @property
    def schema(self) -> TableSchema:
        """Attributes of the table."""
        return self.shared.schema

    @property
    def tie_order(self) -> NDArray[np.int64]:  # type: ignore[override]
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
            parts = np.log([self.alpha, 1.0 - self.alpha])
        return np.logaddexp(
            parts[0] + self.specific.log_proba(codes, n_jobs),
            parts[1] + self.shared.log_proba(codes, n_jobs),
        )


@dataclass(frozen=True)
class PairwiseModel(ByProbability):
    r"""One two-class model for each pair of classes.

    A class scores the sum of its probabilities against the others,
    :math:`\sum_b p_{ab}`; divided by the number of pairs these add up to one.

    References
    ----------
    T. Kim, J.-S. Lee (2022), IEEE Access 10, equation 22.
    """

    classes: NDArray[Any]
    pairs: tuple[tuple[int, int], ...]
    models: tuple[NBModel | MixtureModel, ...]
    log_prior: NDArray[np.float64]

    @property
    def schema(self) -> TableSchema:
        """Attributes of the table."""
        return self.models[0].schema

    @cached_property
    def tie_order(self) -> NDArray[np.int64]:  # type: ignore[override]
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


@dataclass(frozen=True)
class BoostedModel(ByProbability):
    r"""A weighted vote of naive Bayes models.

    AdaBoost.M1: :math:`P(c) \propto \exp \sum_{t: \hat y_t = c} a_t`, and a single
    model's own posterior. Elkan's form, with :math:`b_t = \log(1/\beta_t)` and the
    models' probabilities :math:`h_t` of the second class:
    :math:`P = 1 / (1 + \prod_t \beta_t^{2 r - 1})`,
    :math:`r = \sum_t b_t h_t / \sum_t b_t`.
    """

    models: tuple[NBModel, ...]
    votes: NDArray[np.float64]
    form: str

    @property
    def classes(self) -> NDArray[Any]:  # type: ignore[override]
        """Classes, shape (K,)."""
        return self.models[0].classes

    @property
    def schema(self) -> TableSchema:
        """Attributes of the table."""
        return self.models[0].schema

    @cached_property
    def tie_order(self) -> NDArray[np.int64]:  # type: ignore[override]
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
