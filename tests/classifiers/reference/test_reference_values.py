"""Values known from elsewhere: worked examples, formulas, scikit-learn."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.datasets import load_iris, load_wine
from sklearn.naive_bayes import CategoricalNB, GaussianNB

import steelyard as sy
from steelyard import NaiveBayes

pytestmark = pytest.mark.plain

# The 14 days of Quinlan's weather data: outlook (sunny, overcast, rain), temperature
# (hot, mild, cool), humidity (high, normal), windy, and whether the game was played.
DAYS = (
    "shhF n;shhT n;ohhF y;rmhF y;rcnF y;rcnT n;ocnT y;smhF n;scnF y;rmnF y;smnT y;"
    "omhT y;ohnF y;rmhT n"
).split(";")
WEATHER = np.array([list(day[:4]) for day in DAYS])
PLAYED = np.array([day[-1] for day in DAYS])
IRIS_X, IRIS_Y = load_iris(return_X_y=True)


@pytest.mark.parametrize(
    "name, prior_yes, yes_given_first_day",
    [("NB", 0.633333, 0.240629), ("NB-Laplace", 0.625, 0.295753)],
)
def test_weather_data_gives_the_worked_values(name, prior_yes, yes_given_first_day):
    clf = sy.method(name).fit(WEATHER, PLAYED)
    assert clf.classes_.tolist() == ["n", "y"]
    assert np.exp(clf.class_log_prior_[1]) == pytest.approx(prior_yes, abs=1e-6)
    first = clf.predict_proba(WEATHER[:1])[0]
    assert first[1] == pytest.approx(yes_given_first_day, abs=1e-6)


@pytest.mark.parametrize(
    "name, loss", [("NB", 4.798991), ("NB-Laplace", 5.397438)], ids=["m", "laplace"]
)
def test_weather_data_gives_the_worked_log_loss(name, loss):
    clf = sy.method(name).fit(WEATHER, PLAYED)
    log_proba = clf.predict_log_proba(WEATHER)
    truth = (PLAYED == "y").astype(int)
    total = -log_proba[np.arange(len(truth)), truth].sum()
    assert total == pytest.approx(loss, abs=1e-6)


def test_weather_data_by_hand_for_one_day():
    # Laplace's rule: 9 of 14 days yes; sunny 2, hot 2, high 3, calm 6 of those 9.
    yes = 10 / 16 * 3 / 12 * 3 / 12 * 4 / 11 * 7 / 11
    no = 6 / 16 * 4 / 8 * 3 / 8 * 5 / 7 * 3 / 7
    clf = NaiveBayes(smoothing="laplace").fit(WEATHER, PLAYED)
    joint = clf.predict_joint_log_proba(WEATHER[:1])[0]
    np.testing.assert_allclose(np.exp(joint), [no, yes], rtol=1e-12)


def test_kohavi_smoothing_adds_one_over_the_number_of_rows():
    clf = NaiveBayes(smoothing="kohavi").fit(WEATHER, PLAYED)
    f = 1 / 14
    prior = (9 + f) / (14 + 2 * f)
    assert np.exp(clf.class_log_prior_[1]) == pytest.approx(prior, rel=1e-12)
    overcast_no = clf.model_.table[clf.model_.schema.offsets[0] + 1, 0]
    assert overcast_no == pytest.approx(np.log(f / (5 + 3 * f)), rel=1e-12)


@pytest.mark.parametrize(
    "numeric, sepal_length, petal_length",
    [
        ("mdl", [5.55, 6.15], [2.45, 4.75]),
        ("kononenko", [5.55, 6.15], [2.45, 4.75]),
        ("mdl-better", [5.55, 6.15, 7.05], [2.45, 4.75, 5.15]),
    ],
)
def test_iris_is_cut_where_weka_cuts_it(numeric, sepal_length, petal_length):
    clf = NaiveBayes(numeric=numeric).fit(IRIS_X, IRIS_Y)
    edges = [feature.edges for feature in clf.model_.schema.features]
    expected = [sepal_length, [2.95, 3.35], petal_length, [0.80, 1.75]]
    for found, known in zip(edges, expected, strict=True):
        np.testing.assert_allclose(found, known, rtol=1e-12)


def test_iris_with_weka_intervals_follows_the_formula():
    clf = sy.method("GNB-Weka").fit(IRIS_X, IRIS_Y)
    expected = np.tile(np.log([51 / 153] * 3), (len(IRIS_X), 1))
    for x in IRIS_X.T:
        distinct = np.unique(x)
        step = (distinct[-1] - distinct[0]) / (len(distinct) - 1)
        rounded = step * np.round(x / step)
        for c in range(3):
            of_class = rounded[IRIS_Y == c]
            scale = max(step / 6, of_class.std())
            z = (rounded - of_class.mean()) / scale
            half = step / 2 / scale
            expected[:, c] += np.log(
                np.maximum(norm.cdf(z + half) - norm.cdf(z - half), 1e-75)
            )
    found = clf.predict_joint_log_proba(IRIS_X)
    # In the far tail the textbook difference keeps few digits; ours keeps them all.
    close = expected > np.log(1e-10)
    assert close.sum() > 140
    np.testing.assert_allclose(found[close], expected[close], rtol=1e-5)
    np.testing.assert_array_equal(found.argmax(axis=1), expected.argmax(axis=1))


def test_interval_far_from_every_class_is_as_improbable_as_weka_allows():
    clf = sy.method("GNB-Weka").fit(IRIS_X, IRIS_Y)
    far = np.full((1, 4), 1e6)
    expected = np.log(51 / 153) + 4 * np.log(1e-75)
    np.testing.assert_allclose(clf.predict_joint_log_proba(far), expected)
    np.testing.assert_allclose(clf.predict_proba(far), 1 / 3)


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_gaussian_attributes_equal_gaussian_nb_of_scikit_learn(load):
    X, y = load(return_X_y=True)
    ours = NaiveBayes(numeric="gaussian", prior="frequency", variance_floor=0).fit(X, y)
    theirs = GaussianNB(var_smoothing=0).fit(X, y)
    np.testing.assert_allclose(ours.model_.gaussian.mean, theirs.theta_.T, rtol=1e-12)
    np.testing.assert_allclose(
        ours.predict_joint_log_proba(X), theirs.predict_joint_log_proba(X), rtol=1e-9
    )


@pytest.mark.parametrize("alpha", [1.0, 0.25])
def test_categories_equal_categorical_nb_of_scikit_learn(alpha):
    rng = np.random.default_rng(3)
    y = rng.integers(0, 4, 500)
    X = (rng.integers(0, 6, (500, 7)) + y[:, None]) % 6
    weights = rng.integers(1, 4, 500)
    ours = NaiveBayes(categorical_features="all", smoothing=alpha, prior="frequency")
    theirs = CategoricalNB(alpha=alpha)
    ours.fit(X, y, sample_weight=weights)
    theirs.fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(
        ours.predict_joint_log_proba(X), theirs.predict_joint_log_proba(X), rtol=1e-12
    )
    np.testing.assert_allclose(
        ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-12
    )
