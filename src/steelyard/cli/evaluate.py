"""``steelyard evaluate``: how good predictions are, by folds or on a test file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from steelyard.cli.models import load_model, rows_for
from steelyard.cli.options import (
    Commands,
    add_command,
    add_folds,
    add_json,
    add_training,
)
from steelyard.cli.output import note, print_json, print_table, screen, working
from steelyard.cli.training import make_classifier, read_training
from steelyard.exceptions import ParameterError, TableError

if TYPE_CHECKING:
    from steelyard.experiments.evaluate import Evaluation

__all__ = ["add_parser"]

_EXAMPLES = """
steelyard evaluate data.csv --target class --method RNB --folds 10
steelyard evaluate model.json test.csv --target class
steelyard evaluate data.csv --target ill --positive yes --costs 1,20
steelyard evaluate data.csv --target class --json
"""

_FOR_TRAINING = (
    "method",
    "settings",
    "columns",
    "drop",
    "categorical",
    "numeric",
    "weights",
)


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
    add_folds(parser)
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
    if len(arguments.data) > 2:
        raise ParameterError(
            "evaluate takes one data file, or a model file and a test file."
        )
    deciding = {"positive": arguments.positive, "costs": _costs(arguments.costs)}
    run = _test_model if len(arguments.data) == 2 else _cross_validate
    about, result = run(arguments, deciding)
    if result.thresholds is None and any(deciding.values()):
        note("thresholds are for two classes with probabilities; there are none here")
    if arguments.json:
        print_json({**about, **result.to_dict()})
    else:
        _show(about, result)


def _cross_validate(
    arguments: argparse.Namespace, deciding: dict[str, Any]
) -> tuple[dict[str, Any], Evaluation]:
    from steelyard.experiments.evaluate import evaluate

    method, clf = make_classifier(arguments)
    data, weights = read_training(arguments.data[0], arguments)
    result = evaluate(
        clf,
        data.table,
        data.target,
        sample_weight=weights,
        folds=arguments.folds,
        seed=arguments.seed,
        progress=sys.stderr.isatty(),
        **deciding,
    )
    about = {
        "data": _name(arguments.data[0]),
        "target": data.target_name,
        "method": method,
        "rows": len(data),
        "columns": data.table.shape[1],
        "folds": arguments.folds,
        "seed": arguments.seed,
    }
    return about, result


def _test_model(
    arguments: argparse.Namespace, deciding: dict[str, Any]
) -> tuple[dict[str, Any], Evaluation]:
    from steelyard.experiments.evaluate import evaluate_chunks

    _refuse_training_options(arguments)
    path, test = arguments.data
    clf = load_model(path)
    if arguments.target is None:
        raise ParameterError("Name the column that holds the truth with --target.")
    columns = clf.encoder_.schema_.names
    if arguments.target in columns:
        raise ParameterError(
            f"The column {arguments.target!r} is one the model predicts from."
        )
    with working("Predicting …"):
        result = evaluate_chunks(clf, _labelled(clf, test, arguments), **deciding)
    about = {
        "data": _name(test),
        "target": arguments.target,
        "model": path,
        "rows": len(result.true),
        "columns": len(columns),
    }
    return about, result


def _labelled(
    clf: Any, path: str, arguments: argparse.Namespace
) -> Iterator[tuple[Any, Any]]:
    """Yield tables and labels of a test file, without the rows that have none."""
    target = arguments.target
    n_labelled = n_missing = 0
    for table, also in rows_for(clf, path, arguments, [target]):
        has_label = also[target].notna()
        n_labelled += int(has_label.sum())
        n_missing += int((~has_label).sum())
        yield table[has_label], also.loc[has_label, target]
    if not n_labelled:
        raise TableError(f"The target {target!r} of {_name(path)} is empty.")
    if n_missing:
        note(f"{n_missing} rows without {target!r} are left out")


def _refuse_training_options(arguments: argparse.Namespace) -> None:
    """Refuse what a fitted model cannot follow any more."""
    for name in _FOR_TRAINING:
        if getattr(arguments, name):
            option = "set" if name == "settings" else name
            raise ParameterError(
                f"--{option} is for training; the model {arguments.data[0]} is fitted."
            )


def _costs(text: str | None) -> tuple[float, ...] | None:
    try:
        return None if text is None else tuple(map(float, text.split(",")))
    except ValueError:
        raise ParameterError(
            f"--costs takes two numbers, such as 1,20. Got {text!r}."
        ) from None


def _name(path: str) -> str:
    return "standard input" if path == "-" else path


def _show(about: dict[str, Any], result: Evaluation) -> None:
    console = screen()
    method = about.get("method") or about.get("model")
    measures, *others = result.tables()
    title = f"{method} on {about['data']}: {measures.title}"
    for table in (measures._replace(title=title), *others):
        print_table(console, *table)
    if result.n_unseen:
        note(
            f"{result.n_unseen} rows are of classes that training did not see: wrong "
            "for accuracy, left out of the log-loss"
        )
    if len(result.classes) > 20:
        note(f"the confusion matrix of {len(result.classes)} classes is in --json")
