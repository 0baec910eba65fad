"""Drift as one HTML page with bars, without further files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from steelyard._common import html
from steelyard._common.html import element, escape, html_bars, html_list, html_table
from steelyard._common.text import counted
from steelyard.monitoring.result import ColumnDrift, Drift
from steelyard.notices.notice import in_lines

_asset = partial(html.read_asset, "steelyard.monitoring")

# Bars are drawn of the columns of largest index.
_MAX_DRAWN_COLUMNS = 12


def drift_to_html(drift: Drift, title: str) -> str:
    """Return the page: alarms, tables, indices by period, histograms, measures."""
    n_rows = sum(period.rows for period in drift.periods)
    about = f"{counted(n_rows, 'row')} in {counted(len(drift.periods), 'period')}, "
    about += "compared with the training rows. There is an alarm if a difference is "
    about += f"more than chance, and exceeds a PSI of {drift.thresholds.psi:g} or "
    about += f"{100 * drift.thresholds.share:g} percentage points of a share."
    parts = {
        "TITLE": escape(title),
        "STYLE": _asset("report.css"),
        "ABOUT": escape(about),
        "BODY": drift_body(drift),
    }
    return html.fill_template(_asset("report.html"), parts)


def drift_body(drift: Drift) -> str:
    """Return tables and bars as HTML."""
    parts = [element("h2", "Alarms")]
    parts.append("".join(element("p", escape(line)) for line in drift.summary()))
    for table in drift.tables():
        cells = html_table(table.header, table.rows, table.n_texts)
        parts.append(element("h2", escape(table.title)))
        parts.append(element("div", cells, class_="scroll"))
    pictures = {"Shares before and now": _histograms(drift)}
    if len(drift.periods) > 1:
        pictures = {"By period": _by_period(drift), **pictures}
    for title, drawn in pictures.items():
        parts.append(element("h2", title))
        parts.append(element("div", "".join(drawn), class_="figures"))
    for period in drift.periods:
        parts.append(html_list(f"Noticed in {period.name}", in_lines(period.notices)))
    return "\n".join(parts)


def _by_period(drift: Drift) -> Iterator[str]:
    """Draw the index of the columns where it is largest, and measures."""
    names = [period.name for period in drift.periods]
    columns = list(zip(*(period.columns for period in drift.periods), strict=True))
    columns.sort(key=lambda cells: -max(map(_index, cells)))
    for cells in columns[:_MAX_DRAWN_COLUMNS]:
        if any(cell.compared is not None for cell in cells):
            values = [_index(cell) if cell.compared else np.nan for cell in cells]
            yield _bars(f"PSI of {cells[0].name}", names, values, drift.thresholds.psi)
    measured = [period.performance for period in drift.periods]
    for title, curve in {
        "log-loss": [p.log_loss.value if p else np.nan for p in measured],
        "AUC": [p.auc if p else np.nan for p in measured],
        "predicted minus observed": [
            p.calibration.value if p else np.nan for p in measured
        ],
    }.items():
        if np.isfinite(curve).any():
            yield _bars(title, names, curve)


def _histograms(drift: Drift) -> Iterator[str]:
    """Draw the columns of largest index, each in its period of largest index."""
    pairs = ((cell, p.name) for p in drift.periods for cell in p.columns)
    worst = {}
    for cell, period in sorted(pairs, key=lambda pair: _index(pair[0])):
        worst[cell.name, cell.is_score] = cell, period
    order = sorted(worst.values(), key=lambda c: (not c[0].is_score, -_index(c[0])))
    for column, period in order[:_MAX_DRAWN_COLUMNS]:
        if (compared := column.compared) is not None:
            title = f"{column.name}, {period}: PSI {compared.psi:.3f} (by chance "
            title += f"{compared.by_chance:.3f}); the bar is the change"
            both = list(zip(compared.expected, compared.actual, strict=True))
            shares = [[f"{100 * share:.1f}" for share in pair] for pair in both]
            changes = [after - before for before, after in both]
            names, header = compared.names, ["before %", "now %"]
            yield _bars(title, names, changes, 0.0, header, shares)


def _index(column: ColumnDrift) -> float:
    return -1.0 if column.compared is None else column.compared.psi


def _bars(
    title: str,
    names: Sequence[str],
    amounts: Sequence[float],
    limit: float = 0.0,
    header: Sequence[str] = ("value",),
    texts: Sequence[Sequence[str]] | None = None,
) -> str:
    """Draw a bar for each name, with texts before it; its amount if None are given.

    The axis is as long as ``limit`` at least.
    """
    texts = texts or [["" if np.isnan(x) else f"{x:.3f}"] for x in amounts]
    drawn = html_bars([*np.nan_to_num(amounts).tolist(), limit])[:-1]
    parts = zip(names, texts, drawn, strict=True)
    rows = [[name, *cells, bar] for name, cells, bar in parts]
    caption = element("figcaption", escape(title))
    return element("figure", caption + html_table(["", *header, ""], rows, 1))
