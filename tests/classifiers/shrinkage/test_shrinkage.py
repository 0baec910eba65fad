"""ShrinkageNB: strengths and how they are chosen, and what a fit promises."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import log_loss, roc_auc_score

from steelyard import NaiveBayes, ShrinkageNB, WeightedNB
from steelyard.classifiers.shrinkage import Strengths
from steelyard.exceptions import ParameterError
from steelyard.fitting.default.folds import HeldOutFolds, Judgement
from steelyard.fitting.default.strengths import START, _average, _Candidate


def test_strengths_are_a_mean_of_those_that_are_about_as_good_as_the_best(mixed):
    clf = ShrinkageNB(interactions=None).fit(*mixed)
    *compared, last = clf.strength_path_
    assert len(compared) >= 4
    names = ("shared", "by_class", "by_value")
    best = min(compared, key=lambda record: record["log_loss"])
    assert clf.strength_ == tuple(last[name] for name in names)
    assert last["log_loss"] < best["log_loss"] + best["standard_error"]
    for name in names:
        tried = [record[name] for record in compared]
        assert min(tried) <= last[name] <= max(tried)
    for record in clf.strength_path_:
        assert record["standard_error"] > 0.0
        assert 0.0 <= record["error"] <= 1.0
        assert record["log_loss"] < np.log(3)


def test_a_mean_of_strengths_goes_by_standard_errors():
    def candidate(strength, losses, surprise=0.0):
        ones = np.ones(4)
        judged = Judgement(np.zeros((4, 2)), np.array(losses), ones, ones, 1.0, 0.0)
        return _Candidate(Strengths(*[strength] * 3), judged, surprise)

    strong = candidate(100.0, [0.2, 0.3, 0.2, 0.3])
    same = [strong, candidate(1.0, [0.3, 0.2, 0.3, 0.2])]
    assert _average(same).shared == pytest.approx(10.0)
    far = [strong, candidate(1.0, [1.2, 1.3, 1.2, 1.31])]
    assert _average(far).shared == pytest.approx(100.0)
    unlikely = [strong, candidate(1.0, [0.3, 0.2, 0.3, 0.2], surprise=9.0)]
    assert _average(unlikely).shared == pytest.approx(100.0)


def test_strengths_go_where_the_rows_ask_and_stay_typical_for_few_rows():
    """The class is a function of sums: only weak strengths give sure answers."""
    rng = np.random.default_rng(3)
    X = rng.integers(1, 6, (600, 4))
    y = np.sign(X[:, 0] + X[:, 1] - X[:, 2] - X[:, 3])
    settings = {"categorical_features": "all", "interactions": None}
    many = ShrinkageNB(**settings).fit(X[:500], y[:500])
    few = ShrinkageNB(**settings).fit(X[:25], y[:25])
    tried = [record["by_value"] for record in many.strength_path_]
    assert many.strength_[2] < 0.3 < START.by_value
    assert min(tried) < many.strength_[2], "there is room beyond what was taken"
    assert few.strength_[2] > 0.5
    assert log_loss(y[500:], many.predict_proba(X[500:])) < 0.1


def test_categories_are_drawn_to_a_share_of_naive_bayes():
    """Copies of a column are counted once, so that numbers need not undo the rest."""
    rng = np.random.default_rng(4)
    y = np.arange(400) % 2
    kind = np.where(rng.random(400) < 0.8, y, 1 - y)
    X = np.stack([kind] * 4, axis=1)
    held = {"categorical_features": "all", "interactions": None}
    strong = Strengths(1e4, 1e4, 1e4)
    clf = ShrinkageNB(strength=strong, **held).fit(X, y)
    np.testing.assert_allclose(clf.attribute_weights_, strong.share, atol=1e-2)
    naive = ShrinkageNB(strength=Strengths(1e4, 1e4, 1e4, share=1.0), **held).fit(X, y)
    np.testing.assert_allclose(naive.attribute_weights_, 1.0, atol=1e-2)
    assert log_loss(y, clf.predict_proba(X)) < log_loss(y, naive.predict_proba(X))


@pytest.mark.parametrize(
    ("n", "n_columns", "wanted", "whole"),
    [
        (90, 3, 4, 4),
        (90, 80, 4, 2),
        (600, 3, 4, 1),
        (600, 20, 2, 1),
        (2_100, 3, 1, 1),
        (90, 600, 1, 1),
    ],
)
def test_few_rows_are_dealt_several_times(n, n_columns, wanted, whole):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, n_columns)), np.arange(n) % 2
    clf = ShrinkageNB()
    training = clf._recipe().encode(X, y, None)
    held = HeldOutFolds.of(training, 5, 0)
    assert held.n_assignments == wanted and len(held.folds) == 5 * wanted
    for part, ends in held.by_assignment():
        assert sorted(held.rows[part]) == list(range(n)) and len(ends) == 5
    first = held.first_assignments()
    assert (
        first.n_assignments == held.n_for_interactions == whole
        and len(first.folds) == 5 * whole
    )
    assert held.weights.sum() == pytest.approx(n)
    assert first.weights.sum() == pytest.approx(n)


def test_long_tables_are_compared_on_more_rows_and_fewer_folds(monkeypatch):
    monkeypatch.setattr("steelyard.fitting.default.folds.MAX_ROWS", 800)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(21_600, 2)), np.arange(21_600) % 2
    clf = ShrinkageNB()
    training = clf._recipe().encode(X, y, None)
    held = HeldOutFolds.of(training, 5, 0)
    assert held.training.n_rows == pytest.approx(2_400, abs=1) and len(held.folds) == 2


@pytest.mark.usefixtures("as_solved")
def test_chosen_strengths_make_the_same_model_as_given_ones(mixed):
    X, y = mixed
    chosen = ShrinkageNB().fit(X, y)
    strengths = Strengths(*chosen.strength_, intervals=chosen.step_factor_)
    given = ShrinkageNB(strength=strengths).fit(X, y)
    assert given.strength_path_ == []
    assert given.strength_ == chosen.strength_
    np.testing.assert_array_equal(
        given.predict_joint_log_proba(X), chosen.predict_joint_log_proba(X)
    )


def test_the_scale_of_posteriors_comes_from_held_out_rows(mixed):
    X, y = mixed
    clf = ShrinkageNB().fit(X, y)
    assert clf.scale_ == clf.model_.link_scale
    assert clf.scale_ in [record["scale"] for record in clf.strength_path_]
    complete = X.dropna()
    scores = clf.scale_ * clf.predict_joint_log_proba(complete)
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    expected = powers / powers.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(clf.predict_proba(complete), expected, atol=1e-12)
    given = ShrinkageNB(strength=clf.strength_).fit(X, y)
    assert given.scale_ == 1.0


def test_a_grid_of_one_needs_no_choice(mixed):
    clf = ShrinkageNB(grid=[(3.0, 12.0, 3.0)]).fit(*mixed)
    assert clf.strength_ == (3.0, 12.0, 3.0)
    assert clf.strength_path_ == []


def test_the_choice_is_the_same_for_every_order_of_rows(mixed):
    X, y = mixed
    order = np.random.default_rng(5).permutation(len(y))
    a = ShrinkageNB().fit(X, y)
    b = ShrinkageNB().fit(X.iloc[order], y[order])
    for one, other in zip(a.strength_path_, b.strength_path_, strict=True):
        assert one["log_loss"] == pytest.approx(other["log_loss"], rel=1e-6)
    assert a.strength_ == b.strength_
    np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("is_named", [True, False])
def test_the_model_is_the_same_for_every_order_of_columns(is_named, make_mixed):
    X, y = make_mixed(200, 3)
    order = [2, 0, 3, 1]
    other = X.iloc[:, order]
    if not is_named:
        X, other = X.to_numpy(dtype=object), other.to_numpy(dtype=object)
    a, b = ShrinkageNB().fit(X, y), ShrinkageNB().fit(other, y)
    np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(other), atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_model_is_the_same_for_every_order_of_classes(n_classes, make_mixed):
    X, y = make_mixed(200, n_classes)
    turned = {"ant": "zebra", "bee": "ape", "cat": "mole"}
    a = ShrinkageNB().fit(X, y)
    b = ShrinkageNB().fit(X, [turned[label] for label in y])
    places = [b.classes_.tolist().index(turned[label]) for label in a.classes_]
    np.testing.assert_allclose(
        a.predict_proba(X), b.predict_proba(X)[:, places], atol=1e-9
    )


def test_another_seed_deals_other_folds(mixed):
    a, b = (ShrinkageNB(random_state=seed).fit(*mixed) for seed in (0, 1))
    assert a.strength_path_ != b.strength_path_


def test_whole_weights_equal_repeated_rows(mixed):
    X, y = mixed
    times = np.random.default_rng(6).integers(0, 3, len(y))
    weighted = ShrinkageNB().fit(X, y, sample_weight=times)
    rows = np.repeat(np.arange(len(y)), times)
    repeated = ShrinkageNB().fit(X.iloc[rows], y[rows])
    assert weighted.strength_ == repeated.strength_
    np.testing.assert_allclose(
        weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-6
    )


def test_fractional_weights_count_in_the_choice_and_in_the_model(mixed):
    X, y = mixed
    u = np.where(y == "ant", 0.05, 1.5)
    plain, clf = ShrinkageNB().fit(X, y), ShrinkageNB().fit(X, y, sample_weight=u)
    assert clf.strength_path_ != plain.strength_path_
    rare = clf.predict_proba(X)[:, 0].mean()
    assert rare < 0.5 * plain.predict_proba(X)[:, 0].mean()


def test_class_weight_counts_like_row_weights(two):
    X, y = two
    u = np.where(y == "bee", 3.0, 1.0)
    settings = {"strength": (1.0, 4.0, 1.0)}
    by_class = ShrinkageNB(class_weight={"bee": 3.0}, **settings).fit(X, y)
    by_row = ShrinkageNB(**settings).fit(X, y, sample_weight=u)
    np.testing.assert_allclose(
        by_class.predict_proba(X), by_row.predict_proba(X), atol=1e-6
    )


def test_more_folds_than_rows_of_a_class_still_choose(mixed):
    X, y = mixed
    kept = np.flatnonzero(y != "cat").tolist() + np.flatnonzero(y == "cat")[:2].tolist()
    clf = ShrinkageNB(cv=10).fit(X.iloc[kept], y[kept])
    assert all(np.isfinite(record["log_loss"]) for record in clf.strength_path_)


def test_a_class_that_an_inner_fold_lacks_is_left_out_there(mixed):
    X, y = mixed
    kept = np.flatnonzero(y != "cat").tolist() + np.flatnonzero(y == "cat")[:1].tolist()
    clf = ShrinkageNB().fit(X.iloc[kept], y[kept])
    assert clf.classes_.tolist() == ["ant", "bee", "cat"]
    assert all(np.isfinite(record["log_loss"]) for record in clf.strength_path_)
    assert np.isfinite(clf.predict_log_proba(X)).all()


def test_two_rows_are_enough():
    clf = ShrinkageNB().fit([["a"], ["b"]], [0, 1])
    assert np.isfinite(clf.predict_proba([["a"], ["c"]])).all()
    assert clf.strength_ == (START.shared, START.by_class, START.by_value)


def test_folds_can_be_given_as_positions_of_rows(mixed):
    X, y = mixed
    rows = np.arange(len(y))
    cv = [(rows[rows % 4 != k], rows[rows % 4 == k]) for k in range(4)]
    clf = ShrinkageNB(cv=cv, interactions=None).fit(X, y)
    assert len(clf.strength_path_) >= 4
    # Rows of weight zero keep their positions.
    u = np.ones(len(y))
    u[::7] = 0.0
    kept = np.flatnonzero(u)
    place = np.full(len(y), -1)
    place[kept] = np.arange(len(kept))
    own = [tuple(place[part][place[part] >= 0] for part in fold) for fold in cv]
    a = ShrinkageNB(cv=cv).fit(X, y, sample_weight=u)
    b = ShrinkageNB(cv=own).fit(X.iloc[kept], y[kept])
    assert [r["log_loss"] for r in a.strength_path_] == pytest.approx(
        [r["log_loss"] for r in b.strength_path_], rel=1e-6
    )


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"strength": "strong"}, "'auto' or three finite numbers"),
        ({"strength": (1.0, 2.0)}, "three finite numbers"),
        ({"strength": 3.0}, "three finite numbers"),
        ({"strength": (1.0, 0.0, 1.0)}, "greater than 0"),
        ({"strength": (1.0, np.inf, 1.0)}, "three finite numbers"),
        ({"grid": []}, "at least one triple"),
        ({"grid": [(1.0, 2.0)]}, "'grid' parameter of ShrinkageNB .*three"),
        ({"grid": [(1.0, 2.0, -1.0)]}, "'grid'"),
        ({"cv": 1}, "'cv'"),
        ({"cv": True}, "'cv'"),
        ({"cv": 2.5}, "'cv'"),
        ({"cv": []}, "'cv'"),
        ({"cv": [([0, 1],)]}, "'cv'"),
        ({"cv": [([0.5], [1])]}, "'cv'"),
        ({"intercept": -1.0}, "'intercept'"),
        ({"intercept": np.inf}, "'intercept'"),
        ({"tol": -1.0}, "'tol'"),
        ({"max_iter": 0}, "'max_iter'"),
        ({"numeric": "nonsense"}, "'numeric'"),
    ],
)
def test_bad_settings_are_refused_and_leave_the_model(settings, words, mixed):
    X, y = mixed
    clf = ShrinkageNB(strength=(1.0, 4.0, 1.0)).fit(X, y)
    before = clf.predict_proba(X)
    strength = settings.get("strength", "auto")
    with pytest.raises(ParameterError, match=words):
        clf.set_params(**{**settings, "strength": strength}).fit(X, y)
    np.testing.assert_array_equal(clf.predict_proba(X), before)
    assert clf.strength_ == (1.0, 4.0, 1.0)


def test_an_interrupted_fit_leaves_the_old_model(mixed, monkeypatch):
    X, y = mixed
    clf = ShrinkageNB().fit(X, y)
    before, state = clf.predict_proba(X), dict(vars(clf))
    calls = []

    def stop(*arguments, **named):
        calls.append(1)
        raise KeyboardInterrupt

    monkeypatch.setattr("steelyard.fitting.problem.Problem.solve", stop)
    for settings in ({"strength": "auto"}, {"strength": (1.0, 1.0, 1.0)}):
        clf.set_params(**settings)
        with pytest.raises(KeyboardInterrupt):
            clf.fit(X[["length"]], y)
    assert len(calls) == 2
    assert {k: v for k, v in vars(clf).items() if k.endswith("_")} == {
        k: v for k, v in state.items() if k.endswith("_")
    }
    assert not {"_strengths", "_scale"} & set(vars(clf))
    np.testing.assert_array_equal(clf.predict_proba(X), before)


def test_a_column_of_thousands_of_values_is_fine():
    random = np.random.default_rng(8)
    n = 12_000
    city = random.integers(0, 5_000, n)
    y = (random.random(n) < 0.2 + 0.6 * (city % 2)).astype(int)
    X = pd.DataFrame(
        {"city": np.char.add("c", city.astype(str)), "x": random.normal(size=n) + y}
    )
    clf = ShrinkageNB(strength=(2.5, 10.0, 2.5)).fit(X[:9_000], y[:9_000])
    assert clf.value_effects_[0].shape[1] > 4_000
    assert clf.score(X[9_000:], y[9_000:]) > 0.65
    unseen = pd.DataFrame({"city": ["nowhere"], "x": [0.0]})
    assert np.isfinite(clf.predict_proba(unseen)).all()


def test_unseen_and_missing_values_add_nothing(mixed, fixed):
    X, y = mixed
    clf = fixed().fit(X, y)
    row = X[:1].copy()
    row["colour"] = ["mauve"]
    unseen = clf.predict_joint_log_proba(row)
    row["colour"] = [None]
    np.testing.assert_array_equal(clf.predict_joint_log_proba(row), unseen)


def test_number_of_threads_does_not_change_a_bit(mixed):
    X, y = mixed
    one, four = (ShrinkageNB(n_jobs=jobs).fit(X, y) for jobs in (1, 4))
    assert one.strength_path_ == four.strength_path_
    np.testing.assert_array_equal(one.predict_proba(X), four.predict_proba(X))


@pytest.mark.parametrize("instances", ["discriminative", "value-frequency"])
def test_instance_weights_enter_the_counts(instances, mixed):
    X, y = mixed
    clf = ShrinkageNB(instances=instances, strength=(2.5, 10.0, 2.5)).fit(X, y)
    assert clf.instance_weights_.shape == (len(y),)
    plain = clone(clf).set_params(instances=None).fit(X, y)
    assert not np.array_equal(clf.predict_proba(X), plain.predict_proba(X))


def test_separable_rows_have_finite_weights_and_no_warning():
    X = np.array([["a", "u"], ["b", "u"], ["a", "v"], ["b", "v"]] * 20)
    y = (X[:, 0] == "a").astype(int)
    clf = ShrinkageNB().fit(X, y)
    assert clf.score(X, y) == 1.0
    assert np.abs(clf.class_attribute_weights_).max() < 20.0


def test_it_beats_naive_bayes_where_columns_repeat_each_other():
    from sklearn.metrics import log_loss

    from steelyard import NaiveBayes

    random = np.random.default_rng(9)
    y = random.integers(0, 2, 600)
    one = np.where(random.random(600) < 0.75, y, 1 - y)
    X = np.column_stack([one] * 6 + [random.integers(0, 3, 600)]).astype(str)
    fit, test = slice(0, 300), slice(300, 600)
    loss = {
        type(clf): log_loss(y[test], clf.fit(X[fit], y[fit]).predict_proba(X[test]))
        for clf in (NaiveBayes(), ShrinkageNB())
    }
    assert loss[ShrinkageNB] < loss[NaiveBayes] - 0.2


@pytest.mark.parametrize(
    "numeric", ["mdl", ("mdl", "equal-frequency"), "gaussian-weka", {0: "mdl"}]
)
@pytest.mark.parametrize("missing", ["skip", "impute"])
def test_rows_in_the_same_bins_are_not_one_row_in_the_comparison(numeric, missing):
    random = np.random.default_rng(0)
    X = np.round(random.normal(size=(200, 3)), 3)
    y = (X[:, 0] + random.normal(size=200) > 0).astype(int)
    X[::17, 1] = np.nan
    clf = ShrinkageNB(numeric=numeric, missing=missing).fit(X, y)
    # No one can tell these labels from the numbers so well.
    assert min(record["log_loss"] for record in clf.strength_path_) > 0.35
    order = random.permutation(200)
    other = ShrinkageNB(numeric=numeric, missing=missing).fit(X[order], y[order])
    assert [r["log_loss"] for r in clf.strength_path_] == pytest.approx(
        [r["log_loss"] for r in other.strength_path_], rel=1e-4
    )


def test_it_is_no_weighted_naive_bayes_and_has_no_overall_weight():
    assert not issubclass(ShrinkageNB, WeightedNB)
    assert "overall" not in ShrinkageNB().get_params()
    with pytest.raises(TypeError, match="overall"):
        ShrinkageNB(overall=1.0)


def test_the_same_table_gives_the_same_model_and_the_docstring_says_why(mixed):
    X, y = mixed
    assert ShrinkageNB().random_state == 0
    one, other = (ShrinkageNB().fit(X, y) for _ in range(2))
    assert one.strength_path_ == other.strength_path_
    assert "the same model" in " ".join(ShrinkageNB.__doc__.split())


def test_balanced_classes_are_judged_by_balanced_rows():
    """Strengths that suit all rows alike would let a rare class be learned by heart."""
    rng = np.random.default_rng(1)

    def draw(n):
        y = rng.random(n) < 0.03
        x = np.exp(rng.normal(1.3 * y, 1.0)).round(2), rng.normal(1.0 * y, 1.0)
        return np.stack([*x, rng.normal(size=n)], axis=1), y

    (X, y), (new, truth) = draw(1500), draw(4000)
    free, balanced = (
        ShrinkageNB(class_weight=weight).fit(X, y) for weight in (None, "balanced")
    )
    aucs = [roc_auc_score(truth, m.predict_proba(new)[:, 1]) for m in (free, balanced)]
    assert aucs[1] > aucs[0] - 0.01
    losses = [entry["log_loss"] for entry in balanced.strength_path_]
    assert 0.3 < min(losses) < np.log(2.0)


def test_on_a_long_table_of_its_own_truth_naive_bayes_is_hardly_ahead():
    fixed, random = np.random.default_rng(3), np.random.default_rng(0)
    shares = fixed.dirichlet(np.full(5, 3.0), (10, 2))

    def made(n):
        y = (random.random(n) < 0.3).astype(int)
        cut = shares.cumsum(axis=2)[:, y]
        codes = (random.random((10, n, 1)) > cut[..., :-1]).sum(axis=2)
        return codes.T.astype(str).astype(object), y

    (X, y), (new, wanted) = made(200_000), made(50_000)
    losses = [
        log_loss(wanted, clf.fit(X, y).predict_proba(new))
        for clf in (ShrinkageNB(uncertainty=False), NaiveBayes())
    ]
    assert losses[0] < losses[1] + 3e-4
