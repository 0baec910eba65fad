"""Small files, and the command line called in the process of the test."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from steelyard.cli.run import main


def make_frame(n=60, seed=0):
    """Return a table with numbers, text, missing cells and a target of two classes."""
    rng = np.random.default_rng(seed)
    ill = rng.random(n) < 0.5
    age = np.round(np.where(ill, 60, 40) + rng.normal(0, 8, n), 1)
    return pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.1, np.nan, age),
            "smoker": np.where(rng.random(n) < np.where(ill, 0.8, 0.3), "yes", "no"),
            "zip": rng.integers(1, 4, n),
            "ill": np.where(ill, "sick", "well"),
        }
    )


@pytest.fixture
def people():
    return make_frame


@pytest.fixture
def frame():
    return make_frame()


@pytest.fixture
def csv(tmp_path, frame):
    """Write the table as CSV and return its path."""
    path = tmp_path / "data.csv"
    frame.to_csv(path, index=False)
    return str(path)


@pytest.fixture
def run(capsys):
    """Call the command line; return status, output and error lines."""

    def call(*arguments):
        capsys.readouterr()
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as stop:
            status = stop.code
        captured = capsys.readouterr()
        return SimpleNamespace(status=status, out=captured.out, err=captured.err)

    return call


@pytest.fixture
def run_json(run):
    """Call a command with --json and return the document."""

    def call(*arguments):
        done = run(*arguments, "--json")
        assert done.status == 0, done.err
        return json.loads(done.out)

    return call


@pytest.fixture
def model(tmp_path, csv, run):
    """Fit naive Bayes to the table and return the path of the model."""
    path = tmp_path / "model.json"
    assert run("fit", csv, "--target", "ill", "--method", "NB", "-o", path).status == 0
    return str(path)


@pytest.fixture
def refused(run, tmp_path):
    """Call a command that must fail: status 2, one line, nothing printed or written."""

    def call(*arguments):
        before = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}
        done = run(*arguments)
        assert done.status == 2, done
        assert done.out == ""
        assert len(done.err.splitlines()) == 1, done.err
        assert done.err.startswith("steelyard")
        after = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}
        assert after == before
        return done.err

    return call
