"""Boosted naive Bayes: a vote of models fitted to rows weighted by their errors."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from steelyard._common.agreed import FORMS
from steelyard._common.settings import learned, setting, whole, word
from steelyard._common.threads import pieces
from steelyard.classifiers.base import StandardNB
from steelyard.exceptions import ParameterError
from steelyard.fitting.problem import Fit
from steelyard.fitting.recipe import Recipe
from steelyard.instances import hardest_rows
from steelyard.model.base import RowsNeeded
from steelyard.model.combined import BoostedModel
from steelyard.model.table_model import NBModel
from steelyard.model.training import TrainingSet

__all__ = ["BoostedNB"]


# A model that misses the same rows as the one before has an error of one half, up to
# rounding; Weka's AdaBoostM1 allows as much.
_USELESS = 0.5 - 1e-6


class BoostedNB(StandardNB):
    r"""BNB: naive Bayes boosted by AdaBoost.M1, or by Elkan's two-class form.

    Each round fits naive Bayes to weighted rows and raises the weight of those that it
    gets wrong; the models vote. Priors are those of the first model.

    References
    ----------
    C. Elkan (1997), "Boosting and naive Bayesian learning", Technical report CS97-557,
    University of California, San Diego.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from steelyard import BoostedNB
    >>> clf = BoostedNB(rounds=5).fit(*load_breast_cancer(return_X_y=True))
    >>> len(clf.votes_) <= 5
    True
    """

    _rows_needed: ClassVar[RowsNeeded] = "per-row"
    _models: ClassVar[tuple[str, ...]] = ("votes",)

    rounds: int = setting(
        default=10, allowed=whole(1), about="Largest number of models."
    )
    form: str = setting(
        default="adaboost-m1",
        allowed=word(*FORMS),
        about="AdaBoost.M1 (Freund and Schapire, 1996; any number of classes), or "
        "boosting of probabilities as in Elkan (1997), for two classes.",
    )
    smoothing: Any = setting(default="laplace")

    votes_: NDArray[np.float64] = learned(
        "ndarray of shape (models,)", "Weight of each model's vote."
    )
    instance_weights_: NDArray[np.float64] = learned(
        "ndarray of shape (n,)",
        "Row weights after the last round, without ``sample_weight``.",
    )
    diagnostics_: list[dict[str, Any]] = learned(
        "list of dict", "One record per round, with its weighted error."
    )

    hardest_rows = hardest_rows

    def _fit(self, recipe: Recipe, training: TrainingSet) -> Fit:
        if self.form == "elkan" and training.n_classes > 2:
            raise ParameterError(
                f"form='elkan' is defined for two classes, but there are "
                f"{training.n_classes}. Use form='adaboost-m1'."
            )
        boosted = _boost(training, int(self.rounds), self.form == "elkan")
        models, votes, weights, records = boosted
        model = BoostedModel(tuple(models), np.array(votes), self.form)
        named = {"votes_": model.votes, "diagnostics_": records}
        return Fit(model, models[0].log_prior, named, weights)


def _boost(
    training: TrainingSet, rounds: int, by_proba: bool
) -> tuple[list[NBModel], list[float], NDArray[np.float64], list[dict[str, Any]]]:
    """Raise the weight of rows that are classified wrongly, as AdaBoost.M1 does.

    ``by_proba`` rows keep weight in proportion to their error, as in Elkan's form.
    """
    learned = training.workspace.full(training.n_rows, 1.0)
    own = training.weights
    own = training.workspace.copy(learned) if own is None else own
    total = own.sum()
    models: list[NBModel] = []
    votes: list[float] = []
    records = []
    for number in range(1, rounds + 1):
        model = training.estimate(training.count(learned))
        missed = _missed(model, training, by_proba)
        error = float(_weighted(own, learned, missed) / total)
        records.append({"round": number, "error": error})
        if error <= (1e-12 if by_proba else 0.0) or error >= _USELESS:
            # A perfect or useless model ends the boosting; kept only if it is first.
            if not models:
                models, votes = [model], [1.0]
            break
        models.append(model)
        beta = error / (1.0 - error)
        vote = -np.log(beta) if by_proba else np.log((1.0 - error) / error)
        votes.append(float(vote))
        for rows in pieces(slice(0, len(learned))):
            if by_proba:
                learned[rows] *= beta ** (1.0 - missed[rows])
            else:
                wrong = learned[rows][missed[rows]]
                learned[rows][missed[rows]] = wrong * (1.0 - error) / error
        # Counts are smoothed as for n rows: weights add up to the number of rows.
        learned *= total / _weighted(own, learned)
    return models, votes, learned, records


def _missed(model: NBModel, training: TrainingSet, by_proba: bool) -> NDArray[Any]:
    """Say which rows are classified wrongly, or how far each is from its class."""
    if not by_proba:
        return model.winners(training.codes, training.n_jobs) != training.labels
    miss = training.workspace.zeros(training.n_rows, np.float64)
    for rows in pieces(slice(0, len(miss))):
        share = model.proba(training.codes.part(rows), training.n_jobs)[:, 1]
        miss[rows] = np.abs(training.labels[rows].astype(np.float64) - share)
    return miss


def _weighted(
    own: NDArray[np.float64], learned: NDArray[np.float64], of_row: Any = None
) -> float:
    """Add up both weights of rows, or of some, or times a number for each."""
    total = 0.0
    for rows in pieces(slice(0, len(own))):
        both = own[rows] * learned[rows]
        if of_row is None:
            total += both.sum()
        elif of_row.dtype == bool:
            total += both[of_row[rows]].sum()
        else:
            total += (both * of_row[rows]).sum()
    return total
