"""WeightedNB: naive Bayes whose weights are learned by minimising a loss."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from steelyard._common.progress import watching
from steelyard._common.settings import (
    COLUMN,
    FLAG,
    INFINITE,
    NONE,
    learned,
    listed,
    mapped,
    matching,
    number,
    part,
    setting,
    whole,
    word,
)
from steelyard.classifiers.base.estimator import DEVICE_SETTING, StandardNB
from steelyard.exceptions import ParameterError
from steelyard.fitting.fit import Fit
from steelyard.fitting.problem import fit_weights
from steelyard.fitting.recipe import PenaltySetting, Recipe
from steelyard.fitting.shapes import resolve_shapes
from steelyard.fitting.unknown import marginal_of
from steelyard.instances import (
    INSTANCES,
    InstanceWeighting,
    hardest_rows,
    resolve_instances,
)
from steelyard.losses import LOSSES, ExponentialLoss, Loss, resolve_loss
from steelyard.model.base import RowsNeeded
from steelyard.model.table_model import NBModel
from steelyard.model.training import TrainingSet
from steelyard.model.uncertainty import Uncertainty
from steelyard.proba.smoothing import Estimation
from steelyard.solvers import SOLVERS, Solver
from steelyard.weighting import WEIGHTINGS, Weighting, resolve_weighting

__all__ = ["BOUNDS", "SolvedNB", "WeightedNB"]

_PAIR = listed(NONE | number() | INFINITE, 2)
BOUNDS = (NONE | _PAIR | listed(_PAIR) | mapped(COLUMN, _PAIR)).called(
    "None, a pair (low, high) of numbers, one pair for each attribute, or a mapping "
    "from attribute to pair"
)

_SEVERAL_SUMS = (
    "unknown='marginal' averages over the missing cells of one sum, and {} with these "
    "settings learns several. Use unknown='sum', or another weighting than 'mixture' "
    "with multiclass='native'."
)


class SolvedNB(StandardNB):
    """What classifiers whose weights have an objective learn."""

    _rows_needed: ClassVar[RowsNeeded] = "sums"

    device: str = DEVICE_SETTING
    instances: Any = setting(
        default=None,
        allowed=(NONE | part(InstanceWeighting, INSTANCES)).called(
            f"None, {word(*INSTANCES).text}, or an InstanceWeighting object"
        ),
        about="Instance weights that the counts are made with, learned before "
        'attribute weights: "discriminative", "value-frequency", or none.',
    )

    instance_weights_: NDArray[np.float64] = learned(
        "ndarray of shape (n,)",
        "Learned weights of the training rows, with ``instances``.",
        optional=True,
    )
    objective_: float = learned(
        "float", "Loss plus penalty at the solution, a sum over rows."
    )
    n_iter_: int = learned("int", "Iterations of the solver.")
    diagnostics_: list[dict[str, Any]] = learned(
        "list of dict", "One record per iteration."
    )
    uncertainty_: Uncertainty = learned(
        "Uncertainty",
        "How uncertain log-odds are, as tables by code; of the default, with "
        "``uncertainty=True``.",
        optional=True,
    )

    hardest_rows = hardest_rows

    def _recipe(self) -> Recipe:
        recipe = super()._recipe()
        if self.instances is None:
            return recipe
        return replace(recipe, instances=resolve_instances(self.instances))

    def _fit(self, recipe: Recipe, training: TrainingSet, **rows: Any) -> Fit:
        with watching(
            f"Fitting {type(self).__name__}", getattr(self, "verbose", False)
        ):
            return self._solved(recipe, training, **rows)

    def _solved(self, recipe: Recipe, training: TrainingSet) -> Fit:
        """Learn weights from encoded rows."""
        return fit_weights(recipe, training)


class WeightedNB(SolvedNB):
    r"""Naive Bayes with learned weights: any weighting, loss, penalty and bounds.

    .. math:: \min_w \sum_i u_i\, \ell\bigl(z_i(w), y_i\bigr)
              + \lambda \sum_k (w_k - 1)^2, \qquad
       z_{ic}(w) = \log \pi_c + \sum_j \omega(c, j, x_{ij}) \log \theta_{j,x_{ij}|c}

    Probabilities are estimated from counts and stay as they are; weights are how much
    of each to use. With all weights one the model is naive Bayes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from steelyard import WeightedNB
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = WeightedNB(weighting="attribute", lam=1.0, bounds=(0, 2)).fit(X, y)
    >>> clf.attribute_weights_.round(2)
    array([0.13, 0.36, 0.67, 0.71])
    """

    _models: ClassVar[tuple[str, ...]] = ("sum", "mixture", "pairs")

    weighting: Any = setting(
        default="attribute",
        allowed=part(Weighting, WEIGHTINGS),
        about='"attribute" (one weight per attribute), "class-attribute" (per class '
        'and attribute), "value" (per class, attribute and value) or "mixture" '
        "(RNB's mixture of the first two). Or one per attribute that starts from a "
        'filter: "correlation" (CFW), "gain-ratio" (GRAWNB), "subset" (DFWNB), "trees" '
        '(DTAWNB), "tree" (TreeNB) or "auc" (AUCNB).',
    )
    loss: Any = setting(
        default="log",
        allowed=part(Loss, LOSSES),
        about='"log" (conditional log-likelihood), "brier" (half the squared error), '
        '"exponential" (ENB) or "deviance" (multiplier 2, DNB).',
    )
    prior_weight: bool = setting(
        default=False,
        allowed=FLAG,
        about="Whether the log prior has a separate weight (GDNB).",
    )
    bounds: Any = setting(
        default=(0.0, 1.0),
        allowed=BOUNDS,
        about="Lower and upper bound of all weights, none, or a pair for each "
        "attribute (by name or position in a mapping; attributes that it leaves out "
        "are unbounded).",
    )
    constraints: Any = setting(
        default=None,
        allowed=(
            NONE
            | mapped(
                COLUMN, matching(".+") | listed(matching(".+") | number() | FLAG, 2)
            )
        ).called("None or a mapping from column to shape, or to a pair (shape, class)"),
        about='Shapes that curves of columns must have: "increasing", "decreasing", '
        '"convex", "concave" (by the centres of bins), "peak" or "valley", of the '
        "log-odds of the second of two classes. With more classes a pair names the "
        "class, which has the shape against each other one. Of numbers and of "
        "categories that have an order.",
    )
    penalty: str | None = setting(
        default="ridge",
        allowed=NONE | word("ridge", "l1"),
        about='Distance from ``center`` that is penalised. "l1" needs bounds that keep '
        "all weights on one side of the centre.",
    )
    lam: float = setting(
        default=0.0,
        allowed=number(0.0),
        about="Strength of the penalty; 0 is the published model.",
    )
    center: float = setting(
        default=1.0,
        allowed=number(),
        about="Where the penalty pulls weights to; 1 is naive Bayes.",
    )
    multiclass: str = setting(
        default="native",
        allowed=word("native", "one-vs-one"),
        about="One model for all classes, or one for each pair with summed "
        "probabilities.",
    )
    unknown: str = setting(
        default="sum",
        allowed=word("marginal", "sum"),
        about='How rows with missing cells are answered: with "sum", as published, '
        'these add nothing; "marginal" averages over what they may be, given the '
        "others. Columns of which many cells were missing at fit keep what that meant. "
        "A model of several sums has no such average. A fitted model can be changed to "
        '"sum".',
    )
    calibrated: bool = setting(
        default=False,
        allowed=FLAG,
        about="Whether probabilities use the factor that makes them calibrated for "
        'losses that estimate a fraction of the log-odds ("exponential": 2, '
        '"deviance": its multiplier).',
    )
    published_gradient: bool = setting(
        default=False,
        allowed=FLAG,
        about="Use the truncated gradient of the squared error as printed for CAWNB "
        "and RNB.",
    )
    solver: Any = setting(
        default="auto",
        allowed=part(Solver, SOLVERS),
        about='"auto", "newton", "lbfgs", "published" (L-BFGS-B with the settings of '
        'published implementations, at most 100 iterations) or "fixed" (weights stay '
        "one, or what a filter says).",
    )
    tol: float = setting(
        default=1e-8,
        allowed=number(0.0),
        about="Relative accuracy of the objective.",
    )
    max_iter: int = setting(
        default=1000, allowed=whole(1), about="Largest number of iterations."
    )
    verbose: bool = setting(
        default=False,
        allowed=FLAG,
        about="Whether to show passes over the rows, and the time left, on standard "
        "error.",
    )
    variance: str = setting(
        default="population",
        allowed=word("population", "sample"),
        about="Whether variances of Gaussian attributes divide by n or by n - 1.",
    )

    attribute_weights_: NDArray[np.float64] = learned(
        "ndarray of shape (d,) or (pairs, d)",
        'Weight of each attribute ("attribute" and "mixture").',
        optional=True,
    )
    class_attribute_weights_: NDArray[np.float64] = learned(
        "ndarray of shape (K, d)",
        'Weight of each attribute in each class ("class-attribute" and "mixture").',
        optional=True,
    )
    value_weights_: list[NDArray[np.float64]] = learned(
        "list of ndarray of shape (K, n_j)",
        'Weight of each value in each class ("value").',
        optional=True,
    )
    value_effects_: list[NDArray[np.float64]] = learned(
        "list of ndarray of shape (K, n_j)",
        'Effect of each value on each class ("hierarchy").',
        optional=True,
    )
    intercept_: NDArray[np.float64] = learned(
        "ndarray of shape (K,)",
        'Corrections of the log priors ("hierarchy").',
        optional=True,
    )
    alpha_: float = learned(
        "float", 'Share of the class-specific half ("mixture").', optional=True
    )
    prior_weight_: float = learned(
        "float", "Weight of the log prior, with ``prior_weight=True``.", optional=True
    )
    selected_features_: list[Any] = learned(
        "list of str or int",
        'Attributes that the filter "subset" selects, in order of choice: names, or '
        'positions if there are none; one list per pair with "one-vs-one".',
        optional=True,
    )

    def _recipe(self) -> Recipe:
        recipe = super()._recipe()
        if self.unknown != "sum" and self.weighting == "mixture":
            raise ParameterError(_SEVERAL_SUMS.format(type(self).__name__))
        loss = resolve_loss(self.loss, bool(self.published_gradient))
        if self.solver == "published" and self.loss == "exponential":
            loss = ExponentialLoss(highest=700.0)
        return replace(
            recipe,
            weighting=resolve_weighting(self.weighting, bool(self.prior_weight)),
            loss=loss,
            penalty=PenaltySetting(self.penalty, float(self.lam), float(self.center)),
            bounds=self.bounds,
            constraints=self.constraints,
            solver=self.solver,
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            one_vs_one=self.multiclass == "one-vs-one",
            link_scale=float(loss.link_scale) if self.calibrated else 1.0,
        )

    def _estimation(self) -> Estimation:
        return replace(super()._estimation(), unbiased=self.variance == "sample")

    def _fit(self, recipe: Recipe, training: TrainingSet, **rows: Any) -> Fit:
        is_several = self.multiclass != "native" and len(training.classes) > 2
        if self.unknown != "sum" and is_several:
            raise ParameterError(_SEVERAL_SUMS.format(type(self).__name__))
        fit = super()._fit(recipe, training, **rows)
        if self.unknown == "sum":
            return fit
        model, used = fit.model, fit.training or training
        assert isinstance(model, NBModel)
        shapes = resolve_shapes(self.constraints, used.schema, used.classes)
        marginal = marginal_of(model, used, fit.log_prior, 0, shapes.columns)
        return replace(fit, model=replace(model, marginal=marginal))
