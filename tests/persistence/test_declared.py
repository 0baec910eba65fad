"""The table of what classes declare, by which files are read."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import steelyard as sy
from steelyard._common.allowed import ANY
from steelyard.classifiers.registry import classes
from steelyard.persistence.content import (
    PARTS,
    describe_settings,
    estimator_class,
    with_parts,
)
from steelyard.persistence.declarations import TABLE, declaration, read_value
from steelyard.persistence.reader import InvalidContentError

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("declare", ROOT / "tools" / "declare.py")
declare = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(declare)

# What a file may hold in the place of a setting.
VALUES = [
    *(None, True, False, 0, 1, -1, 2, 2**62, 2**63, 2**1000, 10**400, -(10**400)),
    *(0.0, -0.0, 0.5, 1.0, 2.5, -1.5, 1e-300, 1e300),
    *("", "a", "auto", "all", "mdl", "laplace", "log", "attribute", "value", "trees"),
    *("newton", "lbfgs", "fixed", "ridge", "cpu", "cuda", "cuda:1", "cuda:x", "no\n"),
    *("balanced", "smoothed", "frequency", "discriminative", "constant", "elkan"),
    *([], [[]], [None], [0], [1, 2], [0.1, 0.9], [1.0, 2.0, 3.0], ["a", 1], [True]),
    *([[0, 1]], [["a", "b"], [0, 1]], [[[0], [1]]], [[1.0, 1.0, 1.0]], [[0.0, None]]),
    *({}, {"x": 1}, {"number": "inf"}, {"number": "-inf"}, {"number": "nan"}),
    *({"tuple": []}, {"tuple": ["mdl", "linear"]}, {"tuple": [0.0, {"number": "inf"}]}),
    *({"mapping": []}, {"mapping": [["a", 2.0]]}, {"mapping": [[0, "gaussian"]]}),
    *({"mapping": [["a", [0.0, 1.0]]]}, {"mapping": [[None, 0.0]]}, {"mapping": 3}),
    *({"part": "no", "settings": {}}, {"part": "LBFGS", "settings": {}}, {"part": 1}),
]


def parts():
    """Describe every part of the package with its defaults."""
    for name, make in PARTS.items():
        part = make([0.5]) if name == "FixedEdgesDiscretizer" else make()
        yield {"part": name, "settings": describe_settings(part)}


def test_the_table_is_that_of_the_classes():
    found = declare.text_of(declare.declared())
    assert TABLE.read_text("utf-8") == found, "run python tools/declare.py"


@pytest.mark.parametrize("name", [*classes(), *PARTS])
def test_table_and_class_allow_the_same_values(name):
    cls = PARTS.get(name) or estimator_class(name)
    checks = declaration(name).settings
    assert list(checks) == list(cls._settings)
    n_allowed = 0
    for described in [*VALUES, *parts()]:
        try:
            value = read_value(described)
        except InvalidContentError:
            continue
        made = with_parts(value)
        for setting, check in checks.items():
            expected = (cls._settings[setting].allowed or ANY).accepts(made)
            assert check.accepts(value) == expected, (setting, described)
            n_allowed += expected
    assert n_allowed or not checks


def test_reading_a_file_loads_no_library_but_numpy(tmp_path):
    X = [["a", 1.0], ["b", 2.5], ["a", 0.5], ["b", None]] * 6
    sy.ShrinkageNB().fit(X, [0, 1] * 12).save(tmp_path / "model.json")
    code = (
        "import sys\n"
        "from steelyard.persistence import read\n"
        "print(read('model.json').estimator)\n"
        "print([m for m in sys.modules if m.partition('.')[0] in {'sklearn', 'scipy',"
        " 'numba', 'narwhals', 'pandas', 'pyarrow', 'joblib'}])"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.split() == ["ShrinkageNB", "[]"], done.stderr
