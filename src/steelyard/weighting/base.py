"""The interface of weightings, and what they weigh."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array, vstack

from steelyard._common.arrays import Floats, Ints
from steelyard._common.settings import FLAG, DeclaredPart, setting
from steelyard.model.base import Curvature, RowsNeeded
from steelyard.model.training import TrainingSet
from steelyard.proba import GaussianTable
from steelyard.proba.basis import EffectBasis
from steelyard.proba.encodings import Encodings
from steelyard.table.codes import FeatureTable
from steelyard.table.schema import TableSchema

# Logarithms of probabilities that are equal differ by less.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class LogProbs:
    """Log-probabilities before weighting: what there is to be weighted."""

    basis: EffectBasis
    """The attributes, which are columns or several encodings of each, and the basis of
    the effects of their codes."""

    log_prior: Floats
    """Shape (K,)."""

    table: FeatureTable
    """Log-probabilities of codes, shape (V, K)."""

    def __post_init__(self) -> None:
        """Make equal what differs between classes by rounding alone.

        A weight without an upper bound would grow until that counts.
        """
        values = _without_rounding(self.table.values)
        object.__setattr__(self, "table", replace(self.table, values=values))
        object.__setattr__(self, "log_prior", _without_rounding(self.log_prior))

    @property
    def encodings(self) -> Encodings:
        """Columns and their encodings."""
        return self.basis.encodings

    @property
    def schema(self) -> TableSchema:
        """One attribute for each encoding."""
        return self.basis.schema

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.log_prior)

    @property
    def n_features(self) -> int:
        """Number of attributes."""
        return len(self.schema)

    @property
    def gaussian(self) -> Ints:
        """Positions of the Gaussian attributes."""
        return self.schema.gaussian

    @cached_property
    def centers(self) -> Floats:
        """Prior means of shared weights of a hierarchy, the overall one being 1."""
        schema, encodings = self.schema, self.encodings
        is_one = encodings.is_first & ~schema.is_linear & ~schema.is_interaction
        if self.basis.n_bins:  # a curve has a trend instead
            is_one &= ~encodings.is_coarser
        return is_one.astype(np.float64)

    @cached_property
    def value_rows(self) -> Ints:
        """Table rows of values: all but those of code 0."""
        rows = np.ones(self.schema.n_codes, dtype=bool)
        rows[self.schema.first_codes] = False
        return np.flatnonzero(rows)


def _without_rounding(values: Floats) -> Floats:
    with np.errstate(invalid="ignore"):  # two infinite logarithms
        gaps = np.ptp(values, axis=-1, keepdims=True)
    return np.where(gaps < _ROUNDING, values[..., :1], values)


@dataclass(frozen=True)
class Effect:
    """What weights do to the scores, or a gradient with respect to that.

    Scores are ``base`` plus table rows plus ``multipliers`` times log-densities.
    """

    base: Floats
    """Shape (K,)."""

    table: Floats
    """Shape (V, K)."""

    multipliers: Floats
    """Shape (g, K)."""

    def __add__(self, other: Effect) -> Effect:
        """Add two of them."""
        return Effect(
            self.base + other.base,
            self.table + other.table,
            self.multipliers + other.multipliers,
        )


@dataclass(frozen=True)
class Start:
    """Where weights begin, and what else a filter has computed."""

    weights: Floats
    """Shape (p,)."""

    count_factors: Floats | None = None
    """Factors on the counts of each attribute before they are smoothed, shape (d,)."""

    named: Mapping[str, Any] = field(default_factory=dict)
    """Further fitted attributes of the classifier."""


class Weighting(DeclaredPart):
    """A linear map from weights to an ``Effect``, and its transpose."""

    prior_weight: bool = setting(
        default=False,
        allowed=FLAG,
        about="Whether the log prior has a weight too, the first of the vector.",
        kw_only=True,
    )

    has_hessian: ClassVar[bool] = False
    """Whether ``hessian`` assembles second derivatives."""

    is_mixture: ClassVar[bool] = False
    """Whether the posterior is a mixture of two, each with a separate effect."""

    has_class_weights: ClassVar[bool] = True
    """Whether an attribute may count more for one class than for another."""

    has_shapes: ClassVar[bool] = False
    """Whether each value has separate weights, so that curves can have any shape."""

    rows_needed: ClassVar[RowsNeeded] = "counts"
    """What finding the start of the weights keeps of the rows."""

    @property
    def joined_columns(self) -> Any:
        """Interactions, by name or position, that become attributes."""
        return ()

    def size(self, evidence: LogProbs) -> int:
        """Count the weights."""
        return int(self.prior_weight) + self._size(evidence)

    def start(self, evidence: LogProbs) -> Floats:
        """Return the weights of plain naive Bayes: all ones."""
        return np.ones(self.size(evidence))

    def start_from(
        self, training: TrainingSet, evidence: LogProbs, gaussian: GaussianTable
    ) -> Start:
        """Return the start for training rows; a filter computes it from these.

        The rows have the weights of the user, without learned instance weights.
        """
        return Start(self.start(evidence))

    def bounds(
        self, evidence: LogProbs, low: Floats, high: Floats
    ) -> tuple[Floats, Floats]:
        """Spread bounds per attribute (d,) over the weights; the prior's is [0, inf).

        A single pair of bounds is that of the prior weight too.
        """
        owner = self._owner(evidence)
        lower, upper = low[owner], high[owner]
        if self.prior_weight:
            same = len(set(low.tolist())) == 1 and len(set(high.tolist())) == 1
            lower = np.concatenate([[low[0] if same else 0.0], lower])
            upper = np.concatenate([[high[0] if same else np.inf], upper])
        return lower, upper

    def apply(self, weights: Floats, evidence: LogProbs) -> Effect:
        """Turn weights into their effect on the scores."""
        base = evidence.log_prior
        if self.prior_weight:
            base, weights = weights[0] * base, weights[1:]
        table, multipliers = self._apply(weights, evidence)
        return Effect(base, table, multipliers)

    def mixed_effects(
        self, weights: Floats, evidence: LogProbs
    ) -> tuple[float, tuple[Effect, ...]]:
        """Return the share of the first of several effects, and the effects."""
        return 1.0, (self.apply(weights, evidence),)

    def pullback(self, gradient: Effect, evidence: LogProbs) -> Floats:
        """Turn a gradient with respect to the effect into one for the weights."""
        inner = self._pullback(gradient, evidence)
        if not self.prior_weight:
            return inner
        # A zero gradient cancels an infinite log prior.
        base = gradient.base
        first = np.where(base == 0.0, 0.0, base * evidence.log_prior).sum()
        return np.concatenate([[first], inner])

    def jacobian(self, evidence: LogProbs, rows: Ints) -> csr_array:
        """Return the derivative of some table rows by weights: shape (rows · K, p)."""
        k, g = evidence.n_classes, len(evidence.gaussian)
        table = np.zeros_like(evidence.table.values)
        effect = Effect(np.zeros(k), table, np.zeros((g, k)))
        derivatives = [csr_array((0, self.size(evidence)))]
        for row, c in np.ndindex(len(rows), k):
            table[rows[row], c] = 1.0
            derivatives.append(csr_array(self.pullback(effect, evidence)[None, :]))
            table[rows[row], c] = 0.0
        return csr_array(vstack(derivatives))

    def fitted(self, weights: Floats, evidence: LogProbs) -> dict[str, Any]:
        """Name the weights as fitted attributes of a classifier."""
        named: dict[str, Any] = {}
        if self.prior_weight:
            named["prior_weight_"] = float(weights[0])
            weights = weights[1:]
        return {**named, **self._fitted(weights, evidence)}

    def hessian(self, likelihoods: Floats, curvature: Curvature) -> Floats:
        """Assemble second derivatives from rows.

        likelihoods (K, d', s) log-likelihoods of s rows, with the log prior as first
        attribute if that is weighted; curvature of the loss in their scores.
        """
        raise NotImplementedError

    # ------------------------------------------------- what subclasses implement

    def _size(self, evidence: LogProbs) -> int:
        raise NotImplementedError

    def _owner(self, evidence: LogProbs) -> Ints:
        """Attribute that each weight belongs to."""
        raise NotImplementedError

    def _apply(self, weights: Floats, evidence: LogProbs) -> tuple[Floats, Floats]:
        raise NotImplementedError

    def _pullback(self, gradient: Effect, evidence: LogProbs) -> Floats:
        raise NotImplementedError

    def _fitted(self, weights: Floats, evidence: LogProbs) -> dict[str, Any]:
        raise NotImplementedError
