"""A comparison as one HTML page that needs nothing else."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.exceptions import ParameterError
from steelyard.experiments.report.plots import RankLayout, critical_difference_svg
from steelyard.experiments.report.summary import (
    MEASURES,
    Summary,
    check_metric,
    leaks,
    summaries,
)
from steelyard.experiments.report.tables import (
    Cell,
    Table,
    bayesian_table,
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
from steelyard.experiments.statistics.calibration import reliability

__all__ = ["results_to_html"]

# The page may not fetch anything, whatever names of data sets and methods hold.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"

_SHADE = 'style="background:rgba(var(--{}),{:.2f})"'


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
    page = "\n".join(_page(results, group, shown, control, title))
    if path is not None:
        Path(path).write_text(page, encoding="utf-8")
    return page


def _page(
    results: Results,
    group: list[Summary],
    shown: list[str],
    control: str | None,
    title: str,
) -> Iterator[str]:
    n_failed = len(results.failures)
    yield f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<title>{escape(title)}</title>
<style>
{_asset("report.css")}</style>
</head>
<body>
<h1>{escape(title)}</h1>
<p class="soft">{len(results.rows)} fits of {len(results.methods)} methods on
{len(results.datasets)} data sets; {_protocols(results)}; {n_failed} failed.</p>"""
    if group:
        yield from _body(results, group, shown, control)
    if n_failed:
        yield f"<h2>Failures</h2>{_table(failure_table(results))}"
    if results.settings:
        settings = json.dumps(results.settings, indent=1, default=str)
        yield f"<h2>Settings</h2><pre>{escape(settings)}</pre>"
    data = json.dumps(_data(results, group), separators=(",", ":"))
    # No text of the data can end the element.
    data = data.replace("<", "\\u003c")
    yield f'<script type="application/json" id="data">{data}</script>'
    yield f"<script>\n{_asset('report.js')}</script>\n</body>\n</html>\n"


def _body(
    results: Results, group: list[Summary], shown: list[str], control: str | None
) -> Iterator[str]:
    first = (group[0].protocol, shown[0])
    yield f"""<div class="controls">
{_select("protocol", "Protocol", results.protocols)}
{_select("metric", "Measure", shown, [MEASURES[name].title for name in shown])}
</div>
<noscript><p>Without scripts the page shows one measure, and tables do not
sort.</p></noscript>
<main>
<p id="none" hidden>There is no value of this measure under this protocol.</p>
<h2>Methods</h2>"""
    for name in shown:
        table = method_table(_order(group, name), name, control)
        hidden = "" if name == shown[0] else " hidden"
        yield f'<section data-metric="{name}"{hidden}>{_table(table)}</section>'
    for summary in group:
        here = (summary.protocol, summary.measure.name)
        key = escape("|".join(here), quote=True)
        hidden = "" if here == first else " hidden"
        yield f'<section data-view="{key}"{hidden}>'
        yield from _view(summary, control)
        yield "</section>"
    yield _figures(results, group)
    for name in shown:
        worth = "".join(_table(leak_table(one)) for one in leaks(group, name))
        if worth:
            hidden = "" if name == shown[0] else " hidden"
            yield (
                f'<section data-metric="{name}"{hidden}><h2>What the leak is worth</h2>'
                f"{worth}</section>"
            )
    yield "</main>"


def _view(summary: Summary, control: str | None) -> Iterator[str]:
    if summary.testable:
        sentence = friedman_sentence(summary)
        layout = RankLayout.of(
            summary.methods, summary.ranks, summary.critical_difference
        )
        drawing = critical_difference_svg(
            layout,
            f"Critical difference diagram of {summary.measure.title}, protocol "
            f"{summary.protocol}: average ranks, best at the left",
        )
        yield (
            f'<h2>Average ranks</h2><figure><div class="wide">{drawing}</div>'
            f"<figcaption>{escape(sentence)} "
            "Methods under one bar do not differ significantly.</figcaption></figure>"
        )
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


def _figures(results: Results, group: list[Summary]) -> str:
    methods = results.methods
    leader = group[0].methods[group[0].leader]
    other = next((name for name in methods if name != leader), leader)
    return f"""<section id="figures">
<h2>Two methods</h2>
<p>{_select("first", "Across", methods, chosen=other)}
{_select("second", "Up", methods, chosen=leader)}</p>
<div class="figures">
<figure><svg id="scatter" role="img" aria-labelledby="scatter-caption"
 viewBox="0 0 420 415" width="420" height="415"></svg>
<figcaption id="scatter-caption"></figcaption></figure>
<figure id="reliability-figure" hidden><svg id="reliability" role="img"
 aria-labelledby="reliability-caption" viewBox="0 0 420 415" width="420"
 height="415"></svg>
<figcaption id="reliability-caption">Reliability, pooled over data sets and folds:
above the diagonal the method is too modest, below it too sure.</figcaption></figure>
</div>
<h2>One data set</h2>
<p>{_select("dataset", "Data set", results.datasets)}
<label><input type="checkbox" id="zoom"> zoom in on the differences</label></p>
<figure><div class="wide"><svg id="bars" role="img" aria-labelledby="bars-caption"
 viewBox="0 0 900 300" width="900"></svg></div>
<figcaption id="bars-caption"></figcaption></figure>
</section>"""


def _data(results: Results, group: list[Summary]) -> dict[str, Any]:
    views = {
        f"{summary.protocol}|{summary.measure.name}": {
            "title": summary.measure.title,
            "scale": summary.measure.scale,
            "digits": summary.measure.digits,
            "larger": summary.measure.larger_is_better,
            "methods": summary.methods,
            "datasets": summary.datasets,
            "means": _listed(np.where(summary.partial, np.nan, summary.means)),
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


def _order(group: list[Summary], first: str) -> list[Summary]:
    return sorted(group, key=lambda summary: summary.measure.name != first)


def _table(table: Table) -> str:
    header = "".join(
        f'<th scope="col" aria-sort="none"{_kind(i, table)}><button type="button">'
        f"{escape(name)}</button></th>"
        for i, name in enumerate(table.header)
    )
    body, foot = (
        "\n".join(f"<tr>{_cells(row, table)}</tr>" for row in rows)
        for rows in (table.rows, table.foot)
    )
    foot = f"<tfoot>{foot}</tfoot>" if foot else ""
    notes = "".join(f"<p>{escape(note)}</p>" for note in table.notes)
    name = escape(table.title, quote=True)
    return (
        f"<p>{escape(table.title)}</p>"
        f'<div class="scroll" tabindex="0" role="region" aria-label="{name}"><table>'
        f"<thead><tr>{header}</tr></thead><tbody>{body}</tbody>{foot}</table></div>"
        f'<div class="notes">{notes}</div>'
    )


def _cells(row: Sequence[Cell], table: Table) -> str:
    head = (
        f'<th scope="row" class="text" title="{escape(row[0].text, quote=True)}">'
        f"{escape(row[0].text)}</th>"
    )
    return head + "".join(_cell(cell, i, table) for i, cell in enumerate(row[1:], 1))


def _cell(cell: Cell, column: int, table: Table) -> str:
    kinds = []
    if column < table.n_texts:
        kinds.append("text")
        if len(cell.text) > 60:
            kinds.append("long")
    if cell.best:
        kinds.append("best")
    parts = ["td"]
    if kinds:
        parts.append(f'class="{" ".join(kinds)}"')
    if cell.value is not None and cell.text != f"{cell.value:g}":
        parts.append(f'data-v="{cell.value:.6g}"')
    if cell.note:
        parts.append(f'title="{escape(cell.note, quote=True)}"')
    if cell.shade:
        colour = "good" if cell.shade > 0 else "bad"
        parts.append(_SHADE.format(colour, 0.4 * min(1.0, abs(cell.shade))))
    return f"<{' '.join(parts)}>{escape(cell.text)}</td>"


def _kind(column: int, table: Table) -> str:
    return ' class="text"' if column < table.n_texts else ""


def _select(
    name: str,
    label: str,
    values: Sequence[str],
    texts: Sequence[str] | None = None,
    chosen: str | None = None,
) -> str:
    options = "".join(
        f'<option value="{escape(value, quote=True)}"'
        f"{' selected' if value == chosen else ''}>{escape(text)}</option>"
        for value, text in zip(values, texts or values, strict=True)
    )
    return f'<label>{label} <select id="{name}">{options}</select></label>'


def _protocols(results: Results) -> str:
    many = "protocols" if len(results.protocols) > 1 else "protocol"
    return escape(f"{many} {', '.join(results.protocols)}")


def _asset(name: str) -> str:
    return (files("steelyard.experiments.report") / "assets" / name).read_text("utf-8")
