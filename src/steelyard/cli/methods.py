"""``steelyard methods``: which methods there are."""

from __future__ import annotations

import argparse

from steelyard.cli.options import Commands, add_command, add_json
from steelyard.cli.output import print_json, print_table, screen

__all__ = ["add_parser"]

_EXAMPLES = """
steelyard methods
steelyard methods --family filters
steelyard methods --json | jq -r '.[].acronym'
"""


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "methods", "list every method", _EXAMPLES, _run)
    parser.add_argument(
        "--family", metavar="TEXT", help="only families whose name contains this"
    )
    add_json(parser)


def _run(arguments: argparse.Namespace) -> None:
    import steelyard

    rows = steelyard.methods().rows()
    if arguments.family is not None:
        families = sorted({row["family"] for row in rows})
        rows = [row for row in rows if arguments.family.lower() in row["family"]]
        if not rows:
            raise ValueError(
                f"There is no family {arguments.family!r}. Families: "
                f"{', '.join(families)}."
            )
    if arguments.json:
        print_json(rows)
        return
    console = screen()
    # Names of classes and settings are there for scripts; they would not fit.
    header = ["acronym", "family", "learns", "paper"]
    cells = [[row[name] for name in header] for row in rows]
    print_table(console, "Methods", header, cells, n_texts=4)
