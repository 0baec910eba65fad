"""Variances of log-odds, and intervals of probabilities that follow from them."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from scipy.stats import norm

from steelyard import NaiveBayes
from steelyard.model.uncertainty import Uncertainty


@pytest.fixture
def codes():
    X = pd.DataFrame({"a": ["u", "v", "u", None], "b": ["x", "x", "y", None]})
    return NaiveBayes().fit(X, [0, 1, 0, 1])._encode(X)


@pytest.mark.parametrize("base", [[0.0], [0.25], [0.5, 1.0, 2.0]])
def test_a_row_has_the_base_variance_and_those_of_its_cells(codes, base):
    base = np.array(base)
    variances = np.random.default_rng(0).random((codes.schema.n_codes, len(base)))
    of_rows = Uncertainty(base, variances, np.zeros((2, len(base))))
    rows = codes.to_array() + codes.schema.offsets[:-1]
    expected = base + variances[rows].sum(axis=1)
    np.testing.assert_allclose(of_rows.of_rows(codes), expected, rtol=1e-14)


def test_an_interval_without_known_cells_is_that_of_the_base_variance(codes):
    none = np.zeros((codes.schema.n_codes, 1))
    uncertainty = Uncertainty(np.array([0.25]), none, np.zeros((2, 1)))
    share = np.array([0.2, 0.8])
    found = uncertainty.intervals(codes, np.log(np.tile(share, (4, 1))), 0.9)
    half = norm.ppf(0.95) * 0.5
    expected = expit(logit(share)[:, None] + half * np.array([-1.0, 1.0]))
    np.testing.assert_allclose(found, np.tile(expected, (4, 1, 1)), rtol=1e-12)
