"""Interactions: attributes whose codes are joined of the codes of two others."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import steelyard as sy
from steelyard.exceptions import ParameterError
from steelyard.fitting.recipe import encode_training
from steelyard.model.table_model import NBModel
from steelyard.model.training import Encoding, Preparation
from steelyard.persistence.content import content_of, estimator_from
from steelyard.persistence.reader import InvalidContentError
from steelyard.proba.counts import count
from steelyard.proba.smoothing import Estimation, MEstimate
from steelyard.table.encoder import TableEncoder
from steelyard.table.frames import as_table
from steelyard.table.packing import pack_codes
from steelyard.table.schema import FeatureSchema, Side, TableSchema

pytestmark = pytest.mark.plain


def a_table(n=300, seed=0):
    """Return text, numbers and a density, with missing cells."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "colour": rng.choice(["blue", "green", "red"], n).astype(object),
            "size": np.round(rng.normal(size=n), 2),
            "mass": rng.normal(size=n),
        }
    )
    frame.loc[rng.random(n) < 0.1, "colour"] = None
    frame.loc[rng.random(n) < 0.1, "size"] = np.nan
    return frame, np.where(rng.random(n) < 0.5, "no", "yes")


def identity(schema, j):
    return Side(j, tuple(range(schema.features[j].n_codes)))


def the_interactions(schema):
    """Return colours by three bins of size out of four, and the same undone."""
    merged = Side(1, (0, 1, 1, 2, 3))
    return [(identity(schema, 0), merged), (merged, Side(0, (0, 1, 2, 2)))]


def fitted_encoder(frame):
    encoder = TableEncoder(
        numeric={"size": sy.FixedEdgesDiscretizer([-1.0, 0.0, 1.0]), "mass": "gaussian"}
    )
    encoder.fit(frame)
    encoder.schema_ = encoder.schema_.with_interactions(
        the_interactions(encoder.schema_)
    )
    return encoder


def interaction_model(frame, y):
    """Return a classifier that is a sum over columns and interactions, by hand."""
    clf = sy.NaiveBayes(
        numeric={"size": sy.FixedEdgesDiscretizer([-1.0, 0.0, 1.0]), "mass": "gaussian"}
    ).fit(frame, y)
    clf.encoder_.schema_ = clf.model_.schema.with_interactions(
        the_interactions(clf.model_.schema)
    )
    codes = clf.encoder_.encode(as_table(frame))
    labels = np.searchsorted(clf.classes_, y).astype(np.uint32)
    clf.counts_ = count(codes, labels, None, 2)
    table = np.random.default_rng(1).normal(size=(codes.schema.n_codes, 2))
    table[: len(clf.model_.table)] = clf.model_.table
    clf.model_ = NBModel(
        codes.schema, clf.classes_, clf.model_.log_prior, table, clf.model_.gaussian
    )
    return clf


# ------------------------------------------------------------------------- the schema


def test_interactions_follow_the_columns():
    frame, _ = a_table()
    schema = fitted_encoder(frame).schema_
    assert schema.n_columns == 3
    assert schema.names == ["colour", "size", "mass"]
    assert schema.labels() == [
        *("colour", "size", "mass", "colour × size", "size × colour")
    ]
    assert schema.is_interaction.tolist() == [False, False, False, True, True]
    assert (
        schema.without_interactions.with_interactions(the_interactions(schema))
        == schema
    )
    again = schema.without_interactions.with_interactions(
        [the_interactions(schema)[0]] * 2
    )
    assert again.labels()[3:] == ["colour × size", "colour × size (2)"]


def test_the_codes_of_a_interaction_are_counted_and_its_sides_known():
    frame, _ = a_table()
    interaction = fitted_encoder(frame).schema_.features[3]
    assert (interaction.n_codes, interaction.n_values) == (16, 15)
    known = interaction.both_known.reshape(4, 4)
    assert known[1:, 1:].all()
    assert not known[0].any()
    assert not known[:, 0].any()


def test_a_side_needs_a_group_for_each_code():
    schema = TableSchema((FeatureSchema("a", "categorical", "text", ("x", "y")),))
    with pytest.raises(ValueError, match="group for each code"):
        schema.with_interactions([(Side(0, (0, 1)), Side(0, (0, 1, 2)))])


@pytest.mark.parametrize(
    ("j", "code", "text"),
    [
        (0, 2, "green"),
        (3, 0, "(unknown) & (unknown)"),
        (3, 2 * 4 + 1, "green & ≤ 0"),
        (3, 3 * 4 + 2, "red & (0, 1]"),
        (3, 3 * 4 + 3, "red & > 1"),
        (4, 1 * 3 + 2, "≤ 0 & green or red"),
        (4, 2 * 3 + 0, "(0, 1] & (unknown)"),
    ],
)
def test_codes_are_named_by_both_sides(j, code, text):
    frame, _ = a_table()
    assert fitted_encoder(frame).schema_.describe(j, code) == text


def test_many_merged_values_are_counted_and_separate_bins_are_listed():
    letters = FeatureSchema("a", "categorical", "text", tuple("abcdef"))
    assert letters.describe_merged([1, 2, 3]) == "a or b or c"
    assert letters.describe_merged([1, 2, 3, 6]) == "4 other values"
    bins = FeatureSchema("b", "binned", "numbers", edges=(1.0, 2.0, 3.0))
    assert bins.describe_merged([2, 3]) == "(1, 3]"
    assert bins.describe_merged([1, 3]) == "≤ 1 or (2, 3]"
    assert bins.describe_merged([1, 2, 3, 4]) == "(any)"


# -------------------------------------------------------------------------- the codes


def joint(schema, codes, j):
    """Join codes one row at a time."""
    a, b = schema.features[j].sides
    return [
        a.groups[x] * (max(b.groups) + 1) + b.groups[z]
        for x, z in zip(codes.column(a.feature), codes.column(b.feature), strict=True)
    ]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_joint_codes_are_those_of_the_sides(n_jobs):
    frame, _ = a_table(40_000)
    encoder = fitted_encoder(frame).set_params(n_jobs=n_jobs)
    codes = encoder.encode(as_table(frame))
    assert codes.schema is encoder.schema_
    for j in (3, 4):
        assert_array_equal(codes.column(j), joint(codes.schema, codes, j))
        assert codes.column(j).dtype == np.uint8
    rows = np.array([5, 2, 39_999])
    assert_array_equal(codes.take(rows).column(3), codes.column(3)[rows])
    assert encoder.transform(frame).shape == (40_000, 5)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int64, bool])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_matrix_of_bytes_has_interactions_too(dtype, order):
    rng = np.random.default_rng(3)
    X = np.asarray(rng.integers(0, 2, (200, 3)) * 7, dtype=dtype, order=order)
    encoder = TableEncoder(categorical_features="all").fit(X)
    schema = encoder.schema_
    encoder.schema_ = schema.with_interactions(
        [(identity(schema, 2), identity(schema, 0))]
    )
    codes = encoder.encode(as_table(X))
    assert codes.blocks[0].look_up is not None
    assert_array_equal(codes.column(3), joint(codes.schema, codes, 3))
    counts = count(codes, rng.integers(0, 2, 200).astype(np.uint32), None, 2)
    expected = np.bincount(joint(codes.schema, codes, 3), minlength=9)
    assert_array_equal(counts.by_code[codes.schema.offsets[3] :].sum(axis=1), expected)


def test_joint_codes_are_as_wide_as_they_need_to_be():
    rng = np.random.default_rng(4)
    X = pd.DataFrame(
        {
            "many": rng.integers(0, 300, 3000).astype(str),
            "some": rng.integers(0, 30, 3000).astype(str),
            "few": rng.integers(0, 5, 3000).astype(str),
        }
    )
    encoder = TableEncoder().fit(X)
    sides = [identity(encoder.schema_, j) for j in range(3)]
    interactions = [(sides[0], sides[0]), (sides[1], sides[2]), (sides[0], sides[1])]
    encoder.schema_ = encoder.schema_.with_interactions(interactions)
    codes = encoder.encode(as_table(X))
    types = [codes.column(j).dtype for j in (3, 4, 5)]
    assert types == [np.uint32, np.uint8, np.uint16]
    for j in (3, 4, 5):
        assert_array_equal(codes.column(j), joint(codes.schema, codes, j))


def test_packing_keeps_the_sums_of_interactions():
    frame, _ = a_table()
    codes = fitted_encoder(frame).encode(as_table(frame))
    packing, packed = pack_codes(codes, np.ones(5, dtype=bool))
    table = np.random.default_rng(0).normal(size=(codes.schema.n_codes, 2))
    joined = packing.expand(table)[packing.starts[None, :] + packed]
    plain = [table[codes.offsets[j] + codes.column(j)] for j in (0, 1, 3, 4)]
    assert_allclose(joined.sum(axis=1), np.sum(plain, axis=0))


# -------------------------------------------------------------------------- the model


def test_a_model_with_interactions_predicts_the_sum_of_its_rows():
    frame, y = a_table()
    clf = interaction_model(frame, y)
    schema, model = clf.model_.schema, clf.model_
    codes = clf.encoder_.encode(as_table(frame))
    plain = sy.NaiveBayes(**clf.get_params()).fit(frame, y)
    scores = plain.predict_joint_log_proba(frame)
    for j in (3, 4):
        scores = scores + model.table[schema.offsets[j] + codes.column(j)]
    expected = np.exp(scores - scores.max(axis=1, keepdims=True))
    expected /= expected.sum(axis=1, keepdims=True)
    assert_allclose(clf.predict_proba(frame), expected, rtol=1e-10)
    assert_array_equal(clf.predict(frame), clf.classes_[expected.argmax(axis=1)])


def test_a_model_with_interactions_comes_back_from_its_file(tmp_path):
    frame, y = a_table()
    clf = interaction_model(frame, y)
    clf.save(tmp_path / "model.json")
    back = sy.load(tmp_path / "model.json")
    assert back.model_.schema == clf.model_.schema
    assert back.n_features_in_ == 3
    assert back.feature_names_in_.tolist() == ["colour", "size", "mass"]
    assert_array_equal(back.predict_proba(frame), clf.predict_proba(frame))
    assert_array_equal(back.counts_.by_code, clf.counts_.by_code)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"sides": []}, "must be interaction for two sides"),
        ({"kind": "categorical"}, "must be interaction for two sides"),
        ({"name": "ab"}, "does not fit an interaction"),
        ({"cells": "text"}, "does not fit an interaction"),
        ({"cells": "numbers"}, "does not fit an interaction"),
        ({"missing_is_value": True}, "does not fit an interaction"),
        ({"side": {"feature": 2}}, "attributes with codes"),
        ({"side": {"feature": 4}}, "attributes with codes"),
        ({"side": {"groups": [0, 1, 2]}}, "group for each code"),
        ({"side": {"groups": [1, 0, 2, 3]}}, "code 0 first"),
        ({"side": {"groups": [0, 1, 3, 3]}}, "numbered from 0"),
        ({"side": {"groups": []}}, "numbered from 0"),
        ({"side": {"groups": [0, 1, 2, 9]}}, "whole numbers from 0 to 3"),
        ({"side": {"more": 1}}, "unknown key"),
    ],
)
def test_a_file_with_a_interaction_that_cannot_be_is_refused(change, complaint):
    frame, y = a_table()
    content = json.loads(json.dumps(content_of(interaction_model(frame, y))))
    interaction = content["features"][3]
    interaction["sides"][0].update(change.pop("side", {}))
    interaction.update(change)
    with pytest.raises(InvalidContentError, match=complaint):
        estimator_from(content)


def test_a_file_with_a_interaction_before_a_column_is_refused():
    frame, y = a_table()
    content = content_of(interaction_model(frame, y))
    content["features"].insert(2, content["features"].pop())
    with pytest.raises(InvalidContentError, match="interactions last"):
        estimator_from(content)


def test_rows_with_interactions_are_a_training_set_as_any_other():
    frame, y = a_table()
    estimation = Estimation(MEstimate(), "smoothed", 1e-9)
    encoding = Encoding(numeric={"mass": "gaussian"})
    training = encode_training(frame, y, None, Preparation(encoding, estimation))
    interaction = identity(training.schema, 0), identity(training.schema, 1)
    paired = training.with_interactions([interaction])
    assert training.encoder.schema_ is training.schema
    assert paired.encoder.schema_ is paired.schema
    model = paired.estimate(paired.count())
    assert_array_equal(
        paired.count().by_code[: training.schema.n_codes], training.count().by_code
    )
    again = paired.encoder.encode(as_table(frame))
    assert_array_equal(model.proba(paired.codes), model.proba(again))


# ------------------------------------------------------------------- the explanations


def test_explanations_show_a_interaction_as_a_column():
    frame, y = a_table()
    clf = interaction_model(frame, y)
    why = clf.explain_local(frame[:20])
    assert why.attributes[3:] == ["colour × size", "size × colour"]
    assert why.contributions.shape == (20, 5, 2)
    assert_allclose(why.scores, clf.predict_joint_log_proba(frame[:20]))
    codes = clf.encoder_.encode(as_table(frame[:20]))
    schema = clf.model_.schema
    for i in range(20):
        expected = schema.describe(3, int(codes.column(3)[i]))
        assert why.values[i][3] == expected
    unknown = frame[:20][["colour", "size"]].isna().any(axis=1)
    assert_array_equal(why.missing[:, 3], unknown)
    assert len(why.evidence(0).items) == 5
    whole = clf.explain_global()
    assert whole.table("colour × size").labels[5] == "blue & ≤ 0"
    assert whole.importance.shape == (5,)
    assert clf.explain_global(frame).importance.shape == (5,)
    assert "colour × size" in repr(whole)


def test_what_would_have_to_change_is_a_column_and_interactions_follow_it():
    frame, y = a_table()
    clf = interaction_model(frame, y)
    why = clf.explain_local(frame[:10])
    for i in range(10):
        found = why.counterfactual(i)
        changed = frame[i : i + 1].copy()
        for change in found.changes:
            assert change.attribute in ("colour", "size", "mass")
            if change.attribute == "colour":
                changed["colour"] = change.after
            elif change.attribute == "mass":
                changed["mass"] = float(change.after)
            else:
                middle = {"≤ -1": -2.0, "(-1, 0]": -0.5, "(0, 1]": 0.5, "> 1": 2.0}
                changed["size"] = middle[change.after]
        assert_allclose(clf.predict_proba(changed)[0], found.after, rtol=1e-3)
    with pytest.raises(ParameterError, match="are not columns"):
        why.counterfactual(0, fixed=["colour × size"])
