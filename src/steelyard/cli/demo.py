"""``steelyard demo``: results on real data, and one prediction opened."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.cli import options, output

if TYPE_CHECKING:
    from rich.table import Table

    from steelyard.experiments.demo import Score

ABOUT = "compare methods on real data, explain one prediction, write a page"
EXAMPLES = "steelyard demo\nsteelyard demo --page wine.html\nsteelyard demo --json"

_TEXT = ("data", "method")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    about = "where to write the page (default: in a new temporary folder)"
    parser.add_argument("--page", metavar="FILE", help=about)
    options.add_json(parser)


def run(arguments: argparse.Namespace) -> None:
    """Show results on real data, and one prediction opened."""
    import tempfile

    from steelyard.experiments.demo import explain_one, run_demo

    output.check_output(arguments.page, force=True)
    # A folder of one's own: in the one for all, others could place a link.
    page = arguments.page
    if page is None:
        page = str(Path(tempfile.mkdtemp(prefix="steelyard-")) / "steelyard-demo.html")
    with output.working("Cross-validating …") as status:
        scores = run_demo(progress=lambda what: status.update(f"{what} …"))
        status.update("Explaining one prediction …")
        evidence = explain_one(page=page)
    if arguments.json:
        whole = {**asdict(evidence), "total": evidence.total}
        document = {"scores": list(map(asdict, scores)), "evidence": whole}
        output.print_json({**document, "page": page})
        return
    console = output.screen()
    console.print(_score_table(scores))
    seconds = sum(score.seconds for score in scores)
    console.print(f"{5 * len(scores)} fits on the same folds in {seconds:.1f} s.\n")
    right = "right" if evidence.predicted == evidence.truth else "wrong"
    console.print(
        f"One prediction of the default, opened ({evidence.title}): "
        f"[bold]{evidence.predicted}[/bold],\n"
        f"with probability {evidence.probability:.4f}, which is {right}. "
        f"Evidence for [green]{evidence.predicted}[/green] (+)\n"
        f"and for [red]{evidence.against}[/red] (-) in log-odds; "
        "the lines add up to the prediction.\n"
    )
    sums = (evidence.prior, evidence.items, evidence.total)
    console.print(output.evidence_table(*sums, start=evidence.start))
    console.print(
        f"\nIts page, in which values can be set:\n[green]{page}[/green]",
        soft_wrap=True,
    )


def _score_table(scores: list[Score]) -> Table:
    """Lay out results as one line per data set and method, best ones in bold."""
    from rich import box
    from rich.table import Table

    title = "Accuracy and log-loss, five-fold cross-validation"
    table = Table(title=title, box=box.SIMPLE_HEAD)
    for name in "data rows columns method accuracy log-loss".split():
        table.add_column(name, justify="left" if name in _TEXT else "right")
    for _, group in groupby(scores, key=lambda score: score.data):
        entries = list(group)
        highest = max(entry.accuracy for entry in entries)
        lowest = min(entry.log_loss for entry in entries)
        for k, entry in enumerate(entries):
            shape = [entry.data, *map(str, (entry.rows, entry.columns))]
            table.add_row(
                *(shape if k == 0 else [""] * 3),
                entry.method,
                _bold(f"{100 * entry.accuracy:.1f} %", entry.accuracy == highest),
                _bold(f"{entry.log_loss:.3f}", entry.log_loss == lowest),
                end_section=k == len(entries) - 1,
            )
    return table


def _bold(text: str, condition: bool) -> str:
    return f"[bold]{text}[/bold]" if condition else text
