"""Draw the default beside other libraries, from the tables of the leader board.

``python studies/rivals.py docs/leaderboard.md`` writes ``images/rivals.svg`` beside the
page. Each line has the average log-loss of the default and of one other method, on the
data sets that both ran on: all of them, or those of the folds that a slow method has.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import NamedTuple

import matplotlib
from matplotlib import pyplot as plt

CONTROL = "SHNB"
OURS, THEIRS = "#1f5a94", "#b2551d"
SHOWN = {
    "EBM": "EBM",
    "CatBoost": "CatBoost",
    "RandomForest": "random forest",
    "HistGradientBoosting": "gradient boosting",
    "LogisticRegression": "logistic regression",
    "Khiops": "Khiops",
    "NB": "naive Bayes",
}


class Beside(NamedTuple):
    """Log-losses of the default and of a method on the same data sets."""

    method: str
    n_datasets: int
    ours: float
    theirs: float
    better: int
    """Data sets on which the default is better; ties are neither."""
    worse: int
    p: str
    """Of Wilcoxon's test, corrected for all tests of its table."""


def tables(page: str) -> dict[str, list[list[str]]]:
    """Return the tables of a page by the headings above them, without their heads."""
    by_heading: dict[str, list[list[str]]] = {}
    part = heading = ""
    for line in page.splitlines():
        if line.startswith("## "):
            part = line[3:]
        elif line.startswith("### "):
            heading = line[4:]
        elif line.startswith("| "):
            cells = [
                re.sub(r"[*\\]", "", c).strip() for c in line.strip("|").split("|")
            ]
            by_heading.setdefault(f"{part}/{heading}", []).append(cells)
    return {key: rows[2:] for key, rows in by_heading.items()}


def read_rivals(page: str) -> list[Beside]:
    """Return what the leader board says of other libraries, best first."""
    by_heading = tables(page)
    everything = "All methods, by data set/"
    averages = {
        row[0]: float(row[5])
        for row in by_heading[
            f"{everything}Methods of all editions, by average rank of accuracy"
        ]
    }
    (n_datasets,) = set(re.findall(r"ranks are over (\d+) data sets", page))
    against = by_heading[
        f"{everything}{CONTROL} against each method, log-loss; protocol honest"
    ]
    out: dict[str, Beside] = {}
    for method, _, tally, _, p in against:
        better, _, worse = map(int, tally.split("/"))
        figures = averages[CONTROL], averages[method], better, worse
        out[method] = Beside(method, int(n_datasets), *figures, p)
    # The last table that has a method is of the most data sets.
    for heading in (
        "On the same folds",
        "With the data sets that nothing was chosen on",
    ):
        for row in by_heading.get(f"Methods that ran on some folds/{heading}", []):
            better, _, worse = map(int, row[9].split("/"))
            figures = float(row[7]), float(row[8]), better, worse
            out[row[0]] = Beside(row[0], int(row[1]), *figures, row[10])
    shown = [out[name] for name in SHOWN if name in out]
    return sorted(shown, key=lambda beside: beside.theirs - beside.ours)


def draw(rivals: list[Beside], path: Path) -> None:
    """Draw a line for each method, from the default's log-loss to its own."""
    figure, ax = plt.subplots(figsize=(8, 0.42 * len(rivals) + 0.9))
    for y, beside in enumerate(rivals):
        ax.plot([beside.ours, beside.theirs], [y, y], color="0.8", linewidth=3)
        for x, color in ((beside.theirs, THEIRS), (beside.ours, OURS)):
            ax.scatter(x, y, s=60, color=color, zorder=3)
        tally = f"lower on {beside.better} of {beside.n_datasets} data sets"
        ax.text(beside.theirs + 0.015, y, tally, va="center", fontsize=9, color="0.3")
    ax.set_yticks(range(len(rivals)), [SHOWN[beside.method] for beside in rivals])
    ax.tick_params(axis="y", length=0)
    limits = {"ylim": (len(rivals) - 0.5, -1.1), "xlim": (0.3, None)}
    ax.set(**limits, xlabel="mean log-loss (left is better)")
    ax.text(rivals[0].ours, -0.6, "ShrinkageNB", color=OURS, ha="right")
    ax.text(rivals[0].theirs, -0.6, "the other method", color=THEIRS, ha="left")
    ax.spines[["top", "right", "left"]].set_visible(False)
    # The same page gives the same picture, byte for byte.
    with matplotlib.rc_context({"svg.hashsalt": "steelyard"}):
        figure.savefig(path, metadata={"Date": None}, bbox_inches="tight")
    plt.close(figure)


def main(page: str | Path) -> None:
    """Read the page, and draw the picture beside it."""
    rivals = read_rivals(Path(page).read_text(encoding="utf-8"))
    draw(rivals, Path(page).parent / "images/rivals.svg")


if __name__ == "__main__":
    main(*sys.argv[1:])
