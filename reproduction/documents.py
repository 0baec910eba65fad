"""Documents: their descriptions in files, and what comes out when they are measured."""

from __future__ import annotations

import os
import tomllib
from collections import ChainMap
from collections.abc import Sequence
from functools import partial
from importlib import resources
from pathlib import Path
from time import perf_counter
from typing import Any

from joblib import effective_n_jobs

from reproduction import exponential_loss, leads, measurements, sections, sentences
from reproduction.engine import Comparison, Paper, Run
from reproduction.report import Reproduction
from steelyard._common.text import did_you_mean
from steelyard.classifiers.joint import JointWeightedNB
from steelyard.cli.reproduce import PAPERS
from steelyard.exceptions import ParameterError
from steelyard.lab.data.datasets import find_folder

# What a file may name as a ``kind``.
_FUNCTIONS = ChainMap(
    {"JointWeightedNB": JointWeightedNB},
    *map(vars, (sections, measurements, exponential_loss, leads, sentences)),
)

_QUICK_MINUTES = 3.0


def read_paper(name: str, *, quick: bool = False) -> Paper:
    """Read the description of a document, for a full run or a quick one."""
    file = resources.files(__package__).joinpath(f"{name}.toml")
    entries = _resolved(tomllib.loads(file.read_text(encoding="utf-8")), quick)
    parts = entries.pop("comparisons", {})
    comparisons = {part: Comparison(**spec) for part, spec in parts.items()}
    return Paper(name=name, comparisons=comparisons, **entries)


def _resolved(node: Any, quick: bool) -> Any:
    """Choose between values for full and quick runs, and look up functions.

    A table with a ``kind`` is that function with the other entries as arguments. TOML
    has no None: the word stands for it.
    """
    if isinstance(node, list):
        return [_resolved(entry, quick) for entry in node]
    if not isinstance(node, dict):
        return None if node == "None" else node
    if node.keys() == {"full", "quick"}:
        return _resolved(node["quick" if quick else "full"], quick)
    entries = {key: _resolved(value, quick) for key, value in node.items()}
    if "kind" in entries:
        return partial(_FUNCTIONS[entries.pop("kind")], **entries)
    return entries


def reproduce(
    name: str,
    data: str | os.PathLike[str] | None = None,
    *,
    quick: bool = False,
    out: str | os.PathLike[str] | None = None,
    n_jobs: int | None = 2,
    progress: bool = True,
    repeats: int | None = None,
    without: Sequence[str] = (),
) -> Reproduction:
    """Measure the tables and figures of a document.

    Parameters
    ----------
    name : {"rnb", "cwnb", "exponential", "spss"}
        Which document.
    data : str or path, default=None
        Folder of data sets; see ``load_dataset``. Of data sets that are absent nothing
        is measured, and the report names them.
    quick : bool, default=False
        Only a part, in about three minutes.
    out : str or path, default=None
        Folder for result files, the report and its pictures. A run that was
        interrupted resumes from the files it finds there.
    n_jobs : int, default=2
        Processes. Figures do not depend on it.
    progress : bool, default=True
        Whether to say on standard error what happens, and about how long it takes.
    repeats : int, default=None
        How often cross-validation is repeated where the papers do it 10 times: the
        tables of the CWNB paper, and label noise. If None 10 times, or once in a quick
        run.
    without : sequence of str, default=()
        Sections that are left out, by how their titles begin, such as ``["Figure 7"]``,
        whose 123,000 fits take longest.

    Returns
    -------
    Reproduction
        Tables, pictures and verdicts.
    """
    if repeats is not None and repeats < 1:
        raise ParameterError(f"'repeats' must be at least 1. Got {repeats!r}.")
    if name not in PAPERS:
        raise ParameterError(
            f"The document must be one of {', '.join(PAPERS)}. Got {name!r}."
            f"{did_you_mean(str(name), PAPERS)}"
        )
    paper = read_paper(name, quick=quick)
    titles = [section["title"] for section in paper.sections]
    for words in without:
        if not any(title.startswith(words) for title in titles):
            raise ParameterError(
                f"No section of {name!r} begins with {words!r}. Sections: "
                f"{'; '.join(titles)}."
            )
    folder = find_folder(data)
    target = None if out is None else Path(out)
    run = Run(paper, folder, quick, target, n_jobs, progress, repeats, tuple(without))
    run.say(_announcement(run))
    for line in run.absent:
        run.say(line)
    start = perf_counter()
    sections = run.measure()
    seconds = perf_counter() - start
    report = Reproduction(
        name,
        paper.title,
        sections,
        quick,
        paper.scope,
        repeats,
        run.absent,
        tuple(without),
        seconds,
    )
    if target is not None:
        target.mkdir(parents=True, exist_ok=True)
        path = target / f"{name}{'-quick' if quick else ''}.md"
        path.write_text(report.to_markdown("images", level=1), encoding="utf-8")
        report.write_pictures(target / "images")
    return report


def _announcement(run: Run) -> str:
    minutes = run.paper.minutes
    if run.quick:
        minutes = min(minutes, _QUICK_MINUTES)
    processes = effective_n_jobs(run.n_jobs)
    time = duration(60.0 * minutes / processes)
    # Sections differ too much in time to say what those that are left take.
    bound = "at most" if run.without else "about"
    word = "process" if processes == 1 else "processes"
    kept = (
        "without a folder for result files an interrupted run starts again"
        if run.out is None
        else f"result files in {str(run.out)!r}: the same command resumes"
    )
    return f"{run.paper.title}: {bound} {time} with {processes} {word} ({kept})."


def duration(seconds: float) -> str:
    """Write a time as people say it.

    Examples
    --------
    >>> duration(42), duration(200), duration(7_500)
    ('42 s', '3 min 20 s', '2 h 05 min')
    """
    whole = max(1, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
