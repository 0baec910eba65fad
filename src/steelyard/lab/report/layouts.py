"""Tables of what was measured and tested, before they are text or LaTeX."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from steelyard._common.text import counted, number
from steelyard.lab.report.summaries import ALPHA, Measure, MeasureSummary, p_text
from steelyard.lab.results import Results
from steelyard.lab.statistics import holm

# Lines of the table of failures, of which the rest is counted, and characters of each.
_MAX_FAILURES, _MAX_ERROR_LENGTH = 200, 300


@dataclass(frozen=True)
class Cell:
    """One cell: what is written, the number behind it, and whether it is the best."""

    text: str
    value: float | None = None
    best: bool = False


@dataclass(frozen=True)
class ReportTable:
    """A table with a title, notes, a foot, and texts at the left."""

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

    def without(self, column: int) -> ReportTable:
        """Leave out a column."""
        header = [*self.header[:column], *self.header[column + 1 :]]
        rows, foot = (
            [[*line[:column], *line[column + 1 :]] for line in lines]
            for lines in (self.rows, self.foot)
        )
        return replace(self, header=header, rows=rows, foot=foot)


def method_table(
    group: Sequence[MeasureSummary], main: str, control: str | None
) -> ReportTable:
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
            f"{ALPHA:g}.",
        ]
    header = ["method", "protocol", "rank", "w/t/l", *(m.title for m in measures)]
    title = f"Methods, by average rank of {measures[0].title}"
    table = ReportTable(title, [*header, "failed"], rows, notes=notes, n_texts=2)
    some_failed = any(row[-1].text for row in rows)
    return table if some_failed else table.without(len(header))


def dataset_table(summary: MeasureSummary, control: str | None = None) -> ReportTable:
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
    return ReportTable(title, ["data set", *summary.methods], rows, foot, notes)


def leak_tables(group: Sequence[MeasureSummary], metric: str) -> list[ReportTable]:
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


def _leak_table(published: MeasureSummary, honest: MeasureSummary) -> ReportTable:
    measure = honest.measure
    datasets = [name for name in published.datasets if name in honest.datasets]
    methods = [name for name in published.methods if name in honest.methods]
    higher, lower = (
        s.whole_means[[s.datasets.index(name) for name in datasets]][
            :, [s.methods.index(name) for name in methods]
        ]
        for s in (published, honest)
    )
    difference = higher - lower
    by_dataset = [_finite_mean(row) for row in difference]
    by_method = [_finite_mean(column) for column in difference.T]

    def line(name: str, values: Iterable[float], average: float) -> list[Cell]:
        figures = (float(value) for value in [*values, average])
        return [Cell(name), *(Cell(measure.text(x, True), x) for x in figures)]

    return ReportTable(
        f"What the leak is worth, {measure.title}: protocol {published.protocol} minus "
        "honest",
        ["data set", *methods, "average"],
        [*map(line, datasets, difference, by_dataset)],
        [line("average", by_method, _finite_mean(np.array(by_dataset)))],
        [
            "Under published protocols missing values are filled in and numbers cut on "
            "the whole data set, test rows included. Where a paper also cut numbers in "
            "another way, that is part of the difference."
        ],
    )


def failure_table(results: Results) -> ReportTable:
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
    return ReportTable(
        f"Failed fits: {failures.total()} of {len(results.rows)}",
        ["data set", "method", "protocol", "error", "fits"],
        rows[:_MAX_FAILURES],
        notes=[f"{left} more lines are left out."] if left > 0 else [],
        n_texts=4,
    )


def _finite_mean(values: NDArray[np.float64]) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else np.nan


def _method_rows(
    ranked: MeasureSummary,
    by_measure: Mapping[str, MeasureSummary],
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


def _mean_cell(summary: MeasureSummary, i: int, j: int) -> Cell:
    """Return the average over folds of a data set and a method."""
    mean = float(summary.means[i, j])
    text = summary.measure.text(mean)
    text += "*" if summary.partial[i, j] else ""
    return Cell(text, mean, bool(summary.best[i, j]))


def _average_cells(summary: MeasureSummary) -> list[Cell]:
    """Return the averages over data sets, the best of them marked."""
    values, measure = summary.averages, summary.measure
    gains = measure.sign * values
    top = np.max(gains, where=np.isfinite(values), initial=-np.inf)
    return [
        Cell(measure.text(x), float(x), bool(gain == top))
        for x, gain in zip(values, gains, strict=True)
    ]


def _rank(summary: MeasureSummary, j: int) -> Cell:
    rank = float(summary.ranks[j])
    best = bool(np.isfinite(rank) and rank == np.nanmin(summary.ranks))
    return Cell(number(rank), rank, best)


def _tally(summary: MeasureSummary, j: int, against: int) -> Cell:
    if j == against:
        return Cell("", 0.0)
    counts = summary.win_tie_loss
    return Cell(counts.text(j, against), counts.lead(j, against))


def _scope(summary: MeasureSummary) -> str:
    complete = len(summary.complete)
    left_out = len(summary.datasets) - complete
    addition = f"; {left_out} with missing folds left out" if left_out else ""
    sets = counted(complete, "data set")
    return f"{summary.protocol}: averages and ranks are over {sets}{addition}."


def win_tie_loss_table(summary: MeasureSummary) -> ReportTable:
    """Lay out wins, ties and losses of the method of the row against the column."""
    counts = summary.win_tie_loss

    def cell(a: int, b: int) -> Cell:
        return Cell(counts.text(a, b), counts.lead(a, b))

    notes = [
        "Of the row against the column, by the corrected resampled t-test, two-tailed, "
        f"at {ALPHA:g} on each data set."
    ]
    untested = int(counts.untested.max(initial=0))
    if untested:
        notes.append(
            f"Up to {untested} data sets of a pair have fewer than two folds in common "
            "and are not counted."
        )
    if summary.partial.any():
        notes += ["Where folds are missing, those that both methods have are tested."]
    return _pairs(summary, "Wins/ties/losses", cell, Cell("", 0.0), notes)


def wilcoxon_table(summary: MeasureSummary) -> ReportTable:
    """Lay out p of Wilcoxon's test, marked by direction and significance."""
    test = summary.wilcoxon

    def cell(a: int, b: int) -> Cell:
        p, adjusted = test.p_values[a, b], test.adjusted[a, b]
        plus, minus = test.r_plus[a, b], test.r_plus[b, a]
        sign = int(np.sign(plus - minus))
        stars = int(p <= ALPHA) + int(adjusted <= ALPHA)
        return Cell(
            f"{'=+-'[sign]} {p_text(p)}{'*' * stars}",
            float(sign * (1 - p)),
            best=stars == 2 and sign > 0,
        )

    notes = [
        f"p on {len(summary.complete)} data sets, two-tailed; + where the row is "
        f"better, - where the column is. * p at most {ALPHA:g}; ** also "
        "after Holm's correction for all pairs. Differences of zero are shared "
        "between both sums."
    ]
    return _pairs(summary, "Wilcoxon signed ranks", cell, Cell("", np.nan), notes)


def control_table(summary: MeasureSummary, control: str) -> ReportTable:
    """Lay out how one method does against each of the others over data sets.

    p is that of Wilcoxon's signed ranks, corrected by Holm for as many comparisons as
    there are other methods.
    """
    place = summary.position(control)
    sign = summary.measure.sign
    leads = sign * (summary.scores[:, [place]] - summary.scores)
    others = [j for j in range(len(summary.methods)) if j != place]
    p_values = summary.wilcoxon.p_values[place]
    adjusted = dict(zip(others, holm(p_values[others]), strict=True))
    rows = []
    for j in sorted(others, key=lambda j: leads[:, j].mean()):
        lead, signs = float(leads[:, j].mean()), np.sign(leads[:, j]).tolist()
        better, equal, worse = (signs.count(s) for s in (1, 0, -1))
        p, corrected = float(p_values[j]), float(adjusted[j])
        row = [
            Cell(summary.methods[j]),
            Cell(summary.measure.text(sign * lead, True), lead),
            Cell(f"{better}/{equal}/{worse}", better - worse),
            Cell(p_text(p), p),
            Cell(p_text(corrected), corrected, best=corrected <= ALPHA),
        ]
        rows.append(row)
    return ReportTable(
        f"{control} against each method, {_subject(summary)}",
        ["method", f"{control} less method", "better/equal/worse", "p", "p by Holm"],
        rows,
        notes=[
            f"Averages and Wilcoxon's signed ranks on {len(leads)} data sets, "
            f"two-tailed; in bold where p by Holm is at most {ALPHA:g}."
        ],
    )


def _pairs(
    summary: MeasureSummary,
    title: str,
    cell: Callable[[int, int], Cell],
    itself: Cell,
    notes: list[str],
) -> ReportTable:
    """Lay out a cell for each pair of methods, and one for a method with itself."""
    everyone = range(len(summary.methods))
    rows = [
        [Cell(summary.methods[a])]
        + [itself if a == b else cell(a, b) for b in everyone]
        for a in everyone
    ]
    header = ["method", *summary.methods]
    return ReportTable(f"{title}, {_subject(summary)}", header, rows, notes=notes)


def _subject(summary: MeasureSummary) -> str:
    return f"{summary.measure.title}; protocol {summary.protocol}"
