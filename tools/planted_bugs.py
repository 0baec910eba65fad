"""Bugs of the kinds that happen, for ``tools/fuzz.py --planted`` to find.

Each is a replacement of a text that occurs once in the package, wherever that is, made
in a copy of it; where the text is gone, that is said, and another is to be written.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
MAX_SECONDS = 180
_LINE = re.compile(r"--seed \d+ --only (\w+:\d+)  ([^:]+): ")


@dataclass(frozen=True)
class Bug:
    """A text of the package, and what stands in its place."""

    name: str
    old: str
    new: str


BUGS = (
    Bug(
        "< for <= at a cut point",
        "below += x > edges[e]",
        "below += x >= edges[e]",
    ),
    Bug(
        "missing cells counted as a category",
        "        observed[first] = 0.0\n",
        "",
    ),
    Bug(
        "far numbers clipped too early",
        "t = min(abs(x - m[j]) * s[j], _MAX_DISTANCE)",
        "t = min(abs(x - m[j]) * s[j], 30.0)",
    ),
    Bug(
        "classes in another order than their names",
        "return dict(zip(self.classes, posterior, strict=True))",
        "return dict(zip(sorted(self.classes, key=str)[::-1], posterior))",
    ),
    Bug(
        "weights ignored in one kernel",
        "u = weights[i] if weights.size else 1.0",
        "u = 1.0",
    ),
    Bug(
        "quotes in SQL left as they are",
        """value.replace("'", "''")""",
        "value",
    ),
    Bug(
        "a range in a model file not checked",
        "if numbers.size and not (low <= numbers.min() and numbers.max() <= high):",
        "if False:",
    ),
    Bug(
        "columns taken in the order they come in",
        "return [by_name[name] for name in expected]",
        "return table.columns",
    ),
    Bug(
        "a part of a source lost at the end of a chunk",
        "waiting, rows, n_bytes = [], 0, 0\n            waiting.append(piece)",
        "waiting, rows, n_bytes = [], 0, 0\n                continue\n"
        "            waiting.append(piece)",
    ),
    Bug(
        "logarithm of zero",
        "return math.log(max(0.5 * (math.erfc(near) - math.erfc(far)), floor))",
        "return math.log(0.5 * (math.erfc(near) - math.erfc(far)))",
    ),
    Bug(
        "weights ignored where pairs are counted",
        "            u = 1 if weights is None else weights[i]\n"
        "            tables[g, first[i], others[g, i]] += u",
        "            tables[g, first[i], others[g, i]] += 1",
    ),
    Bug(
        "the last bin closed above",
        "[bisect_left(e{k}, x)] if",
        "[min(bisect_left(e{k}, x), len(e{k}) - 1)] if",
    ),
)


class Found(NamedTuple):
    """Which check failed in which case, and when."""

    case: str
    check: str
    seconds: float


class GoneError(Exception):
    """The text of a bug is not in the package, or not once."""


@contextmanager
def planted(bug: Bug | None) -> Iterator[Path]:
    """Copy the package, with a bug in it if there is one; compiled kernels as well."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source)
        if bug is not None:
            plant(bug, source)
        yield source


def plant(bug: Bug, source: Path) -> Path:
    """Put a bug into a copy of the package, and return the file that has it."""
    texts = {path: path.read_text(encoding="utf-8") for path in source.rglob("*.py")}
    having = [path for path, text in texts.items() if bug.old in text]
    if len(having) != 1 or texts[having[0]].count(bug.old) != 1:
        raise GoneError(f"not there once: {bug.old!r}")
    changed = texts[having[0]].replace(bug.old, bug.new)
    having[0].write_text(changed, encoding="utf-8")
    return having[0]


def findings(source: Path, seed: int, seconds: float) -> Iterator[Found]:
    """Yield what the default cases find in a copy of the package."""
    command = [sys.executable, str(ROOT / "tools" / "fuzz.py"), "--seed", str(seed)]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    command += ["--minutes", str(seconds / 60)]
    start = time.monotonic()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if match := _LINE.match(line):
                    yield Found(match[1], match[2], time.monotonic() - start)
        finally:
            process.kill()


def look_for(name: str, seed: int) -> int:
    """Look for all bugs, or those with a name, and print which are found."""
    bugs = [bug for bug in BUGS if name in bug.name]
    with planted(None) as source:
        before = {found[:2] for found in findings(source, seed, 3 * MAX_SECONDS)}
    print(f"{len(before)} findings without any bug")
    print(f"{'bug':46}{'found by':34}{'case':12}{'seconds':>8}", flush=True)
    n_found = 0
    for bug in bugs:
        found = _first(bug, seed, before)
        n_found += isinstance(found, Found)
        if isinstance(found, Found):
            cells = f"{found.check:34}{found.case:12}{found.seconds:8.0f}"
        else:
            cells = found
        print(f"{bug.name:46}{cells}", flush=True)
    print(f"{n_found} of {len(bugs)} found")
    return int(n_found < 0.9 * len(bugs))


def _first(bug: Bug, seed: int, before: set[tuple[str, str]]) -> Found | str:
    try:
        with planted(bug) as source:
            for found in findings(source, seed, MAX_SECONDS):
                if found[:2] not in before:
                    return found
    except GoneError as error:
        return str(error)
    return "not found"
