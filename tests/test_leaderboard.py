"""The leader board puts methods beside the default on the same folds."""

import re
import runpy
from pathlib import Path

import pytest

from steelyard.lab.results import COLUMNS

pytest.importorskip("matplotlib")

ROOT = Path(__file__).resolve().parents[1]
SETS = ["glass", "iris", "labor"]


@pytest.fixture(scope="module")
def tool():
    return runpy.run_path(str(ROOT / "studies/leaderboard.py"))


def fit(dataset, method, fold, accuracy, log_loss=0.5, status="ok"):
    """Return the row of a fit on 100 rows, ten of them for testing."""
    row = {"dataset": dataset, "method": method, "protocol": "honest", "repeat": 0}
    row |= {"fold": fold, "status": status, "n_train": 90, "n_test": 10}
    return (
        dict.fromkeys(COLUMNS)
        | row
        | {"accuracy": accuracy, "log_loss": log_loss, "fit_seconds": 2.0}
    )


def fits(method, accuracy, folds=range(10), sets=SETS, log_loss=0.5):
    return [
        fit(name, method, fold, accuracy + 0.01 * fold, log_loss + 0.1 * i)
        for i, name in enumerate(sets)
        for fold in folds
    ]


@pytest.fixture
def rows():
    # EBM has two folds of two sets; those have an average of 0.805 for SHNB.
    ebm = fits("EBM", 0.75, folds=[0, 1], sets=SETS[:2], log_loss=0.7)
    runs = [("RandomForest", 0.85), ("SHNB", 0.80), ("NB", 0.70)]
    return [row for run in runs for row in fits(*run)] + ebm


def cells(text, start):
    """Return the cells of the only line that begins so."""
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {start} |")]
    return [cell.strip(" *") for cell in line.strip("|").split("|")]


def test_a_method_with_few_folds_is_compared_on_those(tool, rows):
    text = tool["on_some_folds"]([r for r in rows if r["method"] != "NB"], "Some")
    found = cells(text, "EBM")
    assert found[1:6] == ["2", "4", "0.5500", "0.7500", "2/0/0"]
    assert found[7:9] == ["80.50", "75.50"]
    assert found[11:] == ["2.0", "2.0"]
    assert tool["whole_methods"](rows) == ["SHNB", "RandomForest", "NB"]


def test_a_method_with_a_failed_fit_is_not_among_the_whole_ones(tool, rows):
    broken = [
        r | {"status": "error", "log_loss": None}
        if (r["method"], r["dataset"], r["fold"]) == ("NB", "iris", 3)
        else r
        for r in rows
    ]
    assert tool["whole_methods"](broken) == ["SHNB", "RandomForest"]


def test_the_page_has_every_part(tool, rows, tmp_path):
    page = tmp_path / "board.md"
    text = "\n\n".join(tool["sections"](rows, rows, page))
    assert cells(text.split("###")[1], "RandomForest")[1:] == [
        *("2.00", "0.6000", "1.00", "89.50")
    ]
    clean = text.split("### Data sets that nothing was chosen on")[1]
    assert "| RandomForest | 3 | 30 |" in clean.split("\n### ")[0]
    for name in ("board_accuracy.svg", "board_log_loss.svg"):
        assert f"images/{name}" in text
        assert "<svg" in (tmp_path / "images" / name).read_text(encoding="utf-8")
    table = (tmp_path / "tables/board.csv").read_text(encoding="utf-8").splitlines()
    assert table[0] == "data set,method,accuracy,log_loss"
    assert len(table) == 1 + 3 * len(SETS)


def test_losses_have_a_reason_or_say_that_there_is_none(tool, rows, tmp_path):
    text = "\n".join(tool["sections"](rows, [], tmp_path / "page.md"))
    behind = text.split("points behind the forest")[1]
    assert cells(behind, "iris")[3:] == ["5 of 100", "not looked into"]
    assert "several columns" in cells(behind, "glass")[4]


def test_page_without_the_mark_is_refused(tool, tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("# Board\n", encoding="utf-8")
    with pytest.raises(SystemExit):
        tool["main"](["none.jsonl", "--write", str(page)])
    assert "<!-- measured -->" in capsys.readouterr().err


def test_readme_has_the_figures_of_the_leader_board():
    page = (ROOT / "docs/leaderboard.md").read_text(encoding="utf-8")
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    # First come tables that had no part in the design, as the report has them.
    report = (ROOT / "docs/report_default.md").read_text(encoding="utf-8")
    for name in ("LightGBM", "logistic regression", "random forest"):
        (line,) = [row for row in report.splitlines() if row.startswith(f"| {name} |")]
        n_tables, lower = line.split("|")[2], line.split("|")[5].split(":")[0]
        assert re.search(rf"{name} on {lower.strip()}\b", readme)
        assert f"{n_tables.strip()} tables that had no part in the design" in readme
    averages = page.split("### By average rank of log-loss")[1].split("\n#")[0]
    assert averages.split("\n| ")[3].startswith("SHNB")
    ours, forest = (float(cells(averages, m)[4]) for m in ("SHNB", "RandomForest"))
    assert f"{ours:.1f} % on average where the forest has {forest:.1f}" in readme
    tested = page.split("### SHNB against each method, log-loss")[1].split("\n#")[0]
    for method in ("RandomForest", "LogisticRegression"):
        assert cells(tested, method)[4] == "\\<.001"
    both = cells(page.split("### Both together")[1].split("\n#")[0], "EBM")
    better, _, worse = both[5].split("/")
    assert f"{better} : {worse} on {both[1]} data sets" in readme
