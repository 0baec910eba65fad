"""Published filters: ``WeightedNB`` with weights that are computed, not optimised."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from steelyard._common.settings import learned, setting, setting_of
from steelyard.classifiers.base.chunked import LearnsInChunks
from steelyard.classifiers.weighted import SolvedNB, WeightedNB
from steelyard.exceptions import ParameterError
from steelyard.fitting.fit import Fit
from steelyard.fitting.problem import computed_fit
from steelyard.fitting.recipe import Recipe
from steelyard.model.training import TrainingSet
from steelyard.proba.smoothing import Estimation
from steelyard.weighting import (
    AUCWeighting,
    CorrelationWeighting,
    FilterWeighting,
    GainRatioWeighting,
    SubsetWeighting,
    TreeWeighting,
)

__all__ = [
    "AUCWeightedNB",
    "CorrelationWeightedNB",
    "DeepWeightedNB",
    "GainRatioWeightedNB",
    "TreeWeightedNB",
]


class FilteredNB(SolvedNB):
    """Weights that a filter computes; settings of the filter are its own."""

    _filter: ClassVar[type[FilterWeighting]]

    variance: str = setting_of(WeightedNB, "variance")

    attribute_weights_: NDArray[np.float64] = learned(
        "ndarray of shape (d,)", "Weights that the filter computed."
    )

    def _estimation(self) -> Estimation:
        return replace(super()._estimation(), unbiased=self.variance == "sample")

    def _recipe(self) -> Recipe:
        names = set(self._filter._settings) & set(self._settings)
        return replace(
            super()._recipe(),
            weighting=self._filter(**{name: getattr(self, name) for name in names}),
            solver="fixed",
        )


class CountedFilterNB(LearnsInChunks, FilteredNB):
    """A filter whose weights follow from the counts of each attribute alone."""

    objective_: float = learned(
        "float",
        "Loss plus penalty at the solution, a sum over rows; not after "
        "``partial_fit``, which keeps none.",
        optional=True,
    )

    def _fit(self, recipe: Recipe, training: TrainingSet, **rows: Any) -> Fit:
        if training.earlier is None:
            return super()._fit(recipe, training, **rows)
        name = type(self).__name__
        if recipe.instances is not None:
            raise ParameterError(
                f"{name} with `instances` looks at all rows at once, which partial_fit "
                "and merge do not have. Use fit, or instances=None."
            )
        if len(training.schema.gaussian):
            raise ParameterError(
                f"{name} looks at all rows of numbers that have a density, which "
                "partial_fit and merge do not have. Use fit, or set `numeric` to a "
                "discretizer, for example 'mdl'."
            )
        return computed_fit(recipe, training)


class CorrelationWeightedNB(FilteredNB):
    r"""CFW: weights from relevance for the class and redundancy among attributes.

    .. math:: w_j = \sigma\Bigl(\frac{I(A_j;C)}{\text{mean}_k I(A_k;C)} -
        \frac{\sum_{k \ne j} I(A_j;A_k)}{\text{mean}_l \sum_{k \ne l} I(A_l;A_k)}\Bigr)

    The weights scatter around one half, so that probabilities are flatter than those of
    naive Bayes. As published, as far as is known:
    ``missing="impute", cardinality="declared"``.

    References
    ----------
    L. Jiang, L. Zhang, C. Li, J. Wu (2019), "A correlation-based feature weighting
    filter for naive Bayes", IEEE TKDE 31(2), 201-213.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from steelyard import CorrelationWeightedNB
    >>> clf = CorrelationWeightedNB().fit(*load_iris(return_X_y=True))
    >>> clf.attribute_weights_.round(2)
    array([0.46, 0.47, 0.53, 0.54])
    """

    _filter: ClassVar[type[FilterWeighting]] = CorrelationWeighting


class GainRatioWeightedNB(CountedFilterNB):
    r"""GRAWNB and KLNB: gain ratios that add up to the number of attributes.

    .. math:: w_j = \frac{d\, r_j}{\sum_k r_k}, \qquad
              r_j = \frac{I(A_j; C)}{H(A_j)}

    The weights by Kullback-Leibler divergence of KLNB are the same.

    References
    ----------
    H. Zhang, S. Sheng (2004), "Learning weighted naive Bayes with accurate ranking",
    ICDM, 567-570.

    C.-H. Lee, F. Gutierrez, D. Dou (2011), "Calculating feature weights in naive Bayes
    with Kullback-Leibler measure", ICDM, 1146-1151.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from steelyard import GainRatioWeightedNB
    >>> clf = GainRatioWeightedNB().fit(*load_iris(return_X_y=True))
    >>> clf.attribute_weights_.round(2)
    array([0.7 , 0.41, 1.43, 1.45])
    """

    _filter: ClassVar[type[FilterWeighting]] = GainRatioWeighting


class DeepWeightedNB(FilteredNB):
    r"""DFWNB: weight 2 for attributes that CFS selects, in counts and exponents.

    .. math:: \theta_{j,v|c} = \frac{w_j N_{jvc} + 1}{w_j N_c + n_j}, \qquad
              z_c(x) = \log \pi_c + \sum_j w_j \log \theta_{j,x_j|c}

    The other attributes have weight 1. ``selected_features_`` names the subset in order
    of choice; see ``SubsetWeighting`` for its search and the settings ``max_stale``,
    ``locally_predictive`` and ``zero_is_one``. As published, as far as is known:
    ``missing="impute", cardinality="declared"``.

    References
    ----------
    L. Jiang, C. Li, S. Wang, L. Zhang (2016), "Deep feature weighting for naive Bayes
    and its application to text classification", Engineering Applications of Artificial
    Intelligence 52, 26-39.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from steelyard import DeepWeightedNB
    >>> clf = DeepWeightedNB().fit(*load_iris(return_X_y=True))
    >>> clf.selected_features_, clf.attribute_weights_
    ([3, 2], array([1., 1., 2., 2.]))
    """

    _filter: ClassVar[type[FilterWeighting]] = SubsetWeighting

    max_stale: int = setting_of(SubsetWeighting, "max_stale")
    locally_predictive: bool = setting_of(SubsetWeighting, "locally_predictive")
    zero_is_one: bool = setting_of(SubsetWeighting, "zero_is_one")
    smoothing: Any = setting(default="laplace")

    selected_features_: list[Any] = learned(
        "list of str or int", "Attributes that CFS selects, in order of choice."
    )


class TreeWeightedNB(FilteredNB):
    r"""DTAWNB and TreeNB: attributes that trees test near the root weigh more.

    .. math:: w_j = \frac1B \sum_{t=1}^{B} \frac{1}{\sqrt{d_{tj}}}

    where :math:`d_{tj}` is the smallest depth at which tree t tests attribute j, 1 at
    the root; an attribute that no tree tests has weight 0. ``n_trees=1, share=None`` is
    TreeNB, one tree on all rows; see ``TreeWeighting`` for these and the settings
    ``categories``, ``random_state`` and ``verbose``.

    References
    ----------
    M. Hall (2007), "A decision tree-based attribute weighting filter for naive Bayes",
    Knowledge-Based Systems 20(2), 120-126.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from steelyard import TreeWeightedNB
    >>> clf = TreeWeightedNB().fit(*load_iris(return_X_y=True))
    >>> clf.attribute_weights_.shape
    (4,)
    """

    _filter: ClassVar[type[FilterWeighting]] = TreeWeighting

    n_trees: int = setting_of(TreeWeighting, "n_trees")
    share: float | None = setting_of(TreeWeighting, "share")
    categories: str = setting_of(TreeWeighting, "categories")
    random_state: Any = setting_of(TreeWeighting, "random_state")
    verbose: bool = setting_of(TreeWeighting, "verbose")
    smoothing: Any = setting(default="laplace")


class AUCWeightedNB(CountedFilterNB):
    r"""AUCNB: how well each attribute alone ranks the rows.

    .. math:: w_j = \text{AUC of } t_{ij} =
              \log\theta_{j,x_{ij}|+} - \log\theta_{j,x_{ij}|-}

    With more than two classes the mean over all pairs of them. ``rescaled=True`` takes
    max(0, 2 AUC - 1) instead, ``threshold`` drops attributes of a smaller AUC.

    References
    ----------
    T. Kim, B. D. Chung, J.-S. Lee (2017), "Incorporating receiver operating
    characteristics into naive Bayes for unbalanced data classification", Computing
    99(3), 203-218.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from steelyard import AUCWeightedNB
    >>> clf = AUCWeightedNB().fit(*load_iris(return_X_y=True))
    >>> clf.attribute_weights_.round(2)
    array([0.87, 0.79, 0.98, 0.98])
    """

    _filter: ClassVar[type[FilterWeighting]] = AUCWeighting

    rescaled: bool = setting_of(AUCWeighting, "rescaled")
    threshold: float | None = setting_of(AUCWeighting, "threshold")
    smoothing: Any = setting(default="laplace")
