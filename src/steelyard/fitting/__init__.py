"""From a recipe and a training set to a problem, and from there to a fit.

``recipe`` and ``weights`` are the beginning and the end; between them ``problem``, made
of ``bounds``, ``penalty``, ``objective`` (``mixture`` for RNB, ``joint`` for weights of
rows too), and of ``rows`` and ``block``, which pass over the training rows.
``preconditioner`` and ``strengths`` serve hierarchies of weights; ``leave_one_out``,
``folds``, ``row_sample``, ``forward_search``, ``predictors`` and ``evolution`` serve
methods that search.
"""
