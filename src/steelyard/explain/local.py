"""Explanations of single predictions: what each cell adds to each class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats
from steelyard.exceptions import ParameterError
from steelyard.explain.counterfactual import Counterfactual, counterfactual
from steelyard.explain.row_cells import (
    Evidence,
    EvidenceItem,
    Neighbours,
    RowCells,
    describe_cells,
    neighbours_of,
)
from steelyard.explain.shared import (
    ExplainedPart,
    ModelKind,
    Tabular,
    base_rates_of,
    halve_interactions,
    in_words,
    kind_of,
    model_of,
    position_of,
    two_classes,
)
from steelyard.explain.value_summary import rows_text
from steelyard.explain.value_tables import range_by_column
from steelyard.model.base import Model
from steelyard.model.uncertainty import LEVEL, half_width
from steelyard.table.frames import as_table
from steelyard.table.summary.whole_column import NumberRange

if TYPE_CHECKING:
    from steelyard.classifiers.base.estimator import BaseNB


@dataclass(frozen=True, repr=False)
class LocalExplanation(Tabular):
    r"""Predictions for some rows, decomposed.

    For a model that is one sum,

    .. math:: z_{ic} = b_{ic} + \sum_j t_{ijc}, \qquad
       P(c \mid x_i) \propto e^{s z_{ic}},

    with ``base`` b, ``contributions`` t and ``link_scale`` s. The base is the mean
    score of the training rows, and contributions are what differs from it: their mean
    over the training rows is 0. A model that is not one sum has neither, and ``parts``
    instead; one that makes a sum for each query begins with its prior.

    Attributes
    ----------
    kind : {"sum", "mixture", "pairs", "vote", "neighbours", "average"}
        What the model is; ``note`` says it in a sentence.
    classes : ndarray of shape (K,)
        Classes.
    attributes : list of str
        Names of the columns, then of interactions.
    values : list of list of str
        Every cell as a label; missing and unseen ones are marked.
    missing : ndarray of shape (n, d)
        Which cells are missing.
    base : ndarray of shape (n, K) or None
        Where the scores start: means over the training rows.
    contributions : ndarray of shape (n, d, K) or None
        What each cell adds to each score, and what a missing one takes off by being so.
    scores : ndarray of shape (n, K) or None
        The sums.
    probabilities : ndarray of shape (n, K)
        What ``predict_proba`` returns.
    predicted : ndarray of shape (n,)
        What ``predict`` returns.
    parts : tuple of ExplainedPart
        Halves, pairs or voters, each with an explanation of its own.
    neighbours : tuple of Neighbours
        The training rows behind each row's model, for lazy classifiers.
    base_rates : ndarray of shape (K,) or None
        Shares of the classes, where these are the answer with nothing known.
    variances : tuple of ndarray of shapes (n, d, K) and (n, K), or None
        Variances of the evidence of cells, and of its sum, where they are known.
    intervals : ndarray of shape (n, K, 2) or None
        Low and high of 90 % intervals of the probabilities, where they are known.
    """

    _not_data = ("model", "cells", "ranges")

    kind: ModelKind
    note: str
    classes: NDArray[Any]
    attributes: list[str]
    values: list[list[str]]
    missing: NDArray[np.bool_]
    base: Floats | None
    contributions: Floats | None
    scores: Floats | None
    probabilities: Floats
    predicted: NDArray[Any]
    link_scale: float
    parts: tuple[ExplainedPart, ...]
    neighbours: tuple[Neighbours, ...]
    model: Model
    cells: RowCells
    ranges: list[NumberRange | None] = field(default_factory=list)
    base_rates: Floats | None = None
    titles: Mapping[str, str] = field(default_factory=dict)
    """Columns in words, where a file had labels of them."""
    variances: tuple[Floats, Floats] | None = None
    intervals: Floats | None = None

    edited: tuple[str, ...] = ()
    """Attributes that were changed by hand."""

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.probabilities)

    def evidence(
        self, row: int = 0, target: Any = None, against: Any = None
    ) -> Evidence:
        """Compare two classes of one row.

        Parameters
        ----------
        row : int, default=0
            Which row.
        target : class, default=None
            The class that positive evidence speaks for; the most probable one if not
            given.
        against : class, default=None
            The other; the most probable of the rest if not given.

        Returns
        -------
        Evidence
            The average row and one item per attribute, which add up to the log-odds.
        """
        self._check_row(row)
        if self.base is None or self.contributions is None:
            raise ParameterError(
                f"{self.note} Ask its parts: explanation.parts[0].explanation."
                "evidence(row)."
            )
        chances = self.probabilities[row]
        first, second = two_classes(chances, self.classes, target, against)
        names, values, missing = self.attributes, self.values[row], self.missing[row]
        base = self.base[row] * self.link_scale
        added = self.contributions[row] * self.link_scale
        amounts = added[:, first] - added[:, second]
        titles = in_words(names, self.titles) if self.titles else [""] * len(names)
        changed = [name in self.edited for name in names]
        half: list[Any] = [None] * (len(names) + 1)
        if self.variances is not None:
            both = [own[row][..., [first, second]].sum(-1) for own in self.variances]
            # Each class has variances of its own against all others.
            share = 1.0 - 1.0 / len(self.classes)
            half = half_width(share * np.append(*both)).tolist()
        items = tuple(
            EvidenceItem(
                *(names[j], values[j], float(amounts[j]), bool(missing[j])),
                f"{titles[j] or names[j]} (edited)" if changed[j] else titles[j],
                changed[j],
                half[j],
            )
            for j in np.argsort(-np.abs(amounts), kind="stable")
        )
        classes = (str(self.classes[first]), str(self.classes[second]))
        probability = float(chances[first])
        prior = float(base[first] - base[second])
        is_centred, rate = self.model.centre is not None, None
        if self.base_rates is not None and not is_centred:
            rate = float(self.base_rates[first])
        return Evidence(*classes, probability, prior, items, rate, is_centred, half[-1])

    def split_interactions(self) -> LocalExplanation:
        """Divide what each interaction adds between the two, half and half.

        Returns
        -------
        LocalExplanation
            Of columns alone, which add up to the same scores.
        """
        schema, contributions = self.cells.schema, self.contributions
        n = schema.n_columns
        if len(self.attributes) == n:
            return self
        if contributions is not None:
            contributions = halve_interactions(contributions, schema)
        return replace(
            self,
            attributes=self.attributes[:n],
            values=[labels[:n] for labels in self.values],
            missing=self.missing[:, :n],
            contributions=contributions,
            variances=None,  # those of halves are not known
            parts=tuple(
                replace(part, explanation=part.explanation.split_interactions())
                for part in self.parts
            ),
        )

    def counterfactual(
        self,
        row: int = 0,
        target: Any = None,
        fixed: Any = (),
        max_changes: int | None = None,
    ) -> Counterfactual:
        """Say what would have to change for another class to win.

        Parameters
        ----------
        row : int, default=0
            Which row.
        target : class, default=None
            The class that should win; if not given, the one that needs fewest changes.
        fixed : list of str, default=()
            Attributes that cannot change.
        max_changes : int, default=None
            Give up beyond this many changes.

        Returns
        -------
        Counterfactual
            The changes, by falling effect, and the probabilities after them.
        """
        self._check_row(row)
        chosen = None if target is None else position_of(target, self.classes)
        columns = self.attributes[: self.cells.schema.n_columns]
        unknown = [name for name in fixed if name not in columns]
        if unknown:
            raise ParameterError(
                f"`fixed` names {unknown}, which are not columns. Columns: "
                f"{', '.join(columns)}."
            )
        held = {columns.index(name) for name in fixed}
        cells, labels = self.cells.row(row), self.values[row]
        search = chosen, held, max_changes, range_by_column(cells.schema, self.ranges)
        return counterfactual(self.model, cells, labels, *search)

    def plot(self, row: int = 0, **options: Any) -> Any:
        """Draw the evidence of one row as a waterfall.

        Parameters
        ----------
        row : int, default=0
            Which row.
        **options
            Passed to ``WaterfallDisplay.from_explanation``.

        Returns
        -------
        WaterfallDisplay
            The picture.
        """
        # Imported here: pictures are drawn from explanations, not the other way round.
        from steelyard.displays import WaterfallDisplay

        return WaterfallDisplay.from_explanation(self, row, **options)

    def __repr__(self) -> str:
        """Show up to three rows as text."""
        return rows_text(self)

    def _check_row(self, row: int) -> None:
        if not -len(self) <= row < len(self):
            raise ParameterError(f"There is no row {row}: {len(self)} were explained.")


def explain_local(
    clf: BaseNB, X: Any, *, interactions: Literal["shown", "split"] = "shown"
) -> LocalExplanation:
    """Decompose the predictions for some rows.

    Parameters
    ----------
    clf : BaseNB
        A fitted classifier.
    X : table of shape (n, d)
        The rows, at most some thousands: the result has n * d * K numbers.
    interactions : {"shown", "split"}, default="shown"
        Whether interactions have contributions of their own, or give half to each
        of their columns.

    Returns
    -------
    LocalExplanation
        Contributions that add up to the scores, or the parts of a model that is not
        one sum.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from steelyard import NaiveBayes
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> why = NaiveBayes().fit(X, y).explain_local(X[70:71])
    >>> why.evidence()
    2 (probability 0.9946) against 1: evidence in log-odds
    attribute          value         evidence
    --------------------------------------------------------------------
    average row                         -0.40  ███│
    petal width (cm)   > 1.75           +3.25     │█████████████████████
    petal length (cm)  > 4.75           +2.35     │███████████████
    sepal width (cm)   (2.95, 3.35]     +0.13     │█
    sepal length (cm)  (5.55, 6.15]     -0.10    █│
    sum                                 +5.23
    """
    if interactions not in ("shown", "split"):
        raise ParameterError(
            f"`interactions` must be 'shown' or 'split'. Got {interactions!r}."
        )
    codes, model = clf._encode(X), model_of(clf)
    cells = RowCells.of(codes)
    named = describe_cells(cells, clf.encoder_.match(as_table(X, clf)))
    found = _explain(model, clf, cells, named)
    titles = clf.training_.labels
    changed = tuple(dict.fromkeys(e.attribute for e in getattr(clf, "edits_", ())))
    rates = base_rates_of(clf, model)
    found = replace(found, base_rates=rates, titles=titles, edited=changed)
    kept = None if hasattr(clf, "edits_") else getattr(clf, "uncertainty_", None)
    if kept is not None:
        log_proba = model.log_proba(codes, clf.n_jobs)
        intervals = kept.intervals(codes, log_proba, LEVEL)
        variances = kept.of_contributions(codes, len(clf.classes_))
        found = replace(found, variances=variances, intervals=intervals)
    return found.split_interactions() if interactions == "split" else found


def _explain(
    model: Model,
    clf: BaseNB,
    cells: RowCells,
    named: tuple[list[list[str]], NDArray[np.bool_]],
) -> LocalExplanation:
    codes, schema = cells.encoded(), cells.schema
    base = contributions = scores = None
    if (terms := model.terms(codes)) is not None:
        base, contributions = terms
        scores = base + contributions.sum(axis=1)
        if model.centre is not None:
            base = base + model.centre.sum(axis=0)
            contributions = contributions - model.centre
    parts = tuple(
        ExplainedPart(part.name, part.share, _explain(part.model, clf, cells, named))
        for part in model.parts()
    )
    return LocalExplanation(
        kind=kind_of(model),
        note=model.note(),
        classes=model.classes,
        attributes=schema.labels(),
        values=named[0],
        missing=named[1],
        base=base,
        contributions=contributions,
        scores=scores,
        probabilities=model.proba(codes, clf.n_jobs),
        predicted=model.predict(codes, clf.n_jobs),
        link_scale=float(model.link_scale),
        parts=parts,
        neighbours=neighbours_of(model, codes),
        model=model,
        cells=cells,
        ranges=clf.training_.ranges,
    )
