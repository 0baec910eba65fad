"""Rows with missing cells: averages over what these cells may be."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

import steelyard as sy
from steelyard.exceptions import ParameterError
from steelyard.fitting import unknown
from steelyard.model.marginal import contrast, expected_softmax

pytestmark = pytest.mark.plain


def made(n=160, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    shared = rng.normal(size=n) + y
    frame = pd.DataFrame(
        {
            "a": shared + 0.5 * rng.normal(size=n),
            "b": shared + 0.5 * rng.normal(size=n),
            "sky": np.where(rng.random(n) < 0.3 + 0.4 * (y > 0), "sun", "rain"),
            "d": rng.normal(size=n),
        }
    )
    return frame, np.array(["no", "yes", "maybe"])[y]


def fitted(n_classes=2, **settings):
    X, y = made(n_classes=n_classes)
    settings = {"strength": (2.0, 8.0, 2.0), "interactions": None, **settings}
    return sy.ShrinkageNB(**settings).fit(X, y), X, y


def hidden(X, share=0.4, seed=1):
    return X.where(np.random.default_rng(seed).random(X.shape) >= share)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_complete_rows_are_answered_as_a_sum_to_the_bit(n_classes):
    clf, X, _ = fitted(n_classes)
    whole = clf.predict_proba(X), clf.predict_log_proba(X), clf.predict(X)
    clf.set_params(unknown="sum")
    for one, other in zip(
        whole,
        (clf.predict_proba(X), clf.predict_log_proba(X), clf.predict(X)),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)


def test_a_fitted_model_can_answer_by_sums():
    clf, X, y = fitted()
    Z = hidden(X)
    plain = sy.ShrinkageNB(**{**clf.get_params(), "unknown": "sum"}).fit(X, y)
    assert plain.model_.marginal is None
    assert not np.array_equal(clf.predict_proba(Z), plain.predict_proba(Z))
    clf.set_params(unknown="sum")
    np.testing.assert_array_equal(clf.predict_proba(Z), plain.predict_proba(Z))


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
def test_a_row_without_any_value_is_answered_with_the_base_rate(load):
    X, y = load(return_X_y=True)
    clf = sy.ShrinkageNB(strength=(8.0, 33.0, 6.0), interactions=None).fit(X, y)
    nothing = clf.predict_proba(np.full((1, X.shape[1]), np.nan))[0]
    np.testing.assert_allclose(nothing, np.exp(clf.class_log_prior_), atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("interactions", [None, [["a", "sky"], ["b", "d"]]])
def test_answers_are_those_of_the_dense_formula(n_classes, interactions):
    clf, X, _ = fitted(n_classes, interactions=interactions)
    model, moments = clf.model_, clf.model_.marginal
    d, channels, _ = moments.loadings.shape
    flat = moments.loadings.reshape(d * channels, -1)
    covariance = flat @ flat.T + np.diag(moments.noise.ravel())
    row = X.iloc[[7]].assign(b=np.nan, sky=None)
    known = {"a", "d"}
    sides = [[name] for name in X] + [list(pair) for pair in interactions or ()]
    is_known = np.repeat([known.issuperset(names) for names in sides], channels)
    whole = contrast(model.contributions(clf._encode(X.iloc[[7]])))[0]
    c = (whole - moments.means).ravel()[is_known]
    inverse = np.linalg.inv(covariance[np.ix_(is_known, is_known)])
    across = covariance[np.ix_(~is_known, is_known)] @ inverse
    add = np.tile(np.eye(channels), (d, 1))
    rest = covariance[np.ix_(~is_known, ~is_known)]
    rest = rest - across @ covariance[np.ix_(is_known, ~is_known)]
    variance = add[~is_known].T @ rest @ add[~is_known]
    start = contrast(model.log_prior) + moments.means.sum(axis=0)
    mean = start + add[is_known].T @ c + add[~is_known].T @ (across @ c)
    nothing = add.T @ covariance @ add
    mean = mean + np.trace(variance) / np.trace(nothing) * moments.shift
    scale = model.link_scale
    answer = expected_softmax(
        scale * mean[None, :], scale**2 * variance[None], np.zeros(1, dtype=np.int64)
    )
    offsets, plain = model.schema.offsets, np.zeros(n_classes)
    own = np.zeros(4)
    for j in (0, 3):
        table = moments.plain[offsets[j] : offsets[j + 1]]
        plain = plain + table[clf._encode(X.iloc[[7]]).column(j)[0]]
        own[j] = table.any()
    # Two of three columns beside one, and the variance that is still open.
    share = np.cbrt(2.0 / 3.0 * np.trace(variance) / np.trace(nothing))
    share = share * own.sum() / 2.0
    within = moments.plain_loadings @ moments.plain_loadings.T
    within = within + np.diag(moments.plain_noise)
    power = min(own @ np.diag(within) / (own @ within @ own), 1.0)
    plain = np.log(moments.base_rates) + power * plain
    roots = (1.0 - share) * np.sqrt(answer[0]) + share * np.sqrt(softmax(plain))
    expected = roots**2 / (roots**2).sum()
    np.testing.assert_allclose(clf.predict_proba(row)[0], expected, atol=1e-10)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_variances_of_what_columns_say_alone_are_those_within_classes(n_classes):
    clf, X, y = fitted(n_classes)
    moments, offsets, codes = (
        clf.model_.marginal,
        clf.model_.schema.offsets,
        clf._encode(X),
    )
    said = np.stack(
        [moments.plain[offsets[j] + codes.column(j).astype(int)] for j in range(4)], 1
    )
    said = contrast(said)
    for label in clf.classes_:
        said[y == label] -= said[y == label].mean(axis=0)
    within = np.einsum("ntc,nuc->tu", said, said) / len(y)
    found = moments.plain_loadings @ moments.plain_loadings.T
    found = found + np.diag(moments.plain_noise)
    np.testing.assert_allclose(found, within, atol=2e-3 * within.max())


def test_columns_that_are_independent_given_the_class_count_in_full():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 4000)
    X = pd.DataFrame(rng.normal(size=(4000, 4)) + y[:, None], columns=list("abcd"))
    clf = sy.ShrinkageNB(strength=(2.0, 8.0, 2.0), interactions=None).fit(X, y)
    copies = sy.ShrinkageNB(strength=(2.0, 8.0, 2.0), interactions=None).fit(
        X.assign(b=X["a"], c=X["a"]), y
    )
    known = np.array([[True, True, True, False]])
    for model, low, high in ((clf, 0.9, 1.0), (copies, 0.3, 0.36)):
        of = model.model_.conditional
        _, power = of._plain_part(of.given(known))
        assert low <= power[0] <= high


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_single_known_column_is_answered_with_its_shares(n_classes):
    clf, X, y = fitted(n_classes, interactions=[["a", "sky"]])
    moments, offsets = clf.model_.marginal, clf.model_.schema.offsets
    alone = X[["sky"]].reindex(columns=X.columns)
    code = clf._encode(alone).column(2)
    shares = moments.base_rates * np.exp(moments.plain[offsets[2] + code])
    shares /= shares.sum(axis=1, keepdims=True)
    answers = clf.predict_proba(alone)
    np.testing.assert_allclose(answers, shares, atol=1e-12)
    for value in ("sun", "rain"):
        rows = (X["sky"] == value).to_numpy()
        of_rows = [(y[rows] == c).mean() for c in clf.classes_]
        np.testing.assert_allclose(answers[rows][0], of_rows, atol=0.06)


def test_a_constrained_column_that_is_known_alone_keeps_its_curve():
    X, y = made()
    settings = {"strength": (2.0, 8.0, 2.0), "interactions": None}
    clf = sy.ShrinkageNB(constraints={"a": "increasing"}, **settings).fit(X, y)
    answers = clf.predict_proba(X[["a"]].reindex(columns=X.columns))[:, 1]
    ordered = answers[np.argsort(X["a"].to_numpy())]
    assert (np.diff(ordered) >= -1e-12).all() and np.ptp(ordered) > 0.3


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_means_of_the_softmax_are_those_of_many_draws(n_classes):
    rng = np.random.default_rng(0)
    half = rng.normal(size=(max(n_classes, 1), 2))
    variance = half @ half.T
    mean = rng.normal(size=(4, n_classes))
    draws = rng.multivariate_normal(np.zeros(n_classes), variance, 200_000)
    expected = np.array([softmax(m + draws, axis=1).mean(axis=0) for m in mean])
    pattern = np.zeros(4, dtype=np.int64)
    if n_classes == 2:
        mean, across = contrast(mean), np.array([-1.0, 1.0])
        variance = np.array([[across @ variance @ across]])
    found = expected_softmax(mean.copy(), variance[None], pattern)
    np.testing.assert_allclose(found, expected, atol=0.03)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_an_answer_does_not_depend_on_the_other_rows(n_classes):
    clf, X, _ = fitted(n_classes, interactions=[["a", "sky"]])
    Z = pd.concat([hidden(X), X.iloc[:5]])
    together = clf.predict_proba(Z)
    alone = [clf.predict_proba(Z.iloc[[k]])[0] for k in range(len(Z))]
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(
        np.exp(clf.predict_log_proba(Z)).argmax(1), together.argmax(1)
    )
    np.testing.assert_array_equal(clf.predict(Z), clf.classes_[together.argmax(1)])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_order_of_columns_rows_and_classes_does_not_matter(n_classes):
    X, y = made(n_classes=n_classes)
    Z = hidden(X)
    settings = {"strength": (2.0, 8.0, 2.0), "interactions": [["a", "sky"]]}
    clf = sy.ShrinkageNB(**settings).fit(X, y)
    order = np.random.default_rng(3).permutation(len(X))
    turned = X.iloc[order, ::-1]
    names = {"no": "z", "yes": "b", "maybe": "k"}
    renamed = np.array([names[label] for label in y[order]])
    other = sy.ShrinkageNB(**settings).fit(turned, renamed)
    places = [list(other.classes_).index(names[c]) for c in clf.classes_]
    np.testing.assert_allclose(
        other.predict_proba(Z[turned.columns])[:, places],
        clf.predict_proba(Z),
        atol=1e-8,
    )


def test_weights_count_as_copies():
    X, y = made()
    weights = np.random.default_rng(2).integers(0, 3, len(X))
    settings = {"strength": (2.0, 8.0, 2.0), "interactions": None, "numeric": "mdl"}
    one = sy.ShrinkageNB(**settings).fit(X, y, weights)
    rows = np.repeat(np.arange(len(X)), weights)
    other = sy.ShrinkageNB(**settings).fit(X.iloc[rows], y[rows])
    Z = hidden(X)
    np.testing.assert_allclose(one.predict_proba(Z), other.predict_proba(Z), atol=1e-7)


def test_a_duplicated_column_says_the_same_whether_one_or_both_are_known():
    X, y = made()
    X["twin"] = X["a"]
    clf = sy.ShrinkageNB(strength=(2.0, 8.0, 2.0), interactions=None).fit(X, y)
    both = X.assign(b=np.nan, sky=None, d=np.nan)
    one = both.assign(twin=np.nan)
    np.testing.assert_allclose(
        clf.predict_proba(one), clf.predict_proba(both), atol=0.1
    )
    clf.set_params(unknown="sum")
    assert np.abs(clf.predict_proba(one) - clf.predict_proba(both)).max() > 0.1


def test_categories_never_seen_are_averaged_over_and_far_numbers_are_known():
    clf, X, _ = fitted()
    row = X.iloc[[3]]
    np.testing.assert_array_equal(
        clf.predict_proba(row.assign(sky="hail")),
        clf.predict_proba(row.assign(sky=None)),
    )
    far = row.assign(a=1e9)
    clf_sum = clf.predict_proba(far)
    clf.set_params(unknown="sum")
    np.testing.assert_array_equal(clf.predict_proba(far), clf_sum)


def test_a_missing_cell_of_a_column_with_many_of_them_is_a_value():
    X, y = made()
    X.loc[::2, "a"] = np.nan
    clf = sy.ShrinkageNB(strength=(2.0, 8.0, 2.0), interactions=None).fit(X, y)
    assert (clf.model_.marginal.value_odds > 0.0).tolist() == [
        True,
        False,
        False,
        False,
    ]
    whole = clf.predict_proba(X)
    clf.set_params(unknown="sum")
    np.testing.assert_array_equal(clf.predict_proba(X), whole)


@pytest.mark.parametrize("numeric", ["gaussian", "linear"])
def test_columns_without_codes_are_averaged_over_too(numeric):
    clf, X, _ = fitted(numeric=numeric)
    Z = hidden(X)
    marginal = clf.predict_proba(Z)
    assert np.isfinite(marginal).all()
    clf.set_params(unknown="sum")
    is_partial = Z.isna().any(axis=1).to_numpy()
    gap = np.abs(clf.predict_proba(Z) - marginal).max(axis=1)
    assert (gap[is_partial] > 0.0).mean() > 0.9
    np.testing.assert_array_equal(gap[~is_partial], 0.0)


def test_useless_columns_have_no_moments():
    X = pd.DataFrame({"a": ["x"] * 40})
    clf = sy.ShrinkageNB(strength=(1.0, 1.0, 1.0)).fit(
        X[:39], ["no", "yes", "yes"] * 13
    )
    assert clf.model_.marginal is None
    answer = clf.predict_proba(X.assign(a=None))
    np.testing.assert_allclose(answer[:, 1], 2.0 / 3.0, atol=0.01)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_explanations_of_partial_rows_are_sums_from_the_base_rate(n_classes):
    clf, X, _ = fitted(n_classes, interactions=[["a", "sky"]])
    Z = hidden(X).iloc[:30]
    why = clf.explain_local(Z)
    is_partial = Z.isna().any(axis=1).to_numpy()
    total = why.base + why.contributions.sum(axis=1) + why.averaging
    np.testing.assert_allclose(
        softmax(why.link_scale * total, axis=1), clf.predict_proba(Z), atol=1e-12
    )
    rates = np.log(clf.model_.marginal.base_rates) / why.link_scale
    np.testing.assert_allclose(
        why.base[is_partial], rates[None].repeat(is_partial.sum(), 0)
    )
    missing = Z.isna().to_numpy()
    np.testing.assert_array_equal(
        why.contributions[:, :4][missing & is_partial[:, None]], 0.0
    )
    assert not why.averaging[~is_partial].any() and not why.implied[~is_partial].any()
    for row in np.flatnonzero(is_partial).tolist():
        evidence = why.evidence(row)
        proba = np.sort(why.probabilities[row])
        assert evidence.total == pytest.approx(np.log(proba[-1] / proba[-2]), abs=1e-9)
        assert evidence.start[0] == "base rate"
        assert not any(
            item.attribute in Z.columns[missing[row]] for item in evidence.items
        )


def test_questions_are_ranked_by_what_their_answers_change():
    clf, X, _ = fitted()
    row = X.iloc[[5]].assign(b=np.nan, d=np.nan, sky=None)
    questions = clf.explain_local(row).next_questions()
    assert {q.column for q in questions} == {"b", "d", "sky"}
    assert questions[0].column in ("b", "sky") and questions[-1].column == "d"
    moved = {}
    before = clf.predict_proba(row)[0, 1]
    for name in ("b", "sky", "d"):
        asked = pd.concat([row] * len(X), ignore_index=True)
        asked[name] = X[name].to_numpy()
        moved[name] = np.abs(clf.predict_proba(asked)[:, 1] - before).mean()
    for question in questions:
        assert question.change == pytest.approx(moved[question.column], abs=0.06)
    clf.set_params(unknown="sum")
    with pytest.raises(ParameterError, match="marginal"):
        clf.explain_local(row).next_questions()


def test_an_edit_changes_the_moments_of_its_column_and_undoing_restores_them():
    clf, X, y = fitted(interactions=[["a", "sky"]])
    Z = hidden(X)
    edits = {"column": "b", "remove": True}, {"column": "a", "from": 0.0, "set": 0.4}
    edited = clf.edited(list(edits), break_shapes=True)
    moments = edited.model_.marginal
    assert not moments.loadings[1].any() and not moments.means[1].any()
    nothing = pd.DataFrame({name: [None] for name in X})
    np.testing.assert_allclose(
        edited.predict_proba(nothing)[0], np.exp(clf.class_log_prior_), atol=1e-9
    )
    # What is said of a removed column, known or not, is nothing.
    np.testing.assert_allclose(
        edited.predict_proba(Z.assign(b=0.3))[:, 1],
        edited.predict_proba(Z.assign(b=2.0))[:, 1],
        atol=1e-12,
    )
    np.testing.assert_array_equal(
        edited.unedited().predict_proba(Z), clf.predict_proba(Z)
    )
    rarer = edited.with_prior({"yes": 0.1})
    np.testing.assert_allclose(rarer.predict_proba(nothing)[0, 1], 0.1, atol=1e-9)
    np.testing.assert_array_equal(
        rarer.unedited().predict_proba(Z),
        clf.with_prior({"yes": 0.1}).predict_proba(Z),
    )
    fresh = edited.edited([], recalibrate=(X[:40], y[:40]))
    back = fresh.with_prior({"yes": 0.1}).with_prior(np.exp(clf.class_log_prior_))
    np.testing.assert_allclose(
        back.predict_proba(Z), fresh.predict_proba(Z), atol=1e-12
    )
    np.testing.assert_array_equal(
        fresh.unedited().predict_proba(Z), clf.predict_proba(Z)
    )


def test_files_keep_moments_to_the_bit(tmp_path):
    clf, X, _ = fitted(3, interactions=[["a", "sky"]])
    Z = hidden(X)
    edited = clf.edited({"column": "b", "scale": 0.5})
    for model in (clf, edited):
        model.save(tmp_path / "model.json")
        loaded = sy.load(tmp_path / "model.json")
        np.testing.assert_array_equal(loaded.predict_proba(Z), model.predict_proba(Z))
    np.testing.assert_array_equal(
        loaded.unedited().predict_proba(Z), clf.predict_proba(Z)
    )
    clf.set_params(unknown="sum").save(tmp_path / "sum.json")
    loaded = sy.load(tmp_path / "sum.json")
    np.testing.assert_array_equal(loaded.predict_proba(Z), clf.predict_proba(Z))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_scorer_answers_partial_rows_too(n_classes):
    clf, X, _ = fitted(n_classes, interactions=[["a", "sky"]])
    Z = hidden(X).iloc[:40]
    rows = Z.astype(object).where(Z.notna(), None).to_dict("records")
    rows[0]["sky"] = "hail"
    Z.loc[Z.index[0], "sky"] = "hail"
    score = clf.scorer()
    np.testing.assert_allclose(
        [list(score(row).values()) for row in rows], clf.predict_proba(Z), atol=1e-12
    )
    why = clf.explain_local(Z)
    for k in range(5):
        items = {i.attribute: i.amount for i in why.evidence(k).items}
        for name, amount in score.reasons(rows[k]).items():
            assert amount == pytest.approx(items[name], abs=1e-9)


def test_many_numbers_have_few_factors(monkeypatch):
    added = np.random.default_rng(0).normal(size=(50, 20))
    assert unknown._loadings(added).shape == (20, 20)
    monkeypatch.setattr(unknown, "_MAX_LOADINGS", 20)
    assert unknown._loadings(added).shape == (20, 20)
    monkeypatch.setattr(unknown, "_MAX_FREE_LOADINGS", 45)
    assert unknown._loadings(added).shape == (20, 2)
