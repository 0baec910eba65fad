"""Reports of a comparison: terminal, Markdown, LaTeX, CSV, and one HTML page.

From rows to a report, a module for each step:

- ``summaries`` says how each field of the rows is shown, and gathers one measure under
  one protocol, with averages, ranks and tests.
- ``layouts`` has tables of what was measured and tested, of cells that know nothing of
  their format.
- Here these are written as Markdown, LaTeX and CSV, and on the terminal; as HTML by
  ``results_page``, with the files in ``assets``.
- ``rank_diagram`` places the parts of a critical difference diagram, which the page
  shows as SVG and `steelyard.lab.displays` draws.
"""

from typing import TYPE_CHECKING

from steelyard._common import names_of

if TYPE_CHECKING:
    from steelyard.lab.report.results_page import *  # noqa: F403
    from steelyard.lab.report.writers import *  # noqa: F403

__getattr__, __all__ = names_of(
    "steelyard.lab.report",
    results_page="results_to_html",
    writers="print_results results_to_csv results_to_latex results_to_markdown",
)
