"""How measured values become a section: texts, tables and verdicts are templates.

A template is filled in by ``str.format`` with what a section's function measured. Where
it is for ``each`` entry of a list, that entry's values come first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from steelyard.experiments.papers.report import Picture, Section, Verdict
from steelyard.experiments.papers.tables import table

if TYPE_CHECKING:
    from steelyard.experiments.papers.engine import Run

__all__ = ["Values", "lay_out"]

Values = Mapping[str, Any]
"""What was measured for a section, by the names that templates use."""


def lay_out(run: Run, section: Mapping[str, Any], values: Values) -> Section:
    """Fill in the templates of a section.

    Its ``body`` has texts, tables with a ``row`` for each entry, and functions of the
    run that return a text. A picture is drawn from the value ``drawn``.
    """
    title = section["title"]
    pictures = []
    if "picture" in section:
        draw, name, alt = (section["picture"][key] for key in ("draw", "name", "alt"))
        pictures.append(Picture(name, alt, partial(draw, *values["drawn"])))
    verdicts = [
        _verdict(spec, title.partition(":")[0], scope)
        for spec in section.get("verdicts", ())
        for scope in _scopes(spec, values)
    ]
    text = "\n\n".join(_paragraph(run, part, values) for part in section["body"])
    return Section(title.format_map(values), text, tuple(verdicts), tuple(pictures))


def _scopes(spec: Mapping[str, Any], values: Values) -> Iterator[Values]:
    for entry in values[spec["each"]] if "each" in spec else ({},):
        yield {**values, **entry}


def _paragraph(run: Run, part: Any, values: Values) -> str:
    if isinstance(part, str):
        return part.format_map(values)
    if callable(part):
        return str(part(run))
    rows = [part["row"].format_map(scope) for scope in _scopes(part, values)]
    return table(part["header"].format_map(values), rows)


def _verdict(spec: Mapping[str, Any], table: str, values: Values) -> Verdict:
    """Fill in a verdict; ``reached`` names the value that says so."""
    what, published, measured, note = (
        spec.get(key, "").format_map(values)
        for key in ("what", "published", "measured", "note")
    )
    reached = values[spec["reached"]] if "reached" in spec else None
    return Verdict(spec.get("table", table), what, published, measured, reached, note)
