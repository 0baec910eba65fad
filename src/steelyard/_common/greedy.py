"""Greedy search for a subset of attributes: one more at a time, by a score."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from steelyard._common.arrays import Floats
from steelyard._common.progress import progress

# Sums of weights that differ by less than this share are equal.
EQUAL = 1e-12


class OutOfTimeError(Exception):
    """The search has used up its time."""


@dataclass(frozen=True)
class Subset:
    """A subset in a search."""

    members: tuple[int, ...]
    """In the order of choice."""

    score: float
    facts: Mapping[str, float]
    """Other numbers about it, by name."""

    is_gain: bool = False
    """Whether it is better than all before it, as the start is."""


# Scores of a subset with each of some candidates, and facts by name.
Extended = tuple[Floats, dict[str, Floats]]


def search(
    extend: Callable[[Subset, list[int]], Extended],
    start: Subset,
    candidates: Sequence[int],
    *,
    least: float = EQUAL,
    ties: float = EQUAL,
    patience: int = 1,
    blank: int = 0,
    width: int | None = 1,
) -> Iterator[Subset]:
    """Yield the start, then the best new subset of each expansion.

    An expansion adds each candidate to the best subset that waits. ``width`` of them
    wait at most: one alone is the best of the last expansion, and the search goes
    forward only; with more it may turn back. Of scores that differ by no more than
    ``ties`` the first candidate is best. The search ends after ``patience`` expansions
    in a row whose best subset gains no more than ``least``; one that yields nothing
    new counts as ``blank``.
    """
    waiting, seen = [(start.score, start)], set[frozenset[int]]()
    best, stale = start.score, 0
    yield replace(start, is_gain=True)
    while waiting and stale < patience:
        subset = waiting.pop(0)[1]
        members = frozenset(subset.members)
        rest = [j for j in candidates if j not in members]
        if seen:
            rest = [j for j in rest if members | {j} not in seen]
        if not rest:
            stale += blank
            continue
        subsets = _best_first(subset, rest, extend(subset, rest), ties, width)
        waiting = sorted([*waiting, *subsets], key=lambda entry: -entry[0])[:width]
        if width != 1:  # forward alone no subset is met twice
            seen |= {frozenset(new.members) for _, new in subsets}
        first = subsets[0][1]
        is_gain = first.score - best > least
        best, stale = (first.score, 0) if is_gain else (best, stale + 1)
        yield replace(first, is_gain=is_gain)


def _best_first(
    subset: Subset, rest: list[int], extended: Extended, ties: float, width: int | None
) -> list[tuple[float, Subset]]:
    """Return the best subsets with one more attribute, and scores, best first."""
    scores, facts = extended
    order = np.where(scores >= scores.max() - ties, scores.max(), scores)
    subsets = []
    for k in np.argsort(-order, kind="stable")[:width].tolist():
        of_one = {name: float(values[k]) for name, values in facts.items()}
        new = Subset((*subset.members, rest[k]), float(scores[k]), of_one)
        subsets.append((float(order[k]), new))
    return subsets


def follow(
    steps: Iterator[Subset],
    title: str,
    total: int | None,
    is_shown: bool,
    note: Callable[[list[Subset]], str | None],
) -> tuple[list[Subset], str]:
    """Run a search to its end; return its subsets and how it ended.

    Out of time or interrupted it returns the subsets so far. Progress is shown with a
    note on the last of them.
    """
    path, end = [next(steps)], "complete"
    with progress(title, total, is_shown) as advance:
        try:
            for step in steps:
                path.append(step)
                text = note(path)
                if text is not None:
                    advance(text)
        except OutOfTimeError:
            end = "time limit"
        except KeyboardInterrupt:
            end = "interrupted"
    return path, end
