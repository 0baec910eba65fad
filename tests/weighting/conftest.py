"""Small tables with missing values, and rows as filters see them."""

from functools import partial

import numpy as np
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


@pytest.fixture
def merit():
    """Return what CFS maximises, of SU with the class (d,) and between columns."""

    def of_subset(chosen, relevance, redundancy):
        chosen = np.asarray(chosen, dtype=np.int64)
        between = redundancy[np.ix_(chosen, chosen)]
        pairs = between.sum() - np.trace(between)
        return relevance[chosen].sum() / np.sqrt(max(len(chosen) + pairs, 1.0))

    return of_subset
