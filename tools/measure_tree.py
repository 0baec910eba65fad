"""Measure the source tree: ``python tools/measure_tree.py``.

Prints how large it is and where, which names it uses twice, which files of the package
a plain fit on iris enters, how many classes stand above ``WeightedNB``, how many
exceptions the import contract has, and in which folders there is code for a GPU.
"""

from __future__ import annotations

import ast
import os
import re
import sys
import tomllib
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "steelyard"
FITS = ("NaiveBayes", "WeightedNB", "ShrinkageNB")

# What a file for a GPU imports, and what one is called.
_GPU_IMPORT = re.compile(r"(numba\.cuda|cupy|torch|steelyard\.kernels\.cuda)(\.|$)")
_GPU_NAME = re.compile(r"cuda|device")


def source_files() -> list[Path]:
    """Return all Python files of the package."""
    return sorted(SOURCE.rglob("*.py"))


def n_lines(files: Iterable[Path]) -> int:
    """Count the lines of files."""
    return sum(len(path.read_text("utf-8").splitlines()) for path in files)


def n_docstring_lines(path: Path) -> int:
    """Count the lines of docstrings of a file."""
    with_docstrings = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = ast.walk(ast.parse(path.read_text("utf-8")))
    texts: list[Any] = [
        node.body[0]
        for node in nodes
        if isinstance(node, with_docstrings) and ast.get_docstring(node) is not None
    ]
    return sum(text.end_lineno - text.lineno + 1 for text in texts)


def by_folder(files: Iterable[Path]) -> list[str]:
    """Return each folder with its lines, and those of docstrings, largest first."""
    groups: dict[str, list[Path]] = {}
    for path in files:
        groups.setdefault(path.relative_to(SOURCE).parts[0], []).append(path)
    sizes = {name: n_lines(paths) for name, paths in groups.items()}
    return [
        f"{name} {sizes[name]:,} ({sum(map(n_docstring_lines, groups[name])):,})"
        for name in sorted(groups, key=lambda name: -sizes[name])
    ]


def class_names(files: Iterable[Path]) -> Counter[str]:
    """Count the definitions of each name of a class."""
    return Counter(
        node.name
        for path in files
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef)
    )


def file_names(files: Iterable[Path]) -> Counter[str]:
    """Count the files of each name, ``__init__`` apart."""
    return Counter(path.name for path in files if path.name != "__init__.py")


def twice(names: Counter[str]) -> list[str]:
    """Return names that are used more than once."""
    return sorted(name for name, n in names.items() if n > 1)


def entered(work: Callable[[], object]) -> set[str]:
    """Return the files of the package that a second call enters, kernels among them."""
    files: set[str] = set()
    work()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            files.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    found = (Path(name) for name in files)
    return {str(p.relative_to(SOURCE)) for p in found if p.is_relative_to(SOURCE)}


def entered_by_fit(name: str) -> set[str]:
    """Return the files that a fit with default settings enters: an array in memory.

    Numba has to be disabled, so that kernels are entered as other files are.
    """
    from sklearn.datasets import load_iris

    import steelyard

    X, y = load_iris(return_X_y=True)
    clf = getattr(steelyard, name)()
    with warnings.catch_warnings(action="ignore"):
        return entered(lambda: clf.fit(X, y))


def own_ancestors(name: str) -> list[str]:
    """Return the classes of the package in the order of a class's methods."""
    import steelyard

    mro = getattr(steelyard, name).__mro__
    return [cls.__name__ for cls in mro if cls.__module__.startswith("steelyard")]


def import_exceptions() -> list[str]:
    """Return imports that go up although the contract says down."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    return [
        entry for contract in contracts for entry in contract.get("ignore_imports", [])
    ]


def gpu_folders(files: Iterable[Path]) -> list[str]:
    """Return folders with code for a GPU.

    That is a file whose name says "cuda" or "device", or one that imports
    ``numba.cuda``, CuPy, PyTorch or ``kernels.cuda``, wherever in the file that is.
    """
    found = {path.parent for path in files if _is_for_gpu(path)}
    return sorted(str(folder.relative_to(SOURCE)) for folder in found)


def _is_for_gpu(path: Path) -> bool:
    if _GPU_NAME.search(path.stem):
        return True
    tree = ast.parse(path.read_text("utf-8"))
    return any(_GPU_IMPORT.match(name) for name in _imported(tree))


def _imported(tree: ast.AST) -> Iterable[str]:
    """Yield what a module imports, by a statement or by ``import_module``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and node.args:
            name, first = ast.unparse(node.func), node.args[0]
            if name.endswith("import_module") and isinstance(first, ast.Constant):
                yield str(first.value)


def measured() -> dict[str, tuple[int, str]]:
    """Return a number for each line of the table, and what it counts."""
    files = source_files()
    table = {
        "lines of Python under src": (n_lines(files), ""),
        "of them docstrings": (sum(map(n_docstring_lines, files)), ""),
        "source files": (len(files), ""),
        "folders, lines (docstrings)": _listed(by_folder(files), "; "),
        "files of more than 400 lines": _listed(
            [str(p.relative_to(SOURCE)) for p in files if n_lines([p]) > 400]
        ),
        "class names used twice": _listed(twice(class_names(files))),
        "file names used twice": _listed(twice(file_names(files))),
    }
    for name in FITS:
        table[f"files entered by {name}().fit"] = (len(entered_by_fit(name)), "")
    table["own ancestors of WeightedNB"] = _listed(own_ancestors("WeightedNB"))
    table["exceptions in the import contract"] = _listed(import_exceptions(), "; ")
    table["folders with GPU code"] = _listed(gpu_folders(files))
    return table


def _listed(entries: list[str], separator: str = " ") -> tuple[int, str]:
    return len(entries), separator.join(entries)


def main() -> int:
    """Print the table."""
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    for name, (number, what) in measured().items():
        print(f"{name:<36}{number:>8,}  {what}".rstrip())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
