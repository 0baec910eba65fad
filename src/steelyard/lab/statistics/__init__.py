"""Statistical tests of methods over data sets, and measures of predictions.

The tests are functions of arrays and know nothing of results: one row per data set, one
column per method. Equal is meant up to twelve digits.

- ``two_methods``: the corrected resampled t-test on one data set, wins, ties and
  losses, and Wilcoxon's signed ranks over data sets.
- ``ranks``: average ranks of many methods, with Friedman's test and what follows it;
  checks and rounding, which all tests share.
- ``bayesian``: the Bayesian signed-rank test.
- ``metrics``: accuracy, log-loss and the others, of one test part or of groups of rows,
  and how often predictions are right, by bins of confidence.
- ``shares``: intervals of shares, means and costs, and whether shares have moved.
"""

from steelyard.lab.statistics import bayesian, ranks, two_methods
from steelyard.lab.statistics.bayesian import *  # noqa: F403
from steelyard.lab.statistics.ranks import *  # noqa: F403
from steelyard.lab.statistics.two_methods import *  # noqa: F403

__all__ = sorted([*bayesian.__all__, *ranks.__all__, *two_methods.__all__])
