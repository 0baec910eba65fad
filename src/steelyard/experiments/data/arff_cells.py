"""Cells of ARFF files: quotes, escapes, numbers, and what is wrong with a file."""

from __future__ import annotations

import re

from steelyard.exceptions import TableError

__all__ = ["QUOTED", "ArffError", "excerpt", "parse_cell", "parse_number", "unquoted"]

QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""

_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|[0-3][0-7]{2}|[0-7]{1,2}|.)")
_ESCAPED = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))


class ArffError(TableError):
    """An ARFF file could not be read.

    Parameters
    ----------
    path : str
        The file.
    line : int or None
        The line, counted from 1; None where the whole file is at fault.
    problem : str
        What is wrong and what to do about it.
    """

    def __init__(self, path: str, line: int | None, problem: str) -> None:
        self.path = path
        self.line = line
        self.problem = problem
        super().__init__(path, line, problem)

    def __str__(self) -> str:
        where = self.path if self.line is None else f"{self.path}, line {self.line}"
        return f"{where}: {self.problem}"


def parse_cell(token: str) -> str | None:
    """Return the text of a cell as written, None for an unquoted ``?``."""
    return None if token == "?" else unquoted(token)


def unquoted(token: str) -> str:
    """Remove quotes and resolve the escapes between them."""
    if token[:1] not in ("'", '"'):
        return token
    inner = token[1:-1]
    return _ESCAPE.sub(_resolve, inner) if "\\" in inner else inner


def _resolve(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] == "u" and len(code) > 1:
        return chr(int(code[1:], 16))
    if code[0] in "01234567":
        return chr(int(code, 8))
    return _ESCAPED.get(code, code)


def parse_number(text: str) -> float | None:
    """Return a number, None where the text is not one."""
    # float() would read 1_000 as a thousand.
    if "_" in text:
        return None
    try:
        return float(text)
    except ValueError:
        return None


def excerpt(text: str, width: int = 40) -> str:
    """Quote the beginning of a text."""
    return repr(text if len(text) <= width else text[: width - 3] + "...")
