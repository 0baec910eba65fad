"""``steelyard edit``: changes of a model by hand."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from steelyard.cli import options, output
from steelyard.cli.inputs import check_model_file, rows_and_labels
from steelyard.exceptions import ParameterError

ABOUT = "edit a model by hand, with an audit trail"
EXAMPLES = """
steelyard edit model.json
steelyard edit model.json edits.json -o edited.json --reason policy
steelyard edit edited.json --undo -o model.json --force
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add("model", help=options.MODEL)
    about = 'JSON: a list such as [{"column": "age", "from": 30, "to": 40, "set": 0.2}]'
    add("edits", nargs="?", metavar="FILE", help=f"{about} (default: list all edits)")
    add("-o", "--output", metavar="FILE", help="the model file to write")
    options.add_shared(parser, "force")
    add("--reason", metavar="TEXT", help="why; kept with each edit")
    about = "rows to recalibrate the intercept on after the edits"
    add("--recalibrate", metavar="FILE", help=about)
    about = "column of these rows that holds the truth"
    add("--target", metavar="NAME", help=about)
    about = "allow edits that break shapes given at fit (--increasing and others)"
    add("--break-shapes", action="store_true", help=about)
    add("--undo", action="store_true", help="go back to the model before all edits")


def run(arguments: argparse.Namespace) -> None:
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
        raise ParameterError(f"{path} must contain a list of edits.")
    return edits


def _recalibration_rows(clf: Any, arguments: argparse.Namespace) -> Any:
    if arguments.recalibrate is None:
        return None
    target = arguments.target or getattr(clf, "target_name_", None)
    if target is None:
        raise ParameterError("Name the column of true classes with --target.")
    return rows_and_labels(clf, arguments.recalibrate, target)
