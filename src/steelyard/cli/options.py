"""The parser of arguments, and options that several commands share."""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

from steelyard._common.allowed import SHAPES
from steelyard.io.dialect import MISSING_VALUES
from steelyard.io.paths import FORMATS

DATA = (
    "CSV, TSV, text, JSON, Parquet, Arrow, ARFF, .xlsx, .sav or .dta file, text also "
    "compressed (.gz, .bz2, .xz, .zst, .zip), or - for standard input"
)
SEVERAL = f"{DATA}; several, a folder or a quoted pattern are read in chunks"
MODEL = "a model file, written by fit"
READING = "format separator decimal thousands encoding missing_values".split()
READING += "skip comment no_header sheet".split()
FOLDS = {"folds": 10, "seed": 1}
"""How rows are split by default."""

_SHARED: dict[str, dict[str, Any]] = {
    "target": {
        "metavar": "NAME",
        "help": "column to predict (default: class, target or label; in ARFF files, "
        "failing that, the last)",
    },
    "force": {"action": "store_true", "help": "replace output files that exist"},
    "json": {"action": "store_true", "help": "print one JSON document instead of text"},
    "split-interactions": {
        "action": "store_true",
        "help": "split the evidence of an interaction evenly between its columns",
    },
}
"""Options of several commands."""

RARE = {f"--{name.replace('_', '-')}" for name in READING}
RARE |= {
    *("--no-check", "--yes", "--device", "--memory", "--work-folder"),
    *("--numeric", "--weights", "--keep-identifiers", "--order", "--set"),
    *("--convex", "--concave", "--peak", "--valley"),
    *("--chunk-rows", "--safe-csv", "--split-interactions", "--retry-errors"),
    *("--missing-text", "--inputs", "--max-cells"),
}
"""Options that ``steelyard help COMMAND`` lists and ``COMMAND --help`` does not."""


class Databases:
    """Names of the databases that SQL is written for, loaded when asked for."""

    def __iter__(self) -> Iterator[str]:
        from steelyard.export.sql_dialect import DIALECTS

        return iter(DIALECTS)


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, and whose examples keep their lines."""

    as_json = False
    """Whether errors are printed as JSON."""

    given: Sequence[str] = ()
    """The arguments of the process."""

    is_whole = False
    """Whether the help has rare options too."""

    commands: Mapping[str, Parser] = {}
    """The parsers of commands, by name."""

    def __init__(self, **options: Any) -> None:
        kept_lines = argparse.RawDescriptionHelpFormatter
        super().__init__(formatter_class=kept_lines, allow_abbrev=False, **options)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse arguments; an unknown one is an error of the command it follows."""
        Parser.given = sys.argv[1:] if args is None else list(args)
        arguments, unknown = self.parse_known_args(args, namespace)
        if unknown:
            of: Parser = getattr(arguments, "parser", self)
            of.error(f"unrecognized arguments: {' '.join(unknown)}")
        return arguments

    def format_help(self) -> str:
        """Return the help; rare options are left to ``steelyard help``."""
        rare = [a for a in self._actions if {*a.option_strings} & RARE]
        if not rare or self.is_whole:
            return super().format_help()
        texts, groups, epilog = [a.help for a in rare], self._action_groups, self.epilog
        name = self.prog.rpartition(" ")[2]
        more = f"more options: steelyard help {name}"
        if "--separator" in self._option_string_actions:
            more += "\nhow files are read: steelyard help files"
        try:
            for action in rare:
                action.help = argparse.SUPPRESS
            self._action_groups = [
                g for g in groups if not {*g._group_actions} <= {*rare}
            ]
            self.epilog = f"{more}\n\n{epilog}"
            return super().format_help()
        finally:
            self._action_groups, self.epilog = groups, epilog
            for action, text in zip(rare, texts, strict=True):
                action.help = text

    def error(self, message: str) -> NoReturn:
        """Exit with a line that names the problem and suggests a correction."""
        line = " ".join(message.split()).rstrip(".")
        advice = f"{line}.{self._meant(line)} Try '{self.prog} --help'."
        document = json.dumps({"error": advice}, ensure_ascii=False)
        text = document if self.as_json else f"{self.prog}: {advice}"
        self.exit(2, f"{text}\n")

    def _meant(self, line: str) -> str:
        """Suggest an option or a choice of similar spelling."""
        from steelyard._common.text import did_you_mean

        if match := re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)$", line):
            return did_you_mean(match[1], re.findall(r"[\w.-]+", match[2]))
        options = [name for action in self._actions for name in action.option_strings]
        file = re.search(r"unrecognized arguments: ([^-\s]\S*)$", line)
        if file and "--data" in options:
            return f" Did you mean '--data {file[1]}'?"
        words = re.findall(r"unrecognized arguments: (--?[\w-]+)", line)
        if "are required" in line:
            # A misspelt option is reported as a missing one.
            given = (word.partition("=")[0] for word in self.given)
            words = [w for w in given if w.startswith("--") and w not in options]
        return did_you_mean(words[0], options) if words else ""


def add_input(parser: argparse.ArgumentParser) -> None:
    """Add the options of reading files."""
    group = parser.add_argument_group("reading files")
    about = "kind of the file (default: by its extension; csv for standard input)"
    group.add_argument("--format", choices=FORMATS, help=about)
    for option, metavar, text in (
        ("--separator", "CHAR", "what separates the cells: , ; | or tab"),
        ("--decimal", "CHAR", "the decimal mark of numbers, a point or a comma"),
        ("--thousands", "CHAR", "the mark of thousands in numbers, or none"),
        ("--encoding", "NAME", "encoding of text files, such as utf-8 or cp1252"),
    ):
        about = f"{text} (default: detected)"
        group.add_argument(option, metavar=metavar, help=about)
    about = (
        "cells that mean a missing value in text files, besides empty ones; '' for "
        "no others; NAME=CELL for one column of any file, as in age=-999 (default: "
        f"{', '.join(MISSING_VALUES)})"
    )
    add_names(group, "--missing-values", about, "TEXT,...", default=None)
    about = "lines, or rows of a sheet, above the table (default: detected)"
    group.add_argument("--skip", type=int, metavar="N", help=about)
    about = "leave out lines that begin with this, such as '#'"
    group.add_argument("--comment", metavar="CHAR", help=about)
    about = "the file has no header line: columns are called x1, x2 and so on"
    group.add_argument("--no-header", action="store_true", help=about)
    about = "the sheet of a spreadsheet (default: the first)"
    group.add_argument("--sheet", metavar="NAME", help=about)


def add_shared(parser: argparse.ArgumentParser, *names: str) -> None:
    """Add some options that other commands have too."""
    for name in names:
        parser.add_argument(f"--{name}", **_SHARED[name])


def add_page(parser: argparse.ArgumentParser) -> None:
    """Add the options of the page of a model."""
    page = parser.add_argument_group("page")
    page.add_argument("--title", metavar="TEXT", help="heading of the page")
    about = "TOML file: author, use, quality, labels, units, groups, order of columns"
    page.add_argument("--card", metavar="FILE", help=about)
    about = "language of the page: en, de, or a TOML file of its words"
    page.add_argument("--language", metavar="NAME", help=about)
    about = "include this many rows of the file in the page, for readers to try"
    page.add_argument("--page-rows", type=int, default=0, metavar="N", help=about)
    about = "let the author change curves in the page, and save the edits"
    page.add_argument("--edit", action="store_true", help=about)


def add_training(parser: argparse.ArgumentParser) -> None:
    """Add the options of training: target, columns, method, reading."""
    add_shared(parser, "target")
    about = "class of interest, for page, card and thresholds (default: the second of "
    about += "two)"
    parser.add_argument("--positive", metavar="CLASS", help=about)
    about = "bin a numeric target into N classes of about equal size"
    parser.add_argument("--bins", type=int, metavar="N", help=about)
    about = "continue even if the target has more than 200 classes"
    parser.add_argument("--yes", action="store_true", help=about)
    group = parser.add_argument_group("columns")
    for option, text in (
        ("--columns", "columns to learn from (default: all others)"),
        ("--drop", "columns to drop"),
        ("--categorical", "columns to treat as categories, even if they are numbers"),
        ("--numeric", "columns to treat as numbers; text in them is an error"),
    ):
        add_names(group, option, text)
    about = "values of a column in their order, for shapes of categories; may be "
    about += "repeated, as in --order contract=monthly,yearly"
    order: Any = {"action": "append", "default": [], "metavar": "NAME=A,B,..."}
    group.add_argument("--order", **order, help=about)
    group.add_argument("--weights", metavar="NAME", help="column of row weights")
    about = "keep columns that look like identifiers"
    group.add_argument("--keep-identifiers", action="store_true", help=about)
    group = parser.add_argument_group("method")
    about = "see 'steelyard methods' (default: SHNB)"
    group.add_argument("--method", metavar="ACRONYM", help=about)
    about = "a setting of the method, as in --set smoothing=laplace; may be repeated"
    how: Any = {"action": "append", "default": [], "dest": "settings"}
    group.add_argument("--set", metavar="NAME=VALUE", **how, help=about)
    about = "shapes of columns, as NAME, or NAME:CLASS for one of several classes"
    group = parser.add_argument_group("shapes", about)
    for kind, what in SHAPES.items():
        add_names(group, f"--{kind}", f"columns along which log-odds {what}")
    add_input(parser)


def add_folds(parser: argparse.ArgumentParser) -> None:
    """Add the options of folds, None if not given."""
    for name, about in (("folds", "number of folds"), ("seed", "seed of the folds")):
        about = f"{about} (default: {FOLDS[name]})"
        parser.add_argument(f"--{name}", type=int, help=about)


def add_runs(parser: argparse.ArgumentParser) -> None:
    """Add the options of the folder of data sets and the number of processes."""
    about = "folder of data sets (default: environment STEELYARD_DATA)"
    parser.add_argument("--data", metavar="DIR", help=about)
    about = "processes (default: 2)"
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help=about)


def add_database(parser: argparse.ArgumentParser) -> Any:
    """Add the options of the database and its table; return their group."""
    group = parser.add_argument_group("SQL")
    about = "the database: %(choices)s (default: duckdb)"
    choices: Any = Databases()
    group.add_argument("--dialect", choices=choices, metavar="NAME", help=about)
    about = "the table of the rows (default: data)"
    group.add_argument("--table", metavar="NAME", help=about)
    return group


def add_sql(parser: argparse.ArgumentParser) -> Any:
    """Add the options of SQL; return their group."""
    group = add_database(parser)
    about = "columns of the table to return, such as its key"
    add_names(group, "--keep", about)
    about = "also return the contribution of each column"
    group.add_argument("--contributions", action="store_true", help=about)
    return group


def add_names(
    parser: Any,
    option: str,
    about: str,
    metavar: str = "NAME,...",
    default: Sequence[str] | None = (),
) -> None:
    """Add an option that takes a list of names and may be repeated."""
    start = None if default is None else list(default)
    how: Any = {"type": names_of, "action": "extend", "default": start}
    parser.add_argument(option, metavar=metavar, **how, help=about)


def names_of(text: str) -> list[str]:
    """Split a list of names, of which some may be quoted.

    >>> names_of('a, "b, in metres"')
    ['a', 'b, in metres']
    """
    rows = csv.reader([text], skipinitialspace=True)
    return [name.strip() for row in rows for name in row if name.strip()]


def reading_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the values of the options of `add_input`."""
    return chosen(arguments, *READING)


def chosen(arguments: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Return the values of some options, by name."""
    return {name: getattr(arguments, name) for name in names}


def folds_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return how rows are split, as `add_folds` has asked."""
    return FOLDS | given(arguments, " ".join(FOLDS))


def given(arguments: argparse.Namespace, names: str) -> dict[str, Any]:
    """Return the values of those options, named in one text, that were given."""
    values = chosen(arguments, *names.split())
    # 0 was given, though it equals False.
    return {n: v for n, v in values.items() if v is not False and v not in (None, [])}
