"""Methods of a fitted classifier that are functions of other folders.

Files, explanations and exports know the classifiers, not the other way round: they are
loaded when their method is asked for. ``FittedNB`` has these as its methods.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from os import PathLike
from types import MethodType
from typing import TYPE_CHECKING, Any

__all__ = [
    "column_importance",
    "drift",
    "edited",
    "explain_global",
    "explain_local",
    "export",
    "page",
    "plot",
    "save",
    "scorecard",
    "scorer",
    "to_html",
    "unedited",
]

if TYPE_CHECKING:
    from steelyard.control.edits import edited, unedited
    from steelyard.control.scorecard import scorecard_of as scorecard
    from steelyard.explain import Page, column_importance, explain_global, explain_local
    from steelyard.export import scorer_of as scorer
    from steelyard.export.formats import write as export
    from steelyard.monitoring import drift_of as drift
    from steelyard.persistence.files import save
else:

    class FunctionOf:
        """A function of a folder as a method, with its signature and docstring."""

        def __init__(self, folder: str, name: str) -> None:
            self._folder, self._name = folder, name

        def __get__(self, clf: Any, kind: type) -> Callable[..., Any]:
            function = getattr(import_module(f"steelyard.{self._folder}"), self._name)
            return function if clf is None else MethodType(function, clf)

    drift = FunctionOf("monitoring", "drift_of")
    save = FunctionOf("persistence.files", "save")
    explain_global = FunctionOf("explain", "explain_global")
    explain_local = FunctionOf("explain", "explain_local")
    column_importance = FunctionOf("explain", "column_importance")
    export = FunctionOf("export.formats", "write")
    scorer = FunctionOf("export", "scorer_of")
    scorecard = FunctionOf("control.scorecard", "scorecard_of")
    edited = FunctionOf("control.edits", "edited")
    unedited = FunctionOf("control.edits", "unedited")


def plot(clf: Any, what: Any = None, **options: Any) -> Any:
    """Draw the model, the curve of a column, or the evidence of a row.

    Parameters
    ----------
    what : str or table, default=None
        None draws the whole model as a nomogram, the name of a column what its values
        add, and a table its first row as a waterfall.
    **options
        Parameters of ``NomogramDisplay``, ``ValueCurveDisplay`` or
        ``explain_local(X).plot``.

    Returns
    -------
    NomogramDisplay, ValueCurveDisplay or WaterfallDisplay
    """
    from steelyard.displays import ValueCurveDisplay

    if what is None:
        return clf.explain_global().plot(**options)
    if isinstance(what, str):
        return ValueCurveDisplay.from_estimator(clf, what, **options)
    return clf.explain_local(what).plot(**options)


def to_html(
    clf: Any,
    path: str | PathLike[str],
    title: str | None = None,
    target: str | None = None,
    **options: Any,
) -> None:
    """Write the model as a web page in which values can be set and seen to count.

    Parameters
    ----------
    path : str or path-like
        Where to write. The page is one file and needs no network.
    title : str, default=None
        Heading of the page.
    target : str, default=None
        What is predicted, as the page asks for it; by default the name of the
        target at fit, if it had one.
    **options
        As in ``page``.
    """
    clf.page(path, title=title, target=target, **options)


def page(
    clf: Any,
    path: str | PathLike[str] | None = None,
    *,
    title: str | None = None,
    target: str | None = None,
    card: Any = None,
    rows: Any = None,
    language: str | PathLike[str] | None = None,
    edit: bool = False,
) -> Page:
    """Return the model as a web page, which a notebook shows in a frame.

    Parameters
    ----------
    path : str or path-like, default=None
        Where to write it as well.
    title, target : str, default=None
        Heading, and what is predicted.
    card : mapping or path of a TOML file, default=None
        What readers should know: ``author``, ``use``, ``quality``, ``date``;
        ``title``, ``target``, ``order`` of columns, what ``classes`` are called,
        and of ``columns`` their ``label``, ``unit``, ``description``, ``group``
        and ``values``.
    rows : table or (table, labels), default=None
        Rows that the page offers as cases, at most 5,000. Whoever has the page has
        them.
    language : {"en", "de"} or path of a TOML file, default=None
        Language of the page, or a file of its words.
    edit : bool, default=False
        Whether curves can be changed in the page, for its author: it saves a file
        for ``edited`` and ``steelyard edit``.

    Returns
    -------
    Page
        The page; ``text`` is its HTML.
    """
    from steelyard.explain import Page, page_text

    steps = None
    if edit:
        from steelyard.control.edits import edit_steps

        steps = edit_steps(clf)
    words = {"card": card, "rows": rows, "language": language, "steps": steps}
    made = Page(page_text(clf, title, target, **words))
    if path is not None:
        made.save(path)
    return made
