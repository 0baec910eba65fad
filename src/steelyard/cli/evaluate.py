"""``steelyard evaluate``: how good predictions are, by folds or on a test file."""

from __future__ import annotations

import argparse
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steelyard.cli.models import expected_columns, load_model
from steelyard.cli.options import Commands, add_command, add_json, add_training
from steelyard.cli.output import note, print_json, print_table, screen, working
from steelyard.cli.thresholds import threshold_tables
from steelyard.cli.training import make_classifier, read_training
from steelyard.exceptions import ParameterError, TableError
from steelyard.experiments.data.files import Source, read_chunks

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["add_parser"]

_EXAMPLES = """
steelyard evaluate data.csv --target class --method RNB --folds 10
steelyard evaluate model.json test.csv --target class
steelyard evaluate data.csv --target ill --positive yes --costs 1,20
steelyard evaluate data.csv --target class --json
"""

_NAMES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "f1": "F1 (mean over classes)",
    "auc": "AUC (each class against the rest)",
    "log_loss": "log-loss",
    "brier": "Brier score",
    "ece": "calibration error",
}
_PERCENT = ("accuracy", "balanced_accuracy")
_FOR_TRAINING = (
    "method",
    "settings",
    "columns",
    "drop",
    "categorical",
    "numeric",
    "weights",
)


@dataclass(frozen=True)
class Outcome:
    """Predictions beside the truth, and their measures."""

    about: dict[str, Any]
    classes: list[Any]
    true: NDArray[Any]
    predicted: NDArray[Any]
    proba: NDArray[Any] | None
    metrics: dict[str, float | None]
    spread: dict[str, float] | None
    unseen: int


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "evaluate",
        "measure a method by cross-validation, or a model on a test file",
        _EXAMPLES,
        _run,
    )
    parser.add_argument(
        "data",
        nargs="+",
        metavar="FILE",
        help="a data file for cross-validation; or a model file and a test file",
    )
    parser.add_argument("--folds", type=int, default=10, help="folds (default: 10)")
    parser.add_argument(
        "--seed", type=int, default=1, help="seed of the folds (default: 1)"
    )
    parser.add_argument(
        "--positive",
        metavar="CLASS",
        help="class that thresholds are for, with two classes (default: the second)",
    )
    parser.add_argument(
        "--costs",
        metavar="A,B",
        help="cost of a false alarm and of a miss, for the best threshold",
    )
    add_json(parser)
    add_training(parser)


def _run(arguments: argparse.Namespace) -> None:
    costs = _costs(arguments.costs)
    if len(arguments.data) > 2:
        raise ParameterError(
            "evaluate takes one data file, or a model file and a test file."
        )
    if len(arguments.data) == 2:
        outcome = _test_model(arguments)
    else:
        outcome = _cross_validate(arguments)
    found = None
    if outcome.proba is not None and len(outcome.classes) == 2:
        positive = _positive(outcome.classes, arguments.positive)
        found = threshold_tables(
            outcome.true == positive, outcome.proba[:, positive], costs
        )
        found["positive"] = outcome.classes[positive]
    elif arguments.positive is not None or costs is not None:
        note("thresholds are for two classes with probabilities; there are none here")
    if arguments.json:
        print_json(_document(outcome, found))
    else:
        _show(outcome, found)


# ---------------------------------------------------------------------------- measuring


def _cross_validate(arguments: argparse.Namespace) -> Outcome:
    import numpy as np
    from sklearn.base import clone
    from sklearn.model_selection import StratifiedKFold

    from steelyard.experiments.statistics.metrics import score_predictions

    method, clf = make_classifier(arguments)
    data = read_training(arguments.data[0], arguments)
    classes, true = np.unique(data.labels, return_inverse=True)
    _check_folds(arguments.folds, true, data.target)
    splits = StratifiedKFold(arguments.folds, shuffle=True, random_state=arguments.seed)
    predicted = np.zeros(len(true), dtype=np.intp)
    has_proba = hasattr(clf, "predict_proba")
    proba = np.zeros((len(true), len(classes)))
    rows = []
    with warnings.catch_warnings(), working("Cross-validating …") as status:
        # Said above in our own words.
        warnings.filterwarnings("ignore", "The least populated class")
        parts = list(splits.split(np.zeros(len(true)), true))
        for k, (train, test) in enumerate(parts):
            status.update(f"{method}: fold {k + 1} of {len(parts)} …")
            weights = None if data.weights is None else data.weights[train]
            options = {} if weights is None else {"sample_weight": weights}
            fitted = clone(clf).fit(
                data.table.iloc[train], data.labels[train], **options
            )
            own = np.searchsorted(classes, fitted.classes_)
            part = data.table.iloc[test]
            place = {label: i for i, label in enumerate(classes.tolist())}
            predicted[test] = [place[x] for x in fitted.predict(part).tolist()]
            if has_proba:
                proba[np.ix_(test, own)] = fitted.predict_proba(part)
            seen = np.isin(np.arange(len(classes)), own)
            rows.append(
                score_predictions(
                    true[test],
                    predicted[test],
                    proba[test] if has_proba else None,
                    seen,
                )
            )
    metrics, spread = {}, {}
    for name in _NAMES:
        values = [value for row in rows if (value := row[name]) is not None]
        metrics[name] = float(np.mean(values)) if values else None
        spread[name] = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    about = {
        "data": data.source.name,
        "target": data.target,
        "method": method,
        "rows": len(true),
        "columns": data.table.shape[1],
        "folds": arguments.folds,
        "seed": arguments.seed,
    }
    unseen = sum(int(row["n_unseen_class"] or 0) for row in rows)
    return Outcome(
        about,
        classes.tolist(),
        true,
        predicted,
        proba if has_proba else None,
        metrics,
        spread,
        unseen,
    )


def _check_folds(folds: int, true: NDArray[Any], target: str) -> None:
    import numpy as np

    counts = np.bincount(true)
    if folds < 2:
        raise ParameterError(f"--folds must be at least 2. Got {folds}.")
    if len(counts) < 2:
        raise TableError(
            f"The target {target!r} has one class. Two are needed to tell them apart."
        )
    if counts.max() < folds:
        raise TableError(
            f"No class has {folds} rows, one for each fold. Lower --folds to at most "
            f"{counts.max()}."
        )
    if counts.min() < folds:
        small = int((counts < folds).sum())
        note(f"{small} of {len(counts)} classes have fewer rows than there are folds")


def _test_model(arguments: argparse.Namespace) -> Outcome:
    import numpy as np

    from steelyard.experiments.statistics.metrics import score_predictions

    _refuse_training_options(arguments)
    path, test = arguments.data
    clf = load_model(path)
    if arguments.target is None:
        raise ParameterError("Name the column that holds the truth with --target.")
    expected = expected_columns(clf)
    if arguments.target in expected:
        raise ParameterError(
            f"The column {arguments.target!r} is one the model predicts from."
        )
    source = Source.of(test, arguments)
    known = {str(label): k for k, label in enumerate(clf.classes_.tolist())}
    n_classes, without = len(known), 0
    true, predicted, proba = [], [], []
    with working("Predicting …"):
        for frame, _ in read_chunks(source, expected, [arguments.target], 50_000):
            labelled = frame[arguments.target].notna()
            without += int((~labelled).sum())
            frame = frame[labelled]
            if not len(frame):
                continue
            names = [_plain(x, known) for x in frame[arguments.target].tolist()]
            true += [known.setdefault(name, len(known)) for name in names]
            table = frame[list(expected)]
            proba.append(clf.predict_proba(table))
            place = {label: k for k, label in enumerate(clf.classes_.tolist())}
            predicted += [place[label] for label in clf.predict(table).tolist()]
    if not true:
        raise TableError(f"The target {arguments.target!r} of {source.name} is empty.")
    if without:
        note(f"{without} rows without {arguments.target!r} are left out")
    if not set(true) & set(range(n_classes)):
        raise TableError(
            f"No label of {arguments.target!r} is a class of the model: "
            f"{', '.join(list(known)[:n_classes][:8])}."
        )
    # Classes that the model does not know have probability zero.
    stacked = np.pad(np.vstack(proba), ((0, 0), (0, len(known) - n_classes)))
    truth, guess = np.array(true), np.array(predicted)
    seen = np.arange(len(known)) < n_classes
    row = score_predictions(truth, guess, stacked, seen)
    about = {
        "data": source.name,
        "target": arguments.target,
        "model": path,
        "rows": len(true),
        "columns": len(expected),
    }
    classes = [*clf.classes_.tolist(), *list(known)[n_classes:]]
    metrics = {name: row[name] for name in _NAMES}
    unseen = int(row["n_unseen_class"] or 0)
    return Outcome(about, classes, truth, guess, stacked, metrics, None, unseen)


def _refuse_training_options(arguments: argparse.Namespace) -> None:
    """Refuse what a fitted model cannot follow any more."""
    for name in _FOR_TRAINING:
        if getattr(arguments, name):
            option = "set" if name == "settings" else name
            raise ParameterError(
                f"--{option} is for training; the model {arguments.data[0]} is fitted."
            )


def _plain(label: Any, known: dict[str, int]) -> str:
    """Return a label as text; 1.0 is the class 1 where there is one."""
    text = str(label)
    if text not in known:
        try:
            shorter = f"{float(text):.15g}"
        except ValueError:
            return text
        return shorter if shorter in known else text
    return text


# --------------------------------------------------------------------------- presenting


def _costs(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        alarm, miss = (float(part) for part in text.split(","))
    except ValueError:
        alarm = miss = -1.0
    if not (alarm >= 0.0 and miss >= 0.0 and 0.0 < alarm + miss < float("inf")):
        raise ParameterError(
            "--costs takes the cost of a false alarm and of a miss, such as 1,20. "
            f"Got {text!r}."
        )
    return alarm, miss


def _positive(classes: list[Any], chosen: str | None) -> int:
    names = [str(label) for label in classes]
    if chosen is None:
        return 1
    if chosen not in names:
        raise ParameterError(
            f"{chosen!r} is not among the classes: {', '.join(names)}."
        )
    return names.index(chosen)


def _confusion(outcome: Outcome) -> NDArray[Any]:
    import numpy as np

    k = len(outcome.classes)
    table = np.zeros((k, k), dtype=np.int64)
    np.add.at(table, (outcome.true, outcome.predicted), 1)
    return table


def _reliability(outcome: Outcome) -> list[list[float]]:
    from steelyard.experiments.statistics.calibration import reliability_bins

    if outcome.proba is None:
        return []
    right = outcome.true == outcome.predicted
    return reliability_bins(right, outcome.proba.max(axis=1), 10)


def _document(outcome: Outcome, thresholds: dict[str, Any] | None) -> dict[str, Any]:
    return {
        **outcome.about,
        "metrics": outcome.metrics,
        "spread_over_folds": outcome.spread,
        "rows_of_unseen_classes": outcome.unseen,
        "classes": outcome.classes,
        "confusion": _confusion(outcome),
        "reliability": [
            {"confidence": confidence, "accuracy": accuracy, "rows": rows}
            for confidence, accuracy, rows in _reliability(outcome)
        ],
        "thresholds": thresholds,
    }


def _show(outcome: Outcome, thresholds: dict[str, Any] | None) -> None:
    console = screen()
    about = outcome.about
    what = about.get("method") or about.get("model")
    how = f"{about['folds']}-fold cross-validation, " if "folds" in about else ""
    title = f"{what} on {about['data']}: {how}{about['rows']} rows"
    lines = []
    for name, label in _NAMES.items():
        value = outcome.metrics[name]
        if value is None:
            continue
        scale, digits = (100.0, 1) if name in _PERCENT else (1.0, 4)
        unit = " %" if name in _PERCENT else ""
        line = [label, f"{scale * value:.{digits}f}{unit}"]
        if outcome.spread is not None:
            line.append(f"± {scale * outcome.spread[name]:.{digits}f}{unit}")
        lines.append(line)
    header = ["measure", "mean", "over folds"] if outcome.spread else ["measure", ""]
    print_table(console, title, header, lines)
    if outcome.unseen:
        note(
            f"{outcome.unseen} rows are of classes that training did not see: wrong "
            "for accuracy, left out of the log-loss"
        )
    _show_confusion(console, outcome)
    bins = _reliability(outcome)
    if bins:
        cells = [[f"{p:.3f}", f"{a:.3f}", f"{n:.0f}"] for p, a, n in bins]
        title = "Calibration: how often predictions are right when they are so sure"
        print_table(console, title, ["probability", "right", "rows"], cells, 0)
    if thresholds is not None:
        _show_thresholds(console, thresholds)


def _show_confusion(console: Any, outcome: Outcome) -> None:
    table = _confusion(outcome)
    names = [str(label) for label in outcome.classes]
    if len(names) > 20:
        note(f"the confusion matrix of {len(names)} classes is in --json")
        return
    rows = []
    for k, name in enumerate(names):
        total, claimed = table[k].sum(), table[:, k].sum()
        rows.append(
            [
                name,
                *map(str, table[k].tolist()),
                f"{table[k, k] / total:.3f}" if total else "",
                f"{table[k, k] / claimed:.3f}" if claimed else "",
            ]
        )
    header = ["true class", *names, "recall", "precision"]
    print_table(console, "Confusion: predicted classes in columns", header, rows)


def _show_thresholds(console: Any, found: dict[str, Any]) -> None:
    rows = []
    marks = {"best F1": found["best_f1"]}
    if found["best_cost"] is not None:
        marks["least cost"] = found["best_cost"]
    for entry in [*found["table"], *marks.values()]:
        name = next((mark for mark, best in marks.items() if best is entry), "")
        line = [name, f"{entry['threshold']:.4f}".rstrip("0").rstrip(".")]
        line += [f"{entry[key]:.3f}" for key in ("precision", "recall", "f1")]
        if found["best_cost"] is not None:
            line.append(f"{entry['cost']:g}")
        rows.append(line)
    header = ["", "threshold", "precision", "recall", "F1"]
    if found["best_cost"] is not None:
        header.append("cost")
    title = f"Deciding for {found['positive']} from a probability of"
    print_table(console, title, header, rows)
