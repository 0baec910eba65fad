"""TableEncoder: learn a schema from a table, then turn tables into codes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from steelyard._common.settings import (
    N_JOBS,
    NONE,
    Check,
    DeclaredPart,
    check_settings,
    learned,
    listed,
    mapped,
    setting,
    word,
)
from steelyard._common.threads import run, thread_count
from steelyard.exceptions import ParameterError
from steelyard.table.blocks import BlockBuilder, byte_codes, encode_matrix, matrix_codes
from steelyard.table.bytes import as_byte_matrix, observed_values
from steelyard.table.cells import check_cells, encode_column
from steelyard.table.codes import Codes
from steelyard.table.columns import Column
from steelyard.table.discretizers import Discretizer
from steelyard.table.frames import Table, as_table, matched_columns
from steelyard.table.identifiers import suspicion, warn_identifiers
from steelyard.table.labels import encode_labels, training_rows
from steelyard.table.learning import (
    Grown,
    Learned,
    Target,
    grown,
    learn_categories,
    learn_numbers,
    with_values,
)
from steelyard.table.ranges import NumberRange, added_ranges, column_ranges
from steelyard.table.schema import FeatureSchema, TableSchema
from steelyard.table.treatments import Treatment, numeric_treatments, treatments

__all__ = ["COLUMN", "TableEncoder"]

Result = TypeVar("Result")

# A name or a position; whether there is such a column, the table will tell.
COLUMN = Check(
    "names or positions of columns",
    lambda value: isinstance(value, (str, int, np.integer, np.bool_)),
)
_TREATMENT = Check(
    "treatment", lambda value: isinstance(value, (str, Discretizer)) and value != ""
)
_VIEWS = _TREATMENT | listed(_TREATMENT, at_least=1)


class TableEncoder(TransformerMixin, DeclaredPart):
    """Turn any table into codes, by a schema learned once.

    Code 0 stands for a cell that is missing or holds a value never seen at fit; the
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
        allowed=(_VIEWS | mapped(COLUMN, _VIEWS)).called(
            "a treatment such as 'mdl' or 'gaussian', a discretizer, several of them, "
            "or a mapping from column to these"
        ),
        about='Treatment of numeric columns: bins by "mdl", "mdl-better", "kononenko", '
        '"equal-width", "equal-width-merged", "equal-frequency" or a discretizer; '
        'densities by "gaussian", "gaussian-weka" or "gaussian-relative"; "linear" for '
        "weights by class; a tuple of these for several views of each column; or a "
        'mapping from column to these, with "mdl" for columns that it leaves out.',
    )
    missing: str = setting(
        default="skip",
        allowed=word("skip", "impute", "value"),
        about="Leave missing cells out, replace them by the mean or most frequent "
        "value, or treat them as a value of their own (Gaussian columns skip them "
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

    schema_: TableSchema = learned(
        "TableSchema", "Names, kinds, values and cut points of the columns."
    )
    ranges_: list[NumberRange | None] = learned(
        "list of NumberRange", "Where the numbers of each column lie; None for others."
    )
    n_features_in_: int = learned("int", "Number of columns.")
    feature_names_in_: NDArray[Any] = learned(
        "ndarray of str", "Names of the columns, where the table had any."
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
            Unsigned codes; with Gaussian columns a float array that holds their
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
        """Whether cut points of a numeric column are found by the classes of rows."""
        schema = self.schema_
        is_number = {
            c
            for c, f in zip(schema.columns, schema.features, strict=True)
            if f.kind not in ("categorical", "pair")
        }
        by_column = numeric_treatments(self.numeric, self.n_features_in_, schema.names)
        return any(t.supervised for column in is_number for t in by_column[column])

    # ---------------------------------------------------------------- from a table

    def learn(
        self,
        table: Table,
        y: NDArray[np.uint32] | None,
        n_classes: int,
        weights: NDArray[np.float64] | None,
    ) -> Codes:
        """Learn the schema and return the codes of the training table."""
        check_settings(self)
        by_column = treatments(
            self.categorical_features, self.numeric, table.columns, table.names
        )
        # A numeric column may have several views, each an attribute of its own.
        views = [(j, t) for j, of_column in enumerate(by_column) for t in of_column]
        supervised = [t for _, t in views if t.supervised]
        if supervised and y is None:
            raise ParameterError(
                f"{type(supervised[0]).__name__} needs labels: call fit(X, y), or set "
                "`numeric` to 'equal-width' or 'equal-frequency'."
            )
        self.n_features_in_ = table.n_columns
        if table.names is not None:
            self.feature_names_in_ = np.asarray(table.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        is_number = [of_column[0].kind != "categorical" for of_column in by_column]
        self.ranges_ = column_ranges(table.columns, is_number, weights, self.n_jobs)
        codes = self._learn_matrix(table, views)
        if codes is None:
            codes = self._learn_columns(table, views, Target(y, n_classes, weights))
        return codes

    def encode(self, table: Table) -> Codes:
        """Encode a table by the schema; pairs are joined of the codes."""
        codes = self._encode_plain(table, self.schema_.without_pairs)
        if codes.schema is self.schema_:
            return codes
        return codes.with_pairs(self.schema_, self.n_jobs)

    def _encode_plain(self, table: Table, schema: TableSchema) -> Codes:
        columns = self.match(table)
        codes = encode_matrix(table, schema, columns, self.n_jobs)
        if codes is not None:
            return codes

        def encode_view(k: int) -> NDArray[Any]:
            return encode_column(schema.features[k], columns[schema.columns[k]])

        builder = BlockBuilder(table.n_rows, len(schema.coded))
        for k, cells in enumerate(self._by_view(encode_view, columns, schema.columns)):
            builder.add(k, schema.features[k], cells)
        return builder.finish(schema)

    def grow(self, table: Table) -> Codes:
        """Add the new categories of a table to the schema, and encode it by that."""
        old, columns = self.schema_, self.match(table)
        codes = self._grow_matrix(table, columns)
        if codes is not None:
            return codes

        def grow_view(k: int) -> Grown:
            first_edges = partial(self._first_edges, k)
            column = columns[old.columns[k]]
            return grown(old.features[k], column, self.missing, first_edges)

        features = []
        builder = BlockBuilder(table.n_rows, len(old))
        for k, view in enumerate(self._by_view(grow_view, columns, old.columns)):
            builder.add(k, view.feature, view.encoded)
            features.append(view.feature)
        self._set_grown(features)
        self._add_ranges(columns)
        return builder.finish(self.schema_)

    def _set_grown(self, features: list[FeatureSchema]) -> None:
        # The schema stays the same object where nothing is new: that is quick to see.
        if any(map(operator.is_not, features, self.schema_.features)):
            self.schema_ = TableSchema(tuple(features))

    def _add_ranges(self, columns: list[Column]) -> None:
        """Take in where the numbers of more rows lie; a model file may not say."""
        if not hasattr(self, "ranges_"):
            return
        of_column = dict(zip(self.schema_.columns, self.schema_.features, strict=True))
        is_number = [
            of_column[j].kind != "categorical" for j in range(self.n_features_in_)
        ]
        more = column_ranges(columns, is_number, None, self.n_jobs)
        self.ranges_ = added_ranges(self.ranges_, more)

    def match(self, table: Table) -> list[Column]:
        """Put the columns of a table into the order of the schema."""
        return matched_columns(
            table, self.schema_.names, self.n_features_in_, type(self).__name__
        )

    # ------------------------------------------------------------ column by column

    def _learn_columns(
        self, table: Table, views: list[tuple[int, Treatment]], target: Target
    ) -> Codes:
        names: Sequence[str | None] = table.names or [None] * table.n_columns

        def learn_view(k: int) -> Learned:
            j, treatment = views[k]
            column, name = table.columns[j], names[j]
            if treatment.kind != "categorical":
                return learn_numbers(column, name, treatment, target, self.missing)
            return learn_categories(
                column, name, target.weights, self.missing, self.cardinality
            )

        features: list[FeatureSchema] = []
        suspects: dict[int, str | None] = {}
        builder = BlockBuilder(table.n_rows, len(views))
        of = [j for j, _ in views]
        for k, view in enumerate(self._by_view(learn_view, table.columns, of)):
            several = len(views) > table.n_columns
            feature = replace(view.feature, column=of[k] if several else None)
            builder.add(k, feature, view.encoded)
            features.append(feature)
            suspects.setdefault(of[k], view.suspect)
        self.schema_ = TableSchema(tuple(features))
        warn_identifiers(table, list(suspects.values()))
        return builder.finish(self.schema_)

    def _by_view(
        self, function: Callable[[int], Result], columns: list[Column], of: list[int]
    ) -> Iterator[Result]:
        """Yield ``function(k)`` for every view; release a column after its last."""
        results = run(function, range(len(of)), thread_count(self.n_jobs))
        for k, result in enumerate(results):
            yield result
            if k + 1 == len(of) or of[k + 1] != of[k]:
                columns[of[k]].release()

    def _first_edges(self, view: int) -> tuple[float, ...]:
        """Cut points of a column that was empty when cut points were learned."""
        schema = self.schema_
        position, name = schema.columns[view], schema.features[view].name
        by_column = numeric_treatments(self.numeric, self.n_features_in_, schema.names)
        treatment = by_column[position][view - schema.columns.index(position)]
        if treatment.supervised:
            return ()
        place = (position, name)
        edges = treatment.known_edges(np.empty(0), None, 0, None, column=place)
        return tuple(edges.tolist())

    # ------------------------------------------------------------ matrices as they are

    def _learn_matrix(
        self, table: Table, views: list[tuple[int, Treatment]]
    ) -> Codes | None:
        """Read a matrix whose cells are codes or numbers already, without a copy."""
        # What to impute is found column by column.
        if table.matrix is None or self.missing == "impute":
            return None
        kinds = [treatment.kind for _, treatment in views]
        if set(kinds) == {"categorical"}:
            return self._learn_bytes(table, table.matrix)
        if kinds != ["gaussian"] * table.n_columns:
            return None
        schema = TableSchema(
            tuple(FeatureSchema(None, "gaussian", c.cells) for c in table.columns)
        )
        codes = matrix_codes(schema, table)
        if codes is not None:
            self.schema_ = schema
        return codes

    def _learn_bytes(self, table: Table, matrix: NDArray[Any]) -> Codes | None:
        small = as_byte_matrix(matrix, self.n_jobs)
        if small is None:
            return None
        cells = table.columns[0].cells
        values = observed_values(*small, cells == "booleans", self.n_jobs)
        self.schema_ = TableSchema(
            tuple(FeatureSchema(None, "categorical", cells, values=v) for v in values)
        )
        suspects = [
            suspicion(column, table.n_rows, len(of_column))
            for column, of_column in zip(table.columns, values, strict=True)
        ]
        warn_identifiers(table, suspects)
        return byte_codes(self.schema_, *small, all_known=True)

    def _grow_matrix(self, table: Table, columns: list[Column]) -> Codes | None:
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
        more = zip(features, values, strict=True)
        self._set_grown([with_values(f, v, partial(list, v)) for f, v in more])
        return byte_codes(self.schema_, *small)
