"""Models against published values and other programs, and what never changes them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.datasets import load_iris
from sklearn.naive_bayes import CategoricalNB, GaussianNB

from steelyard import NaiveBayes
from steelyard.model.table_model import NBModel
from steelyard.proba import GaussianTable
from steelyard.table.codes import CodeBlock, Codes
from steelyard.table.schema import FeatureSchema, TableSchema

pytestmark = pytest.mark.plain

SEEDS = st.integers(0, 2**32)
EXAMPLES = settings(max_examples=25, deadline=None)

WEATHER = (
    "shhF n; shhT n; ohhF y; rmhF y; rcnF y; rcnT n; ocnT y; smhF n; scnF y; rmnF y; "
    "smnT y; omhT y; ohnF y; rmhT n"
)


def weather():
    """Return the fourteen days and whether there was play."""
    days = [day.split() for day in WEATHER.split("; ")]
    return np.array([list(day) for day, _ in days]), np.array(
        [play for _, play in days]
    )


def mixed_table(rng, n=80):
    """Return categories, numbers to be cut and densities, with missing values."""
    frame = pd.DataFrame(
        {
            "letter": rng.choice(list("abcd"), n).astype(object),
            "flag": rng.integers(0, 2, n).astype(bool),
            "cut": rng.normal(size=n),
            "density": rng.normal(5, 2, n),
            "grid": rng.integers(0, 12, n).astype(float),
        }
    )
    frame.loc[rng.random(n) < 0.1, "letter"] = None
    frame.loc[rng.random(n) < 0.1, "density"] = np.nan
    y = rng.integers(0, 3, n)
    y[:3] = [0, 1, 2]
    return frame, y


def mixed_model(**settings):
    numeric = {"density": "gaussian", "grid": "gaussian-weka", "cut": "equal-width"}
    return NaiveBayes(numeric=numeric, **settings)


# ------------------------------------------------------------------- published values


@pytest.mark.parametrize(
    ("smoothing", "priors", "yes"),
    [
        ("m-estimate", [0.366667, 0.633333], 0.240629),
        ("laplace", [0.375, 0.625], 0.295753),
    ],
)
def test_the_weather_data_have_the_published_probabilities(smoothing, priors, yes):
    X, y = weather()
    clf = NaiveBayes(smoothing=smoothing).fit(X, y)
    assert_allclose(np.exp(clf.class_log_prior_), priors, atol=5e-7)
    assert_allclose(clf.predict_proba(X[:1])[0, 1], yes, atol=5e-7)


@pytest.mark.parametrize(
    ("smoothing", "loss"), [("m-estimate", 4.798991), ("laplace", 5.397438)]
)
def test_the_weather_data_have_the_published_log_loss(smoothing, loss):
    X, y = weather()
    clf = NaiveBayes(smoothing=smoothing).fit(X, y)
    own = clf.predict_log_proba(X)[np.arange(14), (y == "y").astype(int)]
    assert_allclose(-own.sum(), loss, atol=5e-7)


def test_the_weather_data_have_the_published_squared_error():
    X, y = weather()
    proba = NaiveBayes().fit(X, y).predict_proba(X)
    targets = np.column_stack([y == "n", y == "y"])
    assert_allclose(0.5 * ((proba - targets) ** 2).sum(), 1.431865, atol=5e-7)


# ---------------------------------------------------------------------- other programs


@given(SEEDS, st.integers(2, 5), st.floats(0.01, 10))
@EXAMPLES
def test_unit_weights_equal_sklearn_categorical_nb(seed, n_classes, alpha):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (60, 5))
    X[:4] = np.arange(4)[:, None]  # every value occurs, so both know of four
    y = rng.integers(0, n_classes, 60)
    y[:n_classes] = np.arange(n_classes)
    weights = rng.exponential(size=60)
    smoothing = "laplace" if seed % 2 else alpha
    clf = NaiveBayes(
        categorical_features="all", smoothing=smoothing, prior="frequency"
    ).fit(X, y, weights)
    other = CategoricalNB(alpha=1.0 if seed % 2 else alpha).fit(X, y, weights)
    assert_allclose(
        clf.predict_joint_log_proba(X), other.predict_joint_log_proba(X), rtol=1e-10
    )
    assert_allclose(clf.predict_proba(X), other.predict_proba(X), rtol=1e-9)


@given(SEEDS, st.sampled_from([0.0, 1e6]))
@EXAMPLES
def test_densities_equal_sklearn_gaussian_nb(seed, offset):
    rng = np.random.default_rng(seed)
    X = offset + rng.normal(size=(60, 4)) * [1, 2, 0.1, 5]
    y = rng.integers(0, 3, 60)
    y[:9] = np.repeat(np.arange(3), 3)
    weights = rng.exponential(size=60) + 0.1
    ours = NaiveBayes(numeric="gaussian", prior="frequency", variance_floor=0.0)
    ours.fit(X, y, weights)
    other = GaussianNB(var_smoothing=0.0).fit(X, y, weights)
    mean = ours.model_.gaussian.mean.T
    assert_allclose(mean, other.theta_, rtol=1e-12, atol=1e-12)
    assert_allclose(ours.model_.gaussian.deviation.T**2, other.var_, rtol=1e-8)
    assert_allclose(
        ours.predict_joint_log_proba(X), other.predict_joint_log_proba(X), rtol=1e-6
    )


def test_iris_densities_agree_with_sklearn_at_their_default_settings():
    X, y = load_iris(return_X_y=True)
    ours = NaiveBayes(numeric="gaussian", prior="frequency").fit(X, y)
    other = GaussianNB().fit(X, y)  # adds its floor to every variance, ours is a bound
    assert_allclose(
        ours.predict_joint_log_proba(X), other.predict_joint_log_proba(X), rtol=1e-5
    )
    assert_array_equal(ours.predict(X), other.predict(X))


def weka_scores(X, y, new, n_classes):
    """Gaussian naive Bayes with intervals as METHODS 3.2 states it, cell by cell."""
    scores = np.zeros((len(new), n_classes))
    for j in range(X.shape[1]):
        known = X[~np.isnan(X[:, j]), j]
        distinct = sorted(set(known.tolist()))
        gaps = np.diff(distinct)
        step = float(np.mean(gaps)) if len(gaps) else 0.01
        for c in range(n_classes):
            x = X[(y == c) & ~np.isnan(X[:, j]), j]
            x = np.array([step * round(v / step) for v in x.tolist()])
            mean, spread = x.mean(), x.std()
            sigma = max(step / 6, spread) if spread > 1e-10 else step / 6
            for i, v in enumerate(new[:, j].tolist()):
                if np.isnan(v):
                    continue
                r = step * round(v / step)
                # Beyond the mean both are near one, and their difference lost.
                side = norm.sf if r > mean else norm.cdf
                high = side((r - mean + step / 2) / sigma)
                low = side((r - mean - step / 2) / sigma)
                scores[i, c] += np.log(max(abs(high - low), 1e-75))
    return scores


@given(SEEDS)
@EXAMPLES
def test_weka_intervals_equal_a_plain_implementation(seed):
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [
            rng.integers(0, 10, 40).astype(float),
            np.round(rng.normal(20, 3, 40), 1),
            np.full(40, 2.5),
            np.where(np.arange(40) % 2, 7.0, rng.integers(0, 3, 40)),
        ]
    )
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.arange(40) % 2
    clf = NaiveBayes(numeric="gaussian-weka", prior=[0.5, 0.5]).fit(X, y)
    expected = weka_scores(X, y, X, 2) + np.log(0.5)
    assert_allclose(clf.predict_joint_log_proba(X), expected, rtol=1e-9)


# ---------------------------------------------------------------------- ties, extremes


def model_of(log_prior, table):
    """Return a model of one categorical attribute, and a row for each of its codes."""
    table = np.array(table, dtype=np.float64)
    values = tuple(range(len(table) - 1))
    schema = TableSchema(
        (FeatureSchema(None, "categorical", "numbers", values=values),)
    )
    classes = np.array([f"class {c}" for c in range(len(log_prior))])
    model = NBModel(
        schema,
        classes,
        np.array(log_prior, dtype=np.float64),
        table,
        GaussianTable(*np.zeros((2, 0, len(classes))), np.zeros(0)),
    )
    rows = np.arange(len(table), dtype=np.uint8)[:, None]
    codes = Codes(schema, len(rows), (CodeBlock(rows, np.array([0])),))
    return model, codes


def test_a_tie_goes_to_the_larger_prior_and_then_to_the_first_class():
    model, codes = model_of(
        [-2.0, -1.0, -1.0],
        [
            [0.0, 0.0, 0.0],  # the prior alone: the second and third, so the second
            [1.0, 0.0, 0.0],  # all three: the second
            [1.0, -1.0, 0.0],  # first and third: the third
            [3.0, 1.0, 1.0],  # no tie
            [0.0, -1.0, -5.0],  # first and second: the second
        ],
    )
    expected = ["class 1", "class 1", "class 2", "class 0", "class 1"]
    assert model.predict(codes).tolist() == expected


def test_a_class_with_a_prior_of_zero_is_never_predicted():
    model, codes = model_of([-np.inf, np.log(0.5), np.log(0.5)], [[0, 0, 0], [9, 0, 1]])
    assert model.predict(codes).tolist() == ["class 1", "class 2"]
    assert_array_equal(model.proba(codes)[:, 0], 0.0)
    two, codes = model_of([-np.inf, 0.0], [[0, 0], [9, 0]])
    assert_array_equal(two.proba(codes), [[0.0, 1.0], [0.0, 1.0]])
    assert_array_equal(two.log_proba(codes), [[-np.inf, 0.0], [-np.inf, 0.0]])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("numeric", ["mdl", "gaussian"])
def test_two_thousand_attributes_do_not_underflow(n_classes, numeric):
    rng = np.random.default_rng(0)
    n, d = 12, 2000
    y = np.arange(n) % n_classes
    X = rng.integers(0, 3, (n, d)) if numeric == "mdl" else rng.normal(size=(n, d))
    X = X.astype(float) + y[:, None]
    columns = "all" if numeric == "mdl" else "auto"
    clf = NaiveBayes(categorical_features=columns, numeric=numeric).fit(X, y)
    logs, proba = clf.predict_log_proba(X), clf.predict_proba(X)
    assert clf.predict_joint_log_proba(X).max() < -745  # exp of that is zero
    assert np.isfinite(logs).all()
    assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
    assert_allclose(np.exp(logs).sum(axis=1), 1.0, rtol=1e-12)
    assert_array_equal(clf.predict(X), y)


def test_two_classes_and_more_give_the_same_probabilities():
    rng = np.random.default_rng(1)
    X, y = rng.integers(0, 4, (100, 9)), rng.integers(0, 2, 100)
    clf = NaiveBayes(categorical_features="all").fit(X, y)
    logs = clf.predict_log_proba(X)
    assert_allclose(clf.predict_proba(X), np.exp(logs), rtol=1e-12)


@pytest.mark.parametrize("numeric", ["gaussian", "gaussian-weka"])
@pytest.mark.parametrize("far", [1e3, 1e10, 1e155, 1e300, -1e300])
def test_extreme_distances_give_finite_results(numeric, far):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(30, 3)), np.arange(30) % 3
    X[:, 2] = y  # constant within each class
    clf = NaiveBayes(numeric=numeric).fit(X, y)
    new = np.array([[far, 0.0, 0.0], [0.0, far, far], [far, far, far]])
    assert np.isfinite(clf.predict_log_proba(new)).all()
    proba = clf.predict_proba(new)
    assert_allclose(proba.sum(axis=1), 1.0)


@pytest.mark.parametrize("prior", ["smoothed", "frequency"])
def test_a_class_that_was_only_announced_is_never_the_best_guess(prior):
    rng = np.random.default_rng(3)
    frame, y = mixed_table(rng)
    clf = mixed_model(prior=prior)
    clf.partial_fit(frame, np.where(y == 2, 1, y), classes=[0, 1, 2])
    proba = clf.predict_proba(frame)
    assert np.isfinite(proba).all()
    assert_allclose(proba.sum(axis=1), 1.0)
    if prior == "frequency":
        assert_array_equal(proba[:, 2], 0.0)
    assert clf.class_count_[2] == 0.0
    nothing = frame[:1].assign(
        letter=None, flag=pd.array([None], "boolean"), cut=np.nan, density=np.nan
    )
    assert clf.predict(nothing.assign(grid=np.nan))[0] != 2


def test_a_row_with_nothing_in_it_gets_the_prior():
    X = np.array([["a", 1.0], ["b", 2.0], ["b", 3.0]], dtype=object)
    clf = NaiveBayes(numeric="gaussian").fit(X, [0, 1, 1])
    empty = np.array([[None, None], ["unseen", None]], dtype=object)
    prior = np.exp(clf.class_log_prior_)
    assert_allclose(clf.predict_proba(empty), [prior, prior], rtol=1e-14)


# --------------------------------------------------------------------- contributions


@given(SEEDS, st.sampled_from(["skip", "impute", "value"]))
@EXAMPLES
def test_contributions_add_up_to_the_scores(seed, missing):
    frame, y = mixed_table(np.random.default_rng(seed))
    clf = mixed_model(missing=missing).fit(frame, y)
    parts = clf.model_.contributions(clf._encode(frame))
    assert parts.shape == (len(frame), 5, 3)
    scores = clf.class_log_prior_ + parts.sum(axis=1)
    assert_allclose(scores, clf.predict_joint_log_proba(frame), rtol=1e-12, atol=1e-12)


def test_contributions_of_bytes_add_up_to_the_scores():
    rng = np.random.default_rng(4)
    X, y = rng.integers(0, 5, (50, 6)).astype(np.int8), rng.integers(0, 3, 50)
    clf = NaiveBayes(categorical_features="all").fit(X, y)
    parts = clf.model_.contributions(clf._encode(X))
    scores = clf.class_log_prior_ + parts.sum(axis=1)
    assert_allclose(scores, clf.predict_joint_log_proba(X), rtol=1e-12)


# -------------------------------------------------------------------------- invariances


@given(SEEDS, st.sampled_from(["skip", "impute", "value"]))
@EXAMPLES
def test_doubling_a_weight_equals_repeating_a_row(seed, missing):
    rng = np.random.default_rng(seed)
    frame, y = mixed_table(rng)
    times = rng.integers(0, 4, len(y))
    times[:3] = 1  # every class stays
    rows = np.repeat(np.arange(len(y)), times)
    weighted = mixed_model(missing=missing).fit(frame, y, times)
    repeated = mixed_model(missing=missing).fit(frame.iloc[rows], y[rows])
    # The mean of imputed cells is not rounded alike; the edges of equal width are.
    assert_array_equal(weighted.counts_.by_class, repeated.counts_.by_class)
    assert_array_equal(weighted.counts_.by_code, repeated.counts_.by_code)
    assert_allclose(
        weighted.predict_log_proba(frame),
        repeated.predict_log_proba(frame),
        rtol=1e-11,
        atol=1e-11,
    )


@given(SEEDS)
@EXAMPLES
def test_row_order_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    frame, y = mixed_table(rng)
    order = rng.permutation(len(y))
    weights = rng.exponential(size=len(y))
    plain, turned = (
        mixed_model().fit(frame.iloc[rows], y[rows]) for rows in (slice(None), order)
    )
    assert plain.counts_.by_code.tobytes() == turned.counts_.by_code.tobytes()
    assert plain.model_.table.tobytes() == turned.model_.table.tobytes()
    proba = plain.predict_proba(frame)
    assert_allclose(proba, turned.predict_proba(frame), rtol=1e-11, atol=1e-12)
    coded = frame[["letter", "flag", "cut"]]
    models = [
        NaiveBayes(numeric="equal-width").fit(coded.iloc[rows], y[rows], weights[rows])
        for rows in (slice(None), order)
    ]
    first, second = (model.predict_proba(coded) for model in models)
    assert_allclose(first, second, rtol=1e-12)


@given(SEEDS, st.permutations(["x", "y", "z"]))
@EXAMPLES
def test_renaming_classes_only_renames_predictions(seed, names):
    frame, y = mixed_table(np.random.default_rng(seed))
    names = np.array(names)
    clf = mixed_model().fit(frame, y)
    renamed = mixed_model().fit(frame, names[y])
    where = [renamed.classes_.tolist().index(name) for name in names]
    assert_allclose(
        renamed.predict_proba(frame)[:, where], clf.predict_proba(frame), rtol=1e-11
    )
    for attribute in ("class_log_prior_", "class_count_"):
        assert_array_equal(getattr(renamed, attribute)[where], getattr(clf, attribute))
    proba = np.sort(clf.predict_proba(frame), axis=1)
    clear = proba[:, -1] > proba[:, -2] + 1e-9
    assert_array_equal(renamed.predict(frame)[clear], names[clf.predict(frame)][clear])


@given(SEEDS)
@EXAMPLES
def test_the_order_of_columns_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    frame, y = mixed_table(rng)
    other = frame[rng.permutation(frame.columns)]
    clf = mixed_model().fit(frame, y)
    assert clf.predict_proba(frame).tobytes() == clf.predict_proba(other).tobytes()
    refitted = mixed_model().fit(other, y).predict_proba(frame)
    assert_allclose(clf.predict_proba(frame), refitted, rtol=1e-11)
