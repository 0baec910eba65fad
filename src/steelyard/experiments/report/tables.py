"""Tables of what was measured, before they are text, Markdown, LaTeX or HTML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from steelyard._common.text import counted, number
from steelyard.experiments.report.summary import Measure, Summary
from steelyard.experiments.results import Results

# Lines of the table of failures, of which the rest is counted, and characters of each.
_MAX_FAILURES, _MAX_ERROR_LENGTH = 200, 300


@dataclass(frozen=True)
class Cell:
    """One cell: what is written, and the number it is sorted by, if not by its text.

    The note is said where there is room, as when a pointer rests on the cell. The shade
    goes from -1, clearly worse, to 1, clearly better.
    """

    text: str
    value: float | None = None
    best: bool = False
    note: str = ""
    shade: float = 0.0


@dataclass(frozen=True)
class Table:
    """A table with a title, notes, a foot that is not sorted, and texts at the left."""

    title: str
    header: list[str]
    rows: list[list[Cell]]
    foot: list[list[Cell]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    n_texts: int = 1

    @property
    def lines(self) -> list[list[Cell]]:
        """Rows and foot."""
        return [*self.rows, *self.foot]

    def without(self, column: int) -> Table:
        """Leave out a column."""
        header = [*self.header[:column], *self.header[column + 1 :]]
        rows, foot = (
            [[*line[:column], *line[column + 1 :]] for line in lines]
            for lines in (self.rows, self.foot)
        )
        return replace(self, header=header, rows=rows, foot=foot)


def method_table(group: Sequence[Summary], main: str, control: str | None) -> Table:
    """Lay out averages of all measures, a line for each method and protocol.

    Lines go by the average rank of the main measure. Methods are tested against the
    control, or that of best rank if None.
    """
    measures = list({s.measure.name: s.measure for s in group}.values())
    measures.sort(key=lambda measure: measure.name != main)
    rows, notes = [], []
    for ranked in (summary for summary in group if summary.measure.name == main):
        same = {s.measure.name: s for s in group if s.protocol == ranked.protocol}
        against = ranked.control(control)
        rows += _method_rows(ranked, same, measures, against)
        notes += [
            _scope(ranked),
            f"{ranked.protocol}: wins/ties/losses are of each method against "
            f"{ranked.methods[against]}, by the corrected resampled t-test at "
            f"{ranked.alpha:g}.",
        ]
    header = ["method", "protocol", "rank", "w/t/l", *(m.title for m in measures)]
    title = f"Methods, by average rank of {measures[0].title}"
    table = Table(title, [*header, "failed"], rows, notes=notes, n_texts=2)
    some_failed = any(row[-1].text for row in rows)
    return table if some_failed else table.without(len(header))


def dataset_table(summary: Summary, control: str | None = None) -> Table:
    """Lay out one measure, a line for each data set and a column for each method.

    Averages, ranks and wins/ties/losses against the control, or the method of best rank
    if None, are at the foot.
    """
    measure, everyone = summary.measure, range(len(summary.methods))
    rows = [
        [Cell(dataset), *(_mean_cell(summary, i, j) for j in everyone)]
        for i, dataset in enumerate(summary.datasets)
    ]
    against = summary.control(control)
    foot = [
        [Cell("average"), *_average_cells(summary)],
        [Cell("average rank"), *(_rank(summary, j) for j in everyone)],
        [
            Cell(f"w/t/l against {summary.methods[against]}"),
            *(_tally(summary, j, against) for j in everyone),
        ],
    ]
    title = f"{measure.title}, {measure.direction}; protocol {summary.protocol}"
    notes = [_scope(summary)]
    if summary.partial.any():
        notes.append("* some folds are missing or failed.")
    return Table(title, ["data set", *summary.methods], rows, foot, notes)


def leak_tables(group: Sequence[Summary], metric: str) -> list[Table]:
    """Lay out what each published protocol adds to the honest one, cell by cell.

    There is a table for each protocol whose name begins with ``published`` and that
    shares a data set and a method with the honest one.
    """
    by_protocol = {s.protocol: s for s in group if s.measure.name == metric}
    honest = by_protocol.pop("honest", None)
    if honest is None:
        return []
    return [
        _leak_table(published, honest)
        for name, published in by_protocol.items()
        if name.startswith("published")
        and set(published.datasets) & set(honest.datasets)
        and set(published.methods) & set(honest.methods)
    ]


def _leak_table(published: Summary, honest: Summary) -> Table:
    measure = honest.measure
    datasets = [name for name in published.datasets if name in honest.datasets]
    methods = [name for name in published.methods if name in honest.methods]
    higher, lower = (
        [
            [s.whole_means[s.row(dataset), s.position(method)] for method in methods]
            for dataset in datasets
        ]
        for s in (published, honest)
    )
    difference = np.array(higher) - np.array(lower)
    by_dataset = [_known_mean(row) for row in difference]
    by_method = [_known_mean(column) for column in difference.T]

    def line(name: str, values: Iterable[float], average: float) -> list[Cell]:
        figures = (float(value) for value in [*values, average])
        return [Cell(name), *(Cell(measure.text(x, True), x) for x in figures)]

    return Table(
        f"What the leak is worth, {measure.title}: protocol {published.protocol} minus "
        "honest",
        ["data set", *methods, "average"],
        [*map(line, datasets, difference, by_dataset)],
        [line("average", by_method, _known_mean(np.array(by_dataset)))],
        [
            "Under published protocols missing values are filled in and numbers cut on "
            "the whole data set, test rows included. Where a paper also cut numbers in "
            "another way, that is part of the difference."
        ],
    )


def failure_table(results: Results) -> Table:
    """Lay out failed fits, a line for each data set, method and message."""
    names = itemgetter("dataset", "method", "protocol")
    failures = Counter(
        (*names(row), " ".join(str(row.get("error") or "no message").split()))
        for row in results.failures
    )
    rows = [
        [*(Cell(text[:_MAX_ERROR_LENGTH]) for text in key), Cell(str(n), n)]
        for key, n in failures.items()
    ]
    left = len(rows) - _MAX_FAILURES
    return Table(
        f"Failed fits: {failures.total()} of {len(results.rows)}",
        ["data set", "method", "protocol", "error", "fits"],
        rows[:_MAX_FAILURES],
        notes=[f"{left} more lines are left out."] if left > 0 else [],
        n_texts=4,
    )


def _known_mean(values: NDArray[np.float64]) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else np.nan


def _method_rows(
    ranked: Summary,
    by_measure: Mapping[str, Summary],
    measures: Sequence[Measure],
    against: int,
) -> list[list[Cell]]:
    """Return a line for each method under one protocol, by rank."""
    columns = [
        _average_cells(by_measure[measure.name])
        if measure.name in by_measure
        else [Cell("-", np.nan)] * len(ranked.methods)
        for measure in measures
    ]
    failed = ranked.failed.sum(axis=0).tolist()
    return [
        [
            Cell(ranked.methods[j]),
            Cell(ranked.protocol),
            _rank(ranked, j),
            _tally(ranked, int(j), against),
            *(column[j] for column in columns),
            Cell(str(failed[j] or ""), failed[j]),
        ]
        for j in np.argsort(np.nan_to_num(ranked.ranks, nan=np.inf), kind="stable")
    ]


def _mean_cell(summary: Summary, i: int, j: int) -> Cell:
    """Return the average over folds of a data set and a method."""
    mean = float(summary.means[i, j])
    text = summary.measure.text(mean)
    deviation = summary.measure.text(summary.spreads[i, j])
    note = f"± {deviation} over {summary.counts[i, j]} folds"
    if summary.partial[i, j]:
        text += "*"
        note += f", {summary.failed[i, j]} failed"
    return Cell(text, mean, bool(summary.best[i, j]), note)


def _average_cells(summary: Summary) -> list[Cell]:
    """Return the averages over data sets, the best of them marked."""
    values, measure = summary.averages, summary.measure
    gains = measure.sign * values
    top = np.max(gains, where=np.isfinite(values), initial=-np.inf)
    return [
        Cell(measure.text(x), float(x), bool(gain == top))
        for x, gain in zip(values, gains, strict=True)
    ]


def _rank(summary: Summary, j: int) -> Cell:
    rank = float(summary.ranks[j])
    best = bool(np.isfinite(rank) and rank == np.nanmin(summary.ranks))
    return Cell(number(rank), rank, best)


def _tally(summary: Summary, j: int, against: int) -> Cell:
    if j == against:
        return Cell("", 0.0)
    counts = summary.win_tie_loss
    return Cell(counts.text(j, against), counts.lead(j, against))


def _scope(summary: Summary) -> str:
    complete = len(summary.complete)
    left_out = len(summary.datasets) - complete
    more = f"; {left_out} with missing folds left out" if left_out else ""
    sets = counted(complete, "data set")
    return f"{summary.protocol}: averages and ranks are over {sets}{more}."
