"""Encodings of columns: what adds up to one table, and to the counts of each."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from steelyard.fitting.recipe import encode_training
from steelyard.model.training import Encoding, Preparation
from steelyard.proba.encodings import Encodings, encoding_codes, finest_codes
from steelyard.proba.smoothing import EmpiricalBayes, Estimation
from steelyard.table.discretizers.unsupervised import FixedEdgesDiscretizer
from steelyard.table.schema import FeatureSchema, Side, TableSchema

pytestmark = pytest.mark.plain

COARSE, FINE = [0.5], [-1.0, 0.0, 0.5, 1.0]


def learned(numeric, missing="value"):
    """Return encoded rows of two numbers and a category, some cells missing."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, 300)
    X = np.c_[rng.normal(y, 1.0), rng.normal(size=300)].astype(object)
    X[rng.random(X.shape) < 0.1] = None
    X = np.c_[X, rng.choice(["x", "y"], 300)]
    encoding = Encoding(numeric=numeric, missing=missing)
    estimation = Estimation(EmpiricalBayes(), "smoothed", 1e-9)
    return encode_training(X, y, None, Preparation(encoding, estimation))


def cut(*edges):
    return tuple(FixedEdgesDiscretizer(own) for own in edges)


@pytest.mark.parametrize("missing", ["value", "skip", "impute"])
def test_counts_by_encoding_are_those_of_each_discretizer_alone(missing):
    both = learned(cut(COARSE, FINE), missing)
    of = Encodings.separate(both.schema)
    assert of.columns.tolist() == [0, 0, 1, 1, 2]
    assert of.is_first.tolist() == [True, False, True, False, True]
    assert of.is_coarser.tolist() == [True, False, True, False, False]
    counts, offsets = of.counts(both.count()), of.schema.offsets
    for k, edges in enumerate((COARSE, FINE)):
        alone = learned(FixedEdgesDiscretizer(edges), missing)
        for j in (0, 1):
            own = slice(*offsets[2 * j + k : 2 * j + k + 2])
            part = slice(*alone.schema.offsets[j : j + 2])
            assert_array_equal(counts.by_code[own], alone.count().by_code[part])
            feature, expected = of.schema.features[2 * j + k], alone.schema.features[j]
            assert (feature.edges, feature.fill) == (expected.edges, expected.fill)


def test_tables_of_encodings_add_up_by_the_code_of_the_column():
    schema = learned(cut(COARSE, FINE)).schema
    side = (0, 1, 1, 1, 2, 2, 3)
    schema = schema.with_interactions([(Side(0, side), Side(2, (0, 1, 2)))])
    of = Encodings.separate(schema)
    table = np.random.default_rng(0).normal(size=(of.schema.n_codes, 2))
    added, first = of.added(table), of.schema.offsets
    feature = schema.features[0]
    for code in range(feature.n_codes):
        rows = [
            first[k] + encoding_codes(feature, cuts)[code]
            for k, cuts in enumerate(feature.cuts)
        ]
        assert_allclose(added[code], table[rows].sum(axis=0))
    # Categories and interactions are as they are.
    assert_array_equal(added[schema.offsets[2] :], table[first[4] :])
    assert of.schema.features[-1].sides[0].feature == 1
    cells = schema.offsets[:-1] + np.array([[3, 0, 1, 0], [6, 2, 2, 5]])
    rows = of.table_rows(cells)
    assert_allclose(table[rows].sum(axis=1), added[cells].sum(axis=1))


def test_columns_of_one_discretizer_are_their_only_encoding():
    schema = learned("mdl").schema
    of = Encodings.separate(schema)
    assert of.is_joint
    assert of.schema is schema
    table = np.ones((schema.n_codes, 2))
    assert of.added(table) is table
    assert of.collected(table) is table


def test_the_finest_encoding_is_the_last_with_cut_points():
    feature = FeatureSchema("a", "binned", "numbers")
    assert finest_codes(feature.cut_at([FINE, COARSE])).tolist() == [0, 1, 1, 1, 2, 2]
    assert finest_codes(feature.cut_at([COARSE, []])).tolist() == [0, 1, 2]
    assert finest_codes(feature.cut_at([[], []])).tolist() == [0, 1]


def test_joint_encodings_ignore_that_there_were_several_discretizers():
    schema = TableSchema(learned(cut(COARSE, FINE)).schema.features)
    assert Encodings.joint(schema).columns.tolist() == [0, 1, 2]
