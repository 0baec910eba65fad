"""Look into each built distribution, install it in a fresh environment and try it.

Usage: python tools/check_dist.py dist [TESTS ...]

With paths of tests, those are also run from the unpacked sdist, against the wheel.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# Bytes, 1.25 MiB. A wheel holds source and tables alone.
LARGEST_WHEEL = 5 << 18

# Where a wheel has files that are not below src.
MOVED = {
    "reproduction/": "steelyard/lab/papers/reproduction/",
    "docs/methods.md": "steelyard/classifiers/methods.md",
    "docs/references.bib": "steelyard/classifiers/references.bib",
}

TRIAL = """
import numpy as np
import steelyard

assert steelyard.__version__ == {version!r}, steelyard.__version__
X = np.array([["a", "x"], ["a", "y"], ["b", "x"], ["b", "y"]] * 5, dtype=object)
y = np.array([0, 0, 1, 1] * 5)
assert (steelyard.NaiveBayes().fit(X, y).predict(X) == y).all()
"""


def version_of(artefact: Path) -> str:
    """Return the version in the name of a wheel or an sdist."""
    return artefact.name.removesuffix(".tar.gz").split("-")[1]


def files_in(artefact: Path) -> set[str]:
    """Return the paths of files in a wheel, or in an sdist below its one folder."""
    if artefact.suffix == ".whl":
        with zipfile.ZipFile(artefact) as wheel:
            return set(wheel.namelist())
    with tarfile.open(artefact) as sdist:
        return {m.name.partition("/")[2] for m in sdist.getmembers() if m.isfile()}


def tracked_files() -> set[str]:
    """Return the files that git tracks."""
    command = ["git", "-c", "core.quotePath=off", "ls-files"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return set(done.stdout.splitlines())


def faults_of_wheel(files: set[str], size: int, tracked: Iterable[str]) -> list[str]:
    """Return what is wrong with a wheel: the package, all of it, and nothing else."""
    below = {name.removeprefix("src/") for name in tracked if name.startswith("src/")}
    for start, place in MOVED.items():
        moved = (name for name in tracked if name.startswith(start))
        below |= {place + name.removeprefix(start) for name in moved}
    stray = {name for name in files - below if ".dist-info/" not in name}
    faults = [f"lacks {name}" for name in sorted(below - files)]
    faults += [f"has {name}, which is not of the package" for name in sorted(stray)]
    if size > LARGEST_WHEEL:
        faults.append(f"has {size:,} bytes, more than {LARGEST_WHEEL:,}")
    return faults


def faults_of_sdist(files: set[str], tracked: set[str]) -> list[str]:
    """Return what is wrong with an sdist: all that git tracks, and nothing else."""
    stray = files - tracked - {"PKG-INFO"}
    return [f"lacks {name}" for name in sorted(tracked - files)] + [
        f"has {name}, which git does not track" for name in sorted(stray)
    ]


def faults(artefact: Path) -> list[str]:
    """Return what is wrong with the files of a wheel or an sdist."""
    files, tracked = files_in(artefact), tracked_files()
    if artefact.suffix == ".whl":
        return faults_of_wheel(files, artefact.stat().st_size, tracked)
    return faults_of_sdist(files, tracked)


def fresh(folder: Path) -> str:
    """Make an environment with a pip that knows groups, and return its Python."""
    venv.create(folder, with_pip=True)
    python = str(folder / ("Scripts" if sys.platform == "win32" else "bin") / "python")
    install(python, "pip>=25.1")
    return python


def install(python: str, *what: str) -> None:
    """Install with pip."""
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *what], check=True)


def try_out(artefact: Path) -> None:
    """Install one artefact, then fit and predict from outside the repository."""
    with tempfile.TemporaryDirectory() as folder:
        python = fresh(Path(folder) / "venv")
        install(python, str(artefact.resolve()))
        trial = TRIAL.format(version=version_of(artefact))
        subprocess.run([python, "-c", trial], check=True, cwd=folder)
    print(f"{artefact.name}: is whole, installs, imports, fits and predicts")


def run_tests(wheel: Path, sdist: Path, tests: Sequence[str]) -> None:
    """Collect all tests of the unpacked sdist, and run some, with the wheel's code."""
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(sdist) as archive:
            archive.extractall(folder, filter="data")
        (root,) = Path(folder).iterdir()
        python = fresh(Path(folder) / "venv")
        group = ["--group", f"{root / 'pyproject.toml'}:test"]
        install(python, f"{wheel.resolve()}[all,dask]", *group)
        pytest = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        subprocess.run(
            [*pytest, "--collect-only", "-qq", "tests"], check=True, cwd=root
        )
        subprocess.run([*pytest, *tests], check=True, cwd=root)
    print(f"{sdist.name}: its tests pass: {', '.join(tests)}")


def main(folder: str, *tests: str) -> int:
    """Check the one wheel and the one sdist in `folder`."""
    artefacts = [*Path(folder).glob("*.whl"), *Path(folder).glob("*.tar.gz")]
    if len(artefacts) != 2:
        names = ", ".join(path.name for path in artefacts) or "nothing"
        print(f"Expected one wheel and one sdist in {folder}, found {names}.")
        return 1
    problems = [f"{a.name} {fault}" for a in artefacts for fault in faults(a)]
    if problems:
        print(*problems, sep="\n")
        return 1
    for artefact in artefacts:
        try_out(artefact)
    if tests:
        wheel, sdist = artefacts
        run_tests(wheel, sdist, tests)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
