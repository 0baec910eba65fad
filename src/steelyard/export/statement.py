"""Named expressions put into stages of one SQL statement."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from steelyard.export.dialects import Dialect

# Terms of a sum that stand in one pair of parentheses: databases refuse expressions
# that are nested deeper than 1,000, which a flat sum of so many terms is.
_GROUP = 32

# Rows of values that a statement may have inside; more become a table in front of it.
_MOST_INLINE = 1_000
_ROWS_PER_INSERT = 500


_LINE = 72


class Statement:
    """Expressions with names, each in the stage after those of the names in it.

    No expression is written twice, and every stage is fenced: without that databases
    copy expressions into all places that mention them.
    """

    def __init__(
        self, dialect: Dialect, source: str, keep: Sequence[str], texts: Iterable[str]
    ) -> None:
        self.dialect, self.source, self.keep = dialect, source, list(keep)
        self._prefix = _unlike("sy_", texts)
        self._pattern = re.compile(rf"\b{self._prefix}\d+\b")
        self._level: dict[str, int] = {}
        self._stages: list[dict[str, str]] = []
        self._names: dict[str, str] = {}
        self._joins: dict[str, str] = {}
        self._before: list[str] = list(dialect.settings)
        self._count = 0
        self.table = f"{self._prefix}t"
        """The table that is read. A name without it that the table does not have is
        text to SQLite."""

    def let(self, expression: str) -> str:
        """Name an expression; the same one has the same name."""
        if expression in self._names:
            return self._names[expression]
        inner = self._pattern.findall(expression)
        level = max((self._level[name] for name in inner), default=-1) + 1
        name = self._new_name(level)
        if level == len(self._stages):
            self._stages.append({})
        self._stages[level][name] = expression
        self._names[expression] = name
        return name

    def join(
        self, keys: Sequence[str], types: Sequence[str], rows: Sequence[Sequence[str]]
    ) -> str:
        """Join a table of literals: keys of some types, then numbers.

        Returns its alias; ``number(alias, i)`` is NULL in rows without a match.
        """
        fields = [f"{self._prefix}k{i}" for i in range(len(keys))]
        n_numbers = len(rows[0]) - len(keys)
        fields += [f"{self._prefix}n{i}" for i in range(n_numbers)]
        # The alias is known in the stage after that of the keys.
        alias = self._new_name(max(self._level[key] for key in keys))
        lines = [f"({', '.join(row)})" for row in rows]
        if len(rows) > _MOST_INLINE:
            every = [*types, *[self.dialect.real] * n_numbers]
            table = self._create(alias, fields[: len(keys)], fields, every, lines)
        else:
            values, names = ",\n    ".join(lines), ", ".join(fields)
            inner = f"WITH {alias}({names}) AS (VALUES\n    {values})"
            table = f"({inner}\n    SELECT * FROM {alias})"
        on = " AND ".join(
            f"{alias}.{field} = {key}" for field, key in zip(fields, keys, strict=False)
        )
        self._joins[alias] = f"LEFT JOIN {table} AS {alias} ON {on}"
        return alias

    def number(self, alias: str, i: int) -> str:
        """Name a number of a joined table."""
        return f"{alias}.{self._prefix}n{i}"

    def _create(
        self,
        alias: str,
        keys: list[str],
        fields: list[str],
        types: list[str],
        lines: list[str],
    ) -> str:
        """Write a temporary table in front of the statement."""
        table = f"{self.dialect.temporary}.{alias}"
        columns = ", ".join(map(" ".join, zip(fields, types, strict=True)))
        primary = f"PRIMARY KEY ({', '.join(keys)})"
        self._before.append(f"DROP TABLE IF EXISTS {table};")
        self._before.append(f"CREATE TEMPORARY TABLE {alias} ({columns}, {primary});")
        for at in range(0, len(lines), _ROWS_PER_INSERT):
            rows = ",\n".join(lines[at : at + _ROWS_PER_INSERT])
            self._before.append(f"INSERT INTO {table} VALUES\n{rows};")
        return table

    def sum(self, terms: Sequence[str]) -> str:
        """Write a sum, in groups; long terms have lines of their own."""
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

    def select(self, outputs: Sequence[tuple[str, str]]) -> list[str]:
        """Write the statements, of which the last returns the outputs.

        Outputs are expressions and names.
        """
        quoted = self.dialect.identifier
        later = [quoted(name) for name in self.keep]
        kept = [f"{self.table}.{name} AS {name}" for name in later]
        wanted = {name for what, _ in outputs for name in self._pattern.findall(what)}
        source, stages = f"{self.source} AS {self.table}", []
        for level, carried in enumerate(self._carried(wanted)):
            own = self._stages[level]
            texts = [*carried, *own.values()]
            joins = sorted(
                {a for t in texts for a in self._pattern.findall(t) if a in self._joins}
            )
            lines = [*kept, *carried]
            lines += [f"{what} AS {name}" for name, what in own.items()]
            body = _body(lines, [source, *(self._joins[alias] for alias in joins)])
            name = f"{self._prefix}stage{level + 1}"
            stages.append(f"{name} AS (\n{body}{self.dialect.fence}\n)")
            source, kept = name, later
        head = f"WITH {', '.join(stages)}\n" if stages else ""
        last = [*kept, *(f"{what} AS {quoted(name)}" for what, name in outputs)]
        return [*self._before, f"{head}{_body(last, [source], '')};\n"]

    def _carried(self, wanted: set[str]) -> list[list[str]]:
        """Return which names of earlier stages each stage hands on."""
        carried: list[list[str]] = []
        for level in reversed(range(len(self._stages))):
            own = self._stages[level]
            past = [n for n in wanted if n not in own and n not in self._joins]
            carried.append(sorted(past, key=lambda n: int(n[len(self._prefix) :])))
            wanted = set(past)
            for expression in own.values():
                wanted |= self._needs(expression)
        return carried[::-1]

    def _needs(self, expression: str) -> set[str]:
        """Return the names in an expression, with those that its joins compare."""
        names = set(self._pattern.findall(expression))
        for alias in names & self._joins.keys():
            on = self._joins[alias].rpartition(" ON ")[2]
            names |= set(self._pattern.findall(on))
        return names - self._joins.keys()

    def _new_name(self, level: int) -> str:
        name = f"{self._prefix}{self._count}"
        self._count += 1
        self._level[name] = level
        return name


def _body(lines: Sequence[str], sources: Sequence[str], indent: str = "  ") -> str:
    columns = f",\n{indent}  ".join(lines)
    tables = f"\n{indent}  ".join(sources)
    return f"{indent}SELECT\n{indent}  {columns}\n{indent}FROM {tables}"


def _unlike(prefix: str, texts: Iterable[str]) -> str:
    """Return a prefix that no text has in it."""
    every = "\n".join(texts).lower()
    while prefix in every:
        prefix += "_"
    return prefix
