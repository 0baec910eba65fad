"""Intervals of probabilities: what they hold, and how they are kept."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import steelyard as sy
from steelyard import ShrinkageNB
from steelyard.exceptions import ParameterError
from steelyard.fitting.default import uncertainty
from steelyard.fitting.default.uncertainty import Scores, within_bins

STRENGTH = (10.0, 40.0, 10.0)


@pytest.fixture(scope="module")
def odds_table():
    random = np.random.default_rng(1)
    X = random.normal(size=(3_000, 3))
    odds = X[:, 0] - 0.5 * X[:, 1]
    return X, (random.random(len(X)) < expit(odds)).astype(int), expit(odds)


@pytest.fixture(scope="module")
def fitted(mixed):
    X, y = mixed
    return ShrinkageNB(strength=STRENGTH).fit(X, y), X


def test_an_interval_is_around_its_probability_and_grows_with_the_level(fitted):
    clf, X = fitted
    proba, narrow, wide = (
        clf.predict_proba(X),
        clf.predict_interval(X, 0.5),
        clf.predict_interval(X),
    )
    assert wide.shape == (len(X), 3, 2)
    assert (0.0 <= wide[..., 0]).all() and (wide[..., 1] <= 1.0).all()
    assert (wide[..., 0] < narrow[..., 0]).all()
    assert (narrow[..., 0] < proba).all() and (proba < narrow[..., 1]).all()


def test_of_two_classes_one_has_what_the_other_leaves(two):
    X, y = two
    clf = ShrinkageNB(strength=STRENGTH).fit(X, y)
    found = clf.predict_interval(X)
    np.testing.assert_allclose(found[:, 0], 1.0 - found[:, 1, ::-1], atol=1e-12)


def test_plain_data_give_the_same_variance(fitted):
    clf, X = fitted
    codes, data = clf._encode(X), vars(clf.uncertainty_)
    offsets = clf.encoder_.schema_.offsets
    for i in (0, 7):
        cells = [offsets[j] + codes.column(j)[i] for j in range(len(offsets) - 1)]
        for c in range(3):
            variance = data["base"][c] + sum(data["variances"][v][c] for v in cells)
            assert variance == pytest.approx(clf.uncertainty_.of_rows(codes)[i, c])


def test_a_file_keeps_intervals_to_the_bit(fitted, tmp_path):
    clf, X = fitted
    clf.save(tmp_path / "model.json")
    again = sy.load(tmp_path / "model.json").predict_interval(X)
    assert (again == clf.predict_interval(X)).all()


@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_file_is_at_most_a_quarter_larger(tmp_path, odds_table, n_classes):
    X, y, _ = odds_table
    y = y[:400] + 2 * (np.arange(400) % (n_classes // 2))
    sizes = []
    for kept in (False, True):
        clf = ShrinkageNB(strength=STRENGTH, uncertainty=kept)
        clf.fit(X[:400], y).save(tmp_path / "model.json")
        sizes.append((tmp_path / "model.json").stat().st_size)
    assert sizes[1] < 1.25 * sizes[0]


def test_more_rows_make_narrower_intervals_that_cover(odds_table):
    X, y, truth = odds_table
    widths = []
    for n in (300, 3_000):
        found = ShrinkageNB(strength=STRENGTH).fit(X[:n], y[:n]).predict_interval(X)
        covers = (found[:, 1, 0] <= truth) & (truth <= found[:, 1, 1])
        assert 0.8 < covers.mean()
        widths.append(np.diff(found[:, 1]).mean())
    assert widths[1] < 0.65 * widths[0]


def test_separated_classes_have_narrow_intervals():
    # At the estimate curvatures vanish, and all would be as uncertain as before.
    random = np.random.default_rng(2)
    y = np.arange(300) % 2
    X = 5.0 * y[:, None] + random.normal(size=(300, 4))
    clf = ShrinkageNB(strength=(0.5, 2.5, 0.5)).fit(X, y)
    low = clf.predict_interval(X)[np.arange(300), y, 0]
    assert np.median(low) > 0.9


def test_with_nothing_known_the_interval_is_that_of_the_base_rate(fitted):
    clf, X = fitted
    empty = pd.DataFrame(None, X.index[:1], X.columns, dtype=object)
    low, high = clf.predict_interval(empty)[0, 0]
    rate = np.exp(clf.class_log_prior_[0])
    half = 1.6449 * np.sqrt(1.0 / (len(X) * rate * (1.0 - rate)))
    odds = np.log(rate / (1.0 - rate))
    np.testing.assert_allclose(
        [low, high], expit([odds - half, odds + half]), rtol=0.02
    )


def test_without_uncertainty_the_message_says_what_to_do(two):
    X, y = two
    clf = ShrinkageNB(strength=STRENGTH, uncertainty=False).fit(X, y)
    assert not hasattr(clf, "uncertainty_")
    with pytest.raises(ParameterError, match="uncertainty=True"):
        clf.predict_interval(X)


@pytest.mark.parametrize("level", [0, 1.0, "90 %", np.nan])
def test_a_level_is_between_0_and_1(fitted, level):
    with pytest.raises(ParameterError, match="between 0 and 1"):
        fitted[0].predict_interval(fitted[1], level)


def test_an_edited_model_has_no_intervals_until_it_is_unedited(two):
    X, y = two
    clf = ShrinkageNB(strength=STRENGTH).fit(X, y)
    edited = clf.edited([{"column": "width", "remove": True}], reason="test")
    with pytest.raises(ParameterError, match="Edited"):
        edited.predict_interval(X)
    again = edited.unedited().predict_interval(X)
    assert (again == clf.predict_interval(X)).all()


def test_explanations_have_the_intervals_of_contributions_and_sums(fitted, two):
    clf, X = fitted
    why = clf.explain_local(X[:3])
    assert (why.intervals == clf.predict_interval(X[:3])).all()
    assert all(item.half_width > 0.0 for item in why.evidence(0).items)
    X, y = two
    clf = ShrinkageNB(strength=STRENGTH).fit(X, y)
    evidence = clf.explain_local(X[:1]).evidence(0)
    # Of two classes the interval of the sum is that of the probability.
    low, high = clf.predict_interval(X[:1])[0, clf.classes_ == evidence.target][0]
    ends = evidence.total + np.array([-1.0, 1.0]) * evidence.half_width
    np.testing.assert_allclose(expit(ends), [low, high], rtol=1e-9)
    assert "± (90 %)" in repr(evidence)


def test_a_point_of_a_curve_is_as_uncertain_as_the_contribution_of_such_a_cell(two):
    X, y = two
    clf = ShrinkageNB(strength=STRENGTH).fit(X, y)
    row = X[X["length"].notna()][:1]
    table = clf.explain_global().table("length")
    place = 1 + np.searchsorted(table.edges, row["length"].iloc[0])
    (item,) = (
        item
        for item in clf.explain_local(row).evidence(0).items
        if item.attribute == "length"
    )
    assert item.half_width == pytest.approx(table.half_width[place, 1])
    data = table.to_dict()
    np.testing.assert_array_less(data["low"][1:], data["high"][1:])


def test_importances_have_intervals_that_more_rows_make_narrower(odds_table):
    X, y, _ = odds_table
    halves = []
    for n in (300, 3_000):
        whole = ShrinkageNB(strength=STRENGTH).fit(X[:n], y[:n]).explain_global()
        assert "± its 90 % interval" in repr(whole)
        halves.append(whole.importance_half_width)
    assert (halves[1] < halves[0]).all()


def test_rows_that_outweigh_the_prior_a_million_times_leave_narrow_intervals():
    # In single precision the system of such weights was not positive definite.
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 10, (300, 8)).astype(str), rng.random(300) < 0.4
    clf = sy.ShrinkageNB(interactions=None, grid=[(0.5, 1.0, 0.15)], random_state=0)
    clf.fit(X, y, sample_weight=np.full(300, 1e6))
    low, high = clf.predict_interval(X)[:, 1].T
    assert np.all((low < high) & (high - low < 0.01))


def test_many_categories_alone_give_about_the_same_variances(monkeypatch):
    random = np.random.default_rng(3)
    X = random.integers(0, 30, (600, 2)).astype(str)
    y = random.random(600) < 0.3 + 0.4 * (X[:, 0] > "2")
    variances = []
    for most in (200, 0):
        monkeypatch.setattr(uncertainty, "_MAX_COUPLED_WEIGHTS", most)
        clf = ShrinkageNB(strength=STRENGTH).fit(X, y)
        variances.append(clf.uncertainty_.of_rows(clf._encode(X)))
    assert 0.8 < variances[1].mean() / variances[0].mean() < 1.25


def test_a_sample_of_rows_represents_all(monkeypatch, odds_table):
    X, y, _ = odds_table
    variances = []
    for cells in (1e9, 0):
        monkeypatch.setattr(uncertainty, "_MAX_CELLS", cells)
        clf = ShrinkageNB(strength=STRENGTH).fit(X, y)
        variances.append(clf.uncertainty_.of_rows(clf._encode(X)))
    assert abs(np.log(variances[1] / variances[0])).mean() < 0.1


def test_copies_of_a_column_do_not_add_up_to_wide_intervals(odds_table):
    X, y, _ = odds_table
    X, y = X[:300], y[:300]
    widths = []
    for table in (X, np.column_stack([*[X[:, :1]] * 8, X[:, 1:]])):
        clf = ShrinkageNB(strength=(10.0, 40.0, 10.0), interactions=None).fit(table, y)
        widths.append(np.diff(clf.predict_interval(table)[:, 1]).mean())
    # Eight times the effects, as far as strengths know.
    assert widths[1] < 1.5 * widths[0]


def test_scores_of_bins_are_those_of_a_normal_distribution():
    counts = np.full(60, 50.0)
    means, variances = Scores.of(counts)
    assert means.mean() == pytest.approx(0.0, abs=1e-9)
    assert (means**2 + variances).mean() == pytest.approx(1.0)
    # A tail goes further than bins of as many rows in the middle.
    assert variances[0] > 100.0 * variances[30]
    empty = Scores.of(np.array([5.0, 0.0, 0.0, 5.0]))
    assert (np.diff(empty.means) > 0.0).all() and np.isfinite(empty.variances).all()


def test_a_slope_goes_on_in_the_outermost_bins():
    counts = np.full(60, 50.0)
    means, variances = Scores.of(counts)
    line = 0.8 * means[:, None]
    unlearned = np.zeros((60, 1))
    found = within_bins(line, counts, unlearned, (4, 8, 20))[:, 0]
    np.testing.assert_allclose(found, 0.64 * variances)
    # Level at its ends, and steep before.
    level = np.clip(line, -1.0, 1.0)
    found = within_bins(level, counts, unlearned, (4, 8, 20))[:, 0]
    np.testing.assert_allclose(found[[0, -1]], 0.64 * variances[[0, -1]])
    # What rows have not told lags behind, at the ends.
    open_ = within_bins(level, counts, unlearned + 0.5, (4, 8, 20))[:, 0]
    assert open_[0] > 2.0 * found[0] and open_[30] < 0.01
    assert (within_bins(0.0 * line, counts, unlearned + 1.0, (4, 8)) == 0.0).all()


def test_a_scale_below_1_makes_no_interval_narrower(two, monkeypatch):
    solved = []
    monkeypatch.setattr(
        "steelyard.classifiers.shrinkage.uncertainty_of",
        lambda *own: solved.append(own),
    )
    ShrinkageNB(strength=STRENGTH).fit(*two)
    problem, weights, _ = solved[0]
    half, one, two_times = (
        uncertainty.uncertainty_of(problem, weights, scale).variances
        for scale in (0.5, 1.0, 2.0)
    )
    np.testing.assert_array_equal(half, one)
    np.testing.assert_allclose(two_times, 4.0 * one)


def test_ends_of_long_tailed_numbers_are_covered_where_curves_are_level():
    random = np.random.default_rng(4)
    X = np.exp(random.normal(size=(3_000, 2)))
    odds = 0.8 * np.log(X[:, 0])
    y = random.random(3_000) < expit(odds)
    clf = ShrinkageNB(strength=(20.0, 80.0, 20.0), interactions=None).fit(
        X[:1_000], y[:1_000]
    )
    low, high = clf.predict_interval(X)[:, 1].T
    small = X[:, 0] < np.quantile(X[:, 0], 0.03)
    covers = (low <= expit(odds)) & (expit(odds) <= high)
    assert covers[small].mean() > 0.75


def test_names_of_two_classes_may_be_exchanged(two):
    X, y = two
    exchanged = np.where(y == "ant", "bee", "ant")
    first, other = (
        ShrinkageNB(strength=STRENGTH).fit(X, own) for own in (y, exchanged)
    )
    np.testing.assert_allclose(
        first.predict_interval(X), other.predict_interval(X)[:, ::-1], atol=1e-9
    )


def test_a_row_of_weight_two_is_as_good_as_two_rows(two):
    X, y = two
    rows = np.repeat(np.arange(len(y)), 2)
    twice = ShrinkageNB(strength=STRENGTH).fit(X.iloc[rows], y[rows])
    weighted = ShrinkageNB(strength=STRENGTH)
    weighted.fit(X, y, sample_weight=np.full(len(y), 2.0))
    np.testing.assert_allclose(
        weighted.predict_interval(X), twice.predict_interval(X), atol=1e-6
    )
