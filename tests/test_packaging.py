"""What is published is whole, and what is written twice is the same."""

import re
import runpy
import tarfile
import tomllib
import zipfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import steelyard

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
TRACKED = {"conftest.py", "src/steelyard/__init__.py", "src/steelyard/py.typed"}
WHEEL = {name.removeprefix("src/") for name in TRACKED if "src/" in name}


def parsed(name):
    return yaml.safe_load((ROOT / name).read_text("utf-8"))


@pytest.fixture(scope="module")
def check_dist():
    return runpy.run_path(str(ROOT / "tools/check_dist.py"))


def names(requirements):
    return {Requirement(text).name for text in requirements if isinstance(text, str)}


def test_no_tool_of_developers_is_published_as_an_extra():
    extras = PROJECT["project"]["optional-dependencies"]
    groups = PROJECT["dependency-groups"]
    tools = set().union(*(names(groups[group]) for group in ("test", "lint", "dist")))
    assert names(r for of in extras.values() for r in of) & tools == set()
    assert names(PROJECT["project"]["dependencies"]) & tools == set()


def test_the_makefile_installs_groups_and_extras_that_exist():
    text = (ROOT / "Makefile").read_text("utf-8")
    extras = re.findall(r"^EXTRAS_\w+ := (\S+)", text, re.M)
    groups = re.findall(r"^GROUPS_\w+ := (\S+)", text, re.M)
    known = PROJECT["project"]["optional-dependencies"]
    assert {name for of in extras for name in of.split(",")} <= known.keys()
    assert set(groups) <= PROJECT["dependency-groups"].keys() and "dev" in groups


def test_citation_and_recipe_have_the_version():
    assert str(parsed("CITATION.cff")["version"]) == steelyard.__version__
    assert parsed("recipe/recipe.yaml")["context"]["version"] == steelyard.__version__


def test_the_recipe_asks_for_what_the_package_asks_for():
    asked = parsed("recipe/recipe.yaml")["requirements"]["run"]
    extras = PROJECT["project"]["optional-dependencies"]
    own = PROJECT["project"]["dependencies"] + extras["cli"] + extras["scale"]
    own = [text.replace(">=", " >=") for text in own if "steelyard" not in text]
    python = PROJECT["project"]["requires-python"]
    assert sorted(asked) == sorted([f"python {python}", *own])


def test_the_classifiers_begin_with_the_lowest_python():
    form = r"Programming Language :: Python :: (3\.\d+)"
    found = [re.fullmatch(form, text) for text in PROJECT["project"]["classifiers"]]
    lowest = next(match[1] for match in found if match)
    assert PROJECT["project"]["requires-python"] == f">={lowest}"


def test_actions_are_pinned_and_nothing_is_allowed_by_default():
    files = sorted((ROOT / ".github/workflows").glob("*.yml"))
    assert len(files) >= 5
    for path in files:
        text = path.read_text("utf-8")
        assert yaml.safe_load(text)["permissions"] == {}
        for used in re.findall(r"uses: (.*)", text):
            assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v[\d.]+", used), used


@pytest.mark.parametrize("missing", sorted(TRACKED))
def test_an_sdist_that_lacks_a_file_is_refused(missing, tmp_path, check_dist):
    path = tmp_path / "steelyard-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as sdist:
        for name in TRACKED - {missing} | {"PKG-INFO", "notes.txt"}:
            (tmp_path / "file").write_text(name)
            sdist.add(tmp_path / "file", f"steelyard-1.0/{name}")
    found = check_dist["faults_of_sdist"](check_dist["files_in"](path), TRACKED)
    assert found == [f"lacks {missing}", "has notes.txt, which git does not track"]


def test_a_wheel_without_types_with_tests_or_too_large_is_refused(tmp_path, check_dist):
    path = tmp_path / "steelyard-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for name in ["steelyard/__init__.py", "conftest.py", "a.dist-info/METADATA"]:
            wheel.writestr(name, name)
    files = check_dist["files_in"](path)
    assert check_dist["faults_of_wheel"](files, 10**7, TRACKED) == [
        "lacks steelyard/py.typed",
        "has conftest.py, which is not of the package",
        "has 10,000,000 bytes, more than 1,310,720",
    ]
    assert check_dist["faults_of_wheel"](WHEEL, 1000, TRACKED) == []
    moved = {"reproduction/printed/rnb_table3.csv", "docs/methods.md", "docs/gpu.md"}
    assert check_dist["faults_of_wheel"](WHEEL, 1000, TRACKED | moved) == [
        "lacks steelyard/classifiers/methods.md",
        "lacks steelyard/lab/papers/reproduction/printed/rnb_table3.csv",
    ]
    targets = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert check_dist["MOVED"] == {
        key + "/" * (Path(key).suffix == ""): value + "/" * (Path(key).suffix == "")
        for key, value in targets.items()
    }
    assert check_dist["version_of"](path) == "1.0"


def test_a_bill_of_materials_lists_what_is_needed_and_nothing_of_extras():
    try:
        version("steelyard")
    except PackageNotFoundError:
        pytest.skip("steelyard is on the path, and not installed")
    bill = runpy.run_path(str(ROOT / "tools/sbom.py"))["document"]()
    listed = {package["name"]: package for package in bill["packages"]}
    assert {"steelyard", "numpy", "numba", "llvmlite", "narwhals"} <= listed.keys()
    assert not {"matplotlib", "pytest"} & listed.keys()
    assert listed["steelyard"]["licenseDeclared"] == "BSD-3-Clause"
    edges = {
        (r["spdxElementId"], r["relatedSpdxElement"]) for r in bill["relationships"]
    }
    assert ("SPDXRef-numba", "SPDXRef-llvmlite") in edges


@pytest.fixture
def release(tmp_path):
    """The checklist, of a small repository that is ready."""
    module = runpy.run_path(str(ROOT / "tools/release.py"))
    files = {
        "src/steelyard/__init__.py": '__version__ = "1.2.0"\n',
        "CITATION.cff": "version: 1.2.0\n",
        "recipe/recipe.yaml": 'context:\n  version: "1.2.0"\n',
        "CHANGELOG.md": "# C\n\n## [Unreleased]\n\n## [1.2.0] - 2026-11-20\n\n- New\n",
        "pyproject.toml": "[project.urls]\n"
        + "".join(f'{name} = "https://example.org"\n' for name in module["URLS"]),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(text)
    module["read"].__globals__["ROOT"] = tmp_path
    return module


def quick(release):
    """Take the steps that read files alone."""
    for name in ("the_same_number", "a_changelog", "addresses", "no_old_deprecations"):
        release[name]()


def test_a_release_that_is_ready_passes(release):
    quick(release)


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("CITATION.cff", "1.2.0", "1.1.0", "CITATION.cff has version"),
        ("CHANGELOG.md", "[1.2.0]", "[1.1.0]", "expected '## [1.2.0] - date'"),
        ("CHANGELOG.md", "[Unreleased]\n", "[Unreleased]\n\n- Left\n", "is left under"),
        ("pyproject.toml", "Source", "Home", "lacks Source"),
        ("src/steelyard/__init__.py", "\n", "\n# removed in 1.2\n", "to be removed"),
    ],
)
def test_the_checklist_stops_at_a_fault(release, tmp_path, name, old, new, said):
    path = tmp_path / name
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(release["ReleaseError"], match=re.escape(said)):
        quick(release)
