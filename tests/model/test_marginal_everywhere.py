"""Rows with missing cells have the same answer on every route, never a stale one."""

import copy
import pickle
import runpy
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import log_loss

import steelyard as sy
from steelyard.classifiers.fitted import answering_model
from steelyard.displays import NomogramDisplay
from steelyard.exceptions import ParameterError
from steelyard.persistence.files import load_fitted

pytestmark = pytest.mark.plain

PAIRS = [["a", "sky"]]


def made(n=240, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    shared = rng.normal(size=n) + y
    X = pd.DataFrame(
        {
            "a": shared + 0.5 * rng.normal(size=n),
            "b": shared + 0.5 * rng.normal(size=n),
            "sky": np.where(rng.random(n) < 0.3 + 0.4 * (y > 0), "sun", "rain"),
            "d": rng.normal(size=n),
        }
    )
    return X, np.array(["no", "yes", "maybe"])[y]


def default(**settings):
    return sy.ShrinkageNB(
        **{"strength": (2.0, 8.0, 2.0), "interactions": PAIRS, **settings}
    )


SUMS = {
    "WANBIA": sy.AttributeWeightedNB,
    "CAWNB": sy.ClassAttributeWeightedNB,
    "CAVWNB": sy.ValueWeightedNB,
    "LNB": sy.LogisticNB,
    "ENB": partial(sy.ExponentialNB, calibrated=True),
    "CWNB": sy.CollaborativeNB,
    "joint": sy.JointWeightedNB,
    "instances": partial(sy.WeightedNB, instances="discriminative"),
    "value": partial(sy.WeightedNB, missing="value"),
    "constrained": partial(
        sy.WeightedNB,
        **{"weighting": "hierarchy", "bounds": None, "lam": 1.0},
        constraints={"a": "increasing"},
    ),
}
"""Sums that average over missing cells if they are asked to."""


@pytest.fixture(scope="module", params=[2, 3, "WANBIA", "CAWNB"])
def fitted(request):
    """A model, rows with missing cells, their answers and labels."""
    of_default = isinstance(request.param, int)
    X, y = made(n_classes=request.param if of_default else 3)
    clf = default() if of_default else SUMS[request.param](unknown="marginal")
    clf.fit(X, y)
    Z = X.where(np.random.default_rng(1).random(X.shape) >= 0.4)
    Z.loc[7, "sky"] = "hail"
    Z.iloc[9] = None
    summed = copy.copy(clf).set_params(unknown="sum").predict_proba(Z)
    proba = clf.predict_proba(Z)
    assert np.abs(proba - summed).max() > 0.05
    return clf, Z, proba, y


def by_scorer(clf, Z):
    score = clf.scorer()
    return [list(score(row).values()) for row in Z.astype(object).to_dict("records")]


def by_python(clf, Z, folder):
    clf.export(folder / "model.py")
    score = runpy.run_path(str(folder / "model.py"))["score"]
    rows = Z.astype(object).where(Z.notna(), None).to_dict("records")
    return [list(score(row).values()) for row in rows]


def by_file(load):
    def route(clf, Z, folder):
        clf.save(folder / "model.json")
        return load(folder / "model.json").predict_proba(Z)

    return route


def by_scan(clf, Z, folder):
    Z.to_csv(folder / "rows.csv", index=False)
    return np.vstack(list(clf.predict_chunks(sy.scan(folder / "rows.csv"))))


def by_dask(clf, Z, folder):
    frames = pytest.importorskip("dask.dataframe")
    return clf.predict_proba(frames.from_pandas(Z, npartitions=3)).compute()


def by_polars(clf, Z, folder):
    polars = pytest.importorskip("polars")
    return clf.predict_proba(polars.from_pandas(Z))


def single_rows(clf, Z, folder):
    return np.vstack([clf.predict_proba(Z.iloc[[i]]) for i in range(len(Z))])


def threads(clf, Z, folder):
    return copy.copy(clf).set_params(n_jobs=2).predict_proba(Z)


def undone_edit(clf, Z, folder):
    edits = [{"column": "a", "remove": True}]
    return clf.edited(edits, reason="a test").unedited().predict_proba(Z)


def same_prior(clf, Z, folder):
    rates = np.exp(clf.class_log_prior_)
    other = clf.with_prior(np.full(len(rates), 1.0 / len(rates)))
    return other.with_prior(rates).predict_proba(Z)


ROUTES = {
    "pickle": (lambda clf, Z, _: pickle.loads(pickle.dumps(clf)).predict_proba(Z), 0),
    "deepcopy": (lambda clf, Z, _: copy.deepcopy(clf).predict_proba(Z), 0),
    "log": (lambda clf, Z, _: np.exp(clf.predict_log_proba(Z)), 1e-14),
    "load": (by_file(sy.load), 1e-12),
    "command line": (by_file(load_fitted), 1e-12),
    "scorer": (lambda clf, Z, _: by_scorer(clf, Z), 1e-12),
    "python": (by_python, 1e-12),
    "scan": (by_scan, 0),
    "dask": (by_dask, 0),
    "polars": (by_polars, 0),
    "order of columns": (lambda clf, Z, _: clf.predict_proba(Z[Z.columns[::-1]]), 0),
    "single rows": (single_rows, 0),
    "threads": (threads, 0),
    "undone edit": (undone_edit, 1e-12),
    "same prior": (same_prior, 1e-9),
}


@pytest.mark.parametrize("name", ROUTES)
def test_routes_give_the_answers_of_predict_proba(name, fitted, tmp_path):
    clf, Z, proba, _ = fitted
    route, tolerance = ROUTES[name]
    np.testing.assert_allclose(route(clf, Z, tmp_path), proba, rtol=0, atol=tolerance)


def by_ratio(proba, clf, other):
    """Return answers for rows among which classes have the shares of another model."""
    out = proba * np.exp(other.class_log_prior_ - clf.class_log_prior_)
    return out / out.sum(axis=1, keepdims=True)


BY_OTHER_SHARES = (
    *("pickle", "log", "load", "command line", "scorer", "python", "scan"),
    *("dask", "single rows", "threads", "undone edit", "same prior"),
)


@pytest.mark.parametrize("name", BY_OTHER_SHARES)
def test_other_shares_of_classes_multiply_answers(name, fitted, tmp_path):
    clf, Z, proba, _ = fitted
    other = clf.with_prior({"yes": 0.1})
    route, tolerance = ROUTES[name]
    np.testing.assert_allclose(
        route(other, Z, tmp_path),
        by_ratio(proba, clf, other),
        rtol=0,
        atol=max(tolerance, 1e-12),
    )


def test_shares_multiply_answers_before_and_after_edits(fitted, tmp_path):
    clf, Z, proba, y = fitted
    edits = [{"column": "b", "remove": True}, {"column": "d", "scale": 0.5}]
    other, edited = clf.with_prior({"yes": 0.1}), clf.edited(edits)
    X = Z.assign(a=Z["a"].fillna(0.3))
    recalibrated = clf.edited([], recalibrate=(X, y))
    expected = by_ratio(edited.predict_proba(Z), clf, other)
    near = {"rtol": 0, "atol": 1e-9}
    both = edited.with_prior({"yes": 0.1}), other.edited(edits)
    for model in both:
        np.testing.assert_allclose(model.predict_proba(Z), expected, **near)
        undone = model.unedited().predict_proba(Z)
        np.testing.assert_array_equal(undone, other.predict_proba(Z))
        model.save(tmp_path / "model.json")
        loaded = sy.load(tmp_path / "model.json")
        np.testing.assert_array_equal(loaded.predict_proba(Z), model.predict_proba(Z))
        undone = loaded.unedited().predict_proba(Z)
        np.testing.assert_array_equal(undone, other.predict_proba(Z))
    twice = both[0].with_prior({"yes": 0.6}).edited([{"column": "d", "remove": True}])
    once = clf.edited([*edits, {"column": "d", "remove": True}])
    expected = by_ratio(once.predict_proba(Z), clf, twice)
    np.testing.assert_allclose(twice.predict_proba(Z), expected, **near)
    # A start fitted again moves all answers as shares do, of complete rows as well.
    start = recalibrated.model_.log_prior - clf.model_.log_prior
    moved = proba * np.exp(clf.model_.link_scale * start)
    moved /= moved.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(recalibrated.predict_proba(Z), moved, **near)
    rarer = recalibrated.with_prior({"yes": 0.1})
    expected = by_ratio(moved, clf, rarer)
    np.testing.assert_allclose(rarer.predict_proba(Z), expected, **near)


def test_an_evaluation_measures_these_answers(fitted):
    clf, Z, proba, y = fitted
    found = sy.evaluate(clf, Z, y).metrics["log_loss"]
    assert found == pytest.approx(log_loss(y, proba, labels=clf.classes_))


def test_drift_compares_these_answers(fitted):
    clf, Z, proba, _ = fitted
    (period,) = clf.drift(Z).periods
    assert period.mean_score == pytest.approx(proba[:, -1].mean(), abs=1e-12)
    summed = copy.copy(clf).set_params(unknown="sum")
    psi = [
        [row["psi"] for row in of.drift(Z).rows() if row["column"].startswith("p(")]
        for of in (clf, summed)
    ]
    assert psi[0] and psi[0] != psi[1]
    whole = made(n_classes=len(clf.classes_))[0]
    assert clf.drift(whole).rows() == summed.drift(whole).rows()


def same_moments(one, other):
    for name, values in vars(one.model_.marginal).items():
        others = getattr(other.model_.marginal, name)
        np.testing.assert_allclose(values, others, rtol=1e-9, atol=1e-9, err_msg=name)


def test_moments_are_those_of_all_rows_that_were_learned_from(fitted):
    clf, Z, _, y = fitted
    X, _ = made(n_classes=len(clf.classes_))
    first = default().partial_fit(X[:120], y[:120], classes=clf.classes_)
    before = first.predict_proba(Z)
    first.partial_fit(X[120:], y[120:])
    assert np.abs(first.predict_proba(Z) - before).max() > 1e-3
    whole = default().partial_fit(X, y)
    same_moments(first, whole)
    np.testing.assert_allclose(
        first.predict_proba(Z), whole.predict_proba(Z), atol=1e-9
    )
    again = copy.deepcopy(clf).fit(X[:150], y[:150])
    same_moments(again, clone(clf).fit(X[:150], y[:150]))


CHANGED = {
    "constrained": lambda X, y: default(
        interactions=None, constraints={"a": "increasing"}
    ).fit(X, y),
    "edited": lambda X, y: (
        default().fit(X, y).edited([{"column": "b", "remove": True}], reason="a test")
    ),
    "another prior": lambda X, y: default().fit(X, y).with_prior([0.9, 0.1]),
    "weighted": lambda X, y: default().fit(X, y, np.linspace(0.1, 2.0, len(y))),
    "balanced": lambda X, y: default(class_weight="balanced").fit(X, y),
    "densities": lambda X, y: default(interactions=None, numeric="gaussian").fit(X, y),
    "going on": lambda X, y: default().partial_fit(X, y),
}


@pytest.mark.parametrize("name", CHANGED)
def test_changed_models_average_too(name, tmp_path):
    X, y = made()
    clf = CHANGED[name](X, y)
    moments = clf.model_.marginal
    assert moments is not None
    nothing = pd.DataFrame({c: [None] for c in X}).astype(
        {c: float for c in ["a", "b", "d"]}
    )
    answer = clf.predict_proba(nothing)[0]
    np.testing.assert_allclose(answer, np.exp(moments.log_rates), atol=1e-9)
    if name == "another prior":
        np.testing.assert_allclose(answer, [0.9, 0.1], atol=1e-9)
    Z = X.where(np.random.default_rng(1).random(X.shape) >= 0.4)
    proba = clf.predict_proba(Z)
    by_sum = copy.copy(clf)
    by_sum.unknown = "sum"
    assert np.abs(proba - by_sum.predict_proba(Z)).max() > 0.01
    np.testing.assert_allclose(by_scorer(clf, Z), proba, rtol=0, atol=1e-9)
    clf.save(tmp_path / "model.json")
    loaded = sy.load(tmp_path / "model.json")
    np.testing.assert_allclose(loaded.predict_proba(Z), proba, rtol=0, atol=1e-12)
    whole = by_sum.predict_proba(X)
    np.testing.assert_array_equal(clf.predict_proba(X), whole)


def test_explanations_of_the_whole_model_are_as_they_were(fitted):
    clf, *_ = fitted
    summed = copy.copy(clf).set_params(unknown="sum")
    np.testing.assert_array_equal(clf.feature_importances_, summed.feature_importances_)
    both = clf.explain_global(), summed.explain_global()
    np.testing.assert_array_equal(both[0].importance, both[1].importance)
    pytest.importorskip("matplotlib")
    drawn = NomogramDisplay.from_estimator(clf)
    assert drawn.figure_ is not None


def test_models_without_moments_add_up():
    X, y = made()
    Z = X.where(np.random.default_rng(1).random(X.shape) >= 0.4)
    for clf in (sy.NaiveBayes(), sy.WeightedNB(), default(unknown="sum")):
        model = answering_model(clf.fit(X, y))
        assert getattr(model, "marginal", None) is None
        assert not model.partial_rows(clf._encode(Z)).size
        proba = clf.predict_proba(Z)
        found = by_scorer(clf, Z)
        np.testing.assert_allclose(found, proba, rtol=0, atol=1e-12)
    with pytest.raises(ValueError, match="marginal"):
        default(unknown="mean").fit(X, y)


@pytest.mark.parametrize("name", SUMS)
def test_other_sums_average_if_they_are_asked_to(name):
    X, y = made()
    Z = X.where(np.random.default_rng(1).random(X.shape) >= 0.4)
    published = SUMS[name]().fit(X, y)
    assert published.unknown == "sum" and published.model_.marginal is None
    clf = SUMS[name](unknown="marginal").fit(X, y)
    answers = clf.predict_proba(Z)
    nothing = clf.predict_proba(Z.iloc[:1].assign(a=np.nan, b=np.nan, sky=None, d=None))
    np.testing.assert_allclose(nothing[0], np.exp(clf.class_log_prior_), atol=1e-9)
    np.testing.assert_array_equal(clf.predict_proba(X), published.predict_proba(X))
    np.testing.assert_allclose(by_scorer(clf, Z), answers, rtol=0, atol=1e-12)
    assert clf.explain_local(Z.iloc[:3]).next_questions(0) is not None
    edited = clf.edited([{"column": "b", "remove": True}], break_shapes=True)
    assert edited.model_.marginal is not None
    np.testing.assert_array_equal(edited.unedited().predict_proba(Z), answers)
    assert np.abs(answers - published.predict_proba(Z)).max() > 1e-3
    clf.set_params(unknown="sum")
    np.testing.assert_array_equal(clf.predict_proba(Z), published.predict_proba(Z))


def test_what_is_no_single_sum_says_so():
    X, y = made(n_classes=3)
    for clf in (
        sy.RegularizedNB(unknown="marginal"),
        sy.WeightedNB(unknown="marginal", multiclass="one-vs-one"),
    ):
        with pytest.raises(ParameterError, match=r"several\. Use unknown='sum'"):
            clf.fit(X, y)
    with pytest.raises(ParameterError, match="marginal"):
        sy.WeightedNB(unknown="mean").fit(X, y)


# Hashes overflow on purpose, which scalars of NumPy tell.
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_moments_of_other_sums_do_not_depend_on_where_the_rows_are(tmp_path):
    X, y = made(n_classes=3)
    clf = SUMS["CAWNB"](unknown="marginal").fit(X, y)
    X.assign(y=y).to_csv(tmp_path / "rows.csv", index=False)
    scanned = SUMS["CAWNB"](unknown="marginal")
    scanned.fit(sy.scan(tmp_path / "rows.csv", target="y"))
    same_moments(clf, scanned)
    frames = pytest.importorskip("dask.dataframe")
    table = frames.from_pandas(X.assign(y=y), npartitions=3)
    spread = SUMS["CAWNB"](unknown="marginal").fit(table, "y")
    same_moments(clf, spread)


def test_models_with_learned_weights_cannot_be_merged():
    X, y = made()
    with pytest.raises(ValueError, match="cannot be merged"):
        sy.merge(default().fit(X[:120], y[:120]), default().fit(X[120:], y[120:]))
