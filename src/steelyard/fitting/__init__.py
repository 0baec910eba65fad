"""From a recipe and a training set to a problem, and from there to a fit.

``recipe`` is the beginning: what a fit does, what holds its weights, and the one door
for the rows that it is done to. ``problem``, and the fit it ends in, is made of
``objective``, and of ``rows`` and ``block``, which pass over the training rows.
``default`` serves hierarchies of weights, ``search`` methods that search.
"""
