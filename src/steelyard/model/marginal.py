r"""Rows with missing cells: the average answer over what these cells may be.

Attributes add contributions to the scores. Over the training rows these are taken as
jointly normal, with means :math:`\mu_t` and the covariance :math:`L L^\top +
\operatorname{diag}(D)` of a factor model. Given the contributions :math:`c_S` of the
observed attributes, the sum of the others is normal as well, with the mean
:math:`\sum_U \mu_t + B (c_S - \mu_S)` and a covariance :math:`V`, so that

.. math:: P(c \mid x_S) \propto \Bigl[(1 - f) \sqrt{E\,\sigma_c\bigl(s\,(b
          + \textstyle\sum_S c_t + \sum_U \mu_t + B (c_S - \mu_S) + \delta \rho
          + \varepsilon)\bigr)} + f \sqrt{P_{NB}(c \mid x_S)}\Bigr]^2,
          \qquad \varepsilon \sim N(0, V)

with the softmax :math:`\sigma` and the scale s of the scores. An interaction is
observed if both its columns are. The shift :math:`\delta` makes the answer to a row
without any observed cell the base rate; :math:`\rho = \operatorname{tr} V /
\operatorname{tr} V_\emptyset` is the share of the variance that is still open.

:math:`P_{NB}` is naive Bayes with the smoothed shares of classes by value of each
column alone. A single observed column is answered with these, f = 1; otherwise
:math:`f = \sqrt[3]{u \rho}` with the share u of missing columns, of all but one. It is
multiplied by the share of observed columns that have a part in naive Bayes. Columns
that say the same count once: log-odds of naive Bayes are multiplied by the sum of the
variances within classes of what its columns say over the variance of their sum, if that
is larger. Columns that are independent given the class, as naive Bayes takes them to
be, count in full.

The mean over :math:`\varepsilon` is a Gauss-Hermite sum for two classes, whose scores
are one number, the log-odds of the second. For more classes it is a cubature with four
points on each axis of :math:`V^{1/2}`, which treats all classes alike.

References
----------
M. Saar-Tsechansky, F. Provost (2007), "Handling missing values when applying
classification models", JMLR 8, 1625-1657.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
from numpy.typing import NDArray

from steelyard._common.arrays import Floats, Ints
from steelyard._common.quadrature import HERMITE, radii
from steelyard._common.threads import one_blas_thread
from steelyard.kernels import scoring
from steelyard.table.codes import Codes
from steelyard.table.schema import TableSchema

if TYPE_CHECKING:
    from steelyard.model.table_model import NBModel
    from steelyard.proba.counts import Counts

Flags = NDArray[np.bool_]

# Numbers of patterns that are worked on at a time.
_MAX_CELLS = 1 << 21

# Variance beyond the factors that an edited column has at least, of the mean variance.
_EDITED_NOISE = 1e-3

# Means of the eighths of a normal distribution, those above 0.
_EIGHTHS = (0.1579763048, 0.491349357, 0.8953843401, 1.6468282414)

# Fixed-point steps for the shift, and where they end.
_MAX_STEPS = 200
_SHIFT_TOLERANCE = 1e-13


@dataclass(frozen=True, eq=False)
class Marginal:
    """Moments of contributions, by which missing cells are averaged over.

    Two classes have one channel (C = 1), the difference of the second from the first;
    K > 2 classes have K, with a mean of zero.
    """

    value_odds: Floats
    """Odds that a missing cell of each column is a value, shape (columns,).

    0 for columns whose missing cells are averaged over. In others missing cells had a
    meaning in training, and these are the odds of such a cell there. It is averaged
    over as well in rows in which the share of missing cells in the first columns is
    larger than its odds: there cells are missing for another reason.
    """

    means: Floats
    """Mean of the contributions of each attribute where it is observed, (d, C)."""

    loadings: Floats
    """Factors of the covariance, shape (d, C, r)."""

    noise: Floats
    """Variance beyond the factors, shape (d, C)."""

    base_rates: Floats
    """Answer to a row without any observed cell, before ``log_ratio``: shape (K,)."""

    plain: Floats
    """Logs of shares of classes relative to the base rates by code, (V, K).

    0 for interactions, and for columns that have no part in naive Bayes.
    """

    plain_loadings: Floats
    """Factors of the covariance within classes of what columns say alone, summed over
    classes, shape (columns, q)."""

    plain_noise: Floats
    """Variance beyond these factors, shape (columns,)."""

    shift: Floats
    """Of the mean scores if nothing is observed, (C,): see ``balanced``."""

    log_ratio: Floats
    """Added to the logs of all answers, (K,): 0, or how classes are more frequent than
    in training (``with_prior``). The prior of the model has it already."""

    @property
    def columns(self) -> Flags:
        """Whether a missing cell of each column is always averaged over."""
        return np.asarray(self.value_odds == 0.0)

    def with_ratio(self, added: Floats) -> Marginal:
        """Return the moments for classes that are more frequent by a log ratio."""
        return replace(self, log_ratio=self.log_ratio + added)

    @property
    def log_rates(self) -> Floats:
        """Logs of the answer to a row without any observed cell, shape (K,)."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.base_rates)
        return logs + self.log_ratio - scipy.special.logsumexp(logs + self.log_ratio)


@dataclass(frozen=True)
class Given:
    """What follows from which attributes are observed, for P patterns of them."""

    observed: Flags
    """Shape (P, d)."""

    weights: Floats
    """Of observed contributions, whose sum is the mean of the missing ones given them:
    shape (P, d, C, C)."""

    variance: Floats
    """Covariance of the sum of the missing contributions, shape (P, C, C)."""

    def whole_weights(self) -> Floats:
        """Return the weights of what is added by observed attributes themselves too."""
        k, weights = np.arange(self.variance.shape[1]), self.weights.copy()
        weights[:, :, k, k] += self.observed[:, :, None]
        return weights


class PartialRows:
    """Answers of a sum to rows with missing cells."""

    def __init__(self, model: NBModel, moments: Marginal) -> None:
        self.model, self.moments = model, moments
        loadings, noise = moments.loadings, moments.noise
        self._rank = loadings.shape[2]
        self._precise = loadings / noise[:, :, None]
        products = np.einsum("tcr,tcs->trs", self._precise, loadings)
        self._information = products.reshape(len(loadings), -1)
        offsets = model.schema.offsets
        means = np.repeat(moments.means, np.diff(offsets), axis=0)
        self._table = np.ascontiguousarray(contrast(model.table) - means)
        prior = model.log_prior - moments.log_ratio / model.link_scale
        self.start = contrast(prior) + moments.means.sum(axis=0)
        """Mean score over the training rows, shape (C,)."""
        n_columns = model.schema.n_columns
        self._is_used = np.isfinite(moments.value_odds)
        is_plain = [moments.plain[a:b].any() for a, b in pairwise(offsets.tolist())]
        self._is_plain = self._is_used & is_plain[:n_columns]

    def proba(self, codes: Codes) -> Floats:
        """Return posterior probabilities of rows, shape (n, K)."""
        out = np.empty((codes.n_rows, self.model.n_classes))
        patterns, pattern_of = missing_patterns(codes, self.moments)
        noise = self.moments.noise
        size = max(1, _MAX_CELLS // (self._rank**2 + noise.size * noise.shape[1]))
        with one_blas_thread():
            for start in range(0, len(patterns), size):
                rows: Any = slice(None)
                chosen = codes
                if len(patterns) > size:
                    rows = np.flatnonzero(pattern_of // size == start // size)
                    chosen = codes.take(rows)
                given = self.given(patterns[start : start + size])
                out[rows] = self._proba(chosen, given, pattern_of[rows] - start)
        return out

    def contributions(self, codes: Codes) -> tuple[Floats, Floats]:
        """Return contributions of observed attributes, twice (n, d, K).

        Those of the attributes themselves relative to their means, and what they say of
        the missing ones; both are 0 for missing attributes.
        """
        patterns, pattern_of = missing_patterns(codes, self.moments)
        given = self.given(patterns)
        observed = given.observed[pattern_of]
        added = contrast(self.model.contributions(codes)) - self.moments.means
        added = np.where(observed[:, :, None], added, 0.0)
        implied = np.einsum("ntc,ntck->ntk", added, given.weights[pattern_of])
        n_classes = self.model.n_classes
        return _by_class(added, n_classes), _by_class(implied, n_classes)

    def given(self, patterns: Flags) -> Given:
        """Condition on the observed attributes of each pattern of columns."""
        loadings, noise = self.moments.loadings, self.moments.noise
        observed = with_interactions(self.model.schema, patterns)
        kept, missing = observed.astype(np.float64), (~observed).astype(np.float64)
        rank, channels = self._rank, noise.shape[1]
        # One product per pattern: results do not depend on the other patterns.
        information = (kept[:, None] @ self._information).reshape(-1, rank, rank)
        information += np.eye(rank)
        flat = loadings.reshape(len(loadings), -1)
        total = (missing[:, None] @ flat).reshape(-1, channels, rank)
        solved = np.linalg.solve(information, total.transpose(0, 2, 1))
        variance = total @ solved
        k = np.arange(channels)
        variance[:, k, k] += (missing[:, None] @ noise)[:, 0]
        variance = (variance + variance.transpose(0, 2, 1)) / 2.0
        weights = self._precise.reshape(-1, rank) @ solved
        weights = weights.reshape(len(observed), *noise.shape, channels)
        return Given(observed, weights * kept[:, :, None, None], variance)

    def _proba(self, codes: Codes, given: Given, pattern_of: Ints) -> Floats:
        """Return posterior probabilities of rows, shape (n, K)."""
        moments, scale = self.moments, self.model.link_scale
        mean = self._scores(codes, given, pattern_of)
        proba = expected_softmax(scale * mean, scale**2 * given.variance, pattern_of)
        share, power = (x[pattern_of, None] for x in self._plain_part(given))
        plain = self._plain_proba(codes, power)
        proba = ((1.0 - share) * np.sqrt(proba) + share * np.sqrt(plain)) ** 2
        proba *= np.exp(moments.log_ratio - moments.log_ratio.max())
        return np.asarray(proba / proba.sum(axis=1, keepdims=True))

    def _open_share(self, given: Given) -> Floats:
        """Return the share of the variance that is still open, shape (P,)."""
        variance = np.trace(given.variance, axis1=1, axis2=2)
        return np.asarray(variance / np.trace(self._nothing[0]))

    def _plain_part(self, given: Given) -> tuple[Floats, Floats]:
        """Return the share of naive Bayes, and the power of its evidence, (P,)."""
        n_columns = self.model.schema.n_columns
        observed = given.observed[:, :n_columns] & self._is_used
        n_used, n_observed = self._is_used.sum(), observed.sum(axis=1)
        missing = (n_used - n_observed) / max(n_used - 1.0, 1.0)
        share = np.cbrt(missing * self._open_share(given)).clip(0.0, 1.0)
        plain = (observed & self._is_plain).astype(np.float64)
        share = np.where(n_observed == 1, 1.0, share) * plain.sum(axis=1)
        loadings, noise = self.moments.plain_loadings, self.moments.plain_noise
        each = (loadings**2).sum(axis=1) + noise
        # One product per pattern, as above.
        sums = (plain[:, None] @ np.column_stack([loadings, noise, each]))[:, 0]
        together = (sums[:, :-2] ** 2).sum(axis=1) + sums[:, -2]
        power = np.minimum(sums[:, -1] / np.maximum(together, 1e-300), 1.0)
        return share / np.maximum(n_observed, 1), power

    def _scores(self, codes: Codes, given: Given, pattern_of: Ints) -> Floats:
        """Return mean scores, given the observed attributes: shape (n, C)."""
        shift = self._open_share(given)[:, None] * self.moments.shift
        mean = (self.start + shift)[pattern_of]
        weights = given.whole_weights()
        _gather_weighted(codes, self._table, weights, pattern_of, mean)
        if codes.n_numbers:
            numbers = codes.number_rows(slice(None))
            for g, j in enumerate(codes.schema.gaussian.tolist()):
                added = contrast(self.model.density_scores(j, numbers[:, g]))
                added = added - self.moments.means[j]
                mean += np.einsum("nc,nck->nk", added, weights[pattern_of, j])
        return mean

    def variances(self, codes: Codes, table: Floats, base: Floats) -> Floats:
        """Return variances of the log-odds of rows, shape (n, C).

        ``table`` (V, C) has variances of what codes add and ``base`` (C,) that of the
        intercept, both of log-odds of a class against the others. What observed
        attributes say of the missing ones is a regression, which an error in the size
        of a contribution does not change. The average over the missing ones divides
        log-odds, and their errors.
        """
        patterns, pattern_of = missing_patterns(codes, self.moments)
        given = self.given(patterns)
        k = np.arange(given.variance.shape[1])
        weights = given.observed[:, :, None, None] * np.eye(len(k))
        out = np.zeros((codes.n_rows, len(base)))
        _gather_weighted(codes, table, weights, pattern_of, out)
        open_variance = self.model.link_scale**2 * given.variance[:, k, k]
        return base + out / (1.0 + np.pi / 8.0 * open_variance)[pattern_of]

    def expected_changes(self, observed: Flags, proba: Floats) -> Floats:
        r"""Return by how much each missing column would change an answer, (columns, K).

        Once a column is known, log-odds move by a normal amount. Its variance v is what
        the column explains of the missing sum, divided as the average over the other
        columns divides it. The log-odds l are stretched to
        :math:`l \sqrt{1 + \pi v / 8}`, so that the probabilities after the move have
        that of today as their mean.
        Returned is their mean absolute distance from it, 0 for observed columns.
        ``observed`` (columns,) and ``proba`` (K,) are of one row.
        """
        schema, moments = self.model.schema, self.moments
        known = with_interactions(schema, observed[None])[0]
        kept = known.astype(np.float64)
        information = (kept @ self._information).reshape(self._rank, self._rank)
        spread = np.linalg.inv(information + np.eye(self._rank))
        total = moments.loadings[~known].sum(axis=0)
        variance = self.given(observed[None]).variance[0]
        out = np.zeros((schema.n_columns, len(proba)))
        # Of the log-odds of each class against the others, by channel.
        channels = len(self.start)
        odds = np.eye(channels) - proba[None, :] if channels > 1 else np.ones((1, 1))
        left = 1.0 - proba if channels > 1 else np.ones(1)
        odds = odds / np.maximum(left, 1e-12)[:, None]
        scale = self.model.link_scale
        for j in np.flatnonzero(~observed).tolist():
            after = observed.copy()
            after[j] = True
            new = with_interactions(schema, after[None])[0] & ~known
            loadings = moments.loadings[new].reshape(-1, self._rank)
            noise = moments.noise[new].ravel()
            noisy = np.tile(np.eye(channels), (int(new.sum()), 1)) * noise[:, None]
            shared = loadings @ spread @ total.T + noisy
            of_column = loadings @ spread @ loadings.T + np.diag(noise)
            explained = shared.T @ np.linalg.solve(of_column, shared)
            moved = np.einsum("kc,cd,kd->k", odds, explained, odds)
            still = np.einsum("kc,cd,kd->k", odds, variance - explained, odds)
            moved = scale**2 * moved / (1.0 + np.pi / 8.0 * scale**2 * still.clip(0.0))
            out[j] = _mean_distance(proba, moved.clip(0.0))
        return out

    def _plain_proba(self, codes: Codes, power: Floats) -> Floats:
        """Return posterior probabilities of naive Bayes, shape (n, K)."""
        scores = np.zeros((codes.n_rows, self.model.n_classes))
        plain = self.moments.plain
        for block in codes.blocks:
            if block.features[0] < codes.schema.n_columns:
                rows = block.table_rows(codes.offsets)
                table = plain if rows is None else plain[rows]
                scoring.gather(block.values, block.starts(codes.offsets), table, scores)
        scores *= power
        with np.errstate(divide="ignore"):
            scores += np.log(self.moments.base_rates)
        scoring.softmax(scores)
        return scores

    @cached_property
    def _nothing(self) -> Floats:
        """Covariance of all contributions, shape (1, C, C)."""
        return self.given(np.isinf(self.moments.value_odds)[None, :]).variance

    def balanced_shift(self) -> Floats:
        """Return the shift with which a row without any cell has the base rates."""
        rates, scale = self.moments.base_rates, self.model.link_scale
        shift, first = np.zeros(len(self.start)), np.zeros(1, dtype=np.int64)
        if not (rates > 0.0).all():
            return shift
        target, roots = contrast(np.log(rates)), _roots(scale**2 * self._nothing)
        for _ in range(_MAX_STEPS):
            mean = scale * (self.start + shift)[None, :]
            proba = _mean_softmax(mean, roots, first)
            step = (target - contrast(np.log(proba[0]))) / scale
            shift = shift + step
            if np.abs(step).max() < _SHIFT_TOLERANCE:
                break
        return shift


def _mean_distance(proba: Floats, variance: Floats) -> Floats:
    """Return the mean absolute change of probabilities whose log-odds move."""
    p = proba.clip(1e-12, 1.0 - 1e-12)
    odds = (np.log(p) - np.log1p(-p)) * np.sqrt(1.0 + np.pi / 8.0 * variance)
    moves = np.outer([*_EIGHTHS, *(-x for x in _EIGHTHS)], np.sqrt(variance))
    return np.asarray(np.abs(scipy.special.expit(odds + moves) - p).mean(axis=0))


def balanced(model: NBModel, moments: Marginal, base_rates: Floats) -> Marginal:
    """Return moments with base rates, and the shift that makes these the answer."""
    moments = replace(moments, base_rates=base_rates)
    return replace(moments, shift=PartialRows(model, moments).balanced_shift())


def edited_moments(old: NBModel, new: NBModel, j: int, counts: Counts) -> Marginal:
    """Return moments after the contributions of one attribute were changed.

    New contributions are regressed on the old ones, through which alone they are taken
    to depend on other attributes. What plain naive Bayes has of the column is left out:
    who edits a column does not want its counts.
    """
    moments, codes = old.marginal, slice(*old.schema.offsets[j : j + 2])
    assert moments is not None
    loadings, noise, means = (
        values.copy() for values in (moments.loadings, moments.noise, moments.means)
    )
    plain, of_plain = moments.plain.copy(), np.arange(len(moments.plain_noise)) != j
    plain[codes] = 0.0
    least = _EDITED_NOISE * noise.mean()
    if old.schema.features[j].is_coded:
        seen = counts.by_code[codes].sum(axis=1)
        if moments.value_odds[: old.schema.n_columns].size > j:
            seen[0] *= moments.value_odds[j] > 0.0
        shares = (seen / max(seen.sum(), 1e-300))[:, None]
        before = contrast(old.table[codes]) - means[j]
        after = contrast(new.table[codes])
        means[j] = (shares * after).sum(axis=0)
        after = after - means[j]
        slope = (
            np.linalg.pinv(before.T @ (shares * before)) @ before.T @ (shares * after)
        )
        variance = (shares * after**2).sum(axis=0)
    else:
        g = old.schema.gaussian.tolist().index(j)
        was, now = (np.abs(m.gaussian.factors[g]).sum() for m in (old, new))
        factor = now / was if was > 0.0 else 0.0
        slope, variance = (
            factor * np.eye(means.shape[1]),
            factor**2 * ((loadings[j] ** 2).sum(axis=1) + noise[j]),
        )
        means[j] *= factor
    loadings[j] = slope.T @ loadings[j]
    noise[j] = np.maximum(variance - (loadings[j] ** 2).sum(axis=1), least)
    changed = replace(
        moments,
        **{"loadings": loadings, "noise": noise, "means": means, "plain": plain},
        plain_loadings=np.where(of_plain[:, None], moments.plain_loadings, 0.0),
        plain_noise=np.where(of_plain, moments.plain_noise, 0.0),
    )
    return balanced(new, changed, moments.base_rates)


def _gather_weighted(
    codes: Codes, table: Floats, weights: Floats, pattern_of: Ints, out: Floats
) -> None:
    """Add up table rows (V, C) times weights (P, d, C, C) of a pattern: out (n, C)."""
    for block in codes.blocks:
        rows = block.table_rows(codes.offsets)
        scoring.gather_weighted(
            *(block.values, block.starts(codes.offsets), block.features, pattern_of),
            *(weights, table if rows is None else table[rows], out),
        )


def contrast(values: Floats) -> Floats:
    """Return what matters of numbers by class (..., K): channels (..., C).

    Examples
    --------
    >>> contrast(np.array([1.0, 3.0])), contrast(np.array([1.0, 2.0, 6.0]))
    (array([2.]), array([-2., -1.,  3.]))
    """
    if values.shape[-1] == 2:
        return values[..., 1:] - values[..., :1]
    return np.asarray(values - values.mean(axis=-1, keepdims=True))


def _by_class(channels: Floats, n_classes: int) -> Floats:
    """Return numbers by class whose channels these are, with a mean of zero."""
    if n_classes != 2:
        return channels
    return np.concatenate([-0.5 * channels, 0.5 * channels], axis=-1)


def observed_columns(codes: Codes, columns: Flags) -> Flags:
    """Return which columns of rows are observed, shape (n, columns).

    A cell is not observed if it is missing, or a category that training never saw, in
    one of ``columns``.
    """
    schema = codes.schema
    observed = np.ones((codes.n_rows, schema.n_columns), dtype=bool)
    for j in np.flatnonzero(columns).tolist():
        if schema.features[j].is_coded:
            observed[:, j] = codes.column(j) != 0
    for g, j in enumerate(schema.gaussian.tolist()):
        if columns[j]:
            observed[:, j] = ~np.isnan(codes.number_column(g))
    return observed


def with_interactions(schema: TableSchema, observed: Flags) -> Flags:
    """Return flags of attributes: an interaction is observed if both its columns are.

    Shapes (n, columns) and (n, d).
    """
    sides = [
        [side.feature for side in feature.sides]
        for feature in schema.features[schema.n_columns :]
    ]
    if not sides:
        return observed
    first, second = np.array(sides).T
    return np.concatenate([observed, observed[:, first] & observed[:, second]], axis=1)


def missing_patterns(codes: Codes, moments: Marginal) -> tuple[Flags, Ints]:
    """Return the different sets of observed columns, and which of them each row has."""
    is_averaged, odds = moments.columns, moments.value_odds
    observed, pattern_of = _distinct(observed_columns(codes, np.isfinite(odds)))
    missing = ~observed
    share = missing[:, is_averaged].mean(axis=1, keepdims=True)
    return ~(missing & (odds < share)), pattern_of


def _distinct(observed: Flags) -> tuple[Flags, Ints]:
    """Return distinct rows of flags, and which of them each row is."""
    packed = np.packbits(observed, axis=1)
    width = -(-packed.shape[1] // 8)
    words = np.zeros((len(packed), 8 * width), dtype=np.uint8)
    words[:, : packed.shape[1]] = packed
    keys: Any = words.view(np.uint64)
    if (keys == keys[:1]).all():
        return observed[:1], np.zeros(len(keys), dtype=np.int64)
    keys = keys[:, 0] if width == 1 else keys
    axis = None if width == 1 else 0
    _, first, pattern_of = np.unique(
        keys, return_index=True, return_inverse=True, axis=axis
    )
    return observed[first], pattern_of.reshape(-1)


def unobserved_rows(schema: TableSchema, columns: Flags) -> Flags:
    """Return which rows of a table by code belong to cells that are not observed."""
    out = np.zeros(schema.n_codes, dtype=bool)
    for j, feature in enumerate(schema.features):
        codes = slice(schema.offsets[j], schema.offsets[j + 1])
        if feature.sides:
            first, second = (
                (np.arange(side.n_groups) == 0) & columns[side.feature]
                for side in feature.sides
            )
            out[codes] = (first[:, None] | second).ravel()
        elif feature.is_coded:
            out[codes.start] = columns[j]
    return out


def expected_softmax(mean: Floats, variance: Floats, pattern_of: Ints) -> Floats:
    """Return the mean of the softmax of normal scores: means (n, C) to (n, K).

    The covariance of a row is one of ``variance`` (P, C, C).
    """
    return _mean_softmax(mean, _roots(variance), pattern_of)


def _roots(variance: Floats) -> Floats:
    """Return the symmetric square roots of covariances, shape (P, C, C)."""
    if variance.shape[1] == 1:
        return np.sqrt(np.maximum(variance, 0.0))
    values, vectors = np.linalg.eigh(variance)
    spread = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    return np.ascontiguousarray(spread @ vectors.transpose(0, 2, 1))


def _mean_softmax(mean: Floats, roots: Floats, pattern_of: Ints) -> Floats:
    """Return the mean of the softmax, given square roots of the covariances."""
    n_rows, n_channels = mean.shape
    if n_channels == 1:
        out = np.zeros((n_rows, 2))
        nodes, weights = np.array(HERMITE).T.copy()
        deviations = roots[:, 0, 0][pattern_of]
        scoring.mean_logistic(mean[:, 0].copy(), deviations, nodes, weights, out)
        return out
    out = np.zeros((n_rows, n_channels))
    points = np.array(radii(n_channels))
    scoring.mean_softmax(mean, roots, pattern_of, points, out)
    return out
