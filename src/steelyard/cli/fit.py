"""``steelyard fit``: a file to a model."""

from __future__ import annotations

import argparse
from time import perf_counter
from typing import Any

from steelyard.cli.options import (
    Commands,
    add_command,
    add_json,
    add_output,
    add_training,
)
from steelyard.cli.output import check_output, print_json, screen, working, writing
from steelyard.cli.training import make_classifier, read_training

__all__ = ["add_parser"]

_EXAMPLES = """
steelyard fit data.csv --target class -o model.json
steelyard fit data.parquet --target class --method RNB --set bounds=None -o model.json
steelyard fit data.csv --target class --categorical zip --drop id,name -o model.json
zcat data.csv.gz | steelyard fit - --target class -o model.json --force
"""


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "fit", "learn a model from a table", _EXAMPLES, _run)
    parser.add_argument(
        "data", help="CSV, TSV, Parquet or ARFF file, or - for standard input"
    )
    add_output(parser, "the model file to write", required=True)
    add_json(parser)
    add_training(parser)


def _run(arguments: argparse.Namespace) -> None:
    check_output(arguments.output, arguments.force)
    method, clf = make_classifier(arguments)
    if not hasattr(clf, "save"):
        raise ValueError(
            f"{method} is a yardstick and cannot be saved; try it with evaluate or "
            "compare."
        )
    with working("Reading …"):
        data = read_training(arguments.data, arguments)
    start = perf_counter()
    with working(f"Fitting {method} …"):
        clf.fit(data.table, data.labels, sample_weight=data.weights)
    seconds = perf_counter() - start
    with working("Predicting the training rows …"):
        accuracy = _training_accuracy(clf, data.table, data.labels)
    with writing(arguments.output, arguments.force) as path:
        clf.save(path)
    n_rows, n_columns = data.table.shape
    summary = {
        "model": arguments.output,
        "method": method,
        "target": data.target,
        "rows": n_rows,
        "columns": n_columns,
        "classes": clf.classes_,
        "training_accuracy": accuracy,
        "fit_seconds": seconds,
    }
    if arguments.json:
        print_json(summary)
        return
    from rich.markup import escape

    classes = [str(label) for label in clf.classes_]
    shown = ", ".join(classes[:6]) + (", …" if len(classes) > 6 else "")
    right = "" if accuracy is None else f"{100 * accuracy:.1f} % of them right"
    console = screen()
    console.print(
        f"[bold]{escape(method)}[/bold] learned [bold]{escape(data.target)}[/bold] "
        f"({len(classes)} classes: {escape(shown)})\n"
        f"from {n_rows} rows and {n_columns} columns in {seconds:.2f} s"
        f"{'; ' if right else ''}{right}",
        soft_wrap=True,
    )
    console.print(f"saved to [green]{escape(arguments.output)}[/green]", soft_wrap=True)


def _training_accuracy(clf: Any, table: Any, labels: Any) -> float | None:
    """Return the accuracy on the training rows, None where it would take long."""
    from steelyard.explain.parts import kind_of

    if kind_of(clf.model_) == "neighbours":
        return None
    return float((clf.predict(table) == labels).mean())
