"""Small tables with missing values, and rows as filters see them."""

import numpy as np
import pytest

from steelyard import NaiveBayes


def random_table(n=120, n_classes=3, gaps=0.1, seed=0, sizes=(2, 3, 5, 4, 1)):
    """Categories of which half say something about the class, as text."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    X = np.empty((n, len(sizes)), object)
    for j, size in enumerate(sizes):
        told = rng.random(n) < 0.5 / (j + 1)
        codes = np.where(told, y % size, rng.integers(0, size, n))
        X[:, j] = [f"v{code}" for code in codes]
    X[rng.random(X.shape) < gaps] = None
    return X, y


@pytest.fixture(scope="session", name="random_table")
def random_table_fixture():
    return random_table


def make_training(X, y, weights=None, **settings):
    """Encode rows as a fit does."""
    return NaiveBayes(**settings)._recipe().encode(X, y, weights)


@pytest.fixture(scope="session", name="make_training")
def make_training_fixture():
    return make_training
