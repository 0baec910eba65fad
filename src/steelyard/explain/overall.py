"""The model as a whole: value tables, importance, weights, parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats, Ints
from steelyard._common.text import text_table
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
)
from steelyard.explain.value_summary import overall_layout
from steelyard.explain.value_tables import AttributeTable, attribute_tables, known_rows
from steelyard.model.base import Model
from steelyard.model.edits import Edit
from steelyard.model.table_model import NBModel
from steelyard.model.uncertainty import Uncertainty
from steelyard.proba.counts import Counts
from steelyard.table.summary.whole_column import NumberRange

if TYPE_CHECKING:
    from steelyard.classifiers.base.estimator import BaseNB

_WEIGHTS = (
    *("attribute_weights_", "class_attribute_weights_", "value_weights_"),
    *("prior_weight_", "alpha_", "value_effects_", "intercept_"),
)


@dataclass(frozen=True, repr=False)
class GlobalExplanation(Tabular):
    r"""What a model has learned, attribute by attribute.

    What values add is relative to the average training row. Importance is the mean over
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
        Where the scores start: means over the training rows. None where the model is
        not one sum.
    tables : list of AttributeTable
        Values, counts and contributions of every attribute; empty where the model is
        not one sum.
    importance : ndarray of shape (d,) or None
        Importance of every attribute; that of a model with parts is the mean of its
        parts by their shares. None where rows are needed and none were given.
    class_importance : ndarray of shape (d, K) or None
        The same for each class; None for interactions.
    source : str
        What the importance was taken over.
    weights : dict
        Learned weights by the names of the fitted attributes.
    parts : tuple of ExplainedPart
        Halves, pairs or voters, each with an explanation of its own.
    importance_half_width : ndarray of shape (d,) or None
        Half the widths of 90 % intervals of the importance, where they are known.
    rows : ndarray of shape (d,) or None
        Weight of the training rows whose cell is known, for every attribute.
    base_rates : ndarray of shape (K,) or None
        Shares of the classes, where these are the answer with nothing known.
    edits : tuple of Edit
        What was changed by hand.
    constraints : dict
        Shapes that were asked for, by column.
    left_out : tuple of str
        Attributes that have no say, since they look like identifiers; they come last.
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
    """Columns in words, where a file had labels of them."""
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
                raise ParameterError(
                    f"There is no column {attribute!r}. Columns: "
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
            problem = "There is no interaction: none was worth keeping, or made."
            raise ParameterError(problem)
        known = ", ".join(table.name for table in interactions)
        raise ParameterError(
            f"There is no interaction {interaction!r}. Interactions: {known}."
        )

    def _is_interaction(self, j: int) -> bool:
        return bool(self.tables and self.tables[j].sides)

    @property
    def order(self) -> Ints:
        """Positions of the attributes by falling importance."""
        if self.importance is None:
            return np.arange(len(self.attributes))
        return np.argsort(-self.importance, kind="stable")

    def plot(self, **options: Any) -> Any:
        """Draw the model as a nomogram.

        Parameters
        ----------
        **options
            Passed to ``NomogramDisplay.from_explanation``.

        Returns
        -------
        NomogramDisplay
        """
        from steelyard.displays import NomogramDisplay

        return NomogramDisplay.from_explanation(self, **options)

    def layout(self) -> tuple[list[str], list[str], list[list[str]], list[str]]:
        """Return lines above, names of columns, lines of the table, lines below."""
        return overall_layout(self)

    def __repr__(self) -> str:
        """List the attributes by importance, and the parts."""
        head, headers, rows, tail = self.layout()
        numeric = [False, *(bool(header) for header in headers[1:])]
        table = ["", text_table(headers, rows, numeric)] if rows else []
        return "\n".join([*head, *table, *tail])


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
    NaiveBayes: 4 attributes, 3 classes
    The score of a class is its prior plus one contribution per attribute.
    With nothing known: 0 33.3 %, 1 33.3 %, 2 33.3 %.
    <BLANKLINE>
    attribute          importance  least   most  rows
    -------------------------------------------------------------------
    petal width (cm)        2.852  -3.19  +5.71   150  ████████████████
    petal length (cm)       2.826  -3.25  +5.74   150  ███████████████▉
    sepal length (cm)       1.822  -3.36  +3.47   150  ██████████▎
    sepal width (cm)        1.057  -2.20  +2.83   150  █████▉
    importance: mean absolute evidence over the training counts
    least, most: range of what its values say for a class, in log-odds
    rows: training rows in which its value is known, by weight
    """
    model = model_of(clf)
    rows = None if X is None else explain_local(clf, X)
    counts = getattr(clf, "counts_", None)
    ranges = clf.training_.ranges
    weights = learned_weights(clf)
    kept = None if hasattr(clf, "edits_") else getattr(clf, "uncertainty_", None)
    made = _explain(model, counts, type(clf).__name__, weights, rows, ranges, kept)
    edits = tuple(getattr(clf, "edits_", ()))
    titles = clf.training_.labels
    made = replace(made, base_rates=base_rates_of(clf, model), titles=titles)
    names = made.attributes
    left_out = tuple(names[j] for j in clf.encoder_.schema_.left_out)
    made = replace(made, edits=edits, left_out=left_out, constraints=_shapes_of(clf))
    if not titles:
        return made
    named = zip(made.tables, in_words(made.attributes, titles), strict=False)
    return replace(made, tables=[replace(table, title=title) for table, title in named])


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
        of_part = None if counts is None else counts.of_classes(part.classes)
        made = _explain(part.model, of_part, method, {}, part_rows, ranges)
        parts.append(ExplainedPart(part.name, part.share, made))
    by_class = _importance(tables, rows)
    if by_class is not None and tables:
        # What is the same in every row tells none from another.
        by_class[[table.is_constant for table in tables]] = 0.0
    importance = None if by_class is None else by_class.mean(axis=1)
    if importance is None and parts:
        importance = _mean_of_parts(parts)
    half = [table.importance_half_width for table in tables if rows is None]
    half_of_importance = None
    if half and all(own is not None for own in half):
        half_of_importance = np.array(half).mean(axis=1)
    source = "the training counts"
    features = model.schema.features
    if any(not own.is_coded and own.kind != "linear" for own in features):
        source += ", by the fitted densities for Gaussian attributes"
    if rows is not None:
        source = "the given rows"
    return GlobalExplanation(
        method=method,
        kind=kind_of(model),
        note=model.note(),
        classes=model.classes,
        attributes=model.schema.labels(),
        base=None if plain is None else _mean_scores(plain),
        link_scale=float(model.link_scale),
        importance=importance,
        class_importance=by_class,
        source=source,
        weights=weights,
        tables=tables,
        parts=tuple(parts),
        rows=known_rows(model.schema, counts),
        importance_half_width=half_of_importance,
    )


def _mean_scores(model: NBModel) -> Floats:
    """Return the mean scores of the training rows, without centres the prior."""
    if model.centre is None:
        return model.log_prior
    return np.asarray(model.log_prior + model.centre.sum(axis=0))


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
