"""What a query is written for, and what it returns: options of SQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

from steelyard.exceptions import ParameterError

if TYPE_CHECKING:
    from steelyard.classifiers.base.estimator import BaseNB

__all__ = ["SQLOptions"]

Fields = ParamSpec("Fields")


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
        one row; ``table`` is not used. Not all databases have such functions.
    dbt : bool, default=False
        Whether to write a model of dbt, with ``ref`` or ``source`` for the table.
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


def takes(
    options: Callable[Fields, SQLOptions],
) -> Callable[
    [Callable[[BaseNB, SQLOptions], str]], Callable[Concatenate[BaseNB, Fields], str]
]:
    """Return a decorator: the fields of options become arguments of a function."""
    first = Parameter("clf", Parameter.POSITIONAL_ONLY)
    parameters = [first, *signature(options).parameters.values()]

    def with_fields(write: Callable[[BaseNB, SQLOptions], str]) -> Any:
        @wraps(write)
        def written(clf: BaseNB, *values: Fields.args, **named: Fields.kwargs) -> str:
            return write(clf, options(*values, **named))

        vars(written)["__signature__"] = Signature(parameters)
        return written

    return with_fields
