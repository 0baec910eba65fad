"""Predict by a model file with the standard library alone, to the last bit.

Loading scikit-learn and compiled kernels takes seconds, which a small file is not
worth. Sums of codes and slopes are computed here as the kernels compute them; for any
other model, ``QuickModel`` says so, and the ordinary path is taken.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from steelyard._common.packed import unpack
from steelyard.exceptions import ModelFileError

# As in the file format, the kernels and the densities, which are not loaded here; tests
# compare what comes out.
_FORMAT, _VERSION = "steelyard model", 2
_LOG2_E = 1.4426950408889634
_LN2_HIGH = 0.6931471803691238
_LN2_LOW = 1.9082149292705877e-10
_ROUNDER = 6755399441055744.0
_LOWEST = -700.0
_LIMIT = 4.0
_COEFFICIENTS = [1.0 / math.factorial(k) for k in range(13, 1, -1)] + [1.0, 1.0]

# It reads cells in a way of its own.
_OTHER = ("SPSSNaiveBayes",)


class QuickModel:
    """A model of a file, for rows of cells.

    Parameters
    ----------
    path : str
        A model file.

    Raises
    ------
    ModelFileError
        If the model needs the ordinary path, or there is anything wrong with the file.
    """

    def __init__(self, path: str) -> None:
        content = _content(path)
        model, features = content["model"], content["features"]
        self.classes: list[Any] = content["classes"]["values"]
        plain = [f for f in features if f["kind"] != "pair"]
        self._columns = [f.get("column", j) for j, f in enumerate(plain)]
        by_column = dict(zip(self._columns, plain, strict=True))
        self.cells = {by_column[c]["name"]: by_column[c]["cells"] for c in by_column}
        _need(None not in self.cells and len(self.cells) == len(by_column))
        _need(sorted(by_column) == list(range(len(by_column))))
        self._names = [by_column[c]["name"] for c in range(len(by_column))]
        self._prior: list[float] = model["log_prior"]
        _need(all(isinstance(p, float) for p in self._prior))
        self._scale: float = model["link_scale"]
        order = sorted(range(len(self._prior)), key=lambda c: -self._prior[c])
        self._order = order
        self._attributes = [_Attribute(feature) for feature in features]
        k, n_codes = len(self._prior), sum(a.n_codes for a in self._attributes)
        self._slopes = _slopes(model["gaussian"], self._attributes, k)
        self._is_odds = k == 2 and not self._slopes
        self._set_blocks(_rows(model["table"], n_codes, k))

    def _set_blocks(self, table: list[Any]) -> None:
        """Find where attributes lie in the table, in blocks as kernels have them."""
        if self._is_odds:
            rows: list[Any] = [[row[1] - row[0]] for row in table]
        else:
            rows = table
        start = 0
        blocks: dict[tuple[Any, ...], list[Any]] = {}
        for j, attribute in enumerate(self._attributes):
            if attribute.n_codes:
                own = rows[start : start + attribute.n_codes]
                start += attribute.n_codes
                blocks.setdefault(attribute.block(j), []).append((j, own))
        _need(start == len(table))
        self._blocks = [blocks[key] for key in sorted(blocks)]

    def predict(self, row: dict[str, Any]) -> tuple[Any, list[float]]:
        """Return the class of a row, and the probability of every class.

        Cells are None, or of the kind that ``cells`` says.
        """
        cells = [row[name] for name in self._names]
        codes: list[Any] = []
        for j, attribute in enumerate(self._attributes):
            cell = None if attribute.sides else cells[self._columns[j]]
            codes.append(attribute.code(cell, codes))
        if self._is_odds:
            return self._by_odds(codes)
        scores = list(self._prior)
        for block in self._blocks:
            _gather(scores, block, codes)
        for j, mean, scale, weight in self._slopes:
            x = codes[j]
            if x is not None:
                for c, (m, s, w) in enumerate(zip(mean, scale, weight, strict=True)):
                    scores[c] += w * min(max((x - m) * s, -_LIMIT), _LIMIT)
        best = self.classes[max(self._order, key=scores.__getitem__)]
        scores = [score * self._scale for score in scores]
        top = max(scores)
        powers = [_exp(score - top) for score in scores]
        total = 0.0
        for power in powers:
            total += power
        return best, [power / total for power in powers]

    def _by_odds(self, codes: list[Any]) -> tuple[Any, list[float]]:
        odds = [self._prior[1] - self._prior[0]]
        for block in self._blocks:
            part = [0.0]
            _gather(part, block, codes)
            odds[0] += part[0]
        first = odds[0]
        best = self.classes[self._order[0] if first == 0.0 else int(first > 0.0)]
        scaled = first * self._scale
        power = _exp(-abs(scaled))
        large = 1.0 / (1.0 + power)
        small = power * large
        return best, [small, large] if scaled > 0.0 else [large, small]


class _Attribute:
    """How a cell becomes a code, or a number where the attribute is a slope."""

    def __init__(self, feature: dict[str, Any]) -> None:
        self.kind, self.edges = feature["kind"], feature["edges"]
        _need(self.kind in ("categorical", "binned", "linear", "pair"))
        self.sides: list[Any] = feature.get("sides", [])
        self.known = {value: k for k, value in enumerate(feature["values"], 1)}
        self.fill, self.n_codes = feature["fill"], 0
        if self.sides:
            self.n_groups = [max(side["groups"]) + 1 for side in self.sides]
            self.n_codes = self.n_groups[0] * self.n_groups[1]
        elif self.kind != "linear":
            n = len(self.known) if self.kind == "categorical" else len(self.edges) + 1
            self.n_codes = 1 + n + feature["missing_is_value"]
        self.missing = self.n_codes - 1 if feature["missing_is_value"] else self.fill

    def block(self, j: int) -> tuple[Any, ...]:
        """Return what attributes of one block share; blocks are sorted by it."""
        width = 1 if self.n_codes <= 256 else 2 if self.n_codes <= 65536 else 4
        if self.sides:
            return (2, width)
        return (0, 0) if width == 1 else (1, j)

    def code(self, cell: Any, codes: Sequence[Any]) -> Any:
        if self.sides:
            first, second = (s["groups"][codes[s["feature"]]] for s in self.sides)
            return first * self.n_groups[1] + second
        if cell is None:
            return self.missing if self.kind == "linear" else self.missing or 0
        if self.kind == "categorical":
            return self.known.get(cell, 0)
        return cell if self.kind == "linear" else bisect_left(self.edges, cell) + 1


def _content(path: str) -> dict[str, Any]:
    """Return what a model file holds, if it is whole and of this version."""
    with open(path, encoding="ascii") as file:
        document = json.load(file)
    content = document["content"]
    text = json.dumps(content, allow_nan=False, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(f"{_FORMAT} {_VERSION} {text}".encode("ascii"))
    _need(document["format"] == _FORMAT and document["version"] == _VERSION)
    _need(document["checksum"] == f"sha256:{digest.hexdigest()}")
    _need(content["model"]["kind"] == "sum" and content["estimator"] not in _OTHER)
    dtype = content["classes"]["dtype"]
    _need(dtype in ("str", "bool", "int64", "int32") or _all_text(content["classes"]))
    return dict(content)


def _all_text(classes: dict[str, Any]) -> bool:
    return all(isinstance(label, str) for label in classes["values"])


def _rows(table: Any, n: int, k: int) -> list[Any]:
    """Return n rows of k numbers: a list of them, or the bytes of a large one."""
    if isinstance(table, list):
        return table
    numbers = array("d", unpack(table["float64"], n * k))
    if sys.byteorder == "big":
        numbers.byteswap()
    _need(all(map(math.isfinite, numbers)))
    return [numbers[k * i : k * i + k] for i in range(n)]


def _slopes(table: dict[str, Any], attributes: list[_Attribute], k: int) -> list[Any]:
    """Return slopes: position, means, scales and weights of the classes."""
    positions = [j for j, a in enumerate(attributes) if a.kind == "linear"]
    n, ones = len(positions), [[1.0] * k] * len(positions)
    means, deviations = (_rows(table[key], n, k) for key in ("mean", "deviation"))
    weights = _rows(table["weight"] or ones, n, k)
    scales = [[1.0 / d for d in deviation] for deviation in deviations]
    return list(zip(positions, means, scales, weights, strict=True))


def _gather(scores: list[float], block: list[Any], codes: list[Any]) -> None:
    """Add up table rows, four attributes at a time."""
    found = [rows[codes[j]] for j, rows in block]
    fours = len(found) - len(found) % 4
    for c in range(len(scores)):
        for k in range(0, fours, 4):
            t0, t1, t2, t3 = found[k : k + 4]
            scores[c] += (t0[c] + t1[c]) + (t2[c] + t3[c])
        for row in found[fours:]:
            scores[c] += row[c]


def _exp(x: float) -> float:
    """Return the exponential of x <= 0, as the kernels compute it."""
    if x < _LOWEST:
        return 0.0
    k = (x * _LOG2_E + _ROUNDER) - _ROUNDER
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    p = _COEFFICIENTS[0]
    for coefficient in _COEFFICIENTS[1:]:
        p = p * r + coefficient
    return math.ldexp(p, int(k))


def _need(condition: bool) -> None:
    if not condition:
        raise ModelFileError("This model is not for the quick path.")
