"""Formats of exported models, and writing a model in one of them.

A new format is a module with a function that writes the plan of a classifier, a line in
``FORMATS``, tests, and its name in the README and on the pages of exports.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from steelyard._common.files import atomic_write
from steelyard._common.text import did_you_mean
from steelyard.exceptions import ParameterError

if TYPE_CHECKING:
    from steelyard.classifiers.base.estimator import BaseNB


__all__ = ["write"]


class Format(NamedTuple):
    """A format of exported models."""

    name: str
    writer: str
    """Module of this folder, and the function of it that writes a classifier."""

    reads_dates: bool = True
    """Whether it has functions of dates; without, a table has days and parts."""


FORMATS = {
    "sql": Format("SQL", "sql.to_sql"),
    "onnx": Format("ONNX", "onnx.to_onnx", reads_dates=False),
    "pmml": Format("PMML", "pmml.to_pmml", reads_dates=False),
    "js": Format("JavaScript", "source.to_javascript"),
    "py": Format("Python", "source.to_python"),
    "r": Format("R", "r.to_r"),
    "h": Format("C", "c.to_c"),
    "xlsx": Format("Excel", "excel.to_excel"),
}
"""All formats, by the ending of their files in small letters."""

ENDINGS = ", ".join(f".{ending}" for ending in FORMATS)


def write(
    clf: BaseNB,
    path: str | PathLike[str],
    format: str | None = None,
    **options: Any,
) -> None:
    """Write a classifier for other programs, whole or not at all.

    Parameters
    ----------
    clf : BaseNB
        A fitted classifier.
    path : str or path-like
        Where to write. An existing file is replaced in one step.
    format : str, default=None
        One of ``FORMATS``; by default what the name of the file ends with.
    **options
        Options of the format, such as ``dialect`` of SQL.

    Examples
    --------
    >>> import tempfile, pathlib, steelyard as sy
    >>> clf = sy.NaiveBayes().fit([["a"], ["b"]] * 5, ["no", "yes"] * 5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "model.sql"
    ...     write(clf, file, dialect="sqlite", table="answers")
    ...     "answers" in file.read_text(encoding="utf-8")
    True
    """
    kind = format_of(path, format)
    atomic_write(path, content_of(clf, kind, **options))


def format_of(path: str | PathLike[str], format: str | None = None) -> str:
    """Return the format of a file, by default that of its extension."""
    kind = Path(path).suffix.lower().lstrip(".") if format is None else format
    if kind in FORMATS:
        return kind
    if format is None:
        raise ParameterError(
            f"{str(path)!r} does not end in a known format. Use one of {ENDINGS}, or "
            "set `format`."
        )
    raise ParameterError(
        f"There is no format {format!r}.{did_you_mean(format, FORMATS)} Known: "
        f"{', '.join(FORMATS)}."
    )


def content_of(clf: BaseNB, kind: str, **options: Any) -> bytes:
    """Return the bytes of a file of some format."""
    module, _, function = FORMATS[kind].writer.partition(".")
    writer = getattr(import_module(f"steelyard.export.{module}"), function)
    allowed = list(inspect.signature(writer).parameters)[1:]
    for name in options:
        if name not in allowed:
            has = f"It has {', '.join(allowed)}." if allowed else "It has none."
            raise ParameterError(
                f"The format {kind!r} has no option {name!r}."
                f"{did_you_mean(name, allowed)} {has}"
            )
    made = writer(clf, **options)
    if isinstance(made, str):
        return made.encode("utf-8")
    return made if isinstance(made, bytes) else made.SerializeToString()
