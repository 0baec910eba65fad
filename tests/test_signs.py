"""The tool that compares signs and importances with those of others."""

import os
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.skipif(
    not os.environ.get("STEELYARD_DATA"),
    reason="STEELYARD_DATA names no folder of data sets",
)
def test_signs_are_those_of_the_rates(capsys):
    tool = runpy.run_path(str(ROOT / "studies/signs.py"))
    found = tool["measured"]("hepatitis", None)
    assert found["values"] >= 8
    assert found["same"] >= 0.9 * found["values"]
