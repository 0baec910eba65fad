"""RowPlace: where training rows are, and what is done to all of them there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from steelyard.proba.counts import Counts, count

if TYPE_CHECKING:
    from steelyard.model.training import TrainingSet


class RowPlace:
    """Rows in arrays of this process, in memory or in memory maps.

    Rows elsewhere are parts, each a training set of its own. What a method asks of all
    rows is a function of a training set, run where each part is; results are added in
    the order of parts. A place may give passes of its own as well: that is all that a
    device with memory of its own needs.
    """

    is_here: bool = True
    """Whether codes, labels and weights of a training set are arrays of this process.

    Elsewhere its codes know the schema and the number of rows, and have no columns.
    """

    def each(
        self,
        training: TrainingSet,
        function: Callable[..., Any],
        given: Sequence[Any] | None = None,
    ) -> list[Any]:
        """Return a function of each part, in their order, as it is or of what is given.

        With ``given`` the function has that of its part as a second argument.
        """
        return [function(training, *(() if given is None else given[:1]))]

    def sum(
        self,
        training: TrainingSet,
        function: Callable[[TrainingSet], Any],
        is_exact: bool = False,
    ) -> Any:
        """Return the sum of a function over parts, in their order.

        ``is_exact`` says that sums do not depend on the order, so that parts that are
        together may be added first.
        """
        return function(training)

    def map(
        self, training: TrainingSet, function: Callable[[TrainingSet], TrainingSet]
    ) -> TrainingSet:
        """Return the training set of parts that a function makes of these."""
        return function(training)

    def count(
        self, training: TrainingSet, weights: NDArray[np.float64] | None
    ) -> Counts:
        """Count rows in arrays of this process by weights, None for ones."""
        rows = training.codes, training.labels
        return count(*rows, weights, training.n_classes, training.n_jobs)

    def take(self, training: TrainingSet, rows: NDArray[np.int64]) -> TrainingSet:
        """Return some rows in arrays of this process, encoded as they are."""
        return training.taken(rows)

    def here(self, training: TrainingSet) -> TrainingSet:
        """Return all rows in arrays of this process."""
        return training

    def passes(self, training: TrainingSet, missing: Any, gaussian: Any) -> Any:
        """Return the rows prepared for many passes, None for those over arrays here.

        See ``fitting.rows.Passes``, and ``prepare_rows`` for the arguments.
        """
        return None


HERE = RowPlace()
