"""The interactive nomogram: a fitted model as one web page."""

from __future__ import annotations

import html
import json
import math
import zlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard._common.files import atomic_write
from steelyard._common.html import (
    content_policy,
    element,
    fill_template,
    html_list,
    read_asset,
    script_json,
)
from steelyard._common.text import plain_names
from steelyard.exceptions import ParameterError
from steelyard.explain.overall import explain_global
from steelyard.explain.page_card import (
    Words,
    add_card,
    document,
    read_card,
    read_words,
    trust_line,
)
from steelyard.explain.row_cells import raw_values
from steelyard.explain.shared import in_words, model_of
from steelyard.explain.value_tables import density_range, range_by_column
from steelyard.export.plan import Plan, node_data
from steelyard.export.reading import plan_of, side_of
from steelyard.export.source import is_large, json_plan, json_side, scoring_script
from steelyard.model.base import Model
from steelyard.model.edits import Edit
from steelyard.model.table_model import NBModel
from steelyard.notices.curves import opposed
from steelyard.notices.notice import in_lines
from steelyard.proba.counts import Counts
from steelyard.table.frames import as_table
from steelyard.table.labels import known_labels, labels_of_rows
from steelyard.table.ranges import NumberRange
from steelyard.table.schema import TableSchema

if TYPE_CHECKING:
    from steelyard.classifiers.base.estimator import BaseNB

# Kinds of models whose posterior the page's script computes.
_KINDS = ("sum", "mixture", "pairs")

# Scripts of the page, which follow each other in one element.
_SCRIPTS = "controls charts spread sure changes cases page".split()
_EDITING = [*_SCRIPTS[:-1], "edit", "page"]

_MAX_CASES = 5000

# An axis is stretched if the middle half of the rows has less than this share of it.
_MIN_MIDDLE_SHARE, _MAX_KNOTS = 0.15, 40

# Of the tables of intervals; larger ones, of many classes, are left out.
_MAX_BYTES = 400_000


def page_text(
    clf: BaseNB,
    title: str | None = None,
    target: str | None = None,
    card: Mapping[str, Any] | str | PathLike[str] | None = None,
    rows: Any = None,
    language: str | PathLike[str] | None = None,
    steps: Mapping[str, Any] | None = None,
) -> str:
    """Return the HTML of a page in which values can be set and seen to count.

    It has the numbers of the model, as exact as they are, and computes the posterior as
    ``predict_proba`` does. It is one file and loads nothing. Its address keeps the
    values that are set, after the ``#``. Arguments are those of ``clf.page``: a title
    comes before that of the card, ``read_card`` and ``read_words`` list what files may
    contain, and ``steps`` are what can be edited, from ``edit_steps``.
    """
    card = read_card(card)
    words = read_words(language or card.get("language", "en"))
    data = page_data(clf, target or card.get("target"), words)
    add_card(data, card)
    if rows is not None:
        data["rows"] = _cases(clf, rows)
    scripts = _SCRIPTS
    if steps is not None:
        data["steps"], scripts = steps, _EDITING
    asset = partial(read_asset, "steelyard.explain")
    heading = title or card.get("title") or clf.training_.reading.get("title")
    heading = heading or _question(data, words)
    style, unpack = _compact(asset("page.css")), _compact(asset("unpack.js"))
    code = _compact("".join([scoring_script(), *(asset(f"{s}.js") for s in scripts)]))
    parts = {
        "LANG": html.escape(words.language),
        "DIR": words.direction,
        "TITLE": html.escape(heading),
        "TRUST": html.escape(trust_line(clf, card, words)),
        "ABOUT": _about(clf, data, card, words),
        "POLICY": content_policy(style, [unpack, code]),
        "STYLE": style,
        "DATA": script_json(data),
        "CODE": _packed(code),
        "UNPACK": unpack,
    }
    return fill_template(words.in_markup(asset("page.html")), parts)


@dataclass(frozen=True, repr=False)
class Page:
    """A page of a model, which a notebook shows in a frame."""

    text: str
    height: int = 720

    def save(self, path: str | PathLike[str]) -> None:
        """Write the page; an existing file is replaced in one step."""
        # Half a surrogate pair is no text; data have it escaped.
        atomic_write(path, self.text.encode("utf-8", "replace"))

    def _repr_html_(self) -> str:
        """Show the page in a frame without access to anything outside it."""
        return element(
            "iframe",
            srcdoc=self.text,
            sandbox="allow-scripts allow-downloads",
            title="page of a model",
            style=f"width:100%;height:{self.height}px;border:0",
        )


def _compact(text: str) -> str:
    """Drop indentation and comments of a script, in which no text spans lines."""
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))


def _packed(text: str) -> str:
    """Compress a script to a third of its length; ``unpack.js`` runs it."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return b64encode(packer.compress(text.encode()) + packer.flush()).decode("ascii")


def _question(data: dict[str, Any], words: Words) -> str:
    """Return the question that the page answers."""
    what, classes = data["target"], data["classes"]
    if len(classes) == 2:
        either = words("{a} or {b}?", a=classes[0], b=classes[1])
        return f"{what}: " * (what is not None) + either
    return words("Which {target}?", target=what or words("class"))


def _about(
    clf: BaseNB, data: dict[str, Any], card: Mapping[str, Any], words: Words
) -> str:
    """Describe how the model adds up, notices of its training rows, and edits."""
    n_columns = sum(
        data["attributes"][j]["kind"] != "interaction" for j in data["order"]
    )
    counts = getattr(clf, "counts_", None)
    method, rows = type(clf).__name__, ""
    if counts is not None:
        rows = words(" of {n} rows", n=f"{float(counts.by_class.sum()):,.10g}")
    learned = words("{method}, learned from {n} columns", method=method, n=n_columns)
    notices = clf.notices_
    aside = [notice for notice in notices if notice.done == "dropped"]
    lines = in_lines([notice for notice in notices if notice not in aside])
    n_aside = len(clf.encoder_.schema_.left_out)
    edits = [str(edit) for edit in getattr(clf, "edits_", ())]
    documented = [f"{name}: {text}" for name, text in document(clf, card, words)]
    documented += [f"{who}: {'_' * 30}" for who in card.get("signatures", ())]
    # Printed open if somebody wrote a card.
    name_of_card = "document" if card else "provenance"
    folded = (
        (words("How it adds up"), [f"{learned}{rows}.", words(data["note"])], "how"),
        (words("Noticed in the training rows: {n}", n=len(lines)), lines, "noticed"),
        (words("Edited by hand: {n}", n=len(edits)), edits, "edited"),
        (words("Model card"), documented, name_of_card),
        (words("Dropped columns: {n}", n=n_aside), in_lines(aside), "left-out"),
    )
    return " ".join(html_list(title, text, id=k) for title, text, k in folded)


def _cases(clf: BaseNB, rows: Any) -> dict[str, Any]:
    """Return rows as the page takes them, and the positions of their classes."""
    X, y = rows if isinstance(rows, tuple) else (rows, None)
    table = as_table(X, clf)
    if table.n_rows > _MAX_CASES:
        raise ParameterError(
            f"A page takes at most {_MAX_CASES} rows. Got {table.n_rows}: give some "
            "of them, such as X.sample(200)."
        )
    schema, by_column = model_of(clf).schema, []
    for feature, column in zip(
        schema.features, clf.encoder_.match(table), strict=False
    ):
        cells = raw_values(feature, column)
        if is_large(feature.values):
            cells = [None if cell is None else str(cell) for cell in cells]
        by_column.append(cells)
    of_interactions = [None] * (len(schema) - len(by_column))
    cases: dict[str, Any] = {
        "cells": [[*row, *of_interactions] for row in zip(*by_column, strict=True)]
    }
    if y is not None:
        y = labels_of_rows(y, table.n_rows)
        cases["labels"] = known_labels(y, clf.classes_).tolist()
    return cases


def page_data(
    clf: BaseNB, target: str | None = None, words: Words | None = None
) -> dict[str, Any]:
    """Return what the page computes with: attributes, and a tree of models."""
    model = model_of(clf)
    if model.kind not in _KINDS:
        raise ParameterError(
            f"{type(clf).__name__} cannot become a page. {model.note()} Use "
            "explain_local(X) for single rows, or a classifier that a page can hold, "
            "such as NaiveBayes, WeightedNB or RegularizedNB."
        )
    plan = json_plan(plan_of(clf))
    plain = model.first_sum()
    assert plain is not None
    whole = explain_global(clf)
    ranges = range_by_column(model.schema, clf.training_.ranges)
    columns = enumerate(zip(plan.attributes, ranges, strict=True))
    titles: Mapping[Any, Any] = clf.training_.labels
    attributes = [
        {"name": name, **_control(plain, j, plan, where)}
        for j, (name, where) in columns
    ]
    shown = in_words(plan.attributes, titles)
    for attribute, title in zip(attributes, shown, strict=True):
        attribute["title"] = title
        if attribute["name"] in whole.constraints:
            shape = whole.constraints[attribute["name"]]
            attribute["shape"] = shape.split(" for ", 1)
    for attribute, column in zip(attributes, plan.columns, strict=False):
        if column.part == "day":
            others = ((j, c) for j, c in enumerate(plan.columns) if c is not column)
            attribute["date"] = {c.part: j for j, c in others if c.date == column.date}
    left_out, name = model.schema.left_out, getattr(clf, "target_name_", None)
    for j, table in enumerate(whole.tables):
        if table.sides and table.counts is not None:
            # Codes of cells without training rows; weights of rows may be zero.
            attributes[j]["empty"] = np.flatnonzero(~table.counts.any(axis=1)).tolist()
    counts = getattr(clf, "counts_", None)
    _add_shares(attributes, plain.schema, counts)
    for j, same in () if counts is None else opposed(plain, counts):
        attributes[j]["opposed"] = [shown[k] for k in same]
    _add_edits(attributes, getattr(clf, "edits_", ()))
    words = words or Words()
    classes = [str(c) for c in model.classes.tolist()]
    about = clf.training_.reading.get("positive")
    return {
        "lang": words.language,
        "words": dict(words.texts),
        "note": model.note(),
        "target": target or titles.get(name, name),
        "classes": classes,
        "fields": plain_names(classes),
        "positive": classes.index(about) if about in classes else None,
        "order": [j for j in whole.order.tolist() if j not in left_out],
        "rates": None if whole.base_rates is None else whole.base_rates.tolist(),
        "attributes": attributes,
        "parts": _part_names(model, ""),
        "model": node_data(plan.root),
        "sure": _sureness(clf, plain.schema),
    }


def _control(
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
        control["flag"] = where.is_flag
        if _is_skewed(where) and not plan.columns[j].part:
            control["knots"] = _knots(where, feature.edges)
    if feature.is_fine or not feature.is_coded:
        control["tries"] = _tries(model, j, where)
    else:
        codes = range(1, len(feature.edges) + 2)
        control["edges"] = list(feature.edges)
        control["labels"] = [feature.describe(code) for code in codes]
        control["missing"] = feature.missing_code
    return control


def _is_skewed(where: NumberRange) -> bool:
    """Whether the middle half of the numbers is on a small piece of a linear axis."""
    if not where.quartiles or (where.is_whole and where.high - where.low <= 20.0):
        return False
    low, _, high = where.quartiles
    return high - low < _MIN_MIDDLE_SHARE * (where.high - where.low)


def _knots(where: NumberRange, edges: Sequence[float]) -> list[float]:
    """Return numbers that are equally far from each other on the axis of a column.

    Bins of the model have about equal room, so that every step of a curve can be read
    and clicked; without bins, quarters of the rows have.
    """
    inner = sorted({x for x in edges if where.low < x < where.high})
    if len(inner) < 4:
        inner = sorted({x for x in where.quartiles if where.low < x < where.high})
    places = np.linspace(0, len(inner) - 1, min(len(inner), _MAX_KNOTS))
    return [where.low, *(inner[k] for k in places.astype(int).tolist()), where.high]


def _tries(model: NBModel, j: int, where: NumberRange | None) -> dict[str, Any]:
    """Return the numbers that a search for changes tries: ends and step of a density.

    Of bins it tries a number in each.
    """
    feature, grid = model.schema.features[j], None
    ends = None if where is None else [where.low, where.high]
    if not feature.is_coded:
        grid = [*(ends or density_range(model.density(j))), feature.step]
    return {"grid": grid, "range": ends}


def _limits(model: NBModel, j: int) -> tuple[float, float]:
    """Return the ends of a slider of a column without a range of training rows."""
    feature, wide = model.schema.features[j], 0.0
    edges = np.array(feature.edges if feature.edges else [0.0])
    if not feature.is_coded:
        edges = np.array(density_range(model.density(j)))
    else:
        wide = float(np.ptp(edges)) / max(1, len(edges) - 1)
        wide = wide or max(abs(float(edges[0])), 1.0)
    low, high = float(edges.min()) - wide, float(edges.max()) + wide
    return (low, high) if math.isfinite(high - low) else (-1e308, 1e308)


def _add_shares(
    attributes: list[dict[str, Any]], schema: TableSchema, counts: Counts | None
) -> None:
    """Add the share of each category, or piece of an axis, of the observed cells."""
    if counts is None or counts.schema != schema:
        return
    for j, attribute in enumerate(attributes):
        first, feature = schema.offsets[j] + 1, schema.features[j]
        if attribute["kind"] == "category":
            n_bins, key = len(attribute["values"]), "shares"
        elif "knots" in attribute and {*attribute["knots"][1:-1]} <= {*feature.edges}:
            n_bins, key = len(feature.edges) + 1, "bars"
        else:
            continue
        rows = counts.by_code[first : first + n_bins].sum(axis=1)
        if key == "bars":
            starts = np.searchsorted(feature.edges, attribute["knots"][1:-1]) + 1
            rows = np.add.reduceat(rows, [0, *starts.tolist()])
        if rows.sum() > 0.0:
            attribute[key] = (rows / rows.sum()).tolist()


def _sureness(clf: BaseNB, schema: TableSchema) -> dict[str, Any] | None:
    """Return what the page needs for intervals; None if a model has none."""
    uncertainty = getattr(clf, "uncertainty_", None)
    if uncertainty is None or hasattr(clf, "edits_"):
        return None
    variances = uncertainty.variances.astype("<f4")
    if variances.nbytes > _MAX_BYTES:
        return None
    features = []
    for j, feature in enumerate(schema.features):
        start = int(schema.offsets[j])
        place: dict[str, Any] = {"column": j, "missing": feature.missing_code}
        if feature.sides:
            place = {"interaction": j}
        elif feature.kind != "categorical":
            place["edges"] = list(feature.edges)
        features.append({"start": start, **place})
    return {
        "features": features,
        "base": uncertainty.base.tolist(),
        "variances": b64encode(variances.tobytes()).decode("ascii"),
        # 90 % intervals, as in predict_interval.
        "z": 1.6448536269514722,
    }


def _add_edits(attributes: list[dict[str, Any]], edits: Sequence[Edit]) -> None:
    """Add to each attribute what was changed by hand, and in which range."""
    by_name = {attribute["name"]: attribute for attribute in attributes}
    for edit in edits:
        if attribute := by_name.get(edit.attribute):
            asked = json.loads(edit.asked)
            ends = {key: asked[key] for key in ("from", "to") if key in asked}
            attribute.setdefault("edited", []).append(str(edit))
            attribute.setdefault("edits", []).append(ends)


def _part_names(model: Model, name: str) -> list[str]:
    """Name every sum that a model is made of, from left to right."""
    if model.is_sum:
        return [name]
    names = []
    for part in model.parts():
        share = f" (share {part.share:.3f})" if model.kind == "mixture" else ""
        names += _part_names(part.model, f"{name}: " * bool(name) + part.name + share)
    return names
