"""What methods that select attributes share: they are transformers, with a path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from steelyard._common.greedy import Subset
from steelyard._common.text import text_table
from steelyard.exceptions import warn_user
from steelyard.table.encoder import TableEncoder
from steelyard.table.frames import as_table, take_columns
from steelyard.table.schema import TableSchema, feature_labels


class FeatureSelector(SelectorMixin):
    """Makes a transformer of a classifier that stores ``selected_features_``.

    ``selected_features_`` has names, or positions if the table had no names, in
    the order of choice. To be named before ``BaseNB`` among the base classes.
    """

    if TYPE_CHECKING:
        encoder_: TableEncoder
        n_features_in_: int
        selected_features_: list[Any]

    def _get_support_mask(self) -> NDArray[np.bool_]:
        """Return a mask of the selected columns of the training table."""
        check_is_fitted(self)
        names = self.encoder_.schema_.names
        chosen = [
            j if names is None else names.index(j) for j in self.selected_features_
        ]
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[chosen] = True
        return mask

    def transform(self, X: Any) -> Any:
        """Keep the selected columns.

        Parameters
        ----------
        X : table of shape (n, d)
            A table with the columns of the training table, in any order if named.

        Returns
        -------
        table of shape (n, selected)
            The selected columns in the order of the training table, in the library
            that ``X`` came from.
        """
        support = self.get_support(indices=True)
        columns = self.encoder_.match(as_table(X, self))
        if not support.size:
            warn_user("No features were selected: the table is empty.", UserWarning)
        return take_columns(X, [columns[j] for j in support])


class RecordTable(tuple[dict[str, Any], ...]):
    """Records that print as a table, such as the steps of a search for attributes.

    >>> from steelyard.classifiers.base.selection import RecordTable
    >>> path = RecordTable([{"size": 1, "added": "outlook", "chosen": True}])
    >>> path[0]["added"]
    'outlook'
    >>> path
    Size  Added    Chosen
       1  outlook  *
    """

    def __repr__(self) -> str:
        if not self:
            return "(no steps)"
        columns = {key: [record.get(key) for record in self] for key in self[0]}
        headers = [key[:1].upper() + key[1:].replace("_", " ") for key in columns]
        are_numbers = [
            all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values)
            for values in columns.values()
        ]
        rows = [list(map(_cell, row)) for row in zip(*columns.values(), strict=True)]
        return text_table(headers, rows, are_numbers, rule=False, max_width=None)


def selected(
    schema: TableSchema, path: list[Subset], best: int, is_listed: bool = False
) -> dict[str, Any]:
    """Return what is published of a search, of whose subsets one is best.

    Records have what each subset adds to the one before it, or list all of it.
    """
    labels = feature_labels(schema, range(len(schema)))
    records, before = [], 0
    for k, step in enumerate(path):
        names = [labels[j] for j in step.members]
        added, before = names[before:], len(names)
        record: dict[str, Any] = {"subset": names}
        if not is_listed:
            last = added[0] if len(added) == 1 else added or None
            record = {"size": len(names), "added": last}
        records.append({**record, **step.facts, "chosen": k == best})
    names = [labels[j] for j in path[best].members]
    return {"selected_features_": names, "selection_path_": RecordTable(records)}


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "*" if value else ""
    if isinstance(value, float):
        return f"{value:.6f}"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)
