"""Counts become probabilities by the published formulas, here in plain Python."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from steelyard.exceptions import ParameterError
from steelyard.proba import (
    Lidstone,
    MEstimate,
    Smoothing,
    estimate_gaussian,
    estimate_prior,
    resolve_smoothing,
)
from steelyard.proba.counts import Counts, Moments
from steelyard.proba.gaussian import GaussianTable
from steelyard.table.schema import FeatureSchema, TableSchema

pytestmark = pytest.mark.plain

SMOOTHINGS = [
    MEstimate(),
    MEstimate(0.3),
    Lidstone(),
    Lidstone(0.01),
    Lidstone(None),
    MEstimate(1e-300),
    Lidstone(5e-324),
]


def schema_of(sizes):
    """Return categorical attributes with these numbers of values."""
    return TableSchema(
        tuple(
            FeatureSchema(None, "categorical", "numbers", values=tuple(range(size)))
            for size in sizes
        )
    )


@st.composite
def random_counts(draw):
    """Counts of a table with missing cells, some classes and values without a row."""
    sizes = draw(st.lists(st.integers(0, 5), min_size=1, max_size=5))
    n_classes = draw(st.integers(2, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    schema = schema_of(sizes)
    by_code = rng.integers(0, 4, (schema.n_codes, n_classes)).astype(np.float64)
    if draw(st.booleans()):
        by_code *= rng.exponential(size=n_classes)
    by_class = rng.integers(0, 9, n_classes) + 0.5 * draw(st.booleans())
    by_class[0] += 1
    return Counts(schema, by_class, by_code, Moments.zeros(0, n_classes))


def constants(smoothing, counts):
    """What is added to classes, and to the values of each attribute (METHODS 1.2)."""
    q, total = counts.n_classes, counts.total
    if isinstance(smoothing, MEstimate):
        m = smoothing.m
        return m / q, [m / n if n else m for n in counts.schema.n_values.tolist()]
    f = 1 / total if smoothing.f is None else smoothing.f
    return f, [f] * len(counts.schema)


@pytest.mark.parametrize("smoothing", SMOOTHINGS, ids=repr)
@given(random_counts())
@settings(max_examples=25, deadline=None)
def test_probabilities_follow_the_published_formulas(smoothing, counts):
    added, by_value = constants(smoothing, counts)
    q = counts.n_classes
    prior = [(n + added) / (counts.total + q * added) for n in counts.by_class.tolist()]
    found = np.exp(smoothing.log_prior(counts))
    assert_allclose(found, prior, rtol=1e-12, atol=1e-300)
    table = smoothing.log_prob(counts)
    for j, n_j in enumerate(counts.schema.n_values.tolist()):
        start = counts.schema.offsets[j]
        assert_array_equal(table.values[start], 0.0)  # a missing cell says nothing
        for c in range(q):
            rows = counts.by_code[start + 1 : start + 1 + n_j, c].tolist()
            theta = [(n + by_value[j]) / (sum(rows) + n_j * by_value[j]) for n in rows]
            values = np.exp(table.values[start + 1 : start + 1 + n_j, c])
            assert_allclose(values, theta, rtol=1e-10, atol=1e-300)


@pytest.mark.parametrize("smoothing", SMOOTHINGS, ids=repr)
@given(random_counts())
@settings(max_examples=25, deadline=None)
def test_probabilities_of_an_attribute_add_up_to_one_with_missing_cells(
    smoothing, counts
):
    table = smoothing.log_prob(counts)
    assert np.isfinite(table.values).all()
    assert_allclose(np.exp(smoothing.log_prior(counts)).sum(), 1.0, rtol=1e-12)
    if smoothing == SMOOTHINGS[-1]:
        return  # the smallest number of all cannot be shared out
    prob = np.exp(table.values)
    prob[counts.schema.offsets[:-1]] = 0.0
    sums = table.collect(prob)
    assert_allclose(sums[counts.schema.n_values > 0], 1.0, rtol=1e-10)


def test_hand_counted_example_of_every_smoothing():
    counts = Counts(
        schema_of([3]),
        np.array([4.0, 2.0]),
        # One cell of the first class is missing.
        np.array([[1.0, 0.0], [3.0, 0.0], [0.0, 1.0], [0.0, 1.0]]),
        Moments.zeros(0, 2),
    )
    third = Fraction(1, 3)
    expected = {
        "m-estimate": [(3 + third) / 4, third / 4, third / 4],
        "laplace": [Fraction(4, 6), Fraction(1, 6), Fraction(1, 6)],
        "kohavi": [Fraction(19, 21), Fraction(1, 21), Fraction(1, 21)],
        0.5: [Fraction(7, 9), Fraction(1, 9), Fraction(1, 9)],
    }
    priors = {
        "m-estimate": Fraction(9, 14),
        "laplace": Fraction(5, 8),
        "kohavi": Fraction(25, 38),
        0.5: Fraction(9, 14),
    }
    for setting, theta in expected.items():
        smoothing = resolve_smoothing(setting)
        values = np.exp(smoothing.log_prob(counts).values[1:, 0])
        assert_allclose(values, [float(t) for t in theta], rtol=1e-14)
        prior = np.exp(smoothing.log_prior(counts)[0])
        assert_allclose(prior, float(priors[setting]), rtol=1e-14)


@pytest.mark.parametrize("setting", ["m-estimate", "laplace", "kohavi"])
def test_words_name_smoothings(setting):
    assert isinstance(resolve_smoothing(setting), Smoothing)


@pytest.mark.parametrize(
    "setting", [0, 2, 0.5, np.float32(0.5), np.int64(3), Fraction(1, 2)]
)
def test_a_number_is_a_constant_for_every_count(setting):
    assert resolve_smoothing(setting).f == float(setting)


@pytest.mark.parametrize(
    "setting",
    [-1.0, math.nan, math.inf, True, "lapalce", None, [1.0], 10**400, 1j],
    ids=lambda setting: repr(setting)[:20],
)
def test_other_smoothings_are_refused_with_the_choices(setting):
    with pytest.raises(ParameterError, match=r"'smoothing' .*'m-estimate'.*Got"):
        resolve_smoothing(setting)


@pytest.mark.parametrize("value", [-1, math.nan, math.inf, "1", None, 10**400])
def test_a_smoothing_part_refuses_a_constant_that_is_not_positive(value):
    counts = Counts.zeros(schema_of([2]), 2)
    with pytest.raises(ParameterError, match=r"'m' parameter of MEstimate"):
        MEstimate(value).log_prior(counts)
    if value is not None:
        with pytest.raises(ParameterError, match=r"'f' parameter of Lidstone"):
            Lidstone(value).log_prob(counts)


# ------------------------------------------------------------------------------ priors


def test_priors_are_smoothed_or_frequencies_or_given():
    counts = Counts(schema_of([1]), np.array([3.0, 1.0, 0.0]), None, None)
    laplace = Lidstone()
    smoothed = estimate_prior("smoothed", counts, laplace)
    assert_allclose(np.exp(smoothed), [4 / 7, 2 / 7, 1 / 7])
    frequency = estimate_prior("frequency", counts, laplace)
    assert_allclose(np.exp(frequency), [0.75, 0.25, 0.0])
    assert frequency[2] == -math.inf
    given_prior = estimate_prior([0.2, 0.0, 0.8], counts, laplace)
    assert_allclose(np.exp(given_prior), [0.2, 0.0, 0.8])


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ([0.5, 0.5], "match number of classes"),
        ([0.5, 0.5, 0.5], "add up to 1"),
        ([1.5, -0.5, 0.0], "add up to 1"),
        ([math.nan, 0.5, 0.5], "add up to 1"),
        ("uniform", "'prior' parameter"),
        (0.5, "match number of classes"),
    ],
    ids=str,
)
def test_other_priors_are_refused(setting, message):
    counts = Counts(schema_of([1]), np.array([3.0, 1.0, 0.0]), None, None)
    with pytest.raises(ParameterError, match=message):
        estimate_prior(setting, counts, MEstimate())


# --------------------------------------------------------------------------- densities


def gaussian_counts(weight, mean, squares, steps):
    features = tuple(
        FeatureSchema(
            None, "gaussian-weka" if step else "gaussian", "numbers", step=step
        )
        for step in steps
    )
    arrays = [np.array(a, dtype=np.float64) for a in (weight, mean, squares)]
    by_class = arrays[0].max(axis=0)
    schema = TableSchema(features)
    return Counts(schema, by_class, np.zeros((0, len(by_class))), Moments(*arrays))


def test_variances_divide_by_the_weight():
    counts = gaussian_counts([[4.0, 2.0]], [[1.0, 5.0]], [[8.0, 18.0]], [0.0])
    table = estimate_gaussian(counts, 1e-9)
    assert_array_equal(table.mean, [[1.0, 5.0]])
    assert_allclose(table.deviation**2, [[2.0, 9.0]], rtol=1e-15)


def test_a_constant_within_a_class_has_the_floor_for_variance():
    # Two attributes, whose variances over all rows are 0.75 and 100.
    counts = gaussian_counts(
        [[2.0, 2.0], [2.0, 2.0]],
        [[3.0, 4.0], [-10.0, 10.0]],
        [[0.0, 2.0], [0.0, 0.0]],
        [0.0, 0.0],
    )
    table = estimate_gaussian(counts, 1e-3)
    assert_allclose(table.deviation**2, [[0.75e-3, 1.0], [0.1, 0.1]], rtol=1e-14)
    no_floor = estimate_gaussian(counts, 0.0)
    assert (no_floor.deviation > 0).all()
    assert np.isfinite(1 / no_floor.deviation).all()


@pytest.mark.parametrize("floor", [0.0, 1e-9, 0.5])
@pytest.mark.parametrize("unit", [1e-30, 1e-12, 1e8, 1e30])
def test_the_least_variance_follows_the_unit_of_its_column(floor, unit):
    weight, mean, squares = np.array([[2.0, 3.0]] * 3), [3.0, 4.0], [0.0, 2.0]
    mean = np.array([mean, [-1.0, 1.0], [5.0, 5.0]])
    squares = np.array([squares, [0.0, 0.0], [0.0, 0.0]])
    units = np.array([[unit], [1.0], [1.0]])
    plain = estimate_gaussian(gaussian_counts(weight, mean, squares, [0.0] * 3), floor)
    scaled = estimate_gaussian(
        gaussian_counts(weight, mean * units, squares * units**2, [0.0] * 3), floor
    )
    assert_allclose(scaled.deviation, plain.deviation * units, rtol=1e-12)


def test_numbers_that_are_all_the_same_still_have_a_density():
    counts = gaussian_counts([[2.0, 2.0]], [[3.0, 3.0]], [[0.0, 0.0]], [0.0])
    table = estimate_gaussian(counts, 1e-9)
    scores = np.zeros((2, 2))
    table.add_scores(np.array([[3.0], [4.0]]), scores)
    assert np.isfinite(scores).all()
    assert_array_equal(scores[:, 0], scores[:, 1])


def test_a_class_without_a_known_cell_takes_the_overall_mean_and_variance():
    counts = gaussian_counts([[4.0, 0.0]], [[1.0, 0.0]], [[8.0, 0.0]], [0.0])
    table = estimate_gaussian(counts, 1e-9)
    assert_array_equal(table.mean, [[1.0, 1.0]])
    assert_allclose(table.deviation**2, [[2.0, 2.0]], rtol=1e-15)


def test_intervals_have_a_deviation_of_at_least_a_sixth_of_the_step():
    counts = gaussian_counts(
        [[4.0, 4.0, 4.0]], [[0.0, 1.0, 2.0]], [[0.0, 1.0, 36.0]], [6.0]
    )
    table = estimate_gaussian(counts, 0.5)
    assert_array_equal(table.deviation, [[1.0, 1.0, 3.0]])
    assert_array_equal(table.step, [6.0])


def test_a_table_cut_from_a_larger_one_gives_the_same_densities():
    mean = np.arange(6.0).reshape(2, 3)
    whole = GaussianTable(mean, np.ones((2, 3)), np.zeros(2))
    part = GaussianTable(mean[:, :1], np.ones((2, 1)), np.zeros(2))
    numbers = np.array([[0.5, 4.0]])
    ((_, of_whole),) = whole.log_densities(numbers)
    ((_, of_part),) = part.log_densities(numbers)
    assert_array_equal(of_part, of_whole[:, :, :1])
    # Kernels are compiled once, for arrays that lie in one piece.
    assert all(np.asarray(form).flags.c_contiguous for form in part.forms)
