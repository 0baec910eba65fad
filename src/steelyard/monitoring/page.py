"""Drift as one HTML page with pictures, without further files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from steelyard._common import html
from steelyard._common.html import element, escape, html_list, html_table
from steelyard._common.text import counted
from steelyard.monitoring.result import ColumnDrift, Drift
from steelyard.notices.notice import in_lines

_asset = partial(html.read_asset, "steelyard.evaluation")

# Histograms are drawn of the columns of largest index.
_MAX_DRAWN_COLUMNS = 12
_WIDTH, _HEIGHT = 420.0, 190.0
# Ends of the axes: there is room below for slanted names.
_LEFT, _TOP, _BOTTOM = 44.0, 12.0, 120.0
_MAX_NAME_LETTERS = 16
# Names that fit below the axis without being slanted.
_MAX_LEVEL_LETTERS = 50


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
        "DATA": "{}",
        "SCRIPT": "",
    }
    return html.fill_template(_asset("report.html"), parts)


def drift_body(drift: Drift) -> str:
    """Return tables and pictures as HTML."""
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
    names = [period.name for period in drift.periods]
    columns = list(zip(*(period.columns for period in drift.periods), strict=True))
    columns.sort(key=lambda cells: -max(map(_index, cells)))
    for cells in columns[:_MAX_DRAWN_COLUMNS]:
        if any(cell.compared is not None for cell in cells):
            values = [_index(cell) if cell.compared else np.nan for cell in cells]
            limit = drift.thresholds.psi
            yield _lines(f"PSI of {cells[0].name}", names, values, limit)
    measured = [period.performance for period in drift.periods]
    for title, curve in {
        "log-loss": [p.log_loss.value if p else np.nan for p in measured],
        "AUC": [p.auc if p else np.nan for p in measured],
        "predicted minus observed": [
            p.calibration.value if p else np.nan for p in measured
        ],
    }.items():
        if np.isfinite(curve).any():
            yield _lines(title, names, curve, None)


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
    names, highest = comparison.names, max(*comparison.expected, *comparison.actual)
    marks = []
    for k, name in enumerate(names):
        for shares, when, offset, colour in (
            (comparison.expected, "before", -0.4, "soft"),
            (comparison.actual, "now", 0.0, "first"),
        ):
            top = _height(shares[k], 0.0, highest)
            marks.append(
                element(
                    "rect",
                    element("title", escape(f"{name}: {shares[k]:.1%} {when}")),
                    x=f"{_across(k + offset, len(names)):.1f}",
                    y=f"{top:.1f}",
                    width=f"{0.4 * (_WIDTH - _LEFT) / len(names):.1f}",
                    height=f"{_BOTTOM - top:.1f}",
                    style=f"fill:var(--{colour})",
                )
            )
    marks += [_name_below(k, name, len(names)) for k, name in enumerate(names)]
    marks += _axis(0.0, highest, lambda share: f"{100 * share:.0f} %")
    title = f"{column.name}, {period}: PSI {comparison.psi:.3f} (by chance "
    title += f"{comparison.by_chance:.3f}); grey before, blue now"
    return _figure(title, marks)


def _lines(
    title: str, names: Sequence[str], values: Sequence[float], limit: float | None
) -> str:
    """Draw a number by period, and the threshold if there is one."""
    drawn = [(k, value) for k, value in enumerate(values) if np.isfinite(value)]
    low = min([0.0, *(value for _, value in drawn)])
    high = max([*(value for _, value in drawn), limit or 0.0, 1e-9])
    points = [
        (f"{_across(k, len(names)):.1f}", f"{_height(value, low, high):.1f}")
        for k, value in drawn
    ]
    marks = [
        element("polyline", points=" ".join(map(",".join, points)), class_="first")
    ]
    for (k, value), (x, y) in zip(drawn, points, strict=True):
        note = element("title", escape(f"{names[k]}: {value:.3f}"))
        marks.append(element("circle", note, cx=x, cy=y, r=3))
    # At most 14 periods have their name.
    shown = range(0, len(names), -(-len(names) // 14))
    marks += [_name_below(k, names[k], len(names)) for k in shown]
    if limit is not None:
        height = _height(limit, low, high)
        marks.append(_level(height, class_="second", stroke_dasharray="4 3"))
    if low < 0.0:
        marks.append(_level(_height(0.0, low, high), stroke_dasharray="1 3"))
    marks += _axis(low, high, lambda value: f"{value:.2g}")
    return _figure(title, marks)


def _across(k: float, n: int) -> float:
    """Return the horizontal position of the middle of one of ``n`` groups."""
    return _LEFT + (_WIDTH - _LEFT) * (k + 0.5) / n


def _height(value: float, low: float, high: float) -> float:
    return _BOTTOM - (_BOTTOM - _TOP) * (value - low) / (high - low)


def _level(y: float, **attributes: str) -> str:
    """Draw a horizontal line across the picture."""
    at = {"x1": f"{_LEFT:.0f}", "x2": f"{_WIDTH:.0f}", "y1": f"{y:.1f}"}
    return element("line", **at, y2=f"{y:.1f}", **attributes)


def _name_below(k: int, name: str, n: int) -> str:
    is_long = len(name) > _MAX_NAME_LETTERS
    short = f"{name[: _MAX_NAME_LETTERS - 1]}…" if is_long else name
    x, y = f"{_across(k, n):.1f}", f"{_BOTTOM + 12.0:.1f}"
    content = element("title", escape(name)) + escape(short)
    if len(short) * n <= _MAX_LEVEL_LETTERS:
        return element("text", content, x=x, y=y, text_anchor="middle", font_size="10")
    turned = {"transform": f"rotate(-35 {x} {y})", "font_size": "10"}
    return element("text", content, x=x, y=y, text_anchor="end", **turned)


def _axis(low: float, high: float, text: Callable[[float], str]) -> Iterator[str]:
    """Draw the ends of the vertical axis, and the line below."""
    yield _level(_BOTTOM)
    for value, y in ((low, _BOTTOM), (high, _TOP)):
        at = {"x": f"{_LEFT - 6:.0f}", "y": f"{y + 4:.1f}", "text_anchor": "end"}
        yield element("text", escape(text(value)), **at)


def _figure(title: str, marks: Sequence[str]) -> str:
    content = element("title", escape(title)) + "".join(marks)
    # Names that are turned need more room.
    height = _HEIGHT if "rotate(" in content else _BOTTOM + 22.0
    size = {"width": f"{_WIDTH:.0f}", "height": f"{height:.0f}"}
    box = f"0 0 {size['width']} {size['height']}"
    drawn = element("svg", content, role="img", viewBox=box, **size)
    return element("figure", element("figcaption", escape(title)) + drawn)
