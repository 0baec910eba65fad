"""``steelyard help``: all options of a command, and how files are read."""

from __future__ import annotations

import argparse

from steelyard.cli import options

ABOUT = "list all options of a command, or explain how files are read"
EXAMPLES = """
steelyard help files
steelyard help fit
"""

_FILES = """\
Which files can be read, and how.

CSV and other text, JSON, Parquet, Arrow, ARFF, Excel (.xlsx, .xls, .ods), SPSS (.sav)
and Stata (.dta); text also compressed: .gz, .bz2, .xz, .zst, or .zip of one file. A
hyphen is standard input. Several files, a folder or a quoted pattern such as
"trips/*.parquet" are one table, which is read in chunks.

Encoding, separator, decimal mark, marks of thousands, lines above and below the table
and words for missing cells are detected, and what is unusual is reported. A model keeps
how its training file was read, so the options below are rarely needed again.
"""
_FILE_EXAMPLES = """\
examples:
  steelyard fit german.csv --decimal , --thousands . --target Kredit
  steelyard fit survey.xlsx --sheet Answers --skip 1 --target happy
  steelyard fit patients.csv --missing-values "unknown,age=-999" --target ill
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    about = "a command, or files; without it the list of commands"
    parser.add_argument("topic", nargs="?", metavar="TOPIC", help=about)


def run(arguments: argparse.Namespace) -> None:
    """Print the help of a topic."""
    from steelyard._common.text import did_you_mean
    from steelyard.cli.run import build_parser

    parser, topic = build_parser(), arguments.topic
    commands = parser.commands
    if topic == "files":
        parser = options.Parser(
            prog="steelyard COMMAND FILE",
            description=_FILES,
            epilog=_FILE_EXAMPLES,
            add_help=False,
        )
        options.add_input(parser)
    elif topic is not None:
        if topic not in commands:
            hint = did_you_mean(topic, ["files", *commands])
            raise ValueError(f"There is no help on {topic!r}.{hint}")
        parser = commands[topic]
    parser.is_whole = True
    print(parser.format_help().rstrip("\n"))
