"""Pages in Markdown: files, tables, tables of contents, and parts of long pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

_FENCE = re.compile(r"^(```.*?^```)", re.MULTILINE | re.DOTALL)


def write(path: Path, text: str) -> None:
    """Write a page, and the folder that it is in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def markdown(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [headers, ["---"] * len(headers), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def toctree(names: Iterable[str], hidden: bool = True) -> str:
    """Return the directive that puts pages below the one it stands on."""
    options = ":hidden:\n" * hidden
    return f"```{{toctree}}\n{options}\n" + "\n".join(names) + "\n```\n"


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """Change what stands outside of code blocks."""
    parts = _FENCE.split(text)
    return "".join(part if part.startswith("```") else change(part) for part in parts)


def anchor(heading: str) -> str:
    """Return the anchor that a heading has, as GitHub and MyST make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def with_names(text: str, names: Iterable[str], most: int | None = None) -> str:
    """Make links of public names in backquotes, at most so often for each."""
    joined = "|".join(sorted(names, key=len, reverse=True))
    pattern = re.compile(rf"(?<![\[\w`])`(?:sy\.|steelyard\.)?({joined})`(?!\]|`)")
    seen: dict[str, int] = {}

    def link(match: re.Match[str]) -> str:
        name = match[1]
        seen[name] = seen.get(name, 0) + 1
        if most is not None and seen[name] > most:
            return match[0]
        return f"{{py:obj}}`{name} <steelyard.{name}>`"

    def lines(part: str) -> str:
        kept = part.splitlines(keepends=True)
        return "".join(x if x.startswith("#") else pattern.sub(link, x) for x in kept)

    return outside_code(text, lines)


# --------------------------------------------------------------- long pages in parts


def split_page(source: Path, name: str, summary: bool = False) -> None:
    """Put the sections of a long page on pages of their own, below it.

    Links to sections, on this page and all others of the folder, follow them. With
    ``summary`` the sections up to the first that is long stay where they are.
    """
    page = source / f"{name}.md"
    head, *parts = _sections(page.read_text(encoding="utf-8"))
    while summary and len(parts[0][1].splitlines()) < _LONG:
        heading, body = parts.pop(0)
        head = (head[0], f"{head[1]}## {heading}\n{body}")
    homes: dict[str, str] = {}
    for heading, body in parts:
        file = anchor(heading).strip("-")
        for line in [heading, *re.findall(r"^#{3,4} (.*)", body, re.MULTILINE)]:
            homes.setdefault(anchor(line), file)
    for heading, body in parts:
        file = anchor(heading).strip("-")
        # Headings rise by one level.
        body = outside_code(body, lambda x: re.sub(r"^##(#+) ", r"#\1 ", x, flags=re.M))
        text = _followed(f"# {heading}\n{body}", homes, "", name)
        text = re.sub(r"\]\((?![a-z]+:|#)(?!part:)", "](../", text)
        text = re.sub(r"\{doc\}`(?!/)", "{doc}`/", text)
        write(source / name / f"{file}.md", text.replace("](part:", "]("))
    rows = [
        (f"[{heading}]({name}/{anchor(heading).strip('-')}.md)", _first_line(body))
        for heading, body in parts
    ]
    below = markdown(("section", "it begins with"), rows)
    files = [f"{name}/{anchor(heading).strip('-')}" for heading, _ in parts]
    text = _followed(head[1], homes, f"{name}/", name).replace("](part:", "](")
    write(page, f"{text}\n{below}\n\n{toctree(files)}")
    for other in source.rglob("*.md"):
        if other != page and other.parent != source / name:
            text = other.read_text(encoding="utf-8")
            up = "../" * (len(other.relative_to(source).parts) - 1)
            for found, home in homes.items():
                old = f"]({up}{name}.md#{found})"
                text = text.replace(old, f"]({up}{name}/{home}.md#{found})")
            other.write_text(text, encoding="utf-8")


_LONG = 60


def _sections(text: str) -> list[tuple[str, str]]:
    """Return the headings and bodies of a page; what comes before has none."""
    parts = _FENCE.split(text)
    # Lines of code may begin with ##.
    text = "".join(
        part.replace("\n##", "\n\0##") if part.startswith("```") else part
        for part in parts
    )
    head, *rest = re.split(r"^## ", text, flags=re.MULTILINE)
    split = [tuple(part.split("\n", 1)) for part in rest]
    return [
        (a, b.replace("\n\0##", "\n##")) for a, b in [("", head), *map(tuple, split)]
    ]


def _followed(text: str, homes: dict[str, str], folder: str, name: str) -> str:
    """Turn links to sections of a page into links to their pages."""

    def follow(match: re.Match[str]) -> str:
        home = homes.get(match[1])
        if home is None:
            return f"](part:{'' if folder else '../'}{name}.md#{match[1]})"
        return f"](part:{folder}{home}.md#{match[1]})"

    return outside_code(text, lambda x: re.sub(r"\]\(#([^)]+)\)", follow, x))


def _first_line(body: str) -> str:
    """Return the first sentence of a section, without links and pictures."""
    for block in re.split(r"\n\s*\n", body):
        block = " ".join(block.split())
        if block and not re.match(r"```|[#|!<$-]", block):
            block = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", block)
            sentence = re.split(r"(?<=[.:])\s(?=[A-Z`|])", block)[0]
            return re.sub(r":$", ".", sentence).replace("|", "\\|")
    return ""


# ---------------------------------------------------------------- parts of other pages


def with_parts(text: str, docs: Path) -> str:
    """Put tables of other pages in the place of the comments that ask for them.

    ``<!-- part: PAGE :: text :: text -->`` is the first table after the last of the
    texts, each of which is looked for after the one before.
    """

    def part(match: re.Match[str]) -> str:
        name, *marks = match[1].split(" :: ")
        rest = (docs / name).read_text(encoding="utf-8")
        for mark in marks:
            _, found, rest = rest.partition(mark)
            if not found:
                raise LookupError(f"docs/{name} has no {mark!r}, which a page asks for")
        table = re.search(r"(?:^\|.*\n?)+", rest, re.MULTILINE)
        if table is None:
            raise LookupError(f"docs/{name} has no table after {marks[-1]!r}")
        return table[0].strip()

    return re.sub(r"<!-- part: (.*?) -->", part, text)
