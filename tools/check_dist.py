"""Install each built distribution in a fresh environment and try it.

Usage: python tools/check_dist.py dist
"""

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

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


def check(artefact: Path) -> None:
    """Install one artefact, then fit and predict from outside the repository."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "venv"
        venv.create(home, with_pip=True)
        python = str(
            home / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        )
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, str(artefact.resolve())], check=True)
        trial = TRIAL.format(version=version_of(artefact))
        subprocess.run([python, "-c", trial], check=True, cwd=folder)
    print(f"{artefact.name}: installs, imports, fits and predicts")


def main(folder: str) -> int:
    """Check the one wheel and the one sdist in `folder`."""
    artefacts = [*Path(folder).glob("*.whl"), *Path(folder).glob("*.tar.gz")]
    if len(artefacts) != 2:
        names = ", ".join(path.name for path in artefacts) or "nothing"
        print(f"Expected one wheel and one sdist in {folder}, found {names}.")
        return 1
    for artefact in artefacts:
        check(artefact)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
