"""Selective naive Bayes: attributes chosen by how well the classifier does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from steelyard._common.checks import warn_user
from steelyard._common.progress import progress
from steelyard._common.settings import FLAG, learned, setting, word
from steelyard.classifiers.base import StandardNB
from steelyard.classifiers.base.selection import FeatureSelector, SelectionPath
from steelyard.fitting.leave_one_out import (
    HeldOut,
    left_out,
    resubstituted,
)
from steelyard.fitting.problem import Fit
from steelyard.fitting.recipe import Recipe
from steelyard.model.training import TrainingSet
from steelyard.table.schema import TableSchema, feature_labels
from steelyard.weighting.filters.binning import with_bins
from steelyard.weighting.filters.information import class_information

__all__ = [
    "EQUAL",
    "ForwardSelectedNB",
    "SelectedNB",
    "SelectiveNB",
    "first_best",
    "warn_interrupted",
]

MEASURES = ("rmse", "zero-one")

# Sums of weights that differ by less than this share are equal.
EQUAL = 1e-12


class SelectedNB(FeatureSelector, StandardNB):
    """What methods that choose attributes share: fitting around the choice."""

    selected_features_: list[Any] = learned(
        "list",
        "Names, or positions where the table has none, in order of choice.",
    )
    selection_path_: SelectionPath = learned(
        "SelectionPath", "One record per step of the search; prints as a table."
    )

    def _fit(self, recipe: Recipe, training: TrainingSet) -> Fit:
        chosen, path = self._select(training)
        model = training.estimate(training.count()).restricted(chosen)
        named = {
            "selected_features_": feature_labels(training.schema, chosen),
            "selection_path_": SelectionPath(path),
        }
        return Fit(model, model.log_prior, named)

    def _select(self, training: TrainingSet) -> tuple[list[int], list[dict[str, Any]]]:
        """Return positions of attributes in order of choice, and the records."""
        raise NotImplementedError


class SelectiveNB(SelectedNB):
    r"""SNB: the best of the nested models by falling mutual information.

    Attributes are ranked by :math:`I(A_j; C)`. The models with the first 0, 1, ..., d
    of them are judged by leave-one-out, all in one pass over the rows: a row's own
    count is subtracted, nothing is fitted again,

    .. math:: \theta'_{j,x_{ij}|c} = \frac{N_{j,x_{ij},c} - [c = y_i] + f_j}
              {N_c^{(j)} - [c = y_i] + n_j f_j}, \qquad
              \mathrm{RMSE}_a = \sqrt{\frac1n \sum_i \bigl(1 - P'_a(y_i \mid
              x_i)\bigr)^2}

    Of equally good models the one with fewer attributes is taken. From the mean and sum
    of squares of a Gaussian attribute a row is taken out in the same way; for the ranks
    alone its numbers are cut into bins by MDL.

    References
    ----------
    S. Chen, G. I. Webb, L. Liu, X. Ma (2020), "A novel selective naive Bayes
    algorithm", Knowledge-Based Systems 192, 105361.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from steelyard import SelectiveNB
    >>> clf = SelectiveNB().fit(*load_iris(return_X_y=True))
    >>> clf.selected_features_
    [3, 2]
    >>> clf.selection_path_
    Size  Added      Rmse  Zero one  Chosen
       0         0.671111  1.000000
       1  3      0.197033  0.040000
       2  2      0.176287  0.073333  *
       3  0      0.194166  0.053333
       4  1      0.198347  0.060000
    >>> clf.transform([[5.1, 3.5, 1.4, 0.2]])
    array([[1.4, 0.2]])
    """

    measure: str = setting(
        default="rmse",
        allowed=word(*MEASURES),
        about="What the leave-one-out posteriors are judged by: the root mean squared "
        "error of the true class, or the share of rows that are classified wrongly.",
    )

    def _select(self, training: TrainingSet) -> tuple[list[int], list[dict[str, Any]]]:
        information = class_information(with_bins(training).count())
        order = np.argsort(-information, kind="stable").tolist()
        held = left_out(training)
        losses = held.prefix_losses(order) / held.total
        judged = losses[:, MEASURES.index(self.measure)]
        # The smallest up to rounding, of which the first has the fewest attributes.
        best = int(np.flatnonzero(judged <= judged.min() * (1.0 + EQUAL))[0])
        added = [None, *feature_labels(training.schema, order)]
        path = [
            {
                "size": size,
                "added": name,
                "rmse": float(np.sqrt(squared)),
                "zero_one": float(wrong),
                "chosen": size == best,
            }
            for size, (name, (squared, wrong)) in enumerate(
                zip(added, losses, strict=True)
            )
        ]
        return order[:best], path


class ForwardSelectedNB(SelectedNB):
    r"""SBC: attributes are added one by one as long as accuracy improves.

    .. math:: S \leftarrow S \cup \{\arg\max_{j \notin S} \mathrm{Acc}(S \cup \{j\})\}

    from the empty set, with the prior alone. Leave-one-out accuracy comes from
    subtracting a row's own count, or taking it out of means and variances; scores of
    the rows are kept and grow by one attribute at a time.

    References
    ----------
    P. Langley, S. Sage (1994), "Induction of selective Bayesian classifiers", UAI-94,
    399-406.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from steelyard import ForwardSelectedNB
    >>> clf = ForwardSelectedNB().fit(*load_iris(return_X_y=True))
    >>> clf.selected_features_
    [3]
    """

    evaluation: str = setting(
        default="leave-one-out",
        allowed=word("leave-one-out", "training"),
        about="Rows are judged without their own count, or with it.",
    )
    ties: str = setting(
        default="stop",
        allowed=word("stop", "add"),
        about="Whether an attribute that changes nothing ends the search or is added.",
    )
    verbose: bool = setting(
        default=False, allowed=FLAG, about="Whether to show progress."
    )

    def _select(self, training: TrainingSet) -> tuple[list[int], list[dict[str, Any]]]:
        judge = left_out if self.evaluation == "leave-one-out" else resubstituted
        held = judge(training)
        schema = training.schema
        path = [_step(0, None, held.accuracy(held.base))]
        chosen: list[int] = []
        with progress("attributes", len(schema), bool(self.verbose)) as advance:
            try:
                self._add_all(held, schema, chosen, path, advance)
            except KeyboardInterrupt:
                warn_interrupted(self, f"{len(chosen)} attributes")
        path[len(chosen)]["chosen"] = True
        return chosen, path

    def _add_all(
        self,
        held: HeldOut,
        schema: TableSchema,
        chosen: list[int],
        path: list[dict[str, Any]],
        advance: Callable[[str], None],
    ) -> None:
        """Add attributes to ``chosen`` and records to ``path`` until none helps."""
        scores = held.base.copy()
        least = EQUAL if self.ties == "stop" else -EQUAL
        while len(chosen) < len(schema):
            rest = [j for j in range(len(schema)) if j not in chosen]
            accuracies = held.accuracies(scores, rest)
            best = first_best(accuracies)
            accuracy, before = float(accuracies[best]), path[-1]["accuracy"]
            name = feature_labels(schema, [rest[best]])[0]
            path.append(_step(len(chosen) + 1, name, accuracy))
            if accuracy - before <= least:
                return
            held.add([rest[best]], scores)
            chosen.append(rest[best])
            advance(f"{name}: {accuracy:.4f}")


def _step(size: int, added: Any, accuracy: float) -> dict[str, Any]:
    return {"size": size, "added": added, "accuracy": accuracy, "chosen": False}


def first_best(values: Any) -> int:
    """Position of the largest value, of those equal up to rounding the first."""
    values = np.asarray(values)
    return int(np.flatnonzero(values >= values.max() - EQUAL)[0])


def warn_interrupted(owner: object, done: str) -> None:
    """Warn that a search ended before its time."""
    warn_user(
        f"{type(owner).__name__} was interrupted after {done}; the best choice so far "
        "is kept.",
        ConvergenceWarning,
    )
