"""ShrinkageNB: naive Bayes, corrected as far as the rows support it."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats
from steelyard._common.settings import (
    COLUMN,
    FLAG,
    NONE,
    SEED,
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
from steelyard.classifiers.base.chunked import KeepsRows
from steelyard.classifiers.weighted import SolvedNB, WeightedNB
from steelyard.fitting.default.continuation import Reservoir, max_rows
from steelyard.fitting.default.folds import POSITIONS, HeldOutFolds
from steelyard.fitting.default.interactions import asked_pairs, joined, pair_records
from steelyard.fitting.default.strengths import GRID, Choice, Strengths, choose
from steelyard.fitting.default.uncertainty import uncertainty_of
from steelyard.fitting.problem import Fit, fit_weights
from steelyard.fitting.recipe import Recipe
from steelyard.fitting.shapes import resolve_shapes
from steelyard.losses import resolve_loss
from steelyard.model.table_model import NBModel
from steelyard.model.training import Encoding, TrainingSet
from steelyard.notices.notice import Notice, few_pairs_notice, shape_notices
from steelyard.proba.basis import bins_of_resolutions, with_finest_bins
from steelyard.proba.smoothing import Estimation
from steelyard.table.frames import Table
from steelyard.table.labels import class_places
from steelyard.weighting.hierarchy import base_shares, with_base_rate

__all__ = ["GRID", "ShrinkageNB", "Strengths"]

_TRIPLE = listed(number(0.0, ends="()"), 3) | instance(Strengths)


class ShrinkageNB(KeepsRows, SolvedNB):
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
    do not have these. Each chunk fits weights to the kept rows, which stand for all.
    When the weight has grown by a tenth, everything is learned from them anew: columns
    and parts of dates, cut points, strengths and pairs. While all rows are kept, that
    is the model of one fit.

    References
    ----------
    N. Duffield, C. Lund, M. Thorup (2007), "Priority sampling for estimation of
    arbitrary subset sums", JACM 54(6) (the rows that are kept).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from steelyard import ShrinkageNB
    >>> clf = ShrinkageNB().fit(*load_iris(return_X_y=True))
    >>> clf.strength_
    (8.0, 33.0, 6.2)
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
        allowed=(whole(2) | listed(listed(POSITIONS, 2), at_least=1)).called(
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
        "support, none, the best so many, the ones listed, or those that the rows "
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
    kept_rows_: Reservoir = learned(
        "Reservoir",
        "At most 40,000 rows as they were given, a sample by weight, from which "
        "``partial_fit`` goes on; only after it.",
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
        chosen = Strengths(*self.strength_, intervals=self.step_factor_)
        for pair in self.pairs_[:1]:
            chosen = replace(chosen, by_pair=pair["strength"])
        return chosen

    def _grid(self) -> tuple[Strengths, ...]:
        """Return the strengths to choose from; a single one needs no choice."""
        if not isinstance(self.strength, str):
            return (Strengths.of(self.strength),)
        grid = GRID if self.grid is None else self.grid
        return tuple(Strengths.of(entry) for entry in grid)

    def _encoding(self) -> Encoding:
        encoding = super()._encoding()
        if self.resolutions == 1:
            return encoding
        return replace(encoding, numeric=with_finest_bins(self.numeric))

    def _estimation(self) -> Estimation:
        n_bins = bins_of_resolutions(int(self.resolutions))
        return replace(super()._estimation(), n_bins=n_bins)

    def _solved(
        self,
        recipe: Recipe,
        training: TrainingSet,
        keeps_rows: bool = False,
        so_far: ShrinkageNB | None = None,
        keeps: float = 1.0,
    ) -> Fit:
        """Choose strengths and pairs, and fit; or go on from a model so far."""
        if so_far is not None:
            return self._continued(recipe, training, so_far, keeps)
        choice = self._choice(recipe, training)
        fit = self._finished(recipe, joined(training, choice.pairs), choice)
        is_small = isinstance(training.table, Table) and training.place.is_here
        is_small = is_small and training.n_rows <= max_rows(training.schema.n_columns)
        rows = None
        if keeps_rows or (is_small and self.instances is None):
            rows = Reservoir.of(training, self.random_state)
        named = {"kept_rows_" if keeps_rows else "_rows_at_hand": rows}
        return replace(fit, named={**fit.named, "_rows_at_hand": None, **named})

    def _continued(
        self, recipe: Recipe, chunk: TrainingSet, so_far: ShrinkageNB, keeps: float
    ) -> Fit:
        """Go on from a model so far with the rows that it has kept, and a chunk.

        Schema, strengths and pairs are learned anew when enough of the rows are new.
        """
        rows = so_far._rows_so_far()
        assert rows is not None, "checked before"
        places = class_places(so_far.classes_, chunk.classes)
        given = chunk, places, self.random_state, keeps < 1.0
        rows, total = rows.faded(keeps).with_rows(*given), chunk.given_counts.total
        if rows.is_refit_due(total):
            learned = rows.learned(chunk)
            choice = self._choice(recipe, learned)
            training = rows.for_all_rows(joined(learned, choice.pairs), chunk)
            if rows.threshold:
                share = min(1.0, training.n_rows / total)
                choice = replace(choice.of_more_rows(share), held_out=None)
            rows = replace(rows, new_weight=0.0)
        else:
            training, choice = rows.encoded(chunk), so_far._choice_so_far(total)
        fit = self._finished(recipe, training, choice)
        named = {"kept_rows_": rows, "_rows_at_hand": None}
        return replace(fit, named={**fit.named, **named})

    def _finished(self, recipe: Recipe, training: TrainingSet, choice: Choice) -> Fit:
        """Fit what was chosen, and return all that is published."""
        chosen = choice.strengths
        weighting = chosen.weighting(float(self.intercept))
        final = replace(recipe, weighting=weighting, link_scale=choice.scale)
        fit = fit_weights(final, training)
        assert isinstance(fit.model, NBModel) and fit.solved is not None
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
        # Without a base rate nothing is known.
        if self.uncertainty and shares is not None:
            uncertainty = uncertainty_of(*fit.solved, choice.scale)
            if uncertainty is not None:
                named["uncertainty_"] = uncertainty
        fit = replace(fit, model=model, named=named, training=training, solved=None)
        return replace(fit, held_out=choice.held_out)

    def _method_notices(self) -> list[Notice]:
        found: list[Notice] = []
        if self.constraints:
            has_pairs = bool(self.pairs) and not isinstance(self.pairs, (list, tuple))
            losses = getattr(self, "shape_losses_", None)
            found += shape_notices(list(self.constraints), has_pairs, losses)
        if isinstance(self.pairs, Integral):
            was_compared = not np.isnan(self.strength_path_[0]["log_loss"])
            n_kept = len(self.pairs_)
            found += few_pairs_notice(int(self.pairs), n_kept, was_compared)
        return found

    def _choice_so_far(self, total: float) -> Choice:
        """Return what was chosen, for as much weight as there is now."""
        scale = self.scale_ ** min(1.0, self.counts_.total / total)
        return Choice(self._chosen(), scale, path=self.strength_path_)

    def _choice(self, recipe: Recipe, training: TrainingSet) -> Choice:
        """Choose strengths and pairs, where there is anything to choose."""
        grid, schema = self._grid(), training.schema
        pairs, excluded = asked_pairs(self.pairs, schema)
        shapes = resolve_shapes(self.constraints, schema, training.classes)
        excluded.update(shapes.columns)
        is_given = len(grid) == 1 and not isinstance(pairs, Integral)
        if is_given:
            return Choice(grid[0], pairs=pairs if isinstance(pairs, list) else [])
        held = HeldOutFolds.of(training, self.cv, self.random_state)
        share = held.training.given_counts.total / training.given_counts.total
        return choose(recipe, held, grid, pairs, excluded).of_more_rows(share)
