"""Write the measured part of the leader board from result files.

``python studies/leaderboard.py RESULTS... --write PAGE`` replaces all that
follows the line ``<!-- measured -->`` by tables, and draws the pictures into the folder
``images`` beside the page. Result files are those of ``steelyard compare --journal``;
several are read as one, so that long runs can be made in parts, and repeats that some
method has not finished are left out.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import matplotlib

from steelyard.lab.displays import CriticalDifferenceDisplay
from steelyard.lab.report.layouts import (
    Cell,
    ReportTable,
    control_table,
    dataset_table,
    failure_table,
    method_table,
)
from steelyard.lab.report.summaries import (
    friedman_sentence,
    summaries,
    summarize,
)
from steelyard.lab.report.writers import table_to_markdown
from steelyard.lab.results import Results

MARK = "<!-- measured -->\n"
CONTROL = "SHNB"

# The 26 sets on which figures were given before there was a program.
FIRST = (
    "anneal audiology balance-scale breast-cancer breast-w colic credit-a credit-g "
    "diabetes glass heart-c heart-h heart-statlog hepatitis ionosphere iris kr-vs-kp "
    "labor lymphography primary-tumor sonar soybean vehicle vote vowel zoo"
).split()

# Methods that are shown by data set; more do not fit a page.
SHOWN = (
    "SHNB NB RNB CAWNB-CLL WANBIA-CLL CWNB DWNB LWNB LNB CFW SNB LogisticRegression "
    "HistGradientBoosting RandomForest EBM Khiops"
).split()

MEASURES = ("accuracy", "log_loss")
AVERAGED = (
    *("accuracy", "balanced_accuracy", "f1", "log_loss", "brier", "auc", "ece"),
    "fit_seconds",
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Read result files, draw pictures, write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", nargs="+", type=Path)
    parser.add_argument("--write", type=Path, required=True, metavar="PAGE")
    options = parser.parse_args(arguments)
    parts = [Results.from_journal(path) for path in options.results]
    results = _finished(Results([row for part in parts for row in part.rows]))
    images = options.write.parent / "images"
    images.mkdir(exist_ok=True)
    text = options.write.read_text(encoding="utf-8")
    before, mark, _ = text.partition(MARK)
    if not mark:
        parser.error(f"{options.write} has no line {MARK.strip()!r}.")
    body = "\n\n".join(sections(results, images / options.write.stem))
    options.write.write_text(f"{before}{mark}\n{body}\n", encoding="utf-8")


def sections(results: Results, picture: Path) -> Iterator[str]:
    """Yield headings, tables and pictures in the order of the page."""
    with_probabilities = scored(results)
    for title, group in (
        ("All data sets", with_probabilities),
        (
            "The first 26 data sets, first repeat",
            with_probabilities.select(dataset=FIRST, repeat=0),
        ),
    ):
        yield f"## {title}"
        averages = summaries(group, AVERAGED)
        yield _table(method_table(averages, "accuracy", CONTROL))
        for measure in MEASURES:
            if group is with_probabilities:
                yield picture_of(group, measure, picture)
            summary = summarize(group, measure)
            if not summary.testable:
                continue
            yield friedman_sentence(summary)
            if group is with_probabilities:
                yield _table(control_table(summary, CONTROL))
    yield from _by_repeat(with_probabilities.select(dataset=FIRST))
    for measure in MEASURES:
        yield f"## {section_title(measure)}"
        parts = [with_probabilities.select(method=name) for name in SHOWN]
        shown = Results([row for part in parts for row in part.rows])
        yield _table(dataset_table(summarize(shown, measure), CONTROL))
    if results.failures:
        yield _table(failure_table(results))


def section_title(measure: str) -> str:
    """Return the heading above the figures of a measure by data set."""
    return f"{measure.capitalize().replace('_', '-')} by data set"


def _by_repeat(results: Results) -> Iterator[str]:
    """Yield averages of the shown methods for each repeat."""
    repeats = sorted({row["repeat"] for row in results.rows})
    averages = {
        (measure, repeat): summarize(results.select(repeat=repeat), measure)
        for measure in MEASURES
        for repeat in repeats
    }
    rows = [
        [Cell(name)]
        + [
            Cell(summary.measure.text(summary.averages[summary.position(name)]))
            for summary in averages.values()
        ]
        for name in SHOWN
        if name in results.methods
    ]
    header = [
        f"{summary.measure.title}, repeat {repeat + 1}"
        for (_, repeat), summary in averages.items()
    ]
    yield _table(ReportTable("Averages by repeat", ["method", *header], rows))


def _finished(results: Results) -> Results:
    """Keep the repeats of a data set that every method has run through."""
    runs = Counter((row["dataset"], row["repeat"]) for row in results.rows)
    folds = len({row["fold"] for row in results.rows})
    whole = folds * len(results.methods)
    return Results(
        [row for row in results.rows if runs[row["dataset"], row["repeat"]] == whole]
    )


def scored(results: Results) -> Results:
    """Leave out methods without probabilities, which have no log-loss."""
    scored = {row["method"] for row in results.rows if row["log_loss"] is not None}
    return results.select(method=[m for m in results.methods if m in scored])


def _table(table: ReportTable) -> str:
    return table_to_markdown(table, "###")


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


if __name__ == "__main__":
    main()
