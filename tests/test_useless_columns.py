"""What a useless column costs is measured on the same folds, and written to a page."""

import runpy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from steelyard.lab.data.datasets import load_dataset
from steelyard.lab.results import Results
from steelyard.lab.runner import compare

ROOT = Path(__file__).resolve().parents[1]
WORDS = "# Columns\n\nWhat it means.\n\n<!-- measured -->\n"


@pytest.fixture(scope="module")
def tool():
    return runpy.run_path(str(ROOT / "studies/useless_columns.py"))


def row(dataset, method, accuracy, log_loss, status="ok"):
    return {
        **{"dataset": dataset, "method": method, "protocol": "honest", "repeat": 0},
        **{"fold": 0, "status": status, "error": None if status == "ok" else "no luck"},
        **{"accuracy": accuracy, "log_loss": log_loss},
    }


def test_columns_have_the_values_they_promise(tool):
    distinct = {}
    for kind, draw in tool["COLUMNS"].items():
        column = draw(5000, np.random.default_rng(1))
        assert column == draw(5000, np.random.default_rng(1)) and len(column) == 5000
        distinct[kind] = len(set(column))
    assert distinct["random text"] == 200 and distinct["identifier"] == 5000
    assert 0.78 * 5000 < distinct["names"] < 0.82 * 5000


def test_variants_differ_by_one_text_column_that_ignores_the_labels(tool):
    plain, *added = tool["variants"]("sklearn:iris", 1)
    iris = load_dataset("sklearn:iris")
    pd.testing.assert_frame_equal(plain.table, iris.table)
    assert [data.name for data in added] == [
        "iris + random text",
        "iris + names",
        "iris + identifier",
    ]
    for data in added:
        kind = data.table.columns[-1]
        pd.testing.assert_frame_equal(data.table.drop(columns=kind), iris.table)
        np.testing.assert_array_equal(data.target, iris.target)
        assert pd.api.types.is_string_dtype(data.table[kind])


def test_losses_are_the_difference_and_positive_where_worse(tool):
    names = ["a", "a + random text", "a + names", "a + identifier"]
    rows = [row(names[0], "SHNB", 0.9, 0.3), row(names[1], "SHNB", 0.8, 0.5)]
    rows += [row(names[2], "SHNB", 0.95, 0.3), row(names[3], "SHNB", 0.9, 0.2)]
    rows += [row(name, "SVM", 0.5, None) for name in names]
    results = Results(rows)
    accuracy, log_loss = (
        tool["losses"](results, ["a"], name)[:, 0] for name in ("accuracy", "log_loss")
    )
    np.testing.assert_allclose(accuracy[:, 0], [0.9, 0.1, -0.05, 0.0])
    np.testing.assert_allclose(log_loss[:, 0], [0.3, 0.2, 0.0, -0.1])
    assert np.isnan(log_loss[:, 1]).all()
    by_method, by_dataset = tool["tables"](results)
    cells = [[cell.text for cell in line] for line in by_method.rows]
    assert cells[0][:4] == ["SHNB", "90.00", "0.3000", "+10.00 / +10.00"]
    assert cells[1][1] == "50.00" and "over 1 data set " in by_method.notes[0]
    assert [cell.text for cell in by_dataset.rows[0]][3:5] == ["+10.00", "+0.2000"]


def test_data_set_with_a_failure_is_left_out_for_every_method(tool):
    rows = []
    for name in ("a", "b"):
        for kind in ("", " + random text", " + names", " + identifier"):
            rows.append(row(name + kind, "NB", 0.5 if name == "a" else 1.0, 0.5))
            bad = name == "b" and kind == " + names"
            rows.append(row(name + kind, "EBM", 0.9, 0.1, "error" if bad else "ok"))
    by_method, failures = tool["tables"](Results(rows))
    assert [line[1].text for line in by_method.rows] == ["50.00", "90.00"]
    assert len(failures.rows) == 1


def test_methods_with_few_folds_are_compared_on_those_alone(tool):
    kinds = ["", *(f" + {kind}" for kind in tool["COLUMNS"])]
    rows = [
        row(name + kind, method, accuracy + 0.02 * fold, 0.5) | {"fold": fold}
        for method, folds, accuracy in (("SHNB", (0, 1), 0.8), ("EBM", (1,), 0.7))
        for name in ("a", "b")
        for fold in folds
        for kind in kinds
        # EBM lacks a column of b.
        if (method, name, kind) != ("EBM", "b", kinds[-1])
    ]
    (table,) = tool["beside"](Results(rows))
    assert [line[1].text for line in table.rows] == ["82.00", "72.00"]
    assert table.notes[-1] == "1 fold of a: those that all have run."


def test_page_is_written_from_a_run_and_an_earlier_one(tool, tmp_path, capsys):
    page, earlier = tmp_path / "page.md", tmp_path / "earlier.jsonl"
    page.write_text(f"{WORDS}old figures\n", encoding="utf-8")
    small = ["--datasets", "sklearn:iris", "--folds", "2", "--jobs", "1"]
    tool["main"](["NB", *small, "--journal", str(earlier)])
    tool["main"](["SHNB", *small, "--also", str(earlier), "--write", str(page)])
    text = page.read_text(encoding="utf-8")
    assert text.startswith(WORDS) and "old figures" not in text
    assert "| NB |" in text and "| SHNB |" in text and "| iris |" in text
    assert text[len(WORDS) :].strip() in capsys.readouterr().out
    iris = load_dataset("sklearn:iris")
    table = iris.table.assign(
        identifier=tool["identifiers"](150, np.random.default_rng(1))
    )
    again = compare("NB", replace(iris, table=table), folds=2, n_jobs=1)
    measured = Results.from_journal(earlier).select(dataset="iris + identifier")
    assert measured.matrix("accuracy") == again.matrix("accuracy")


def test_page_without_the_mark_is_refused_before_anything_is_run(tool, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Columns\n", encoding="utf-8")
    with pytest.raises(SystemExit) as refused:
        tool["main"](["NB", "--datasets", "no such set", "--write", str(page)])
    assert refused.value.code == 2
