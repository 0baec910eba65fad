"""Terms of a plan as SQL expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from steelyard.export.plan import (
    Bins,
    Density,
    Grouping,
    Interaction,
    Lookup,
    Plan,
    Row,
    Sum,
)
from steelyard.export.statement import Statement

# Tests of a CASE, beyond which a table is joined. There is a CASE for each class: from
# 30 values on a join is quicker in all databases, with three classes from 16.
_MAX_CASES = 24
_MAX_TESTS = 48

# Intervals of one CASE; more are halved.
_MAX_INTERVALS = 32

# Distances that are squared stay within these, in deviations: databases refuse numbers
# that overflow, and PostgreSQL those that underflow.
_MAX_DISTANCE = 1e100
_MIN_DISTANCE = 1e-150


@dataclass
class Terms:
    """Contributions of the terms of one sum, an expression for each of its numbers."""

    plan: Plan
    to: Statement
    decimals: int | None = None
    """Decimal places of contributions; None for all."""

    picks: list[Callable[[Row], float]] = field(default_factory=list)
    """The numbers of a sum: those of its classes, or the log-odds of two."""

    def of(self, node: Sum) -> Iterator[tuple[int, list[str]]]:
        """Yield the attribute of every term, and its contribution to each number."""
        self.picks = picks_of(node, self.decimals)
        for term in node.terms:
            if isinstance(term, Lookup):
                added = self._lookup(term)
            elif isinstance(term, Bins):
                added = self._bins(term)
            elif isinstance(term, Density):
                added = self._density(term, node)
            else:
                added = self._interaction(term)
            yield (
                term.attribute if isinstance(term, Interaction) else term.column,
                added,
            )

    def cell(self, column: int) -> str:
        """Name the expression that reads a cell."""
        field, dialect = self.plan.columns[column], self.to.dialect
        if not field.date:
            return self.to.let(dialect.cell(field, self.to.table), field.name)
        moment = dialect.moment(field.date, self.to.table, self.to.let)
        moment = self.to.let(moment, f"{field.date} moment")
        return self.to.let(dialect.part_of_date(field.part, moment), field.name)

    def _is_long(self, n_tests: int) -> bool:
        """Whether a table is quicker than a CASE with ``n_tests`` for each number."""
        k = len(self.picks)
        return n_tests > _MAX_CASES or (k > 1 and n_tests * k > _MAX_TESTS)

    def _joined(
        self, key: str, kind: str, rows: Iterable[tuple[str, Row]], about: str
    ) -> list[str]:
        """Join a table of the contributions of keys."""
        number = self.to.dialect.number
        table = [
            [key, *(number(pick(row), bare=i > 0) for pick in self.picks)]
            for i, (key, row) in enumerate(rows)
        ]
        alias = self.to.join(key, (kind, self.to.dialect.real), table, about)
        return [self.to.number(alias, i) for i in range(len(self.picks))]

    def _by_code(self, code: str, rows: Sequence[Row], about: str) -> list[str]:
        """Join a table of the contributions of all codes: 0, 1, ..."""
        keyed = ((str(k), row) for k, row in enumerate(rows))
        return self._joined(code, self.to.dialect.types[2], keyed, about)

    # ------------------------------------------------------------------- look-ups

    def _lookup(self, term: Lookup) -> list[str]:
        cell, dialect = self.cell(term.column), self.to.dialect
        if not self._is_long(len(term.values)):
            return [
                self._case(
                    cell,
                    pick(term.missing),
                    _by_result(term.values, list(map(pick, term.rows))),
                )
                for pick in self.picks
            ]
        keys = [dialect.value(value, is_key=True) for value in term.values]
        kind, name = dialect.key_type(term.values), self.plan.columns[term.column].name
        keyed = zip(keys, term.rows, strict=True)
        nonzero = [(key, row) for key, row in keyed if any(p(row) for p in self.picks)]
        numbers = self._joined(cell, kind, nonzero, name) if nonzero else []
        zero, added = dialect.number(0.0), []
        for i, missing in enumerate(pick(term.missing) for pick in self.picks):
            what = f"coalesce({numbers[i]}, {zero})" if numbers else ""
            if missing:
                when_missing = f"WHEN {cell} IS NULL THEN {dialect.number(missing)}"
                what = f"CASE {when_missing} ELSE {what or zero} END"
            added.append(what)
        return added

    def _case(
        self, cell: str, missing: float, by_result: dict[float, list[Any]]
    ) -> str:
        """Write a CASE of values; a value that is not listed adds nothing."""
        dialect, parts = self.to.dialect, []
        if missing:
            parts.append(f"WHEN {cell} IS NULL THEN {dialect.number(missing)}")
        for result, values in by_result.items():
            texts = [dialect.value(value, is_key=True) for value in values]
            test = f"= {texts[0]}" if len(texts) == 1 else f"IN ({', '.join(texts)})"
            parts.append(f"WHEN {cell} {test} THEN {dialect.number(result)}")
        if not parts:
            return ""
        return f"CASE {' '.join(parts)} ELSE {dialect.number(0.0)} END"

    # ----------------------------------------------------------------------- bins

    def _bins(self, term: Bins) -> list[str]:
        cell, number = self.cell(term.column), self.to.dialect.number
        n = len(term.rows)
        if len(self.picks) > 1 and self._is_long(n):
            side = Grouping(term.column, (), term.edges, (*range(n),), n, n + 1)
            rows, name = [*term.rows, term.missing], self.plan.columns[term.column].name
            return self._by_code(self._group(side), rows, name)
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
        """Write a CASE of intervals; a long one is halved."""
        kept = [k for k in range(len(edges)) if results[k] != results[k + 1]]
        results = [*(results[k] for k in kept), results[-1]]
        edges = [edges[k] for k in kept]
        return f"CASE {null}{self._tree(cell, edges, results)} END"

    def _tree(self, cell: str, edges: Sequence[float], results: Sequence[str]) -> str:
        number = self.to.dialect.number
        if not edges:
            return f"WHEN {cell} IS NOT NULL THEN {results[0]}"
        if len(edges) < _MAX_INTERVALS:
            tests = [
                f"WHEN {cell} <= {number(e, bare=True)} THEN {result}"
                for e, result in zip(edges, results, strict=False)
            ]
            return f"{' '.join(tests)} ELSE {results[-1]}"
        middle = len(edges) // 2
        lower = self._tree(cell, edges[:middle], results[: middle + 1])
        upper = self._tree(cell, edges[middle + 1 :], results[middle + 1 :])
        test = f"WHEN {cell} <= {number(edges[middle], bare=True)}"
        return f"{test} THEN CASE {lower} END ELSE CASE {upper} END"

    # ------------------------------------------------------------------ densities

    def _density(self, term: Density, node: Sum) -> list[str]:
        number = self.to.dialect.number
        cell = self.cell(term.column)
        if term.fill is not None:
            cell = self.to.let(f"coalesce({cell}, {number(term.fill)})")
        scores = [self._log_density(term, cell, c) for c in range(len(term.mean))]
        if term.form == "relative":
            scores = [self.to.let(what) for what in scores]
            top = self.to.let(self.to.largest(scores))
            least = number(-term.depth)
            largest = self.to.dialect.largest
            scores = [
                self.to.let(f"{largest}({score} - {top}, {least})") for score in scores
            ]
        if node.is_odds:
            if term.form == "linear":
                parts = [(term.weight[1] - term.weight[0], scores[0])]
            else:
                parts = [(term.weight[1], scores[1]), (-term.weight[0], scores[0])]
            products = [f"{number(w)} * {what}" for w, what in parts if w]
            return [self._if_observed(cell, self.to.sum(products)) if products else ""]
        return [
            self._if_observed(cell, f"{number(w)} * {what}") if w else ""
            for w, what in zip(term.weight, scores, strict=True)
        ]

    def _if_observed(self, cell: str, what: str) -> str:
        # Databases disagree on greatest and least of NULL.
        zero = self.to.dialect.number(0.0)
        return f"CASE WHEN {cell} IS NULL THEN {zero} ELSE {what} END"

    def _log_density(self, term: Density, cell: str, c: int) -> str:
        """Write the log-density of a number in a class, before weights."""
        dialect = self.to.dialect
        number, least, largest = dialect.number, dialect.smallest, dialect.largest
        scale, is_linear = term.scale[c], term.form == "linear"
        limit = term.limit if is_linear else _MAX_DISTANCE
        # Bounds before the product, so that nothing overflows, and exact ones after.
        far = number(min(2.0 * limit / scale, 1e300))
        away = f"{cell} - {number(term.mean[c])}"
        if is_linear:
            away = f"{largest}(-{far}, {least}({far}, {away}))"
        else:
            away = f"{least}({far}, abs({away}))"
        away = self.to.let(away)
        product = f"{least}({number(limit)}, {away} * {number(scale)})"
        if is_linear:
            product = f"{largest}({number(-limit)}, {product})"
        small = f"abs({away}) < {number(_MIN_DISTANCE / scale)}"
        t = self.to.let(f"CASE WHEN {small} THEN {number(0.0)} ELSE {product} END")
        if is_linear:
            return t
        return f"({number(term.constant[c])} - {number(0.5)} * {t} * {t})"

    # ------------------------------------------------------------------ interactions

    def _interaction(self, term: Interaction) -> list[str]:
        first, second = map(self._group, term.sides)
        if self._is_long(len(term.rows) + len(term.rows[0])):
            name, n = self.plan.attributes[term.attribute], len(term.rows[0])
            code = self.to.let(f"({first} * {n} + {second})", name)
            return self._by_code(code, [row for of in term.rows for row in of], name)
        grids = [[[pick(r) for r in of] for of in term.rows] for pick in self.picks]
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
        about = f"{self.plan.columns[side.column].name} group"
        null = f"WHEN {cell} IS NULL THEN {side.missing} "
        if self.plan.columns[side.column].kind == "number":
            groups = list(map(str, side.groups))
            return self.to.let(self._intervals(cell, side.edges, groups, null), about)
        if len(side.values) <= _MAX_CASES:
            parts = []
            for group, values in _by_result(side.values, side.groups).items():
                texts = ", ".join(dialect.value(v, is_key=True) for v in values)
                parts.append(f"WHEN {cell} IN ({texts}) THEN {group}")
            return self.to.let(f"CASE {null}{' '.join(parts)} ELSE 0 END", about)
        rows = [
            [dialect.value(value, is_key=True), str(group)]
            for value, group in zip(side.values, side.groups, strict=True)
        ]
        types = (dialect.key_type(side.values), dialect.types[2])
        alias = self.to.join(cell, types, rows, about)
        group_of_key = f"coalesce({self.to.number(alias, 0)}, 0)"
        return self.to.let(f"CASE {null}ELSE {group_of_key} END", about)


def picks_of(node: Sum, decimals: int | None = None) -> list[Callable[[Row], float]]:
    """Return functions from a row to the numbers of a sum: classes, or log-odds."""
    if node.is_odds:
        picks: list[Callable[[Row], float]] = [lambda row: row[1] - row[0]]
    else:
        picks = [itemgetter(c) for c in range(len(node.base))]
    if decimals is None:
        return picks
    return [lambda row, pick=pick: round(pick(row), decimals) for pick in picks]  # type: ignore[misc]


def _by_result(
    values: Sequence[Any], results: Sequence[float]
) -> dict[float, list[Any]]:
    """Group values by their results; those of 0 are left out."""
    by_result: dict[float, list[Any]] = {}
    for value, result in zip(values, results, strict=True):
        if result:
            by_result.setdefault(result, []).append(value)
    return by_result
