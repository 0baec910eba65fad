"""Reproduce published results: ``python -m steelyard.experiments.reproduction rnb``.

Prints published figures beside measured ones; ``--write`` also puts them into a marked
section of a document.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import NoReturn

from steelyard.experiments.protocols import data_folder
from steelyard.experiments.repro_exponential import QUICK_TASKS, reproduce_exponential
from steelyard.experiments.repro_report import (
    Report,
    published_folder,
    replace_section,
)
from steelyard.experiments.repro_rnb import QUICK_SETS, reproduce_rnb
from steelyard.solvers import SOLVERS

__all__ = ["main", "reproduce"]

PAPERS = ("rnb", "exponential")
SEED = 1
SOLVER = "lbfgs"


def reproduce(
    paper: str,
    data: Path,
    published: Path,
    *,
    quick: bool = False,
    solver: str = SOLVER,
    n_jobs: int = 1,
) -> Report:
    """Measure the tables of a paper.

    Parameters
    ----------
    paper : {"rnb", "exponential"}
        Which paper.
    data : Path
        Folder of data sets.
    published : Path
        Folder of published tables.
    quick : bool, default=False
        Only a few small data sets.
    solver : str, default="lbfgs"
        Solver of the exponential-loss paper's weights, by default the paper's, run to
        the optimum; the RNB paper's tables show several.
    n_jobs : int, default=1
        Processes. Figures do not depend on it.

    Returns
    -------
    Report
        Tables, figures and verdicts.
    """
    if paper == "rnb":
        names = QUICK_SETS if quick else None
        return reproduce_rnb(data, published, names=names, n_jobs=n_jobs, seed=SEED)
    if paper == "exponential":
        names = QUICK_TASKS if quick else None
        return reproduce_exponential(
            data, published, names=names, solver=solver, n_jobs=n_jobs, seed=SEED
        )
    raise ValueError(f"The paper must be one of {', '.join(PAPERS)}. Got {paper!r}.")


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
    data = data_folder(arguments.data)
    published = published_folder(data, arguments.published)
    start = perf_counter()
    report = reproduce(
        arguments.paper,
        data,
        published,
        quick=arguments.quick,
        solver=arguments.solver,
        n_jobs=arguments.n_jobs,
    )
    seconds = perf_counter() - start
    command = _command(arguments)
    text = (
        f"Made by `{command}` (seed {SEED}) in {seconds:.0f} s with "
        f"{arguments.n_jobs} {'process' if arguments.n_jobs == 1 else 'processes'}.\n\n"
        f"{report.text}\n"
    )
    sys.stdout.write(text)
    if arguments.json is not None:
        record = {"command": command, "seconds": seconds, **report.as_dict()}
        arguments.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    if arguments.write is not None:
        path = arguments.write
        document = path.read_text(encoding="utf-8") if path.exists() else ""
        document = replace_section(document, report.name, text)
        path.write_text(document, encoding="utf-8")


def _command(arguments: argparse.Namespace) -> str:
    words = ["python -m steelyard.experiments.reproduction", arguments.paper]
    if arguments.quick:
        words.append("--quick")
    if arguments.solver != SOLVER:
        words.append(f"--solver {arguments.solver}")
    return " ".join(words)


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
    parser.add_argument("--quick", action="store_true", help="a few small data sets")
    parser.add_argument(
        "--solver",
        choices=SOLVERS,
        default=SOLVER,
        help=f"solver of the exponential-loss paper's weights (default: {SOLVER})",
    )
    parser.add_argument("--n-jobs", type=int, default=1, help="processes (default: 1)")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument(
        "--write", type=Path, help="replace the paper's section of this document"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
