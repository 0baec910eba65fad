"""CWNB and its variants equal plain loops with a solver of their own."""

import numpy as np
import pytest
from scipy.optimize import minimize

from steelyard import CollaborativeNB, InstanceWeightedNB
from steelyard.exceptions import ParameterError


def softmax(z):
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


class Loops:
    """Appendix A, line by line."""

    def __init__(self, PlainNB, X, y, own):
        self.PlainNB, self.X, self.y, self.own = PlainNB, X, y, own
        self.rows = np.arange(len(y))

    def tables(self, u):
        model = self.PlainNB(self.X, self.y, self.own * u)
        return np.array(model.prior), model.entries(self.X)

    def posterior(self, tables, w):
        return softmax(tables[0] + tables[1] @ w)

    def argmin(self, tables):
        def f(w):
            p = self.posterior(tables, w)
            true = tables[1][self.rows, self.y]
            value = -(self.own * np.log(p[self.rows, self.y])).sum()
            slope = np.einsum("ic,icj->ij", p, tables[1]) - true
            return value, self.own @ slope

        d = tables[1].shape[2]
        options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000, "maxls": 50}
        return minimize(f, np.ones(d), jac=True, bounds=[(0, 1)] * d, options=options).x

    def gain(self, tables, w):
        return 1 - self.posterior(tables, w)[self.rows, self.y]

    def accuracy(self, tables, w):
        z = tables[0] + tables[1] @ w
        order = np.argsort(-tables[0], kind="stable")
        chosen = order[np.argmax(z[:, order], axis=1)]
        return np.average(chosen == self.y, weights=self.own)

    def plain(self, rounds=15):
        u, ones = np.ones(len(self.y)), np.ones(self.X.shape[1])
        for _ in range(rounds):
            u = u + self.gain(self.tables(u), ones)
        return u, self.argmin(self.tables(u))

    def reversed(self, rounds=15):
        u = np.ones(len(self.y))
        w = self.argmin(self.tables(u))
        for _ in range(rounds):
            u = u + self.gain(self.tables(u), w)
        return u, w

    def in_turn(self, first, keep):
        u, w = np.ones(len(self.y)), np.ones(self.X.shape[1])
        best, kept, history = -1.0, None, []
        while True:
            tables = self.tables(u)
            if first:
                w = self.argmin(tables)
            u = u + self.gain(tables, w)
            tables = self.tables(u)
            if not first:
                w = self.argmin(tables)
            now = self.accuracy(tables, w)
            history.append(now)
            if now > best or keep == "last":
                kept = u, w
            if now <= best:
                return *kept, history
            best = now


@pytest.fixture(params=[False, True], ids=["plain", "weighted"])
def case(request, random_table, plain_nb):
    X, y = random_table(45, 3, gaps=0.05, seed=8, sizes=(3, 4, 2, 3))
    own = np.ones(len(y))
    if request.param:
        own = np.random.default_rng(5).uniform(0.5, 2.0, len(y))
    return X, y, own, Loops(plain_nb, X, y, own)


@pytest.mark.parametrize("variant", ["plain", "reversed"])
def test_rounds_and_weights_equal_plain_loops(variant, case):
    X, y, own, loops = case
    clf = CollaborativeNB(variant=variant, rounds=6, tol=1e-12).fit(X, y, own)
    u, w = getattr(loops, variant)(6)
    np.testing.assert_allclose(clf.attribute_weights_, w, atol=2e-5)
    np.testing.assert_allclose(clf.instance_weights_, u, rtol=1e-5)
    tables = loops.tables(u)
    np.testing.assert_allclose(
        clf.predict_proba(X), loops.posterior(tables, w), atol=1e-5
    )
    loss = -(own * np.log(loops.posterior(tables, w)[loops.rows, y])).sum()
    assert clf.objective_ == pytest.approx(loss, rel=1e-6)
    assert clf.n_rounds_ == 6
    rounds = [r["round"] for r in clf.diagnostics_ if "round" in r]
    assert rounds == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("keep", ["best", "last"])
@pytest.mark.parametrize("variant", ["interactive", "reversed-interactive"])
def test_alternating_rounds_equal_plain_loops(variant, keep, case):
    X, y, own, loops = case
    clf = CollaborativeNB(variant=variant, keep=keep, tol=1e-12).fit(X, y, own)
    u, w, history = loops.in_turn(variant == "reversed-interactive", keep)
    assert clf.n_rounds_ == len(history)
    assert [r["accuracy"] for r in clf.diagnostics_] == pytest.approx(history)
    assert [r["round"] for r in clf.diagnostics_] == [*range(1, len(history) + 1)]
    np.testing.assert_allclose(clf.attribute_weights_, w, atol=5e-5)
    np.testing.assert_allclose(clf.instance_weights_, u, rtol=5e-5)
    tables = loops.tables(u)
    np.testing.assert_allclose(
        clf.predict_proba(X), loops.posterior(tables, w), atol=5e-5
    )
    accuracy = np.average(clf.predict(X) == y, weights=own)
    assert accuracy == pytest.approx(max(history) if keep == "best" else history[-1])


def test_the_largest_number_of_rounds_is_kept(random_table):
    X, y = random_table(45, 3, seed=8)
    for variant in ("interactive", "reversed-interactive"):
        clf = CollaborativeNB(variant=variant, max_rounds=1).fit(X, y)
        assert clf.n_rounds_ == 1
        assert len(clf.diagnostics_) == 1


def test_no_rounds_leave_rows_alone(random_table):
    X, y = random_table(45, 3)
    for variant in ("plain", "reversed"):
        clf = CollaborativeNB(variant=variant, rounds=0).fit(X, y)
        assert clf.instance_weights_.tolist() == [1.0] * 45
        assert clf.n_rounds_ == 0


def test_gaussian_attributes_take_part_in_every_variant():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = rng.normal(y[:, None] * 0.7, 1.0, (60, 3))
    dwnb = InstanceWeightedNB(numeric="gaussian").fit(X, y)
    plain = CollaborativeNB(numeric="gaussian", solver="fixed").fit(X, y)
    np.testing.assert_allclose(plain.predict_proba(X), dwnb.predict_proba(X))
    # With weights that stay one, the reversed order is the same rounds.
    other = plain.set_params(variant="reversed").fit(X, y)
    np.testing.assert_allclose(other.instance_weights_, dwnb.instance_weights_)
    np.testing.assert_allclose(other.predict_proba(X), dwnb.predict_proba(X))


@pytest.mark.plain
@pytest.mark.parametrize(
    "settings, message",
    [
        ({"variant": "reverse"}, "'plain', 'reversed', 'interactive'"),
        ({"keep": "first"}, "'best', 'last'. Got 'first'"),
        ({"rounds": -1}, "'rounds' .* at least 0. Got -1"),
        ({"rounds": 2.0}, "'rounds' .* whole number"),
        ({"max_rounds": 0}, "'max_rounds' .* at least 1. Got 0"),
        ({"instances": "discriminative"}, "already has an instance weighting"),
        ({"multiclass": "one-vs-one"}, "Use multiclass='native'"),
        ({"weighting": "mixture"}, "Use loss='brier'"),
    ],
    ids=repr,
)
def test_wrong_settings_are_refused_and_an_earlier_model_stays(
    settings, message, random_table
):
    X, y = random_table(30, 3)
    clf = CollaborativeNB(rounds=2).fit(X, y)
    before = dict(vars(clf))
    with pytest.raises(ParameterError, match=message):
        clf.set_params(**settings).fit(X[:, :2], y)
    assert all(vars(clf)[k] is before[k] for k in before if k.endswith("_"))
