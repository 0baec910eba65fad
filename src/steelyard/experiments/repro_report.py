"""Published figures beside measured ones: reading, tables, and marked sections."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

__all__ = [
    "Measurement",
    "Report",
    "figure",
    "markdown_table",
    "measure_all",
    "published_folder",
    "read_published",
    "replace_section",
    "side_by_side",
]


@dataclass(frozen=True)
class Measurement:
    """One figure measured for one data set by one variant of a method."""

    data: str
    variant: str
    accuracy: float
    """Mean accuracy over the folds in percent."""

    seconds: float = 0.0
    warnings: dict[str, int] = field(default_factory=dict)
    selected: float | None = None
    """Share of attributes with a weight above zero in percent, where asked for."""


@dataclass(frozen=True)
class Report:
    """A reproduction: the text that compares, and the figures behind it."""

    name: str
    text: str
    measurements: list[Measurement]
    verdicts: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return everything but the text, ready for JSON."""
        return {
            "name": self.name,
            "verdicts": self.verdicts,
            "measurements": [asdict(entry) for entry in self.measurements],
        }


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


def measure_all(
    measure: Callable[..., Measurement], jobs: Iterable[tuple[Any, ...]], n_jobs: int
) -> list[Measurement]:
    """Run jobs in so many processes, each on one thread; keep their order."""
    from joblib import Parallel, delayed

    run = delayed(_on_one_thread)
    found = Parallel(n_jobs=n_jobs)(run(measure, *job) for job in jobs)
    return list(found)


def _on_one_thread(measure: Callable[..., Measurement], *job: Any) -> Measurement:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return measure(*job)


def figure(value: float | None, signed: bool = False) -> str:
    """Print a percentage with two digits, nothing for None."""
    if value is None:
        return ""
    return f"{value:+.2f}" if signed else f"{value:.2f}"


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Lay out a Markdown table: the first column to the left, the others right."""
    rule = ["---", *(["---:"] * (len(header) - 1))]
    lines = [header, rule, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def side_by_side(
    names: Sequence[str],
    columns: Sequence[tuple[str, dict[str, float], dict[str, float]]],
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
            row += _three(
                *(
                    _mean([table[name] for name in both])
                    for table in (published, measured)
                )
            )
        rows.append(row)
    return markdown_table(header, rows)


def _three(published: float | None, measured: float | None) -> list[str]:
    known = published is not None and measured is not None
    difference = measured - published if known else None  # type: ignore[operator]
    return [figure(published), figure(measured), figure(difference, signed=True)]


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


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
