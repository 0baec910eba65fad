"""The classifiers, as users know them, and the registry of methods.

``base`` has the one way to fit, ``fitted`` predictions, ``facade`` saving, explanations
and exports. ``naive_bayes``, ``weighted`` and ``shrinkage`` are the main classes;
``presets`` and ``filters`` have methods that are a docstring and defaults; the other
files have methods with a separate fit.
``methods.txt`` lists all, ``registry`` reads it.
"""
