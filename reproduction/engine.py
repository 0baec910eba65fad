"""The engine: measures a document, and fills in its templates.

A template is filled in by ``str.format`` with what a function measured for a section.
Where it is for ``each`` entry of a list, the values of that entry come first.
"""

from __future__ import annotations

import csv
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from reproduction.report import (
    SEED,
    ColumnPair,
    Columns,
    Count,
    Picture,
    Section,
    Verdict,
    table,
)
from steelyard.classifiers import registry
from steelyard.lab.data.datasets import has_dataset
from steelyard.lab.report.summaries import MeasureSummary, summarize
from steelyard.lab.results import Results
from steelyard.lab.runner import compare

T = TypeVar("T")

Forms = Mapping[str, Sequence[str]]
"""Which comparison, and which of its methods, measures a printed column."""

Values = Mapping[str, Any]
"""What was measured for a section, by the names that templates use."""


class MissingDataError(Exception):
    """No data set of a section is there: the report goes on without it."""


@dataclass(frozen=True)
class Comparison:
    """Methods that are cross-validated on data sets; a result file each.

    Methods are names of the document's methods, with further ``settings``, or a
    function of the run, as data sets may be; by default they and the protocol are those
    of the document. ``repeats`` holds unless the run says how often.
    """

    methods: Any
    settings: Mapping[str, Any] = field(default_factory=dict)
    protocol: str | Sequence[str] | None = None
    data: Any = None
    repeats: int | None = None


@dataclass(frozen=True)
class Paper:
    """A document: what is measured, and how it is laid out; read from a file.

    ``minutes`` is about how long one process needs for all of it, on a machine of 2
    cores; ``scope`` says what a quick run has. ``data`` names data sets, or is a
    function of the run, and ``rows`` has the rows of printed tables whose first column
    has other names. ``methods`` has the settings of methods, as far as they are not
    those of their acronym; ``forms`` what measures printed columns; ``shared`` what
    several sections take. A section has a function that measures it, and its layout;
    there is none where nothing was measured, and one for each entry of a list.
    """

    name: str
    title: str
    minutes: float
    scope: str
    sections: Sequence[Mapping[str, Any]]
    protocol: str = "honest"
    data: Any = ()
    comparisons: Mapping[str, Comparison] = field(default_factory=dict)
    methods: Mapping[str, Any] = field(default_factory=dict)
    forms: Mapping[str, Forms] = field(default_factory=dict)
    rows: Mapping[str, Any] = field(default_factory=dict)
    shared: Mapping[str, Any] = field(default_factory=dict)

    def classifier(self, name: str, **settings: Any) -> Any:
        """Return one of the document's methods, unfitted."""
        entry = self.methods.get(name, {})
        if callable(entry):
            return entry(**settings)
        chosen = {"method": name, **entry, **settings}
        return registry.method(chosen.pop("method"), **chosen)


@dataclass(frozen=True)
class Run:
    """How a document is reproduced: from which folders, how thoroughly, where to.

    ``repeats`` is how often cross-validation is repeated where the paper repeats it;
    of sections whose titles begin with words of ``without`` nothing is measured.
    """

    paper: Paper
    folder: Path | None
    quick: bool = False
    out: Path | None = None
    n_jobs: int | None = 2
    progress: bool = True
    repeats: int | None = None
    without: Sequence[str] = ()
    _kept: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    def measure(self) -> tuple[Section, ...]:
        """Measure all sections of the document."""
        measured: list[Section] = []
        for section in self.paper.sections:
            if section["title"].startswith(tuple(self.without)):
                continue
            try:
                values = section["measure"](self)
            except MissingDataError:
                continue
            entries = values if isinstance(values, list) else [values]
            measured += [lay_out(self, section, entry) for entry in entries if entry]
        return tuple(measured)

    def judged(self, reached: Any) -> bool | None:
        """Return whether a figure is reached; a part of the data does not judge."""
        return None if self.quick or self.absent else bool(reached)

    @property
    def names(self) -> list[str]:
        """The data sets of the document that are there."""
        return [name for name in self._all_names if self.has(name)]

    @property
    def absent(self) -> tuple[str, ...]:
        """What to say where data sets of the document are absent."""
        names = [name for name in self._all_names if not self.has(name)]
        if not names:
            return ()
        of = f"{len(names)} of {len(self._all_names)} data sets"
        advice = (
            f"'steelyard datasets {self.paper.name} --fetch' gets them from public "
            "archives, as far as there are sources."
        )
        return (f"Without {of}, which are absent: {', '.join(names)}. {advice}",)

    @property
    def _all_names(self) -> list[str]:
        return self.once("data", lambda: list(self._choose(self.paper.data)))

    def has(self, name: str) -> bool:
        """Return whether a data set, or a task by its name alone, is there."""
        there = (has_dataset(n, self.folder) for n in (name, f"task:{name}"))
        return self.once(("has", name), lambda: any(there))

    def printed(self, file: str) -> dict[str, dict[str, str]]:
        """Return the cells of a printed table, by row and column."""
        lines = self.once(file, lambda: _read_printed(file))
        names = self._choose(self.paper.rows.get(file))
        names = names or [next(iter(line.values())) for line in lines]
        return dict(zip(names, lines, strict=True))

    def forms(self, *names: str, columns: Sequence[str] | None = None) -> Forms:
        """Merge the document's forms of these names, or choose some columns of them.

        The name of a comparison stands for all its methods.
        """
        merged: dict[str, Sequence[str]] = {}
        for name in names:
            if name in self.paper.forms:
                merged |= self.paper.forms[name]
            else:
                methods = self.paper.comparisons[name].methods
                merged |= {method: [name, method] for method in methods}
        return {column: merged[column] for column in columns or merged}

    def results(self, part: str) -> Results:
        """Return what a comparison of the document gave; it is run once."""
        return self.once(("results", part), lambda: self._compare(part))

    def summary(self, part: str, methods: Sequence[str] = ()) -> MeasureSummary:
        """Return tests of a comparison, or of some of its methods alone.

        Test parts are taken for a ninth of the rows trained on, whatever the last fold.
        """
        results = self.results(part)
        summary = summarize(results.select(method=list(methods or results.methods)))
        return replace(summary, ratio=np.full(len(summary.datasets), 1 / 9))

    def compares_sets(self, part: str) -> None:
        """Leave a section out whose test needs two data sets, where there is one."""
        if len(self.results(part).datasets) < 2:
            raise MissingDataError

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

    def seconds(self, part: str) -> dict[str, float]:
        """Return how long all fits of a comparison took, by method."""
        results = self.results(part)
        runs = results.settings["folds"] * results.settings["repeats"]
        total = np.nansum(runs * results.matrix("fit_seconds"), axis=0)
        return dict(zip(results.methods, total.tolist(), strict=True))

    def pairs(
        self, file: str, forms: Forms, rows: Sequence[str] | None = None
    ) -> list[ColumnPair]:
        """Put printed columns beside measured ones, on some or all measured data."""
        cells = self.printed(file)
        pairs = []
        for column, (part, name) in forms.items():
            measured = self.accuracies(part)[name]
            names = rows or measured
            published = {name: float(cells[name][column]) for name in names}
            pairs.append(ColumnPair(column, published, {n: measured[n] for n in names}))
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

    def once(self, key: Any, compute: Callable[[], T]) -> T:
        """Return what was computed for a key, which is done once in a run."""
        if key not in self._kept:
            self._kept[key] = compute()
        value: T = self._kept[key]
        return value

    def _compare(self, part: str) -> Results:
        """Run a comparison; with a folder for files it resumes from what is there."""
        spec = self.paper.comparisons[part]
        data = self.names if spec.data is None else self._choose(spec.data)
        data = [d for d in data if not isinstance(d, str) or self.has(d)]
        if not data:
            raise MissingDataError
        repeats = (self.repeats or spec.repeats) if spec.repeats else 1
        methods = self._choose(spec.methods)
        if not callable(spec.methods):
            methods = {n: self.paper.classifier(n, **spec.settings) for n in methods}
        self.say(f"{self.paper.name}: {part}")
        with warnings.catch_warnings():
            # Classes of fewer rows than folds are part of the papers' data.
            warnings.simplefilter("ignore", UserWarning)
            results = compare(
                methods,
                data,
                protocol=spec.protocol or self.paper.protocol,
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


def _read_printed(name: str) -> list[dict[str, str]]:
    """Read a printed table: one mapping from column to text for each row."""
    path = resources.files("reproduction").joinpath("printed", f"{name}.csv")
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def lay_out(run: Run, section: Mapping[str, Any], values: Values) -> Section:
    """Fill in the templates of a section.

    Its ``body`` has texts, tables with a ``row`` for each entry, and functions of the
    run that return a text. A picture is drawn from the value ``drawn``.
    """
    title = section["title"]
    pictures = []
    if "picture" in section:
        draw, name, alt = (section["picture"][key] for key in ("draw", "name", "alt"))
        pictures.append(Picture(name, alt, partial(draw, *values["drawn"])))
    verdicts = [
        _verdict(spec, title.partition(":")[0], scope)
        for spec in section.get("verdicts", ())
        for scope in _scopes(spec, values)
    ]
    counts = [
        _count(spec, title.partition(":")[0], scope)
        for spec in section.get("counts", ())
        for scope in _scopes(spec, values)
    ]
    text = "\n\n".join(_paragraph(run, part, values) for part in section["body"])
    return Section(
        title.format_map(values),
        text,
        tuple(verdicts),
        tuple(pictures),
        tuple(counts),
    )


def _scopes(spec: Mapping[str, Any], values: Values) -> Iterator[Values]:
    for entry in values[spec["each"]] if "each" in spec else ({},):
        yield {**values, **entry}


def _paragraph(run: Run, part: Any, values: Values) -> str:
    if isinstance(part, str):
        return part.format_map(values)
    if callable(part):
        return str(part(run))
    rows = [part["row"].format_map(scope) for scope in _scopes(part, values)]
    return table(part["header"].format_map(values), rows)


def _count(spec: Mapping[str, Any], table: str, values: Values) -> Count:
    """Fill in a count of printed figures."""
    what, away, note = (
        spec.get(key, "").format_map(values) for key in ("what", "away", "note")
    )
    n, same = (int(spec[key].format_map(values)) for key in ("printed", "reproduced"))
    if same == n:
        away = note = ""
    return Count(spec.get("table", table), what, n, same, away, note)


def _verdict(spec: Mapping[str, Any], table: str, values: Values) -> Verdict:
    """Fill in a verdict; ``reached`` names the value that says so."""
    what, published, measured, note = (
        spec.get(key, "").format_map(values)
        for key in ("what", "published", "measured", "note")
    )
    reached = values[spec["reached"]] if "reached" in spec else None
    return Verdict(spec.get("table", table), what, published, measured, reached, note)
