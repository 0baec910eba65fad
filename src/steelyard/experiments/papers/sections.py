"""Kinds of section: accuracy and rank tables, wins, Wilcoxon's test, curves.

A kind takes a run and what a document says of its section; ``partial`` makes a
section's description of it. A section like no other is a function in the module of its
document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.experiments.papers.engine import Forms, Run
from steelyard.experiments.papers.plots import draw_curves
from steelyard.experiments.papers.report import Picture, Section, Verdict
from steelyard.experiments.papers.tables import (
    Pair,
    averaged,
    figures_table,
    mean,
    side_by_side,
    table,
)
from steelyard.experiments.results import Results
from steelyard.experiments.statistics.ranks import Friedman, average_ranks, friedman
from steelyard.experiments.statistics.two_methods import (
    WilcoxonTest,
    Zeros,
    wilcoxon_signed_rank,
    win_tie_loss,
)

__all__ = [
    "Panels",
    "Tests",
    "accuracy_table",
    "average_near",
    "curve",
    "fold_accuracies",
    "rank_table",
    "wilcoxon_table",
    "win_tie_loss_table",
    "within_or_better",
]

# ---------------------------------------------------------------------- accuracy table


def accuracy_table(
    run: Run,
    *,
    title: str,
    printed: str,
    forms: Forms,
    body: Sequence[str | Forms | Callable[[Run], str]],
    verdicts: Sequence[Callable[[Run, str, Sequence[Pair]], Iterable[Verdict]]],
    intro: str = "",
    summary: Mapping[str, Callable[[Run, Pair], str]] | None = None,
    first: str = "data set",
) -> Section:
    """Show averages of printed and measured columns, if there is an intro; then a body.

    ``summary`` has further columns of the table of averages. The body has texts,
    functions that return one, and columns to be shown by data set. ``verdicts`` are
    functions of the run, the name of the table and its columns.
    """
    pairs = run.pairs(printed, forms)
    names = list(pairs[0].measured)
    parts = []
    if intro:
        more = summary or {}
        header = " | ".join(["method | published | measured | difference", *more])
        cells = [[cell(run, pair) for cell in more.values()] for pair in pairs]
        rows = [[p.title, p.summary, *c] for p, c in zip(pairs, cells, strict=True)]
        parts = [intro.format(n=len(names)), table(header, rows)]
    for part in body:
        if isinstance(part, Mapping):
            parts.append(side_by_side(names, run.pairs(printed, part), first))
        else:
            parts.append(part(run) if callable(part) else part)
    name = title.partition(":")[0]
    judged = [verdict for judge in verdicts for verdict in judge(run, name, pairs)]
    return Section.of(title, *parts, verdicts=judged)


def average_near(
    run: Run,
    name: str,
    pairs: Iterable[Pair],
    tolerance: Mapping[str, float],
    otherwise: float,
    notes: Mapping[str, str],
) -> Iterable[Verdict]:
    """Judge whether the average of each column is near the printed one."""
    for pair in pairs:
        allowed = tolerance.get(pair.title, otherwise)
        what = f"average of {pair.title}, within {allowed}"
        gap = pair.ours - pair.theirs
        texts = f"{pair.theirs:.2f}", f"{pair.ours:.2f} ({gap:+.2f})"
        reached = run.judged(abs(gap) <= allowed)
        yield Verdict(name, what, *texts, reached, notes.get(pair.title, ""))


def within_or_better(
    run: Run,
    name: str,
    pairs: Iterable[Pair],
    columns: Sequence[str],
    tolerance: float,
    where: str = "",
    note: str = "",
) -> Iterable[Verdict]:
    """Judge whether columns are near print, or better, on three of four data sets."""
    for pair in (pair for pair in pairs if pair.title in columns):
        n = len(pair.gaps)
        reached = sum(gap >= -tolerance for gap in pair.gaps.values())
        what = f"{pair.title} within {tolerance} or better{where}"
        measured = f"{reached} of {n}, average {pair.ours:.2f}"
        enough = run.judged(reached >= 0.75 * n)
        yield Verdict(name, what, f"average {pair.theirs:.2f}", measured, enough, note)


# -------------------------------------------------------------------------- rank table


def fold_accuracies(results: Results, methods: Sequence[str]) -> NDArray[np.float64]:
    """Return accuracies by data set, method and fold."""
    return np.array(
        [
            [results.values("accuracy", data, name) for name in methods]
            for data in results.datasets
        ]
    )


def rank_table(
    run: Run,
    *,
    title: str,
    part: str,
    methods: Sequence[str],
    shown: Sequence[str],
    printed: str,
    counted: Sequence[str],
    intro: str,
) -> Section:
    """Show averages, average ranks and significant wins of the first method.

    The printed table has a row per method, and ``counted`` are its columns of
    significant wins and losses of the first. All methods ``shown`` have a column of
    accuracies; those in ``methods`` are ranked.
    """
    results, columns = run.results(part), run.accuracies(part)
    scores = np.array([list(columns[name].values()) for name in methods]).T
    folds = fold_accuracies(results, methods)
    tally = win_tie_loss(folds, np.full(len(folds), 1 / 9))
    test = friedman(scores)
    cells = [run.printed(printed)[name] for name in methods]
    # Published ones, then measured ones.
    averages = [[float(row["average_accuracy"]) for row in cells]]
    averages.append([mean(columns[name].values()) for name in methods])
    ranks = [[float(row["average_rank"]) for row in cells]]
    ranks.append(average_ranks(scores).tolist())
    rows = []
    for j, name in enumerate(methods):
        pairs = [f"{kind[j]:.2f}" for kind in averages]
        pairs += [f"{kind[0] - kind[j]:+.2f}" for kind in averages]
        pairs += [f"{kind[j]:.2f}" for kind in ranks]
        wins = " / ".join(cells[j][column] for column in counted)
        wins += f" | {tally.wins[0, j]} / {tally.losses[0, j]}"
        rows.append([name, *pairs, wins if j else " | "])
    header = "method | average published | measured | {0}'s lead published | measured"
    header += " | rank published | measured | {0} significantly better / worse, "
    return Section.of(
        title,
        intro.format(n=len(scores), repeats=results.settings["repeats"]),
        table(f"{header}published | measured".format(methods[0]), rows),
        figures_table({name: averaged(columns[name]) for name in shown}),
        verdicts=_rank_verdicts(run, title, methods, averages[1], ranks, test),
    )


def _rank_verdicts(
    run: Run,
    title: str,
    methods: Sequence[str],
    averages: Sequence[float],
    ranks: Sequence[Sequence[float]],
    test: Friedman,
) -> Iterable[Verdict]:
    table = title.partition(":")[0]
    theirs, ours = (
        [methods[j] for j in np.argsort(kind, kind="stable")] for kind in ranks
    )
    what = f"{methods[0]} has the best average and rank"
    measured = f"average {averages[0]:.2f}, rank {ranks[1][0]:.2f}"
    best = run.judged(ours[0] == methods[0] and averages[0] == max(averages))
    yield Verdict(table, what, "yes", measured, best)
    orders = " < ".join(theirs), " < ".join(ours)
    note = f"Friedman: F = {test.f_statistic:.2f}, p = {test.f_p_value:.2g}"
    yield Verdict(table, "order by rank", *orders, run.judged(theirs == ours), note)


# ------------------------------------------------------------------------ win/tie/loss


def win_tie_loss_table(
    run: Run,
    *,
    title: str,
    part: str,
    printed: str,
    method: str,
    tally: Mapping[str, str],
    intro: str,
    note: str,
) -> Section:
    """Count where a method is ahead of each other, and where a t-test says so.

    The paper's test is one-sided at 5 % and takes folds as independent: that is the
    corrected test with a ratio of sizes of 0, two-sided at 10 %.
    """
    results = run.results(part)
    folds = fold_accuracies(results, results.methods)
    plain = win_tie_loss(folds, np.zeros(len(folds)), alpha=0.1)
    fair = win_tie_loss(folds, np.full(len(folds), 1 / 9), alpha=0.05)
    pairs = run.pairs(printed, {name: (part, name) for name in results.methods})
    matrix = results.matrix("accuracy").round(9)
    i = results.methods.index(method)
    ahead = (matrix[:, [i]] > matrix).sum(axis=0)
    rows = []
    for j, (name, theirs, _) in enumerate(pairs):
        if j != i:
            count = sum(pairs[i].published[row] > theirs[row] for row in theirs)
            rows.append(
                f"{name} | {count} ({tally[name].rpartition('/')[2]}) | "
                f"{ahead[j]} ({plain.wins[i, j]}) | {tally[name]} | "
                f"{plain.text(j, i)} | {fair.text(j, i)}"
            )
    k = len(rows)
    what = f"competitors behind {method} on most data sets"
    most = f"{int((2 * ahead > len(folds)).sum())} of {k}"
    header = (
        f"competitor | {method} ahead, published | measured | W/T/L published | "
        "paper's test | corrected test"
    )
    name = title.partition(":")[0]
    verdict = Verdict(name, what, f"{k} of {k}", most, None, note)
    return Section.of(title, intro, table(header, rows), verdicts=[verdict])


# --------------------------------------------------------------------- Wilcoxon matrix

Tests = Mapping[tuple[str, str], WilcoxonTest]
"""Tests of the method of a row against that of a column."""


def wilcoxon_table(
    run: Run,
    *,
    title: str,
    rows: Sequence[str],
    forms: Forms,
    zeros: Zeros,
    cell: Callable[[Run, str, str, WilcoxonTest], str],
    describe: Callable[[Run, Tests], tuple[str, Verdict]],
    first: str = "method",
    diagonal: str = "",
) -> Section:
    """Test methods in rows against those in columns over the data sets.

    ``forms`` are the columns; ``describe`` returns the text before the table, and the
    verdict.
    """
    scores = {
        column: list(run.accuracies(part)[method].values())
        for column, (part, method) in forms.items()
    }
    tests = {
        (row, column): wilcoxon_signed_rank(scores[row], scores[column], zeros=zeros)
        for row in rows
        for column in scores
        if row != column
    }
    cells = {place: cell(run, *place, test) for place, test in tests.items()}
    lines = [
        [row, *(cells.get((row, column), diagonal) for column in scores)]
        for row in rows
    ]
    intro, verdict = describe(run, tests)
    text = table(" | ".join([first, *scores]), lines)
    return Section.of(title, intro, text, verdicts=[verdict])


# ------------------------------------------------------------------------------- curve

Panels = Mapping[str, tuple[Sequence[Any], Mapping[str, Sequence[float]]]]
"""Positions and curves by name, for each panel."""


def curve(
    run: Run,
    *,
    title: str,
    measure: Callable[[Run], Panels],
    text: Callable[[Run, Panels], str],
    verdicts: Callable[[Run, Panels], Iterable[Verdict]],
    picture: str,
    alt: str,
    **labels: Any,
) -> Section:
    """Draw curves in panels, after a table of some of their points."""
    panels = measure(run)
    drawn = Picture(picture, alt, partial(draw_curves, panels, **labels))
    return Section.of(
        title, text(run, panels), verdicts=verdicts(run, panels), pictures=[drawn]
    )
