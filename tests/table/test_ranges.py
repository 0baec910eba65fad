"""Where the numbers of columns lie, from tables, chunks, sources and files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import steelyard as sy
from steelyard.exceptions import ColumnError
from steelyard.table.frames import as_table
from steelyard.table.ranges import N_BARS, range_of

CLASSIFIERS = [sy.NaiveBayes, lambda: sy.NaiveBayes(numeric="gaussian")]


def table(n=600, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    frame = pd.DataFrame(
        {
            "age": rng.integers(21, 73, n).astype(float) + 4 * y,
            "sky": rng.choice(["sun", "rain"], n),
            "skew": np.exp(rng.normal(size=n) + y),
        }
    )
    frame.loc[::7, "age"] = np.nan
    return frame, y


def test_ends_and_quartiles_are_those_of_the_sorted_numbers():
    x = np.random.default_rng(3).normal(size=403)
    found = range_of(np.append(x, [np.nan] * 5))
    assert (found.low, found.high) == (x.min(), x.max())
    expected = np.quantile(x, [0.25, 0.5, 0.75], method="inverted_cdf")
    np.testing.assert_array_equal(found.quartiles, expected)
    bars, _ = np.histogram(x, N_BARS, (x.min(), x.max()))
    np.testing.assert_allclose(found.histogram, bars / len(x), atol=0.5 / len(x))
    assert found.weight == len(x)


def test_a_weight_of_two_is_the_row_twice_and_of_zero_its_absence():
    x = np.array([3.0, 1.0, 4.0, 1.5, 9.0, 2.6])
    u = np.array([1.0, 2.0, 3.0, 1.0, 1.0, 2.0])
    assert range_of(x, u) == range_of(np.repeat(x, u.astype(int)))


def test_of_many_rows_the_ends_are_exact_and_the_quartiles_close():
    x = np.random.default_rng(4).normal(size=50_000)
    found = range_of(x)
    assert (found.low, found.high) == (x.min(), x.max())
    ranks = np.searchsorted(np.sort(x), found.quartiles) / len(x)
    np.testing.assert_allclose(ranks, [0.25, 0.5, 0.75], atol=0.03)


@pytest.mark.parametrize(
    "numbers", [[5.0], [5.0, 5.0], [-1.7e308, 1.7e308, 0.0], [1e-320, 0.0]]
)
def test_numbers_without_width_and_at_the_ends_of_float64(numbers):
    found = range_of(np.array(numbers))
    assert sum(found.histogram) == pytest.approx(1.0)
    assert found.points == sorted(found.points)


def test_an_encoder_that_nobody_asks_for_ranges_has_none_and_is_the_same_otherwise():
    X, y = table()
    rows = as_table(X), y.astype(np.uint32), 2, None
    with_ranges, without = sy.TableEncoder(), sy.TableEncoder()
    codes = with_ranges.learn(*rows, [])
    others = without.learn(*rows, [], with_ranges=False)
    assert without.ranges_ == [None, None, None]
    assert with_ranges.ranges_[0] is not None
    assert without.schema_ == with_ranges.schema_
    np.testing.assert_array_equal(codes.to_array(), others.to_array())


def test_a_column_of_missing_cells_has_no_range():
    assert range_of(np.full(4, np.nan)) is None


@pytest.mark.parametrize("make", CLASSIFIERS)
def test_a_fit_keeps_the_range_of_every_column_of_numbers(make, tmp_path):
    X, y = table()
    clf = make().fit(X, y)
    assert clf.training_.ranges[1] is None
    assert clf.training_.ranges[0] == range_of(X["age"].to_numpy())
    clf.save(tmp_path / "model.json")
    again = sy.load(tmp_path / "model.json")
    assert again.training_.ranges == clf.training_.ranges == again.encoder_.ranges_


@pytest.mark.parametrize("n", [50, 9000])
@pytest.mark.parametrize("weights", [None, "some"])
def test_a_matrix_gives_the_ranges_of_its_columns(n, weights):
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(n, 4)), np.arange(n) % 2
    X[:, 1] = np.exp(X[:, 1])
    X[::3, 2] = np.nan
    X[:, 3] = np.nan
    u = None if weights is None else rng.random(n)
    expected = [range_of(column.copy(), u) for column in X.T]
    for table in (X, np.asfortranarray(X), pd.DataFrame(X)):
        clf = sy.NaiveBayes(numeric="gaussian").fit(table, y, u)
        assert clf.training_.ranges == expected


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("beside", [0.0, np.nan])
def test_an_infinite_number_of_a_matrix_is_refused_by_its_place(order, beside):
    X = np.ones((40, 3), order=order)
    X[3:5, 1] = beside, -np.inf
    with pytest.raises(ColumnError, match=r"Column 1 .* \(inf\) in row 4"):
        sy.NaiveBayes(numeric="gaussian").fit(X, np.arange(40) % 2)


def test_a_source_gives_the_same_ranges_as_the_table():
    X, y = table()
    frame = X.assign(y=y)
    parts = [frame[:100], frame[100:350], frame[350:]]
    from_parts = sy.NaiveBayes().fit(sy.scan(parts), "y")
    assert from_parts.training_.ranges == sy.NaiveBayes().fit(X, y).training_.ranges


def test_of_densities_a_source_keeps_the_ends():
    X, y = table()
    clf = sy.NaiveBayes(numeric="gaussian").fit(sy.scan([X.assign(y=y)]), "y")
    found, whole = clf.training_.ranges[2], range_of(X["skew"].to_numpy())
    assert (found.low, found.high) == (whole.low, whole.high)


@pytest.mark.parametrize("make", CLASSIFIERS)
def test_chunks_widen_the_range(make):
    X, y = table()
    clf = make().partial_fit(X[:200], y[:200], classes=[0, 1])
    clf.partial_fit(X[200:], y[200:])
    for j, name in ((0, "age"), (2, "skew")):
        whole, found = range_of(X[name].to_numpy()), clf.training_.ranges[j]
        assert (found.low, found.high) == (whole.low, whole.high)
        assert found.weight == whole.weight
        assert sum(found.histogram) == pytest.approx(1.0)
        ranks = [(X[name].dropna() <= q).mean() for q in found.quartiles]
        np.testing.assert_allclose(ranks, [0.25, 0.5, 0.75], atol=0.1)


def test_explanations_stay_where_the_rows_were():
    X, y = table()
    lows, highs = X.min(numeric_only=True), X.max(numeric_only=True)
    whole = sy.NaiveBayes(numeric="gaussian").fit(X, y).explain_global()
    for name in ("age", "skew"):
        points = whole.table(name).points
        assert points[0] == lows[name]
        assert points[-1] == highs[name]
        assert whole.table(name).span == (lows[name], highs[name])
    clf = sy.ShrinkageNB(strength=(2.5, 10.0, 2.5)).fit(X, y)
    local = clf.explain_local(X[:12])
    for row in range(12):
        for change in local.counterfactual(row).changes:
            if change.attribute != "sky":
                value = float(change.after)
                assert lows[change.attribute] <= value <= highs[change.attribute]


def test_of_whole_numbers_whole_ones_are_suggested():
    rng = np.random.default_rng(8)
    y = rng.integers(0, 2, 300)
    X = pd.DataFrame({"age": rng.integers(20, 60, 300) + 20 * y})
    clf = sy.ShrinkageNB(strength=(2.5, 10.0, 2.5)).fit(X, y)
    (change,) = clf.explain_local(X[:1]).counterfactual().changes
    assert float(change.after).is_integer()
