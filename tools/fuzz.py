"""Attack the library with made-up model files, tables, texts and result files.

Whatever it is given, it may answer with an error of its own or with valid
probabilities, the same ones in every way there is, and with nothing else. Every case
has a number and depends on the seed and that number alone, so that one that fails is
repeated by its name:

    python tools/fuzz.py --seed 1 --files 20000 --tables 2000
    python tools/fuzz.py --seed 1 --only tables:17

``--planted`` shows what it finds: it plants known bugs, one at a time.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from fuzzing.case import Case, WrongError, said
from fuzzing.chains import attack_chain
from fuzzing.journals import attack_journal
from fuzzing.model_files import attack_file
from fuzzing.tables import attack_table
from fuzzing.texts import attack_text

ATTACKS: dict[str, Callable[[Case, int], None]] = {
    "tables": attack_table,
    "files": attack_file,
    "texts": attack_text,
    "journals": attack_journal,
    "chains": attack_chain,
}
# About three minutes.
COUNTS = {"tables": 210, "files": 1000, "texts": 200, "journals": 500, "chains": 100}
# What takes longer is a finding.
MAX_SECONDS = 120


class Done(NamedTuple):
    """What came of a case."""

    kind: str
    number: int
    about: str
    outcome: str
    found: dict[str, str]


def run_case(kind: str, number: int, seed: int) -> Done:
    """Run one case in a folder of its own."""
    with (
        tempfile.TemporaryDirectory() as folder,
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
    ):
        warnings.simplefilter("ignore")
        case = Case(random.Random(f"{seed} {kind} {number}"), Path(folder))
        try:
            with _limited(MAX_SECONDS):
                ATTACKS[kind](case, number)
        except Exception as error:
            case.found["case"] = said(error)
        return Done(kind, number, case.about, case.outcome, case.found)


class _limited:  # noqa: N801 - a context
    """Raise where a block takes too long; nothing where there is no such signal."""

    def __init__(self, seconds: int) -> None:
        self._seconds = seconds if hasattr(signal, "SIGALRM") else 0

    def __enter__(self) -> None:
        if self._seconds:
            signal.signal(signal.SIGALRM, self._stop)
            signal.alarm(self._seconds)

    def __exit__(self, *_: object) -> None:
        if self._seconds:
            signal.alarm(0)

    def _stop(self, *_: object) -> None:
        raise WrongError(f"not done in {self._seconds} seconds")


def cases(arguments: argparse.Namespace) -> list[tuple[str, int]]:
    """Return kind and number of every case, kinds in turns."""
    if arguments.only:
        kind, _, number = arguments.only.partition(":")
        return [(kind, int(number))]
    counts = {kind: getattr(arguments, kind) for kind in ATTACKS}
    placed = [((k + 0.5) / n, kind, k) for kind, n in counts.items() for k in range(n)]
    return [(kind, number) for _, kind, number in sorted(placed)]


def results(arguments: argparse.Namespace) -> Iterator[Done]:
    """Run all cases, in several processes if asked."""
    work = [(kind, number, arguments.seed) for kind, number in cases(arguments)]
    if arguments.jobs == 1:
        yield from (run_case(*one) for one in work)
        return
    with multiprocessing.get_context("spawn").Pool(arguments.jobs) as pool:
        yield from pool.imap_unordered(_run, work, chunksize=4)


def _run(one: tuple[str, int, int]) -> Done:
    return run_case(*one)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    for kind, count in COUNTS.items():
        parser.add_argument(f"--{kind}", type=int, default=count)
    parser.add_argument("--only", metavar="KIND:NUMBER", help="one case")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: 1)")
    about = "start no case after so many minutes"
    parser.add_argument("--minutes", type=float, default=float("inf"), help=about)
    about = "plant known bugs one at a time, all or the one named, and look for each"
    parser.add_argument("--planted", nargs="?", const="", metavar="BUG", help=about)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run cases; 1 where one failed."""
    arguments = parser().parse_args(argv)
    if arguments.planted is not None:
        from planted_bugs import look_for

        return look_for(arguments.planted, arguments.seed)
    outcomes: dict[str, Counter[str]] = {kind: Counter() for kind in ATTACKS}
    failed: Counter[str] = Counter()
    start, total = time.monotonic(), len(cases(arguments))
    for k, done in enumerate(results(arguments), 1):
        outcomes[done.kind][done.outcome] += 1
        for check, what in done.found.items():
            failed[check] += 1
            _show("")
            name = f"--seed {arguments.seed} --only {done.kind}:{done.number}"
            print(f"{name}  {check}: {what} [{done.about}]", flush=True)
        seconds = time.monotonic() - start
        _show(f"{k} of {total} cases, {failed.total()} findings, {seconds:.0f} s")
        if seconds > 60 * arguments.minutes:
            break
    _show("")
    for kind, counter in outcomes.items():
        listed = ", ".join(f"{n} {what}" for what, n in counter.most_common(6))
        print(f"{kind}: {counter.total()} ({listed})")
    for check, n in failed.most_common():
        print(f"  failed: {check} in {n}")
    print(f"{failed.total()} findings, {time.monotonic() - start:.0f} s")
    return int(failed.total() > 0)


def _show(line: str) -> None:
    """Write the one line of progress over the last, where somebody is looking."""
    if sys.stderr.isatty() and not os.environ.get("NO_PROGRESS"):
        print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
