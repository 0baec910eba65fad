"""The experiments of the papers, as data, and the engine that runs them.

One module per document is its specification: comparisons (methods with settings, data
sets, protocol), printed tables, tolerances, notes, and sections. ``sections`` has the
kinds of section, ``engine`` what they share while a document is measured, ``report``
what comes out.
"""

PAPERS = ("rnb", "cwnb", "exponential", "spss")
"""The documents whose tables can be measured: a module each, with a ``PAPER``."""
