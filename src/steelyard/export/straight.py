"""Sums as straight lines of Python, in the order in which the kernels add.

A row is one call and no loop: with the additions of ``predict_proba``, four at a time,
and its exponential, a scorer would otherwise take half as long again. The lines hold
positions alone; names, tables and numbers of a model are never part of the text. With
the standard library alone: exported models hold this.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from math import ldexp
from typing import Any

from steelyard._common.one_cell import INF, CellsOf
from steelyard.export.amounts import Pick, bins, density, lookup, pair

# With more amounts, classes are added up in loops: lines take time to compile.
_MOST_NAMES = 4096


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
        terms, base = data["terms"], [-INF if b is None else b for b in data["base"]]
        self.n_terms, self.is_odds = len(terms), is_odds
        has_loops = is_odds or len(terms) * len(base) > _MOST_NAMES
        self.classes = None if has_loops else range(len(base))
        pick: Pick = _difference if is_odds else tuple
        self.names: dict[str, Any] = {"base": pick(base), "scale": data["scale"]}
        for of in (bisect_left, exp_of, logistic, softmax):
            self.names[of.__name__] = of
        self.names["INF"] = INF
        kinds: dict[str, list[int]] = {}
        for k, term in enumerate(terms):
            kinds.setdefault(term["kind"], []).append(k)
        self.densities = kinds.get("density", [])
        tables = sorted({*range(len(terms))} - {*self.densities})
        self.blocks = data.get("blocks", [tables])
        self.lines = self._lookups(kinds.get("lookup", []), terms, columns, pick)
        views: dict[int, list[int]] = {}
        for k in kinds.get("bins", []):
            views.setdefault(terms[k]["column"], []).append(k)
        for of_column in views.values():
            self._add_bins(of_column, terms, columns, pick)
        for k in kinds.get("pair", []):
            self._add_pair(k, pair(terms[k], columns, pick))
        for k in self.densities:
            name, tell = density(terms[k], columns)
            self.names |= {f"n{k}": name, f"f{k}": tell}
            self.lines.append(f"{self._amount(k)} = f{k}(row[n{k}])")

    def columns(self) -> set[str]:
        """Return the names of the columns that are read."""
        return {name for key, name in self.names.items() if key[0] in "nm"}

    # -------------------------------------------------------------------- what is read

    def _amount(self, k: int) -> str:
        """Name the amount of a term, or those of the classes."""
        if self.classes is None:
            return f"t{k}"
        return f"({_listed(f't{k}_{c}' for c in self.classes)})"

    def _amounts(self, places: Iterable[int]) -> str:
        return _listed(map(self._amount, places))

    def _lookups(
        self, places: list[int], terms: Any, columns: list[CellsOf], pick: Pick
    ) -> list[str]:
        entries = []
        lines = []
        for k in places:
            name, known, entry = lookup(terms[k], columns, pick)
            self.names |= {f"n{k}": name, f"d{k}": known}
            lines.append(f"    {self._amount(k)} = d{k}[row[n{k}]]")
            entries.append((name, entry))
        if not places:
            return []
        self.names["careful"] = lambda row: [of(row[name]) for name, of in entries]
        unusual = f"    {self._amounts(places)} = careful(row)"
        return ["try:", *lines, "except (KeyError, TypeError):", unusual]

    def _add_bins(
        self, places: list[int], terms: Any, columns: list[CellsOf], pick: Pick
    ) -> None:
        own, k = [terms[place] for place in places], places[0]
        parts = zip("nerq", bins(own, columns, pick), strict=True)
        self.names |= {f"{letter}{k}": part for letter, part in parts}
        usual = f"r{k}[bisect_left(e{k}, x)]"
        is_usual = "type(x) is float and -INF < x < INF"
        self.lines.append(f"x = row[n{k}]")
        found = f"{usual} if {is_usual} else q{k}(x)"
        self.lines.append(f"{self._amounts(places)} = {found}")

    def _add_pair(self, k: int, parts: tuple[Any, ...]) -> None:
        of = zip("nambg", parts, strict=True)
        self.names |= {f"{letter}{k}": part for letter, part in of}
        groups = f"[a{k}(row[n{k}])][b{k}(row[m{k}])]"
        self.lines.append(f"{self._amount(k)} = g{k}{groups}")

    # ------------------------------------------------------------------- what is added

    def _sums(self) -> list[str]:
        """Add up blocks four at a time, then densities."""
        if self.is_odds:
            return ["total = base", *map("\n".join, map(self._odds, self.blocks))]
        lines = ["scores = base"]
        if self.classes is not None:
            lines = [f"{self._sum(self.classes)} = base"]
        for block in self.blocks:
            fours = len(block) & -4
            for k in range(0, fours, 4):
                lines += self._four(block[k : k + 4])
            lines += [line for k in block[fours:] for line in self._one(k)]
        return lines + [line for k in self.densities for line in self._one(k)]

    def _odds(self, block: Sequence[int]) -> list[str]:
        fours = len(block) & -4
        lines = ["part = 0.0"]
        for k in range(0, fours, 4):
            a, b, c, d = (f"t{j}" for j in block[k : k + 4])
            lines.append(f"part += ({a} + {b}) + ({c} + {d})")
        lines += [f"part += t{j}" for j in block[fours:]]
        return [*lines, "total += part"]

    def _sum(self, classes: Iterable[int]) -> str:
        return f"({_listed(f's{c}' for c in classes)})"

    def _four(self, four: Sequence[int]) -> list[str]:
        i, j, k, m = (f"t{place}" for place in four)
        if self.classes is None:
            added = f"for s, a, b, c, d in zip(scores, {i}, {j}, {k}, {m})"
            return [f"scores = [s + ((a + b) + (c + d)) {added}]"]
        return [
            f"s{c} += ({i}_{c} + {j}_{c}) + ({k}_{c} + {m}_{c})" for c in self.classes
        ]

    def _one(self, k: int) -> list[str]:
        if self.classes is None:
            return [f"scores = [s + a for s, a in zip(scores, t{k})]"]
        return [f"s{c} += t{k}_{c}" for c in self.classes]

    # ---------------------------------------------------------------- functions of rows

    def _compiled(self, *lines: str) -> Callable[[dict[str, Any]], Any]:
        inner = "\n".join([*self.lines, *lines]).replace("\n", "\n    ")
        names = dict(self.names)
        exec(f"def of_row(row):\n    {inner}", names)
        of_row: Callable[[dict[str, Any]], Any] = names["of_row"]
        return of_row

    def amounts(self) -> Callable[[dict[str, Any]], list[Any]]:
        """Return what computes what each term adds."""
        return self._compiled(f"return [{self._amounts(range(self.n_terms))}]")

    def scores(self) -> Callable[[dict[str, Any]], Any]:
        """Return what computes log-odds of the second class, or all scores."""
        if self.is_odds:
            return self._compiled(*self._sums(), "return total")
        each = "scores" if self.classes is None else f"[*{self._sum(self.classes)}]"
        return self._compiled(*self._sums(), f"return {each}")

    def posterior(self) -> Callable[[dict[str, Any]], list[float]]:
        """Return what computes the probabilities of the classes."""
        if self.is_odds:
            return self._compiled(*self._sums(), "return logistic(total * scale)")
        if self.classes is None:
            scaled = "[score * scale for score in scores]"
            return self._compiled(*self._sums(), f"return softmax({scaled})")
        lines = [f"s{c} *= scale" for c in self.classes]
        lines.append(f"top = max{self._sum(self.classes)}")
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
