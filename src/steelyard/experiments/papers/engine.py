"""The engine: measures a document that is described by comparisons and sections."""

from __future__ import annotations

import csv
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from steelyard.experiments.papers.report import SEED, Section
from steelyard.experiments.papers.tables import Columns, Pair
from steelyard.experiments.results import Results
from steelyard.experiments.runner import compare

__all__ = ["Comparison", "Forms", "Paper", "Run", "Scale", "published_folder"]

T = TypeVar("T")

Forms = Mapping[str, tuple[str, str]]
"""Which comparison, and which of its methods, measures a printed column."""


@dataclass(frozen=True)
class Scale(Generic[T]):
    """A value for a full run, and one for a quick run."""

    full: T
    quick: T

    def __call__(self, run: Run) -> T:
        """Return the value for a run."""
        return self.quick if run.quick else self.full


@dataclass(frozen=True)
class Comparison:
    """Methods that are cross-validated on data sets; a result file each.

    Methods by name and data sets may be functions of the run; data sets are those of
    the document by default. ``repeats`` holds unless the run says how often.
    """

    methods: Any
    protocol: str | Sequence[str]
    data: Any = lambda run: run.names
    repeats: Scale[int] | None = None


@dataclass(frozen=True)
class Paper:
    """A document: what is measured, and how it is laid out.

    ``minutes`` is about how long one process needs for all of it, on a machine of 2
    cores; ``scope`` says what a quick run has. Sections are functions of the run that
    return a ``Section``, or None where there is nothing to show. ``data`` names data
    sets, and ``rows`` the rows of printed tables whose first column has other names.
    Sections and data may themselves be functions of the run.
    """

    name: str
    title: str
    minutes: float
    scope: str
    sections: Any
    data: Any = ()
    comparisons: Mapping[str, Comparison] = field(default_factory=dict)
    rows: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Run:
    """How a document is reproduced: from which folders, how thoroughly, where to.

    ``repeats`` is how often cross-validation is repeated where the paper repeats it.
    """

    paper: Paper
    folder: Path
    published: Path
    quick: bool = False
    out: Path | None = None
    n_jobs: int | None = 2
    progress: bool = True
    repeats: int | None = None
    _kept: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    def measure(self) -> tuple[Section, ...]:
        """Measure all sections of the document."""
        sections = [section(self) for section in self._choose(self.paper.sections)]
        return tuple(section for section in sections if section is not None)

    def judged(self, reached: Any) -> bool | None:
        """Return whether a figure is reached; a quick run does not judge."""
        return None if self.quick else bool(reached)

    @property
    def names(self) -> list[str]:
        """The data sets of the document."""
        return self._once("data", lambda: list(self._choose(self.paper.data)))

    def printed(self, file: str) -> dict[str, dict[str, str]]:
        """Return the cells of a printed table, by row and column."""
        lines = self._once(file, lambda: _read_published(self.published, file))
        names = self.paper.rows.get(file) or [next(iter(x.values())) for x in lines]
        return dict(zip(names, lines, strict=True))

    def results(self, part: str) -> Results:
        """Return what a comparison of the document gave; it is run once."""
        return self._once(("results", part), lambda: self._compare(part))

    def accuracies(self, part: str, protocol: str | None = None) -> Columns:
        """Return average accuracies of a comparison in percent, by method and data set.

        Names of tasks are without the word before the colon.
        """
        results = self.results(part)
        matrix = 100.0 * results.matrix("accuracy", protocol)
        names = [name.removeprefix("task:") for name in results.datasets]
        return {
            method: dict(zip(names, matrix[:, j].tolist(), strict=True))
            for j, method in enumerate(results.methods)
        }

    def pairs(
        self, file: str, forms: Forms, rows: Sequence[str] | None = None
    ) -> list[Pair]:
        """Put printed columns beside measured ones, on some or all measured data."""
        cells = self.printed(file)
        pairs = []
        for column, (part, method) in forms.items():
            measured = self.accuracies(part)[method]
            names = rows or measured
            published = {name: float(cells[name][column]) for name in names}
            pairs.append(Pair(column, published, {n: measured[n] for n in names}))
        return pairs

    def extras(self, part: str, method: str, key: str) -> dict[str, list[Any]]:
        """Return what the fits of a method recorded, by data set."""
        records: dict[str, list[Any]] = {}
        for row in self.results(part).select(method=method).rows:
            if row["status"] == "ok":
                records.setdefault(row["dataset"], []).append(row["extra"][key])
        return records

    def say(self, text: str) -> None:
        """Tell on standard error what happens."""
        if self.progress:
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()

    def _choose(self, value: Any) -> Any:
        """Return a value that may be a function of the run."""
        return value(self) if callable(value) else value

    def _once(self, key: Any, compute: Callable[[], T]) -> T:
        if key not in self._kept:
            self._kept[key] = compute()
        value: T = self._kept[key]
        return value

    def _compare(self, part: str) -> Results:
        """Run a comparison; with a folder for files it resumes from what is there."""
        spec = self.paper.comparisons[part]
        repeats = (self.repeats or spec.repeats(self)) if spec.repeats else 1
        self.say(f"{self.paper.name}: {part}")
        with warnings.catch_warnings():
            # Classes of fewer rows than folds are part of the papers' data.
            warnings.simplefilter("ignore", UserWarning)
            results = compare(
                self._choose(spec.methods),
                self._choose(spec.data),
                protocol=spec.protocol,
                repeats=repeats,
                seed=SEED,
                journal=self._journal(part, repeats),
                folder=self.folder,
                n_jobs=self.n_jobs,
                progress=self.progress,
            )
        if results.failures:
            first = results.failures[0]
            text = (
                f"{len(results.failures)} fits of {self.paper.name}-{part} failed, the "
                f"first on {first['dataset']!r}: {first['error']}"
            )
            warnings.warn(text, UserWarning, stacklevel=2)
        return results

    def _journal(self, part: str, repeats: int) -> Path | None:
        if self.out is None:
            return None
        self.out.mkdir(parents=True, exist_ok=True)
        kind = "-quick" if self.quick else ""
        kind += f"-{repeats}x" if repeats > 1 else ""
        return self.out / f"{self.paper.name}-{part}{kind}.jsonl"


def published_folder(data: Path, path: str | os.PathLike[str] | None = None) -> Path:
    """Find the folder of published tables: by default ``published`` beside the data."""
    folder = Path(path) if path is not None else data.resolve().parent / "published"
    if not folder.is_dir():
        raise FileNotFoundError(
            f"The folder of published tables {str(folder)!r} is absent: name one with "
            "--published."
        )
    return folder


def _read_published(folder: Path, name: str) -> list[dict[str, str]]:
    """Read a published table: one mapping from column to text for each row."""
    path = folder / f"{name}.csv"
    if not path.is_file():
        raise FileNotFoundError(f"The published table {str(path)!r} is absent.")
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
