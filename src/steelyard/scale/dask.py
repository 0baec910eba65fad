"""Fits and predictions of Dask frames and arrays, whose partitions stay on workers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from dask.array import Array
from numpy.typing import NDArray

from steelyard._common.arrays import is_dask
from steelyard.exceptions import TableError
from steelyard.fitting.recipe import Recipe, RowsHere
from steelyard.io import scan
from steelyard.io.paths import find_column
from steelyard.model.training import TrainingSet
from steelyard.scale import parts as work
from steelyard.scale.spread import SpreadColumns, refuse_all_rows, spread_training


class DaskGiven(RowsHere):
    """A Dask frame or array, on the workers of a cluster if there is one.

    Without a client partitions are computed here, one after the other.
    """

    def training(
        self, y: Any, sample_weight: Any, recipe: Recipe, owner: object
    ) -> TrainingSet:
        """Encode the rows where they are."""
        refuse_all_rows(recipe, owner, "a Dask frame")
        rows = _checked(self.X, y, sample_weight)
        client = _client()
        if client is not None:
            return _on_cluster(rows, client, recipe)
        self.X, target, weight = rows.read_here()
        return super().training(target, weight, recipe, owner)

    def predicted(self, fitted: Any, method: str) -> Any:
        """Return predictions as a Dask array; nothing is computed."""
        n_classes = len(fitted.classes_)
        meta = np.empty((0, n_classes))
        if method == "predict":
            meta = np.empty(0, dtype=fitted.classes_.dtype)
        predict = partial(_predicted, fitted, method, meta)
        if not isinstance(self.X, Array):
            return self.X.map_partitions(predict, meta=meta)
        rows = self.X.rechunk({1: -1})
        if meta.ndim == 1:
            return rows.map_blocks(predict, drop_axis=1, dtype=meta.dtype, meta=meta)
        chunks = (rows.chunks[0], (n_classes,))
        return rows.map_blocks(predict, chunks=chunks, dtype=meta.dtype, meta=meta)


rows_of = DaskGiven


def _predicted(clf: Any, method: str, nothing: NDArray[Any], rows: Any) -> Any:
    """Predict the rows of a partition."""
    return getattr(clf, method)(rows) if len(rows) else nothing


def _client() -> Any:
    """Return the client of a cluster, None if there is none."""
    try:
        from distributed import get_client

        return get_client()
    except (ImportError, ValueError):
        return None


# -------------------------------------------------------------------------- inputs


@dataclass(frozen=True)
class _Collections:
    """A Dask frame or array with its labels and weights, partition by partition."""

    cells: Any
    labels: Any
    weights: Any
    roles: work.Roles

    @property
    def is_array(self) -> bool:
        """Whether the cells are an array, without names of columns."""
        return isinstance(self.cells, Array)

    def delayed(self) -> list[list[Any]]:
        """Return cells, labels and weights as delayed objects, one for each part."""
        columns = self._wanted_cells(), self.labels, self.weights
        return [_delayed(column) for column in columns]

    def _wanted_cells(self) -> Any:
        """Return the cells without columns that are not needed."""
        if self.roles.features is None:
            return self.cells
        named = [n for n in (self.roles.target, self.roles.weight) if n is not None]
        wanted = [*self.roles.features, *named]
        # To choose all is a task for each partition, and does nothing.
        is_whole = len(wanted) == len(self.cells.columns)
        return self.cells if is_whole else self.cells[wanted]

    def read_here(self) -> tuple[Any, str | None, str | None]:
        """Return a source on this machine that computes one partition at a time.

        With it the names of its target and of its weights.
        """
        if self.is_array or self.labels is not None or self.weights is not None:
            raise TableError(
                "There is no Dask client. Make one, for example by client = "
                "distributed.Client(); or give a frame and the name of its target, "
                "fit(ddf, 'target'), to read it here, one partition after the other."
            )
        roles = self.roles
        rows = scan(_Computed(self._wanted_cells()), columns=roles.features)
        return rows, roles.target, roles.weight


class _Computed:
    """Partitions of a frame, computed one after the other."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def __iter__(self) -> Iterator[Any]:
        for part in _delayed(self._frame):
            frame = part.compute()
            if len(frame):
                yield frame.reset_index(drop=True)


def _delayed(collection: Any) -> list[Any]:
    if collection is None:
        return []
    if isinstance(collection, Array) and collection.ndim == 2:
        collection = collection.rechunk({1: -1})
    result = collection.to_delayed()
    return list(result.ravel()) if isinstance(result, np.ndarray) else list(result)


def _checked(X: Any, y: Any, sample_weight: Any) -> _Collections:
    """Check what is given before anything is read."""
    if y is None:
        raise TableError(
            "No target was given. Name its column, fit(ddf, 'name'), "
            "or a Dask series with the same partitions, fit(dX, dy)."
        )
    columns = None if isinstance(X, Array) else list(getattr(X, "columns", ()))
    if columns == [] or getattr(X, "ndim", 2) != 2:
        raise TableError(
            f"X must be a Dask frame or a Dask array of two dimensions. Got "
            f"{type(X).__name__}."
        )
    target = _column_name("y", y, columns)
    weight = _column_name("sample_weight", sample_weight, columns)
    for what, value in (("y", y), ("sample_weight", sample_weight)):
        if is_dask(value):
            _check_partitions(X, value, what)
    features = None
    if columns is not None:
        features = [name for name in columns if name not in (target, weight)]
    return _Collections(
        X,
        None if target is not None else y,
        None if weight is not None else sample_weight,
        work.Roles(features, target, weight),
    )


def _column_name(what: str, value: Any, columns: list[Any] | None) -> str | None:
    """Return the name of a column that has a role, None if it is separate."""
    if value is None or is_dask(value):
        return None
    if not isinstance(value, str):
        raise TableError(
            f"X is a Dask collection, so {what} must be one as well, with the same "
            f"partitions, or the name of a column. Got {type(value).__name__}."
        )
    if columns is None:
        raise TableError(
            f"{what}={value!r} names a column, but X is a Dask array, which has no "
            "names. Give a Dask array with the same chunks."
        )
    return find_column(value, columns, "The Dask frame")


def _check_partitions(X: Any, other: Any, what: str) -> None:
    """Refuse labels or weights whose partitions differ from those of the rows."""
    n_rows, n_other = _n_partitions(X), _n_partitions(other)
    if n_rows != n_other:
        raise TableError(
            f"X has {n_rows} partitions and {what} {n_other}. Make both from one "
            "frame, or repartition one of them."
        )
    ends, others = (getattr(x, "divisions", (None,)) for x in (X, other))
    if ends[0] is not None and others[0] is not None and ends != others:
        raise TableError(
            f"X and {what} are divided differently: {ends[:3]} and {others[:3]}, and "
            "so on. Make both from one frame, or repartition one of them."
        )


def _n_partitions(collection: Any) -> int:
    if isinstance(collection, Array):
        return int(collection.numblocks[0])
    return int(collection.npartitions)


# ------------------------------------------------------------------------ learning


def _on_cluster(rows: _Collections, client: Any, recipe: Recipe) -> TrainingSet:
    """Return a training set of rows that stay on their workers, if they can."""
    from steelyard.scale.cluster import DaskParts

    roles = replace(rows.roles, skips_unlabelled=recipe.encoding.skips_unlabelled)
    columns = SpreadColumns(partial(DaskParts.of, client, *rows.delayed()), roles)
    has_weights = roles.weight is not None or rows.weights is not None
    return spread_training(columns, recipe, recipe.rows_needed, has_weights)
