"""Tables of a comparison, before they are text, Markdown, LaTeX or HTML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from steelyard.experiments.report.summary import Leak, Summary
from steelyard.experiments.results import Results
from steelyard.experiments.statistics.ranks import holm

__all__ = [
    "Cell",
    "Table",
    "bayesian_table",
    "control_table",
    "dataset_table",
    "failure_table",
    "friedman_sentence",
    "leak_table",
    "method_table",
    "wilcoxon_table",
    "win_tie_loss_table",
]

MOST_FAILURES = 200
"""Lines of the table of failures; the rest is counted."""


@dataclass(frozen=True)
class Cell:
    """One cell: what is written, and what it is sorted by."""

    text: str
    value: float | None = None
    """A number to sort by; the text if None."""

    best: bool = False
    note: str = ""
    """What to say where there is room, as when a pointer rests on it."""

    shade: float = 0.0
    """From -1, clearly worse, to 1, clearly better."""


@dataclass(frozen=True)
class Table:
    """A table with a title, notes, and a foot that is not sorted."""

    title: str
    header: list[str]
    rows: list[list[Cell]]
    foot: list[list[Cell]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    n_texts: int = 1
    """How many columns at the left hold text."""


def method_table(group: Sequence[Summary], main: str, control: str | None) -> Table:
    """Lay out averages of all measures, a line for each method and protocol.

    Parameters
    ----------
    group : sequence of Summary
        Measures under one or several protocols.
    main : str
        The measure that is ranked and tested.
    control : str or None
        The method that others are tested against; that of best rank if None.

    Returns
    -------
    Table
        Sorted by protocol, then average rank.
    """
    protocols = list(dict.fromkeys(summary.protocol for summary in group))
    measures = list(
        {summary.measure.name: summary.measure for summary in group}.values()
    )
    measures.sort(key=lambda measure: measure.name != main)
    title = next(measure.title for measure in measures if measure.name == main)
    rows, notes = [], []
    for protocol in protocols:
        ours = {s.measure.name: s for s in group if s.protocol == protocol}
        ranked = ours.get(main)
        if ranked is None:
            continue
        against = ranked.leader if control is None else ranked.position(control)
        tops = {
            name: _top(summary.averages, summary.measure.larger_is_better)
            for name, summary in ours.items()
        }
        for j in np.argsort(np.nan_to_num(ranked.ranks, nan=np.inf), kind="stable"):
            method = ranked.methods[j]
            row = [Cell(method), Cell(protocol), _rank(ranked, j)]
            row.append(_tally(ranked, int(j), against))
            for measure in measures:
                summary = ours.get(measure.name)
                row.append(
                    Cell("-", np.nan)
                    if summary is None
                    else Cell(
                        measure.text(summary.averages[j]),
                        float(summary.averages[j]),
                        best=bool(summary.averages[j] == tops[measure.name]),
                    )
                )
            failed = int(ranked.failed[:, j].sum())
            row.append(Cell(str(failed) if failed else "", failed))
            rows.append(row)
        notes += _scope(ranked)
        notes.append(
            f"{protocol}: wins/ties/losses are of each method against "
            f"{ranked.methods[against]}, by the corrected resampled t-test at "
            f"{ranked.alpha:g}."
        )
    header = ["method", "protocol", "rank", "w/t/l", *(m.title for m in measures)]
    table = Table(
        f"Methods, by average rank of {title}",
        [*header, "failed"],
        rows,
        notes=notes,
        n_texts=2,
    )
    return table if any(row[-1].text for row in rows) else _without_last(table)


def dataset_table(
    summary: Summary, control: str | None = None, spread: bool = False
) -> Table:
    """Lay out one measure, a line for each data set and a column for each method.

    Parameters
    ----------
    summary : Summary
        The measure under one protocol.
    control : str, default=None
        The method that others are tested against; that of best rank if None.
    spread : bool, default=False
        Whether to write the standard deviation over folds as well.

    Returns
    -------
    Table
        With averages, ranks and wins/ties/losses at the foot.
    """
    measure = summary.measure
    rows = []
    for i, dataset in enumerate(summary.datasets):
        row = [Cell(dataset)]
        for j in range(len(summary.methods)):
            text, value = measure.text(summary.means[i, j]), summary.means[i, j]
            deviation = measure.text(summary.spreads[i, j])
            if spread and deviation != "-":
                text += f" ± {deviation}"
            note = f"± {deviation} over {summary.counts[i, j]} folds"
            if summary.partial[i, j]:
                text += "*"
                note += f", {summary.failed[i, j]} failed"
            row.append(Cell(text, float(value), bool(summary.best[i, j]), note))
        rows.append(row)
    top = _top(summary.averages, measure.larger_is_better)
    against = summary.leader if control is None else summary.position(control)
    everyone = range(len(summary.methods))
    foot = [
        [
            Cell("average"),
            *(
                Cell(measure.text(x), float(x), bool(x == top))
                for x in summary.averages
            ),
        ],
        [Cell("average rank"), *(_rank(summary, j) for j in everyone)],
        [
            Cell(f"w/t/l against {summary.methods[against]}"),
            *(_tally(summary, j, against) for j in everyone),
        ],
    ]
    title = f"{measure.title}, {measure.direction}; protocol {summary.protocol}"
    notes = _scope(summary)
    if summary.partial.any():
        notes.append("* some folds are missing or failed.")
    return Table(title, ["data set", *summary.methods], rows, foot, notes)


def win_tie_loss_table(summary: Summary) -> Table:
    """Lay out wins, ties and losses of the method of the row against the column."""
    found = summary.win_tie_loss
    size = max(1, len(summary.datasets))
    k = len(summary.methods)
    rows = [
        [
            Cell(summary.methods[a]),
            *(
                Cell("", 0.0)
                if a == b
                else Cell(
                    found.text(a, b),
                    int(found.wins[a, b] - found.losses[a, b]),
                    shade=(found.wins[a, b] - found.losses[a, b]) / size,
                )
                for b in range(k)
            ),
        ]
        for a in range(k)
    ]
    notes = [
        "Of the row against the column, by the corrected resampled t-test, two-tailed, "
        f"at {summary.alpha:g} on each data set."
    ]
    untested = int(found.untested.max(initial=0))
    if untested:
        notes.append(
            f"Up to {untested} data sets of a pair have fewer than two folds in common "
            "and are not counted."
        )
    if summary.partial.any():
        notes.append(
            "Where folds are missing, those that both methods have are tested."
        )
    title = f"Wins/ties/losses, {summary.measure.title}; protocol {summary.protocol}"
    return Table(title, ["method", *summary.methods], rows, notes=notes)


def wilcoxon_table(summary: Summary) -> Table:
    """Lay out p of Wilcoxon's test, marked by direction and significance."""
    found = summary.wilcoxon
    k = len(summary.methods)
    rows = []
    for a in range(k):
        row = [Cell(summary.methods[a])]
        for b in range(k):
            if a == b:
                row.append(Cell("", np.nan))
                continue
            p, adjusted = found.p_values[a, b], found.adjusted[a, b]
            lead = found.r_plus[a, b] - found.r_plus[b, a]
            stars = int(p <= summary.alpha) + int(adjusted <= summary.alpha)
            sign = "+" if lead > 0 else "-" if lead < 0 else "="
            row.append(
                Cell(
                    f"{sign} {_p_text(p)}{'*' * stars}",
                    float(np.sign(lead) * (1 - p)),
                    best=bool(stars == 2 and lead > 0),
                    note=f"R+ {found.r_plus[a, b]:g}, R- {found.r_plus[b, a]:g}, "
                    f"p {p:.4g}, after Holm {adjusted:.4g}",
                    shade=float(np.sign(lead) * (0.5 * stars)),
                )
            )
        rows.append(row)
    zeros = "shared between both sums" if found.zeros == "split" else "left out"
    notes = [
        f"p on {len(summary.complete)} data sets, two-tailed; + where the row is "
        f"better, - where the column is. * p at most {summary.alpha:g}; ** also "
        f"after Holm's correction for all pairs. Differences of zero are {zeros}."
    ]
    title = (
        f"Wilcoxon signed ranks, {summary.measure.title}; protocol {summary.protocol}"
    )
    return Table(title, ["method", *summary.methods], rows, notes=notes)


def control_table(summary: Summary, control: str) -> Table:
    """Lay out how one method does against each of the others over data sets.

    p is that of Wilcoxon's signed ranks, corrected by Holm for as many comparisons as
    there are other methods.
    """
    own = summary.position(control)
    sign = 1.0 if summary.measure.larger_is_better else -1.0
    leads = sign * (summary.scores[:, [own]] - summary.scores)
    others = [j for j in range(len(summary.methods)) if j != own]
    p_values = summary.wilcoxon.p_values[own]
    adjusted = dict(zip(others, holm(p_values[others]), strict=True))
    rows = []
    for j in sorted(others, key=lambda j: leads[:, j].mean()):
        lead = float(leads[:, j].mean())
        better, worse = int((leads[:, j] > 0).sum()), int((leads[:, j] < 0).sum())
        equal = len(leads) - better - worse
        rows.append(
            [
                Cell(summary.methods[j]),
                Cell(summary.measure.text(sign * lead, signed=True), lead),
                Cell(f"{better}/{equal}/{worse}", better - worse),
                Cell(_p_text(p_values[j]), float(p_values[j])),
                Cell(
                    _p_text(adjusted[j]),
                    float(adjusted[j]),
                    best=bool(adjusted[j] <= summary.alpha),
                ),
            ]
        )
    return Table(
        f"{control} against each method, {summary.measure.title}; "
        f"protocol {summary.protocol}",
        ["method", f"{control} less method", "better/equal/worse", "p", "p by Holm"],
        rows,
        notes=[
            f"Averages and Wilcoxon's signed ranks on {len(leads)} data sets, "
            f"two-tailed; in bold where p by Holm is at most {summary.alpha:g}."
        ],
    )


def bayesian_table(summary: Summary, control: str | None = None) -> Table:
    """Lay out probabilities that one method is better than, or equal to, the others."""
    against = summary.leader if control is None else summary.position(control)
    name = summary.methods[against]
    rows = []
    for method, test in zip(summary.methods, summary.bayesian(against), strict=True):
        if method != name:
            shares = (test.first, test.rope, test.second)
            rows.append(
                [Cell(method)]
                + [Cell(f"{x:.3f}", x, best=x >= 1 - summary.alpha) for x in shares]
            )
    rope = summary.measure.text(summary.measure.rope)
    return Table(
        f"{name} against each method, {summary.measure.title}; "
        f"protocol {summary.protocol}",
        ["method", f"{name} is better", "practically equal", "method is better"],
        rows,
        notes=[
            f"Bayesian signed-rank test on {len(summary.complete)} data sets; "
            f"practically equal: within {rope}. Probabilities from "
            f"{1 - summary.alpha:g} are in bold."
        ],
    )


def leak_table(leak: Leak) -> Table:
    """Lay out what whole-data preparation adds to each cell."""
    measure = leak.measure
    rows = [
        [
            Cell(dataset),
            *(Cell(measure.text(x, signed=True), float(x)) for x in row),
            Cell(measure.text(average, signed=True), float(average)),
        ]
        for dataset, row, average in zip(
            leak.datasets, leak.difference, leak.averages[:-1], strict=True
        )
    ]
    columns = [column[np.isfinite(column)] for column in leak.difference.T]
    means = [float(c.mean()) if len(c) else np.nan for c in columns]
    foot = [
        Cell("average"),
        *(Cell(measure.text(x, signed=True), x) for x in means),
        Cell(measure.text(leak.averages[-1], signed=True), float(leak.averages[-1])),
    ]
    return Table(
        f"What the leak is worth, {measure.title}: protocol {leak.protocol} minus "
        "honest",
        ["data set", *leak.methods, "average"],
        rows,
        [foot],
        [
            "Under published protocols missing cells are filled in and numbers cut on "
            "the whole data set, test rows included. Where a paper also cut numbers in "
            "another way, that is part of the difference."
        ],
    )


def failure_table(results: Results) -> Table:
    """Lay out failed fits, a line for each data set, method and message."""
    found = Counter(
        (
            row["dataset"],
            row["method"],
            row["protocol"],
            " ".join(str(row.get("error") or "no message").split()),
        )
        for row in results.failures
    )
    rows = [
        [*(Cell(text) for text in key[:3]), Cell(key[3][:300]), Cell(str(n), n)]
        for key, n in found.items()
    ]
    left = len(rows) - MOST_FAILURES
    return Table(
        f"Failed fits: {sum(found.values())} of {len(results.rows)}",
        ["data set", "method", "protocol", "error", "fits"],
        rows[:MOST_FAILURES],
        notes=[f"{left} more lines are left out."] if left > 0 else [],
        n_texts=4,
    )


def friedman_sentence(summary: Summary) -> str:
    """Say what Friedman's test and Nemenyi's critical difference are."""
    test = summary.friedman
    verdict = "differ" if test.f_p_value <= summary.alpha else "do not differ"
    return (
        f"Friedman's test on {test.n_datasets} data sets, {summary.measure.title}, "
        f"protocol {summary.protocol}: chi-squared {test.chi2:.2f} "
        f"(p {_p_text(test.p_value)}), Iman-Davenport F {test.f_statistic:.2f} "
        f"(p {_p_text(test.f_p_value)}). The methods {verdict} significantly at "
        f"{summary.alpha:g}. Nemenyi's critical difference of average ranks is "
        f"{summary.critical_difference:.2f}."
    )


def _rank(summary: Summary, j: int) -> Cell:
    rank = float(summary.ranks[j])
    best = bool(np.isfinite(rank) and rank == np.nanmin(summary.ranks))
    return Cell(f"{rank:.2f}" if np.isfinite(rank) else "-", rank, best)


def _tally(summary: Summary, j: int, against: int) -> Cell:
    found = summary.win_tie_loss
    if j == against:
        return Cell("", 0.0)
    return Cell(
        found.text(j, against),
        int(found.wins[j, against] - found.losses[j, against]),
    )


def _top(values: np.ndarray, larger_is_better: bool) -> float:
    if not np.isfinite(values).any():
        return np.nan
    return float(np.nanmax(values) if larger_is_better else np.nanmin(values))


def _scope(summary: Summary) -> list[str]:
    n, complete = len(summary.datasets), len(summary.complete)
    sets = "data set" if complete == 1 else "data sets"
    text = f"{summary.protocol}: averages and ranks are over {complete} {sets}"
    if complete < n:
        text += f"; {n - complete} with missing folds left out"
    return [f"{text}."]


def _without_last(table: Table) -> Table:
    rows = [row[:-1] for row in table.rows]
    return replace(table, header=table.header[:-1], rows=rows)


def _p_text(p: float) -> str:
    return f"{p:.3f}" if p >= 0.0005 else "<.001"
