"""ShrinkageNB: naive Bayes, corrected as far as the rows support it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats
from steelyard._common.progress import watching
from steelyard._common.settings import (
    COLUMN,
    FLAG,
    NONE,
    SEED,
    Check,
    instance,
    learned,
    listed,
    mapped,
    number,
    setting,
    setting_of,
    whole,
    word,
)
from steelyard.classifiers.base.chunked import TakesChunks
from steelyard.classifiers.weighted import SolvedNB, WeightedNB
from steelyard.exceptions import ParameterError
from steelyard.fitting.default.column_pairs import joined, listed_pairs, pair_records
from steelyard.fitting.default.held_out import HeldOutFolds
from steelyard.fitting.default.kept_rows import KeptRows, RowDraw, most_kept
from steelyard.fitting.default.renewal import recut, renewed
from steelyard.fitting.default.strengths import GRID, Choice, Strengths, choose
from steelyard.fitting.default.uncertainty import uncertainty_of
from steelyard.fitting.problem import Fit, fit_weights
from steelyard.fitting.recipe import Recipe
from steelyard.fitting.shapes import resolve_shapes
from steelyard.losses import resolve_loss
from steelyard.model.table_model import NBModel
from steelyard.model.training import Encoding, TrainingSet
from steelyard.notices.notice import arranged, shape_notices
from steelyard.proba.counts import Counts
from steelyard.proba.smoothing import Estimation
from steelyard.table.codes import FeatureTable
from steelyard.table.discretizers import EqualFrequencyDiscretizer
from steelyard.table.frames import Table
from steelyard.table.labels import class_places
from steelyard.table.resolutions import FINEST, bins_of_resolutions
from steelyard.table.summary.column_rules import column_positions

__all__ = ["GRID", "ShrinkageNB", "Strengths"]

# Cut points, strengths and pairs are chosen again when so much of the weight is of rows
# that came after the last choice: sooner while all rows are kept, so that the last of
# ten chunks has a choice.
_SHARE_OF_CHOICE, _SHARE_WHILE_ALL_KEPT = 0.25, 0.09

_TRIPLE = listed(number(0.0, ends="()"), 3) | instance(Strengths)


def _are_positions(rows: Any) -> bool:
    """Whether something is a list or array of whole numbers from 0 on."""
    try:
        rows = np.asarray(rows)
    except ValueError:  # a ragged list
        return False
    is_whole = rows.size == 0 or rows.dtype.kind in "iu"
    return rows.ndim == 1 and is_whole and bool((rows >= 0).all())


_POSITIONS = Check("positions", _are_positions, form=listed(whole(0)).form)


class ShrinkageNB(TakesChunks, SolvedNB):
    r"""Naive Bayes, corrected by weights, curves and pairs that the rows support.

    .. math:: z_c(x) = \log \pi_c + b_c + \sum_k (w_k + V_{kc})\, e_k(x)_c
              + \sum_j U_{j,x_j,c} + \sum_{(a,b)} S_{ab,\,x_a x_b,\,c}

    .. math:: \min\; -\sum_i u_i \log P(y_i \mid x_i) + \lambda_w \sum_k (w_k - c_k)^2
              + \lambda_V \sum V^2 + \lambda_U \sum U^2 + \lambda_P \sum S^2
              + \lambda_b \sum b^2

    The evidence :math:`e_k` of a category or bin is drawn to the class prior by what
    the counts of its column say, so that a useless column does next to no harm
    (:math:`c_k = 1` for categories, 0 for numbers). A number is seen in fine
    bins of equal frequency, whose effects :math:`U` make one smooth curve with a trend,
    level beyond the data, and in bins that MDL cuts where classes change, held back
    unless such steps pay on held-out rows.
    Pairs of columns have effects :math:`S` only, chosen by what the rest leaves over in
    held-out rows. The problem is convex. Each level opens only as far as the rows
    support it. A prediction stays a sum of contributions. It begins at the base rate:
    what :math:`b` differs from it by goes to the columns, by their shares of the
    variance, so that with nothing known the model answers the base rate.

    ``partial_fit`` counts all rows and keeps at most 40,000, a sample by weight, in
    the model and its file; of wide tables 1,000,000 cells, or 10,000 rows. It goes on
    after ``fit`` too, of a table in memory of that many rows; files, pickles and copies
    do not have these. Weights minimise the loss of the new chunk, that of the kept
    rows, and a linear term, which makes up for the gradient that earlier rows had and
    kept rows have not. Cut points, strengths and pairs are chosen again, on kept rows,
    when a quarter of the weight came after the last choice, or a tenth while all rows
    are kept: it is then the model of one fit. Counts of old bins are divided among new
    ones as kept rows are.

    References
    ----------
    M. I. Jordan, J. D. Lee, Y. Yang (2019), "Communication-efficient distributed
    statistical inference", JASA 114, 668-681 (the loss of earlier rows).

    N. Duffield, C. Lund, M. Thorup (2007), "Priority sampling for estimation of
    arbitrary subset sums", JACM 54(6) (the rows that are kept).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from steelyard import ShrinkageNB
    >>> clf = ShrinkageNB().fit(*load_iris(return_X_y=True))
    >>> clf.strength_
    (10.0, 40.0, 10.0)
    >>> clf.view_names_[:2].tolist()
    ['x0', 'x0 (bins 2)']
    """

    strength: Any = setting(
        default="auto",
        allowed=(word("auto") | _TRIPLE).called(
            "'auto' or three finite numbers greater than 0, the strengths of shared "
            "weights, class weights and value effects"
        ),
        about=r":math:`\lambda_w, \lambda_V, \lambda_U`; "
        '"auto" compares a grid by cross-validated log-loss, with everything learned '
        "from scratch in each fold, and takes the mean of the best, on the log scale.",
    )
    intercept: float = setting(
        default=0.5, allowed=number(0.0), about=r":math:`\lambda_b`."
    )
    grid: Any = setting(
        default=None,
        allowed=(NONE | listed(_TRIPLE, at_least=1)).called(
            "None or at least one triple of strengths, each of three finite numbers "
            "greater than 0"
        ),
        about='What "auto" chooses from, best from strong to weak; None is a grid of '
        "seven, searched both ways from its middle.",
    )
    cv: Any = setting(
        default=5,
        allowed=(whole(2) | listed(listed(_POSITIONS, 2), at_least=1)).called(
            "a whole number of at least 2, or a list of pairs of arrays: positions of "
            "training rows and of test rows"
        ),
        about="Folds of the cross-validation, on 5,000 rows or, of long tables, 5,000 "
        "times the cube root of how many times longer they are, where some of the "
        "folds are enough; or positions of training and test rows of each fold.",
    )
    resolutions: int = setting(
        default=8,
        allowed=whole(1),
        about="Numbers of bins of equal frequency, 4 to 20, whose widths curves of "
        "numbers are averaged over, as one table; 1 for ten bins.",
    )
    pairs: Any = setting(
        default="auto",
        allowed=(
            NONE
            | word("auto")
            | whole(0)
            | listed(listed(COLUMN, 2))
            | mapped(word("exclude"), listed(COLUMN))
        ).called(
            "'auto', None, a number of pairs, a list of pairs of columns, or "
            "{'exclude': columns}"
        ),
        about="Pairs of columns with effects of their own: those that the rows "
        "support, none, at most this many, the ones listed, or those that the rows "
        "support without some columns.",
    )
    uncertainty: bool = setting(
        default=True,
        allowed=FLAG,
        about="Whether the model keeps how uncertain it is, for ``predict_interval``; "
        "files are up to twice as large.",
    )
    constraints: Any = setting_of(WeightedNB, "constraints")
    loss: Any = setting_of(WeightedNB, "loss")
    solver: Any = setting_of(WeightedNB, "solver")
    tol: float = setting_of(WeightedNB, "tol", default=1e-6)
    max_iter: int = setting_of(WeightedNB, "max_iter")
    verbose: bool = setting_of(WeightedNB, "verbose")
    numeric: Any = setting(default=("mdl", "equal-frequency"))
    smoothing: Any = setting(default="empirical-bayes")
    keep_identifiers: bool = setting(default=False)
    random_state: Any = setting(
        default=0,
        allowed=SEED,
        about="How rows are dealt to folds; 0, so that the same table always gives the "
        "same model.",
    )

    strength_: tuple[float, float, float] = learned(
        "tuple of three floats", "Strengths of the model."
    )
    step_factor_: float = learned(
        "float",
        "How many times more strongly than other bins those of MDL are held, which "
        "make steps: 1 where steps pay on held-out rows.",
        optional=True,
    )
    scale_: float = learned(
        "float",
        "Factor on the scores before they become probabilities: what makes up for a "
        "model that is too sure, or not sure enough, of rows it has not seen. Found by "
        "the cross-validation; nearer to 1 the more rows there are beyond those; 1 "
        "where the strengths were given.",
    )
    strength_path_: list[dict[str, float]] = learned(
        "list of dict",
        "Strengths that were compared, with the factor of MDL bins as ``intervals`` "
        "and that of pairs, each with its ``scale``, its cross-validated "
        "``log_loss``, the standard error of that, and its ``error`` rate; of what is "
        "surely worse by some of the folds alone. Empty where they were given.",
    )
    shape_losses_: tuple[float, float, float] = learned(
        "tuple of three floats",
        "With ``constraints``: log-loss of held-out rows without and with them, at the "
        "same strengths, and the standard error of the difference.",
        optional=True,
    )
    pairs_: list[dict[str, Any]] = learned(
        "list of dict",
        "Pairs of columns in the model, each with its ``columns`` (names, or positions "
        "where there are none), its ``strength`` and its ``importance``, the mean "
        "absolute evidence over the training rows.",
        optional=True,
    )
    attribute_weights_: Floats = learned(
        "ndarray of shape (views,)", "Shared weights :math:`w_k`."
    )
    class_attribute_weights_: Floats = learned(
        "ndarray of shape (K, views)", "Weights :math:`w_k + V_{kc}` of each class."
    )
    value_effects_: list[Floats] = learned(
        "list of ndarray of shape (K, n_j)",
        "Effects :math:`U_{jvc}` of single values; width 0 for densities.",
    )
    intercept_: Floats = learned(
        "ndarray of shape (K,)", "Corrections :math:`b_c` of the log priors."
    )
    kept_rows_: KeptRows = learned(
        "KeptRows",
        "Codes and numbers of at most 10,000 rows, by which ``partial_fit`` goes on; "
        "only after it.",
        optional=True,
    )
    view_names_: NDArray[Any] = learned(
        "ndarray of shape (views,)", "Names of the views, pairs of columns last."
    )

    def _recipe(self) -> Recipe:
        recipe = super()._recipe()
        return replace(
            recipe,
            constraints=self.constraints,
            weighting=self._grid()[0].weighting(float(self.intercept)),
            loss=resolve_loss(self.loss),
            solver=self.solver,
            tol=float(self.tol),
            max_iter=int(self.max_iter),
        )

    def _chosen(self) -> Strengths:
        """Return the strengths of the model."""
        # Files of earlier versions have no factor of coarse bins.
        factor = float(getattr(self, "step_factor_", 1.0))
        chosen = Strengths(*self.strength_, intervals=factor)
        # Files of the first release have no pairs.
        for pair in getattr(self, "pairs_", [])[:1]:
            chosen = replace(chosen, by_pair=pair["strength"])
        return chosen

    def _fitted_recipe(self) -> Recipe:
        weighting = self._chosen().weighting(float(self.intercept))
        return replace(self._recipe(), weighting=weighting)

    def _fitted_training(
        self, recipe: Recipe, X: Any, y: Any, sample_weight: Any
    ) -> TrainingSet:
        training = super()._fitted_training(recipe, X, y, sample_weight)
        pairs = [f.sides for f in self.encoder_.schema_.features if f.sides]
        return training.with_pairs((a, b) for a, b in pairs)

    def _grid(self) -> tuple[Strengths, ...]:
        """Return the strengths to choose from; a single one needs no choice."""
        if not isinstance(self.strength, str):
            return (_as_strengths(self.strength),)
        grid = GRID if self.grid is None else self.grid
        return tuple(_as_strengths(entry) for entry in grid)

    def _encoding(self) -> Encoding:
        encoding = super()._encoding()
        if self.resolutions == 1:
            return encoding
        finest = EqualFrequencyDiscretizer(FINEST)
        return replace(encoding, numeric=_refined(self.numeric, finest))

    def _estimation(self) -> Estimation:
        n_bins = bins_of_resolutions(int(self.resolutions))
        return replace(super()._estimation(), n_bins=n_bins)

    def _check_going_on(self, forget: float) -> bool:
        is_first = super()._check_going_on(forget)
        if self.instances is not None:
            raise ParameterError(
                "ShrinkageNB with `instances` looks at all rows at once, which "
                "partial_fit does not have. Use fit, or instances=None."
            )
        if not is_first and self._rows_so_far() is None:
            raise ParameterError(
                "This model has kept no rows to go on from: those of `fit` are not "
                "kept of larger tables, nor in files and copies. Learn all chunks "
                "by partial_fit, the first one too."
            )
        return is_first

    def _rows_so_far(self) -> KeptRows | None:
        """Return the rows to go on from: of ``partial_fit``, or of a ``fit``."""
        own = vars(self)
        return own.get("kept_rows_") or own.get("_rows_at_hand")

    def __getstate__(self) -> Any:
        # Files and other processes get rows only of models that are to go on.
        state = dict(super().__getstate__())
        state.pop("_rows_at_hand", None)
        return state

    def _begin(self, recipe: Recipe, training: TrainingSet) -> None:
        recipe.check_views(training, self)
        self._learn_from(recipe, training, keeps_rows=True)

    def _next(self, recipe: Recipe, table: Table, *more: Any) -> TrainingSet:
        # Numbers of the chunk may be kept.
        return replace(super()._next(recipe, table, *more), table=table)

    def _from_earlier(
        self, models: Sequence[Self], keeps: float = 1.0
    ) -> dict[str, Any]:
        return {"so_far": models[0], "keeps": keeps}

    def _fit(
        self,
        recipe: Recipe,
        training: TrainingSet,
        keeps_rows: bool = False,
        so_far: ShrinkageNB | None = None,
        keeps: float = 1.0,
    ) -> Fit:
        with watching("Fitting ShrinkageNB", self.verbose):
            return self._weighed(recipe, training, keeps_rows, so_far, keeps)

    def _weighed(
        self,
        recipe: Recipe,
        training: TrainingSet,
        keeps_rows: bool,
        so_far: ShrinkageNB | None,
        keeps: float,
    ) -> Fit:
        """Choose strengths and pairs, or go on with those of a model so far."""
        draw, since = None, 0.0
        if so_far is not None:
            before = so_far.encoder_.schema_
            places = class_places(so_far.classes_, training.classes)
            rows = so_far._rows_so_far()
            assert rows is not None, "checked before"
            kept = rows.faded(keeps)
            kept = kept.moved(before, training.schema, places, training.n_classes)
            since = kept.since_choice + training.own_total
            training = kept.with_rows(training)
            draw = RowDraw.of(training, self.random_state, kept, keeps < 1.0)
            total = training.given_counts.total
            share = _SHARE_OF_CHOICE if draw.threshold else _SHARE_WHILE_ALL_KEPT
            if since >= share * total:
                # Rows are drawn by their codes: new cut points come first.
                alone = recut(training, draw.sample(training))
                choice, since = self._choice(recipe, draw.sample(alone)), 0.0
                share = min(1.0, len(draw.picked) / total)
                choice = replace(choice.of_more_rows(share), held_out=None)
                training = renewed(training, alone, choice.pairs)
            else:
                choice = so_far._choice_so_far(total)
        else:
            choice = self._choice(recipe, training)
            training = joined(training, choice.pairs)
            is_here = isinstance(training.table, Table) and training.place.is_here
            is_small = is_here and training.n_rows <= most_kept(training.schema)
            if keeps_rows or (is_small and self.instances is None):
                draw = RowDraw.of(training, self.random_state)
        weighting = choice.strengths.weighting(float(self.intercept))
        final = replace(recipe, weighting=weighting, link_scale=choice.scale)
        fit = fit_weights(final, training)
        assert isinstance(fit.model, NBModel) and fit.solved is not None
        chosen = choice.strengths
        shares = base_shares(fit.model, training.count(), fit.log_prior)
        model = with_base_rate(fit.model, shares, fit.log_prior)
        shapes = resolve_shapes(self.constraints, training.schema, training.classes)
        model = shapes.settled(model)
        named = {
            **fit.named,
            "strength_": (chosen.shared, chosen.by_class, chosen.by_value),
            "step_factor_": chosen.intervals,
            "scale_": choice.scale,
            "strength_path_": choice.path,
            "pairs_": pair_records(training, model, chosen.by_pair),
            "view_names_": np.asarray(training.schema.labels(), dtype=object),
        }
        if choice.shape_losses is not None:
            named["shape_losses_"] = tuple(choice.shape_losses)
        if hasattr(self, "_rows_at_hand"):
            named["_rows_at_hand"] = None
        if draw is not None:
            place = "kept_rows_" if keeps_rows or so_far else "_rows_at_hand"
            named[place] = KeptRows.of(draw, training, *fit.solved, since)
        if self.uncertainty:
            uncertainty = uncertainty_of(*fit.solved, choice.scale, shares)
            if uncertainty is not None:
                named["uncertainty_"] = uncertainty
        fit = replace(fit, model=model, named=named, training=training, solved=None)
        return replace(fit, held_out=choice.held_out)

    def _look_at(self, training: TrainingSet, counts: Counts, n_rows: int) -> None:
        super()._look_at(training, counts, n_rows)
        if self.constraints:
            has_pairs = bool(self.pairs) and not isinstance(self.pairs, (list, tuple))
            losses = getattr(self, "shape_losses_", None)
            found = shape_notices(list(self.constraints), has_pairs, losses)
            self.notices_ = arranged([*self.notices_, *found])

    def _choice_so_far(self, total: float) -> Choice:
        """Return what was chosen, for as much weight as there is now."""
        scale = self.scale_ ** min(1.0, self.counts_.total / total)
        return Choice(self._chosen(), scale, path=self.strength_path_)

    def _choice(self, recipe: Recipe, training: TrainingSet) -> Choice:
        """Choose strengths and pairs, where there is anything to choose."""
        grid, pairs, schema = self._grid(), self.pairs, training.schema
        shapes = resolve_shapes(self.constraints, schema, training.classes)
        excluded = set(shapes.columns)
        if isinstance(pairs, Mapping):
            named = pairs.get("exclude", ())
            positions = column_positions(named, schema.n_columns, schema.names, "pairs")
            excluded, pairs = excluded.union(positions), "auto"
        if isinstance(pairs, (list, tuple)):
            pairs = listed_pairs(pairs, training.schema)
        is_given = len(grid) == 1 and not isinstance(pairs, Integral)
        if is_given:
            return Choice(grid[0], pairs=pairs if isinstance(pairs, list) else [])
        held = HeldOutFolds.of(training, self.cv, self.random_state)
        share = held.training.given_counts.total / training.given_counts.total
        return choose(recipe, held, grid, pairs, excluded).of_more_rows(share)


def _refined(numeric: Any, finest: EqualFrequencyDiscretizer) -> Any:
    """Put finer bins in place of ten of equal frequency, in a setting of any form."""
    if isinstance(numeric, str):
        return finest if numeric == "equal-frequency" else numeric
    if isinstance(numeric, Mapping):
        return {column: _refined(views, finest) for column, views in numeric.items()}
    if isinstance(numeric, (list, tuple)):
        return tuple(_refined(view, finest) for view in numeric)
    return numeric


def _as_strengths(value: Any) -> Strengths:
    """Return strengths; of three numbers the last holds for pairs too."""
    if isinstance(value, Strengths):
        return value
    shared, by_class, by_value = map(float, value)
    return Strengths(shared, by_class, by_value, by_value)


def base_shares(model: NBModel, counts: Counts, log_prior: Floats) -> Floats | None:
    r"""Return shares of columns in the variance of scores over the training rows.

    Shape (V, K), the same for all known codes of a column. None where there are none,
    or no base rate.
    """
    if not np.isfinite(log_prior).all():
        return None
    schema = model.schema
    known = np.ones(schema.n_codes, dtype=bool)
    known[schema.first_codes] = False
    for j in np.flatnonzero(schema.is_pair).tolist():
        # A pair is known where both its sides are.
        known[schema.offsets[j] : schema.offsets[j + 1]] = schema.features[j].both_known
    table = FeatureTable(model.table, schema.offsets)
    weight = np.where(known, counts.by_code.sum(axis=1), 0.0)[:, None]
    weight = weight / np.maximum(table.spread(table.collect(weight)), 1e-300)
    mean = table.spread(table.collect(weight * model.table))
    variance = table.collect(weight * (model.table - mean) ** 2)
    total = variance.sum(axis=0)
    if not (total > 0.0).all():
        return None
    return np.where(known[:, None], table.spread(variance / total), 0.0)


def with_base_rate(model: NBModel, shares: Floats | None, log_prior: Floats) -> NBModel:
    r"""Begin at the base rate, and give columns what the intercept differs from it by.

    .. math:: \tilde b = \frac{1}{s} \log \pi, \qquad \tilde T_{jvc} = T_{jvc} +
        \omega_{jc} (b_c - \tilde b_c)

    with the base rates :math:`\pi`, the scale s of the scores, and the shares
    :math:`\omega` of ``base_shares``. Scores of rows without a missing cell stay as
    they are, up to rounding and up to what all classes share. A missing cell goes on
    to add nothing, now to the base rate.
    """
    if shares is None:
        return model
    base = log_prior / model.link_scale
    left = model.log_prior - base
    left -= left.mean()
    return replace(model, log_prior=base, table=model.table + shares * left)
