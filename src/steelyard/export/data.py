"""A plan as plain data: what JSON, JavaScript and Python files hold."""

from __future__ import annotations

import math
from typing import Any

from steelyard.export.plan import (
    Bins,
    Density,
    Lookup,
    Mixture,
    Node,
    Pair,
    Pairs,
    Plan,
    Sum,
    Term,
)


def about(plan: Plan) -> str:
    """Say in a sentence what a file holds, and what wrote it."""
    return f"A {plan.estimator} model, written by steelyard {library_version()}."


def library_version() -> str:
    """Return the version of the library."""
    from importlib.metadata import version

    return version("steelyard")


def plan_data(plan: Plan) -> dict[str, Any]:
    """Return a plan as dictionaries and lists; minus infinity is None.

    Examples
    --------
    >>> from steelyard.export.plan import Bins, Column, Plan, Sum
    >>> term = Bins(0, (1.5,), ((0.0, 1.0), (0.5, -1.0)), (0.0, 0.0))
    >>> root = Sum((0, 1), (-0.5, -1.0), 1.0, (0, 1), (term,))
    >>> column = Column("age", "number", "numbers")
    >>> plan = Plan("NaiveBayes", (column,), ("age",), ("no", "yes"), root)
    >>> plan_data(plan)["model"]["terms"][0]["edges"]
    [1.5]
    """
    return {
        "estimator": plan.estimator,
        "classes": list(plan.classes),
        "columns": [
            {"name": column.name, "kind": column.kind, "cells": column.cells}
            for column in plan.columns
        ],
        "attributes": list(plan.attributes),
        "model": node_data(plan.root),
    }


def node_data(node: Node) -> dict[str, Any]:
    """Return a model of the tree as plain data."""
    kind = {Sum: "sum", Mixture: "mixture", Pairs: "pairs"}.get(type(node), "vote")
    data: dict[str, Any] = {
        "kind": kind,
        "classes": list(node.classes),
        "order": list(node.tie_order),
    }
    if isinstance(node, Sum):
        data["base"] = [b if math.isfinite(b) else None for b in node.base]
        data["scale"], data["odds"] = node.scale, node.is_odds
        data["terms"] = list(map(term_data, node.terms))
        if node.blocks:
            data["blocks"] = _list(node.blocks)
        return data
    if isinstance(node, Mixture):
        data["shares"] = list(node.shares)
    elif isinstance(node, Pairs):
        data["pairs"] = list(map(list, node.pairs))
    else:
        data["form"], data["votes"] = node.form, list(node.votes)
    data["parts"] = [node_data(part) for part in node.parts]
    return data


def term_data(term: Term) -> dict[str, Any]:
    """Return a term as plain data."""
    if isinstance(term, Pair):
        sides = [_lists(vars(side)) for side in term.sides]
        rows = [list(map(list, rows)) for rows in term.rows]
        return {"kind": "pair", "attribute": term.attribute, "sides": sides} | {
            "rows": rows
        }
    kind = {Lookup: "lookup", Bins: "bins", Density: "density"}[type(term)]
    return {"kind": kind, **_lists(vars(term))}


def _lists(fields: dict[str, Any]) -> dict[str, Any]:
    """Return fields with lists in place of tuples."""
    return {name: _list(value) for name, value in fields.items()}


def _list(value: Any) -> Any:
    return list(map(_list, value)) if isinstance(value, tuple) else value
