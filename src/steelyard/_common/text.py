"""Plain text: tables, numbers, bars, suggestions; and plain data for JSON."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

_BLOCKS = " ▏▎▍▌▋▊▉█"


def shortened(text: str, width: int) -> str:
    """Cut a long text in the middle, since long names often begin alike.

    >>> shortened("concave points error of the cell", 14)
    'concave p…cell'
    """
    if len(text) <= width:
        return text
    tail = (width - 1) // 3
    return f"{text[: width - 1 - tail]}…{text[len(text) - tail :]}"


def counted(count: int, word: str) -> str:
    """Write a number of things, one of them without an s.

    >>> counted(1, "data set"), counted(3, "fit")
    ('1 data set', '3 fits')
    """
    return f"{count} {word}{'' if count == 1 else 's'}"


def unlabelled(count: int, target: str) -> str:
    """Return a note on the rows that have no target.

    >>> unlabelled(1, "ill")
    "dropped 1 row without 'ill'"
    """
    return f"dropped {counted(count, 'row')} without {target!r}"


def cell_text(name: str, value: str) -> str:
    """Return a condition on a column in words.

    >>> cell_text("proline", "> 987.5"), cell_text("hue", "(0.8, 1.1]")
    ('proline > 987.5', 'hue in (0.8, 1.1]')
    >>> cell_text("sky", "sunny"), cell_text("age", "(missing)")
    ('sky = sunny', 'age missing')
    """
    if value.startswith(("> ", "≤ ")):
        return f"{name} {value}"
    if value.startswith("(missing"):
        return f"{name} {value[1:-1]}"
    sign = "in" if value.startswith("(") and value.endswith("]") else "="
    return f"{name} {sign} {value}"


def listed(names: Iterable[Any], most: int = 8) -> str:
    """Return the first few names.

    >>> listed("abc"), listed("abc", 2)
    ('a, b, c', 'a, b, …')
    """
    texts = [str(name) for name in names]
    return ", ".join(texts[:most]) + (", …" if len(texts) > most else "")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Suggest the nearest known name, as a sentence to put after an error's first.

    Case does not matter.

    >>> f"There is no fruit 'aple'.{did_you_mean('aple', ['apple', 'pear'])}"
    "There is no fruit 'aple'. Did you mean 'apple'?"
    >>> did_you_mean("plum", ["apple", "pear"])
    ''
    """
    by_lower = {entry.lower(): entry for entry in known}
    close = difflib.get_close_matches(str(name).lower(), by_lower, 1)
    return f" Did you mean {by_lower[close[0]]!r}?" if close else ""


def six_digits(number: float) -> str:
    """Write a number with six significant digits."""
    return f"{number:.6g}"


def day_text(days: float) -> str:
    """Write days since 1970-01-01 as a date, with the time of day if there is one.

    >>> day_text(19727.0), day_text(19727.5)
    ('2024-01-05', '2024-01-05 12:00')
    """
    try:
        moment = datetime(1970, 1, 1) + timedelta(minutes=round(days * 1440))
    except OverflowError:
        return six_digits(days)
    return moment.isoformat(" ", "minutes").removesuffix(" 00:00")


def number(value: float | None, digits: int = 2, *, sign: bool = False) -> str:
    """Write a number with ``digits`` decimals, a dash for a missing one.

    >>> number(0.125), number(0.125, 1, sign=True), number(math.nan), number(None)
    ('0.12', '+0.1', '-', '-')
    """
    if value is None or not math.isfinite(value):
        return "-"
    return f"{value:{'+' if sign else ''}.{digits}f}"


def signed(amount: float) -> str:
    """Write an amount of evidence, none of it without a minus.

    >>> signed(-0.001), signed(-1.25), signed(math.inf)
    ('+0.00', '-1.25', '+inf')
    """
    # Adding zero turns minus zero into zero.
    return f"{round(amount, 2) + 0.0:+.2f}" if math.isfinite(amount) else f"{amount:+}"


def bar(amount: float, largest: float, width: int = 16) -> str:
    """Draw a number as a bar of eighths of characters."""
    if not largest > 0.0 or not math.isfinite(amount):
        return ""
    eighths = round(8 * width * min(abs(amount) / largest, 1.0))
    return "█" * (eighths // 8) + _BLOCKS[eighths % 8].strip()


def sided_bars(amounts: Sequence[float], width: int = 24) -> list[str]:
    """Draw numbers as bars on one axis: to the left if negative, else to the right.

    >>> sided_bars([1.0, -0.5], 6)
    ['  │████', '██│']
    """
    finite = [amount for amount in amounts if math.isfinite(amount)]
    low, high = min([0.0, *finite]), max([0.0, *finite])
    scale, most = width / ((high - low) or 1.0), max(high, -low)
    left = round(-scale * low)
    bars = []
    for amount in amounts:
        drawn = "█" * round(scale * min(abs(amount), most))
        before, after = (drawn, "") if amount < 0.0 else ("", drawn)
        bars.append(f"{before:>{left}}│{after}")
    return bars


def probability_text(p: float) -> str:
    """Write a probability; none is so near to one that it is one.

    >>> probability_text(0.98765), probability_text(0.9999999992)
    ('0.9877', '> 99.9 %')
    """
    text = f"{p:.4g}"
    return "> 99.9 %" if text == "1" else text


def text_table(
    headers: Sequence[str],
    rows: Iterable[Sequence[str]],
    numeric: Sequence[bool],
    *,
    rule: bool = True,
    max_width: int | None = 48,
) -> str:
    """Lay out rows in columns two blanks apart, numeric ones flush right.

    A rule of dashes follows the headers. Cells wider than `max_width` are shortened.

    >>> print(text_table(["name", "size"], [["a", "12"], ["b", "3"]], [False, True]))
    name  size
    ----------
    a       12
    b        3
    """
    cells = [
        [cell if max_width is None else shortened(cell, max_width) for cell in row]
        for row in [headers, *rows]
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in cells
    ]
    dashes = ["-" * max(map(len, lines))] if rule else []
    return "\n".join([lines[0], *dashes, *lines[1:]])


# What begins a formula in a spreadsheet, also after a blank that is dropped.
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")

_MARKDOWN = re.compile(r"[\\\\`*\[\]<>|]|(?<!\w)_|_(?!\w)")


def markdown_text(text: str) -> str:
    r"""Write text so that Markdown shows it as it is, in one line.

    >>> print(markdown_text("a|b <i> [x](y) fit_seconds"))
    a\|b \<i\> \[x\](y) fit_seconds
    """
    return _MARKDOWN.sub(r"\\\g<0>", " ".join(text.split()))


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Lay out a Markdown table: the first column to the left, the others right.

    >>> print(markdown_table(["data set", "NB"], [["iris", "0.95"]]))
    | data set | NB |
    | --- | ---: |
    | iris | 0.95 |
    """
    rule = ["---", *(["---:"] * (len(header) - 1))]
    lines = [header, rule, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def safe_cells(line: Sequence[Any]) -> list[Any]:
    """Put an apostrophe before text that spreadsheets would run as a formula.

    >>> safe_cells(["=1+1", "a=b", -3])
    ["'=1+1", 'a=b', -3]
    """
    return [
        f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULAS) else cell
        for cell in line
    ]


def as_plain(value: Any) -> Any:
    """Turn arrays and scalars into types of JSON; numbers that are not finite: None.

    What has fields, as a ``NamedTuple``, is a mapping by their names.

    >>> import numpy as np
    >>> as_plain({"a": np.array([1.0, -np.inf]), 2: (np.int64(3), "b")})
    {'a': [1.0, None], '2': [3, 'b']}
    """
    import numpy as np  # what small files need is loaded without it

    if isinstance(value, np.ndarray):
        return as_plain(value.tolist())
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {str(key): as_plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_plain(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)


_SIGNS = {"<=": "le ", ">=": "ge ", "≤": "le ", "≥": "ge ", "<": "lt ", ">": "gt "}


def plain_names(texts: Sequence[str]) -> list[str]:
    """Return texts as names of letters, digits and underscores, all different.

    They are returned as they are if that cannot be.

    >>> plain_names(["<=50K", ">50K"]), plain_names(["-1", "1"])
    (['le_50K', 'gt_50K'], ['minus_1', '1'])
    >>> plain_names(["a!", "a?"])
    ['a!', 'a?']
    """
    names = []
    for text in texts:
        for sign, word in _SIGNS.items():
            text = text.replace(sign, word)
        text = re.sub(r"(?<!\w)-(?=\d)", "minus ", text)
        names.append(re.sub(r"\W+", "_", text).strip("_"))
    is_plain = all(names) and len({name.casefold() for name in names}) == len(names)
    return names if is_plain else list(texts)
