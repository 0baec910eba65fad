"""Greedy search for subsets: what is expanded, what is best, when it ends."""

from itertools import combinations

import numpy as np
import pytest

from steelyard._common.greedy import (
    EQUAL,
    OutOfTimeError,
    Subset,
    follow,
    search,
)

pytestmark = pytest.mark.plain


def by_worth(worth, asked=None):
    """Extend subsets by a function of their members."""

    def extend(subset, rest):
        if asked is not None:
            asked.append((subset.members, rest))
        scores = np.array([worth((*subset.members, j)) for j in rest])
        return scores, {"worth": scores}

    return extend


def start(worth=lambda members: 0.0):
    return Subset((), worth(()), {"worth": worth(())})


def test_forward_search_adds_the_best_attribute_until_none_is_a_gain():
    values = [1.0, 3.0, -1.0, 2.0]
    worth = lambda members: float(sum(values[j] for j in members))  # noqa: E731
    path = list(search(by_worth(worth), start(), range(4)))
    assert [step.members for step in path] == [
        (),
        (1,),
        (1, 3),
        (1, 3, 0),
        (1, 3, 0, 2),
    ]
    assert [step.is_gain for step in path] == [True, True, True, True, False]
    assert path[2].facts == {"worth": path[2].score} == {"worth": 5.0}


@pytest.mark.parametrize(
    ("ties", "first"), [(0.0, 2), (EQUAL, 0), (0.2, 0)], ids=["exact", "equal", "wide"]
)
def test_of_scores_within_the_ties_the_first_candidate_is_best(ties, first):
    values = [1.0, 0.9, 1.0 + 1e-14, 0.5]
    found = search(
        by_worth(lambda members: values[members[-1]]), start(), range(4), ties=ties
    )
    assert [next(found), next(found)][1].members == (first,)


@pytest.mark.parametrize(("least", "size"), [(EQUAL, 1), (-EQUAL, 3), (-np.inf, 3)])
def test_a_least_gain_below_zero_goes_on_through_what_changes_nothing(least, size):
    path = list(search(by_worth(lambda members: 0.0), start(), [4, 5, 6], least=least))
    assert len(path) == 1 + size
    assert path[-1].is_gain == (size == 3)


def test_a_search_without_limits_finds_every_subset_once():
    rng = np.random.default_rng(0)
    table = {c: rng.random() for k in range(5) for c in combinations(range(4), k)}
    worth = lambda members: table[tuple(sorted(members))]  # noqa: E731
    asked = []
    path = list(
        search(by_worth(worth, asked), start(worth), range(4), patience=99, width=None)
    )
    met = [frozenset((*members, j)) for members, rest in asked for j in rest]
    assert len(met) == len(set(met)) == 15
    gains = [step.score for step in path if step.is_gain]
    assert gains == sorted(gains) and gains[-1] == max(table.values())


def test_expansions_without_anything_new_count_as_asked():
    worth = lambda members: -float(len(members))  # noqa: E731
    counted = []
    for blank in (0, 1):
        asked = []
        rules = {"patience": 4, "blank": blank, "width": None}
        list(search(by_worth(worth, asked), start(worth), range(3), **rules))
        counted.append(len(asked))
    assert counted == [4, 3]


@pytest.mark.parametrize(
    ("error", "end"),
    [(OutOfTimeError, "time limit"), (KeyboardInterrupt, "interrupted")],
)
def test_a_search_that_is_cut_off_keeps_its_subsets(error, end):
    def extend(subset, rest):
        if len(subset.members) == 2:
            raise error
        return by_worth(len)(subset, rest)

    steps = search(extend, start(), range(5))
    path, found = follow(steps, "steps", None, False, lambda path: None)
    assert (len(path), found) == (3, end)
    path, found = follow(
        search(by_worth(len), start(), range(5)), "steps", None, False, lambda path: ""
    )
    assert (len(path), found) == (6, "complete")
