"""What each way out of Python needs: ``python studies/deploy.py``, for docs/export.md.

Prints sizes of the files of one model, of the packages that answering needs, and the
processor time from the start of a program to its first answer. Programs that are not
installed are left out.
"""

from __future__ import annotations

import pickle
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import warnings
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from sklearn.datasets import load_breast_cancer

import steelyard as sy

PACKAGE = Path(sy.__file__).parent

# The best of some starts: the first one fills caches.
N_STARTS = 3


def needed(name: str, found: set[str] | None = None) -> set[str]:
    """Return the names of a package and of those that it needs, without extras."""
    found = set() if found is None else found
    key = re.sub("[-_.]+", "-", name).lower()
    if key in found:
        return found
    try:
        requires = distribution(key).requires or []
    except PackageNotFoundError:
        return found
    found.add(key)
    for line in requires:
        if "extra ==" not in line and "python_version <" not in line:
            needed(re.split(r"[^\w.-]", line)[0], found)
    return found


def size_of(packages: set[str]) -> int:
    """Return the bytes of installed packages."""
    total = 0
    for name in packages - {"steelyard"}:
        files = distribution(name).files or []
        paths = (Path(str(path.locate())) for path in files if ".pyc" not in path.name)
        total += sum(path.stat().st_size for path in paths if path.is_file())
    own = PACKAGE.rglob("*") if "steelyard" in packages else ()
    return total + sum(
        path.stat().st_size
        for path in own
        if path.is_file() and "__pycache__" not in path.parts
    )


def started(command: list[str], folder: str) -> float:
    """Return the processor time of a program, the best of some starts."""
    times = []
    for _ in range(N_STARTS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        times.append(used)
    return min(times)


def in_python(code: str) -> list[str]:
    """Return the command that runs code with the packages of this environment."""
    return [sys.executable, "-c", code]


def ways(clf: Any, row: dict[str, Any], folder: Path) -> list[tuple[str, ...]]:
    """Write the files of a model, and return the lines of the table."""
    first = next(iter(row))
    clf.save(folder / "model.json")
    for ending in ("py", "js", "r", "h", "onnx", "pmml", "xlsx"):
        clf.export(folder / f"model.{ending}")
    clf.export(folder / "model.sql", dialect="duckdb")
    (folder / "scorer.pickle").write_bytes(pickle.dumps(clf.scorer()))
    (folder / "main.c").write_text(
        '#include "model.h"\nint main(void) { model_row r; model_answer a;\n'
        "memset(&r, 0, sizeof r); return model_score(&r, &a) != 0; }\n"
    )
    frame = ", ".join(f"'{name}' = {cell!r}" for name, cell in row.items())
    in_r = f"score(data.frame({frame}, check.names = FALSE))"
    scorer = "import pickle; pickle.load(open('scorer.pickle','rb'))"
    alone = "import runpy; runpy.run_path('model.py')"
    load = f"import steelyard as sy; rows = [{[*row.values()]!r}]; "
    commands: dict[str, tuple[str, list[str], set[str]]] = {
        "model.json": (
            "the package and what it needs",
            in_python(f"{load}sy.load('model.json').predict_proba(rows)"),
            needed("steelyard"),
        ),
        "scorer.pickle": (
            "the package alone",
            in_python(f"{scorer}({row!r})"),
            {"steelyard"},
        ),
        "model.py": (
            "Python",
            [sys.executable, "-I", "-S", "-c", f"{alone}['score']({row!r})"],
            set(),
        ),
        "model.js": (
            "a browser, or Node",
            ["node", "-e", f"require('./model.js').score({{'{first}': 1}})"],
            set(),
        ),
        "model.r": ("R", ["Rscript", "-e", f"source('model.r'); {in_r}"], set()),
        "model.h": ("a compiler of C", [str(folder / "main")], set()),
        "model.onnx": (
            "onnxruntime",
            in_python(
                "import numpy as np, onnxruntime as o;"
                "s = o.InferenceSession('model.onnx');"
                "s.run(None, {i.name: np.ones((1, 1)) for i in s.get_inputs()})"
            ),
            needed("onnxruntime"),
        ),
        "model.sql": ("a database", [], set()),
        "model.pmml": ("Java and JPMML", [], set()),
        "model.xlsx": ("a spreadsheet", [], set()),
    }
    lines: list[tuple[str, ...]] = []
    for name, (needs, command, packages) in commands.items():
        size = f"{(folder / name).stat().st_size / 1000:,.0f}"
        more = f"{size_of(packages) / 1e6:,.1f}" if packages else ""
        if name == "model.h" and shutil.which("cc"):
            compile_it = ["cc", "-O2", "-s", "-o", "main", "main.c", "-lm"]
            subprocess.run(compile_it, cwd=folder, check=True)
            program = (folder / "main").stat().st_size
            needs += f" (the program has {program / 1000:,.0f} kB)"
        is_there = command and (shutil.which(command[0]) or Path(command[0]).exists())
        time = f"{started(command, str(folder)):.2f}" if is_there else ""
        lines.append((f"`{name}`", size, needs, more, time))
    return lines


def main() -> None:
    """Fit a model, and print the table."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = sy.ShrinkageNB().fit(X, y)
    row = {name: float(X[name].iloc[0]) for name in X}
    print("| file | kB | scoring needs | packages, MB | start to answer, s |")
    print("| --- | ---: | --- | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        for line in ways(clf, row, Path(folder)):
            print(f"| {' | '.join(line)} |")


if __name__ == "__main__":
    main()
