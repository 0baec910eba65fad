"""Models that are counts are merged to that of one fit of all their tables."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import steelyard as sy
from steelyard.exceptions import ColumnError, ParameterError, TableError

EDGES = sy.FixedEdgesDiscretizer([0.0, 1.0])
MERGED = {
    "NaiveBayes": sy.NaiveBayes,
    "GainRatioWeightedNB": sy.GainRatioWeightedNB,
    "AUCWeightedNB": sy.AUCWeightedNB,
    "AODE": lambda **given: sy.OneDependenceNB(min_rows=3, **given),
    "WAODE": lambda **given: sy.OneDependenceNB(
        parent_weights="information", min_rows=3, **given
    ),
}
KINDS = {entry.class_name for entry in sy.methods() if entry.acronym in MERGED} | {
    "NaiveBayes",
    "GainRatioWeightedNB",
    "AUCWeightedNB",
    "OneDependenceNB",
}


def rows(n, seed, towns, classes=(0, 1, 2)):
    rng = np.random.default_rng(seed)
    town = rng.choice(towns, n).astype(object)
    town[rng.random(n) < 0.1] = None
    frame = pd.DataFrame(
        {
            "town": town,
            "kind": rng.choice(["a", "b", "c"], n),
            "size": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
        }
    )
    return frame, rng.choice(classes, n)


def two_tables():
    north = rows(60, 0, ["Ayr", "Perth", "Wick"])
    south = rows(45, 1, ["Bath", "Perth", "Leeds"])
    return north, south, (pd.concat([north[0], south[0]]), np.r_[north[1], south[1]])


def same_bits(a, b, X):
    assert np.array_equal(a.predict_proba(X), b.predict_proba(X))
    assert np.array_equal(a.counts_.by_code, b.counts_.by_code)
    assert np.array_equal(a.class_count_, b.class_count_)
    assert a.encoder_.schema_ == b.encoder_.schema_


@pytest.mark.parametrize("name", MERGED)
@pytest.mark.parametrize("missing", ["skip", "value"])
def test_two_models_are_one_fit_of_both_tables_to_the_bit(name, missing, tmp_path):
    north, south, both = two_tables()
    make, settings = MERGED[name], {"numeric": EDGES, "missing": missing}
    parts = [make(**settings).fit(*table) for table in (north, south)]
    expected, before = make(**settings).fit(*both), parts[0].predict_proba(both[0])
    merged = sy.merge(*parts)
    same_bits(merged, expected, both[0])
    assert np.array_equal(parts[0].predict_proba(both[0]), before)
    same_bits(sy.merge(*parts[::-1]), expected, both[0])
    for k, clf in enumerate([*parts, merged]):
        clf.save(tmp_path / f"{k}.json")
    loaded = [sy.load(tmp_path / f"{k}.json") for k in range(3)]
    same_bits(sy.merge(*loaded[:2]), expected, both[0])
    same_bits(loaded[2], expected, both[0])
    more = rows(20, 2, ["Deal"])
    again = make(**settings).fit(pd.concat([both[0], more[0]]), np.r_[both[1], more[1]])
    same_bits(sy.merge(*parts, make(**settings).fit(*more)), again, both[0])
    if name == "NaiveBayes":
        same_bits(merged.partial_fit(*more), again, both[0])


@pytest.mark.parametrize("name", MERGED)
def test_columns_are_matched_by_name_and_classes_are_united(name):
    make = MERGED[name]
    north, south = rows(60, 0, ["Ayr"], [0, 2]), rows(50, 1, ["Bath"], [1, 2])
    turned = south[0][["size", "town", "kind"]]
    parts = [make(numeric=EDGES).fit(*north), make(numeric=EDGES).fit(turned, south[1])]
    both = pd.concat([north[0], south[0]]), np.r_[north[1], south[1]]
    expected = make(numeric=EDGES).fit(*both)
    same_bits(sy.merge(*parts), expected, both[0])
    assert sy.merge(*parts).classes_.tolist() == [0, 1, 2]


def test_densities_and_class_weights_are_merged_to_rounding():
    north, south, both = two_tables()
    for settings in (
        {"numeric": "gaussian"},
        {"numeric": EDGES, "class_weight": "balanced"},
        {"numeric": EDGES, "class_weight": {0: 2.0}},
    ):
        for name in ("NaiveBayes", "AODE"):
            if name == "AODE" and settings["numeric"] == "gaussian":
                continue
            parts = [MERGED[name](**settings).fit(*t) for t in (north, south)]
            expected = MERGED[name](**settings).fit(*both).predict_proba(both[0])
            found = sy.merge(*parts).predict_proba(both[0])
            np.testing.assert_allclose(found, expected, atol=1e-12)
    turned = south[0][["size", "town", "kind"]].assign(more=south[0]["size"] * 2)
    parts = [
        sy.NaiveBayes(numeric="gaussian").fit(table, y)
        for table, y in (
            (north[0].assign(more=north[0]["size"] * 2), north[1]),
            (turned[["more", "size", "town", "kind"]], south[1]),
        )
    ]
    moments = sy.merge(*parts).counts_.moments
    np.testing.assert_allclose(moments.mean[1], 2 * moments.mean[0])


def test_a_merged_model_has_ranges_of_numbers_and_what_is_predicted():
    north, south, _ = two_tables()
    parts = [
        sy.NaiveBayes(numeric=EDGES).fit(X, pd.Series(y, name="ill"))
        for X, y in (north, south)
    ]
    merged = sy.merge(*parts)
    ends = [clf.training_.ranges[2] for clf in (*parts, merged)]
    assert ends[2].low == min(ends[0].low, ends[1].low)
    assert ends[2].weight == ends[0].weight + ends[1].weight
    assert merged.target_name_ == "ill"
    assert merged.training_.row_hashes is None
    assert merged.check(north[0]) == []


def test_a_column_that_was_empty_in_one_table_is_what_the_other_has():
    north, south, _ = two_tables()
    empty = south[0].assign(kind=np.nan, size=np.nan)
    parts = [
        sy.NaiveBayes(numeric=EDGES).fit(north[0], north[1]),
        sy.NaiveBayes(numeric=EDGES).fit(empty, south[1]),
    ]
    both = pd.concat([north[0], empty]), np.r_[north[1], south[1]]
    expected = sy.NaiveBayes(numeric=EDGES).fit(*both)
    for models in (parts, parts[::-1]):
        found = sy.merge(*models).predict_proba(both[0])
        assert np.array_equal(found, expected.predict_proba(both[0]))


# ------------------------------------------------------------------------------ refused


@pytest.mark.parametrize("entry", sy.methods(), ids=lambda entry: entry.acronym)
def test_methods_that_are_not_counts_say_so(entry):
    clf = entry.create()
    if entry.class_name in KINDS:
        with pytest.raises(NotFittedError):
            sy.merge(clf, clf)
        return
    with pytest.raises(ParameterError, match=r"cannot be merged.*scan"):
        sy.merge(clf, clf)


def fitted(X, y=(0, 1, 1), **settings):
    return sy.NaiveBayes(**settings).fit(pd.DataFrame(X), list(y))


def ordered(order):
    return pd.Categorical(["x", "y", "y"], list(order), ordered=True)


@pytest.mark.parametrize(
    "models, error, message",
    [
        (lambda: [fitted({"a": [1, 2, 3]})], ParameterError, "two models or more"),
        (
            lambda: [fitted({"a": ["x", "y", "y"]}), fitted({"b": ["x", "y", "y"]})],
            ColumnError,
            "Only in one: 'a', 'b'",
        ),
        (
            lambda: [
                fitted({"a": ["x", "y", "y"]}),
                fitted({"a": ["x", "y", "y"], "b": ["x", "y", "y"]}),
            ],
            ColumnError,
            "tables of 1 and 2 columns",
        ),
        (
            lambda: [
                fitted({"a": ["x", "y", "y"]}),
                sy.NaiveBayes().fit([["x"], ["y"]], [0, 1]),
            ],
            ColumnError,
            "with names and columns without",
        ),
        (
            lambda: [
                fitted({"a": [1.0, 2, 3]}, numeric="equal-frequency"),
                fitted({"a": [3.0, 4, 9]}, numeric="equal-frequency"),
            ],
            ColumnError,
            "Column a is cut at other points.*FixedEdges",
        ),
        (
            lambda: [fitted({"a": [1.0, 2, 3]}), fitted({"a": ["x", "y", "y"]})],
            ColumnError,
            "holds numbers .* and text",
        ),
        (
            lambda: [
                fitted({"a": ["x", "y", "y"]}, missing="impute"),
                fitted({"a": ["x", "x", "y"]}, missing="impute"),
            ],
            ColumnError,
            "replaced by y in one model and by x",
        ),
        (
            lambda: [
                fitted({"a": ordered("xy")}),
                fitted({"a": ordered("yx")}),
            ],
            ColumnError,
            "in another order",
        ),
        (
            lambda: [
                fitted({"a": ["x", "y", "y"]}),
                fitted({"a": ["x", "y", "y"]}, smoothing=2.0),
            ],
            ParameterError,
            "`smoothing` is 'm-estimate' in one and 2.0",
        ),
        (
            lambda: [
                fitted({"a": ["x", "y", "y"]}),
                sy.GainRatioWeightedNB().fit([["x"], ["y"]], [0, 1]),
            ],
            ParameterError,
            "of one method can be merged",
        ),
        (
            lambda: [
                fitted({"a": ["x", "y", "y"]}),
                fitted({"a": ["x", "y", "y"]}, ["n", "y", "y"]),
            ],
            TableError,
            "classes are of different kinds",
        ),
        (
            lambda: (
                [
                    sy.GainRatioWeightedNB(numeric="gaussian").fit(
                        [[1.0], [2.0], [4.0]], [0, 1, 1]
                    )
                ]
                * 2
            ),
            ParameterError,
            "which partial_fit and merge do not have",
        ),
    ],
)
def test_models_that_do_not_fit_together_are_refused(models, error, message):
    with pytest.raises(error, match=message):
        sy.merge(*models())


def test_what_is_no_model_is_named():
    clf = sy.NaiveBayes().fit([["a"], ["b"]], [0, 1])
    with pytest.raises(ParameterError, match=r"models of steelyard\. Got int"):
        sy.merge(clf, 3)


def test_models_with_edits_are_not_merged_and_priors_are_kept(tmp_path):
    north, south, both = two_tables()
    a, b = (sy.NaiveBayes(numeric=EDGES).fit(*rows) for rows in (north, south))
    cut = a.edited({"column": "kind", "remove": True})
    cut.save(tmp_path / "cut.json")
    for parts in ((cut, b), (b, cut), (b, sy.load(tmp_path / "cut.json"))):
        with pytest.raises(ParameterError, match=r"edited by hand.*unedited\(\)"):
            sy.merge(*parts)
    again = sy.merge(cut.unedited(), b)
    same_bits(again, sy.merge(a, b), both[0])
    prior = [0.1, 0.2, 0.7]
    rare = sy.merge(cut.with_prior(prior).unedited(), b.with_prior(prior))
    assert np.allclose(np.exp(rare.class_log_prior_), prior)
    with pytest.raises(ParameterError, match="`prior`"):
        sy.merge(a.with_prior(prior), b)
