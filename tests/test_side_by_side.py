"""The tool that prints the default beside plain naive Bayes or an earlier tree."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

TOOLS = str(Path(__file__).resolve().parents[1] / "studies")


@pytest.fixture(scope="module")
def tool():
    sys.path.insert(0, TOOLS)
    try:
        import side_by_side
    finally:
        sys.path.remove(TOOLS)
    return side_by_side


def test_as_many_cells_are_hidden_as_asked_for(tool):
    X = pd.DataFrame({"a": np.arange(1000.0), "b": ["x"] * 1000})
    assert tool.hidden(X, 100.0, 0) is X
    assert tool.hidden(X, 20.0, 0).notna().to_numpy().mean() == pytest.approx(0.2, 0.1)
    pd.testing.assert_frame_equal(tool.hidden(X, 50.0, 1), tool.hidden(X, 50.0, 1))


def test_sets_are_listed_side_by_side_the_worst_last(tool):
    first = {"one": [0.5, 80.0, 1.0], "two": [0.2, 90.0, 1.0]}
    second = {"one": [0.4, 81.0, 0.5], "two": [0.3, 89.0, 0.5]}
    lines = tool.shown(first, second, ["SHNB", "NB"]).splitlines()
    assert [line.split()[0] for line in lines[2:4]] == ["two", "one"]
    assert lines[3].split() == ["one", "0.5000", "0.4000", "+0.1000"]
    assert "lower on 1, higher on 1, by more than .01 on 1" in lines[-1]


def test_another_tree_runs_in_a_process_of_its_own(tool, tmp_path, capfd):
    root, asked = Path(TOOLS).parent, tool.Asked(100, 2, [100.0, 50.0], 0, 1)
    table = pd.DataFrame({"a": list("xyxy") * 25, "class": list("uvuv") * 25})
    table.to_csv(tmp_path / "made.csv", index=False)
    name = str(tmp_path / "made.csv")
    there = tool.of_tree(root, [name], asked)
    here = tool.measure(tool.sy.ShrinkageNB(random_state=0), name, asked)
    assert [known[:2] for known in there[name]] == [known[:2] for known in here]
    assert here[0][0] < here[1][0]
