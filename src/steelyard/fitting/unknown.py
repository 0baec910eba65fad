"""Moments of contributions over the training rows, for answers to partial rows.

They are taken from the rows, or from a sample of a long table by content, so that they
do not depend on the order of rows. See `steelyard.model.marginal`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg import eigh
from sklearn.utils import check_random_state

from steelyard._common.arrays import Floats
from steelyard.fitting.class_shares import log_ratios
from steelyard.fitting.default.sampling import sample_rows
from steelyard.model.marginal import (
    Flags,
    Marginal,
    balanced,
    contrast,
    observed_columns,
    with_interactions,
)
from steelyard.model.table_model import NBModel
from steelyard.model.training import TrainingSet
from steelyard.proba.counts import Counts

# Factors of the covariance: as many as have this share of the variance, up to a number
# of factors, and of loadings of a file; some factors are free, up to more loadings.
_MIN_VARIANCE = 0.999
_MAX_FACTORS, _MAX_LOADINGS = 128, 30_000
_FREE_FACTORS, _MAX_FREE_LOADINGS = 32, 100_000

# Factors of what columns say alone.
_PLAIN_FACTORS = 4

# Rows of the sample, and cells of its contributions.
_MIN_ROWS, _MAX_ROWS, _MAX_CELLS = 1_000, 5_000, 4_000_000

# Added to the variance beyond the factors, as a share of the mean variance.
_RIDGE = 1e-3

# Contributions of densities have no bounds: beyond these log-odds all are alike.
_MAX_SIZE = 30.0

# Variances of log-odds up to this are rounding.
_ROUNDING = 1e-24

# Digits of the numbers that are kept, and decimals of log-probabilities.
_DIGITS, _DECIMALS = 4, 3


def marginal_of(
    model: NBModel,
    training: TrainingSet,
    log_prior: Floats,
    random_state: Any,
    constrained: Collection[int] = (),
) -> Marginal | None:
    """Return the moments of a fitted sum; None if its columns do not matter at all.

    A column in which all cells are missing is left out, and none to average over.
    Constrained columns say nothing of others, so that their curves keep their shape
    whatever else is missing.
    """
    n_numbers = len(model.schema) * model.n_classes
    limit = int(np.clip(_MAX_CELLS // n_numbers, _MIN_ROWS, _MAX_ROWS))
    rows = sample_rows(training, limit, check_random_state(random_state))
    sample = training.in_memory(rows, with_columns=False)
    missing = _missing_weights(training.given_counts)
    counts = training.given_counts
    plain = np.round(log_ratios(counts), _DECIMALS) + 0.0
    for j in constrained:
        plain[slice(*model.schema.offsets[j : j + 2])] = 0.0
    with np.errstate(divide="ignore"):
        odds = missing / (counts.total - missing)

    def with_values(is_value: Flags) -> Marginal | None:
        value_odds = np.where(is_value, odds, 0.0)
        moments = _moments(model, sample, value_odds, plain, constrained)
        rates = np.exp(log_prior)
        return None if moments is None else balanced(model, moments, rates)

    marginal = with_values(np.isinf(odds))
    if marginal is None or not (odds[np.isfinite(odds)] > 0.0).any():
        return marginal
    is_value = _values(replace(model, marginal=marginal), sample) | np.isinf(odds)
    is_any = (is_value & np.isfinite(odds)).any()
    return with_values(is_value) if is_any else marginal


def _missing_weights(counts: Counts) -> Floats:
    """Return the weight of the missing cells of each column, shape (columns,)."""
    schema = counts.schema
    missing = np.zeros(len(schema))
    for j in schema.coded.tolist():
        missing[j] = counts.by_code[schema.offsets[j]].sum()
    missing[schema.gaussian] = counts.total - counts.moments.weight.sum(axis=1)
    return missing[: schema.n_columns]


def _values(model: NBModel, sample: TrainingSet) -> Flags:
    """Return the columns of which a missing cell is a value, shape (columns,).

    Weights were learned from rows in which such a cell adds nothing: where it has a
    meaning, or is missing together with others, that answers these rows better. The
    rows with a missing cell in a column decide, by their log-loss in both ways.
    """
    assert model.marginal is not None
    observed = observed_columns(sample.codes, model.marginal.columns)
    rows = np.flatnonzero(~observed.all(axis=1))
    codes, labels = sample.codes.take(rows), sample.labels[rows].astype(np.int64)
    truth = np.arange(len(rows)), labels
    gain = model.summed.log_proba(codes)[truth] - model.log_proba(codes)[truth]
    if sample.weights is not None:
        gain = gain * sample.weights[rows]
    missing = ~observed[rows]
    return np.asarray(gain @ missing > 0.0)


def _moments(
    model: NBModel,
    sample: TrainingSet,
    value_odds: Floats,
    plain: Floats,
    constrained: Collection[int],
) -> Marginal | None:
    """Return moments of the contributions of a sample of rows."""
    added, means, variance = _relative(model, sample, value_odds == 0.0)
    if not (variance > _ROUNDING).any():
        return None
    loadings = _significant(_loadings(added), of_all=True)
    loadings.reshape(*means.shape, -1)[list(constrained)] = 0.0
    rest = np.maximum(variance - (loadings**2).sum(axis=1), 0.0)
    noise = _significant(rest + _RIDGE * variance.mean())
    plain_loadings, plain_noise = _plain_factors(sample, plain, value_odds == 0.0)
    return Marginal(
        value_odds=value_odds,
        means=means,
        loadings=loadings.reshape(*means.shape, -1),
        noise=noise.reshape(means.shape),
        base_rates=np.full(model.n_classes, 1.0 / model.n_classes),
        plain=plain,
        plain_loadings=plain_loadings,
        plain_noise=plain_noise,
        shift=np.zeros(means.shape[1]),
        log_ratio=np.zeros(model.n_classes),
    )


def _relative(
    model: NBModel, sample: TrainingSet, columns: Flags
) -> tuple[Floats, Floats, Floats]:
    """Return contributions relative to their means, these, and variances.

    Shapes (n, d * C), (d, C) and (d * C,). Rows are multiplied by the square root of
    their share of the total weight, so that products of columns are covariances.
    Missing cells of ``columns`` are as if they were like the others.
    """
    codes, schema, shares = sample.codes, model.schema, _shares(sample)
    observed = with_interactions(schema, observed_columns(codes, columns))
    size = max(1, _MAX_CELLS // (len(schema) * model.n_classes))
    pieces = [
        contrast(model.contributions(codes.part(slice(low, low + size))))
        for low in range(0, sample.n_rows, size)
    ]
    added = np.clip(np.concatenate(pieces), -_MAX_SIZE, _MAX_SIZE)
    seen = shares @ observed
    seen = np.where(seen > 0.0, seen, 1.0)[:, None]
    means = np.einsum("n,nt,ntc->tc", shares, observed, added) / seen
    added = np.where(observed[:, :, None], added - means, 0.0)
    added *= np.sqrt(shares)[:, None, None] / np.sqrt(seen)
    flat = added.reshape(sample.n_rows, -1)
    return flat, means, np.einsum("ij,ij->j", flat, flat)


def _shares(sample: TrainingSet) -> Floats:
    """Return the share of the total weight of each row, shape (n,)."""
    weights = np.ones(sample.n_rows) if sample.weights is None else sample.weights
    return np.asarray(weights / weights.sum())


def _plain_factors(
    sample: TrainingSet, plain: Floats, columns: Flags
) -> tuple[Floats, Floats]:
    """Return factors of the covariance within classes of what columns say alone.

    Covariances are added up over classes. Shapes (columns, q) and (columns,).
    """
    codes, offsets = sample.codes, sample.schema.offsets
    order = np.argsort(sample.labels, kind="stable")
    labels = sample.labels[order]
    first = np.flatnonzero(np.diff(labels, prepend=labels[0] + 1))
    sizes = np.diff(first, append=len(labels))
    observed = observed_columns(codes, columns)
    shares = (_shares(sample)[:, None] * observed)[order]
    of_class = np.maximum(np.add.reduceat(shares, first), 1e-300)
    n_columns = observed.shape[1]
    coded = [j for j in sample.schema.coded.tolist() if j < n_columns]
    rows = [offsets[j] + codes.column(j)[order].astype(np.int64) for j in coded]
    covariance = np.zeros((n_columns, n_columns))
    for channel in contrast(plain).T:
        added = np.zeros(shares.shape)
        for j, of_column in zip(coded, rows, strict=True):
            added[:, j] = channel[of_column]
        means = np.add.reduceat(shares * added, first) / of_class
        added = (added - np.repeat(means, sizes, axis=0)) * np.sqrt(shares)
        covariance += added.T @ added
    seen = np.sqrt(np.maximum(shares.sum(axis=0), 1e-300))
    covariance /= np.outer(seen, seen)
    last = n_columns - 1
    first_factor = max(n_columns - _PLAIN_FACTORS, 0)
    values, vectors = eigh(covariance, subset_by_index=[first_factor, last])
    loadings = _significant(vectors * np.sqrt(values.clip(0.0)), of_all=True)
    rest = np.maximum(np.diag(covariance) - (loadings**2).sum(axis=1), 0.0)
    return loadings, _significant(rest)


def _loadings(added: Floats) -> Floats:
    """Return the principal factors of the covariance of contributions, (p, r)."""
    n_rows, size = added.shape
    is_long = n_rows >= size
    products = added.T @ added if is_long else added @ added.T
    free = np.clip(_MAX_FREE_LOADINGS // size, 1, _FREE_FACTORS)
    limit = np.clip(_MAX_LOADINGS // size, free, _MAX_FACTORS)
    last, total = len(products) - 1, np.trace(products)
    first = max(last + 1 - int(limit), 0)
    values, vectors = eigh(products, subset_by_index=[first, last])
    # The largest first.
    values, vectors = values[::-1].clip(0.0), vectors[:, ::-1]
    rank = int((values.cumsum() < _MIN_VARIANCE * total).sum()) + 1
    values, vectors = values[:rank], vectors[:, :rank]
    return np.asarray(vectors * np.sqrt(values) if is_long else added.T @ vectors)


def _significant(values: Floats, of_all: bool = False) -> Floats:
    """Round to some digits, each number by itself or by the largest of all."""
    sizes = np.abs(values).max() if of_all else np.abs(values)
    exponents = np.floor(np.log10(np.where(sizes > 0.0, sizes, 1.0)))
    # Quotients of whole numbers and powers of ten are written with these digits.
    powers = 10.0 ** (_DIGITS - 1.0 - exponents)
    # A zero has no sign, in a file as well.
    return np.ascontiguousarray(np.round(values * powers) / powers + 0.0)
