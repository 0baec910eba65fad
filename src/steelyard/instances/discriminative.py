"""Discriminative instance weights: rows that the model gets wrong count more."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from steelyard.exceptions import ParameterError
from steelyard.instances.base import InstanceWeighting, Learned, Task

__all__ = ["DiscriminativeWeighting", "add_losses"]


class DiscriminativeWeighting(InstanceWeighting):
    r"""Add the posterior loss of each row to its weight, round by round.

    .. math:: u_i \leftarrow u_i + (1 - P_{i,y_i})

    with the posterior of the model of the previous round; all rows start at 1. The
    weights are not normalised, so that smoothing fades as they grow.

    Parameters
    ----------
    rounds : int, default=15
        Number of rounds; 0 leaves all weights at 1.

    References
    ----------
    L. Jiang, D. Wang, Z. Cai (2012), "Discriminatively weighted naive Bayes and its
    application in text classification", Int. J. on Artificial Intelligence Tools 21(1).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import steelyard as sy
    >>> clf = sy.method("DWNB").fit(*load_iris(return_X_y=True))
    >>> bool((clf.instance_weights_ >= 1).all())
    True
    """

    def __init__(self, rounds: int = 15) -> None:
        self.rounds = rounds

    def weigh(self, task: Task) -> Learned:
        """Learn the weight of every row."""
        if not isinstance(self.rounds, Integral) or self.rounds < 0:
            raise ParameterError(
                "The 'rounds' parameter of DiscriminativeWeighting must be a whole "
                f"number of at least 0. Got {self.rounds!r} instead."
            )
        weights = np.ones(task.codes.n_rows)
        records = []
        for number in range(1, int(self.rounds) + 1):
            model = task.estimate(task.count(weights))
            posterior = task.true_posterior(model)
            records.append(add_losses(weights, posterior, task, number))
        return Learned(weights, records)


def add_losses(
    weights: NDArray[np.float64],
    posterior: NDArray[np.float64],
    task: Task,
    number: int,
) -> dict[str, float]:
    """Add a round's posterior losses to the weights, in place; return its record."""
    weights += 1.0 - posterior
    total = weights if task.weights is None else weights * task.weights
    return {
        "round": number,
        "log_loss": _log_loss(posterior, task.weights),
        "total_weight": float(total.sum()),
    }


def _log_loss(
    posterior: NDArray[np.float64], weights: NDArray[np.float64] | None
) -> float:
    """Add up negative logarithms; where it is safe, one of sixteen rows' product."""
    if weights is None and posterior.min(initial=1.0) > 1e-18:
        whole = len(posterior) - len(posterior) % 16
        products = posterior[:whole].reshape(-1, 16).prod(axis=1)
        return -float(np.log(products).sum() + np.log(posterior[whole:]).sum())
    with np.errstate(divide="ignore"):
        loss = -np.log(posterior)
    return float(loss.sum() if weights is None else (weights * loss).sum())
