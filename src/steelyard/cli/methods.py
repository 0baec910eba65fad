"""``steelyard methods``: a table of all methods, or the documentation of one."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.cli import options, output
from steelyard.exceptions import ParameterError

if TYPE_CHECKING:
    from steelyard.classifiers.registry import Method

# Papers whose tables a command measures.
_REPEATED = {
    "Wang, Ren & Bai, IEEE Access 2020": "rnb",
    "Zhang, Jiang & Li, KAIS 2021": "cwnb",
    "Kim & Lee, IEEE Access 2022": "exponential",
    "IBM SPSS Statistics Algorithms, Naive Bayes": "spss",
}

ABOUT = "list every method, find some by a word, or describe one"
EXAMPLES = """
steelyard methods
steelyard methods Kim
steelyard methods RNB
steelyard methods RNB --json | jq -r .bibtex
steelyard methods --family filters
steelyard methods --json | jq -r '.[].acronym'
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    about = "formulas, errata, settings as published and BibTeX of this method; or a "
    about += "word of its paper, class or what it learns, to find it"
    parser.add_argument("acronym", nargs="?", metavar="ACRONYM", help=about)
    about = "only families whose name contains this"
    parser.add_argument("--family", metavar="TEXT", help=about)
    options.add_shared(parser, "json")


def run(arguments: argparse.Namespace) -> None:
    """Print the table of methods, or everything about one."""
    import steelyard
    from steelyard.classifiers.registry import DEFAULT, entry_of

    rows = steelyard.methods().rows()
    if arguments.acronym is not None:
        try:
            entry = entry_of(arguments.acronym)
        except ParameterError:
            word = arguments.acronym.lower()
            rows = [row for row in rows if word in " ".join(row.values()).lower()]
            if not rows:
                raise
        else:
            facts = facts_of(entry)
            texts = (f"{key.capitalize()}: {value}" for key, value in facts.items())
            output.present(arguments, lambda: facts, lambda: print(*texts, sep="\n\n"))
            return
    if arguments.family is not None:
        families = sorted({row["family"] for row in rows})
        rows = [row for row in rows if arguments.family.lower() in row["family"]]
        if not rows:
            raise ValueError(
                f"There is no family {arguments.family!r}. Families: "
                f"{', '.join(families)}."
            )
    if arguments.json:
        output.print_json(rows)
        return
    # Names of classes and settings would not fit; scripts have them in --json.
    header = ["acronym", "family", "learns", "paper"]
    cells = [[row[name] for name in header] for row in rows]
    for line in cells:
        if DEFAULT in line[0].split(", "):
            line[0] += " (default)"
    output.print_table("Methods", header, cells, n_texts=4)


def facts_of(entry: Method) -> dict[str, Any]:
    """Return what the documentation says of a method, by topic."""
    page = read_document("methods.md")
    classifier = entry.create()
    settings = classifier.get_params(deep=False)
    published, protocol = as_published(entry, page)
    call = f'sy.method("{entry.acronym}"{published and f", {published}"})'
    if entry.family == "ours":
        call = "not a published method"
    elif not published:
        call += ", as far as is known; see what is left open"
    if protocol:
        call += "; to prepare whole tables as the paper did, "
        call += f'sy.compare(..., protocol="{protocol}")'
    return {
        "method": ", ".join(entry.names),
        "learns": entry.learns,
        "paper": entry.paper,
        "class": f"steelyard.{entry.class_name}",
        "model": section_of(entry, page),
        "defaults": ", ".join(f"{key}={value!r}" for key, value in settings.items()),
        "as published": call,
        "compare": _commands(entry, protocol),
        "bibtex": "\n\n".join(["", *references_of(entry)]).strip() or "none",
    }


def _commands(entry: Method, protocol: str) -> str:
    """Return commands that compare a method, and repeat its paper where they can."""
    others = "GNB" if entry.acronym == "NB" else "NB"
    command = f"steelyard compare iris wine --methods {entry.acronym},{others}"
    if protocol:
        command += f" --protocol {protocol}"
    if paper := _REPEATED.get(entry.paper):
        command += f"; the tables of its paper, steelyard reproduce {paper} --quick"
    return command


def read_document(name: str) -> str:
    """Read a file of ``docs``; a wheel has copies beside the methods."""
    here = Path(__file__)
    path = here.parents[3] / "docs" / name
    if not path.is_file():
        path = here.parents[1] / "classifiers" / name
    return path.read_text(encoding="utf-8")


def section_of(entry: Method, page: str) -> str:
    """Return the section of ``docs/methods.md`` that a method is named in."""
    for part in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        heading, body = part.split("\n", 1)
        names = heading.split(", ")
        plain = re.sub("-(CLL|MSE)$", "", entry.acronym)
        if plain in names or set(entry.names) & set(names):
            return body.strip()
    raise LookupError(f"docs/methods.md has no section for {entry.acronym}.")


def as_published(entry: Method, page: str) -> tuple[str, str]:
    """Return settings that make a preset what its paper ran, and a protocol."""
    table = page.split("\n## As published\n", 1)[1].split("\n## ", 1)[0]
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if f"`{entry.acronym}`" in cells[0]:
            return cells[1].strip("`"), cells[2].strip("`")
    return "", ""


def references_of(entry: Method) -> list[str]:
    """Return the BibTeX entries of the papers of a method."""
    entries = re.findall(r"^@.*?^}", read_document("references.bib"), re.M | re.S)
    named = [re.search(r"keywords = {(.*)}", text) for text in entries]
    return [
        text
        for text, match in zip(entries, named, strict=True)
        if match and entry.acronym in match[1].split(", ")
    ]
