"""What ``docs/add_a_method.md`` says can be done, in a copy of the library."""

import os
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs/add_a_method.md").read_text(encoding="utf-8")

FILTER = """
import numpy as np
import steelyard as sy
from sklearn.datasets import load_iris

X, y = load_iris(return_X_y=True)
clf = sy.method("cvnb").fit(X, y)
assert type(clf) is sy.CramerWeightedNB and "CVNB" in repr(sy.methods())
assert ((clf.attribute_weights_ > 0) & (clf.attribute_weights_ <= 1)).all()
clf.save("cvnb.json")
again = sy.load("cvnb.json")
assert (again.predict_proba(X) == clf.predict_proba(X)).all()
"""

LOSS = """
import numpy as np
import steelyard as sy
from sklearn.datasets import load_iris
from steelyard.fitting.problem import build_problem
from steelyard.losses import LOSSES

class Plain(LOSSES["squared-hinge"]):
    kernel = None

X, y = load_iris(return_X_y=True)
for rows in (slice(None), slice(0, 100)):
    values = []
    for loss in ("squared-hinge", Plain()):
        recipe = sy.WeightedNB(loss=loss, weighting="class-attribute")._recipe()
        problem = build_problem(recipe, recipe.encode(X[rows], y[rows]))
        assert (problem.objective.loss.compiled is None) == (type(loss) is Plain)
        values.append(problem.objective(np.full(problem.size, 0.7)))
    clf = sy.WeightedNB(
        loss="squared-hinge", weighting="class-attribute", device="cuda"
    )
    recipe = clf._recipe()
    problem = build_problem(recipe, recipe.encode(X[rows], y[rows]))
    values.append(problem.objective(np.full(problem.size, 0.7)))
    expected, slope = values[1]
    for value, gradient in values:
        assert np.isclose(value, expected) and np.allclose(gradient, slope)
clf = sy.WeightedNB(loss="squared-hinge", max_iter=20).fit(X[::3], y[::3])
clf.save("hinge.json")
assert sy.load("hinge.json").loss == "squared-hinge"
"""


# What a method or a loss has to pass, besides its own test.
TESTS = {
    "A filter, into the library": ["tests/weighting", "-k", "cvnb or CVNB"],
    "A compiled loss, into the library": [
        "tests/fitting",
        "tests/losses",
        "-k",
        "hinge",
    ],
}


def section(title):
    return re.split(r"^## ", PAGE.split(f"## {title}\n", 1)[1], flags=re.M)[0]


def steps(title):
    """Yield the file that each code block of a section is for, and the block."""
    name = None
    pattern = r"`(src/steelyard/[\w/.]+)`|^```(\w+)\n(.*?)^```"
    for match in re.finditer(pattern, section(title), flags=re.M | re.S):
        name = match[1] or name
        if match[2]:
            yield name, match[2], match[3]


def patched(text, diff):
    """Apply a piece of a unified diff, which has no line numbers."""
    lines = diff.splitlines()
    before = "\n".join(line[1:] for line in lines if line[:1] != "+")
    after = "\n".join(line[1:] for line in lines if line[:1] != "-")
    assert text.count(before) == 1, f"stale context:\n{before}"
    return text.replace(before, after)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("title", "script", "files"),
    [
        ("A filter, into the library", FILTER, 3),
        ("A compiled loss, into the library", LOSS, 2),
    ],
)
def test_the_page_adds_what_it_says_in_as_many_files_as_it_says(
    title, script, files, tmp_path
):
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=ignored)
    touched = set()
    for name, language, block in steps(title):
        path = tmp_path / name
        text = path.read_text("utf-8") if path.exists() else ""
        new = patched(text, block) if language == "diff" else text + "\n" + block
        path.write_text(new.lstrip("\n"), "utf-8")
        touched.add(name)
    # Beside them: the page of methods or parts, a test, and the changelog.
    assert len(touched) == files
    # Uncompiled: compiling a copy of the kernels would take most of a minute.
    copied = {
        **os.environ,
        "PYTHONPATH": str(tmp_path / "src"),
        "NUMBA_DISABLE_JIT": "1",
        "NUMBA_ENABLE_CUDASIM": "1",
    }
    run = partial(subprocess.run, env=copied, capture_output=True, text=True)
    # What `make format` does, as the page says.
    done = run([sys.executable, str(ROOT / "tools" / "declare.py")], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    command = [sys.executable, "-W", "ignore", "-c", script]
    done = run(command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = run([*command, *TESTS[title]], cwd=ROOT)
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout
