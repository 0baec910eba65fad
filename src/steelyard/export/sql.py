"""A plan as one SQL statement."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Any

from steelyard.exceptions import ParameterError
from steelyard.export.plan import (
    UNKNOWN_CELLS,
    Plan,
    Sum,
    about,
    refuse_intervals,
    refuse_large,
    refuse_large_categories,
)
from steelyard.export.reading import plan_of
from steelyard.export.sql_dialect import DIALECTS, Dialect, dialect_of
from steelyard.export.sql_query import ScoringQuery
from steelyard.export.sql_statement import Statement, wrapped

if TYPE_CHECKING:
    from steelyard.classifiers.base.estimator import BaseNB


@dataclass(frozen=True)
class SQLOptions:
    """What a query is written for, and what it returns.

    Parameters
    ----------
    dialect : str, default="duckdb"
        The database, one of those in ``steelyard.export.DIALECTS``.
    table : str or sequence of str, default="data"
        The table: a name, or schema and name joined by a dot or as a sequence. In a
        model of dbt a model, or a source and its table.
    keep : sequence of str, default=()
        Columns of the table to return beside the prediction, such as its key.
    contributions : bool, default=False
        Whether to return what each column, or interaction, adds to the log-odds of
        the second of two classes, or to the score of every class.
    probabilities : bool, default=True
        Whether to return probabilities; without them a database needs no ``exp``.
    as_view : str or sequence of str, default=None
        Name of a view to create, in place of a query.
    as_function : str or sequence of str, default=None
        Name of a function to create, of the columns of one row, that returns a table of
        one row, in BigQuery and ClickHouse a structure, in Redshift the probability of
        the second of two classes; ``table`` is not used. Not all databases have such
        functions.
    dbt : bool, default=False
        Whether to write a dbt model, with ``ref`` or ``source`` for the table.
    decimals : int, default=None
        Decimal places of what values add, for shorter statements; by default all. With
        10 of them and 50 columns probabilities are within 1e-9.
    """

    dialect: str = "duckdb"
    table: str | Sequence[str] = "data"
    keep: Sequence[str] = ()
    contributions: bool = False
    probabilities: bool = True
    as_view: str | Sequence[str] | None = None
    as_function: str | Sequence[str] | None = None
    dbt: bool = False
    decimals: int | None = None

    def __post_init__(self) -> None:
        keep = [self.keep] if isinstance(self.keep, str) else list(self.keep)
        if not all(isinstance(name, str) for name in keep):
            raise ParameterError(
                f"keep must be names of columns, as text. Got {keep!r}."
            )
        object.__setattr__(self, "keep", keep)
        for what in ("table", "as_view", "as_function"):
            name = getattr(self, what)
            if name is not None or what == "table":
                object.__setattr__(self, what, _parts(what, name))
        if (self.as_view is not None) + (self.as_function is not None) + self.dbt > 1:
            raise ParameterError(
                "as_view, as_function and dbt are three forms of a query: choose one."
            )
        if self.as_function is not None and keep:
            raise ParameterError(
                "A function is given the columns of the model alone: leave out `keep`, "
                "and select what to keep where the function is called."
            )
        if self.decimals is not None and self.decimals not in range(1, 18):
            raise ParameterError(
                f"decimals must be a whole number from 1 to 17, got {self.decimals!r}."
            )


def _parts(what: str, name: Any) -> list[str]:
    """Return the parts of a name: schema and table."""
    parts = name.split(".") if isinstance(name, str) else name
    is_list = isinstance(parts, list | tuple) and bool(parts)
    if not is_list or not all(isinstance(p, str) and p for p in parts):
        raise ParameterError(
            f"{what} must be a name, such as 'people' or 'shop.people', or a list of "
            f"its parts. Got {name!r}."
        )
    return list(parts)


def to_sql(clf: BaseNB, *options: Any, **named_options: Any) -> str:
    """Return a classifier as a query that scores a table.

    Parameters
    ----------
    clf : BaseNB
        A fitted classifier.
    *options, **named_options
        The fields of ``SQLOptions``, in its order.

    Returns
    -------
    str
        A query that returns ``prediction`` and a column ``p(class)`` for every class,
        ``p_class`` in BigQuery and Spark, and ``unknown_cells``, the number of cells
        that ``predict_proba`` averages over, of models that do: rows in which it is not
        0 are answered as with ``unknown="sum"``. Where a column has more than 20,000
        values, 200 in SQLite, statements that fill a temporary table may be in front of
        it.

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
    return "\n".join(sql_statements(clf, SQLOptions(*options, **named_options)))


_CLF = Parameter("clf", Parameter.POSITIONAL_ONLY)
vars(to_sql)["__signature__"] = Signature(
    [_CLF, *signature(SQLOptions).parameters.values()]
)


def sql_statements(clf: BaseNB, options: SQLOptions) -> list[str]:
    """Return the statements of ``to_sql`` one by one; the last one is the query."""
    plan, dialect = plan_of(clf), dialect_of(options.dialect)
    _check(plan, dialect, options)
    texts = [*options.keep, *options.table, *plan.texts(), *map(str, plan.classes)]
    is_single = options.dbt or bool(options.as_view or options.as_function)
    table = _quoted(dialect, options.table)
    is_expression = bool(options.as_function and dialect.expression)
    to = Statement(dialect, table, options.keep, texts, is_single, is_expression)
    fields = fields_of(plan, dialect, used=True)
    parameters = _parameters([name for name, _ in fields], dialect, to.prefix)
    if options.dbt:
        to.source = f"{to.prefix}source"
    if options.as_function and not is_expression:
        names = (dialect.identifier(name) for name, _ in fields)
        cells = map(" AS ".join, zip(parameters, names, strict=True))
        to.source = f"(SELECT {', '.join(cells)})"
    scoring = ScoringQuery(plan, to, options.decimals, options.contributions)
    outputs: list[tuple[str, str]] = []
    for what, name in scoring.outputs(options.probabilities):
        name = dialect.result(name)
        while dialect.banned and name in (other for _, other in outputs):
            name += "_"
        outputs.append((what, name))
    _check_result([*options.keep, *(name for _, name in outputs)])
    before: list[str] = []
    if is_expression:
        results = ", ".join(what for what, _ in outputs)
        # Of one number it is the probability, or the log-odds, of the second class.
        is_one = dialect.expression == "copies"
        inner = outputs[1 + options.probabilities][0] if is_one else f"tuple({results})"
        columns = [name for name, _ in fields]
        query = to.expression(inner, dict(zip(columns, parameters, strict=True)))
    else:
        *before, query = to.select(outputs)
    if options.dbt:
        query = _dbt_model(plan, dialect, query, to.source, options.table)
        check_length(query, dialect)
        return [query]
    created = [query]
    if options.as_view:
        name = _quoted(dialect, options.as_view)
        view = dialect.view.split(";\n")
        created = [part.format(name=name, query=query) for part in view]
    if options.as_function:
        if "$$" in dialect.function and "$$" in query:
            raise ParameterError(
                "A name or value of the model holds $$, which ends a function in "
                f"{dialect.name}. Use as_view."
            )
        types = [
            dialect.types[2] if name == UNKNOWN_CELLS else dialect.real
            for _, name in outputs[1:]
        ]
        types = [dialect.type_of(plan.classes), *types]
        kinds = [kind for _, kind in fields]
        declared = zip(parameters, kinds, strict=True)
        names = (dialect.identifier(name) for _, name in outputs)
        returns = ", ".join(map(" ".join, zip(names, types, strict=True)))
        read = zip(parameters, (repr(name) for name, _ in fields), strict=True)
        text = dialect.function.format(
            name=_quoted(dialect, options.as_function),
            names=", ".join(parameters),
            types=", ".join(kinds),
            parameters=", ".join(map(" ".join, declared)),
            returns=returns,
            structure=dialect.text(f"Tuple({returns})"),
            about="\n".join(map("-- {0[0]} is {0[1]}".format, read)),
            mark=to.prefix,
            query=query,
        )
        created = [wrapped(text, dialect.quoted)]
    check_length(max(created, key=len), dialect)
    first, *others = [*dialect.settings, *before, *(f"{text};\n" for text in created)]
    return [f"-- {about(plan)} For {dialect.engine}.\n{first}", *others]


def _quoted(dialect: Dialect, parts: Iterable[str]) -> str:
    return ".".join(map(dialect.identifier, parts))


def _parameters(names: Sequence[str], dialect: Dialect, prefix: str) -> list[str]:
    """Return a name of the parameter of each column: the column's, if that is valid.

    >>> names = ["age", "is new", "is_new", "2nd", "prediction"]
    >>> _parameters(names, DIALECTS["sqlserver"], "sy_")
    ['@age', '@is_new', '@sy_p2_is_new', '@sy_p3_2nd', '@sy_p4_prediction']
    """
    # A function's results are names in it as well.
    taken, words = {"prediction", UNKNOWN_CELLS}, []
    for i, name in enumerate(names):
        word = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")
        if not re.match("[A-Za-z]", word) or word.lower() in taken or len(word) > 60:
            word = f"{prefix}p{i}_{word}"[:60]
        taken.add(word.lower())
        words.append(dialect.parameter_of(word, i + 1))
    return words


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
    plan: Plan, dialect: Dialect, query: str, source: str, names: Sequence[str]
) -> str:
    """Return a query as a model of dbt, with braces escaped and a reference."""
    query = re.sub(r"\{[{%#]", lambda match: f"{{{{ '{match[0]}' }}}}", query)
    refers = "ref" if len(names) == 1 else "source"
    table = f"{{{{ {refers}({', '.join(map(repr, names[-2:]))}) }}}}"
    hooks = [setting.rstrip(";") for setting in dialect.settings]
    hook = f", pre_hook={hooks!r}" if hooks else ""
    head = f"{{{{ config(materialized='view'{hook}) }}}}\n-- {about(plan)}\n"
    return f"{head}{query.replace(f'{source} ', f'{table} ')}\n"


# ---------------------------------------------------------------------------- refusals


def _check(plan: Plan, dialect: Dialect, options: SQLOptions) -> None:
    """Raise an error for models and options that a database does not support."""
    refuse_intervals(plan, "SQL")
    refuse_large(plan, "SQL")
    if dialect.real_keys:
        refuse_large_categories(plan, dialect.name)
    contributions = options.contributions
    if not isinstance(plan.root, Sum) and (contributions or not options.probabilities):
        what = "contributions" if contributions else "scores without probabilities"
        raise ParameterError(
            f"{plan.estimator} is not one sum here, and has no {what}. Leave the "
            "option out, or use a method that is one sum."
        )
    used = list(dict.fromkeys(plan.columns[j].source for j in plan.used()))
    _check_names([*used, *(name for name in options.keep if name not in used)], dialect)
    max_columns = dialect.max_columns
    if max_columns is not None and len(used) + len(options.keep) > max_columns - 100:
        raise ParameterError(
            f"The model reads {len(used)} columns, and tables of {dialect.name} have "
            f"at most {max_columns}. Use 'duckdb', or another format, such as model.py."
        )
    if options.as_function and not dialect.function:
        with_functions = ", ".join(name for name, of in DIALECTS.items() if of.function)
        raise ParameterError(
            f"{dialect.name} has no functions that return a table. Use as_view, or one "
            f"of {with_functions}."
        )
    is_odds = isinstance(plan.root, Sum) and plan.root.is_odds and not plan.unit
    if options.as_function and dialect.expression == "copies":
        if contributions or not is_odds:
            raise ParameterError(
                f"A function of {dialect.name} returns one number, the probability of "
                "the second of two classes, of a model that is one sum. Use as_view "
                "for other models, and for contributions."
            )


def check_length(statement: str, dialect: Dialect) -> None:
    """Raise an error for statements that are too long for a database."""
    size, limit = len(statement.encode("utf-8")), dialect.max_bytes
    if limit is not None and size > limit:
        raise ParameterError(
            f"The statement has {size:,} bytes, and {dialect.name} takes at most "
            f"{limit:,}. Set `decimals` for a shorter one, or use another format."
        )


def _check_result(names: list[str]) -> None:
    """Raise an error for two columns of one name, which only `keep` can cause."""
    for position, name in enumerate(names):
        if name in names[:position]:
            raise ParameterError(
                f"The column {name!r} in `keep` would be returned twice: columns of "
                "the result need distinct names."
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
