"""The tool that compares learners on streams says when they are back."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def streams():
    return runpy.run_path(str(ROOT / "studies" / "streams.py"))


def test_back_is_counted_in_half_lives_from_the_end_of_a_change(streams):
    losses = [0.5] * 20 + [1.0] * 6 + [0.54] * 14
    assert streams["_back"](losses, 20) == "1.50"
    assert streams["_back"](losses, 24) == "0.50"
    assert streams["_back"]([0.5] * 20 + [0.6] * 20, 20) == "never"


def test_the_truth_is_undecided_one_half_life_after_a_change(streams):
    X, _ = streams["rows"](streams["N"], False)
    at = streams["N"] // 2 + streams["HALF_LIFE"]
    assert streams["mixed_truth"](X[at : at + 5], None) == pytest.approx(0.5)


def test_the_page_says_what_its_tables_show():
    page = (ROOT / "docs" / "streams.md").read_text()
    lines = [line.strip("| ").split(" | ") for line in page.splitlines()]
    default = '`ShrinkageNB`, `forget="auto"`'
    back = [cells[4] for cells in lines if cells[0] == default]
    assert len(back) == 4 and max(map(float, back)) <= 1.0
    gaps = [float(cells[3]) for cells in lines if re.search(r"split|made,", cells[0])]
    assert len(gaps) >= 17 and max(map(abs, gaps)) < 0.005
