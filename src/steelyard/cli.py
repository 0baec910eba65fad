"""The command line: parses, calls a public function, prints what it returns."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

__all__ = ["main"]


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
        # Heavy imports wait until a command needs them: --help stays quick.
        import steelyard  # noqa: F401

        arguments.run(arguments)
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return 130
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


def _parser() -> argparse.ArgumentParser:
    from steelyard import __version__

    parser = argparse.ArgumentParser(
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


def _methods(arguments: argparse.Namespace) -> None:
    import steelyard

    print(steelyard.methods())


def _demo(arguments: argparse.Namespace) -> None:
    from rich.console import Console
    from rich.table import Table

    from steelyard.experiments.demo import DEMO_METHODS, explain_one, run_demo

    console = Console()
    with console.status("Cross-validating naive Bayes on four real data sets …"):
        scores = run_demo()
        evidence = explain_one()

    table = Table(title="Accuracy and log-loss, five-fold cross-validation")
    table.add_column("data")
    table.add_column("rows x columns")
    table.add_column("classes", justify="right")
    for name in DEMO_METHODS:
        table.add_column(name, justify="right")
    by_data: dict[str, list[Any]] = {}
    for score in scores:
        by_data.setdefault(score.data, []).append(score)
    for name, entries in by_data.items():
        first = entries[0]
        best = max(entry.accuracy for entry in entries)
        cells = [name, f"{first.rows} x {first.columns}", str(first.classes)]
        for entry in entries:
            accuracy = f"{100 * entry.accuracy:.1f} %"
            bold = f"[bold]{accuracy}[/bold]" if entry.accuracy == best else accuracy
            cells.append(f"{bold}  {entry.log_loss:.3f}")
        table.add_row(*cells)
    console.print(table)
    seconds = sum(score.seconds for score in scores)
    console.print(f"{len(scores) * 5} fits and predictions in {seconds:.2f} s.")

    right = "right" if evidence.predicted == evidence.truth else "wrong"
    console.print(
        f"\nOne prediction, opened ({evidence.title}): "
        f"[bold]{evidence.predicted}[/bold] with probability "
        f"{evidence.probability:.4f}, which is {right}."
    )
    console.print(
        f"Evidence for {evidence.predicted} (+) and for {evidence.against} (-), in "
        "log-odds; the rows add up to the prediction:\n"
    )
    bars = Table(box=None, pad_edge=False)
    for column, justify in (("", "left"), ("value", "left"), ("evidence", "right")):
        bars.add_column(column, justify=justify)  # type: ignore[arg-type]
    bars.add_column("")
    longest = max(abs(item[2]) for item in evidence.items) or 1.0
    for name, value, amount in [("prior", "", evidence.prior), *evidence.items]:
        colour = "green" if amount >= 0 else "red"
        width = round(24 * abs(amount) / longest)
        bars.add_row(name, value, f"{amount:+.2f}", f"[{colour}]{'█' * width}[/]")
    bars.add_row("[bold]sum[/bold]", "", f"[bold]{evidence.total:+.2f}[/bold]", "")
    console.print(bars)


if __name__ == "__main__":
    sys.exit(main())
