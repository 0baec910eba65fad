"""Reports of a comparison: terminal, Markdown, LaTeX, CSV, and one HTML page.

From rows to a report, a module for each step:

- ``summaries`` says how each field of the rows is shown, and gathers one measure under
  one protocol, with averages, ranks and tests.
- ``layouts`` has tables of what was measured and tested, of cells that know nothing of
  their format.
- ``results_text`` writes these as Markdown, LaTeX and CSV, and on the terminal,
  ``results_page`` as HTML, with the files in ``assets``.
- ``rank_diagram`` places the parts of a critical difference diagram, which the page
  shows as SVG and `steelyard.experiments.displays` draws.
"""

from steelyard.experiments.report.results_page import results_to_html
from steelyard.experiments.report.results_text import (
    print_results,
    results_to_csv,
    results_to_latex,
    results_to_markdown,
)

__all__ = [
    "print_results",
    "results_to_csv",
    "results_to_html",
    "results_to_latex",
    "results_to_markdown",
]
