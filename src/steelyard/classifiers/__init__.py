"""The classifiers, as users know them, and the registry of methods.

``base`` has the one way to fit, and what some share; ``after_fit`` predictions,
``handed_on`` files, explanations and exports; ``weighted`` and ``shrinkage``
are the main classes; ``published`` has naive Bayes itself and, as ``filters``, methods
that are a docstring and defaults; the others are methods with a fit of their own.
``methods.txt`` lists all, ``registry`` reads it.
"""
