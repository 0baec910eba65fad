"""Published filters: ``WeightedNB`` with weights that are computed, not optimised."""

from __future__ import annotations

from typing import Any

from steelyard.classifiers.published import preset
from steelyard.classifiers.weighted import WeightedNB
from steelyard.weighting import Weighting

__all__ = [
    "AUCWeightedNB",
    "CorrelationWeightedNB",
    "DeepWeightedNB",
    "GainRatioWeightedNB",
    "TreeWeightedNB",
]

# Weights are what the filter says, whatever its size.
_FIXED: dict[str, Any] = {"solver": "fixed", "bounds": (0.0, None)}


class FilteredNB(WeightedNB):
    """Hands settings of its own on to the weighting that ``weighting`` names."""

    def _weighting(self) -> Weighting:
        weighting = super()._weighting()
        if isinstance(self.weighting, Weighting):
            return weighting
        theirs = set(weighting.get_params(deep=False)) - {"prior_weight"}
        own = self.get_params(deep=False)
        shared = {name: own[name] for name in theirs & set(own)}
        return weighting.set_params(**shared)


@preset(weighting="correlation", **_FIXED)
class CorrelationWeightedNB(FilteredNB):
    r"""CFW: weights from relevance for the class and redundancy among attributes.

    .. math:: w_j = \sigma\Bigl(\frac{I(A_j;C)}{\text{mean}_k I(A_k;C)} -
        \frac{\sum_{k \ne j} I(A_j;A_k)}{\text{mean}_l \sum_{k \ne l} I(A_l;A_k)}\Bigr)

    The weights scatter around one half, so that probabilities are flatter than those of
    naive Bayes.

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


@preset(weighting="gain-ratio", **_FIXED)
class GainRatioWeightedNB(FilteredNB):
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


@preset(
    {"max_stale": 5, "locally_predictive": True, "zero_is_one": True},
    weighting="subset",
    smoothing="laplace",
    **_FIXED,
)
class DeepWeightedNB(FilteredNB):
    r"""DFWNB: weight 2 for attributes that CFS selects, in counts and exponents.

    .. math:: \theta_{j,v|c} = \frac{w_j N_{jvc} + 1}{w_j N_c + n_j}, \qquad
              z_c(x) = \log \pi_c + \sum_j w_j \log \theta_{j,x_j|c}

    The other attributes have weight 1. ``selected_features_`` names the subset in order
    of choice; see ``SubsetWeighting`` for its search and the settings ``max_stale``,
    ``locally_predictive`` and ``zero_is_one``.

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


@preset(
    {
        "n_trees": 10,
        "share": 0.5,
        "categories": "one-hot",
        "random_state": 0,
        "verbose": False,
    },
    weighting="trees",
    smoothing="laplace",
    **_FIXED,
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


@preset(
    {"rescaled": False, "threshold": None},
    weighting="auc",
    smoothing="laplace",
    **_FIXED,
)
class AUCWeightedNB(FilteredNB):
    r"""AUCNB: how well each attribute alone ranks the rows.

    .. math:: w_j = \text{AUC of } t_{ij} =
              \log\theta_{j,x_{ij}|+} - \log\theta_{j,x_{ij}|-}

    With more than two classes the mean over all pairs of them. ``rescaled=True`` takes
    2 AUC - 1 instead, ``threshold`` drops attributes of a smaller AUC.

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
