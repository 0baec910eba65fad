"""Scores of interactions against sums over cells in plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from steelyard.kernels.pairs import score_interactions

pytestmark = pytest.mark.plain


def plain_score(first, second, residual, curvature):
    """Return the sum of (G^2 - H) / (H + 1) over the cells with both sides known."""
    score = 0.0
    for a in set(first[first > 0].tolist()):
        for b in set(second[second > 0].tolist()):
            rows = (first == a) & (second == b)
            g, h = residual[rows].sum(axis=0), curvature[rows].sum(axis=0)
            score += ((g**2 - h) / (h + 1.0)).sum()
    return score


@pytest.mark.parametrize("width", [1, 2, 4])
@pytest.mark.parametrize("n_folds", [1, 5])
def test_scores_are_those_of_all_rows_and_of_all_but_each_fold(width, n_folds):
    rng = np.random.default_rng(width)
    n, sizes = 300, np.array([3, 5, 13, 2, 4, 7])
    first = rng.integers(0, 4, n).astype(np.uint8)
    others = np.stack([rng.integers(0, size, n) for size in sizes]).astype(np.uint8)
    residual, curvature = rng.normal(size=(n, width)), rng.random((n, width))
    ends = np.sort(rng.choice(np.arange(1, n), n_folds - 1, replace=False))
    ends = np.append(ends, n).astype(np.int64)
    scores = np.full((len(sizes), n_folds + 1), np.nan)
    score_interactions(first, others, 4, sizes, residual + 1j * curvature, ends, scores)
    starts = np.concatenate([[0], ends[:-1]])
    for k, second in enumerate(others):
        whole = plain_score(first, second, residual, curvature)
        assert_allclose(scores[k, -1], whole, rtol=1e-10)
        for f, (start, end) in enumerate(zip(starts, ends, strict=True)):
            rest = np.ones(n, dtype=bool)
            rest[start:end] = False
            of_rest = plain_score(
                first[rest], second[rest], residual[rest], curvature[rest]
            )
            assert_allclose(scores[k, f], of_rest, rtol=1e-8, atol=1e-8)


def test_rows_with_an_unknown_side_do_not_count():
    rng = np.random.default_rng(0)
    first, second = rng.integers(1, 3, (2, 100)).astype(np.uint8)
    residual, curvature = rng.normal(size=(100, 2)), rng.random((100, 2))
    ends = np.array([50, 100])

    def scores(first, second):
        out = np.empty((1, 3))
        sizes = np.array([3])
        score_interactions(
            first, second[None], 3, sizes, residual + 1j * curvature, ends, out
        )
        return out[0]

    unknown = first.copy()
    unknown[::3] = 0
    known = unknown > 0
    expected = plain_score(
        first[known], second[known], residual[known], curvature[known]
    )
    assert_allclose(scores(unknown, second)[-1], expected)
    assert_allclose(scores(np.zeros(100, np.uint8), second), 0.0)
