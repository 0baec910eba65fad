"""scikit-learn's estimator checks for combinations of parts, with no excuses."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from steelyard import WeightedNB
from steelyard.losses import DevianceLoss
from steelyard.weighting import ClassAttributeWeighting

COMBINATIONS = [
    WeightedNB(),
    WeightedNB(weighting="class-attribute", loss="brier"),
    WeightedNB(weighting="value", loss="log", smoothing="laplace"),
    WeightedNB(weighting="mixture", loss="brier"),
    WeightedNB(loss="exponential"),
    WeightedNB(loss="deviance", multiclass="one-vs-one", calibrated=True),
    WeightedNB(numeric="gaussian", lam=0.1, bounds=(0, None)),
    WeightedNB(penalty="ridge", lam=1.0, bounds=None),
    WeightedNB(prior_weight=True, penalty="l1", lam=0.1),
    WeightedNB(weighting=ClassAttributeWeighting(), loss=DevianceLoss(0.5)),
]

# Check name to reason; empty, and meant to stay so.
EXCUSES: dict[str, str] = {}


@pytest.mark.filterwarnings("ignore:The training rows can be separated")
@parametrize_with_checks(COMBINATIONS, expected_failed_checks=lambda estimator: EXCUSES)
def test_estimator_keeps_the_contract(estimator, check):
    check(estimator)
