"""Score single rows, with the standard library alone.

This module reads a plan as plain data and imports nothing else but ``one_cell``: an
exported ``model.py`` is the text of the two and the data of a model.

Each sum is compiled to straight lines of Python, which add in the order of the kernels:
a row is one call and no loop. With the additions of ``predict_proba``, four at a time,
and its exponential, a scorer would otherwise take half as long again. The lines contain
positions alone; names, tables and numbers of a model are never part of the text.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from math import ldexp
from operator import add, mul, sub
from typing import Any

from steelyard._common.one_cell import (
    INF,
    UNKNOWN,
    CellsOf,
    Entry,
    among_values,
    date_parts,
    in_intervals,
)
from steelyard.exceptions import ColumnError
from steelyard.export.partial_rows import Given, PartialRows

# With more amounts, classes are added up in loops: a line takes 0.01 ms to compile.
_MAX_NAMES = 10_000

# Far beyond what matters in log-densities; the least that Weka's intervals may be.
_MAX_DISTANCE = 1e100
_FLOOR = 1e-75

Cells = dict[str, Any]
"""A cell for every column that is read, by name."""

Pick = Callable[[Any], Any]
"""What is taken of a row of a term: all classes, or the log-odds of the second."""


class Scorer:
    """A function of one row, a mapping from column names to cells.

    It consists of constants: threads may share it, and it can be pickled. None, NaN and
    columns that a row leaves out are missing. Dates are those of Python, or ISO's text.

    Examples
    --------
    >>> import pandas as pd, steelyard as sy
    >>> X = pd.DataFrame({"sky": ["sun", "rain"] * 4, "degrees": [21.0, 12.0] * 4})
    >>> score = sy.NaiveBayes().fit(X, ["play", "stay"] * 4).scorer()
    >>> score({"sky": "rain", "degrees": None})["stay"] > 0.8
    True
    >>> score.predict({"sky": "rain"})
    'stay'
    """

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self.classes = list(data["classes"])
        columns = [CellsOf(**column) for column in data["columns"]]
        self.columns = [column.name for column in columns]
        self._names = frozenset(self.columns)
        self._attributes = data["attributes"]
        self._model = _MODELS[data["model"]["kind"]](data["model"], columns)
        self._posterior = self._model.posterior
        # Of a row of as many cells, all names are right if those that are read are.
        self._n_cells = len(columns) if self._names <= self._model.names() else -1
        self._dates: dict[str, list[CellsOf]] = {}
        for column in columns:
            if column.date:
                self._dates.setdefault(column.date, []).append(column)
                self._n_cells = -1

    def __call__(self, row: Mapping[str, Any]) -> dict[Any, float]:
        """Return the posterior probability of every class."""
        try:
            if type(row) is not dict or len(row) != self._n_cells:
                row = self._whole(row)
            posterior = self._posterior(row)
        except KeyError:
            posterior = self._posterior(self._whole(row))
        return dict(zip(self.classes, posterior, strict=True))

    def predict(self, row: Mapping[str, Any]) -> Any:
        """Return the most probable class; a tie goes to the larger prior."""
        return self.answer(row)[0]

    def answer(self, row: Mapping[str, Any]) -> tuple[Any, list[float]]:
        """Return the most probable class, and the probabilities of all."""
        best, posterior = self._model.answer(self._whole(row))
        return self.classes[best], posterior

    def reasons(
        self, row: Mapping[str, Any], most: int | None = None
    ) -> dict[str, float]:
        """Return contributions to the log-odds of the best class against the next.

        They are relative to the average training row, also those of missing cells. In a
        model that is not one sum, they are what is lost without the cell. The largest
        come first; those of zero are left out.
        """
        amounts = self._model.reasons(self._whole(row), self.columns)
        largest = sorted(amounts.items(), key=lambda item: -abs(item[1]))
        return {self._attributes[j]: amount for j, amount in largest[:most] if amount}

    def _whole(self, row: Mapping[str, Any]) -> Cells:
        """Return a row with a cell for every column, None for one left out."""
        if not isinstance(row, Mapping):
            raise ColumnError(
                "A row must be a mapping from column names to cells, got a "
                f"{type(row).__name__}. Of a row of a frame, pass row.to_dict()."
            )
        if not self._names.issuperset(row):
            name = next(name for name in row if name not in self._names)
            from difflib import get_close_matches

            close = get_close_matches(str(name), self.columns, 1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise ColumnError(f"The model has no column {name!r}.{hint}")
        whole = {**dict.fromkeys(self.columns), **row}
        for date, columns in self._dates.items():
            parts = date_parts(date, row.get(date))
            if parts is not None:
                whole |= {column.name: parts[column.part] for column in columns}
        return whole

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.data,)

    def __repr__(self) -> str:
        return f"<scorer of {self.data['estimator']}, {len(self.columns)} columns>"


# ------------------------------------------------------------------------------- models


class _Sum:
    """One sum for each class; of two classes one, of log-odds, as in the kernels."""

    def __init__(self, data: dict[str, Any], columns: list[CellsOf]) -> None:
        self.data, self.columns = data, columns
        self.order, self.scale = data["order"], data["scale"]
        has_densities = any(term["kind"] == "density" for term in data["terms"])
        two = len(data["base"]) == 2 and None not in data["base"]
        self.is_odds = two and not has_densities
        moments = data.get("marginal")
        self.lines = Lines(_marked(data, 0.0), columns, self.is_odds)
        self.names, self.posterior = self.lines.columns_read, self.lines.posterior()
        if moments is not None:
            self.partial = PartialRows(moments)
            self.plain = _Sum(moments["plain"], columns)
            self.posterior = lambda row: self.answer(row)[1]

    @cached_property
    def scores(self) -> Callable[[Cells], Any]:
        """Log-odds of the second class of a row, or its scores of all classes."""
        return self.lines.scores()

    @cached_property
    def amounts(self) -> Callable[[Cells], list[Any]]:
        """What each term adds to the score of every class."""
        return Lines(self.data, self.columns, is_odds=False).amounts()

    @cached_property
    def missing(self) -> Callable[[Cells], list[Any]]:
        """What each term adds to the first class, NaN if its column is missing."""
        return Lines(_marked(self.data, math.inf), self.columns, False).amounts()

    def is_partial(self, row: Cells) -> bool:
        scores = self.scores(row)
        first = scores if self.is_odds else scores[0]
        return bool(first != first)

    def conditioned(self, row: Cells) -> tuple[Given, dict[int, list[float]]]:
        """Return what follows from the observed cells, and what these add."""
        n_columns = len(self.data["marginal"]["value_odds"])
        missing = [x[0] != x[0] for x in self.missing(row)[:n_columns]]
        given = self.partial.given(missing)
        return given, self.partial.contributions(given, self.amounts(row))

    def answer(self, row: Cells) -> tuple[int, list[float]]:
        """Return the position of the most probable class, and all probabilities."""
        scores = self.scores(row)
        first = scores if self.is_odds else scores[0]
        if first != first:
            plain = self.plain.scores(row)
            plain = [0.0, plain] if self.plain.is_odds else plain
            proba = self.partial.proba(*self.conditioned(row), plain, self.scale)
            return _first_best(proba, self.order), proba
        if not self.is_odds:
            scaled = [score * self.scale for score in scores]
            return _first_best(scores, self.order), softmax(scaled)
        best = self.order[0] if scores == 0.0 else int(scores > 0.0)
        return best, logistic(scores * self.scale)

    def reasons(self, row: Cells, names: Sequence[str]) -> dict[int, float]:
        first, second = _best_two(self.posterior(row))
        sums: dict[int, Any] = {}
        if self.is_partial(row):
            _, added = self.conditioned(row)
            if len(self.data["base"]) == 2:
                added = {j: [0.0, x] for j, (x,) in added.items()}
            return {j: self.scale * (x[first] - x[second]) for j, x in added.items()}
        for term, amounts in zip(self.data["terms"], self.amounts(row), strict=True):
            j = term["attribute" if term["kind"] == "interaction" else "column"]
            sums[j] = [*map(add, sums[j], amounts)] if j in sums else amounts
        for j, mean in enumerate(self.data["centre"]):
            if j in sums:
                sums[j] = [*map(sub, sums[j], mean)]
        return {
            j: self.scale * amounts[first] - self.scale * amounts[second]
            for j, amounts in sorted(sums.items())
        }


def _marked(data: dict[str, Any], limit: float) -> dict[str, Any]:
    """Return a sum with NaN for cells that are averaged over.

    Of columns whose odds that a missing cell is a value are at most ``limit``.
    """
    moments = data.get("marginal")
    if moments is None:
        return data
    terms, nothing = [], [math.nan] * len(data["base"])
    for term in data["terms"]:
        j = term.get("column")
        odds = None if j is None else moments["value_odds"][j]
        if odds is not None and odds <= limit:
            term = {**term, "unseen": nothing}
            if moments["by_missing"][j]:
                term["missing"] = nothing
        terms.append(term)
    return {**data, "terms": terms}


class _Parts:
    """A model that is made of others."""

    def __init__(self, data: dict[str, Any], columns: list[CellsOf]) -> None:
        self.data, self.order = data, data["order"]
        self.parts = [_MODELS[part["kind"]](part, columns) for part in data["parts"]]

    def names(self) -> set[str]:
        return {name for part in self.parts for name in part.names()}

    def posterior(self, row: Cells) -> list[float]:
        raise NotImplementedError

    def answer(self, row: Cells) -> tuple[int, list[float]]:
        posterior = self.posterior(row)
        return _first_best(posterior, self.order), posterior

    def is_partial(self, row: Cells) -> bool:
        return any(part.is_partial(row) for part in self.parts)

    def of_parts(self, row: Cells) -> list[Any]:
        """Return the posterior of every part."""
        return [part.posterior(row) for part in self.parts]

    def reasons(self, row: Cells, names: Sequence[str]) -> dict[int, float]:
        posterior = self.posterior(row)
        first, second = _best_two(posterior)
        whole = _log_odds(posterior, first, second)
        without = (self.posterior({**row, name: UNKNOWN}) for name in names)
        losses = (whole - _log_odds(other, first, second) for other in without)
        return dict(enumerate(losses))


class _Mixture(_Parts):
    def posterior(self, row: Cells) -> list[float]:
        a, b = self.data["shares"]
        both = zip(*self.of_parts(row), strict=True)
        return [a * first + b * second for first, second in both]


class _Pairs(_Parts):
    def posterior(self, row: Cells) -> list[float]:
        out = [0.0] * len(self.data["classes"])
        for (a, b), p in zip(self.data["pairs"], self.of_parts(row), strict=True):
            out[a] += p[0]
            out[b] += p[1]
        return [p / len(self.parts) for p in out]


class _Vote(_Parts):
    def posterior(self, row: Cells) -> list[float]:
        if self.data["form"] == "elkan":
            votes = zip(self.data["votes"], self.of_parts(row), strict=True)
            total = sum(vote * (2.0 * p[1] - 1.0) for vote, p in votes)
            second = 1.0 / (1.0 + math.exp(min(max(-total, -700.0), 700.0)))
            return [1.0 - second, second]
        scores = [0.0] * len(self.data["classes"])
        for vote, part in zip(self.data["votes"], self.parts, strict=True):
            scores[part.answer(row)[0]] += vote
        return softmax(scores)


_MODELS: dict[str, Any] = {
    "sum": _Sum,
    "mixture": _Mixture,
    "pairs": _Pairs,
    "vote": _Vote,
}


def _first_best(scores: Sequence[float], order: Iterable[int]) -> int:
    return max(order, key=scores.__getitem__)


def _best_two(posterior: Sequence[float]) -> list[int]:
    return sorted(range(len(posterior)), key=lambda c: -posterior[c])[:2]


def _log_odds(posterior: Sequence[float], first: int, second: int) -> float:
    # A vote may be unanimous; the smallest probability replaces 0.
    p, q = (max(posterior[c], 2.2250738585072014e-308) for c in (first, second))
    return math.log(p) - math.log(q)


# ------------------------------------------------------------------------------ lines


class Lines:
    """The lines of a sum of a plan, and the values of the names in them.

    They add up log-odds of the second class, or scores of all classes.
    """

    def __init__(
        self, data: dict[str, Any], columns: list[CellsOf], is_odds: bool
    ) -> None:
        self.terms, self.columns, self.is_odds = data["terms"], columns, is_odds
        base = [-INF if b is None else b for b in data["base"]]
        n_classes = 1 if is_odds else len(base)
        self.has_loops = n_classes * len(self.terms) > _MAX_NAMES and not is_odds
        self.classes = range(n_classes)
        self.pick: Pick = _difference if is_odds else tuple
        functions = (bisect_left, exp_of, logistic, softmax)
        self.names: dict[str, Any] = {of.__name__: of for of in functions}
        self.names |= {"INF": INF, "base": self.pick(base), "scale": data["scale"]}
        self.densities = self._of_kind("density")
        tables = {*range(len(self.terms))} - {*self.densities}
        self.blocks = data.get("blocks", [sorted(tables)])
        self.lines: list[str] = []
        self._read_lookups(self._of_kind("lookup"))
        for kind, read in (
            ("bins", self._read_bins),
            ("interaction", self._read_interaction),
            ("density", self._read_density),
        ):
            for k in self._of_kind(kind):
                read(k, self.terms[k])

    def columns_read(self) -> set[str]:
        """Return the names of the columns that are read."""
        return {name for key, name in self.names.items() if key[0] in "nm"}

    # ------------------------------------------------------------------ cells and terms

    def _of_kind(self, kind: str) -> list[int]:
        return [k for k, term in enumerate(self.terms) if term["kind"] == kind]

    def _name(self, k: int, **values: Any) -> None:
        """Name what the lines of a term need: a letter and the term's position."""
        self.names |= {f"{letter}{k}": value for letter, value in values.items()}

    def _read(self, k: int, text: str, indent: str = "") -> None:
        self.lines.append(f"{indent}{self._amounts([k])[:-1]} = {text}")

    def _amounts(self, positions: Iterable[int]) -> str:
        """Name the amounts of some terms, or those of the classes of each."""
        if self.is_odds or self.has_loops:
            return _listed(f"t{k}" for k in positions)
        each = (_listed(f"t{k}_{c}" for c in self.classes) for k in positions)
        return _listed(f"({names})" for names in each)

    def _zero(self, term: Any) -> Any:
        return self.pick(term.get("unseen", [0.0] * len(term["missing"])))

    def _read_lookups(self, positions: list[int]) -> None:
        """Look up categories together; one by one in a row with an unusual cell."""
        entries: list[tuple[str, Entry]] = []
        for k in positions:
            term = self.terms[k]
            column = self.columns[term["column"]]
            rows = map(self.pick, [term["missing"], *term["rows"]])
            amounts = dict(zip([None, *term["values"]], rows, strict=True))
            self._name(k, d=amounts, n=column.name)
            self.lines += [] if entries else ["try:"]
            self._read(k, f"d{k}[row[n{k}]]", indent="    ")
            entry = among_values(amounts, self._zero(term), column.value)
            entries.append((column.name, entry))
        if entries:
            self.names["careful"] = lambda row: [of(row[name]) for name, of in entries]
            self.lines.append("except (KeyError, TypeError):")
            self.lines.append(f"    {self._amounts(positions)} = careful(row)")

    def _read_bins(self, k: int, term: Any) -> None:
        column, edges = self.columns[term["column"]], list(term["edges"])
        rows, missing = list(map(self.pick, term["rows"])), self.pick(term["missing"])
        entry = in_intervals(edges, rows, missing, self._zero(term), column.number)
        self._name(k, n=column.name, e=edges, r=rows, q=entry)
        self.lines.append(f"x = row[n{k}]")
        is_usual = "type(x) is float and -INF < x < INF"
        self._read(k, f"r{k}[bisect_left(e{k}, x)] if {is_usual} else q{k}(x)")

    def _read_interaction(self, k: int, term: Any) -> None:
        (n, a), (m, b) = map(self._group, term["sides"])
        grid = [list(map(self.pick, rows)) for rows in term["rows"]]
        self._name(k, n=n, a=a, m=m, b=b, g=grid)
        self._read(k, f"g{k}[a{k}(row[n{k}])][b{k}(row[m{k}])]")

    def _group(self, side: Any) -> tuple[str, Entry]:
        """Return the name of a column, and how its cells become groups."""
        column, groups = self.columns[side["column"]], side["groups"]
        if column.kind == "category":
            by_value = dict(zip(side["values"], groups, strict=False))
            by_value[None] = side["missing"]
            return column.name, among_values(by_value, 0, column.value)
        entry = in_intervals(side["edges"], groups, side["missing"], 0, column.number)
        return column.name, entry

    def _read_density(self, k: int, term: Any) -> None:
        column = self.columns[term["column"]]
        self._name(k, n=column.name, f=density(term, column))
        self._read(k, f"f{k}(row[n{k}])")

    # ----------------------------------------------------------------------------- sums

    def _sums(self) -> list[str]:
        """Add up blocks four at a time, then densities."""
        lines = ["s0 = base" if self.is_odds else f"{self._sum()} = base"]
        for block in self.blocks:
            fours = len(block) & -4
            for c in self.classes:
                # Of log-odds, each block is added up separately.
                total = "part" if self.is_odds else f"s{c}"
                names = [f"t{k}" if self.is_odds else f"t{k}_{c}" for k in block]
                lines += ["part = 0.0"] if self.is_odds else []
                for k in range(0, fours, 4):
                    a, b, x, y = names[k : k + 4]
                    lines.append(f"{total} += ({a} + {b}) + ({x} + {y})")
                lines += [f"{total} += {name}" for name in names[fours:]]
                lines += ["s0 += part"] if self.is_odds else []
        return lines + [
            f"s{c} += t{k}_{c}" for k in self.densities for c in self.classes
        ]

    def _sum(self) -> str:
        return f"({_listed(f's{c}' for c in self.classes)})"

    def _in_loops(self) -> Callable[[Cells], list[float]]:
        """Return the function of scores for more names than lines are compiled of."""
        amounts_of, base = self.amounts(), self.names["base"]

        def scores_of(row: Cells) -> list[float]:
            amounts, scores = amounts_of(row), base
            for block in self.blocks:
                fours = len(block) & -4
                for k in range(0, fours, 4):
                    four = [amounts[j] for j in block[k : k + 4]]
                    each = zip(scores, *four, strict=True)
                    scores = [s + ((a + b) + (c + d)) for s, a, b, c, d in each]
                for k in block[fours:]:
                    scores = list(map(add, scores, amounts[k]))
            for k in self.densities:
                scores = list(map(add, scores, amounts[k]))
            return scores

        return scores_of

    # ---------------------------------------------------------------- functions of rows

    def _compiled(self, *lines: str) -> Callable[[Cells], Any]:
        inner = "\n    ".join([*self.lines, *lines])
        names = dict(self.names)
        exec(f"def of_row(row):\n    {inner}", names)
        of_row: Callable[[Cells], Any] = names["of_row"]
        return of_row

    def amounts(self) -> Callable[[Cells], list[Any]]:
        """Return the function of what each term adds."""
        return self._compiled(f"return [{self._amounts(range(len(self.terms)))}]")

    def scores(self) -> Callable[[Cells], Any]:
        """Return the function of log-odds of the second class, or of all scores."""
        if self.has_loops:
            return self._in_loops()
        result = "s0" if self.is_odds else f"[*{self._sum()}]"
        return self._compiled(*self._sums(), f"return {result}")

    def posterior(self) -> Callable[[Cells], list[float]]:
        """Return the function of the probabilities of the classes."""
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


# -------------------------------------------------------------------------- densities


def density(term: Any, column: CellsOf) -> Entry:
    """Return the function of a cell's weighted log-densities, one for each class."""
    fill, weight = term["fill"], term["weight"]
    classes = list(zip(term["mean"], term["scale"], term["constant"], strict=True))
    zeros = term.get("unseen", [0.0] * len(weight))
    log_densities = _FORMS[term["form"]](classes, term)

    def amounts(x: Any) -> list[float]:
        if type(x) is not float or not -INF < x < INF:
            x = column.number(x)
            x = fill if x is None else x
            if x is None or x is UNKNOWN:
                return zeros
        return list(map(mul, weight, log_densities(x)))

    return amounts


def _linear(classes: Any, term: Any) -> Entry:
    limit = term["limit"]
    m, s, _ = classes[0]
    if all((mean, scale) == (m, s) for mean, scale, _ in classes):
        n = len(classes)
        return lambda x: (min(max((x - m) * s, -limit), limit),) * n
    return lambda x: [min(max((x - m) * s, -limit), limit) for m, s, _ in classes]


def _interval(classes: Any, term: Any) -> Entry:
    step = term["step"]

    def logs(x: float) -> list[float]:
        x /= step
        # Beyond, all are whole; what overflowed cannot be rounded.
        x = (round(x) if abs(x) < 2.0**53 else x) * step
        return [_log_interval(abs(x - m), s, step) for m, s, _ in classes]

    return logs


def _log_interval(distance: float, scale: float, step: float) -> float:
    near = (distance - 0.5 * step) * scale * math.sqrt(0.5)
    far = (distance + 0.5 * step) * scale * math.sqrt(0.5)
    return math.log(max(0.5 * (math.erfc(near) - math.erfc(far)), _FLOOR))


def _plain(classes: Any, term: Any) -> Entry:
    return lambda x: [
        k - 0.5 * min(abs(x - m) * s, _MAX_DISTANCE) ** 2 for m, s, k in classes
    ]


def _relative(classes: Any, term: Any) -> Entry:
    plain, depth = _plain(classes, term), term["depth"]

    def differences(x: float) -> list[float]:
        logs = plain(x)
        top = max(logs)
        return [max(log - top, -depth) for log in logs]

    return differences


_FORMS = {
    "plain": _plain,
    "relative": _relative,
    "linear": _linear,
    "interval": _interval,
}
