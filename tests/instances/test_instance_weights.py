"""Instance weightings alone and with attribute weights; what row weights do to them."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

import steelyard as sy
from steelyard import InstanceWeightedNB, NaiveBayes, WeightedNB
from steelyard._common.settings import LearnedAttribute
from steelyard.exceptions import ParameterError
from steelyard.instances import (
    INSTANCES,
    DiscriminativeWeighting,
    InstanceWeighting,
    Learned,
    ValueFrequencyWeighting,
)
from steelyard.model.training import TrainingSet
from steelyard.weighting import WEIGHTINGS, FilterWeighting

UNKNOWN = LearnedAttribute(optional=True)

METHODS = [
    entry.acronym
    for entry in sy.methods()
    if entry.create().get_params().get("instances") is not None
    or not entry.estimator._learned.get("instance_weights_", UNKNOWN).optional
]


class ByPosition(InstanceWeighting):
    """The same weights for any table."""

    def __init__(self, weights=None):
        self.weights = weights

    def weigh(self, training):
        if self.weights is not None:
            return Learned(self.weights)
        return Learned(np.linspace(0.5, 2.0, training.n_rows), [{"round": 1}])


def test_methods_that_learn_instance_weights_are_known():
    known = {"DWNB", "AVFWNB", "BNB", "CWNB", "CWNB-R", "CWNB-I", "CWNB-RI", "AIWNB-E"}
    assert known <= set(METHODS)


def test_a_weighting_of_ones_own_is_given_a_training_set(random_table):
    X, y = random_table(40)
    u = np.arange(40) % 4 + 0.5
    seen = []

    class Recorded(InstanceWeighting):
        def weigh(self, training):
            seen.append(training)
            return Learned(np.ones(training.n_rows))

    InstanceWeightedNB(instances=Recorded()).fit(X, y, u)
    (training,) = seen
    assert isinstance(training, TrainingSet)
    assert training.n_rows == 40 and training.n_classes == 3
    np.testing.assert_array_equal(training.sample_weight, u)
    np.testing.assert_array_equal(training.classes[training.labels], y)


@pytest.mark.plain
def test_no_rounds_are_naive_bayes_to_the_last_bit(random_table):
    X, y = random_table(gaps=0.1)
    none = InstanceWeightedNB(instances=DiscriminativeWeighting(0)).fit(X, y)
    plain = NaiveBayes(smoothing="laplace").fit(X, y)
    assert none.predict_proba(X).tobytes() == plain.predict_proba(X).tobytes()
    assert none.instance_weights_.tolist() == [1.0] * len(y)
    assert none.diagnostics_ == []
    neither = InstanceWeightedNB(instances=None).fit(X, y)
    assert neither.predict_proba(X).tobytes() == plain.predict_proba(X).tobytes()


@pytest.mark.plain
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_discriminative_weights_equal_plain_loops(
    n_classes, weighted, random_table, plain_dwnb, plain_nb
):
    X, y = random_table(40, n_classes, gaps=0.1)
    own = np.random.default_rng(1).uniform(0.5, 2.0, 40) if weighted else np.ones(40)
    clf = InstanceWeightedNB(instances=DiscriminativeWeighting(4)).fit(X, y, own)
    u = plain_dwnb(X, y, 4, own)
    np.testing.assert_allclose(clf.instance_weights_, u, rtol=1e-10)
    expected = plain_nb(X, y, own * u).scores(X)
    np.testing.assert_allclose(clf.predict_joint_log_proba(X), expected, rtol=1e-10)
    assert clf.diagnostics_[-1]["total_weight"] == pytest.approx((own * u).sum())


@pytest.mark.plain
def test_value_frequencies_equal_plain_loops(random_table):
    X, y = random_table(40, gaps=0.2)
    X[7] = None
    own = np.random.default_rng(1).uniform(0.5, 2.0, 40)
    clf = InstanceWeightedNB(instances="value-frequency").fit(X, y, own)
    u = np.zeros(40)
    for j in range(X.shape[1]):
        n_values = len({v for v in X[:, j] if v is not None})
        for i in range(40):
            if X[i, j] is not None:
                u[i] += n_values * own[X[:, j] == X[i, j]].sum() / own.sum()
    # A row with nothing in it counts as little as a row can.
    u[u == 0] = u[u > 0].min()
    np.testing.assert_allclose(clf.instance_weights_, u, rtol=1e-10)


@pytest.mark.parametrize("name", [*METHODS, "AIWNB-L"])
def test_doubling_a_weight_equals_repeating_a_row(name, random_table):
    X, y = random_table(50, seed=6)
    times = np.random.default_rng(0).integers(0, 4, 50)
    times[:5] = 1
    weighted = sy.method(name).fit(X, y, times)
    repeated = sy.method(name).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(
        weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-6
    )
    if name != "AIWNB-L":
        known = np.repeat(weighted.instance_weights_, times)
        np.testing.assert_allclose(known, repeated.instance_weights_, rtol=1e-5)


@pytest.mark.parametrize("name", METHODS)
def test_rows_of_weight_zero_have_no_learned_weight(name, random_table):
    X, y = random_table(50, seed=6)
    u = np.ones(50)
    u[[3, 17, 49]] = 0.0
    clf = sy.method(name).fit(X, y, u)
    gone = np.isnan(clf.instance_weights_)
    assert np.flatnonzero(gone).tolist() == [3, 17, 49]
    absent = sy.method(name).fit(X[u > 0], y[u > 0])
    np.testing.assert_allclose(clf.instance_weights_[~gone], absent.instance_weights_)
    if hasattr(clf, "hardest_rows"):
        hardest = clf.hardest_rows(100)
        assert sorted(hardest) == np.flatnonzero(u).tolist()
        assert (np.diff(clf.instance_weights_[hardest]) <= 0).all()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("multiclass", ["native", "one-vs-one"])
@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("instances", INSTANCES)
def test_every_instance_weighting_goes_with_every_weighting(
    instances, weighting, multiclass, n_classes, random_table
):
    X, y = random_table(50, n_classes, gaps=0.05)
    loss = "brier" if weighting == "mixture" else "log"
    clf = WeightedNB(
        instances=instances,
        weighting=weighting,
        loss=loss,
        multiclass=multiclass,
        smoothing="laplace",
        lam=0.1,
        bounds=None if weighting == "hierarchy" else (0.0, 1.0),
    ).fit(X, y)
    alone = InstanceWeightedNB(instances=instances).fit(X, y)
    np.testing.assert_array_equal(clf.instance_weights_, alone.instance_weights_)
    np.testing.assert_allclose(clf.class_count_, alone.class_count_)
    assert clf.diagnostics_[: len(alone.diagnostics_)] == alone.diagnostics_
    assert np.isfinite(clf.predict_proba(X)).all()
    # Weights that stay one leave the instance weights' own model.
    is_filter = issubclass(WEIGHTINGS[weighting], FilterWeighting)
    if not is_filter and multiclass == "native":
        fixed = clf.set_params(solver="fixed").fit(X, y)
        np.testing.assert_allclose(fixed.predict_proba(X), alone.predict_proba(X))


@pytest.mark.plain
def test_attribute_weights_are_learned_by_a_loss_that_knows_no_instance_weights(
    random_table, plain_dwnb, plain_nb
):
    X, y = random_table(40, gaps=0.1)
    clf = WeightedNB(instances="discriminative", smoothing="laplace").fit(X, y)
    model = plain_nb(X, y, plain_dwnb(X, y, 15), clf.attribute_weights_)
    p = model.proba(X)[np.arange(40), y]
    assert clf.objective_ == pytest.approx(-np.log(p).sum(), rel=1e-9)


@pytest.mark.plain
def test_weights_of_the_users_own(random_table, plain_nb):
    X, y = random_table(30)
    u = np.linspace(0.5, 2.0, 30)
    expected = plain_nb(X, y, u).scores(X)
    clf = InstanceWeightedNB(instances=ByPosition()).fit(X, y)
    np.testing.assert_allclose(clf.predict_joint_log_proba(X), expected, rtol=1e-12)
    assert clf.instance_weights_.tolist() == u.tolist()
    assert clf.diagnostics_ == [{"round": 1}]
    both = WeightedNB(instances=ByPosition(), solver="fixed", smoothing="laplace")
    np.testing.assert_allclose(
        both.fit(X, y).predict_joint_log_proba(X), expected, rtol=1e-12
    )


@pytest.mark.plain
@pytest.mark.parametrize(
    "weights, message",
    [
        (np.ones(29), "each of the 30 rows. Got 29"),
        (np.ones((30, 1)), r"one weight for each row. Got ndarray of shape \(30, 1\)"),
        ([1.0] * 30, "float64 array .* Got list"),
        (np.full(30, np.nan), "finite weights of at least 0"),
        (np.arange(30.0) - 1.0, "at least 0, .* Got -1 to 28"),
        (np.zeros(30), "not all of them 0"),
    ],
    ids=str,
)
def test_wrong_weights_of_the_users_own_are_refused(weights, message, random_table):
    X, y = random_table(30)
    for cls in (InstanceWeightedNB, WeightedNB):
        with pytest.raises(ParameterError, match=message):
            cls(instances=ByPosition(weights)).fit(X, y)


@pytest.mark.plain
@pytest.mark.parametrize(
    "settings, message",
    [
        ({"instances": "hard"}, "'discriminative', 'value-frequency'.* Got 'hard'"),
        ({"instances": 3}, "InstanceWeighting object. Got 3"),
        ({"instances": DiscriminativeWeighting}, "InstanceWeighting object"),
        ({"instances": DiscriminativeWeighting(-1)}, "at least 0. Got -1"),
        ({"instances": DiscriminativeWeighting(1.5)}, "whole number .* Got 1.5"),
        ({"instances": DiscriminativeWeighting("15")}, "whole number .* Got '15'"),
        ({"smoothing": "none"}, "'m-estimate', 'laplace', 'kohavi'"),
        ({"prior": [0.5, 0.5]}, "2 entries for 3 classes"),
        ({"variance_floor": -1.0}, "'variance_floor'"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
    ids=repr,
)
def test_wrong_settings_are_refused_and_an_earlier_model_stays(
    settings, message, random_table
):
    X, y = random_table(30, 3)
    for cls in (InstanceWeightedNB, WeightedNB):
        clf = cls().fit(X, y)
        before = dict(vars(clf))
        with pytest.raises(ParameterError, match=message):
            clf.set_params(**settings).fit(X[:, :2], y)
        assert all(vars(clf)[k] is before[k] for k in before if k.endswith("_"))


@pytest.mark.plain
@pytest.mark.parametrize("n_rows", [-1, 1.5, "all", None, True])
def test_a_wrong_number_of_hardest_rows_is_refused(n_rows, random_table):
    clf = InstanceWeightedNB().fit(*random_table(30))
    with pytest.raises(ParameterError, match="whole number of at least 0"):
        clf.hardest_rows(n_rows)
    assert clf.hardest_rows(0).shape == (0,)


@pytest.mark.plain
def test_instance_weights_of_an_earlier_fit_are_dropped(random_table):
    X, y = random_table(30)
    clf = WeightedNB(instances="value-frequency").fit(X, y)
    assert hasattr(clf, "instance_weights_")
    clf.set_params(instances=None).fit(X, y)
    assert not hasattr(clf, "instance_weights_")


def test_gaussian_attributes_take_part():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.normal(y[:, None], 1.0, (60, 2))
    X[5, 0] = np.nan
    frequency = InstanceWeightedNB(
        instances=ValueFrequencyWeighting(), numeric="gaussian"
    ).fit(X, y)
    expected = np.full(60, 2.0)
    expected[5] = 1.0
    assert frequency.instance_weights_.tolist() == expected.tolist()
    clf = InstanceWeightedNB(numeric="gaussian").fit(X, y)
    assert clf.instance_weights_.min() >= 1.0
    assert clf.instance_weights_.max() <= 16.0


def test_threads_do_not_change_instance_weights(random_table):
    X, y = random_table(2000)
    for name in ("DWNB", "AVFWNB", "CWNB-I", "BNB", "AIWNB-E"):
        one = sy.method(name, n_jobs=1).fit(X, y)
        two = sy.method(name, n_jobs=2).fit(X, y)
        assert one.instance_weights_.tobytes() == two.instance_weights_.tobytes()
        assert one.predict_proba(X).tobytes() == two.predict_proba(X).tobytes()


@pytest.mark.parametrize("name", ["DWNB", "CWNB", "CWNB-R"])
def test_flipped_labels_are_among_the_hardest_rows(name):
    X, y = load_breast_cancer(return_X_y=True)
    rng = np.random.default_rng(0)
    flipped = rng.choice(len(y), round(0.05 * len(y)), replace=False)
    wrong = y.copy()
    wrong[flipped] = 1 - wrong[flipped]
    clf = sy.method(name).fit(X, wrong)
    hardest = clf.hardest_rows(len(flipped))
    share = np.isin(hardest, flipped).mean()
    # By chance it would be one in twenty.
    assert share > 0.5
