"""Importing is quick: each part is loaded when it is first used."""

import importlib
import pkgutil
import subprocess
import sys

import pytest

import steelyard
import steelyard.displays
from steelyard.classifiers.registry import homes

FRAMES = ["pandas", "polars", "pyarrow", "matplotlib"]
PACKAGES = [
    module.name
    for module in pkgutil.walk_packages(steelyard.__path__, "steelyard.")
    if module.ispkg
]
HEAVY = [*FRAMES, "numba", "rich", "scipy.optimize", "sklearn"]


def loaded_after(code, modules):
    """Run code in a new interpreter and return which of the modules it loaded."""
    report = f"\nimport sys\nprint([m for m in {modules!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code + report],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()[-1]


def test_importing_the_package_loads_nothing_heavy():
    assert loaded_after("import steelyard", HEAVY) == "[]"


def test_version_and_names_are_known_without_loading_anything():
    code = "import steelyard; steelyard.__version__; dir(steelyard)"
    assert loaded_after(code, HEAVY) == "[]"


def test_the_classifier_loads_no_frame_library_that_scikit_learn_does_not():
    # Some releases of scikit-learn load pandas by themselves.
    by_sklearn = loaded_after("import sklearn.base", FRAMES)
    assert loaded_after("from steelyard import NaiveBayes", FRAMES) == by_sklearn


def test_arrays_are_enough_where_no_frame_library_is_installed():
    code = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name in {FRAMES!r}: raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "from steelyard import NaiveBayes\n"
        "X = [['a', 1.0], ['b', None], ['b', 3.0]]\n"
        "assert NaiveBayes().fit(X, [0, 1, 1]).predict(X).tolist() == [0, 1, 1]"
    )
    loaded_after(code, FRAMES)


def test_help_of_the_command_line_loads_nothing_heavy():
    code = (
        "from steelyard.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass"
    )
    assert loaded_after(code, HEAVY) == "[]"


def test_public_names_are_sorted_and_listed_by_dir():
    assert steelyard.__all__ == sorted(steelyard.__all__)
    assert len(set(steelyard.__all__)) == len(steelyard.__all__)
    assert dir(steelyard) == sorted({*homes(), "__version__"})
    assert dir(steelyard.displays) == steelyard.displays.__all__
    # Few enough to read at a glance; all others are found by Tab.
    assert 12 <= len(steelyard.__all__) <= 24
    functions = "compare evaluate load merge method methods read scan"
    assert {*functions.split()} <= {*steelyard.__all__}
    assert set(steelyard.__all__) <= {*homes(), "__version__"}
    assert homes().keys().isdisjoint({"BaseNB", "NBModel", "Counts"})


@pytest.mark.parametrize("name", [*homes(), "__version__"])
def test_every_public_name_can_be_imported(name):
    assert getattr(steelyard, name) is not None


@pytest.mark.parametrize("name", PACKAGES)
def test_every_name_of_a_package_can_be_imported(name):
    package = importlib.import_module(name)
    for public in getattr(package, "__all__", []):
        assert getattr(package, public) is not None


def test_star_import_brings_the_public_names():
    found = {}
    exec("from steelyard import *", found)
    assert set(steelyard.__all__) <= set(found)


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'NaiveBaies'"):
        _ = steelyard.NaiveBaies
    with pytest.raises(ImportError, match="NaiveBaies"):
        exec("from steelyard import NaiveBaies")
