"""From a recipe and a training set to a problem, and from there to a fit.

``recipe`` is the beginning: what a fit does, which penalty its weights have, and the
one door for its rows. A ``problem`` has an ``objective`` and ``rows``, which it passes
over, and ends in a ``fit``. ``shapes`` constrains curves. ``unknown`` learns what rows
with missing cells are answered by, with the shares of ``class_shares``. ``default``
serves hierarchies of weights, ``search`` methods that search.
"""
