"""Kinds of section and picture: accuracies, ranks, wins, Wilcoxon's test; curves.

A kind of section measures what a document's file asks for and returns values by name,
which the templates of the section are filled in with. What one document alone measures
is in ``measurements`` and ``exponential_loss``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproduction.engine import Run, Values
from reproduction.report import (
    ColumnPair,
    averaged,
    figures_table,
    mean,
    side_by_side,
    table,
)
from steelyard.io.dataset import DataSet
from steelyard.lab.data.datasets import load_dataset
from steelyard.lab.statistics import Zeros, wilcoxon_signed_rank, win_tie_loss

N_SETS = 60
"""Data sets of the CWNB paper."""

# -------------------------------------------------------------------------- data table


def data_table(run: Run, printed: str | None = None, prefix: str = "") -> Values:
    """Describe the data sets, and compare counts with a printed table of them.

    Of a printed table those columns are compared that are measured under their names.
    """
    rows, differ, n_compared = [], [], 0
    for name in run.names:
        data = load_dataset(f"{prefix}{name}", run.folder)
        kinds = list(data.kinds.values())
        ours = {
            "instances": str(len(data)),
            "continuous": str(kinds.count("numeric")),
            "discrete": str(kinds.count("categorical")),
            "attributes_and_class": str(len(kinds) + 1),
            "classes": str(len(data.classes)),
            "minority_percent": f"{100 * _smallest_share(data):.2f}",
            "missing": "NY"[int(data.table.isna().any(axis=None))],
            "numeric": "NY"["numeric" in kinds],
        }
        theirs = run.printed(printed).get(name, {}) if printed else {}
        common = [key for key in ours if key in theirs]
        n_compared += len(common)
        differ += [
            f"{name} {key.replace('_', ' ')} {theirs[key]}, here {ours[key]}"
            for key in common
            if not _is_same(ours[key], theirs[key])
        ]
        rows.append({"name": name, **ours})
    return {
        "sets": rows,
        "n": n_compared,
        "same": n_compared - len(differ),
        "differ": "; ".join(differ) or "none",
    }


def _smallest_share(data: DataSet) -> float:
    return float(np.unique(data.target, return_counts=True)[1].min() / len(data))


def _is_same(ours: str, theirs: str) -> bool:
    """Compare words and counts, or shares, which may be cut off or rounded.

    Examples
    --------
    >>> _is_same("14.00", "13.99"), _is_same("886", "887"), _is_same("N", "Y")
    (True, False, False)
    """
    try:
        return abs(float(ours) - float(theirs)) < 0.011
    except ValueError:
        return ours == theirs


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
            **_counted(pair, count_within),
            "note": (notes or {}).get(pair.title, ""),
            "seconds": run.seconds(chosen[pair.title][0])[chosen[pair.title][1]],
        }
    tables = [accuracy_columns(run, printed, forms, group, first) for group in groups]
    return {
        "columns": list(columns.values()),
        "judged": [columns[name] for name in judged],
        "by_set": "\n\n".join(tables),
        "n": len(pair.gaps),
    }


def _counted(pair: ColumnPair, within: float) -> Values:
    """Return how many figures are near print, and the others, the furthest first."""
    far = [(gap, name) for name, gap in pair.gaps.items() if abs(gap) > within]
    far.sort(key=lambda entry: -abs(entry[0]))
    away = ", ".join(f"{name} {gap:+.1f}" for gap, name in far)
    return {"counted": len(pair.gaps) - len(far), "away": away}


def _judged(run: Run, pair: ColumnPair, allowed: float) -> Values:
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


# -------------------------------------------------------------------------- rank table


def rank_table(
    run: Run,
    part: str,
    methods: Sequence[str],
    shown: Sequence[str],
    printed: str,
    counted: Sequence[str],
    ahead: str,
) -> Values:
    """Compare averages, average ranks and significant wins of the first method.

    The printed table has a row per method, and ``counted`` are its columns of
    significant wins and losses of the first, ``ahead`` that of sets on which its
    average is larger. All methods ``shown`` have a column of
    accuracies; those in ``methods`` are ranked.
    """
    run.compares_sets(part)
    columns, summary = run.accuracies(part), run.summary(part, methods)
    tally, means = summary.win_tie_loss, summary.means.round(9)
    rows: list[dict[str, Any]] = []
    for j, name in enumerate(methods):
        cells = run.printed(printed)[name]
        wins = " / ".join(cells[column] for column in counted)
        row: dict[str, Any] = {
            "method": name,
            # Published ones, then measured ones.
            "average": [
                float(cells["average_accuracy"]),
                mean(columns[name].values()),
            ],
            "rank": [float(cells["average_rank"]), summary.ranks[j]],
            "wins": f"{wins} | {tally.wins[0, j]} / {tally.losses[0, j]}",
            "ahead": f"{cells[ahead]} | {(means[:, 0] > means[:, j]).sum()}",
        }
        rows.append(row if j else {**row, "wins": " | ", "ahead": " | "})
    first = rows[0]["average"]
    for row in rows:
        row["lead"] = [first[k] - row["average"][k] for k in (0, 1)]
    return {
        **_order(run, rows),
        "n": len(summary.datasets),
        "repeats": run.results(part).settings["repeats"],
        "rows": rows,
        "accuracies": figures_table({name: averaged(columns[name]) for name in shown}),
        "friedman": summary.friedman,
        **_ranks_reproduced(rows, len(summary.datasets)),
    }


def _ranks_reproduced(rows: Sequence[Mapping[str, Any]], n: int) -> Values:
    """Count averages, ranks, and shares of wins, losses and sets ahead near print."""
    same = []
    for row in rows:
        same.append(abs(row["average"][1] - row["average"][0]) <= 1)
        same.append(abs(row["rank"][1] - row["rank"][0]) <= 0.25)
        for key in ("wins", "ahead"):
            theirs, ours = (cell.split(" / ") for cell in row[key].split(" | "))
            shares = zip(theirs, ours, strict=True)
            same += [abs(int(a) / N_SETS - int(b) / n) <= 0.05 for a, b in shares if a]
    return {"n_figures": len(same), "n_same": int(sum(same))}


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
    summary = run.summary(part)
    plain = win_tie_loss(summary.folds, np.zeros(len(summary.folds)), alpha=0.1)
    fair = summary.win_tie_loss
    pairs = run.pairs(printed, run.forms(part))
    matrix, i = summary.means.round(9), summary.position(method)
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
    behind = int((2 * ahead > len(matrix)).sum())
    theirs, ours = (
        [cell for row in rows for cell in row[key].split("/")]
        for key in ("tally", "plain")
    )
    same = [a == b for a, b in zip(theirs, ours, strict=True)]
    counted = {"n_printed": len(same), "same": sum(same)}
    return {"rows": rows, "n": len(rows), "behind": behind, **counted}


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
    chosen = run.forms(*forms, columns=columns)
    run.compares_sets(next(iter(chosen.values()))[0])
    scores = {
        column: list(run.accuracies(part)[method].values())
        for column, (part, method) in chosen.items()
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
        if 0.05 < test.p_value <= 0.1:
            marks = {**marks, "star": " (*)"}
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


def draw_bars(bars: Mapping[str, Mapping[str, float]], ylabel: str) -> Any:
    """Draw bars in groups: series by name, each with a value by title."""
    drawn, grid = _panels(7.0, 3.4)
    axes, width = grid[0, 0], 0.8 / len(bars)
    for k, (series, values) in enumerate(bars.items()):
        places = np.arange(len(values)) + k * width
        axes.bar(places, list(values.values()), width, label=series)
    axes.set_xticks(np.arange(len(values)) + 0.4 - width / 2, list(values))
    axes.set_ylabel(ylabel)
    axes.legend(frameon=False, fontsize="small")
    return drawn


# Hollow markers, the first the largest: curves that coincide are all seen.
_MARKERS = ("o", "s", "^", "D", "v", "x")
_LINES = ("-", "-", "--", "--", ":", ":")


def draw_curves(
    panels: Mapping[str, tuple[Sequence[float], Mapping[str, Sequence[float]]]],
    xlabel: str,
    ylabel: str,
    *,
    columns: int = 3,
    log: bool = False,
) -> Any:
    """Draw curves in panels; each is its positions, and values by name."""
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    size = (7.0, 4.2) if len(panels) == 1 else (3.3 * columns, 2.8 * rows + 0.4)
    drawn, grid = _panels(*size, rows, columns)
    for axes in grid.ravel()[len(panels) :]:
        axes.set_axis_off()
    for axes, (title, (x, curves)) in zip(grid.ravel(), panels.items(), strict=False):
        for i, (name, y) in enumerate(curves.items()):
            style: dict[str, Any] = {"marker": _MARKERS[i], "linestyle": _LINES[i]}
            style["markevery"] = max(1, len(x) // 10)
            axes.plot(
                x, y, label=name, markersize=8 - i, fillstyle="none", lw=1.2, **style
            )
        axes.set_title(title, fontsize="medium")
        axes.grid(alpha=0.3)
        if log:
            axes.set_xscale("log")
    drawn.supxlabel(xlabel, fontsize="medium")
    drawn.supylabel(ylabel, fontsize="medium")
    grid[0, 0].legend(frameon=False, fontsize="small")
    return drawn


def draw_correlations(tables: Mapping[str, NDArray[np.float64]]) -> Any:
    """Draw matrices of correlation coefficients."""
    drawn, (grid,) = _panels(3.4 * len(tables) + 0.6, 3.6, columns=len(tables))
    image: Any = None
    for axes, (title, matrix) in zip(grid, tables.items(), strict=True):
        image = axes.imshow(matrix, vmin=-1, vmax=1, cmap="RdBu_r")
        axes.set_title(title, fontsize="medium")
        axes.set_xticks([])
        axes.set_yticks([])
    drawn.colorbar(image, ax=list(grid), shrink=0.8, label="correlation")
    return drawn


def draw_scatters(
    ours: str,
    y: NDArray[np.float64],
    others: Mapping[str, NDArray[np.float64]],
    significant: Mapping[str, NDArray[np.bool_]],
) -> Any:
    """Draw one method against each of the others; filled where significant."""
    drawn, (grid,) = _panels(2.6 * len(others), 3.0, columns=len(others))
    for axes, (name, x) in zip(grid, others.items(), strict=True):
        ends = [min(x.min(), y.min()) - 2, max(x.max(), y.max()) + 2]
        axes.plot(ends, ends, color="black", lw=0.8)
        for filled, face in ((False, "none"), (True, None)):
            chosen = significant[name] == filled
            colours = np.where(y[chosen] >= x[chosen], "tab:blue", "tab:orange")
            axes.scatter(
                x[chosen],
                y[chosen],
                s=28,
                edgecolors=list(colours),
                facecolors=face or list(colours),
            )
        axes.set(xlim=ends, ylim=ends, aspect="equal", xlabel=name)
        axes.grid(alpha=0.3)
    grid[0].set_ylabel(ours)
    return drawn


def draw_mixtures(points: NDArray[np.float64], min_large: int) -> Any:
    """Draw mixtures against rows per class."""
    drawn, grid = _panels(6.0, 3.6)
    axes = grid[0, 0]
    axes.scatter(points[:, 0], points[:, 1], s=24, alpha=0.8, linewidths=0)
    axes.axvline(min_large, color="gray", lw=0.8, ls="--")
    axes.set(xscale="log", xlabel="rows per class", ylabel="alpha*, mean over folds")
    axes.grid(alpha=0.3)
    return drawn


def _panels(width: float, height: float, rows: int = 1, columns: int = 1) -> Any:
    """Return a figure and its axes, shape (rows, columns)."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(width, height), layout="constrained")
    return drawn, drawn.subplots(rows, columns, squeeze=False)
