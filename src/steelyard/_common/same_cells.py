"""Numbers and the texts of numbers as one category: ``1``, ``1.0`` and ``"1"``.

The same file holds text to one reader and numbers to another. With the standard library
alone: exported models hold this text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?", re.ASCII)
_TRUTH = {"true": True, "false": False}


def number_in(text: str) -> float | None:
    """Return the number or truth value that a text states, None if it is neither.

    Examples
    --------
    >>> number_in("07"), number_in("1.50"), number_in("TRUE"), number_in("seven")
    (7, 1.5, True, None)
    """
    text = text.strip()
    if not _NUMBER.fullmatch(text):
        return _TRUTH.get(text.lower())
    number = float(text)
    if not math.isfinite(number):
        return None
    return int(text) if text.lstrip("+-").isdigit() else number


def texts_by_number(values: Iterable[str]) -> dict[float, str]:
    """Return which text stands for each number, where it is clear which.

    Of several the plain one does: ``"1"`` rather than ``"01"``.

    Examples
    --------
    >>> texts_by_number(["01", "1", "2.0", "003", "03", "red"])
    {1: '1', 2.0: '2.0'}
    """
    found: dict[float, list[str]] = {}
    for text in values:
        number = number_in(text)
        if number is not None:
            found.setdefault(number, []).append(text)
    for number, texts in found.items():
        plain = str(int(number)) if int(number) == number else repr(number)
        found[number] = [plain] if plain in texts else texts
    return {number: texts[0] for number, texts in found.items() if len(texts) == 1}
