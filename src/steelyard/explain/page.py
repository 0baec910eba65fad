"""The interactive nomogram: a fitted model as one web page."""

from __future__ import annotations

import html
import math
from base64 import b64encode
from functools import partial
from hashlib import sha256
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard._common.files import atomic_write
from steelyard._common.html import fill_template, html_list, read_asset, script_json
from steelyard._common.text import counted
from steelyard.exceptions import ParameterError
from steelyard.explain.overall import explain_global
from steelyard.explain.value_tables import density_range, range_by_column
from steelyard.explain.views import in_words, model_of, views_of
from steelyard.export.plan import Plan, node_data
from steelyard.export.reading import plan_of, side_of
from steelyard.export.source import json_plan, json_side, scoring_script
from steelyard.model.base import Model
from steelyard.model.table_model import NBModel
from steelyard.notices.notice import in_lines
from steelyard.proba.counts import Counts
from steelyard.table.schema import TableSchema
from steelyard.table.summary.whole_column import NumberRange

if TYPE_CHECKING:
    from steelyard.classifiers.base import BaseNB

# Kinds of models whose posterior the page's script computes.
_KINDS = ("sum", "mixture", "pairs")


# Scripts of the page, which follow each other in one element.
_SCRIPTS = ("controls.js", "spread.js", "page.js")


def to_html(
    clf: BaseNB,
    path: str | PathLike[str],
    title: str | None = None,
    target: str | None = None,
) -> None:
    """Write a classifier as a web page in which values can be set and seen to count.

    The page holds the numbers of the model, as exact as they are, and computes the
    posterior as ``predict_proba`` does. It is one file and loads nothing. Its address
    keeps the values that are set, after the ``#``.

    Parameters
    ----------
    clf : BaseNB
        A fitted classifier: one sum, a mixture (RNB) or one-vs-one.
    path : str or path-like
        Where to write. An existing file is replaced in one step.
    title : str, default=None
        Heading of the page; by default the question that it answers.
    target : str, default=None
        What is predicted, as the page asks for it; by default the name of the target
        at fit, if it had one.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sklearn.datasets import load_iris
    >>> from steelyard import NaiveBayes
    >>> clf = NaiveBayes().fit(*load_iris(return_X_y=True, as_frame=True))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = pathlib.Path(folder) / "iris.html"
    ...     clf.to_html(page, "Iris")
    ...     page.read_text(encoding="utf-8")[:15]
    '<!DOCTYPE html>'
    """
    data = page_data(clf, target)
    heading = _question(data) if title is None else title
    asset = partial(read_asset, "steelyard.explain")
    style, scripts = (
        asset("page.css"),
        [scoring_script(), "".join(map(asset, _SCRIPTS))],
    )
    parts = {
        "TITLE": html.escape(heading),
        "ABOUT": html.escape(_about(clf, data)),
        "NOTICED": _noticed(clf),
        "POLICY": _policy(style, scripts),
        "STYLE": style,
        "DATA": script_json(data),
        "SCORING": scripts[0],
        "SCRIPT": scripts[1],
    }
    text = fill_template(asset("page.html"), parts)
    # Half a pair of surrogates is no text; data have it escaped.
    atomic_write(path, text.encode("utf-8", "replace"))


def _question(data: dict[str, Any]) -> str:
    """Return the question that the page answers."""
    what, classes = data["target"], data["classes"]
    if len(classes) == 2:
        return f"{what}: " * (what is not None) + f"{classes[0]} or {classes[1]}?"
    return f"Which {what or 'class'}?"


def _policy(style: str, scripts: list[str]) -> str:
    """Allow the page's own style and scripts, by their hashes, and nothing else."""

    def named(text: str) -> str:
        return f"'sha256-{b64encode(sha256(text.encode('utf-8')).digest()).decode()}'"

    allowed = f"style-src {named(style)}; script-src {' '.join(map(named, scripts))}"
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


def _about(clf: BaseNB, data: dict[str, Any]) -> str:
    """Say what the model has learned from, and how it adds up."""
    n_columns = sum(data["attributes"][j]["kind"] != "pair" for j in data["order"])
    counts = getattr(clf, "counts_", None)
    rows = "" if counts is None else f" of {float(counts.by_class.sum()):,.10g} rows"
    learned = f"{type(clf).__name__}, learned from {counted(n_columns, 'column')}{rows}"
    return f"{learned}. {data['note']}"


def _noticed(clf: BaseNB) -> str:
    """List what was odd about the training rows, and what was changed by hand."""
    lines = in_lines(getattr(clf, "notices_", []))
    title = f"Noticed in the training rows: {counted(len(lines), 'thing')}"
    edits = [str(edit) for edit in getattr(clf, "edits_", ())]
    changed = f"Edited by hand: {counted(len(edits), 'thing')}"
    return html_list(title, lines, id="noticed") + html_list(changed, edits)


def page_data(clf: BaseNB, target: str | None = None) -> dict[str, Any]:
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
    ranges = range_by_column(model.schema, getattr(clf, "ranges_", None))
    columns = zip(views_of(model.schema), plan.attributes, ranges, strict=True)
    titles = getattr(clf, "column_labels_", {})
    attributes = [
        {"name": name, **_control(plain, views, plan, where)}
        for views, name, where in columns
    ]
    for own, title in zip(attributes, in_words(plan.attributes, titles), strict=True):
        own["title"] = title
    for own, column in zip(attributes, plan.columns, strict=False):
        if column.part == "day":
            others = ((j, c) for j, c in enumerate(plan.columns) if c is not column)
            own["date"] = {c.part: j for j, c in others if c.date == column.date}
    left_out, asked = model.schema.left_out, getattr(clf, "target_name_", None)
    for j, table in enumerate(whole.tables):
        if table.sides and table.counts is not None:
            # Codes of cells that no training row is in; weights of rows may be zero.
            attributes[j]["empty"] = np.flatnonzero(~table.counts.any(axis=1)).tolist()
    _add_shares(attributes, plain.schema, getattr(clf, "counts_", None))
    return {
        "note": model.note(),
        "target": target or titles.get(asked, asked),
        "classes": [str(c) for c in model.classes.tolist()],
        "order": [j for j in whole.order.tolist() if j not in left_out],
        "rates": None if whole.base_rates is None else whole.base_rates.tolist(),
        "attributes": attributes,
        "parts": _part_names(model, ""),
        "model": node_data(plan.root),
    }


def _add_shares(
    attributes: list[dict[str, Any]], schema: TableSchema, counts: Counts | None
) -> None:
    """Add the share of the known cells that hold each category."""
    if counts is None or counts.schema != schema:
        return
    for own, views in zip(attributes, views_of(schema), strict=True):
        if own["kind"] == "category":
            first = schema.offsets[views[0]] + 1
            rows = counts.by_code[first : first + len(own["values"])].sum(axis=1)
            if rows.sum() > 0.0:
                own["shares"] = (rows / rows.sum()).tolist()


def _part_names(model: Model, name: str) -> list[str]:
    """Name every sum that a model is made of, from left to right."""
    if model.is_sum:
        return [name or "the model"]
    names = []
    for part in model.parts():
        share = f" (share {part.share:.3f})" if model.kind == "mixture" else ""
        own = f"{name}: " * bool(name) + part.name + share
        names += _part_names(part.model, own)
    return names


def _control(
    model: NBModel, views: list[int], plan: Plan, where: NumberRange | None
) -> dict[str, Any]:
    """Describe how a column is set: one control, however many views it has."""
    schema = model.schema
    features = [schema.features[j] for j in views]
    if features[0].sides:
        sides = [vars(json_side(side_of(schema, s))) for s in features[0].sides]
        codes = range(features[0].n_codes)
        labels = [schema.describe(views[0], code) for code in codes]
        return {"kind": "pair", "sides": sides, "labels": labels}
    if features[0].kind == "categorical":
        values = plan.columns[schema.columns[views[0]]].values
        labels = list(map(str, features[0].values))
        return {"kind": "category", "values": values, "labels": labels}
    # A column of one number has a slider all the same.
    some_width = where is not None and where.low < where.high
    ends = (where.low, where.high) if where and some_width else _limits(model, views)
    cuts = sorted({edge for feature in features for edge in feature.edges})
    control: dict[str, Any] = {"kind": "number", "cuts": cuts}
    control |= dict(zip(("low", "high"), ends, strict=True))
    if where is not None and some_width:
        control |= {"whole": where.is_whole, "quartiles": list(where.quartiles)}
        control["histogram"] = list(where.histogram)
    # Nothing to say about a single interval among several views.
    if features[0].is_coded and (features[0].edges or len(views) == 1):
        codes = range(1, len(features[0].edges) + 2)
        control["edges"] = list(features[0].edges)
        control["labels"] = [features[0].describe(code) for code in codes]
    return control


def _limits(model: NBModel, views: list[int]) -> tuple[float, float]:
    """Where a slider begins and ends whose column's range no file has kept."""
    features = [model.schema.features[j] for j in views]
    edges = np.unique([edge for feature in features for edge in feature.edges])
    gaussian = [j for j in views if j in model.schema.gaussian]
    if gaussian:
        ends = [density_range(model.density(j)) for j in gaussian]
        edges, wide = np.append(edges, ends), 0.0
    else:
        edges = edges if len(edges) else np.zeros(1)
        wide = float(np.ptp(edges)) / max(1, len(edges) - 1)
        wide = wide or max(abs(float(edges[0])), 1.0)
    low, high = float(edges.min()) - wide, float(edges.max()) + wide
    return (low, high) if math.isfinite(high - low) else (-1e308, 1e308)
