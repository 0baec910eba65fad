"""A comparison as text for terminals, Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from steelyard._common.text import markdown_table
from steelyard.exceptions import ParameterError
from steelyard.experiments.report.html import results_to_html
from steelyard.experiments.report.summary import Summary, check_metric, leaks, summaries
from steelyard.experiments.report.tables import (
    Cell,
    Table,
    control_table,
    dataset_table,
    failure_table,
    friedman_sentence,
    leak_table,
    method_table,
    wilcoxon_table,
    win_tie_loss_table,
)
from steelyard.experiments.results import Results

__all__ = [
    "print_results",
    "results_to_csv",
    "results_to_html",
    "results_to_latex",
    "results_to_markdown",
]

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"$<$",
    ">": r"$>$",
    "±": r"$\pm$",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


def results_to_markdown(
    results: Results,
    metric: str = "accuracy",
    *,
    control: str | None = None,
    alpha: float = 0.05,
    zeros: str = "split",
) -> str:
    """Write a comparison as Markdown.

    Parameters
    ----------
    results : Results
        What a comparison found.
    metric : str, default="accuracy"
        The measure that is shown by data set, ranked and tested.
    control : str, default=None
        The method that others are tested against; that of best rank if None.
    alpha : float, default=0.05
        Level of all tests.
    zeros : {"split", "drop"}, default="split"
        How Wilcoxon's test treats differences of zero.

    Returns
    -------
    str
        Averages, figures by data set, Friedman's test, wins/ties/losses, Wilcoxon's
        tests, and, where there are any, the worth of the leak and failed fits.

    Examples
    --------
    >>> rows = [
    ...     {"dataset": "iris", "method": name, "protocol": "honest", "repeat": 0,
    ...      "fold": fold, "status": "ok", "accuracy": accuracy}
    ...     for name, scores in {"NB": (0.9, 1.0), "RNB": (1.0, 1.0)}.items()
    ...     for fold, accuracy in enumerate(scores)
    ... ]
    >>> print(results_to_markdown(Results(rows)).split("##")[2])
    accuracy (%), larger is better; protocol honest
    <BLANKLINE>
    | data set | NB | RNB |
    | --- | ---: | ---: |
    | iris | 95.00 | **100.00** |
    | average | 95.00 | **100.00** |
    | average rank | 2.00 | **1.00** |
    | w/t/l against RNB | 0/1/0 |  |
    <BLANKLINE>
    honest: averages and ranks are over 1 data set.
    <BLANKLINE>
    """
    parts = [
        f"## {part.title}\n\n{table_to_markdown(part)}"
        if isinstance(part, Table)
        else part
        for part in _parts(results, metric, control, alpha, zeros)
    ]
    return "\n\n".join(parts) + "\n"


def results_to_latex(
    results: Results,
    metric: str = "accuracy",
    *,
    control: str | None = None,
    alpha: float = 0.05,
    zeros: str = "split",
) -> str:
    """Write a comparison as LaTeX tables, for the package ``booktabs``.

    Parameters
    ----------
    results, metric, control, alpha, zeros
        See `results_to_markdown`.

    Returns
    -------
    str
        One ``table`` after the other; notes are part of captions.
    """
    parts = [
        _latex(part) if isinstance(part, Table) else f"{_escape_latex(part)}\n"
        for part in _parts(results, metric, control, alpha, zeros)
    ]
    return "\n".join(parts)


def results_to_csv(results: Results, path: str | os.PathLike[str] | None = None) -> str:
    """Write averages over folds as CSV, a line per data set, method and protocol.

    ``Results.to_csv`` writes the fits themselves.

    Parameters
    ----------
    results : Results
        What a comparison found.
    path : str or path, default=None
        A file to write as well.

    Returns
    -------
    str
        The text: names, numbers of folds and failures, and mean and standard deviation
        of each measure that has a value.
    """
    group = summaries(results)
    names = list(dict.fromkeys(summary.measure.name for summary in group))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns = [f"{name}{suffix}" for name in names for suffix in ("", "_std")]
    writer.writerow(["dataset", "method", "protocol", "folds", "failed", *columns])
    for protocol in results.protocols:
        ours = {s.measure.name: s for s in group if s.protocol == protocol}
        if ours:
            writer.writerows(_csv_lines(ours, names))
    if path is not None:
        Path(path).write_text(text.getvalue(), encoding="utf-8")
    return text.getvalue()


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
    results : Results
        What a comparison found.
    metric : str, default="accuracy"
        The measure that is ranked and tested.
    control : str, default=None
        The method that others are tested against; that of best rank if None.
    alpha : float, default=0.05
        Level of all tests.
    file : text file, default=None
        Where to write; standard output if None.
    width : int, default=None
        Characters of a line; those of the terminal if None. Tables with a column for
        each method are left out where they are wider.
    """
    stream = sys.stdout if file is None else file
    width = width or shutil.get_terminal_size((100, 24)).columns
    left_out = 0
    for part in _parts(results, metric, control, alpha, "split", pairs=False):
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


def _parts(
    results: Results,
    metric: str,
    control: str | None,
    alpha: float,
    zeros: str,
    pairs: bool = True,
) -> Iterator[Table | str]:
    """Yield tables and sentences in the order of a report."""
    if not results.rows:
        yield "There are no results."
        return
    check_metric(metric)
    if len(results.failures) == len(results.rows):
        yield "No fit succeeded."
        yield failure_table(results)
        return
    group = summaries(results, alpha=alpha, zeros=zeros)
    main = [summary for summary in group if summary.measure.name == metric]
    if not main:
        raise ParameterError(
            f"There is no value of {metric!r}. Measures with values: "
            f"{', '.join(dict.fromkeys(s.measure.name for s in group)) or 'none'}."
        )
    yield method_table(group, metric, control)
    for summary in main:
        yield dataset_table(summary, control)
        if summary.testable:
            yield friedman_sentence(summary)
        if summary.testable and control is not None:
            yield control_table(summary, control)
        if pairs and len(summary.methods) > 1:
            yield win_tie_loss_table(summary)
        if pairs and summary.testable:
            yield wilcoxon_table(summary)
    yield from map(leak_table, leaks(group, metric))
    if results.failures:
        yield failure_table(results)


def table_to_markdown(table: Table) -> str:
    """Write one table as Markdown, with its notes."""

    def line(cells: Sequence[Cell]) -> list[str]:
        texts = [cell.text.replace("|", "\\|") for cell in cells]
        return [
            f"**{text}**" if cell.best and text else text
            for cell, text in zip(cells, texts, strict=True)
        ]

    header = [name.replace("|", "\\|") for name in table.header]
    body = markdown_table(header, [line(row) for row in [*table.rows, *table.foot]])
    return "\n\n".join([body, *table.notes])


def _latex(table: Table) -> str:
    def line(cells: Sequence[Cell]) -> str:
        texts = [
            rf"\textbf{{{_escape_latex(cell.text)}}}"
            if cell.best and cell.text
            else _escape_latex(cell.text)
            for cell in cells
        ]
        return f"{' & '.join(texts)} \\\\"

    columns = "l" * table.n_texts + "r" * (len(table.header) - table.n_texts)
    caption = _escape_latex(" ".join([f"{table.title}.", *table.notes]))
    foot = [r"\midrule", *map(line, table.foot)] if table.foot else []
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{caption}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        line([Cell(name) for name in table.header]),
        r"\midrule",
        *map(line, table.rows),
        *foot,
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _escape_latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)


def _csv_lines(ours: dict[str, Summary], names: Sequence[str]) -> Iterator[list[str]]:
    first = next(iter(ours.values()))
    for i, dataset in enumerate(first.datasets):
        for j, method in enumerate(first.methods):
            folds = max(int(summary.counts[i, j]) for summary in ours.values())
            failed = int(first.failed[i, j])
            if not folds and not failed:
                continue
            line = [dataset, method, first.protocol, str(folds), str(failed)]
            for name in names:
                for table in ("means", "spreads"):
                    values = getattr(ours.get(name), table, None)
                    value = float("nan") if values is None else float(values[i, j])
                    line.append("" if value != value else repr(value))
            yield line


def _columns(table: Table) -> list[int]:
    lines = [
        table.header,
        *([cell.text for cell in row] for row in [*table.rows, *table.foot]),
    ]
    return [max(map(len, column)) for column in zip(*lines, strict=True)]


def _width(table: Table) -> int:
    return sum(_columns(table)) + 3 * len(table.header)


def _narrowed(table: Table, width: int) -> Table:
    """Leave out measures at the right of the table of methods until it fits."""
    essential = table.header.index("w/t/l") + 2 if "w/t/l" in table.header else 99
    while _width(table) > width and len(table.header) > essential + 1:
        drop = len(table.header) - 1 - (table.header[-1] == "failed")
        table = replace(
            table,
            header=[*table.header[:drop], *table.header[drop + 1 :]],
            rows=[[*row[:drop], *row[drop + 1 :]] for row in table.rows],
        )
    return table


def _write_table(table: Table, stream: IO[str], width: int) -> None:
    if find_spec("rich") is not None:
        _write_rich(table, stream, width)
    else:
        _write_plain(table, stream)
    stream.write("".join(f"{note}\n" for note in table.notes) + "\n")


def _write_rich(table: Table, stream: IO[str], width: int) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    drawn = RichTable(
        title=Text(table.title),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    for i, name in enumerate(table.header):
        drawn.add_column(
            Text(name),
            justify="left" if i < table.n_texts else "right",
            overflow="fold",
        )
    for row in table.rows:
        drawn.add_row(*(Text(c.text, "bold green" if c.best else "") for c in row))
    if table.foot:
        drawn.add_section()
    for row in table.foot:
        drawn.add_row(*(Text(c.text, "bold" if c.best else "dim") for c in row))
    Console(file=stream, width=width).print(drawn)


def _write_plain(table: Table, stream: IO[str]) -> None:
    widths = _columns(table)

    def line(texts: Sequence[str]) -> str:
        cells = [
            text.ljust(size) if i < table.n_texts else text.rjust(size)
            for i, (text, size) in enumerate(zip(texts, widths, strict=True))
        ]
        return "  ".join(cells).rstrip() + "\n"

    stream.write(f"{table.title}\n{line(table.header)}")
    stream.write("  ".join("-" * size for size in widths) + "\n")
    for row in [*table.rows, *table.foot]:
        stream.write(line([cell.text for cell in row]))
