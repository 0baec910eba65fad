"""The interactive nomogram: a fitted model as one web page."""

from __future__ import annotations

import html
import json
import math
from importlib.resources import files
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from steelyard._common.files import atomic_write
from steelyard.classifiers.base import BaseNB
from steelyard.exceptions import ParameterError
from steelyard.explain.overall import explain_global
from steelyard.explain.parts import kind_of, note_of, one, parts_of
from steelyard.explain.views import column_labels, views_of
from steelyard.model.table_model import NBModel
from steelyard.table.schema import FeatureSchema

__all__ = ["page_data", "to_html"]


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
    """Return what the page computes with: attributes, and a tree of models.

    Parameters
    ----------
    clf : BaseNB
        A fitted classifier.

    Returns
    -------
    dict
        Plain data for JSON.
    """
    check_is_fitted(clf)
    model = one(clf.model_)
    kind = kind_of(model)
    if kind in ("vote", "neighbours"):
        raise ParameterError(
            f"{type(clf).__name__} cannot become a page. {note_of(model)} Use "
            "explain_local(X) for single rows, or a classifier that a page can hold, "
            "such as NaiveBayes, WeightedNB or RegularizedNB."
        )
    schema = model.schema
    ranges = _ranges(model)
    order = explain_global(clf).order.tolist()
    names = column_labels(schema)
    return {
        "note": note_of(model),
        "classes": [str(c) for c in model.classes.tolist()],
        "order": order,
        "attributes": [
            _column([schema.features[k] for k in views], names[j], ranges[j])
            for j, views in enumerate(views_of(schema))
        ],
        "model": _node(model, list(range(len(model.classes)))),
    }


def _column(
    features: list[FeatureSchema], name: str, limits: tuple[float, float] | None
) -> dict[str, Any]:
    """Describe how a column is set: one control, however many views it has."""
    first = _attribute(features[0], name, limits)
    if len(features) == 1:
        return first
    views = [_attribute(feature, name, None) for feature in features]
    if not features[0].edges:
        # Nothing to say about a single interval.
        first = {key: first[key] for key in first if key not in ("edges", "labels")}
    return {**first, "views": views}


def _attribute(
    feature: FeatureSchema, name: str, limits: tuple[float, float] | None
) -> dict[str, Any]:
    """Describe how an attribute is set, and how what is set becomes a code."""
    out: dict[str, Any] = {
        "name": name,
        "kind": "category" if feature.kind == "categorical" else "number",
        "missing": feature.missing_code if feature.is_coded else feature.fill,
    }
    if feature.kind == "categorical":
        out["values"] = [str(value) for value in feature.values]
    elif feature.kind == "binned":
        out["edges"] = list(feature.edges)
        out["labels"] = [
            feature.describe(code) for code in range(1, len(feature.edges) + 2)
        ]
    else:
        out["step"] = feature.step
    if limits is not None:
        out["low"], out["high"] = limits
    return out


def _ranges(model: Any) -> list[tuple[float, float] | None]:
    """Where the slider of each numeric attribute begins and ends."""
    plain = model
    while not isinstance(plain, NBModel):
        plain = parts_of(plain)[0].model
    gaussian = plain.schema.gaussian.tolist()
    schema = plain.schema
    out: list[tuple[float, float] | None] = []
    for views in views_of(schema):
        if schema.features[views[0]].kind == "categorical":
            out.append(None)
            continue
        densities = [_density_range(plain, j) for j in views if j in gaussian]
        edges = np.array([e for j in views for e in schema.features[j].edges])
        low, high = _bin_range(edges)
        if densities:
            low = min([*edges.tolist(), *(own[0] for own in densities)])
            high = max([*edges.tolist(), *(own[1] for own in densities)])
        out.append((low, high) if math.isfinite(high - low) else (-1e308, 1e308))
    return out


def _density_range(model: NBModel, j: int) -> tuple[float, float]:
    own = model.gaussian.only(model.schema.gaussian.tolist().index(j))
    low = float((own.mean - 3.0 * own.deviation).min())
    return low, float((own.mean + 3.0 * own.deviation).max())


def _bin_range(edges: NDArray[np.float64]) -> tuple[float, float]:
    edges = np.unique(edges) if len(edges) else np.zeros(1)
    wide = float(np.ptp(edges)) / max(1, len(edges) - 1)
    wide = wide or max(abs(float(edges[0])), 1.0)
    return float(edges[0]) - wide, float(edges[-1]) + wide


def _node(model: Any, positions: list[int]) -> dict[str, Any]:
    """Return a model as plain data: a sum, or a rule and its parts."""
    if isinstance(model, NBModel):
        return _leaf(model, positions)
    parts = parts_of(model)
    places = [positions] * len(parts)
    if kind_of(model) == "pairs":
        places = [[positions[a], positions[b]] for a, b in model.pairs]
    return {
        "kind": kind_of(model),
        "classes": positions,
        "parts": [
            {"name": part.name, "share": part.share, **_node(part.model, own)}
            for part, own in zip(parts, places, strict=True)
        ],
    }


def _leaf(model: NBModel, positions: list[int]) -> dict[str, Any]:
    terms = []
    for views in views_of(model.schema):
        own = [_term(model, j) for j in views]
        terms.append(own[0] if len(own) == 1 else {"views": own})
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
    own = model.gaussian.only(schema.gaussian.tolist().index(j))
    factors = np.ones_like(own.mean) if own.weight is None else own.weight
    return {
        "mean": own.mean[0].tolist(),
        "deviation": own.deviation[0].tolist(),
        "factor": factors[0].tolist(),
        "step": float(own.step[0]),
        "depth": 0.0 if own.depth is None else float(own.depth[0]),
        "limit": 0.0 if own.limit is None else float(own.limit[0]),
    }


def _script_json(data: Any) -> str:
    """Write JSON that cannot end the script element it stands in."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False)
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text
