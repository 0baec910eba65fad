"""Chunks add up to the model of one fit, for every method that offers partial_fit."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import steelyard as sy
from steelyard.exceptions import ParameterError

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")

FRAMES = {
    "pandas": lambda frame: frame,
    "categories": lambda frame: frame.astype({"town": "category"}),
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "dictionaries": lambda frame: pa.Table.from_pandas(
        frame.astype({"town": "category", "kind": "category"}), preserve_index=False
    ),
    "polars": pl.from_pandas,
}
METHODS_IN_CHUNKS = {
    "NaiveBayes": sy.NaiveBayes,
    "GainRatioWeightedNB": sy.GainRatioWeightedNB,
    "AUCWeightedNB": sy.AUCWeightedNB,
    "OneDependenceNB": sy.OneDependenceNB,
    "WAODE": lambda **given: sy.OneDependenceNB(
        parent_weights="information", min_rows=3, **given
    ),
}
EDGES = sy.FixedEdgesDiscretizer([0.0, 1.0])


def rows(n, seed):
    """Categories that come late, missing cells, and a number with fixed edges."""
    rng = np.random.default_rng(seed)
    known = np.minimum(np.arange(n) // 7 + 2, 9)
    town = np.array([f"town {v}" for v in rng.integers(known)], dtype=object)
    town[rng.random(n) < 0.1] = None
    kind = np.array(["a", "b", "c"], dtype=object)[rng.integers(3, size=n)]
    frame = pd.DataFrame(
        {
            "town": town,
            "kind": kind,
            "floor": rng.integers(known * 2).astype(np.int32),
            "size": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
        }
    )
    return frame, rng.integers(3, size=n), rng.integers(4, size=n).astype(float)


def settings_of(missing="skip", class_weight=None):
    return {
        "categorical_features": ["town", "kind", "floor"],
        "numeric": EDGES,
        "missing": missing,
        "class_weight": class_weight,
    }


def in_chunks(clf, frame, y, weights, cuts, as_frame, between=lambda clf: clf):
    bounds = sorted({0, *cuts, len(frame)})
    for lo, hi in itertools.pairwise(bounds):
        u = None if weights is None else weights[lo:hi]
        if u is not None and not u.any():
            u = u + 1.0  # a chunk without any weight is refused
            weights[lo:hi] = u
        clf.partial_fit(as_frame(frame[lo:hi]), y[lo:hi], [0, 1, 2], u)
        clf = between(clf)
    return clf


@pytest.mark.parametrize("kind", FRAMES)
@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 999),
    cuts=st.lists(st.integers(1, 89), max_size=5),
    missing=st.sampled_from(["skip", "value"]),
    weighted=st.booleans(),
)
def test_counts_of_any_chunks_of_any_frame_are_those_of_one_fit(
    kind, seed, cuts, missing, weighted
):
    frame, y, weights = rows(90, seed)
    weights = weights if weighted else None
    given_settings = settings_of(missing)
    as_frame = FRAMES[kind]
    clf = sy.NaiveBayes(**given_settings)
    parts = in_chunks(clf, frame, y, weights, cuts, as_frame)
    whole = sy.NaiveBayes(**given_settings).fit(frame, y, weights)
    # Where the first chunks have no missing cell, or number, the schema says so.
    assert parts.counts_.schema.features == whole.counts_.schema.features
    assert_array_equal(parts.counts_.by_code, whole.counts_.by_code)
    assert_array_equal(parts.counts_.by_class, whole.counts_.by_class)
    assert_array_equal(parts.model_.table, whole.model_.table)


@pytest.mark.parametrize("missing", ["skip", "value"])
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 2.0, 2: 0.5}])
@pytest.mark.parametrize("name", METHODS_IN_CHUNKS)
def test_chunks_give_the_model_of_one_fit(name, class_weight, missing, tmp_path):
    frame, y, weights = rows(90, 7)
    given_settings = settings_of(missing, class_weight)
    path = tmp_path / "model.json"

    def through_a_file(clf):
        clf.save(path)
        return sy.load(path)

    clf = METHODS_IN_CHUNKS[name](**given_settings)
    parts = in_chunks(
        clf, frame, y, weights, [11, 12, 50], FRAMES["pandas"], through_a_file
    )
    whole = METHODS_IN_CHUNKS[name](**given_settings).fit(frame, y, weights)
    found, expected = parts.predict_proba(frame), whole.predict_proba(frame)
    if class_weight is None:
        assert found.tobytes() == expected.tobytes()
    assert_allclose(found, expected, rtol=1e-12)
    assert_allclose(parts.class_count_, whole.class_count_, rtol=1e-14)
    for attribute in ("attribute_weights_", "parent_weights_"):
        if hasattr(whole, attribute):
            assert_allclose(
                getattr(parts, attribute), getattr(whole, attribute), rtol=1e-12
            )


@pytest.mark.parametrize("name", METHODS_IN_CHUNKS)
def test_chunks_go_on_after_a_fit(name):
    frame, y, _ = rows(90, 3)
    clf = METHODS_IN_CHUNKS[name](**settings_of()).fit(frame[:60], y[:60])
    clf.partial_fit(frame[60:], y[60:])
    whole = METHODS_IN_CHUNKS[name](**settings_of()).fit(frame, y)
    assert clf.predict_proba(frame).tobytes() == whole.predict_proba(frame).tobytes()


def test_densities_of_chunks_are_those_of_one_fit_to_rounding():
    frame, y, weights = rows(90, 5)
    frame, numeric = frame[["size", "floor"]], "gaussian"
    clf = sy.NaiveBayes(numeric=numeric)
    parts = in_chunks(clf, frame, y, weights, [20, 41], FRAMES["polars"])
    whole = sy.NaiveBayes(numeric=numeric).fit(frame, y, weights)
    assert_allclose(parts.predict_proba(frame), whole.predict_proba(frame), rtol=1e-10)


@pytest.mark.parametrize("name", ["GainRatioWeightedNB", "AUCWeightedNB"])
@pytest.mark.parametrize(
    "changed, words",
    [
        ({"instances": "value-frequency"}, "looks at all rows at once"),
        ({"numeric": "gaussian"}, "rows of numbers that have a density"),
    ],
)
def test_filters_refuse_chunks_where_counts_are_not_enough(name, changed, words):
    frame, y, _ = rows(90, 5)
    clf = METHODS_IN_CHUNKS[name](**{**settings_of(), **changed})
    with pytest.raises(ParameterError, match=words):
        clf.partial_fit(frame, y, [0, 1, 2])
    assert not hasattr(clf, "counts_")


def test_methods_of_counts_and_the_default_offer_chunks():
    offered = {
        method.acronym
        for method in sy.methods()
        if hasattr(getattr(sy, method.class_name), "partial_fit")
    }
    assert {"NB", "GNB", "GRAWNB", "AUCNB", "AODE", "WAODE", "SHNB"} <= offered
    assert not {"WANBIA-CLL", "CFW", "DFWNB", "TAN"} & offered
