"""``steelyard compare``: methods on data sets, all on the same folds."""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path
from typing import Any

from steelyard.cli.options import (
    Commands,
    add_command,
    add_folds,
    add_force,
    add_input,
    add_json,
    add_names,
    add_target,
    reading_of,
)
from steelyard.cli.output import check_output, note, print_json, screen, writing
from steelyard.cli.training import DEFAULT_METHOD
from steelyard.exceptions import ParameterError

__all__ = ["add_parser"]

_EXAMPLES = """
steelyard compare iris wine breast_cancer --methods NB,RNB,LogisticRegression
steelyard compare data.csv --target class --methods NB,SNB --html report.html
steelyard compare group:rnb33 --data datasets --methods all --journal run.jsonl
"""
_REPORTS = ("html", "markdown", "latex", "csv")


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "compare",
        "cross-validate methods on data sets, all on the same folds",
        _EXAMPLES,
        _run,
    )
    parser.add_argument(
        "datasets",
        nargs="+",
        metavar="DATA",
        help="files, or names of data sets: those of --data, scikit-learn's, "
        "openml:NAME, group:NAME",
    )
    add_names(
        parser,
        "--methods",
        "acronyms, scikit-learn's SVM, LogisticRegression, RandomForest, "
        "HistGradientBoosting, or all (default: NB and the library's default)",
    )
    add_target(parser)
    _add_design(parser)
    _add_files(parser)
    add_force(parser)
    add_json(parser)
    add_input(parser)


def _add_design(parser: argparse.ArgumentParser) -> None:
    """Say how methods are measured and compared."""
    about = "honest (default), published-rnb, published-cwnb, published-exponential"
    add_names(parser, "--protocol", about)
    add_folds(parser)
    add = parser.add_argument
    add("--repeats", type=int, default=1, help="repeats (default: 1)")
    add("--metric", default="accuracy", help="measure to rank by (default: accuracy)")
    about = "method that each of the others is tested against (default: the one of best"
    add("--control", metavar="NAME", help=f"{about} rank)")
    add("--jobs", type=int, default=2, metavar="N", help="processes (default: 2)")


def _add_files(parser: argparse.ArgumentParser) -> None:
    """Say where data sets are, and what is written."""
    add = parser.add_argument
    about = "folder of data sets (default: environment STEELYARD_DATA)"
    add("--data", metavar="DIR", help=about)
    about = "keep results in a file, from which the same command goes on"
    add("--journal", metavar="FILE", help=about)
    add("--retry-errors", action="store_true", help="run failed fits again")
    for name in _REPORTS:
        add(f"--{name}", metavar="FILE", help=f"write the report as {name} to a file")


def _run(arguments: argparse.Namespace) -> None:
    from steelyard.experiments.inputs import resolve_methods
    from steelyard.experiments.report.summary import check_metric
    from steelyard.experiments.runner import compare

    for name in _REPORTS:
        check_output(getattr(arguments, name), arguments.force)
    check_output(arguments.journal, force=True)
    check_metric(arguments.metric)
    methods = arguments.methods or ["NB", DEFAULT_METHOD]
    if arguments.control is not None:
        (arguments.control,) = resolve_methods(arguments.control)
        compared = list(resolve_methods(methods))
        if arguments.control not in compared:
            raise ParameterError(
                f"--control {arguments.control} is not among the methods to compare: "
                f"{', '.join(compared)}. Add it to --methods."
            )
    results = compare(
        methods,
        [_data_set(name, arguments) for name in arguments.datasets],
        protocol=arguments.protocol or "honest",
        folds=arguments.folds,
        repeats=arguments.repeats,
        seed=arguments.seed,
        journal=arguments.journal,
        retry_errors=arguments.retry_errors,
        folder=arguments.data,
        n_jobs=arguments.jobs,
    )
    _write_reports(results, arguments)
    if arguments.json:
        print_json({"settings": results.settings, "fits": results.rows})
    else:
        _show(results, arguments.metric, arguments.control)


def _data_set(name: str, arguments: argparse.Namespace) -> Any:
    """Read a file as all commands do; leave other names to the comparison."""
    from steelyard.experiments.data import read_dataset

    if not Path(name).is_file():
        return name
    data = read_dataset(name, target=arguments.target, **reading_of(arguments))
    note(*data.notes)
    return data


def _write_reports(results: Any, arguments: argparse.Namespace) -> None:
    from steelyard.experiments import report

    shown = {"metric": arguments.metric, "control": arguments.control}
    texts = {
        "html": lambda: report.results_to_html(results, **shown),
        "markdown": lambda: report.results_to_markdown(results, **shown),
        "latex": lambda: report.results_to_latex(results, **shown),
        "csv": lambda: report.results_to_csv(results),
    }
    for name, make in texts.items():
        target = getattr(arguments, name)
        if target is not None:
            with writing(target, arguments.force) as path:
                path.write_text(make(), encoding="utf-8")
            note(f"written: {target}")


def _show(results: Any, metric: str, control: str | None) -> None:
    from steelyard.experiments.report import print_results

    width = screen().width
    if sys.stdout.isatty():
        print_results(results, metric, control=control, width=width)
        return
    text = io.StringIO()
    print_results(results, metric, control=control, file=text, width=width)
    print(text.getvalue(), end="")
