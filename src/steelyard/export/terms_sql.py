"""Terms of a plan as SQL expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from steelyard.export.dates_sql import read_date
from steelyard.export.plan import Bins, Density, Grouping, Lookup, Pair, Plan, Row, Sum
from steelyard.export.statement import Statement

# CASE up to so many values, a joined table beyond; from 30 values on a join is quicker
# in all databases.
_MOST_CASES = 24

# Intervals of one CASE; more are halved.
_MOST_INTERVALS = 32

# Distances that are squared stay within these, in deviations: databases refuse numbers
# that overflow, and PostgreSQL those that underflow.
_FARTHEST = 1e100
_NEAREST = 1e-150


@dataclass
class Terms:
    """What the terms of one sum add, as one expression for each of its numbers."""

    plan: Plan
    to: Statement
    picks: list[Callable[[Row], float]] = field(default_factory=list)
    """The numbers of a sum: those of its classes, or the log-odds of two."""

    def of(self, node: Sum) -> list[tuple[int, list[str]]]:
        """Return the attribute of every term, and what the term adds to each number."""
        self.picks = picks_of(node)
        found = []
        for term in node.terms:
            if isinstance(term, Lookup):
                added = self._lookup(term)
            elif isinstance(term, Bins):
                added = self._bins(term)
            elif isinstance(term, Density):
                added = self._density(term, node)
            else:
                added = self._pair(term)
            own = term.attribute if isinstance(term, Pair) else term.column
            found.append((own, added))
        return found

    def cell(self, column: int) -> str:
        """Name a cell as it was read."""
        own, dialect = self.plan.columns[column], self.to.dialect
        read = partial(read_date, dialect) if own.date else dialect.cell
        return self.to.let(read(own, self.to.table))

    # ------------------------------------------------------------------- look-ups

    def _lookup(self, term: Lookup) -> list[str]:
        cell, dialect = self.cell(term.column), self.to.dialect
        numbers = [[pick(row) for row in term.rows] for pick in self.picks]
        if len(term.values) <= _MOST_CASES:
            return [
                self._case(cell, pick(term.missing), _by_result(term.values, of))
                for pick, of in zip(self.picks, numbers, strict=True)
            ]
        said = [k for k in range(len(term.values)) if any(of[k] for of in numbers)]
        rows = [
            [dialect.value(term.values[k]), *(dialect.number(of[k]) for of in numbers)]
            for k in said
        ]
        if not rows:
            return [self._case(cell, pick(term.missing), {}) for pick in self.picks]
        alias = self.to.join([cell], [dialect.type_of(term.values)], rows)
        return [
            self._found(cell, self.to.number(alias, i), pick(term.missing))
            for i, pick in enumerate(self.picks)
        ]

    def _found(self, cell: str, found: str, missing: float) -> str:
        """Write a number of a joined table, 0 where there is none."""
        number = self.to.dialect.number
        known = f"coalesce({found}, {number(0.0)})"
        if not missing:
            return known
        return f"CASE WHEN {cell} IS NULL THEN {number(missing)} ELSE {known} END"

    def _case(
        self, cell: str, missing: float, by_result: dict[float, list[Any]]
    ) -> str:
        """Write a CASE of values; a value that is not listed adds nothing."""
        dialect, parts = self.to.dialect, []
        if missing:
            parts.append(f"WHEN {cell} IS NULL THEN {dialect.number(missing)}")
        for result, values in by_result.items():
            texts = list(map(dialect.value, values))
            test = f"= {texts[0]}" if len(texts) == 1 else f"IN ({', '.join(texts)})"
            parts.append(f"WHEN {cell} {test} THEN {dialect.number(result)}")
        if not parts:
            return ""
        return f"CASE {' '.join(parts)} ELSE {dialect.number(0.0)} END"

    # ----------------------------------------------------------------------- bins

    def _bins(self, term: Bins) -> list[str]:
        cell, number = self.cell(term.column), self.to.dialect.number
        added = []
        for pick in self.picks:
            results = [pick(row) for row in term.rows]
            missing = pick(term.missing)
            if not missing and not any(results):
                added.append("")
                continue
            null = f"WHEN {cell} IS NULL THEN {number(missing)} "
            texts = list(map(number, results))
            added.append(self._intervals(cell, term.edges, texts, null))
        return added

    def _intervals(
        self, cell: str, edges: Sequence[float], results: Sequence[str], null: str = ""
    ) -> str:
        """Write a CASE of intervals, halved where it is long."""
        kept = [k for k in range(len(edges)) if results[k] != results[k + 1]]
        results = [*(results[k] for k in kept), results[-1]]
        edges = [edges[k] for k in kept]
        return f"CASE {null}{self._tree(cell, edges, results)} END"

    def _tree(self, cell: str, edges: Sequence[float], results: Sequence[str]) -> str:
        edge = self.to.dialect.edge
        if not edges:
            return f"WHEN {cell} IS NOT NULL THEN {results[0]}"
        if len(edges) < _MOST_INTERVALS:
            tests = [
                f"WHEN {cell} <= {edge(e)} THEN {result}"
                for e, result in zip(edges, results, strict=False)
            ]
            return f"{' '.join(tests)} ELSE {results[-1]}"
        middle = len(edges) // 2
        lower = self._tree(cell, edges[:middle], results[: middle + 1])
        upper = self._tree(cell, edges[middle + 1 :], results[middle + 1 :])
        test = f"WHEN {cell} <= {edge(edges[middle])}"
        return f"{test} THEN CASE {lower} END ELSE CASE {upper} END"

    # ------------------------------------------------------------------ densities

    def _density(self, term: Density, node: Sum) -> list[str]:
        number = self.to.dialect.number
        cell = self.cell(term.column)
        if term.fill is not None:
            cell = self.to.let(f"coalesce({cell}, {number(term.fill)})")
        told = [self._told(term, cell, c) for c in range(len(term.mean))]
        if term.form == "relative":
            told = [self.to.let(what) for what in told]
            top = self.to.let(self.to.largest(told))
            least = number(-term.depth)
            largest = self.to.dialect.largest
            told = [self.to.let(f"{largest}({t} - {top}, {least})") for t in told]
        if node.is_odds:
            if term.form == "linear":
                parts = [(term.weight[1] - term.weight[0], told[0])]
            else:
                parts = [(term.weight[1], told[1]), (-term.weight[0], told[0])]
            products = [f"{number(w)} * {what}" for w, what in parts if w]
            return [self._known(cell, self.to.sum(products)) if products else ""]
        return [
            self._known(cell, f"{number(w)} * {what}") if w else ""
            for w, what in zip(term.weight, told, strict=True)
        ]

    def _known(self, cell: str, what: str) -> str:
        # Of greatest and least databases disagree what they make of NULL.
        zero = self.to.dialect.number(0.0)
        return f"CASE WHEN {cell} IS NULL THEN {zero} ELSE {what} END"

    def _told(self, term: Density, cell: str, c: int) -> str:
        """Write what a number says for a class, before weights."""
        dialect = self.to.dialect
        number, least, largest = dialect.number, dialect.smallest, dialect.largest
        scale, is_linear = term.scale[c], term.form == "linear"
        most = term.limit if is_linear else _FARTHEST
        # Bounds before the product, so that nothing overflows, and exact ones after.
        far = number(min(2.0 * most / scale, 1e300))
        away = f"{cell} - {number(term.mean[c])}"
        if is_linear:
            away = f"{largest}(-{far}, {least}({far}, {away}))"
        else:
            away = f"{least}({far}, abs({away}))"
        away = self.to.let(away)
        product = f"{least}({number(most)}, {away} * {number(scale)})"
        if is_linear:
            product = f"{largest}({number(-most)}, {product})"
        small = f"abs({away}) < {number(_NEAREST / scale)}"
        t = self.to.let(f"CASE WHEN {small} THEN {number(0.0)} ELSE {product} END")
        if is_linear:
            return t
        return f"({number(term.constant[c])} - {number(0.5)} * {t} * {t})"

    # ---------------------------------------------------------------------- pairs

    def _pair(self, term: Pair) -> list[str]:
        first, second = map(self._group, term.sides)
        dialect, zero = self.to.dialect, self.to.dialect.number(0.0)
        grids = [[[pick(r) for r in of] for of in term.rows] for pick in self.picks]
        if max(len(term.rows), len(term.rows[0])) > _MOST_CASES:
            rows = [
                [str(a), str(b), *(dialect.number(grid[a][b]) for grid in grids)]
                for a in range(len(term.rows))
                for b in range(len(term.rows[0]))
                if any(grid[a][b] for grid in grids)
            ]
            alias = self.to.join([first, second], ["INTEGER"] * 2, rows)
            return [
                f"coalesce({self.to.number(alias, i)}, {zero})"
                for i in range(len(grids))
            ]
        return [self._grid(first, second, grid) for grid in grids]

    def _grid(self, first: str, second: str, grid: list[list[float]]) -> str:
        number, zero = self.to.dialect.number, self.to.dialect.number(0.0)
        outer = []
        for a, results in enumerate(grid):
            inner = [
                f"WHEN {b} THEN {number(result)}"
                for b, result in enumerate(results)
                if result
            ]
            if inner:
                case = f"CASE {second} {' '.join(inner)} ELSE {zero} END"
                outer.append(f"WHEN {a} THEN {case}")
        return f"CASE {first} {' '.join(outer)} ELSE {zero} END" if outer else ""

    def _group(self, side: Grouping) -> str:
        """Name the group of a cell, 0 for a value never seen."""
        cell, dialect = self.cell(side.column), self.to.dialect
        null = f"WHEN {cell} IS NULL THEN {side.missing} "
        if self.plan.columns[side.column].kind == "number":
            groups = list(map(str, side.groups))
            return self.to.let(self._intervals(cell, side.edges, groups, null))
        if len(side.values) <= _MOST_CASES:
            parts = []
            for group, values in _by_result(side.values, side.groups).items():
                texts = ", ".join(map(dialect.value, values))
                parts.append(f"WHEN {cell} IN ({texts}) THEN {group}")
            return self.to.let(f"CASE {null}{' '.join(parts)} ELSE 0 END")
        rows = [
            [dialect.value(value), str(group)]
            for value, group in zip(side.values, side.groups, strict=True)
        ]
        alias = self.to.join([cell], [dialect.type_of(side.values)], rows)
        found = f"coalesce({self.to.number(alias, 0)}, 0)"
        return self.to.let(f"CASE {null}ELSE {found} END")


def picks_of(node: Sum) -> list[Callable[[Row], float]]:
    """Return how the numbers of a sum come from a row: by class, or as log-odds."""
    if node.is_odds:
        return [lambda row: row[1] - row[0]]
    return [lambda row, c=c: row[c] for c in range(len(node.base))]  # type: ignore[misc]


def _by_result(
    values: Sequence[Any], results: Sequence[float]
) -> dict[float, list[Any]]:
    """Put values of equal results together; those that add nothing are left out."""
    found: dict[float, list[Any]] = {}
    for value, result in zip(values, results, strict=True):
        if result:
            found.setdefault(result, []).append(value)
    return found
