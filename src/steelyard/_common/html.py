"""HTML in which no text of the user's is read as markup."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

__all__ = [
    "element",
    "escape",
    "fill_template",
    "html_table",
    "read_asset",
    "script_json",
]


def element(tag: str, content: str = "", /, **attributes: Any) -> str:
    """Write an element around content that is HTML already.

    Attributes are escaped here. ``class_`` stands for ``class`` and other underscores
    for hyphens; True is an attribute without a value; None, False and "" leave it out.

    Examples
    --------
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

    A column without a name holds bars, and is to the left as well.

    Examples
    --------
    >>> html_table(["a"], [["<"]], 1).partition("<tbody>")[2]
    '<tr><td style="text-align:left">&lt;</td></tr></tbody></table>'
    """
    sides = ["left" if k < texts or not h else "right" for k, h in enumerate(header)]

    def line(tag: str, cells: Sequence[str]) -> str:
        styled = zip(cells, sides, strict=True)
        cells = [element(tag, escape(c), style=f"text-align:{s}") for c, s in styled]
        return element("tr", "".join(cells))

    head = element("thead", line("th", header))
    body = element("tbody", "".join(line("td", row) for row in rows))
    return element("table", head + body)


def script_json(data: Any) -> str:
    r"""Write JSON that cannot end the script element it stands in.

    Examples
    --------
    >>> script_json({"name": "</script>"})
    '{"name":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def read_asset(package: str, name: str) -> str:
    """Return a file of the folder ``assets`` of a package."""
    return (files(package) / "assets" / name).read_text("utf-8")


def fill_template(template: str, parts: Mapping[str, str]) -> str:
    """Put parts, which are HTML, in the places ``@@NAME@@`` of a template.

    Examples
    --------
    >>> fill_template("<p>@@TEXT@@</p>", {"TEXT": "@@TEXT@@"})
    '<p>@@TEXT@@</p>'
    """
    # In one pass: a part may hold what looks like a place.
    pieces = template.split("@@")
    return "".join(parts[p] if k % 2 else p for k, p in enumerate(pieces))
