"""Type checkers see every setting of every public class, and its type."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import steelyard as sy
from steelyard.classifiers.registry import homes
from steelyard.persistence.content import PARTS

pytest.importorskip("mypy")

ROOT = Path(__file__).resolve().parents[2]


def call(name, settings):
    """Write a call with every setting at its default."""
    given = ", ".join(
        f"{setting}={[1.0] if setting == 'edges' else entry.default!r}"
        for setting, entry in settings.items()
    )
    return f"{name}({given})"


def check(code, tmp_path):
    """Return what mypy says of some code that uses the package."""
    (tmp_path / "code.py").write_text(code, "utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml"]
    done = subprocess.run(
        [*command, tmp_path / "code.py"], cwd=ROOT, capture_output=True, text=True
    )
    return done.stdout


@pytest.mark.slow
def test_mypy_accepts_every_documented_setting_of_every_public_class(tmp_path):
    lines = ["import steelyard as sy"]
    for name in sorted(homes()):
        thing = getattr(sy, name)
        if hasattr(thing, "_settings"):
            lines.append(call(f"sy.{name}", thing._settings))
    for name, part in PARTS.items():
        package = ".".join(part.__module__.split(".")[:2])
        module = part.__module__ if package == "steelyard.table" else package
        lines.append(f"from {module} import {name}")
        lines.append(call(name, part._settings))
    assert len(lines) > 60
    assert "Success" in check("\n".join(lines) + "\n", tmp_path)


@pytest.mark.slow
def test_mypy_refuses_a_setting_of_a_wrong_type(tmp_path):
    code = "import steelyard as sy\nsy.RegularizedNB(max_iter='many')\n"
    assert 'expected "int"' in check(code, tmp_path)


@pytest.mark.parametrize(
    "name", ["drift", "edited", "explain_local", "export", "save", "scorecard", "page"]
)
def test_methods_of_other_folders_have_their_signature_and_docstring(name):
    method = getattr(sy.NaiveBayes, name)
    clf, *_ = inspect.signature(method).parameters
    assert clf in ("clf", "estimator")
    assert "Parameters\n----------" in inspect.getdoc(method)
    bound = getattr(sy.NaiveBayes(), name)
    assert bound.__self__.__class__ is sy.NaiveBayes and bound.__doc__ == method.__doc__
