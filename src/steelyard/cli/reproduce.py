"""``steelyard reproduce``: published tables, measured again."""

from __future__ import annotations

import argparse

from steelyard.cli.options import Commands, add_command, add_force, add_json
from steelyard.cli.output import check_output, note, print_json, writing

__all__ = ["add_parser"]

PAPERS = ("rnb", "cwnb", "exponential", "spss")

_EXAMPLES = """
steelyard reproduce rnb --quick --data datasets
steelyard reproduce exponential --out results
steelyard reproduce spss --markdown spss.md
"""


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "reproduce",
        "measure the tables of a paper beside what it published",
        _EXAMPLES,
        _run,
    )
    parser.add_argument("paper", choices=PAPERS, help="whose tables")
    parser.add_argument("--quick", action="store_true", help="a few small data sets")
    parser.add_argument(
        "--data",
        metavar="DIR",
        help="folder of data sets (default: environment STEELYARD_DATA)",
    )
    parser.add_argument(
        "--published",
        metavar="DIR",
        help="folder of published tables (default: 'published' beside the data sets)",
    )
    parser.add_argument(
        "--jobs", type=int, default=2, metavar="N", help="processes (default: 2)"
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        help="keep results, report and pictures in a folder, from which an interrupted "
        "run goes on",
    )
    parser.add_argument("--markdown", metavar="FILE", help="write the report to a file")
    add_force(parser)
    add_json(parser)


def _run(arguments: argparse.Namespace) -> None:
    from steelyard.experiments.papers.reproduce import reproduce

    check_output(arguments.markdown, arguments.force)
    found = reproduce(
        arguments.paper,
        arguments.data,
        arguments.published,
        quick=arguments.quick,
        out=arguments.out,
        n_jobs=arguments.jobs,
    )
    text = found.to_markdown(level=1)
    if arguments.markdown is not None:
        with writing(arguments.markdown, arguments.force) as path:
            path.write_text(text, encoding="utf-8")
        note(f"written: {arguments.markdown}")
    if arguments.json:
        print_json(found.as_dict())
    else:
        print(text)
