"""From a table to codes by a schema.

Matrices of small whole numbers or of numbers are taken without a copy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats, Ints
from steelyard._common.one_cell import number_in
from steelyard._common.threads import row_blocks, run, run_blocks, thread_count
from steelyard.exceptions import ColumnError
from steelyard.kernels import counting
from steelyard.kernels.cuts import bin_codes
from steelyard.table.codes import (
    BlockBuilder,
    CodeBlock,
    Codes,
    EncodedColumn,
    code_dtype,
)
from steelyard.table.columns import TableColumn
from steelyard.table.factors import Factor, is_missing
from steelyard.table.frames import Table, matched_columns
from steelyard.table.schema import FeatureSchema, TableSchema

# Rows of a matrix that mostly have all values of its columns.
_MAX_LOOKED_AT = 512

Look = Callable[[int, TableColumn, NDArray[Any]], None]
"""What is shown the position of a column, the column, and its codes or numbers."""


class SchemaEncoder:
    """Encodes tables by a schema, however that was learned."""

    schema_: TableSchema
    if TYPE_CHECKING:
        n_jobs: int | None

    def encode(self, table: Table, look: Look | None = None) -> Codes:
        """Encode a table by the schema; interactions are joined from the codes.

        ``look`` is called with each column after it was encoded, in any thread.
        """
        codes = self._encode_plain(table, self.schema_.without_interactions, look)
        if codes.schema is self.schema_:
            return codes
        return codes.with_interactions(self.schema_, self.n_jobs)

    def _encode_plain(
        self, table: Table, schema: TableSchema, look: Look | None
    ) -> Codes:
        columns = self.match(table)
        given = table, schema, columns, self.n_jobs
        codes = encode_matrix(*given) if look is None else None
        if codes is not None:
            return codes

        def encode_column(j: int) -> EncodedColumn:
            column, feature = columns[j], schema.features[j]
            encoded = encode(column, feature)
            if look is not None:
                look(j, column, encoded)
            column.release()
            return feature, encoded

        builder = BlockBuilder(table.n_rows, len(schema.coded))
        for made in run(encode_column, range(len(columns)), thread_count(self.n_jobs)):
            builder.add(*made)
        return builder.finish(schema)

    def match(self, table: Table) -> list[TableColumn]:
        """Put the columns of a table into the order of the schema."""
        schema, names = self.schema_, self.schema_.names
        if names is not None and schema.left_out:
            table = table.with_empty(names[j] for j in schema.left_out)
        of_names = zip(names or (), schema.features, strict=False)
        empty = [name for name, feature in of_names if feature.cells == "nothing"]
        owner = type(self).__name__
        return matched_columns(table, names, schema.n_columns, owner, empty)


def as_byte_matrix(
    matrix: NDArray[Any], n_jobs: int | None
) -> tuple[NDArray[Any], Ints] | None:
    """Return a matrix of one-byte values and what to add to each column of it.

    One-byte types are returned as they are. Wider whole numbers are copied into bytes
    if every column spans fewer than 256 values; anything else gives None.
    """
    if matrix.dtype.kind not in "biu":
        return None
    zeros = np.zeros(matrix.shape[1], dtype=np.int64)
    if matrix.dtype.itemsize == 1:
        return matrix, zeros
    lows, highs = extremes(matrix, n_jobs)
    # Python numbers: differences of extreme 64-bit values do not wrap around.
    if any(int(high) - int(low) > 255 for low, high in zip(lows, highs, strict=True)):
        return None
    if any(int(high) >= 1 << 63 for high in highs):
        return None
    order: Any = "C" if matrix.flags.c_contiguous else "F"
    small = np.empty(matrix.shape, dtype=np.uint8, order=order)

    def narrow(rows: slice) -> None:
        np.subtract(matrix[rows], lows, out=small[rows], casting="unsafe")

    run_blocks(narrow, matrix.shape[0], n_jobs)
    return small, lows.astype(np.int64)


def observed_values(
    matrix: NDArray[Any],
    lows: Ints,
    as_bool: bool,
    n_jobs: int | None = None,
) -> list[tuple[Any, ...]]:
    """Return the distinct values of every column, sorted."""
    minima, maxima = extremes(matrix, n_jobs)
    sample = matrix[:_MAX_LOOKED_AT].view(np.uint8)
    held = np.zeros((matrix.shape[1], 256), dtype=bool)
    held[np.arange(matrix.shape[1]), sample] = True
    stored = np.arange(256, dtype=np.uint8).view(matrix.dtype)
    columns: list[tuple[Any, ...]] = []
    for j, low in enumerate(lows.tolist()):
        values = np.sort(stored[held[j]])
        spread = int(maxima[j]) - int(minima[j])
        # If the first rows have every value between the extremes, the others cannot
        # have anything else; only columns that skip values are searched in full.
        if values.size != spread + 1:
            present = np.zeros(spread + 1, dtype=bool)
            present[matrix[:, j].astype(np.int16) - int(minima[j])] = True
            values = np.flatnonzero(present) + int(minima[j])
        plain = (values.astype(np.int64) + low).tolist()
        columns.append(tuple(map(bool, plain)) if as_bool else tuple(plain))
    return columns


def look_up_of(schema: TableSchema, dtype: np.dtype[Any], lows: Ints) -> Ints:
    """Code of every byte in every column, 0 for values that the schema lacks."""
    look_up = np.zeros((len(schema), 256), dtype=np.int64)
    least = -128 if dtype.kind == "i" else 0
    values = _int64_values(schema)
    if values is not None:
        # All columns at once: one by one they took a tenth of a fit of 100,000 rows.
        sizes = np.array([len(feature.values) for feature in schema.features])
        column = np.repeat(np.arange(len(sizes)), sizes)
        stored_values = values - lows[column]
        codes = np.arange(1, column.size + 1) - (np.cumsum(sizes) - sizes)[column]
        fits = (stored_values >= least) & (stored_values < least + 256)
        look_up[column[fits], stored_values[fits] % 256] = codes[fits]
        return look_up
    for j, feature in enumerate(schema.features):
        for value, code in feature.code_of.items():
            stored = value - int(lows[j]) if not isinstance(value, str) else least - 1
            if least <= stored < least + 256 and stored == int(stored):
                look_up[j, int(stored) % 256] = code
        if dtype.kind == "b":
            look_up[j, 2:] = look_up[j, 1]
    return look_up


def _int64_values(schema: TableSchema) -> Ints | None:
    """All values column by column, None if not all are whole numbers of 64 bits."""
    values = list(chain.from_iterable(feature.values for feature in schema.features))
    if not set(map(type, values)) <= {int} or any(
        feature.missing_is_value or feature.cells != "numbers"
        for feature in schema.features
    ):
        return None
    try:
        return np.fromiter(values, np.int64, len(values))
    except OverflowError:
        return None


def extremes(
    matrix: NDArray[Any], n_jobs: int | None
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Smallest and largest value of every column of a matrix; NaN if a cell is."""
    is_plain = matrix.flags.c_contiguous and matrix.dtype.isnative
    if not is_plain or not matrix.size:
        return matrix.min(axis=0), matrix.max(axis=0)
    cells = matrix.view(np.uint8) if matrix.dtype.kind == "b" else matrix

    def of_rows(rows: slice) -> tuple[NDArray[Any], NDArray[Any]]:
        return counting.least_and_most(cells[rows])

    both = run(of_rows, row_blocks(len(cells)), thread_count(n_jobs))
    lows, highs = zip(*both, strict=True)
    return np.min(lows, axis=0), np.max(highs, axis=0)


def byte_codes(
    schema: TableSchema,
    matrix: NDArray[Any],
    lows: Ints,
    all_known: bool = False,
) -> Codes:
    """Take a matrix of bytes without a copy; ``all_known`` if the schema has it all."""
    look_up = look_up_of(schema, matrix.dtype, lows)
    features = np.arange(len(schema), dtype=np.int64)
    last = int(np.flatnonzero(look_up.any(axis=0)).max(initial=-1))
    n_bytes = last + 1 if all_known else 256
    block = CodeBlock(matrix.view(np.uint8), features, look_up, n_bytes)
    return Codes(schema, matrix.shape[0], (block,))


def encode_matrix(
    table: Table, schema: TableSchema, columns: list[TableColumn], n_jobs: int | None
) -> Codes | None:
    """Encode a matrix of small whole numbers or of numbers without a copy."""
    if table.matrix is None or len(schema) != table.n_columns:
        return None
    kinds = {feature.kind for feature in schema.features}
    if kinds == {"categorical"}:
        if not all(map(are_of_one_kind, schema.features, columns)):
            return None
        small = as_byte_matrix(table.matrix, n_jobs)
        return None if small is None else byte_codes(schema, *small)
    imputed = any(feature.fill is not None for feature in schema.features)
    if kinds != {"gaussian"} or imputed or table.matrix.dtype != np.float64:
        return None
    for rows in row_blocks(table.n_rows):
        infinite = np.isinf(table.matrix[rows])
        if infinite.any():
            column = table.columns[int(np.flatnonzero(infinite.any(axis=0))[0])]
            _ = column.finite_numbers  # raises, and reports where
    return Codes(schema, table.n_rows, (), table.matrix)


def codes_of(feature: FeatureSchema, factor: Factor) -> NDArray[Any]:
    """Codes of a categorical column."""
    return factor.pick(
        feature.codes(factor.values), feature.missing_code, code_dtype(feature.n_codes)
    )


def bins_of(feature: FeatureSchema, numbers: Floats) -> NDArray[Any]:
    """Codes of a binned column."""
    codes = np.empty(numbers.size, dtype=code_dtype(feature.n_codes))
    bin_codes(numbers, np.array(feature.edges, dtype=np.float64), codes, 1)
    if feature.missing_code:
        codes[codes == 0] = feature.missing_code
    return codes


def encode(column: TableColumn, feature: FeatureSchema) -> NDArray[Any]:
    """Return the codes of a column, or numbers if the attribute is Gaussian."""
    if feature.left_out:
        return np.zeros(len(column), dtype=np.uint8)
    if feature.kind == "categorical":
        return codes_of(feature, factor_as_fitted(column, feature))
    check_cells(feature, column)
    dtype = code_dtype(feature.n_codes)
    if column.cells == "text":
        # All cells were missing at fit, so these are values never seen.
        unseen = column.finite_factor.indices >= 0
        if not feature.is_coded:
            return np.full(unseen.size, math.nan)
        return np.where(unseen, 0, feature.missing_code).astype(dtype)
    if feature.kind == "binned" and column.narrow_factor is not None:
        factor = column.narrow_factor
        by_value = bins_of(feature, np.array(factor.values, dtype=np.float64))
        return factor.pick(by_value.tolist(), feature.missing_code, dtype)
    return encode_numbers(feature, column.finite_numbers)


def factor_as_fitted(column: TableColumn, feature: FeatureSchema) -> Factor:
    """Return the values of a column, numbers as text or text as numbers as at fit.

    Text that is no number is refused if categories were numbers, and so are numbers if
    no category looks like one.
    """
    factor = column.finite_factor
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


def encode_numbers(feature: FeatureSchema, numbers: Floats) -> NDArray[Any]:
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
    was, hint = "contained text", "Turn it into text, or refit."
    if column.cells == "text":
        was, hint = (
            "contained numbers or booleans",
            "Encode it as a number or a missing value.",
        )
    if feature.kind != "categorical":
        was = "was numeric"
    present = [value for value in column.objects() if not is_missing(value)]
    texts = (v for v in present if isinstance(v, str) and number_in(v) is None)
    example = next(texts, present[0])
    raise ColumnError(
        f"{column.label} {was} when the model was fitted, but now contains "
        f"{column.cells} ({example!r}). {hint}"
    )


def on_grid(numbers: Floats, step: float) -> Floats:
    """Round numbers to multiples of a step, halves to even; step 0 leaves them."""
    if not step:
        return numbers
    with np.errstate(over="ignore"):
        rounded = np.round(numbers / step) * step
    # Numbers so far from zero that they overflow are on no grid.
    return np.where(np.isinf(rounded), numbers, rounded)
