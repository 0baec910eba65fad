"""Write the measured part of the leader board from result files.

``python studies/leaderboard.py RESULTS... --confirming RESULTS... --write
docs/leaderboard.md`` replaces what follows the line ``<!-- measured -->``, draws
average ranks beside the page, and writes the figures by data set into
``tables/leaderboard.csv``. Result files are those of ``steelyard compare --journal``.

Methods that ran on all data sets are compared on them; others, such as EBM, on the
folds that they have. ``--confirming`` has data sets on which nothing was chosen.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from numpy.typing import NDArray

from steelyard.lab.displays import CriticalDifferenceDisplay
from steelyard.lab.report.layouts import Cell, ReportTable, control_table
from steelyard.lab.report.summaries import MEASURES, friedman_sentence, summarize
from steelyard.lab.report.writers import table_to_markdown
from steelyard.lab.results import Results
from steelyard.lab.statistics import holm, wilcoxon_signed_rank

MARK = "<!-- measured -->\n"
CONTROL, FOREST = "SHNB", "RandomForest"
MEASURED = ("accuracy", "log_loss")

# Points behind the forest that want a reason.
_BEHIND = 0.03

_TWINS = "rows have a twin with the same values, nearly always of the same class: what "
_TWINS += "remembers rows gains by that"
REASONS = {
    "glass": "small regions of several columns, which one interaction cannot mark out",
    "krkopt": "rules of all six columns at once, which interactions cannot express",
    "tae": f"57 % of the {_TWINS}",
    "winequality-white": f"35 % of the {_TWINS}",
}

Row = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> None:
    """Read result files, draw pictures, write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("results", nargs="+")
    parser.add_argument("--confirming", nargs="+", default=[], metavar="RESULTS")
    parser.add_argument("--write", type=Path, required=True, metavar="PAGE")
    asked = parser.parse_args(arguments)
    before, mark, _ = asked.write.read_text(encoding="utf-8").partition(MARK)
    if not mark:
        parser.error(f"{asked.write} has no line {MARK.strip()!r}.")
    rows, confirming = (
        [row for path in paths for row in Results.from_journal(Path(path)).rows]
        for paths in (asked.results, asked.confirming)
    )
    body = "\n\n".join(sections(rows, confirming, asked.write))
    asked.write.write_text(f"{before}{mark}\n{body}\n", encoding="utf-8")


def sections(rows: list[Row], confirming: list[Row], page: Path) -> Iterator[str]:
    """Yield headings and tables in the order of the page."""
    whole = whole_methods(rows)
    results = Results([row for row in rows if row["method"] in whole])
    yield "## All methods, by data set"
    yield from _averages(results, page)
    some = [row for row in rows if row["method"] not in whole[1:]]
    yield "## Methods that ran on some folds"
    yield on_some_folds(some, "Data sets of the leader board")
    if confirming:
        title = "Data sets that nothing was chosen on"
        yield on_some_folds(confirming, title)
        in_both = {row["method"] for row in confirming}
        both = [row for row in [*some, *confirming] if row["method"] in in_both]
        yield on_some_folds(both, "Both together")
    yield from _behind(results)
    path = page.parent / "tables" / f"{page.stem}.csv"
    path.parent.mkdir(exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(figures(results))
    yield "## By data set"
    title = f"[{path.name}](tables/{path.name})"
    yield f"Accuracy and log-loss of each method, averages over folds: {title}."


def whole_methods(rows: list[Row]) -> list[str]:
    """Return the methods that ran on all folds of the control, which comes first."""
    places: dict[str, set[tuple[Any, ...]]] = {}
    for row in rows:
        place = (row["dataset"], row["repeat"], row["fold"])
        if row["status"] == "ok" and row["log_loss"] is not None:
            places.setdefault(row["method"], set()).add(place)
    others = (m for m in places if m != CONTROL and places[m] >= places[CONTROL])
    return [CONTROL, *others]


def figures(results: Results) -> Iterator[list[Any]]:
    """Yield the lines of a table of figures by data set and method."""
    yield ["data set", "method", *MEASURED]
    values = [results.matrix(measure) for measure in MEASURED]
    for i, dataset in enumerate(results.datasets):
        for j, method in enumerate(results.methods):
            yield [dataset, method, *(f"{of[i, j]:.6f}" for of in values)]


def _averages(results: Results, page: Path) -> Iterator[str]:
    """Yield all methods by average rank, and tests against the first."""
    summaries = {m: summarize(results, m) for m in MEASURED}
    accuracy, log_loss = (summaries[m] for m in MEASURED)
    lines = []
    for j in np.argsort(log_loss.ranks, kind="stable").tolist():
        cells = [Cell(name := log_loss.methods[j])]
        for s in (log_loss, accuracy):
            k = s.position(name)
            cells += [Cell(f"{s.ranks[k]:.2f}"), Cell(s.measure.text(s.averages[k]))]
        lines.append(cells)
    n_sets, n_fits = len(accuracy.complete), len(results.rows)
    note = f"{n_sets} data sets, ten folds with seed 1, {n_fits:,} fits."
    header = ["method", "rank in log-loss", "log-loss", "rank", "accuracy (%)"]
    title = "By average rank of log-loss"
    yield table_to_markdown(ReportTable(title, header, lines, notes=[note]), "###")
    for measure in reversed(MEASURED):
        yield _picture(results, measure, page)
        yield friedman_sentence(summaries[measure])
        yield table_to_markdown(control_table(summaries[measure], CONTROL), "###")


def _picture(results: Results, measure: str, page: Path) -> str:
    """Draw average ranks into a file, and return the line that shows them."""
    display = CriticalDifferenceDisplay.from_results(results, measure)
    name = f"{page.stem}_{measure}.svg"
    (page.parent / "images").mkdir(exist_ok=True)
    # The same results give the same picture, byte for byte.
    with matplotlib.rc_context({"svg.hashsalt": "steelyard"}):
        display.figure_.savefig(page.parent / "images" / name, metadata={"Date": None})
    words = measure.replace("_", "-")
    return f"![Average ranks by {words}, and the critical difference](images/{name})"


def on_some_folds(rows: list[Row], title: str) -> str:
    """Return a table of methods beside the control, each on the folds that it has."""
    methods = list(dict.fromkeys(r["method"] for r in rows if r["method"] != CONTROL))
    pairs = {method: on_same_folds(rows, method) for method in methods}
    leads = {
        (method, m): MEASURES[m].sign * (same[m][:, 0] - same[m][:, 1])
        for method, same in pairs.items()
        for m in MEASURED
    }
    p_values = [
        wilcoxon_signed_rank(x).p_value if x.any() else 1.0 for x in leads.values()
    ]
    corrected = dict(zip(leads, holm(p_values), strict=True))
    lines = []
    for method, same in pairs.items():
        cells = [method, str(len(same["names"])), str(same["folds"])]
        for m in reversed(MEASURED):
            cells += [MEASURES[m].text(value) for value in same[m].mean(axis=0)]
            cells += [_tally(leads[method, m]), _p(corrected[method, m])]
        cells += [f"{seconds:.1f}" for seconds in same["fit_seconds"].mean(axis=0)]
        lines.append([Cell(text) for text in cells])
    header = ["method", "data sets", "folds"]
    for m in reversed(MEASURED):
        name = MEASURES[m].title
        header += [f"{CONTROL}: {name}", f"method: {name}", "better/equal/worse"]
        header += ["p by Holm"]
    header += [f"{CONTROL}: seconds of a fit", "method: seconds of a fit"]
    note = (
        f"Better, equal and worse are of {CONTROL}. Wilcoxon's signed ranks over data "
        "sets, corrected for all p of the table. Fits had one thread each."
    )
    return table_to_markdown(ReportTable(title, header, lines, notes=[note]), "###")


def on_same_folds(rows: list[Row], method: str) -> dict[str, Any]:
    """Return averages over the folds that the control has too, (data sets, 2)."""
    fits: dict[tuple[Any, ...], dict[str, Row]] = {}
    for row in rows:
        if row["method"] in (CONTROL, method) and row["status"] == "ok":
            place = (row["dataset"], row["repeat"], row["fold"])
            fits.setdefault(place, {})[row["method"]] = row
    both = {place: fit for place, fit in fits.items() if len(fit) == 2}
    names = list(dict.fromkeys(place[0] for place in both))
    out: dict[str, Any] = {"names": names, "folds": len(both)}
    for measure in (*MEASURED, "fit_seconds"):
        table = [
            [
                np.mean([f[m][measure] for place, f in both.items() if place[0] == n])
                for m in (CONTROL, method)
            ]
            for n in names
        ]
        out[measure] = np.array(table).reshape(-1, 2)
    return out


def _behind(results: Results) -> Iterator[str]:
    """Yield the data sets on which the forest is far ahead, with the reason."""
    accuracy = results.matrix("accuracy")
    accuracy = accuracy[:, [results.methods.index(m) for m in (CONTROL, FOREST)]]
    n_rows = {r["dataset"]: r["n_train"] + r["n_test"] for r in results.rows}
    gap = accuracy[:, 1] - accuracy[:, 0]
    lines = []
    for i in np.argsort(-gap).tolist():
        if gap[i] > _BEHIND:
            n = n_rows[name := results.datasets[i]]
            shown = [MEASURES["accuracy"].text(a) for a in accuracy[i]]
            cells = [name, *shown, f"{gap[i] * n:.0f} of {n:.0f}"]
            cells.append(REASONS.get(name, "not looked into"))
            lines.append([Cell(cell) for cell in cells])
    header = ["data set", CONTROL, FOREST, "rows behind", "why"]
    yield f"## More than {100 * _BEHIND:.0f} points behind the forest"
    yield table_to_markdown(ReportTable("Accuracy (%)", header, lines), "###")


def _tally(leads: NDArray[np.float64]) -> str:
    better, worse = int((leads > 0).sum()), int((leads < 0).sum())
    return f"{better}/{len(leads) - better - worse}/{worse}"


def _p(p: float) -> str:
    return "<.001" if p < 0.001 else f"{p:.3f}"


if __name__ == "__main__":
    main()
