"""Scores, probabilities and the predicted class of a plan as SQL expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any

from steelyard.export.plan import (
    UNKNOWN_CELLS,
    Bins,
    Density,
    Grouping,
    Interaction,
    Lookup,
    Mixture,
    Node,
    Pairs,
    Plan,
    Row,
    Sum,
    Vote,
    merged_bins,
)
from steelyard.export.sql_statement import Statement

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

# Powers stay within these: PostgreSQL refuses exponentials that underflow.
_LARGEST_POWER = 700.0


@dataclass
class Terms:
    """Contributions of the terms of one sum, an expression for each of its numbers."""

    plan: Plan
    to: Statement
    decimals: int | None
    """Decimal places of contributions; None for all."""

    contributions: bool
    """Whether contributions are returned as well."""

    picks: list[Callable[[Row], float]] = field(default_factory=list)
    """The numbers of a sum: those of its classes, or the log-odds of two."""

    uncounted: dict[int, bool] = field(default_factory=dict)
    """Columns whose unknown cells are yet to be counted: see ``Plan.counted``."""

    joined: dict[int, str] = field(default_factory=dict)
    """Of such columns, a joined number that is NULL for values never seen."""

    def number(self, x: float, bare: bool = False) -> str:
        """Write a number."""
        return self.to.dialect.number(x, bare)

    def terms(self, node: Sum) -> Iterator[tuple[int, list[str]]]:
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
            yield term.attribute, added

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
        table = [
            [key, *(self.number(pick(row), bare=i > 0) for pick in self.picks)]
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
        is_counted = term.column in self.uncounted
        keyed = [
            (key, row)
            for key, row in zip(keys, term.rows, strict=True)
            if is_counted or any(pick(row) for pick in self.picks)
        ]
        numbers = self._joined(cell, kind, keyed, name) if keyed else []
        if is_counted:
            self.joined[term.column] = numbers[0]
        zero, added = self.number(0.0), []
        for i, missing in enumerate(pick(term.missing) for pick in self.picks):
            what = f"coalesce({numbers[i]}, {zero})" if numbers else ""
            if missing:
                when_missing = f"WHEN {cell} IS NULL THEN {self.number(missing)}"
                what = f"CASE {when_missing} ELSE {what or zero} END"
            added.append(what)
        return added

    def _case(
        self, cell: str, missing: float, by_result: dict[float, list[Any]]
    ) -> str:
        """Write a CASE of values; a value that is not listed adds nothing."""
        dialect, parts = self.to.dialect, []
        if missing:
            parts.append(f"WHEN {cell} IS NULL THEN {self.number(missing)}")
        for result, values in by_result.items():
            texts = [dialect.value(value, is_key=True) for value in values]
            test = f"= {texts[0]}" if len(texts) == 1 else f"IN ({', '.join(texts)})"
            parts.append(f"WHEN {cell} {test} THEN {self.number(result)}")
        if not parts:
            return ""
        return f"CASE {' '.join(parts)} ELSE {self.number(0.0)} END"

    # ----------------------------------------------------------------------- bins

    def _bins(self, term: Bins) -> list[str]:
        cell, number, n = self.cell(term.column), self.number, len(term.rows)
        if len(self.picks) > 1 and self._is_long(n):
            side = Grouping(term.column, (), term.edges, (*range(n),), n, n + 1)
            rows, name = [*term.rows, term.missing], self.plan.columns[term.column].name
            return self._by_code(self.group(side), rows, name)
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
        return f"CASE {null}{self._tree(cell, *merged_bins(edges, results))} END"

    def _tree(self, cell: str, edges: Sequence[float], results: Sequence[str]) -> str:
        number = self.number
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

    # -------------------------------------------------------------- unknown cells

    def _unknown(self, column: int) -> str:
        """Write 1 for an unknown cell of a column, and 0 for others."""
        by_missing = self.uncounted.pop(column)
        cell, values = self.cell(column), self.plan.columns[column].values
        dialect, name = self.to.dialect, self.plan.columns[column].name
        when_missing = f"WHEN {cell} IS NULL THEN {int(by_missing)}"
        if self.plan.columns[column].kind == "number" or not values:
            rest = int(self.plan.columns[column].kind == "category")
            return f"CASE {when_missing} ELSE {rest} END"
        keys = [dialect.value(value, is_key=True) for value in values]
        if column not in self.joined and len(values) > _MAX_CASES:
            types = dialect.key_type(values), dialect.types[2]
            alias = self.to.join(cell, types, [[key, "1"] for key in keys], name)
            self.joined[column] = self.to.number(alias, 0)
        if column in self.joined:
            when_new = f"WHEN {self.joined[column]} IS NULL THEN 1 ELSE 0"
        else:
            when_new = f"WHEN {cell} IN ({', '.join(keys)}) THEN 0 ELSE 1"
        return f"CASE {when_missing} {when_new} END"

    # ------------------------------------------------------------------ densities

    def _density(self, term: Density, node: Sum) -> list[str]:
        number, cell = self.number, self.cell(term.column)
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
        return f"CASE WHEN {cell} IS NULL THEN {self.number(0.0)} ELSE {what} END"

    def _log_density(self, term: Density, cell: str, c: int) -> str:
        """Write the log-density of a number in a class, before weights."""
        least, largest = self.to.dialect.smallest, self.to.dialect.largest
        number = self.number
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
        first, second = map(self.group, term.sides)
        if self._is_long(len(term.rows) + len(term.rows[0])):
            name, n = self.plan.attributes[term.attribute], len(term.rows[0])
            code = self.to.let(f"({first} * {n} + {second})", name)
            return self._by_code(code, [row for of in term.rows for row in of], name)
        grids = [[[pick(r) for r in of] for of in term.rows] for pick in self.picks]
        return [self._grid(first, second, grid) for grid in grids]

    def _grid(self, first: str, second: str, grid: list[list[float]]) -> str:
        zero, outer = self.number(0.0), []
        for a, results in enumerate(grid):
            inner = [
                f"WHEN {b} THEN {self.number(result)}"
                for b, result in enumerate(results)
                if result
            ]
            if inner:
                case = f"CASE {second} {' '.join(inner)} ELSE {zero} END"
                outer.append(f"WHEN {a} THEN {case}")
        return f"CASE {first} {' '.join(outer)} ELSE {zero} END" if outer else ""

    def group(self, side: Grouping) -> str:
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


@dataclass
class ScoringQuery(Terms):
    """The stages from scores to probabilities and the predicted class."""

    contributed: list[tuple[str, str]] = field(default_factory=list)
    """Contributions: expressions and the names of their columns."""

    counted: list[tuple[str, str]] = field(default_factory=list)
    """The number of unknown cells and its name, if they are counted."""

    def outputs(self, probabilities: bool) -> list[tuple[str, str]]:
        """Return what the statement selects: expressions and names."""
        root, classes = self.plan.root, self.plan.classes
        if isinstance(root, Sum):
            scores = self.scores(root)
            best = self.winner(root, scores)
            if not probabilities:
                labels = classes[1:] if root.is_odds else classes
                named = [
                    ("NULL" if z is None else self.scaled(z, root.scale), f"score({c})")
                    for z, c in zip(scores, labels, strict=True)
                ]
                return [(best, "prediction"), *named, *self.counted, *self.contributed]
            proba = self.softmax(root, scores)
        else:
            proba = [self.to.let(p, "p") for p in self.posterior(root)]
            best = self.winner(root, proba)
        named = [(p, f"p({c})") for p, c in zip(proba, classes, strict=True)]
        return [(best, "prediction"), *named, *self.counted, *self.contributed]

    # ----------------------------------------------------------------------- scores

    def scores(self, node: Sum) -> list[str | None]:
        """Name the scores of a sum, or its log-odds; None for an impossible class."""
        picks, attributes = picks_of(node), self.plan.attributes
        base = node.base[1:] if self.plan.unit else [pick(node.base) for pick in picks]
        sums = [[self.number(b)] if b > float("-inf") else [] for b in base]
        named: dict[tuple[int, int], str] = {}
        unknown: list[str] = []
        self.uncounted = self.plan.counted() if node is self.plan.root else {}
        for j, terms in groupby(self.terms(node), itemgetter(0)):
            for i, numbers in enumerate(
                zip(*(added for _, added in terms), strict=True)
            ):
                parts = [expression for expression in numbers if expression]
                if self.contributions and parts:
                    named[j, i] = self.to.let(self.to.sum(parts), attributes[j])
                    parts = [named[j, i]]
                sums[i] += parts if sums[i] else []
            if j in self.uncounted:
                unknown.append(self._unknown(j))
            if self.to.is_crowded():
                sums = [
                    [self.total(parts, "so far")] if parts else [] for parts in sums
                ]
                unknown = unknown and [self.total(unknown, "unknown so far")]
                self.to.wait_for(name for parts in [*sums, unknown] for name in parts)
        for j in list(self.uncounted):
            unknown.append(self._unknown(j))
        if unknown:
            self.counted = [(self.total(unknown, "unknown cells"), UNKNOWN_CELLS)]
        if self.contributions:
            self.add_contributions(node, named)
        if self.plan.unit:
            total = self.total(sums[0], self.plan.unit)
            self.contributed.insert(0, (total, self.plan.unit))
            return [self.to.let(f"({total} - {self.number(node.base[0])})", "odds")]
        words = ["odds"] if node.is_odds else [f"score {c}" for c in self.labels(node)]
        by_class = zip(sums, words, strict=True)
        return [self.total(parts, of) if parts else None for parts, of in by_class]

    def total(self, parts: Sequence[str], about: str) -> str:
        """Name a sum."""
        return self.to.let(self.to.sum(parts), about)

    def labels(self, node: Node) -> list[Any]:
        """Return the classes of a node."""
        return [self.plan.classes[c] for c in node.classes]

    def add_contributions(self, node: Sum, named: dict[tuple[int, int], str]) -> None:
        """Add the contribution of each attribute, relative to the average row."""
        unit = self.plan.unit
        for j, attribute in enumerate(self.plan.attributes):
            for i, pick in enumerate(picks_of(node)):
                mean = pick(node.centre[j]) if node.centre else 0.0
                scale = 1.0 if unit else node.scale
                what = self.number(0.0 - scale * mean)
                if sum_of_terms := named.get((j, i)):
                    away = f"({sum_of_terms} - {self.number(mean)})"
                    what = self.scaled(away if mean else sum_of_terms, scale)
                # Log-odds of two classes are those of the second.
                label = self.plan.classes[i + node.is_odds]
                name = f"evidence({attribute}, {label})"
                self.contributed.append(
                    (what, f"{unit}({attribute})" if unit else name)
                )

    def winner(
        self,
        node: Node,
        numbers: Sequence[str | None],
        results: Sequence[str] | None = None,
    ) -> str:
        """Write the class, or its result, of the largest score or probability."""
        if results is None:
            results = list(map(self.to.dialect.value, self.labels(node)))
        if isinstance(node, Sum) and node.is_odds:
            test = ">=" if node.tie_order[0] == 1 else ">"
            zero = self.number(0.0)
            yes, no = results[1], results[0]
            return f"CASE WHEN {numbers[0]} {test} {zero} THEN {yes} ELSE {no} END"
        # The first of the best wins a tie.
        *others, last = [c for c in node.tie_order if numbers[c] is not None]
        if not others:
            return results[last]
        top = self.top([str(numbers[c]) for c in (*others, last)])
        tests = " ".join(
            f"WHEN {numbers[c]} >= {top} THEN {results[c]}" for c in others
        )
        return f"CASE {tests} ELSE {results[last]} END"

    def top(self, numbers: Sequence[str]) -> str:
        """Name the largest of some numbers."""
        if len(numbers) == 1:
            return numbers[0]
        return self.to.let(self.to.largest(sorted(numbers)), "top")

    # ------------------------------------------------------------------ probabilities

    def posterior(self, node: Node) -> list[str]:
        """Write the probabilities of a node's classes."""
        if isinstance(node, Sum):
            return self.softmax(node, self.scores(node))
        if isinstance(node, Vote):
            return self.vote(node)
        parts = [[self.to.let(p, "p") for p in self.posterior(q)] for q in node.parts]
        terms: list[list[str]] = [[] for _ in node.classes]
        if isinstance(node, Mixture):
            for share, part in zip(node.shares, parts, strict=True):
                for summands, p in zip(terms, part, strict=True):
                    summands.append(f"{self.number(share)} * {p}")
            return list(map(self.to.sum, terms))
        assert isinstance(node, Pairs)
        for pair, part in zip(node.pairs, parts, strict=True):
            for c, p in zip(pair, part, strict=True):
                terms[c].append(p)
        n = self.number(float(len(node.pairs)))
        return [f"({self.to.sum(summands)} / {n})" for summands in terms]

    def softmax(self, node: Sum, scores: Sequence[str | None]) -> list[str]:
        """Write posterior probabilities of scores, or of log-odds."""
        if node.is_odds:
            odds = self.scaled(str(scores[0]), node.scale)
            power, one = self.power(odds), self.number(1.0)
            return [f"{one} / ({one} + {power})", f"{power} / ({one} + {power})"]
        return self.shares(scores, node.scale)

    def shares(self, scores: Sequence[str | None], scale: float) -> list[str]:
        """Write the softmax of scores."""
        possible = [z for z in scores if z is not None]
        top = self.top(possible)
        # Classes of equal tables have one score, and each has its part in the total.
        powers = [
            None if z is None else self.power(self.scaled(f"({z} - {top})", scale))
            for z in scores
        ]
        total = self.total([e for e in powers if e is not None], "total")
        return [self.number(0.0) if e is None else f"{e} / {total}" for e in powers]

    def scaled(self, what: str, scale: float) -> str:
        """Write a product; a factor of one is left out."""
        return what if scale == 1.0 else f"{self.number(scale)} * {what}"

    def power(self, exponent: str) -> str:
        """Name an exponential, of a number within bounds."""
        dialect, far = self.to.dialect, _LARGEST_POWER
        above = f"{dialect.smallest}({self.number(far)}, {exponent})"
        return self.to.let(
            f"exp({dialect.largest}({self.number(-far)}, {above}))", "exp"
        )

    def vote(self, node: Vote) -> list[str]:
        """Write the probabilities of a vote."""
        if node.form == "elkan":
            one, two = self.number(1.0), self.number(2.0)
            parts = []
            for vote, part in zip(node.votes, node.parts, strict=True):
                p = self.to.let(self.posterior(part)[1], "p")
                parts.append(f"{self.number(vote)} * ({two} * {p} - {one})")
            power = self.power(f"-{self.total(parts, 'votes')}")
            second = self.to.let(f"{one} / ({one} + {power})", "p")
            return [f"{one} - {second}", second]
        positions = list(map(str, range(len(node.classes))))
        chosen = [
            self.to.let(self.winner(part, self.scores(part), positions), "chosen")
            for part in node.parts
        ]
        zero = self.number(0.0)
        votes = list(zip(chosen, map(self.number, node.votes), strict=True))
        totals: list[str | None] = [
            self.total(
                [f"CASE {t} WHEN {c} THEN {v} ELSE {zero} END" for t, v in votes],
                "votes",
            )
            for c in positions
        ]
        return self.shares(totals, 1.0)


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
