"""What the terms of a plan add for a cell, and their sums as straight lines of Python.

Sums are added in the order in which the kernels add.

A row is one call and no loop: with the additions of ``predict_proba``, four at a time,
and its exponential, a scorer would otherwise take half as long again. The lines hold
positions alone; names, tables and numbers of a model are never part of the text. With
the standard library alone: exported models hold this.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from math import ldexp
from operator import add, mul
from typing import Any

from steelyard._common.one_cell import (
    INF,
    UNKNOWN,
    CellsOf,
    Entry,
    among_values,
    in_intervals,
)

# With more amounts, classes are added up in loops: a line takes 0.01 ms to compile.
_MAX_NAMES = 10_000

# Far beyond what log-densities tell apart; the least that Weka's intervals may be.
_MAX_DISTANCE = 1e100
_FLOOR = 1e-75

Pick = Callable[[Any], Any]
"""What is taken of a row of a term: all classes, or the log-odds of the second."""


class Lines:
    """The lines of a sum of a plan, and what they name.

    Parameters
    ----------
    data : dict
        The sum, as plain data.
    columns : list of CellsOf
        What cells may be.
    is_odds : bool
        Whether log-odds of the second class are added up, or scores of all classes.
    """

    def __init__(
        self, data: dict[str, Any], columns: list[CellsOf], is_odds: bool
    ) -> None:
        self.terms, self.is_odds = data["terms"], is_odds
        base = [-INF if b is None else b for b in data["base"]]
        n_classes = 1 if is_odds else len(base)
        self.has_loops = n_classes * len(self.terms) > _MAX_NAMES and not is_odds
        self.classes = range(n_classes)
        pick: Pick = _difference if is_odds else tuple
        functions = (bisect_left, exp_of, logistic, softmax)
        self.names: dict[str, Any] = {of.__name__: of for of in functions}
        self.names |= {"INF": INF, "base": pick(base), "scale": data["scale"]}
        self.densities = self._of_kind("density")
        tables = {*range(len(self.terms))} - {*self.densities}
        self.blocks = data.get("blocks", [sorted(tables)])
        self.lines = self._lookups(columns, pick)
        self._read_bins(columns, pick)
        for k in self._of_kind("interaction"):
            self._name(k, "nambg", interaction(self.terms[k], columns, pick))
            self._read(k, f"g{k}[a{k}(row[n{k}])][b{k}(row[m{k}])]")
        for k in self.densities:
            self._name(k, "nf", density(self.terms[k], columns))
            self._read(k, f"f{k}(row[n{k}])")

    def columns(self) -> set[str]:
        """Return the names of the columns that are read."""
        return {name for key, name in self.names.items() if key[0] in "nm"}

    # -------------------------------------------------------------------- what is read

    def _of_kind(self, kind: str) -> list[int]:
        return [k for k, term in enumerate(self.terms) if term["kind"] == kind]

    def _name(self, k: int, letters: str, parts: Sequence[Any]) -> None:
        """Give names to what the lines of a term need: a letter and its position."""
        of = zip(letters, parts, strict=True)
        self.names |= {f"{letter}{k}": part for letter, part in of}

    def _read(self, k: int, text: str) -> None:
        self.lines.append(f"{self._amounts([k])[:-1]} = {text}")

    def _amounts(self, places: Iterable[int]) -> str:
        """Name the amounts of some terms, or those of the classes of each."""
        if self.is_odds or self.has_loops:
            return _listed(f"t{k}" for k in places)
        each = (_listed(f"t{k}_{c}" for c in self.classes) for k in places)
        return _listed(f"({names})" for names in each)

    def _lookups(self, columns: list[CellsOf], pick: Pick) -> list[str]:
        places, entries = self._of_kind("lookup"), []
        lines = ["try:"]
        for k in places:
            name, known, entry = lookup(self.terms[k], columns, pick)
            self._name(k, "dn", (known, name))
            lines.append(f"    {self._amounts([k])[:-1]} = d{k}[row[n{k}]]")
            entries.append((name, entry))
        self.names["careful"] = lambda row: [of(row[name]) for name, of in entries]
        unusual = f"    {self._amounts(places)} = careful(row)"
        return [*lines, "except (KeyError, TypeError):", unusual] if places else []

    def _read_bins(self, columns: list[CellsOf], pick: Pick) -> None:
        for k in self._of_kind("bins"):
            self._name(k, "nerq", bins(self.terms[k], columns, pick))
            is_usual = "type(x) is float and -INF < x < INF"
            found = f"r{k}[bisect_left(e{k}, x)] if {is_usual} else q{k}(x)"
            self.lines += [f"x = row[n{k}]", f"{self._amounts([k])[:-1]} = {found}"]

    # ------------------------------------------------------------------- what is added

    def _sums(self) -> list[str]:
        """Add up blocks four at a time, then densities."""
        lines = ["s0 = base" if self.is_odds else f"{self._sum()} = base"]
        for block in self.blocks:
            fours = len(block) & -4
            for c in self.classes:
                # Of log-odds, each block is added up on its own.
                total = "part" if self.is_odds else f"s{c}"
                names = [f"t{k}" if self.is_odds else f"t{k}_{c}" for k in block]
                lines += ["part = 0.0"] if self.is_odds else []
                for k in range(0, fours, 4):
                    a, b, x, y = names[k : k + 4]
                    lines.append(f"{total} += ({a} + {b}) + ({x} + {y})")
                lines += [f"{total} += {name}" for name in names[fours:]]
                lines += ["s0 += part"] if self.is_odds else []
        more = [(k, c) for k in self.densities for c in self.classes]
        return lines + [f"s{c} += t{k}_{c}" for k, c in more]

    def _sum(self) -> str:
        return f"({_listed(f's{c}' for c in self.classes)})"

    def _in_loops(self) -> Callable[[dict[str, Any]], list[float]]:
        """Return what computes scores where lines would be too many."""
        amounts, base = self.amounts(), self.names["base"]

        def scores_of(row: dict[str, Any]) -> list[float]:
            found, scores = amounts(row), base
            for block in self.blocks:
                fours = len(block) & -4
                for k in range(0, fours, 4):
                    of = zip(scores, *(found[j] for j in block[k : k + 4]), strict=True)
                    scores = [s + ((a + b) + (c + d)) for s, a, b, c, d in of]
                for k in block[fours:]:
                    scores = list(map(add, scores, found[k]))
            for k in self.densities:
                scores = list(map(add, scores, found[k]))
            return scores

        return scores_of

    # ---------------------------------------------------------------- functions of rows

    def _compiled(self, *lines: str) -> Callable[[dict[str, Any]], Any]:
        inner = "\n    ".join([*self.lines, *lines])
        names = dict(self.names)
        exec(f"def of_row(row):\n    {inner}", names)
        of_row: Callable[[dict[str, Any]], Any] = names["of_row"]
        return of_row

    def amounts(self) -> Callable[[dict[str, Any]], list[Any]]:
        """Return what computes what each term adds."""
        return self._compiled(f"return [{self._amounts(range(len(self.terms)))}]")

    def scores(self) -> Callable[[dict[str, Any]], Any]:
        """Return what computes log-odds of the second class, or all scores."""
        if self.has_loops:
            return self._in_loops()
        found = "s0" if self.is_odds else f"[*{self._sum()}]"
        return self._compiled(*self._sums(), f"return {found}")

    def posterior(self) -> Callable[[dict[str, Any]], list[float]]:
        """Return what computes the probabilities of the classes."""
        if self.is_odds:
            return self._compiled(*self._sums(), "return logistic(s0 * scale)")
        if self.has_loops:
            scores_of, scale = self._in_loops(), self.names["scale"]
            return lambda row: softmax([score * scale for score in scores_of(row)])
        lines = [f"s{c} *= scale" for c in self.classes]
        lines.append(f"top = max{self._sum()}")
        lines += [f"p{c} = exp_of(s{c} - top)" for c in self.classes]
        lines.append("total = 0.0")
        lines += [f"total += p{c}" for c in self.classes]
        shares = _listed(f"p{c} / total" for c in self.classes)
        return self._compiled(*self._sums(), *lines, f"return [{shares}]")


def _listed(names: Iterable[str]) -> str:
    """Join names; a comma at the end makes one of them a sequence too."""
    return "".join(f"{name}, " for name in names).rstrip()


def _difference(row: Sequence[float]) -> float:
    return row[1] - row[0]


def exp_of(x: float) -> float:
    """Return the exponential of x <= 0, to the last bit that of the kernels."""
    if x < -700.0:
        return 0.0
    k = (x * 1.4426950408889634 + 6755399441055744.0) - 6755399441055744.0
    r = (x - k * 0.6931471803691238) - k * 1.9082149292705877e-10
    p = (r * (1.0 / 6227020800.0) + 1.0 / 479001600.0) * r + 1.0 / 39916800.0
    p = ((p * r + 1.0 / 3628800.0) * r + 1.0 / 362880.0) * r + 1.0 / 40320.0
    p = ((p * r + 1.0 / 5040.0) * r + 1.0 / 720.0) * r + 1.0 / 120.0
    p = ((p * r + 1.0 / 24.0) * r + 1.0 / 6.0) * r + 0.5
    return ldexp((p * r + 1.0) * r + 1.0, int(k))


def logistic(odds: float) -> list[float]:
    """Return the probabilities of two classes by the log-odds of the second."""
    power = exp_of(-odds if odds > 0.0 else odds)
    large = 1.0 / (1.0 + power)
    small = power * large
    return [small, large] if odds > 0.0 else [large, small]


def softmax(scores: Sequence[float]) -> list[float]:
    """Return the probabilities of classes by their scores."""
    top, total = max(scores), 0.0
    powers = [exp_of(score - top) for score in scores]
    for power in powers:
        total += power
    return [power / total for power in powers]


def lookup(term: Any, columns: list[CellsOf], pick: Pick) -> tuple[str, Any, Entry]:
    """Return the name of a column, what its values add, and what any cell adds."""
    column = columns[term["column"]]
    column.learn(term["values"])
    rows = [pick(term["missing"]), *map(pick, term["rows"])]
    known = dict(zip([None, *term["values"]], rows, strict=True))
    zero = pick([0.0] * len(term["missing"]))
    return column.name, known, among_values(known, zero, column.value)


def bins(
    term: Any, columns: list[CellsOf], pick: Pick
) -> tuple[str, list[float], list[Any], Entry]:
    """Return the name of a column, what it adds between edges, and for any cell."""
    column, edges = columns[term["column"]], term["edges"]
    rows, missing = list(map(pick, term["rows"])), pick(term["missing"])
    zeros = pick([0.0] * len(term["missing"]))
    entry = in_intervals(edges, rows, missing, zeros, column.number)
    return column.name, list(edges), rows, entry


def interaction(
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
        return [
            k - 0.5 * min(abs(x - m) * s, _MAX_DISTANCE) ** 2 for m, s, k in classes
        ]

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
