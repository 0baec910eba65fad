"""Write the report of the default as HTML and PDF: ``python tools/report_default.py``.

The text is ``docs/report_default.md``; tables of figures come from the pages that it
names. Formulas become MathML and pictures are part of the file, so that it can be read
offline. The PDF is printed by Chromium, where there is one. Needs the dependency group
``docs``.
"""

from __future__ import annotations

import argparse
import base64
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from docsite.pages import with_parts

import steelyard

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")

STYLE = (DOCS / "_ext/report.css").read_text(encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Write ``report_default.html`` and, with a browser, ``report_default.pdf``."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "build/report")
    folder = parser.parse_args(arguments).out
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / "report_default.html"
    text = with_parts((DOCS / "report_default.md").read_text("utf-8"), DOCS)
    page.write_text(to_html(text), encoding="utf-8")
    print(f"written: {page}")
    program = browser()
    if program is None:
        print("no PDF: no Chromium was found; print the page from a browser")
        return 0
    pdf = page.with_suffix(".pdf")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer"]
    command = [program, *flags, f"--print-to-pdf={pdf}", page.resolve().as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    print(f"written: {pdf}")
    return 0


def browser() -> str | None:
    """Return a browser that can print and take pictures, if there is one."""
    return next((found for name in BROWSERS if (found := shutil.which(name))), None)


def to_html(text: str) -> str:
    """Return a report in Markdown as one page."""
    from markdown_it import MarkdownIt

    text = re.sub(r"\$\$(.*?)\$\$", _block, text, flags=re.DOTALL)
    text = re.sub(r"(?<![\\$])\$([^$\n]+)\$", _inline, text)
    text = re.sub(r"\(?\{doc\}`gallery/plot_(\w+)`\)?", r"(example `plot_\1.py`)", text)
    # Links to pages of the site say nothing on paper.
    text = re.sub(r"(?<!!)\[([^]]+)\]\((?!\w+://)[^)]*\)", r"\1", text)
    body = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    body = re.sub(r'src="(images/[^"]+\.svg)"', _picture, body)
    title = re.sub(r"<[^>]+>", "", body.partition("</h1>")[0]).strip()
    head = f'<meta charset="utf-8"><title>{title}</title><style>{STYLE}</style>'
    version = f"<p>steelyard {steelyard.__version__}</p>"
    body = body.replace("</h1>", f"</h1>{version}", 1)
    start = f'<!doctype html><html lang="en"><head>{head}</head>'
    return f"{start}<body>{body}</body></html>\n"


def _block(match: re.Match[str]) -> str:
    from latex2mathml.converter import convert

    return str(convert(match[1].strip(), display="block"))


def _inline(match: re.Match[str]) -> str:
    from latex2mathml.converter import convert

    return str(convert(match[1]))


def _picture(match: re.Match[str]) -> str:
    data = base64.b64encode((DOCS / match[1]).read_bytes()).decode()
    return f'src="data:image/svg+xml;base64,{data}"'


if __name__ == "__main__":
    sys.exit(main())
