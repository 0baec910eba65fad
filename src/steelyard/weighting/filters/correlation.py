"""Attribute weights and subsets from correlations, gain ratio and AUC."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from steelyard._common.arrays import Floats
from steelyard._common.greedy import Extended, Subset, search
from steelyard._common.settings import FLAG, NONE, number, setting, whole
from steelyard._common.threads import pieces, run, thread_count
from steelyard.model.base import RowsNeeded
from steelyard.model.training import TrainingSet
from steelyard.proba import GaussianTable
from steelyard.table.codes import CodeBlock, code_dtype
from steelyard.table.discretizers import MDLDiscretizer
from steelyard.table.encoding import bins_of
from steelyard.table.schema import FeatureSchema, TableSchema, feature_labels
from steelyard.weighting.attribute import AttributeWeighting
from steelyard.weighting.base import LogProbs, Start
from steelyard.weighting.filters.information import (
    class_uncertainty,
    correlation_weights,
    gain_ratios,
    pair_uncertainty,
)

# As in Weka: what counts as an improvement of the merit, and as a correlation of zero.
_MIN_IMPROVEMENT = 1e-5
_MAX_ZERO_UNCERTAINTY = 1e-6

_SELECTED = 2.0


class FilterWeighting(AttributeWeighting):
    """Attribute weights that start from those of a filter.

    With ``solver="fixed"`` they stay there; any other solver starts from them. A filter
    sees the codes of all attributes; those of Gaussian ones are cut by MDL for it.
    Missing cells are left out.
    """

    def start_from(
        self, training: TrainingSet, evidence: LogProbs, gaussian: GaussianTable
    ) -> Start:
        """Return the filter's weights, with one for the prior if that is weighted."""
        return self._start(self._filter(with_bins(training)))

    def _start(self, weights: Floats, **attributes: Any) -> Start:
        prior = np.ones(int(self.prior_weight))
        return Start(np.concatenate([prior, weights]), **attributes)

    def _filter(self, training: TrainingSet) -> Floats:
        """Weights of the attributes, all of which have codes here, shape (d,)."""
        raise NotImplementedError


class CorrelationWeighting(FilterWeighting):
    r"""CFW: relevance for the class minus redundancy with other attributes.

    .. math:: w_j = \sigma(\text{normalised relevance}_j -
                           \text{mean normalised redundancy}_j)

    ``CorrelationWeightedNB`` has these weights; see there for the paper.
    """

    rows_needed: ClassVar[RowsNeeded] = "pairs"

    def _filter(self, training: TrainingSet) -> Floats:
        return correlation_weights(training)


class GainRatioWeighting(FilterWeighting):
    r"""GRAWNB and KLNB: gain ratios that add up to the number of attributes.

    .. math:: w_j = \frac{d\, r_j}{\sum_k r_k}, \qquad
              r_j = \frac{I(A_j; C)}{H(A_j)}

    All ones if no attribute is informative. The average Kullback-Leibler divergence
    of KLNB is the mutual information, and its split information the entropy, so that
    its weights are the same. ``GainRatioWeightedNB`` has them; see there for the
    papers.
    """

    def _filter(self, training: TrainingSet) -> Floats:
        ratios = gain_ratios(training.count())
        total = ratios.sum()
        return ratios * (len(ratios) / total) if total > 0 else np.ones(len(ratios))


class AUCWeighting(FilterWeighting):
    r"""AUCNB: how well each attribute alone ranks the rows.

    .. math:: w_j = P(t_{aj} > t_{bj}) + \tfrac12 P(t_{aj} = t_{bj}), \qquad
              t_{ij} = \log\theta_{j,x_{ij}|+} - \log\theta_{j,x_{ij}|-}

    over pairs of a positive row a and a negative row b with observed cells, or the
    mean over all pairs of classes. Log-densities take the place of log-probabilities in
    Gaussian attributes. ``AUCWeightedNB`` has these weights; see there for the paper.
    """

    # Densities are ranked row by row.
    rows_needed: ClassVar[RowsNeeded] = "codes"

    rescaled: bool = setting(
        default=False,
        allowed=FLAG,
        about="Whether weights are 2 AUC - 1, at least 0, so that an attribute without "
        "any use has no weight. Not part of the published method.",
    )
    threshold: float | None = setting(
        default=None,
        allowed=(NONE | number(0.0, 1.0, "[]")).called(
            "None or an AUC between 0 and 1"
        ),
        about="Attributes with a smaller AUC get weight 0.",
    )

    def start_from(
        self, training: TrainingSet, evidence: LogProbs, gaussian: GaussianTable
    ) -> Start:
        """Return the areas as weights, with one for the prior if that is weighted."""
        areas = attribute_areas(training, evidence, gaussian)
        weights = np.maximum(2.0 * areas - 1.0, 0.0) if self.rescaled else areas.copy()
        if self.threshold is not None:
            weights[areas < self.threshold] = 0.0
        return self._start(weights)


def attribute_areas(
    training: TrainingSet, evidence: LogProbs, gaussian: GaussianTable
) -> Floats:
    """AUC of every attribute as a classifier by itself, shape (d,)."""
    schema = training.codes.schema
    counts = training.count()
    out = np.empty(len(schema))
    for j in schema.coded.tolist():
        rows = slice(schema.offsets[j] + 1, schema.offsets[j + 1])
        out[j] = _mean_area(evidence.table.values[rows], counts.by_code[rows])
    for g, j in enumerate(schema.gaussian.tolist()):
        column = training.codes.number_column(g)
        observed = np.flatnonzero(~np.isnan(column))
        parts = gaussian.only(g).log_densities(column[observed, None])
        scores = [np.empty((0, training.n_classes)), *(part[:, 0] for _, part in parts)]
        mass = np.zeros((len(observed), training.n_classes))
        row_weights = 1.0 if training.weights is None else training.weights[observed]
        mass[np.arange(len(observed)), training.labels[observed]] = row_weights
        out[j] = _mean_area(np.concatenate(scores), mass)
    return out


def _mean_area(scores: Floats, mass: Floats) -> float:
    """Mean AUC over pairs of classes, of values with scores and weights (v, K)."""
    areas = [
        area_under_curve(scores[:, a] - scores[:, b], mass[:, a], mass[:, b])
        for a, b in combinations(range(scores.shape[1]), 2)
        if mass[:, a].any() and mass[:, b].any()
    ]
    return float(np.mean(areas)) if areas else 0.5


def area_under_curve(scores: Floats, positive: Floats, negative: Floats) -> float:
    """AUC of scores (v,) that positive and negative weights (v,) fall on."""
    # Equal ratios may differ in the last digit; they are ties all the same.
    _, where = np.unique(np.round(scores, 12), return_inverse=True)
    above, below = (np.bincount(where, mass) for mass in (positive, negative))
    smaller = np.cumsum(below) - 0.5 * below
    return float((above @ smaller) / (above.sum() * below.sum()))


def with_bins(training: TrainingSet) -> TrainingSet:
    """Cut Gaussian attributes into bins by MDL, so that filters can count them.

    Missing numbers get code 0. The model does not use these bins.
    """
    gaussian = training.schema.gaussian
    if not len(gaussian):
        return training
    training = training.place.here(training)
    codes = training.codes
    discretizer = MDLDiscretizer()

    def cut(g: int) -> tuple[FeatureSchema, CodeBlock]:
        j = int(gaussian[g])
        column = np.ascontiguousarray(codes.number_column(g))
        observed = ~np.isnan(column)
        weights = None if training.weights is None else training.weights[observed]
        feature = codes.schema.features[j]
        edges = np.empty(0)
        if observed.any():
            edges = discretizer.column_edges(
                column[observed],
                training.labels[observed],
                training.n_classes,
                weights,
                column=(j, feature.name),
            )
        binned = FeatureSchema(
            feature.name, "binned", feature.cells, edges=tuple(edges.tolist())
        )
        cells = codes.workspace.zeros((codes.n_rows, 1), code_dtype(binned.n_codes))
        for rows in pieces(slice(0, codes.n_rows)):
            cells[rows, 0] = bins_of(binned, column[rows])
        return binned, CodeBlock(cells, gaussian[g : g + 1])

    features, blocks = list(codes.schema.features), list(codes.blocks)
    cuts = run(cut, range(len(gaussian)), thread_count(training.n_jobs))
    for j, (feature, block) in zip(gaussian.tolist(), cuts, strict=True):
        features[j] = feature
        blocks.append(block)
    schema = TableSchema(tuple(features))
    coded = replace(codes, schema=schema, blocks=tuple(blocks), numbers=())
    return replace(training, codes=coded)


class SubsetWeighting(FilterWeighting):
    r"""DFWNB: weight 2 for attributes that CFS selects, 1 for the others.

    The weights multiply the counts too:

    .. math:: \theta_{j,v|c} = \frac{w_j N_{jvc} + f_j}{w_j N_c + n_j f_j}, \qquad
              z_c(x) = \log \pi_c + \sum_j w_j \log \theta_{j,x_j|c}

    CFS looks for the subset F with the largest merit

    .. math:: \frac{\sum_{j \in F} SU(A_j, C)}
              {\sqrt{|F| + 2 \sum_{j<k \in F} SU(A_j, A_k)}}

    by forward best-first search, where SU is symmetrical uncertainty.
    ``DeepWeightedNB`` has these weights.

    References
    ----------
    M. A. Hall (2000), "Correlation-based feature selection for discrete and numeric
    class machine learning", ICML, 359-366.
    """

    rows_needed: ClassVar[RowsNeeded] = "pairs"

    max_stale: int = setting(
        default=5,
        allowed=whole(1),
        about="Expansions without improvement after which the search ends.",
    )
    locally_predictive: bool = setting(
        default=True,
        allowed=FLAG,
        about="Whether attributes are added afterwards that are more correlated with "
        "the class than with any attribute selected.",
    )
    zero_is_one: bool = setting(
        default=True,
        allowed=FLAG,
        about="Whether two attributes of uncertainty 0 count as fully correlated, as "
        "in Weka, where this is meant for constant attributes. It keeps independent "
        "attributes apart too.",
    )

    def start_from(
        self, training: TrainingSet, evidence: LogProbs, gaussian: GaussianTable
    ) -> Start:
        """Return weights 2 and 1, for exponents and counts, and the subset."""
        chosen = self.select(with_bins(training))
        weights = np.ones(len(training.schema))
        weights[chosen] = _SELECTED
        names = feature_labels(training.schema, chosen)
        return self._start(
            weights, count_factors=weights, named={"selected_features_": names}
        )

    def select(self, training: TrainingSet) -> list[int]:
        """Return the positions of the attributes that CFS selects, in its order."""
        relevance = class_uncertainty(training.count())
        redundancy = pair_uncertainty(training)
        if self.zero_is_one:
            redundancy[redundancy < _MAX_ZERO_UNCERTAINTY] = 1.0
            np.fill_diagonal(redundancy, 0.0)
        chosen = best_subset(relevance, redundancy, int(self.max_stale))
        if self.locally_predictive:
            chosen = add_locally_predictive(chosen, relevance, redundancy)
        return chosen


def best_subset(relevance: Floats, redundancy: Floats, max_stale: int) -> list[int]:
    """Search for the subset of largest merit, best first, one attribute at a time.

    As in Weka, the list of subsets to expand is as long as ``max_stale``.
    """

    def extend(subset: Subset, rest: list[int]) -> Extended:
        members, facts = list(subset.members), subset.facts
        with_class = facts["relevance"] + relevance[rest]
        between = facts["redundancy"] + redundancy[members].sum(axis=0)[rest]
        merits = with_class / np.sqrt(len(members) + 1 + 2.0 * between)
        return merits, {"relevance": with_class, "redundancy": between}

    *_, best = (
        step
        for step in search(
            extend,
            Subset((), 0.0, {"relevance": 0.0, "redundancy": 0.0}),
            range(len(relevance)),
            least=_MIN_IMPROVEMENT,
            ties=0.0,
            patience=max_stale,
            blank=1,
            width=max_stale,
        )
        if step.is_gain
    )
    return list(best.members)


def add_locally_predictive(
    chosen: list[int], relevance: Floats, redundancy: Floats
) -> list[int]:
    """Add attributes more correlated with the class than with any selected one."""
    out = list(chosen)
    for j in np.argsort(-relevance, kind="stable").tolist():
        if j not in out and relevance[j] > redundancy[j, out].max(initial=0.0):
            out.append(j)
    return out
