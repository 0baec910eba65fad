"""Rows scored by counts that leave them out, against models that are fitted again."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard import NaiveBayes
from steelyard.fitting.default.folds import assign_folds
from steelyard.fitting.search import left_out as module
from steelyard.fitting.search.left_out import cross_validated, left_out, resubstituted
from steelyard.kernels import searching as kernels
from steelyard.proba.counts import count
from steelyard.proba.gaussian import estimate_gaussian

pytestmark = pytest.mark.plain

SMOOTHINGS = ["m-estimate", "laplace", "kohavi", 0.3]


def declared_table(n=18, n_classes=3, gaps=0.0, seed=0, sizes=(2, 3, 4, 3)):
    """Declared categories, so that a model of fewer rows knows the same values."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    columns = {}
    for j, size in enumerate(sizes):
        told = rng.random(n) < 0.5
        codes = np.where(told, y % size, rng.integers(0, size, n))
        codes[rng.random(n) < gaps] = -1
        names = [f"v{v}" for v in range(size)]
        columns[f"a{j}"] = pd.Categorical.from_codes(codes, names)
    return pd.DataFrame(columns), y


def encoded(clf, X, y, weights=None):
    """Return the training set that a fit would learn from."""
    return clf._recipe().encode(X, y, weights)


def losses_by_refitting(clf, X, y, weights, order):
    """Squared and 0-1 errors of all prefixes, from a model without each row's unit."""
    u = np.ones(len(y)) if weights is None else weights
    factors = clf.class_weight or {}
    out = np.zeros((len(order) + 1, 2))
    for i in range(len(y)):
        rest = u.copy()
        rest[i] -= min(1.0, u[i])
        model = clf.fit(X, y, sample_weight=rest).model_
        codes = clf._encode(X.iloc[[i]])
        scores = model.log_prior.copy()
        parts = model.contributions(codes)[0]
        for a in range(len(order) + 1):
            if a:
                scores = scores + parts[order[a - 1]]
            p = np.exp(scores - scores.max())
            best = model.tie_order[np.argmax(scores[model.tie_order])]
            counted = u[i] * factors.get(y[i], 1.0)
            out[a, 0] += counted * (1.0 - p[y[i]] / p.sum()) ** 2
            out[a, 1] += counted * (best != y[i])
    return out


CASES = {
    "plain": {},
    "gaps": {"gaps": 0.3},
    "two classes": {"n_classes": 2, "gaps": 0.1},
    "whole weights": {"weights": "whole"},
    "other weights": {"weights": "other", "gaps": 0.2},
    "class weights": {"class_weight": {0: 2.0, 1: 0.25}},
    "frequencies": {"prior": "frequency"},
    "given prior": {"prior": [0.2, 0.5, 0.3]},
}


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@pytest.mark.parametrize("case", CASES)
def test_subtracting_counts_equals_fitting_again(case, smoothing):
    options = dict(CASES[case])
    kind = options.pop("weights", None)
    table = {k: options.pop(k) for k in ("gaps", "n_classes") if k in options}
    X, y = declared_table(**table)
    rng = np.random.default_rng(1)
    weights = {
        None: None,
        "whole": rng.integers(1, 4, len(y)).astype(float),
        "other": rng.uniform(0.1, 2.5, len(y)),
    }[kind]
    clf = NaiveBayes(smoothing=smoothing, cardinality="declared", **options)
    order = [2, 0, 3, 1]
    held = left_out(encoded(clf, X, y, weights))
    np.testing.assert_allclose(
        held.prefix_losses(order),
        losses_by_refitting(clf, X, y, weights, order),
        rtol=1e-10,
    )


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_logarithms_row_by_row_equal_tables(smoothing, monkeypatch):
    X, y = declared_table(gaps=0.2)
    weights = np.arange(len(y)) % 4 * 0.5 + 0.25
    training = encoded(NaiveBayes(smoothing=smoothing), X, y, weights)
    by_table = left_out(training)
    monkeypatch.setattr(module, "_MAX_TABLES", 0)
    by_row = left_out(training)
    assert by_table.removal is None and by_row.removal is not None
    every = slice(0, len(y))
    for j in range(4):
        np.testing.assert_allclose(
            by_row.terms(j, every), by_table.terms(j, every), rtol=1e-13, atol=1e-15
        )


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_weight_two_equals_the_row_twice(smoothing):
    X, y = declared_table(gaps=0.1)
    twice = np.arange(len(y)) % 3 == 0
    clf = NaiveBayes(smoothing=smoothing)
    weighted = left_out(encoded(clf, X, y, 1.0 + twice))
    rows = np.concatenate([np.arange(len(y)), np.flatnonzero(twice)])
    repeated = left_out(encoded(clf, X.iloc[rows], y[rows]))
    order = [0, 1, 2, 3]
    np.testing.assert_allclose(
        weighted.prefix_losses(order), repeated.prefix_losses(order), rtol=1e-12
    )


def test_row_of_weight_zero_is_as_if_absent():
    X, y = declared_table()
    weights = (np.arange(len(y)) % 5 > 0).astype(float)
    kept = weights > 0
    clf = NaiveBayes()
    some = left_out(encoded(clf, X, y, weights)).prefix_losses([1, 0])
    rest = left_out(encoded(clf, X[kept], y[kept])).prefix_losses([1, 0])
    np.testing.assert_allclose(some, rest, rtol=1e-14)


def test_only_row_of_a_class_is_lost_without_it():
    X = np.array([["a"], ["b"], ["b"], ["a"]])
    y = [0, 1, 1, 1]
    for prior in ("frequency", "smoothed"):
        losses = left_out(encoded(NaiveBayes(prior=prior), X, y)).prefix_losses([0])
        assert np.isfinite(losses).all()
        assert (losses[:, 1] >= 1.0).all()


def test_wide_columns_and_bytes_read_in_place_are_looked_up_alike():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 900)
    wide = rng.permutation(900) % 450
    small = rng.integers(5, 9, (900, 2))
    frame = pd.DataFrame({"a": small[:, 0], "wide": wide, "b": small[:, 1]})
    clf = NaiveBayes(categorical_features="all")
    held = left_out(encoded(clf, frame, y))
    assert held.columns.dtype == np.uint16
    codes = encoded(clf, frame, y).codes
    np.testing.assert_array_equal(held.columns, codes.to_array().T)
    in_place = left_out(encoded(clf, small.astype(np.uint8), y))
    np.testing.assert_array_equal(in_place.columns, held.columns[[0, 2]])


@settings(deadline=None, max_examples=50)
@given(data=st.data())
def test_two_class_loop_equals_the_general_one(data):
    n = data.draw(st.integers(1, 300))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    whole = data.draw(st.booleans())
    draw = (
        (lambda: rng.integers(-2, 3, (n, 2)) * 1.0)
        if whole
        else (lambda: rng.normal(size=(n, 2)) * 30)
    )
    base, terms = draw(), draw()
    scores, y, u = base.copy(), rng.integers(0, 2, n).astype(np.uint32), rng.random(n)
    again = scores.copy()
    one, two = np.zeros(2), np.zeros(2)
    kernels.add_and_judge(terms, scores, base, y, u, one)
    kernels.add_and_judge_two(terms, again, base, y, u, two)
    np.testing.assert_array_equal(scores, again)
    np.testing.assert_allclose(one, two, rtol=1e-11, atol=1e-14)


def test_tie_goes_to_the_larger_prior_then_to_the_first():
    base = np.log([[0.25, 0.75], [0.75, 0.25], [0.5, 0.5]])
    terms = -base
    y, u = np.array([1, 1, 0], np.uint32), np.ones(3)
    assert kernels.weight_right(terms, base, base, y, u) == 2.0
    losses = np.zeros(2)
    kernels.add_and_judge_two(terms, base.copy(), base, y, u, losses)
    assert losses[1] == 1.0
    np.testing.assert_allclose(losses[0], 3 * 0.25)


# ----------------------------------------------------------------------------- folds


def scores_of(held, features=(0, 1, 2, 3)):
    scores = held.base.copy()
    held.add(features, scores)
    return scores


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_fold_is_scored_by_a_model_of_the_other_folds(smoothing):
    X, y = declared_table(n=30, gaps=0.2)
    clf = NaiveBayes(smoothing=smoothing, cardinality="declared")
    training = encoded(clf, X, y)
    held = cross_validated(training, 5, np.random.RandomState(0))
    rows, fold, shares = assign_folds(training, 5, np.random.RandomState(0))
    assert shares.sum() == 30
    for f in range(5):
        other, mine = fold != f, fold == f
        fitted = clf.fit(X.iloc[rows[other]], y[rows[other]], shares[other])
        np.testing.assert_allclose(
            scores_of(held)[mine],
            fitted.predict_joint_log_proba(X.iloc[rows[mine]]),
            rtol=1e-12,
        )


@pytest.mark.parametrize("n_folds", [2, 5, 7])
def test_folds_have_equal_sizes_and_equal_classes(n_folds):
    X, y = declared_table(n=64, n_classes=3)
    training = encoded(NaiveBayes(), X, y)
    rows, fold, shares = assign_folds(training, n_folds, np.random.RandomState(3))
    table = np.zeros((n_folds, 3))
    np.add.at(table, (fold, y[rows]), shares)
    assert np.ptp(table.sum(axis=1)) <= 1
    assert (np.ptp(table, axis=0) <= 1).all()
    np.testing.assert_array_equal(table.sum(axis=0), np.bincount(y))


def test_folds_depend_on_content_and_seed_not_on_order_or_repetition():
    X, y = declared_table(n=40)
    weights = np.arange(len(y)) % 3 + 1.0
    repeated = np.random.default_rng(0).permutation(
        np.repeat(np.arange(40), 1 + np.arange(40) % 3)
    )
    clf = NaiveBayes()

    def accuracy(X, y, weights, seed):
        training = encoded(clf, X, y, weights)
        held = cross_validated(training, 5, np.random.RandomState(seed))
        return held.accuracies(held.base, range(4)), held.accuracy(scores_of(held))

    found = [accuracy(X, y, weights, seed) for seed in range(3)]
    again = [accuracy(X.iloc[repeated], y[repeated], None, seed) for seed in range(3)]
    for (a, b), (c, d) in zip(found, again, strict=True):
        np.testing.assert_array_equal(a, c)
        assert b == d
    assert len({b for _, b in found}) > 1


def test_rows_of_other_weights_are_dealt_one_by_one_whatever_their_order():
    X, y = declared_table(n=40, sizes=(2, 2))
    weights = np.arange(40) % 4 * 0.01 + 0.005

    def table(rows):
        """Weight of each kind of row in each fold."""
        training = encoded(NaiveBayes(), X.iloc[rows], y[rows], weights[rows])
        picked, fold, shares = assign_folds(training, 5, np.random.RandomState(0))
        assert (np.bincount(fold) == 8).all()
        kinds = X.iloc[rows[picked]].astype(str).sum(axis=1) + y[rows[picked]].astype(
            str
        )
        return pd.Series(shares).groupby([kinds.to_numpy(), fold]).sum()

    one = table(np.arange(40))
    np.testing.assert_allclose(one.sum(), weights.sum())
    # Equal rows are not kept together.
    assert one.groupby(level=0).size().max() == 5
    pd.testing.assert_series_equal(one, table(np.random.default_rng(0).permutation(40)))


@pytest.mark.parametrize("weight", [1.0, 0.5])
def test_a_row_less_leaves_nearly_all_others_in_their_folds(weight):
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(300, 3)), columns=list("abc"))
    y = random.integers(0, 3, 300)

    def folds(rows):
        training = encoded(
            NaiveBayes(numeric="gaussian"),
            X.iloc[rows],
            y[rows],
            np.full(len(rows), weight),
        )
        picked, fold, shares = assign_folds(training, 5, np.random.RandomState(0))
        assert (shares == weight).all()
        return pd.Series(fold, index=rows[picked])

    every = folds(np.arange(300))
    for gone in (0, 150, 299):
        rows = np.delete(np.arange(300), gone)
        # Of each class one or two rows move over each of the four ends of runs.
        assert (folds(rows).reindex(rows) != every.reindex(rows)).sum() <= 3 * 4 * 2


def test_rows_that_occur_often_are_in_all_folds():
    X, y = declared_table(n=200, sizes=(2, 2))
    training = encoded(NaiveBayes(), X, y)
    rows, fold, shares = assign_folds(training, 5, np.random.RandomState(0))
    kinds = X.iloc[rows].astype(str).sum(axis=1).to_numpy() + y[rows].astype(str)
    table = pd.Series(shares).groupby([kinds, fold]).sum().unstack(fill_value=0.0)
    assert (table.sum(axis=1) > 4).any()
    assert (table.min(axis=1) >= table.sum(axis=1) // 5).all()


def test_twins_are_dealt_one_by_one():
    random = np.random.default_rng(0)
    X = pd.DataFrame(np.repeat(random.normal(size=(100, 3)), 2, axis=0))
    training = encoded(NaiveBayes(numeric="gaussian"), X, np.arange(200) // 2 % 2)
    _, fold, shares = assign_folds(training, 5, np.random.RandomState(0))
    assert shares.sum() == 200 and (np.bincount(fold, shares) == 40).all()
    # One pair of five is in one fold by chance: 20, with a deviation of 4.
    assert 8 <= (shares == 2).sum() <= 32


@pytest.mark.parametrize("class_weight", [None, {0: 3.0}, "balanced"])
def test_training_rows_are_scored_as_predict_does(class_weight):
    X, y = declared_table(n=50, gaps=0.1, sizes=(2, 2, 3, 2))
    weights = np.arange(50) % 3 + 0.5
    clf = NaiveBayes(class_weight=class_weight)
    training = encoded(clf, X, y, weights)
    held = resubstituted(training)
    assert held.n_rows < 50
    fitted = clf.fit(X, y, weights)
    right = np.average(fitted.predict(X) == y, weights=training.weights)
    np.testing.assert_allclose(held.accuracy(scores_of(held)), right, rtol=1e-13)
    alone = scores_of(held, [0, 1, 2])
    np.testing.assert_allclose(held.accuracies(alone, [3])[0], right, rtol=1e-13)


def test_more_folds_than_rows_leave_one_out():
    X, y = declared_table(n=18)
    clf = NaiveBayes(cardinality="declared")
    training = encoded(clf, X, y)
    folds = cross_validated(training, 300, np.random.RandomState(0))
    alone = left_out(training)
    for features in ((), (0,), (0, 1, 2, 3)):
        np.testing.assert_allclose(
            folds.accuracy(scores_of(folds, features)),
            alone.accuracy(scores_of(alone, features)),
        )


@pytest.mark.parametrize("numeric", ["gaussian", "gaussian-weka", "gaussian-relative"])
@pytest.mark.parametrize("kind", [None, "whole", "other", "class"])
def test_downdated_densities_equal_those_of_a_fit_without_the_row(numeric, kind):
    rng = np.random.default_rng(4)
    n = 24
    y = np.arange(n) % 3
    y[y == 2] = np.where(np.arange((y == 2).sum()) == 0, 2, 1)  # one row alone
    X = pd.DataFrame({"a": rng.normal(size=n) + y, "b": rng.normal(size=n) * 1e3})
    X.loc[3:7, "a"] = np.nan
    X.loc[0, "b"] = 1e6
    weights = {"whole": 1.0 + np.arange(n) % 3, "other": rng.uniform(0.2, 2.0, n)}
    u = weights.get(kind)
    factors = {0: 2.0, 1: 0.5} if kind == "class" else None
    # The grid of intervals is that of all rows, as cut points are.
    clf = NaiveBayes(numeric=numeric, class_weight=factors)
    training = encoded(clf, X, y, u)
    held = left_out(training)
    amounts = np.ones(n) if u is None else np.minimum(u, 1.0)
    for i in range(n):
        rest = np.ones(n) if u is None else u.copy()
        rest[i] -= amounts[i]
        by_class = np.array([(factors or {}).get(c, 1.0) for c in range(3)])
        counts = count(training.codes, training.labels, rest * by_class[y], 3)
        table = estimate_gaussian(counts, clf.variance_floor)
        row = training.codes.number_rows(slice(i, i + 1))
        _, expected = next(table.log_densities(row))
        for j in range(2):
            found = held.terms(j, slice(i, i + 1))[0]
            np.testing.assert_allclose(found, expected[0, j], rtol=1e-8)
