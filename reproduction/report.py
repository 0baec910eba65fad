"""What a reproduction returns: figures, sections with verdicts, and the report."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

from steelyard._common.text import markdown_table

Figures = Mapping[str, float]
"""Figures by row."""

Columns = Mapping[str, Figures]
"""Figures by column and row."""

_AVERAGE = "**average**"

SEED = 1
"""Seed of all folds and draws."""

LONG = 7
"""Rows of a table beyond which a page has a link to a CSV file instead."""

WHOLE = ("Verdicts", "Printed figures", "What print hides")
"""Headings whose tables a page has whole."""

TEXT = "Text"
"""What stands for the table in verdicts on sentences of the text."""

SUMMARY = ("document", "printed figures reproduced", "claims reached", "not reached")
"""Columns of the summary on top of a page."""


class ColumnPair(NamedTuple):
    """A printed column beside a measured one."""

    title: str
    published: Figures
    measured: Figures

    @property
    def theirs(self) -> float:
        """The average of the printed figures."""
        return mean(self.published.values())

    @property
    def ours(self) -> float:
        """The average of the measured figures."""
        return mean(self.measured.values())

    @property
    def gaps(self) -> dict[str, float]:
        """How far each measured figure lies above the printed one."""
        return differences(self.measured, self.published)

    @property
    def summary(self) -> str:
        """Cells with both averages and their difference."""
        return _three(self.theirs, self.ours)


def mean(values: Iterable[float]) -> float:
    """Average numbers, of which there is at least one."""
    numbers = list(values)
    return sum(numbers) / len(numbers)


def averaged(values: Figures) -> dict[str, float]:
    """Add a last row with the average."""
    return {**values, _AVERAGE: mean(values.values())}


def differences(first: Figures, second: Figures) -> dict[str, float]:
    """Subtract the second from the first in each row."""
    return {row: value - second[row] for row, value in first.items()}


def table(header: str, rows: Iterable[str | Sequence[str]]) -> str:
    """Lay out a Markdown table of lines, or of cells; ``" | "`` separates cells."""
    lines = [row if isinstance(row, str) else " | ".join(row) for row in rows]
    return markdown_table(header.split(" | "), [line.split(" | ") for line in lines])


def figures_table(columns: Columns, formats: Mapping[str, str] | None = None) -> str:
    """Lay out figures by data set, with two digits where no other format is named.

    Examples
    --------
    >>> print(figures_table({"NB": averaged({"iris": 93.0, "zoo": 94.0})}))
    | data set | NB |
    | --- | ---: |
    | iris | 93.00 |
    | zoo | 94.00 |
    | **average** | 93.50 |
    """
    header, *lines = ["data set", *next(iter(columns.values()))]
    for title, column in columns.items():
        header += f" | {title}"
        style = (formats or {}).get(title, ".2f")
        lines = [
            f"{line} | {value:{style}}"
            for line, value in zip(lines, column.values(), strict=True)
        ]
    return table(header, lines)


def side_by_side(
    names: Sequence[str],
    columns: Iterable[tuple[str, Figures, Figures]],
    first: str = "data set",
) -> str:
    """Lay out published figures, measured ones and their differences, by data set.

    Columns are titles, published and measured figures by name, of which some may be
    absent; a row of averages is added. ``first`` is the title of the column of names.
    """
    lines = [first, *names, _AVERAGE]
    for title, published, measured in columns:
        lines[0] += f" | {title} published | measured | difference"
        for i, name in enumerate(names, 1):
            lines[i] += f" | {_three(published.get(name), measured.get(name))}"
        both = [name for name in names if name in published and name in measured]
        known = (published, measured) if both else ()
        averages = [mean(figures[name] for name in both) for figures in known]
        lines[-1] += f" | {_three(*averages or (None, None))}"
    return table(lines[0], lines[1:])


def _three(published: float | None, measured: float | None) -> str:
    cells = ["" if value is None else f"{value:.2f}" for value in (published, measured)]
    known = published is not None and measured is not None
    gap = f"{measured - published:+.2f}" if known else ""  # type: ignore[operator]
    return " | ".join([*cells, gap])


@dataclass(frozen=True)
class Verdict:
    """Whether a figure was reached: None where nothing is printed or asked for."""

    table: str
    what: str
    published: str
    measured: str
    reached: bool | None
    note: str = ""


@dataclass(frozen=True)
class Count:
    """How many figures of a printed column or table are reproduced, and which not."""

    table: str
    what: str
    printed: int
    reproduced: int
    away: str
    note: str = ""


@dataclass(frozen=True)
class Picture:
    """A file without its suffix, and what returns a figure of matplotlib for it."""

    name: str
    alt: str
    draw: Callable[[], Any]


@dataclass(frozen=True)
class Section:
    """One table or figure of a document, measured."""

    title: str
    text: str
    verdicts: tuple[Verdict, ...] = ()
    pictures: tuple[Picture, ...] = ()
    counts: tuple[Count, ...] = ()


@dataclass(frozen=True)
class Reproduction:
    """A document's tables and figures: published beside measured, with verdicts.

    ``scope`` says what a quick run has; ``repeats`` how often cross-validation was to
    be repeated, None for as often as usual; ``absent`` which data sets are not there,
    ``without`` which sections were not measured.
    """

    name: str
    title: str
    sections: tuple[Section, ...]
    quick: bool = False
    scope: str = ""
    repeats: int | None = None
    absent: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    seconds: float = field(default=0.0, compare=False)

    @property
    def command(self) -> str:
        """The command that makes the report."""
        quick = " --quick" if self.quick else ""
        repeats = "" if self.repeats is None else f" --repeats {self.repeats}"
        without = "".join(f' --without "{words}"' for words in self.without)
        return f"steelyard reproduce {self.name}{quick}{repeats}{without}"

    @property
    def verdicts(self) -> list[Verdict]:
        """The verdicts of all sections."""
        return [entry for section in self.sections for entry in section.verdicts]

    @property
    def counts(self) -> list[Count]:
        """The counts of all sections."""
        return [entry for section in self.sections for entry in section.counts]

    @property
    def n_reproduced(self) -> tuple[int, int]:
        """How many printed figures are reproduced, and how many were compared."""
        counts = self.counts
        return sum(c.reproduced for c in counts), sum(c.printed for c in counts)

    @property
    def pictures(self) -> list[Picture]:
        """The pictures of all sections."""
        return [entry for section in self.sections for entry in section.pictures]

    def to_markdown(self, images: str | None = None, level: int = 2) -> str:
        """Write the report as Markdown, with a heading of this level.

        ``images`` is the folder of pictures as the text refers to them; none if None.
        """
        parts = [f"{'#' * level} {self.title}"]
        if self.quick:
            parts.append(f"**A quick run**, of a part alone. {self.scope}")
        parts += [f"**Incomplete.** {line}" for line in self.absent]
        if self.verdicts:
            parts += [f"{'#' * (level + 1)} Verdicts", _verdict_table(self.verdicts)]
        if self.counts:
            same, n = self.n_reproduced
            share = f"{same:,} of {n:,} printed figures are reproduced."
            parts += [f"{'#' * (level + 1)} Printed figures", share]
            parts.append(_count_table(self.counts))
        for section in self.sections:
            parts += [f"{'#' * (level + 1)} {section.title}", section.text]
            if images is not None:
                parts += [
                    f"![{picture.alt}]({images}/{picture.name}.svg)"
                    for picture in section.pictures
                ]
        return "\n\n".join(part for part in parts if part) + "\n"

    def write_pictures(self, folder: Path) -> None:
        """Draw all pictures into a folder, as SVG."""
        import matplotlib as mpl

        folder.mkdir(parents=True, exist_ok=True)
        for picture in self.pictures:
            # The same figures give the same file.
            with mpl.rc_context({"svg.hashsalt": "steelyard"}):
                path = folder / f"{picture.name}.svg"
                picture.draw().savefig(path, metadata={"Date": None})

    def write_section(self, path: Path) -> None:
        """Put the report into its section of a document, with files beside it.

        Pictures go into the folder ``images``, long tables into ``tables``.
        """
        document = path.read_text(encoding="utf-8") if path.exists() else ""
        text = f"Made by `{self.command}` (seed {SEED}).\n\n"
        text += self.to_markdown("images", level=3)
        text = move_tables(text, path.parent / "tables", self.name)
        document = replace_section(document, self.name, text)
        if "<!-- begin summary -->" in document:
            document = self.summarize(document)
        path.write_text(document, encoding="utf-8")
        self.write_pictures(path.parent / "images")

    def summarize(self, document: str) -> str:
        """Put the document's row into the summary on top of a page."""
        reached = [v for v in self.verdicts if v.reached is not None]
        lost = [v for v in reached if not v.reached]
        named = [f"{v.table}: {v.what}" for v in lost if v.table != TEXT]
        if n_text := len(lost) - len(named):
            named.append(f"{n_text} sentence{'s' if n_text > 1 else ''} of the text")
        same, n = self.n_reproduced
        cells = [
            f"{self.title.partition(':')[0]} (`{self.command}`)",
            f"{same:,} of {n:,}" if n else "none to compare",
            f"{len(reached) - len(lost)} of {len(reached)}",
            "; ".join(named) or "none",
        ]
        begin, end = "<!-- begin summary -->", "<!-- end summary -->"
        old = document.partition(begin)[2].partition(end)[0].splitlines()
        rows = [line for line in old if line.startswith("| ")][2:]
        title = cells[0].partition(" (")[0]
        places = [i for i, row in enumerate(rows) if row.startswith(f"| {title} (")]
        new = markdown_table(SUMMARY, [cells]).splitlines()
        rows[slice(places[0], places[0] + 1) if places else slice(len(rows), None)] = [
            new[2]
        ]
        return replace_section(document, "summary", "\n".join([*new[:2], *rows]))

    def as_dict(self) -> dict[str, Any]:
        """Return everything but the pictures, ready for JSON."""
        return {
            "name": self.name,
            "title": self.title,
            "quick": self.quick,
            "absent": list(self.absent),
            "seconds": self.seconds,
            "verdicts": [asdict(entry) for entry in self.verdicts],
            "counts": [asdict(entry) for entry in self.counts],
            "sections": {section.title: section.text for section in self.sections},
        }


def _count_table(counts: Iterable[Count]) -> str:
    rows = [[str(cell) for cell in astuple(entry)] for entry in counts]
    header = ["table", "what", "printed", "reproduced", "not reproduced"]
    return markdown_table([*header, "best explanation"], rows)


def _verdict_table(verdicts: Iterable[Verdict]) -> str:
    words = {True: "yes", False: "no", None: ""}
    rows = [[*astuple(v)[:4], words[v.reached], v.note] for v in verdicts]
    return markdown_table([column.name for column in fields(Verdict)], rows)


def replace_section(document: str, name: str, text: str) -> str:
    r"""Put text between the markers of a section, which are added if absent.

    Examples
    --------
    >>> replace_section("<!-- begin a -->old<!-- end a -->", "a", "new")
    '<!-- begin a -->\n\nnew\n\n<!-- end a -->'
    """
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    section = f"{begin}\n\n{text.strip()}\n\n{end}"
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if pattern.search(document):
        return pattern.sub(lambda _: section, document, count=1)
    return f"{document.rstrip()}\n\n{section}\n".lstrip()


def move_tables(text: str, folder: Path, name: str) -> str:
    """Move long tables into CSV files, to which the text links in their place.

    Tables of one heading with the same rows share a file unless they have columns of
    the same name. Verdicts, counts of printed figures and explanations stay.
    """
    for old in folder.glob(f"{name}_*.csv"):
        old.unlink()
    parts = re.split(r"(?m)^(?=#+ )", text)
    return "".join(_move_tables(part, folder, name) for part in parts)


def _move_tables(text: str, folder: Path, name: str) -> str:
    heading = text.partition("\n")[0].lstrip("# ")
    if heading in WHOLE:
        return text
    files: list[list[list[str]]] = []
    paragraphs: list[str | int] = []
    for paragraph in text.split("\n\n"):
        lines = _cells(paragraph)
        if len(lines) <= LONG + 1:
            paragraphs.append(paragraph)
            continue
        if (
            files
            and _fits_beside(files[-1], lines)
            and paragraphs[-1] == len(files) - 1
        ):
            files[-1] = [[*a, *b[1:]] for a, b in zip(files[-1], lines, strict=True)]
            continue
        paragraphs.append(len(files))
        files.append(lines)
    if not files:
        return text
    folder.mkdir(parents=True, exist_ok=True)
    words = re.sub(r"[^a-z0-9]+", "_", heading.lower()).strip("_")
    links = []
    for i, lines in enumerate(files, 1):
        file = folder / f"{name}_{words}{f'_{i}' if i > 1 else ''}.csv"
        with file.open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream, lineterminator="\n").writerows(lines)
        # Rows alone: the first line has titles, and an average is none of the data.
        n = sum(line[0] != "average" for line in lines[1:])
        first = lines[0][0]
        links.append(f"By {first}, {n} rows: [{file.name}]({folder.name}/{file.name}).")
    done = (part if isinstance(part, str) else links[part] for part in paragraphs)
    return "\n\n".join(done).rstrip("\n") + "\n\n"


def _fits_beside(first: list[list[str]], second: list[list[str]]) -> bool:
    same_rows = [line[0] for line in first] == [line[0] for line in second]
    return same_rows and not set(first[0][1:]) & set(second[0][1:])


def _cells(paragraph: str) -> list[list[str]]:
    """Return the cells of a Markdown table, its titles first; none of other text."""
    lines = paragraph.strip("\n").split("\n")
    if not all(line.startswith("| ") for line in lines):
        return []
    cells = [line[2:-2].split(" | ") for line in (lines[0], *lines[2:])]
    titles, of = [], ""
    for title in cells[0]:
        # A title such as "measured" is about the printed column before it.
        is_printed = title.endswith(" published")
        of = title.removesuffix("published") if is_printed else of
        plain = title in ("measured", "difference")
        titles.append(f"{of}{title}" if plain else title)
    return [titles, *([_plain(cell) for cell in line] for line in cells[1:])]


def _plain(cell: str) -> str:
    """Return a cell without marks and without commas between thousands."""
    cell = cell.strip("*")
    return cell.replace(",", "") if re.fullmatch(r"\d{1,3}(,\d{3})+", cell) else cell
