"""What a fit does, and what it is done to: Recipe, and one door for rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from steelyard._common.allowed import matching
from steelyard._common.checks import is_dask, is_on_device
from steelyard.exceptions import ParameterError
from steelyard.fitting.constraints import PenaltySetting
from steelyard.fitting.default.column_pairs import joined, listed_pairs
from steelyard.instances import InstanceWeighting
from steelyard.io import as_source
from steelyard.losses import LogLoss, Loss
from steelyard.model.base import RowsNeeded, most_needed
from steelyard.model.streamed import encode_source
from steelyard.model.training import Preparation, TrainingSet, encode_table
from steelyard.table.labels import (
    check_two_classes,
    encode_labels,
    labelled_rows,
    read_rows,
    refuse_no_labels,
    weighted_rows,
)
from steelyard.weighting import AttributeWeighting, Weighting

if TYPE_CHECKING:
    from steelyard.io.scanning import Scan

# Who has rows, or works on them, outside the memory of this process. A module is loaded
# when it is first asked for: a fit of a table in memory knows its name alone. Each has
# ``rows_of``, that of devices ``placed`` as well.
_ELSEWHERE = {"dask": "steelyard.scale.dask", "device": "steelyard.gpu.devices"}

DEVICE = matching(
    r"cpu|auto|cuda(:\d+)?",
    "'cpu', 'cuda', 'cuda:' and a number, or 'auto'",
    *("cpu", "cuda", "auto"),
)

NO_WEIGHTS = AttributeWeighting()
"""The weighting of methods that learn no weights of attributes."""


@dataclass(frozen=True)
class Recipe(Preparation):
    """What a fit does, apart from the rows that it is done to.

    A classifier makes it from its settings, once; nothing after that reads a
    classifier. What plain naive Bayes does not need has the values that change nothing.
    """

    needs: RowsNeeded = "codes"
    """What the method keeps of its rows, its weighting and instances apart."""

    weighting: Weighting = NO_WEIGHTS
    loss: Loss = field(default_factory=LogLoss)
    penalty: PenaltySetting = field(default_factory=PenaltySetting)
    bounds: Any = None
    solver: Any = "auto"
    tol: float = 1e-8
    max_iter: int = 1000
    instances: InstanceWeighting | None = None
    one_vs_one: bool = False
    may_stop_early: bool = False
    """Whether ``max_iter`` belongs to the method, so that reaching it is no failure."""

    link_scale: float = 1.0
    """Factor on the scores before they become probabilities."""

    device: str = "cpu"
    """Where rows are counted and passed over."""

    @property
    def rows_needed(self) -> RowsNeeded:
        """What a fit keeps of its rows."""
        parts = [part for part in (self.weighting, self.instances) if part is not None]
        return most_needed(self.needs, *(part.rows_needed for part in parts))

    def encode(
        self, X: Any, y: Any, sample_weight: Any = None, owner: object = None
    ) -> TrainingSet:
        """Check a table, its labels and weights, and encode them, pairs included."""
        training = encode_training(X, y, sample_weight, self, owner)
        return self.finished(training, owner)

    def finished(self, training: TrainingSet, owner: object) -> TrainingSet:
        """Return encoded rows on their device, with pairs that the weighting lists."""
        self.check_views(training, owner)
        if self.device != "cpu":
            training = _loaded("device").placed(training, self.device)
        if self.weighting is NO_WEIGHTS or not self.weighting.joined_columns:
            return training
        pairs = listed_pairs(self.weighting.joined_columns, training.schema)
        return joined(training, pairs)

    def check_views(self, training: TrainingSet, owner: object) -> None:
        """Refuse a linear view of a number where all classes share its weight."""
        has_linear = training.schema.is_linear.any()
        if has_linear and not self.weighting.has_class_weights:
            raise ParameterError(
                "numeric='linear' adds the same to all classes unless each has weights "
                f"of its own, which {type(owner).__name__} with these settings does "
                "not learn. Use 'mdl' or 'gaussian', or ShrinkageNB."
            )


# ------------------------------------------------------------------------------- rows


class RowsHere:
    """Rows that this process reads: a table in memory, or a source of chunks.

    A fit is made in their context, at the end of which a source is closed. Rows
    elsewhere are subclasses, with a ``training`` of their own, and predict where they
    are.
    """

    def __init__(self, X: Any) -> None:
        self.X = X
        self._source: Scan | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._source is not None:
            self._source.close()

    def training(
        self, y: Any, sample_weight: Any, recipe: Recipe, owner: object
    ) -> TrainingSet:
        """Check the rows, their labels and weights, and encode them.

        ``owner`` is the one whose class messages name.
        """
        # An array is a table. Other things are asked, which takes longer.
        if not isinstance(self.X, np.ndarray):
            self._source = as_source(self.X, y, sample_weight, needs_target=True)
        if self._source is None:
            return encode_training(self.X, y, sample_weight, recipe, owner)
        return encode_source(self._source, recipe, recipe.rows_needed)

    def predicted(self, fitted: Any, method: str) -> Any:
        """Return what a method of a fitted classifier says of rows elsewhere."""
        raise NotImplementedError


def encode_training(
    X: Any, y: Any, sample_weight: Any, preparation: Preparation, owner: object = None
) -> TrainingSet:
    """Check a table, its labels and weights, and learn how it is encoded.

    Rows of weight zero are left out. ``owner`` is the one whose class messages name.
    """
    refuse_no_labels(y, owner)
    name = getattr(y, "name", None)
    table, y, weights = read_rows(X, y, sample_weight, owner)
    if preparation.encoding.skips_unlabelled:
        table, y, weights = labelled_rows(table, y, weights)
    is_kept = None if weights is None or weights.all() else weights != 0
    table, y, weights = weighted_rows(table, y, weights)
    classes, labels = encode_labels(y, preparation.n_jobs)
    check_two_classes(classes)
    training = encode_table(table, classes, labels, weights, preparation)
    name = name if isinstance(name, str) else None
    return replace(training, is_kept=is_kept, target_name=name)


def rows_of(X: Any) -> RowsHere:
    """Return the rows that a user gives, wherever they are: the one door for them."""
    there = "dask" if is_dask(X) else "device" if is_on_device(X) else None
    return RowsHere(X) if there is None else _loaded(there).rows_of(X)


def _loaded(name: str) -> Any:
    return import_module(_ELSEWHERE[name])
