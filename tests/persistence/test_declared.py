"""The table of what classes declare, which stands for them where none is loaded."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import steelyard as sy
from steelyard._common.allowed import DescribedPart
from steelyard.persistence.content import CLASSES, describe_settings
from steelyard.persistence.declarations import TABLE, declared_table, read_settings
from steelyard.persistence.reader import InvalidContentError, ObjectReader

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
    for name in CLASSES.parts:
        make = CLASSES.declaration(name).make
        part = make([0.5]) if name == "FixedEdgesDiscretizer" else make()
        yield {"part": name, "settings": describe_settings(part)}


def test_the_table_is_that_of_the_classes():
    found = declare.text_of(declare.declared())
    assert TABLE.read_text("utf-8") == found, "run python tools/declare.py"


@pytest.mark.parametrize("name", [*CLASSES.estimators, *CLASSES.parts])
def test_classes_and_table_declare_the_same(name):
    table, own = declared_table().declaration(name), CLASSES.declaration(name)
    assert (table.kinds, table.models) == (own.kinds, own.models)
    assert list(table.attributes.items()) == list(own.attributes.items())
    assert list(table.settings) == list(own.settings)
    values = [*VALUES, *parts()]
    for setting in own.settings:
        in_table, in_class = (
            replace(of, settings={setting: of.settings[setting]}) for of in (table, own)
        )
        for value in values:
            expected = _verdict(in_class, CLASSES, setting, value)
            found = _verdict(in_table, declared_table(), setting, value)
            assert found == expected, (setting, value)


def _verdict(declaration, catalogue, setting, value):
    """Read one setting alone, and say what is wrong with it."""
    reader = ObjectReader({setting: value}, "content")
    try:
        return _described(read_settings(reader, declaration, catalogue)[setting])
    except InvalidContentError as error:
        return str(error)


def _described(value):
    """Name parts, built or described, by their classes."""
    if isinstance(value, DescribedPart):
        return value.name, {key: _described(v) for key, v in value.settings.items()}
    if hasattr(value, "get_params"):
        settings = value.get_params(deep=False)
        return type(value).__name__, {key: _described(v) for key, v in settings.items()}
    if isinstance(value, (list, tuple)):
        return [_described(item) for item in value]
    return value if not isinstance(value, np.generic) else value.item()


def test_a_whole_file_is_checked_with_the_standard_library_alone(tmp_path):
    X = [["a", 1.0], ["b", 2.5], ["a", 0.5], ["b", None]] * 6
    sy.ShrinkageNB().fit(X, [0, 1] * 12).save(tmp_path / "model.json")
    code = (
        "import sys\n"
        "from steelyard.persistence import read\n"
        "print(read('model.json').estimator)\n"
        "print([m for m in sys.modules if m.partition('.')[0] in {'numpy', 'sklearn',"
        " 'scipy', 'numba', 'narwhals', 'pandas', 'pyarrow', 'joblib'}])"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.split() == ["ShrinkageNB", "[]"], done.stderr
