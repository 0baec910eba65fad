"""Small tables with missing values, and rows as filters see them."""

from functools import partial

import pytest

from steelyard import NaiveBayes


@pytest.fixture(scope="session")
def random_table(random_table):
    """Return a function: columns that say less and less, with gaps, one constant."""
    return partial(random_table, n=120, gaps=0.1, sizes=(2, 3, 5, 4, 1), fading=True)


def make_training(X, y, weights=None, **settings):
    """Encode rows as a fit does."""
    return NaiveBayes(**settings)._recipe().encode(X, y, weights)


@pytest.fixture(scope="session", name="make_training")
def make_training_fixture():
    return make_training
