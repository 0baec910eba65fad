"""``steelyard evaluate``: measures by cross-validation, or on a test file."""

from __future__ import annotations

import argparse
import contextlib
import re
import sys
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from steelyard._common.text import unlabelled
from steelyard.cli import options, output
from steelyard.cli.inputs import (
    check_target,
    load_model,
    make_classifier,
    read_training,
    rows_for,
)
from steelyard.exceptions import ParameterError, TableError
from steelyard.io.paths import find_column

if TYPE_CHECKING:
    from steelyard.evaluation.evaluate import Evaluation

    Measured = tuple[dict[str, Any], Evaluation]

ABOUT = "measure a method by cross-validation, or a model on a test file"
EXAMPLES = """
steelyard evaluate data.csv --target class --method RNB --folds 10
steelyard evaluate model.json test.csv --target class
steelyard evaluate data.csv --target ill --positive yes --cost fp=1,fn=20
steelyard evaluate model.json test.csv --by sex
steelyard evaluate data.csv --target ill --picture roc.svg
steelyard evaluate data.csv --target class --json
"""

_FOR_TRAINING = "method set columns drop categorical numeric weights bins".split()


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    about = "a data file for cross-validation; or a model file and a test file"
    parser.add_argument("data", nargs="+", metavar="FILE", help=about)
    options.add_folds(parser)
    about = "cost of a false alarm and of a miss, for the threshold and the mean cost"
    parser.add_argument("--costs", "--cost", metavar="fp=A,fn=B", help=about)
    about = "measure groups of rows separately, by a column that the model need not use"
    parser.add_argument("--by", metavar="NAME", help=about)
    about = "draw the ROC curve, of each class against the rest (png, svg, pdf)"
    parser.add_argument("--picture", metavar="FILE", help=about)
    options.add_shared(parser, "force", "json")
    options.add_training(parser)


def run(arguments: argparse.Namespace) -> None:
    """Measure, and print measures, confusion, calibration and thresholds."""
    if len(arguments.data) > 2:
        problem = "evaluate takes one data file, or a model file and a test file."
        raise ParameterError(problem)
    deciding = {"positive": arguments.positive, "costs": _costs(arguments.costs)}
    output.check_picture(arguments.picture)
    output.check_output(arguments.picture, arguments.force)
    measure = _test_model if len(arguments.data) == 2 else _cross_validate
    about, result = measure(arguments, deciding)
    if result.thresholds is None and arguments.positive and not arguments.by:
        needs = "thresholds need two classes and probabilities"
        output.note(f"no thresholds here: {needs}")
    output.note_notices(result.notices)
    # Before the measures, which may be of rows that the model has learned from.
    output.show_notes()
    noticed = {"notices": output.plain_notices(result.notices, arguments.parser)}
    output.present(
        arguments,
        lambda: about | result.to_dict() | noticed,
        lambda: _show(about, result),
    )
    if arguments.picture is not None:
        with output.writing(arguments.picture, arguments.force) as path:
            output.draw(result, path, arguments.picture)
        output.note(f"written: {arguments.picture}")


def _cross_validate(arguments: argparse.Namespace, deciding: Any) -> Measured:
    from steelyard.evaluation.evaluate import evaluate

    method, clf = make_classifier(arguments)
    data, weights, others = read_training(arguments.data[0], arguments)
    by = None
    if arguments.by is not None:
        whole = others.join(data.table)
        where = f"The data set {data.name}"
        by = whole[find_column(arguments.by, whole.columns, where)]
    design = options.folds_of(arguments)
    with _warning_once():
        result = evaluate(
            clf,
            data.table,
            data.target,
            sample_weight=weights,
            by=by,
            progress=sys.stderr.isatty(),
            **design,
            **deciding,
        )
    about = {
        "data": _name(arguments.data[0]),
        "target": data.target_name,
        "method": method,
        "rows": len(data),
        "columns": data.table.shape[1],
    }
    return about | design, result


def _test_model(arguments: argparse.Namespace, deciding: Any) -> Measured:
    from steelyard.evaluation.evaluate import evaluate_chunks

    for name in _FOR_TRAINING:
        if getattr(arguments, "settings" if name == "set" else name):
            raise ParameterError(
                f"--{name} is for training; the model {arguments.data[0]} is fitted."
            )
    for name in options.given(arguments, " ".join(options.FOLDS)):
        raise ParameterError(
            f"--{name} is for cross-validation of a data file; with a model all rows "
            f"of {arguments.data[1]} are predicted once. Leave it out."
        )
    path, test = arguments.data
    clf = load_model(path)
    if arguments.target is None:
        arguments.target = _find_target(clf, test, arguments)
    columns, target = clf.encoder_.schema_.names, arguments.target
    check_target(target, clf, arguments)
    deciding["positive"] = deciding["positive"] or clf.training_.reading.get("positive")
    with output.working("Predicting …"):
        result = evaluate_chunks(clf, _labelled(clf, test, arguments), **deciding)
    about = {
        "data": _name(test),
        "target": target,
        "model": path,
        "rows": len(result.true),
        "columns": len(columns),
    }
    return about, result


@contextlib.contextmanager
def _warning_once() -> Iterator[None]:
    """Merge equal warnings of the folds into one, with the number of folds."""
    with warnings.catch_warnings(record=True) as caught:
        yield
    groups: dict[Any, list[Any]] = {}
    for entry in caught:
        key = entry.category, re.sub(r"[\d.]+", "", str(entry.message))
        groups.setdefault(key, []).append(entry)
    for first, *others in groups.values():
        count = f" (and so in {len(others)} other folds)" if others else ""
        warnings.warn(f"{first.message}{count}", first.category, stacklevel=2)


def _find_target(clf: Any, path: str, arguments: argparse.Namespace) -> str:
    """Return the target of a model, or the only column that contains its classes."""
    from steelyard.io.kinds import as_text
    from steelyard.io.reader import whole_table
    from steelyard.io.recognise import open_files

    fits = []
    if path != "-":
        like = clf.training_.reading
        reader = open_files(path, like=like, **options.reading_of(arguments))
        others = [n for n in reader.names if n not in clf.feature_names_in_]
        table = whole_table(reader, others)
        classes = {*map(str, clf.classes_)}
        for name in others:
            labels = as_text(table.column(name).drop_null()).to_pylist()
            if labels and {*map(str, _as_classes(labels, clf.classes_))} <= classes:
                fits.append(name)
    if (target := getattr(clf, "target_name_", None)) in fits:
        fits = [str(target)]
    if len(fits) != 1:
        raise ParameterError("Name the column of true classes with --target.")
    output.note(f"true classes are taken from column {fits[0]!r}")
    return fits[0]


def _labelled(
    clf: Any, path: str, arguments: argparse.Namespace
) -> Iterator[tuple[Any, ...]]:
    """Yield tables, labels and groups of the labelled rows of a test file."""
    target, by = arguments.target, [name for name in [arguments.by] if name is not None]
    n_labelled = n_missing = 0
    for table, also in rows_for(clf, path, arguments, [target, *by]):
        labels = also.column(target)
        has_label = labels.is_valid()
        present = labels.drop_null().to_pylist()
        n_labelled += len(present)
        n_missing += len(labels) - len(present)
        groups = (also.column(name).filter(has_label).to_pylist() for name in by)
        yield table.filter(has_label), _as_classes(present, clf.classes_), *groups
    if not n_labelled:
        raise TableError(f"The target {target!r} of {_name(path)} is empty.")
    if n_missing:
        output.note(unlabelled(n_missing, target))


def _as_classes(labels: list[Any], classes: Any) -> Any:
    """Cut numbers into the ranges that are the classes of a model, if they are."""
    from steelyard.io.dataset import cut_as

    names = {*map(str, classes)}
    if all(str(label) in names for label in labels):
        return labels
    try:
        ranges = cut_as(list(map(float, labels)), classes)
    except (TypeError, ValueError):
        return labels
    return labels if ranges is None else ranges


def _costs(text: str | None) -> Any:
    """Read A,B or fp=A,fn=B."""
    if text is None:
        return None
    parts = [entry.rpartition("=") for entry in text.split(",")]
    names = [name.strip() for name, _, _ in parts]
    try:
        costs = [float(cost) for _, _, cost in parts]
    except ValueError:
        problem = f"--cost takes two numbers, such as fp=1,fn=20. Got {text!r}."
        raise ParameterError(problem) from None
    if not any(names):
        return tuple(costs)
    if sorted(names) != ["fn", "fp"]:
        problem = f"--cost takes fp= and fn=, such as fp=1,fn=20. Got {text!r}."
        raise ParameterError(problem)
    return dict(zip(names, costs, strict=True))


def _name(path: str) -> str:
    return "standard input" if path == "-" else path


def _show(about: dict[str, Any], result: Evaluation) -> None:
    method = about.get("method") or about.get("model")
    measures, *others = result.tables()
    title = f"{method} on {about['data']}: {measures.title}"
    for table in (measures._replace(title=title), *others):
        output.print_table(*table)
    if result.n_unseen:
        output.note(
            f"{result.n_unseen} rows have classes that training never saw: errors in "
            "the accuracy, excluded from the log-loss"
        )
    if (n_classes := len(result.classes)) > 20:
        output.note(f"the confusion matrix of {n_classes} classes is in --json")
