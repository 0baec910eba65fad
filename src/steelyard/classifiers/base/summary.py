"""What later rows are compared with, computed from training rows when it is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from steelyard._common.threads import one_blas_thread
from steelyard.fitting.problem import Fit
from steelyard.model.table_model import held_out_ranges, sampled_ranges
from steelyard.model.training import TrainingSet
from steelyard.notices.notice import Notice, arranged
from steelyard.notices.record import LazySummary, RowSummary
from steelyard.notices.training import notices_at_fit
from steelyard.proba.counts import Counts
from steelyard.table.summary.whole_column import NumberRange


def row_summary(
    training: TrainingSet, fit: Fit, counts: Counts, more: Sequence[Notice]
) -> LazySummary:
    """Return the summary of training rows, computed later where few rows give it.

    Other rows are neither copied nor kept: their summary is computed at once.
    """
    # The notices have them: a table that is encoded later has no suspects.
    suspects = training.encoder.__dict__.pop("suspects", {})
    scores = held_out_ranges(training, fit.held_out)
    few = training.small_copy()
    facts = counts, training.n_rows, suspects, more, fit.model, scores
    if few is None:
        return LazySummary.of(_summary(training, *facts))
    return LazySummary(partial(_summary, few, *facts))


def _summary(
    training: TrainingSet,
    counts: Counts,
    n_rows: int,
    suspects: Mapping[int, str],
    more: Sequence[Notice],
    model: Any,
    scores: list[NumberRange] | None,
) -> RowSummary:
    # Bits must not depend on how many threads multiply matrices.
    with one_blas_thread():
        notices, hashes = notices_at_fit(training, counts, n_rows, suspects)
        if scores is None:
            scores = sampled_ranges(model, training)
    return RowSummary(arranged([*notices, *more]), hashes, scores)
