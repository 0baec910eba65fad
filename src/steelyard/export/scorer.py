"""Score single rows, with the standard library alone.

This module reads a plan as plain data and imports nothing else but
``straight`` and ``one_cell``, so that their text is a program of its own: an exported
``model.py`` is this text and the data of a model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from operator import add, sub
from typing import Any

from steelyard._common.one_cell import UNKNOWN, CellsOf, date_parts
from steelyard.exceptions import ColumnError
from steelyard.export.straight import Lines, logistic, softmax


class Scorer:
    """A function of one row, a mapping from column names to cells.

    It holds constants only: threads may share it, and it can be pickled. None, NaN and
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
        self._dates = {column.date for column in columns if column.date}
        if self._dates:
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
        """Return what cells add to the log-odds of the best class against the next.

        It is relative to the average training row, also of cells that are missing. In a
        model that is not one sum, it is what is lost without the cell. The loudest come
        first; cells that say nothing are left out.
        """
        amounts = self._model.reasons(self._whole(row), self.columns)
        loudest = sorted(amounts.items(), key=lambda item: -abs(item[1]))
        return {self._attributes[j]: amount for j, amount in loudest[:most] if amount}

    def _whole(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row with a cell for every column, None where it is left out."""
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
        for name in self._dates:
            for part, cell in (date_parts(name, row.get(name)) or {}).items():
                own = name if part == "day" else f"{name}.{part}"
                if own in self._names:
                    whole[own] = cell
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
        self.lines = Lines(data, columns, self.is_odds)
        self.names, self.posterior = self.lines.columns, self.lines.posterior()

    @cached_property
    def scores(self) -> Callable[[dict[str, Any]], Any]:
        """What computes log-odds of the second class, or all scores."""
        return self.lines.scores()

    @cached_property
    def amounts(self) -> Callable[[dict[str, Any]], list[Any]]:
        """What computes what each term adds to the score of every class."""
        return Lines(self.data, self.columns, is_odds=False).amounts()

    def answer(self, row: dict[str, Any]) -> tuple[int, list[float]]:
        """Return the position of the most probable class, and all probabilities."""
        found = self.scores(row)
        if not self.is_odds:
            scaled = [score * self.scale for score in found]
            return _first_best(found, self.order), softmax(scaled)
        best = self.order[0] if found == 0.0 else int(found > 0.0)
        return best, logistic(found * self.scale)

    def reasons(self, row: dict[str, Any], names: Sequence[str]) -> dict[int, float]:
        first, second = _best_two(self.posterior(row))
        told: dict[int, Any] = {}
        for term, amounts in zip(self.data["terms"], self.amounts(row), strict=True):
            own = term["attribute" if term["kind"] == "interaction" else "column"]
            told[own] = [*map(add, told[own], amounts)] if own in told else amounts
        for own, mean in enumerate(self.data["centre"]):
            if own in told:
                told[own] = [*map(sub, told[own], mean)]
        return {
            own: self.scale * amounts[first] - self.scale * amounts[second]
            for own, amounts in sorted(told.items())
        }


class _Parts:
    """A model that is made of others."""

    def __init__(self, data: dict[str, Any], columns: list[CellsOf]) -> None:
        self.data, self.order = data, data["order"]
        self.parts = [_MODELS[part["kind"]](part, columns) for part in data["parts"]]

    def names(self) -> set[str]:
        return {name for part in self.parts for name in part.names()}

    def posterior(self, row: dict[str, Any]) -> list[float]:
        raise NotImplementedError

    def answer(self, row: dict[str, Any]) -> tuple[int, list[float]]:
        posterior = self.posterior(row)
        return _first_best(posterior, self.order), posterior

    def of_parts(self, row: dict[str, Any]) -> list[Any]:
        """Return the posterior of every part."""
        return [part.posterior(row) for part in self.parts]

    def reasons(self, row: dict[str, Any], names: Sequence[str]) -> dict[int, float]:
        posterior = self.posterior(row)
        first, second = _best_two(posterior)
        whole = _log_odds(posterior, first, second)
        without = (self.posterior({**row, name: UNKNOWN}) for name in names)
        losses = (whole - _log_odds(other, first, second) for other in without)
        return dict(enumerate(losses))


class _Mixture(_Parts):
    def posterior(self, row: dict[str, Any]) -> list[float]:
        a, b = self.data["shares"]
        both = zip(*self.of_parts(row), strict=True)
        return [a * first + b * second for first, second in both]


class _Pairs(_Parts):
    def posterior(self, row: dict[str, Any]) -> list[float]:
        out = [0.0] * len(self.data["classes"])
        for (a, b), p in zip(self.data["pairs"], self.of_parts(row), strict=True):
            out[a] += p[0]
            out[b] += p[1]
        return [p / len(self.parts) for p in out]


class _Vote(_Parts):
    def posterior(self, row: dict[str, Any]) -> list[float]:
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
    # A vote may be unanimous; the smallest probability stands for none.
    p, q = (max(posterior[c], 2.2250738585072014e-308) for c in (first, second))
    return math.log(p) - math.log(q)
