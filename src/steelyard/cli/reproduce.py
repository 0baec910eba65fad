"""``steelyard reproduce``: the tables of a paper, measured again."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from steelyard.cli import options, output

PAPERS = ("rnb", "cwnb", "exponential", "spss")
"""The documents whose tables can be measured: a TOML file each."""

ABOUT = "recompute the tables of a paper, and compare them with the published ones"
EXAMPLES = """
steelyard reproduce rnb --quick --data datasets
steelyard reproduce exponential --out results --without "Figure 7"
steelyard reproduce spss --markdown spss.md
steelyard reproduce rnb --out results --write docs/reproduction.md
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add("paper", choices=PAPERS, help="whose tables")
    add("--quick", action="store_true", help="a few small data sets")
    options.add_runs(parser)
    about = "repetitions of cross-validation where a paper has 10"
    add("--repeats", type=int, metavar="N", help=about)
    about = "leave out sections whose title begins with this, such as 'Figure 7'"
    add("--without", action="append", default=[], metavar="TITLE", help=about)
    about = "keep results, report and pictures in a folder, from which an interrupted"
    add("--out", metavar="DIR", help=f"{about} run resumes")
    add("--markdown", metavar="FILE", help="write the report to a file")
    about = "replace the paper's section of a Markdown page, between the lines"
    marks = "'<!-- begin PAPER -->' and '<!-- end PAPER -->'"
    add("--write", metavar="FILE", help=f"{about} {marks}")
    add("--silent", action="store_true", help="no progress on standard error")
    options.add_shared(parser, "force", "json")


def run(arguments: argparse.Namespace) -> None:
    """Print the report of a paper, and write it if asked."""
    reproduce = _import_reproduce()
    output.check_output(arguments.markdown, arguments.force)
    output.check_output(arguments.write, force=True)
    report = reproduce(
        arguments.paper,
        arguments.data,
        n_jobs=arguments.jobs,
        progress=not arguments.silent,
        **options.chosen(arguments, "quick", "out", "repeats", "without"),
    )
    text = report.to_markdown(level=1)
    if arguments.markdown is not None:
        output.write_text(arguments.markdown, text, arguments.force)
    if arguments.write is not None:
        report.write_section(Path(arguments.write))
        output.note(f"written: {arguments.write}")
    output.present(arguments, report.as_dict, lambda: print(text))


def _import_reproduce() -> Callable[..., Any]:
    """Return the function behind the command.

    Its package is beside ``src`` in a checkout; a wheel has a copy in ``lab/papers``.
    """
    here = Path(__file__)
    root = here.parents[3]
    if not (root / "reproduction" / "documents.py").is_file():
        root = here.parents[1] / "lab" / "papers"
    if str(root) not in sys.path:
        # First, so that a folder of this name elsewhere is not taken for it. Processes
        # of a comparison have the same path.
        sys.path.insert(0, str(root))
    from reproduction.documents import reproduce

    return reproduce
