"""Source code of a model: a file of Python, and one of JavaScript."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from steelyard._common.html import fill_template, read_asset, script_json
from steelyard._common.one_cell import texts_by_number
from steelyard.export.plan import (
    Column,
    Grouping,
    Interaction,
    Lookup,
    Node,
    Plan,
    Sum,
    Term,
    about,
    plan_data,
)
from steelyard.export.reading import plan_of

if TYPE_CHECKING:
    from steelyard.classifiers.base.estimator import BaseNB

# From here on JavaScript is not exact for whole numbers.
_EXACT = 2**53

_WIDTH = 88

_asset = partial(read_asset, "steelyard.export")

# Each needs those before it, and the name of an error.
_MODULES = (
    "steelyard._common.one_cell",
    "steelyard.export.partial_rows",
    "steelyard.export.scorer",
)


def to_python(clf: BaseNB) -> str:
    """Return a classifier as a Python file that needs the standard library alone.

    Parameters
    ----------
    clf : BaseNB
        A fitted classifier.

    Returns
    -------
    str
        A module with ``score(row)``, ``score.predict(row)`` and ``score.reasons(row)``
        for rows that are mappings.

    Examples
    --------
    >>> import steelyard as sy
    >>> clf = sy.NaiveBayes().fit([["a"], ["b"]] * 5, ["no", "yes"] * 5)
    >>> module = {}
    >>> exec(to_python(clf), module)
    >>> module["score"].predict({"x0": "b"})
    'yes'
    """
    plan = plan_of(clf, is_exact=True)
    code = "\n\n".join(map(_code_of, _MODULES))
    doc = f'"""{about(plan)} score(row) scores a row."""'
    data = layout(plan_data(plan), ascii)
    head = (
        f"{doc}\n\nfrom __future__ import annotations\n\nColumnError = ValueError\n\n"
    )
    return f"{head}{code}\n\nMODEL = {data}\n\nscore = Scorer(MODEL)\n"


def _code_of(name: str) -> str:
    """Return a module that needs the standard library alone, without its docstring."""
    package, module = name.rsplit(".", 1)
    text = (files(package) / f"{module}.py").read_text(encoding="utf-8")
    _, _, code = text.partition("from __future__ import annotations\n\n")
    return re.sub(r"^from steelyard.* import (\([^)]*\)|.*)\n", "", code, flags=re.M)


def to_javascript(clf: BaseNB) -> str:
    """Return a classifier as a JavaScript file, for Node and browsers.

    Whole numbers beyond 2**53 as categories are text there.

    Parameters
    ----------
    clf : BaseNB
        A fitted classifier.

    Returns
    -------
    str
        A script that exports ``score(row)``, ``predict(row)`` and
        ``contributions(row)`` for rows that are objects; without modules they are in
        the global ``model``.
    """
    plan = json_plan(plan_of(clf))
    parts = {
        "PLAN": layout(plan_data(plan), script_json),
        "SCORING": scoring_script(),
        "ABOUT": about(plan),
    }
    return fill_template(_asset("model.js"), parts)


def scoring_script() -> str:
    """Return the script that scores a plan."""
    return _asset("marginal.js") + _asset("scoring.js")


def layout(data: Any, write: Callable[[Any], str], indent: str = "") -> str:
    """Write plain data on one line if that is short, else with a line for each item.

    >>> layout({"a": [1, None]}, script_json)
    '{"a": [1, null]}'
    """
    if not isinstance(data, (dict, list)):
        return write(data)
    within = indent + "  "
    if isinstance(data, dict):
        items = [f"{write(k)}: {layout(v, write, within)}" for k, v in data.items()]
        begin, end = "{}"
    else:
        items = [layout(value, write, within) for value in data]
        begin, end = "[]"
    line = ", ".join(items)
    if len(line) + len(indent) + 2 <= _WIDTH and "\n" not in line:
        return f"{begin}{line}{end}"
    lines = f",\n{within}".join(items)
    return f"{begin}\n{within}{lines}\n{indent}{end}"


def json_plan(plan: Plan) -> Plan:
    """Return a plan in which whole numbers are text if they are inexact as doubles."""
    classes = tuple(map(str, plan.classes)) if is_large(plan.classes) else plan.classes
    columns, root = tuple(map(_json_column, plan.columns)), _json_node(plan.root)
    return replace(plan, columns=columns, classes=classes, root=root)


def _json_column(column: Column) -> Column:
    if is_large(column.values):
        values = tuple(map(str, column.values))
        texts = tuple(texts_by_number(values).items())
        column = replace(column, cells="text", values=values, texts=texts)
    exact = tuple(pair for pair in column.texts if not is_large(pair[:1]))
    return replace(column, texts=exact)


def json_side(side: Grouping) -> Grouping:
    """Return a side of an interaction with whole numbers as text, as ``json_plan``."""
    if not is_large(side.values):
        return side
    return replace(side, values=tuple(map(str, side.values)))


def is_large(values: tuple[Any, ...]) -> bool:
    """Whether some of the values are whole numbers that are inexact as doubles."""
    return any(isinstance(v, int) and abs(v) > _EXACT for v in values)


def _json_node(node: Any) -> Any:
    if isinstance(node, Sum):
        return replace(node, terms=tuple(map(_json_term, node.terms)))
    parts: tuple[Node, ...] = tuple(map(_json_node, node.parts))
    return replace(node, parts=parts)


def _json_term(term: Term) -> Term:
    if isinstance(term, Interaction):
        first, second = term.sides
        return replace(term, sides=(json_side(first), json_side(second)))
    if isinstance(term, Lookup) and is_large(term.values):
        return replace(term, values=tuple(map(str, term.values)))
    return term
