"""TAN, AODE and WAODE equal plain loops over rows, by their definitions."""

import itertools
import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import steelyard as sy
from steelyard.classifiers import one_dependence
from steelyard.classifiers.one_dependence import spanning_tree
from steelyard.exceptions import ParameterError
from steelyard.persistence.content import content_of, estimator_from
from steelyard.persistence.reader import InvalidContentError

METHODS = ["TAN", "AODE", "WAODE"]
STRENGTH = 5.0


def a_table(n=240, seed=0, gaps=0.1, classes=3):
    """Return four categorical columns that depend on each other, with gaps."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    a = (y + rng.integers(0, 2, n)) % 3
    b = (a + rng.integers(0, 2, n)) % 4
    c = (b * y + rng.integers(0, 2, n)) % 3
    e = rng.integers(0, 12, n)
    codes = np.stack([a, b, c, e], axis=1) + 1
    codes[rng.random(codes.shape) < gaps] = 0
    cells = np.where(codes > 0, np.char.add("v", (codes + 9).astype(str)), None)
    frame = pd.DataFrame(cells.astype(object), columns=list("abce"))
    return frame, codes, y


class Plain:
    """Probabilities one cell at a time, from rows; code 0 is unknown."""

    def __init__(self, codes, y, u=None):
        self.codes, self.y = codes, y
        self.u = np.ones(len(y)) if u is None else u
        self.K = int(y.max()) + 1
        self.d = codes.shape[1]
        rows = [codes[self.u > 0, j] for j in range(self.d)]
        self.sizes = [len(set(column) - {0}) for column in rows]

    def weight(self, mask):
        return float(self.u[mask].sum())

    def prior(self, c):
        return (self.weight(self.y == c) + 1 / self.K) / (self.u.sum() + 1)

    def value(self, j, v, c):
        of_class = self.y == c
        known = of_class & (self.codes[:, j] > 0)
        own = of_class & (self.codes[:, j] == v)
        return (self.weight(own) + 1 / self.sizes[j]) / (self.weight(known) + 1)

    def given(self, j, v, p, a, c):
        parent = (self.y == c) & (self.codes[:, p] == a)
        both = self.weight(parent & (self.codes[:, j] == v))
        total = self.weight(parent & (self.codes[:, j] > 0))
        return (both + STRENGTH * self.value(j, v, c)) / (total + STRENGTH)

    def information(self, j, k):
        """Mutual information within the classes, in bits, from cells known in both."""
        known = (self.codes[:, j] > 0) & (self.codes[:, k] > 0)
        n, out = self.weight(known), 0.0
        for c in range(self.K):
            of_class = known & (self.y == c)
            n_c = self.weight(of_class)
            for v, w in itertools.product(
                set(self.codes[:, j]) - {0}, set(self.codes[:, k]) - {0}
            ):
                is_v, is_w = self.codes[:, j] == v, self.codes[:, k] == w
                both = self.weight(of_class & is_v & is_w)
                if both:
                    one, other = (self.weight(of_class & m) for m in (is_v, is_w))
                    out += both / n * np.log2(both * n_c / one / other)
        return out

    def with_class(self, j):
        """Mutual information of an attribute and the class, in bits."""
        known, out = self.codes[:, j] > 0, 0.0
        n = self.weight(known)
        for v, c in itertools.product(set(self.codes[:, j]) - {0}, range(self.K)):
            is_v, is_c = known & (self.codes[:, j] == v), known & (self.y == c)
            both = self.weight(is_v & is_c)
            if both:
                one, other = self.weight(is_v), self.weight(is_c)
                out += both / n * np.log2(both * n / one / other)
        return out

    def tree(self, row, parents):
        """Posterior of a row of codes in a tree."""
        joint = np.array([self.prior(c) for c in range(self.K)])
        for c, j in itertools.product(range(self.K), range(self.d)):
            v, p = row[j], parents[j]
            if v and (p < 0 or not row[p]):
                joint[c] *= self.value(j, v, c)
            elif v:
                joint[c] *= self.given(j, v, p, row[p], c)
        return joint / joint.sum()

    def average(self, row, min_rows, weights):
        """Posterior of a row of codes, averaged over parents."""
        counted = [self.weight(self.codes[:, p] == row[p]) for p in range(self.d)]
        parents = [p for p in range(self.d) if row[p] and counted[p] >= min_rows]
        joint = np.zeros(self.K)
        for c in range(self.K):
            for p in parents:
                term = weights[p] * self.prior(c) * self.value(p, row[p], c)
                for j in range(self.d):
                    if j != p and row[j]:
                        term *= self.given(j, row[j], p, row[p], c)
                joint[c] += term
            if not parents:
                joint[c] = self.prior(c)
                for j in range(self.d):
                    joint[c] *= self.value(j, row[j], c) if row[j] else 1.0
        return joint / joint.sum()


def best_total(weights):
    """Largest total weight of any spanning tree, by trying all of them."""
    d = len(weights)
    edges = list(itertools.combinations(range(d), 2))
    best = -np.inf
    for chosen in itertools.combinations(edges, d - 1):
        group = list(range(d))
        for a, b in chosen:
            old, new = group[a], group[b]
            group = [new if g == old else g for g in group]
        if len(set(group)) == 1:
            best = max(best, sum(weights[a, b] for a, b in chosen))
    return best


# ------------------------------------------------------------------------- by loops


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("gaps", [0.0, 0.15])
def test_tan_is_the_best_tree_and_its_probabilities(gaps, weighted):
    X, codes, y = a_table(gaps=gaps)
    u = np.random.default_rng(5).integers(1, 4, len(y)).astype(float)
    u = u if weighted else None
    clf = sy.TreeAugmentedNB().fit(X, y, u)
    plain = Plain(codes, y, u)
    information = np.zeros((4, 4))
    for j, k in itertools.combinations(range(4), 2):
        information[j, k] = information[k, j] = plain.information(j, k)
    linked = [(j, p) for j, p in enumerate(clf.parents_) if p >= 0]
    total = sum(information[j, p] for j, p in linked)
    assert_allclose(total, best_total(information))
    assert clf.parents_[0] == -1
    expected = [plain.tree(row, clf.parents_) for row in codes[:60]]
    assert_allclose(clf.predict_proba(X[:60]), expected, rtol=1e-10)


@pytest.mark.parametrize("method", ["AODE", "WAODE"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("min_rows", [0, 30, 75, 1000])
def test_aode_is_the_average_over_parents(method, weighted, min_rows):
    X, codes, y = a_table(gaps=0.15)
    u = np.random.default_rng(5).integers(1, 4, len(y)).astype(float)
    u = u if weighted else None
    clf = sy.method(method, min_rows=min_rows).fit(X, y, u)
    plain = Plain(codes, y, u)
    weights = np.ones(4)
    if method == "WAODE":
        weights = np.array([plain.with_class(j) for j in range(4)])
    assert_allclose(clf.parent_weights_, weights, rtol=1e-10)
    expected = [plain.average(row, min_rows, weights) for row in codes[:60]]
    assert_allclose(clf.predict_proba(X[:60]), expected, rtol=1e-10)
    assert_allclose(np.exp(clf.predict_log_proba(X[:60])), expected, rtol=1e-10)


def test_without_a_parent_aode_is_naive_bayes():
    X, _, y = a_table()
    clf = sy.OneDependenceNB(min_rows=1e9).fit(X, y)
    plain = sy.NaiveBayes().fit(X, y)
    assert_allclose(clf.predict_proba(X), plain.predict_proba(X), rtol=1e-12)
    assert_allclose(
        clf.predict_joint_log_proba(X), plain.predict_joint_log_proba(X), rtol=1e-12
    )


@pytest.mark.parametrize("method", METHODS)
def test_one_column_has_nothing_to_depend_on(method):
    X, _, y = a_table()
    one = X[["b"]]
    expected = sy.NaiveBayes().fit(one, y).predict_proba(one)
    clf = sy.method(method).fit(one, y)
    assert_allclose(clf.predict_proba(one), expected, rtol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_a_row_of_unknown_cells_has_the_prior(method):
    X, _, y = a_table()
    clf = sy.method(method).fit(X, y)
    row = pd.DataFrame([[None, "never", None, None]], columns=X.columns, dtype=object)
    assert_allclose(clf.predict_proba(row)[0], np.exp(clf.class_log_prior_))


def test_tan_learns_what_naive_bayes_cannot():
    X = np.tile([[0, 0], [0, 1], [1, 0], [1, 1]], (100, 1))
    y = X[:, 0] ^ X[:, 1]
    tan = sy.TreeAugmentedNB(categorical_features="all").fit(X, y)
    nb = sy.NaiveBayes(categorical_features="all").fit(X, y)
    assert tan.score(X, y) == 1.0
    assert nb.score(X, y) == 0.5


# -------------------------------------------------------------------------- the tree


def test_the_tree_has_the_largest_total():
    rng = np.random.default_rng(0)
    for d in (2, 3, 5):
        weights = rng.random((d, d))
        weights = np.triu(weights, 1) + np.triu(weights, 1).T
        parents = spanning_tree(weights)
        total = sum(weights[j, p] for j, p in enumerate(parents) if p >= 0)
        assert (parents == -1).sum() == 1
        assert_allclose(total, best_total(weights))


def test_columns_without_information_have_no_parent():
    X, _, y = a_table(gaps=0.0)
    clf = sy.TreeAugmentedNB().fit(X.assign(same="x"), y)
    assert clf.parents_[4] == -1
    assert clf.parents_[0] == -1


# -------------------------------------------------------------------------- contract


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("numeric", ["gaussian", "linear"])
def test_numbers_as_they_are_are_refused(method, numeric):
    rng = np.random.default_rng(0)
    with pytest.raises(ParameterError, match=r"discretizer|numeric='linear'"):
        sy.method(method, numeric=numeric).fit(
            rng.normal(size=(40, 2)), rng.integers(0, 2, 40)
        )


@pytest.mark.parametrize("method", METHODS)
def test_tables_that_are_too_large_are_refused(method, monkeypatch):
    X, _, y = a_table()
    monkeypatch.setattr(one_dependence, "_MAX_NUMBERS", 100)
    with pytest.raises(ParameterError, match=r"more than 100.*e has 12"):
        sy.method(method).fit(X, y)


@pytest.mark.parametrize("method", METHODS)
def test_threads_and_order_of_classes_change_nothing(method):
    X, _, y = a_table(n=1500)
    one = sy.method(method, n_jobs=1).fit(X, y)
    two = sy.method(method, n_jobs=2).fit(X, y)
    assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    assert_array_equal(one.predict(X), one.classes_[one.predict_proba(X).argmax(1)])


@pytest.mark.parametrize("method", METHODS)
def test_a_weight_of_two_is_the_row_twice(method):
    X, _, y = a_table()
    u = np.random.default_rng(3).integers(0, 3, len(y))
    twice = sy.method(method).fit(X.loc[np.repeat(X.index, u)], np.repeat(y, u))
    weighted = sy.method(method).fit(X, y, u.astype(float))
    assert_allclose(weighted.predict_proba(X), twice.predict_proba(X), rtol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_files_give_the_same_model(method, tmp_path):
    X, _, y = a_table()
    clf = sy.method(method).fit(X, y)
    clf.save(tmp_path / "model.json")
    back = sy.load(tmp_path / "model.json")
    assert_array_equal(back.predict_proba(X), clf.predict_proba(X))
    name = "parents_" if method == "TAN" else "parent_weights_"
    assert_array_equal(getattr(back, name), getattr(clf, name))


def test_tan_is_explained_as_naive_bayes_and_what_parents_change():
    X, _, y = a_table()
    clf = sy.TreeAugmentedNB().fit(X, y)
    why = clf.explain_local(X[:30])
    plain = sy.NaiveBayes().fit(X, y).explain_local(X[:30])
    assert_allclose(why.contributions[:, :4], plain.contributions)
    assert_allclose(why.scores, clf.predict_joint_log_proba(X[:30]))
    # Where a side is missing nothing is added; the average row adds the mean.
    added = why.contributions[:, 4:] + clf.model_.centre[4:]
    assert_allclose(added[why.missing[:, 4:]], 0.0, atol=1e-12)


@pytest.mark.parametrize("method", ["AODE", "WAODE"])
def test_every_part_of_aode_is_a_sum_for_one_row(method):
    X, _, y = a_table()
    clf = sy.method(method).fit(X, y)
    why = clf.explain_local(X[:30])
    assert why.kind == "average"
    assert why.contributions is None
    assert_allclose(sum(part.share for part in why.parts), 1.0)
    for part in why.parts:
        own = part.explanation
        assert_allclose(own.scores, own.model.scores(own.cells.encoded()), atol=1e-12)


# ----------------------------------------------------------------------------- files


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda model: model["shares"].__setitem__(0, 1.0), "0 for unknown values"),
        (lambda model: model["shares"].__setitem__(1, -1.0), "from 0 to"),
        (lambda model: model["shares"].pop(), "must have shape"),
        (lambda model: model["conditional"].update(counts=[0.5]), "must have shape"),
        (lambda model: model["conditional"].update(strength=0.0), "numbers from"),
        (lambda model: model["conditional"]["log_prob"][1].__setitem__(0, 1.0), "to 0"),
    ],
)
def test_a_file_with_tables_that_cannot_be_is_refused(change, complaint):
    X, _, y = a_table()
    content = json.loads(json.dumps(content_of(sy.OneDependenceNB().fit(X, y))))
    change(content["model"])
    with pytest.raises(InvalidContentError, match=complaint):
        estimator_from(content)


def test_a_file_with_other_parents_than_its_interactions_is_refused():
    X, _, y = a_table()
    content = json.loads(json.dumps(content_of(sy.TreeAugmentedNB().fit(X, y))))
    content["fitted"]["parents_"][3] = -1
    with pytest.raises(InvalidContentError, match="parents in the interactions"):
        estimator_from(content)
