"""The CWNB paper's experiments: ``python -m steelyard.experiments.repro_cwnb``.

H. Zhang, L. Jiang, C. Li (2021), "Collaboratively weighted naive Bayes", Knowledge and
Information Systems. Ten equal-width bins and mean or mode imputation over the whole
data set, stratified 10-fold cross-validation, the same folds for all methods.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import LinearSVC

from steelyard.experiments.protocols import (
    CWNB_DELETED,
    cross_validate,
    data_folder,
    load_dataset,
    prepare,
)
from steelyard.experiments.repro_report import (
    Measurement,
    figure,
    markdown_table,
    published_folder,
    read_published,
    replace_section,
)
from steelyard.joint import JointWeightedNB
from steelyard.presets import method

if TYPE_CHECKING:
    import pandas

__all__ = [
    "COMPARED",
    "PARTS",
    "Setting",
    "average_ranks",
    "cwnb_sets",
    "flip_labels",
    "main",
    "sum_of_attributes",
]

SEED = 1

COMPARED = ("CWNB", "AIWNB-E", "DWNB", "WANBIA-CLL", "NB", "SVM")
"""Methods of the paper's Table 2, in its order."""

VARIANTS = ("CWNB", "CWNB-R", "CWNB-I", "CWNB-RI")

# The paper does not say how its weights are bounded: [0, 1], or from below alone.
_FREE = ", w ≥ 0"

# Rows of the consistency experiment, and its limits.
_SIZES = (25, 50, 75, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000)
_CONSISTENT = ("NB", "DWNB", "WANBIA-CLL", "CWNB", f"CWNB{_FREE}")
_MOST_DRAWS = 10
_JOINT_ROWS = 700
_FLIPPED_SETS = ("breast-w", "vote", "soybean", "segment", "kr-vs-kp", "splice")
_FLIPPED_SHARE = 0.05
_FLIPPED_DRAWS = 5


@dataclass(frozen=True)
class Setting:
    """Where the data are, and how much of them to use."""

    data: Path
    published: Path
    sets: tuple[str, ...]
    repeats: int = 1
    sizes: tuple[int, ...] = _SIZES
    images: Path | None = None


@dataclass(frozen=True)
class Part:
    """The text of one experiment, and the figures behind it."""

    text: str
    measurements: list[Measurement]
    verdicts: dict[str, Any]


# ------------------------------------------------------------------------------- pieces


def cwnb_sets(data: Path, most_rows: int | None = None) -> tuple[str, ...]:
    """Name the data sets that the paper shares, smallest first.

    Parameters
    ----------
    data : Path
        Folder of data sets, with ``MANIFEST.csv``.
    most_rows : int, default=None
        Leave out larger ones.

    Returns
    -------
    tuple of str
        Names.
    """
    with (data / "MANIFEST.csv").open(encoding="utf-8", newline="") as file:
        rows = [
            (int(row["instances"]), row["name"])
            for row in csv.DictReader(file)
            if "cwnb60" in row["papers"].split("|")
        ]
    return tuple(
        name for n, name in sorted(rows) if most_rows is None or n <= most_rows
    )


def sum_of_attributes(
    n_rows: int, seed: int
) -> tuple[pandas.DataFrame, NDArray[np.int64]]:
    """Generate the paper's toy data: six attributes of {0, 1, 2, 3}, label [sum >= 9].

    Parameters
    ----------
    n_rows : int
        Number of rows.
    seed : int
        Seed of the generator.

    Returns
    -------
    X : pandas.DataFrame
        Categories; all four values are declared.
    y : ndarray of shape (n_rows,)
        0 or 1.
    """
    import pandas as pd

    values = np.random.default_rng(seed).integers(4, size=(n_rows, 6))
    columns = {
        f"a{j}": pd.Categorical(values[:, j], categories=range(4)) for j in range(6)
    }
    return pd.DataFrame(columns), (values.sum(axis=1) >= 9).astype(np.int64)


def flip_labels(
    y: NDArray[Any], share: float, seed: int
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Give a share of the rows the label of another class, each as likely.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Labels.
    share : float
        Share of rows.
    seed : int
        Seed of the generator.

    Returns
    -------
    flipped : ndarray of shape (n,)
        Labels, some of them wrong.
    wrong : ndarray of shape (n,)
        Which.
    """
    rng = np.random.default_rng(seed)
    classes, codes = np.unique(y, return_inverse=True)
    rows = rng.choice(len(y), round(share * len(y)), replace=False)
    away = rng.integers(1, len(classes), size=len(rows))
    codes = codes.copy()
    codes[rows] = (codes[rows] + away) % len(classes)
    wrong = np.zeros(len(y), dtype=bool)
    wrong[rows] = True
    return classes[codes], wrong


def average_ranks(accuracies: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Average each method's rank over data sets: 1 is best, ties share their ranks.

    Parameters
    ----------
    accuracies : mapping of method to mapping of data set to accuracy
        All methods on the same data sets.

    Returns
    -------
    dict of str to float
        Average rank of each method, as in Friedman's test.

    Examples
    --------
    >>> average_ranks({"a": {"x": 90.0, "y": 80.0}, "b": {"x": 80.0, "y": 80.0}})
    {'a': 1.25, 'b': 1.75}
    """
    names = list(next(iter(accuracies.values())))
    table = np.array(
        [[column[name] for name in names] for column in accuracies.values()]
    )
    # Accuracies that differ by rounding alone are equal.
    ranks = rankdata(-table.round(9), axis=0).mean(axis=1)
    return dict(zip(accuracies, ranks.tolist(), strict=True))


def _classifier(name: str) -> Any:
    if name == "SVM":
        # LIBLINEAR, L2-regularised L2-loss, primal, as in the paper.
        codes = OneHotEncoder(handle_unknown="ignore")
        return make_pipeline(codes, LinearSVC(dual=False))
    if name == "joint":
        return JointWeightedNB(cardinality="declared")
    # The paper's naive Bayes is Weka's, which smooths by Laplace's rule.
    acronym = "NB-Laplace" if name == "NB" else name.removesuffix(_FREE)
    bounds = {"bounds": (0, None)} if name.endswith(_FREE) else {}
    return method(acronym, cardinality="declared", **bounds)


def _load(name: str, data: Path) -> tuple[pandas.DataFrame, NDArray[Any]]:
    X, y = load_dataset(name, data)
    if name in CWNB_DELETED:
        X = X.drop(columns=CWNB_DELETED[name])
    X, _ = prepare(X, y, "published", "equal-width")
    return X, y


def _validate(
    name: str,
    X: pandas.DataFrame,
    y: NDArray[Any],
    setting: Setting,
    look: Callable[[Any], Any] | None = None,
) -> tuple[float, float, list[Any]]:
    """Return the accuracy in percent, seconds, and what ``look`` found in each fold."""
    if name == "SVM":
        # A cell stays missing where its whole column is.
        X = X.apply(lambda column: column.cat.codes)
    found = [
        cross_validate(_classifier(name), X, y, seed=SEED + repeat, look=look)
        for repeat in range(setting.repeats)
    ]
    accuracy = float(np.mean([one.accuracy for one in found]))
    facts = [fact for one in found for fact in one.facts]
    return accuracy, sum(one.seconds for one in found), facts


# ------------------------------------------------------------------------------- parts


def accuracy_part(setting: Setting) -> Part:
    """Table 2: accuracies, their averages, and average ranks."""
    measurements = []
    free = f"CWNB{_FREE}"
    names = (*COMPARED, free)
    measured: dict[str, dict[str, float]] = {name: {} for name in names}
    for data in setting.sets:
        X, y = _load(data, setting.data)
        for name in names:
            accuracy, seconds, _ = _validate(name, X, y, setting)
            measured[name][data] = accuracy
            measurements.append(Measurement(data, name, accuracy, seconds))
    published = {
        row["method"]: row for row in read_published(setting.published, "cwnb_summary")
    }
    averages = {name: float(np.mean(list(measured[name].values()))) for name in names}
    ranks = average_ranks({name: measured[name] for name in COMPARED})
    summary = []
    for name in COMPARED:
        theirs = float(published[name]["average_accuracy"])
        best = float(published["CWNB"]["average_accuracy"])
        wins, losses = _wins(measured["CWNB"], measured[name])
        summary.append(
            [
                name,
                figure(theirs),
                figure(averages[name]),
                figure(best - theirs, signed=True),
                figure(averages["CWNB"] - averages[name], signed=True),
                figure(float(published[name]["average_rank"])),
                figure(ranks[name]),
                "" if name == "CWNB" else f"{wins} / {losses}",
            ]
        )
    header = [
        "method",
        "average published",
        "measured",
        "CWNB's lead published",
        "measured",
        "rank published",
        "measured",
        "CWNB better / worse",
    ]
    rows = [
        [data, *(figure(measured[name][data]) for name in names)]
        for data in setting.sets
    ]
    rows.append(["**average**", *(figure(averages[name]) for name in names)])
    better, worse = _wins(measured[free], measured["CWNB"])
    text = "\n\n".join(
        [
            f"{len(setting.sets)} data sets, {setting.repeats} x stratified 10-fold; "
            "published averages are over 60 sets.",
            markdown_table(header, summary),
            f"With weights bounded from below alone CWNB averages "
            f"{averages[free]:.2f}; it is better than in [0, 1] on {better} data sets "
            f"and worse on {worse}.",
            markdown_table(["data set", *names], rows),
        ]
    )
    return Part(text, measurements, {"averages": averages, "ranks": ranks})


def _wins(ours: Mapping[str, float], theirs: Mapping[str, float]) -> tuple[int, int]:
    gaps = np.array([ours[name] - theirs[name] for name in ours]).round(9)
    return int((gaps > 0).sum()), int((gaps < 0).sum())


def variants_part(setting: Setting) -> Part:
    """Tables 4 and 5: the variants, and rounds of the interactive ones."""
    measurements, rows = [], []
    accuracies: dict[str, list[float]] = {name: [] for name in VARIANTS}
    rounds: dict[str, list[float]] = {name: [] for name in VARIANTS[2:]}
    for data in setting.sets:
        X, y = _load(data, setting.data)
        row = [data]
        for name in VARIANTS:
            accuracy, seconds, facts = _validate(
                name, X, y, setting, lambda fitted: fitted.n_rounds_
            )
            accuracies[name].append(accuracy)
            measurements.append(Measurement(data, name, accuracy, seconds))
            row.append(figure(accuracy))
            if name in rounds:
                rounds[name].append(float(np.mean(facts)))
        rows.append([*row, *(figure(rounds[name][-1]) for name in rounds)])
    verdicts = {
        name: {
            "average": float(np.mean(found)),
            "median": float(np.median(found)),
            "maximum": float(np.max(found)),
        }
        for name, found in rounds.items()
    }
    rows.append(
        [
            "**average**",
            *(figure(float(np.mean(accuracies[name]))) for name in VARIANTS),
            *(figure(verdicts[name]["average"]) for name in rounds),
        ]
    )
    published = {"CWNB-I": (3.70, 2.50, 22.04), "CWNB-RI": (3.74, 2.61, 22.64)}
    summary = [
        [
            name,
            *(
                cell
                for theirs, ours in zip(
                    published[name], verdicts[name].values(), strict=True
                )
                for cell in (figure(theirs), figure(ours))
            ),
        ]
        for name in rounds
    ]
    header = [
        "rounds",
        "average published",
        "measured",
        "median published",
        "measured",
        "maximum published",
        "measured",
    ]
    columns = ["data set", *VARIANTS, *(f"rounds {name[4:]}" for name in rounds)]
    text = "\n\n".join(
        [
            "Rounds are means over the folds of a data set; the last round of a fit is "
            "the one that did not improve.",
            markdown_table(header, summary),
            markdown_table(columns, rows),
        ]
    )
    return Part(text, measurements, {"rounds": verdicts})


def consistency_part(setting: Setting) -> Part:
    """Figure 3: accuracy against the number of generated rows."""
    measurements, rows = [], []
    curves: dict[str, list[float]] = {name: [] for name in _CONSISTENT}
    for n in setting.sizes:
        draws = min(_MOST_DRAWS, max(2, 20_000 // n))
        tables = [sum_of_attributes(n, SEED + draw) for draw in range(draws)]
        row = [f"{n:,}", str(draws)]
        for name in _CONSISTENT:
            found = [_validate(name, X, y, setting) for X, y in tables]
            accuracy = float(np.mean([one[0] for one in found]))
            seconds = sum(one[1] for one in found)
            curves[name].append(accuracy)
            measurements.append(Measurement(f"{n} rows", name, accuracy, seconds))
            row.append(figure(accuracy))
        rows.append(row)
    parts = [markdown_table(["rows", "draws", *_CONSISTENT], rows)]
    if setting.images is not None:
        _draw(setting.sizes, curves, setting.images / "consistency.svg")
        parts.insert(0, "![Accuracy against rows](images/consistency.svg)")
    return Part("\n\n".join(parts), measurements, {"curves": curves})


def _draw(sizes: Sequence[int], curves: Mapping[str, list[float]], path: Path) -> None:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    figure_ = Figure(figsize=(7.0, 4.2), layout="constrained")
    axes = figure_.subplots()
    # DWNB is hollow and larger: where CWNB's weights stay at 1 the two coincide.
    styles: dict[str, dict[str, Any]] = {
        "NB": {"marker": "o"},
        "DWNB": {"marker": "s", "markersize": 9, "fillstyle": "none"},
        "WANBIA-CLL": {"marker": "^", "linestyle": "--"},
        "CWNB": {"marker": "D"},
        f"CWNB{_FREE}": {"marker": "v"},
    }
    for name, curve in curves.items():
        axes.plot(sizes, curve, label=name, **{"markersize": 4, **styles[name]})
    axes.set_xscale("log")
    axes.set_xlabel("generated rows")
    axes.set_ylabel("accuracy in 10-fold cross-validation (%)")
    axes.set_title("Six attributes of {0, 1, 2, 3}; label: sum at least 9", fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.hashsalt": "steelyard"}):
        figure_.savefig(path, metadata={"Date": None})


def joint_part(setting: Setting) -> Part:
    """Compare weights of one objective with weights learned in turn."""
    measurements, rows = [], []
    names = ("NB", "CWNB", "joint")
    measured: dict[str, dict[str, float]] = {name: {} for name in names}
    for data in setting.sets:
        X, y = _load(data, setting.data)
        if len(y) > _JOINT_ROWS:
            continue
        seconds = {}
        for name in names:
            measured[name][data], seconds[name], _ = _validate(name, X, y, setting)
            measurements.append(
                Measurement(data, name, measured[name][data], seconds[name])
            )
        rows.append(
            [
                data,
                *(figure(measured[name][data]) for name in names),
                figure(measured["joint"][data] - measured["CWNB"][data], signed=True),
                f"{seconds['joint']:.1f}",
            ]
        )
    averages = {name: float(np.mean(list(measured[name].values()))) for name in names}
    gap = averages["joint"] - averages["CWNB"]
    total = sum(float(row[-1]) for row in rows)
    rows.append(
        [
            "**average**",
            *(figure(averages[name]) for name in names),
            figure(gap, signed=True),
            f"{total / len(rows):.1f}",
        ]
    )
    better, worse = _wins(measured["joint"], measured["CWNB"])
    text = "\n\n".join(
        [
            f"Data sets of at most {_JOINT_ROWS} rows. Joint is better than CWNB on "
            f"{better} of them and worse on {worse}.",
            markdown_table(
                ["data set", *names, "joint - CWNB", "seconds of joint"], rows
            ),
        ]
    )
    return Part(text, measurements, {"averages": averages, "wins": [better, worse]})


def flips_part(setting: Setting) -> Part:
    """Look for wrong labels among the rows of largest weight."""
    measurements, rows = [], []
    for data in (name for name in _FLIPPED_SETS if name in setting.sets):
        X, y = _load(data, setting.data)
        found = []
        for draw in range(_FLIPPED_DRAWS):
            noisy, wrong = flip_labels(y, _FLIPPED_SHARE, SEED + draw)
            # CWNB begins with the same rounds: its instance weights are these.
            top = _classifier("DWNB").fit(X, noisy).hardest_rows(int(wrong.sum()))
            found.append(100.0 * float(wrong[top].mean()))
        mean = float(np.mean(found))
        measurements.append(Measurement(data, "DWNB", mean))
        rows.append([data, str(len(y)), str(int(wrong.sum())), figure(mean)])
    text = "\n\n".join(
        [
            "Share in percent of the flipped rows that are among the top 5 % by weight "
            f"(DWNB, 15 rounds, fitted on all rows; mean of {_FLIPPED_DRAWS} draws). "
            "Chance would be 5.",
            markdown_table(["data set", "rows", "flipped", "found"], rows),
        ]
    )
    shares = {entry.data: entry.accuracy for entry in measurements}
    return Part(text, measurements, {"found": shares})


PARTS: dict[str, Callable[[Setting], Part]] = {
    "accuracy": accuracy_part,
    "variants": variants_part,
    "consistency": consistency_part,
    "joint": joint_part,
    "flips": flips_part,
}
"""The experiments, by the names that ``--parts`` takes."""


# ----------------------------------------------------------------------------- command


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status.

    Parameters
    ----------
    argv : sequence of str, default=None
        Arguments; those of the process if None.

    Returns
    -------
    int
        0 on success, 2 on a usage or input error.
    """
    arguments = _parser().parse_args(argv)
    try:
        _run(arguments, list(sys.argv[1:] if argv is None else argv))
    except (ValueError, OSError) as error:
        sys.stderr.write(f"repro_cwnb: {' '.join(str(error).split())}\n")
        return 2
    return 0


def _run(arguments: argparse.Namespace, words: list[str]) -> None:
    data = data_folder(arguments.data)
    if arguments.repeats < 1:
        raise ValueError("--repeats must be at least 1.")
    chosen = arguments.parts.split(",")
    unknown = [name for name in chosen if name not in PARTS]
    if unknown:
        raise ValueError(f"There is no part {unknown[0]!r}. Parts: {', '.join(PARTS)}.")
    write: Path | None = arguments.write
    setting = Setting(
        data,
        published_folder(data, arguments.published),
        tuple(arguments.sets.split(","))
        if arguments.sets
        else cwnb_sets(data, arguments.most_rows),
        arguments.repeats,
        tuple(n for n in _SIZES if arguments.sizes is None or n <= arguments.sizes),
        None if write is None else write.parent / "images",
    )
    command = " ".join(["python -m steelyard.experiments.repro_cwnb", *_kept(words)])
    record: dict[str, Any] = {"command": command, "parts": {}}
    for name in chosen:
        start = perf_counter()
        part = PARTS[name](setting)
        seconds = perf_counter() - start
        text = f"Made by `{command}` (seed {SEED}) in {seconds:.0f} s.\n\n{part.text}\n"
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
        record["parts"][name] = {
            "seconds": seconds,
            "verdicts": part.verdicts,
            "measurements": [asdict(entry) for entry in part.measurements],
        }
        # Each part is kept as soon as it is there.
        if arguments.json is not None:
            arguments.json.write_text(json.dumps(record, indent=1) + "\n", "utf-8")
        if write is not None:
            page = write.read_text(encoding="utf-8") if write.exists() else ""
            write.write_text(replace_section(page, f"cwnb-{name}", text), "utf-8")


def _kept(words: Iterable[str]) -> list[str]:
    """Leave out the words that say where files are: no result depends on them."""
    kept, skip = [], False
    for word in words:
        if skip:
            skip = False
        elif word in ("--data", "--published", "--json", "--write"):
            skip = True
        elif not word.startswith(("--data=", "--published=", "--json=", "--write=")):
            kept.append(word)
    return kept


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="repro_cwnb", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument(
        "--data", help="folder of data sets (default: environment STEELYARD_DATA)"
    )
    parser.add_argument(
        "--published",
        help="folder of published tables (default: 'published' beside the data sets)",
    )
    parser.add_argument(
        "--repeats", type=int, default=1, help="10-fold runs (default: 1; paper: 10)"
    )
    parser.add_argument("--sets", help="data sets, with commas (default: all shared)")
    parser.add_argument("--most-rows", type=int, help="leave out larger data sets")
    parser.add_argument("--sizes", type=int, help="most rows of generated data")
    parser.add_argument(
        "--parts", default=",".join(PARTS), help="experiments, with commas"
    )
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument(
        "--write", type=Path, help="replace the marked sections of this document"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
