"""A comparison on the terminal, in colour where ``rich`` is installed."""

from __future__ import annotations

import shutil
import sys
from importlib.util import find_spec
from typing import IO, Any

from steelyard._common.text import text_table
from steelyard.experiments.report.tables import Table
from steelyard.experiments.report.text import report_parts
from steelyard.experiments.results import Results

__all__ = ["print_results"]


def print_results(
    results: Results,
    metric: str = "accuracy",
    *,
    control: str | None = None,
    alpha: float = 0.05,
    file: IO[str] | None = None,
    width: int | None = None,
) -> None:
    """Show a comparison in the terminal, in colour where ``rich`` is installed.

    Parameters
    ----------
    results, metric, control, alpha
        See `results_to_markdown`.
    file : text file, default=None
        Where to write; standard output if None.
    width : int, default=None
        Characters of a line; those of the terminal if None. Tables with a column for
        each method are left out where they are wider.
    """
    stream = sys.stdout if file is None else file
    width = width or shutil.get_terminal_size((100, 24)).columns
    left_out = 0
    for part in report_parts(results, metric, control, alpha, "split", pairs=False):
        if isinstance(part, str):
            stream.write(f"{part}\n\n")
        elif part.n_texts == 1 and _width(part) > width:
            left_out += 1
        else:
            _write_table(_narrowed(part, width), stream, width)
    if left_out:
        stream.write(
            f"Tables left out, being wider than {width} characters: {left_out}; widen "
            "the window, or write a page with results_to_html.\n"
        )


def _width(table: Table) -> int:
    lines = [table.header, *([cell.text for cell in line] for line in table.lines)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return sum(widths) + 3 * len(widths)


def _narrowed(table: Table, width: int) -> Table:
    """Leave out measures at the right of the table of methods until it fits."""
    essential = table.header.index("w/t/l") + 2 if "w/t/l" in table.header else 99
    while _width(table) > width and len(table.header) > essential + 1:
        table = table.without(len(table.header) - 1 - (table.header[-1] == "failed"))
    return table


def _write_table(table: Table, stream: IO[str], width: int) -> None:
    if find_spec("rich") is not None:
        _write_rich(table, stream, width)
    else:
        numeric = [i >= table.n_texts for i in range(len(table.header))]
        lines = [[cell.text for cell in line] for line in table.lines]
        text = text_table(table.header, lines, numeric, max_width=None)
        stream.write(f"{table.title}\n{text}\n")
    stream.write("".join(f"{note}\n" for note in table.notes) + "\n")


def _write_rich(table: Table, stream: IO[str], width: int) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    drawn = RichTable(title=Text(table.title), box=box.SIMPLE_HEAD, pad_edge=False)
    drawn.title_justify = "left"
    for i, name in enumerate(table.header):
        side: Any = "left" if i < table.n_texts else "right"
        drawn.add_column(Text(name), justify=side, overflow="fold")
    for rows, best, other in (
        (table.rows, "bold green", ""),
        (table.foot, "bold", "dim"),
    ):
        for row in rows:
            drawn.add_row(*(Text(c.text, best if c.best else other) for c in row))
        drawn.add_section()
    Console(file=stream, width=width).print(drawn)
