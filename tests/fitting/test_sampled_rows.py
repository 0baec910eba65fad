"""Rows drawn by their content: in any order of the table the same ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import steelyard as sy
from steelyard.fitting.default import sampling
from steelyard.fitting.default.sampling import (
    RowCounts,
    RowHash,
    expected_share,
    sample_rows,
    sketch_of,
)
from steelyard.fitting.recipe import encode_training
from steelyard.model.training import Encoding, Preparation
from steelyard.proba.smoothing import Estimation, Lidstone


def encoded(X, y, u=None):
    estimation = Estimation(Lidstone(1.0), "smoothed", 1e-9)
    encoding = Encoding(numeric="linear")
    return encode_training(X, y, u, Preparation(encoding, estimation))


def frame(n, n_distinct, seed=0):
    """Return rows of text and numbers, each of which occurs about as often."""
    rng = np.random.default_rng(seed)
    kinds = pd.DataFrame(
        {
            "a": rng.normal(size=n_distinct),
            "b": rng.choice(["x", "y", "z"], n_distinct).astype(object),
            "c": rng.integers(0, 40, n_distinct).astype(float),
        }
    )
    kinds.loc[::7, "c"] = np.nan
    label = (kinds["a"] + rng.normal(size=n_distinct) > 0).to_numpy().astype(int)
    kind = rng.integers(0, n_distinct, n)
    return kinds.iloc[kind].reset_index(drop=True), label[kind], kind


def drawn(X, y, most, u=None, seed=0):
    return sample_rows(encoded(X, y, u), most, np.random.RandomState(seed))


@pytest.mark.parametrize("n_distinct", [20, 300, 4000])
def test_the_same_content_is_drawn_in_any_order(n_distinct):
    X, y, kind = frame(3000, n_distinct)
    order = np.random.default_rng(1).permutation(3000)
    first = np.bincount(kind[drawn(X, y, 1000)], minlength=n_distinct)
    shuffled = drawn(X.iloc[order], y[order], 1000)
    assert_array_equal(first, np.bincount(kind[order][shuffled], minlength=n_distinct))
    assert first.sum() == 1000


def test_weights_are_part_of_the_content():
    X, y, kind = frame(2000, 100)
    u = np.random.default_rng(2).integers(1, 4, 2000) / 2.0
    order = np.random.default_rng(1).permutation(2000)
    first, second = drawn(X, y, 700, u), drawn(X.iloc[order], y[order], 700, u[order])
    seen = sorted(zip(kind[first], u[first], strict=True))
    assert seen == sorted(zip(kind[order][second], u[order][second], strict=True))


def test_repeated_rows_are_drawn_about_as_often_as_they_occur():
    X, y, kind = frame(8000, 20)
    share = np.bincount(kind[drawn(X, y, 2000)]) / np.bincount(kind)
    # A quarter of each, within five standard errors of 400 draws.
    assert_allclose(share, 0.25, atol=0.11)


def test_a_draw_is_of_different_rows_and_other_seeds_draw_others():
    X, y, _ = frame(3000, 3000)
    first, second = drawn(X, y, 1000), drawn(X, y, 1000, seed=1)
    assert len(set(first.tolist())) == 1000
    assert_array_equal(first, np.sort(first))
    assert 200 < len(np.intersect1d(first, second)) < 470  # a third by chance
    assert_array_equal(first, drawn(X, y, 1000))


def test_few_rows_are_all_drawn():
    X, y, _ = frame(100, 50)
    assert_array_equal(drawn(X, y, 100), np.arange(100))
    assert_array_equal(drawn(X, y, 101), np.arange(100))


def keys_of(training, seed=5):
    row_hash = RowHash.of(training.given_counts, np.uint64(seed))
    return row_hash.keys(training.codes, training.labels, training.sample_weight)


@pytest.mark.parametrize("n_distinct", [1, 20, 300, 4000])
def test_keys_that_are_not_counted_could_not_be_drawn(n_distinct, monkeypatch):
    X, y, _ = frame(4000, n_distinct)
    y[0], y[1] = 0, 1
    whole = drawn(X, y, 300)
    # A sketch so small that most of its counters hold several keys, and small pieces.
    monkeypatch.setattr(sampling, "_SKETCH_SIZE", 1 << 8)
    monkeypatch.setattr(sampling, "_MAX_COUNTED_ROWS", 0)
    monkeypatch.setattr("steelyard._common.threads.PIECE_ROWS", 512)
    assert_array_equal(drawn(X, y, 300), whole)


def test_one_row_that_is_everywhere_is_drawn_in_proportion():
    X, y, _ = frame(6000, 6000)
    common = np.random.default_rng(3).random(6000) < 0.5
    X[common], y[common] = X.iloc[0].to_numpy(), y[0]
    rows = drawn(X, y, 2000)
    assert len(rows) == len(set(rows.tolist())) == 2000
    assert abs(common[rows].mean() - common.mean()) < 0.05
    # They are spread over the table.
    places = np.flatnonzero(common[rows])
    assert abs(rows[places].mean() - 3000) < 50


def test_parts_drawn_on_their_own_add_up_to_the_draw_of_the_whole():
    X, y, _ = frame(5000, 1500)
    training = encoded(X, y)
    keys = keys_of(training)
    parts = np.split(keys, [800, 800, 3100])
    sketches = [sketch_of([part]) for part in parts]
    sketch = sketches[0] + (sketches[3] + sketches[2]) + sketches[1]
    share = expected_share(5000, 400)
    counts = [RowCounts.of([part], share, sketch) for part in parts]
    chosen = (counts[3] + counts[1] + (counts[0] + counts[2])).drawn(400)
    before, positions = np.zeros(len(chosen.keys), np.int64), []
    for first, part in zip([0, 800, 800, 3100], parts, strict=True):
        found, before = chosen.positions(part, before)
        positions.extend((first + found).tolist())
    every = RowCounts.of([keys], share)
    whole, _ = every.drawn(400).positions(keys, np.zeros(len(chosen.keys), np.int64))
    assert positions == whole.tolist()
    assert len(whole) == 400


def test_keys_do_not_depend_on_how_codes_are_stored():
    X = np.random.default_rng(0).integers(0, 9, (500, 4)).astype(np.uint8)
    y = X[:, 0] % 2
    estimation = Estimation(Lidstone(1.0), "smoothed", 1e-9)
    encoding = Encoding("all")
    bytes_as_they_are = encode_training(X, y, None, Preparation(encoding, estimation))
    wide = encode_training(
        pd.DataFrame(X.astype(np.int64)), y, None, Preparation(encoding, estimation)
    )
    assert bytes_as_they_are.codes.blocks[0].look_up is not None
    assert wide.codes.blocks[0].look_up is None
    assert_array_equal(keys_of(bytes_as_they_are), keys_of(wide))
    row_hash = RowHash.of(wide.given_counts, np.uint64(5))
    half = row_hash.keys(wide.codes.part(slice(100, 300)), wide.labels[100:300], None)
    assert_array_equal(half, keys_of(wide)[100:300])


@pytest.mark.parametrize("n_distinct", [400, 12_000])
def test_above_ten_thousand_rows_the_choice_does_not_depend_on_their_order(n_distinct):
    rng = np.random.default_rng(0)
    kinds = rng.integers(0, 6, (n_distinct, 3))
    # Fewer numbers than bins: rows that share all bins are drawn by where they stand.
    kinds[:, 2] = rng.permutation(n_distinct) % 47
    X = kinds[np.arange(12_000) % n_distinct]
    flip = rng.random(12_000) < 0.2
    y = ((X[:, 0] > 2) ^ (X[:, 1] > 2) ^ flip).astype(int)
    settings = {
        "categorical_features": [0, 1],
        "grid": [(2.5, 10.0, 2.5), (0.5, 2.5, 0.5)],
        "cv": 3,
        "resolutions": 2,
        "tol": 1e-10,
    }
    order = rng.permutation(12_000)
    clf = sy.ShrinkageNB(**settings).fit(X, y)
    other = sy.ShrinkageNB(**settings).fit(X[order], y[order])
    assert [r["columns"] for r in clf.interactions_] == [
        r["columns"] for r in other.interactions_
    ]
    assert clf.interactions_[0]["columns"] == [0, 1]
    assert clf.strength_ == other.strength_
    assert_allclose(clf.scale_, other.scale_, rtol=1e-6)
    for one, two in zip(clf.strength_path_, other.strength_path_, strict=True):
        assert_allclose(list(one.values()), list(two.values()), rtol=1e-6)
    assert_allclose(clf.predict_proba(X[:200]), other.predict_proba(X[:200]), atol=5e-5)
