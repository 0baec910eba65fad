"""Compare the default with other libraries on tables that nothing was chosen on.

``python studies/unseen_tables.py JOURNAL [--methods SHNB EBM ...] [--picture FILE]``
downloads the packages of ``unseen_tables.csv`` from the package index, reads their
tables, and runs the methods on the same five folds of each (``StratifiedKFold(5,
shuffle=True, random_state=1)``; at most 3,000 rows; classes of ten rows and more). It
prints log-loss by table, the default against each method, and times. The journal is a
result file of ``steelyard.compare``: an interrupted run goes on, and methods that are
added later run on the same folds.

The tables are for judging. Run this once, after all choices are made.
"""

from __future__ import annotations

import argparse
import ast
import csv
import io
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from sklearn.model_selection import train_test_split

import steelyard as sy
from steelyard.io.dataset import read_dataset
from steelyard.lab.report.layouts import control_table, dataset_table
from steelyard.lab.report.summaries import summarize
from steelyard.lab.report.writers import table_to_markdown
from steelyard.lab.results import Results

TABLES = Path(__file__).with_suffix(".csv")
METHODS = ["SHNB", "LogisticRegression", "RandomForest", "HistGradientBoosting", "NB"]
MAX_ROWS, MIN_CLASS_ROWS = 3000, 10

# Methods by the names of the picture.
SHOWN = {
    "LogisticRegression": "logistic regression",
    "RandomForest": "random forest",
    "HistGradientBoosting": "gradient boosting",
    "NB": "naive Bayes",
}

Table = tuple[str, pd.DataFrame, np.ndarray]


def main(arguments: Sequence[str] | None = None) -> None:
    """Download the tables, compare the methods, print the tables of results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("journal", type=Path)
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--tables", nargs="+", help="names; all by default")
    parser.add_argument("--packages", type=Path, default=Path("build/packages"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args(arguments)
    tables = list(read_tables(options.packages, options.tables))
    asked = {"folds": 5, "seed": 1, "n_jobs": options.jobs}
    results = [
        sy.compare(
            [method], tables, journal=of_method(options.journal, method), **asked
        )
        for method in options.methods
    ]
    merged = Results(row for one in results for row in one.rows)
    report(merged, options.methods[0])
    if options.picture:
        draw(merged, options.picture)


def of_method(journal: Path, method: str) -> Path:
    """Return the result file of one method: methods may be added later."""
    return journal.with_name(f"{journal.stem}-{method}{journal.suffix or '.jsonl'}")


def read_tables(folder: Path, names: Sequence[str] | None) -> Iterator[Table]:
    """Yield name, columns and labels of each table; packages are downloaded once."""
    with TABLES.open(encoding="utf-8", newline="") as file:
        entries = list(csv.DictReader(file))
    unknown = {*(names or ())} - {entry["name"] for entry in entries}
    if unknown:
        sys.exit(f"{TABLES.name} has no table {', '.join(sorted(unknown))}.")
    for entry in entries:
        if names is None or entry["name"] in names:
            frame = read_frame(wheel(folder, entry["package"]), entry)
            yield entry["name"], *prepared(frame, entry)


def wheel(folder: Path, package: str) -> Path:
    """Return the file of a package, downloaded if it is not there."""
    start = re.sub("[-_.]+", "-", package.replace("==", "-")).lower()

    def downloaded() -> list[Path]:
        files = folder.glob("*")
        return [
            p for p in files if re.sub("[-_.]+", "-", p.name).lower().startswith(start)
        ]

    if not downloaded():
        # Nothing of it is installed or run.
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        subprocess.run([*command, package, "--dest", str(folder)], check=True)
    return downloaded()[0]


def read_frame(package: Path, entry: dict[str, str]) -> pd.DataFrame:
    """Read a table of a package: a frame in a pickle, CSV, ARFF or Orange's format."""
    data = io.BytesIO(member(package, entry["file"]))
    options = settings(entry)
    if entry["file"].endswith(".pkl.compress"):
        return pd.DataFrame(pd.read_pickle(data, compression="xz"))
    if entry["file"].endswith(".arff"):
        file = package.with_name(Path(entry["file"]).name)
        file.write_bytes(data.getvalue())
        whole = read_dataset(file, target=entry["target"])
        return pd.DataFrame(whole.table).assign(**{entry["target"]: whole.target})
    if options.get("tab"):
        frame = pd.read_csv(data, sep="\t", header=0, skiprows=[1, 2], na_values="?")
    else:
        frame = pd.read_csv(data, **options.get("csv", {}))
    # A file without names of columns: c0, c1, ...
    return frame.rename(columns=lambda c: c if isinstance(c, str) else f"c{c}")


def member(package: Path, name: str) -> bytes:
    """Return a file of a wheel, or of the source of a package that has no wheel."""
    if package.suffix == ".whl":
        return zipfile.ZipFile(package).read(name)
    with tarfile.open(package) as archive:
        path = next(n for n in archive.getnames() if n.partition("/")[2] == name)
        file = archive.extractfile(path)
        assert file is not None
        return file.read()


def settings(entry: dict[str, str]) -> dict[str, Any]:
    """Return the options of an entry, such as ``tab=True``, as a dictionary."""
    call = ast.parse(f"f({entry['options'] or ''})", mode="eval").body
    assert isinstance(call, ast.Call)
    return {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}


def prepared(frame: pd.DataFrame, entry: dict[str, str]) -> tuple[Any, np.ndarray]:
    """Drop columns, rows without a label and rare classes; draw at most 3,000 rows."""
    target, dropped = entry["target"], entry["drop"]
    unnamed = [c for c in ("Unnamed: 0",) if c in dropped]
    words = [*unnamed, *dropped.replace("Unnamed: 0", "").split()]
    frame = frame[frame[target].notna()].drop(columns=words, errors="ignore")
    labels = frame.pop(target)
    if settings(entry).get("positive"):
        labels = labels > 0
    y = labels.astype(str).to_numpy()
    classes, counts = np.unique(y, return_counts=True)
    rows = np.flatnonzero(np.isin(y, classes[counts >= MIN_CLASS_ROWS]))
    if len(rows) > MAX_ROWS:
        drawn = {"train_size": MAX_ROWS, "stratify": y[rows], "random_state": 0}
        rows = np.sort(train_test_split(rows, **drawn)[0])
    return frame.iloc[rows].reset_index(drop=True), y[rows]


def report(results: Results, control: str) -> None:
    """Print log-loss by table, the tests, and the mean times of fits."""
    for metric in ("log_loss", "accuracy"):
        summary = summarize(results, metric)
        tables = [control_table(summary, control)]
        if metric == "log_loss":
            tables.insert(0, dataset_table(summary, control))
        for table in tables:
            print(table_to_markdown(table, "###"), end="\n\n")
    times = results.matrix("fit_seconds").mean(axis=0)
    for method, seconds in zip(results.methods, times, strict=True):
        print(f"{method}: {seconds:.2f} s a fit")


def draw(results: Results, path: Path) -> None:
    """Draw by how much the first method's log-loss is lower, table by table."""
    ours, *others = results.matrix("log_loss").T
    figure, ax = plt.subplots(figsize=(7.5, 0.45 * len(others) + 1.1))
    for y, theirs in enumerate(others):
        lead = (theirs - ours)[np.isfinite(theirs)]
        colours = np.where(lead > 0.0, "#1f5a94", "#b5532a")
        ax.scatter(lead, np.full(len(lead), y), s=20, alpha=0.6, c=colours, lw=0)
        tally = f"lower on {np.sum(lead > 0)} of {len(lead)}"
        ax.annotate(tally, (1.01, y), xycoords=("axes fraction", "data"), va="center")
    ax.set_yticks(range(len(others)), [SHOWN.get(m, m) for m in results.methods[1:]])
    ax.set_ylim(len(others) - 0.5, -0.5)
    ax.axvline(0.0, color="black", linewidth=0.8)
    ax.set_xscale("symlog", linthresh=0.02)
    ticks = [-0.02, 0.0, 0.02, 0.1, 1.0]
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.set_xlabel("log-loss of the other method less the default's, one dot a table")
    ax.spines[["top", "right", "left"]].set_visible(False)
    figure.savefig(path, bbox_inches="tight")


if __name__ == "__main__":
    main()
