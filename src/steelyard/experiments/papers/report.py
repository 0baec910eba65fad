"""What reproductions share: printed tables, sections with verdicts, and the report."""

from __future__ import annotations

import csv
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from steelyard.experiments.results import Results
from steelyard.experiments.runner import compare

__all__ = [
    "SEED",
    "Columns",
    "Picture",
    "Reproduction",
    "Run",
    "Section",
    "Verdict",
    "accuracies",
    "figure",
    "markdown_table",
    "mean",
    "published_folder",
    "read_published",
    "replace_section",
    "side_by_side",
    "verdict_table",
]

SEED = 1
"""Seed of all folds and draws."""

Columns = Mapping[str, Mapping[str, float]]
"""Figures by column and row."""


@dataclass(frozen=True)
class Verdict:
    """Whether a published figure was reached."""

    table: str
    what: str
    published: str
    measured: str
    reached: bool | None
    """None where nothing was printed, or nothing is asked for."""

    note: str = ""


@dataclass(frozen=True)
class Picture:
    """A picture that is drawn when it is wanted."""

    name: str
    """Of the file, without its suffix."""

    alt: str
    draw: Callable[[], Any]
    """Returns a figure of matplotlib."""


@dataclass(frozen=True)
class Section:
    """One table or figure of a document, measured."""

    title: str
    text: str
    verdicts: tuple[Verdict, ...] = ()
    pictures: tuple[Picture, ...] = ()


@dataclass(frozen=True)
class Run:
    """How a document is reproduced: on which data, how thoroughly, and where to."""

    name: str
    data: Path
    published: Path
    quick: bool = False
    out: Path | None = None
    n_jobs: int | None = 2
    progress: bool = True
    repeats: int | None = None
    """How often cross-validation is repeated where the paper repeats it."""

    def compare(
        self, part: str, methods: Any, datasets: Any, **options: Any
    ) -> Results:
        """Compare methods; with a folder for files a part that was run is not repeated.

        Parameters
        ----------
        part : str
            Names the result file.
        methods, datasets, **options
            See ``steelyard.compare``.

        Returns
        -------
        Results
            One row per fit.
        """
        journal = None
        if self.out is not None:
            self.out.mkdir(parents=True, exist_ok=True)
            kind = "-quick" if self.quick else ""
            times = options.get("repeats", 1)
            kind += f"-{times}x" if times > 1 else ""
            journal = self.out / f"{self.name}-{part}{kind}.jsonl"
        self.say(f"{self.name}: {part}")
        with warnings.catch_warnings():
            # Classes of fewer rows than folds are part of the papers' data.
            warnings.simplefilter("ignore", UserWarning)
            results = compare(
                methods,
                datasets,
                seed=SEED,
                journal=journal,
                folder=self.data,
                n_jobs=self.n_jobs,
                progress=self.progress,
                **options,
            )
        if results.failures:
            first = results.failures[0]
            warnings.warn(
                f"{len(results.failures)} fits of {self.name}-{part} failed, the first "
                f"on {first['dataset']!r}: {first['error']}",
                UserWarning,
                stacklevel=2,
            )
        return results

    def say(self, text: str) -> None:
        """Tell on standard error what happens."""
        if self.progress:
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()

    def read(self, name: str) -> list[dict[str, str]]:
        """Read a published table."""
        return read_published(self.published, name)


@dataclass(frozen=True)
class Reproduction:
    """A document's tables and figures: published beside measured, with verdicts."""

    name: str
    title: str
    sections: tuple[Section, ...]
    quick: bool = False
    scope: str = ""
    """What a quick run leaves out."""

    seconds: float = field(default=0.0, compare=False)

    @property
    def verdicts(self) -> list[Verdict]:
        """The verdicts of all sections."""
        return [entry for section in self.sections for entry in section.verdicts]

    @property
    def pictures(self) -> list[Picture]:
        """The pictures of all sections."""
        return [entry for section in self.sections for entry in section.pictures]

    def to_markdown(self, images: str | None = None, level: int = 2) -> str:
        """Write the report.

        Parameters
        ----------
        images : str, default=None
            Folder of the pictures as the text refers to them; without it the text has
            no pictures.
        level : int, default=2
            Level of the heading.

        Returns
        -------
        str
            Markdown.
        """
        parts = [f"{'#' * level} {self.title}"]
        if self.quick:
            parts.append(f"**A quick run**, of a part alone. {self.scope}")
        if self.verdicts:
            parts += [f"{'#' * (level + 1)} Verdicts", verdict_table(self.verdicts)]
        for section in self.sections:
            parts += [f"{'#' * (level + 1)} {section.title}", section.text]
            if images is not None:
                parts += [
                    f"![{picture.alt}]({images}/{picture.name}.svg)"
                    for picture in section.pictures
                ]
        return "\n\n".join(part for part in parts if part) + "\n"

    def write_pictures(self, folder: Path) -> list[Path]:
        """Draw all pictures into a folder, as SVG; return their paths."""
        import matplotlib as mpl

        folder.mkdir(parents=True, exist_ok=True)
        paths = []
        for picture in self.pictures:
            path = folder / f"{picture.name}.svg"
            # The same figures give the same file.
            with mpl.rc_context({"svg.hashsalt": "steelyard"}):
                picture.draw().savefig(path, metadata={"Date": None})
            paths.append(path)
        return paths

    def as_dict(self) -> dict[str, Any]:
        """Return everything but the pictures, ready for JSON."""
        return {
            "name": self.name,
            "title": self.title,
            "quick": self.quick,
            "seconds": self.seconds,
            "verdicts": [asdict(entry) for entry in self.verdicts],
            "sections": {section.title: section.text for section in self.sections},
        }


# ---------------------------------------------------------------------- printed tables


def published_folder(data: Path, path: str | os.PathLike[str] | None = None) -> Path:
    """Find the folder of published tables.

    Parameters
    ----------
    data : Path
        The folder of data sets.
    path : str or path, default=None
        The folder; ``published`` beside the data sets if None.

    Returns
    -------
    Path
        An existing folder.
    """
    folder = Path(path) if path is not None else data.resolve().parent / "published"
    if not folder.is_dir():
        raise FileNotFoundError(
            f"The folder of published tables {str(folder)!r} is absent: name one with "
            "--published."
        )
    return folder


def read_published(folder: Path, name: str) -> list[dict[str, str]]:
    """Read a published table: one mapping from column to text for each row."""
    path = folder / f"{name}.csv"
    if not path.is_file():
        raise FileNotFoundError(f"The published table {str(path)!r} is absent.")
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


# ------------------------------------------------------------------------------- tables


def accuracies(
    results: Results, protocol: str | None = None
) -> dict[str, dict[str, float]]:
    """Return average accuracies in percent, by method and data set."""
    matrix = 100.0 * results.matrix("accuracy", protocol)
    return {
        name: dict(zip(results.datasets, matrix[:, j].tolist(), strict=True))
        for j, name in enumerate(results.methods)
    }


def mean(values: Iterable[float]) -> float:
    """Average numbers, of which there is at least one."""
    found = list(values)
    return sum(found) / len(found)


def figure(value: float | None, signed: bool = False, digits: int = 2) -> str:
    """Print a number with two digits, nothing for None."""
    if value is None:
        return ""
    return f"{value:+.{digits}f}" if signed else f"{value:.{digits}f}"


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Lay out a Markdown table: the first column to the left, the others right."""
    rule = ["---", *(["---:"] * (len(header) - 1))]
    lines = [header, rule, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def verdict_table(verdicts: Iterable[Verdict]) -> str:
    """Lay out verdicts."""
    words = {True: "yes", False: "no", None: ""}
    rows = [
        [v.table, v.what, v.published, v.measured, words[v.reached], v.note]
        for v in verdicts
    ]
    header = ["table", "what", "published", "measured", "reached", "note"]
    return markdown_table(header, rows)


def side_by_side(
    names: Sequence[str],
    columns: Sequence[tuple[str, Mapping[str, float], Mapping[str, float]]],
    first: str = "data set",
    average: bool = True,
) -> str:
    """Lay out published figures beside measured ones and their differences.

    Parameters
    ----------
    names : sequence of str
        Data sets, one per row.
    columns : sequence of (title, published, measured)
        Figures by data set, for each group of three columns.
    first : str, default="data set"
        Title of the first column.
    average : bool, default=True
        Whether to add a row of averages.

    Returns
    -------
    str
        A Markdown table.
    """
    header = [first]
    for title, _, _ in columns:
        header += [f"{title} published", "measured", "difference"]
    rows = []
    for name in names:
        row = [name]
        for _, published, measured in columns:
            row += _three(published.get(name), measured.get(name))
        rows.append(row)
    if average:
        row = ["**average**"]
        for _, published, measured in columns:
            both = [name for name in names if name in published and name in measured]
            tables = (published, measured)
            row += _three(*(mean(t[n] for n in both) if both else None for t in tables))
        rows.append(row)
    return markdown_table(header, rows)


def _three(published: float | None, measured: float | None) -> list[str]:
    known = published is not None and measured is not None
    difference = measured - published if known else None  # type: ignore[operator]
    return [figure(published), figure(measured), figure(difference, signed=True)]


def replace_section(document: str, name: str, text: str) -> str:
    r"""Put text between the markers of a section, which are added if absent.

    Parameters
    ----------
    document : str
        A Markdown document.
    name : str
        Name of the section: it lies between ``<!-- begin NAME -->`` and
        ``<!-- end NAME -->``.
    text : str
        The new content.

    Returns
    -------
    str
        The document with the section replaced.

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
