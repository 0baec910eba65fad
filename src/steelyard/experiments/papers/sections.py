"""Kinds of section: accuracy and rank tables, wins, Wilcoxon's test.

A kind measures what a document's file asks for and returns values by name, which the
templates of the section are filled in with. What one document alone measures is in the
module of its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.experiments.papers.engine import Run
from steelyard.experiments.papers.layout import Values
from steelyard.experiments.papers.tables import (
    Pair,
    averaged,
    figures_table,
    mean,
    side_by_side,
    table,
)
from steelyard.experiments.results import Results
from steelyard.experiments.statistics.ranks import average_ranks, friedman
from steelyard.experiments.statistics.two_methods import (
    Zeros,
    wilcoxon_signed_rank,
    win_tie_loss,
)

__all__ = [
    "accuracy_columns",
    "accuracy_table",
    "rank_table",
    "wilcoxon_table",
    "win_tie_loss_table",
]


def fold_accuracies(results: Results, methods: Sequence[str]) -> NDArray[np.float64]:
    """Return accuracies by data set, method and fold."""
    return np.array(
        [
            [results.values("accuracy", data, name) for name in methods]
            for data in results.datasets
        ]
    )


# ---------------------------------------------------------------------- accuracy table


def accuracy_columns(
    run: Run,
    printed: str,
    forms: Sequence[str],
    columns: Sequence[str] | None = None,
    first: str = "data set",
) -> str:
    """Show printed and measured columns by data set."""
    pairs = run.pairs(printed, run.forms(*forms, columns=columns))
    return side_by_side(list(pairs[0].measured), pairs, first)


def accuracy_table(
    run: Run,
    printed: str,
    forms: Sequence[str],
    tolerance: float,
    groups: Sequence[Sequence[str]] = ((),),
    tolerances: Mapping[str, float] | None = None,
    notes: Mapping[str, str] | None = None,
    judged: Sequence[str] = (),
    count_within: float = 0.0,
    first: str = "data set",
) -> Values:
    """Compare printed and measured columns, of which some are judged.

    ``groups`` are the columns that share a table by data set. A column is near print if
    its average is within the tolerance, and good enough if three of four of its figures
    are, or are better.
    """
    chosen, columns = run.forms(*forms), {}
    for pair in run.pairs(printed, chosen):
        allowed = (tolerances or {}).get(pair.title, tolerance)
        columns[pair.title] = {
            **_judged(run, pair, allowed),
            "counted": sum(abs(gap) <= count_within for gap in pair.gaps.values()),
            "note": (notes or {}).get(pair.title, ""),
            "seconds": _seconds(run, *chosen[pair.title]),
        }
    tables = [accuracy_columns(run, printed, forms, group, first) for group in groups]
    return {
        "columns": list(columns.values()),
        "judged": [columns[name] for name in judged],
        "by_set": "\n\n".join(tables),
        "n": len(pair.gaps),
    }


def _judged(run: Run, pair: Pair, allowed: float) -> Values:
    gaps, gap = pair.gaps, pair.ours - pair.theirs
    least = sum(gap >= -allowed for gap in gaps.values())
    below = sorted((gap, name) for name, gap in gaps.items() if gap < -allowed)
    return {
        "pair": pair,
        "n": len(gaps),
        "gap": gap,
        "allowed": allowed,
        "near": run.judged(abs(gap) <= allowed),
        "least": least,
        "enough": run.judged(least >= 0.75 * len(gaps)),
        "below": ", ".join(f"{name} {gap:+.2f}" for gap, name in below) or "none",
    }


def _seconds(run: Run, part: str, method: str) -> float:
    """Return how long all fits of a method took."""
    results = run.results(part)
    seconds = results.matrix("fit_seconds") * results.settings["folds"]
    return float(np.nansum(seconds[:, results.methods.index(method)]))


# -------------------------------------------------------------------------- rank table


def rank_table(
    run: Run,
    part: str,
    methods: Sequence[str],
    shown: Sequence[str],
    printed: str,
    counted: Sequence[str],
) -> Values:
    """Compare averages, average ranks and significant wins of the first method.

    The printed table has a row per method, and ``counted`` are its columns of
    significant wins and losses of the first. All methods ``shown`` have a column of
    accuracies; those in ``methods`` are ranked.
    """
    results, columns = run.results(part), run.accuracies(part)
    scores = np.array([list(columns[name].values()) for name in methods]).T
    folds = fold_accuracies(results, methods)
    tally = win_tie_loss(folds, np.full(len(folds), 1 / 9))
    rows: list[dict[str, Any]] = []
    for j, name in enumerate(methods):
        cells = run.printed(printed)[name]
        wins = " / ".join(cells[column] for column in counted)
        row: dict[str, Any] = {
            "method": name,
            # Published ones, then measured ones.
            "average": [float(cells["average_accuracy"]), mean(columns[name].values())],
            "rank": [float(cells["average_rank"]), average_ranks(scores)[j]],
            "wins": f"{wins} | {tally.wins[0, j]} / {tally.losses[0, j]}",
        }
        rows.append(row if j else {**row, "wins": " | "})
    first = rows[0]["average"]
    for row in rows:
        row["lead"] = [first[k] - row["average"][k] for k in (0, 1)]
    return {
        **_order(run, rows),
        "n": len(scores),
        "repeats": results.settings["repeats"],
        "rows": rows,
        "accuracies": figures_table({name: averaged(columns[name]) for name in shown}),
        "friedman": friedman(scores),
    }


def _order(run: Run, rows: Sequence[Mapping[str, Any]]) -> Values:
    """Return whether the first is the best, and the printed and measured orders."""
    theirs, ours = (
        [row["method"] for row in sorted(rows, key=lambda row: row["rank"][k])]
        for k in (0, 1)
    )
    averages = [row["average"][1] for row in rows]
    best = ours[0] == rows[0]["method"] and averages[0] == max(averages)
    return {
        "best": run.judged(best),
        "theirs": " < ".join(theirs),
        "ours": " < ".join(ours),
        "same": run.judged(theirs == ours),
    }


# ------------------------------------------------------------------------ win/tie/loss


def win_tie_loss_table(
    run: Run, part: str, printed: str, method: str, tally: Mapping[str, str]
) -> Values:
    """Count where a method is ahead of each other, and where a t-test says so.

    The paper's test is one-sided at 5 % and takes folds as independent: that is the
    corrected test with a ratio of sizes of 0, two-sided at 10 %.
    """
    results = run.results(part)
    folds = fold_accuracies(results, results.methods)
    plain = win_tie_loss(folds, np.zeros(len(folds)), alpha=0.1)
    fair = win_tie_loss(folds, np.full(len(folds), 1 / 9), alpha=0.05)
    pairs = run.pairs(printed, run.forms(part))
    matrix = results.matrix("accuracy").round(9)
    i = results.methods.index(method)
    ahead = (matrix[:, [i]] > matrix).sum(axis=0)
    rows = [
        {
            "method": name,
            "theirs": sum(pairs[i].published[row] > theirs[row] for row in theirs),
            "their_wins": tally[name].rpartition("/")[2],
            "ours": ahead[j],
            "our_wins": plain.wins[i, j],
            "tally": tally[name],
            "plain": plain.text(j, i),
            "fair": fair.text(j, i),
        }
        for j, (name, theirs, _) in enumerate(pairs)
        if j != i
    ]
    behind = int((2 * ahead > len(folds)).sum())
    return {"rows": rows, "n": len(rows), "behind": behind}


# --------------------------------------------------------------------- Wilcoxon matrix

_NO_MARKS = {"star": "", "sign": ""}


def wilcoxon_table(
    run: Run,
    rows: Sequence[str],
    forms: Sequence[str],
    zeros: Zeros,
    cell: str,
    columns: Sequence[str] | None = None,
    printed: str | None = None,
    first: str = "method",
    diagonal: str = "",
) -> dict[str, Any]:
    """Test methods in rows against those in columns over the data sets.

    A cell is a template for the test, the printed p, and ``star`` or ``sign`` where
    the test is significant.
    """
    scores = {
        column: list(run.accuracies(part)[method].values())
        for column, (part, method) in run.forms(*forms, columns=columns).items()
    }
    tests = {
        (row, column): wilcoxon_signed_rank(scores[row], scores[column], zeros=zeros)
        for row in rows
        for column in scores
        if row != column
    }
    theirs = run.printed(printed) if printed else None
    cells = {}
    for (row, column), test in tests.items():
        sign = " +" if test.r_plus > test.r_minus else " -"
        marks = {"star": " *", "sign": sign} if test.p_value <= 0.05 else _NO_MARKS
        p_value = float(theirs[row][column]) if theirs else None
        cells[row, column] = cell.format(test=test, printed=p_value, **marks)
    lines = [
        [row, *(cells.get((row, column), diagonal) for column in scores)]
        for row in rows
    ]
    wins = sum(t.p_value <= 0.05 for (row, _), t in tests.items() if row == rows[0])
    return {
        "n": len(run.names),
        "tests": tests,
        "matrix": table(" | ".join([first, *scores]), lines),
        "wins": wins,
        "wins_all": run.judged(wins == len(scores) - 1),
    }
