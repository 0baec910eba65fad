"""From a recipe and a training set to a problem, and from there to a fit.

``recipe`` is the beginning: what a fit does, and the one door for the rows that it is
done to. ``problem`` and the fit it ends in are made of ``constraints``, ``objective``
(``mixture`` for RNB), and of ``rows`` and ``block``, which pass over the training rows.
``preconditioner``, ``strengths`` and ``held_out`` serve hierarchies of weights;
``leave_one_out``, ``row_sample``, ``forward_search`` and ``evolution`` serve methods
that search.
"""
