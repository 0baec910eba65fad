"""Reproduce published results: ``steelyard reproduce rnb``.

Prints published figures beside measured ones, with a verdict for each table. With
``--out`` result files are kept, so that an interrupted run goes on where it stopped;
``--write`` puts the report into a marked section of a document.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import NoReturn

from joblib import effective_n_jobs

from steelyard.exceptions import ParameterError
from steelyard.experiments.data.sets import data_folder
from steelyard.experiments.papers.report import (
    SEED,
    Reproduction,
    Run,
    Section,
    published_folder,
    replace_section,
)
from steelyard.experiments.progress import duration

__all__ = ["PAPERS", "Reproduction", "main", "reproduce"]

PAPERS = ("rnb", "cwnb", "exponential", "spss")
"""The documents whose tables can be measured."""

_QUICK_MINUTES = 3.0
_MODULE = "steelyard.experiments.papers.reproduce"


@dataclass(frozen=True)
class _Paper:
    title: str
    minutes: float
    """About how long one process needs, on a machine of 2 cores."""

    scope: str
    sections: Callable[[Run], tuple[Section, ...]]


def _paper(name: str) -> _Paper:
    module = import_module(f"steelyard.experiments.repro_{name}")
    measure = getattr(module, f"reproduce_{name}")
    return _Paper(module.TITLE, module.MINUTES, module.SCOPE, measure)


def reproduce(
    name: str,
    data: str | os.PathLike[str] | None = None,
    published: str | os.PathLike[str] | None = None,
    *,
    quick: bool = False,
    out: str | os.PathLike[str] | None = None,
    n_jobs: int | None = 2,
    progress: bool = True,
    repeats: int | None = None,
) -> Reproduction:
    """Measure the tables and figures of a document.

    Parameters
    ----------
    name : {"rnb", "cwnb", "exponential", "spss"}
        Which document.
    data : str or path, default=None
        Folder of data sets; the environment variable ``STEELYARD_DATA`` if None.
    published : str or path, default=None
        Folder of published tables; ``published`` beside the data sets if None.
    quick : bool, default=False
        Only a part, in about three minutes.
    out : str or path, default=None
        Folder for result files, the report and its pictures. A run that was
        interrupted goes on from the files it finds there.
    n_jobs : int, default=2
        Processes. Figures do not depend on it.
    progress : bool, default=True
        Whether to say on standard error what happens, and about how long it takes.
    repeats : int, default=None
        How often cross-validation is repeated where the papers do it 10 times: the
        tables of the CWNB paper, and label noise. If None 10 times, or once in a quick
        run.

    Returns
    -------
    Reproduction
        Tables, pictures and verdicts.
    """
    if name not in PAPERS:
        close = difflib.get_close_matches(str(name), PAPERS, 1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ParameterError(
            f"The document must be one of {', '.join(PAPERS)}. Got {name!r}.{hint}"
        )
    # The manual of SPSS is worked through on a table of 14 rows.
    if name == "spss" and data is None and not os.environ.get("STEELYARD_DATA"):
        folder, printed = Path(), Path()
    else:
        folder = data_folder(data)
        printed = published_folder(folder, published)
    paper = _paper(name)
    target = None if out is None else Path(out)
    if repeats is not None and repeats < 1:
        raise ParameterError(f"'repeats' must be at least 1. Got {repeats!r}.")
    run = Run(name, folder, printed, quick, target, n_jobs, progress, repeats)
    minutes = min(paper.minutes, _QUICK_MINUTES) if quick else paper.minutes
    run.say(_announcement(paper, minutes, n_jobs, target))
    start = perf_counter()
    sections = paper.sections(run)
    seconds = perf_counter() - start
    found = Reproduction(name, paper.title, sections, quick, paper.scope, seconds)
    if target is not None:
        target.mkdir(parents=True, exist_ok=True)
        report = target / f"{name}{'-quick' if quick else ''}.md"
        report.write_text(found.to_markdown("images", level=1), encoding="utf-8")
        found.write_pictures(target / "images")
    return found


def _announcement(
    paper: _Paper, minutes: float, n_jobs: int | None, out: Path | None
) -> str:
    processes = effective_n_jobs(n_jobs)
    about = duration(60.0 * minutes / processes)
    word = "process" if processes == 1 else "processes"
    kept = (
        "without a folder for result files an interrupted run starts again"
        if out is None
        else f"result files in {str(out)!r}: the same command resumes"
    )
    return f"{paper.title}: about {about} with {processes} {word} ({kept})."


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status.

    Parameters
    ----------
    argv : sequence of str, default=None
        Arguments; those of the process if None.

    Returns
    -------
    int
        0 on success, 2 on a usage or input error.
    """
    arguments = _parser().parse_args(argv)
    try:
        _run(arguments)
    except (ValueError, OSError) as error:
        sys.stderr.write(f"reproduction: {' '.join(str(error).split())}\n")
        return 2
    return 0


def _run(arguments: argparse.Namespace) -> None:
    found = reproduce(
        arguments.paper,
        arguments.data,
        arguments.published,
        quick=arguments.quick,
        out=arguments.out,
        n_jobs=arguments.n_jobs,
        progress=not arguments.silent,
        repeats=arguments.repeats,
    )
    words = f"steelyard reproduce {found.name}{' --quick' if found.quick else ''}"
    if arguments.repeats is not None:
        words = f"python -m {_MODULE} {found.name} --repeats {arguments.repeats}"
    origin = f"Made by `{words}` (seed {SEED})."
    sys.stdout.write(f"{found.to_markdown()}\n{origin}\n")
    if arguments.json is not None:
        record = json.dumps(found.as_dict(), indent=1, ensure_ascii=False)
        arguments.json.write_text(f"{record}\n", encoding="utf-8")
    if arguments.write is not None:
        path = arguments.write
        document = path.read_text(encoding="utf-8") if path.exists() else ""
        text = f"{origin}\n\n{found.to_markdown('images', level=3)}"
        document = replace_section(document, found.name, text)
        path.write_text(document, encoding="utf-8")
        found.write_pictures(path.parent / "images")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Say what is wrong in one line."""
        self.exit(2, f"{self.prog}: {message}. Try '{self.prog} --help'.\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="reproduction", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("paper", choices=PAPERS, help="whose tables")
    parser.add_argument(
        "--data", help="folder of data sets (default: environment STEELYARD_DATA)"
    )
    parser.add_argument(
        "--published",
        help="folder of published tables (default: 'published' beside the data sets)",
    )
    parser.add_argument("--quick", action="store_true", help="a part, in 3 minutes")
    parser.add_argument("--out", help="folder for result files, report and pictures")
    parser.add_argument("--n-jobs", type=int, default=2, help="processes (default: 2)")
    parser.add_argument(
        "--repeats", type=int, help="instead of the papers' 10 (CWNB, noise)"
    )
    parser.add_argument("--silent", action="store_true", help="no progress")
    parser.add_argument("--json", type=Path, help="write verdicts to this file")
    parser.add_argument(
        "--write", type=Path, help="replace the document's section of this page"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
