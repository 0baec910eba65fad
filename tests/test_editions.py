"""The page of the default puts several runs side by side, and says which."""

import re
import runpy
from pathlib import Path

import pytest

from steelyard.lab.results import COLUMNS, Results

pytest.importorskip("matplotlib")

ROOT = Path(__file__).resolve().parents[1]
SETS = ["glass", "iris", "labor"]


@pytest.fixture(scope="module")
def tool():
    return runpy.run_path(str(ROOT / "studies/editions.py"))


def fit(dataset, method, fold, accuracy, log_loss=0.5, status="ok"):
    """Return the row of a fit on 100 rows, ten of them for testing."""
    row = {"dataset": dataset, "method": method, "protocol": "honest", "repeat": 0}
    row |= {"fold": fold, "status": status, "n_train": 90, "n_test": 10}
    metrics = ("balanced_accuracy", "f1", "brier", "auc", "ece")
    row |= {**dict.fromkeys(metrics, 0.5), "fit_seconds": 2.0}
    row |= {"accuracy": accuracy, "log_loss": log_loss}
    return dict.fromkeys(COLUMNS) | row


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
    runs = [("SHNB", 0.80), ("RandomForest", 0.85), ("SHNB-main", 0.82)]
    return [row for run in runs for row in fits(*run)] + ebm


def cells(text, start):
    """Return the cells of the only line that begins so."""
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {start} |")]
    return [cell.strip(" *") for cell in line.strip("|").split("|")]


def test_a_method_with_few_folds_is_compared_on_those(tool, rows):
    text = "\n".join(
        tool["_on_folds"](rows, ["SHNB", "RandomForest", "SHNB-main"], "Some")
    )
    found = cells(text, "EBM")
    assert found[1:6] == ["2", "4", "80.50", "75.50", "2/0/0"]
    assert found[7:9] == ["0.5500", "0.7500"]
    whole, datasets = tool["wide_methods"](rows)
    assert (whole, datasets) == (["SHNB", "RandomForest"], SETS)


def test_the_last_fit_counts_unless_it_failed(tool):
    old, new = fit("iris", "SHNB", 0, 0.7), fit("iris", "SHNB", 0, 0.9)
    failed = fit("iris", "SHNB", 0, None, None, status="error")
    for parts, kept in (([old, new], new), ([failed, old], old), ([old, failed], old)):
        assert tool["last_of_each"](Results([row]) for row in parts) == [kept]


def test_figures_of_a_written_page_are_read_again(tool, rows, tmp_path):
    (tmp_path / "images").mkdir()
    rows = [row for row in rows if row["method"] in ("SHNB", "RandomForest")]
    text = "\n\n".join(tool["sections"](rows, {}, tmp_path / "images/page", []))
    found = tool["page_figures"](text, "first edition")
    for measure, by_set in tool["means_of"](Results(rows)).items():
        assert list(found[measure]) == SETS
        for name, values in by_set.items():
            first = found[measure][name]
            assert first["SHNB, first edition"] == pytest.approx(values["SHNB"])
    for name in ("page_accuracy.svg", "page_log_loss.svg"):
        assert f"images/{name}" in text
        assert "<svg" in (tmp_path / "images" / name).read_text(encoding="utf-8")


def test_each_line_says_which_run_it_is_from(tool, rows, tmp_path):
    (tmp_path / "images").mkdir()
    pages = {}
    for name, value in (("second edition", 0.7), ("first edition", 0.6)):
        figures = {"NB": value, "RandomForest": 0.1, f"SHNB, {name}": value}
        pages[name] = {
            m: dict.fromkeys(SETS, figures) for m in ("accuracy", "log_loss")
        }
    picture = tmp_path / "images/page"
    text = "\n\n".join(tool["sections"](rows, pages, picture, confirming=rows))
    table = text.split("### SHNB against")[0]
    # A method is taken from the latest page that has it.
    assert cells(table, "NB")[1:4] == ["second edition", "3.50", "70.00"]
    # What was run again is not taken from a page.
    assert cells(table, "RandomForest")[1:4] == ["this", "1.00", "89.50"]
    for name in pages:
        assert cells(table, f"SHNB, {name}")[1] == name
    chosen_on_none = text.split("## Data sets that nothing was chosen on")[1]
    assert "| RandomForest | 3 | 30 |" in chosen_on_none.split("\n## ")[0]


def test_losses_have_a_reason_or_say_that_there_is_none(tool, rows):
    results, _ = tool["with_earlier"](tool["means_of"](Results(rows[:60])), {})
    text = "\n".join(tool["_behind"](results, dict.fromkeys(SETS, 100)))
    assert cells(text, "iris")[3:] == ["5 of 100", "not looked into"]
    assert "several columns" in cells(text, "glass")[4]


def test_the_default_of_an_earlier_tree_gets_a_name(tool, rows, monkeypatch):
    read = tool["read_results"]
    monkeypatch.setattr(Results, "from_journal", lambda path: Results(rows))
    assert read("run.jsonl").methods == ["SHNB", "RandomForest", "SHNB-main", "EBM"]
    assert read("second edition=run.jsonl").methods[0] == "SHNB, second edition"


def test_what_interactions_cost_is_shown_by_data_set(tool, rows):
    text = "\n".join(tool["_interactions"](rows))
    assert cells(text, "labor") == [
        *("labor", "86.50", "84.50", "0.7000", "0.7000", "-2.00")
    ]
    assert "30 folds of 3 data sets" in text


def test_page_without_the_mark_is_refused(tool, tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("# Board\n", encoding="utf-8")
    with pytest.raises(SystemExit):
        tool["main"](["none.jsonl", "--write", str(page)])
    assert "<!-- measured -->" in capsys.readouterr().err


@pytest.fixture(scope="module")
def rivals():
    return runpy.run_path(str(ROOT / "studies/rivals.py"))


def test_rivals_are_read_from_the_board_and_drawn(rivals, tmp_path):
    page = (ROOT / "docs/leaderboard.md").read_text(encoding="utf-8")
    found = {beside.method: beside for beside in rivals["read_rivals"](page)}
    assert list(found) and set(found) == set(rivals["SHOWN"])
    assert found["EBM"].n_datasets > found["CatBoost"].n_datasets
    for beside in found.values():
        assert beside.better + beside.worse <= beside.n_datasets
    (tmp_path / "images").mkdir()
    (tmp_path / "board.md").write_text(page, encoding="utf-8")
    rivals["main"](tmp_path / "board.md")
    assert (tmp_path / "images/rivals.svg").read_text().count("<path") > 10


def test_readme_has_the_figures_of_the_leader_board(rivals):
    page = (ROOT / "docs/leaderboard.md").read_text(encoding="utf-8")
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    found = {beside.method: beside for beside in rivals["read_rivals"](page)}
    # First come tables that had no part in the design, as the report has them.
    report = (ROOT / "docs/report_default.md").read_text(encoding="utf-8")
    for name in ("LightGBM", "logistic regression", "random forest"):
        (line,) = [row for row in report.splitlines() if row.startswith(f"| {name} |")]
        n_tables, lower = line.split("|")[2], line.split("|")[5].split(":")[0]
        assert re.search(rf"{name} on {lower.strip()}\b", readme)
        assert f"{n_tables.strip()} tables that had no part in the design" in readme
    classic = [found[m] for m in ("RandomForest", "HistGradientBoosting", "Khiops")]
    assert {b.p for b in (*classic, found["LogisticRegression"])} == {"<.001"}
    assert f"on {classic[0].n_datasets} data sets of two papers" in readme
    tables = rivals["tables"](page)
    (averages,) = [rows for key, rows in tables.items() if "of all editions" in key]
    ours, forest = (
        next(float(row[3]) for row in averages if row[0] == name)
        for name in ("SHNB", "RandomForest")
    )
    assert f"level with the forest ({ours:.1f} and {forest:.1f} %)" in readme
    assert averages[0][0] == "SHNB" and "first in average rank" in readme
    (clean,) = [rows for key, rows in tables.items() if key.startswith("Data sets")]
    better = clean[0][9].partition("/")[0]
    assert f"predecessor on {better} of {clean[0][1]}" in readme
