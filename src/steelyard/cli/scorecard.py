"""``steelyard scorecard``: a model as a card of points."""

from __future__ import annotations

import argparse
from typing import Any

from steelyard.cli import options, output
from steelyard.cli.inputs import class_named, load_model, rows_and_labels
from steelyard.exceptions import ParameterError
from steelyard.export.formats import ENDINGS

ABOUT = "write a model as a scorecard of integer points that people can add up"
EXAMPLES = """
steelyard scorecard model.json
steelyard scorecard model.json -o card.html --data train.csv
steelyard scorecard model.json -o card.sql --dialect postgres --table people --keep id
"""

_SETTINGS = "points_to_double base_points base_odds max_bins max_cells interactions"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add("model", help=options.MODEL)
    about = f"file to write: .html, .csv, .md, {ENDINGS}"
    add("-o", "--output", metavar="FILE", help=f"{about} (default: print the card)")
    options.add_shared(parser, "force")
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
        ("interactions", int, "how many interactions are on the card (default: 0)"),
    ):
        add(f"--{name}", type=kind, metavar="N", help=about)
    about = "TOML file: author, date, use, signatures, and texts of reasons by column"
    add("--card", metavar="FILE", help=about)
    options.add_sql(parser)


def run(arguments: argparse.Namespace) -> None:
    """Write the card, or print it."""
    output.check_output(arguments.output, arguments.force)
    clf = load_model(arguments.model)
    rows, label = _card_rows(clf, arguments), None
    if (name := arguments.label or clf.training_.reading.get("positive")) is not None:
        label = class_named(clf.classes_, name, "--for")
    settings = options.given(arguments, _SETTINGS)
    card = clf.scorecard(*rows, target=label, card=arguments.card, **settings)
    writing = options.given(arguments, "dialect table keep contributions")
    if arguments.output is not None:
        card.export(arguments.output, **writing)
        output.note(f"written: {arguments.output}")
    elif writing:
        raise ParameterError(f"--{next(iter(writing))} is for SQL: -o card.sql.")
    else:
        print(card)


def _card_rows(clf: Any, arguments: argparse.Namespace) -> tuple[Any, Any]:
    """Read rows, and labels if their column is named."""
    if arguments.data is None:
        if arguments.target is not None:
            raise ParameterError(
                "--target names a column of --data, which is not given."
            )
        return None, None
    return rows_and_labels(clf, arguments.data, arguments.target)
