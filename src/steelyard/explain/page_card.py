"""Controls of a page, what its readers should know, and the words for it."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard import __version__
from steelyard._common.html import read_asset
from steelyard._common.text import did_you_mean, listed
from steelyard.exceptions import ParameterError
from steelyard.explain.value_tables import density_range
from steelyard.export.plan import Plan
from steelyard.export.reading import side_of
from steelyard.export.source import json_side
from steelyard.model.table_model import NBModel
from steelyard.table.summary.whole_column import NumberRange

if TYPE_CHECKING:
    from steelyard.classifiers.base.estimator import BaseNB

# What a card may say, and of which type it is.
_CARD: dict[str, Any] = {
    "title": str,
    "target": str,
    "language": str,
    "author": str,
    "date": object,
    "use": str,
    "quality": str,
    "order": list,
    "classes": dict,
    "columns": dict,
}
_COLUMN: dict[str, Any] = {
    "label": str,
    "unit": str,
    "description": str,
    "group": str,
    "values": dict,
}
_LANGUAGES = ("en", "de")


@dataclass(frozen=True)
class Words:
    """Sentences of the page in one language, by their English text."""

    language: str = "en"
    direction: str = "ltr"
    texts: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, text: str, /, **parts: Any) -> str:
        """Return a sentence, with what stands in braces filled in."""
        said = self.texts.get(text, text)
        for key, value in parts.items():
            said = said.replace(f"{{{key}}}", str(value))
        return said

    def in_markup(self, template: str) -> str:
        """Fill in the places ``{{sentence}}`` of a template."""
        pieces = template.replace("}}", "{{").split("{{")
        return "".join(escape(self(p)) if k % 2 else p for k, p in enumerate(pieces))


def read_words(language: str | PathLike[str]) -> Words:
    """Return the words of a language: its code, or a TOML file of them.

    A file has ``language``, ``direction`` ("ltr" or "rtl") and a table ``words`` from
    English sentences of the page to others. What it leaves out stays English;
    ``assets/de.toml`` of this folder has all sentences.

    Examples
    --------
    >>> read_words("de")("unknown")
    'unbekannt'
    """
    if language in _LANGUAGES:
        if language == "en":
            return Words()
        found = tomllib.loads(read_asset("steelyard.explain", f"{language}.toml"))
    else:
        if not Path(language).is_file():
            raise ParameterError(
                f"There is no language {str(language)!r}. Give {listed(_LANGUAGES)}, "
                "or a TOML file of words."
            )
        found = _toml(language)
    direction, texts = found.get("direction", "ltr"), found.get("words", {})
    if direction not in ("ltr", "rtl"):
        problem = f"`direction` must be 'ltr' or 'rtl'. Got {direction!r}."
        raise ParameterError(problem)
    if not all(isinstance(text, str) for text in texts.values()):
        raise ParameterError(f"{language}: every word must be a text.")
    return Words(str(found.get("language", "en")), direction, texts)


def _toml(path: str | PathLike[str]) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ParameterError(f"{path} is not TOML: {error}.") from None


def read_card(card: Mapping[str, Any] | str | PathLike[str] | None) -> dict[str, Any]:
    """Return what a card says, checked.

    Parameters
    ----------
    card : mapping or path of a TOML file
        ``title``, ``target``, ``language``; ``author``, ``date``, ``use`` (what the
        model is meant for) and ``quality``, for the line below the title; ``order``, a
        list of columns; ``classes``, from classes to what they are called; and
        ``columns``, from columns to ``label``, ``unit``, ``description``, ``group``
        and ``values`` (from values to what they are called).

    Examples
    --------
    >>> read_card({"author": "A. Meyer", "use": "teaching"})["author"]
    'A. Meyer'
    """
    if card is None:
        return {}
    found = dict(card) if isinstance(card, Mapping) else _toml(card)
    _check(found, _CARD, "A card")
    for name, own in found.get("columns", {}).items():
        if not isinstance(own, Mapping):
            raise ParameterError(f"Column {name!r} of a card must be a table.")
        _check(own, _COLUMN, f"Column {name!r} of a card")
    return found


def _check(found: Mapping[str, Any], allowed: Mapping[str, Any], what: str) -> None:
    for key, value in found.items():
        if key not in allowed:
            hint = did_you_mean(str(key), allowed) or f" It has {listed(allowed)}."
            raise ParameterError(f"{what} has no {key!r}.{hint}")
        if not isinstance(value, allowed[key]):
            kind = allowed[key].__name__
            problem = f"{what}: {key!r} must be a {kind}. Got {value!r}."
            raise ParameterError(problem)


def add_card(data: dict[str, Any], card: Mapping[str, Any], words: Words) -> None:
    """Give columns, values and classes of a page the words of a card."""
    by_name = {own["name"]: own for own in data["attributes"]}
    named = [*card.get("order", ()), *card.get("columns", ())]
    for name in named:
        if name not in by_name or by_name[name]["kind"] == "interaction":
            hint = did_you_mean(str(name), by_name)
            raise ParameterError(f"A card names {name!r}, which is no column.{hint}")
    for name, told in card.get("columns", {}).items():
        own = by_name[name]
        own["title"] = told.get("label", own["title"])
        own |= {k: told[k] for k in ("unit", "description", "group") if k in told}
        if "values" in told and own["kind"] == "category":
            own["shown"] = [told["values"].get(label, label) for label in own["labels"]]
    for own in data["attributes"]:
        if own["kind"] == "interaction":
            sides = [data["attributes"][side["column"]] for side in own["sides"]]
            own["title"] = " × ".join(side["title"] for side in sides)
            own["group"] = sides[0].get("group", "")
    if "order" in card:
        places = {name: k for k, name in enumerate(card["order"])}
        last, names = len(places), [own["name"] for own in data["attributes"]]
        data["order"].sort(key=lambda j: places.get(names[j], last))
    data["ordered"] = "order" in card
    called = card.get("classes", {})
    unknown = [name for name in called if name not in data["classes"]]
    if unknown:
        hint = did_you_mean(unknown[0], data["classes"])
        raise ParameterError(f"A card names class {unknown[0]!r}, not there.{hint}")
    data["classes"] = [called.get(name, name) for name in data["classes"]]


def trust_line(clf: BaseNB, card: Mapping[str, Any], words: Words) -> str:
    """Say how good the model is, of how many rows, from when and whom, and what for."""
    counts = getattr(clf, "counts_", None)
    check = next(iter(clf.training_.quality), None)
    rows = None if counts is None else float(counts.by_class.sum())
    parts = [card.get("quality") or _quality(check, words)]
    if rows is not None:
        parts.append(words("{n} training rows", n=f"{rows:,.10g}"))
    date = card.get("date") or (check or {}).get("date", "")
    parts += [str(date), card.get("author", ""), f"steelyard {__version__}"]
    line = " · ".join(part for part in parts if part)
    return f"{line}. {card['use']}" if "use" in card else line


def _quality(check: Mapping[str, Any] | None, words: Words) -> str:
    """Say how good predictions of held-out rows were, with an interval of 95 %."""
    if not check:
        return ""
    n, p = check["rows"], check["accuracy"]
    # Wilson's interval, of rows as if they were drawn one by one.
    z2 = 1.959964**2 / n
    middle = (p + z2 / 2.0) / (1.0 + z2)
    half = (z2 * (p * (1.0 - p) + z2 / 4.0)) ** 0.5 / (1.0 + z2)
    low, high = (f"{100 * x:.0f}" for x in (middle - half, middle + half))
    text = words(
        "{p} % of new rows right (95 % interval {low} to {high} %)",
        p=f"{100 * p:.0f}",
        low=low,
        high=high,
    )
    if check.get("log_loss") is not None:
        text += words(", log-loss {loss}", loss=f"{check['log_loss']:.3f}")
    return text + words(", {folds}-fold cross-validation", folds=check["folds"])


def control_of(
    model: NBModel, j: int, plan: Plan, where: NumberRange | None
) -> dict[str, Any]:
    """Describe how a column is set."""
    schema, feature = model.schema, model.schema.features[j]
    if feature.sides:
        sides = [vars(json_side(side_of(schema, side))) for side in feature.sides]
        labels = [schema.describe(j, code) for code in range(feature.n_codes)]
        return {"kind": "interaction", "sides": sides, "labels": labels}
    if feature.kind == "categorical":
        category = {"kind": "category", "values": plan.columns[j].values}
        labels = list(map(str, feature.values))
        return {**category, "labels": labels, "missing": feature.missing_code}
    # A column of one number has a slider all the same.
    some_width = where is not None and where.low < where.high
    ends = (where.low, where.high) if where and some_width else _limits(model, j)
    control: dict[str, Any] = {"kind": "number", "cuts": list(feature.edges)}
    control |= dict(zip(("low", "high"), ends, strict=True))
    if where is not None and some_width:
        control |= {"whole": where.is_whole, "quartiles": list(where.quartiles)}
        control["histogram"] = list(where.histogram)
    if feature.is_fine or not feature.is_coded:
        control["tries"] = _tries(model, j, where)
    else:
        codes = range(1, len(feature.edges) + 2)
        control["edges"] = list(feature.edges)
        control["labels"] = [feature.describe(code) for code in codes]
        control["missing"] = feature.missing_code
    return control


def _tries(model: NBModel, j: int, where: NumberRange | None) -> dict[str, Any]:
    """Return the numbers that a search for changes tries: ends and step of a density.

    Between cut points it tries a number in each interval.
    """
    feature, grid = model.schema.features[j], None
    known = None if where is None else [where.low, where.high]
    if not feature.is_coded:
        grid = [*(known or density_range(model.density(j))), feature.step]
    return {"grid": grid, "range": known}


def _limits(model: NBModel, j: int) -> tuple[float, float]:
    """Where a slider begins and ends whose column's range no file has kept."""
    feature, wide = model.schema.features[j], 0.0
    edges = np.array(feature.edges if feature.edges else [0.0])
    if not feature.is_coded:
        edges = np.array(density_range(model.density(j)))
    else:
        wide = float(np.ptp(edges)) / max(1, len(edges) - 1)
        wide = wide or max(abs(float(edges[0])), 1.0)
    low, high = float(edges.min()) - wide, float(edges.max()) + wide
    return (low, high) if math.isfinite(high - low) else (-1e308, 1e308)
