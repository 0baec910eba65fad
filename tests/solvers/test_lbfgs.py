"""Solvers keep nothing from one fit to the next."""

import copy

import numpy as np
import pytest

import steelyard as sy
from steelyard.solvers import LBFGS, Fixed, Newton, SpectralGradient

SOLVERS = [LBFGS(), Newton(), SpectralGradient(), Fixed()]


def table(n, d, seed):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = np.where(rng.random((n, d)) < 0.4, y[:, None], rng.integers(0, 3, (n, d)))
    return X.astype(str), y


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: type(solver).__name__)
@pytest.mark.parametrize("weighting", ["attribute", "class-attribute", "hierarchy"])
def test_one_object_serves_one_table_after_another(solver, weighting):
    solver = copy.deepcopy(solver)
    state = dict(vars(solver))
    settings = {"weighting": weighting, "bounds": None, "lam": 0.5}
    for n, d, seed in ((60, 3, 0), (90, 5, 1), (60, 3, 0)):
        X, y = table(n, d, seed)
        shared = sy.WeightedNB(solver=solver, **settings).fit(X, y)
        fresh = sy.WeightedNB(solver=type(solver)(), **settings).fit(X, y)
        np.testing.assert_array_equal(
            shared.predict_proba(X), fresh.predict_proba(X), strict=True
        )
        assert shared.objective_ == fresh.objective_ or np.isnan(fresh.objective_)
    assert vars(solver) == state


def test_a_classifier_with_a_solver_object_can_choose_strengths(tmp_path):
    clf = sy.ShrinkageNB(solver=LBFGS(tol=1e-6))
    for n, d, seed in ((60, 3, 0), (90, 5, 1)):
        clf.fit(*table(n, d, seed))
        assert len(clf.strength_path_) >= 3


def test_units_are_no_setting_of_a_solver():
    with pytest.raises(TypeError, match="keeps_units"):
        LBFGS(keeps_units=True)
