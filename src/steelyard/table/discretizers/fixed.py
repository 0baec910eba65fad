"""Edges given by the user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.settings import required
from steelyard.exceptions import ParameterError
from steelyard.table.discretizers.base import THREADS, ColumnId, Discretizer, Reads


class FixedEdgesDiscretizer(Discretizer):
    r"""Use edges that are known beforehand.

    The bin of :math:`x` is the number of edges below it,

    .. math:: b(x) = |\{k : e_k < x\}|.

    Examples
    --------
    >>> import numpy as np
    >>> from steelyard.table.discretizers import FixedEdgesDiscretizer
    >>> X = np.array([[17.0, 1.0], [18.0, 2.0], [np.nan, 3.0]])
    >>> FixedEdgesDiscretizer([[17.5, 65.0], [2.0]]).fit_transform(X)
    array([[ 0.,  0.],
           [ 1.,  0.],
           [nan,  1.]])
    """

    edges: Any = required(
        about="Increasing finite numbers, used for all columns; or one such sequence "
        "per column; or a mapping from column names to such sequences. An empty "
        "sequence puts all values into one bin."
    )
    n_jobs: int | None = THREADS

    @property
    def reads(self) -> Reads:
        """The edges are given."""
        return "nothing"

    def check_parameters(self) -> None:
        """Raise a `ParameterError` if the edges are not increasing numbers."""
        if self._one_for_all():
            self._checked(self.edges, "")
            return
        is_named = isinstance(self.edges, Mapping)
        for key, edges in self.edges.items() if is_named else enumerate(self.edges):
            self._checked(edges, f" for column {key!r}")

    def check_columns(self, columns: Sequence[ColumnId]) -> None:
        """Raise a `ParameterError` unless every column has edges and the reverse."""
        if isinstance(self.edges, Mapping):
            unknown = set(self.edges).difference(name for _, name in columns)
            if unknown:
                raise ParameterError(
                    "The 'edges' parameter of FixedEdgesDiscretizer names columns that "
                    f"the table does not have: {sorted(unknown, key=str)}."
                )
        elif not self._one_for_all() and len(self.edges) != len(columns):
            raise ParameterError(
                "The 'edges' parameter of FixedEdgesDiscretizer must hold one sequence "
                f"per column. Got {len(self.edges)} for {len(columns)} columns."
            )

    def column_edges(
        self, *_: Any, column: ColumnId | None = None, **__: Any
    ) -> NDArray[np.float64]:
        """Return the edges of one column; see `Discretizer.column_edges`."""
        if self._one_for_all():
            return self._checked(self.edges, "")
        position, name = (None, None) if column is None else column
        key = name if isinstance(self.edges, Mapping) else position
        try:
            edges: Any = self.edges[key]
        except (KeyError, IndexError, TypeError):
            raise ParameterError(
                "The 'edges' parameter of FixedEdgesDiscretizer has no edges for "
                f"column {key!r}. Add them; an empty list makes one bin."
            ) from None
        return self._checked(edges, f" for column {key!r}")

    def _one_for_all(self) -> bool:
        """Tell whether the edges are a single sequence of numbers."""
        if isinstance(self.edges, Mapping):
            return False
        try:
            return all(isinstance(edge, Real) for edge in self.edges)
        except TypeError:
            return True

    def _checked(self, edges: Any, where: str) -> NDArray[np.float64]:
        """Return the edges as an array of its own, or raise."""
        try:
            array = np.array(edges, dtype=np.float64)
        except (TypeError, ValueError):
            array = np.empty((0, 0))
        increasing = array.ndim == 1 and np.isfinite(array).all()
        if not increasing or not (array[1:] > array[:-1]).all():
            raise ParameterError(
                "The 'edges' parameter of FixedEdgesDiscretizer must be increasing "
                f"finite numbers{where}. Got {edges!r} instead."
            )
        return array
