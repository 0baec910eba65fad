"""A comparison as one HTML page that needs nothing else."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from steelyard._common import html
from steelyard._common.html import element, escape
from steelyard.exceptions import ParameterError
from steelyard.lab.report import layouts
from steelyard.lab.report.rank_diagram import (
    RankLayout,
    critical_difference_svg,
)
from steelyard.lab.report.summaries import (
    MEASURES,
    MeasureSummary,
    check_metric,
    friedman_sentence,
    reliability,
    summaries,
)
from steelyard.lab.results import Results

_asset = partial(html.read_asset, "steelyard.lab.report")
# Longer texts of a table are set small.
_MAX_PLAIN_LENGTH = 60


def results_to_html(
    results: Results,
    path: str | os.PathLike[str] | None = None,
    *,
    metric: str = "accuracy",
    control: str | None = None,
    title: str = "Comparison of methods",
) -> str:
    """Write a comparison as one self-contained HTML page.

    The page has tables that sort by click or key, critical difference diagrams, and
    pictures of any two methods and any data set, for each measure and protocol.

    Parameters
    ----------
    results, control
        See `results_to_markdown`.
    path : str or path, default=None
        The file to write; replaced if it exists.
    metric : str, default="accuracy"
        The measure that is shown first.
    title : str, default="Comparison of methods"
        Heading of the page.

    Returns
    -------
    str
        The page.

    Examples
    --------
    >>> fit = {"dataset": "iris", "method": "NB", "protocol": "honest", "repeat": 0}
    >>> fit |= {"fold": 0, "status": "ok", "accuracy": 0.9}
    >>> page = results_to_html(Results([fit]))
    >>> page[:15], "http://" in page.replace("http://www.w3.org", "")
    ('<!DOCTYPE html>', False)
    """
    check_metric(metric)
    group = summaries(results)
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
        "STYLE": html.read_asset("steelyard.evaluation", "report.css"),
        "ABOUT": escape(_about(results)),
        "BODY": "\n".join(_body(results, group, shown, control)),
        "DATA": html.script_json(_data(results, group)),
        "SCRIPT": _asset("report.js"),
    }
    page = html.fill_template(
        html.read_asset("steelyard.evaluation", "report.html"), parts
    )
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
    results: Results, group: list[MeasureSummary], shown: list[str], control: str | None
) -> Iterator[str]:
    if group:
        yield _comparison(results, group, shown, control)
    if results.failures:
        yield _titled("Failures", layouts.failure_table(results))
    if results.settings:
        settings = json.dumps(results.settings, indent=1, default=str)
        yield f"<h2>Settings</h2><pre>{escape(settings)}</pre>"


def _comparison(
    results: Results, group: list[MeasureSummary], shown: list[str], control: str | None
) -> str:
    """Return everything that changes with the measure and protocol chosen."""
    leader = group[0].methods[group[0].leader]
    other = next((name for name in results.methods if name != leader), leader)
    titles = [MEASURES[name].title for name in shown]
    ranked = (layouts.method_table(group, name, control) for name in shown)
    methods = dict(zip(shown, map(_table, ranked), strict=True))
    worth = {
        name: "<h2>What the leak is worth</h2>" + "".join(map(_table, added))
        for name in shown
        if (added := layouts.leak_tables(group, name))
    }
    views = {_key(summary): "".join(_view(summary, control)) for summary in group}
    parts = {
        "PROTOCOL": _select("protocol", "Protocol", results.protocols),
        "METRIC": _select("metric", "Measure", shown, titles),
        "METHODS": _sections(methods, shown[0], "metric"),
        "VIEWS": _sections(views, f"{group[0].protocol}|{shown[0]}", "view"),
        "FIRST": _select("first", "Across", results.methods, chosen=other),
        "SECOND": _select("second", "Up", results.methods, chosen=leader),
        "DATASET": _select("dataset", "Data set", results.datasets),
        "LEAKS": _sections(worth, shown[0], "metric"),
    }
    return html.fill_template(_asset("comparison.html"), parts)


def _view(summary: MeasureSummary, control: str | None) -> Iterator[str]:
    if summary.testable:
        yield f"<h2>Average ranks</h2>{_diagram(summary)}"
    yield _titled("Data sets", layouts.dataset_table(summary, control))
    if len(summary.methods) > 1:
        yield _titled("Wins, ties, losses", layouts.win_tie_loss_table(summary))
    if not summary.testable:
        return
    if control is not None:
        table = layouts.control_table(summary, control)
        yield _titled(f"{control} against the others", table)
    yield _titled("Wilcoxon signed ranks", layouts.wilcoxon_table(summary))
    if summary.measure.is_quality:
        table = layouts.bayesian_table(summary, control)
        yield _titled("Bayesian signed ranks", table)


def _diagram(summary: MeasureSummary) -> str:
    layout = RankLayout(summary.methods, summary.ranks, summary.critical_difference)
    drawing = critical_difference_svg(
        layout,
        f"Critical difference diagram of {summary.measure.title}, protocol "
        f"{summary.protocol}: average ranks, best at the left",
    )
    tested = friedman_sentence(summary)
    caption = f"{tested} Methods under one bar do not differ significantly."
    drawn = element("div", drawing, class_="wide")
    return element("figure", drawn + element("figcaption", escape(caption)))


def _data(results: Results, group: list[MeasureSummary]) -> dict[str, Any]:
    views = {
        _key(summary): {
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
    curves = {name: reliability(results, name) for name in results.protocols}
    return {"views": views, "reliability": curves}


def _listed(values: np.ndarray) -> list[list[float | None]]:
    return [
        [float(f"{x:.7g}") if np.isfinite(x) else None for x in row] for row in values
    ]


def _key(summary: MeasureSummary) -> str:
    return f"{summary.protocol}|{summary.measure.name}"


def _sections(contents: dict[str, str], shown: str, kind: str) -> str:
    """Write a section for each measure, or measure and protocol; one is shown."""
    return "\n".join(
        element("section", content, **{f"data_{kind}": name}, hidden=name != shown)
        for name, content in contents.items()
    )


def _titled(title: str, table: layouts.ReportTable) -> str:
    return f"<h2>{escape(title)}</h2>{_table(table)}"


def _table(table: layouts.ReportTable) -> str:
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
    region = {"tabindex": 0, "role": "region", "aria_label": table.title}
    scroll = element("div", element("table", parts), class_="scroll", **region)
    notes = "".join(element("p", escape(note)) for note in table.notes)
    title = element("p", escape(table.title))
    return title + scroll + element("div", notes, class_="notes")


def _cells(line: Sequence[layouts.Cell], n_texts: int) -> str:
    name = line[0].text
    head = element("th", escape(name), scope="row", class_="text", title=name)
    cells = (_cell(cell, i < n_texts) for i, cell in enumerate(line[1:], 1))
    return head + "".join(cells)


def _cell(cell: layouts.Cell, is_text: bool) -> str:
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
