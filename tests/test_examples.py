"""Every example runs, in a folder of its own."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

STYLE = str(Path(__file__).resolve().parents[1] / "examples/matplotlibrc")
EXAMPLES = sorted((Path(__file__).resolve().parents[1] / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(path, tmp_path, pytestconfig):
    text = path.read_text(encoding="utf-8")
    for word, library in (("matplotlib", "matplotlib"), ("parquet", "pyarrow")):
        if word in text and not find_spec(library):
            pytest.skip(f"{library} is not installed")
    # What is let through here is let through there, as old libraries need it.
    warnings = ["error", *(pytestconfig.getoption("pythonwarnings") or [])]
    done = subprocess.run(
        [sys.executable, *(f"-W{each}" for each in warnings), path],
        cwd=tmp_path,
        env={**os.environ, "MATPLOTLIBRC": STYLE, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    drawn = list(tmp_path.glob("*.svg"))
    assert bool(drawn) == path.stem.startswith("plot_")
