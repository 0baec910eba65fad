"""What the terms of a plan add for a cell, with the standard library alone."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from operator import mul
from typing import Any

from steelyard._common.one_cell import (
    INF,
    UNKNOWN,
    CellsOf,
    Entry,
    among_values,
    in_intervals,
)

# Far beyond what log-densities tell apart; the least that Weka's intervals may be.
_FARTHEST = 1e100
_FLOOR = 1e-75


Pick = Callable[[Any], Any]
"""What is taken of a row of a term: all classes, or the log-odds of the second."""


def lookup(term: Any, columns: list[CellsOf], pick: Pick) -> tuple[str, Any, Entry]:
    """Return the name of a column, what its values add, and what any cell adds."""
    column = columns[term["column"]]
    column.learn(term["values"])
    rows = [pick(term["missing"]), *map(pick, term["rows"])]
    known = dict(zip([None, *term["values"]], rows, strict=True))
    zero = pick([0.0] * len(term["missing"]))
    return column.name, known, among_values(known, zero, column.value)


def bins(
    terms: list[Any], columns: list[CellsOf], pick: Pick
) -> tuple[str, list[float], list[Any], Entry]:
    """Return the name of a column, and what its views add, which are read as one.

    That is between edges, and for any cell: an item for each view.
    """
    column = columns[terms[0]["column"]]
    edges = sorted({edge for term in terms for edge in term["edges"]})
    rows = [
        tuple(pick(term["rows"][bisect_left(term["edges"], x)]) for term in terms)
        for x in [*edges, INF]
    ]
    missing = tuple(pick(term["missing"]) for term in terms)
    zeros = tuple(pick([0.0] * len(term["missing"])) for term in terms)
    entry = in_intervals(edges, rows, missing, zeros, column.number)
    return column.name, edges, rows, entry


def pair(
    term: Any, columns: list[CellsOf], pick: Pick
) -> tuple[str, Entry, str, Entry, list[list[Any]]]:
    """Return two columns, how cells of each become groups, and what groups add."""
    first, second = (_group(side, columns) for side in term["sides"])
    return *first, *second, [list(map(pick, rows)) for rows in term["rows"]]


def _group(side: Any, columns: list[CellsOf]) -> tuple[str, Entry]:
    """Return the name of a column, and how its cells become groups."""
    column, groups, missing = columns[side["column"]], side["groups"], side["missing"]
    if column.kind == "category":
        column.learn(side["values"])
        known = dict(zip(side["values"], groups, strict=False)) | {None: missing}
        return column.name, among_values(known, 0, column.value)
    entry = in_intervals(side["edges"], groups, missing, 0, column.number)
    return column.name, entry


def density(term: Any, columns: list[CellsOf]) -> tuple[str, Entry]:
    """Return the name of a column, and what its numbers add by their distance."""
    column, fill, weight = columns[term["column"]], term["fill"], term["weight"]
    classes = list(zip(term["mean"], term["scale"], term["constant"], strict=True))
    zeros = [0.0] * len(weight)
    told = _FORMS[term["form"]](classes, term)

    def tell(x: Any) -> list[float]:
        if type(x) is not float or not -INF < x < INF:
            x = column.number(x)
            x = fill if x is None else x
            if x is None or x is UNKNOWN:
                return zeros
        return list(map(mul, weight, told(x)))

    return column.name, tell


def _linear(classes: Any, term: Any) -> Entry:
    limit = term["limit"]
    m, s, _ = classes[0]
    if all((mean, scale) == (m, s) for mean, scale, _ in classes):
        n = len(classes)
        return lambda x: (min(max((x - m) * s, -limit), limit),) * n
    return lambda x: [min(max((x - m) * s, -limit), limit) for m, s, _ in classes]


def _interval(classes: Any, term: Any) -> Entry:
    step = term["step"]

    def told(x: float) -> list[float]:
        x /= step
        # Beyond, all are whole; what overflowed cannot be rounded.
        x = (round(x) if abs(x) < 2.0**53 else x) * step
        return [_log_interval(abs(x - m), s, step) for m, s, _ in classes]

    return told


def _log_interval(distance: float, scale: float, step: float) -> float:
    near = (distance - 0.5 * step) * scale * math.sqrt(0.5)
    far = (distance + 0.5 * step) * scale * math.sqrt(0.5)
    return math.log(max(0.5 * (math.erfc(near) - math.erfc(far)), _FLOOR))


def _plain(classes: Any, term: Any) -> Entry:
    def told(x: float) -> list[float]:
        return [k - 0.5 * min(abs(x - m) * s, _FARTHEST) ** 2 for m, s, k in classes]

    return told


def _relative(classes: Any, term: Any) -> Entry:
    plain, depth = _plain(classes, term), term["depth"]

    def told(x: float) -> list[float]:
        logs = plain(x)
        top = max(logs)
        return [max(log - top, -depth) for log in logs]

    return told


_FORMS = {
    "plain": _plain,
    "relative": _relative,
    "linear": _linear,
    "interval": _interval,
}
