"""Published methods that are presets of ``WeightedNB``: other defaults, a citation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from steelyard._common.settings import setting
from steelyard.classifiers.weighted import WeightedNB
from steelyard.fitting.recipe import Recipe

__all__ = [
    "AttributeWeightedNB",
    "ClassAttributeWeightedNB",
    "CorrelationAdjustedNB",
    "DevianceNB",
    "ExponentialNB",
    "GeneralizedDevianceNB",
    "LogisticNB",
    "RegularizedNB",
    "SquaredErrorNB",
    "ValueWeightedNB",
]


class _KimLeeNB(WeightedNB):
    """Settings that the methods of Kim and Lee share.

    Gaussian densities with the sample variance, Laplace's rule for nominal attributes,
    priors by relative frequency, weights of at least zero.
    """

    numeric: Any = setting(default="gaussian")
    smoothing: Any = setting(default="laplace")
    prior: Any = setting(default="frequency")
    variance: str = setting(default="sample")
    bounds: Any = setting(default=(0.0, None))


class AttributeWeightedNB(WeightedNB):
    r"""WANBIA: one weight per attribute, in [0, 1].

    .. math:: z_c(x) = \log \pi_c + \sum_j w_j \log \theta_{j,x_j|c}

    Squared error by default (WANBIA-MSE); ``loss="log"`` is WANBIA-CLL. As
    published, as far as is known, a missing cell is a value and L-BFGS-B stops early:
    ``solver="published", missing="value", cardinality="declared"``.

    References
    ----------
    N. A. Zaidi, J. Cerquides, M. J. Carman, G. I. Webb (2013), "Alleviating naive Bayes
    attribute independence assumption by attribute weighting", JMLR 14, 1947-1988.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from steelyard import AttributeWeightedNB
    >>> clf = AttributeWeightedNB().fit(*load_iris(return_X_y=True))
    >>> clf.attribute_weights_.shape
    (4,)
    """

    loss: Any = setting(default="brier")


class ClassAttributeWeightedNB(WeightedNB):
    r"""CAWNB: one weight per class and attribute, in [0, 1].

    .. math:: z_c(x) = \log \pi_c + \sum_j W_{cj} \log \theta_{j,x_j|c}

    Squared error by default (CAWNB-MSE); ``loss="log"`` is CAWNB-CLL.
    ``published_gradient=True`` leaves out the terms between classes, as printed. The
    paper stopped at the 100th step and filled in missing cells: ``solver="published",
    missing="impute", cardinality="declared"``.

    References
    ----------
    L. Jiang, L. Zhang, L. Yu, D. Wang (2019), "Class-specific attribute weighted naive
    Bayes", Pattern Recognition 88, 321-330.
    """

    weighting: Any = setting(default="class-attribute")
    loss: Any = setting(default="brier")


class ValueWeightedNB(WeightedNB):
    r"""CAVWNB: one weight per class, attribute and value, in [0, 1].

    .. math:: z_c(x) = \log \pi_c + \sum_j W_{c,j,x_j} \log \theta_{j,x_j|c}

    Conditional log-likelihood by default (CAVWNB-CLL); ``loss="brier"`` is CAVWNB-MSE.
    As published, as far as is known: ``solver="published", numeric="equal-width",
    missing="impute", cardinality="declared"``.

    References
    ----------
    H. Zhang, L. Jiang, L. Yu (2020), "Class-specific attribute value weighting for
    naive Bayes", Information Sciences 508, 260-274.
    """

    weighting: Any = setting(default="value")
    loss: Any = setting(default="log")
    smoothing: Any = setting(default="laplace")


class RegularizedNB(WeightedNB):
    r"""RNB: class-specific and shared attribute weights, mixed by a learned share.

    .. math:: P_c = \alpha P^D_c + (1 - \alpha) P^I_c

    with :math:`P^D` from weights per class and attribute and :math:`P^I` from weights
    per attribute, all in [0, 1], minimising half the squared error to the paper's
    relative accuracy of 1e-7. The true gradient is used;
    ``published_gradient=True`` is the printed one. The paper also filled in missing
    cells: ``missing="impute", cardinality="declared"``.

    References
    ----------
    S. Wang, J. Ren, R. Bai (2020), "A Regularized Attribute Weighting Framework for
    Naive Bayes", IEEE Access 8, DOI 10.1109/ACCESS.2020.3044946.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from steelyard import RegularizedNB
    >>> clf = RegularizedNB().fit(*load_iris(return_X_y=True))
    >>> 0.0 <= clf.alpha_ <= 1.0
    True
    """

    weighting: Any = setting(default="mixture")
    loss: Any = setting(default="brier")
    tol: float = setting(default=1e-7)


class CorrelationAdjustedNB(WeightedNB):
    r"""CWANB: weights of the filter CFW, adjusted by a few steps on the squared error.

    .. math:: w^{(0)} = \mathrm{CFW}, \qquad
              \min_{0 \le w \le 1} \tfrac12 \sum_i \sum_c (P_{ic}(w) - Y_{ic})^2

    by at most ``max_iter`` = 50 iterations of L-BFGS-B: the cap belongs to the method,
    so that reaching it draws no warning. ``loss="log"`` adjusts by the conditional
    log-likelihood, whose optimum does not depend on the start.

    As published, as far as is known:
    ``missing="impute", cardinality="declared"``.

    References
    ----------
    L. Yu, S. Gan, Y. Chen, M. He (2020), "Correlation-based weight adjusted naive
    Bayes", IEEE Access 8, 51377-51387. Its rule of adjustment could not be read.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from steelyard import CorrelationAdjustedNB
    >>> clf = CorrelationAdjustedNB().fit(*load_iris(return_X_y=True))
    >>> clf.n_iter_ <= 50
    True
    """

    weighting: Any = setting(default="correlation")
    loss: Any = setting(default="brier")
    solver: Any = setting(default="lbfgs")
    max_iter: int = setting(default=50)

    def _recipe(self) -> Recipe:
        return replace(super()._recipe(), may_stop_early=True)


class ExponentialNB(_KimLeeNB):
    r"""ENB: attribute weights of at least zero by the exponential loss.

    .. math:: \min_{w \ge 0} \sum_i e^{-s_i f(x_i)}, \qquad
       f(x) = \log\frac{\pi_+}{\pi_-} + \sum_j w_j
       \log\frac{\theta_{j,x_j|+}}{\theta_{j,x_j|-}}

    and its multi-class form; the paper has a model for each pair of classes,
    ``multiclass="one-vs-one"``, and stopped L-BFGS-B early, ``solver="published"``. The
    minimiser estimates half the log-odds; ``calibrated=True`` doubles them for the
    probabilities.

    References
    ----------
    T. Kim, J.-S. Lee (2022), "Exponential Loss Minimization for Learning Weighted Naive
    Bayes Classifiers", IEEE Access 10.
    """

    loss: Any = setting(default="exponential")


class DevianceNB(_KimLeeNB):
    r"""DNB: attribute weights of at least zero by the deviance with multiplier 2.

    .. math:: \min_{w \ge 0} \sum_i \log\bigl(1 + e^{-2 s_i f(x_i)}\bigr)

    With several classes the paper has ``multiclass="one-vs-one"``.

    References
    ----------
    T. Kim, J.-S. Lee (2022), IEEE Access 10; see ``ExponentialNB``.
    """

    loss: Any = setting(default="deviance")


class LogisticNB(_KimLeeNB):
    r"""LNB: attribute weights of at least zero by the conditional log-likelihood.

    .. math:: \min_{w \ge 0} \sum_i \log\bigl(1 + e^{-s_i f(x_i)}\bigr)

    With several classes the paper has ``multiclass="one-vs-one"``.

    References
    ----------
    T. Kim, J.-S. Lee (2022), IEEE Access 10; see ``ExponentialNB``.
    """


class GeneralizedDevianceNB(_KimLeeNB):
    r"""GDNB: as LNB, with a weight on the prior too.

    .. math:: f(x) = w_0 \log\frac{\pi_+}{\pi_-} + \sum_j w_j
       \log\frac{\theta_{j,x_j|+}}{\theta_{j,x_j|-}}, \qquad w_0, w \ge 0

    LNB is the case :math:`w_0 = 1`, DNB the case :math:`w_0 = 2`. With several classes
    the paper has ``multiclass="one-vs-one"``.

    References
    ----------
    T. Kim, J.-S. Lee (2022), IEEE Access 10; see ``ExponentialNB``.
    """

    prior_weight: bool = setting(default=True)


class SquaredErrorNB(_KimLeeNB):
    """MSE: WANBIA's squared error with Gaussian attributes, as Kim and Lee compare it.

    They have no upper bound and a model for each pair of classes: ``bounds=(0, None),
    solver="published", multiclass="one-vs-one"``.

    References
    ----------
    T. Kim, J.-S. Lee (2022), IEEE Access 10; see ``ExponentialNB``.
    """

    loss: Any = setting(default="brier")
    bounds: Any = setting(default=(0.0, 1.0))
