"""The gallery: every example with its code, what it prints and what it draws."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

from docsite.model_pages import list_pages
from docsite.pages import toctree, write

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
STYLE = ROOT / "examples/matplotlibrc"

# Examples by the question that brings people to them; others come last.
TOPICS = {
    "Start": "curves_and_a_row concept mixed_table evidence waterfall nomogram",
    "Data as they are": "imbalance missing text_columns dates wrong_labels",
    "Decide, sign and watch": (
        "costs reliability plot_scorecard scorecard monotone signed_model drift"
    ),
    "Large tables, and other systems": (
        "larger_than_memory partial_fit_chunks sql service"
    ),
    "Compare, reproduce, extend": (
        "splits critical_difference paper add_a_method own_loss"
    ),
}


def gallery_pages(source: Path) -> None:
    """Write a page for each example, and the list of them with their pictures."""
    lines = ["# Gallery", "", "Each example is a script that runs in seconds."]
    lines += ["Click on a picture for its code and what it prints."]
    lines += ["", "## Pages to try", "", "[Pages of models](pages.md)", ""]
    lines += [toctree(["pages"])]
    list_pages(source)
    left = {path.stem: path for path in EXAMPLES}
    for title, names in [*TOPICS.items(), ("Inside", "")]:
        stems = [x if x in left else f"plot_{x}" for x in names.split() or [*left]]
        found = [left.pop(stem) for stem in stems if stem in left]
        lines += ["", f"## {title}", "", "`````{container} gallery"]
        lines += [card(path) for path in found]
        lines += ["`````", "", toctree([path.stem for path in found])]
    for path in EXAMPLES:
        write(source / f"gallery/{path.stem}.md", gallery_page(path))
    write(source / "gallery/index.md", "\n".join(lines) + "\n")


def with_cards(text: str) -> str:
    """Put cards in the place of the comment that asks for some."""

    def cards(match: re.Match[str]) -> str:
        paths = [ROOT / f"examples/plot_{name}.py" for name in match[1].split()]
        chosen = [card(path, "gallery/") for path in paths]
        return "\n".join(["`````{container} gallery", *chosen, "`````"])

    return re.sub(r"<!-- gallery: ([^>]*?) -->", cards, text)


def card(path: Path, folder: str = "") -> str:
    """Return a picture with a title, or a title, that lead to an example."""
    title, _ = description(path)
    page = f"{folder}{path.stem}"
    if not draws(path):
        return f"[{title}]({page}.md)\n"
    head = f"````{{figure}} {folder}images/{path.stem}.svg\n:alt: {title}"
    return f"{head}\n:target: {page}.html\n\n[{title}]({page}.md)\n````\n"


def gallery_page(path: Path) -> str:
    """Return the page of an example."""
    title, text = description(path)
    parts = [f"# {title}", text]
    if draws(path):
        parts.append(f"![The picture it draws](images/{path.stem}.svg)")
    options = f":language: python\n:lines: {after_docstring(path)}-"
    parts.append(f"```{{literalinclude}} ../../examples/{path.name}\n{options}\n```")
    parts.append(f"It prints:\n\n```{{literalinclude}} output/{path.stem}.txt\n```")
    return "\n\n".join(part for part in parts if part) + "\n"


def draws(path: Path) -> bool:
    """Whether an example draws a picture, into the file that it is given."""
    return path.stem.startswith("plot_")


def description(path: Path) -> tuple[str, str]:
    """Return the title and the text of an example, from its docstring."""
    doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or path.stem
    title, _, text = doc.partition("\n")
    return title.rstrip("."), text.strip("\n")


def after_docstring(path: Path) -> int:
    """Return the number of the line on which the code of an example begins."""
    _, code, *_ = ast.parse(path.read_text(encoding="utf-8")).body
    return code.lineno


def run_examples(source: Path) -> None:
    """Run every example; keep what it draws and prints."""
    images, output = source / "gallery/images", source / "gallery/output"
    images.mkdir(exist_ok=True)
    output.mkdir(exist_ok=True)
    settings = {"MPLBACKEND": "Agg", "PYTHONIOENCODING": "utf-8"}
    for path in EXAMPLES:
        print(f"Running {path.name}", flush=True)
        done = subprocess.run(
            [sys.executable, "-W", "error", path, *[f"{path.stem}.svg"] * draws(path)],
            cwd=images,
            env={**os.environ, **settings, "MATPLOTLIBRC": str(STYLE)},
            stdout=subprocess.PIPE,
            encoding="utf-8",
            check=True,
        )
        write(output / f"{path.stem}.txt", done.stdout or "(nothing)\n")
