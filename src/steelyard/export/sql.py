"""A plan as one SQL statement."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from steelyard.exceptions import ParameterError
from steelyard.export.plan import (
    Plan,
    Sum,
    about,
    refuse_intervals,
    refuse_large,
    refuse_large_categories,
)
from steelyard.export.reading import plan_of
from steelyard.export.scores_sql import ScoringQuery
from steelyard.export.sql_dialect import DIALECTS, Dialect, dialect_of
from steelyard.export.statement import Statement, wrapped

if TYPE_CHECKING:
    from steelyard.classifiers.base.estimator import BaseNB


def to_sql(
    clf: BaseNB,
    dialect: str = "duckdb",
    table: str | Sequence[str] = "data",
    keep: Sequence[str] = (),
    contributions: bool = False,
    probabilities: bool = True,
    as_view: str | Sequence[str] | None = None,
    as_function: str | Sequence[str] | None = None,
    dbt: bool = False,
    decimals: int | None = None,
) -> str:
    """Return a classifier as a query that scores a table.

    Parameters
    ----------
    clf : BaseNB
        A fitted classifier.
    dialect : str, default="duckdb"
        The database: "duckdb", "sqlite", "postgres", "spark", "bigquery", "snowflake",
        "sqlserver", "mysql", "mariadb", "clickhouse", "redshift", "oracle", "trino" or
        "athena".
    table : str or sequence of str, default="data"
        The table: a name, or schema and name joined by a dot or as a sequence. In a
        model of dbt a model, or a source and its table.
    keep : sequence of str, default=()
        Columns of the table to return beside the prediction, such as its key.
    contributions : bool, default=False
        Whether to return what each column, or pair of columns, adds to the log-odds of
        the second of two classes, or to the score of every class.
    probabilities : bool, default=True
        Whether to return probabilities; without them a database needs no ``exp``.
    as_view : str or sequence of str, default=None
        Name of a view to create, in place of a query.
    as_function : str or sequence of str, default=None
        Name of a function to create, of the columns of one row, that returns a table of
        one row; ``table`` is not used. Not all databases have such functions.
    dbt : bool, default=False
        Whether to write a model of dbt, with ``ref`` or ``source`` for the table.
    decimals : int, default=None
        Decimal places of what values add, for shorter statements; by default all. With
        10 of them and 50 columns probabilities are within 1e-9.

    Returns
    -------
    str
        A query that returns ``prediction`` and a column ``p(class)`` for every class,
        ``p_class`` in BigQuery and Spark. Where a column has more than 20,000 values,
        200 in SQLite, statements that fill a temporary table may be in front of it.

    Examples
    --------
    >>> import pandas as pd, sqlite3, steelyard as sy
    >>> X = pd.DataFrame({"sky": ["sun", "rain"] * 4, "degrees": [21.0, 12.0] * 4})
    >>> clf = sy.NaiveBayes().fit(X, ["play", "stay"] * 4)
    >>> days = sqlite3.connect(":memory:")
    >>> _ = X[:2].to_sql("days", days)
    >>> rows = days.execute(to_sql(clf, "sqlite", "days", keep=["sky"])).fetchall()
    >>> [(sky, best, round(p, 4)) for sky, best, p, _ in rows]
    [('sun', 'play', 0.9878), ('rain', 'stay', 0.0122)]
    """
    return "\n".join(sql_statements(**locals()))


def sql_statements(
    clf: BaseNB,
    dialect: str = "duckdb",
    table: str | Sequence[str] = "data",
    keep: Sequence[str] = (),
    contributions: bool = False,
    probabilities: bool = True,
    as_view: str | Sequence[str] | None = None,
    as_function: str | Sequence[str] | None = None,
    dbt: bool = False,
    decimals: int | None = None,
) -> list[str]:
    """Return what ``to_sql`` does, statement by statement; the last one is the query.

    Parameters are those of ``to_sql``.
    """
    plan, ways = plan_of(clf), dialect_of(dialect)
    names = _names("table", table)
    keep = [keep] if isinstance(keep, str) else list(keep)
    if not all(isinstance(name, str) for name in keep):
        raise ParameterError(f"keep must be names of columns, as text. Got {keep!r}.")
    _check(plan, ways, keep, contributions, probabilities)
    _check_form(ways, keep, as_view, as_function, dbt, decimals)
    texts = [*keep, *names, *plan.texts(), *map(str, plan.classes)]
    alone = dbt or as_view is not None or as_function is not None
    to = Statement(ways, ".".join(map(ways.identifier, names)), keep, texts, alone)
    fields = fields_of(plan, ways, used=True)
    words = _parameter_words([name for name, _ in fields], to.prefix)
    if dbt:
        to.source = f"{to.prefix}source"
    if as_function is not None:
        cells = zip(
            map(ways.parameter_of, words),
            (ways.identifier(name) for name, _ in fields),
            strict=True,
        )
        to.source = f"(SELECT {', '.join(map(' AS '.join, cells))})"
    query = ScoringQuery(plan, to, contributions, decimals)
    outputs: list[tuple[str, str]] = []
    for what, name in query.outputs(probabilities):
        name = ways.result(name)
        while ways.banned and name in (other for _, other in outputs):
            name += "_"
        outputs.append((what, name))
    _check_result([*keep, *(name for _, name in outputs)])
    *before, last = to.select(outputs)
    if dbt:
        last = _dbt_model(plan, ways, last, to.source, names)
        _check_length(last, ways)
        return [last]
    created = [last]
    if as_function is not None and "$$" in ways.function and "$$" in last:
        raise ParameterError(
            "A name or value of the model holds $$, which ends a function in "
            f"{ways.name}. Use as_view."
        )
    if as_view is not None:
        name = ".".join(map(ways.identifier, _names("as_view", as_view)))
        created = [
            part.format(name=name, query=last) for part in ways.view.split(";\n")
        ]
    if as_function is not None:
        returned = [ways.type_of(plan.classes), *[ways.real] * (len(outputs) - 1)]
        typed = zip((ways.identifier(n) for _, n in outputs), returned, strict=True)
        marks = list(map(ways.parameter_of, words))
        declared = zip(marks, (kind for _, kind in fields), strict=True)
        text = ways.function.format(
            name=".".join(map(ways.identifier, _names("as_function", as_function))),
            names=", ".join(marks),
            parameters=", ".join(map(" ".join, declared)),
            returns=", ".join(map(" ".join, typed)),
            mark=to.prefix,
            query=last,
        )
        created = [wrapped(text, ways.quoted)]
    _check_length(max(created, key=len), ways)
    first, *others = [*ways.settings, *before, *(f"{text};\n" for text in created)]
    return [f"-- {about(plan)} For {ways.engine}.\n{first}", *others]


def _names(what: str, name: str | Sequence[str]) -> list[str]:
    """Return a name in parts: schema and table."""
    parts = name.split(".") if isinstance(name, str) else name
    if (
        not isinstance(parts, list | tuple)
        or not parts
        or not all(map(_is_name, parts))
    ):
        raise ParameterError(
            f"{what} must be a name, such as 'people' or 'shop.people', or a list of "
            f"its parts. Got {name!r}."
        )
    return list(parts)


def _parameter_words(names: Sequence[str], prefix: str) -> list[str]:
    """Return a word for each column, to be called by: its name where that is one.

    Examples
    --------
    >>> _parameter_words(["age", "is new", "is_new", "2nd", "prediction"], "sy_")
    ['age', 'is_new', 'sy_p2_is_new', 'sy_p3_2nd', 'sy_p4_prediction']
    """
    # What a function returns is a name in it as well.
    taken, words = {"prediction"}, []
    for i, name in enumerate(names):
        word = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")
        if not re.match("[A-Za-z]", word) or word.lower() in taken or len(word) > 60:
            word = f"{prefix}p{i}_{word}"[:60]
        taken.add(word.lower())
        words.append(word)
    return words


def _is_name(part: Any) -> bool:
    return isinstance(part, str) and bool(part)


def fields_of(
    plan: Plan, dialect: Dialect, used: bool = False
) -> list[tuple[str, str]]:
    """Return names and types of the columns of a table, all or those that are read."""
    types = {"text": dialect.types[0], "booleans": dialect.types[1]}
    fields: dict[str, str] = {}
    for j in plan.used() if used else range(len(plan.columns)):
        column = plan.columns[j]
        kind = (
            dialect.date_type if column.part else types.get(column.cells, dialect.real)
        )
        if not column.part and column.kind == "category" and column.cells == "numbers":
            kind = dialect.type_of(column.values)
        fields.setdefault(column.source, kind)
    return list(fields.items())


def _dbt_model(
    plan: Plan, dialect: Dialect, query: str, source: str, names: list[str]
) -> str:
    """Return a query as a model of dbt: its braces are text, its table a reference."""
    query = re.sub(r"\{[{%#]", lambda found: f"{{{{ '{found[0]}' }}}}", query)
    refers = "ref" if len(names) == 1 else "source"
    table = f"{{{{ {refers}({', '.join(map(repr, names[-2:]))}) }}}}"
    hooks = [setting.rstrip(";") for setting in dialect.settings]
    hook = f", pre_hook={hooks!r}" if hooks else ""
    head = f"{{{{ config(materialized='view'{hook}) }}}}\n-- {about(plan)}\n"
    return f"{head}{query.replace(f'{source} ', f'{table} ')}\n"


# ---------------------------------------------------------------------------- refusals


def _check(
    plan: Plan, dialect: Dialect, keep: list[str], contributions: bool, proba: bool
) -> None:
    """Refuse what a statement cannot hold."""
    refuse_intervals(plan, "SQL")
    refuse_large(plan, "SQL")
    if dialect.real_keys:
        refuse_large_categories(plan, dialect.name)
    if not isinstance(plan.root, Sum) and (contributions or not proba):
        what = "contributions" if contributions else "scores without probabilities"
        raise ParameterError(
            f"{plan.estimator} is not one sum here, and has no {what}. Leave the "
            "option out, or use a method that is one sum."
        )
    used = list(dict.fromkeys(plan.columns[j].source for j in plan.used()))
    _check_names([*used, *(name for name in keep if name not in used)], dialect)
    most = dialect.max_columns
    if most is not None and len(used) + len(keep) > most - 100:
        raise ParameterError(
            f"The model reads {len(used)} columns, and tables of {dialect.name} have "
            f"at most {most}. Use 'duckdb', or another format, such as model.py."
        )


def _check_form(
    dialect: Dialect,
    keep: list[str],
    as_view: Any,
    as_function: Any,
    dbt: bool,
    decimals: int | None,
) -> None:
    """Refuse forms of a query that a database has not, or that exclude each other."""
    if (as_view is not None) + (as_function is not None) + dbt > 1:
        raise ParameterError(
            "as_view, as_function and dbt are three forms of a query: choose one."
        )
    if as_function is not None and not dialect.function:
        known = ", ".join(name for name, of in DIALECTS.items() if of.function)
        raise ParameterError(
            f"{dialect.name} has no functions that return a table. Use as_view, or one "
            f"of {known}."
        )
    if as_function is not None and keep:
        raise ParameterError(
            "A function is given the columns of the model alone: leave out `keep`, and "
            "select what to keep where the function is called."
        )
    if decimals is not None and decimals not in range(1, 18):
        raise ParameterError(
            f"decimals must be a whole number from 1 to 17, got {decimals!r}."
        )


def _check_length(statement: str, dialect: Dialect) -> None:
    """Refuse statements that a database would refuse for their length."""
    size, most = len(statement.encode("utf-8")), dialect.max_bytes
    if most is not None and size > most:
        raise ParameterError(
            f"The statement has {size:,} bytes, and {dialect.name} takes at most "
            f"{most:,}. Set `decimals` for a shorter one, or use another format."
        )


def _check_result(names: list[str]) -> None:
    """Refuse columns of one name, which only `keep` can bring about."""
    for position, name in enumerate(names):
        if name in names[:position]:
            raise ParameterError(
                f"The column {name!r} in `keep` would be returned twice: every column "
                "of the result needs a name of its own."
            )


def _check_names(names: list[str], dialect: Dialect) -> None:
    if not dialect.folds_case:
        return
    by_fold: dict[str, str] = {}
    for name in names:
        other = by_fold.setdefault(name.lower(), name)
        if other != name:
            raise ParameterError(
                f"The columns {other!r} and {name!r} differ only in case, and are one "
                f"column to {dialect.name}. Rename one of them, and fit again."
            )
