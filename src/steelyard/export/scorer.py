"""Score single rows, with the standard library alone.

This module reads a plan as plain data and imports nothing else but ``cells`` and
``same_cells``, so that their text is a program of its own: an exported ``model.py`` is
this text and the data of a model.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from operator import mul
from typing import Any

from steelyard.exceptions import ColumnError
from steelyard.export.cells import INF, UNKNOWN, CellsOf

# Far beyond what log-densities tell apart; the least that Weka's intervals may be.
_FARTHEST = 1e100
_FLOOR = 1e-75


class Scorer:
    """A function of one row, a mapping from column names to cells.

    It holds constants only: threads may share it, and it can be pickled. None, NaN and
    columns that a row leaves out are missing.

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

    def __call__(self, row: Mapping[str, Any]) -> dict[Any, float]:
        """Return the posterior probability of every class."""
        self._check(row)
        return dict(zip(self.classes, self._model.posterior(row), strict=True))

    def predict(self, row: Mapping[str, Any]) -> Any:
        """Return the most probable class; a tie goes to the larger prior."""
        self._check(row)
        return self.classes[self._model.winner(row)]

    def reasons(
        self, row: Mapping[str, Any], most: int | None = None
    ) -> dict[str, float]:
        """Return what cells add to the log-odds of the best class against the next.

        In a model that is not one sum, it is what is lost without the cell. The loudest
        come first; cells that say nothing are left out.
        """
        self._check(row)
        amounts = self._model.reasons(row, self.columns)
        loudest = sorted(amounts.items(), key=lambda item: -abs(item[1]))
        return {self._attributes[j]: amount for j, amount in loudest[:most] if amount}

    def _check(self, row: Mapping[str, Any]) -> None:
        if type(row) is not dict and not isinstance(row, Mapping):
            raise ColumnError(
                "A row must be a mapping from column names to cells, got a "
                f"{type(row).__name__}. Of a row of a frame, pass row.to_dict()."
            )
        if not self._names.issuperset(row):
            name = next(name for name in row if name not in self._names)
            close = get_close_matches(str(name), self.columns, 1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise ColumnError(f"The model has no column {name!r}.{hint}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.data,)

    def __repr__(self) -> str:
        return f"<scorer of {self.data['estimator']}, {len(self.columns)} columns>"


# ------------------------------------------------------------------------------- models


class _Sum:
    """One sum for each class; of two classes one, of log-odds."""

    def __init__(self, data: dict[str, Any], columns: list[CellsOf]) -> None:
        base = [-INF if b is None else b for b in data["base"]]
        self.order, self.scale = data["order"], data["scale"]
        self.is_odds = data["odds"]
        pick: Callable[[Any], Any] = _difference if self.is_odds else tuple
        self.base, self.zero = pick(base), pick([0.0] * len(base))
        # What is looked up is most of a model, and has a loop of its own.
        self.lookups: list[Any] = []
        self.terms: list[Callable[[Mapping[str, Any]], Any]] = []
        self.attributes: list[int] = []
        terms = sorted(data["terms"], key=lambda term: term["kind"] != "lookup")
        for term in terms:
            if term["kind"] == "lookup":
                rows = [pick(term["missing"]), *map(pick, term["rows"])]
                table = dict(zip([None, *term["values"]], rows, strict=True))
                columns[term["column"]].learn(term["values"])
                self.lookups.append((columns[term["column"]], table))
            else:
                self.terms.append(_TERMS[term["kind"]](term, columns, pick, self.zero))
            own = "attribute" if term["kind"] == "pair" else "column"
            self.attributes.append(term[own])
        self.named = [(column.name, table) for column, table in self.lookups]

    def amounts(self, row: Mapping[str, Any]) -> list[Any]:
        """Return what each term adds."""
        get = row.get
        try:
            found = [table[get(name)] for name, table in self.named]
        except (KeyError, TypeError):
            found = [self._look_up(row, *of) for of in self.lookups]
        found += [term(row) for term in self.terms]
        return found

    def _look_up(
        self, row: Mapping[str, Any], column: CellsOf, table: dict[Any, Any]
    ) -> Any:
        return table.get(column.value(row.get(column.name)), self.zero)

    def scores(self, row: Mapping[str, Any]) -> Any:
        """Return the score of every class, or the log-odds of the second."""
        amounts = self.amounts(row)
        if self.is_odds:
            return self.base + math.fsum(amounts)
        return list(map(sum, zip(self.base, *amounts, strict=True)))

    def posterior(self, row: Mapping[str, Any]) -> list[float]:
        scores = self.scores(row)
        if not self.is_odds:
            return _softmax([self.scale * score for score in scores])
        odds = self.scale * scores
        power = math.exp(-abs(odds))
        large = 1.0 / (1.0 + power)
        small = power * large
        return [small, large] if odds > 0 else [large, small]

    def winner(self, row: Mapping[str, Any]) -> int:
        scores = self.scores(row)
        if self.is_odds:
            return int(self.order[0]) if scores == 0 else int(scores > 0)
        return _first_best(scores, self.order)

    def reasons(self, row: Mapping[str, Any], names: Sequence[str]) -> dict[int, float]:
        first, second = _best_two(self.posterior(row))
        told: dict[int, float] = {}
        for attribute, amount in zip(self.attributes, self.amounts(row), strict=True):
            sign = 1.0 if first == 1 else -1.0
            odds = sign * amount if self.is_odds else amount[first] - amount[second]
            told[attribute] = told.get(attribute, 0.0) + self.scale * odds
        return told


class _Parts:
    """A model that is made of others."""

    def __init__(self, data: dict[str, Any], columns: list[CellsOf]) -> None:
        self.data, self.order = data, data["order"]
        self.parts = [_MODELS[part["kind"]](part, columns) for part in data["parts"]]

    def posterior(self, row: Mapping[str, Any]) -> list[float]:
        raise NotImplementedError

    def winner(self, row: Mapping[str, Any]) -> int:
        return _first_best(self.posterior(row), self.order)

    def reasons(self, row: Mapping[str, Any], names: Sequence[str]) -> dict[int, float]:
        posterior = self.posterior(row)
        first, second = _best_two(posterior)
        whole = _log_odds(posterior, first, second)
        without = (self.posterior({**row, name: UNKNOWN}) for name in names)
        losses = (whole - _log_odds(other, first, second) for other in without)
        return dict(enumerate(losses))


class _Mixture(_Parts):
    def posterior(self, row: Mapping[str, Any]) -> list[float]:
        shares = self.data["shares"]
        parts = [part.posterior(row) for part in self.parts]
        return [sum(map(mul, shares, p)) for p in zip(*parts, strict=True)]


class _Pairs(_Parts):
    def posterior(self, row: Mapping[str, Any]) -> list[float]:
        out = [0.0] * len(self.data["classes"])
        for (a, b), part in zip(self.data["pairs"], self.parts, strict=True):
            p = part.posterior(row)
            out[a] += p[0]
            out[b] += p[1]
        return [p / len(self.parts) for p in out]


class _Vote(_Parts):
    def posterior(self, row: Mapping[str, Any]) -> list[float]:
        votes = zip(self.data["votes"], self.parts, strict=True)
        if self.data["form"] == "elkan":
            total = sum(
                vote * (2.0 * part.posterior(row)[1] - 1.0) for vote, part in votes
            )
            second = 1.0 / (1.0 + math.exp(min(max(-total, -700.0), 700.0)))
            return [1.0 - second, second]
        scores = [0.0] * len(self.data["classes"])
        for vote, part in votes:
            scores[part.winner(row)] += vote
        return _softmax(scores)


_MODELS: dict[str, Any] = {
    "sum": _Sum,
    "mixture": _Mixture,
    "pairs": _Pairs,
    "vote": _Vote,
}


def _bins(term: Any, columns: Any, pick: Any, zero: Any) -> Callable[[Any], Any]:
    column, edges = columns[term["column"]], term["edges"]
    name, missing = column.name, pick(term["missing"])
    rows = list(map(pick, term["rows"]))

    def amount(row: Mapping[str, Any]) -> Any:
        x = row.get(name)
        if type(x) is not float or not -INF < x < INF:
            x = column.number(x)
            if x is None:
                return missing
            if x is UNKNOWN:
                return zero
        return rows[bisect_left(edges, x)]

    return amount


def _density(term: Any, columns: Any, pick: Any, zero: Any) -> Callable[[Any], Any]:
    column, fill, step = columns[term["column"]], term["fill"], term["step"]
    form, depth, limit, weight = (
        term[key] for key in ("form", "depth", "limit", "weight")
    )
    classes = list(zip(term["mean"], term["scale"], term["constant"], strict=True))

    def amount(row: Mapping[str, Any]) -> Any:
        x = column.number(row.get(column.name))
        x = fill if x is None else x
        if x is None or x is UNKNOWN:
            return zero
        if form == "linear":
            told = [min(max((x - m) * s, -limit), limit) for m, s, _ in classes]
        elif form == "interval":
            x /= step
            # Beyond, all are whole; what overflowed cannot be rounded.
            x = (round(x) if abs(x) < 2.0**53 else x) * step
            told = [_log_interval(abs(x - m), s, step) for m, s, _ in classes]
        else:
            told = [
                k - 0.5 * min(abs(x - m) * s, _FARTHEST) ** 2 for m, s, k in classes
            ]
        if form == "relative":
            top = max(told)
            told = [max(t - top, -depth) for t in told]
        return pick([w * t for w, t in zip(weight, told, strict=True)])

    return amount


def _log_interval(distance: float, scale: float, step: float) -> float:
    near = (distance - 0.5 * step) * scale * math.sqrt(0.5)
    far = (distance + 0.5 * step) * scale * math.sqrt(0.5)
    return math.log(max(0.5 * (math.erfc(near) - math.erfc(far)), _FLOOR))


def _pair(term: Any, columns: Any, pick: Any, zero: Any) -> Callable[[Any], Any]:
    first, second = (_group(side, columns) for side in term["sides"])
    rows = [list(map(pick, of)) for of in term["rows"]]
    return lambda row: rows[first(row)][second(row)]


def _group(side: Any, columns: Any) -> Callable[[Any], int]:
    """Return how a row's cell becomes a group."""
    column, groups, edges = columns[side["column"]], side["groups"], side["edges"]
    known = dict(zip(side["values"], groups, strict=False))
    column.learn(side["values"])

    def group(row: Mapping[str, Any]) -> Any:
        cell = row.get(column.name)
        is_category = column.kind == "category"
        x = column.value(cell) if is_category else column.number(cell)
        if x is None:
            return side["missing"]
        if x is UNKNOWN:
            return 0
        return known.get(x, 0) if is_category else groups[bisect_left(edges, x)]

    return group


_TERMS = {"bins": _bins, "density": _density, "pair": _pair}


def _difference(row: Sequence[float]) -> float:
    return row[1] - row[0]


def _softmax(scores: Sequence[float]) -> list[float]:
    top = max(scores)
    powers = [math.exp(score - top) for score in scores]
    total = sum(powers)
    return [power / total for power in powers]


def _first_best(scores: Sequence[float], order: Iterable[int]) -> int:
    return max(order, key=scores.__getitem__)


def _best_two(posterior: Sequence[float]) -> list[int]:
    return sorted(range(len(posterior)), key=lambda c: -posterior[c])[:2]


def _log_odds(posterior: Sequence[float], first: int, second: int) -> float:
    # A vote may be unanimous; the smallest probability stands for none.
    p, q = (max(posterior[c], 2.2250738585072014e-308) for c in (first, second))
    return math.log(p) - math.log(q)
