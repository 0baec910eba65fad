"""Build the documentation site: ``make docs``.

Pages written by hand are copied from ``docs/``. Beside them come pages that are made:
one for each method, from its entry in ``steelyard.methods()``, its section of
``docs/methods.md`` and the docstring of its class; one for each public name; and one
for each example, with its code, its output and its picture. Long pages are split by
their headings, and names of the reference are links. Sphinx then builds the whole with
warnings as errors, and the site is searched for broken links.

``--versions`` builds the released versions beside it, with a list to choose from.
"""

from __future__ import annotations

import inspect
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from docsite.checks import broken_links, not_found
from docsite.gallery import gallery_pages, run_examples, with_cards
from docsite.model_pages import model_pages
from docsite.pages import (
    markdown,
    split_page,
    toctree,
    with_names,
    with_parts,
    write,
)
from docsite.versions import build_versions

import steelyard
from steelyard._common.settings import Declared, Setting
from steelyard.classifiers.registry import Method, classes, homes
from steelyard.cli.methods import section_of
from steelyard.persistence.content import PARTS
from steelyard.persistence.declarations import declaration

ROOT = Path(__file__).resolve().parents[1]
# Pages that are split by their headings; True: what is short stays on top.
# Pages that others are made of, or in which names are too many to be links.
MADE = ("changelog", "contributing", "methods", "model_file", "reproduction")
LONG = {
    "user_guide": False,
    "reproduction": True,
    "leaderboard": True,
}

# Modules whose names are public though not at the top.
MODULES = {
    "steelyard.explain": "Explanations",
    "steelyard.displays": "Pictures of a model",
    "steelyard.lab.displays": "Pictures of a comparison",
    "steelyard.lab.report": "Reports of a comparison",
    "steelyard.lab.statistics": "Statistical tests",
    "steelyard.weighting": "Parts: attribute weightings",
    "steelyard.instances": "Parts: instance weightings",
    "steelyard.losses": "Parts: losses",
    "steelyard.solvers": "Parts: solvers",
    "steelyard.proba": "Parts: smoothing and densities",
    "steelyard.exceptions": "Exceptions",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Assemble the pages, run the examples, build and check the site."""
    if "--versions" in (sys.argv[1:] if arguments is None else arguments):
        return build_versions(ROOT)
    build = ROOT / "build" / "docs"
    shutil.rmtree(build, ignore_errors=True)
    assemble(build / "source")
    run_examples(build / "source")
    model_pages(build / "source")
    flags = ["-b", "html", "-W", "--keep-going", "-q"]
    folders = [str(build / "source"), str(build / "html")]
    done = subprocess.run([sys.executable, "-m", "sphinx", *flags, *folders])
    if done.returncode:
        return done.returncode
    site = build / "html"
    make_accessible(site)
    faults = [f"broken link: {link}" for link in broken_links(site)]
    faults += [f"search finds no page for {word!r}" for word in not_found(site)]
    print(*faults, f"Open {(site / 'index.html').relative_to(ROOT)}.", sep="\n")
    return 1 if faults else 0


def make_accessible(site: Path) -> None:
    """Add what screen readers need and theme and Sphinx leave out."""
    named = {
        '<p class="caption" role="heading">': '<p class="caption" role="heading" '
        'aria-level="2">',
        '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" '
        'aria-label="All pages">',
        '<aside class="toc-drawer">': '<aside class="toc-drawer" '
        'aria-label="On this page">',
        # What is wide scrolls, with the keyboard too.
        '<div class="highlight"><pre>': '<div class="highlight"><pre tabindex="0">',
        '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
    }
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for tag, better in named.items():
            text = text.replace(tag, better)
        text = re.sub(r'<th class="head[^>]*><p></p></th>', "<td></td>", text)
        page.write_text(text, encoding="utf-8")


def assemble(source: Path) -> None:
    """Write every page of the site into a folder."""
    shutil.copytree(ROOT / "docs", source, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(
        ROOT / "examples",
        source.parent / "examples",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    for name in ("CHANGELOG", "CONTRIBUTING"):
        text = (ROOT / f"{name}.md").read_text(encoding="utf-8")
        write(source / f"{name.lower()}.md", text.replace("](docs/", "]("))
    for page in source.glob("*.md"):
        text = with_parts(page.read_text(encoding="utf-8"), ROOT / "docs")
        text = with_cards(with_tables(text))
        most = None if page.stem == "api" else 0 if page.stem in MADE else 1
        write(page, with_names(text, homes(), most))
    method_pages(source)
    reference_pages(source)
    gallery_pages(source)
    for name, summary in LONG.items():
        split_page(source, name, summary)


# -------------------------------------------------------- tables of what is declared


def with_tables(text: str) -> str:
    """Put tables in the place of the comments that ask for them."""
    return re.sub(r"<!-- table: ([^>]*?) -->", lambda match: table(match[1]), text)


def table(what: str) -> str:
    """Return a table that is made from what classes declare."""
    rows: Sequence[Sequence[str]]
    if what == "public names":
        rows = [(name, summary(name)) for name in sorted(homes())]
        return markdown(("name", "what it is"), [(f"`{n}`", text) for n, text in rows])
    if what == "methods":
        rows = [
            (", ".join(f"`{name}`" for name in e.names), f"`{one_line(e.create())}`")
            for e in steelyard.methods()
        ]
        return markdown(("acronym", "same as"), rows)
    if what == "classifiers in files":
        headers = ("class", "kinds of model", "always", "where learned")
        return markdown(headers, [file_row(name) for name in sorted(classes())])
    if what == "parts in files":
        rows = [
            (f"`{name}`", ", ".join(f"`{s}`" for s in part._settings))
            for name, part in sorted(PARTS.items())
        ]
        return markdown(("part", "settings"), rows)
    if what == "further settings":
        rows = [row for name in classes() for row in own_settings(name)]
        return markdown(("class", "name", "default", "values", "meaning"), rows)
    name = what.removeprefix("settings of ")
    rows = (
        own_settings(name)
        if name != "NaiveBayes"
        else settings_of(steelyard.NaiveBayes)
    )
    return markdown(("name", "default", "values", "meaning"), [row[1:] for row in rows])


def file_row(name: str) -> tuple[str, ...]:
    """Return what a model file has of a class."""
    declared = declaration(name)
    attributes = declared.attributes
    cells: list[list[str]] = [
        list(declared.models),
        [key for key, is_optional in attributes.items() if not is_optional],
        [key for key, is_optional in attributes.items() if is_optional],
    ]
    return (f"`{name}`", *(", ".join(f"`{word}`" for word in cell) for cell in cells))


def settings_of(
    cls: type[Declared], beyond: Iterable[str] = ()
) -> list[tuple[str, ...]]:
    """Return rows of the settings of a class that are not among others."""
    return [
        (f"`{cls.__name__}`", f"`{name}`", f"`{entry.default!r}`", *described(entry))
        for name, entry in cls._settings.items()
        if name not in beyond
    ]


def described(entry: Setting) -> tuple[str, str]:
    """Return what a setting may be, and what it means, for a cell of a table."""
    allowed = entry.allowed.text if entry.allowed else ""
    meaning = re.sub(r":math:`([^`]*)`", r"$\\1$", entry.about).replace("``", "`")
    return allowed.replace("|", "\\|"), meaning.replace("|", "\\|")


def own_settings(name: str) -> list[tuple[str, ...]]:
    """Return rows of the settings that a class has beyond those of its family."""
    cls = getattr(steelyard, name)
    weighted = steelyard.WeightedNB
    family = weighted if issubclass(cls, weighted) and cls is not weighted else None
    return settings_of(cls, (family or steelyard.NaiveBayes)._settings)


def summary(name: str) -> str:
    """Return the first sentence of a docstring."""
    text = inspect.getdoc(getattr(steelyard, name)) or ""
    return text.partition("\n")[0].rstrip(".")


def one_line(thing: object) -> str:
    """Return how something is written, in one line."""
    return " ".join(repr(thing).split())


# ------------------------------------------------------------------------- methods


def method_pages(source: Path) -> None:
    """Write a page for each method, and the list of them."""
    text = (ROOT / "docs/methods.md").read_text(encoding="utf-8")
    families: dict[str, list[Method]] = {}
    for entry in steelyard.methods():
        families.setdefault(entry.family, []).append(entry)
        write(source / f"method/{entry.acronym}.md", method_page(entry, text))
    shared = "What they share, and which to take, is told in [Methods](../methods.md)."
    lines = ["# Method by method", "", shared]
    for family, entries in families.items():
        rows = [
            f"| [{e.acronym}]({e.acronym}.md) | {e.learns} | {e.paper} |"
            for e in entries
        ]
        names = [entry.acronym for entry in entries]
        head = ["| method | what it learns | paper |", "| --- | --- | --- |"]
        lines += ["", f"## {family.capitalize()}", "", *head, *rows, "", toctree(names)]
    write(source / "method/index.md", "\n".join(lines) + "\n")


def method_page(entry: Method, text: str) -> str:
    """Return the page of a method, given the text of ``docs/methods.md``."""
    name = entry.estimator.__name__
    made = " ".join(repr(entry.create()).split())
    facts = {
        "family": entry.family,
        "learns": entry.learns,
        "paper": entry.paper,
        "also called": ", ".join(entry.aliases),
        "class": f"{{py:class}}`steelyard.{name}`",
        "in Python": f'`steelyard.method("{entry.acronym}")`, that is `{made}`',
        "on the command line": f"`steelyard fit data.csv --method {entry.acronym}`",
    }
    rows = [f"| {key} | {value} |" for key, value in facts.items() if value]
    made_settings = entry.create().get_params(deep=False)
    rows_of_settings = [
        (f"`{key}`", f"`{made_settings[key]!r}`", *described(declared))
        for key, declared in entry.estimator._settings.items()
    ]
    settings = markdown(
        ("name", f"value in {entry.acronym}", "values", "meaning"), rows_of_settings
    )
    return f"""# {entry.acronym}

| | |
| --- | --- |
{chr(10).join(rows)}

## When to use it

{when_to_use(entry, text)} [Which one](../methods.md#which-one) compares it with others.

## What it computes

{elsewhere(section_of(entry, text))}

## Settings

Any of them can be changed: `steelyard.method("{entry.acronym}", name=value)`.

{settings}

## The class

```{{eval-rst}}
.. autoclass:: steelyard.{name}
   :no-index:
```
"""


def when_to_use(entry: Method, text: str) -> str:
    """Return what the table "use it" says of a method, as a sentence."""
    table = text.split("| use it |", 1)[1].split("\n\n", 1)[0]
    for row in table.splitlines():
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        if any(f"`{name}`" in cells[0] for name in entry.names):
            return f"Use it {cells[1]}."
    raise LookupError(
        f'docs/methods.md: {entry.acronym} has no row in the table "use it".'
    )


def elsewhere(text: str) -> str:
    """Adjust links of ``docs/methods.md`` to a page one folder below."""
    text = re.sub(r"\]\(#", "](methods.md#", text)
    return re.sub(r"\]\((?![a-z]+://)", "](../", text)


# ------------------------------------------------------------------------ reference


def reference_pages(source: Path) -> None:
    """Write a page for each public name and module, and the list of them."""
    names = sorted(homes())
    for name in names:
        write(source / f"reference/{name}.rst", reference_page(name))
    for module, title in MODULES.items():
        write(source / f"reference/{module}.rst", module_page(module, title))
    summary = ["```{eval-rst}", ".. currentmodule:: steelyard", ".. autosummary::", ""]
    summary += [f"   {name}" for name in names]
    lines = ["# Every public name", "", *summary, "```", "", toctree(names)]
    lines += ["## Further modules", "", toctree(list(MODULES), hidden=False)]
    write(source / "reference/index.md", "\n".join(lines) + "\n")


def reference_page(name: str) -> str:
    """Return the page of a public name."""
    thing = getattr(steelyard, name)
    lines = [name, "=" * len(name), "", ".. currentmodule:: steelyard", ""]
    if not inspect.isclass(thing):
        return "\n".join([*lines, f".. autofunction:: {name}", ""])
    return "\n".join([*lines, *class_lines(thing, name), ""])


def module_page(module: str, title: str) -> str:
    """Return the page of a module: all that it names as public."""
    home = import_module(module)
    lines = [title, "=" * len(title), "", f".. currentmodule:: {module}", ""]
    for name in home.__all__:
        thing = getattr(home, name)
        if inspect.isclass(thing):
            lines += [*class_lines(thing, name), ""]
        elif callable(thing):
            lines += [f".. autofunction:: {name}", ""]
    return "\n".join(lines)


def class_lines(thing: type, name: str) -> list[str]:
    """Return what documents a class and those of its methods that are ours."""
    members = [
        key
        for key, member in inspect.getmembers(thing, callable)
        if not key.startswith("_")
        and getattr(member, "__module__", "").startswith("steelyard")
        and inspect.getdoc(member)
    ]
    return [
        f".. autoclass:: {name}",
        *([f"   :members: {', '.join(members)}"] * bool(members)),
    ]


if __name__ == "__main__":
    sys.exit(main())
