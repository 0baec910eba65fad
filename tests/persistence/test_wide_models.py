"""Files of tables with many columns: their cost grows with the columns, no faster."""

import cProfile
import pstats

import numpy as np
import pandas as pd
import pytest

import steelyard as sy


def n_calls(work):
    """Return how many functions are called, which is the same on every machine."""
    profile = cProfile.Profile()
    profile.runcall(work)
    return pstats.Stats(profile).total_calls


def wide(n_columns):
    rng = np.random.default_rng(0)
    names = [f"x{k}" for k in range(n_columns)]
    return pd.DataFrame(rng.normal(size=(10, n_columns)), columns=names)


@pytest.mark.parametrize("step", ["save", "load"])
def test_twice_the_columns_are_twice_the_work(step, tmp_path):
    path, calls = tmp_path / "model.json", []
    for n_columns in (20, 100, 180):
        clf = sy.NaiveBayes().fit(wide(n_columns), list("ab") * 5)
        clf.save(path)
        work = {
            "save": lambda fitted=clf: fitted.save(path),
            "load": lambda: sy.load(path),
        }
        calls.append(n_calls(work[step]))
    assert calls[2] - calls[1] < 1.1 * (calls[1] - calls[0])
