"""From the cells of one column to its codes or numbers, by its schema."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.one_cell import number_in
from steelyard.exceptions import ColumnError
from steelyard.kernels.cuts import bin_codes
from steelyard.table.codes import code_dtype
from steelyard.table.columns import TableColumn
from steelyard.table.factors import Factor, is_missing
from steelyard.table.schema import FeatureSchema


def factor_of(column: TableColumn) -> Factor:
    """Distinct values of a column, all of them finite."""
    factor = column.factor()
    for k, value in enumerate(factor.values):
        if isinstance(value, float) and math.isinf(value):
            raise _infinite(column, np.flatnonzero(factor.indices == k))
    return factor


def numbers_of(column: TableColumn) -> NDArray[np.float64]:
    """Cells of a numeric column as float64, all of them finite or NaN."""
    numbers = column.numbers()
    infinite = np.isinf(numbers)
    if infinite.any():
        raise _infinite(column, np.flatnonzero(infinite))
    return numbers


def _infinite(column: TableColumn, rows: NDArray[np.int64]) -> ColumnError:
    # A category type may declare a value that is in no row.
    where = f"in row {rows[0]}" if rows.size else "among its categories"
    return ColumnError(
        f"{column.label} holds an infinite number (inf) {where}. Replace it by a "
        "finite number, or by NaN if it is unknown."
    )


def codes_of(feature: FeatureSchema, factor: Factor) -> NDArray[Any]:
    """Codes of a categorical column."""
    by_value = [feature.code_of.get(value, 0) for value in factor.values]
    return factor.pick(by_value, feature.missing_code, code_dtype(feature.n_codes))


def bins_of(feature: FeatureSchema, numbers: NDArray[np.float64]) -> NDArray[Any]:
    """Codes of a binned column."""
    codes = np.empty(numbers.size, dtype=code_dtype(feature.n_codes))
    bin_codes(numbers, np.array(feature.edges, dtype=np.float64), codes, 1)
    if feature.missing_code:
        codes[codes == 0] = feature.missing_code
    return codes


class ColumnCells:
    """The cells of a column, read once however often they are asked for."""

    def __init__(self, column: TableColumn) -> None:
        self.column = column

    @cached_property
    def factor(self) -> Factor:
        """Distinct values, all of them finite, and where they are."""
        return factor_of(self.column)

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """Cells as float64, all of them finite or NaN."""
        return numbers_of(self.column)

    @cached_property
    def narrow(self) -> Factor | None:
        """Distinct values of many whole numbers in a small range, None for others."""
        return self.column.narrow_factor()

    def encoded(self, feature: FeatureSchema) -> NDArray[Any]:
        """Return codes, or numbers where the attribute is Gaussian."""
        column = self.column
        if feature.kind == "categorical":
            return codes_of(feature, self._as_fitted(feature))
        check_cells(feature, column)
        dtype = code_dtype(feature.n_codes)
        if column.cells == "text":
            # All cells were missing at fit, so these are values never seen.
            unseen = self.factor.indices >= 0
            if not feature.is_coded:
                return np.full(unseen.size, math.nan)
            return np.where(unseen, 0, feature.missing_code).astype(dtype)
        if feature.kind == "binned" and self.narrow is not None:
            by_value = bins_of(feature, np.array(self.narrow.values, dtype=np.float64))
            return self.narrow.pick(by_value.tolist(), feature.missing_code, dtype)
        return encode_numbers(feature, self.numbers)

    def _as_fitted(self, feature: FeatureSchema) -> Factor:
        """Return the values, numbers as text or text as numbers as at fit.

        Text that is no number is refused where categories were numbers, and so are
        numbers where no category looks like one.
        """
        column, factor = self.column, self.factor
        if are_of_one_kind(feature, column):
            return factor
        if column.cells != "text":
            if not feature.text_of:
                check_cells(feature, column)
            values = [feature.text_of.get(value) for value in factor.values]
            return Factor(factor.indices, values)
        if any(number_in(value) is None for value in factor.held()[0]):
            check_cells(feature, column)
        return Factor(factor.indices, list(map(number_in, factor.values)))


def encode_numbers(
    feature: FeatureSchema, numbers: NDArray[np.float64]
) -> NDArray[Any]:
    """Codes of the cells of a binned column, or numbers as a Gaussian one has them."""
    if feature.kind == "binned":
        return bins_of(feature, numbers)
    if feature.fill is not None:
        numbers = np.where(np.isnan(numbers), feature.fill, numbers)
    return on_grid(numbers, feature.step)


def are_of_one_kind(feature: FeatureSchema, column: TableColumn) -> bool:
    """Whether cells are text or not as at fit; empty ones are of any kind."""
    if column.cells == "nothing" or feature.cells == "nothing":
        return True
    return (feature.cells == "text") == (column.cells == "text")


def check_cells(feature: FeatureSchema, column: TableColumn) -> None:
    """Refuse a column whose cells are of another kind than at fit."""
    if are_of_one_kind(feature, column):
        return
    was, hint = "held text", "Turn it into text, or refit."
    if column.cells == "text":
        was, hint = (
            "held numbers or booleans",
            "Encode it as a number or a missing value.",
        )
    if feature.kind != "categorical":
        was = "was continuous"
    known = [value for value in column.objects() if not is_missing(value)]
    odd = (v for v in known if isinstance(v, str) and number_in(v) is None)
    example = next(odd, known[0])
    raise ColumnError(
        f"{column.label} {was} when the model was fitted and now holds {column.cells} "
        f"({example!r}). {hint}"
    )


def on_grid(numbers: NDArray[np.float64], step: float) -> NDArray[np.float64]:
    """Round numbers to multiples of a step, halves to even; step 0 leaves them."""
    if not step:
        return numbers
    with np.errstate(over="ignore"):
        rounded = np.round(numbers / step) * step
    # What is so far from zero that it overflows is on no grid.
    return np.where(np.isinf(rounded), numbers, rounded)
