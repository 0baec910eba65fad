"""The command line: parses, calls a public function, prints what it returns."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from rich.table import Table

    from steelyard.experiments.demo import Evidence, Score

__all__ = ["main"]

# Width of the bars of evidence: with names and values they fill 80 columns.
_BARS = 24
_TEXT = ("data", "method")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Parameters
    ----------
    argv : sequence of str, default=None
        Arguments; those of the process if None.

    Returns
    -------
    int
        0 on success, 2 on a usage or input error, 130 after Ctrl-C.
    """
    arguments = _parser().parse_args(argv)
    try:
        arguments.run(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader, such as `head`, has seen enough. Python would complain again when
        # it closes the stream at exit.
        sys.stdout = open(os.devnull, "w")
        return 0
    except ModuleNotFoundError as error:
        print(
            f"steelyard: this command needs the package {error.name!r}. Install the "
            "command line's extra: pip install 'steelyard[cli]'",
            file=sys.stderr,
        )
        return 2
    except (ValueError, OSError) as error:
        print(f"steelyard: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    return 0


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Say what is wrong in one line."""
        self.exit(2, f"{self.prog}: {message}. Try '{self.prog} --help'.\n")


def _parser() -> argparse.ArgumentParser:
    from steelyard import __version__

    parser = _Parser(
        prog="steelyard",
        description="Weighted naive Bayes classification for ordinary tables.",
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(metavar="command", required=True)
    demo = commands.add_parser(
        "demo", help="fit real data, show results, explain one prediction"
    )
    demo.set_defaults(run=_demo)
    listing = commands.add_parser("methods", help="list every method")
    listing.set_defaults(run=_methods)
    return parser


# Each command imports what it needs when it runs: --help stays quick.


def _methods(arguments: argparse.Namespace) -> None:
    import steelyard

    print(steelyard.methods())


def _demo(arguments: argparse.Namespace) -> None:
    from rich.console import Console

    from steelyard.experiments.demo import explain_one, run_demo

    console = Console(highlight=False)
    with console.status("Cross-validating naive Bayes on four real data sets …"):
        scores = run_demo()
        evidence = explain_one()

    console.print(_score_table(scores))
    seconds = sum(score.seconds for score in scores)
    console.print(f"{5 * len(scores)} fits and predictions in {seconds:.2f} s.\n")

    right = "right" if evidence.predicted == evidence.truth else "wrong"
    console.print(
        f"One prediction, opened ({evidence.title}): "
        f"[bold]{evidence.predicted}[/bold],\n"
        f"with probability {evidence.probability:.4f}, which is {right}. "
        f"Evidence for [green]{evidence.predicted}[/green] (+)\n"
        f"and for [red]{evidence.against}[/red] (-) in log-odds; "
        "the lines add up to the prediction.\n"
    )
    console.print(_evidence_table(evidence))


def _score_table(scores: list[Score]) -> Table:
    """Lay out results as one line per data set and method, best ones in bold."""
    from rich import box
    from rich.table import Table

    table = Table(
        title="Accuracy and log-loss, five-fold cross-validation", box=box.SIMPLE_HEAD
    )
    for column in ("data", "rows", "columns", "classes", "method"):
        table.add_column(column, justify="left" if column in _TEXT else "right")
    table.add_column("accuracy", justify="right")
    table.add_column("log-loss", justify="right")
    for _, group in groupby(scores, key=lambda score: score.data):
        entries = list(group)
        highest = max(entry.accuracy for entry in entries)
        lowest = min(entry.log_loss for entry in entries)
        for k, entry in enumerate(entries):
            shape = [entry.data, *map(str, (entry.rows, entry.columns, entry.classes))]
            table.add_row(
                *(shape if k == 0 else [""] * 4),
                entry.method,
                _bold(f"{100 * entry.accuracy:.1f} %", entry.accuracy == highest),
                _bold(f"{entry.log_loss:.3f}", entry.log_loss == lowest),
                end_section=k == len(entries) - 1,
            )
    return table


def _evidence_table(evidence: Evidence) -> Table:
    """Draw evidence as bars: to the left against, to the right in favour."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("attribute")
    table.add_column("value")
    table.add_column("evidence", justify="right")
    table.add_column("")
    lines = [("prior", "", evidence.prior), *evidence.items]
    amounts = [amount for *_, amount in lines]
    scale = _BARS / ((max(*amounts, 0.0) - min(*amounts, 0.0)) or 1.0)
    left = round(-scale * min(*amounts, 0.0))
    for name, value, amount in lines:
        bar = "█" * round(scale * abs(amount))
        drawn = (
            f"{'':{left}}[green]{bar}[/]" if amount >= 0 else f"[red]{bar:>{left}}[/]"
        )
        table.add_row(name, value, f"{amount:+.2f}", drawn)
    table.add_row(_bold("sum"), "", _bold(f"{evidence.total:+.2f}"), "")
    return table


def _bold(text: str, condition: bool = True) -> str:
    return f"[bold]{text}[/bold]" if condition else text


if __name__ == "__main__":
    sys.exit(main())
