"""What later rows are compared with, computed from training rows when it is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from steelyard._common.arrays import Floats
from steelyard._common.threads import one_blas_thread
from steelyard.fitting.fit import Fit
from steelyard.model.base import Model, softmax
from steelyard.model.table_model import NBModel, log_odds
from steelyard.model.training import TrainingSet
from steelyard.notices.notice import Notice, arranged
from steelyard.notices.record import LazySummary, RowSummary
from steelyard.proba.counts import Counts
from steelyard.table.ranges import NumberRange, range_of

ScoreRanges = list[NumberRange] | None


def row_summary(
    training: TrainingSet, fit: Fit, counts: Counts, further: Sequence[Notice]
) -> LazySummary:
    """Return the summary of training rows, computed later if few rows give it.

    Other rows are neither copied nor kept: their summary is computed at once.
    """
    # The notices have them: a table that is encoded later has no suspects.
    suspects = training.encoder.__dict__.pop("suspects", {})
    ranges = None
    # Held-out rows are better than those of training, whose log-odds are more extreme;
    # posteriors with other class weights are not.
    has_same_weights = training.earlier is None and training.class_factors is None
    if fit.held_out is not None and has_same_weights:
        ranges = _score_ranges(*fit.held_out)
    few = training.small_copy()
    facts = counts, training.n_rows, suspects, further, fit.model, ranges
    if few is None:
        return LazySummary.of(_summary(training, *facts))
    return LazySummary(partial(_summary, few, *facts))


def _summary(
    training: TrainingSet,
    counts: Counts,
    n_rows: int,
    suspects: Mapping[int, str],
    further: Sequence[Notice],
    model: Model,
    ranges: ScoreRanges,
) -> RowSummary:
    # A fit does not wait for what only notices need.
    from steelyard.notices.curves import opposed_notices
    from steelyard.notices.training import notices_at_fit

    # Bits must not depend on how many threads multiply matrices.
    with one_blas_thread():
        notices, hashes = notices_at_fit(training, counts, n_rows, suspects)
        if isinstance(model, NBModel):
            notices += opposed_notices(model, counts)
        # Rows that were only counted have no scores, and in lazy models each training
        # row is among its neighbours.
        if ranges is None and training.earlier is None and not model.is_lazy:
            sample = training.sample
            # In NumPy: a fit of few rows is not to wait for a compiler.
            scores = model.scores(sample.codes, training.n_jobs)
            proba = softmax(model.link_scale * scores)
            ranges = _score_ranges(proba, sample.sample_weight)
    return RowSummary(arranged([*notices, *further]), hashes, ranges)


def _score_ranges(proba: Floats, weights: Floats | None) -> ScoreRanges:
    """Return the ranges of the log-odds of rows, None unless all have a histogram."""
    ranges = [range_of(scores, weights) for scores in log_odds(proba).T]
    complete = [span for span in ranges if span is not None and span.histogram]
    return complete if len(complete) == len(ranges) else None
