"""ShrinkageNB: naive Bayes that is corrected as far as the rows support it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import _safe_indexing

from steelyard.classifier import Training
from steelyard.exceptions import ParameterError
from steelyard.instances import Task
from steelyard.objective import Penalty
from steelyard.problem import Problem
from steelyard.solvers import Solution
from steelyard.weighted import WeightedNB
from steelyard.weighting import HierarchicalWeighting

__all__ = ["ShrinkageNB", "Strengths"]


@dataclass(frozen=True)
class Strengths:
    """How strongly each level is drawn towards the one above it."""

    shared: float
    by_class: float
    by_value: float

    def weighting(self, intercept: float) -> HierarchicalWeighting:
        """Return the weighting with these strengths."""
        return HierarchicalWeighting(
            self.shared, self.by_class, self.by_value, intercept
        )


# From strong to weak: each fit starts from the one before it.
GRID = (
    Strengths(10.0, 40.0, 10.0),
    Strengths(2.5, 10.0, 2.5),
    Strengths(2.5, 10.0, 0.5),
    Strengths(0.5, 2.5, 0.5),
    Strengths(0.5, 1.0, 0.15),
)

# Strengths are compared on so many rows at most: they say how far weights of any such
# table differ, which does not depend on the number of rows.
_MOST_ROWS = 20_000
_ROUGH = 1e-4


class ShrinkageNB(WeightedNB):
    weighting: ClassVar[str] = "hierarchy"
    prior_weight: ClassVar[bool] = False
    bounds: ClassVar[None] = None
    penalty: ClassVar[None] = None
    lam: ClassVar[float] = 0.0
    center: ClassVar[float] = 1.0
    multiclass: ClassVar[str] = "native"
    calibrated: ClassVar[bool] = False
    published_gradient: ClassVar[bool] = False
    variance: ClassVar[str] = "population"

    def __init__(
        self,
        *,
        strength: Any = "auto",
        intercept: float = 0.5,
        grid: Any = None,
        cv: int = 5,
        loss: Any = "log",
        instances: Any = None,
        solver: Any = "auto",
        tol: float = 1e-6,
        max_iter: int = 1000,
        categorical_features: Any = "auto",
        numeric: Any = ("mdl", "gaussian-relative"),
        missing: str = "skip",
        smoothing: Any = "m-estimate",
        cardinality: str = "observed",
        prior: Any = "smoothed",
        variance_floor: float = 1e-9,
        class_weight: Any = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.strength = strength
        self.intercept = intercept
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
        self._strengths = self._choose(X, y, sample_weight)
        super().fit(X, y, sample_weight)
        return self

    def _choose(self, X, y, sample_weight):
        if self.strength != "auto":
            self.path_ = []
            return Strengths(*self.strength)
        grid = [s if isinstance(s, Strengths) else Strengths(*s) for s in (self.grid or GRID)]
        y = np.asarray(y)
        classes, counts = np.unique(y, return_counts=True)
        folds = StratifiedKFold(min(self.cv, max(2, counts.min())) if False else self.cv, shuffle=True, random_state=self.random_state)
        loss = np.zeros(len(grid)); total = 0.0; err=np.zeros(len(grid))
        import warnings
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            splits = list(folds.split(np.zeros(len(y)), y))
        self._strengths = grid[0]
        for train, test in splits:
            present = np.isin(y[test], np.unique(y[train])); test = test[present]
            part = self._prepare(_safe_indexing(X, train), y[train], None)
            task = self._task(part)
            problem = self._problem(task, None, self.prior)
            codes = part.encoder.encode(self._as_table(_safe_indexing(X, test)))
            where = {c: k for k, c in enumerate(part.classes.tolist())}
            truth = np.array([where[c] for c in y[test].tolist()])
            start = None
            for k, strengths in enumerate(grid):
                penalty = Penalty(*strengths.weighting(self.intercept).strengths(problem.evidence))
                own = replace(problem, objective=replace(problem.objective, penalty=penalty))
                solution = own.solve(self.solver, _ROUGH, int(self.max_iter), start)
                start = solution.weights
                model = own.model(start, part.classes, 1.0)
                lp = model.log_proba(codes)
                loss[k] += -lp[np.arange(len(truth)), truth].sum()
                err[k] += (lp.argmax(axis=1) != truth).sum()
            total += len(truth)
        self.path_ = [(s, l / total, e/total) for s, l, e in zip(grid, loss, err)]
        return grid[int(np.argmin(loss))]

    def _as_table(self, X):
        from steelyard.table.columns import as_table
        return as_table(X, None)

    def _task(self, training: Training) -> Task:
        estimation = self._estimation()
        classes = training.classes
        return Task(training.codes, training.labels, training.row_weights(self.class_weight), len(classes),
            lambda counts: estimation.model(counts, classes), self.n_jobs)

    def _weighting(self) -> HierarchicalWeighting:
        return self._strengths.weighting(float(self.intercept))
