"""HTML in which no text of the user's is read as markup."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any

__all__ = [
    "Markup",
    "content_policy",
    "element",
    "escape",
    "fill_template",
    "html_bars",
    "html_list",
    "html_table",
    "read_asset",
    "script_json",
]


# Room for a text beside the longest bar, as a share of its axis.
_ROOM = 0.3

# For and against, as in the pictures.
_FOR, _AGAINST = "#2a7f62", "#c0543c"


class Markup(str):
    """A text that is HTML already, and is not escaped in a table."""


def element(tag: str, content: str = "", /, **attributes: Any) -> str:
    """Write an element around content that is HTML already.

    Attributes are escaped here. ``class_`` is ``class`` and other underscores
    for hyphens; True is an attribute without a value; None, False and "" leave it out.

    >>> element("td", escape("1 < 2"), class_="best", title='"so"', hidden=False)
    '<td class="best" title="&quot;so&quot;">1 &lt; 2</td>'
    """
    written = []
    for key, value in attributes.items():
        name = key.rstrip("_").replace("_", "-")
        if value is True:
            written.append(f" {name}")
        elif value is not None and value is not False and value != "":
            written.append(f' {name}="{escape(str(value))}"')
    return f"<{tag}{''.join(written)}>{content}</{tag}>"


def html_table(header: Sequence[str], rows: Sequence[Sequence[str]], texts: int) -> str:
    """Write a table of texts: the first columns to the left, numbers to the right.

    A column without a name contains bars, and is to the left as well.

    >>> html_table(["a"], [["<"]], 1).partition("<tbody>")[2]
    '<tr><td style="text-align:left">&lt;</td></tr></tbody></table>'
    """
    sides = ["left" if k < texts or not h else "right" for k, h in enumerate(header)]

    def line(tag: str, cells: Sequence[str]) -> str:
        styled = zip(cells, sides, strict=True)
        made = [
            element(
                tag if cell else "td",  # a header without text is none
                cell if isinstance(cell, Markup) else escape(cell),
                style=f"text-align:{side}",
            )
            for cell, side in styled
        ]
        return element("tr", "".join(made))

    head = element("thead", line("th", header))
    body = element("tbody", "".join(line("td", row) for row in rows))
    return element("table", head + body)


def html_bars(
    amounts: Sequence[float], texts: Sequence[str] | None = None
) -> list[Markup]:
    """Draw numbers as bars on one axis: red to the left of it, green to the right.

    Texts are at the ends of the bars, for which there is room on both sides.

    >>> "#2a7f62 25%" in html_bars([3.0, -1.0])[0]
    True
    """
    finite = [amount for amount in amounts if math.isfinite(amount)]
    low, high = min([0.0, *finite]), max([0.0, *finite])
    if texts is not None:
        room = _ROOM * ((high - low) or 1.0)
        low, high = low - room * (low < 0.0), high + room
    scale = 100.0 / ((high - low) or 1.0)

    def place(amount: float) -> str:
        return f"{scale * (min(max(amount, low), high) - low):.3g}%"

    bars = []
    for k, amount in enumerate(amounts):
        # Both are visible on light and on dark paper.
        colour = _AGAINST if amount < 0.0 else _FOR
        start, end = place(min(amount, 0.0)), place(max(amount, 0.0))
        none = "transparent"
        stops = f"{none} {start},{colour} {start},{colour} {end},{none} {end}"
        axis = f"linear-gradient(currentColor,currentColor) {place(0.0)} 0/1px 100%"
        fill = f"background:{axis} no-repeat,linear-gradient(90deg,{stops})"
        style = f"width:14em;height:.9em;margin-left:.8em;{fill}"
        if texts is None:
            bars.append(Markup(element("div", "", style=style, aria_hidden="true")))
            continue
        side = f"padding-left:calc({end} + .3em);text-align:left"
        if amount < 0.0:
            side = f"padding-right:calc(100% - {start} + .3em);text-align:right"
        text = element("span", escape(texts[k]), style="white-space:nowrap")
        style = style.replace("14em;height:.9em", "20em;line-height:.9em")
        style = f"{style};box-sizing:border-box;{side}"
        bars.append(Markup(element("div", text, style=style)))
    return bars


def html_list(title: str, lines: Sequence[str], **attributes: Any) -> str:
    """Write lines of text that open under a title; nothing if there are none.

    >>> html_list("Noticed", ["1 < 2"])
    '<details><summary>Noticed</summary><ul><li>1 &lt; 2</li></ul></details>'
    """
    if not lines:
        return ""
    items = "".join(element("li", escape(line)) for line in lines)
    summary = element("summary", escape(title))
    return element("details", summary + element("ul", items), **attributes)


def script_json(data: Any) -> str:
    r"""Write JSON that cannot end the script element around it.

    >>> script_json({"name": "</script>"})
    '{"name":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def content_policy(style: str, scripts: Sequence[str]) -> str:
    """Allow a page the given style and scripts, by their hashes, and nothing else."""

    def named(text: str) -> str:
        return f"'sha256-{b64encode(sha256(text.encode('utf-8')).digest()).decode()}'"

    allowed = f"style-src {named(style)}; script-src {' '.join(map(named, scripts))}"
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


def read_asset(package: str, name: str) -> str:
    """Return a file of the folder ``assets`` of a package."""
    return (files(package) / "assets" / name).read_text("utf-8")


def fill_template(template: str, parts: Mapping[str, str]) -> str:
    """Put parts, which are HTML, in the places ``@@NAME@@`` of a template.

    >>> fill_template("<p>@@TEXT@@</p>", {"TEXT": "@@TEXT@@"})
    '<p>@@TEXT@@</p>'
    """
    # In one pass: a part may contain what looks like a place.
    pieces = template.split("@@")
    return "".join(parts[p] if k % 2 else p for k, p in enumerate(pieces))
