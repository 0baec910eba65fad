"""Formulas as MathML, so that pages need neither a network nor LaTeX."""

import re

from docutils.nodes import SkipNode
from latex2mathml.converter import convert
from sphinx.util import logging


def mathml(node, display):
    """Return a formula in LaTeX as MathML; warn of commands that it cannot hold."""
    # The one command of ours that the converter does not know.
    text = re.sub(r"\\arg\b", r"\\operatorname{arg}", node.astext())
    found = convert(text, display=display)
    for command in re.findall(r"\\[A-Za-z]+", found):
        message = "formula with unknown command %s"
        logging.getLogger(__name__).warning(message, command, location=node)
    return found


def visit_math(translator, node):
    """Write a formula within a line."""
    translator.body.append(mathml(node, "inline"))
    raise SkipNode


def visit_math_block(translator, node):
    """Write a formula on lines of its own."""
    formula = mathml(node, "block")
    translator.body.append(f'<div style="overflow-x: auto">{formula}</div>\n')
    raise SkipNode


def setup(app):
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
