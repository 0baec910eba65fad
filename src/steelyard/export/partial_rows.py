"""Rows with missing cells, with the standard library alone.

The formulas are those of ``steelyard.model.marginal``, for one row at a time: missing
attributes are averaged over by a factor model of what all of them add. What follows
from which columns are observed is computed once for each set of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import add, mul, sub
from typing import Any, NamedTuple

Matrix = list[list[float]]

# Sets of observed columns that are kept.
_MAX_PATTERNS = 10_000


class Given(NamedTuple):
    """What follows from the observed attributes."""

    observed: list[int]
    """Positions of the observed attributes."""

    weights: list[Matrix]
    """Of the contributions of each of these, (C, C), their own included."""

    start: list[float]
    """Mean score, with the shift of what is open, (C,)."""

    root: Matrix
    """Symmetric root of the covariance of the missing sum, (C, C)."""

    share: float
    """Of naive Bayes."""

    power: float
    """Of the evidence of naive Bayes."""


class PartialRows:
    """Answers of a sum to rows with missing cells, from the data of a plan."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self.odds = [math.inf if x is None else x for x in data["value_odds"]]
        self.ratio = [*map(math.exp, data["log_ratio"])]
        self._given: dict[tuple[bool, ...], Given] = {}

    def given(self, missing: Sequence[bool]) -> Given:
        """Condition on the columns that are not missing; there is a flag for each."""
        key = tuple(missing)
        given = self._given.get(key)
        if given is None:
            if len(self._given) >= _MAX_PATTERNS:
                self._given.clear()
            given = self._given[key] = self._condition(key)
        return given

    def contributions(
        self, given: Given, amounts: Sequence[Sequence[float]]
    ) -> dict[int, list[float]]:
        """Return what each observed attribute adds to the mean scores, (C,).

        ``amounts`` has what each attribute adds to each class by itself.
        """
        out = {}
        for j, weights in zip(given.observed, given.weights, strict=True):
            added = map(sub, contrast(amounts[j]), self.data["means"][j])
            columns = zip(*weights, strict=True)
            before = [*added]
            out[j] = [sum(map(mul, before, column)) for column in columns]
        return out

    def proba(
        self,
        given: Given,
        contributions: dict[int, list[float]],
        plain: Sequence[float],
        scale: float,
    ) -> list[float]:
        """Return the probabilities of the classes, blended with naive Bayes.

        ``plain`` are its scores. Classes may be more frequent than in training, by a
        ratio.
        """
        mean = given.start
        for added in contributions.values():
            mean = [*map(add, mean, added)]
        mean = [scale * m for m in mean]
        spread = [[scale * x for x in row] for row in given.root]
        share, power = given.share, given.power
        rates = self.data["plain"]["base"]
        # What columns say alone, which has the base rates in full.
        logs = [
            -math.inf if rate is None else power * (score - rate) + rate
            for rate, score in zip(rates, plain, strict=True)
        ]
        top = max(logs)
        alone = [math.exp(x - top) for x in logs]
        whole = sum(alone)
        each = zip(self._expected(mean, spread), alone, self.ratio, strict=True)
        out = [
            ((1.0 - share) * math.sqrt(p) + share * math.sqrt(q / whole)) ** 2 * ratio
            for p, q, ratio in each
        ]
        total = sum(out)
        return [p / total for p in out]

    def _expected(self, mean: list[float], root: Matrix) -> list[float]:
        """Return the mean of the softmax of normal scores."""
        out = [0.0] * max(2, len(mean))
        if len(mean) == 1:
            for node, weight in self.data["points"]:
                second = _logistic(mean[0] + root[0][0] * node)
                out[1] += weight * second
                out[0] += weight * (1.0 - second)
            return out
        for axis in root:
            for radius, weight in self.data["points"]:
                for signed in (radius, -radius):
                    point = [m + signed * x for m, x in zip(mean, axis, strict=True)]
                    top = max(point)
                    powers = [math.exp(x - top) for x in point]
                    share = weight / sum(powers)
                    out = [p + share * q for p, q in zip(out, powers, strict=True)]
        return out

    def _condition(self, missing: tuple[bool, ...]) -> Given:
        """Condition on the columns that are not missing."""
        data, n_columns = self.data, len(missing)
        averaged = [j for j in range(n_columns) if self.odds[j] == 0.0]
        share = sum(missing[j] for j in averaged) / len(averaged)
        is_open = [
            m and odds < share for m, odds in zip(missing, self.odds, strict=True)
        ]
        is_open += [any(is_open[j] for j in sides) for sides in data["sides"]]
        observed = [j for j, is_missing in enumerate(is_open) if not is_missing]
        rest = [j for j, is_missing in enumerate(is_open) if is_missing]
        loadings, noise = data["loadings"], data["noise"]
        channels, rank = len(noise[0]), len(loadings[0][0])
        information = [[float(a == b) for b in range(rank)] for a in range(rank)]
        precise = {}
        for j in observed:
            precise[j] = [
                [x / noise[j][c] for x in loadings[j][c]] for c in range(channels)
            ]
            for c in range(channels):
                for a, x in enumerate(precise[j][c]):
                    row, other = information[a], loadings[j][c]
                    information[a] = [
                        r + x * y for r, y in zip(row, other, strict=True)
                    ]
        total = [
            [sum(loadings[j][c][a] for j in rest) for a in range(rank)]
            for c in range(channels)
        ]
        solved = solve(information, total)
        variance = [[sum(map(mul, a, b)) for b in solved] for a in total]
        for c in range(channels):
            variance[c][c] += sum(noise[j][c] for j in rest)
        weights = [
            [
                [
                    sum(map(mul, precise[j][c], solved[k])) + float(c == k)
                    for k in range(channels)
                ]
                for c in range(channels)
            ]
            for j in observed
        ]
        trace = sum(variance[c][c] for c in range(channels))
        left = trace / data["variance"]
        start = [
            s + left * d for s, d in zip(data["start"], data["shift"], strict=True)
        ]
        part = self._plain_part(is_open[:n_columns], left)
        return Given(observed, weights, start, root_of(variance), *part)

    def _plain_part(self, is_open: Sequence[bool], left: float) -> tuple[float, float]:
        """Return the share of naive Bayes, and the power of its evidence."""
        data = self.data
        used = [j for j, odds in enumerate(self.odds) if math.isfinite(odds)]
        seen = [j for j in used if not is_open[j]]
        plain = [j for j in seen if data["in_plain"][j]]
        missing = (len(used) - len(seen)) / max(len(used) - 1, 1)
        share = min((missing * left) ** (1.0 / 3.0), 1.0) if len(seen) != 1 else 1.0
        rows = [data["plain_loadings"][j] for j in plain]
        noise = sum(data["plain_noise"][j] for j in plain)
        together = sum(sum(x) ** 2 for x in zip(*rows, strict=True)) + noise
        apart = sum(x * x for row in rows for x in row) + noise
        power = min(apart / max(together, 1e-300), 1.0)
        return share * len(plain) / max(len(seen), 1), power


def contrast(values: Sequence[float]) -> list[float]:
    """Return what matters of numbers by class, as in ``steelyard.model.marginal``."""
    if len(values) == 2:
        return [values[1] - values[0]]
    mean = math.fsum(values) / len(values)
    return [x - mean for x in values]


def _logistic(x: float) -> float:
    small = math.exp(-abs(x))
    return 1.0 / (1.0 + small) if x > 0.0 else small / (1.0 + small)


def solve(matrix: Matrix, right: Matrix) -> Matrix:
    """Solve a positive definite system for each row of ``right``, by Cholesky."""
    n, lower = len(matrix), [row[:] for row in matrix]
    for j in range(n):
        for k in range(j):
            factor = lower[j][k]
            for i in range(j, n):
                lower[i][j] -= factor * lower[i][k]
        root = math.sqrt(lower[j][j])
        for i in range(j, n):
            lower[i][j] /= root
    out = []
    for row in right:
        x = row[:]
        for i in range(n):
            x[i] = (x[i] - sum(map(mul, lower[i][:i], x))) / lower[i][i]
        for i in reversed(range(n)):
            below = sum(lower[k][i] * x[k] for k in range(i + 1, n))
            x[i] = (x[i] - below) / lower[i][i]
        out.append(x)
    return out


def root_of(matrix: Matrix) -> Matrix:
    """Return the symmetric root of a positive semi-definite matrix, by Jacobi."""
    n = len(matrix)
    if n == 1:
        return [[math.sqrt(max(matrix[0][0], 0.0))]]
    a = [[(matrix[i][j] + matrix[j][i]) / 2.0 for j in range(n)] for i in range(n)]
    vectors = [[float(i == j) for j in range(n)] for i in range(n)]
    for _ in range(100):
        rest = sum(a[i][j] ** 2 for i in range(n) for j in range(i))
        if rest <= 1e-28 * sum(a[i][i] ** 2 for i in range(n)):
            break
        for p in range(n):
            for q in range(p + 1, n):
                if a[p][q] == 0.0:
                    continue
                angle = (a[q][q] - a[p][p]) / (2.0 * a[p][q])
                t = math.copysign(1.0, angle) / (abs(angle) + math.hypot(angle, 1.0))
                c = 1.0 / math.hypot(t, 1.0)
                s = t * c
                for row in (*a, *vectors):
                    row[p], row[q] = c * row[p] - s * row[q], s * row[p] + c * row[q]
                a[p], a[q] = (
                    [c * x - s * y for x, y in zip(a[p], a[q], strict=True)],
                    [s * x + c * y for x, y in zip(a[p], a[q], strict=True)],
                )
    roots = [math.sqrt(max(a[k][k], 0.0)) for k in range(n)]
    return [
        [sum(v[k] * roots[k] * w[k] for k in range(n)) for w in vectors]
        for v in vectors
    ]
