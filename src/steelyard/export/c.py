"""A plan as a header of C99: tables of its numbers, and a function of one row."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

from steelyard._common.html import fill_template, read_asset
from steelyard.export.plan import (
    UNKNOWN_CELLS,
    Bins,
    Density,
    Grouping,
    Interaction,
    Lookup,
    Mixture,
    Node,
    Pairs,
    Plan,
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

# Words of C and C++ in small letters, and names that compilers define.
_WORDS = frozenset(
    "alignas alignof and asm auto bitand bitor bool break case catch char class compl "
    "concept const constexpr continue decltype default delete do double else enum "
    "errno explicit export extern false float for friend goto i386 if inline int "
    "linux long mutable namespace new noexcept not nullptr operator or private "
    "protected public register requires restrict return short signed sizeof static "
    "struct switch template this throw true try typedef typeid typename typeof union "
    "unix unsigned using virtual void volatile while xor".split()
)

_PARTS = ("day", "year", "month", "weekday", "hour")


class CellField(NamedTuple):
    """A member of the structure of a row."""

    name: str
    column: str
    """The column of a table."""

    kind: str
    """What it holds: "text", "number", "boolean" or "date"."""


def to_c(clf: BaseNB) -> str:
    """Return a classifier as a header of C99, which needs the standard library alone.

    It has the structures ``model_row`` and ``model_answer``, and the function
    ``model_score(row, answer)``, which returns NULL or what is wrong.

    >>> import steelyard as sy
    >>> clf = sy.NaiveBayes().fit([["a"], ["b"]] * 5, ["no", "yes"] * 5)
    >>> "  const char *x0; /* x0 */" in to_c(clf)
    True
    """
    plan = json_plan(plan_of(clf))
    refuse_large(plan, "C")
    refuse_texts(plan, "\0", "text of C ends at the character NUL")
    return _Header(plan).text()


def row_fields(plan: Plan) -> list[CellField]:
    """Return the members of the structure of a row, for the columns that are read."""
    kinds = {"text": "text", "booleans": "boolean"}
    by_source: dict[str, CellField] = {}
    taken: set[str] = set()
    used = {plan.columns[j].source for j in plan.used()}
    for column in plan.columns:
        if column.source in by_source or column.source not in used:
            continue
        word = re.sub(r"\W+", "_", column.source, flags=re.ASCII).strip("_").lower()
        if not re.match("[a-z]", word) or word in _WORDS or word in taken:
            word = f"x{len(taken)}_{word}".rstrip("_")
        while word in taken:
            word += "_"
        taken.add(word)
        kind = "date" if column.date else kinds.get(column.cells, "number")
        by_source[column.source] = CellField(word, column.source, kind)
    return list(by_source.values())


@dataclass
class _Header:
    """The parts of a header: tables and functions, in the order of their use."""

    plan: Plan
    parts: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    """Names of tables by what they hold: equal ones are written once."""

    def text(self) -> str:
        plan, fields = self.plan, row_fields(self.plan)
        members = []
        for of in fields:
            kind = "double " if of.kind in ("number", "boolean") else "const char *"
            about_it = f"{_comment(of.column)}{_ABOUT_KIND.get(of.kind, '')}"
            members.append(f"{kind}{of.name}; /* {about_it} */")
        if not members:
            members = ["int no_column; /* the model reads none */"]
        root = self.node(plan.root)
        counted = [self.unknown(j, of) for j, of in plan.counted().items()]
        answers = [f"double probability[{len(plan.classes)}];"]
        last = []
        if counted:
            answers.append(
                f"int {UNKNOWN_CELLS}; /* that predict_proba averages over */"
            )
            last = [f"answer->{UNKNOWN_CELLS} = {' + '.join(counted)};"]
        cells = [
            f"{'const char *' if is_text else 'double '}c{j};"
            for j, is_text in self.columns()
        ]
        parts = {
            "ABOUT": _comment(about(plan)),
            "MEMBERS": _indented(members),
            "ANSWERS": _indented(answers),
            "LABELS": _array([c_text(str(label)) for label in plan.classes]),
            "N": str(len(plan.classes)),
            "CELLS": _indented(cells or ["int none;"]),
            "MODEL": "\n".join(self.parts),
            "READ": _indented(self.reading(fields)),
            "ROOT": root,
            "LAST": _indented(last),
        }
        return fill_template(read_asset("steelyard.export", "model.h"), parts)

    def columns(self) -> list[tuple[int, bool]]:
        """Return the columns that are read, and whether they are text."""
        used = ((j, self.plan.columns[j]) for j in self.plan.used())
        return [(j, of.cells == "text" and not of.date) for j, of in used]

    def reading(self, fields: Iterable[CellField]) -> list[str]:
        """Write statements that read the cells of a row, or return what is wrong."""
        lines = []
        for of in fields:
            name, message = f"row->{of.name}", f"Column {of.column!r} takes "
            read = [
                (j, c)
                for j, c in enumerate(self.plan.columns)
                if c.source == of.column and j in self.plan.used()
            ]
            if of.kind == "date":
                wrong = c_text(f"{message}dates such as 2024-01-31T14:30, or NULL.")
                lines.append(f"if (model_date({name}, date)) return {wrong};")
                lines += [f"of.c{j} = date[{_PARTS.index(c.part)}];" for j, c in read]
                continue
            if of.kind != "text":
                wrong = c_text(f"{message}finite numbers, or NAN for a missing cell.")
                lines.append(f"if (isinf({name})) return {wrong};")
            lines.append(f"of.c{read[0][0]} = {name};")
        if any(of.kind == "date" for of in fields):
            lines.insert(0, f"double date[{len(_PARTS)}];")
        return lines

    # --------------------------------------------------------------------------- tables

    def table(self, kind: str, values: str, size: str = "[]") -> str:
        """Write a constant table, and return its name."""
        what = f"{size} = {values};"
        if what not in self.names:
            self.names[what] = name = f"model_t{len(self.names)}"
            self.parts.append(f"static const {kind}{name}{what}")
        return self.names[what]

    def numbers(self, values: Sequence[float]) -> str:
        return self.table("double ", _array([_number(x) for x in values or (0.0,)]))

    def rows(self, rows: Iterable[Sequence[float]]) -> str:
        lines = [_array(list(map(_number, row))) for row in rows]
        size = lines[0].count(",") + 1
        return self.table("double ", "{\n  " + ",\n  ".join(lines) + "}", f"[][{size}]")

    def code(self, column: int, values: Sequence[Any]) -> str:
        """Write the code of a category: 0 if missing, 1 if unseen, then values.

        Values have to be in the order of ``_ordered``.
        """
        cell = f"of->c{column}"
        if self.plan.columns[column].cells == "text":
            name = self.table(
                "char *const ", _array(list(map(c_text, values or ("",))))
            )
            return f"model_text({cell}, {name}, {len(values)})"
        name = self.numbers(list(map(float, values)))
        return f"model_value({cell}, {name}, {len(values)})"

    def interval(self, column: int, edges: Sequence[float]) -> str:
        """Write the code of a number: 0 if missing, 1 for the first interval."""
        return f"model_interval(of->c{column}, {self.numbers(edges)}, {len(edges)})"

    def unknown(self, column: int, by_missing: bool) -> str:
        """Write 1 for an unknown cell of a column, and 0 for others."""
        of = self.plan.columns[column]
        if of.kind == "number":
            return f"(isnan(of.c{column}) ? {int(by_missing)} : 0)"
        values, _ = _ordered(of.values, of.values)
        code = self.code(column, values).replace("of->", "of.")
        return f"({code} {'< 2' if by_missing else '== 1'})"

    # ---------------------------------------------------------------------------- terms

    def term(self, term: Term) -> str:
        """Write the statement that adds a term to the scores."""
        if isinstance(term, Density):
            return self.density(term)
        n = len(term.missing) if not isinstance(term, Interaction) else 0
        if isinstance(term, Lookup):
            values, of_values = _ordered(term.values, term.rows)
            rows = [term.missing, (0.0,) * n, *of_values]
            at = self.code(term.column, values)
        elif isinstance(term, Bins):
            rows = [term.missing, *term.rows]
            at = self.interval(term.column, term.edges)
        else:
            rows = list(chain.from_iterable(term.rows))
            first, second = map(self.group, term.sides)
            at = f"{first} * {len(term.rows[0])} + {second}"
        return f"model_add(s, {self.rows(rows)}[{at}], {len(rows[0])});"

    def group(self, side: Grouping) -> str:
        if self.plan.columns[side.column].kind == "number":
            groups = [side.missing, *side.groups]
            at = self.interval(side.column, side.edges)
        else:
            values, of_values = _ordered(side.values, side.groups)
            groups = [side.missing, 0, *of_values]
            at = self.code(side.column, values)
        return f"{self.table('int ', _array(list(map(str, groups))))}[{at}]"

    def density(self, term: Density) -> str:
        rows = self.rows([term.mean, term.scale, term.constant, term.weight])
        cell = f"of->c{term.column}"
        if term.fill is not None:
            cell = f"isnan({cell}) ? {_number(term.fill)} : {cell}"
        # One of these is not 0 where the form has it.
        limit = _number(term.depth or term.limit or term.step)
        form = f"'{term.form[0]}', {limit}"
        n = len(term.mean)
        return f"model_density(s, {cell}, {rows}[0], {n}, {form});"

    # ---------------------------------------------------------------------------- nodes

    def node(self, node: Node) -> str:
        """Write the function of the probabilities of a node, and return its name."""
        n, order = len(node.classes), _array(list(map(str, node.tie_order)))
        order = self.table("int ", order)
        lines = [f"{'double s' if isinstance(node, Sum) else 'double q'}[{n}];"]
        if isinstance(node, Sum):
            base = self.numbers(node.base)
            lines.append("int best;")
            lines.append(f"memcpy(s, {base}, sizeof {base});")
            lines += map(self.term, node.terms)
            lines.append(f"best = model_best(s, {order}, {n});")
            lines.append(f"model_softmax(p, s, {n}, {_number(node.scale)});")
            lines += (
                ["(void)of;", "return best;"] if not node.terms else ["return best;"]
            )
        else:
            parts = list(map(self.node, node.parts))
            lines += self.combined(node, parts)
            lines.append(f"return model_best(p, {order}, {n});")
        name = f"model_p{len(self.parts)}"
        body = _indented(lines)
        head = f"static inline int {name}(const model_cells *of, double *p) {{"
        self.parts.append(f"{head}\n{body}\n}}")
        return name

    def combined(self, node: Node, parts: Sequence[str]) -> list[str]:
        """Write how the probabilities of parts become those of a node."""
        n = len(node.classes)
        lines = [f"memset(p, 0, {n} * sizeof *p);"]
        if isinstance(node, Mixture):
            for share, part in zip(node.shares, parts, strict=True):
                lines.append(f"{part}(of, q);")
                lines += [f"p[{c}] += {_number(share)} * q[{c}];" for c in range(n)]
            return lines
        if isinstance(node, Pairs):
            for pair, part in zip(node.pairs, parts, strict=True):
                lines.append(f"{part}(of, q);")
                lines += [f"p[{c}] += q[{k}];" for k, c in enumerate(pair)]
            return [*lines, *(f"p[{c}] /= {len(parts)};" for c in range(n))]
        assert not isinstance(node, Sum)
        votes = list(zip(map(_number, node.votes), parts, strict=True))
        if node.form == "elkan":
            for vote, part in votes:
                lines.append(f"{part}(of, q);")
                lines.append(f"p[0] -= {vote} * (2 * q[1] - 1);")
            lines.append("p[1] = 1 / (1 + exp(fmin(fmax(p[0], -700), 700)));")
            return [*lines, "p[0] = 1 - p[1];"]
        lines += [f"p[{part}(of, q)] += {vote};" for vote, part in votes]
        return [*lines, "memcpy(q, p, sizeof q);", f"model_softmax(p, q, {n}, 1);"]


_ABOUT_KIND = {"boolean": ": 0 or 1", "date": ": a date such as 2024-01-31T14:30"}


def _ordered(
    values: Sequence[Any], results: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """Return values and their results in the order of a search by halves."""
    pairs = zip(values, results, strict=True)
    # Text in UTF-8 has the order of its letters.
    ordered = sorted(pairs, key=lambda pair: pair[0])
    return [value for value, _ in ordered], [result for _, result in ordered]


def _indented(lines: Iterable[str]) -> str:
    return "\n".join(f"  {line}" for line in lines)


def _array(items: Sequence[str]) -> str:
    """Write an initialiser; text has a line for each item."""
    if any(item.startswith('"') for item in items):
        return "{\n  " + ",\n  ".join(items) + "}"
    return fill("{" + ", ".join(items) + "}", _WIDTH, subsequent_indent="   ")


def _number(x: float) -> str:
    return repr(float(x)).replace("inf", "INFINITY")


def c_text(text: str) -> str:
    r"""Write text in UTF-8, as a literal in ASCII.

    >>> print(c_text('a "b"?'), c_text("é"))
    "a \"b\"\077" "\303\251"
    """
    # Octal digits end after three; a question mark may begin a trigraph.
    safe = (
        chr(b) if 32 <= b < 127 and b not in b'"\\?' else f"\\{b:03o}"
        for b in text.encode()
    )
    return f'"{"".join(safe)}"'.replace(r"\042", r"\"")


def _comment(text: str) -> str:
    """Write text that ends no comment."""
    shown = ascii(text)[1:-1]
    return shown.replace("*/", "* /").replace("/*", "/ *").replace("?", ".")
