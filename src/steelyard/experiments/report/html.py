"""A comparison as one HTML page that needs nothing else."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from steelyard._common.html import (
    element,
    escape,
    fill_template,
    read_asset,
    script_json,
)
from steelyard.exceptions import ParameterError
from steelyard.experiments.report.leaks import leaks
from steelyard.experiments.report.measures import MEASURES, check_metric
from steelyard.experiments.report.plots import RankLayout, critical_difference_svg
from steelyard.experiments.report.significance import (
    bayesian_table,
    control_table,
    friedman_sentence,
    wilcoxon_table,
    win_tie_loss_table,
)
from steelyard.experiments.report.summary import Summary, summaries
from steelyard.experiments.report.tables import (
    Cell,
    Table,
    dataset_table,
    failure_table,
    leak_table,
    method_table,
)
from steelyard.experiments.results import Results
from steelyard.experiments.statistics.calibration import reliability

__all__ = ["results_to_html"]

_PACKAGE = "steelyard.experiments.report"
_MAX_PLAIN_LENGTH = 60
"""Longer texts of a table are set small."""


def results_to_html(
    results: Results,
    path: str | os.PathLike[str] | None = None,
    *,
    metric: str = "accuracy",
    control: str | None = None,
    alpha: float = 0.05,
    zeros: str = "split",
    title: str = "Comparison of methods",
) -> str:
    """Write a comparison as one self-contained HTML page.

    The page has tables that sort by click or key, critical difference diagrams, and
    pictures of any two methods and any data set, for each measure and protocol.

    Parameters
    ----------
    results : Results
        What a comparison found.
    path : str or path, default=None
        The file to write; replaced if it exists.
    metric : str, default="accuracy"
        The measure that is shown first.
    control : str, default=None
        The method that others are tested against; that of best rank if None.
    alpha : float, default=0.05
        Level of all tests.
    zeros : {"split", "drop"}, default="split"
        How Wilcoxon's test treats differences of zero.
    title : str, default="Comparison of methods"
        Heading of the page.

    Returns
    -------
    str
        The page.

    Examples
    --------
    >>> rows = [
    ...     {"dataset": "iris", "method": name, "protocol": "honest", "repeat": 0,
    ...      "fold": fold, "status": "ok", "accuracy": accuracy}
    ...     for name, scores in {"NB": (0.9, 1.0), "RNB": (1.0, 1.0)}.items()
    ...     for fold, accuracy in enumerate(scores)
    ... ]
    >>> page = results_to_html(Results(rows))
    >>> page[:15], "http://" in page.replace("http://www.w3.org", "")
    ('<!DOCTYPE html>', False)
    """
    check_metric(metric)
    group = summaries(results, alpha=alpha, zeros=zeros)
    shown = list(dict.fromkeys(summary.measure.name for summary in group))
    if len(results.failures) == len(results.rows):
        group, shown = [], [metric]
    if metric not in shown:
        raise ParameterError(
            f"There is no value of {metric!r} to show first. Measures with values: "
            f"{', '.join(shown) or 'none'}."
        )
    shown.sort(key=lambda name: name != metric)
    parts = {
        "TITLE": escape(title),
        "STYLE": read_asset(_PACKAGE, "report.css"),
        "ABOUT": escape(_about(results)),
        "BODY": "\n".join(_body(results, group, shown, control)),
        "DATA": script_json(_data(results, group)),
        "SCRIPT": read_asset(_PACKAGE, "report.js"),
    }
    page = fill_template(read_asset(_PACKAGE, "report.html"), parts)
    if path is not None:
        Path(path).write_text(page, encoding="utf-8")
    return page


def _about(results: Results) -> str:
    many = "protocols" if len(results.protocols) > 1 else "protocol"
    return (
        f"{len(results.rows)} fits of {len(results.methods)} methods on "
        f"{len(results.datasets)} data sets; {many} {', '.join(results.protocols)}; "
        f"{len(results.failures)} failed."
    )


def _body(
    results: Results, group: list[Summary], shown: list[str], control: str | None
) -> Iterator[str]:
    if group:
        yield _comparison(results, group, shown, control)
    if results.failures:
        yield f"<h2>Failures</h2>{_table(failure_table(results))}"
    if results.settings:
        settings = json.dumps(results.settings, indent=1, default=str)
        yield f"<h2>Settings</h2><pre>{escape(settings)}</pre>"


def _comparison(
    results: Results, group: list[Summary], shown: list[str], control: str | None
) -> str:
    """Return everything that changes with the measure and protocol chosen."""
    leader = group[0].methods[group[0].leader]
    other = next((name for name in results.methods if name != leader), leader)
    titles = [MEASURES[name].title for name in shown]
    methods = {name: _table(method_table(group, name, control)) for name in shown}
    worth = {
        name: "".join(map(_table, map(leak_table, leaks(group, name))))
        for name in shown
    }
    parts = {
        "PROTOCOL": _select("protocol", "Protocol", results.protocols),
        "METRIC": _select("metric", "Measure", shown, titles),
        "METHODS": _sections(methods, shown[0]),
        "VIEWS": "\n".join(_views(group, shown[0], control)),
        "FIRST": _select("first", "Across", results.methods, chosen=other),
        "SECOND": _select("second", "Up", results.methods, chosen=leader),
        "DATASET": _select("dataset", "Data set", results.datasets),
        "LEAKS": _sections(
            {
                name: f"<h2>What the leak is worth</h2>{tables}"
                for name, tables in worth.items()
                if tables
            },
            shown[0],
        ),
    }
    return fill_template(read_asset(_PACKAGE, "comparison.html"), parts)


def _views(group: list[Summary], metric: str, control: str | None) -> Iterator[str]:
    """Yield a section for each measure and protocol; the first is shown."""
    first = (group[0].protocol, metric)
    for summary in group:
        key = (summary.protocol, summary.measure.name)
        view = "".join(_view(summary, control))
        yield element("section", view, data_view="|".join(key), hidden=key != first)


def _view(summary: Summary, control: str | None) -> Iterator[str]:
    if summary.testable:
        yield f"<h2>Average ranks</h2>{_diagram(summary)}"
    yield f"<h2>Data sets</h2>{_table(dataset_table(summary, control))}"
    if len(summary.methods) > 1:
        yield f"<h2>Wins, ties, losses</h2>{_table(win_tie_loss_table(summary))}"
    if summary.testable and control is not None:
        table = _table(control_table(summary, control))
        yield f"<h2>{escape(control)} against the others</h2>{table}"
    if summary.testable:
        yield f"<h2>Wilcoxon signed ranks</h2>{_table(wilcoxon_table(summary))}"
        if summary.measure.is_quality:
            table = _table(bayesian_table(summary, control))
            yield f"<h2>Bayesian signed ranks</h2>{table}"


def _diagram(summary: Summary) -> str:
    layout = RankLayout.of(summary.methods, summary.ranks, summary.critical_difference)
    drawing = critical_difference_svg(
        layout,
        f"Critical difference diagram of {summary.measure.title}, protocol "
        f"{summary.protocol}: average ranks, best at the left",
    )
    caption = (
        f"{friedman_sentence(summary)} Methods under one bar do not differ "
        "significantly."
    )
    drawn = element("div", drawing, class_="wide")
    return element("figure", drawn + element("figcaption", escape(caption)))


def _data(results: Results, group: list[Summary]) -> dict[str, Any]:
    views = {
        f"{summary.protocol}|{summary.measure.name}": {
            "title": summary.measure.title,
            "scale": summary.measure.scale,
            "digits": summary.measure.digits,
            "larger": summary.measure.larger_is_better,
            "methods": summary.methods,
            "datasets": summary.datasets,
            "means": _listed(summary.whole_means),
            "spreads": _listed(summary.spreads),
        }
        for summary in group
    }
    curves = {
        protocol: reliability(results, protocol) for protocol in results.protocols
    }
    return {"views": views, "reliability": curves}


def _listed(values: np.ndarray) -> list[list[float | None]]:
    return [
        [float(f"{x:.7g}") if np.isfinite(x) else None for x in row] for row in values
    ]


def _sections(contents: dict[str, str], shown: str) -> str:
    """Write a section for each measure, of which one is shown."""
    return "\n".join(
        element("section", content, data_metric=name, hidden=name != shown)
        for name, content in contents.items()
    )


def _table(table: Table) -> str:
    header = "".join(
        element(
            "th",
            element("button", escape(name), type="button"),
            scope="col",
            aria_sort="none",
            class_="text" if i < table.n_texts else None,
        )
        for i, name in enumerate(table.header)
    )
    body, foot = (
        "\n".join(element("tr", _cells(line, table.n_texts)) for line in lines)
        for lines in (table.rows, table.foot)
    )
    parts = element("thead", element("tr", header)) + element("tbody", body)
    parts += element("tfoot", foot) if foot else ""
    scroll = element(
        "div",
        element("table", parts),
        class_="scroll",
        tabindex=0,
        role="region",
        aria_label=table.title,
    )
    notes = "".join(element("p", escape(note)) for note in table.notes)
    title = element("p", escape(table.title))
    return title + scroll + element("div", notes, class_="notes")


def _cells(line: Sequence[Cell], n_texts: int) -> str:
    name = line[0].text
    head = element("th", escape(name), scope="row", class_="text", title=name)
    cells = (_cell(cell, i < n_texts) for i, cell in enumerate(line[1:], 1))
    return head + "".join(cells)


def _cell(cell: Cell, is_text: bool) -> str:
    kinds = {
        "text": is_text,
        "long": is_text and len(cell.text) > _MAX_PLAIN_LENGTH,
        "best": cell.best,
    }
    says_more = cell.value is not None and cell.text != f"{cell.value:g}"
    colour = "good" if cell.shade > 0 else "bad"
    strength = 0.4 * min(1.0, abs(cell.shade))
    return element(
        "td",
        escape(cell.text),
        class_=" ".join(kind for kind, holds in kinds.items() if holds),
        data_v=f"{cell.value:.6g}" if says_more else None,
        title=cell.note,
        style=f"background:rgba(var(--{colour}),{strength:.2f})" if cell.shade else "",
    )


def _select(
    name: str,
    label: str,
    values: Sequence[str],
    texts: Sequence[str] | None = None,
    chosen: str | None = None,
) -> str:
    options = "".join(
        element("option", escape(text), value=value, selected=value == chosen)
        for value, text in zip(values, texts or values, strict=True)
    )
    return f'<label>{label} <select id="{name}">{options}</select></label>'
