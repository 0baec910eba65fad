"""What tests and doctests have in common."""

import sys
from importlib.util import find_spec

import pytest

# What is built on Spark's classes cannot be loaded without them.
collect_ignore = [] if find_spec("pyspark") else ["src/steelyard/spark.py"]


@pytest.fixture(autouse=True)
def closed_figures():
    """Close what a test drew: pyplot keeps figures, and warns of the twenty-first."""
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")
