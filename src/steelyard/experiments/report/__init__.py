"""Reports of a comparison: terminal, Markdown, LaTeX, CSV, and one HTML page.

From rows to a report in four steps, a module or two each:

- ``summary`` says how each field of the rows is shown, and gathers one measure under
  one protocol, with averages, ranks and tests.
- ``tables`` lays out what was measured, ``significance`` what was tested, as tables of
  cells that know nothing of their format.
- ``text`` writes these as Markdown, LaTeX and CSV, and on the terminal, ``html`` as a
  page, with the files in ``assets``.
- ``plots`` places the parts of a critical difference diagram, which the page shows as
  SVG and `steelyard.experiments.displays` draws.
"""

from steelyard.experiments.report.html import results_to_html
from steelyard.experiments.report.text import (
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
