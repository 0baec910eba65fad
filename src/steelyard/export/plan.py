"""A fitted model as a small tree of plain terms, from which every format is written.

Rules of missing and unseen values, of cells and of ties are settled here. All is plain
Python: numbers, text and tuples; nothing but the standard library is imported. Models
that some formats cannot contain are refused here, and a plan can be had as plain data.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from steelyard.exceptions import ParameterError

Row = tuple[float, ...]
"""A number for each class of a sum, shape (K,)."""

# Numbers of a model that is written as text.
_MAX_NUMBERS = 1_000_000

# From here on doubles are not exact for whole numbers.
_WHOLE = 2**53

UNKNOWN_CELLS = "unknown_cells"
"""Name of the result that counts cells which ``predict_proba`` averages over."""


@dataclass(frozen=True)
class Column:
    """A column of the table that is scored."""

    name: str
    """``x0``, ``x1``, ... if the training table had no names."""

    kind: Literal["category", "number"]
    cells: Literal["numbers", "text", "booleans", "nothing"]
    """Kind of the cells at fit; nothing if all were missing."""

    values: tuple[Any, ...] = ()
    """Values of a category, sorted: all str, all bool, or all int and float."""

    date: str = ""
    """The column of dates that this is a part of, or that it has the days of."""

    texts: tuple[tuple[float, str], ...] = ()
    """Numbers that are categories as well, each with the value that is its text."""

    @property
    def source(self) -> str:
        """The column of a table that this is read from."""
        return self.date or self.name

    @property
    def part(self) -> str:
        """Which part of dates it is, ``"day"`` for days since 1970, ``""`` for none."""
        return (self.name[len(self.date) + 1 :] or "day") if self.date else ""


class _OfColumn:
    """A term that reads one column."""

    column: int

    @property
    def attribute(self) -> int:
        """Position among the attributes of the plan."""
        return self.column

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns that are read."""
        return (self.column,)


@dataclass(frozen=True)
class Lookup(_OfColumn):
    """Contributions of the values of a category; 0 for a value that is not listed."""

    column: int
    values: tuple[Any, ...]
    rows: tuple[Row, ...]
    """A row for each value."""

    missing: Row
    """Contribution of a missing cell."""


@dataclass(frozen=True)
class Bins(_OfColumn):
    """Contributions of the intervals of a number: ``rows[number of edges below x]``.

    Intervals are closed on the right: a number that equals an edge is not above it.
    """

    column: int
    edges: tuple[float, ...]
    rows: tuple[Row, ...]
    """A row for each interval, one more than there are edges."""

    missing: Row


@dataclass(frozen=True)
class Density(_OfColumn):
    r"""Contributions of a number by its distance from the means of the classes.

    ``weight[c] * f_c(x)``, with t = (x - mean[c]) * scale[c] and

    - plain: ``constant[c] - min(|t|, 1e100)**2 / 2``;
    - relative: the same, less its maximum over the classes, and at least ``-depth``;
    - linear: t, at least ``-limit`` and at most ``limit``;
    - interval (Weka's): ``log(max((erfc(a) - erfc(b)) / 2, 1e-75))``, where x is
      rounded to multiples of ``step``, halves to even, and a, b are
      ``(|x - mean[c]| -+ step / 2) * scale[c] / sqrt(2)``.
    """

    column: int
    form: Literal["plain", "relative", "linear", "interval"]
    mean: Row
    scale: Row
    constant: Row
    weight: Row
    fill: float | None = None
    """What replaces a missing number; with None a missing cell adds nothing."""

    depth: float = 0.0
    limit: float = 0.0
    step: float = 0.0


@dataclass(frozen=True)
class Grouping:
    """How a cell of one of the two columns of an interaction becomes a group."""

    column: int
    values: tuple[Any, ...]
    """Values of a category; empty for numbers."""

    edges: tuple[float, ...]
    """Cut points of a number; empty for categories."""

    groups: tuple[int, ...]
    """Group of each value or interval. A value that is not listed is in group 0."""

    missing: int
    """Group of a missing cell."""

    n_groups: int


@dataclass(frozen=True)
class Interaction:
    """Contributions of the groups of two columns together."""

    attribute: int
    """Position among the attributes of the plan."""

    sides: tuple[Grouping, Grouping]
    rows: tuple[tuple[Row, ...], ...]
    """A row for each group of the first side and each of the second."""

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns that are read."""
        return tuple(side.column for side in self.sides)


Term = Lookup | Bins | Density | Interaction


@dataclass(frozen=True)
class Marginal:
    """Moments by which a sum averages over missing cells.

    See `steelyard.model.marginal` for the formula, and ``partial_rows`` for a program.
    """

    value_odds: tuple[float | None, ...]
    """By column: 0 if missing cells are always averaged over, None for never."""

    by_missing: tuple[bool, ...]
    """By column: whether missing cells are like values never seen."""

    in_plain: tuple[bool, ...]
    """By column: whether it has a part in naive Bayes."""

    sides: tuple[tuple[int, ...], ...]
    """The columns of each interaction."""

    means: tuple[Row, ...]
    """Mean contribution of each attribute by channel: the difference of the second of
    two classes from the first, or of each class from their mean."""

    loadings: tuple[tuple[Row, ...], ...]
    """By attribute, channel and factor."""

    noise: tuple[Row, ...]
    """By attribute and channel."""

    start: Row
    """Mean score by channel."""

    shift: Row
    """Added to the mean score if nothing is observed."""

    variance: float
    """Trace of the covariance of all contributions."""

    points: tuple[Row, ...]
    """Nodes and weights for two classes; distances and weights for more."""

    plain: Sum
    """Naive Bayes with the shares of classes by value of each column alone."""

    plain_loadings: tuple[Row, ...]
    """Factors of what columns say alone, within classes: by column and factor."""

    plain_noise: Row
    """Variance beyond these factors, by column."""

    log_ratio: Row
    """By class: added to the logs of all answers."""


@dataclass(frozen=True)
class Sum:
    """Scores: a base and terms. The posterior is the softmax of scale times scores."""

    classes: tuple[int, ...]
    """Positions of its classes among those of the plan."""

    base: Row
    """Minus infinity for a class that has no score, and probability 0."""

    scale: float
    tie_order: tuple[int, ...]
    """Positions among ``classes``: the first of the best wins a tie."""

    terms: tuple[Term, ...]
    blocks: tuple[tuple[int, ...], ...] = ()
    """Positions of terms that ``predict_proba`` adds up together, in its order; none of
    plans in which terms that add nothing are left out."""

    centre: tuple[Row, ...] = ()
    """Mean contribution of each attribute of the plan over the training rows: readers
    are shown differences from it. Empty if it is not known."""

    marginal: Marginal | None = None
    """How rows with missing cells are answered; None if such cells add what their terms
    have. Formats that cannot write it add up what is known, and count the others."""

    @property
    def is_odds(self) -> bool:
        """Whether one number, the log-odds of the second class, is enough.

        Log-densities have no bounds: in the scores of far outliers smaller terms are
        lost, as they are in ``predict_proba``.
        """
        bounded = all(
            term.form in ("linear", "relative")
            for term in self.terms
            if isinstance(term, Density)
        )
        return len(self.base) == 2 and min(self.base) > float("-inf") and bounded


@dataclass(frozen=True)
class Mixture:
    """Posteriors of the parts, added up by their shares."""

    classes: tuple[int, ...]
    tie_order: tuple[int, ...]
    parts: tuple[Sum, ...]
    shares: tuple[float, ...]


@dataclass(frozen=True)
class Pairs:
    """One-vs-one: each class has the sum of its probabilities, over all pairs."""

    classes: tuple[int, ...]
    tie_order: tuple[int, ...]
    pairs: tuple[tuple[int, int], ...]
    parts: tuple[Sum | Mixture, ...]


@dataclass(frozen=True)
class Vote:
    """A weighted vote.

    adaboost-m1: the softmax of the votes of the parts that predict a class. elkan, for
    two classes: the logistic function of ``sum_t vote_t * (2 * h_t - 1)``, with h_t the
    probability of the second class.
    """

    classes: tuple[int, ...]
    tie_order: tuple[int, ...]
    parts: tuple[Sum, ...]
    form: Literal["adaboost-m1", "elkan"]
    votes: tuple[float, ...]


Node = Sum | Mixture | Pairs | Vote


@dataclass(frozen=True)
class Plan:
    """Columns, classes, and how a row is scored."""

    estimator: str
    """Name of the class of the classifier."""

    columns: tuple[Column, ...]
    attributes: tuple[str, ...]
    """Names of the columns, then of the interactions: one for each contribution."""

    classes: tuple[Any, ...]
    """Labels, sorted: all str, all bool, or all int and float."""

    root: Node
    unit: str = ""
    """What a sum of two classes counts in whole numbers, such as points: they are
    returned as well. Then its base is the total of even odds, and the start."""

    n_edits: int = 0
    """How often the model was edited by hand."""

    def sums(self) -> Iterator[Sum]:
        """Yield all sums of the tree, from left to right."""
        yield from sums_of(self.root)

    def terms(self) -> Iterator[Term]:
        """Yield the terms of all sums."""
        for node in self.sums():
            yield from node.terms

    def used(self) -> list[int]:
        """Return the positions of the columns that are read, in order."""
        of_terms = {column for term in self.terms() for column in term.columns}
        return sorted(of_terms | self.counted().keys())

    def counted(self) -> dict[int, bool]:
        """Return the columns of which ``predict_proba`` averages over unknown cells.

        These are cells with a category that training never saw and, if the value is
        true, missing cells. Formats that cannot average over them count them: where
        there are none, all columns are as the sum takes them. Columns whose missing
        cells had a meaning in training are not counted, nor are those left out.
        """
        marginal = self.root.marginal if isinstance(self.root, Sum) else None
        if marginal is None:
            return {}
        cells = zip(marginal.value_odds, marginal.by_missing, strict=True)
        return {
            j: by_missing
            for j, (odds, by_missing) in enumerate(cells)
            if odds == 0.0 and (by_missing or self.columns[j].kind == "category")
        }

    def texts(self) -> Iterator[str]:
        """Yield names of columns, and values and classes that are text."""
        for column in self.columns:
            yield column.name
            yield from (value for value in column.values if isinstance(value, str))
        yield from (label for label in self.classes if isinstance(label, str))

    def n_numbers(self) -> int:
        """Count the numbers in all terms."""
        return sum(map(_size, self.terms()))


def sums_of(node: Node) -> Iterator[Sum]:
    """Yield all sums of a tree, from left to right."""
    if isinstance(node, Sum):
        yield node
    else:
        for part in node.parts:
            yield from sums_of(part)


def merged_bins(
    edges: Sequence[float], results: Sequence[Any]
) -> tuple[tuple[float, ...], tuple[Any, ...]]:
    """Return edges and results of intervals, neighbours of equal results as one.

    >>> merged_bins((1.0, 2.0), ("low", "low", "high"))
    ((2.0,), ('low', 'high'))
    """
    kept = [k for k in range(len(edges)) if results[k] != results[k + 1]]
    merged = tuple(results[k] for k in (*kept, len(edges)))
    return tuple(edges[k] for k in kept), merged


def _size(term: Term) -> int:
    if isinstance(term, Density):
        return 4 * len(term.mean)
    if isinstance(term, Interaction):
        return sum(len(row) for rows in term.rows for row in rows)
    return (len(term.rows) + 1) * len(term.missing)


def about(plan: Plan) -> str:
    """Return a sentence on what a file contains, and what wrote it."""
    often = "once" if plan.n_edits == 1 else f"{plan.n_edits} times"
    edited = f", edited {often} by hand" if plan.n_edits else ""
    return (
        f"A {plan.estimator} model{edited}, written by steelyard {library_version()}."
    )


def library_version() -> str:
    """Return the version of the library, as it is written at the top."""
    # Metadata may be those of another copy, or of an earlier version.
    return str(sys.modules["steelyard"].__version__)


def plan_data(plan: Plan) -> dict[str, Any]:
    """Return a plan as dictionaries and lists; minus infinity is None.

    >>> from steelyard.export.plan import Bins, Column, Plan, Sum
    >>> term = Bins(0, (1.5,), ((0.0, 1.0), (0.5, -1.0)), (0.0, 0.0))
    >>> root = Sum((0, 1), (-0.5, -1.0), 1.0, (0, 1), (term,))
    >>> column = Column("age", "number", "numbers")
    >>> plan = Plan("NaiveBayes", (column,), ("age",), ("no", "yes"), root)
    >>> plan_data(plan)["model"]["terms"][0]["edges"]
    [1.5]
    """
    return {
        "estimator": plan.estimator,
        "classes": list(plan.classes),
        "columns": list(map(_column_data, plan.columns)),
        "attributes": list(plan.attributes),
        "model": node_data(plan.root),
    }


def _column_data(column: Column) -> dict[str, Any]:
    """Return what a program needs to read the cells of a column."""
    data = {"name": column.name, "kind": column.kind, "cells": column.cells}
    if column.date:
        data |= {"date": column.date, "part": column.part}
    return {**data, "texts": _plain(column.texts)} if column.texts else data


def node_data(node: Node) -> dict[str, Any]:
    """Return a model of the tree as plain data."""
    fields = _fields(node)
    data = {"kind": _kind(node), "classes": fields.pop("classes")}
    data["order"] = fields.pop("tie_order")
    if not isinstance(node, Sum):
        parts = fields.pop("parts")
        return {**data, **fields, "parts": parts}
    data["base"] = [b if math.isfinite(b) else None for b in node.base]
    data |= {"scale": node.scale, "odds": node.is_odds, "terms": fields["terms"]}
    data["centre"] = fields["centre"]
    if node.marginal is not None:
        data["marginal"] = fields["marginal"]
    return {**data, "blocks": fields["blocks"]} if node.blocks else data


def _kind(thing: Node | Term) -> str:
    return type(thing).__name__.lower()


def _fields(thing: Any) -> dict[str, Any]:
    return {name: _plain(value) for name, value in vars(thing).items()}


def _plain(value: Any) -> Any:
    """Return a field with lists in place of tuples, and data of what is inside."""
    if isinstance(value, tuple):
        return list(map(_plain, value))
    if isinstance(value, Node):
        return node_data(value)
    if isinstance(value, Term):
        return {"kind": _kind(value), **_fields(value)}
    return _fields(value) if isinstance(value, (Grouping, Marginal)) else value


def refuse_intervals(plan: Plan, target: str) -> None:
    """Raise an error for Weka's intervals, for formats without an error function."""
    for term in plan.terms():
        if isinstance(term, Density) and term.form == "interval":
            raise ParameterError(
                f"Column {plan.columns[term.column].name!r} is scored by Weka's "
                "intervals (numeric='gaussian-weka'), which need the error function; "
                f"{target} has none. Use numeric='gaussian'."
            )


def refuse_large(plan: Plan, target: str) -> None:
    """Raise an error for models that are too large to be written as text."""
    size = plan.n_numbers()
    if size > _MAX_NUMBERS:
        raise ParameterError(
            f"The model has {size:,} numbers, more than the {_MAX_NUMBERS:,} that are "
            f"written as {target}. Use `save`, or a format for large models: ONNX, "
            "JavaScript or Python."
        )


def refuse_texts(plan: Plan, invalid: str, why: str) -> None:
    """Raise an error for names and values with text that matches a pattern."""
    for text in plan.texts():
        if re.search(invalid, text):
            raise ParameterError(
                f"The text {text[:40]!r} is a name or value of the model, and {why}. "
                "Replace it, and fit again."
            )


def refuse_large_categories(plan: Plan, target: str) -> None:
    """Raise an error for categories that are one number, if all numbers are doubles."""
    for column in plan.columns:
        large = [v for v in column.values if isinstance(v, int) and abs(v) >= _WHOLE]
        if large:
            raise ParameterError(
                f"Column {column.name!r} has the category {large[0]}: {target} takes "
                "numbers as doubles, which do not tell whole numbers from 2**53 on "
                "apart. Turn the column into text."
            )
