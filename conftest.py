"""What tests and doctests have in common."""

import sys
from importlib.util import find_spec

import pytest

# What is built on classes of a library cannot be loaded without it.
collect_ignore = [
    f"src/steelyard/{module}.py"
    for module, library in {
        "spark": "pyspark",
        "service": "httpx2",
        "mlflow": "mlflow",
    }.items()
    if not find_spec(library)
]


@pytest.fixture(autouse=True)
def closed_figures():
    """Close what a test drew: pyplot keeps figures, and warns of the twenty-first."""
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")
