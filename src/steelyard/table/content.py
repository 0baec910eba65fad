"""What the chunks of a column hold, and what that is taken together."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.exceptions import ColumnError
from steelyard.table.columns import Column
from steelyard.table.factors import Cells, is_missing

# From little to much that a type says of a column without a known cell.
_STORAGES: list[Cells] = ["nothing", "booleans", "numbers", "text"]

# Cells of a chunk among which an example is looked for.
_LOOKED_AT = 64


class Rows(NamedTuple):
    """Classes and weights of the rows of a chunk."""

    labels: NDArray[np.uint32]
    weights: NDArray[np.float64] | None
    n_classes: int

    def totals(self, chosen: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
        """Return the weight of some rows by class, of all by default, shape (K,)."""
        labels, weights = self.labels, self.weights
        if chosen is not None:
            labels = labels[chosen]
            weights = None if weights is None else weights[chosen]
        return np.bincount(labels, weights, self.n_classes).astype(np.float64)


class Needs(NamedTuple):
    """What the settings ask of a column."""

    cells: bool
    """Whether cells of numbers are wanted."""

    weights: bool
    """Whether the weight of each category is wanted."""

    declared: bool
    """Whether values that types declare are wanted."""


@dataclass(frozen=True)
class Content:
    """What a column holds, as far as its chunks tell."""

    storage: Cells
    cells: Cells
    is_category: bool
    is_integer: bool = False
    declared: frozenset[Any] | None = None
    """Values of category and enum types; empty where they do not count."""

    place: str = field(default="", compare=False)
    example: Any = field(default=None, compare=False)

    def merged(self, other: Content, label: str) -> Content:
        """Return what both hold together; text and numbers are refused."""
        known = [part for part in (self, other) if part.cells != "nothing"]
        declared = _union(self.declared, other.declared)
        if len(known) < 2:
            # What has no known cell yields to what has one.
            most = max(known or (self, other), key=lambda c: _STORAGES.index(c.storage))
            same = [c for c in known or (self, other) if c.storage == most.storage]
            is_category = all(c.is_category for c in same)
            return replace(
                most,
                is_category=is_category,
                declared=declared if is_category else None,
            )
        if (self.cells == "text") != (other.cells == "text"):
            raise ColumnError(
                f"{label} holds {self.cells} in {self.place} ({self.example!r}) and "
                f"{other.cells} in {other.place} ({other.example!r}). Give all its "
                "cells one type."
            )
        cells: Cells = self.cells if self.cells == other.cells else "numbers"
        is_category = self.is_category and other.is_category
        return replace(
            self,
            storage=cells,
            cells=cells,
            is_category=is_category,
            is_integer=self.is_integer and other.is_integer,
            declared=declared if is_category else None,
        )


def describe(column: Column, is_category: bool, needs: Needs) -> Content:
    """Describe the column of a chunk."""
    declared = column.declared
    if declared is not None and not needs.declared:
        declared = []
    return Content(
        column.storage,
        column.cells,
        is_category,
        column.is_integer,
        None if declared is None else frozenset(declared),
    )


def example_of(column: Column, n_rows: int) -> Any:
    """Return one of the first known cells, for a message; None if there is none."""
    some = column.take(np.arange(min(n_rows, _LOOKED_AT))).objects()
    return next((value for value in some if not is_missing(value)), None)


def _union(a: frozenset[Any] | None, b: frozenset[Any] | None) -> frozenset[Any] | None:
    if a is None or b is None:
        return b if a is None else a
    return a if a == b else a | b
