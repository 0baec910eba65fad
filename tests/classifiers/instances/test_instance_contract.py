"""scikit-learn's estimator checks for instance weights, with no excuses."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from steelyard import BoostedNB, JointWeightedNB, LocallyWeightedNB, WeightedNB
from steelyard.instances import DiscriminativeWeighting

COMBINATIONS = [
    JointWeightedNB(),
    WeightedNB(instances="discriminative"),
    WeightedNB(
        instances=DiscriminativeWeighting(3), weighting="class-attribute", lam=1.0
    ),
    BoostedNB(rounds=3, numeric="gaussian"),
    LocallyWeightedNB(n_neighbors=None, numeric="gaussian", kernel="tricube"),
]

# Check name to reason; empty, and meant to stay so.
EXCUSES: dict[str, str] = {}


@pytest.mark.filterwarnings("ignore:The training rows can be separated")
@parametrize_with_checks(COMBINATIONS, expected_failed_checks=lambda estimator: EXCUSES)
def test_estimator_keeps_the_contract(estimator, check):
    check(estimator)
