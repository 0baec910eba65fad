"""``steelyard export``, ``scorecard`` and ``edit``: a model in other forms."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from steelyard._common.text import listed
from steelyard.cli import options, output
from steelyard.cli.inputs import check_model_file, load_model, rows_and_labels, rows_for
from steelyard.exceptions import ParameterError

_EXPORT = "write a model as SQL, ONNX, PMML, JavaScript or Python"
_EXPORT_EXAMPLES = """
steelyard export model.json -o score.sql --dialect postgres --table customers --keep id
steelyard export model.json -o model.onnx --check sample.csv
steelyard export model.json -o model.js
"""

# As in the export, which is loaded when it is needed; tests compare.
FORMATS = ("sql", "onnx", "pmml", "js", "py")
DIALECTS = (
    *("duckdb", "sqlite", "postgres", "spark", "bigquery", "snowflake", "sqlserver"),
    *("mysql", "mariadb", "clickhouse", "redshift", "oracle", "trino"),
    "athena",
)

_SAMPLE_ROWS = 50_000


def add_export_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add("model", help=options.MODEL)
    about = "file to write: .sql, .onnx, .pmml, .js or .py"
    add("-o", "--output", metavar="FILE", required=True, help=about)
    add("--format", choices=FORMATS, help="what to write (default: by the ending)")
    options.add_force(parser)
    about = "score a file with the engine as well, and compare with the model"
    add("--check", metavar="FILE", help=about)
    group = _add_sql(parser)
    about = "return scores alone, for databases without exp"
    group.add_argument("--no-probabilities", action="store_true", help=about)
    about = "create a view in place of a query"
    group.add_argument("--as-view", metavar="NAME", help=about)
    about = "create a function of one row in place of a query"
    group.add_argument("--as-function", metavar="NAME", help=about)
    group.add_argument("--dbt", action="store_true", help="write a model of dbt")
    about = "decimal places of what values add (default: all)"
    group.add_argument("--decimals", type=int, metavar="N", help=about)
    group = parser.add_argument_group("ONNX and PMML")
    about = "text that stands for a missing cell (ONNX)"
    group.add_argument("--missing-text", metavar="TEXT", help=about)
    about = "an input for each column, or one matrix of numbers (ONNX)"
    group.add_argument("--inputs", choices=("columns", "vectors", "matrix"), help=about)
    about = "type of numbers that are handed in (ONNX; default: double)"
    kinds = ("double", "float", "int64")
    group.add_argument("--number-type", choices=kinds, help=about)
    about = "name of the predicted column (PMML)"
    group.add_argument("--target", metavar="NAME", help=about)


def _add_sql(parser: argparse.ArgumentParser) -> Any:
    """Say how SQL is written; return the group of options."""
    group = parser.add_argument_group("SQL")
    about = "the database (default: duckdb)"
    group.add_argument("--dialect", choices=DIALECTS, help=about)
    about = "the table that is scored (default: data)"
    group.add_argument("--table", metavar="NAME", help=about)
    about = "columns of the table to return, such as its key"
    options.add_names(group, "--keep", about)
    about = "return what every column adds as well"
    group.add_argument("--contributions", action="store_true", help=about)
    return group


@options.command("export", _EXPORT, _EXPORT_EXAMPLES, add_export_options)
def run_export(arguments: argparse.Namespace) -> None:
    """Write the file; with a sample, compare, and fail where the engine differs."""
    from steelyard._common.files import atomic_write
    from steelyard.export.formats import PARTS_ALONE, content_of, format_of
    from steelyard.export.reading import plan_of

    kind = format_of(arguments.output, arguments.format)
    output.check_output(arguments.output, arguments.force)
    clf = load_model(arguments.model)
    chosen = _chosen(arguments)
    content = content_of(clf, kind, **chosen)
    checked, lacking = None, ""
    if arguments.check is not None:
        from steelyard.export.check import EngineMissingError, check

        try:
            checked = check(clf, _sample(clf, arguments.check), kind, **chosen)
        except EngineMissingError as error:
            # The file may be for another machine, which has the engine.
            lacking = str(error)
    atomic_write(arguments.output, content)
    output.note(f"written: {arguments.output}")
    parts = [c for c in plan_of(clf).columns if c.date and kind in PARTS_ALONE]
    for date in dict.fromkeys(column.date for column in parts):
        names = [c.name for c in parts if c.date == date and c.name != date]
        output.note(f"{date}: in days since 1970-01-01, beside {listed(names)}")
    if kind == "onnx":
        from steelyard.export.inputs_onnx import gaps_that_count

        gap = chosen.get("missing_text", "")
        for name, words in gaps_that_count(plan_of(clf), gap).items():
            said = f"{listed(map(repr, words))} are missing cells, which count here"
            output.note(f"{name}: in ONNX the texts {said}")
    if lacking:
        print(f"steelyard: not checked: {lacking}", file=sys.stderr)
        raise SystemExit(1)
    if checked is not None:
        print(checked)
        if not checked.agrees:
            print("steelyard: the engine differs from the model.", file=sys.stderr)
            raise SystemExit(1)


def _chosen(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options of the format that were given."""
    names = "dialect table keep contributions as_view as_function dbt decimals"
    names += " missing_text inputs number_type target"
    chosen = options.given(arguments, names)
    if arguments.no_probabilities:
        chosen["probabilities"] = False
    return chosen


def _sample(clf: Any, path: str) -> Any:
    """Read the first rows of a file."""
    plain = argparse.Namespace(**dict.fromkeys(options.READING))
    table, _ = next(rows_for(clf, path, plain, rows=_SAMPLE_ROWS))
    return table.to_pandas()


_CARD = "write a model as a card of whole points that people can add up"
_CARD_EXAMPLES = """
steelyard scorecard model.json
steelyard scorecard model.json -o card.html --data train.csv
steelyard scorecard model.json -o card.sql --dialect postgres --table people --keep id
"""

_SETTINGS = "points_to_double base_points base_odds max_bins max_cells pairs"


def add_card_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add("model", help=options.MODEL)
    about = "file to write: .html, .xlsx, .csv, .md, .sql, .onnx, .pmml, .js or .py"
    add("-o", "--output", metavar="FILE", help=f"{about} (default: print the card)")
    options.add_force(parser)
    about = "rows to make the card on, best those of training (default: the counts in "
    add("--data", metavar="FILE", help=f"{about}the model); at most 20,000")
    about = "column of these rows that holds the truth, for the loss of the card"
    add("--target", metavar="NAME", help=about)
    about = "the class that points speak for (default: the second of two; with more "
    add("--for", metavar="CLASS", dest="label", help=f"{about}classes a card for each)")
    for name, kind, about in (
        ("points-to-double", float, "points that double the odds (default: 20)"),
        ("base-points", float, "points of the base odds (default: 600)"),
        ("base-odds", float, "odds to one at the base points (default: 50)"),
        ("max-bins", int, "most cells of a column (default: 8)"),
        ("max-cells", int, "most cells of the card (default: 80)"),
        ("pairs", int, "how many pairs of columns are on the card (default: 0)"),
    ):
        add(f"--{name}", type=kind, metavar="N", help=about)
    _add_sql(parser)


@options.command("scorecard", _CARD, _CARD_EXAMPLES, add_card_options)
def run_card(arguments: argparse.Namespace) -> None:
    """Write the card, or print it."""
    output.check_output(arguments.output, arguments.force)
    clf = load_model(arguments.model)
    rows, label = _card_rows(clf, arguments), _card_label(clf, arguments)
    settings = options.chosen(arguments, *_SETTINGS.split())
    chosen = {name: value for name, value in settings.items() if value is not None}
    card = clf.scorecard(*rows, target=label, **chosen)
    writing = options.given(arguments, "dialect table keep contributions")
    if arguments.output is not None:
        card.export(arguments.output, **writing)
        output.note(f"written: {arguments.output}")
    elif writing:
        raise ParameterError(f"--{next(iter(writing))} is for SQL: -o card.sql.")
    else:
        print(card)


def _card_label(clf: Any, arguments: argparse.Namespace) -> Any:
    """Return the class that is called so."""
    if arguments.label is None:
        return None
    known = {str(label): label for label in clf.classes_.tolist()}
    if arguments.label not in known:
        raise ParameterError(
            f"--for must be one of the classes {', '.join(known)}. Got "
            f"{arguments.label!r}."
        )
    return known[arguments.label]


def _card_rows(clf: Any, arguments: argparse.Namespace) -> tuple[Any, Any]:
    """Read rows, and labels where their column is named."""
    if arguments.data is None:
        if arguments.target is not None:
            raise ParameterError(
                "--target names a column of --data, which is not given."
            )
        return None, None
    return rows_and_labels(clf, arguments.data, arguments.target)


_EDIT = "change a model by hand, with a record of what, why and when"
_EDIT_EXAMPLES = """
steelyard edit model.json
steelyard edit model.json edits.json -o edited.json --reason policy
steelyard edit edited.json --undo -o model.json --force
"""


def add_edit_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add("model", help=options.MODEL)
    about = 'JSON: a list such as [{"column": "age", "from": 30, "to": 40, "set": 0.2}]'
    add("edits", nargs="?", metavar="FILE", help=f"{about} (default: list all edits)")
    add("-o", "--output", metavar="FILE", help="the model file to write")
    options.add_force(parser)
    add("--reason", metavar="TEXT", help="why; kept with each edit")
    about = "rows on which the start of the sum is fitted again after the edits"
    add("--recalibrate", metavar="FILE", help=about)
    about = "column of these rows that holds the truth"
    add("--target", metavar="NAME", help=about)
    about = "allow edits that break shapes given at fit (--increasing and others)"
    add("--break-shapes", action="store_true", help=about)
    add("--undo", action="store_true", help="go back to the model before all edits")


@options.command("edit", _EDIT, _EDIT_EXAMPLES, add_edit_options)
def run_edit(arguments: argparse.Namespace) -> None:
    """Write the changed model, or list the edits of one."""
    from steelyard.persistence.files import load

    output.check_output(arguments.output, arguments.force)
    has_work = arguments.undo or arguments.edits or arguments.recalibrate
    if has_work and arguments.output is None:
        raise ParameterError("Name the model file to write with -o.")
    if arguments.output is not None and not has_work:
        raise ParameterError("There is nothing to do: give a file of edits, or --undo.")
    if arguments.undo and (arguments.edits or arguments.recalibrate):
        raise ParameterError("--undo goes back, and takes no edits.")
    check_model_file(arguments.model)
    clf: Any = load(arguments.model)
    if arguments.undo:
        clf.unedited().save(arguments.output)
        output.note(f"written: {arguments.output}")
    elif not has_work:
        for edit in getattr(clf, "edits_", []):
            print(edit)
        if not hasattr(clf, "edits_"):
            output.note(f"{arguments.model} has no edits.")
    else:
        edits = [] if arguments.edits is None else _edits(arguments.edits)
        n_before = len(getattr(clf, "edits_", []))
        rows = _recalibration_rows(clf, arguments)
        made = clf.edited(edits, arguments.reason, rows, arguments.break_shapes)
        made.save(arguments.output)
        for edit in made.edits_[n_before:]:
            print(edit)
        output.note(f"written: {arguments.output}")


def _edits(path: str) -> Any:
    """Read edits."""
    try:
        edits = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ParameterError(f"{path} is not JSON: {error}.") from None
    if not isinstance(edits, (list, dict)):
        raise ParameterError(f"{path} must hold a list of edits.")
    return edits


def _recalibration_rows(clf: Any, arguments: argparse.Namespace) -> Any:
    if arguments.recalibrate is None:
        return None
    target = arguments.target or getattr(clf, "target_name_", None)
    if target is None:
        raise ParameterError("Name the column that holds the truth with --target.")
    return rows_and_labels(clf, arguments.recalibrate, target)
