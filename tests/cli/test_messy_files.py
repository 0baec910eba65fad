"""Files as people have them, from the shell: what is said, refused and written."""

import shutil
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import steelyard as sy
from steelyard.evaluation.evaluate import evaluate


@pytest.fixture
def prices(tmp_path):
    rng = np.random.default_rng(0)
    size = rng.normal(100, 20, 200)
    frame = pd.DataFrame(
        {
            "size": size.round(1),
            "price": (1000 * size + rng.normal(0, 5e3, 200)).round(2),
        }
    )
    frame.to_csv(tmp_path / "prices.csv", index=False)
    return tmp_path / "prices.csv"


def test_what_was_detected_in_a_file_is_reported(tmp_path, frame, run):
    path = tmp_path / "german.csv"
    frame.to_csv(path, sep=";", decimal=",", index=False, encoding="cp1252")
    out = tmp_path / "m.json"
    done = run("fit", path, "--target", "ill", "--method", "NB", "-o", out)
    assert done.status == 0, done.err
    assert "german.csv: cells between semicolons, decimal commas" in done.err
    table = frame.drop(columns="ill")
    expected = sy.NaiveBayes().fit(table, frame["ill"]).predict_proba(table)
    assert np.array_equal(sy.load(out).predict_proba(table), expected)


def test_a_price_is_refused_as_target_and_cut_when_asked(
    tmp_path, prices, run, refused
):
    out = tmp_path / "m.json"
    message = refused("fit", prices, "--target", "price", "-o", out)
    assert "--bins=5" in message and "--categorical" in message
    arguments = ["--target", "price", "--method", "NB"]
    done = run("fit", prices, *arguments, "--bins", 3, "-o", out)
    assert done.status == 0, done.err
    assert "3 classes: 1: ≤ " in done.out
    done = run("evaluate", out, prices, "--target", "price", "--json")
    assert done.status == 0, done.err
    assert '"rows": 200' in done.out


def test_many_classes_are_asked_about(tmp_path, run, refused):
    path = tmp_path / "names.csv"
    rows = "".join(f"{k % 2},n{k % 201}\n" for k in range(402))
    path.write_text("a,class\n" + rows)
    arguments = ["fit", path, "--method", "NB", "-o", tmp_path / "m.json"]
    assert "201 classes in 402 rows" in refused(*arguments)
    assert run(*arguments, "--yes").status == 0


def test_fit_reports_its_columns_and_the_next_command(tmp_path, frame, run, run_json):
    frame = frame.assign(
        nr=[k + (k > 40) for k in range(60)],
        same="x",
        name=[f"n{k}" for k in range(60)],
        zip=frame["zip"],
    )
    path = tmp_path / "wide.csv"
    frame.to_csv(path, index=False)
    arguments = ["fit", path, "--target", "ill", "--method", "NB"]
    done = run(*arguments, "-o", tmp_path / "a.json")
    assert "next: steelyard explain" in done.out
    assert "steelyard predict" in done.out
    assert "5-fold cross-validation of 60 rows" in done.out
    assert "always '" in done.out
    report = run_json(*arguments, "-o", tmp_path / "b.json", "--no-check")
    lines = {line.pop("column"): line for line in report["column_report"]}
    n_missing = int(frame["age"].isna().sum())
    n_ages = frame["age"].nunique()
    ages = f"{frame['age'].min():g} … {frame['age'].max():g}"
    expected = {
        "age": ("numbers", n_missing, n_ages, "", ages),
        "smoker": ("categories", 0, 2, "", "yes 55 %"),
        "zip": ("numbers", 0, 3, "", "1 … 3"),
        "nr": ("numbers", 0, 60, "like an identifier", "0 … 60"),
        "same": ("categories", 0, 1, "constant", "x 100 %"),
        "name": ("categories", 0, 60, "like an identifier", "n0 2 %"),
    }
    assert {name: tuple(line.values()) for name, line in lines.items()} == expected
    assert report["check"] is None


def test_evaluate_shows_the_majority_and_kappa_and_warns_once(tmp_path, frame, run):
    path = tmp_path / "ids.csv"
    frame.assign(name=[f"n{k}" for k in range(60)]).to_csv(path, index=False)
    done = run("evaluate", path, "--target", "ill", "--method", "NB", "--folds", 3)
    assert done.status == 0, done.err
    assert "of the most frequent class" in done.out
    assert "kappa" in done.out
    assert done.err.count("looks like an identifier") == 1
    assert "2 other folds" in done.err


def test_nested_columns_of_parquet_are_left_out_with_a_note(tmp_path, frame, run):
    path, out = tmp_path / "a.parquet", tmp_path / "m.json"
    nested = {
        "tags": [["a"], []] * 30,
        "point": [{"x": 1}] * 60,
        "pairs": [[("k", 1)]] * 60,
    }
    cells = pa.Table.from_pandas(frame, preserve_index=False)
    for name, column in nested.items():
        kind = pa.map_(pa.string(), pa.int64()) if name == "pairs" else None
        cells = cells.append_column(name, pa.array(column, kind))
    pq.write_table(cells, path)
    options = ["--target", "ill", "--method", "NB", "-o", out, "--force"]
    for data in (path, tmp_path / "*.parquet"):
        done = run("fit", data, *options)
        assert done.status == 0, done.err
        for name in nested:
            assert f"{name}: nested values, dropped" in done.err
    assert sy.load(out).feature_names_in_.tolist() == ["age", "smoker", "zip"]
    assert run("predict", out, path).status == 0


def test_kappa_is_that_of_scikit_learn(frame):
    from sklearn.metrics import cohen_kappa_score

    table = frame.drop(columns="ill")
    result = evaluate(sy.NaiveBayes(), table, frame["ill"], folds=3)
    expected = cohen_kappa_score(result.true, result.predicted)
    assert result.kappa == pytest.approx(expected)
    assert result.majority == pytest.approx(frame["ill"].value_counts().max() / 60)


def test_evaluate_finds_the_truth_by_the_classes_of_the_model(csv, model, run):
    found = run("evaluate", model, csv)
    assert found.status == 0, found.err
    assert "true classes are taken from column 'ill'" in found.err
    assert found.out == run("evaluate", model, csv, "--target", "ill").out


def test_evaluate_takes_the_target_of_the_model_among_twins(csv, frame, model, run):
    frame.assign(again=frame["ill"]).to_csv(csv, index=False)
    found = run("evaluate", model, csv)
    assert "true classes are taken from column 'ill'" in found.err


def test_predict_says_what_it_wrote(tmp_path, csv, model, run):
    path = tmp_path / "out.parquet"
    done = run("predict", model, csv, "-o", path)
    told = f"60 rows written to {path}: columns prediction, p_sick, p_well"
    assert told in done.err
    assert len(pd.read_parquet(path)) == 60


def test_a_model_with_categorical_numbers_takes_frames_and_files(tmp_path, frame, run):
    plain, padded = tmp_path / "plain.csv", tmp_path / "padded.csv"
    frame.to_csv(plain, index=False)
    frame.assign(zip="0" + frame["zip"].astype(str)).to_csv(padded, index=False)
    parquet, out = tmp_path / "plain.parquet", tmp_path / "m.json"
    frame.to_parquet(parquet)
    table = frame.drop(columns="ill")
    own = sy.NaiveBayes(categorical_features=["smoker", "zip"])
    expected = own.fit(table, frame["ill"]).predict_proba(table)
    for path in (plain, padded):
        fit = ["fit", path, "--target", "ill", "--method", "NB", "--categorical", "zip"]
        assert run(*fit, "-o", out, "--force").status == 0
        # The frame as pandas reads the file: numbers in place of text.
        X = pd.read_csv(path).drop(columns="ill")
        assert X["zip"].dtype == np.int64
        assert np.array_equal(sy.load(out).predict_proba(X), expected)
        done = run("predict", out, parquet)
        assert done.status == 0, done.err
        assert done.out == run("predict", out, path).out
    own.save(out)
    assert done.out == run("predict", out, plain).out == run("predict", out, padded).out


def test_a_model_reads_the_sheet_that_it_was_fitted_to(tmp_path, frame, run):
    path, out = tmp_path / "loans.xlsx", tmp_path / "m.json"
    other = pd.DataFrame({"note": ["a", "b", "c"]})
    with pd.ExcelWriter(path) as book:
        other.to_excel(book, sheet_name="About", index=False)
        frame.to_excel(book, sheet_name="Loans", index=False)
    options = ("--target", "ill", "--method", "NB", "--no-check", "-o", out)
    assert run("fit", path, "--sheet", "Loans", *options).status == 0
    done = run("predict", out, path)
    assert done.status == 0 and len(done.out.splitlines()) == len(frame) + 1, done.err
    assert sy.load(out).training_.reading["sheet"] == "Loans"
    done = run("predict", out, path, "--sheet", "About")
    assert done.status == 2
    assert "Other sheets, to choose with --sheet: 'Loans'" in done.err
    # A file without that sheet is read from its first.
    frame.to_excel(tmp_path / "new.xlsx", sheet_name="Sheet1", index=False)
    assert run("predict", out, tmp_path / "new.xlsx").status == 0


def test_names_of_groups_above_the_names_are_left_out(tmp_path, frame, run):
    path, out = tmp_path / "a.csv", tmp_path / "m.json"
    path.write_text("Applicant,,,Loan\n" + frame.to_csv(index=False))
    options = ("--target", "ill", "--method", "NB", "--no-check", "-o", out)
    done = run("fit", path, *options)
    assert done.status == 0 and "'Applicant,Loan'" in done.err
    assert sy.load(out).feature_names_in_.tolist() == ["age", "smoker", "zip"]


def test_columns_that_are_left_out_are_not_counted_or_spoken_of(tmp_path, frame, run):
    days = pd.date_range("2024-01-01", periods=len(frame)).strftime("%d.%m.%Y")
    path, out = tmp_path / "a.csv", tmp_path / "m.json"
    frame.assign(id=np.arange(len(frame)) + 7000, day=days).to_csv(path, index=False)
    options = ("--target", "ill", "--no-check", "-o", out, "--force")
    done = run("fit", path, *options, "--drop", "day")
    assert f"from {len(frame)} rows and 3 columns" in done.out
    assert done.status == 0 and "day:" not in done.err
    done = run("fit", path, *options, "--drop", "id")
    assert f"from {len(frame)} rows and 4 columns" in done.out
    assert "day: dates" in done.err


def test_a_column_of_periods_is_not_reported_as_names(tmp_path, frame, run):
    path, out = tmp_path / "a.csv", tmp_path / "m.json"
    days = pd.date_range("2024-01-01", periods=len(frame), freq="D")
    table = frame.assign(day=days.strftime("%Y-%m-%dT%H:%M:%SZ"))
    table.to_csv(path, index=False)
    options = ("--target", "ill", "--method", "NB", "--no-check", "-o", out)
    assert run("fit", path, *options, "--drop", "day").status == 0
    done = run("monitor", out, path, "--by", "day")
    assert "2024-01" in done.out and "treated as categories" not in done.err


def test_model_and_table_in_the_wrong_order_are_noticed(tmp_path, csv, frame, run):
    out = tmp_path / "m.json"
    options = ("--target", "ill", "--method", "NB", "--no-check", "-o", out)
    assert run("fit", csv, *options).status == 0
    frame.to_parquet(tmp_path / "rows.parquet")
    for table in (csv, tmp_path / "rows.parquet"):
        done = run("predict", table, out)
        assert done.status == 2 and "Did you swap them?" in done.err
    (tmp_path / "no.json").write_text("{}")
    done = run("predict", tmp_path / "no.json", csv)
    assert done.status == 2 and "swap" not in done.err


def test_names_of_files_that_are_not_alike_are_not_named(tmp_path, csv, run):
    shutil.copy(csv, tmp_path / "lending.csv")
    options = ("--target", "ill", "-o", tmp_path / "m.json")
    done = run("fit", tmp_path / "nothing.csv", *options)
    assert done.status == 2 and "Close" not in done.err
    done = run("fit", tmp_path / "lendin.csv", *options)
    assert "Close: 'lending.csv'" in done.err


def test_notices_of_rows_come_before_their_measures(tmp_path, people, run, monkeypatch):
    path, out = tmp_path / "a.csv", tmp_path / "m.json"
    people(400).to_csv(path, index=False)
    options = ("--target", "ill", "--method", "NB", "--no-check", "-o", out)
    assert run("fit", path, *options).status == 0
    monkeypatch.setattr(sys, "stderr", sys.stdout)
    done = run("evaluate", out, path)
    assert done.out.index("in the training data") < done.out.index("accuracy")
