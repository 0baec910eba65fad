"""The experiments of the papers, as data, and the engine that runs them.

One TOML file per document is its specification: comparisons (methods with settings,
data sets, protocol), printed constants, tolerances, notes, and sections with templates
of their texts, tables and verdicts. ``documents`` reads and reproduces it, ``engine``
has what is shared while it is measured and fills in the templates, ``sections`` has the
kinds of section and picture, ``measurements`` and ``exponential_loss`` what documents
measure alone, on ``simulated`` data too. ``report`` has what comes out.

The folder ``printed`` has the tables as they were printed. ``steelyard reproduce`` runs
all this from a checkout, where it is beside the package, or from a wheel, which has a
copy inside.
"""
