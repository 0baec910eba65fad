"""Explanations of single predictions: what each cell adds to each class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats
from steelyard._common.html import element, escape
from steelyard._common.text import probability_text
from steelyard.exceptions import ParameterError
from steelyard.explain.counterfactual import Counterfactual, counterfactual
from steelyard.explain.evidence import MISSING_COLUMNS, Evidence, EvidenceItem
from steelyard.explain.row_cells import (
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
    evidence_columns,
    evidence_of,
    halve_interactions,
    in_words,
    kind_of,
    model_of,
    position_of,
    two_classes,
)
from steelyard.model.base import Model, softmax
from steelyard.model.marginal import missing_patterns
from steelyard.model.table_model import NBModel
from steelyard.model.uncertainty import LEVEL, half_width
from steelyard.table.frames import as_table
from steelyard.table.ranges import NumberRange

if TYPE_CHECKING:
    from steelyard.classifiers.base.estimator import BaseNB

# How many rows are shown, and submodels of a model for each.
_MAX_ROWS, _MAX_PARTS = 3, 10


class NextQuestion(NamedTuple):
    """A missing column of a row, and what knowing it would change."""

    column: str
    change: float
    """Expected absolute change of the probability of a class."""


@dataclass(frozen=True, repr=False)
class LocalExplanation(Tabular):
    r"""Predictions for some rows, decomposed.

    For a model that is one sum,

    .. math:: z_{ic} = b_{ic} + \sum_j t_{ijc}, \qquad
       P(c \mid x_i) \propto e^{s z_{ic}},

    with ``base`` b, ``contributions`` t and ``link_scale`` s. The base is the mean
    score of the training rows, and contributions are relative to it: their mean over
    the training rows is 0. A model that is not one sum has neither, and ``parts``
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
        Start of the scores: their means over the training rows.
    contributions : ndarray of shape (n, d, K) or None
        Contribution of each cell to each score, missing cells included.
    scores : ndarray of shape (n, K) or None
        The sums.
    probabilities : ndarray of shape (n, K)
        What ``predict_proba`` returns.
    predicted : ndarray of shape (n,)
        What ``predict`` returns.
    parts : tuple of ExplainedPart
        Halves, pairs or voters, each with its explanation.
    neighbours : tuple of Neighbours
        The training rows behind each row's model, for lazy classifiers.
    base_rates : ndarray of shape (K,) or None
        Shares of the classes, if these are the answer for a row without any cell.
    variances : tuple of ndarray of shapes (n, d, K) and (n, K), or None
        Variances of the evidence of cells, and of its sum, if they are known.
    intervals : ndarray of shape (n, K, 2) or None
        Low and high of 90 % intervals of the probabilities, if they are known.
    implied : ndarray of shape (n, d, K) or None
        Part of each contribution that is what an observed cell says of the missing
        ones; None if no row has cells that are averaged over.
    averaging : ndarray of shape (n, K) or None
        Change of the scores by the average over the missing cells, which draws answers
        to the base rates: with base and contributions it adds up to the scores. Rows
        with such cells begin with the base rates, and missing cells add nothing.
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
    ranges: list[NumberRange | None]
    base_rates: Floats | None = None
    titles: Mapping[str, str] = field(default_factory=dict)
    """Columns in words, if a file had labels of them."""
    variances: tuple[Floats, Floats] | None = None
    intervals: Floats | None = None
    implied: Floats | None = None
    averaging: Floats | None = None

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
            The class that positive evidence supports; the most probable one if not
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
        proba = self.probabilities[row]
        first, second = two_classes(proba, self.classes, target, against)
        names, values, missing = self.attributes, self.values[row], self.missing[row]
        base = self.base[row] * self.link_scale
        scaled = self.contributions[row] * self.link_scale
        amounts = scaled[:, first] - scaled[:, second]
        titles = in_words(names, self.titles) if self.titles else [""] * len(names)
        changed = [name in self.edited for name in names]
        half: list[Any] = [None] * (len(names) + 1)
        if self.variances is not None:
            both = [v[row][..., [first, second]].sum(-1) for v in self.variances]
            # Variances are those of a class against all others.
            share = 1.0 - 1.0 / len(self.classes)
            half = half_width(share * np.append(*both)).tolist()
        implied, shown = np.zeros(len(names)), np.ones(len(names), dtype=bool)
        rest: list[EvidenceItem] = []
        averaging = None if self.averaging is None else self.averaging[row]
        is_partial = averaging is not None and bool(averaging.any())
        if is_partial and self.implied is not None and averaging is not None:
            both = self.implied[row] * self.link_scale
            implied = both[:, first] - both[:, second]
            shown = amounts != 0.0
            gap = averaging * self.link_scale
            amount = float(gap[first] - gap[second])
            rest = [EvidenceItem(*MISSING_COLUMNS, amount, missing=True)]
        items = [
            EvidenceItem(
                *(names[j], values[j], float(amounts[j]), bool(missing[j])),
                f"{titles[j] or names[j]} (edited)" if changed[j] else titles[j],
                changed[j],
                half[j],
                float(implied[j]),
            )
            for j in np.flatnonzero(shown).tolist()
        ]
        items = sorted([*items, *rest], key=lambda item: -abs(item.amount))
        classes = (str(self.classes[first]), str(self.classes[second]))
        probability = float(proba[first])
        prior = float(base[first] - base[second])
        is_centred, rate = self.model.centre is not None, None
        if is_partial:
            is_centred, rate = False, float(softmax(base[None, :])[0, first])
        elif self.base_rates is not None and not is_centred:
            rate = float(self.base_rates[first])
        return Evidence(
            *classes, probability, prior, tuple(items), rate, is_centred, half[-1]
        )

    def split_interactions(self) -> LocalExplanation:
        """Divide the contribution of each interaction between its columns, by half.

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
        """Search the fewest changes of a row after which another class wins.

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
        no_columns = [name for name in fixed if name not in columns]
        if no_columns:
            raise ParameterError(
                f"`fixed` names {no_columns}, which are not columns. Columns: "
                f"{', '.join(columns)}."
            )
        kept = {columns.index(name) for name in fixed}
        cells, labels = self.cells.row(row), self.values[row]
        search = chosen, kept, max_changes, self.ranges
        return counterfactual(self.model, cells, labels, *search)

    def next_questions(self, row: int = 0, target: Any = None) -> list[NextQuestion]:
        """Rank the missing columns of a row by what knowing each would change.

        Parameters
        ----------
        row : int, default=0
            Which row.
        target : class, default=None
            The class whose probability changes; the most probable one if not given.

        Returns
        -------
        list of NextQuestion
            Column and expected absolute change of the probability, the largest first.
        """
        self._check_row(row)
        if not isinstance(self.model, NBModel) or self.model.marginal is None:
            raise ParameterError(
                "Only a model that averages over missing cells knows what they would "
                "change: ShrinkageNB, or WeightedNB with unknown='marginal'."
            )
        c = int(self.probabilities[row].argmax())
        if target is not None:
            c = position_of(target, self.classes)
        codes = self.cells.encoded().part(slice(row, row + 1 or None))
        patterns, _ = missing_patterns(codes, self.model.marginal)
        expected = self.model.conditional.expected_changes
        changes = expected(patterns[0], self.probabilities[row])[:, c]
        return [
            NextQuestion(self.attributes[j], float(changes[j]))
            for j in np.argsort(-changes, kind="stable").tolist()
            if not patterns[0, j]
        ]

    def plot(
        self,
        row: int = 0,
        *,
        target: Any = None,
        against: Any = None,
        ax: Any = None,
        **options: Any,
    ) -> Any:
        """Draw the evidence of one row as a waterfall.

        Parameters
        ----------
        row : int, default=0
            Which row.
        target, against : class, default=None
            The classes compared; the two most probable ones if None.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.
        **options
            Parameters of ``WaterfallDisplay``.

        Returns
        -------
        WaterfallDisplay
            The picture.
        """
        # Imported here: pictures are drawn from explanations, not the other way round.
        from steelyard.displays import WaterfallDisplay

        evidence = self.evidence(row, target, against)
        return WaterfallDisplay(evidence, **options).plot(ax=ax)

    def __repr__(self) -> str:
        """Show up to three rows as text."""
        lines = [self.note] if self.kind != "sum" else []
        for row in range(min(len(self), _MAX_ROWS)):
            lines.append(f"\nrow {row}: {self._prediction(row)}")
            if self.contributions is not None:
                lines.append(repr(self.evidence(row)))
            if self.neighbours:
                lines.append(repr(self.neighbours[row]))
            for part in self.parts[:_MAX_PARTS]:
                shown = part.explanation._prediction(row)
                lines.append(f"  {part.name} (share {part.share:.3f}): {shown}")
            if len(self.parts) > _MAX_PARTS:
                lines.append(f"  … and {len(self.parts) - _MAX_PARTS} more")
        if len(self) > _MAX_ROWS:
            lines.append(f"\n… and {len(self) - _MAX_ROWS} more rows")
        return "\n".join(lines).strip("\n")

    def _prediction(self, row: int) -> str:
        largest = probability_text(self.probabilities[row].max())
        return f"{self.predicted[row]} (largest probability {largest})"

    def _frame_columns(self) -> dict[str, Any]:
        if self.base is None or self.contributions is None:
            raise ParameterError(
                f"{self.note} Ask its parts: explanation.parts[0].explanation."
                "to_frame()."
            )
        terms, names = [self.base[:, None], self.contributions], self.attributes
        missing, rest = [np.zeros((len(self), 1), dtype=bool), self.missing], []
        if self.averaging is not None:
            terms, rest = [*terms, self.averaging[:, None]], [MISSING_COLUMNS]
            missing = [*missing, np.ones((len(self), 1), dtype=bool)]
        added = np.concatenate(terms, axis=1)
        n, n_lines = added.shape[:2]
        evidence = evidence_of(added * self.link_scale).reshape(n * n_lines, -1)
        more_names, more_values = [name for name, _ in rest], [text for _, text in rest]
        return {
            "row": np.repeat(np.arange(n), n_lines),
            "column": ["(base)", *names, *more_names] * n,
            "value": [v for row in self.values for v in ("", *row, *more_values)],
            "missing": np.concatenate(missing, axis=1).ravel(),
            **evidence_columns(self.classes, evidence),
        }

    def _repr_html_(self) -> str:
        if self.contributions is None:
            return super()._repr_html_()
        n_hidden = len(self) - _MAX_ROWS
        shown = [
            element("p", escape(f"row {row}")) + self.evidence(row)._repr_html_()
            for row in range(min(len(self), _MAX_ROWS))
        ]
        if n_hidden > 0:
            shown.append(element("p", f"… and {n_hidden} more rows"))
        return "".join(shown)

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
        Whether interactions have separate contributions, or give half to each
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
    column             value         evidence
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
    is_edited = hasattr(clf, "edits_")
    uncertainty = None if is_edited else getattr(clf, "uncertainty_", None)
    variances = intervals = None
    if uncertainty is not None:
        log_proba = model.log_proba(codes, clf.n_jobs)
        intervals = uncertainty.intervals(codes, log_proba, LEVEL, model)
        variances = uncertainty.of_contributions(codes, model)
    explanation = replace(
        _explain(model, clf, cells, named),
        base_rates=base_rates_of(clf, model),
        titles=clf.training_.labels,
        edited=tuple(dict.fromkeys(e.attribute for e in getattr(clf, "edits_", ()))),
        variances=variances,
        intervals=intervals,
    )
    is_split = interactions == "split"
    return explanation.split_interactions() if is_split else explanation


def _explain(
    model: Model,
    clf: BaseNB,
    cells: RowCells,
    named: tuple[list[list[str]], NDArray[np.bool_]],
) -> LocalExplanation:
    codes, schema = cells.encoded(), cells.schema
    base = contributions = scores = None
    implied = averaging = None
    if (terms := model.terms(codes)) is not None:
        base, contributions = terms
        scores = base + contributions.sum(axis=1)
        if model.centre is not None:
            base = base + model.centre.sum(axis=0)
            contributions = contributions - model.centre
        if isinstance(model, NBModel) and (rows := model.partial_rows(codes)).size:
            some, conditional = codes.take(rows), model.conditional
            added, implied_part = conditional.contributions(some)
            implied, averaging = np.zeros(contributions.shape), np.zeros(base.shape)
            implied[rows], contributions[rows] = implied_part, added + implied_part
            base[rows] = conditional.moments.log_rates / model.link_scale
            scores[rows] = model.log_proba(some) / model.link_scale
            averaging[rows] = scores[rows] - base[rows]
            averaging[rows] -= contributions[rows].sum(axis=1)
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
        implied=implied,
        averaging=averaging,
        parts=parts,
        neighbours=neighbours_of(model, codes),
        model=model,
        cells=cells,
        ranges=clf.training_.ranges,
    )
