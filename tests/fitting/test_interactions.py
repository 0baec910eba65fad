"""Interactions: how they are joined, and how they are ranked."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from steelyard.exceptions import ParameterError
from steelyard.fitting.default.interactions import (
    coded_columns,
    listed_interactions,
    score_columns,
    sides,
)
from steelyard.fitting.recipe import encode_training
from steelyard.model.training import Encoding, Preparation
from steelyard.proba.smoothing import Estimation, Lidstone
from steelyard.table.discretizers.unsupervised import EqualFrequencyDiscretizer

pytestmark = pytest.mark.plain


def encoded(X, y, u=None, **encoding):
    encoding = {"numeric": EqualFrequencyDiscretizer(60), **encoding}
    estimation = Estimation(Lidstone(1.0), "smoothed", 1e-9)
    return encode_training(X, y, u, Preparation(Encoding(**encoding), estimation))


def mixed(n=400, seed=0):
    """Return numbers, skewed ones, many categories of falling frequency, a constant."""
    rng = np.random.default_rng(seed)
    X = np.empty((n, 4), object)
    X[:, 0] = rng.normal(size=n)
    X[:, 1] = np.round(rng.exponential(size=n), 1)
    X[:, 2] = [f"v{v}" for v in np.minimum(rng.geometric(0.15, n), 25)]
    X[:, 3] = 1.0
    X[rng.random(n) < 0.1, 0] = None
    return X, np.arange(n) % 2


def test_columns_without_two_values_cannot_be_joined():
    training = encoded(*mixed())
    assert coded_columns(training.schema) == [0, 1, 2]


@pytest.mark.parametrize(("n", "n_groups"), [(40, 3), (400, 8), (2400, 12)])
def test_a_side_has_about_the_root_of_the_rows_for_each_cell(n, n_groups):
    # Three rows for each cell and class: sqrt(n / 6), from 3 to 12.
    training = encoded(*mixed(n))
    (side, _), *_ = sides(training, [(0, 2)])
    assert side.n_groups - 1 == n_groups


def test_numbers_are_joined_in_neighbouring_groups_of_about_equal_weight():
    X, y = mixed()
    u = np.random.default_rng(1).random(len(y)) + 0.1
    training = encoded(X, y, u)
    ((first, second),) = sides(training, [(0, 1)])
    for side in (first, second):
        groups = np.array(side.groups)
        assert groups[0] == 0
        assert groups[1] == 1
        assert set(np.diff(groups[1:])) <= {0, 1}
    weight = np.bincount(
        np.array(first.groups)[training.codes.column(first.feature)], u
    )[1:]
    assert weight.max() < 1.6 * weight.min()


def test_rare_categories_are_joined_in_one_group():
    X, y = mixed()
    training = encoded(X, y)
    ((_, side),) = sides(training, [(0, 2)])
    values, counts = np.unique(X[:, 2].astype(str), return_counts=True)
    groups = dict(zip(values, side.groups[1:], strict=True))
    frequent = values[np.argsort(-counts, kind="stable")]
    own = [groups[v] for v in frequent[:7]]
    assert own == [1, 2, 3, 4, 5, 6, 7]
    assert {groups[v] for v in frequent[7:]} == {8}


def residuals(training, seed=0):
    rng = np.random.default_rng(seed)
    share = rng.dirichlet(np.ones(training.n_classes), training.n_rows)
    residual = -share
    residual[np.arange(training.n_rows), training.labels] += 1.0
    return residual, share * (1.0 - share)


def plain_ranking(training, residual, curvature, rows, most):
    """Rank interactions by the score of the cells, on some rows."""
    columns = coded_columns(training.schema)
    found = []
    for a, b in combinations(columns, 2):
        ((first, second),) = sides(training, [(a, b)])
        codes = [
            np.array(side.groups)[training.codes.column(side.feature)][rows]
            for side in (first, second)
        ]
        cell = np.where(
            (codes[0] > 0) & (codes[1] > 0), codes[0] * second.n_groups + codes[1], 0
        )
        score = 0.0
        for v in np.unique(cell[cell > 0]):
            g = residual[rows][cell == v].sum(axis=0)
            h = curvature[rows][cell == v].sum(axis=0)
            score += ((g**2 - h) / (h + 1.0)).sum()
        found.append((score, (a, b)))
    found.sort(key=lambda entry: -entry[0])
    return [interaction for score, interaction in found[:most] if score > 0.0]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("most", [1, 10])
def test_interactions_are_ranked_by_what_is_left_over_in_their_cells(n_classes, most):
    rng = np.random.default_rng(n_classes)
    X = np.c_[rng.normal(size=(240, 3)), rng.integers(0, 4, (240, 2))]
    y = np.where(X[:, 0] * X[:, 1] > 0, 0, rng.integers(0, n_classes, 240))
    training = encoded(X, y, categorical_features=[3, 4])
    residual, curvature = residuals(training)
    ends = np.array([60, 130, 240])
    ranked = score_columns(training, residual, curvature, [(slice(0, 240), ends)]).best(
        most
    )
    rows = np.arange(240)
    wanted = plain_ranking(training, residual, curvature, rows, most)
    assert ranked.overall == wanted
    assert wanted[0] == (0, 1)
    for f, (low, high) in enumerate([(0, 60), (60, 130), (130, 240)]):
        rest = np.setdiff1d(rows, np.arange(low, high))
        assert ranked.by_fold[f] == plain_ranking(
            training, residual, curvature, rest, most
        )


def test_each_deal_is_scored_by_itself():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(100, 4)), np.arange(100) % 2
    rows = np.concatenate([np.arange(100), rng.permutation(100)])
    twice = encoded(X[rows], y[rows])
    residual, curvature = residuals(twice)
    ends = np.array([40, 100])
    deals = [(slice(0, 100), ends), (slice(100, 200), ends)]
    both = score_columns(twice, residual, curvature, deals).scores
    overall = []
    for f, deal in enumerate(deals):
        one = score_columns(twice, residual, curvature, [deal]).scores
        np.testing.assert_allclose(both[:, 2 * f : 2 * f + 2], one[:, :-1])
        overall.append(one[:, -1])
    np.testing.assert_allclose(both[:, -1], np.mean(overall, axis=0))


def test_one_column_alone_has_no_interactions():
    rng = np.random.default_rng(0)
    training = encoded(rng.normal(size=(50, 1)), np.arange(50) % 2)
    deals = [(slice(0, 50), np.array([25, 50]))]
    ranked = score_columns(training, *residuals(training), deals).best(5)
    assert ranked.overall == []
    assert ranked.by_fold == [[], []]


def test_threads_do_not_change_the_ranking():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(200, 8)), np.arange(200) % 3
    training = encoded(X, y)
    found = []
    for n_jobs in (1, 2):
        prepared = Preparation(
            training.preparation.encoding, training.estimation, None, n_jobs
        )
        rows = encode_training(X, y, None, prepared)
        deals = [(slice(0, 200), np.array([90, 200]))]
        scored = score_columns(rows, *residuals(rows), deals)
        found.append(scored.best(20))
    assert found[0] == found[1]


def test_listed_interactions_are_distinct_and_of_two_columns():
    schema = encoded(*mixed()).schema
    assert listed_interactions([(0, 1), (1, 0), [0, 1], (2, -4)], schema) == [
        (0, 1),
        (2, 0),
    ]
    with pytest.raises(ParameterError, match="joins column 1 with itself"):
        listed_interactions([(0, 1), (1, -3)], schema)
    with pytest.raises(ParameterError, match="3, which has fewer than two"):
        listed_interactions([(0, 3)], schema)
