"""The experiments of the papers, as data, and the engine that runs them.

One TOML file per document is its specification: comparisons (methods with settings,
data sets, protocol), printed constants, tolerances, notes, and sections with templates
of their texts, tables and verdicts. ``documents`` reads and reproduces it, ``engine``
has what is shared while it is measured and fills in the templates, ``sections`` has the
kinds of section and picture, ``measurements`` and ``exponential_loss`` what documents
measure alone, on ``simulated`` data too. ``reproduction`` has what comes out.
"""

PAPERS = ("rnb", "cwnb", "exponential", "spss")
"""The documents whose tables can be measured: a TOML file each."""
