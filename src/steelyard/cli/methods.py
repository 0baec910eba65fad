"""``steelyard methods``: a table of every method."""

from __future__ import annotations

import argparse

from steelyard.cli import options, output

_METHODS = "list every method"
_METHODS_EXAMPLES = """
steelyard methods
steelyard methods --family filters
steelyard methods --json | jq -r '.[].acronym'
"""


def add_methods_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    about = "only families whose name contains this"
    parser.add_argument("--family", metavar="TEXT", help=about)
    options.add_json(parser)


@options.command("methods", _METHODS, _METHODS_EXAMPLES, add_methods_options)
def run_methods(arguments: argparse.Namespace) -> None:
    """Print the table of methods."""
    import steelyard
    from steelyard.classifiers.registry import DEFAULT

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
        output.print_json(rows)
        return
    # Names of classes and settings would not fit; scripts have them in --json.
    header = ["acronym", "family", "learns", "paper"]
    cells = [[row[name] for name in header] for row in rows]
    for line in cells:
        if DEFAULT in line[0].split(", "):
            line[0] += " (default)"
    output.print_table("Methods", header, cells, n_texts=4)
