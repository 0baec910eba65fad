"""Settings and tables that cannot be used, and what the message says."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score

import steelyard as sy
from steelyard import WeightedNB
from steelyard.exceptions import ParameterError
from steelyard.losses import LOSSES, DevianceLoss
from steelyard.solvers import LBFGS, Newton
from steelyard.weighting import AttributeWeighting

X, Y = load_iris(return_X_y=True)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"weighting": "by-row"}, "'attribute', 'class-attribute', 'value'"),
        ({"weighting": 3}, "Weighting object. Got 3"),
        ({"loss": "hing"}, ", ".join(map(repr, LOSSES))),
        ({"loss": None}, "Loss object. Got None"),
        ({"loss": DevianceLoss(0.0)}, r"'multiplier' .* range \(0, inf\)"),
        ({"loss": DevianceLoss(float("nan"))}, r"'multiplier' .* range \(0, inf\)"),
        ({"loss": DevianceLoss("2")}, r"'multiplier' .* range \(0, inf\)"),
        ({"solver": "sgd"}, "'auto', 'newton', 'lbfgs', 'published', 'fixed'"),
        ({"solver": None}, "Solver object. Got None"),
        ({"penalty": "l2"}, "'ridge', 'l1'"),
        ({"multiclass": "ovo"}, "'native', 'one-vs-one'"),
        ({"variance": "n"}, "'population', 'sample'"),
        ({"max_iter": 0}, "whole number of at least 1"),
        ({"max_iter": 2.5}, "whole number of at least 1"),
        ({"tol": -1e-3}, r"'tol' .* range \[0, inf\)"),
        ({"tol": float("nan")}, r"'tol' .* range \[0, inf\)"),
        ({"lam": -1}, r"'lam' .* range \[0, inf\)"),
        ({"lam": "1"}, r"'lam' .* range \[0, inf\)"),
        ({"lam": float("inf")}, r"'lam' .* range \[0, inf\)"),
        ({"center": float("nan")}, "'center' .* finite number"),
        ({"variance_floor": -1}, r"'variance_floor' .* range \[0, inf\)"),
        ({"prior_weight": "yes"}, "'prior_weight' .* True or False"),
        ({"calibrated": 1}, "'calibrated' .* True or False"),
        ({"published_gradient": None}, "'published_gradient' .* True or False"),
        ({"bounds": (1, 0)}, r"lower bound above the upper one \(1 > 0\)"),
        ({"bounds": [(0, 1)] * 3 + [(1, 0)]}, "lower bound above the upper one"),
        ({"bounds": {0: (2, 1)}}, "lower bound above the upper one"),
        ({"bounds": (0, float("nan"))}, r"pair \(low, high\) of numbers.*Got \(0, nan"),
        ({"bounds": (float("inf"), None)}, "no finite weight"),
        (
            {"bounds": (0, 1, 2)},
            r"a pair \(low, high\) .* pair for each attribute",
        ),
        ({"bounds": [(0, 1)] * 3}, "one pair for each of the 4"),
        ({"bounds": 1.0}, r"must be None, a pair \(low, high\)"),
        ({"bounds": "01"}, r"must be None, a pair \(low, high\)"),
        ({"bounds": ("a", "b")}, r"pair \(low, high\) of numbers"),
        ({"bounds": {0: 1}}, r"pair \(low, high\) of numbers"),
        (
            {"bounds": {"sepal": (0, 1)}},
            "'sepal', which is not a column.*x0, x1, x2",
        ),
        (
            {"bounds": {7: (0, 1)}},
            r"column 7, but there are 4 columns \(0 to 3\)",
        ),
        ({"bounds": {None: (0, 1)}}, "a mapping from attribute to pair.*Got {None"),
        (
            {"penalty": "l1", "lam": 1.0, "bounds": None},
            r"bounds=\(0, 1\) for center=1, .* penalty='ridge'",
        ),
        ({"penalty": "l1", "lam": 1.0, "bounds": (0, 2)}, "one side of it"),
        ({"weighting": "mixture"}, "LogLoss cannot be used .* Use loss='brier'"),
        ({"weighting": "mixture", "loss": "deviance"}, "Use loss='brier'"),
        ({"published_gradient": True}, "LogLoss: only .* Use loss='brier'"),
        ({"prior": [1.0, 0.0, 0.0]}, "probability 0, .* prior='smoothed'"),
        ({"prior": [0.5, 0.5]}, "2 entries for 3 classes"),
        ({"prior": "uniform"}, "'smoothed', 'frequency'"),
        ({"smoothing": "none"}, "'m-estimate', 'laplace', 'kohavi'"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
    ids=repr,
)
def test_wrong_setting_is_refused_with_what_is_allowed(settings, message):
    for multiclass in ("native", "one-vs-one"):
        clf = WeightedNB(**{"multiclass": multiclass, **settings})
        with pytest.raises(ParameterError, match=message):
            clf.fit(X, Y)


@pytest.mark.parametrize("weighting", ["class-attribute", "mixture"])
@pytest.mark.parametrize("solver", ["newton", Newton()], ids=repr)
def test_newton_refuses_the_printed_gradient_with_reason_and_alternatives(
    solver, weighting
):
    clf = WeightedNB(
        weighting=weighting, loss="brier", published_gradient=True, solver=solver
    )
    with pytest.raises(ParameterError, match=r"not the derivative .* solver='lbfgs'"):
        clf.fit(X, Y)


def test_automatic_solver_avoids_newton_for_the_printed_gradient():
    clf = WeightedNB(weighting="class-attribute", loss="brier", published_gradient=True)
    with warnings.catch_warnings():
        # The printed formula is no gradient: a line search along it may fail.
        warnings.simplefilter("ignore", ConvergenceWarning)
        clf.fit(X, Y)
    assert np.isfinite(clf.objective_)


def test_a_refused_fit_leaves_the_earlier_model_as_it_was():
    clf = WeightedNB().fit(X, Y)
    before = clf.predict_proba(X)
    clf.set_params(bounds=(1, 0))
    with pytest.raises(ParameterError):
        clf.fit(X[:, :2], Y)
    np.testing.assert_array_equal(clf.predict_proba(X), before)


def test_parts_given_as_objects_work_like_their_names():
    named = WeightedNB(loss="deviance", prior_weight=True, solver="lbfgs").fit(X, Y)
    objects = WeightedNB(
        weighting=AttributeWeighting(),
        loss=DevianceLoss(),
        prior_weight=True,
        solver=LBFGS(),
    ).fit(X, Y)
    assert objects.prior_weight_ == named.prior_weight_
    own = WeightedNB(weighting=AttributeWeighting(prior_weight=True)).fit(X, Y)
    assert hasattr(own, "prior_weight_")


# ------------------------------------------------------------------------------ tables


@pytest.mark.parametrize("numeric", ["gaussian", "gaussian-weka"])
@pytest.mark.parametrize("name", ["ENB", "DNB", "LNB", "GDNB", "MSE", "RNB", "CAWNB"])
def test_a_column_constant_within_a_class_gives_a_finite_model(name, numeric):
    table = X[:, :3].copy()
    table[Y == 1, 0] = 2.5
    table[:, 2] = 1.0
    clf = sy.method(name, numeric=numeric, bounds=(0, 1)).fit(table, Y)
    assert np.isfinite(clf.attribute_weights_ if name != "CAWNB" else 0.0).all()
    assert np.isfinite(clf.predict_proba(table)).all()
    assert np.isfinite(clf.objective_)


@pytest.mark.parametrize("name", ["WANBIA", "CAWNB", "RNB", "GDNB"])
def test_a_class_absent_from_a_fold_is_no_trouble(name):
    y = Y.copy()
    y[:2] = 3
    with pytest.warns(UserWarning, match="least populated class"):
        scores = cross_val_score(
            sy.method(name, bounds=(0, 1)), X, y, cv=3, error_score="raise"
        )
    assert (scores > 0.8).all()


def test_one_class_alone_is_refused():
    with pytest.raises(ValueError, match="only one class"):
        WeightedNB().fit(X[:50], Y[:50])
    weights = (Y == 0).astype(float)
    with pytest.raises(ValueError, match="only one class"):
        WeightedNB().fit(X, Y, sample_weight=weights)


@pytest.mark.parametrize("bad", [np.nan, None])
def test_missing_labels_are_refused(bad):
    y = Y.astype(object)
    y[3] = bad
    with pytest.raises(ValueError, match=r"(?i)label|nan"):
        WeightedNB().fit(X, y)


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf])
def test_wrong_sample_weights_are_refused(weight):
    weights = np.ones(len(Y))
    weights[5] = weight
    with pytest.raises(ValueError, match="row 5"):
        WeightedNB().fit(X, Y, sample_weight=weights)


def test_zero_frequency_of_a_class_cannot_come_from_the_data():
    # Rows of weight zero are as if absent, and with them their class.
    weights = np.where(Y == 2, 0.0, 1.0)
    clf = sy.method("LNB", bounds=(0, 1)).fit(X, Y, sample_weight=weights)
    assert clf.classes_.tolist() == [0, 1]
