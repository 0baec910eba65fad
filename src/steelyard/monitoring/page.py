"""Drift as one HTML page with pictures, without further files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from steelyard._common import html
from steelyard._common.html import element, escape, html_list, html_table
from steelyard.monitoring.result import ColumnDrift, Drift, Period
from steelyard.notices.notice import in_lines

_asset = partial(html.read_asset, "steelyard.lab.report")

# Histograms are drawn of the columns of largest index.
_MAX_DRAWN_COLUMNS = 12
_WIDTH, _HEIGHT = 420.0, 190.0
# Left, top, and room below for slanted names.
_LEFT, _TOP, _BELOW = 44.0, 12.0, 70.0
_MAX_NAME_LETTERS = 16


def drift_to_html(drift: Drift, title: str) -> str:
    """Return the page: alarms, tables, indices by period, histograms, measures."""
    n_rows = sum(period.rows for period in drift.periods)
    about = f"{n_rows:,} rows in {len(drift.periods)} periods, beside what the model "
    about += f"holds of its training rows. Thresholds: PSI {drift.thresholds.psi:g}, "
    about += f"shares {100 * drift.thresholds.share:g} %, and more than chance."
    parts = {
        "TITLE": escape(title),
        "STYLE": _asset("report.css"),
        "ABOUT": escape(about),
        "BODY": drift_body(drift),
        "DATA": "{}",
        "SCRIPT": "",
    }
    return html.fill_template(_asset("report.html"), parts)


def drift_body(drift: Drift) -> str:
    """Return tables and pictures as HTML."""
    return "\n".join(_body(drift))


def _body(drift: Drift) -> Iterator[str]:
    yield element("h2", "Thresholds")
    yield "".join(element("p", escape(line)) for line in drift.summary())
    for table in drift.tables():
        yield element("h2", escape(table.title))
        made = html_table(table.header, table.rows, table.n_texts)
        yield element("div", made, class_="scroll")
    if len(drift.periods) > 1:
        yield element("h2", "By period")
        yield element("div", "".join(_by_period(drift)), class_="figures")
    yield element("h2", "Shares before and now")
    yield element("div", "".join(_histograms(drift)), class_="figures")
    for period in drift.periods:
        yield html_list(f"Noticed in {period.name}", in_lines(period.notices))


def _by_period(drift: Drift) -> Iterator[str]:
    names = [period.name for period in drift.periods]
    columns = list(zip(*(period.columns for period in drift.periods), strict=True))
    columns.sort(key=lambda cells: -max(map(_index, cells)))
    for cells in columns[:_MAX_DRAWN_COLUMNS]:
        if any(cell.compared is not None for cell in cells):
            values = [_index(cell) if cell.compared else np.nan for cell in cells]
            limit = drift.thresholds.psi
            yield _lines(f"PSI of {cells[0].name}", names, values, limit)
    for title, values in _measures(drift.periods):
        if np.isfinite(values).any():
            yield _lines(title, names, values, None)


def _measures(periods: Sequence[Period]) -> Iterator[tuple[str, list[float]]]:
    measured = [period.performance for period in periods]
    yield "log-loss", [p.log_loss.value if p else np.nan for p in measured]
    yield "AUC", [p.auc if p else np.nan for p in measured]
    gaps = [p.calibration.value if p else np.nan for p in measured]
    yield "predicted minus observed", gaps


def _histograms(drift: Drift) -> Iterator[str]:
    """Draw the columns of largest index, each in its period of largest index."""
    worst = [
        max(
            ((cell, period) for cell, period in zip(cells, drift.periods, strict=True)),
            key=lambda pair: _index(pair[0]),
        )
        for cells in zip(*(period.columns for period in drift.periods), strict=True)
    ]
    worst.sort(key=lambda pair: (not pair[0].is_score, -_index(pair[0])))
    for column, period in worst[:_MAX_DRAWN_COLUMNS]:
        if column.compared is not None:
            yield _bars(column, period.name)


def _index(column: ColumnDrift) -> float:
    return -1.0 if column.compared is None else column.compared.psi


# ----------------------------------------------------------------------------- pictures


def _bars(column: ColumnDrift, period: str) -> str:
    """Draw shares of the groups before and now, side by side."""
    comparison = column.compared
    assert comparison is not None
    highest = max(*comparison.expected, *comparison.actual)
    step = (_WIDTH - _LEFT) / len(comparison.names)
    marks = []
    for k, name in enumerate(comparison.names):
        for shares, class_, at in (
            (comparison.expected, "before", 0.1),
            (comparison.actual, "now", 0.5),
        ):
            height = (_HEIGHT - _TOP - _BELOW) * shares[k] / highest
            marks.append(
                element(
                    "rect",
                    element("title", escape(f"{name}: {shares[k]:.1%} {class_}")),
                    x=f"{_LEFT + step * (k + at):.1f}",
                    y=f"{_HEIGHT - _BELOW - height:.1f}",
                    width=f"{0.4 * step:.1f}",
                    height=f"{height:.1f}",
                    style=f"fill:var(--{'soft' if class_ == 'before' else 'first'})",
                )
            )
        marks.append(_name_below(_LEFT + step * (k + 0.5), name))
    marks += _axis(0.0, highest, lambda share: f"{100 * share:.0f} %")
    what = f"{column.name}, {period}: PSI {comparison.psi:.3f} (by chance "
    what += f"{comparison.by_chance:.3f}); grey before, blue now"
    return _figure(what, marks)


def _lines(
    title: str, names: Sequence[str], values: Sequence[float], limit: float | None
) -> str:
    """Draw a number by period, and the threshold if there is one."""
    finite = [v for v in values if np.isfinite(v)]
    low, high = min([0.0, *finite]), max([*finite, limit or 0.0, 1e-9])
    span = (_HEIGHT - _TOP - _BELOW) / (high - low)
    step = (_WIDTH - _LEFT) / len(names)

    def point(k: int, value: float) -> tuple[str, str]:
        across = _LEFT + step * (k + 0.5)
        return f"{across:.1f}", f"{_HEIGHT - _BELOW - span * (value - low):.1f}"

    drawn = [(k, v) for k, v in enumerate(values) if np.isfinite(v)]
    points = " ".join(",".join(point(k, v)) for k, v in drawn)
    marks = [element("polyline", points=points, class_="first")]
    for k, value in drawn:
        x, y = point(k, value)
        note = element("title", escape(f"{names[k]}: {value:.3f}"))
        marks.append(element("circle", note, cx=x, cy=y, r=3))
    # At most 14 periods have their name.
    label_every = -(-len(names) // 14)
    marks += [
        _name_below(_LEFT + step * (k + 0.5), name)
        for k, name in enumerate(names)
        if k % label_every == 0
    ]
    if limit is not None:
        (_, y), ends = point(0, limit), (f"{_LEFT:.0f}", f"{_WIDTH:.0f}")
        at = {"x1": ends[0], "x2": ends[1], "y1": y, "y2": y}
        marks.append(element("line", class_="second", stroke_dasharray="4 3", **at))
    marks += _axis(low, high, lambda value: f"{value:.2g}")
    return _figure(title, marks)


def _name_below(x: float, name: str) -> str:
    short = (
        name if len(name) <= _MAX_NAME_LETTERS else f"{name[: _MAX_NAME_LETTERS - 1]}…"
    )
    y = _HEIGHT - _BELOW + 12.0
    turned = f"rotate(-35 {x:.1f} {y:.1f})"
    note = element("title", escape(name))
    return element(
        "text",
        note + escape(short),
        x=f"{x:.1f}",
        y=f"{y:.1f}",
        text_anchor="end",
        transform=turned,
        font_size="10",
    )


def _axis(low: float, high: float, text: Any) -> list[str]:
    """Draw the ends of the vertical axis, and the line below."""
    bottom = f"{_HEIGHT - _BELOW:.1f}"
    ends = {"x1": f"{_LEFT:.0f}", "x2": f"{_WIDTH:.0f}"}
    marks = [element("line", y1=bottom, y2=bottom, **ends)]
    for value, y in ((low, _HEIGHT - _BELOW), (high, _TOP)):
        at = {"x": f"{_LEFT - 6:.0f}", "y": f"{y + 4:.1f}", "text_anchor": "end"}
        marks.append(element("text", escape(text(value)), **at))
    return marks


def _figure(title: str, marks: Sequence[str]) -> str:
    size = {"width": f"{_WIDTH:.0f}", "height": f"{_HEIGHT:.0f}"}
    box = f"0 0 {size['width']} {size['height']}"
    inner = element("title", escape(title)) + "".join(marks)
    drawn = element("svg", inner, role="img", viewBox=box, **size)
    return element("figure", element("figcaption", escape(title)) + drawn)
