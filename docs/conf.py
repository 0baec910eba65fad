"""Settings of the documentation site; ``make docs`` builds it.

Sphinx does not read this folder but a copy with generated pages beside its own; see
``tools/build_docs.py``.
"""

import sys
from pathlib import Path

import steelyard

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "steelyard"
author = copyright = "The steelyard developers"
version = release = steelyard.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "mathml",
]
exclude_patterns = ["_ext"]
# Generated reports may skip a level of headings.
suppress_warnings = ["myst.header"]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
# Pages say `formula` or `a = 1` in plain blocks; only Python is coloured.
highlight_language = "none"

autodoc_typehints = "none"
autodoc_member_order = "bysource"
autosummary_generate = False
numpydoc_show_class_members = False

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_title = f"steelyard {release}"
html_math_renderer = "mathml"
html_copy_source = False
html_show_sourcelink = False
