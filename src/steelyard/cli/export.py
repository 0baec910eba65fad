"""``steelyard export``: a model as a file for another program."""

from __future__ import annotations

import argparse
from dataclasses import fields
from typing import Any

from steelyard._common.text import listed
from steelyard.cli import options, output
from steelyard.cli.inputs import load_model, rows_for
from steelyard.export.formats import ENDINGS, FORMATS

_NAMES = ", ".join(of.name for of in FORMATS.values())
ABOUT = f"write a model for another program: {_NAMES}"
EXAMPLES = """
steelyard export model.json -o score.sql --dialect postgres --table customers --keep id
steelyard export model.json -o model.onnx --check sample.csv
steelyard export model.json -o model.js
"""

_SAMPLE_ROWS = 50_000


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add("model", help=options.MODEL)
    about = f"file to write: {ENDINGS}"
    add("-o", "--output", metavar="FILE", required=True, help=about)
    add("--format", choices=FORMATS, help="what to write (default: by the ending)")
    options.add_shared(parser, "force")
    about = "also score a file with the target engine, and compare"
    add("--check", metavar="FILE", help=about)
    group = options.add_sql(parser)
    about = "return scores alone, for databases without exp"
    group.add_argument("--no-probabilities", action="store_true", help=about)
    about = "create a view instead of a query"
    group.add_argument("--as-view", metavar="NAME", help=about)
    about = "create a function of one row instead of a query"
    group.add_argument("--as-function", metavar="NAME", help=about)
    group.add_argument("--dbt", action="store_true", help="write a dbt model")
    about = "decimal places of contributions (default: all)"
    group.add_argument("--decimals", type=int, metavar="N", help=about)
    group = parser.add_argument_group("ONNX and PMML")
    about = "text that means a missing cell (ONNX)"
    group.add_argument("--missing-text", metavar="TEXT", help=about)
    about = "one input per column, or one matrix of numbers (ONNX)"
    group.add_argument("--inputs", choices=("columns", "matrix"), help=about)
    about = "name of the predicted column (PMML)"
    group.add_argument("--target", metavar="NAME", help=about)


def run(arguments: argparse.Namespace) -> int:
    """Write the file; with a sample, compare, and fail if the engine differs."""
    from steelyard._common.files import atomic_write
    from steelyard.export.formats import content_of, format_of
    from steelyard.export.reading import plan_of

    kind = format_of(arguments.output, arguments.format)
    output.check_output(arguments.output, arguments.force)
    clf = load_model(arguments.model)
    chosen = _chosen(arguments)
    content = content_of(clf, kind, **chosen)
    checked, lacking = None, ""
    if arguments.check is not None:
        from steelyard.export.check import EngineMissingError, check

        plain = argparse.Namespace(**dict.fromkeys(options.READING))
        table, _ = next(rows_for(clf, arguments.check, plain, rows=_SAMPLE_ROWS))
        try:
            checked = check(clf, table.to_pandas(), kind, **chosen)
        except EngineMissingError as error:
            # The file may be for another machine, which has the engine.
            lacking = str(error)
    atomic_write(arguments.output, content)
    output.note(f"written: {arguments.output}")
    lacks_dates = not FORMATS[kind].reads_dates
    parts = [c for c in plan_of(clf).columns if c.date and lacks_dates]
    for date in dict.fromkeys(column.date for column in parts):
        names = [c.name for c in parts if c.date == date and c.name != date]
        output.note(f"{date}: in days since 1970-01-01, beside {listed(names)}")
    if kind == "onnx":
        from steelyard.export.onnx import missing_texts

        gap = chosen.get("missing_text", "")
        for name, words in missing_texts(plan_of(clf), gap).items():
            counted = f"{listed(map(repr, words))} are missing cells, which count here"
            output.note(f"{name}: in ONNX the texts {counted}")
    if lacking:
        output.note(f"not checked: {lacking}")
        return 1
    if checked is not None:
        print(checked)
        if not checked.agrees:
            output.note("the engine differs from the model")
            return 1
    return 0


def _chosen(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options of the format that were given."""
    from steelyard.export.sql import SQLOptions

    names = {option.name for option in fields(SQLOptions)} - {"probabilities"}
    names |= {"missing_text", "inputs", "target"}
    chosen = options.given(arguments, " ".join(names))
    return chosen | ({"probabilities": False} if arguments.no_probabilities else {})
