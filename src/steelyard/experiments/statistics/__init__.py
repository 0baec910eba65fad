"""Measures of predictions, and statistical tests of methods over data sets."""

from steelyard.experiments.statistics.two_methods import *  # noqa: F403
from steelyard.experiments.statistics.two_methods import __all__ as __all__
