"""The model as a whole: value tables, importance, weights, parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats, Ints
from steelyard._common.html import Markup, element, escape, html_bars, html_table
from steelyard._common.text import bar, counted, did_you_mean, signed, text_table
from steelyard.exceptions import ParameterError
from steelyard.explain.local import LocalExplanation, explain_local
from steelyard.explain.shared import (
    ExplainedPart,
    ModelKind,
    Tabular,
    base_rates_of,
    evidence_of,
    in_words,
    kind_of,
    model_of,
    percent,
)
from steelyard.explain.value_tables import (
    AttributeTable,
    attribute_tables,
    observed_rows,
)
from steelyard.model.base import Model
from steelyard.model.edits import Edit
from steelyard.model.uncertainty import Uncertainty
from steelyard.proba.counts import Counts
from steelyard.table.ranges import NumberRange

if TYPE_CHECKING:
    from steelyard.classifiers.base.estimator import BaseNB

_WEIGHTS = (
    *("attribute_weights_", "class_attribute_weights_", "value_weights_"),
    *("prior_weight_", "alpha_", "value_effects_", "intercept_"),
)

# How many submodels and base rates are shown as text.
_MAX_PARTS, _MAX_RATES = 20, 6

# Width and height of a small curve, and how many classes have a line in it.
_WIDE, _HIGH, _MAX_LINES = 120.0, 26.0, 6


@dataclass(frozen=True, repr=False)
class GlobalExplanation(Tabular):
    r"""What a model has learned, column by column.

    Contributions are relative to the average training row. Importance is the mean over
    rows of the absolute evidence of an attribute for a class against the mean of the
    others, and the mean of that over classes,

    .. math:: I_j = \frac{1}{K} \sum_c \operatorname{mean}_i
       \Bigl| t_{ijc} - \frac{1}{K - 1} \sum_{k \ne c} t_{ijk} \Bigr|,

    which for two classes is the mean absolute contribution to the log-odds.

    Attributes
    ----------
    kind : {"sum", "mixture", "pairs", "vote", "neighbours", "average"}
        What the model is; ``note`` says it in a sentence.
    classes : ndarray of shape (K,)
        Classes.
    attributes : list of str
        Names of the columns.
    base : ndarray of shape (K,) or None
        Start of the scores: their means over the training rows. None if the model is
        not one sum.
    tables : list of AttributeTable
        Values, counts and contributions of every attribute; empty if the model is not
        one sum.
    importance : ndarray of shape (d,) or None
        Importance of every attribute; that of a model with parts is the mean of its
        parts by their shares. None if rows are needed and none were given.
    class_importance : ndarray of shape (d, K) or None
        The same for each class; None for interactions.
    source : str
        The rows of the importance, in words.
    weights : dict
        Learned weights by the names of the fitted attributes.
    parts : tuple of ExplainedPart
        Halves, pairs or voters, each with its explanation.
    importance_half_width : ndarray of shape (d,) or None
        Half the widths of 90 % intervals of the importance, if they are known.
    rows : ndarray of shape (d,) or None
        Weight of the training rows whose cell is observed, for every attribute.
    base_rates : ndarray of shape (K,) or None
        Shares of the classes, if these are the answer for a row without any cell.
    edits : tuple of Edit
        What was changed by hand.
    constraints : dict
        Shapes that were asked for, by column.
    left_out : tuple of str
        Attributes without contributions, since they look like identifiers; they come
        last.
    """

    _not_data = ("edits", "left_out")

    method: str
    kind: ModelKind
    note: str
    classes: NDArray[Any]
    attributes: list[str]
    base: Floats | None
    link_scale: float
    importance: Floats | None
    class_importance: Floats | None
    source: str
    weights: dict[str, Any]
    tables: list[AttributeTable]
    parts: tuple[ExplainedPart, ...]
    rows: Floats | None = None
    base_rates: Floats | None = None
    titles: Mapping[str, str] = field(default_factory=dict)
    """Columns in words, if a file had labels of them."""
    edits: tuple[Edit, ...] = ()
    constraints: dict[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    importance_half_width: Floats | None = None

    def table(self, attribute: str | int) -> AttributeTable:
        """Return the value table of one attribute, by name or position."""
        if not self.tables:
            raise ParameterError(
                f"{self.note} Value tables are in its parts, if it has any: "
                "explanation.parts[0].explanation.table(...)."
            )
        if isinstance(attribute, str):
            if attribute not in self.attributes:
                hint = did_you_mean(attribute, self.attributes)
                raise ParameterError(
                    f"There is no column {attribute!r}.{hint} Columns: "
                    f"{', '.join(self.attributes)}."
                )
            attribute = self.attributes.index(attribute)
        return self.tables[attribute]

    def interaction(
        self, interaction: str | tuple[str, str] | int = 0
    ) -> AttributeTable:
        """Return the table of an interaction, by name, by its two columns or by place.

        Places count from 0, the most important interaction.
        """
        interactions = [self.tables[j] for j in self.order if self._is_interaction(j)]
        if isinstance(interaction, int) and -len(interactions) <= interaction < len(
            interactions
        ):
            return interactions[interaction]
        for table in interactions:
            names = tuple(side.name for side in table.sides)
            if interaction == table.name or interaction in (names, names[::-1]):
                return table
        if not interactions:
            problem = "The model has no interactions: none was kept or requested."
            raise ParameterError(problem)
        listed = ", ".join(table.name for table in interactions)
        raise ParameterError(
            f"There is no interaction {interaction!r}. Interactions: {listed}."
        )

    def _is_interaction(self, j: int) -> bool:
        return bool(self.tables and self.tables[j].sides)

    @property
    def order(self) -> Ints:
        """Positions of the attributes by falling importance."""
        if self.importance is None:
            return np.arange(len(self.attributes))
        return np.argsort(-self.importance, kind="stable")

    def plot(self, *, ax: Any = None, **options: Any) -> Any:
        """Draw the model as a nomogram.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.
        **options
            Parameters of ``NomogramDisplay``.

        Returns
        -------
        NomogramDisplay
        """
        from steelyard.displays import NomogramDisplay

        return NomogramDisplay(self, **options).plot(ax=ax)

    def layout(self) -> tuple[list[str], list[str], list[list[str]], list[str]]:
        """Return lines above, names of columns, lines of the table, lines below."""
        k, d = len(self.classes), len(self.attributes)
        n_interactions = sum(map(self._is_interaction, range(d)))
        count = counted(d - n_interactions, "column")
        if n_interactions:
            count += f" and {counted(n_interactions, 'interaction')}"
        head = [f"{self.method}: {count}, {k} classes", self.note]
        if self.base_rates is not None and k <= _MAX_RATES:
            pairs = zip(self.classes, self.base_rates, strict=True)
            rates = ", ".join(f"{c} {percent(rate)}" for c, rate in pairs)
            head.append(f"With nothing known: {rates}.")
        columns = _number_columns(self)
        changed = {name: f" ({shape})" for name, shape in self.constraints.items()}
        for name in {edit.attribute for edit in self.edits}:
            changed[name] = changed.get(name, "") + " (edited)"
        changed |= dict.fromkeys(self.left_out, " (dropped)")
        shown = [self.attributes[j] for j in self.order]
        words = zip(shown, in_words(shown, self.titles), strict=True)
        names = [title + changed.get(name, "") for name, title in words]
        rows = list(map(list, zip(names, *columns.values(), strict=True)))
        tail = _notes(self, columns) + [""] * bool(self.parts)
        for part in self.parts[:_MAX_PARTS]:
            tail.append(f"part: {part.name} (share {part.share:.3f})")
        if len(self.parts) > _MAX_PARTS:
            tail.append(f"… and {len(self.parts) - _MAX_PARTS} more parts")
        tail += [f"edited by hand: {edit}" for edit in self.edits]
        return head, ["column", *columns], rows if columns else [], tail

    def __repr__(self) -> str:
        """List the columns by importance, and the parts."""
        head, headers, rows, tail = self.layout()
        numeric = [False, *(bool(header) for header in headers[1:])]
        table = ["", text_table(headers, rows, numeric)] if rows else []
        return "\n".join([*head, *table, *tail])

    def _frame_columns(self) -> dict[str, Any]:
        order = self.order
        columns: dict[str, Any] = {"column": [self.attributes[j] for j in order]}
        if self.importance is not None:
            columns["importance"] = self.importance[order]
        if self.tables:
            ends = [self.tables[j].ends for j in order]
            columns["least"], columns["most"] = np.array(ends).reshape(-1, 2).T
        if self.rows is not None:
            columns["rows"] = self.rows[order]
        return columns

    def _repr_html_(self) -> str:
        head, header, rows, tail = self.layout()
        if rows and self.importance is not None:
            bars = html_bars(self.importance[self.order].tolist())
            rows = [[*row[:-1], bar] for row, bar in zip(rows, bars, strict=True)]
        if rows and self.tables:
            curves = [_curve(self.tables[j]) for j in self.order]
            header = [*header, ""]
            rows = [[*row, curve] for row, curve in zip(rows, curves, strict=True)]
        table = html_table(header, rows, 1) if rows else ""
        above, below = (
            element("p", "<br>".join(map(escape, lines))) if lines else ""
            for lines in (head, tail)
        )
        return f"{above}{table}{below}"


def _notes(whole: GlobalExplanation, columns: dict[str, list[str]]) -> list[str]:
    """Return what the numbers of a table mean."""
    lines = []
    if whole.importance is not None:
        line = f"importance: mean absolute evidence over {whole.source}"
        lines.append(line + ", ± its 90 % interval" * ("±" in columns))
    if "most" in columns:
        of = f"for {whole.classes[1]}" if len(whole.classes) == 2 else "for a class"
        lines.append(f"least, most: range of its contributions {of}, in log-odds")
    if "rows" in columns:
        lines.append("rows: training rows with a value, by weight")
    return lines


def _number_columns(whole: GlobalExplanation) -> dict[str, list[str]]:
    """Return numbers of the attributes, most important first, as texts by header."""
    columns = {}
    weights: Any = whole.weights.get("attribute_weights_")
    # With effects of values, contributions are more than weights.
    is_all = "value_effects_" not in whole.weights
    if is_all and np.shape(weights) == (d := len(whole.attributes),):
        # Interactions have effects and no weights.
        texts = [
            "" if whole._is_interaction(j) else f"{weights[j]:.3f}" for j in range(d)
        ]
        columns["weight"] = [texts[j] for j in whole.order]
    if whole.importance is not None:
        amounts = whole.importance[whole.order].tolist()
        largest = float(whole.importance.max())
        columns["importance"] = [f"{amount:.3f}" for amount in amounts]
        if whole.importance_half_width is not None:
            half = whole.importance_half_width[whole.order]
            columns["±"] = [f"{amount:.3f}" for amount in half]
        if whole.tables:
            ends = zip(*(whole.tables[j].ends for j in whole.order), strict=True)
            least, most = (list(map(signed, column)) for column in ends)
            columns |= {"least": least, "most": most}
        if whole.rows is not None:
            columns["rows"] = [f"{whole.rows[j]:g}" for j in whole.order]
        columns[""] = [bar(amount, largest) for amount in amounts]
    return columns


def _curve(table: AttributeTable) -> Markup:
    """Draw the evidence of an attribute by value, and the line of no evidence."""
    if table.sides:
        return Markup("")
    evidence = np.nan_to_num(table.evidence)
    at = table.points
    if at is None:
        # Missing cells come first; every value is a step.
        evidence = np.repeat(evidence[1:], 2, axis=0)
        at = np.repeat(np.arange(len(evidence) / 2 + 1), 2)[1:-1]
    if not len(evidence):
        return Markup("")
    low, high = min(0.0, float(evidence.min())), max(0.0, float(evidence.max()))
    x = _WIDE * (at - at.min()) / ((np.ptp(at)) or 1.0)
    y = _HIGH * (high - evidence) / ((high - low) or 1.0)
    zero = f"{_HIGH * high / ((high - low) or 1.0):.1f}"
    axis = {"x1": 0, "x2": int(_WIDE), "y1": zero, "y2": zero}
    lines = [element("line", stroke="currentColor", stroke_dasharray="1 2", **axis)]
    chosen = [1] if len(table.classes) == 2 else range(len(table.classes))[:_MAX_LINES]
    for c in chosen:
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y[:, c], strict=True))
        style = {"fill": "none", "stroke": "#2a7f62", "stroke_width": 1.5}
        lines.append(element("polyline", points=points, **style))
    box = f"-1 -1 {_WIDE + 2:.0f} {_HIGH + 2:.0f}"
    size = {"width": int(_WIDE), "height": int(_HIGH), "viewBox": box}
    return Markup(element("svg", "".join(lines), aria_hidden="true", **size))


def explain_global(clf: BaseNB, X: Any = None) -> GlobalExplanation:
    """Show what a model has learned, attribute by attribute.

    Parameters
    ----------
    clf : BaseNB
        A fitted classifier.
    X : table of shape (n, d), default=None
        Rows over which importance is taken. Without them it comes from the training
        counts, which give the same number as the training rows; for Gaussian
        attributes, of which counts keep means and variances only, from the fitted
        densities.

    Returns
    -------
    GlobalExplanation
        Value tables, importance, weights and parts.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from steelyard import NaiveBayes
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> NaiveBayes().fit(X, y).explain_global()
    NaiveBayes: 4 columns, 3 classes
    The score of a class is its prior plus one contribution per column.
    With nothing known: 0 33.3 %, 1 33.3 %, 2 33.3 %.
    <BLANKLINE>
    column             importance  least   most  rows
    -------------------------------------------------------------------
    petal width (cm)        2.852  -3.19  +5.71   150  ████████████████
    petal length (cm)       2.826  -3.25  +5.74   150  ███████████████▉
    sepal length (cm)       1.822  -3.36  +3.47   150  ██████████▎
    sepal width (cm)        1.057  -2.20  +2.83   150  █████▉
    importance: mean absolute evidence over the training counts
    least, most: range of its contributions for a class, in log-odds
    rows: training rows with a value, by weight
    """
    model, titles = model_of(clf), clf.training_.labels
    is_edited = hasattr(clf, "edits_")
    made = _explain(
        model,
        getattr(clf, "counts_", None),
        type(clf).__name__,
        learned_weights(clf),
        None if X is None else explain_local(clf, X),
        clf.training_.ranges,
        None if is_edited else getattr(clf, "uncertainty_", None),
    )
    tables = made.tables
    if titles:
        named = zip(tables, in_words(made.attributes, titles), strict=False)
        tables = [replace(table, title=title) for table, title in named]
    return replace(
        made,
        tables=tables,
        base_rates=base_rates_of(clf, model),
        titles=titles,
        edits=tuple(getattr(clf, "edits_", ())),
        constraints=_shapes_of(clf),
        left_out=tuple(made.attributes[j] for j in clf.encoder_.schema_.left_out),
    )


def _shapes_of(clf: Any) -> dict[str, str]:
    """Return the shapes that were asked for, in words, by the name of the column."""
    asked = getattr(clf, "constraints", None) or {}
    names = clf.encoder_.schema_.labels()
    return {
        names[key] if isinstance(key, Integral) else key: (
            shape if isinstance(shape, str) else f"{shape[0]} for {shape[1]}"
        )
        for key, shape in asked.items()
    }


def learned_weights(clf: Any) -> dict[str, Any]:
    """Return the weights that a classifier has learned, by name."""
    return {name: getattr(clf, name) for name in _WEIGHTS if hasattr(clf, name)}


def _explain(
    model: Model,
    counts: Counts | None,
    method: str,
    weights: dict[str, Any],
    rows: LocalExplanation | None,
    ranges: list[NumberRange | None],
    uncertainty: Uncertainty | None = None,
) -> GlobalExplanation:
    plain = model.first_sum() if model.is_sum else None
    tables: list[AttributeTable] = []
    if plain is not None:
        tables = attribute_tables(plain, counts, ranges, uncertainty)
    parts = []
    for k, part in enumerate(model.parts()):
        part_rows = None if rows is None else rows.parts[k].explanation
        part_counts = None if counts is None else counts.of_classes(part.classes)
        made = _explain(part.model, part_counts, method, {}, part_rows, ranges)
        parts.append(ExplainedPart(part.name, part.share, made))
    by_class = _importance(tables, rows)
    if by_class is not None and tables:
        # A constant distinguishes no rows.
        by_class[[table.is_constant for table in tables]] = 0.0
    importance = None if by_class is None else by_class.mean(axis=1)
    if importance is None and parts:
        importance = _mean_of_parts(parts)
    half = [table.importance_half_width for table in tables if rows is None]
    half_of_importance = None
    if half and all(width is not None for width in half):
        half_of_importance = np.array(half).mean(axis=1)
    base = None if plain is None else plain.log_prior
    if plain is not None and plain.centre is not None:
        base = np.asarray(plain.log_prior + plain.centre.sum(axis=0))
    source = "the training counts"
    features = model.schema.features
    if any(not f.is_coded and f.kind != "linear" for f in features):
        source += ", by the fitted densities for Gaussian columns"
    if rows is not None:
        source = "the given rows"
    return GlobalExplanation(
        method=method,
        kind=kind_of(model),
        note=model.note(),
        classes=model.classes,
        attributes=model.schema.labels(),
        base=base,
        link_scale=float(model.link_scale),
        importance=importance,
        class_importance=by_class,
        source=source,
        weights=weights,
        tables=tables,
        parts=tuple(parts),
        rows=observed_rows(model.schema, counts),
        importance_half_width=half_of_importance,
    )


def _importance(
    tables: list[AttributeTable], rows: LocalExplanation | None
) -> Floats | None:
    """Mean absolute evidence by attribute and class: of rows, or of value tables."""
    if rows is not None and rows.contributions is not None:
        by_row = np.abs(evidence_of(rows.contributions)) * rows.link_scale
        return np.asarray(by_row.mean(axis=0))
    if tables and all(table.importance is not None for table in tables):
        return np.array([table.importance for table in tables])
    return None


def _mean_of_parts(parts: list[ExplainedPart]) -> Floats | None:
    by_part = [part.explanation.importance for part in parts]
    if any(importance is None for importance in by_part):
        return None
    shares = np.array([part.share for part in parts])
    return np.asarray(np.average(np.array(by_part), axis=0, weights=shares))


def column_importance(clf: Any) -> Floats:
    """Return the importance of every column; of an interaction either side has half."""
    whole = explain_global(clf)
    if whole.importance is None:
        raise AttributeError(
            f"{type(clf).__name__} has no feature_importances_ without rows: "
            "explain_global(X).importance takes them over the rows of X."
        )
    schema = clf.encoder_.schema_
    out = np.array(whole.importance[: schema.n_columns])
    interactions = (feature.sides for feature in schema.features if feature.sides)
    for amount, sides in zip(whole.importance[len(out) :], interactions, strict=True):
        for side in sides:
            out[side.feature] += amount / 2.0
    return out
