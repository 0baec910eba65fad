"""Reports of a comparison: text, Markdown, LaTeX, HTML, CSV."""

from steelyard.experiments.report.text import *  # noqa: F403
from steelyard.experiments.report.text import __all__ as __all__
