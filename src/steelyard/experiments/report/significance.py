"""Tables of what was tested, before they are text, Markdown, LaTeX or HTML."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple

import numpy as np

from steelyard.experiments.report.summary import Summary
from steelyard.experiments.report.tables import Cell, Table
from steelyard.experiments.statistics import holm

_SMALLEST_SHOWN_P = 0.0005


def win_tie_loss_table(summary: Summary) -> Table:
    """Lay out wins, ties and losses of the method of the row against the column."""
    counts = summary.win_tie_loss
    size = max(1, len(summary.datasets))

    def cell(a: int, b: int) -> Cell:
        lead = counts.lead(a, b)
        return Cell(counts.text(a, b), lead, shade=lead / size)

    notes = [
        "Of the row against the column, by the corrected resampled t-test, two-tailed, "
        f"at {summary.alpha:g} on each data set."
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


def wilcoxon_table(summary: Summary) -> Table:
    """Lay out p of Wilcoxon's test, marked by direction and significance."""
    test = summary.wilcoxon

    def cell(a: int, b: int) -> Cell:
        p, adjusted = test.p_values[a, b], test.adjusted[a, b]
        plus, minus = test.r_plus[a, b], test.r_plus[b, a]
        sign = int(np.sign(plus - minus))
        stars = int(p <= summary.alpha) + int(adjusted <= summary.alpha)
        return Cell(
            f"{'=+-'[sign]} {_p_text(p)}{'*' * stars}",
            float(sign * (1 - p)),
            best=stars == 2 and sign > 0,
            note=f"R+ {plus:g}, R- {minus:g}, p {p:.4g}, after Holm {adjusted:.4g}",
            shade=0.5 * sign * stars,
        )

    zeros = "shared between both sums" if test.zeros == "split" else "left out"
    notes = [
        f"p on {len(summary.complete)} data sets, two-tailed; + where the row is "
        f"better, - where the column is. * p at most {summary.alpha:g}; ** also "
        f"after Holm's correction for all pairs. Differences of zero are {zeros}."
    ]
    return _pairs(summary, "Wilcoxon signed ranks", cell, Cell("", np.nan), notes)


def control_table(summary: Summary, control: str) -> Table:
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
        lead = float(leads[:, j].mean())
        better, worse = int((leads[:, j] > 0).sum()), int((leads[:, j] < 0).sum())
        equal = len(leads) - better - worse
        p, corrected = float(p_values[j]), float(adjusted[j])
        rows.append(
            [
                Cell(summary.methods[j]),
                Cell(summary.measure.text(sign * lead, True), lead),
                Cell(f"{better}/{equal}/{worse}", better - worse),
                Cell(_p_text(p), p),
                Cell(_p_text(corrected), corrected, best=corrected <= summary.alpha),
            ]
        )
    return Table(
        f"{control} against each method, {_subject(summary)}",
        ["method", f"{control} less method", "better/equal/worse", "p", "p by Holm"],
        rows,
        notes=[
            f"Averages and Wilcoxon's signed ranks on {len(leads)} data sets, "
            f"two-tailed; in bold where p by Holm is at most {summary.alpha:g}."
        ],
    )


def bayesian_table(summary: Summary, control: str | None = None) -> Table:
    """Lay out probabilities that one method is better than, or equal to, the others."""
    against = summary.control(control)
    name = summary.methods[against]
    tests = zip(summary.methods, map(astuple, summary.bayesian(against)), strict=True)
    rows = [
        [Cell(method)]
        + [Cell(f"{x:.3f}", x, best=x >= 1 - summary.alpha) for x in shares]
        for method, shares in tests
        if method != name
    ]
    rope = summary.measure.text(summary.measure.rope)
    return Table(
        f"{name} against each method, {_subject(summary)}",
        ["method", f"{name} is better", "practically equal", "method is better"],
        rows,
        notes=[
            f"Bayesian signed-rank test on {len(summary.complete)} data sets; "
            f"practically equal: within {rope}. Probabilities from "
            f"{1 - summary.alpha:g} are in bold."
        ],
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


def _pairs(
    summary: Summary,
    title: str,
    cell: Callable[[int, int], Cell],
    itself: Cell,
    notes: list[str],
) -> Table:
    """Lay out a cell for each pair of methods, and one for a method with itself."""
    everyone = range(len(summary.methods))
    rows = [
        [Cell(summary.methods[a])]
        + [itself if a == b else cell(a, b) for b in everyone]
        for a in everyone
    ]
    header = ["method", *summary.methods]
    return Table(f"{title}, {_subject(summary)}", header, rows, notes=notes)


def _subject(summary: Summary) -> str:
    return f"{summary.measure.title}; protocol {summary.protocol}"


def _p_text(p: float) -> str:
    return f"{p:.3f}" if p >= _SMALLEST_SHOWN_P else "<.001"
