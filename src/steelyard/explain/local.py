"""Explanations of single predictions: what each cell adds to each class."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.text import as_plain, bar, signed, text_table
from steelyard.classifiers.base import BaseNB
from steelyard.classifiers.lazy import LazyModel
from steelyard.exceptions import ParameterError
from steelyard.explain.cells import Cells, describe_cells
from steelyard.explain.counterfactual import Counterfactual, counterfactual
from steelyard.explain.neighbours import Neighbours, query_model
from steelyard.explain.parts import ModelKind, kind_of, note_of, one, parts_of
from steelyard.explain.views import add_views, column_labels, views_of
from steelyard.model.table_model import NBModel
from steelyard.table.frames import as_table

__all__ = ["Evidence", "EvidenceItem", "LocalExplanation", "LocalPart", "explain_local"]


@dataclass(frozen=True)
class EvidenceItem:
    """What one attribute of a row says for one class against another."""

    attribute: str
    value: str
    amount: float
    """In log-odds; positive speaks for the class."""

    missing: bool


@dataclass(frozen=True, repr=False)
class Evidence:
    """Two classes of one row compared: the prior and all items add up to log-odds."""

    target: str
    against: str
    probability: float
    """Posterior probability of the target."""

    prior: float
    items: tuple[EvidenceItem, ...]
    """By falling size."""

    @property
    def total(self) -> float:
        """Log-odds of the target against the other class."""
        return math.fsum([self.prior, *(item.amount for item in self.items)])

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        items = [vars(item) for item in self.items]
        return as_plain({**vars(self), "items": items, "total": self.total})

    def __repr__(self) -> str:
        """Lay the evidence out as text with bars."""
        amounts = [self.prior, *(item.amount for item in self.items)]
        largest = max((abs(a) for a in amounts if math.isfinite(a)), default=0.0)
        lines = [["prior", "", signed(self.prior), bar(self.prior, largest)]]
        for item in self.items:
            shown = bar(item.amount, largest)
            lines.append([item.attribute, item.value, signed(item.amount), shown])
        lines.append(["sum", "", signed(self.total), ""])
        title = (
            f"{self.target} (probability {self.probability:.4g}) against "
            f"{self.against}: evidence in log-odds"
        )
        headers = ["attribute", "value", "evidence", ""]
        return f"{title}\n{text_table(headers, lines, [False, False, True, False])}"


@dataclass(frozen=True)
class LocalPart:
    """One of the models behind a prediction, with its explanation."""

    name: str
    share: float
    explanation: LocalExplanation


@dataclass(frozen=True, repr=False)
class LocalExplanation:
    r"""Predictions for some rows, taken apart.

    For a model that is one sum,

    .. math:: z_{ic} = b_{ic} + \sum_j t_{ijc}, \qquad
       P(c \mid x_i) \propto e^{s z_{ic}},

    with ``base`` b, ``contributions`` t and ``link_scale`` s. A model that is not one
    sum has neither, and ``parts`` instead.

    Attributes
    ----------
    kind : {"sum", "mixture", "pairs", "vote", "neighbours"}
        What the model is; ``note`` says it in a sentence.
    classes : ndarray of shape (K,)
        Classes.
    attributes : list of str
        Names of the columns.
    values : list of list of str
        Every cell as a label; missing and unseen ones are marked.
    missing : ndarray of shape (n, d)
        Which cells are missing.
    base : ndarray of shape (n, K) or None
        Where the scores start: log priors.
    contributions : ndarray of shape (n, d, K) or None
        What each cell adds to each score.
    view_names : list of str
        Names of the views: of the columns, where each is seen in one way.
    view_contributions : ndarray of shape (n, views, K) or None
        What each view of each cell adds; those of a column add up to its contribution.
    scores : ndarray of shape (n, K) or None
        The sums.
    probabilities : ndarray of shape (n, K)
        What ``predict_proba`` returns.
    predicted : ndarray of shape (n,)
        What ``predict`` returns.
    parts : tuple of LocalPart
        Halves, pairs or voters, each with an explanation of its own.
    neighbours : tuple of Neighbours
        The training rows behind each row's model, for lazy classifiers.
    """

    kind: ModelKind
    note: str
    classes: NDArray[Any]
    attributes: list[str]
    values: list[list[str]]
    missing: NDArray[np.bool_]
    base: NDArray[np.float64] | None
    contributions: NDArray[np.float64] | None
    scores: NDArray[np.float64] | None
    probabilities: NDArray[np.float64]
    predicted: NDArray[Any]
    link_scale: float
    view_names: list[str]
    view_contributions: NDArray[np.float64] | None
    parts: tuple[LocalPart, ...]
    neighbours: tuple[Neighbours, ...]
    model: Any = field(repr=False)
    cells: Cells = field(repr=False)

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.probabilities)

    def evidence(
        self,
        row: int = 0,
        target: Any = None,
        against: Any = None,
        *,
        views: bool = False,
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
        views : bool, default=False
            Whether each view of a column is an item of its own.

        Returns
        -------
        Evidence
            Prior and one item per attribute, which add up to the log-odds.
        """
        self._check_row(row)
        if self.base is None or self.contributions is None:
            raise ParameterError(
                f"{self.note} Ask its parts: explanation.parts[0].explanation."
                "evidence(row)."
            )
        first, second = self._two(row, target, against)
        names, values, missing = self.attributes, self.values[row], self.missing[row]
        parts = self.contributions[row] * self.link_scale
        if views and self.view_contributions is not None:
            columns = self.cells.schema.columns
            names, missing = self.view_names, missing[columns]
            values = self._view_values(row)
            parts = self.view_contributions[row] * self.link_scale
        amounts = parts[:, first] - parts[:, second]
        base = self.base[row] * self.link_scale
        order = np.argsort(-np.abs(amounts), kind="stable")
        return Evidence(
            str(self.classes[first]),
            str(self.classes[second]),
            float(self.probabilities[row, first]),
            float(base[first] - base[second]),
            tuple(
                EvidenceItem(names[j], values[j], float(amounts[j]), bool(missing[j]))
                for j in order
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
            Give up beyond so many changes.

        Returns
        -------
        Counterfactual
            The changes, by falling effect, and the probabilities after them.
        """
        self._check_row(row)
        chosen = None if target is None else self._position(target)
        unknown = [name for name in fixed if name not in self.attributes]
        if unknown:
            raise ParameterError(
                f"`fixed` names {unknown}, which are no columns. Columns: "
                f"{', '.join(self.attributes)}."
            )
        return counterfactual(
            self.model,
            self.cells.row(row),
            self.values[row],
            chosen,
            {self.attributes.index(name) for name in fixed},
            max_changes,
        )

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

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        return as_plain(
            {
                "kind": self.kind,
                "note": self.note,
                "classes": self.classes,
                "attributes": self.attributes,
                "values": self.values,
                "missing": self.missing,
                "base": self.base,
                "contributions": self.contributions,
                "view_names": self.view_names,
                "view_contributions": self.view_contributions,
                "scores": self.scores,
                "probabilities": self.probabilities,
                "predicted": self.predicted,
                "link_scale": self.link_scale,
                "parts": [
                    {
                        "name": part.name,
                        "share": part.share,
                        **part.explanation.to_dict(),
                    }
                    for part in self.parts
                ],
                "neighbours": [found.to_dict() for found in self.neighbours],
            }
        )

    def __repr__(self) -> str:
        """Show up to three rows as text."""
        lines = [self.note] if self.kind != "sum" else []
        for row in range(min(len(self), 3)):
            lines.append(f"\nrow {row}: {self._prediction(row)}")
            if self.contributions is not None:
                lines.append(repr(self.evidence(row)))
            if self.neighbours:
                lines.append(repr(self.neighbours[row]))
            for part in self.parts[:10]:
                own = part.explanation
                lines.append(
                    f"  {part.name} (share {part.share:.3f}): {own._prediction(row)}"
                )
            if len(self.parts) > 10:
                lines.append(f"  … and {len(self.parts) - 10} more")
        if len(self) > 3:
            lines.append(f"\n… and {len(self) - 3} more rows")
        return "\n".join(lines).strip("\n")

    def _view_values(self, row: int) -> list[str]:
        """Name what each view sees: an interval, or the cell itself."""
        out = []
        views = views_of(self.cells.schema)
        for k, column in enumerate(self.cells.schema.columns):
            own = self.values[row][column]
            several = len(views[column]) > 1 and not self.missing[row, column]
            out.append(self.cells.label(row, k) if several else own)
        return out

    def _prediction(self, row: int) -> str:
        best = int(np.argmax(self.probabilities[row]))
        p = self.probabilities[row, best]
        return f"{self.predicted[row]} (largest probability {p:.4g})"

    def _two(self, row: int, target: Any, against: Any) -> tuple[int, int]:
        order = np.argsort(-self.probabilities[row], kind="stable").tolist()
        second = None if against is None else self._position(against)
        if target is not None:
            first = self._position(target)
        else:
            first = next(c for c in order if c != second)
        if second is None:
            second = next(c for c in order if c != first)
        if first == second:
            raise ParameterError(
                "`target` and `against` must be two different classes."
            )
        return first, second

    def _position(self, label: Any) -> int:
        known = self.classes.tolist()
        if label not in known:
            raise ParameterError(f"{label!r} is not among the classes {known}.")
        return known.index(label)

    def _check_row(self, row: int) -> None:
        if not -len(self) <= row < len(self):
            raise ParameterError(f"There is no row {row}: {len(self)} were explained.")


def explain_local(clf: BaseNB, X: Any) -> LocalExplanation:
    """Take the predictions for some rows apart.

    Parameters
    ----------
    clf : BaseNB
        A fitted classifier.
    X : table of shape (n, d)
        The rows, at most some thousands: the result has n * d * K numbers.

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
    -----------------------------------------------------------
    prior                               +0.00
    petal width (cm)   > 1.75           +3.53  ████████████████
    petal length (cm)  > 4.75           +2.05  █████████▍
    sepal length (cm)  (5.55, 6.15]     -0.81  ███▊
    sepal width (cm)   (2.95, 3.35]     +0.46  ██▏
    sum                                 +5.23
    """
    codes = clf._encode(X)
    cells = Cells.of(codes)
    columns = clf.encoder_.match(as_table(X, clf))
    values, missing = describe_cells(cells, columns)
    return _explain(one(clf.model_), cells, values, missing, clf.n_jobs)


def _explain(
    model: Any,
    cells: Cells,
    values: list[list[str]],
    missing: NDArray[np.bool_],
    n_jobs: int | None,
) -> LocalExplanation:
    codes, schema = cells.encoded(), cells.schema
    base = contributions = scores = by_view = None
    neighbours: tuple[Neighbours, ...] = ()
    if isinstance(model, NBModel):
        by_view = model.contributions(codes)
        base = np.tile(model.log_prior, (codes.n_rows, 1))
    elif isinstance(model, LazyModel):
        base, by_view, neighbours = _explain_queries(model, cells)
    if by_view is not None and base is not None:
        contributions = add_views(by_view, schema, axis=1)
        scores = base + contributions.sum(axis=1)
    return LocalExplanation(
        kind_of(model),
        note_of(model),
        model.classes,
        column_labels(schema),
        values,
        missing,
        base,
        contributions,
        scores,
        model.proba(codes, n_jobs),
        model.predict(codes, n_jobs),
        float(getattr(model, "link_scale", 1.0)),
        schema.labels(),
        by_view,
        tuple(
            LocalPart(
                part.name,
                part.share,
                _explain(part.model, cells, values, missing, n_jobs),
            )
            for part in parts_of(model)
        ),
        neighbours,
        model,
        cells,
    )


def _explain_queries(model: LazyModel, cells: Cells) -> tuple[Any, Any, Any]:
    """Make each query's own model, and take it apart."""
    n, d = cells.codes.shape
    base = np.empty((n, len(model.classes)))
    contributions = np.empty((n, d, len(model.classes)))
    neighbours = []
    for i in range(n):
        query = cells.row(i)
        own, found = query_model(model, query)
        base[i] = own.log_prior
        contributions[i] = own.contributions(query.encoded())[0]
        neighbours.append(found)
    return base, contributions, tuple(neighbours)
