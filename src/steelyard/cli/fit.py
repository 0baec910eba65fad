"""``steelyard fit``: a file to a model."""

from __future__ import annotations

import argparse
from time import perf_counter
from typing import Any

from steelyard.cli import options, output, streams
from steelyard.cli.inputs import check_kinds, make_classifier, read_training

ABOUT = "learn a model from a table"
EXAMPLES = """
steelyard fit data.csv --target class -o model.json
steelyard fit data.parquet --target class --method RNB --set bounds=None -o model.json
steelyard fit data.csv --target class --categorical zip --drop id,name -o model.json
steelyard fit "trips/*.parquet" --target tip --memory 2GB -o model.json
zcat data.csv.gz | steelyard fit - --target class -o model.json --force
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("data", nargs="+", help=options.SEVERAL)
    about = "the model file to write"
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help=about)
    options.add_force(parser)
    options.add_json(parser)
    options.add_training(parser)
    about = "where to learn: cpu, cuda (a GPU), cuda:1, or auto (default: cpu)"
    parser.add_argument("--device", metavar="NAME", help=about)
    streams.add_options(parser)


def run(arguments: argparse.Namespace) -> None:
    """Fit a model, save it, and print a summary."""
    output.check_output(arguments.output, arguments.force)
    method, clf = make_classifier(arguments)
    if arguments.device is not None:
        _set_device(clf, method, arguments.device)
    if not hasattr(clf, "save"):
        advice = "try it with evaluate or compare"
        raise ValueError(f"{method} is a baseline and cannot be saved; {advice}.")
    check_kinds(arguments)
    learn = _fit_stream if streams.is_streamed(arguments) else _fit_table
    found = learn(clf, method, arguments)
    with output.writing(arguments.output, arguments.force) as path:
        clf.save(path)
    summary = {
        "model": arguments.output,
        "method": method,
        **found,
        "columns": len(clf.feature_names_in_),
        "classes": clf.classes_,
    }
    output.present(arguments, lambda: summary, lambda: _show(summary))


def _set_device(clf: Any, method: str, device: str) -> None:
    if "device" not in clf.get_params():
        raise ValueError(f"{method} learns on the CPU alone; leave --device out.")
    clf.set_params(device=device)


def _fit_table(clf: Any, method: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Fit to a table in memory."""
    with output.working("Reading …"):
        data, weights = read_training(arguments.data[0], arguments)
    start = perf_counter()
    with output.working(f"Fitting {method} …"):
        clf.fit(data.table, data.target, sample_weight=weights)
    seconds = perf_counter() - start
    with output.working("Predicting the training rows …"):
        accuracy = _training_accuracy(clf, data.table, data.target)
    return {
        "target": data.target_name,
        "rows": len(data),
        "training_accuracy": accuracy,
        "fit_seconds": seconds,
    }


def _fit_stream(clf: Any, method: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Fit to rows that are read in chunks, of which all are never in memory."""
    rows, read = streams.open_rows(arguments)
    start = perf_counter()
    with streams.progress("Reading") as update:
        rows.progress = streams.readings(update, method)
        clf.fit(rows)
    left_out = read.n_unlabelled
    if left_out:
        output.note(f"{left_out} rows without {rows.target!r} are left out")
    return {
        "target": rows.target,
        "rows": read.n_read - left_out,
        "training_accuracy": None,
        "fit_seconds": perf_counter() - start,
    }


def _show(summary: dict[str, Any]) -> None:
    from rich.markup import escape

    from steelyard.experiments.data.source import listed

    classes, accuracy = summary["classes"], summary["training_accuracy"]
    right = "" if accuracy is None else f"; {100 * accuracy:.1f} % of them right"
    output.screen().print(
        f"[bold]{escape(summary['method'])}[/bold] learned "
        f"[bold]{escape(summary['target'])}[/bold] "
        f"({len(classes)} classes: {escape(listed(classes, 6))})\n"
        f"from {summary['rows']} rows and {summary['columns']} columns in "
        f"{summary['fit_seconds']:.2f} s{right}\n"
        f"saved to [green]{escape(summary['model'])}[/green]",
        soft_wrap=True,
    )


def _training_accuracy(clf: Any, table: Any, labels: Any) -> float | None:
    """Return the accuracy on the training rows, None where it would take long."""
    from steelyard.explain.parts import kind_of

    if kind_of(clf.model_) == "neighbours":
        return None
    return float((clf.predict(table) == labels).mean())
