"""The tool that measures the source tree runs, and counts what it says."""

import runpy
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TOOL = ROOT / "tools" / "measure_tree.py"


@pytest.fixture(scope="module")
def tool():
    return runpy.run_path(str(TOOL))


@pytest.fixture(scope="module")
def table():
    # Numba is disabled, which holds for a whole process.
    done = subprocess.run(
        [sys.executable, TOOL], capture_output=True, text=True, timeout=120, check=True
    )
    lines = done.stdout.splitlines()
    return {line[:36].strip(): int(line[36:44].replace(",", "")) for line in lines}


def test_every_figure_is_printed(table, tool):
    assert list(table) == [
        "lines of Python under src",
        "of them docstrings",
        "source files",
        "folders, lines (docstrings)",
        "files of more than 400 lines",
        "class names used twice",
        "file names used twice",
        "files entered by NaiveBayes().fit",
        "files entered by WeightedNB().fit",
        "files entered by ShrinkageNB().fit",
        "own ancestors of WeightedNB",
        "exceptions in the import contract",
        "folders with GPU code",
    ]
    files = tool["source_files"]()
    assert table["source files"] == len(files) > 100
    assert table["lines of Python under src"] > 10_000


def test_a_gpu_has_one_house_and_the_contract_few_exceptions(table, tool):
    assert tool["gpu_folders"](tool["source_files"]()) == ["gpu", "kernels/cuda"]
    assert table["exceptions in the import contract"] <= 3
    assert table["own ancestors of WeightedNB"] <= 6


def test_docstrings_are_counted_by_their_lines(tool, tmp_path):
    path = tmp_path / "a.py"
    path.write_text('"""One."""\n\n\ndef f():\n    """Two.\n\n    Three.\n    """\n')
    assert tool["n_docstring_lines"](path) == 5


def test_names_that_are_used_twice_are_found(tool):
    assert tool["twice"](Counter("abcab")) == ["a", "b"]


def test_a_call_enters_the_files_whose_functions_it_runs(tool):
    from steelyard.model import most_needed

    assert tool["entered"](lambda: most_needed("sums", "codes")) == {
        "model/__init__.py"
    }
    assert tool["entered"](lambda: sorted("ab")) == set()


def test_a_fit_in_memory_enters_neither_gpu_nor_dask_nor_sources(tool):
    files = tool["entered_by_fit"]("NaiveBayes") | tool["entered_by_fit"]("WeightedNB")
    elsewhere = ("gpu/", "kernels/cuda/", "scale/", "io/")
    assert [name for name in files if name.startswith(elsewhere)] == []
    assert "fitting/recipe.py" in files


def test_a_file_for_a_gpu_is_known_by_its_name_or_its_imports(tool, tmp_path):
    is_for_gpu = tool["gpu_folders"].__globals__["_is_for_gpu"]
    texts = {
        "on_device.py": "",
        "a.py": "def f():\n    from numba import cuda\n",
        "b.py": "import cupy.cuda\n",
        "c.py": "from importlib import import_module\nimport_module('numba.cuda')\n",
        "d.py": "from steelyard.kernels.cuda import scattering\n",
        "e.py": "import numba\nfrom steelyard.kernels import counting  # not cuda\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, "utf-8")
    found = [name for name in texts if is_for_gpu(tmp_path / name)]
    assert found == ["on_device.py", "a.py", "b.py", "c.py", "d.py"]
