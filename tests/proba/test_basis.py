"""The basis of effects at several length scales: groups, covariances and counts."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import steelyard as sy
from steelyard.fitting.recipe import encode_training
from steelyard.model.training import Encoding, Preparation
from steelyard.proba.basis import (
    FINEST,
    EffectBasis,
    bins_of_resolutions,
    closeness,
)
from steelyard.proba.encodings import Encodings
from steelyard.proba.smoothing import EmpiricalBayes, Estimation, Lidstone
from steelyard.table.discretizers.unsupervised import EqualFrequencyDiscretizer
from steelyard.table.schema import FeatureSchema, Side, TableSchema

N_BINS = (4, 6, 10)

pytestmark = pytest.mark.plain


def binned(n_bins, missing_is_value=False):
    edges = tuple(float(v) for v in range(n_bins - 1))
    return FeatureSchema(
        "a", "binned", "numbers", edges=edges, missing_is_value=missing_is_value
    )


def a_schema():
    """Return sixty bins, categories, a density, seven bins with missing cells."""
    return TableSchema(
        (
            binned(60),
            FeatureSchema("b", "categorical", "text", ("x", "y", "z")),
            FeatureSchema("c", "gaussian", "numbers"),
            binned(7, missing_is_value=True),
        )
    )


def with_a_interaction(schema):
    """Append an interaction of twelve groups of sixty bins and the three categories."""
    groups = (0, *(1 + np.arange(60) // 5).tolist())
    return schema.with_interactions([(Side(0, groups), Side(1, (0, 1, 2, 3)))])


def groups_of(basis, column):
    """Return the groups of the codes of a column at each length scale."""
    scales = basis.length_scales
    pairs = zip(scales.columns, scales.codes, strict=True)
    return [groups for j, groups in pairs if j == column]


def test_numbers_of_bins_grow_from_four_to_twenty():
    assert bins_of_resolutions(1) == ()
    assert bins_of_resolutions(2) == (4, 20)
    for n in range(2, 12):
        found = bins_of_resolutions(n)
        assert len(found) == n
        assert found[0] == 4
        assert found[-1] == 20
        assert list(found) == sorted(found)


def test_groups_are_neighbours_of_about_equal_size():
    of_first = groups_of(EffectBasis(Encodings.joint(a_schema()), N_BINS), 0)
    assert [groups.max() for groups in of_first] == list(N_BINS)
    for groups, number in zip(of_first, N_BINS, strict=True):
        assert groups[0] == 0
        assert set(np.diff(groups[1:])) == {0, 1}
        sizes = np.bincount(groups)[1:]
        assert sizes.max() - sizes.min() <= 1
        assert sizes.sum() == 60
        assert len(sizes) == number


def test_categories_are_never_merged_and_densities_have_no_groups():
    basis = EffectBasis(Encodings.joint(a_schema()), N_BINS)
    assert_array_equal(*groups_of(basis, 1), [0, 1, 2, 3])
    assert not groups_of(basis, 2)


def test_fewer_bins_than_a_resolution_are_seen_once_as_they_are():
    basis = EffectBasis(Encodings.joint(a_schema()), N_BINS)
    found = groups_of(basis, 3)
    # Four, six and all seven bins; the cell that is missing is a group of its own.
    assert [groups.max() for groups in found] == [5, 7, 8]
    for groups in found:
        assert (groups == groups[-1]).sum() == 1


def test_without_resolutions_every_code_is_its_own_group():
    basis = EffectBasis(Encodings.joint(a_schema()))
    assert basis.length_scales.columns.tolist() == [0, 1, 3]
    for groups in basis.length_scales.codes:
        assert_array_equal(groups, np.arange(len(groups)))
    dense = basis.matrix.toarray()
    assert_array_equal(dense[a_schema().first_codes], 0.0)
    assert_array_equal(dense @ dense.T, np.diag(np.diag(dense @ dense.T)))
    assert dense.sum() == dense.shape[1] == 60 + 3 + 8


def wanted_covariance(basis):
    """Return ones for each code and, of an interaction, the products of its sides."""
    schema = basis.schema
    out = np.diag(
        np.where(np.isin(np.arange(schema.n_codes), schema.first_codes), 0, 1.0)
    )
    interaction = slice(schema.offsets[4], schema.offsets[5])
    number = np.eye(13)
    if basis.n_bins:
        number[1:, 1:] = closeness(12, (3, 6, 12))
    number[0, 0] = 0.0
    out[interaction, interaction] = np.kron(number, np.diag([0.0, 1.0, 1.0, 1.0]))
    return out


@pytest.mark.parametrize("n_bins", [(), N_BINS, bins_of_resolutions(8)])
def test_effects_of_variance_one_give_each_code_that_variance(n_bins):
    basis = EffectBasis(Encodings.joint(with_a_interaction(a_schema())), n_bins)
    covariance = (basis.matrix @ basis.matrix.T).toarray()
    wanted = wanted_covariance(basis)
    known = np.diag(wanted) > 0
    assert_allclose(np.diag(wanted)[known], 1.0)
    assert_array_equal(np.diag(covariance)[~known], 0.0)
    # A basis may leave out a twentieth of the variance of the bins of a column.
    assert (np.diag(covariance) <= 1.0 + 1e-9).all()
    offsets = basis.schema.offsets
    for low, high in pairwise(offsets):
        part = slice(low, high)
        left = np.trace(wanted[part, part]) - np.trace(covariance[part, part])
        assert left <= 0.05 * np.trace(wanted[part, part]) + 1e-9
    if not n_bins:
        assert_allclose(covariance, wanted, atol=1e-12)


def test_cells_of_interactions_are_smooth_along_numbers_alone():
    basis = EffectBasis(Encodings.joint(with_a_interaction(a_schema())), N_BINS)
    interaction = slice(*basis.schema.offsets[4:6])
    covariance = (basis.matrix @ basis.matrix.T).toarray()[interaction, interaction]
    wanted = wanted_covariance(basis)[interaction, interaction]
    assert_allclose(covariance, wanted, atol=0.15)
    by_side = covariance.reshape(13, 4, 13, 4)
    assert_array_equal(by_side[:, 1, :, 2], 0.0)
    # The nearer two bins are, the more they are alike.
    assert (np.diff(by_side[1, 1, 1:6, 1]) < 0.0).all()


def test_effects_belong_to_their_attributes():
    basis = EffectBasis(Encodings.joint(with_a_interaction(a_schema())), N_BINS)
    dense, schema = basis.matrix.toarray(), basis.schema
    assert dense.shape == (schema.n_codes, len(basis.owners))
    for effect, j in enumerate(basis.owners):
        touched = np.flatnonzero(dense[:, effect])
        assert (touched > schema.offsets[j]).all()
        assert (touched < schema.offsets[j + 1]).all()


def test_interactions_with_an_unknown_side_have_no_effect():
    schema = with_a_interaction(a_schema())
    basis = EffectBasis(Encodings.joint(schema), N_BINS)
    assert 4 not in basis.length_scales.columns
    rows = schema.offsets[4] + np.flatnonzero(~schema.features[-1].both_known)
    assert basis.matrix[rows].nnz == 0


@pytest.fixture
def training():
    """Return rows of two numbers, cut finely, and text, with missing cells."""
    rng = np.random.default_rng(5)
    y = rng.integers(0, 3, 400)
    X = np.c_[rng.normal(y, 1.0), rng.normal(size=400)].astype(object)
    X[rng.random(X.shape) < 0.1] = None
    X = np.c_[X, rng.choice(["x", "y", "z"], 400)]
    numeric = EqualFrequencyDiscretizer(FINEST)
    encoding = Encoding(numeric={0: numeric, 1: numeric})
    estimation = Estimation(EmpiricalBayes(), "smoothed", 1e-9, n_bins=N_BINS)
    u = rng.random(400)
    return encode_training(X, y, u, Preparation(encoding, estimation))


def test_counts_of_groups_add_up_to_those_of_bins(training):
    counts = training.count()
    scales = EffectBasis(Encodings.joint(training.schema), N_BINS).length_scales
    merged, by_group = scales.schema, scales.counts(counts).by_code
    total = counts.by_code[training.schema.offsets[0] : training.schema.offsets[1]]
    for j in range(3):
        part = slice(merged.offsets[j], merged.offsets[j + 1])
        assert_allclose(by_group[part].sum(axis=0), total.sum(axis=0))
        assert_allclose(by_group[part][0], total[0])
    assert [f.n_values for f in merged.features[:3]] == list(N_BINS)


@pytest.mark.parametrize("smoothing", [EmpiricalBayes(), Lidstone(1.0)])
def test_evidence_is_a_smooth_mean_over_tables_of_one_resolution(smoothing, training):
    counts, schema = training.count(), training.schema
    estimation = Estimation(smoothing, "smoothed", 1e-9, n_bins=N_BINS)
    found = estimation.tables(counts)[1].values
    for j in range(2):
        low = schema.offsets[j]
        edges = np.array(schema.features[j].edges)
        means = np.zeros((schema.features[j].n_codes, 3))
        for number in N_BINS:
            n_fine = len(edges) + 1
            group = np.arange(n_fine) * number // n_fine
            coarse = edges[np.flatnonzero(np.diff(group))]
            own = training.table.columns[j].numbers()[:, None]
            cut = sy.FixedEdgesDiscretizer(coarse)
            plain = sy.NaiveBayes(numeric=cut, smoothing=smoothing)
            plain.fit(own, training.labels, sample_weight=training.sample_weight)
            table = plain.model_.table
            means[1:] += table[1 + group] / len(N_BINS)
        near = closeness(n_fine, N_BINS, 0.5)
        means[1 : n_fine + 1] = (
            near / near.sum(axis=1, keepdims=True) @ means[1 : n_fine + 1]
        )
        assert_allclose(found[low : schema.offsets[j + 1]], means, atol=1e-12)
    # A category has the probabilities of a fit without length scales.
    alone = smoothing.log_prob(counts).values[schema.offsets[2] :]
    assert_allclose(found[schema.offsets[2] :], alone, atol=1e-12)
