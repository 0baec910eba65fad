"""Reports of a comparison: terminal, Markdown, LaTeX and CSV.

From rows to a report, a module for each step:

- ``summaries`` has the measures, and summarizes one of them under one protocol by
  averages, ranks and tests.
- ``layouts`` makes tables of that, whose cells do not depend on the format.
- ``writers`` writes these as Markdown, LaTeX and CSV, and on the terminal.
"""

from typing import TYPE_CHECKING

from steelyard._common import names_of

if TYPE_CHECKING:
    from steelyard.lab.report.writers import *  # noqa: F403

__getattr__, __all__ = names_of(
    "steelyard.lab.report",
    writers="print_results results_to_csv results_to_latex results_to_markdown",
)
