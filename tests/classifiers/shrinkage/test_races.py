"""What is surely worse on some folds is not fitted in the others."""

from collections import Counter

import numpy as np
import pytest

import steelyard as sy
from steelyard.fitting.default import strengths
from steelyard.fitting.default.interactions import FoldFit


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [([200] * 5, [1, 3, 5]), ([50] * 10, [2, 6, 10]), ([10] * 2, [2])],
)
def test_stages_have_rows_enough_and_end_with_all_folds(sizes, expected):
    assert strengths._stages(sizes) == expected


def test_interactions_of_noise_are_given_up_after_the_first_folds(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 6, (600, 6))
    y = (X[:, 0] + rng.logistic(size=600) > 2.5).astype(int)
    fitted, posteriors = Counter(), FoldFit.posteriors

    def counted(self, entry):
        fitted[entry.by_interaction] += 1
        return posteriors(self, entry)

    monkeypatch.setattr(FoldFit, "posteriors", counted)
    clf = sy.ShrinkageNB(categorical_features="all", n_jobs=1).fit(X, y)
    assert not clf.interactions_
    assert 0 < fitted[0.1] < 5
    assert not fitted[0.02], "weaker ones are not tried then"
    of_interactions = [
        own for own in clf.strength_path_ if own.get("by_interaction") == 0.1
    ]
    assert of_interactions[0]["log_loss"] > min(
        own["log_loss"] for own in clf.strength_path_
    )
