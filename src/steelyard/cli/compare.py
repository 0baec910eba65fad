"""``steelyard compare``: methods on the same folds of data sets."""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path
from typing import Any

from steelyard.cli import options, output
from steelyard.exceptions import ParameterError

ABOUT = "cross-validate methods on data sets, all on the same folds"
EXAMPLES = """
steelyard compare iris wine breast_cancer --methods NB,RNB,LogisticRegression
steelyard compare data.csv --target class --methods NB,SNB --markdown report.md
steelyard compare group:rnb33 --data datasets --methods all --journal run.jsonl
"""
_REPORTS = ("markdown", "latex", "csv")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    about = "files, or names of data sets: those of --data, scikit-learn's, openml:NAME"
    add("datasets", nargs="+", metavar="DATA", help=f"{about}, group:NAME")
    options.add_names(
        parser,
        "--methods",
        "acronyms, scikit-learn's SVM, LogisticRegression, RandomForest, "
        "HistGradientBoosting; EBM, CatBoost and Khiops if installed, or all "
        "(default: NB and the library's default)",
    )
    options.add_shared(parser, "target")
    about = "honest (default), published-rnb, published-cwnb, published-exponential"
    options.add_names(parser, "--protocol", about)
    options.add_folds(parser)
    about = "how often to repeat the folds (default: 1)"
    add("--repeats", type=int, default=1, help=about)
    add("--metric", default="accuracy", help="measure to rank by (default: accuracy)")
    about = "method that each of the others is tested against (default: the one of best"
    add("--control", metavar="NAME", help=f"{about} rank)")
    options.add_runs(parser)
    about = "keep results in a file, from which the same command resumes"
    add("--journal", metavar="FILE", help=about)
    add("--retry-errors", action="store_true", help="run failed fits again")
    for name in _REPORTS:
        add(f"--{name}", metavar="FILE", help=f"write the report as {name} to a file")
    options.add_shared(parser, "force", "json")
    options.add_input(parser)


def run(arguments: argparse.Namespace) -> None:
    """Compare methods, write reports, and print what came out."""
    from steelyard.classifiers.registry import DEFAULT
    from steelyard.lab.report.summaries import check_metric
    from steelyard.lab.runner import compare, resolve_methods

    for name in _REPORTS:
        output.check_output(getattr(arguments, name), arguments.force)
    output.check_output(arguments.journal, force=True)
    check_metric(arguments.metric)
    methods = arguments.methods or ["NB", DEFAULT]
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
        folder=arguments.data,
        n_jobs=arguments.jobs,
        **options.folds_of(arguments),
        **options.chosen(arguments, "repeats", "journal", "retry_errors"),
    )
    _write_reports(results, arguments)
    if arguments.json:
        output.print_json({"settings": results.settings, "fits": results.rows})
    else:
        _show_results(results, arguments.metric, arguments.control)


def _data_set(name: str, arguments: argparse.Namespace) -> Any:
    """Read a file as all commands do; leave other names to the comparison."""
    from steelyard.io.dataset import read_dataset

    if not Path(name).is_file():
        return name
    data = read_dataset(name, target=arguments.target, **options.reading_of(arguments))
    output.note(*data.notes)
    return data


def _write_reports(results: Any, arguments: argparse.Namespace) -> None:
    from steelyard.lab import report

    shown = options.chosen(arguments, "metric", "control")
    for name in _REPORTS:
        target = getattr(arguments, name)
        if target is not None:
            make = getattr(report, f"results_to_{name}")
            text = make(results) if name == "csv" else make(results, **shown)
            output.write_text(target, text, arguments.force)


def _show_results(results: Any, metric: str, control: str | None) -> None:
    from steelyard.lab.report.writers import print_results

    # A pipe gets the whole text at once.
    text = None if sys.stdout.isatty() else io.StringIO()
    width = output.screen().width
    print_results(results, metric, control=control, file=text, width=width)
    print(text.getvalue() if text else "", end="")
