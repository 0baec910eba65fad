"""``steelyard scorecard`` and ``edit``: a card of points, and changes by hand."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from steelyard.cli import options, output
from steelyard.cli.inputs import check_model_file, load_model, rows_and_labels
from steelyard.exceptions import ParameterError

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
    group = parser.add_argument_group("SQL")
    group.add_argument("--dialect", metavar="NAME", help="the database")
    group.add_argument("--table", metavar="NAME", help="the table that is scored")
    options.add_names(group, "--keep", "columns of the table to return, such as a key")
    about = "return the points of every column as well"
    group.add_argument("--contributions", action="store_true", help=about)


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
    from steelyard.persistence import load

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
    elif not has_work:
        for edit in getattr(clf, "edits_", []):
            print(edit)
    else:
        edits = [] if arguments.edits is None else _edits(arguments.edits)
        n_before = len(getattr(clf, "edits_", []))
        rows = _recalibration_rows(clf, arguments)
        made = clf.edited(edits, arguments.reason, rows, arguments.break_shapes)
        made.save(arguments.output)
        for edit in made.edits_[n_before:]:
            print(edit)


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
