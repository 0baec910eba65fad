"""TableEncoder: learn a schema from a table, then turn tables into codes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from steelyard._common.arrays import Floats
from steelyard._common.settings import (
    COLUMN,
    FLAG,
    N_JOBS,
    NONE,
    DeclaredPart,
    check_settings,
    instance,
    learned,
    listed,
    mapped,
    matching,
    setting,
    word,
)
from steelyard._common.threads import run, thread_count
from steelyard.exceptions import IdentifierWarning, ParameterError, warn_user
from steelyard.table.codes import BlockBuilder, Codes, EncodedColumn
from steelyard.table.columns import TableColumn, column_label
from steelyard.table.discretizers.base import Discretizer
from steelyard.table.encoding import (
    SchemaEncoder,
    as_byte_matrix,
    byte_codes,
    check_cells,
    encode,
    extremes,
    observed_values,
)
from steelyard.table.frames import Table, as_table
from steelyard.table.labels import encode_labels
from steelyard.table.learning import (
    LabelledRows,
    LearnedColumn,
    WholeColumn,
    grown,
    learned_column,
    with_values,
)
from steelyard.table.ranges import NumberRange, added_ranges, range_of, sampled
from steelyard.table.rows import training_rows
from steelyard.table.schema import FeatureSchema, TableSchema
from steelyard.table.treatments import Treatment, numeric_treatments, treatments

__all__ = ["TableEncoder"]


_TREATMENT = matching(".+", "treatment") | instance(Discretizer)
_TREATMENTS = _TREATMENT | listed(_TREATMENT, at_least=1)


class TableEncoder(SchemaEncoder, TransformerMixin, DeclaredPart):
    """Turn any table into codes, by a schema learned once.

    Code 0 is a cell that is missing or has a value never seen at fit; the
    values of a column follow from 1 on in sorted order, whatever library the table came
    from. Numeric columns are cut into bins, or kept as numbers for a density.

    Examples
    --------
    >>> import numpy as np
    >>> from steelyard import TableEncoder
    >>> X = np.array([["sunny", "hot"], ["rain", "mild"], ["rain", None]], dtype=object)
    >>> encoder = TableEncoder().fit(X)
    >>> encoder.transform(X)
    array([[2, 1],
           [1, 2],
           [1, 0]], dtype=uint8)
    >>> encoder.transform(np.array([["hail", "mild"]], dtype=object))
    array([[0, 2]], dtype=uint8)
    """

    categorical_features: Any = setting(
        default="auto",
        allowed=(NONE | word("auto", "all") | listed(COLUMN)).called(
            "'auto', 'all', or a list of names or positions of columns"
        ),
        about='Which columns hold categories. "auto" takes text, category, enum and '
        "boolean columns.",
    )
    numeric: Any = setting(
        default="mdl",
        allowed=(_TREATMENTS | mapped(COLUMN, _TREATMENTS)).called(
            "a treatment such as 'mdl' or 'gaussian', a discretizer, several "
            "discretizers, or a mapping from column to these"
        ),
        about='Treatment of numeric columns: bins by "mdl", "mdl-better", "kononenko", '
        '"equal-width", "equal-width-merged", "equal-frequency", "grid" (for '
        'smoothing="kernel") or a discretizer; '
        'densities by "gaussian", "gaussian-weka" or "gaussian-relative"; "linear" for '
        "weights by class; a tuple of discretizers, whose cut points are united; or a "
        'mapping from column to these, with "mdl" for columns that it leaves out.',
    )
    missing: str = setting(
        default="skip",
        allowed=word("skip", "impute", "value"),
        about="Leave missing cells out, replace them by the mean or most frequent "
        "value, or treat them as a separate value (Gaussian columns skip them "
        "then).",
    )
    cardinality: str = setting(
        default="observed",
        allowed=word("observed", "declared"),
        about="Whether values declared by category and enum types count as values when "
        "no row holds them.",
    )
    n_jobs: int | None = setting(
        default=None, allowed=N_JOBS, about="Threads. Results do not depend on it."
    )
    keep_identifiers: bool = setting(
        default=True,
        allowed=FLAG,
        about="Whether columns that look like identifiers have a say: text of which "
        "nearly all values differ, and running numbers. Otherwise all their cells "
        "count as missing, unless there are no other columns.",
    )

    schema_: TableSchema = learned(
        "TableSchema", "Names, kinds, values and cut points of the columns."
    )
    suspects: Mapping[int, str] = MappingProxyType({})
    """Columns that looked like identifiers when the schema was learned, and why."""

    ranges_: list[NumberRange | None] = learned(
        "list of NumberRange", "Where the numbers of each column lie; None for others."
    )
    n_features_in_: int = learned("int", "Number of columns.")
    feature_names_in_: NDArray[Any] = learned(
        "ndarray of str", "Names of the columns, if the table had any."
    )

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> TableEncoder:
        """Learn the schema of a table.

        Parameters
        ----------
        X : table of shape (n, d)
            NumPy array, pandas, polars or pyarrow table.
        y : array-like of shape (n,), default=None
            Labels; supervised discretizers need them.
        sample_weight : array-like of shape (n,), default=None
            Row weights.

        Returns
        -------
        TableEncoder
            The encoder itself.
        """
        check_settings(self)
        table, y, weights = training_rows(X, y, sample_weight, self)
        labels, n_classes = None, 0
        if y is not None:
            classes, labels = encode_labels(y)
            n_classes = len(classes)
        self.learn(table, labels, n_classes, weights)
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Encode a table as an array of codes.

        Parameters
        ----------
        X : table of shape (n, d)
            A table with the columns of the one fitted.

        Returns
        -------
        ndarray of shape (n, d)
            Unsigned codes; with Gaussian columns a float array with their
            numbers as they are.
        """
        check_is_fitted(self)
        codes = self.encode(as_table(X, self))
        array = codes.to_array()
        if not codes.n_numbers:
            return array
        mixed = np.empty((codes.n_rows, len(self.schema_)))
        mixed[:, self.schema_.coded] = array
        mixed[:, self.schema_.gaussian] = codes.number_rows(slice(None))
        return mixed

    @property
    def uses_labels(self) -> bool:
        """Whether cut points of a numeric column depend on the classes of rows."""
        schema = self.schema_.without_interactions
        by_column = numeric_treatments(self.numeric, len(schema), schema.names)
        return any(
            treatment.uses_labels
            for feature, treatment in zip(schema.features, by_column, strict=True)
            if feature.kind != "categorical"
        )

    # ---------------------------------------------------------------- from a table

    def learn(
        self,
        table: Table,
        y: NDArray[np.uint32] | None,
        n_classes: int,
        weights: Floats | None,
        left_out: Collection[int] | None = None,
        with_ranges: bool = True,
    ) -> Codes:
        """Learn the schema and return the codes of the training table.

        Columns to leave out are those given, or those that look like identifiers.
        Ranges of numbers are for who publishes the encoder. Settings are checked.
        """
        given = self.categorical_features, self.numeric
        by_column = treatments(*given, table.columns, table.names)
        if y is None:
            _refuse_supervised(by_column)
        rows = LabelledRows(table.n_rows, y, weights, n_classes)
        known, matrix_codes = self._known_matrix(table, by_column)
        columns: list[Any] = [None] * table.n_columns

        def learn_column(j: int) -> EncodedColumn | None:
            column, treatment = table.columns[j], by_column[j]
            is_category = treatment.kind == "categorical"
            summary = WholeColumn(column, is_category, rows, **known.get(j, {}))
            how = treatment, self, table.n_rows, left_out, with_ranges
            columns[j] = learned_column(summary, *how)
            made = None
            if matrix_codes is None:
                made = columns[j].feature, encode(column, columns[j].feature)
            column.release()
            return made

        # No thread for what is known: fifty such columns took a tenth of a fit.
        is_quick = bool(known) and by_column[0].kind == "categorical"
        n_threads = 1 if is_quick else thread_count(self.n_jobs)
        builder = BlockBuilder(table.n_rows, table.n_columns)
        for made in run(learn_column, range(table.n_columns), n_threads):
            if made is not None:
                builder.add(*made)
        if all([column.feature.left_out for column in columns]):
            codes = self.learn(table, y, n_classes, weights, ())
            self.note_suspects(columns, table.n_rows)
            return codes
        self.set_learned(columns, table.names, table.n_rows)
        if matrix_codes is None:
            return builder.finish(self.schema_)
        some_left_out = bool(self.schema_.left_out)
        return self.encode(table) if some_left_out else matrix_codes(self.schema_)

    def set_learned(
        self, columns: Sequence[LearnedColumn], names: list[str] | None, n_rows: int
    ) -> None:
        """Set what was learned about the columns of ``n_rows`` rows."""
        self.schema_ = TableSchema(tuple([column.feature for column in columns]))
        self.ranges_ = [column.range for column in columns]
        self.n_features_in_ = len(columns)
        if names is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.note_suspects(columns, n_rows)

    def note_suspects(self, columns: Sequence[LearnedColumn], n_rows: int) -> None:
        """Store, and warn of, every column that looks like an identifier."""
        self.suspects = {j: c.suspect for j, c in enumerate(columns) if c.suspect}
        for j, suspect in self.suspects.items():
            done = "consider dropping it"
            if j in self.schema_.left_out:
                done = "it was dropped; keep it with `keep_identifiers=True`"
            label = column_label(j, columns[j].feature.name)
            warn_user(
                f"{label} looks like an identifier: {suspect} in {n_rows} "
                f"rows. It cannot generalise to new rows; {done}.",
                IdentifierWarning,
            )

    def grow(self, table: Table) -> Codes:
        """Add the new categories of a table to the schema, and encode it by that."""
        old, columns = self.schema_, self.match(table)
        codes = self._grow_matrix(table, columns)
        if codes is not None:
            return codes
        features = [*old.features]
        ranges: list[NumberRange | None] = [None] * len(old)

        def grow_column(j: int) -> EncodedColumn:
            column, edges = columns[j], partial(self._first_edges, j)
            feature = grown(column, features[j], self.missing, edges)
            cells = encode(column, feature)
            if feature.kind != "categorical":
                ranges[j] = range_of(column.finite_numbers)
            column.release()
            features[j] = feature
            return feature, cells

        builder = BlockBuilder(table.n_rows, len(old))
        for made in run(grow_column, range(len(columns)), thread_count(self.n_jobs)):
            builder.add(*made)
        self._set_grown(features)
        self.ranges_ = added_ranges(self.ranges_, ranges)
        return builder.finish(self.schema_)

    def _set_grown(self, features: list[FeatureSchema]) -> None:
        # The schema stays the same object if nothing is new: that is quick to see.
        if any(map(operator.is_not, features, self.schema_.features)):
            self.schema_ = TableSchema(tuple(features))

    def _first_edges(self, position: int) -> list[list[float]]:
        """Cut points of a column that was empty when cut points were learned."""
        names = self.schema_.names
        by_column = numeric_treatments(self.numeric, self.n_features_in_, names)
        column = position, None if names is None else names[position]
        nothing = np.empty(0), None, 0, None
        return [
            []
            if discretizer.supervised
            else discretizer.column_edges(*nothing, column=column).tolist()
            for discretizer in by_column[position].discretizers
        ]

    # ------------------------------------------------------------ matrices as they are

    def _known_matrix(
        self, table: Table, by_column: list[Treatment]
    ) -> tuple[dict[int, dict[str, Any]], Callable[[TableSchema], Codes] | None]:
        """Return what is known of the columns of a matrix that is taken without a copy.

        That is one whose cells are codes or numbers already. Also returned is what
        makes codes of it; None for tables that are read column by column.
        """
        matrix = table.matrix
        # What replaces missing cells is computed column by column.
        if matrix is None or self.missing == "impute":
            return {}, None
        kinds = {treatment.kind for treatment in by_column}
        if kinds == {"categorical"}:
            small = as_byte_matrix(matrix, self.n_jobs)
            if small is not None:
                is_bool = matrix.dtype.kind == "b"
                values = observed_values(*small, is_bool, self.n_jobs)
                known = {j: {"values": held} for j, held in enumerate(values)}
                return known, lambda s: byte_codes(s, *small, all_known=True)
        if kinds == {"gaussian"} and matrix.dtype == np.float64:
            lows, highs = extremes(matrix, self.n_jobs)
            # Rows at once: a column of them would touch as much memory.
            some = np.asfortranarray(matrix[sampled(len(matrix))])
            ends = {
                j: {"ends": (float(low), float(high)), "some": some[:, j]}
                for j, (low, high) in enumerate(zip(lows, highs, strict=True))
            }
            return ends, lambda s: Codes(s, len(matrix), (), matrix)
        return {}, None

    def _grow_matrix(self, table: Table, columns: list[TableColumn]) -> Codes | None:
        """Add the values of a matrix of bytes to the schema, and take it as it is."""
        features = self.schema_.features
        small = None
        if table.matrix is not None and {f.kind for f in features} == {"categorical"}:
            small = as_byte_matrix(table.matrix, self.n_jobs)
        if small is None or any(f.cells == "nothing" for f in features):
            return None
        for feature, column in zip(features, columns, strict=True):
            check_cells(feature, column)
        is_bool = columns[0].cells == "booleans"
        values = observed_values(*small, is_bool, self.n_jobs)
        by_feature = zip(features, values, strict=True)
        self._set_grown([with_values(f, v, partial(list, v)) for f, v in by_feature])
        return byte_codes(self.schema_, *small)


def _refuse_supervised(by_column: list[Treatment]) -> None:
    for treatment in by_column:
        for discretizer in treatment.discretizers:
            if discretizer.supervised:
                raise ParameterError(
                    f"{type(discretizer).__name__} needs labels: call fit(X, y), or "
                    "set `numeric` to 'equal-width' or 'equal-frequency'."
                )
