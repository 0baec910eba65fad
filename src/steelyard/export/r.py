"""A plan as a file of R: its numbers, and functions of base R that score data frames.

R reads text as doubles by way of longer ones, and may then be off by the last bit. What
is compared is written so that no bit is lost: as a short decimal number, or in base 16.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import chain
from typing import TYPE_CHECKING, Any

from steelyard._common.html import fill_template, read_asset
from steelyard.export.plan import (
    Bins,
    Column,
    Density,
    Grouping,
    Interaction,
    Marginal,
    Node,
    Sum,
    Term,
    about,
    refuse_large,
    refuse_texts,
)
from steelyard.export.reading import plan_of
from steelyard.export.source import json_plan

if TYPE_CHECKING:
    from steelyard.classifiers.base.estimator import BaseNB

_WIDTH = 88


def to_r(clf: BaseNB) -> str:
    r"""Return a classifier as a file of R, which needs base R alone.

    Its function ``score(data)`` returns a data frame with ``prediction`` and a column
    ``p(class)`` for every class of the rows of another.

    >>> import steelyard as sy
    >>> clf = sy.NaiveBayes().fit([["a"], ["b"]] * 5, ["no", "yes"] * 5)
    >>> print(to_r(clf).partition("columns = ")[2].partition(",\n")[0])
    list(list(name = "x0", kind = "category", cells = "text"))
    """
    plan = json_plan(plan_of(clf))
    refuse_large(plan, "R")
    refuse_texts(plan, "\0", "R has no text with the character NUL")
    model = _list(
        columns=_list(*map(_column, plan.columns)),
        classes=r_vector(plan.classes),
        labels=r_vector([f"p({label})" for label in plan.classes]),
        attributes=_number(len(plan.attributes)),
        root=_node(plan.root),
    )
    parts = {"ABOUT": about(plan), "MODEL": model}
    return fill_template(read_asset("steelyard.export", "model.R"), parts)


# ------------------------------------------------------------------------------ a model


def _column(column: Column) -> str:
    fields = {name: r_text(getattr(column, name)) for name in ("name", "kind", "cells")}
    if column.date:
        fields |= {"date": r_text(column.date), "part": r_text(column.part)}
    if column.texts:
        numbers, texts = zip(*column.texts, strict=True)
        fields |= {"numbers": r_vector(numbers), "texts": r_vector(texts)}
    return _list(**fields)


def _node(node: Node) -> str:
    fields = {"kind": r_text(type(node).__name__.lower())}
    fields["order"] = _positions(node.tie_order)
    if isinstance(node, Sum):
        fields |= {"base": _added(node.base), "scale": _number(node.scale)}
        fields["terms"] = _list(*map(_term, node.terms))
        if node.marginal is not None:
            fields["marginal"] = _marginal(node.marginal)
        return _list(**fields)
    for name in ("shares", "votes"):
        if hasattr(node, name):
            fields[name] = r_vector(getattr(node, name))
    if hasattr(node, "form"):
        fields["form"] = r_text(node.form)
    if hasattr(node, "pairs"):
        fields["pairs"] = _list(*map(_positions, node.pairs))
    fields["n"] = _number(len(node.classes))
    return _list(**fields, parts=_list(*map(_node, node.parts)))


def _term(term: Term) -> str:
    """Write a term; a table has a row for unseen cells, one for missing ones, others.

    >>> print(_term(Bins(0, (1.5,), ((0.0, 1.0), (0.5, -1.0)), (0.0, 0.0))))
    list(
      kind = "table", attribute = 1, column = 1, edges = 1.5,
      rows = matrix(c(0, 0, 0, 0, 0, 1, 0.5, -1), ncol = 2, byrow = TRUE)
    )
    """
    fields = {"attribute": _number(term.attribute + 1)}
    if isinstance(term, Density):
        fields |= {"column": _number(term.column + 1), "form": r_text(term.form)}
        for name in ("mean", "scale", "constant", "weight"):
            fields[name] = r_vector(getattr(term, name))
        for name in ("depth", "limit", "step"):
            fields[name] = _number(getattr(term, name))
        if term.fill is not None:
            fields["fill"] = _number(term.fill)
        return _list(kind=r_text("density"), **fields)
    if isinstance(term, Interaction):
        sides = (_side(side) for side in term.sides)
        rows = list(chain.from_iterable(term.rows))
        fields |= {"sides": _list(*sides), "n": _number(len(term.rows[0]))}
        return _list(kind=r_text("interaction"), **fields, rows=_matrix(rows))
    fields["column"] = _number(term.column + 1)
    name = "edges" if isinstance(term, Bins) else "values"
    fields[name] = r_vector(getattr(term, name))
    rows = [(0.0,) * len(term.missing), term.missing, *term.rows]
    return _list(kind=r_text("table"), **fields, rows=_matrix(rows))


def _side(side: Grouping) -> str:
    # A number whose intervals are all in one group has no edges.
    name = "values" if side.values else "edges"
    return _list(
        column=_number(side.column + 1),
        **{name: r_vector(getattr(side, name))},
        groups=r_vector([0, side.missing, *side.groups]),
    )


def _marginal(moments: Marginal) -> str:
    odds = [math.nan if x is None else x for x in moments.value_odds]
    return _list(
        odds=r_vector(odds),
        by_missing=r_vector(moments.by_missing),
        in_plain=r_vector(moments.in_plain),
        sides=_list(*map(_positions, moments.sides)),
        means=_matrix(moments.means),
        loadings=_list(*map(_matrix, moments.loadings)),
        noise=_matrix(moments.noise),
        start=r_vector(moments.start),
        shift=r_vector(moments.shift),
        variance=_number(moments.variance),
        points=_matrix(moments.points),
        ratio=r_vector([math.exp(x) for x in moments.log_ratio]),
        plain=_node(moments.plain),
        plain_loadings=_matrix(moments.plain_loadings),
        plain_noise=r_vector(moments.plain_noise),
    )


# --------------------------------------------------------------------------- R's values


def _list(*items: str, **named: str) -> str:
    """Write a list, on one line if that is short."""
    parts = [*items, *(f"{name} = {what}" for name, what in named.items())]
    return _call("list", parts)


def _call(function: str, parts: Iterable[str]) -> str:
    lines, inner = [""], [part.replace("\n", "\n  ") for part in parts]
    for k, part in enumerate(inner):
        part += "," if k < len(inner) - 1 else ""
        if lines[-1] and len(lines[-1]) + len(part) < _WIDTH and "\n" not in part:
            lines[-1] += f" {part}"
        else:
            lines.append(part)
    lines = [line for line in lines if line]
    if len(lines) < 2 and "\n" not in "".join(lines):
        return f"{function}({''.join(lines)})"
    return "\n  ".join([f"{function}(", *lines]) + "\n)"


def r_vector(values: Sequence[Any]) -> str:
    """Write numbers, text or truth values as a vector."""
    written = [r_text(v) if isinstance(v, str) else _number(v) for v in values]
    if len(written) == 1:
        return written[0]
    return _call("c", written) if written else "NULL"


def _positions(values: Sequence[int]) -> str:
    return r_vector([value + 1 for value in values])


def _matrix(rows: Sequence[Sequence[float]]) -> str:
    numbers = _added(list(chain.from_iterable(rows)))
    return f"matrix({numbers}, ncol = {len(rows[0])}, byrow = TRUE)"


def _added(numbers: Sequence[float]) -> str:
    """Write numbers that are added up, whose last bits do not matter."""
    return _call(
        "c", [repr(x).removesuffix(".0").replace("inf", "Inf") for x in numbers]
    )


def _number(x: Any) -> str:
    """Write a number, of which R reads every bit.

    >>> [_number(x) for x in (2.5, 0.1, -0.0, 7, True, float("-inf"), None)]
    ['2.5', '0x1.999999999999ap-4', '-0', '7', 'TRUE', '-Inf', 'NA']
    """
    if isinstance(x, bool) or x is None:
        return "NA" if x is None else str(x).upper()
    if not math.isfinite(x):
        return "NA" if math.isnan(x) else str(x).replace("inf", "Inf")
    digits = repr(x).removesuffix(".0")
    return digits if Decimal(digits) == Decimal(x) else float(x).hex()


def r_text(text: str) -> str:
    r"""Write text in ASCII.

    >>> print(r_text('a "b"'), r_text("é"))
    "a \"b\"" "\u00e9"
    """
    letters = []
    for letter in text:
        code = ord(letter)
        if letter in '"\\':
            letter = f"\\{letter}"
        elif code > 0xFFFF:
            letter = f"\\U{code:08x}"
        elif not 32 <= code < 127:
            letter = f"\\u{code:04x}"
        letters.append(letter)
    return f'"{"".join(letters)}"'
