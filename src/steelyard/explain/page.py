"""The interactive nomogram: a fitted model as one web page."""

from __future__ import annotations

import html
import json
import math
from importlib.resources import files
from os import PathLike
from typing import Any

import numpy as np

from steelyard._common.files import atomic_write
from steelyard.classifiers.base import BaseNB
from steelyard.exceptions import ParameterError
from steelyard.explain.overall import explain_global
from steelyard.explain.parts import model_of
from steelyard.explain.tables import density_range
from steelyard.explain.views import column_labels, views_of
from steelyard.model.table_model import NBModel
from steelyard.table.schema import FeatureSchema, TableSchema

# Kinds of models whose posterior the page's script computes.
_KINDS = ("sum", "mixture", "pairs")


def to_html(clf: BaseNB, path: str | PathLike[str], title: str | None = None) -> None:
    """Write a classifier as a web page in which values can be set and seen to count.

    The page holds the numbers of the model, as exact as they are, and computes the
    posterior as ``predict_proba`` does. It is one file and loads nothing.

    Parameters
    ----------
    clf : BaseNB
        A fitted classifier: one sum, a mixture (RNB) or one-vs-one.
    path : str or path-like
        Where to write. An existing file is replaced in one step.
    title : str, default=None
        Heading of the page; the name of the class if not given.

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
    data = page_data(clf)
    heading = f"{type(clf).__name__} model" if title is None else title
    assets = files("steelyard.explain") / "assets"
    text = (assets / "page.html").read_text(encoding="utf-8")
    parts = {
        "TITLE": html.escape(heading),
        "NOTE": html.escape(data["note"]),
        "STYLE": (assets / "page.css").read_text(encoding="utf-8"),
        "DATA": _script_json(data),
        "SCORING": (assets / "scoring.js").read_text(encoding="utf-8"),
        "SCRIPT": (assets / "page.js").read_text(encoding="utf-8"),
    }
    # In one pass: a column may be named like a placeholder.
    pieces = text.split("@@")
    text = "".join(parts[p] if k % 2 else p for k, p in enumerate(pieces))
    atomic_write(path, text.encode("utf-8"))


def page_data(clf: BaseNB) -> dict[str, Any]:
    """Return what the page computes with: attributes, and a tree of models."""
    model = model_of(clf)
    if model.kind not in _KINDS:
        raise ParameterError(
            f"{type(clf).__name__} cannot become a page. {model.note()} Use "
            "explain_local(X) for single rows, or a classifier that a page can hold, "
            "such as NaiveBayes, WeightedNB or RegularizedNB."
        )
    columns = zip(views_of(model.schema), column_labels(model.schema), strict=True)
    plain = model.first_sum()
    assert plain is not None
    whole = explain_global(clf)
    attributes = [_column(plain, views, name) for views, name in columns]
    for j, table in enumerate(whole.tables):
        if table.sides and table.counts is not None:
            # Codes of cells that no training row is in; weights of rows may be zero.
            attributes[j]["empty"] = np.flatnonzero(~table.counts.any(axis=1)).tolist()
    return {
        "note": model.note(),
        "classes": [str(c) for c in model.classes.tolist()],
        "order": whole.order.tolist(),
        "attributes": attributes,
        "model": _node(model, list(range(len(model.classes)))),
    }


def _column(model: NBModel, views: list[int], name: str) -> dict[str, Any]:
    """Describe how a column is set: one control, however many views it has."""
    if model.schema.is_pair[views[0]]:
        return _pair(model.schema, views[0], name)
    described = [_attribute(model.schema.features[k], name) for k in views]
    first, limits = dict(described[0]), _limits(model, views)
    if limits is not None:
        first["low"], first["high"] = limits
    if len(views) == 1:
        return first
    if not first.get("edges"):
        # Nothing to say about a single interval.
        first = {key: first[key] for key in first if key not in ("edges", "labels")}
    return {**first, "views": described}


def _pair(schema: TableSchema, j: int, name: str) -> dict[str, Any]:
    """Describe how the code of a pair follows from what its two columns are set to."""
    sides = [
        {
            "column": schema.columns[side.feature],
            "attribute": _attribute(schema.features[side.feature], ""),
            "groups": list(side.groups),
        }
        for side in schema.features[j].sides
    ]
    codes = range(schema.features[j].n_codes)
    labels = [schema.describe(j, code) for code in codes]
    return {"name": name, "kind": "pair", "sides": sides, "labels": labels}


def _attribute(feature: FeatureSchema, name: str) -> dict[str, Any]:
    """Describe how an attribute is set, and how what is set becomes a code."""
    out: dict[str, Any] = {
        "name": name,
        "kind": "category" if feature.kind == "categorical" else "number",
        "missing": feature.missing_code if feature.is_coded else feature.fill,
    }
    if feature.kind == "categorical":
        out["values"] = [str(value) for value in feature.values]
    elif feature.kind == "binned":
        codes = range(1, len(feature.edges) + 2)
        out["edges"] = list(feature.edges)
        out["labels"] = [feature.describe(code) for code in codes]
    else:
        out["step"] = feature.step
    return out


def _limits(model: NBModel, views: list[int]) -> tuple[float, float] | None:
    """Where the slider of a numeric column begins and ends."""
    features = [model.schema.features[j] for j in views]
    if features[0].kind == "categorical":
        return None
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


def _node(model: Any, positions: list[int]) -> dict[str, Any]:
    """Return a model as plain data: a sum, or a rule and its parts."""
    if model.is_sum:
        return _leaf(model, positions)
    return {
        "kind": model.kind,
        "classes": positions,
        "parts": [
            {
                "name": part.name,
                "share": part.share,
                **_node(part.model, [positions[c] for c in part.classes]),
            }
            for part in model.parts()
        ],
    }


def _leaf(model: NBModel, positions: list[int]) -> dict[str, Any]:
    terms = []
    for views in views_of(model.schema):
        by_view = [_term(model, j) for j in views]
        terms.append(by_view[0] if len(views) == 1 else {"views": by_view})
    return {
        "kind": "sum",
        "classes": positions,
        # JSON has no infinity; an impossible class has null.
        "base": [b if math.isfinite(b) else None for b in model.log_prior.tolist()],
        "scale": model.link_scale,
        "terms": terms,
    }


def _term(model: NBModel, j: int) -> dict[str, Any]:
    """Return what an attribute adds to the classes: a table, or a density."""
    schema, offsets = model.schema, model.schema.offsets
    if schema.features[j].is_coded:
        return {"table": model.table[offsets[j] : offsets[j + 1]].tolist()}
    table = model.density(j)
    factors = np.ones_like(table.mean) if table.weight is None else table.weight
    return {
        "mean": table.mean[0].tolist(),
        "deviation": table.deviation[0].tolist(),
        "factor": factors[0].tolist(),
        "step": float(table.step[0]),
        "depth": 0.0 if table.depth is None else float(table.depth[0]),
        "limit": 0.0 if table.limit is None else float(table.limit[0]),
    }


def _script_json(data: Any) -> str:
    """Write JSON that cannot end the script element it stands in."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False)
    return text.translate({ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&"})
