"""How programs write a missing cell of a text file."""

MISSING_VALUES = ("NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "<NA>", "?")
"""Besides an empty cell. The same for the command line, data sets and sources."""
