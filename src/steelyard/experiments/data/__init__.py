"""Data sets by name or file, and the one way from a file to a table."""

from steelyard.experiments.data.sets import *  # noqa: F403
from steelyard.experiments.data.sets import __all__ as __all__
