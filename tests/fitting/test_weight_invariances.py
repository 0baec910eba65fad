"""What must not matter does not: order, names, copies, threads."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine

from steelyard import NaiveBayes, WeightedNB
from steelyard.losses import LOSSES
from steelyard.weighting import WEIGHTINGS

# A hierarchy has strengths in place of bounds, and its own tests.
BOUNDED = [word for word in WEIGHTINGS if word != "hierarchy"]
PAIRS = [
    (weighting, loss)
    for weighting in BOUNDED
    for loss in LOSSES
    if not WEIGHTINGS[weighting].is_mixture or loss == "brier"
]
NAMES = ("attribute_weights_", "class_attribute_weights_", "alpha_", "prior_weight_")


def fit(weighting, loss, X, y, sample_weight=None, **settings):
    settings = {"lam": 0.5, **settings}
    clf = WeightedNB(weighting=weighting, loss=loss, **settings)
    return clf.fit(X, y, sample_weight)


def assert_same_fit(first, second, tolerance=1e-6):
    assert first.objective_ == pytest.approx(second.objective_, rel=tolerance)
    for name in NAMES:
        assert hasattr(first, name) == hasattr(second, name)
        if hasattr(first, name):
            np.testing.assert_allclose(
                getattr(first, name), getattr(second, name), atol=10 * tolerance
            )


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighting, loss", PAIRS)
def test_doubling_a_weight_equals_repeating_a_row(
    weighting, loss, n_classes, make_table
):
    settings, X, y = make_table("categories with gaps", n_classes)
    twice = np.arange(len(y)) % 3 == 0
    weighted = fit(weighting, loss, X, y, 1.0 + twice, **settings)
    rows = np.concatenate([np.arange(len(y)), np.flatnonzero(twice)])
    repeated = fit(weighting, loss, X[rows], y[rows], **settings)
    assert_same_fit(weighted, repeated)
    np.testing.assert_allclose(
        weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-5
    )


def test_doubling_a_weight_equals_repeating_a_row_for_numbers():
    X, y = load_iris(return_X_y=True)
    twice = np.arange(len(y)) % 3 == 0
    rows = np.concatenate([np.arange(len(y)), np.flatnonzero(twice)])
    for numeric in ("gaussian", "gaussian-weka", "mdl"):
        settings = {"numeric": numeric, "prior_weight": True}
        weighted = fit("attribute", "log", X, y, 1.0 + twice, **settings)
        repeated = fit("attribute", "log", X[rows], y[rows], **settings)
        assert_same_fit(weighted, repeated)


def test_rows_of_weight_zero_are_as_if_absent(make_table):
    settings, X, y = make_table("mixed with gaps", 3)
    kept = np.arange(len(y)) % 4 != 0
    first = fit("class-attribute", "log", X, y, kept.astype(float), **settings)
    second = fit("class-attribute", "log", X[kept], y[kept], **settings)
    assert_same_fit(first, second)


def test_class_weights_equal_row_weights(make_table):
    settings, X, y = make_table("categories", 3)
    factors = np.array([2.0, 1.0, 0.5])
    by_class = fit(
        "attribute", "log", X, y, class_weight=dict(enumerate(factors)), **settings
    )
    by_row = fit("attribute", "log", X, y, factors[y], **settings)
    assert_same_fit(by_class, by_row)


@pytest.mark.plain
@pytest.mark.parametrize("weighting, loss", PAIRS)
def test_row_order_does_not_matter(weighting, loss, make_table):
    settings, X, y = make_table("mixed with gaps", 3, n=40)
    order = np.random.default_rng(0).permutation(len(y))
    first = fit(weighting, loss, X, y, **settings)
    assert_same_fit(first, fit(weighting, loss, X[order], y[order], **settings))


@pytest.mark.parametrize("weighting, loss", PAIRS)
def test_renaming_classes_only_renames_predictions(weighting, loss, make_table):
    settings, X, y = make_table("mixed with gaps", 3)
    names = np.array(["zebra", "ant", "mole"])
    first = fit(weighting, loss, X, y, **settings)
    second = fit(weighting, loss, X, names[y], **settings)
    assert first.objective_ == pytest.approx(second.objective_, rel=1e-6)
    order = np.argsort(names)
    assert second.classes_.tolist() == names[order].tolist()
    p, q = first.predict_proba(X)[:, order], second.predict_proba(X)
    np.testing.assert_allclose(p, q, atol=1e-5)


@pytest.mark.parametrize("weighting", ["attribute", "class-attribute", "mixture"])
def test_column_order_permutes_the_weights(weighting, make_table):
    _, X, y = make_table("categories with gaps", 3)
    order = np.random.default_rng(1).permutation(X.shape[1])
    first = fit(weighting, "brier", X, y)
    second = fit(weighting, "brier", X[:, order], y)
    assert first.objective_ == pytest.approx(second.objective_, rel=1e-6)
    for name in ("attribute_weights_", "class_attribute_weights_"):
        if hasattr(first, name):
            np.testing.assert_allclose(
                getattr(first, name)[..., order], getattr(second, name), atol=1e-5
            )


@pytest.mark.parametrize("weighting", BOUNDED)
def test_number_of_threads_does_not_change_a_bit(weighting):
    rng = np.random.default_rng(2)
    X = rng.integers(0, 3, (20_000, 3)).astype(str)
    y = (X[:, 0] == X[:, 1]).astype(int) + (rng.random(len(X)) < 0.1)
    part = WEIGHTINGS[weighting]()
    if "random_state" in part.get_params():
        part.set_params(random_state=0)
    one, two = (
        WeightedNB(weighting=part, loss="brier", n_jobs=n, tol=1e-4).fit(X, y)
        for n in (1, 2)
    )
    assert one.objective_ == two.objective_
    np.testing.assert_array_equal(one.predict_proba(X[:50]), two.predict_proba(X[:50]))


@pytest.mark.plain
@pytest.mark.parametrize("weighting, loss", PAIRS)
def test_unit_weights_are_plain_naive_bayes(weighting, loss, make_table, problem_of):
    settings, X, y = make_table("mixed with gaps", 3, n=40)
    _, start, _, _ = problem_of(
        {"weighting": weighting, "loss": loss, **settings}, X, y
    )
    if (start[1:] != 1.0).any():
        pytest.skip("this weighting starts from weights that it computes")
    plain = NaiveBayes(**settings).fit(X, y)
    fixed = WeightedNB(weighting=weighting, loss=loss, solver="fixed", **settings)
    np.testing.assert_allclose(
        fixed.fit(X, y).predict_proba(X), plain.predict_proba(X), atol=1e-12
    )


@pytest.mark.parametrize(
    # The filter "subset" multiplies counts, which no penalty undoes. Beside so large a
    # penalty L-BFGS-B does not see the loss any more.
    "weighting, loss",
    [p for p in PAIRS if p[0] != "subset" and LOSSES[p[1]]().has_hessian],
)
def test_a_strong_penalty_leads_to_naive_bayes(weighting, loss, make_table):
    settings, X, y = make_table("mixed with gaps", 3)
    plain = NaiveBayes(**settings).fit(X, y)
    for bounds in (None, (0, 1)):
        held = fit(weighting, loss, X, y, lam=1e9, bounds=bounds, **settings)
        np.testing.assert_allclose(
            held.predict_proba(X), plain.predict_proba(X), atol=1e-5
        )


# ------------------------------------------------------------------------------ bounds


@pytest.mark.parametrize("solver", ["newton", "lbfgs", "published"])
@pytest.mark.parametrize("bounds", [(0, 1), (0.2, 0.7), (0.5, 0.5), (-1, 0)], ids=repr)
@pytest.mark.parametrize("weighting", BOUNDED)
def test_bounds_hold_exactly(weighting, bounds, solver, make_table):
    if solver == "newton" and not WEIGHTINGS[weighting].has_hessian:
        solver = "auto"
    settings, X, y = make_table("mixed with gaps", 3, n=40)
    clf = fit(
        weighting, "brier", X, y, bounds=bounds, solver=solver, lam=5.0, **settings
    )
    for name in ("attribute_weights_", "class_attribute_weights_"):
        weights = getattr(clf, name, np.array(bounds))
        assert (weights >= bounds[0]).all() and (weights <= bounds[1]).all()
    for weights in getattr(clf, "value_weights_", []):
        assert (weights >= bounds[0]).all() and (weights <= bounds[1]).all()


def test_bounds_of_single_attributes():
    X, y = load_wine(return_X_y=True, as_frame=True)
    X = X.iloc[:, :3]
    low, high = [0.0, 0.3, -1.0], [0.2, 0.3, 5.0]
    clf = WeightedNB(bounds=list(zip(low, high, strict=True))).fit(X, y)
    assert (clf.attribute_weights_ >= low).all()
    assert (clf.attribute_weights_ <= high).all()
    assert clf.attribute_weights_[1] == 0.3
    names = X.columns
    by_name = WeightedNB(
        bounds={names[0]: (0.0, 0.2), names[1]: (0.3, 0.3), names[2]: (-1.0, 5.0)}
    ).fit(X, y)
    np.testing.assert_array_equal(clf.attribute_weights_, by_name.attribute_weights_)
    by_position = WeightedNB(bounds={0: (0, 0.2), 1: (0.3, 0.3), -1: (-1, 5)})
    by_position.fit(X.to_numpy(), y)
    np.testing.assert_array_equal(
        clf.attribute_weights_, by_position.attribute_weights_
    )
    every = WeightedNB(weighting="class-attribute", bounds={names[0]: (None, 0.1)})
    every.fit(X, y)
    assert (every.class_attribute_weights_[:, 0] <= 0.1).all()


def test_weights_have_the_shapes_of_the_documentation(make_table):
    settings, X, y = make_table("mixed with gaps", 3)
    d = X.shape[1]
    clf = WeightedNB(weighting="mixture", loss="brier", prior_weight=True, **settings)
    clf.fit(X, y)
    assert clf.attribute_weights_.shape == (d,)
    assert clf.class_attribute_weights_.shape == (3, d)
    assert 0.0 <= clf.alpha_ <= 1.0
    clf.set_params(weighting="value", prior_weight=False, loss="log").fit(X, y)
    n_values = clf.encoder_.schema_.n_values
    shapes = [weights.shape for weights in clf.value_weights_]
    assert shapes == [(3, n) for n in n_values]
    assert not hasattr(clf, "alpha_") and not hasattr(clf, "prior_weight_")
    assert not hasattr(clf, "attribute_weights_")


def test_weights_of_a_column_of_one_value_stay_at_the_start(make_table):
    _, X, y = make_table("categories", 2)
    assert len(set(X[:, -1])) == 1
    clf = WeightedNB(bounds=(0, 3), smoothing="laplace").fit(X, y)
    assert clf.attribute_weights_[-1] == pytest.approx(1.0)


def test_rounding_errors_of_equal_probabilities_are_not_weighted():
    # Shares of 2/3 in both classes, and classes of equal weight: neither says anything.
    n = np.array([13, 17])
    shared, y = np.tile([0, 1, 0], n.sum()), np.repeat([0, 1], 3 * n)
    X = np.column_stack([shared, (np.arange(len(y)) * 7 % 5) // 2])
    clf = WeightedNB(
        bounds=(0.0, None), smoothing=1e-9, prior="frequency", prior_weight=True
    )
    clf.set_params(class_weight="balanced", categorical_features=[0, 1])
    for seed in range(3):
        rows = np.random.default_rng(seed).permutation(len(y))
        clf.fit(X[rows], y[rows])
        assert (clf.prior_weight_, clf.attribute_weights_[0]) == (1.0, 1.0)
