r"""ShrinkageNB, the default: an additive model with a Gaussian-process prior.

It is fitted by penalised maximum likelihood (MAP). Hyperparameters, which are the
regularisation strengths :math:`\lambda`, the interactions and the temperature, are
chosen by cross-validation. `steelyard.fitting.default` has the formula and the steps.
"""

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
from steelyard.fitting.default.interactions import (
    asked_interactions,
    interaction_records,
    joined,
)
from steelyard.fitting.default.strengths import START, Choice, Strengths, choose
from steelyard.fitting.default.uncertainty import uncertainty_of
from steelyard.fitting.fit import Fit
from steelyard.fitting.problem import fit_weights
from steelyard.fitting.recipe import Recipe
from steelyard.fitting.shapes import resolve_shapes
from steelyard.fitting.unknown import marginal_of
from steelyard.losses import resolve_loss
from steelyard.model.table_model import NBModel
from steelyard.model.training import Encoding, TrainingSet
from steelyard.notices.notice import (
    Notice,
    few_interactions_notice,
    no_error_notice,
    shape_notices,
)
from steelyard.proba.basis import bins_of_resolutions, with_finest_bins
from steelyard.proba.smoothing import Estimation
from steelyard.table.frames import Table
from steelyard.table.labels import class_places
from steelyard.weighting.hierarchy import (
    HierarchicalWeighting,
    base_shares,
    with_base_rate,
)

__all__ = ["ShrinkageNB", "Strengths"]

_TRIPLE = listed(number(0.0, ends="()"), 3) | instance(Strengths)


class ShrinkageNB(KeepsRows, SolvedNB):
    r"""Naive Bayes with smooth effects and interactions, as far as rows support them.

    .. math:: z_c(x) = \log \pi_c + b_c + \sum_k (w_k + V_{kc})\, e_k(x)_c
              + \sum_j U_{j,x_j,c} + \sum_{(a,b)} S_{ab,\,x_a x_b,\,c}

    .. math:: \min\; -\sum_i u_i \log P(y_i \mid x_i) + \lambda_w \sum_k (w_k - c_k)^2
              + \lambda_V \sum V^2 + \lambda_U \sum U^2 + \lambda_P \sum S^2
              + \lambda_b \sum b^2

    This is an additive model with a Gaussian-process prior, fitted by penalised maximum
    likelihood (MAP): a convex problem. The regularisation strengths :math:`\lambda`,
    the interactions :math:`S` and the temperature of the probabilities are chosen by
    cross-validation.

    The evidence :math:`e_k` of naive Bayes is shrunk to the class prior as far as the
    counts of its column suggest, so that a useless column does little harm. Weights of
    categories are drawn to a quarter of it, those of numbers to nothing (:math:`c_k`):
    columns often say the same. A number is cut into fine bins of equal frequency, whose
    effects :math:`U` have a smooth prior with a trend and are level beyond the data,
    and into bins of MDL, whose steps are penalised more unless they reduce the log-loss
    of held-out rows. Interactions have effects :math:`S` only,
    and are ranked by the residuals of held-out rows. A prediction is a sum of
    contributions, which starts at the base rate: the difference from :math:`b` is
    shared by the columns in proportion to their variances. A row with missing cells is
    answered by the mean over what these may be, given the observed ones; without any
    value, by the base rate.

    ``partial_fit`` counts all rows and keeps a weighted sample of at most 40,000 of
    them, in the model and its file; of wide tables 1,000,000 cells, or 10,000 rows. It
    can follow ``fit`` too, of a table in memory with no more rows than that, but not
    after the model was saved, pickled or copied. Each chunk fits weights to the sample,
    which represents all rows. When the total weight has grown by a tenth, everything is
    learned from the sample anew: columns and parts of dates, cut points, and all
    hyperparameters. While the sample has all rows, that is the model of one fit.

    References
    ----------
    N. Duffield, C. Lund, M. Thorup (2007), "Priority sampling for estimation of
    arbitrary subset sums", JACM 54(6) (the sample).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from steelyard import ShrinkageNB
    >>> clf = ShrinkageNB().fit(*load_iris(return_X_y=True))
    >>> clf.strength_
    (5.5, 22.0, 3.2)
    >>> clf.term_names_[:2].tolist()
    ['x0', 'x1']
    """

    strength: Any = setting(
        default="auto",
        allowed=(word("auto") | _TRIPLE).called(
            "'auto' or three finite numbers greater than 0, the strengths of shared "
            "weights, class weights and value effects"
        ),
        about=r":math:`\lambda_w, \lambda_V, \lambda_U`; "
        '"auto" compares some by cross-validated log-loss, with everything learned '
        "from scratch in each fold, and takes a mean of the best, on the log scale.",
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
        about='What "auto" compares, in order, until the log-loss rises; None moves '
        "strengths one after the other, down or up, as long as that pays.",
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
    interactions: Any = setting(
        default="auto",
        allowed=(
            NONE
            | word("auto")
            | whole(0)
            | listed(listed(COLUMN, 2))
            | mapped(word("exclude"), listed(COLUMN))
        ).called(
            "'auto', None, a number of interactions, a list of pairs of columns, or "
            "{'exclude': columns}"
        ),
        about="Interactions with effects beside those of columns: those that the rows "
        "support, none, the best n, the ones listed, or those that the rows "
        "support without some columns.",
    )
    uncertainty: bool = setting(
        default=True,
        allowed=FLAG,
        about="Whether the model keeps how uncertain it is, for ``predict_interval``; "
        "files are up to twice as large.",
    )
    unknown: str = setting_of(WeightedNB, "unknown", default="marginal")
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
        "make steps: 1 if steps pay on held-out rows.",
    )
    scale_: float = learned(
        "float",
        "Factor on the scores before they become probabilities: what makes up for a "
        "model that is too sure, or not sure enough, of rows it has not seen. Found by "
        "the cross-validation; nearer to 1 the more rows there are beyond those; 1 "
        "if the strengths were given.",
    )
    strength_path_: list[dict[str, float]] = learned(
        "list of dict",
        "Strengths that were compared, with the factor of MDL bins as ``intervals`` "
        "and that of interactions, each with its ``scale``, its cross-validated "
        "``log_loss``, the standard error of that, and its ``error`` rate; of what is "
        "surely worse by some of the folds alone. Empty if they were given.",
    )
    shape_losses_: tuple[float, float, float] = learned(
        "tuple of three floats",
        "With ``constraints``: log-loss of held-out rows without and with them, at the "
        "same strengths, and the standard error of the difference.",
        optional=True,
    )
    interactions_: list[dict[str, Any]] = learned(
        "list of dict",
        "Interactions in the model, each with its ``columns`` (names, or positions "
        "if there are none), its ``strength`` and its ``importance``, the mean "
        "absolute contribution over the training rows.",
    )
    attribute_weights_: Floats = learned(
        "ndarray of shape (d,)",
        "Shared weights :math:`w_k`, those of the two encodings of a number added up.",
    )
    class_attribute_weights_: Floats = learned(
        "ndarray of shape (K, d)",
        "Weights :math:`w_k + V_{kc}` of each class, added up likewise.",
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
    term_names_: NDArray[Any] = learned(
        "ndarray of shape (d,)", "Names of the columns, then of interactions."
    )

    def _recipe(self) -> Recipe:
        recipe = super()._recipe()
        return replace(
            recipe,
            constraints=self.constraints,
            weighting=(*self._grid(), START)[0].weighting(float(self.intercept)),
            loss=resolve_loss(self.loss),
            solver=self.solver,
            tol=float(self.tol),
            max_iter=int(self.max_iter),
        )

    def _grid(self) -> tuple[Strengths, ...]:
        """Return the strengths to choose from: a single one, or none for a search."""
        if not isinstance(self.strength, str):
            return (Strengths.of(self.strength),)
        return tuple(map(Strengths.of, self.grid or ()))

    def _encoding(self) -> Encoding:
        encoding = super()._encoding()
        if self.resolutions == 1:
            return encoding
        return replace(encoding, numeric=with_finest_bins(self.numeric))

    def _estimation(self) -> Estimation:
        n_bins = bins_of_resolutions(int(self.resolutions))
        return replace(super()._estimation(), n_bins=n_bins)

    # ------------------------------------------------------------ choose, fit, finish

    def _solved(
        self,
        recipe: Recipe,
        training: TrainingSet,
        keeps_rows: bool = False,
        so_far: ShrinkageNB | None = None,
        keeps: float = 1.0,
    ) -> Fit:
        """Choose hyperparameters, fit, and finish; or continue a fitted model."""
        if so_far is not None:
            return self._continued(recipe, training, so_far, keeps)
        choice = self._choose(recipe, training)
        training_joined = joined(training, choice.interactions)
        fit = self._fit_chosen(recipe, training_joined, choice)
        fit = self._finish(fit, training_joined, choice)
        if keeps_rows:
            rows = Reservoir.of(training, self.random_state)
            return _with_rows(fit, kept_rows_=rows)
        return _with_rows(fit, _rows_at_hand=self._rows_in_memory(training))

    def _choose(self, recipe: Recipe, training: TrainingSet) -> Choice:
        """Choose regularisation strengths, interactions and scale; all may be given."""
        grid, schema = self._grid(), training.schema
        interactions, excluded = asked_interactions(self.interactions, schema)
        shapes = resolve_shapes(self.constraints, schema, training.classes)
        excluded.update(shapes.columns)
        if len(grid) == 1 and not isinstance(interactions, Integral):
            return Choice(
                grid[0],
                interactions=interactions if isinstance(interactions, list) else [],
            )
        folds = HeldOutFolds.of(training, self.cv, self.random_state)
        share = folds.training.given_counts.total / training.given_counts.total
        return choose(recipe, folds, grid, interactions, excluded).of_more_rows(share)

    def _fit_chosen(self, recipe: Recipe, training: TrainingSet, choice: Choice) -> Fit:
        """Maximise the penalised likelihood (MAP) under the chosen hyperparameters."""
        weighting = choice.strengths.weighting(float(self.intercept))
        final = replace(recipe, weighting=weighting, link_scale=choice.scale)
        return fit_weights(final, training)

    def _finish(self, fit: Fit, training: TrainingSet, choice: Choice) -> Fit:
        """Start the model at the base rate, and name all that is published."""
        assert isinstance(fit.model, NBModel) and fit.solved is not None
        problem, weights = fit.solved
        weighting = problem.objective.weighting
        assert isinstance(weighting, HierarchicalWeighting)
        shares = base_shares(weighting, weights, problem.evidence, training.count())
        model = with_base_rate(fit.model, shares, fit.log_prior)
        shapes = resolve_shapes(self.constraints, training.schema, training.classes)
        model = shapes.settled(model)
        if self.unknown == "marginal":
            marginal = marginal_of(
                *(model, training, fit.log_prior),
                *(self.random_state, shapes.columns),
            )
            model = replace(model, marginal=marginal)
        named = {**fit.named, **self._published(model, training, choice)}
        # Variances are of log-odds relative to the base rate.
        if self.uncertainty and shares is not None:
            uncertainty = uncertainty_of(*fit.solved, choice.scale)
            if uncertainty is not None:
                named["uncertainty_"] = uncertainty
        fit = replace(fit, model=model, named=named, training=training, solved=None)
        return replace(fit, held_out=choice.held_out)

    def _published(
        self, model: NBModel, training: TrainingSet, choice: Choice
    ) -> dict[str, Any]:
        """Return the chosen hyperparameters as fitted attributes."""
        chosen = choice.strengths
        named = {
            "strength_": (chosen.shared, chosen.by_class, chosen.by_value),
            "step_factor_": chosen.intervals,
            "scale_": choice.scale,
            "strength_path_": choice.path,
            "interactions_": interaction_records(
                training, model, chosen.by_interaction
            ),
            "term_names_": np.asarray(training.schema.labels(), dtype=object),
        }
        if choice.shape_losses is not None:
            named["shape_losses_"] = tuple(choice.shape_losses)
        return named

    # ---------------------------------------------------------------- incremental fits

    def _rows_in_memory(self, training: TrainingSet) -> Reservoir | None:
        """Keep the rows of a small table, so that ``partial_fit`` can follow."""
        if not isinstance(training.table, Table) or not training.place.is_here:
            return None
        if training.n_rows > max_rows(training.schema.n_columns) or (
            self.instances is not None
        ):
            return None
        return Reservoir.of(training, self.random_state)

    def _continued(
        self, recipe: Recipe, chunk: TrainingSet, so_far: ShrinkageNB, keeps: float
    ) -> Fit:
        """Fit to the reservoir of a fitted model and a chunk.

        Hyperparameters and schema are learned anew when enough of the rows are new.
        """
        reservoir = so_far._rows_so_far()
        assert reservoir is not None, "checked before"
        places = class_places(so_far.classes_, chunk.classes)
        reservoir = reservoir.faded(keeps).with_rows(
            chunk, places, self.random_state, fades=keeps < 1.0
        )
        if reservoir.is_refit_due(chunk.given_counts.total):
            training, choice = self._chosen_anew(recipe, reservoir, chunk)
            reservoir = replace(reservoir, new_weight=0.0)
        else:
            training = reservoir.encoded(chunk)
            choice = so_far._choice_so_far(chunk.given_counts.total)
        fit = self._fit_chosen(recipe, training, choice)
        return _with_rows(self._finish(fit, training, choice), kept_rows_=reservoir)

    def _chosen_anew(
        self, recipe: Recipe, reservoir: Reservoir, chunk: TrainingSet
    ) -> tuple[TrainingSet, Choice]:
        """Learn the schema and choose hyperparameters from the rows of a reservoir."""
        learned = reservoir.learned(chunk)
        choice = self._choose(recipe, learned)
        training = reservoir.for_all_rows(joined(learned, choice.interactions), chunk)
        if reservoir.threshold:
            share = min(1.0, training.n_rows / chunk.given_counts.total)
            choice = replace(choice.of_more_rows(share), held_out=None)
        return training, choice

    def _choice_so_far(self, total: float) -> Choice:
        """Return the hyperparameters of this model, for rows of a larger weight."""
        given = (*self._grid(), START)[0]
        chosen = zip(("shared", "by_class", "by_value"), self.strength_, strict=True)
        strengths = replace(given, **dict(chosen), intervals=self.step_factor_)
        if self.interactions_:
            strengths = replace(
                strengths, by_interaction=self.interactions_[0]["strength"]
            )
        scale = self.scale_ ** min(1.0, self.counts_.total / total)
        return Choice(strengths, scale, path=self.strength_path_)

    def _method_notices(self) -> list[Notice]:
        notices: list[Notice] = []
        if self.constraints:
            has_interactions = bool(self.interactions) and not isinstance(
                self.interactions, (list, tuple)
            )
            losses = getattr(self, "shape_losses_", None)
            notices += shape_notices(list(self.constraints), has_interactions, losses)
        if isinstance(self.interactions, Integral):
            was_compared = not np.isnan(self.strength_path_[0]["log_loss"])
            n_kept = len(self.interactions_)
            notices += few_interactions_notice(
                int(self.interactions), n_kept, was_compared
            )
        compared = [entry for entry in self.strength_path_ if "error" in entry]
        if compared:
            best = min(compared, key=lambda entry: entry["log_loss"])
            majority = float(self.class_count_.max() / self.class_count_.sum())
            n_rows = round(self.counts_.total)
            notices += no_error_notice(1.0 - best["error"], majority, n_rows)
        return notices


def _with_rows(
    fit: Fit,
    kept_rows_: Reservoir | None = None,
    _rows_at_hand: Reservoir | None = None,
) -> Fit:
    """Return a fit with rows for ``partial_fit``: of the file, or of memory alone."""
    named = {**fit.named, "_rows_at_hand": _rows_at_hand}
    if kept_rows_ is not None:
        named["kept_rows_"] = kept_rows_
    return replace(fit, named=named)
