"""TableEncoder: learn a schema from a table, then turn tables into codes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from steelyard._common.checks import check_choice, check_n_jobs, warn_user
from steelyard._common.threads import run, thread_count
from steelyard.exceptions import ColumnError, ParameterError
from steelyard.table.blocks import (
    Assembly,
    byte_codes,
    is_plain_matrix,
    matrix_codes,
)
from steelyard.table.bytes import as_byte_matrix, observed_values
from steelyard.table.cells import (
    bins_of,
    check_cells,
    codes_of,
    encode_column,
    factor_of,
    grid_step,
    grown,
    numbers_of,
    on_grid,
)
from steelyard.table.codes import Codes
from steelyard.table.discretizers import Discretizer
from steelyard.table.frames import Column, Table, as_table
from steelyard.table.identifiers import suspicion, warn_identifiers
from steelyard.table.labels import encode_labels, training_rows
from steelyard.table.schema import FeatureSchema, TableSchema, sort_values
from steelyard.table.treatments import (
    Treatment,
    categorical_positions,
    treatment_of,
)
from steelyard.table.treatments import treatments as resolve_treatments

__all__ = ["TableEncoder"]

MISSING = ("skip", "impute", "value")
CARDINALITIES = ("observed", "declared")


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turn any table into codes, by a schema learned once.

    Code 0 stands for a cell that is missing or holds a value never seen at fit; the
    values of a column follow from 1 on in sorted order, whatever library the table came
    from. Numeric columns are cut into bins, or kept as numbers for a density.

    Parameters
    ----------
    categorical_features : {"auto", "all"} or list of str or int, default="auto"
        Which columns hold categories: text, category, enum and boolean columns, all
        columns, or the ones named (by name or position).
    numeric : str, discretizer or mapping, default="mdl"
        What to do with numeric columns: "mdl", "mdl-better", "kononenko",
        "equal-width", "equal-width-merged", "equal-frequency", "gaussian",
        "gaussian-weka", "gaussian-relative", "linear" (for weights by class), a
        discretizer, a tuple of these for several views of each column, or a mapping
        from column to one of these (columns that it leaves out are treated with "mdl").
    missing : {"skip", "impute", "value"}, default="skip"
        Leave missing cells out, replace them by the mean or the most frequent value, or
        treat them as a value of their own (Gaussian columns skip them then).
    cardinality : {"observed", "declared"}, default="observed"
        Whether category and enum types add values that no training row holds.
    n_jobs : int, default=None
        Threads; the result does not depend on it.

    Attributes
    ----------
    schema_ : TableSchema
        Names, kinds, values and cut points of the columns.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Names of the columns, where the table had any.

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

    schema_: TableSchema
    n_features_in_: int
    feature_names_in_: NDArray[Any]

    def __init__(
        self,
        categorical_features: Any = "auto",
        numeric: Any = "mdl",
        missing: str = "skip",
        cardinality: str = "observed",
        n_jobs: int | None = None,
    ) -> None:
        self.categorical_features = categorical_features
        self.numeric = numeric
        self.missing = missing
        self.cardinality = cardinality
        self.n_jobs = n_jobs

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

    # ------------------------------------------------------------------ the engine's

    def learn(
        self,
        table: Table,
        y: NDArray[np.uint32] | None,
        n_classes: int,
        weights: NDArray[np.float64] | None,
    ) -> Codes:
        """Learn the schema and return the codes of the training table."""
        check_choice(self, "missing", MISSING)
        check_choice(self, "cardinality", CARDINALITIES)
        check_n_jobs(self, self.n_jobs)
        names = table.names
        categorical = categorical_positions(
            self.categorical_features, table.columns, names
        )
        treatments = resolve_treatments(self.numeric, table.columns, names, categorical)
        supervised = [
            t
            for j, ways in enumerate(treatments)
            for t in ways
            if j not in categorical and isinstance(t, Discretizer) and t.supervised
        ]
        if supervised and y is None:
            raise ParameterError(
                f"{type(supervised[0]).__name__} needs labels: call fit(X, y), or set "
                "`numeric` to 'equal-width' or 'equal-frequency'."
            )
        self.n_features_in_ = table.n_columns
        if names is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

        if len(categorical) == table.n_columns and table.matrix is not None:
            codes = self._learn_bytes(table)
            if codes is not None:
                return codes
        plain = not categorical and all(ways == ("gaussian",) for ways in treatments)
        if plain and self.missing != "impute" and is_plain_matrix(table):
            words = [column.cells for column in table.columns]
            self.schema_ = TableSchema(
                tuple(FeatureSchema(None, "gaussian", word) for word in words)
            )
            return matrix_codes(self.schema_, table)

        # A numeric column may be seen in several ways, each an attribute of its own.
        views = [
            (j, t)
            for j, ways in enumerate(treatments)
            for t in (ways[:1] if j in categorical else ways)
        ]
        several = len(views) > table.n_columns

        def learn_view(
            view: tuple[int, Treatment],
        ) -> tuple[FeatureSchema, NDArray[Any], str | None]:
            j, treatment = view
            column = table.columns[j]
            name = names[j] if names is not None else None
            if j in categorical:
                return self._learn_categories(column, name, weights)
            return self._learn_numbers(column, name, treatment, y, n_classes, weights)

        learned = run(learn_view, views, thread_count(self.n_jobs))
        features, assembly = [], Assembly(table, len(views))
        suspects: dict[int, str | None] = {}
        for k, (feature, cells, suspect) in enumerate(learned):
            j = views[k][0]
            features.append(replace(feature, column=j) if several else feature)
            assembly.add(k, feature, cells)
            suspects.setdefault(j, suspect)
            if k + 1 == len(views) or views[k + 1][0] != j:
                table.columns[j].release()
        self.schema_ = TableSchema(tuple(features))
        warn_identifiers(table, list(suspects.values()))
        return assembly.finish(self.schema_)

    def encode(self, table: Table) -> Codes:
        """Encode a table by the schema."""
        schema = self.schema_
        columns = self.match(table)
        plain = all(feature.kind == "categorical" for feature in schema.features)
        if table.matrix is not None and plain:
            found = as_byte_matrix(table.matrix, self.n_jobs)
            if found is not None:
                for feature, column in zip(schema.features, columns, strict=True):
                    check_cells(feature, column)
                return byte_codes(schema, *found)
        plain = all(f.kind == "gaussian" and f.fill is None for f in schema.features)
        if plain and is_plain_matrix(table):
            return matrix_codes(schema, table)
        assembly = Assembly(table, len(schema.coded))
        of = schema.columns

        def encode_one(k: int) -> NDArray[Any]:
            return encode_column(schema.features[k], columns[of[k]])

        encoded = run(encode_one, range(len(schema)), thread_count(self.n_jobs))
        for k, cells in enumerate(encoded):
            assembly.add(k, schema.features[k], cells)
            if k + 1 == len(of) or of[k + 1] != of[k]:
                columns[of[k]].release()
        return assembly.finish(schema)

    def grow(self, table: Table) -> TableSchema:
        """Add the new categories of a table to the schema; return the old schema."""
        old = self.schema_
        columns = self.match(table)
        features = [
            grown(feature, columns[j], self.missing, partial(self._first_edges, k))
            for k, (j, feature) in enumerate(
                zip(old.columns, old.features, strict=True)
            )
        ]
        self.schema_ = TableSchema(tuple(features))
        return old

    def _first_edges(self, view: int) -> tuple[float, ...]:
        """Cut points of a column that was empty when cut points were learned."""
        schema = self.schema_
        position, name = schema.columns[view], schema.features[view].name
        ways = treatment_of(
            self.numeric, position, schema.names, n_columns=self.n_features_in_
        )
        treatment = ways[view - schema.columns.index(position)]
        if isinstance(treatment, str) or treatment.supervised:
            return ()
        none = np.empty(0)
        column = (position, name)
        edges = treatment.column_edges(none, None, 0, None, column=column)
        return tuple(edges.tolist())

    def match(self, table: Table) -> list[Column]:
        """Put the columns of a table into the order of the schema."""
        expected = self.schema_.names
        names = table.names
        if expected is None or names is None:
            self._warn_names(expected, names)
            if table.n_columns != self.n_features_in_:
                raise ColumnError(
                    f"X has {table.n_columns} features, but {type(self).__name__} is "
                    f"expecting {self.n_features_in_} features as input."
                )
            return table.columns
        if names == expected:
            return table.columns
        extra = sorted(set(names) - set(expected))
        lacking = sorted(set(expected) - set(names))
        if extra or lacking:
            raise ColumnError(_names_message(extra, lacking))
        by_name = dict(zip(names, table.columns, strict=True))
        return [by_name[name] for name in expected]

    def _warn_names(self, expected: list[str] | None, names: list[str] | None) -> None:
        if expected is not None and names is None:
            warn_user(
                "X does not have valid feature names, but the model was fitted with "
                "feature names; columns are matched by position.",
                UserWarning,
            )
        elif expected is None and names is not None:
            warn_user(
                "X has feature names, but the model was fitted without feature names; "
                "columns are matched by position.",
                UserWarning,
            )

    # ------------------------------------------------------------- learning a column

    def _learn_bytes(self, table: Table) -> Codes | None:
        """Take an all-categorical matrix of small whole numbers without copying it."""
        # The most frequent value, to impute later, is found column by column.
        if table.matrix is None or self.missing == "impute":
            return None
        found = as_byte_matrix(table.matrix, self.n_jobs)
        if found is None:
            return None
        cells = table.columns[0].cells
        values = observed_values(
            *found, as_bool=cells == "booleans", n_jobs=self.n_jobs
        )
        features = [
            FeatureSchema(None, "categorical", cells, values=column)
            for column in values
        ]
        self.schema_ = TableSchema(tuple(features))
        warn_identifiers(
            table,
            [
                suspicion(column, table.n_rows, len(feature.values))
                for column, feature in zip(table.columns, features, strict=True)
            ],
        )
        return byte_codes(self.schema_, *found, all_known=True)

    def _learn_categories(
        self, column: Column, name: str | None, weights: NDArray[np.float64] | None
    ) -> tuple[FeatureSchema, NDArray[Any], str | None]:
        factor = factor_of(column)
        indices, n_found = factor.indices, len(factor.values)
        held = np.bincount(indices + 1, minlength=n_found + 1)
        values = [v for v, count in zip(factor.values, held[1:], strict=True) if count]
        suspect = suspicion(column, indices.size, len(values))
        if self.cardinality == "declared":
            values.extend(column.declared or ())
        feature = FeatureSchema(
            name,
            "categorical",
            column.cells,
            values=sort_values(values),
            missing_is_value=self.missing == "value" and bool(held[0]),
        )
        codes = codes_of(feature, factor)
        if self.missing == "impute" and held[1:].any():
            totals = np.bincount(codes, weights, minlength=feature.n_codes)
            feature = replace(feature, fill=1 + int(np.argmax(totals[1:])))
            if held[0]:
                codes[indices < 0] = feature.missing_code
        return feature, codes, suspect

    def _learn_numbers(
        self,
        column: Column,
        name: str | None,
        treatment: Treatment,
        y: NDArray[np.uint32] | None,
        n_classes: int,
        weights: NDArray[np.float64] | None,
    ) -> tuple[FeatureSchema, NDArray[Any], str | None]:
        numbers = numbers_of(column)
        suspect = suspicion(column, numbers.size, None)
        known = ~np.isnan(numbers)
        complete = bool(known.all())
        fill = None
        if self.missing == "impute" and known.any():
            u = None if weights is None else weights[known]
            fill = float(np.average(numbers[known], weights=u))
            if not complete:
                numbers = np.where(known, numbers, fill)
                known[:] = complete = True
        if not complete:
            y = None if y is None else y[known]
            weights = None if weights is None else weights[known]
        observed = numbers if complete else numbers[known]
        if isinstance(treatment, str):
            step = grid_step(observed) if treatment == "gaussian-weka" else 0.0
            kind: Any = treatment
            feature = FeatureSchema(name, kind, column.cells, fill=fill, step=step)
            return feature, on_grid(numbers, step), suspect
        # Of an empty column it is not known yet whether it will hold numbers.
        edges = np.empty(0)
        if observed.size:
            edges = treatment.column_edges(
                observed, y, n_classes, weights, column=(column.position, name)
            )
        feature = FeatureSchema(
            name,
            "binned",
            column.cells,
            edges=tuple(edges.tolist()),
            # A column with nothing in it stays without influence.
            missing_is_value=self.missing == "value"
            and not complete
            and bool(known.any()),
        )
        codes = bins_of(feature, numbers)
        if fill is not None:
            code = int(np.searchsorted(edges, fill, side="left")) + 1
            feature = replace(feature, fill=code)
        return feature, codes, suspect


def _names_message(extra: list[str], lacking: list[str]) -> str:
    def listed(names: list[str]) -> str:
        shown = "".join(f"- {name}\n" for name in names[:5])
        return shown + ("- ...\n" if len(names) > 5 else "")

    message = "The feature names should match those that were passed during fit.\n"
    if extra:
        message += "Feature names unseen at fit time:\n" + listed(extra)
    if lacking:
        message += "Feature names seen at fit time, yet now missing:\n"
        message += listed(lacking)
    if len(extra) == len(lacking) == 1:
        message += f"Was {lacking[0]!r} renamed to {extra[0]!r}?\n"
    return message
