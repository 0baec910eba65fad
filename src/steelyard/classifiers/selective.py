"""Attributes chosen by how well the classifier does: SNB, SBC and TCSFS-NB."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from steelyard._common.arrays import Floats
from steelyard._common.greedy import EQUAL, Extended, Subset, follow, search
from steelyard._common.settings import (
    COLUMN,
    FLAG,
    NONE,
    SEED,
    learned,
    listed,
    mapped,
    number,
    setting,
    whole,
    word,
)
from steelyard.classifiers.base.estimator import StandardNB
from steelyard.classifiers.base.selection import (
    FeatureSelector,
    RecordTable,
    selected,
)
from steelyard.exceptions import ParameterError, warn_user
from steelyard.fitting.fit import Fit
from steelyard.fitting.recipe import Recipe, by_position
from steelyard.fitting.search.left_out import (
    JudgedRows,
    cross_validated,
    left_out,
    resubstituted,
)
from steelyard.model.training import TrainingSet
from steelyard.table.schema import TableSchema
from steelyard.weighting.filters.correlation import with_bins
from steelyard.weighting.filters.information import class_information

__all__ = ["CostSensitiveNB", "ForwardSelectedNB", "SelectiveNB", "attribute_costs"]


MEASURES = ("rmse", "zero-one")


class SelectedNB(FeatureSelector, StandardNB):
    """Base of methods that choose attributes: fitting around the choice."""

    _lists_subsets: ClassVar[bool] = False
    """Whether records list a subset, which does not always grow."""

    selected_features_: list[Any] = learned(
        "list",
        "Names, or positions if the table has none, in order of choice.",
    )
    selection_path_: RecordTable = learned(
        "RecordTable", "One record per step of the search; prints as a table."
    )

    def _fit(self, recipe: Recipe, training: TrainingSet) -> Fit:
        path, best = self._path(training)
        model = training.estimate(training.count())
        model = model.restricted(list(path[best].members))
        named = selected(training.schema, path, best, self._lists_subsets)
        return Fit(model, model.log_prior, named)

    def _path(self, training: TrainingSet) -> tuple[list[Subset], int]:
        """Return the subsets on the way, and which of them is chosen."""
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

    def _path(self, training: TrainingSet) -> tuple[list[Subset], int]:
        information = class_information(with_bins(training).count())
        order = np.argsort(-information, kind="stable").tolist()
        judged_rows = left_out(training)
        losses = judged_rows.prefix_losses(order) / judged_rows.total
        judged = losses[:, MEASURES.index(self.measure)]
        # The smallest up to rounding, of which the first has the fewest attributes.
        best = int(np.flatnonzero(judged <= judged.min() * (1.0 + EQUAL))[0])
        path = []
        for size, (squared, wrong) in enumerate(losses.tolist()):
            facts = {"rmse": float(np.sqrt(squared)), "zero_one": wrong}
            path.append(Subset(tuple(order[:size]), -float(judged[size]), facts))
        return path, best


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

    def _path(self, training: TrainingSet) -> tuple[list[Subset], int]:
        judge = left_out if self.evaluation == "leave-one-out" else resubstituted
        labels = training.schema.labels()

        def note(path: list[Subset]) -> str | None:
            added = labels[path[-1].members[-1]]
            return f"{added}: {path[-1].score:.4f}" if path[-1].is_gain else None

        return _search(
            self,
            judge(training),
            lambda subsets, accuracies: (accuracies, {"accuracy": accuracies}),
            ("attributes", len(labels), note),
            least=EQUAL if self.ties == "stop" else -EQUAL,
        )


class CostSensitiveNB(SelectedNB):
    r"""TCSFS-NB: a subset of attributes that is accurate and cheap to measure.

    .. math:: \max_S \; \mathrm{Acc}_{cv}(S) - \lambda \,
              \frac{\sum_{j \in S} t_j}{\sum_j t_j}

    by best-first search forward from the empty set, with stratified cross-validation on
    the training rows. Folds have separate counts, which add up; nothing is encoded
    or fitted again. A search that ends early, by ``max_stale`` or an interruption,
    keeps the best subset it has seen. As published, as far as is known:
    ``missing="impute", cardinality="declared"``.

    References
    ----------
    L. Jiang, G. Kong, C. Li (2019), "Wrapper framework for test-cost-sensitive feature
    selection", IEEE Trans. SMC: Systems. Its evaluation function could not be read; the
    one here is a plain form of what its abstract says.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from steelyard import CostSensitiveNB
    >>> X, y = load_iris(return_X_y=True)
    >>> CostSensitiveNB(costs={3: 100}, lam=0.2, random_state=0).fit(
    ...     X, y
    ... ).selected_features_
    [2]
    """

    _lists_subsets: ClassVar[bool] = True

    costs: Any = setting(
        default=None,
        allowed=(NONE | listed(number()) | mapped(COLUMN, number())).called(
            "None, a finite number for each column, or a mapping from column to such "
            "a number"
        ),
        about="Cost of each attribute: all one, by name or position (one if left "
        "out), or in the order of the columns.",
    )
    lam: float = setting(
        default=0.01,
        allowed=number(0.0),
        about="Accuracy that is given up for saving all of the cost.",
    )
    folds: int = setting(
        default=5,
        allowed=whole(2),
        about="Folds of the cross-validation. Equal rows are interchangeable: a weight "
        "of 2 counts like the row twice.",
    )
    max_stale: int = setting(
        default=5,
        allowed=whole(1),
        about="Expansions in a row without a better subset, after which the search "
        "ends.",
    )
    random_state: Any = setting(default=None, allowed=SEED, about="Seed of the folds.")
    verbose: bool = setting(
        default=False, allowed=FLAG, about="Whether to show progress."
    )

    def _path(self, training: TrainingSet) -> tuple[list[Subset], int]:
        costs, lam = attribute_costs(self.costs, training.schema), float(self.lam)
        shares = costs / max(float(costs.sum()), np.finfo(np.float64).tiny)
        rng = check_random_state(self.random_state)

        def worth(subsets: list[list[int]], accuracies: Floats) -> Extended:
            cost = np.array([shares[subset].sum() for subset in subsets])
            score = accuracies - lam * cost
            return score, {"accuracy": accuracies, "cost": cost, "score": score}

        def note(path: list[Subset]) -> str:
            return f"best {max(step.score for step in path):.4f}"

        return _search(
            self,
            cross_validated(training, int(self.folds), rng),
            worth,
            ("expansions", None, note),
            patience=int(self.max_stale),
            width=None,
        )


def _search(
    owner: ForwardSelectedNB | CostSensitiveNB,
    held: JudgedRows,
    worth: Callable[[list[list[int]], Floats], Extended],
    shown: tuple[str, int | None, Callable[[list[Subset]], str | None]],
    **rules: Any,
) -> tuple[list[Subset], int]:
    """Search from the empty set by accuracy; the last gain is chosen."""
    members: tuple[int, ...] = ()
    scores = held.base.copy()

    def extend(subset: Subset, rest: list[int]) -> Extended:
        nonlocal members, scores
        if subset.members[: len(members)] != members:  # the search has turned back
            members, scores = (), held.base.copy()
        held.add(subset.members[len(members) :], scores)
        members = subset.members
        return worth([[*members, j] for j in rest], held.accuracies(scores, rest))

    score, facts = worth([[]], np.array([held.accuracy(held.base)]))
    start = Subset((), float(score[0]), {name: float(facts[name][0]) for name in facts})
    steps = search(extend, start, range(len(held.schema)), **rules)
    path, end = follow(steps, *shown[:2], bool(owner.verbose), shown[2])
    if end != "complete":
        warn_user(
            f"{type(owner).__name__} was interrupted after {len(path) - 1} {shown[0]}; "
            "the best choice so far is kept.",
            ConvergenceWarning,
        )
    return path, max(k for k, step in enumerate(path) if step.is_gain)


def attribute_costs(setting: Any, schema: TableSchema) -> Floats:
    """Return the cost of every attribute, shape (d,).

    The setting is None for all one, a mapping from name or position to cost, or a cost
    for each attribute.
    """
    d, names = len(schema), schema.labels()
    costs = np.ones(d)
    if isinstance(setting, Mapping):
        for j, cost in by_position(setting, schema, "costs"):
            costs[j] = float(cost)
    elif setting is not None:
        costs = np.asarray(setting, dtype=np.float64)
    if costs.shape != (d,):
        raise ParameterError(
            f"`costs` must have one number for each of the {d} columns, or be a "
            f"mapping from column to cost. Got an array of shape {costs.shape}."
        )
    if (costs < 0).any():
        j = int(np.flatnonzero(costs < 0)[0])
        raise ParameterError(
            f"`costs` must be at least 0. Got {costs[j]:g} for column {names[j]!r}."
        )
    return costs
