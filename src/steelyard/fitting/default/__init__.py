r"""The default method, `ShrinkageNB`: an additive model with a Gaussian-process prior.

.. math:: z_c(x) = \log \pi_c + b_c + \sum_j T_j[x_j, c]
          + \sum_{(j,k)} T_{jk}[x_j, x_k, c], \qquad
          T_j = E_j w_j + B_j u_j, \quad u_j \sim N(0, I / 2 \lambda)

:math:`E_j` are the log-probabilities of naive Bayes, :math:`w_j` their weights, and
:math:`B_j` a basis of effects: the identity for categories, a smooth curve with a trend
for numbers, a product of two of these for interactions. Weights and effects maximise
the penalised likelihood (MAP); the regularisation strengths :math:`\lambda`, the
interactions and the temperature of the probabilities are chosen by cross-validation.

In the order of reading:

- `steelyard.proba.basis`: the basis :math:`B`, a factor of the prior covariance;
- `steelyard.proba.encodings`: several discretizers of a column, added up to one table;
- `steelyard.weighting.hierarchy`: the levels of weights and their penalty;
- ``folds``: assignment of rows to folds, and log-loss of held-out rows;
- ``strengths``: search for the regularisation strengths, then the interactions;
- ``interactions``: score test that ranks interactions; fits that are compared;
- ``preconditioner``: scaling of the weights for the solver;
- ``uncertainty``: posterior variance of the log-odds of each class;
- ``continuation``: ``partial_fit`` from a reservoir of rows;
- ``sampling``: rows drawn by their content, in any order.

`steelyard.classifiers.shrinkage` puts them together: choose, fit, finish.
"""
