"""Conveniences: what can be done with a fitted classifier, as methods of it.

Each loads what it needs when it is called: files, explanations and exports know the
classifiers, not the other way round.
"""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from steelyard.explain import GlobalExplanation, LocalExplanation
    from steelyard.export.scorer import Scorer


class Conveniences:
    """Saving, explaining and exporting a fitted classifier."""

    def save(self: Any, path: str | PathLike[str]) -> None:
        """Write the fitted model to one JSON file, whole or not at all.

        Parameters
        ----------
        path : str or path-like
            Where to write. An existing file is replaced in one step, so that an
            interruption leaves either the old file or the new one.
        """
        from steelyard.persistence import save

        save(self, path)

    def explain_global(self: Any, X: Any = None) -> GlobalExplanation:
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

        return explain_global(self, X)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Mean absolute evidence of each column over the training rows, shape (d,).

        That of a pair of columns is given to the two, half and half. For
        ``SelectFromModel``, ``RFE`` and the like.
        """
        from steelyard.explain import column_importance

        return column_importance(self)

    def explain_local(
        self: Any, X: Any, *, pairs: Literal["shown", "split"] = "shown"
    ) -> LocalExplanation:
        """Decompose the predictions for some rows.

        Parameters
        ----------
        X : table of shape (n, d)
            The rows.
        pairs : {"shown", "split"}, default="shown"
            Whether pairs of columns have contributions of their own, or give half to
            each of the two.

        Returns
        -------
        LocalExplanation
            What each cell adds to the score of each class; the parts of a model that is
            not one sum.
        """
        from steelyard.explain import explain_local

        return explain_local(self, X, pairs=pairs)

    def to_html(
        self: Any,
        path: str | PathLike[str],
        title: str | None = None,
        target: str | None = None,
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
        """
        from steelyard.explain import to_html

        to_html(self, path, title, target)

    def export(
        self: Any, path: str | PathLike[str], format: str | None = None, **options: Any
    ) -> None:
        """Write the model for other programs: SQL, ONNX, PMML, JavaScript or Python.

        Parameters
        ----------
        path : str or path-like
            Where to write. An existing file is replaced in one step.
        format : {"sql", "onnx", "pmml", "js", "py"}, default=None
            What to write; by default what the name of the file ends with.
        **options
            Options of the format, such as ``dialect``, ``table`` and ``keep`` of SQL:
            see the functions of ``steelyard.export``.
        """
        from steelyard.export import write

        write(self, path, format, **options)

    def scorer(self: Any) -> Scorer:
        """Return a function of one row, for services: no frames, no arrays.

        Returns
        -------
        Scorer
            ``score(row)`` gives the probabilities of the classes, for a mapping from
            column names to cells; ``score.predict(row)`` and ``score.reasons(row)`` go
            with it. It can be pickled and shared by threads.
        """
        from steelyard.export import scorer_of

        return scorer_of(self)
