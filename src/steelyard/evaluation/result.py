"""The result of an evaluation: measures, confusion, calibration, thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard._common.html import element, escape, html_list, html_table
from steelyard._common.text import as_plain, did_you_mean, text_table
from steelyard.evaluation.metrics import (
    measures_by_group,
    reliability_bins,
    score_predictions,
    thresholds,
)
from steelyard.evaluation.shares import Costs, Decision, Estimate, decide
from steelyard.exceptions import ParameterError
from steelyard.notices.notice import Notice, in_lines

MEASURES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "f1": "F1 (mean over classes)",
    "auc": "AUC (each class against the rest)",
    "log_loss": "log-loss",
    "brier": "Brier score",
    "ece": "calibration error",
}
# Heading, digits of the value and of the ends of its interval, and factor.
_GROUP_CELLS = {
    "accuracy": ("accuracy %", ".1f", ".0f", 100.0),
    "log_loss": ("log-loss", ".3f", ".3f", 1.0),
    "calibration": ("predicted - observed %", "+.1f", "+.1f", 100.0),
    "share": ("in the class %", ".1f", ".0f", 100.0),
    "selected": ("selected %", ".1f", ".0f", 100.0),
    "false_positives": ("false alarms %", ".1f", ".0f", 100.0),
    "false_negatives": ("misses %", ".1f", ".0f", 100.0),
}
_IN_PERCENT = ("accuracy", "balanced_accuracy")
_RELIABILITY_BINS = 10
# A confusion matrix of more classes cannot be read.
_MAX_CONFUSION_CLASSES = 20
_MAX_CURVES = 8


class MeasureTable(NamedTuple):
    """A table of an evaluation as texts; all but the first columns are numbers."""

    title: str
    header: list[str]
    rows: list[list[str]]
    n_texts: int = 1

    def __str__(self) -> str:
        numeric = [k >= self.n_texts for k in range(len(self.header))]
        return f"{self.title}\n{text_table(self.header, self.rows, numeric)}"


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """True and predicted classes of rows, and the measures made of them."""

    classes: list[Any]
    """The classes; those that training did not see come last."""

    true: NDArray[np.intp]
    """The class of each row, as a position in ``classes``."""

    predicted: NDArray[np.intp]
    """The predicted class of each row."""

    proba: NDArray[np.float64] | None
    """Probabilities, rows by classes; None if the classifier has none."""

    metrics: dict[str, float | None]
    """Measures by name: accuracy, balanced_accuracy, f1, auc, log_loss, brier, ece."""

    spread: dict[str, float] | None
    """Standard deviations of the measures over folds; None without folds."""

    n_unseen: int
    """Rows of classes that training did not see: wrong for accuracy, left out of the
    log-loss."""

    folds: int | None
    """Folds of cross-validation; None for a fitted model."""

    thresholds: dict[str, Any] | None
    """As the function ``thresholds``, with the class as ``positive``; None unless there
    are two classes and probabilities."""

    notices: tuple[Notice, ...] = ()
    """Notices of the rows, worst first."""

    decision: Decision | None = None
    """The class of least expected cost, ``decided`` for each row, and the ``cost`` per
    row with an interval; None without costs."""

    groups: dict[str, dict[str, Any]] | None = None
    """Of each group ``rows`` and measures with intervals, see ``measures_by_group``;
    None if rows are not grouped."""

    @classmethod
    def measured(
        cls,
        parts: Sequence[tuple[Any, NDArray[np.bool_]]],
        classes: list[Any],
        true: NDArray[np.intp],
        predicted: NDArray[np.intp],
        proba: NDArray[np.float64] | None,
        folds: int | None,
        positive: Any,
        costs: Costs,
        notices: Sequence[Notice] = (),
        by: Sequence[Any] | None = None,
    ) -> Evaluation:
        """Average measures over folds, given by rows and the classes of their fits."""
        rows = []
        for fold, seen in parts:
            chances = None if proba is None else proba[fold]
            rows.append(score_predictions(true[fold], predicted[fold], chances, seen))
        metrics: dict[str, float | None] = {}
        spread = {}
        for name in MEASURES:
            values = [value for row in rows if (value := row[name]) is not None]
            metrics[name] = float(np.mean(values)) if values else None
            spread[name] = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
        n_unseen = sum(int(row["n_unseen_class"] or 0) for row in rows)
        over_folds = None if folds is None else spread
        k = _positive(classes, positive)
        decision = decide(proba, true, costs, k)
        cuts, groups = None, None
        if proba is not None and len(classes) == 2 and k is not None:
            pair = costs if isinstance(costs, tuple) else None
            cuts = thresholds(true == k, proba[:, k], pair) | {"positive": classes[k]}
        if by is not None:
            decided = predicted if decision is None else decision.decided
            groups = measures_by_group(by, true, predicted, proba, decided, k)
        measures = metrics, over_folds, n_unseen, folds, cuts, tuple(notices)
        return cls(classes, true, predicted, proba, *measures, decision, groups)

    @property
    def confusion(self) -> NDArray[np.intp]:
        """Counts of rows, true classes by predicted ones."""
        k = len(self.classes)
        cells = np.bincount(self.true * k + self.predicted, minlength=k * k)
        return cells.reshape(k, k)

    @property
    def majority(self) -> float:
        """The accuracy of always predicting the most frequent class."""
        return float(np.bincount(self.true).max() / len(self.true))

    @property
    def kappa(self) -> float:
        r"""Cohen's kappa over all rows, :math:`(p_o - p_e) / (1 - p_e)`.

        :math:`p_o` is the accuracy, and :math:`p_e` that of labels and predictions
        drawn independently.
        """
        shares = self.confusion / len(self.true)
        by_chance = float(shares.sum(axis=1) @ shares.sum(axis=0))
        if by_chance == 1.0:
            return 0.0
        return float((np.trace(shares) - by_chance) / (1.0 - by_chance))

    @property
    def reliability(self) -> list[list[float]]:
        """Mean probability, share of right predictions and rows, by probability."""
        if self.proba is None:
            return []
        right = self.true == self.predicted
        return reliability_bins(right, self.proba.max(axis=1), _RELIABILITY_BINS)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        names = ("confidence", "accuracy", "rows")
        bins = [dict(zip(names, entry, strict=True)) for entry in self.reliability]
        document = {
            "metrics": self.metrics,
            "majority_accuracy": self.majority,
            "kappa": self.kappa,
            "spread_over_folds": self.spread,
            "rows_of_unseen_classes": self.n_unseen,
            "classes": self.classes,
            "confusion": self.confusion,
            "reliability": bins,
            "thresholds": self.thresholds,
            "cost_per_row": self.decision and self.decision.cost,
            "groups": self.groups,
            "notices": [notice.to_dict() for notice in self.notices],
        }
        return as_plain(document)

    def tables(self) -> list[MeasureTable]:
        """Return measures, confusion, calibration, thresholds and groups, if any.

        The confusion of more than 20 classes is left out.
        """
        tables = [self._measure_table()]
        if len(self.classes) <= _MAX_CONFUSION_CLASSES:
            tables.append(self._confusion_table())
        if self.proba is not None:
            title = "Calibration: how often predictions are right at each probability"
            header = ["probability", "right", "rows"]
            cells = ["{:.3f} {:.3f} {:.0f}".format(*row) for row in self.reliability]
            tables.append(MeasureTable(title, header, [c.split() for c in cells], 0))
        if self.thresholds is not None:
            tables.append(_threshold_table(self.thresholds))
        if self.decision is not None:
            title = "Cost per row, where the class that costs least is decided for"
            cost, low, high = (f"{number:.4g}" for number in self.decision.cost)
            lines = [["expected cost", cost], ["95 % interval", f"{low} to {high}"]]
            tables.append(MeasureTable(title, ["", ""], lines))
        if self.groups is not None:
            tables += _group_tables(self.groups, self.decision is not None)
        return tables

    def __repr__(self) -> str:
        noticed = ["\n".join(["Noticed", *in_lines(self.notices)])]
        shown = [*map(str, self.tables()), *noticed * bool(self.notices)]
        return "\n\n".join(shown)

    def _repr_html_(self) -> str:
        tables = "".join(
            element("p", element("b", escape(table.title)))
            + html_table(table.header, table.rows, table.n_texts)
            for table in self.tables()
        )
        return tables + html_list("Noticed", in_lines(self.notices))

    def plot(self, *, ax: Any = None) -> Any:
        """Draw ROC curves of the rows, from probabilities of all folds together.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if not given.

        Returns
        -------
        RocCurveDisplay
            scikit-learn's; of two classes one curve, of several one for each of the
            eight most frequent against the rest.
        """
        from sklearn.metrics import RocCurveDisplay

        from steelyard.displays.drawing import label, pyplot

        if self.proba is None:
            raise ParameterError("A ROC curve needs probabilities; there are none.")
        rows = np.bincount(self.true, minlength=len(self.classes))
        shown = np.sort(np.argsort(-rows, kind="stable")[:_MAX_CURVES]).tolist()
        if self.thresholds is not None:
            shown = [self.classes.index(self.thresholds["positive"])]
        # A class of no rows, or of all of them, has no curve.
        shown = [k for k in shown if 0 < rows[k] < len(self.true)]
        if not shown:
            raise ParameterError("A ROC curve needs rows of two classes at least.")
        ax = pyplot().subplots(layout="constrained")[1] if ax is None else ax
        for k in shown:
            display = RocCurveDisplay.from_predictions(
                self.true == k,
                self.proba[:, k],
                name=label(self.classes[k], 30),
                ax=ax,
                plot_chance_level=k == shown[-1],
            )
        ax.set(
            xlabel="false positive rate (FPR): other rows called positive",
            ylabel="true positive rate (TPR): rows of the class called positive",
        )
        return display

    def _measure_table(self) -> MeasureTable:
        rows = []
        for name, label in MEASURES.items():
            value = self.metrics[name]
            if value is not None:
                shape = "{:.1%}" if name in _IN_PERCENT else "{:.4f}"
                row = [label, shape.format(value).replace("%", " %")]
                if self.spread is not None:
                    spread = shape.format(self.spread[name]).replace("%", " %")
                    row.append(f"± {spread}")
                rows.append(row)
        pooled = [
            ["  of the most frequent class", f"{100 * self.majority:.1f} %"],
            ["kappa", f"{self.kappa:.4f}"],
        ]
        rows[1:1] = [[*row, ""] if self.spread else row for row in pooled]
        how = "" if self.folds is None else f"{self.folds}-fold cross-validation, "
        header = ["measure", "mean", "over folds"] if self.spread else ["measure", ""]
        return MeasureTable(f"{how}{len(self.true)} rows", header, rows)

    def _confusion_table(self) -> MeasureTable:
        counts = self.confusion
        names = [str(label) for label in self.classes]
        rows = []
        for k, name in enumerate(names):
            totals = counts[k].sum(), counts[:, k].sum()
            shares = [f"{counts[k, k] / n:.3f}" if n else "" for n in totals]
            rows.append([name, *map(str, counts[k].tolist()), *shares])
        header = ["true class", *names, "recall", "precision"]
        return MeasureTable("Confusion: predicted classes in columns", header, rows)


def _threshold_table(result: dict[str, Any]) -> MeasureTable:
    entries = [("", entry) for entry in result["table"]]
    entries.append(("best F1", result["best_f1"]))
    header = ["", "threshold", "precision", "recall", "F1"]
    if result["best_cost"] is not None:
        entries.append(("least cost here", result["best_cost"]))
        entries.append(("by the costs", result["by_cost"]))
        header.append("cost")
    rows = []
    for name, entry in entries:
        row = [name, f"{entry['threshold']:.4f}".rstrip("0").rstrip(".")]
        row += [f"{entry[key]:.3f}" for key in ("precision", "recall", "f1")]
        rows.append(row + ([f"{entry['cost']:g}"] if "cost" in entry else []))
    title = f"Deciding for {result['positive']} at a probability of at least"
    return MeasureTable(title, header, rows)


def _positive(classes: list[Any], positive: Any) -> int | None:
    """Return the position of the positive class; by default the second of two."""
    names = [str(label) for label in classes]
    if positive is None:
        return 1 if len(names) == 2 else None
    if str(positive) not in names:
        shown = ", ".join(names)
        hint = did_you_mean(str(positive), names)
        problem = f"{str(positive)!r} is not among the classes: {shown}."
        raise ParameterError(problem + hint)
    return names.index(str(positive))


def _group_tables(
    groups: dict[str, dict[str, Any]], at_costs: bool
) -> list[MeasureTable]:
    """Write groups in rows, each measure with its interval."""
    measures = next(iter(groups.values()))
    errors = "Errors at the costs" if at_costs else "Errors"
    tables = []
    for title, columns in (
        ("Groups", ("accuracy", "log_loss", "calibration")),
        (f"{errors} by group", ("share", "selected", "false_positives")),
    ):
        keys = [key for key in columns if key in measures]
        keys += ["false_negatives"] * ("share" in keys)
        shown = [(key, _GROUP_CELLS[key]) for key in keys]
        rows = [
            [name, str(group["rows"]), *(_cell(group[key], how) for key, how in shown)]
            for name, group in groups.items()
        ]
        header = ["group", "rows", *(how[0] for _, how in shown)]
        full = f"{title}, with 95 % intervals"
        tables += [MeasureTable(full, header, rows)] if keys else []
    return tables


def _cell(entry: Estimate, how: tuple[str, str, str, float]) -> str:
    _, shape, ends, factor = how
    if not np.isfinite(entry.value):
        return "-"
    value, low, high = (factor * number for number in entry)
    return f"{value:{shape}} ({low:{ends}} to {high:{ends}})"
