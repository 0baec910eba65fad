"""ShrinkageNB with interactions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import steelyard as sy
from steelyard import ShrinkageNB
from steelyard.exceptions import ParameterError

# A small choice, so that fits take little.
QUICK = {"grid": [(2.5, 10.0, 2.5), (0.5, 2.5, 0.5)], "cv": 3, "resolutions": 3}


def either(n=300, seed=0, numeric=False, noise=0.05, gaps=0.0):
    """Return a table whose first two columns tell the class together only."""
    rng = np.random.default_rng(seed)
    if numeric:
        X = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd"))
        y = (X["a"] > 0) ^ (X["b"] > 0)
    else:
        codes = rng.integers(0, [2, 2, 3, 4], (n, 4))
        X = pd.DataFrame(codes, columns=list("abcd")).astype(str).astype(object)
        y = codes[:, 0] != codes[:, 1]
    y = np.where(y ^ (rng.random(n) < noise), "yes", "no")
    X = X.mask(rng.random(X.shape) < gaps, np.nan if numeric else None)
    return X, y


def exactly_two(n=400, seed=0):
    """Return six columns, exactly two of which hold their first value in a class."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, [3, 3, 2, 3, 4, 2], (n, 6))
    X = pd.DataFrame(codes.astype(str).astype(object), columns=list("abcdef"))
    return X, ((codes == 0).sum(axis=1) == 2).astype(int)


def test_a_class_that_is_a_sum_over_all_interactions_is_learned():
    X, y = exactly_two()
    clf = ShrinkageNB().fit(X, y)
    new, truth = exactly_two(seed=1)
    assert clf.score(new, truth) > 0.99
    assert len(clf.interactions_) == 15


def columns_of(clf):
    return [record["columns"] for record in clf.interactions_]


@pytest.mark.parametrize("numeric", [False, True])
def test_two_columns_that_determine_the_class_together_are_chosen(numeric):
    X, y = either(n=600, numeric=numeric)
    clf = ShrinkageNB().fit(X, y)
    assert columns_of(clf)[0] == ["a", "b"]
    assert clf.interactions_[0]["importance"] == max(
        r["importance"] for r in clf.interactions_
    )
    new, truth = either(seed=1, numeric=numeric, noise=0.0)
    assert clf.score(new, truth) > 0.85
    alone = ShrinkageNB(interactions=None).fit(X, y)
    assert alone.score(new, truth) < 0.65
    assert alone.interactions_ == []


@pytest.mark.parametrize("numeric", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_independent_noise_has_no_interactions(numeric, seed):
    X, _ = either(seed=seed, numeric=numeric)
    y = np.random.default_rng(100 + seed).integers(0, 2, len(X))
    assert ShrinkageNB(**QUICK).fit(X, y).interactions_ == []


def test_columns_that_add_up_have_no_interactions():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = X.sum(axis=1) + 0.5 * rng.normal(size=400) > 0
    assert ShrinkageNB(**QUICK).fit(X, y).interactions_ == []


def test_records_name_columns_by_position_without_names():
    X, y = either()
    clf = ShrinkageNB(**QUICK).fit(X.to_numpy(), y)
    assert columns_of(clf)[0] == [0, 1]
    again = ShrinkageNB(interactions=columns_of(clf), **QUICK).fit(X.to_numpy(), y)
    assert columns_of(again) == columns_of(clf)


def test_a_number_is_how_many_interactions_there_are():
    X, y = either()
    for number in (1, np.int64(2)):
        clf = ShrinkageNB(interactions=number, **QUICK).fit(X, y)
        assert len(clf.interactions_) == number
        assert columns_of(clf)[0] == ["a", "b"]
    assert ShrinkageNB(interactions=0, **QUICK).fit(X, y).interactions_ == []
    given = ShrinkageNB(interactions=np.int64(1), strength=(1.0, 4.0, 1.0)).fit(X, y)
    assert columns_of(given) == [["a", "b"]]


def test_listed_interactions_are_in_the_model_whatever_they_are_worth():
    X, y = either()
    for strength in ("auto", (1.0, 4.0, 1.0)):
        clf = ShrinkageNB(
            interactions=[("c", "d"), (0, "b")], **{**QUICK, "strength": strength}
        ).fit(X, y)
        assert columns_of(clf) == [["c", "d"], ["a", "b"]]
        assert clf.term_names_.tolist()[-2:] == ["c × d", "a × b"]
        least, most = (record["importance"] for record in clf.interactions_)
        assert least < 0.3 * most
        assert all(record["strength"] > 0 for record in clf.interactions_)


def test_the_same_two_columns_are_one_interaction():
    X, y = either()
    settings = {"strength": (1.0, 4.0, 1.0)}
    once = ShrinkageNB(interactions=[("a", "b")], **settings).fit(X, y)
    for interactions in (
        [("a", "b")] * 2,
        [("a", "b"), ("b", "a")],
        [("a", "b"), (1, -4)],
    ):
        clf = ShrinkageNB(interactions=interactions, **settings).fit(X, y)
        assert columns_of(clf) == [["a", "b"]]
        assert_array_equal(clf.predict_proba(X), once.predict_proba(X))


@pytest.mark.parametrize(
    ("interactions", "words"),
    [
        ([("a", "nowhere")], "`interactions` names 'nowhere', which is not a column"),
        ([(0, 4)], "`interactions` names column 4, but there are 4 columns"),
        ([("a", 0)], "`interactions` joins column 'a' with itself"),
        ([("a", "b", "c")], "a list of pairs of columns"),
        ([("a", True)], "by name .str. or position .int."),
        ("all", "a list of pairs of columns"),
        (-1, "a number of interactions"),
        (True, "a number of interactions"),
        (2.5, "a number of interactions"),
        ([("a", "same")], "'same', which has fewer than two categories or bins"),
    ],
)
def test_bad_interactions_are_refused_and_leave_the_model(interactions, words):
    X, y = either(n=80)
    X["e"] = X["d"]
    X = X.rename(columns={"d": "same"})
    X["same"] = "one"
    clf = ShrinkageNB(strength=(1.0, 4.0, 1.0)).fit(X.drop(columns="e"), y)
    before = clf.predict_proba(X.drop(columns="e"))
    with pytest.raises(ParameterError, match=words):
        clf.set_params(interactions=interactions).fit(X.drop(columns="e"), y)
    assert_array_equal(clf.predict_proba(X.drop(columns="e")), before)


def test_a_column_without_bins_cannot_be_joined():
    X, y = either(n=80, numeric=True)
    with pytest.raises(ParameterError, match="give it bins in `numeric`"):
        ShrinkageNB(
            interactions=[("a", "b")], numeric="linear", strength=(1.0, 4.0, 1.0)
        ).fit(X, y)


def test_cut_points_that_folds_lack_leave_their_interactions_out_there():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] + rng.normal(size=60) * 1.5 > 0).astype(int)
    # MDL finds a cut of the first column in all rows, and not in every fold.
    views = {0: "mdl", 1: "equal-frequency", 2: "equal-frequency"}
    clf = ShrinkageNB(interactions=[(0, 1)], numeric=views, **QUICK).fit(X, y)
    assert columns_of(clf) == [[0, 1]]
    assert np.isfinite(clf.predict_proba(X)).all()


@pytest.mark.parametrize("missing", ["skip", "value", "impute"])
@pytest.mark.parametrize("numeric", [False, True])
def test_a_interaction_with_an_unknown_side_adds_nothing(numeric, missing):
    X, y = either(numeric=numeric, gaps=0.1)
    clf = ShrinkageNB(
        interactions=[("a", "b")],
        strength=(1.0, 4.0, 1.0),
        missing=missing,
        unknown="sum",
    ).fit(X, y)
    schema = clf.model_.schema
    interaction = schema.features[-1]
    rows = clf.model_.table[schema.offsets[-2] :]
    assert_array_equal(rows[~interaction.both_known], 0.0)
    queries = X.dropna().iloc[:3].copy()
    if missing == "skip":
        queries["a"] = np.nan if numeric else None
        added = clf.explain_local(queries).contributions[0, -1]
        assert_array_equal(added, -clf.model_.centre[-1])
    if not numeric:
        queries["a"] = "never seen"
        added = clf.explain_local(queries).contributions[0, -1]
        assert_array_equal(added, -clf.model_.centre[-1])


def test_missing_cells_that_are_a_value_are_joined_as_one():
    X, y = either(n=400)
    X["a"] = X["a"].where(X["a"] == "1", None)  # missing is the other value
    clf = ShrinkageNB(missing="value").fit(X, y)
    assert columns_of(clf)[0] == ["a", "b"]
    assert clf.score(X, y) > 0.9


@pytest.mark.parametrize("numeric", [False, True])
def test_a_saved_model_comes_back_to_the_last_bit(numeric, tmp_path):
    X, y = either(numeric=numeric, gaps=0.1)
    clf = ShrinkageNB(interactions=2, **QUICK).fit(X, y)
    clf.save(tmp_path / "model.json")
    loaded = sy.load(tmp_path / "model.json")
    assert loaded.interactions_ == clf.interactions_ != []
    assert loaded.strength_path_ == clf.strength_path_
    assert_array_equal(loaded.predict_proba(X), clf.predict_proba(X))
    assert_array_equal(
        loaded.explain_local(X).contributions, clf.explain_local(X).contributions
    )
    assert loaded.get_params()["interactions"] == 2


def test_listed_interactions_are_saved_as_they_were_given(tmp_path):
    X, y = either(n=80)
    clf = ShrinkageNB(interactions=[("a", "b")], strength=(1.0, 4.0, 1.0)).fit(X, y)
    clf.save(tmp_path / "model.json")
    loaded = sy.load(tmp_path / "model.json")
    assert [list(interaction) for interaction in loaded.interactions] == [["a", "b"]]
    assert_array_equal(loaded.fit(X, y).predict_proba(X), clf.predict_proba(X))


@pytest.mark.parametrize("numeric", [False, True])
def test_whole_weights_equal_repeated_rows(numeric):
    X, y = either(n=150, numeric=numeric)
    u = np.random.default_rng(3).integers(0, 4, len(y))
    settings = {**QUICK, "tol": 1e-10}
    weighted = ShrinkageNB(**settings).fit(X, y, sample_weight=u)
    again = X.loc[np.repeat(np.arange(len(y)), u)]
    repeated = ShrinkageNB(**settings).fit(again, np.repeat(y, u))
    assert columns_of(weighted) == columns_of(repeated) != []
    assert_allclose(
        [r["importance"] for r in weighted.interactions_],
        [r["importance"] for r in repeated.interactions_],
        rtol=1e-4,
    )
    assert weighted.strength_ == repeated.strength_
    assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("numeric", [False, True])
def test_the_order_of_rows_does_not_matter(numeric):
    X, y = either(numeric=numeric, gaps=0.05)
    order = np.random.default_rng(5).permutation(len(y))
    settings = {**QUICK, "tol": 1e-10}
    a = ShrinkageNB(**settings).fit(X, y)
    b = ShrinkageNB(**settings).fit(X.iloc[order], y[order])
    assert columns_of(a) == columns_of(b) != []
    assert a.strength_ == b.strength_
    assert [r["strength"] for r in a.interactions_] == [
        r["strength"] for r in b.interactions_
    ]
    assert_allclose(a.predict_proba(X), b.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("numeric", [False, True])
def test_the_number_of_threads_does_not_change_a_bit(numeric):
    X, y = either(numeric=numeric)
    one, two = (ShrinkageNB(n_jobs=n_jobs, **QUICK).fit(X, y) for n_jobs in (1, 2))
    assert one.interactions_ == two.interactions_ != []
    assert one.strength_path_ == two.strength_path_
    assert_array_equal(one.predict_proba(X), two.predict_proba(X))


def test_class_weight_counts_like_row_weights():
    X, y = either(n=150)
    given = {"strength": (1.0, 4.0, 1.0), "interactions": [("a", "b")], "tol": 1e-10}
    by_class = ShrinkageNB(class_weight={"no": 1.0, "yes": 3.0}, **given).fit(X, y)
    by_row = ShrinkageNB(**given).fit(X, y, sample_weight=np.where(y == "yes", 3, 1))
    # Groups are made by the weight of rows alone, which both columns here leave alone.
    assert_allclose(by_class.predict_proba(X), by_row.predict_proba(X), atol=1e-6)
    chosen = ShrinkageNB(class_weight="balanced", **QUICK).fit(X, y)
    assert columns_of(chosen)[0] == ["a", "b"]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_importance_is_the_mean_absolute_evidence_over_rows(n_classes, weighted):
    X, y = either(gaps=0.1, numeric=True)
    rng = np.random.default_rng(0)
    if n_classes == 3:
        y = np.where(rng.random(len(y)) < 0.3, "maybe", y)
    u = rng.integers(1, 4, len(y)) if weighted else np.ones(len(y))
    clf = ShrinkageNB(interactions=[("a", "b"), ("b", "c")], unknown="sum", **QUICK)
    clf.fit(X, y, sample_weight=u if weighted else None)
    local = clf.explain_local(X)
    for k, record in enumerate(clf.interactions_):
        added = local.contributions[:, len(clf.term_names_) - 2 + k]
        others = (added.sum(axis=1, keepdims=True) - added) / (n_classes - 1)
        evidence = clf.scale_ * np.abs(added - others).mean(axis=1)
        assert_allclose(record["importance"], u @ evidence / u.sum(), rtol=1e-9)
    overall = clf.explain_global()
    found = [
        overall.importance[overall.attributes.index(n)] for n in ("a × b", "b × c")
    ]
    assert_allclose([r["importance"] for r in clf.interactions_], found, rtol=1e-9)


def test_a_clone_and_scikit_learns_tools_take_interactions():
    X, y = either(n=200)
    clf = ShrinkageNB(interactions=[("a", "b")], **QUICK)
    copied = clone(clf)
    assert copied.get_params() == clf.get_params()
    assert not hasattr(copied, "interactions_")
    assert cross_val_score(copied, X, y, cv=3).mean() > 0.85


def test_a_second_fit_forgets_the_interactions_of_the_first():
    X, y = either()
    clf = ShrinkageNB(**QUICK).fit(X, y)
    assert clf.interactions_
    assert clf.set_params(interactions=None).fit(X, y).interactions_ == []
    assert not clf.model_.schema.is_interaction.any()


def test_scores_are_main_effects_plus_the_interactions():
    X, y = either(numeric=True)
    clf = ShrinkageNB(interactions=[("a", "b")], strength=(1.0, 4.0, 1.0)).fit(X, y)
    local = clf.explain_local(X)
    total = local.base + local.contributions.sum(axis=1)
    joint = clf.predict_joint_log_proba(X)
    assert_allclose(total[:, 1] - total[:, 0], joint[:, 1] - joint[:, 0], atol=1e-9)


def test_two_classes_of_a_few_rows_are_enough():
    X, y = either(n=12, numeric=True)
    clf = ShrinkageNB(interactions=[("a", "b")]).fit(X, y)
    assert np.isfinite(clf.predict_proba(X)).all()


def test_the_interactions_asked_for_are_there_where_none_promises_anything():
    # Main effects alone make these many classes; all scores of interactions are
    # negative.
    rng = np.random.default_rng(0)
    y = rng.integers(0, 12, 150)
    X = rng.normal(size=(150, 3)) + (y[:, None] * np.arange(1, 4)) % 7
    clf = ShrinkageNB(interactions=2, **QUICK).fit(X, y)
    assert len(clf.interactions_) == 2
    assert "few-interactions" not in {notice.kind for notice in clf.notices_}


def test_fewer_interactions_than_were_asked_for_are_reported():
    X, y = either()
    clf = ShrinkageNB(interactions=12, **QUICK).fit(X, y)
    assert len(clf.interactions_) == 6
    (notice,) = clf.notices_
    assert notice.kind == "few-interactions" and "and 6 were kept" in notice.text
    few = ShrinkageNB(interactions=2).fit(X[:3], ["a", "b", "c"])
    assert few.interactions_ == []
    (notice,) = (n for n in few.notices_ if n.kind == "few-interactions")
    assert "and none was kept: a class has too few rows" in notice.text


def test_few_rows_have_few_interactions():
    """Without a limit this table of 48 rows takes fourteen."""
    X = np.random.default_rng(13).normal(size=(48, 12))
    y = X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] > 0.0
    assert 0 < len(ShrinkageNB().fit(X, y).interactions_) <= 48 // 8
