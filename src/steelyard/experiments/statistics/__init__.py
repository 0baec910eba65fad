"""Statistical tests of methods over data sets, and measures of predictions.

The tests are functions of arrays and know nothing of results: one row per data set, one
column per method. Equal is meant up to twelve digits.

- ``two_methods``: the corrected resampled t-test on one data set, wins, ties and
  losses, and Wilcoxon's signed ranks over data sets.
- ``ranks``: average ranks of many methods, with Friedman's test and what follows it.
- ``bayesian``: the Bayesian signed-rank test.
- ``scores``: what they share, checks and rounding.
- ``metrics``: accuracy, log-loss and the others, of one test part.
- ``calibration``: how often predictions are right, by bins of confidence.
"""

from steelyard.experiments.statistics.bayesian import (
    BayesianSignedRank,
    bayesian_against,
    bayesian_signed_rank,
)
from steelyard.experiments.statistics.ranks import (
    Friedman,
    RankComparison,
    average_ranks,
    compare_ranks,
    critical_difference,
    friedman,
    holm,
)
from steelyard.experiments.statistics.two_methods import (
    PairedTTest,
    WilcoxonMatrix,
    WilcoxonTest,
    WinTieLoss,
    corrected_t_test,
    wilcoxon_matrix,
    wilcoxon_signed_rank,
    win_tie_loss,
)

__all__ = [
    "BayesianSignedRank",
    "Friedman",
    "PairedTTest",
    "RankComparison",
    "WilcoxonMatrix",
    "WilcoxonTest",
    "WinTieLoss",
    "average_ranks",
    "bayesian_against",
    "bayesian_signed_rank",
    "compare_ranks",
    "corrected_t_test",
    "critical_difference",
    "friedman",
    "holm",
    "wilcoxon_matrix",
    "wilcoxon_signed_rank",
    "win_tie_loss",
]
