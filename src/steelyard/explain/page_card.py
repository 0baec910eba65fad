"""What readers of a page should know, and the words of its language."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard import __version__
from steelyard._common.html import read_asset
from steelyard._common.text import did_you_mean, listed
from steelyard.exceptions import ParameterError
from steelyard.persistence.files import checksum_of

if TYPE_CHECKING:
    from steelyard.classifiers.base.estimator import BaseNB

# Entries of a card, and their types.
_CARD: dict[str, Any] = {
    "title": str,
    "target": str,
    "language": str,
    "author": str,
    "date": object,
    "use": str,
    "quality": str,
    "signatures": list,
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
    "reason": str,
}
_LANGUAGES = ("en", "de")


@dataclass(frozen=True)
class Words:
    """Sentences of the page in one language, by their English text."""

    language: str = "en"
    direction: str = "ltr"
    texts: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, text: str, /, **parts: Any) -> str:
        """Return a sentence, with its fields in braces filled in."""
        sentence = self.texts.get(text, text)
        for key, value in parts.items():
            sentence = sentence.replace(f"{{{key}}}", str(value))
        return sentence

    def in_markup(self, template: str) -> str:
        """Fill in the fields ``{{sentence}}`` of a template."""
        pieces = template.replace("}}", "{{").split("{{")
        return "".join(escape(self(p)) if k % 2 else p for k, p in enumerate(pieces))


def read_words(language: str | PathLike[str]) -> Words:
    """Return the words of a language: its code, or a TOML file of them.

    A file has ``language``, ``direction`` ("ltr" or "rtl") and a table ``words`` from
    English sentences of the page to others. Sentences that it lacks stay English;
    ``assets/de.toml`` of this folder has all sentences.

    >>> read_words("de")("unknown")
    'unbekannt'
    """
    if language in _LANGUAGES:
        if language == "en":
            return Words()
        table = tomllib.loads(read_asset("steelyard.explain", f"{language}.toml"))
    else:
        if not Path(language).is_file():
            raise ParameterError(
                f"There is no language {str(language)!r}. Give {listed(_LANGUAGES)}, "
                "or a TOML file of words."
            )
        table = _toml(language)
    direction, texts = table.get("direction", "ltr"), table.get("words", {})
    if direction not in ("ltr", "rtl"):
        problem = f"`direction` must be 'ltr' or 'rtl'. Got {direction!r}."
        raise ParameterError(problem)
    if not all(isinstance(text, str) for text in texts.values()):
        raise ParameterError(f"{language}: every word must be a text.")
    return Words(str(table.get("language", "en")), direction, texts)


def _toml(path: str | PathLike[str]) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ParameterError(f"{path} is not TOML: {error}.") from None


def read_card(card: Mapping[str, Any] | str | PathLike[str] | None) -> dict[str, Any]:
    """Return the entries of a card, checked.

    Parameters
    ----------
    card : mapping or path of a TOML file
        ``title``, ``target``, ``language``; ``author``, ``date``, ``use`` (what the
        model is meant for) and ``quality``, for the line below the title;
        ``signatures``, who signs; ``order``, a list of columns; ``classes``, from
        classes to what they are called; and ``columns``, from columns to ``label``,
        ``unit``, ``description``, ``group``, ``values`` (from values to what they are
        called) and ``reason`` (what people are told if the column counts against them).

    Examples
    --------
    >>> read_card({"author": "A. Meyer", "use": "teaching"})["author"]
    'A. Meyer'
    """
    if card is None:
        return {}
    entries = dict(card) if isinstance(card, Mapping) else _toml(card)
    _check(entries, _CARD, "A card")
    for name, column in entries.get("columns", {}).items():
        if not isinstance(column, Mapping):
            raise ParameterError(f"Column {name!r} of a card must be a table.")
        _check(column, _COLUMN, f"Column {name!r} of a card")
    return entries


def _check(entries: Mapping[str, Any], allowed: Mapping[str, Any], what: str) -> None:
    for key, value in entries.items():
        if key not in allowed:
            hint = did_you_mean(str(key), allowed) or f" It has {listed(allowed)}."
            raise ParameterError(f"{what} has no {key!r}.{hint}")
        if not isinstance(value, allowed[key]):
            kind = allowed[key].__name__
            problem = f"{what}: {key!r} must be a {kind}. Got {value!r}."
            raise ParameterError(problem)


def add_card(data: dict[str, Any], card: Mapping[str, Any]) -> None:
    """Give columns, values and classes of a page the words of a card."""
    attributes = data["attributes"]
    by_name = {attribute["name"]: attribute for attribute in attributes}
    named = [*card.get("order", ()), *card.get("columns", ())]
    for name in named:
        if name not in by_name or by_name[name]["kind"] == "interaction":
            hint = did_you_mean(str(name), by_name)
            raise ParameterError(f"A card names {name!r}, which is not a column.{hint}")
    for name, column in card.get("columns", {}).items():
        shown = by_name[name]
        shown["title"] = column.get("label", shown["title"])
        shown |= {k: column[k] for k in ("unit", "description", "group") if k in column}
        if "values" in column and shown["kind"] == "category":
            titles = column["values"]
            shown["shown"] = [titles.get(label, label) for label in shown["labels"]]
    for attribute in attributes:
        if attribute["kind"] == "interaction":
            sides = [attributes[side["column"]] for side in attribute["sides"]]
            attribute["title"] = " × ".join(side["title"] for side in sides)
            attribute["group"] = sides[0].get("group", "")
    if "order" in card:
        ranks = {name: k for k, name in enumerate(card["order"])}
        data["order"].sort(key=lambda j: ranks.get(attributes[j]["name"], len(ranks)))
    data["ordered"] = "order" in card
    titles = card.get("classes", {})
    others = [name for name in titles if name not in data["classes"]]
    if others:
        hint = did_you_mean(others[0], data["classes"])
        raise ParameterError(f"A card names class {others[0]!r}, not there.{hint}")
    data["classes"] = [titles.get(name, name) for name in data["classes"]]


def trust_line(clf: BaseNB, card: Mapping[str, Any], words: Words) -> str:
    """Return a line on quality, training rows, date, author and use of a model."""
    about = *_provenance(clf, card, words), card.get("author", "")
    line = " · ".join(filter(None, (*about, f"steelyard {__version__}")))
    return f"{line}. {card['use']}" if "use" in card else line


def _provenance(
    clf: BaseNB, card: Mapping[str, Any], words: Words
) -> tuple[str, str, str]:
    """Return quality, number of training rows, and date of a model, as texts."""
    check, rows = next(iter(clf.training_.quality), {}), ""
    if hasattr(clf, "counts_"):
        n = float(clf.counts_.by_class.sum())
        rows = words("{n} training rows", n=f"{n:,.10g}")
    date = str(card.get("date") or check.get("date", ""))
    return card.get("quality") or _quality(check, words), rows, date


def document(
    clf: BaseNB, card: Mapping[str, Any], words: Words | None = None
) -> list[tuple[str, str]]:
    """Return what a model is, for those who sign it: names of entries, and texts.

    >>> import steelyard as sy
    >>> clf = sy.NaiveBayes().fit([["a"], ["b"]], ["yes", "no"])
    >>> dict(document(clf, {"author": "A. Meyer"}))["Author"]
    'A. Meyer'
    """
    words = words or Words()
    quality, rows, date = _provenance(clf, card, words)
    reading = clf.training_.reading
    data = [reading.get("file", ""), rows]
    data += [f"SHA-256 {reading['sha256']}"] if "sha256" in reading else []
    entries = {
        "Author": card.get("author", ""),
        "Date": date,
        "Intended use": card.get("use", ""),
        "Data": ", ".join(filter(None, data)),
        "Validation": quality,
        "Model": f"{type(clf).__name__}, steelyard {__version__}",
        "Model checksum": checksum_of(clf),
        "Edits": str(len(getattr(clf, "edits_", ())) or "none"),
    }
    return [(words(name), text) for name, text in entries.items() if text]


def _quality(check: Mapping[str, Any], words: Words) -> str:
    """Describe the accuracy on held-out rows, with a 95 % interval."""
    if not check:
        return ""
    n, p = check["rows"], check["accuracy"]
    # Wilson's interval, as if rows were drawn one by one.
    z2 = 1.959964**2 / n
    middle = (p + z2 / 2.0) / (1.0 + z2)
    half = (z2 * (p * (1.0 - p) + z2 / 4.0)) ** 0.5 / (1.0 + z2)
    low, high = (f"{100 * x:.0f}" for x in (middle - half, middle + half))
    text = words(
        "{p} % of held-out rows correct (95 % interval {low} to {high} %)",
        p=f"{100 * p:.0f}",
        low=low,
        high=high,
    )
    if check.get("log_loss") is not None:
        text += words(", log-loss {loss}", loss=f"{check['log_loss']:.3f}")
    return text + words(", {folds}-fold cross-validation", folds=check["folds"])
