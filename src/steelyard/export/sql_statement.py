"""Named expressions put into stages of one SQL statement."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from textwrap import fill

from steelyard.export.sql_dialect import Dialect

# Terms of a sum, or rows of a union, in one pair of parentheses: databases refuse
# expressions that are nested deeper than 1,000, as a flat sum of 1,000 terms is.
_GROUP = 32

_ROWS_PER_INSERT = 500

# Joins of a stage, and numbers that they bring. Databases refuse joins of 61 tables and
# rows of 1,600 columns, and each join copies what those before it brought.
_MAX_JOINS = 16
_MAX_JOINED = 128

_LINE = 72
_WIDTH = 110


class Statement:
    """Named expressions, each in the stage after those that it uses.

    No expression is written twice, and every stage is fenced: otherwise databases copy
    expressions to each use.
    """

    def __init__(
        self,
        dialect: Dialect,
        source: str,
        keep: Sequence[str],
        texts: Iterable[str],
        is_single: bool = False,
        is_expression: bool = False,
    ) -> None:
        self.dialect, self.source, self.keep = dialect, source, list(keep)
        self.prefix, joined = "sy_", "\n".join(texts).lower()
        while self.prefix in joined:
            self.prefix += "_"
        self._pattern = re.compile(rf"\b{self.prefix}\d+\w*")
        self._level: dict[str, int] = {}
        self._stages: list[dict[str, str]] = []
        self._names: dict[str, str] = {}
        self._joins: dict[str, tuple[str, str]] = {}
        self._rows: dict[str, tuple[str, Sequence[Sequence[str]]]] | None = None
        if is_expression:
            self._rows = {}
        self._n_joined: dict[int, list[int]] = {}
        self._floor = 0
        self._before: list[str] = []
        self._is_single = is_single or not dialect.temporary
        """Whether there is one statement, however long."""

        self.table = f"{self.prefix}t"
        """Alias of the table: without it SQLite reads an unknown name as text."""

    def let(self, expression: str, about: str = "") -> str:
        """Name an expression; an equal one has the same name."""
        if expression in self._names:
            return self._names[expression]
        inner = self._pattern.findall(expression)
        level = max((self._level[name] for name in inner), default=-1) + 1
        name = self._new_name(level, about)
        while level >= len(self._stages):
            self._stages.append({})
        self._stages[level][name] = expression
        self._names[expression] = name
        return name

    def join(
        self,
        key: str,
        types: tuple[str, str],
        rows: Sequence[Sequence[str]],
        about: str,
    ) -> str:
        """Join a table of literals: a key, then numbers, of two types.

        Returns its alias; ``number(alias, i)`` is NULL in rows without a match.
        """
        if self._rows is not None:
            alias = f"{about} {len(self._rows)}"
            self._rows[alias] = key, rows
            return alias
        n_numbers = len(rows[0]) - 1
        fields = [self.prefix + "k", *(f"{self.prefix}n{i}" for i in range(n_numbers))]
        kinds = [types[0], *[types[1]] * n_numbers]
        # The alias is known in the stage after that of the key.
        level = max(self._level[key], self._floor)
        alias = self._new_name(level, about)
        self._n_joined.setdefault(level, []).append(n_numbers)
        if len(rows) > self.dialect.most_inline and not self._is_single:
            table = f"{self._create(alias, fields, kinds, rows)} {alias}"
        else:
            table = self._inline(alias, fields, kinds, rows)
        key_field = f"{alias}.{fields[0]}"
        if types[0] == self.dialect.types[0]:
            key_field = self.dialect.of_key.format(key_field)
        self._joins[alias] = (table, f"{key_field} = {key}")
        return alias

    def number(self, alias: str, i: int) -> str:
        """Name a number of a joined table, which an expression has as a CASE."""
        if self._rows is not None:
            key, rows = self._rows[alias]
            cases = " ".join(f"WHEN {row[0]} THEN {row[i + 1]}" for row in rows)
            return self.let(f"CASE {key} {cases} END", alias)
        return f"{alias}.{self.prefix}n{i}"

    def is_crowded(self) -> bool:
        """Whether a stage has as many joins as it may; others need a later stage."""
        return any(
            len(of) >= _MAX_JOINS or sum(of) >= _MAX_JOINED
            for level, of in self._n_joined.items()
            if level >= self._floor
        )

    def wait_for(self, names: Iterable[str]) -> None:
        """Put later joins into stages after those of some names."""
        self._floor = max(self._level[name] for name in names)

    def _inline(
        self,
        alias: str,
        fields: Sequence[str],
        types: Sequence[str],
        rows: Sequence[Sequence[str]],
    ) -> str:
        """Write a table of literals inside the statement."""
        if self.dialect.packed and types[0] == self.dialect.types[2]:
            lines = [", ".join(x.removesuffix("e0") for x in row) for row in rows]
            text = "],\n[".join(fill(line, _WIDTH) for line in lines)
            names = ", ".join(f"row[{i}] AS {f}" for i, f in enumerate(fields, 1))
            parts = {"alias": alias, "names": names, "text": f"[\n[{text}]\n]"}
            return self.dialect.packed.format(**parts)
        form = self.dialect.rows
        lines = [form.row.format(", ".join(row)) for row in rows]
        # A union of thousands is a tree as deep, too deep for parsers: it gets groups.
        step = len(rows) if form.between == "," else _GROUP
        # Redshift cannot compare text with literals that have no type.
        for i in range(0, len(rows) if form.first else 0, step):
            of = zip(rows[i], types, fields, strict=True)
            typed_row = (f"CAST({x} AS {kind}) AS {name}" for x, kind, name in of)
            lines[i] = form.first.format(", ".join(typed_row))
        typed = fill(", ".join(map(" ".join, zip(fields, types, strict=True))), 80)
        parts = {"alias": alias, "fields": ", ".join(fields), "types": typed}
        between = f"{form.between}\n    "
        while len(lines) > step:
            groups = (lines[i : i + step] for i in range(0, len(lines), step))
            lines = [f"({between.join(group)})" for group in groups]
        inner = between.join(lines)
        return f"{form.head.format(**parts)}\n    {inner}{form.tail.format(**parts)}"

    def _create(
        self,
        alias: str,
        fields: Sequence[str],
        types: Sequence[str],
        rows: Sequence[Sequence[str]],
    ) -> str:
        """Write a temporary table in front of the statement."""
        table = f"{self.dialect.temporary}.{alias}"
        columns = ", ".join(map(" ".join, zip(fields, types, strict=True)))
        create = f"{alias} ({columns}, PRIMARY KEY ({fields[0]}))"
        self._before.append(f"DROP TABLE IF EXISTS {table};")
        self._before.append(f"CREATE TEMPORARY TABLE {create};")
        for at in range(0, len(rows), _ROWS_PER_INSERT):
            chunk = rows[at : at + _ROWS_PER_INSERT]
            lines = ",\n".join(f"({', '.join(row)})" for row in chunk)
            self._before.append(f"INSERT INTO {table} VALUES\n{lines};")
        return table

    def sum(self, terms: Sequence[str]) -> str:
        """Write a sum in groups; long terms have separate lines."""
        while len(terms) > 1:
            plus = "\n      + " if sum(map(len, terms)) > _LINE else " + "
            terms = [
                f"({plus.join(terms[at : at + _GROUP])})"
                for at in range(0, len(terms), _GROUP)
            ]
        return terms[0]

    def largest(self, names: Sequence[str]) -> str:
        """Write the largest of some numbers; a function takes a limited number."""
        while len(names) > 1:
            groups = [names[at : at + _GROUP] for at in range(0, len(names), _GROUP)]
            function = self.dialect.largest
            names = [
                f"{function}({', '.join(group)})" if len(group) > 1 else group[0]
                for group in groups
            ]
        return names[0]

    def select(
        self, outputs: Sequence[tuple[str, str]], as_stage: str = ""
    ) -> list[str]:
        """Write the statements, of which the last returns the outputs.

        Outputs are expressions and names. The last statement has no semicolon. With
        ``as_stage`` it is the stage of that name, for a query that goes on.
        """
        quoted = self.dialect.identifier
        keep = [quoted(name) for name in self.keep]
        kept = [f"{self.table}.{name} AS {name}" for name in keep]
        wanted = {name for what, _ in outputs for name in self._pattern.findall(what)}
        source, stages = f"{self.source} {self.table}", []
        for level, carried in enumerate(self._carried(wanted)):
            expressions = self._stages[level]
            used = set(self._pattern.findall(" ".join(expressions.values())))
            joins = [
                f"LEFT JOIN {table} ON {on}"
                for alias, (table, on) in self._joins.items()
                if alias in used
            ]
            lines = [*kept, *carried]
            lines += [f"{what} AS {name}" for name, what in expressions.items()]
            name = f"{self.prefix}stage{level + 1}"
            body = _body(lines, [source, *joins])
            stages.append(f"{name} AS (\n{body}{self.dialect.fence}\n)")
            source, kept = name, keep
        last = [*kept, *(f"{what} AS {quoted(name)}" for what, name in outputs)]
        if as_stage:
            body = _body(last, [source])
            stages.append(f"{as_stage} AS (\n{body}{self.dialect.fence}\n)")
            return [*self._before, f"WITH {', '.join(stages)}"]
        head = f"WITH {', '.join(stages)}\n" if stages else ""
        text = f"{head}{_body(last, [source], '')}"
        return [*self._before, wrapped(text, self.dialect.quoted)]

    def expression(self, inner: str, cells: Mapping[str, str]) -> str:
        """Write one expression, in which the columns of the table are ``cells``."""
        if self.dialect.expression == "copies":
            whole: dict[str, str] = {}
            for stage in self._stages:
                for name, what in stage.items():
                    whole[name] = f"({self._pattern.sub(lambda x: whole[x[0]], what)})"
            inner = self._pattern.sub(lambda x: whole[x[0]], inner)
        else:
            for stage in reversed(self._stages):
                values = ",\n".join(f"[{what}]" for what in stage.values())
                parts = {"names": ", ".join(stage), "inner": f"\n{inner}"}
                inner = self.dialect.expression.format(**parts, values=f"\n{values}")
        for name, cell in cells.items():
            inner = inner.replace(f"{self.table}.{self.dialect.identifier(name)}", cell)
        return inner

    def _carried(self, wanted: set[str]) -> list[list[str]]:
        """Return, for each stage, the names of earlier ones that it passes on."""
        order = {name: k for k, name in enumerate(self._level)}
        carried: list[list[str]] = []
        for level in reversed(range(len(self._stages))):
            expressions = self._stages[level]
            wanted = wanted - expressions.keys() - self._joins.keys()
            carried.append(sorted(wanted, key=order.__getitem__))
            for expression in expressions.values():
                wanted |= self._needs(expression)
        return carried[::-1]

    def _needs(self, expression: str) -> set[str]:
        """Return the names in an expression, with those that its joins compare."""
        names = set(self._pattern.findall(expression))
        for alias in names & self._joins.keys():
            names |= set(self._pattern.findall(self._joins[alias][1]))
        return names - self._joins.keys()

    def _new_name(self, level: int, about: str) -> str:
        word = re.sub(r"[^a-z0-9]+", "_", about.lower()).strip("_")[:30].rstrip("_")
        name = f"{self.prefix}{len(self._level)}{word and f'_{word}'}"
        self._level[name] = level
        return name


def _body(lines: Sequence[str], sources: Sequence[str], indent: str = "  ") -> str:
    columns = f",\n{indent}  ".join(lines)
    tables = f"\n{indent}  ".join(sources)
    return f"{indent}SELECT\n{indent}  {columns}\n{indent}FROM {tables}"


def wrapped(text: str, quoted: str) -> str:
    """Break long lines at commas and words of CASE, never within quotes.

    >>> from steelyard.export.sql_dialect import Dialect
    >>> text = "SELECT " + ", ".join(f"'column {i}, of 12'" for i in range(9))
    >>> print(wrapped(text, Dialect("", "").quoted))
    SELECT 'column 0, of 12', 'column 1, of 12', 'column 2, of 12', 'column 3, of 12',
          'column 4, of 12', 'column 5, of 12', 'column 6, of 12', 'column 7, of 12',
          'column 8, of 12'
    """
    breaks = r"(?<=,) | (?=(?:WHEN|ELSE|END|AND|OR|UNION|SELECT|ON|LIMIT)\b|\+ )"
    tokens = rf"(?s)\n *|{breaks}|(?:{quoted}|(?!{breaks})[^\n'])+"
    lines, line, indent = [], "", ""
    for token in re.findall(tokens, text):
        if token.startswith("\n"):
            lines.append(line)
            line, indent = token[1:], token[1:] + "    "
        elif token == " " or len(line) + len(token) <= _WIDTH or not line.strip():
            line += token
        else:
            lines.append(line.rstrip())
            line = indent + token
    return "\n".join([*lines, line])
