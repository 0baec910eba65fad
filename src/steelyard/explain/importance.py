"""Importance of attributes from training counts: mean absolute evidence."""

from __future__ import annotations

import numpy as np

from steelyard._common.arrays import Floats
from steelyard.explain.views import (
    column_mean,
    column_scores,
    evidence_of,
    typical_numbers,
)
from steelyard.model.table_model import NBModel, numbers_by_class
from steelyard.proba.counts import Counts

# Numbers that stand for the rows of one class in one bin.
_PER_BIN = 8


def mean_evidence(
    model: NBModel, contributions: Floats, counts: Floats | None
) -> Floats | None:
    """Mean absolute evidence over the training rows, from their counts."""
    if counts is None or not counts.sum() > 0:
        return None
    share = counts.sum(axis=1) / counts.sum()
    evidence = np.abs(evidence_of(contributions)) * model.link_scale
    return np.asarray(share @ evidence)


def mean_density(model: NBModel, counts: Counts | None, j: int) -> Floats | None:
    """Mean absolute evidence of the numbers that stand for the rows."""
    if counts is None or not counts.total > 0:
        return None
    mean, known = column_mean(model, [j]), 0.0
    out = np.zeros(model.n_classes)
    for weight, shares, numbers in numbers_by_class(counts, j):
        evidence = evidence_of(model.density_scores(j, numbers) - mean)
        out += weight * (shares @ np.abs(evidence))
        known += weight
    out += (counts.total - known) * np.abs(evidence_of(mean))
    return out * model.link_scale / counts.total


def joint_importance(
    model: NBModel, counts: Counts | None, views: list[int], edges: Floats
) -> Floats | None:
    """Mean absolute evidence of a column with several views.

    Counts tell how many rows of each class are in each bin of the finest view. Where
    in the bin they are is left to the fitted density of the class or, without one, is
    taken to be anywhere alike.
    """
    schema = model.schema
    if counts is None or not counts.total > 0:
        return None
    coded = [j for j in views if schema.features[j].is_coded]
    densities = [j for j in views if j not in coded]
    cuts = np.array([-np.inf, np.inf])
    mass = counts.moments.weight[np.isin(schema.gaussian, densities[:1])]
    if coded:
        finest = max(coded, key=lambda j: schema.features[j].n_codes)
        cuts = np.array([-np.inf, *schema.features[finest].edges, np.inf])
        first = schema.offsets[finest] + 1
        mass = counts.by_code[first : first + len(cuts) - 1]
    out = np.zeros(model.n_classes)
    for c in range(model.n_classes):
        for low, high, rows in zip(cuts[:-1], cuts[1:], mass[:, c], strict=True):
            if not rows > 0.0:
                continue
            if densities:
                table = model.density(densities[0])
                mean, deviation = float(table.mean[0, c]), float(table.deviation[0, c])
                numbers = _within(low, high, mean, deviation)
            else:
                numbers = typical_numbers(edges)
                numbers = numbers[(numbers > low) & (numbers <= high)]
            evidence = np.abs(evidence_of(column_scores(model, views, numbers)))
            out += rows * evidence.mean(axis=0)
    if schema.features[views[0]].missing_is_value:
        rows = counts.by_code[schema.offsets[coded[0] + 1] - 1].sum()
        last = [model.table[schema.offsets[j + 1] - 1] for j in coded]
        out += rows * np.abs(evidence_of(np.sum(last, axis=0)))
    else:
        # Missing cells that are skipped add nothing, where others add the mean.
        rows = counts.total - mass.sum()
        out += rows * np.abs(evidence_of(column_mean(model, views)))
    return np.asarray(out * model.link_scale / counts.total)


def _within(low: float, high: float, mean: float, deviation: float) -> Floats:
    """Return evenly spread quantiles of a normal distribution cut to an interval."""
    from scipy.special import ndtr, ndtri

    a, b = ndtr((low - mean) / deviation), ndtr((high - mean) / deviation)
    share = (np.arange(_PER_BIN) + 0.5) / _PER_BIN
    numbers = mean + deviation * ndtri(a + share * (b - a))
    # Far from the mean all the mass is at the nearer end.
    inside = np.clip(numbers, np.nextafter(low, np.inf), high)
    near = high if np.isfinite(high) else np.nextafter(low, np.inf)
    return np.where(np.isfinite(inside), inside, near)
