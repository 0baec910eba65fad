"""Recipe: everything that the settings of a classifier say about a fit, checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from steelyard.exceptions import ParameterError
from steelyard.fitting.pairs import joined, listed_pairs
from steelyard.fitting.penalty import PenaltySetting
from steelyard.fitting.place_on_device import on_device
from steelyard.instances import InstanceWeighting
from steelyard.losses import LogLoss, Loss
from steelyard.model.needs import RowsNeeded, most_needed
from steelyard.model.streamed import SpreadRows, encode_source
from steelyard.model.training import Preparation, TrainingSet, encode_training
from steelyard.weighting import AttributeWeighting, Weighting

if TYPE_CHECKING:
    from steelyard.io.scanning import Scan


@dataclass(frozen=True)
class Recipe(Preparation):
    """What a fit does, apart from the rows that it is done to.

    A classifier makes it from its settings, once; nothing after that reads a
    classifier. What plain naive Bayes does not need has the values that change nothing.
    """

    weighting: Weighting = field(default_factory=AttributeWeighting)
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

    def encode(
        self, X: Any, y: Any, sample_weight: Any = None, owner: object = None
    ) -> TrainingSet:
        """Check a table, its labels and weights, and encode them, pairs included."""
        training = encode_training(X, y, sample_weight, self, owner)
        return self.finished(training, owner)

    def encode_source(
        self, source: Scan | SpreadRows, owner: object, needed: RowsNeeded
    ) -> TrainingSet:
        """Encode the rows of a source, pairs included."""
        training = encode_source(source, self, needed)
        return self.finished(training, owner)

    def finished(self, training: TrainingSet, owner: object) -> TrainingSet:
        """Return encoded rows with the pairs that the weighting lists."""
        self.check_views(training, owner)
        training = on_device(training, self.device)
        pairs = listed_pairs(self.weighting.joined_columns, training.schema)
        return joined(training, pairs)

    @property
    def rows_needed(self) -> RowsNeeded:
        """What the learning of weights keeps of the rows."""
        parts = [part for part in (self.weighting, self.instances) if part is not None]
        return most_needed(*(part.rows_needed for part in parts))

    def check_views(self, training: TrainingSet, owner: object) -> None:
        """Refuse a linear view of a number where all classes share its weight."""
        has_linear = training.schema.is_linear.any()
        if has_linear and not self.weighting.has_class_weights:
            raise ParameterError(
                "numeric='linear' adds the same to all classes unless each has weights "
                f"of its own, which {type(owner).__name__} with these settings does "
                "not learn. Use 'mdl' or 'gaussian', or ShrinkageNB."
            )
