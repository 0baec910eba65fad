"""Weights of the weather data, from the table of reference values in METHODS 10."""

import numpy as np
import pytest

import steelyard as sy
from steelyard import WeightedNB

pytestmark = pytest.mark.plain

# Attribute order outlook, temperature, humidity, windy; the classes sort as no, yes.
WANBIA = {
    "log, [0, 1]": ("WANBIA-CLL", {}, [1, 0.802444, 1, 1], 4.795017),
    "log, [0, inf)": (
        "WANBIA-CLL",
        {"bounds": (0, None)},
        [2.226114, 0.063754, 2.275773, 3.560492],
        3.772257,
    ),
    "squared, [0, 1]": ("WANBIA-MSE", {}, [1, 0.740331, 1, 1], 1.429453),
}
KIM_LEE = {
    "ENB": ([1.964874, 0.242030, 1.691779, 2.523758], 6.346665),
    "DNB": ([1.618090, 0.142198, 1.258824, 1.925872], 3.866427),
    "LNB": ([2.851800, 1.663251, 2.095881, 3.505274], 4.068278),
    "GDNB": ([3.554418, 0, 2.772998, 4.207825], 3.830993),
}
SOLVERS = ["auto", "newton", "lbfgs"]


def close(expected):
    return pytest.approx(np.array(expected), abs=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name, settings, weights, loss", WANBIA.values(), ids=WANBIA)
def test_wanbia_learns_the_known_weights(
    name, settings, weights, loss, solver, weather
):
    clf = sy.method(name, solver=solver, **settings).fit(*weather)
    assert clf.objective_ == pytest.approx(loss, abs=1e-6)
    tolerance = 1e-5 if solver == "lbfgs" else 1e-6
    np.testing.assert_allclose(clf.attribute_weights_, weights, atol=tolerance)


@pytest.mark.parametrize("solver", SOLVERS)
def test_cawnb_learns_the_known_weights(solver, weather):
    clf = sy.method("CAWNB-CLL", solver=solver).fit(*weather)
    no, yes = [1, 0.357056, 1, 1], [0.524929, 1, 1, 1]
    np.testing.assert_allclose(clf.class_attribute_weights_, [no, yes], atol=1e-5)
    assert clf.objective_ == pytest.approx(4.742232, abs=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", KIM_LEE)
def test_weights_of_at_least_zero_are_the_known_ones(name, solver, weather):
    weights, loss = KIM_LEE[name]
    clf = sy.method(name, prior="smoothed", solver=solver).fit(*weather)
    assert clf.objective_ == pytest.approx(loss, abs=1e-6)
    np.testing.assert_allclose(clf.attribute_weights_, weights, atol=2e-5)
    if name == "GDNB":
        assert clf.prior_weight_ == pytest.approx(2.597578, abs=2e-5)
    else:
        assert not hasattr(clf, "prior_weight_")


@pytest.mark.parametrize(
    "settings, loss",
    [
        ({}, 4.798991),
        ({"smoothing": "laplace"}, 5.397438),
        ({"loss": "brier"}, 1.431865),
        ({"loss": "brier", "weighting": "mixture"}, 1.431865),
    ],
)
def test_loss_of_unit_weights_is_the_known_one(settings, loss, weather):
    clf = WeightedNB(solver="fixed", **settings).fit(*weather)
    assert clf.objective_ == pytest.approx(loss, abs=1e-6)


@pytest.mark.parametrize("published, share", [(False, 1.0), (True, 0.5)])
def test_rnb_starts_with_the_known_gradient(published, share, weather, problem_of):
    settings = {
        "weighting": "mixture",
        "loss": "brier",
        "published_gradient": published,
    }
    objective, start, lower, upper = problem_of(settings, *weather)
    assert start.tolist() == [0.5] + [1.0] * 12
    assert (lower == 0).all() and (upper == 1).all()
    value, gradient = objective(start)
    yes = np.array([-0.037721, -0.065255, -0.039262, -0.054845])
    no = np.array([-0.077987, 0.074388, -0.024101, -0.006297])
    assert value == close(1.431865)
    assert gradient[0] == pytest.approx(0.0, abs=1e-12)
    assert gradient[1:5] == close(share * no)
    assert gradient[5:9] == close(share * yes)
    assert gradient[9:] == close([-0.115709, 0.009133, -0.063363, -0.061142])
    if not published:
        np.testing.assert_allclose(gradient[1:5] + gradient[5:9], gradient[9:])


def test_rnb_ends_no_worse_than_the_methods_that_it_contains(weather):
    rnb = sy.method("RNB").fit(*weather)
    for name in ("WANBIA-MSE", "CAWNB-MSE"):
        assert rnb.objective_ <= sy.method(name).fit(*weather).objective_ + 1e-9


def test_share_of_attributes_selected_is_one_line(weather):
    clf = sy.method("GDNB", prior="smoothed").fit(*weather)
    assert np.mean(clf.attribute_weights_ > 0) == 0.75
