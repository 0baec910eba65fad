"""Functions of other folders as methods of a fitted classifier.

Files, explanations and exports know the classifiers, not the other way round: they are
loaded by the methods that need them. ``FittedNB`` has these functions as its methods.
"""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

from steelyard.exceptions import check_fitted

if TYPE_CHECKING:
    from steelyard.control.card import Scorecard
    from steelyard.explain import GlobalExplanation, LocalExplanation, Page
    from steelyard.export import Scorer
    from steelyard.monitoring import Drift


def drift(
    clf: Any,
    X: Any,
    y: Any = None,
    by: Any = None,
    *,
    psi: float = 0.25,
    share: float = 0.05,
) -> Drift:
    """Compare new rows with what the model holds of its training rows.

    Population stability indices of scores and columns, and shares of missing,
    unseen and out-of-range cells; with labels AUC, log-loss and calibration. A
    threshold is passed where a difference is larger than it and than chance: where
    nothing has changed, one comparison in twenty is significant.

    Parameters
    ----------
    X : table of shape (n, d), or source of rows
        The rows. Nothing of the training table is needed.
    y : array-like of shape (n,), default=None
        Their labels, as far as they are known; of a source a column's name.
    by : str or array-like of shape (n,), default=None
        Periods: cells or the name of a column, of which dates are cut to months.
    psi : float, default=0.25
        Threshold of the index.
    share : float, default=0.05
        Threshold of shares, in which a rise is meant, and of calibration.

    Returns
    -------
    Drift
        With ``alarms``, ``to_frame()`` and ``to_html(path)``.

    Examples
    --------
    >>> import steelyard as sy
    >>> clf = sy.NaiveBayes().fit([["a"], ["b"]] * 50, ["no", "yes"] * 50)
    >>> clf.drift([["a"], ["b"]] * 20).alarms, clf.drift([["a"]] * 40).is_alarm
    ([], True)
    """
    from steelyard.monitoring import drift_of

    check_fitted(clf)
    return drift_of(clf, X, y, by, psi=psi, share=share)


def save(clf: Any, path: str | PathLike[str]) -> None:
    """Write the fitted model to one JSON file, whole or not at all.

    Parameters
    ----------
    path : str or path-like
        Where to write. An existing file is replaced in one step, so that an
        interruption leaves either the old file or the new one.
    """
    from steelyard.persistence.files import save

    save(clf, path)


def explain_global(clf: Any, X: Any = None) -> GlobalExplanation:
    """Show what the model has learned, attribute by attribute.

    Parameters
    ----------
    X : table of shape (n, d), default=None
        Rows over which importance is taken; the training counts without them.

    Returns
    -------
    GlobalExplanation
        Value tables, importance and weights; the parts of a model that is not one
        sum.
    """
    from steelyard.explain import explain_global

    return explain_global(clf, X)


def column_importance(clf: Any) -> Any:
    """Return the importance of each column: see ``feature_importances_``."""
    from steelyard.explain import column_importance

    return column_importance(clf)


def explain_local(
    clf: Any, X: Any, *, interactions: Literal["shown", "split"] = "shown"
) -> LocalExplanation:
    """Decompose the predictions for some rows.

    Parameters
    ----------
    X : table of shape (n, d)
        The rows.
    interactions : {"shown", "split"}, default="shown"
        Whether interactions have separate contributions, or give half to
        each of the two.

    Returns
    -------
    LocalExplanation
        What each cell adds to the score of each class; the parts of a model that is
        not one sum.
    """
    from steelyard.explain import explain_local

    return explain_local(clf, X, interactions=interactions)


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


def export(
    clf: Any, path: str | PathLike[str], format: str | None = None, **options: Any
) -> None:
    """Write the model for another program: see ``steelyard.export``.

    Parameters
    ----------
    path : str or path-like
        Where to write. An existing file is replaced in one step.
    format : str, default=None
        One of ``steelyard.export.FORMATS``, such as "sql"; by default what the name
        of the file ends with.
    **options
        Options of the format, such as ``dialect``, ``table`` and ``keep`` of SQL:
        see the functions of ``steelyard.export``.
    """
    from steelyard.export.formats import write

    write(clf, path, format, **options)


def scorer(clf: Any) -> Scorer:
    """Return a function of one row, for services: no frames, no arrays.

    Returns
    -------
    Scorer
        ``score(row)`` gives the probabilities of the classes, for a mapping from
        column names to cells; ``score.predict(row)`` and ``score.reasons(row)`` go
        with it. It can be pickled and shared by threads.
    """
    from steelyard.export import scorer_of

    return scorer_of(clf)


def scorecard(clf: Any, X: Any = None, y: Any = None, **options: Any) -> Scorecard:
    """Return the model as a card of whole points that people can add up.

    Parameters
    ----------
    X, y : table and labels, default=None
        Rows to make the card on, best those of training; labels are for its loss.
    **options
        Those of ``steelyard.control.scorecard.scorecard_of``, such as ``max_bins=8``.

    Returns
    -------
    Scorecard
        The card; ``export(path)`` writes it.
    """
    from steelyard.control.scorecard import scorecard_of

    return scorecard_of(clf, X, y, **options)


def edited(
    clf: Any,
    edits: Any,
    reason: str | None = None,
    recalibrate: Any = None,
    break_shapes: bool = False,
) -> Any:
    """Return a copy with changes by hand, which ``edits_`` and files record.

    Parameters
    ----------
    edits, reason, recalibrate, break_shapes
        What to change, why, rows (X, y) on which the start of the sum is fitted
        again, and whether ``constraints`` may be broken: see
        ``steelyard.control.edited``.

    Returns
    -------
    classifier
        The copy; ``unedited()`` goes back.
    """
    from steelyard.control.edits import edited

    return edited(clf, edits, reason, recalibrate, break_shapes)


def unedited(clf: Any) -> Any:
    """Return a copy of the model as it was before all edits, to the bit."""
    from steelyard.control.edits import unedited

    return unedited(clf)
