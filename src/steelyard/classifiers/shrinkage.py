"""ShrinkageNB: naive Bayes, corrected as far as the rows support it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp
from sklearn.utils import check_random_state

from steelyard._common.checks import check_number
from steelyard.classifiers.weighted import WeightedNB
from steelyard.exceptions import ParameterError
from steelyard.fitting.folds import deal
from steelyard.fitting.penalty import Penalty
from steelyard.model.training import Training
from steelyard.solvers import LBFGS
from steelyard.table.codes import Codes
from steelyard.table.encoder import TableEncoder
from steelyard.table.frames import as_table
from steelyard.table.taking import take_rows
from steelyard.weighting import HierarchicalWeighting

__all__ = ["GRID", "ShrinkageNB", "Strengths"]


@dataclass(frozen=True)
class Strengths:
    """How strongly each level of weights is drawn towards the one above it."""

    shared: float
    by_class: float
    by_value: float

    def weighting(self, intercept: float, overall: float) -> HierarchicalWeighting:
        """Return the weighting with these strengths."""
        return HierarchicalWeighting(
            self.shared, self.by_class, self.by_value, intercept, overall
        )


# From strong to weak: each fit starts from the one before it.
GRID = (
    Strengths(10.0, 40.0, 10.0),
    Strengths(2.5, 10.0, 2.5),
    Strengths(2.5, 10.0, 0.5),
    Strengths(0.5, 2.5, 0.5),
    Strengths(0.5, 1.0, 0.15),
)

# Strengths are compared on so many rows at most. They say how far weights differ from
# table to table, which does not depend on the number of rows.
_MOST_ROWS = 10_000

# Relative accuracy of the fits that are compared.
_ROUGH = 1e-4

# Pull of the scale of posteriors towards one, and the least log posterior in it.
_SCALE_ROWS = 2.0
_FARTHEST = 100.0


# Positions of rows, and their weights.
_Share = tuple[NDArray[np.int64], NDArray[np.float64]]


class ShrinkageNB(WeightedNB):
    r"""Naive Bayes with weights that stay close to one unless the rows say otherwise.

    .. math:: z_c(x) = \log \pi_c + b_c + \sum_k (w_k + V_{kc})\, e_k(x)_c
              + \sum_j U_{j,x_j,c}

    .. math:: \min\; -\sum_i u_i \log P(y_i \mid x_i) + \lambda_w \sum_k (w_k - c_k)^2
              + \lambda_V \sum V^2 + \lambda_U \sum U^2 + \lambda_b \sum b^2

    The evidence :math:`e_k` of a category or bin is its log-likelihood. A numeric
    column is seen in four ways: in MDL bins (:math:`c_k = 1`), by its Gaussian
    log-density, in ten bins of equal frequency, and as the standardised number itself,
    whose slope for each class counts among the value effects :math:`U` (all with
    :math:`c_k = 0`). The problem is
    convex. With all strengths large the model is
    naive Bayes; each level, shared weight, class weight, value effect, opens only as
    far as the rows support it. A prediction stays a sum of contributions.

    Parameters
    ----------
    strength : "auto" or three floats, default="auto"
        :math:`\lambda_w, \lambda_V, \lambda_U`; "auto" chooses them from a grid by
        cross-validated log-loss, with everything learned anew in each fold.
    intercept : float, default=0.5
        :math:`\lambda_b`.
    overall : float, default=inf
        Strength that holds an overall weight t at one, to which :math:`t c_k` the
        shared weights are drawn; infinite for none. It did not help on average.
    grid : sequence of three floats each, default=None
        What "auto" chooses from, best from strong to weak; None is a grid of five.
    cv : int or list of (train, test), default=5
        Folds of the cross-validation, on at most 10,000 rows; or positions of training
        and test rows of each fold.
    loss : str or Loss, default="log"
        As in ``WeightedNB``; strengths are compared by log-loss in any case.
    instances : str, InstanceWeighting or None, default=None
        Instance weights that the counts are made with, as in ``WeightedNB``.
    solver, tol, max_iter
        As in ``WeightedNB``.
    categorical_features, numeric, missing, cardinality
        How tables become codes; see ``NaiveBayes``. Several ``numeric`` treatments are
        several views of each numeric column.
    smoothing, prior, variance_floor
        How counts become probabilities; see ``NaiveBayes``.
    class_weight : dict or "balanced", default=None
        Factor on the weight of the rows of each class, in counts and loss.
    random_state : int, RandomState or None, default=0
        How rows are dealt to folds.
    n_jobs : int, default=None
        Threads. Results do not depend on it.

    Attributes
    ----------
    strength_ : tuple of three floats
        Strengths of the model.
    scale_ : float
        Factor on the scores before they become probabilities: below one, since a model
        is too sure of the rows it has seen. Found by the cross-validation; 1 where the
        strengths were given.
    strength_path_ : list of dict
        Strengths that were compared, each with its ``scale``, its cross-validated
        ``log_loss``, the standard error of that, and its ``error`` rate; empty where
        they were given.
    attribute_weights_ : ndarray of shape (views,)
        Shared weights :math:`w_k`.
    class_attribute_weights_ : ndarray of shape (K, views)
        Weights :math:`w_k + V_{kc}` of each class.
    value_effects_ : list of ndarray of shape (K, n_j)
        Effects :math:`U_{jvc}` of single values; width 0 for densities.
    intercept_ : ndarray of shape (K,)
        Corrections :math:`b_c` of the log priors.
    view_names_ : ndarray of shape (views,)
        Names of the views: columns, and their densities.
    objective_, n_iter_, diagnostics_
        As in ``WeightedNB``.
    classes_, class_log_prior_, class_count_, counts_, model_, encoder_
        As in ``NaiveBayes``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from steelyard import ShrinkageNB
    >>> clf = ShrinkageNB().fit(*load_iris(return_X_y=True))
    >>> clf.strength_
    (0.5, 1.0, 0.15)
    >>> clf.view_names_[:2].tolist()
    ['x0', 'x0 (density)']
    """

    # What WeightedNB leaves open and this model does not.
    weighting: Any = "hierarchy"
    prior_weight: bool = False
    bounds: Any = None
    penalty: str | None = None
    lam: float = 0.0
    center: float = 1.0
    multiclass: str = "native"
    calibrated: bool = False
    published_gradient: bool = False
    variance: str = "population"

    scale_: float
    strength_: tuple[float, float, float]
    strength_path_: list[dict[str, float]]
    view_names_: NDArray[Any]

    def __init__(
        self,
        *,
        strength: Any = "auto",
        intercept: float = 0.5,
        overall: float = np.inf,
        grid: Any = None,
        cv: Any = 5,
        loss: Any = "log",
        instances: Any = None,
        solver: Any = "auto",
        tol: float = 1e-6,
        max_iter: int = 1000,
        categorical_features: Any = "auto",
        numeric: Any = (
            "mdl",
            "gaussian-relative",
            "equal-frequency",
            "linear",
        ),
        missing: str = "skip",
        smoothing: Any = "laplace",
        cardinality: str = "observed",
        prior: Any = "smoothed",
        variance_floor: float = 1e-9,
        class_weight: Any = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.strength = strength
        self.intercept = intercept
        self.overall = overall
        self.grid = grid
        self.cv = cv
        self.loss = loss
        self.instances = instances
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.categorical_features = categorical_features
        self.numeric = numeric
        self.missing = missing
        self.smoothing = smoothing
        self.cardinality = cardinality
        self.prior = prior
        self.variance_floor = variance_floor
        self.class_weight = class_weight
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ShrinkageNB:
        """Choose strengths and learn the model from a table and its labels.

        Parameters
        ----------
        X : table of shape (n, d)
            NumPy array, pandas, polars or pyarrow table.
        y : array-like of shape (n,)
            Labels, none of them missing.
        sample_weight : array-like of shape (n,), default=None
            Row weights, in the counts and in the loss; a weight of 2 equals the row
            twice.

        Returns
        -------
        ShrinkageNB
            The fitted classifier.
        """
        self._check_settings()
        self._estimation()
        given = self._given_strengths()
        training = self._prepare(X, y, sample_weight)
        path: list[dict[str, float]] = []
        try:
            self._strengths, self._scale = given[0], 1.0
            if len(given) > 1:
                path = self._compare(given, training, X)
                best = int(np.argmin([record["log_loss"] for record in path]))
                self._strengths, self._scale = given[best], path[best]["scale"]
            self._learn(training)
            chosen, scale = self._strengths, self._scale
        finally:
            del self._strengths, self._scale
        self.scale_ = scale
        self.strength_ = (chosen.shared, chosen.by_class, chosen.by_value)
        self.strength_path_ = path
        labels = self.encoder_.schema_.labels()
        self.view_names_ = np.asarray(labels, dtype=object)
        return self

    # ---------------------------------------------------------------------- strengths

    def _link_scale(self) -> float:
        return self._scale

    def _weighting(self) -> HierarchicalWeighting:
        # Those of the fit that is under way, or of the last one.
        chosen = getattr(self, "_strengths", None) or Strengths(*self.strength_)
        return chosen.weighting(float(self.intercept), float(self.overall))

    def _has_class_weights(self) -> bool:
        return True

    def _given_strengths(self) -> tuple[Strengths, ...]:
        """Return the strengths to choose from; a single one needs no choice."""
        if isinstance(self.strength, str):
            if self.strength != "auto":
                raise ParameterError(
                    "The 'strength' parameter must be 'auto' or three numbers. Got "
                    f"{self.strength!r} instead."
                )
            grid = GRID if self.grid is None else self.grid
            found = tuple(_strengths(entry, "grid") for entry in grid)
            if not found:
                raise ParameterError(
                    "The 'grid' parameter must hold at least one triple of strengths."
                )
            return found
        return (_strengths(self.strength, "strength"),)

    def _compare(
        self, grid: tuple[Strengths, ...], training: Training, X: Any
    ) -> list[dict[str, float]]:
        """Cross-validated log-loss and error rate of each of the strengths."""
        place = np.arange(training.codes.n_rows)
        if training.is_kept is not None:
            place = np.flatnonzero(training.is_kept)
        answers: list[list[NDArray[np.float64]]] = []
        truths, weights = [], []
        for (rest, amount), (own, own_amount) in self._folds(training, place, X):
            # Rows of a class that the others lack tell nothing about strengths.
            known = np.isin(training.labels[own], training.labels[rest])
            own, own_amount = own[known], own_amount[known]
            if not own.size or len(np.unique(training.labels[rest])) < 2:
                continue
            truth = training.labels[own]
            with warnings.catch_warnings():
                # What there is to say of the table is said once, of the whole.
                warnings.simplefilter("ignore")
                part = self._learn_schema(
                    as_table(take_rows(X, place[rest]), self),
                    training.classes,
                    training.labels[rest],
                    None if (amount == 1.0).all() else amount,
                )
                held_out = as_table(take_rows(X, place[own]), self)
                codes = part.encoder.encode(held_out)
                found = list(self._posteriors(grid, part, codes))
            answers.append(found)
            truths.append(truth)
            weights.append(own_amount)
        if not weights:
            return [{**asdict(one), "log_loss": np.nan, "scale": 1.0} for one in grid]
        truth, u = np.concatenate(truths), np.concatenate(weights)
        return [
            {**asdict(one), **_judged(np.concatenate(log_proba), truth, u)}
            for one, log_proba in zip(grid, zip(*answers, strict=True), strict=True)
        ]

    def _folds(
        self, training: Training, place: NDArray[np.int64], X: Any
    ) -> Iterator[tuple[_Share, _Share]]:
        """Yield rows to learn from and rows to predict, each with their weights."""
        if not isinstance(self.cv, Integral):
            u = np.ones(len(place)) if training.weights is None else training.weights
            for split in self.cv:
                rest, own = (_rows_among(place, rows) for rows in split)
                yield (rest, u[rest]), (own, u[own])
            return
        random = check_random_state(self.random_state)
        some = np.arange(len(place))
        if len(some) > _MOST_ROWS:
            some = np.sort(random.choice(len(some), _MOST_ROWS, replace=False))
            training = training.take(some)
        training = self._with_numbers(training, place[some], X)
        rows, fold, amount = deal(training, int(self.cv), random)
        rows = some[rows]
        for held in range(int(self.cv)):
            out = fold == held
            yield (rows[~out], amount[~out]), (rows[out], amount[out])

    def _with_numbers(
        self, training: Training, place: NDArray[np.int64], X: Any
    ) -> Training:
        """Return the rows with the numbers of all numeric columns.

        Equal rows are merged when they are dealt to folds. Cut points are learned anew
        in each fold, so that rows in the same bins are not equal.
        """
        schema = training.codes.schema
        pairs = list(zip(schema.columns, schema.features, strict=True))
        numeric = {column for column, own in pairs if own.kind != "categorical"}
        exact = ("gaussian", "gaussian-relative", "linear")
        told = {c for c, own in pairs if own.kind in exact and own.fill is None}
        if numeric <= told:
            return training
        views = {column: "gaussian" for column in sorted(numeric)}
        encoder = TableEncoder(
            self.categorical_features, views, "skip", self.cardinality, self.n_jobs
        )
        found = Training(encoder, training.classes, training.labels, training.weights)
        table = as_table(take_rows(X, place), self)
        with warnings.catch_warnings():
            # What there is to say of the table has been said.
            warnings.simplefilter("ignore")
            found.codes = encoder.learn(
                table, training.labels, len(training.classes), training.weights
            )
        return found

    def _posteriors(
        self, grid: tuple[Strengths, ...], part: Training, codes: Codes
    ) -> Iterator[NDArray[np.float64]]:
        """Fit each of the strengths to some rows; yield log posteriors of others."""
        task = self._task(part)
        weighed = self._weigh(task)
        learned = None if weighed is None else weighed.weights
        problem = self._problem(task, learned, self.prior)
        start, solver = None, self.solver
        if isinstance(solver, str) and solver in ("auto", "lbfgs"):
            solver = LBFGS(_ROUGH, int(self.max_iter), keeps_units=True)
        for one in grid:
            weighting = one.weighting(float(self.intercept), float(self.overall))
            ridge = weighting.strengths(problem.evidence)
            objective = replace(problem.objective, penalty=Penalty(*ridge))
            own = replace(problem, objective=objective)
            found = own.solve(solver, _ROUGH, int(self.max_iter), start)
            start = found.weights
            yield own.model(start, part.classes, 1.0).log_proba(codes, self.n_jobs)

    def _check_settings(self) -> None:
        super()._check_settings()
        _check_cv(self.cv)
        check_number(self, "intercept", np.inf)


def _rows_among(place: NDArray[np.int64], rows: Any) -> NDArray[np.int64]:
    """Turn positions in the table into positions among the rows that have weight."""
    rows = np.asarray(rows, dtype=np.int64)
    found = np.minimum(np.searchsorted(place, rows), len(place) - 1)
    return np.asarray(found[place[found] == rows])


def _check_cv(cv: Any) -> None:
    """Refuse what is neither a number of folds nor a list of splits."""
    if isinstance(cv, Integral) and not isinstance(cv, bool) and int(cv) >= 2:
        return
    is_split = isinstance(cv, (list, tuple)) and len(cv) > 0
    for split in cv if is_split else ():
        pair = isinstance(split, (list, tuple)) and len(split) == 2
        is_split &= pair and all(
            np.ndim(rows) == 1 and np.asarray(rows).dtype.kind in "iu" for rows in split
        )
    if not is_split:
        raise ParameterError(
            "The 'cv' parameter of ShrinkageNB must be a whole number of at least 2, "
            "or a list of pairs of arrays: positions of training rows and of test "
            f"rows. Got {cv!r} instead."
        )


def _judged(
    log_proba: NDArray[np.float64], truth: NDArray[Any], u: NDArray[np.float64]
) -> dict[str, float]:
    """Find the scale that makes held-out posteriors fit best, and how well they do.

    A model is too sure of the rows that it was learned from; what it says of others
    tells by how much. The scale is drawn towards one by a few rows' worth.
    """
    total = u.sum()

    def losses(log_scale: float) -> NDArray[np.float64]:
        scores = np.exp(log_scale) * np.maximum(log_proba, -_FARTHEST)
        own = scores[np.arange(len(truth)), truth]
        return np.asarray(logsumexp(scores, axis=1) - own)

    found = minimize_scalar(
        lambda t: u @ losses(t) + _SCALE_ROWS * t * t,
        bounds=(np.log(0.1), np.log(2.0)),
        method="bounded",
        options={"xatol": 1e-3},
    )
    loss = losses(float(found.x))
    mean = u @ loss / total
    spread = u @ (loss - mean) ** 2 / total
    return {
        "log_loss": float(mean),
        "standard_error": float(np.sqrt(spread / max(total - 1.0, 1.0))),
        "error": float(u @ (log_proba.argmax(axis=1) != truth) / total),
        "scale": float(np.exp(found.x)),
    }


def _strengths(setting: Any, name: str) -> Strengths:
    """Return three strengths, checked."""
    if isinstance(setting, Strengths):
        setting = (setting.shared, setting.by_class, setting.by_value)
    try:
        shared, by_class, by_value = map(float, setting)
    except (TypeError, ValueError):
        raise ParameterError(
            f"The {name!r} parameter must give three numbers, the strengths of shared "
            f"weights, class weights and value effects. Got {setting!r} instead."
        ) from None
    if not all(0.0 < value < np.inf for value in (shared, by_class, by_value)):
        raise ParameterError(
            f"Strengths must be finite numbers greater than 0. Got {setting!r} in "
            f"{name!r}."
        )
    return Strengths(shared, by_class, by_value)
