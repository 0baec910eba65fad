"""``steelyard reproduce``: published tables, measured again."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from steelyard.cli.options import Commands, add_command, add_force, add_json
from steelyard.cli.output import check_output, note, print_json, writing
from steelyard.experiments.papers import PAPERS

__all__ = ["add_parser"]

_EXAMPLES = """
steelyard reproduce rnb --quick --data datasets
steelyard reproduce exponential --out results
steelyard reproduce spss --markdown spss.md
steelyard reproduce rnb --out results --write docs/reproduction.md
"""


_OPTIONS: dict[str, dict[str, Any]] = {
    "--quick": {"action": "store_true", "help": "a few small data sets"},
    "--data": {
        "metavar": "DIR",
        "help": "folder of data sets (default: environment STEELYARD_DATA)",
    },
    "--published": {
        "metavar": "DIR",
        "help": "folder of published tables (default: 'published' beside the data "
        "sets)",
    },
    "--jobs": {
        "type": int,
        "default": 2,
        "metavar": "N",
        "help": "processes (default: 2)",
    },
    "--repeats": {
        "type": int,
        "metavar": "N",
        "help": "how often cross-validation is repeated where a paper does it 10 times",
    },
    "--out": {
        "metavar": "DIR",
        "help": "keep results, report and pictures in a folder, from which an "
        "interrupted run resumes",
    },
    "--markdown": {"metavar": "FILE", "help": "write the report to a file"},
    "--write": {
        "metavar": "FILE",
        "help": "replace the paper's section of a Markdown page, between the lines "
        "'<!-- begin PAPER -->' and '<!-- end PAPER -->'",
    },
    "--silent": {"action": "store_true", "help": "no progress on standard error"},
}


def add_parser(commands: Commands) -> None:
    """Add the command."""
    about = "measure the tables of a paper beside what it published"
    parser = add_command(commands, "reproduce", about, _EXAMPLES, _run)
    parser.add_argument("paper", choices=PAPERS, help="whose tables")
    for option, settings in _OPTIONS.items():
        parser.add_argument(option, **settings)
    add_force(parser)
    add_json(parser)


def _run(arguments: argparse.Namespace) -> None:
    from steelyard.experiments.papers.reproduce import reproduce

    check_output(arguments.markdown, arguments.force)
    report = reproduce(
        arguments.paper,
        arguments.data,
        arguments.published,
        quick=arguments.quick,
        out=arguments.out,
        n_jobs=arguments.jobs,
        progress=not arguments.silent,
        repeats=arguments.repeats,
    )
    text = report.to_markdown(level=1)
    if arguments.markdown is not None:
        with writing(arguments.markdown, arguments.force) as path:
            path.write_text(text, encoding="utf-8")
        note(f"written: {arguments.markdown}")
    if arguments.write is not None:
        report.write_section(Path(arguments.write))
        note(f"written: {arguments.write}")
    if arguments.json:
        print_json(report.as_dict())
    else:
        print(text)
