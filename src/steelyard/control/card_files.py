"""A card as a page, a workbook, Markdown, CSV and text; as SQL and the like, a plan."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator
from importlib import import_module
from itertools import groupby
from os import PathLike
from pathlib import Path
from typing import Any

from steelyard._common.html import (
    content_policy,
    element,
    escape,
    fill_template,
    read_asset,
)
from steelyard._common.text import (
    markdown_table,
    markdown_text,
    safe_cells,
    text_table,
)
from steelyard.control.card import Card, CardRow, Scorecard
from steelyard.exceptions import ParameterError
from steelyard.export.formats import FORMATS as PLAN_FORMATS
from steelyard.export.formats import content_of

FORMATS = ("html", "xlsx", "csv", "md")

# Lines in three columns of a printed page, letters of a value in a line, and sizes of
# type, smaller for more lines.
_LINES_OF_A_PAGE, _LETTERS, _LARGEST, _SMALLEST = 130, 14, 10.0, 4.0


def content_of_card(
    card: Scorecard,
    path: str | PathLike[str],
    format: str | None = None,
    **options: Any,
) -> bytes:
    """Return the bytes of a file of some format."""
    kind = Path(path).suffix.lower().lstrip(".") if format is None else format
    if kind in PLAN_FORMATS:
        if len(card.cards) > 1:
            raise ParameterError(
                f"There are {len(card.cards)} cards, one for each class, and a file "
                f"of {kind} has one. Make the card of one class: `target`."
            )
        return content_of(card.cards[0].fitted, kind, **options)  # type: ignore[arg-type]
    if kind not in _WRITERS:
        both = (*FORMATS, *PLAN_FORMATS)
        given = f"the ending of {str(path)!r}" if format is None else repr(format)
        raise ParameterError(
            f"A card has no format by {given}. Known: {', '.join(both)}."
        )
    if options:
        raise ParameterError(
            f"The format {kind!r} has no option {next(iter(options))!r}."
        )
    return _WRITERS[kind](card)


def rate_text(rate: float) -> str:
    """Write a share, nothing where there is none."""
    return "" if math.isnan(rate) else f"{100.0 * rate:.1f} %"


def rows_text(rows: float) -> str:
    """Write a weight of rows."""
    return "" if math.isnan(rows) else f"{rows:.6g}"


def points_text(points: int) -> str:
    """Write points with their sign."""
    return f"{points:+d}" if points else "0"


def title_of(card: Card, name: str | None) -> str:
    """Say what a card is of."""
    return f"Scorecard: {name} = {card.target}" if name else f"Scorecard: {card.target}"


def scale_text(card: Card) -> str:
    """Say what points mean."""
    double = f"{card.points_to_double:g} more points double the odds"
    return f"Start with {card.start} points; {double} of {card.target}."


def loss_text(card: Scorecard) -> str:
    """Say what merging and rounding cost, and what was changed by hand."""
    loss = card.loss
    lines = [
        f"Log-loss: model {loss['model']:.4f}, merged {loss['merged']:.4f}, points "
        f"{loss['points']:.4f} ({loss['n_rows']} {loss['on']})."
    ]
    return "\n".join([*lines, *(f"Edited by hand: {edit}." for edit in card.edits)])


def by_column(card: Card) -> Iterator[tuple[str, list[CardRow]]]:
    """Yield the lines of each column."""
    for name, rows in groupby(card.rows, key=lambda row: row.column):
        yield name, list(rows)


# -------------------------------------------------------------------------------- pages


def html_card(card: Scorecard) -> str:
    """Return a page that prints on one sheet, as far as type can be small."""
    lines = max(map(_n_lines, card.cards)) + len(card.edits)
    size = min(_LARGEST, max(_SMALLEST, _LARGEST * math.sqrt(_LINES_OF_A_PAGE / lines)))
    page, style, code = (
        read_asset("steelyard.control", f"card.{kind}")
        for kind in ("html", "css", "js")
    )
    style = fill_template(style, {"SIZE": f"{size:.3g}"})
    parts = {
        "TITLE": escape(title_of(card.cards[0], card.name)),
        "POLICY": content_policy(style, [code]),
        "STYLE": style,
        "BODY": html_tables(card),
        "CODE": code,
    }
    return fill_template(page, parts)


def _n_lines(card: Card) -> float:
    """Count the lines of a card on paper, about so."""
    values = sum(max(math.ceil(len(row.value) / _LETTERS), 1) for row in card.rows)
    return values + 2.5 * len({row.column for row in card.rows}) + len(card.scale())


def html_tables(card: Scorecard) -> str:
    """Return all cards as HTML, without a page around them."""
    return "".join(_section(own, card) for own in card.cards)


def _section(card: Card, whole: Scorecard) -> str:
    tables = [_column_table(name, rows) for name, rows in by_column(card)]
    tables.append(_scale_table(card))
    notes = loss_text(whole).splitlines()
    if len(whole.cards) > 1:
        notes.append(_ONE_EACH)
    parts = [
        element("h1", escape(title_of(card, whole.name))),
        element("p", escape(scale_text(card) + " " + _HOW)),
        element("div", element("output", "", class_="sum"), class_="box"),
        element("div", "".join(tables), class_="card"),
        *(element("p", escape(note), class_="small") for note in notes),
    ]
    return element(
        "section",
        "".join(parts),
        class_="apart" if len(whole.cards) > 1 else None,
        data_start=card.start,
        data_zero=repr(card.zero),
        data_double=repr(card.points_to_double),
    )


_HOW = "Add one line of each column; what is not known adds nothing."
_ONE_EACH = (
    "There is one card for each class against all others; probabilities of all cards "
    "are divided by their sum."
)


def _column_table(name: str, rows: list[CardRow]) -> str:
    head = "".join(element("th", text) for text in ("", "points", "rows", "rate"))
    lines = [element("tr", head)]
    for row in rows:
        cells = (
            # Lines end at a part of a name, if they can.
            element("td", re.sub("([_/=])(?=\\w)", r"\1<wbr>", escape(row.value)))
            + element("td", points_text(row.points), class_="points")
            + element("td", rows_text(row.rows), class_="few")
            + element("td", rate_text(row.rate), class_="few")
        )
        lines.append(element("tr", cells, data_points=str(row.points)))
    body = element("tbody", "".join(lines))
    return element("table", element("caption", escape(name)) + body)


def _scale_table(card: Card) -> str:
    head = element("tr", element("th", "total") + element("th", "probability"))
    lines = [
        element("tr", element("td", str(t)) + element("td", rate_text(p)))
        for t, p in card.scale()
    ]
    caption = element("caption", escape(f"points to probability of {card.target}"))
    return element("table", caption + head + "".join(lines), class_="scale")


# ----------------------------------------------------------------------- text and files


def _lines(card: Card) -> list[list[str]]:
    return [["(start)", "", f"{card.start:d}", "", ""]] + [
        [row.column, row.value, points_text(row.points), rows_text(row.rows), rate]
        for row in card.rows
        for rate in [rate_text(row.rate)]
    ]


_HEADER = ["column", "value", "points", "rows", "rate"]


def text_card(card: Scorecard) -> str:
    """Lay a card out as text."""
    parts = []
    for own in card.cards:
        numeric = [False, False, True, True, True]
        scale = [[str(t), rate_text(p)] for t, p in own.scale()]
        parts += [title_of(own, card.name), scale_text(own)]
        parts.append(text_table(_HEADER, _lines(own), numeric))
        parts.append(text_table(["total", "probability"], scale, [True, True]))
    parts += [_ONE_EACH] if len(card.cards) > 1 else []
    return "\n\n".join([*parts, loss_text(card)])


def markdown_card(card: Scorecard) -> str:
    """Return a card as tables of Markdown."""
    parts = []
    for own in card.cards:
        lines = [list(map(markdown_text, line)) for line in _lines(own)]
        scale = [[str(t), rate_text(p)] for t, p in own.scale()]
        parts += [f"# {markdown_text(title_of(own, card.name))}"]
        parts += [markdown_text(f"{scale_text(own)} {_HOW}")]
        parts += [markdown_table(_HEADER, lines)]
        parts += [markdown_table(["total", "probability"], scale)]
    parts += [_ONE_EACH] if len(card.cards) > 1 else []
    parts += ["  \n".join(map(markdown_text, loss_text(card).splitlines()))]
    return "\n\n".join(parts) + "\n"


def _csv(card: Scorecard) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["target", *_HEADER])
    for own in card.cards:
        writer.writerow(safe_cells([own.target, "(start)", "", own.start, "", ""]))
        for row in own.rows:
            rate = "" if math.isnan(row.rate) else f"{row.rate:.6g}"
            line = [own.target, row.column, row.value, row.points]
            writer.writerow(safe_cells([*line, rows_text(row.rows), rate]))
    return out.getvalue().encode("utf-8")


def _excel(card: Scorecard) -> bytes:
    try:
        book = import_module("openpyxl").Workbook()
    except ImportError:
        raise ImportError(
            "Workbooks need openpyxl, which is not installed. Install it with: "
            "pip install openpyxl"
        ) from None
    book.remove(book.active)
    for k, own in enumerate(card.cards, start=1):
        sheet = book.create_sheet("card" if len(card.cards) == 1 else f"card {k}")
        _fill_sheet(sheet, own, card)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def _fill_sheet(sheet: Any, card: Card, whole: Scorecard) -> None:
    """Write the lines, a column to choose some, and formulas for what they add to."""
    first, last = 6, 5 + len(card.rows)
    # Without `--`, which some programs do not take for a number.
    chosen = f'SUMPRODUCT(C{first}:C{last}*(F{first}:F{last}<>""))'
    double, zero = repr(card.points_to_double), repr(card.zero)
    _put(sheet, 1, [title_of(card, whole.name)])
    _put(sheet, 2, [f"{scale_text(card)} {_HOW} Mark chosen lines with x."])
    _put(sheet, 3, ["total", "", f"={card.start}+{chosen}"], formula=3)
    probability = f"=1/(1+2^(({zero}-C3)/{double}))"
    _put(sheet, 4, ["probability", "", probability], formula=3)
    sheet["C4"].number_format = "0.0%"
    _put(sheet, 5, [*_HEADER, "chosen", "", "total", "probability"])
    for k, row in enumerate(card.rows, start=first):
        rate = None if math.isnan(row.rate) else row.rate
        _put(sheet, k, [row.column, row.value, row.points, row.rows, rate])
        sheet.cell(k, 5).number_format = "0.0%"
    for k, (total, p) in enumerate(card.scale(), start=first):
        _put(sheet, k, [total, p], left=8)
        sheet.cell(k, 9).number_format = "0.0%"
    _put(sheet, max(last, first + len(card.scale())) + 2, [loss_text(whole)])
    sheet.column_dimensions["A"].width = 24
    sheet.column_dimensions["B"].width = 32
    sheet.page_setup.fitToWidth = sheet.page_setup.fitToHeight = 1
    sheet.sheet_properties.pageSetUpPr.fitToPage = True


def _put(
    sheet: Any, row: int, values: list[Any], left: int = 1, formula: int = 0
) -> None:
    """Write cells; no text of the user's is taken for a formula."""
    for k, value in enumerate(values, start=left):
        cell = sheet.cell(row, k, value)
        if isinstance(value, str) and k != formula:
            cell.data_type = "s"


_WRITERS = {
    "html": lambda card: html_card(card).encode("utf-8"),
    "md": lambda card: markdown_card(card).encode("utf-8"),
    "csv": _csv,
    "xlsx": _excel,
}
