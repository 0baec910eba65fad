"""Instance weightings: from codes and labels to row weights, before counting.

Large weights are of rows that the model gets wrong, or that have frequent values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from steelyard._common.arrays import Floats
from steelyard._common.settings import DeclaredPart, resolve_part, setting, whole
from steelyard._common.threads import pieces, row_blocks, run, thread_count
from steelyard.exceptions import ParameterError
from steelyard.kernels import counting, scoring
from steelyard.model.base import Model, RowsNeeded
from steelyard.model.table_model import NBModel, spread_table
from steelyard.model.training import TrainingSet
from steelyard.proba.counts import Counts, Moments
from steelyard.table.codes import FeatureTable
from steelyard.table.packing import Packing, pack_codes

__all__ = [
    "INSTANCES",
    "DiscriminativeWeighting",
    "InstanceWeighting",
    "Learned",
    "ValueFrequencyWeighting",
    "hardest_rows",
    "resolve_instances",
]


@dataclass(frozen=True)
class Learned:
    """Row weights that a method learned, and how it got there."""

    weights: Floats
    """Shape (n,), without the user's weights."""

    records: list[dict[str, Any]] = field(default_factory=list)
    """One record per round."""

    def __post_init__(self) -> None:
        weights = self.weights
        fine = isinstance(weights, np.ndarray) and weights.dtype == np.float64
        if not fine or weights.ndim != 1:
            raise ParameterError(
                "An instance weighting must return a float64 array with one weight for "
                f"each row. Got {type(weights).__name__} of shape {np.shape(weights)}."
            )
        parts = [weights[rows] for rows in pieces(slice(0, len(weights)))]
        fine = all(np.isfinite(part).all() and (part >= 0).all() for part in parts)
        if not (fine and any(part.any() for part in parts)):
            raise ParameterError(
                "An instance weighting must return finite weights of at least 0, not "
                f"all of them 0. Got {weights.min():g} to {weights.max():g}."
            )


class InstanceWeighting(DeclaredPart):
    """Maps encoded rows to weights that the counts are made with.

    Instance weights act through the counts alone: neither the loss of attribute weights
    nor a prediction knows of them.
    """

    rows_needed: ClassVar[RowsNeeded] = "per-row"
    """What learning the weights keeps of the rows."""

    def weigh(self, training: TrainingSet) -> Learned:
        """Learn the weight of every row."""
        raise NotImplementedError


class DiscriminativeWeighting(InstanceWeighting):
    r"""Add the posterior loss of each row to its weight, round by round.

    .. math:: u_i \leftarrow u_i + (1 - P_{i,y_i})

    with the posterior of the model of the previous round; all rows start at 1. The
    weights are not normalised, so that smoothing fades as they grow.

    References
    ----------
    L. Jiang, D. Wang, Z. Cai (2012), "Discriminatively weighted naive Bayes and its
    application in text classification", Int. J. on Artificial Intelligence Tools 21(1).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import steelyard as sy
    >>> clf = sy.method("DWNB").fit(*load_iris(return_X_y=True))
    >>> bool((clf.instance_weights_ >= 1).all())
    True
    """

    rounds: int = setting(
        default=15,
        allowed=whole(0),
        about="Number of rounds; 0 leaves all weights at 1.",
    )

    def weigh(self, training: TrainingSet) -> Learned:
        """Learn the weight of every row."""
        weights = training.workspace.full(training.n_rows, 1.0)
        counts = training.count()
        rounds = _Rounds.of(training, counts)
        records = []
        for number in range(1, int(self.rounds) + 1):
            model = training.estimate(counts)
            if rounds is not None and model.link_scale == 1.0:
                counts, loss = rounds.next(model, weights)
                records.append(_record(number, loss, counts.total))
                continue
            records.append(add_losses(weights, model, training, number))
            if number < self.rounds:
                counts = training.count(weights)
        return Learned(weights, records)


@dataclass(frozen=True)
class _Rounds:
    """Rows with joint codes: a round is one pass that scores, weighs and counts."""

    training: TrainingSet
    packing: Packing
    packed: NDArray[np.uint8]

    @classmethod
    def of(cls, training: TrainingSet, counts: Counts) -> _Rounds | None:
        """Join the codes of the rows; None if not all attributes have small ones."""
        codes = training.codes
        small = all(block.values.dtype == np.uint8 for block in codes.blocks)
        if codes.n_numbers or not codes.blocks or not small:
            return None
        missing = np.asarray(counts.by_code[codes.schema.first_codes].any(axis=1))
        packing, packed = pack_codes(codes, missing, training.n_jobs)
        return None if packing is None else cls(training, packing, packed)

    def next(self, model: NBModel, weights: Floats) -> tuple[Counts, float]:
        """Change the weights by a model; return the counts by them and the log-loss."""
        training, starts = self.training, self.packing.starts
        row_weights = np.empty(0) if training.weights is None else training.weights
        table, prior = model.table, model.log_prior
        kernel = counting.reweigh_many
        if training.n_classes == 2:
            table, prior = table[:, 1:] - table[:, :1], prior[1] - prior[0]
            kernel = counting.reweigh_two
        joint = self.packing.expand(table)
        if training.n_classes == 2:
            joint = joint[:, 0].copy()

        def work(block: slice) -> tuple[float, Floats]:
            loss, hist = 0.0, np.zeros((training.n_classes, len(joint)))
            for rows in pieces(block):
                u = row_weights[rows] if row_weights.size else row_weights
                y = np.asarray(training.labels[rows], dtype=np.uint32)
                loss += kernel(
                    self.packed[rows], starts, joint, prior, y, u, weights[rows], hist
                )
            return loss, hist

        losses, hists = zip(
            *run(work, row_blocks(len(weights)), thread_count(training.n_jobs)),
            strict=True,
        )
        hist = sum(hists[1:], hists[0])
        # Every row has one joint code in the first group.
        stop = starts[1] if len(starts) > 1 else len(joint)
        counts = Counts(
            model.schema,
            hist[:, : int(stop)].sum(axis=1),
            self.packing.collapse(hist.T),
            Moments.zeros(0, training.n_classes),
        )
        return counts, float(sum(losses))


def add_losses(
    weights: Floats, model: Model, training: TrainingSet, number: int
) -> dict[str, float]:
    """Add a model's posterior losses to the weights, in place; return the record."""
    log_loss = total = 0.0
    for rows in pieces(slice(0, training.n_rows)):
        part = training.codes.part(rows), training.labels[rows]
        posterior = model.true_proba(*part, training.n_jobs)
        u = None if training.weights is None else training.weights[rows]
        weights[rows] += 1.0 - posterior
        log_loss += _log_loss(posterior, u)
        total += float((weights[rows] if u is None else weights[rows] * u).sum())
    return _record(number, log_loss, total)


def _record(number: int, log_loss: float, total_weight: float) -> dict[str, float]:
    return {"round": number, "log_loss": log_loss, "total_weight": total_weight}


def _log_loss(posterior: Floats, weights: Floats | None) -> float:
    """Add up negative logarithms; if it is safe, one of sixteen rows' product."""
    if weights is None and posterior.min(initial=1.0) > 1e-18:
        whole = len(posterior) - len(posterior) % 16
        products = posterior[:whole].reshape(-1, 16).prod(axis=1)
        return -float(np.log(products).sum() + np.log(posterior[whole:]).sum())
    with np.errstate(divide="ignore"):
        loss = -np.log(posterior)
    return float(loss.sum() if weights is None else (weights * loss).sum())


class ValueFrequencyWeighting(InstanceWeighting):
    r"""Rows with frequent values count more.

    .. math:: u_i = \sum_j n_j \, \frac{\#\{k : x_{kj} = x_{ij}\}}{n}

    A missing cell adds nothing; a Gaussian attribute, which counts as one value, adds
    one if it is observed.

    References
    ----------
    W. Xu, L. Jiang, L. Yu (2019), "An attribute value frequency-based instance
    weighting filter for naive Bayes", J. of Experimental & Theoretical Artificial
    Intelligence 31(2).
    """

    def weigh(self, training: TrainingSet) -> Learned:
        """Learn the weight of every row."""
        counts, schema = training.count(), training.codes.schema
        table = FeatureTable(counts.by_code, schema.offsets)
        share = counts.by_code.sum(axis=1) / counts.total
        share *= table.spread(schema.n_values.astype(np.float64))
        share[schema.first_codes] = 0.0
        weights = training.workspace.zeros(training.n_rows, np.float64)
        parts = list(pieces(slice(0, training.n_rows)))
        for block in training.codes.blocks:
            starts, values = spread_table(block, training.codes, share)
            scoring.gather_difference(block.values, starts, values, weights)
        for rows in parts if training.codes.n_numbers else ():
            numbers = training.codes.number_rows(rows)
            weights[rows] += (~np.isnan(numbers)).sum(axis=1)
        # A row with nothing in it would vanish; it counts as little as a row can.
        by_part = [weights[rows] for rows in parts]
        floor = min((w[w > 0].min(initial=1.0) for w in by_part), default=1.0)
        for part in by_part:
            part[~(part > 0)] = floor
        return Learned(weights)


INSTANCES: dict[str, type[InstanceWeighting]] = {
    "discriminative": DiscriminativeWeighting,
    "value-frequency": ValueFrequencyWeighting,
}


def resolve_instances(setting: Any) -> InstanceWeighting:
    """Return the instance weighting that a setting names."""
    return resolve_part(setting, InstanceWeighting, INSTANCES, "instances")


def hardest_rows(self: Any, n_rows: int = 10) -> NDArray[np.int64]:
    """Return the training rows that the model found hardest, hardest first.

    Rows with a large weight are those that the model gets wrong: rare cases, or labels
    that are wrong themselves. A method of classifiers that learn instance weights.

    Parameters
    ----------
    n_rows : int, default=10
        How many; fewer if there are no more. Rows of weight zero are left out.

    Returns
    -------
    ndarray of shape (n_rows,)
        Positions of rows in the training table.
    """
    check_is_fitted(self)
    if not hasattr(self, "instance_weights_"):
        raise ParameterError(
            f"This {type(self).__name__} learned no instance weights. Set "
            "`instances`, for example to 'discriminative', and fit again."
        )
    if isinstance(n_rows, bool) or not isinstance(n_rows, Integral) or n_rows < 0:
        raise ParameterError(
            f"'n_rows' must be a whole number of at least 0. Got {n_rows!r} instead."
        )
    # NaN, of rows that took no part, comes last.
    order = np.argsort(-self.instance_weights_, kind="stable")
    n_weights = np.count_nonzero(~np.isnan(self.instance_weights_))
    return order[: min(int(n_rows), n_weights)]
