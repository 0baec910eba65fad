"""Recipe: all that a fit does, its penalty and bounds; and one door for rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from steelyard._common.allowed import matching
from steelyard._common.arrays import Floats, is_dask, is_on_device, is_spark
from steelyard.exceptions import ParameterError
from steelyard.instances import InstanceWeighting
from steelyard.io import as_source
from steelyard.losses import LogLoss, Loss
from steelyard.model.base import RowsNeeded, most_needed
from steelyard.model.streamed import encode_source
from steelyard.model.training import Preparation, TrainingSet, encode_table
from steelyard.table.labels import check_two_classes, joined_labels, refuse_no_labels
from steelyard.table.rows import labelled_rows, read_rows, weighted_rows
from steelyard.table.schema import TableSchema
from steelyard.table.treatments import column_positions
from steelyard.weighting import (
    AttributeWeighting,
    HierarchicalWeighting,
    LogProbs,
    Weighting,
)

if TYPE_CHECKING:
    from steelyard.io.scanning import Scan
    from steelyard.solvers import Box

# Who has rows, or works on them, outside the memory of this process. A module is loaded
# when it is first asked for: a fit of a table in memory knows its name alone. Each has
# ``rows_of``, that of devices ``placed`` as well.
_ELSEWHERE = {
    "dask": "steelyard.scale.dask",
    "spark": "steelyard.scale.spark",
    "device": "steelyard.gpu.devices",
}

DEVICE = matching(
    r"cpu|auto|cuda(:\d+)?",
    "'cpu', 'cuda', 'cuda:' and a number, or 'auto'",
    *("cpu", "cuda", "auto"),
)

NO_WEIGHTS = AttributeWeighting()
"""The weighting of methods that learn no weights of attributes."""


def attribute_bounds(setting: Any, schema: TableSchema) -> tuple[Floats, Floats]:
    """Return lower and upper bounds per attribute, each of shape (d,).

    The setting is None, one pair for all, a pair for each attribute, or a mapping from
    name or position to pair.
    """
    d = len(schema)
    pairs = np.tile([-np.inf, np.inf], (d, 1))
    if isinstance(setting, Mapping):
        for j, pair in by_position(setting, schema, "bounds"):
            pairs[j] = _pair(pair)
    elif setting is not None:
        pairs_given = np.asarray(setting, dtype=object)
        if pairs_given.shape == (2,):
            pairs[:] = _pair(setting)
        elif pairs_given.shape == (d, 2):
            pairs[:] = [_pair(pair) for pair in pairs_given.tolist()]
        else:
            raise ParameterError(
                "The 'bounds' parameter must be None, a pair (low, high), one pair for "
                f"each of the {d} attributes, or a mapping from attribute to pair. Got "
                f"{setting!r} instead."
            )
    return pairs[:, 0], pairs[:, 1]


def by_position(
    mapping: Mapping[Any, Any], schema: TableSchema, setting: str
) -> Iterator[tuple[int, Any]]:
    """Yield positions and values of a mapping from names or positions of attributes."""
    names = schema.labels()
    positions = column_positions(mapping, len(names), names, setting)
    return zip(positions, mapping.values(), strict=True)


def _pair(pair: Any) -> tuple[float, float]:
    """Return one pair of bounds as numbers, checked."""
    try:
        low, high = pair
        low = -np.inf if low is None else float(low)
        high = np.inf if high is None else float(high)
    except (TypeError, ValueError):
        raise ParameterError(
            f"Each of `bounds` must be a pair (low, high) of numbers, with None for "
            f"none. Got {pair!r} instead."
        ) from None
    if low > high:
        raise ParameterError(
            f"`bounds` has a lower bound above the upper one ({low:g} > {high:g}). "
            "Give them as (low, high)."
        )
    if not (low < np.inf and high > -np.inf):
        raise ParameterError(
            f"`bounds` leaves no finite weight between {low:g} and {high:g}. Use "
            "numbers, with None for no bound."
        )
    return low, high


@dataclass(frozen=True)
class Penalty:
    r"""A penalty on the distance of weights from a centre.

    Ridge is :math:`\lambda \sum (w - c)^2`; "l1" is :math:`\lambda \sum |w - c|`, for
    weights whose bounds are on one side of the centre, where it is linear.
    """

    strength: float | Floats
    """One for all weights, or one each."""

    center: float | Floats
    sign: Floats | None = None
    """Side of the centre that each weight is on, for "l1"; None for ridge."""

    free: int = 0
    """How many weights at the beginning of the vector are not penalised."""

    def value_and_gradient(self, weights: Floats) -> tuple[float, Floats]:
        """Return the penalty and its gradient."""
        distance = weights - self.center
        distance[: self.free] = 0.0
        if self.sign is not None:
            slope = self.strength * self.sign
            slope = np.where(np.arange(len(weights)) < self.free, 0.0, slope)
            return float(slope @ distance), slope
        pull = self.strength * distance
        return float(pull @ distance), 2.0 * pull

    def curvature(self, size: int) -> Floats:
        """Return the diagonal of the second derivative."""
        out = np.zeros(size)
        if self.sign is None:
            out += 2.0 * self.strength
            out[: self.free] = 0.0
        return out


@dataclass(frozen=True)
class PenaltySetting:
    """The penalty that a user asks for: its kind, strength and centre."""

    kind: str | None = None
    """"ridge", "l1", or None."""

    strength: float = 0.0
    center: float = 1.0

    def resolve(
        self, weighting: Weighting, evidence: LogProbs, box: Box
    ) -> Penalty | None:
        """Return the penalty on the weights within some bounds, None without one.

        A hierarchy has a ridge by level; the share of a mixture is not penalised.
        """
        if isinstance(weighting, HierarchicalWeighting):
            return Penalty(*weighting.strengths(evidence))
        if self.kind is None or self.strength == 0.0:
            return None
        free = int(weighting.is_mixture)
        if self.kind == "ridge":
            return Penalty(self.strength, self.center, None, free)
        above, below = box.lower >= self.center, box.upper <= self.center
        sign = np.where(above, 1.0, np.where(below, -1.0, 0.0))
        if not sign[free:].all():
            raise ParameterError(
                f"penalty='l1' towards {self.center:g} needs bounds that keep every "
                "weight on one side of it, where it is smooth: for example "
                "bounds=(0, 1) for center=1, or bounds=(0, inf) for center=0. Or use "
                "penalty='ridge'."
            )
        return Penalty(self.strength, self.center, sign, free)


@dataclass(frozen=True)
class Recipe(Preparation):
    """All that a fit does, without its rows.

    A classifier makes it from its settings, once; nothing after that reads a
    classifier. What plain naive Bayes does not need has the values that change nothing.
    """

    needs: RowsNeeded = "codes"
    """What the method keeps of its rows, besides its weighting and instances."""

    weighting: Weighting = NO_WEIGHTS
    loss: Loss = field(default_factory=LogLoss)
    penalty: PenaltySetting = field(default_factory=PenaltySetting)
    bounds: Any = None
    constraints: Any = None
    """Shapes of columns, by name or position."""

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
        """Check a table, its labels and weights, and encode them with interactions."""
        training = encode_training(X, y, sample_weight, self, owner)
        return self.finished(training, owner)

    def finished(self, training: TrainingSet, owner: object) -> TrainingSet:
        """Return encoded rows on their device, with listed interactions."""
        self.check_slopes(training, owner)
        if self.device != "cpu":
            training = _loaded("device").placed(training, self.device)
        if self.weighting is NO_WEIGHTS or not self.weighting.joined_columns:
            return training
        # Loaded if there are interactions: it knows how problems are solved.
        from steelyard.fitting.default.interactions import joined, listed_interactions

        interactions = listed_interactions(
            self.weighting.joined_columns, training.schema
        )
        return joined(training, interactions)

    def check_slopes(self, training: TrainingSet, owner: object) -> None:
        """Refuse slopes of numbers if all classes share their weights."""
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
    elsewhere are subclasses, with another ``training``, and predict where they are.
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
        if not isinstance(self.X, np.ndarray):
            self._source = as_source(self.X, y, sample_weight, needs_target=True)
        if self._source is None:
            return encode_training(self.X, y, sample_weight, recipe, owner)
        return encode_source(self._source, recipe, recipe.rows_needed)

    def predicted(self, fitted: Any, method: str) -> Any:
        """Return the result of a method of a fitted classifier for rows elsewhere."""
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
    n_given = table.n_rows
    if preparation.encoding.skips_unlabelled:
        table, y, weights = labelled_rows(table, y, weights)
    is_kept = None if weights is None or weights.all() else weights != 0
    n_unlabelled = n_given - table.n_rows
    table, y, weights = weighted_rows(table, y, weights)
    classes, labels, joined = joined_labels(y, preparation.n_jobs)
    check_two_classes(classes)
    training = encode_table(table, classes, labels, weights, preparation)
    return replace(
        training,
        is_kept=is_kept,
        target_name=name if isinstance(name, str) else None,
        joined=joined,
        n_unlabelled=n_unlabelled,
    )


def rows_of(X: Any) -> RowsHere:
    """Return the rows that a user gives, wherever they are: the one door for them."""
    # An array is a table. Other things are asked, which takes longer.
    if isinstance(X, np.ndarray):
        return RowsHere(X)
    asked = {"dask": is_dask, "spark": is_spark, "device": is_on_device}
    there = next((name for name, is_there in asked.items() if is_there(X)), None)
    return RowsHere(X) if there is None else _loaded(there).rows_of(X)


def _loaded(name: str) -> Any:
    return import_module(_ELSEWHERE[name])
