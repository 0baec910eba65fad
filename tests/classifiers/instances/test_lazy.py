"""Lazy models equal plain loops over the training rows of every query."""

import copy
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris

import steelyard
from steelyard import LazyAttributeInstanceNB, LocallyWeightedNB, NaiveBayes
from steelyard._common.allowed import KERNELS
from steelyard.exceptions import ParameterError
from steelyard.table.frames import as_table

WEIGHT = {
    "linear": lambda s: 1.0001 - s,
    "epanechnikov": lambda s: 0.75 * (1.0001 - s * s),
    "tricube": lambda s: (1.0001 - s**3) ** 3,
    "inverse": lambda s: 1.0 / (1.0 + s),
    "gauss": lambda s: math.exp(-s * s),
    "constant": lambda s: 1.0,
}
COLUMNS = 3


def is_gap(value):
    return value is None or value != value


def gap_of_numbers(x, t):
    if is_gap(x) and is_gap(t):
        return 1.0
    if is_gap(x):
        return max(t, 1.0 - t)
    if is_gap(t):
        return max(x, 1.0 - x)
    return abs(x - t)


class Reference:
    """Locally weighted naive Bayes, one query after another, by the definition."""

    def __init__(self, C, N, y, u, k, kernel, prior="smoothed"):
        self.C, self.N, self.y, self.u = C, N, y, u
        self.k, self.kernel, self.prior = k or len(y), kernel, prior
        self.classes = sorted(set(y.tolist()))
        self.sizes = [len({v for v in C[:, j] if v}) for j in range(C.shape[1])]
        known = [[t for t in column if not is_gap(t)] for column in N.T]
        self.low = [min(column, default=0.0) for column in known]
        self.span = [max(c, default=0.0) - min(c, default=0.0) for c in known]
        self.floor = [self.least(j, column) for j, column in enumerate(known)]

    def least(self, j, column):
        """Smallest variance of an attribute: a share of that of all its rows."""
        own = np.array(
            [u for u, x in zip(self.u, self.N[:, j], strict=True) if not is_gap(x)]
        )
        if own.sum() == 0:
            return 1.0
        mean = (own * column).sum() / own.sum()
        variance = (own * (column - mean) ** 2).sum() / own.sum()
        eps = np.finfo(float).eps
        if variance <= (eps * mean) ** 2:
            return mean**2 or 1.0
        return max(1e-9 * variance, (eps * mean) ** 2)

    def scaled(self, x, j):
        if is_gap(x):
            return x
        return (x - self.low[j]) / self.span[j] if self.span[j] > 0 else 0.0

    def weights(self, c, x):
        """Rows that are kept and their weights."""
        squares = []
        for i in range(len(self.y)):
            seen = [set(self.C[:, j]) - {None} for j in range(len(c))]
            d = float(
                sum(
                    not (a is not None and a in s and a == b)
                    for a, b, s in zip(c, self.C[i], seen, strict=True)
                )
            )
            for j, value in enumerate(x):
                gap = gap_of_numbers(
                    self.scaled(value, j), self.scaled(self.N[i, j], j)
                )
                d += gap * gap
            squares.append(d)
        radius = sorted(squares)[min(self.k, len(squares)) - 1]
        kept = [i for i, d in enumerate(squares) if d <= radius]
        a = [
            WEIGHT[self.kernel](math.sqrt(squares[i] / radius)) if radius > 0 else 1.0
            for i in kept
        ]
        own = [self.u[i] for i in kept]
        scale = sum(own) / sum(p * q for p, q in zip(a, own, strict=True))
        return kept, [p * q * scale for p, q in zip(a, own, strict=True)]

    def scores(self, c, x):
        kept, u = self.weights(c, x)
        q, out = len(self.classes), []
        for k in self.classes:
            mine = [(i, w) for i, w in zip(kept, u, strict=True) if self.y[i] == k]
            own = sum(w for _, w in mine)
            if self.prior == "smoothed":
                z = math.log((own + 1.0) / (sum(u) + q))
            else:
                z = math.log(own / sum(u)) if own > 0 else -math.inf
            for j, value in enumerate(c):
                if value is None or value not in set(self.C[:, j]):
                    continue
                known = sum(w for i, w in mine if self.C[i, j] is not None)
                hit = sum(w for i, w in mine if self.C[i, j] == value)
                z += math.log((hit + 1.0) / (known + self.sizes[j]))
            out.append(z)
        for j, value in enumerate(x):
            if not is_gap(value):
                out = self.with_densities(out, value, j, kept, u)
        return out

    def with_densities(self, scores, value, j, kept, u):
        """Add densities; a class without a row has 1e-75, or less if others have."""
        present = {self.y[i] for i in kept}
        if all(is_gap(self.N[i, j]) for i in kept):
            return scores
        added = {}
        for k in present:
            mine = [(i, w) for i, w in zip(kept, u, strict=True) if self.y[i] == k]
            added[k] = self.density(value, j, mine, kept, u)
        least = min(math.log(1e-75), *added.values())
        return [
            z + added.get(k, least) for k, z in zip(self.classes, scores, strict=True)
        ]

    def density(self, value, j, mine, kept, u):
        rows = [(self.N[i, j], w) for i, w in mine if not is_gap(self.N[i, j])]
        if not rows:
            both = zip(kept, u, strict=True)
            rows = [(self.N[i, j], w) for i, w in both if not is_gap(self.N[i, j])]
        total = sum(w for _, w in rows)
        mean = sum(t * w for t, w in rows) / total
        variance = sum(w * (t - mean) ** 2 for t, w in rows) / total
        variance = max(variance, self.floor[j])
        step = (value - mean) ** 2 / variance
        return -0.5 * (math.log(2.0 * math.pi * variance) + step)


@st.composite
def tables(draw, numbers=True):
    """Training rows and queries with gaps; numbers on a coarse grid: many tie."""
    n = draw(st.integers(3, 14))
    m = draw(st.integers(1, 3))
    cell = st.sampled_from([None, "a", "b", "c"])
    number = st.sampled_from([math.nan, 0.0, 0.25, 1.0, 2.0, 4.0])
    g = 2 if numbers else 0
    C = np.array(
        draw(
            st.lists(
                st.lists(cell, min_size=COLUMNS, max_size=COLUMNS),
                min_size=n + m,
                max_size=n + m,
            )
        ),
        object,
    )
    N = np.array(
        draw(
            st.lists(
                st.lists(number, min_size=g, max_size=g), min_size=n + m, max_size=n + m
            )
        ),
        float,
    )
    N = N.reshape(n + m, g)
    y = np.array(draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    y[:2] = [0, 1]
    u = draw(
        st.none() | st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=n, max_size=n)
    )
    return C[:n], N[:n], y, u, C[n:], N[n:]


def joined(C, N):
    return np.concatenate([C, N.astype(object)], axis=1)


def check_local(table, k, kernel, prior="smoothed"):
    C, N, y, u, queries, numbers = table
    clf = LocallyWeightedNB(
        n_neighbors=k,
        kernel=kernel,
        categorical_features=[0, 1, 2],
        numeric="gaussian",
        prior=prior,
    ).fit(joined(C, N), y, u)
    reference = Reference(C, N, y, u or [1.0] * len(y), k, kernel, prior)
    expected = np.array(
        [reference.scores(c, x) for c, x in zip(queries, numbers, strict=True)]
    )
    found = clf.predict_joint_log_proba(joined(queries, numbers))
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)
    proba = np.exp(expected - expected.max(axis=1, keepdims=True))
    proba /= proba.sum(axis=1, keepdims=True)
    # A difference of scores is as exact as the scores are: to their own last digits.
    finite = np.abs(expected[np.isfinite(expected)])
    lost = 8.0 * np.spacing(finite.max(initial=1.0))
    np.testing.assert_allclose(
        clf.predict_proba(joined(queries, numbers)), proba, rtol=1e-6, atol=1e-9 + lost
    )


@settings(max_examples=60, deadline=None)
@given(tables(), st.sampled_from([1, 2, 5, 9, 50, None]), st.sampled_from(KERNELS))
def test_neighbours_of_mixed_rows_equal_plain_loops(table, k, kernel):
    check_local(table, k, kernel)


@settings(max_examples=60, deadline=None)
@given(
    tables(numbers=False),
    st.sampled_from([1, 2, 5, None]),
    st.sampled_from(KERNELS),
    st.sampled_from(["smoothed", "frequency"]),
)
def test_neighbours_of_categories_equal_plain_loops(table, k, kernel, prior):
    check_local(table, k, kernel, prior)


@pytest.mark.plain
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_on_a_fixed_table(kernel, random_table):
    X, y = random_table(25, gaps=0.1, sizes=(2, 3, 3))
    N = np.random.default_rng(1).normal(size=(25, 2)).round(1)
    N[3, 0] = N[24, 1] = np.nan
    for k in (1, 6, None):
        check_local((X[:22], N[:22], y[:22], None, X[22:], N[22:]), k, kernel)


@pytest.mark.plain
def test_rows_tied_with_the_last_neighbour_are_kept():
    X = np.array([["a", "x"], ["a", "y"], ["a", "z"], ["b", "w"]], object)
    y = np.array([0, 1, 1, 0])
    queries = np.array([["a", "v"]], object)
    two = LocallyWeightedNB(n_neighbors=1, kernel="constant").fit(X, y)
    three = LocallyWeightedNB(n_neighbors=3, kernel="constant").fit(X, y)
    expected = three.predict_joint_log_proba(queries)
    assert two.predict_joint_log_proba(queries).tobytes() == expected.tobytes()
    # Three of the rows are kept, with two of class 1.
    assert np.exp(expected[0]) == pytest.approx(
        [2 / 5 * 2 / 3, 3 / 5 * 3 / 4], rel=1e-12
    )


@pytest.mark.plain
def test_rows_at_distance_zero_count_alike():
    X = np.array([["a"], ["a"], ["a"], ["b"]], object)
    y = np.array([0, 0, 1, 1])
    for kernel in KERNELS:
        clf = LocallyWeightedNB(n_neighbors=2, kernel=kernel).fit(X, y)
        joint = np.exp(clf.predict_joint_log_proba(np.array([["a"]], object)))[0]
        assert joint == pytest.approx([3 / 5 * 3 / 4, 2 / 5 * 2 / 3], rel=1e-12)


def test_all_neighbours_alike_are_naive_bayes(random_table):
    X, y = random_table(80, gaps=0.1)
    local = LocallyWeightedNB(n_neighbors=None, kernel="constant").fit(X, y)
    plain = NaiveBayes(smoothing="laplace").fit(X, y)
    np.testing.assert_allclose(
        local.predict_joint_log_proba(X), plain.predict_joint_log_proba(X), rtol=1e-12
    )


def test_a_constant_number_does_not_separate_rows():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=40), np.full(40, 7.0)])
    y = (X[:, 0] > 0).astype(int)
    queries = X[:5].copy()
    clf = LocallyWeightedNB(n_neighbors=30, numeric="gaussian").fit(X, y)
    near = clf.model_._scale
    assert near[1][1] == np.inf
    queries[:, 1] = 1e6
    far = clf.predict_joint_log_proba(queries)
    queries[:, 1] = 7.0
    same = clf.predict_joint_log_proba(queries)
    # Same neighbours and kernel weights: the density of the constant differs alone.
    shift = far - same
    np.testing.assert_allclose(shift, shift[:, :1] * np.ones((1, 2)), rtol=1e-9)


@pytest.mark.parametrize("far", [1e154, 1e155, -1e200, 1.7e308])
def test_a_number_far_away_has_probabilities(far):
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = (X[:, 0] > 0).astype(int)
    clf = LocallyWeightedNB(numeric="gaussian").fit(X, y)
    queries = [[far, 0.0], [0.0, far], [far, far], [far, np.nan]]
    proba = clf.predict_proba(queries)
    assert np.isfinite(proba).all()
    assert clf.predict(queries).tolist() == proba.argmax(axis=1).tolist()
    local = clf.explain_local(queries)
    np.testing.assert_allclose(local.probabilities, proba, atol=1e-12)


@pytest.mark.parametrize("shift", [0.0, 30.0, 1e6])
def test_a_class_without_a_neighbour_never_wins(shift):
    X, y = load_iris(return_X_y=True)
    clf = LocallyWeightedNB(numeric="gaussian").fit(X, y)
    queries = X + np.array([shift, 0.0, 0.0, 0.0])
    joint = clf.predict_joint_log_proba(queries)
    codes = clf.encoder_.encode(as_table(queries))
    neighbours = np.stack(
        [
            np.bincount(y, clf.model_.row_weights(codes.take(np.array([i])))[1] > 0)
            for i in range(len(X))
        ]
    )
    absent = neighbours == 0
    assert absent.any()
    lowest = np.where(absent, np.inf, joint).min(axis=1, keepdims=True)
    assert (joint < lowest)[absent].all()
    # Weka's LWL gives the odd Setosa flower probability 1.000.
    if not shift:
        assert absent[41, 2]
        assert clf.predict_proba(X[41:42])[0, 0] > 0.999
    local = clf.explain_local(queries[30:60])
    np.testing.assert_allclose(local.probabilities, clf.predict_proba(queries[30:60]))


@pytest.mark.plain
def test_given_priors_hold_for_every_query_and_may_be_zero(random_table):
    X, y = random_table(30, n_classes=3)
    for clf in (LocallyWeightedNB(n_neighbors=4), LazyAttributeInstanceNB()):
        clf.set_params(prior=[0.75, 0.25, 0.0]).fit(X, y)
        proba = clf.predict_proba(X)
        assert (proba[:, 2] == 0.0).all()
        nothing = np.full((1, X.shape[1]), None, object)
        np.testing.assert_allclose(clf.predict_proba(nothing), [[0.75, 0.25, 0.0]])


@pytest.mark.plain
@pytest.mark.parametrize("smooth", [1.0, 0.1, 1e-12])
@pytest.mark.parametrize("weighted", [False, True])
def test_matching_rows_equal_plain_loops(smooth, weighted, random_table, plain_nb):
    X, y = random_table(30, gaps=0.15, seed=3)
    queries, X, y = X[24:], X[:24], y[:24]
    u = np.random.default_rng(0).uniform(0.5, 2.0, len(y)) if weighted else None
    own = np.ones(len(y)) if u is None else u
    for cfw in (False, True):
        clf = LazyAttributeInstanceNB(attribute_weights=cfw, smoothing=smooth)
        clf.fit(X, y, u)
        found = clf.predict_joint_log_proba(queries)
        for query, scores in zip(queries, found, strict=True):
            same = [
                sum(a is not None and a == b for a, b in zip(query, row, strict=True))
                for row in X
            ]
            w = clf.attribute_weights_
            model = plain_nb(X, y, own * (1.0 + np.array(same)), w, smooth)
            expected = model.scores(query[None])[0]
            np.testing.assert_allclose(scores, expected, rtol=1e-10)


@settings(max_examples=40, deadline=None)
@given(table=tables(numbers=False))
def test_matching_rows_equal_plain_loops_on_random_tables(table, plain_nb):
    C, _, y, u, queries, _ = table
    clf = LazyAttributeInstanceNB(categorical_features=[0, 1, 2]).fit(C, y, u)
    for query in queries:
        same = [
            sum(a is not None and a == b for a, b in zip(query, row, strict=True))
            for row in C
        ]
        mass = (1.0 + np.array(same)) * (1.0 if u is None else np.array(u))
        model = plain_nb(C, y, mass, clf.attribute_weights_)
        found = clf.predict_joint_log_proba(query[None])
        np.testing.assert_allclose(found, model.scores(query[None]), rtol=1e-10)


# ------------------------------------------------------------------ blocks and memory


@pytest.mark.parametrize(
    "clf",
    [
        LocallyWeightedNB(n_neighbors=20),
        LocallyWeightedNB(n_neighbors=20, numeric="gaussian", kernel="gauss"),
        LazyAttributeInstanceNB(),
    ],
    ids=["categories", "gaussian", "matches"],
)
def test_blocks_and_threads_do_not_change_results(clf, random_table):
    X, y = random_table(300, gaps=0.1)
    if clf.get_params()["numeric"] == "gaussian":
        X = np.random.default_rng(0).normal(y[:, None], 1.0, (300, 3))
    one = clf.set_params(n_jobs=1).fit(X, y)
    expected = one.predict_joint_log_proba(X)
    assert expected.tobytes() == one.predict_joint_log_proba(X).tobytes()
    rows = [one.predict_joint_log_proba(X[i : i + 1]) for i in range(70)]
    assert np.concatenate(rows).tobytes() == expected[:70].tobytes()
    two = clf.set_params(n_jobs=2)
    assert two.predict_joint_log_proba(X).tobytes() == expected.tobytes()
    assert two.predict_log_proba(X).tobytes() == one.predict_log_proba(X).tobytes()


@pytest.mark.parametrize("cls", [LocallyWeightedNB, LazyAttributeInstanceNB])
def test_memory_is_far_below_one_number_for_each_pair_of_rows(cls, random_table):
    n = 3000
    X, y = random_table(n, sizes=(3,) * 4)
    X = X[:, :4].astype(str)
    clf = cls(n_jobs=2).fit(X, y)
    clf.predict(X[:5])
    tracemalloc.start()
    clf.predict_proba(X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.05 * n * n * 8


@pytest.mark.plain
def test_a_model_does_not_change_with_the_users_arrays():
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.normal(size=(30, 2)))
    y, u = np.arange(30) % 2, rng.uniform(0.5, 2.0, 30)
    queries = X[:5].copy()
    clf = LocallyWeightedNB(n_neighbors=8, numeric="gaussian").fit(X, y, u)
    before = clf.predict_proba(queries)
    X[:] = 0.0
    u[:] = 7.0
    assert clf.predict_proba(queries).tobytes() == before.tobytes()


@pytest.mark.plain
def test_probabilities_that_underflow_have_logarithms():
    X = np.random.default_rng(0).normal(0.0, 1e-3, (30, 4))
    y = np.arange(30) % 2
    X[y == 1] += 1.0
    clf = LocallyWeightedNB(n_neighbors=None, numeric="gaussian").fit(X, y)
    assert clf.predict_proba(X).min() == 0.0
    logs = clf.predict_log_proba(X)
    assert np.isfinite(logs).all() and logs.min() < -1000


@pytest.mark.plain
@pytest.mark.parametrize(
    "clf, message",
    [
        (LocallyWeightedNB(kernel="box"), "'linear', 'epanechnikov', .* Got 'box'"),
        (LocallyWeightedNB(n_neighbors=0), "whole number of at least 1. Got 0"),
        (LocallyWeightedNB(n_neighbors=2.5), "whole number of at least 1. Got 2.5"),
        (LocallyWeightedNB(n_neighbors="all"), "None or a whole number"),
        (LocallyWeightedNB(n_neighbors=True), "whole number of at least 1. Got True"),
        (LocallyWeightedNB(numeric="gaussian-weka"), "Use 'gaussian' or a discretizer"),
        (LocallyWeightedNB(prior="uniform"), "'smoothed', 'frequency'"),
        (LocallyWeightedNB(smoothing=0.0), "'smoothing' must be above 0"),
        (LocallyWeightedNB(variance_floor=-1), "'variance_floor'"),
        (LazyAttributeInstanceNB(attribute_weights="cfw"), "True or False. Got 'cfw'"),
        (LazyAttributeInstanceNB(numeric="gaussian"), "Set `numeric` to a discretizer"),
        (LazyAttributeInstanceNB(prior=[1.0]), "1 entries for 2 classes"),
    ],
    ids=repr,
)
def test_wrong_settings_are_refused_and_an_earlier_model_stays(clf, message):
    X = np.array([[0.5, 1.0], [1.5, 2.0], [0.5, 3.0], [2.5, 1.0]] * 2)
    y = [0, 1] * 4
    with pytest.raises(ParameterError, match=message):
        clf.fit(X, y)
    fitted = type(clf)().fit(X, y)
    before = dict(vars(fitted))
    fitted.set_params(**clf.get_params())
    with pytest.raises(ParameterError, match=message):
        fitted.fit(X[:, :1], y)
    after = vars(fitted)
    assert all(after[name] is before[name] for name in before if name.endswith("_"))


def test_more_columns_than_matches_can_count_are_refused(monkeypatch):
    monkeypatch.setattr("steelyard.classifiers.lazy._MAX_COLUMNS", 3)
    X = np.array([list("abcd"), list("bcda")] * 2)
    for cls in (LocallyWeightedNB, LazyAttributeInstanceNB):
        with pytest.raises(ParameterError, match="at most 3 columns"):
            cls().fit(X, [0, 1] * 2)


def test_counts_of_pairs_give_the_scores_that_scanning_rows_gives(monkeypatch):
    rng = np.random.default_rng(5)
    X = rng.integers(0, 4, (120, 5)).astype(object)
    X[rng.random(X.shape) < 0.2] = None
    y = rng.integers(0, 3, 120)
    clf = steelyard.method("AIWNB-L").fit(X, y, sample_weight=rng.random(120))
    by_pairs = clf.predict_log_proba(X)
    assert clf.model_._pairs is not None
    monkeypatch.setattr("steelyard.model.lazy._MAX_PAIR_COUNTS", 0)
    again = copy.deepcopy(clf)
    again.model_.__dict__.pop("_pairs")
    by_rows = again.predict_log_proba(X)
    assert again.model_._pairs is None
    np.testing.assert_allclose(by_pairs, by_rows, rtol=1e-12)
