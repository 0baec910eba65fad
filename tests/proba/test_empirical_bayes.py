"""Empirical-Bayes smoothing against a plain version of its formula."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar
from scipy.stats import dirichlet_multinomial

import steelyard as sy
from steelyard.exceptions import ParameterError
from steelyard.proba import Lidstone
from steelyard.proba.smoothing import EmpiricalBayes

BAYES = {"categorical_features": "all", "smoothing": "empirical-bayes"}

# Methods that need pseudo-counts for each value, or probabilities of values.
REFUSING = {"LWNB", "AIWNB-L", "SBC", "SNB", "TAN", "AODE", "WAODE"}


def column_table(values, y, u=None):
    """Return counts of the known values of a column (values, K), class priors."""
    u = np.ones(len(y)) if u is None else u
    classes = np.unique(y)
    seen = sorted({v for v in values if v is not None})
    counts = np.array(
        [[sum(u[(values == v) & (y == c)]) for c in classes] for v in seen]
    )
    prior = np.array([u[y == c].sum() + 1.0 for c in classes])
    return counts, prior / prior.sum()


def log_likelihood(counts, share, m):
    """Dirichlet-multinomial of whole counts, less what does not depend on m."""
    whole = counts.astype(int)
    return sum(dirichlet_multinomial.logpmf(row, m * share, row.sum()) for row in whole)


def plain_strength(counts, share):
    """Return the strength of the largest likelihood, the largest if it gains little."""
    grid = np.geomspace(1e-2, 1e6, 161)
    found = np.array([log_likelihood(counts, share, m) for m in grid])
    best = found.argmax()
    if found[best] - found[-1] < min(0.05 * len(counts), 2.0):
        return grid[-1]
    ends = np.log(grid[[max(best - 1, 0), best + 1]])
    inner = minimize_scalar(
        lambda t: -log_likelihood(counts, share, np.exp(t)),
        bounds=tuple(ends),
        method="bounded",
        options={"xatol": 1e-8},
    )
    return float(np.exp(inner.x))


def plain_log_ratios(counts, prior):
    """Return log P(c | v) / share for each value, and the strength."""
    share = counts.sum(axis=0) + prior
    share = share / share.sum()
    m = plain_strength(counts, share)
    posterior = (counts + m * share) / (counts.sum(axis=1) + m)[:, None]
    return np.log(posterior / share), m


def found_table(clf, j=0):
    """Return what a classifier adds for the values of an attribute, (values, K)."""
    offsets = clf.model_.schema.offsets
    return clf.model_.table[offsets[j] + 1 : offsets[j + 1]]


def telling_column(n, n_values, share, seed, n_classes=3):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    told = rng.random(n) < share
    return np.where(told, y * n_values // n_classes, rng.integers(0, n_values, n)), y


@pytest.mark.parametrize(
    ("n", "n_values", "share", "n_classes"),
    [(120, 4, 0.5, 2), (300, 12, 0.3, 3), (200, 40, 0.4, 3), (90, 6, 0.9, 4)],
)
def test_strengths_and_evidence_are_those_of_a_plain_search(
    n, n_values, share, n_classes
):
    values, y = telling_column(n, n_values, share, n_values, n_classes)
    clf = sy.NaiveBayes(**BAYES).fit(values[:, None], y)
    expected, m = plain_log_ratios(*column_table(values, y))
    assert 0.1 < m < 1e5  # the likelihood has its maximum within the range
    # The search ends within a percent of the best strength.
    assert_allclose(found_table(clf), expected, atol=1e-2)


def test_the_strength_is_as_likely_as_the_best_of_a_dense_grid():
    for seed in range(6):
        values, y = telling_column(150, 10, 0.15 * seed, seed)
        counts, prior = column_table(values, y)
        share = (counts.sum(axis=0) + prior) / (counts.sum() + 1.0)
        clf = sy.NaiveBayes(**BAYES).fit(values[:, None], y)
        # P(c | v) = (N_vc + m s_c) / (N_v + m), solved for m in the clearest cell.
        posterior = np.exp(found_table(clf)) * share
        gap = posterior - share
        cell = np.unravel_index(np.abs(gap).argmax(), gap.shape)
        m = (counts[cell] - counts.sum(axis=1)[cell[0]] * posterior[cell]) / gap[cell]
        best = log_likelihood(counts, share, plain_strength(counts, share))
        assert log_likelihood(counts, share, m) >= best - 2e-3


def test_naive_bayes_is_the_formula_by_hand():
    X = np.array([list("aabbbc"), list("xyxyxy")]).T
    y = np.array([0, 0, 1, 1, 0, 1])
    clf = sy.NaiveBayes(**BAYES).fit(X, y)
    scores = np.log(np.tile([0.5, 0.5], (6, 1)))  # (3 + 1) / (6 + 2) each
    for j in range(2):
        counts, prior = column_table(X[:, j], y)
        added, _ = plain_log_ratios(counts, prior)
        scores += added[np.unique(X[:, j], return_inverse=True)[1]]
    proba = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    assert_allclose(clf.predict_proba(X), proba, atol=2e-3)


@pytest.mark.filterwarnings("ignore::steelyard.exceptions.IdentifierWarning")
def test_an_identifier_has_the_largest_strength_and_says_next_to_nothing():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200)
    clf = sy.NaiveBayes(**BAYES).fit(np.arange(200)[:, None], y)
    share = (np.bincount(y) + 1.0) / 203.0  # rows and one row of the prior
    share = (np.bincount(y) + share) / 201.0
    own = np.log((1.0 + 1e6 * share) / (1.0 + 1e6) / share)
    rows = found_table(clf)
    assert_allclose(rows[np.arange(200), y], own[y], rtol=1e-6)
    assert np.abs(rows).max() < 1e-5


def test_names_are_believed_by_chance_in_few_tables():
    n, n_tables = 600, 40
    believed = 0
    for seed in range(n_tables):
        rng = np.random.default_rng(seed)
        X, y = rng.integers(0, round(2.2 * n), (n, 1)), rng.integers(0, 3, n)
        clf = sy.NaiveBayes(**BAYES).fit(X, y)
        believed += np.abs(clf.model_.table).max() > 1e-3
    assert believed <= 3  # the most likely strength alone is finite in half of them


def test_names_that_determine_the_class_are_believed():
    rng = np.random.default_rng(0)
    values = rng.integers(0, 300, 600)
    y = np.where(rng.random(600) < 0.7, values % 2, rng.integers(0, 2, 600))
    clf = sy.NaiveBayes(**BAYES).fit(values[:, None], y)
    assert np.abs(found_table(clf)).max() > 0.3


def test_bins_need_no_more_than_a_likelihood_that_is_not_flat():
    # The same counts as categories and as bins: 24 values, a gain between 0 and 1.2.
    for seed in range(50):
        rng = np.random.default_rng(seed)
        values, y = np.repeat(np.arange(24.0), 5), rng.integers(0, 2, 120)
        bins = sy.FixedEdgesDiscretizer(edges=np.arange(23) + 0.5)
        clf = sy.NaiveBayes(numeric=bins, smoothing="empirical-bayes")
        by_bin = found_table(clf.fit(values[:, None], y))
        by_category = found_table(sy.NaiveBayes(**BAYES).fit(values[:, None], y))
        if np.abs(by_bin).max() > 0.05 and np.abs(by_category).max() < 1e-3:
            return
    raise AssertionError("bins were held to the bound of categories")


@pytest.mark.parametrize("n_values", [2, 20, 200])
def test_a_random_column_says_next_to_nothing(n_values):
    rng = np.random.default_rng(n_values)
    X, y = rng.integers(0, n_values, (600, 1)), rng.integers(0, 2, 600)
    proba = sy.NaiveBayes(**BAYES).fit(X, y).predict_proba(X)
    laplace = sy.NaiveBayes(categorical_features="all").fit(X, y).predict_proba(X)
    spread = np.ptp(proba[:, 1])
    assert spread < 0.1
    assert spread < 0.3 * np.ptp(laplace[:, 1]) or n_values == 2


def test_a_telling_column_keeps_its_evidence():
    values, y = telling_column(2000, 4, 0.8, 1, n_classes=2)
    X = values[:, None]
    clf = sy.NaiveBayes(**BAYES).fit(X, y)
    other = sy.NaiveBayes(categorical_features="all", smoothing="laplace").fit(X, y)
    assert_allclose(clf.predict_proba(X), other.predict_proba(X), atol=0.02)


def test_missing_cells_are_neither_counted_nor_evidence():
    values, y = telling_column(200, 5, 0.6, 2)
    values = values.astype(object)
    values[::4] = None
    frame = np.array([f"v{v}" if v is not None else None for v in values], object)
    clf = sy.NaiveBayes(**BAYES).fit(frame[:, None], y)
    known = np.array([v is not None for v in values])
    counts, _ = column_table(values[known], y[known])
    prior = (np.bincount(y) + 1.0) / (len(y) + 3.0)
    assert_allclose(found_table(clf), plain_log_ratios(counts, prior)[0], atol=1e-2)
    assert_array_equal(clf.model_.table[0], 0.0)
    unknown = clf.predict_proba(np.array([[None], ["unseen"]], object))
    assert_allclose(unknown, np.tile(prior, (2, 1)), rtol=1e-12)


def test_whole_weights_are_repeated_rows_and_fractions_are_between():
    values, y = telling_column(150, 6, 0.5, 3)
    X, rng = values[:, None], np.random.default_rng(0)
    u = rng.integers(1, 4, len(y))
    weighted = sy.NaiveBayes(**BAYES).fit(X, y, sample_weight=u)
    repeated = sy.NaiveBayes(**BAYES).fit(np.repeat(X, u, axis=0), np.repeat(y, u))
    assert_allclose(weighted.model_.table, repeated.model_.table, rtol=1e-12)
    halves = sy.NaiveBayes(**BAYES).fit(X, y, sample_weight=u / 2.0)
    ones = sy.NaiveBayes(**BAYES).fit(X, y, sample_weight=u * 1.5)
    assert np.isfinite(halves.model_.table).all()
    # The same shares on fewer rows say less.
    assert np.abs(halves.model_.table).sum() < np.abs(weighted.model_.table).sum()
    assert np.abs(ones.model_.table).sum() > np.abs(weighted.model_.table).sum()


def test_classes_absent_from_a_column_keep_a_finite_ratio():
    rng = np.random.default_rng(4)
    y = rng.integers(0, 3, 120)
    column = np.array([f"v{v}" for v in (y + rng.integers(0, 2, 120)) % 3], object)
    column[y == 2] = None
    other = np.array([f"w{v}" for v in rng.integers(0, 3, 120)], object)
    clf = sy.NaiveBayes(**BAYES).fit(np.c_[column, other], y)
    counts = np.zeros((3, 3))
    for v in range(3):
        for c in range(3):
            counts[v, c] = ((column == f"v{v}") & (y == c)).sum()
    prior = (np.bincount(y) + 1.0) / (len(y) + 3.0)
    assert (counts[:, 2] == 0).all()
    assert np.isfinite(clf.model_.table).all()
    assert_allclose(found_table(clf), plain_log_ratios(counts, prior)[0], atol=1e-2)


def test_a_column_without_a_known_cell_says_nothing():
    X = np.array([[None, "a"], [None, "b"], [None, "a"], [None, "b"]], object)
    clf = sy.NaiveBayes(**BAYES).fit(X, [0, 1, 0, 1])
    assert np.isfinite(clf.model_.table).all()
    assert_array_equal(found_table(clf, 0), 0.0)


def test_counts_may_come_in_parts(random_table):
    X, y = random_table(90, gaps=0.1)
    whole = sy.NaiveBayes(smoothing="empirical-bayes").fit(X, y)
    parts = sy.NaiveBayes(smoothing="empirical-bayes")
    parts.partial_fit(X[:40], y[:40], classes=np.unique(y)).partial_fit(X[40:], y[40:])
    assert_array_equal(whole.predict_proba(X), parts.predict_proba(X))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", [entry.acronym for entry in sy.methods()])
def test_every_method_works_with_it_or_refuses_it(name, random_table):
    X, y = random_table(80)
    clf = next(e for e in sy.methods() if e.acronym == name).create()
    if "smoothing" not in clf.get_params():
        pytest.skip("has no smoothing")
    clf.set_params(smoothing="empirical-bayes")
    if name in REFUSING:
        with pytest.raises(ParameterError, match="Use 'm-estimate', 'laplace' or"):
            clf.fit(X, y)
        assert not hasattr(clf, "model_")
    else:
        assert_allclose(clf.fit(X, y).predict_proba(X).sum(axis=1), 1.0)


def test_weights_of_rows_and_columns_together_refuse_it(random_table):
    X, y = random_table(60)
    with pytest.raises(ParameterError, match="no pseudo-counts per value"):
        sy.JointWeightedNB(smoothing="empirical-bayes").fit(X, y)


def test_the_word_and_the_part_are_the_same(random_table):
    X, y = random_table(60)
    by_word = sy.NaiveBayes(smoothing="empirical-bayes").fit(X, y)
    by_part = sy.NaiveBayes(smoothing=EmpiricalBayes()).fit(X, y)
    assert_array_equal(by_word.model_.table, by_part.model_.table)
    laplace = sy.NaiveBayes(smoothing=Lidstone(1.0)).fit(X, y)
    assert_array_equal(by_word.class_log_prior_, laplace.class_log_prior_)
