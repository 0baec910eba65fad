"""Change the code of the heart a little, many times, and see whether a test notices.

Each change is made in a copy of the repository, never in place, and the tests of its
module are run until one fails. A change that no test notices is a test that is missing,
or makes no difference: those of the second kind are listed with the reason in
``equivalent_mutants.json``, by the line that they change.

    python tools/mutate.py --seed 0 --number 100
    python tools/mutate.py --seed 0 --only 17
"""

from __future__ import annotations

import argparse
import ast
import difflib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "src/steelyard"
EQUIVALENT = ROOT / "tools" / "equivalent_mutants.json"

# Modules, or folders of them, below the package, and the tests that are to notice:
# quick ones first. Kernels run as plain Python, which they all can: to compile a
# changed one takes longer than its tests.
PLAIN = "-m plain"
TARGETS: dict[str, str] = {
    "kernels/scoring": f"{PLAIN} tests/kernels/test_loops.py "
    "tests/kernels/test_kernels.py tests/model tests/classifiers/test_naive_bayes.py",
    "kernels/fitting": f"{PLAIN} tests/kernels/test_loops.py "
    "tests/kernels/test_kernels.py tests/solvers/test_quadratic.py "
    "tests/fitting/test_weather_weights.py",
    "persistence/reader": "tests/persistence/test_reader.py "
    "tests/persistence/test_large_arrays.py",
    "export/sql": "tests/export/test_sql.py --deselect tests/export/test_sql.py::"
    "test_a_hundred_thousand_values tests/export/test_random_models.py",
    "table/encoder": "tests/table/test_encoder.py tests/table/test_bad_input.py "
    "tests/table/test_interactions.py tests/table/test_take.py "
    "tests/classifiers/test_naive_bayes.py tests/classifiers/test_chunks.py",
}
MAX_SECONDS = 240

_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,  # codespell:ignore
    ast.NotIn: ast.In,  # codespell:ignore
}
_COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Add,
}


@dataclass(frozen=True)
class Mutant:
    """A change of a module: the lines before and after, and the whole of it."""

    target: str
    path: str
    line: int
    kind: str
    before: str
    after: str
    source: str

    @property
    def title(self) -> str:
        """Where it is, and what it does."""
        name = self.path.removeprefix(f"{PACKAGE}/")
        return f"{name}:{self.line} {self.kind}: {self.before} -> {self.after}"


# ------------------------------------------------------------------------------ changes

Change = tuple[str, Callable[[], Callable[[], None]]]
"""What kind of change it is, and what makes it; that returns what undoes it."""


def _swap(node: ast.AST, name: str, value: object) -> Callable[[], Callable[[], None]]:
    def make() -> Callable[[], None]:
        old = getattr(node, name)
        setattr(node, name, value)
        return lambda: setattr(node, name, old)

    return make


def changes(tree: ast.Module) -> Iterator[tuple[int, Change]]:
    """Yield all changes of a module, with their lines, in the order of the code."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        for statement in function.body:
            if not _is_docstring(statement):
                for node in ast.walk(statement):
                    for change in _of(node):
                        yield getattr(node, "lineno", statement.lineno), change


def _of(node: ast.AST) -> Iterator[Change]:
    """Yield the changes of one node."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARED:
        ops = [_COMPARED[type(node.ops[0])](), *node.ops[1:]]
        yield "comparison", _swap(node, "ops", ops)
    if isinstance(node, (ast.BinOp, ast.AugAssign)) and type(node.op) in _COMPUTED:
        yield "operator", _swap(node, "op", _COMPUTED[type(node.op)]())
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield "constant", _swap(node, "value", not node.value)
        elif isinstance(node.value, (int, float)):
            yield "constant", _swap(node, "value", node.value + 1)
    if isinstance(node, ast.BoolOp):
        is_and = isinstance(node.op, ast.And)
        yield "and, or", _swap(node, "op", ast.Or() if is_and else ast.And())
    if isinstance(node, (ast.If, ast.IfExp, ast.While)):
        negated = ast.UnaryOp(ast.Not(), node.test)
        yield "negated condition", _swap(node, "test", negated)
    if isinstance(node, ast.Call):
        for k, keyword in enumerate(node.keywords):
            if keyword.arg is not None:
                rest = node.keywords[:k] + node.keywords[k + 1 :]
                yield "dropped keyword", _swap(node, "keywords", rest)
    for name in ("body", "orelse"):
        block = getattr(node, name, None)
        if isinstance(block, list):
            for k, statement in enumerate(block):
                if isinstance(statement, (ast.Expr, ast.AugAssign, ast.Raise)):
                    without = [*block[:k], ast.Pass(), *block[k + 1 :]]
                    if not _is_docstring(statement):
                        yield "removed statement", _swap(node, name, without)


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def mutants_of(target: str) -> list[Mutant]:
    """Return all changes of a module or of the modules of a folder."""
    base = ROOT / PACKAGE / target
    paths = sorted(base.rglob("*.py")) if base.is_dir() else [base.with_suffix(".py")]
    return [mutant for path in paths for mutant in _mutants(target, path)]


def _mutants(target: str, path: Path) -> Iterator[Mutant]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    plain = ast.unparse(tree)
    seen = set()
    for line, (kind, make) in changes(tree):
        undo = make()
        source = ast.unparse(ast.fix_missing_locations(tree))
        undo()
        if source == plain or source in seen:
            continue
        seen.add(source)
        before, after = _difference(plain, source)
        name = path.relative_to(ROOT).as_posix()
        yield Mutant(target, name, line, kind, before, after, source)


def _difference(plain: str, source: str) -> tuple[str, str]:
    lines = list(difflib.unified_diff(plain.split("\n"), source.split("\n"), n=0))[3:]
    before = " ".join(line[1:].strip() for line in lines if line.startswith("-"))
    after = " ".join(line[1:].strip() for line in lines if line.startswith("+"))
    return before, after


def choose(number: int, seed: int) -> list[Mutant]:
    """Return some changes, as many of each target as can be."""
    rng = random.Random(seed)
    by_target = []
    for target in TARGETS:
        found = mutants_of(target)
        by_target.append(rng.sample(found, len(found)))
    turns = [m for group in _zip_longest(by_target) for m in group]
    return turns[:number]


def _zip_longest(lists: list[list[Mutant]]) -> Iterator[list[Mutant]]:
    for k in range(max(map(len, lists))):
        yield [items[k] for items in lists if k < len(items)]


# -------------------------------------------------------------------------------- tests


@contextmanager
def copy_of_tree() -> Iterator[Path]:
    """Copy what tests need, compiled kernels as well, with the times of files."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "tree"
        skipped = shutil.ignore_patterns(".git", ".venv*", "build", "dist", ".*_cache")
        shutil.copytree(ROOT, copy, ignore=skipped, symlinks=True)
        yield copy


def outcome_of(mutant: Mutant, copy: Path) -> str:
    """Run the tests of a change: killed, survived or timeout."""
    path = copy / mutant.path
    plain, status = path.read_bytes(), path.stat()
    try:
        path.write_text(mutant.source, encoding="utf-8")
        return run_tests(TARGETS[mutant.target], copy)
    finally:
        # With its time: kernels that were compiled from it are as good as before.
        path.write_bytes(plain)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def run_tests(tests: str, copy: Path) -> str:
    """Run tests until one fails."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    command += tests.split()
    environment = {**os.environ, "PYTHONPATH": str(copy / "src")}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    if tests.startswith(PLAIN):
        environment["NUMBA_DISABLE_JIT"] = "1"
    try:
        done = subprocess.run(
            command,
            cwd=copy,
            env=environment,
            capture_output=True,
            timeout=MAX_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return "timeout"
    # A broken interpreter is noticed; tests that are not there notice nothing.
    if done.returncode in (4, 5):
        raise RuntimeError(done.stdout.decode()[-2000:] + done.stderr.decode()[-2000:])
    return "survived" if done.returncode == 0 else "killed"


def equivalents() -> dict[str, str]:
    """Return the changes that make no difference, and why."""
    if not EQUIVALENT.exists():
        return {}
    known: dict[str, str] = json.loads(EQUIVALENT.read_text(encoding="utf-8"))
    return known


def key_of(mutant: Mutant) -> str:
    """Name a change without its line, which moves."""
    return f"{Path(mutant.path).name}: {mutant.before} -> {mutant.after}"


def main(argv: Sequence[str] | None = None) -> int:
    """Try changes; 1 where fewer than 95 of 100 that matter are noticed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--number", type=int, default=100)
    parser.add_argument("--only", type=int, nargs="+", help="some, by their numbers")
    parser.add_argument("--list", action="store_true", help="show them alone")
    arguments = parser.parse_args(argv)
    chosen = list(enumerate(choose(arguments.number, arguments.seed)))
    if arguments.only is not None:
        chosen = [chosen[k] for k in arguments.only]
    if arguments.list:
        for k, mutant in chosen:
            print(f"{k:4} {mutant.title}")
        return 0
    known, outcomes = equivalents(), Counter[str]()
    is_checked = arguments.only is None
    with copy_of_tree() as copy:
        for target in dict.fromkeys(mutant.target for _, mutant in chosen):
            if is_checked and run_tests(TARGETS[target], copy) != "survived":
                print(f"The tests of {target} fail as it is.")
                return 2
        for k, mutant in chosen:
            start = time.monotonic()
            outcome = outcome_of(mutant, copy)
            if outcome == "survived" and key_of(mutant) in known:
                outcome = "equivalent"
            outcomes[outcome] += 1
            seconds = time.monotonic() - start
            print(f"{k:4} {outcome:10} {seconds:4.0f} s  {mutant.title}", flush=True)
    return _summary(outcomes)


def _summary(outcomes: Counter[str]) -> int:
    noticed = outcomes["killed"] + outcomes["timeout"]
    rate = noticed / max(noticed + outcomes["survived"], 1)
    print(", ".join(f"{n} {outcome}" for outcome, n in outcomes.most_common()))
    print(f"{rate:.1%} of those that are not equivalent were noticed")
    return int(rate < 0.95)


if __name__ == "__main__":
    sys.exit(main())
