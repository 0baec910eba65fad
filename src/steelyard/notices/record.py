"""What a model keeps of its training rows, to compare later rows with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steelyard.notices.check import RowHashes
    from steelyard.notices.notice import Notice
    from steelyard.table.ranges import NumberRange


@dataclass(frozen=True)
class RowSummary:
    """What is computed from the training rows, or from a sample of them."""

    notices: list[Notice] = field(default_factory=list)
    row_hashes: RowHashes | None = None
    score_ranges: list[NumberRange] | None = None


class LazySummary:
    """A summary of rows that is computed when it is first needed.

    Pickles and copies have the summary instead of the rows, which are released once it
    is computed. Threads that ask at the same time compute the same.
    """

    _value = RowSummary()

    def __init__(self, compute: Callable[[], RowSummary] | None = None) -> None:
        self._compute = compute

    @property
    def value(self) -> RowSummary:
        """The summary."""
        compute = self._compute
        if compute is not None:
            self._value = compute()
            # Only now: another thread may be between the two lines above.
            self._compute = None
        return self._value

    def __getstate__(self) -> dict[str, Any]:
        return {"_value": self.value, "_compute": None}

    @classmethod
    def of(cls, value: RowSummary) -> LazySummary:
        """Return what is computed already."""
        lazy = cls()
        lazy._value = value
        return lazy

    def without_scores(self) -> LazySummary:
        """Return the summary of a model whose scores are others."""
        return LazySummary(lambda: replace(self.value, score_ranges=None))


@dataclass(frozen=True, eq=False)
class TrainingRecord:
    """What the training rows were: how they were read, labels, ranges, quality.

    What takes a look at the rows, ``notices``, ``row_hashes`` and ``score_ranges``, is
    computed when it is first asked for, and when the model is saved or pickled.
    """

    reading: Mapping[str, Any] = field(default_factory=dict)
    """How files were read: marks of text files, the sheet of a spreadsheet, words for
    missing cells, orders of dates and units by column. Empty for tables. Of ``steelyard
    fit`` also the ``file``, its ``sha256``, the ``title`` of the page, and the
    ``positive`` class, which page and card are about."""

    labels: Mapping[str, str] = field(default_factory=dict)
    """Names of columns in words, from files of SPSS and Stata."""

    ranges: list[NumberRange | None] = field(default_factory=list)
    """Ends, quartiles and a histogram of the numbers of each column, None for columns
    of categories or without numbers."""

    cut_points_are_exact: bool | None = None
    """Whether cut points are those that all numbers give when sorted, of rows that were
    read in chunks; false if columns have too many numbers to be read as a whole."""

    quality: list[dict[str, Any]] = field(default_factory=list)
    """Measures of held-out rows, if ``steelyard fit`` made them: accuracy, log-loss,
    folds, rows and date."""

    summary: LazySummary = field(default_factory=LazySummary, repr=False)

    @property
    def notices(self) -> list[Notice]:
        """What is suspicious about the rows, worst first."""
        return self.summary.value.notices

    @property
    def row_hashes(self) -> RowHashes | None:
        """A few hashes of rows, by which ``check`` recognises them.

        None for rows that were never in memory together.
        """
        return self.summary.value.row_hashes

    @property
    def score_ranges(self) -> list[NumberRange] | None:
        """Ranges of the rows' log-odds, of the second class of two or of each of more.

        Of an edited model they are those before its edits. None if rows were only
        counted.
        """
        return self.summary.value.score_ranges

    def with_notices(self, notices: list[Notice]) -> TrainingRecord:
        """Return the record with other notices."""
        summary = replace(self.summary.value, notices=notices)
        return replace(self, summary=LazySummary.of(summary))

    def without_scores(self) -> TrainingRecord:
        """Return the record of a model whose scores are others."""
        return replace(self, summary=self.summary.without_scores())
