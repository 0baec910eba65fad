"""Writing a comparison as Markdown, LaTeX and CSV, and on the terminal."""

from __future__ import annotations

import csv
import io
import shutil
import sys
from collections.abc import Iterator, Sequence
from typing import IO

import numpy as np

from steelyard._common.text import markdown_table, markdown_text, text_table
from steelyard.exceptions import ParameterError
from steelyard.lab.report import layouts
from steelyard.lab.report.layouts import Cell, ReportTable
from steelyard.lab.report.summaries import (
    MeasureSummary,
    check_metric,
    friedman_sentence,
)
from steelyard.lab.report.summaries import summaries as summaries_of
from steelyard.lab.results import Results

__all__ = ["print_results", "results_to_csv", "results_to_latex", "results_to_markdown"]


_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"$<$",
        ">": r"$>$",
        "±": r"$\pm$",
        **{character: f"\\{character}" for character in "&%$#_{}"},
    }
)


def results_to_markdown(
    results: Results,
    metric: str = "accuracy",
    *,
    control: str | None = None,
) -> str:
    """Write a comparison as Markdown.

    Parameters
    ----------
    results : Results
        Results of a comparison.
    metric : str, default="accuracy"
        The measure that is shown by data set, ranked and tested.
    control : str, default=None
        The method that others are tested against; that of best rank if None.

    Returns
    -------
    str
        Averages, figures by data set, Friedman's test, wins/ties/losses, Wilcoxon's
        tests, and, if there are any, the worth of the leak and failed fits.

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
        markdown_text(part) if isinstance(part, str) else table_to_markdown(part, "##")
        for part in report_parts(results, metric, control)
    ]
    return "\n\n".join(parts) + "\n"


def results_to_latex(
    results: Results,
    metric: str = "accuracy",
    *,
    control: str | None = None,
) -> str:
    """Write a comparison as LaTeX tables, for the package ``booktabs``.

    Parameters
    ----------
    results, metric, control
        See `results_to_markdown`.

    Returns
    -------
    str
        One ``table`` after the other; notes are part of captions.
    """
    parts = [
        f"{part.translate(_LATEX)}\n" if isinstance(part, str) else _latex(part)
        for part in report_parts(results, metric, control)
    ]
    return "\n".join(parts)


def results_to_csv(results: Results) -> str:
    """Write averages over folds as CSV, a line per data set, method and protocol.

    ``Results.to_csv`` writes the fits themselves.

    Parameters
    ----------
    results : Results
        Results of a comparison.

    Returns
    -------
    str
        The text: names, numbers of folds and failures, and mean and standard deviation
        of each measure that has a value.
    """
    group = summaries_of(results)
    names = list(dict.fromkeys(summary.measure.name for summary in group))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns = [f"{name}{suffix}" for name in names for suffix in ("", "_std")]
    writer.writerow(["dataset", "method", "protocol", "folds", "failed", *columns])
    for protocol in results.protocols:
        same = {s.measure.name: s for s in group if s.protocol == protocol}
        if same:
            writer.writerows(_csv_lines([same.get(name) for name in names]))
    return text.getvalue()


def print_results(
    results: Results,
    metric: str = "accuracy",
    *,
    control: str | None = None,
    file: IO[str] | None = None,
    width: int | None = None,
) -> None:
    """Show a comparison in the terminal.

    Parameters
    ----------
    results, metric, control
        See `results_to_markdown`.
    file : text file, default=None
        Where to write; standard output if None.
    width : int, default=None
        Characters of a line; those of the terminal if None. Wider tables with a column
        for each method are left out.
    """
    stream = sys.stdout if file is None else file
    width = width or shutil.get_terminal_size((100, 24)).columns
    left_out = 0
    for part in report_parts(results, metric, control, pairs=False):
        if isinstance(part, str):
            stream.write(f"{part}\n\n")
        elif part.n_texts == 1 and _width(part) > width:
            left_out += 1
        else:
            _write_table(_narrowed(part, width), stream)
    if left_out:
        stream.write(
            f"Tables left out, being wider than {width} characters: {left_out}; widen "
            "the window, or write them with results_to_markdown.\n"
        )


def report_parts(
    results: Results,
    metric: str,
    control: str | None,
    pairs: bool = True,
) -> Iterator[ReportTable | str]:
    """Yield tables and sentences in the order of a report.

    Without ``pairs`` the tables of all pairs of methods are left out.
    """
    if not results.rows:
        yield "There are no results."
        return
    check_metric(metric)
    if len(results.failures) == len(results.rows):
        yield "No fit succeeded."
        yield layouts.failure_table(results)
        return
    group = summaries_of(results)
    main = [summary for summary in group if summary.measure.name == metric]
    if not main:
        raise ParameterError(
            f"There is no value of {metric!r}. Measures with values: "
            f"{', '.join(dict.fromkeys(s.measure.name for s in group)) or 'none'}."
        )
    yield layouts.method_table(group, metric, control)
    for summary in main:
        yield layouts.dataset_table(summary, control)
        if summary.testable:
            yield friedman_sentence(summary)
            if control is not None:
                yield layouts.control_table(summary, control)
        if pairs and len(summary.methods) > 1:
            yield layouts.win_tie_loss_table(summary)
        if pairs and summary.testable:
            yield layouts.wilcoxon_table(summary)
    yield from layouts.leak_tables(group, metric)
    if results.failures:
        yield layouts.failure_table(results)


def table_to_markdown(table: ReportTable, level: str) -> str:
    """Write one table as Markdown: a heading of some level, cells, notes."""

    def text(cell: Cell) -> str:
        escaped = markdown_text(cell.text)
        return f"**{escaped}**" if cell.best and escaped else escaped

    header = list(map(markdown_text, table.header))
    body = markdown_table(header, [[*map(text, line)] for line in table.lines])
    title, notes = markdown_text(table.title), map(markdown_text, table.notes)
    return "\n\n".join([f"{level} {title}", body, *notes])


def _latex(table: ReportTable) -> str:
    def text(cell: Cell) -> str:
        escaped = cell.text.translate(_LATEX)
        return rf"\textbf{{{escaped}}}" if cell.best and escaped else escaped

    def line(cells: Sequence[Cell]) -> str:
        return f"{' & '.join(map(text, cells))} \\\\"

    columns = "l" * table.n_texts + "r" * (len(table.header) - table.n_texts)
    caption = " ".join([f"{table.title}.", *table.notes]).translate(_LATEX)
    foot = [r"\midrule", *map(line, table.foot)] if table.foot else []
    lines = [
        rf"\caption{{{caption}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        line([Cell(name) for name in table.header]),
        r"\midrule",
        *map(line, table.rows),
        *foot,
        "\\bottomrule\n\\end{tabular}\n\\end{table}\n",
    ]
    return "\n".join(["\\begin{table}\n\\centering", *lines])


def _csv_lines(by_measure: Sequence[MeasureSummary | None]) -> Iterator[list[str]]:
    present = [summary for summary in by_measure if summary is not None]
    first = present[0]
    for i, dataset in enumerate(first.datasets):
        for j, method in enumerate(first.methods):
            folds = max(int(summary.counts[i, j]) for summary in present)
            failed = int(first.failed[i, j])
            if not folds and not failed:
                continue
            line = [dataset, method, first.protocol, str(folds), str(failed)]
            for summary in by_measure:
                tables = [] if summary is None else [summary.means, summary.spreads]
                values = [float(table[i, j]) for table in tables] or [np.nan, np.nan]
                line += ["" if np.isnan(value) else repr(value) for value in values]
            yield line


def _width(table: ReportTable) -> int:
    lines = [table.header, *([cell.text for cell in line] for line in table.lines)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return sum(widths) + 3 * len(widths)


def _narrowed(table: ReportTable, width: int) -> ReportTable:
    """Leave out measures at the right of the table of methods until it fits."""
    if "w/t/l" in table.header:
        n_last = int(table.header[-1] == "failed")
        while _width(table) > width and table.header[-2 - n_last] != "w/t/l":
            table = table.without(len(table.header) - 1 - n_last)
    return table


def _write_table(table: ReportTable, stream: IO[str]) -> None:
    numeric = [i >= table.n_texts for i in range(len(table.header))]
    lines = [[cell.text for cell in line] for line in table.lines]
    text = text_table(table.header, lines, numeric, max_width=None)
    stream.write("\n".join([table.title, text, *table.notes]) + "\n\n")
