"""Answers to rows of which only some columns are known, beside other methods.

``python studies/partial_rows.py`` runs all data sets of the folder with 150 rows and
more and 4 to 64 columns, at most 1,500 rows; names of sets, ``choosing``,
``confirming`` or ``small`` run some: ``small`` are the first 20 of the confirming sets
with 150 to 1,500 rows, by alphabet. In each of two folds a share of the columns is
known, drawn three times; the others are missing in all held-out rows. Printed are
log-losses by share, on how many sets plain naive Bayes is lower by more than .01, and
how often answers said with 95 % and more are right; with ``--values``, single values
beside their shares in the data, with ``--files``, how much larger files are.
``new fit`` is a default that is fitted to the known columns: the limit. ``--methods``
adds others, such as EBM and LogisticRegression, and published sums such as WANBIA, with
their own answer and with ``unknown="marginal"``. ``--load`` takes the records of
earlier runs, and ``--picture`` draws the curves.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold, train_test_split

sys.path.insert(0, str(Path(__file__).resolve().parent))
from side_by_side import CHOOSING

import steelyard as sy
from steelyard._common.text import text_table
from steelyard.lab.baselines import baseline
from steelyard.lab.data.datasets import data_folder, load_dataset

SHARES = (80, 50, 20, 0, 100)
"""Percent of the columns that are known; 0 is one column, 100 are complete rows."""

MIN_ROWS, MAX_ROWS, MIN_CLASS_ROWS = 150, 1_500, 10
MIN_COLUMNS, MAX_COLUMNS = 4, 64
DRAWS = 3

# Of a table with this many answers said with MIN_SURE, as many are to be right.
MIN_SURE, MIN_ANSWERS = 0.95, 100

# Rows behind a single value.
MIN_VALUE_ROWS = 50

N_SMALL = 20

# Names and colours of the curves.
SHOWN = {
    "marginal": ("ShrinkageNB", "#2a7f62"),
    "sum": ("sum of the known cells", "#8fc1ad"),
    "plain NB": ("plain naive Bayes", "#4c72b0"),
    "base rate": ("base rate", "#999999"),
    "EBM": ("EBM", "#7a5195"),
    "CatBoost": ("CatBoost", "#c0543c"),
    "LightGBM": ("LightGBM", "#e08e79"),
    "LogisticRegression": ("logistic regression", "#b8860b"),
    "RandomForest": ("random forest", "#7f7f7f"),
}


def drawn(name: str) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Return at most 1,500 rows of a data set, without rare classes."""
    data = load_dataset(name)
    X = pd.DataFrame(data.table).reset_index(drop=True)
    y = np.asarray(data.target).astype(str)
    classes, sizes = np.unique(y, return_counts=True)
    rows = np.flatnonzero(np.isin(y, classes[sizes >= MIN_CLASS_ROWS]))
    if len(rows) > MAX_ROWS:
        rows, _ = train_test_split(
            rows, train_size=MAX_ROWS, stratify=y[rows], random_state=0
        )
        rows = np.sort(rows)
    X = X.iloc[rows].reset_index(drop=True)
    numbers = X.select_dtypes(["number", "bool"])
    return X.astype(dict.fromkeys(numbers, float)), y[rows]


def is_eligible(X: pd.DataFrame, y: NDArray[Any]) -> bool:
    """Return whether a table has classes, rows and columns enough, and not too many."""
    has_columns = MIN_COLUMNS <= X.shape[1] <= MAX_COLUMNS
    return len(y) >= MIN_ROWS and has_columns and len(np.unique(y)) > 1


def hidden(X: pd.DataFrame, columns: NDArray[np.int64]) -> pd.DataFrame:
    """Return a frame in which only some columns, by position, are known."""
    out = X.copy()
    for j in np.setdiff1d(np.arange(X.shape[1]), columns):
        is_number = pd.api.types.is_numeric_dtype(X.iloc[:, j])
        out[X.columns[j]] = np.nan if is_number else None
    return out


def of_truth(proba: Any, classes: Any, y: Any) -> NDArray[np.float64]:
    """Return the probability of the true class of each row."""
    chosen = (np.asarray(proba) * (np.asarray(classes) == y[:, None])).sum(axis=1)
    return np.asarray(np.maximum(chosen, 1e-12))


def measure(
    name: str, fold: int, methods: Sequence[str], with_limit: bool
) -> list[dict[str, Any]]:
    """Return a record for each share and draw of known columns of a fold."""
    warnings.simplefilter("ignore")
    X, y = drawn(name)
    n_columns = X.shape[1]
    if not is_eligible(X, y):
        return []
    folds = StratifiedKFold(5, shuffle=True, random_state=1)
    train, test = list(folds.split(X, y))[fold]
    A, a, B, b = X.iloc[train], y[train], X.iloc[test], y[test]
    default = sy.ShrinkageNB(n_jobs=1).fit(A, a)
    fitted: dict[str, Any] = {"plain NB": sy.NaiveBayes(n_jobs=1).fit(A, a)}
    for method in methods:
        fitted[method] = _made(method).fit(A, a)
        if isinstance(fitted[method], sy.WeightedNB):
            averaged = _made(method).set_params(unknown="marginal")
            fitted[f"{method}, averaged"] = averaged.fit(A, a)
    rates = np.array([(a == c).mean() for c in default.classes_])
    rng, records = np.random.default_rng(fold), []
    for share in SHARES:
        for draw in range(DRAWS if share < 100 else 1):
            n_known = max(1, round(n_columns * share / 100))
            known = np.sort(rng.permutation(n_columns)[:n_known])
            Z = hidden(B, known)
            answers = {
                k: (clf.predict_proba(Z), clf.classes_) for k, clf in fitted.items()
            }
            for setting in ("sum", "marginal"):
                default.set_params(unknown=setting)
                answers[setting] = default.predict_proba(Z), default.classes_
            answers["base rate"] = np.tile(rates, (len(b), 1)), default.classes_
            if with_limit and share == 100:
                answers["new fit"] = answers["marginal"]
            elif with_limit and draw == 0:
                limit = sy.ShrinkageNB(n_jobs=1).fit(A.iloc[:, known], a)
                answers["new fit"] = (
                    limit.predict_proba(B.iloc[:, known]),
                    limit.classes_,
                )
            record: dict[str, Any] = {"set": name, "share": share}
            for k, (proba, classes) in answers.items():
                record[k] = float(-np.log(of_truth(proba, classes, b)).mean())
            proba, classes = answers["marginal"]
            is_sure = proba.max(axis=1) >= MIN_SURE
            right = classes[proba.argmax(axis=1)] == b
            record |= {"sure": int(is_sure.sum()), "right": int(right[is_sure].sum())}
            records.append(record)
    return records


def _made(method: str) -> Any:
    try:
        return sy.method(method)
    except sy.exceptions.ParameterError:
        return baseline(method)


def single_values(name: str) -> list[dict[str, Any]]:
    """Return answers to single values and deciles beside their shares in the data."""
    warnings.simplefilter("ignore")
    X, y = drawn(name)
    if not is_eligible(X, y):
        return []
    clf = sy.ShrinkageNB(n_jobs=1).fit(X, y)
    records = []
    for j, column in enumerate(X.columns):
        cells = X[column]
        if pd.api.types.is_numeric_dtype(cells) and cells.nunique() > 10:
            groups = pd.qcut(cells, 10, duplicates="drop")
        else:
            groups = cells
        for value, rows in cells.groupby(groups, observed=True).groups.items():
            if len(rows) < MIN_VALUE_ROWS:
                continue
            Z = hidden(X.loc[rows], np.array([j]))
            answer = clf.predict_proba(Z).mean(axis=0)
            share = np.array([(y[rows] == c).mean() for c in clf.classes_])
            gap = float(np.abs(answer - share).max())
            records.append({"set": name, "column": column, "value": value, "gap": gap})
    return records


def file_sizes(name: str) -> list[dict[str, Any]]:
    """Return by how much the moments make the file of a model larger."""
    warnings.simplefilter("ignore")
    X, y = drawn(name)
    if not is_eligible(X, y):
        return []
    clf, sizes = sy.ShrinkageNB(n_jobs=1).fit(X, y), []
    with TemporaryDirectory() as folder:
        for model in (clf.model_.summed, clf.model_):
            clf.model_ = model
            clf.save(Path(folder) / "model.json")
            sizes.append((Path(folder) / "model.json").stat().st_size)
    return [{"set": name, "more": sizes[1] / sizes[0] - 1.0}]


def sets_of(names: Sequence[str]) -> list[str]:
    """Return data sets by name, of the choosing half or of all others."""
    manifest = pd.read_csv(data_folder() / "MANIFEST.csv", dtype={"name": str})
    every = manifest["name"].tolist()
    if list(names) == ["small"]:
        is_small = manifest["instances"].between(MIN_ROWS, MAX_ROWS)
        is_small &= manifest["attributes"].between(MIN_COLUMNS, MAX_COLUMNS)
        is_small &= ~manifest["name"].isin(CHOOSING)
        return sorted(manifest["name"][is_small])[:N_SMALL]
    if list(names) == ["choosing"]:
        return [name for name in every if name in CHOOSING]
    if list(names) == ["confirming"]:
        return [name for name in every if name not in CHOOSING]
    return list(names) or every


def shown_share(share: Any) -> str:
    """Return a share of known columns in words."""
    return f"{share} %" if share else "one column"


def report(records: pd.DataFrame) -> str:
    """Return log-losses by share, and what they come to."""
    kinds = [c for c in records if c not in ("set", "share", "sure", "right")]
    by_set = records.groupby(["share", "set"])[kinds].mean()
    means = by_set.groupby("share").mean().sort_index(ascending=False)
    rows = [
        [shown_share(share), *(f"{x:.4f}" for x in of)]
        for share, of in zip(means.index, means.to_numpy(), strict=True)
    ]
    parts = [text_table(["known", *kinds], rows, [False] + [True] * len(kinds))]
    for kind in ("sum", "marginal"):
        lower = (by_set[kind] - by_set["plain NB"] > 0.01).groupby("share").sum()
        shown = ", ".join(map(str, lower.sort_index(ascending=False)))
        n_sets = records["set"].nunique()
        parts.append(f"plain NB lower by > .01 than {kind}, of {n_sets} sets: {shown}")
    total = records.groupby(["share", "set"])[["sure", "right"]].sum()
    total = total[total["sure"] >= MIN_ANSWERS]
    right = (total["right"] / total["sure"]).sort_index(ascending=False)
    for share, of in right.groupby("share", sort=False):
        low = of[of < 0.92].droplevel("share")
        parts.append(
            f"{shown_share(share)} known: {len(of)} sets with {MIN_ANSWERS} answers of "
            f"{MIN_SURE:.0%} and more, right in {of.min():.3f} at least; below .92: "
            + (", ".join(f"{name} {x:.3f}" for name, x in low.items()) or "none")
        )
    return "\n".join(parts)


def report_values(records: pd.DataFrame) -> str:
    """Return how far answers to single values are from their shares."""
    gaps = records["gap"]
    worst = records.loc[gaps.idxmax()]
    return (
        f"{len(gaps)} single values of {records['set'].nunique()} tables: mean "
        f"difference {gaps.mean():.4f}, above .15 on {(gaps > 0.15).sum()}, largest "
        f"{worst['gap']:.3f} ({worst['set']}, {worst['column']} = {worst['value']})"
    )


def report_files(records: pd.DataFrame) -> str:
    """Return how much larger files are."""
    more = records.set_index("set")["more"].sort_values(ascending=False)
    largest = ", ".join(f"{name} {x:.0%}" for name, x in more.head(8).items())
    return (
        f"files of {len(more)} models are larger by {more.mean():.0%} on average, by "
        f"more than 30 % on {(more > 0.3).sum()}: {largest}"
    )


def draw(records: pd.DataFrame, path: Path) -> None:
    """Draw log-loss against the share of columns that are known."""
    from matplotlib import pyplot as plt

    # The same bytes at every run.
    plt.rcParams.update({"svg.hashsalt": "steelyard", "svg.fonttype": "none"})
    kinds = [kind for kind in SHOWN if kind in records]
    n_sets = records["set"].nunique()
    means = records.groupby(["share", "set"])[kinds].mean().groupby("share").mean()
    figure, axes = plt.subplots(figsize=(7.2, 4.6), layout="constrained")
    for kind in kinds:
        axes.plot(
            *(np.arange(len(means)), means[kind]),
            color=SHOWN[kind][1],
            linewidth=3 if kind == "marginal" else 1.4,
            linestyle="--" if kind in ("new fit", "base rate") else "-",
            zorder=3 if kind == "marginal" else 2,
        )
    low, high = axes.get_ylim()
    levels = means[kinds].iloc[0].sort_values()
    places = _apart(levels.to_numpy(), 0.048 * (high - low))
    for kind, level in zip(levels.index, places, strict=True):
        name, color = SHOWN[kind]
        label = axes.text(-0.06, level, name, ha="right", va="center", color=color)
        if kind == "marginal":
            label.set_fontweight("bold")
    axes.set_xlim(-0.05, len(means) - 0.95)
    axes.set_xticks(np.arange(len(means)), list(map(shown_share, means.index)))
    axes.yaxis.tick_right()
    axes.spines[["top", "left"]].set_visible(False)
    axes.set_title(f"log-loss of held-out rows, {n_sets} data sets", loc="right")
    axes.set_xlabel("columns that are known")
    figure.savefig(path, metadata={"Date": None})


def _apart(levels: NDArray[np.float64], gap: float) -> NDArray[np.float64]:
    """Move sorted levels until neighbours are a gap apart."""
    places = levels.copy()
    for _ in range(200):
        short = np.maximum(gap - np.diff(places), 0.0)
        places[:-1] -= short / 2.0
        places[1:] += short / 2.0
    return places


def main(arguments: Sequence[str] | None = None) -> None:
    """Print log-losses by share of known columns."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("sets", nargs="*")
    parser.add_argument("--folds", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--methods", nargs="*", default=[])
    parser.add_argument("--limit", action="store_true", help="with new fits")
    parser.add_argument("--values", action="store_true", help="single values instead")
    parser.add_argument("--files", action="store_true", help="sizes of files instead")
    parser.add_argument("--save", type=Path, help="write the records as CSV")
    parser.add_argument("--load", type=Path, nargs="+", help="such files, and no run")
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args(arguments)
    if options.load:
        finish(pd.concat([pd.read_csv(path) for path in options.load]), options)
        return
    sets, run = sets_of(options.sets), Parallel(options.jobs, batch_size=1)
    if options.values:
        found = run(delayed(single_values)(name) for name in sets)
        print(report_values(pd.DataFrame(list(chain.from_iterable(found)))))
        return
    if options.files:
        found = run(delayed(file_sizes)(name) for name in sets)
        print(report_files(pd.DataFrame(list(chain.from_iterable(found)))))
        return
    tasks = [(name, fold) for fold in range(options.folds) for name in sets]
    found = run(
        delayed(measure)(*task, options.methods, options.limit) for task in tasks
    )
    records = pd.DataFrame(list(chain.from_iterable(found)))
    if options.save:
        records.to_csv(options.save, index=False)
    finish(records, options)


def finish(records: pd.DataFrame, options: argparse.Namespace) -> None:
    """Print what was measured, and draw it."""
    print(report(records))
    if options.picture:
        draw(records, options.picture)


if __name__ == "__main__":
    main()
