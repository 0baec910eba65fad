"""Formulas as MathML, so that pages need neither a network nor LaTeX."""

from docutils.utils.math.latex2mathml import tex2mathml

# What docutils does not know, by what it does.
SPELLINGS = {r"\dots": r"\ldots", "…": r"\ldots ", r"\Big/": "/"}


def mathml(text, as_block):
    """Return a formula in LaTeX as MathML."""
    for unknown, known in SPELLINGS.items():
        text = text.replace(unknown, known)
    return tex2mathml(text, as_block=as_block)


def visit_math(translator, node):
    """Write a formula within a line."""
    translator.body.append(mathml(node.astext(), as_block=False))
    raise _skip()


def visit_math_block(translator, node):
    """Write a formula on lines of its own."""
    translator.body.append(f'<div class="math">{mathml(node.astext(), True)}</div>\n')
    raise _skip()


def _skip():
    from docutils.nodes import SkipNode

    return SkipNode


def setup(app):
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
