"""Write the measured part of the default's leader board from result files.

``python studies/editions.py RESULTS... --earlier "second edition=PAGE" --earlier "first
edition=PAGE" --confirming RESULTS... --write docs/leaderboard.md`` replaces all that
follows the line ``<!-- measured -->``. Result files are those of ``steelyard compare
--journal``; ``NAME=FILE`` gives the default in a file another name, as of an earlier
edition. Where a fit is in several files the last one counts.

Methods that ran on nearly all data sets are compared on them; others, such as EBM, on
the folds that they have. Methods that no file has are taken from the earlier pages, and
each line says which run it is from. ``--confirming`` has the data sets that nothing was
chosen on, in a table of their own.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent))
import rivals

from steelyard.lab.displays import CriticalDifferenceDisplay
from steelyard.lab.report.layouts import (
    Cell,
    ReportTable,
    control_table,
    dataset_table,
)
from steelyard.lab.report.summaries import (
    MEASURES,
    friedman_sentence,
    summarize,
)
from steelyard.lab.report.writers import table_to_markdown
from steelyard.lab.results import COLUMNS, KEY, Results
from steelyard.lab.statistics import holm, wilcoxon_signed_rank

MARK = "<!-- measured -->\n"
CONTROL, FOREST = "SHNB", "RandomForest"
MAIN_EFFECTS = "SHNB-main"
MEASURED = ("accuracy", "log_loss")

# Methods that are shown by data set; more do not fit a page.
SHOWN = (
    "SHNB NB RNB CAWNB-CLL WANBIA-CLL CWNB DWNB LWNB LNB CFW SNB LogisticRegression "
    "HistGradientBoosting RandomForest EBM Khiops"
).split()

# A method is compared on data sets, not on folds, if it ran on this share of those of
# the control and the forest.
_MIN_SHARE = 0.85

# Points behind the forest that want a reason, and points that interactions may cost.
_BEHIND, _MAX_COST = 0.03, 0.01

_TWINS = "rows have a twin with the same values, nearly always of the same class: what "
_TWINS += "remembers rows gains by that"
REASONS = {
    "glass": "small regions of several columns, which one interaction cannot mark out",
    "hepatitis": "few rows",
    "krkopt": "rules of all six columns at once, which interactions cannot express",
    "tae": f"57 % of the {_TWINS}",
    "vowel": "small regions of several columns, which interactions cannot mark out",
    "winequality-white": f"35 % of the {_TWINS}",
    "zoo": "few rows",
}

Row = dict[str, Any]
Means = dict[str, dict[str, dict[str, float]]]
"""Averages by measure, data set and method."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Read result files and earlier pages, draw pictures, write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", nargs="+")
    parser.add_argument("--earlier", action="append", default=[], metavar="NAME=PAGE")
    parser.add_argument("--confirming", nargs="+", default=[], metavar="RESULTS")
    parser.add_argument("--write", type=Path, required=True, metavar="PAGE")
    options = parser.parse_args(arguments)
    before, mark, _ = options.write.read_text(encoding="utf-8").partition(MARK)
    if not mark:
        parser.error(f"{options.write} has no line {MARK.strip()!r}.")
    pages = dict(given.split("=", 1) for given in options.earlier)
    earlier = {
        name: page_figures(Path(page).read_text(encoding="utf-8"), name)
        for name, page in pages.items()
    }
    images = options.write.parent / "images"
    images.mkdir(exist_ok=True)
    rows = last_of_each(map(read_results, options.results))
    confirming = last_of_each(map(read_results, options.confirming))
    parts = sections(rows, earlier, images / options.write.stem, confirming)
    body = "\n\n".join(parts)
    options.write.write_text(f"{before}{mark}\n{body}\n", encoding="utf-8")
    rivals.main(options.write)


def read_results(given: str) -> Results:
    """Read a result file, or ``NAME=FILE`` with the default under that name."""
    name, is_named, path = given.rpartition("=")
    results = Results.from_journal(Path(path))
    if not is_named:
        return results
    renamed = {CONTROL: f"{CONTROL}, {name}"}
    return Results(
        [r | {"method": renamed.get(r["method"], r["method"])} for r in results.rows]
    )


def last_of_each(parts: Iterable[Results]) -> list[Row]:
    """Keep the last row of each fit; one that failed gives way to one that did not."""
    rows: dict[tuple[Any, ...], Row] = {}
    for part in parts:
        for row in part.rows:
            key = tuple(row[field] for field in KEY)
            if key not in rows or row["status"] == "ok":
                rows[key] = row
    return list(rows.values())


def page_figures(text: str, edition: str) -> Means:
    """Read the figures by data set from the page of an earlier edition."""
    by_measure: Means = {}
    for measure in MEASURED:
        _, _, part = text.partition(f"## {section_title(measure)}\n")
        lines = [line.strip("|").split("|") for line in _table_lines(part)]
        methods = [cell.strip() for cell in lines[0][1:]]
        figures: dict[str, dict[str, float]] = {}
        for name, *cells in lines[2:]:
            if name.strip() == "average":
                break
            numbers = [re.sub(r"[^0-9.]", "", cell) for cell in cells]
            figures[name.strip()] = {
                f"{CONTROL}, {edition}" if method == CONTROL else method: float(number)
                / MEASURES[measure].scale
                for method, number in zip(methods, numbers, strict=True)
                if number
            }
        by_measure[measure] = figures
    return by_measure


def _table_lines(part: str) -> Iterator[str]:
    """Yield the lines of the first table."""
    is_inside = False
    for line in part.splitlines():
        if line.startswith("|"):
            is_inside = True
            yield line
        elif is_inside:
            return


def sections(
    rows: list[Row],
    earlier: Mapping[str, Means],
    picture: Path,
    confirming: list[Row],
) -> Iterator[str]:
    """Yield headings and tables in the order of the page."""
    whole, datasets = wide_methods(rows)
    wide = [r for r in rows if r["method"] in whole and r["dataset"] in datasets]
    beside, run = with_earlier(means_of(Results(wide)), earlier)
    yield "## All methods, by data set"
    yield from _beside(beside, run, picture)
    if confirming:
        yield "## Data sets that nothing was chosen on"
        yield from _on_folds(confirming, [CONTROL], "On the same folds")
    compared = [*whole, MAIN_EFFECTS]
    if found := list(_on_folds(rows, compared, "On the same folds")):
        yield "## Methods that ran on some folds"
        yield from found
        in_both = {r["method"] for r in rows} & {r["method"] for r in confirming}
        both = [r for r in [*rows, *confirming] if r["method"] in in_both]
        title = "With the data sets that nothing was chosen on"
        yield from _on_folds(both, compared, title)
    yield from _interactions(rows)
    yield from _behind(beside, {r["dataset"]: r["n_train"] + r["n_test"] for r in rows})
    for measure in MEASURED:
        yield f"## {section_title(measure)}"
        shown = beside.select(method=[m for m in beside.methods if _is_shown(m)])
        table = dataset_table(summarize(shown, measure), CONTROL)
        yield table_to_markdown(table, "###")


def section_title(measure: str) -> str:
    """Return the heading above the figures of a measure by data set."""
    return f"{measure.capitalize().replace('_', '-')} by data set"


def _is_shown(method: str) -> bool:
    return method in SHOWN or method.startswith(f"{CONTROL}, ")


def wide_methods(rows: list[Row]) -> tuple[list[str], list[str]]:
    """Return the methods that ran on nearly all data sets, and those data sets."""
    ran: dict[str, dict[str, int]] = {}
    for row in rows:
        by_set = ran.setdefault(row["method"], {})
        by_set[row["dataset"]] = by_set.get(row["dataset"], 0) + 1
    n_fits = max((n for by_set in ran.values() for n in by_set.values()), default=0)
    done = {
        m: {d for d, n in by_set.items() if n == n_fits} for m, by_set in ran.items()
    }
    asked = set.intersection(*(done[m] for m in (CONTROL, FOREST) if m in done))
    least = _MIN_SHARE * len(asked)
    whole = [m for m in done if m != MAIN_EFFECTS and len(done[m] & asked) >= least]
    datasets = set.intersection(asked, *(done[m] for m in whole))
    return whole, [d for d in ran[CONTROL] if d in datasets]


def means_of(results: Results) -> Means:
    """Average the folds of each data set and method."""
    by_measure: Means = {}
    for measure in MEASURED:
        values = results.matrix(measure)
        by_measure[measure] = {
            dataset: dict(zip(results.methods, values[i].tolist(), strict=True))
            for i, dataset in enumerate(results.datasets)
        }
    return by_measure


def with_earlier(
    means: Means, earlier: Mapping[str, Means]
) -> tuple[Results, dict[str, str]]:
    """Return rows by data set and method, and which run each method is from."""
    run: dict[str, str] = {}
    rows: list[Row] = []
    for edition, source in {"this": means, **earlier}.items():
        for dataset in means["accuracy"]:
            for method in source["accuracy"].get(dataset, {}):
                if run.setdefault(method, edition) == edition:
                    figures = {
                        m: source[m].get(dataset, {}).get(method) for m in MEASURED
                    }
                    rows.append(_row(dataset, method, figures))
    return scored(Results(rows)), run


def _beside(results: Results, run: Mapping[str, str], picture: Path) -> Iterator[str]:
    """Yield all methods with where they were measured, and tests against the first."""
    summaries = {m: summarize(results, m) for m in MEASURED}
    accuracy, log_loss = (summaries[m] for m in MEASURED)
    lines = []
    for j in np.argsort(accuracy.ranks, kind="stable").tolist():
        name = accuracy.methods[j]
        cells = [Cell(name), Cell(run[name])]
        for s in (accuracy, log_loss):
            k = s.position(name)
            cells += [Cell(f"{s.ranks[k]:.2f}"), Cell(s.measure.text(s.averages[k]))]
        lines.append(cells)
    note = (
        f"Averages and ranks are over {len(accuracy.complete)} data sets, 10 folds "
        "with seed 1. Figures of earlier editions are those of their pages; most of "
        "the first are averages over three seeds, the first of which has these folds."
    )
    header = ["method", "run", "rank", "accuracy (%)", "rank in log-loss", "log-loss"]
    title = "Methods of all editions, by average rank of accuracy"
    table = ReportTable(title, header, lines, notes=[note], n_texts=2)
    yield table_to_markdown(table, "###")
    for measure, summary in summaries.items():
        if summary.testable:
            yield picture_of(results, measure, picture)
            yield friedman_sentence(summary)
            yield table_to_markdown(control_table(summary, CONTROL), "###")


def scored(results: Results) -> Results:
    """Leave out methods without probabilities, which have no log-loss."""
    names = {row["method"] for row in results.rows if row["log_loss"] is not None}
    return results.select(method=[m for m in results.methods if m in names])


def picture_of(results: Results, measure: str, picture: Path) -> str:
    """Draw average ranks into a file, and return the line that shows them."""
    display = CriticalDifferenceDisplay.from_results(results, measure)
    # Pages have pictures of their own.
    name = f"{picture.name}_{measure}.svg"
    # The same results give the same picture, byte for byte.
    with matplotlib.rc_context({"svg.hashsalt": "steelyard"}):
        display.figure_.savefig(picture.parent / name, metadata={"Date": None})
    words = measure.replace("_", "-")
    return f"![Average ranks by {words}, and the critical difference](images/{name})"


def _row(dataset: str, method: str, figures: Mapping[str, float | None]) -> Row:
    """Make a row as of one fit, which stands for all folds."""
    place = {"dataset": dataset, "method": method, "protocol": "honest"}
    ok = {"repeat": 0, "fold": 0, "status": "ok", "n_train": 9, "n_test": 1}
    return {**dict.fromkeys(COLUMNS), **place, **ok, **figures}


def _on_folds(rows: list[Row], others: Sequence[str], title: str) -> Iterator[str]:
    """Yield the methods that ran on some folds, beside the control on the same ones."""
    methods = [m for m in dict.fromkeys(r["method"] for r in rows) if m not in others]
    pairs = {method: on_same_folds(rows, CONTROL, method) for method in methods}
    pairs = {method: same for method, same in pairs.items() if same["names"]}
    if not pairs:
        return
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
        for m in MEASURED:
            cells += [MEASURES[m].text(value) for value in same[m].mean(axis=0)]
            cells += [_tally(leads[method, m]), _p(corrected[method, m])]
        lines.append([Cell(text) for text in cells])
    header = ["method", "data sets", "folds"]
    for m in MEASURED:
        name = MEASURES[m].title
        header += [f"{CONTROL}: {name}", f"method: {name}", "better/equal/worse"]
        header += ["p by Holm"]
    note = (
        f"Better, equal and worse are of {CONTROL}. Wilcoxon's signed ranks over data "
        "sets, corrected for all p of the table. Times are of other runs, and left out."
    )
    table = ReportTable(title, header, lines, notes=[note])
    yield table_to_markdown(table, "###")


def on_same_folds(rows: list[Row], first: str, second: str) -> dict[str, Any]:
    """Return averages of two methods over the folds that both have, (data sets, 2)."""
    fits: dict[tuple[Any, ...], dict[str, Row]] = {}
    for row in rows:
        if row["method"] in (first, second) and row["status"] == "ok":
            place = (row["dataset"], row["repeat"], row["fold"])
            fits.setdefault(place, {})[row["method"]] = row
    both = {place: found for place, found in fits.items() if len(found) == 2}
    names = list(dict.fromkeys(place[0] for place in both))
    out: dict[str, Any] = {"names": names, "folds": len(both)}
    for field in (*MEASURED, "n_test"):
        table = [
            [
                np.mean([f[m][field] for place, f in both.items() if place[0] == name])
                for m in (first, second)
            ]
            for name in names
        ]
        out[field] = np.array(table).reshape(-1, 2)
    return out


def _interactions(rows: list[Row]) -> Iterator[str]:
    """Yield what interactions are worth on each data set run without them as well."""
    same = on_same_folds(rows, CONTROL, MAIN_EFFECTS)
    if not same["names"]:
        return
    gain = same["accuracy"][:, 0] - same["accuracy"][:, 1]
    lines = [
        [Cell(same["names"][i])]
        + [
            Cell(MEASURES[m].text(value))
            for m in MEASURED
            for value in same[m][i, ::-1]
        ]
        + [Cell(MEASURES["accuracy"].text(gain[i], True), best=gain[i] < -_MAX_COST)]
        for i in np.argsort(gain, kind="stable").tolist()
    ]
    titles = [MEASURES[m].title for m in MEASURED]
    header = [
        f"{what}: {t}" for t in titles for what in ("main effects", "with interactions")
    ]
    average, loss = (same[m].mean(axis=0) for m in MEASURED)
    note = (
        f"{same['folds']} folds of {len(gain)} data sets: {100 * average[1]:.2f} % and "
        f"{loss[1]:.4f} with main effects, {100 * average[0]:.2f} % and {loss[0]:.4f} "
        f"with interactions. Losses of more than a point are in bold."
    )
    yield "## Interactions against main effects"
    table = ReportTable(
        "By data set", ["data set", *header, "gain"], lines, notes=[note]
    )
    yield table_to_markdown(table, "###")


def _behind(results: Results, n_rows: Mapping[str, int]) -> Iterator[str]:
    """Yield the data sets on which the forest is far ahead, with the reason."""
    if FOREST not in results.methods:
        return
    both = results.select(method=[CONTROL, FOREST])
    accuracy = both.matrix("accuracy")
    gap = accuracy[:, 1] - accuracy[:, 0]
    far = [i for i in np.argsort(-gap).tolist() if gap[i] > _BEHIND]
    lines = []
    for i in far:
        name = both.datasets[i]
        n = n_rows[name]
        ours, forest = (MEASURES["accuracy"].text(a) for a in accuracy[i])
        cells = [name, ours, forest, f"{gap[i] * n:.0f} of {n:.0f}"]
        lines.append([Cell(c) for c in (*cells, REASONS.get(name, "not looked into"))])
    yield "## More than 3 points behind the forest"
    if not lines:
        yield "None."
        return
    header = ["data set", CONTROL, FOREST, "rows behind", "why"]
    yield table_to_markdown(ReportTable("Accuracy (%)", header, lines), "###")


def _tally(leads: NDArray[np.float64]) -> str:
    better, worse = int((leads > 0).sum()), int((leads < 0).sum())
    return f"{better}/{len(leads) - better - worse}/{worse}"


def _p(p: float) -> str:
    return "<.001" if p < 0.001 else f"{p:.3f}"


if __name__ == "__main__":
    main()
