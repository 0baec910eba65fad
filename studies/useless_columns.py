"""Measure what one useless column costs each method, and write it into a page.

``python studies/useless_columns.py SHNB NB RandomForest EBM --write PAGE`` adds, one at
a time, a column of random text, of names that hardly repeat, and of identifiers to ten
data sets of the folder ``STEELYARD_DATA``, cross-validates the methods on the same
folds with and without it, prints how much they lose, and replaces all that follows the
line ``<!-- measured -->`` of the page. The columns are drawn with a fixed seed and know
nothing of the labels. With ``--journal FILE`` the same command goes on where an
interrupted one stopped; ``--also FILE`` reads methods that were run before, and
``--beside FILE`` methods that ran on some folds, for a table of the folds all have.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.text import counted
from steelyard.io.dataset import DataSet
from steelyard.lab.data.datasets import load_dataset
from steelyard.lab.report.layouts import Cell, ReportTable, failure_table
from steelyard.lab.report.summaries import MEASURES
from steelyard.lab.report.writers import table_to_markdown
from steelyard.lab.results import Results
from steelyard.lab.runner import compare

MARK = "<!-- measured -->\n"
SHOWN = "SHNB"
JOINT = " + "

# What is lost of each measure.
TITLES = {"accuracy": "points", "log_loss": "log-loss"}

# Two to ten classes, 303 to 19,020 rows; numbers, categories, both; missing values.
DATASETS = (
    "credit-g heart-c cmc vertebral-column-3c eucalyptus solar-flare-2 yeast kr-vs-kp "
    "ann-thyroid magic"
).split()

Floats = NDArray[np.float64]


def random_text(n: int, rng: np.random.Generator) -> list[str]:
    """Return texts of 200 values, each as likely as the others."""
    return [f"v{i:03}" for i in rng.integers(200, size=n)]


def names(n: int, rng: np.random.Generator) -> list[str]:
    """Return names that hardly repeat: about 0.8 n are different."""
    # Of M names n draws show M (1 - exp(-n / M)): 0.80 n where M is 2.2 n.
    return [f"name {i}" for i in rng.integers(round(2.2 * n), size=n)]


def identifiers(n: int, rng: np.random.Generator) -> list[str]:
    """Return texts that are all different, in no order."""
    return [f"id {i}" for i in rng.permutation(n)]


COLUMNS: dict[str, Callable[[int, np.random.Generator], list[str]]] = {
    "random text": random_text,
    "names": names,
    "identifier": identifiers,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the comparison, print the tables, write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("methods", nargs="+", metavar="METHOD", help="acronyms, or names of baselines")
    add("--datasets", nargs="+", default=DATASETS, metavar="NAME")
    add("--folds", type=int, default=5)
    add("--seed", type=int, default=1, help="seed of folds and of columns")
    add("--jobs", type=int, default=2, help="processes")
    add("--journal", type=Path, help="result file, to go on from")
    add("--also", nargs="+", type=Path, default=[], metavar="RESULTS")
    add("--beside", nargs="+", type=Path, default=[], metavar="RESULTS")
    add("--write", type=Path, metavar="PAGE")
    options = parser.parse_args(arguments)
    if options.write is not None:
        before, mark, _ = options.write.read_text(encoding="utf-8").partition(MARK)
        if not mark:
            parser.error(f"{options.write} has no line {MARK.strip()!r}.")
    data = [v for name in options.datasets for v in variants(name, options.seed)]
    settings = {name: vars(options)[name] for name in ("folds", "seed", "journal")}
    results = compare(options.methods, data, n_jobs=options.jobs, **settings)
    rows = [*results.rows, *_rows_of(options.also)]
    sections = [*tables(Results(rows, results.settings))]
    if options.beside:
        sections[1:1] = beside(Results([*rows, *_rows_of(options.beside)]))
    body = "\n\n".join(table_to_markdown(table, "##") for table in sections)
    print(body)
    if options.write is not None:
        options.write.write_text(f"{before}{mark}\n{body}\n", encoding="utf-8")


def variants(name: str, seed: int) -> Iterator[DataSet]:
    """Yield a data set as it is, and with each of the columns added."""
    data = load_dataset(name)
    yield data
    for kind, draw in COLUMNS.items():
        column = draw(len(data), np.random.default_rng(seed))
        table = data.table.assign(**{kind: column})
        yield replace(data, name=f"{data.name}{JOINT}{kind}", table=table)


def tables(results: Results) -> Iterator[ReportTable]:
    """Yield what each method loses on average, then one method by data set."""
    names = [name for name in results.datasets if JOINT not in name]
    by_measure = {measure: losses(results, names, measure) for measure in TITLES}
    whole = np.logical_and.reduce([_whole(part) for part in by_measure.values()])
    if whole.any():
        yield _by_method(
            results.methods, {m: part[:, whole] for m, part in by_measure.items()}
        )
    if SHOWN in results.methods:
        position = results.methods.index(SHOWN)
        yield _by_dataset(
            names, {m: part[:, :, position] for m, part in by_measure.items()}
        )
    if results.failures:
        yield failure_table(results)


def beside(results: Results) -> Iterator[ReportTable]:
    """Yield the same averages over the fits that every method has made."""
    ran = Counter(_fold(row) for row in results.rows if row["status"] == "ok")
    whole = len(results.methods) * (1 + len(COLUMNS))
    same = Results([row for row in results.rows if ran[_fold(row)] == whole])
    names = [name for name in same.datasets if JOINT not in name]
    if not names:
        return
    by_measure = {measure: losses(same, names, measure) for measure in TITLES}
    table = _by_method(same.methods, by_measure)
    n_folds = sum(n == whole for n in ran.values())
    note = f"{counted(n_folds, 'fold')} of {', '.join(names)}: those that all have run."
    yield replace(table, title="On the same folds", notes=[*table.notes, note])


def _fold(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["dataset"].split(JOINT)[0], row["repeat"], row["fold"]


def _rows_of(files: Sequence[Path]) -> list[dict[str, Any]]:
    return [row for file in files for row in Results.from_journal(file).rows]


def losses(results: Results, names: Sequence[str], measure: str) -> Floats:
    """Return a measure with nothing added, and what is lost with each column.

    The shape is (1 + columns, data sets, methods). Positive losses are worse; NaN where
    a fit failed, or there is none.
    """
    places = {name: i for i, name in enumerate(results.datasets)}
    values = results.matrix(measure)
    plain = values[[places[name] for name in names]]
    parts = [plain]
    for kind in COLUMNS:
        added = values[[places[f"{name}{JOINT}{kind}"] for name in names]]
        parts.append(MEASURES[measure].sign * (plain - added))
    return np.stack(parts)


def _by_method(methods: Sequence[str], by_measure: Mapping[str, Floats]) -> ReportTable:
    """Lay out means and the worst losses, a line for each method."""
    rows = []
    for j, method in enumerate(methods):
        parts = {measure: part[:, :, j] for measure, part in by_measure.items()}
        cells = [Cell(_text(m, part[0].mean())) for m, part in parts.items()]
        for i in range(1, 1 + len(COLUMNS)):
            for m, part in parts.items():
                mean, worst = part[i].mean(), part[i].max()
                cells.append(Cell(f"{_text(m, mean, True)} / {_text(m, worst, True)}"))
        rows.append([Cell(method), *cells])
    scope = counted(by_measure["accuracy"].shape[1], "data set")
    note = (
        f"Averages over {scope} with nothing added, and what is lost with each column: "
        "mean / worst, positive is worse."
    )
    title = "What a useless column costs"
    return ReportTable(title, ["method", *_header()], rows, notes=[note])


def _by_dataset(names: Sequence[str], by_measure: Mapping[str, Floats]) -> ReportTable:
    """Lay out the figures of one method, a line for each data set."""
    rows = [
        [
            Cell(_text(m, part[i, k], signed=i > 0))
            for i in range(1 + len(COLUMNS))
            for m, part in by_measure.items()
        ]
        for k in range(len(names))
    ]
    lines = [[Cell(name), *cells] for name, cells in zip(names, rows, strict=True)]
    return ReportTable(f"{SHOWN} by data set", ["data set", *_header()], lines)


def _whole(part: Floats) -> NDArray[np.bool_]:
    """Return the data sets on which no method failed."""
    # A method without probabilities has no log-loss anywhere.
    measured = ~np.isnan(part).all(axis=(0, 1))
    return np.asarray(~np.isnan(part[:, :, measured]).any(axis=(0, 2)))


def _header() -> list[str]:
    plain = [MEASURES[measure].title for measure in TITLES]
    return plain + [
        f"+ {kind}: {title}" for kind in COLUMNS for title in TITLES.values()
    ]


def _text(measure: str, value: float, signed: bool = False) -> str:
    return MEASURES[measure].text(value, signed)


if __name__ == "__main__":
    main()
