"""The experiments of the papers, as data, and the engine that runs them.

One TOML file per document is its specification: comparisons (methods with settings,
data sets, protocol), printed constants, tolerances, notes, and sections with templates
of their texts, tables and verdicts. ``specification`` reads it, ``sections`` has the
kinds of section, a module of the document's name what it alone measures, ``engine``
what they share while a document is measured, ``layout`` fills in the templates, and
``report`` has what comes out.
"""

PAPERS = ("rnb", "cwnb", "exponential", "spss")
"""The documents whose tables can be measured: a TOML file each."""
