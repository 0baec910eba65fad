"""Reproduction of published results: protocols, tables, the command, small sets."""

import csv
import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from steelyard import NaiveBayes, method
from steelyard.experiments import repro_rnb, reproduction
from steelyard.experiments.protocols import (
    CrossValidation,
    cross_validate,
    data_folder,
    discretize_whole,
    load_dataset,
    one_against_rest,
    prepare,
)
from steelyard.experiments.repro_exponential import (
    MULTICLASS,
    QUICK_TASKS,
    TASKS,
    load_task,
    reproduce_exponential,
    standardize,
)
from steelyard.experiments.repro_report import (
    markdown_table,
    published_folder,
    read_published,
    replace_section,
    side_by_side,
)
from steelyard.experiments.repro_rnb import load_rnb_set, reproduce_rnb
from steelyard.experiments.reproduction import main

FOLDER = os.environ.get("STEELYARD_DATA")
needs_data = pytest.mark.skipif(
    not FOLDER or not (Path(FOLDER).resolve().parent / "published").is_dir(),
    reason="STEELYARD_DATA names no folder of data sets with published tables beside",
)


def write_toy(folder, n=40, name="toy"):
    """Write a data set: a number that tells the classes, a colour with a hole."""
    rng = np.random.default_rng(0)
    rows = []
    for i in range(n):
        label = "yes" if i % 2 else "no"
        number = rng.normal(2.0 if label == "yes" else 0.0)
        colour = rng.choice(["red", "green"], p=[0.8, 0.2] if i % 2 else [0.3, 0.7])
        cells = [f"{number:.3f}", str(colour), label]
        if i == 3:
            cells[0] = "?"
        if i == 5:
            cells[1] = "?"
        rows.append(",".join(cells))
    text = (
        f"@relation {name}\n@attribute size numeric\n"
        "@attribute colour {red,green,blue}\n@attribute class {no,yes,maybe}\n@data\n"
    )
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.arff").write_text(text + "\n".join(rows) + "\n")
    return folder


@pytest.fixture
def toy(tmp_path):
    return write_toy(tmp_path / "datasets")


def published_figures():
    return published_folder(Path(FOLDER))


# ------------------------------------------------------------------------- protocols


def test_data_set_is_read_by_name_with_declared_values(toy):
    X, y = load_dataset("toy", toy)
    assert list(X.columns) == ["size", "colour"]
    assert list(X["colour"].cat.categories) == ["red", "green", "blue"]
    assert set(y) == {"no", "yes"} and len(X) == len(y) == 40


def test_data_set_that_is_absent_is_named(toy):
    with pytest.raises(FileNotFoundError, match="holds no data set 'iris'"):
        load_dataset("iris", toy)


def test_data_folder_comes_from_the_argument_or_the_environment(toy, monkeypatch):
    monkeypatch.setenv("STEELYARD_DATA", str(toy))
    assert data_folder() == toy
    assert data_folder(toy.parent) == toy.parent
    with pytest.raises(FileNotFoundError, match="absent"):
        data_folder(toy / "nowhere")
    monkeypatch.delenv("STEELYARD_DATA")
    with pytest.raises(FileNotFoundError, match="STEELYARD_DATA"):
        data_folder()


def test_whole_table_preprocessing_fills_in_and_declares_every_value(toy):
    X, y = load_dataset("toy", toy)
    table = discretize_whole(X, y)
    assert not table.isna().any().any()
    # The values of a nominal column are coded in sorted order: blue, green, red.
    assert list(table["colour"].cat.categories) == [1, 2, 3]
    assert X["colour"].mode().tolist() == ["red"]
    assert table["colour"].iloc[5] == 3
    assert len(table["size"].cat.categories) == 2
    filled = X["size"].fillna(X["size"].mean())
    same_bin = table["size"] == table["size"].iloc[3]
    assert filled[same_bin].min() <= filled.iloc[3] <= filled[same_bin].max()


def test_published_protocol_equals_a_fit_on_whole_table_codes(toy):
    X, y = load_dataset("toy", toy)
    table, settings = prepare(X, y, "published")
    assert settings == {"cardinality": "declared"}
    whole = NaiveBayes(missing="impute", cardinality="declared").fit(X, y)
    coded = NaiveBayes(**settings).fit(table, y)
    np.testing.assert_allclose(
        whole.predict_proba(X), coded.predict_proba(table), rtol=1e-12
    )


def test_honest_protocol_leaves_the_table_to_each_fold(toy):
    X, y = load_dataset("toy", toy)
    table, settings = prepare(X, y, "honest", numeric="mdl-better")
    assert table is X
    assert settings == {
        "numeric": "mdl-better",
        "missing": "impute",
        "cardinality": "declared",
    }


def test_unknown_protocol_is_refused(toy):
    X, y = load_dataset("toy", toy)
    with pytest.raises(ValueError, match="published, honest"):
        prepare(X, y, "lenient")


def test_cuts_of_the_whole_table_flatter_noise():
    # Labels are drawn apart from the numbers: only a leak can beat a coin.
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.normal(size=(60, 200)), columns=[f"x{j}" for j in range(200)])
    y = rng.permutation(np.repeat(["a", "b"], 30))
    accuracy = {}
    for protocol in ("published", "honest"):
        table, settings = prepare(X, y, protocol)
        clf = method("NB", **settings)
        accuracy[protocol] = cross_validate(clf, table, y).accuracy
    assert accuracy["published"] > accuracy["honest"] + 10


def test_cross_validation_is_seeded_and_counts_warnings(toy):
    X, y = load_dataset("toy", toy)
    clf = method("LNB", max_iter=1, solver="lbfgs")
    first = cross_validate(clf, X, y, folds=5, look=lambda c: c.n_iter_)
    again = cross_validate(clf, X, y, folds=5)
    other = cross_validate(clf, X, y, folds=5, seed=2)
    assert first.accuracies == again.accuracies
    assert first.accuracies != other.accuracies
    assert first.facts == (1,) * 5
    assert first.warnings == {"ConvergenceWarning": 5}
    assert 50 < first.accuracy <= 100


def test_accuracy_is_the_mean_over_folds_in_percent():
    assert CrossValidation((0.5, 1.0), 0.0).accuracy == 75.0


def test_one_class_against_the_rest():
    y = np.array(["a", "b", "c", "b"])
    assert one_against_rest(y, "b").tolist() == [0, 1, 0, 1]
    with pytest.raises(ValueError, match="'d'"):
        one_against_rest(y, "d")


def test_standardizing_changes_no_gaussian_prediction():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"small": rng.normal(size=50), "big": 9 + 7 * rng.normal(size=50)})
    X["constant"] = 4.0
    y = (X["small"] + 0.1 * X["big"] > 0.9).astype(int).to_numpy()
    Z = standardize(X)
    np.testing.assert_allclose(Z["big"].to_numpy().std(), 1.0)
    assert (Z["constant"] == 0).all()
    X, Z = X.drop(columns="constant"), Z.drop(columns="constant")
    np.testing.assert_allclose(
        method("GNB").fit(X, y).predict_proba(X),
        method("GNB").fit(Z, y).predict_proba(Z),
        rtol=1e-9,
    )


# ---------------------------------------------------------------------------- report


def test_side_by_side_shows_differences_and_averages():
    table = side_by_side(["a", "b"], [("NB", {"a": 80.0, "b": 90.0}, {"a": 81.5})])
    assert table.splitlines() == [
        "| data set | NB published | measured | difference |",
        "| --- | ---: | ---: | ---: |",
        "| a | 80.00 | 81.50 | +1.50 |",
        "| b | 90.00 |  |  |",
        "| **average** | 80.00 | 81.50 | +1.50 |",
    ]
    assert markdown_table(["x"], [["1"]]).splitlines() == ["| x |", "| --- |", "| 1 |"]


def test_section_of_a_document_is_replaced_or_added():
    once = replace_section("# Title\n", "rnb", r"a \1 b")
    assert once.startswith("# Title\n\n<!-- begin rnb -->")
    twice = replace_section(once, "rnb", "new")
    assert r"a \1 b" not in twice and twice.count("begin rnb") == 1
    both = replace_section(twice, "exponential", "more")
    assert "new" in both and "more" in both


def test_tasks_are_those_of_the_tables():
    assert len(TASKS) == 28 and len(MULTICLASS) == 7
    assert len({task.name for task in (*TASKS, *MULTICLASS)}) == 35
    assert set(QUICK_TASKS) <= {task.name for task in TASKS}


# --------------------------------------------------------------------------- command


def test_command_says_in_one_line_what_is_absent(toy, monkeypatch, capsys):
    monkeypatch.delenv("STEELYARD_DATA", raising=False)
    for words, expected in (
        (["rnb"], "STEELYARD_DATA"),
        (["rnb", "--data", str(toy / "no")], "absent"),
        (["exponential", "--data", str(toy)], "published tables"),
        (["rnb", "--data", str(toy), "--published", str(toy)], "rnb_table3.csv"),
    ):
        assert main(words) == 2
        captured = capsys.readouterr()
        assert captured.out == "" and captured.err.count("\n") == 1
        assert captured.err.startswith("reproduction: ") and expected in captured.err


def test_command_refuses_an_unknown_paper(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["cwnb"])
    assert stopped.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_command_prints_writes_and_records(tmp_path, monkeypatch, capsys):
    keys = ("NB", "NB, honest", "WANBIA, published solver", "CAWNB, optimum")
    variants = {key: repro_rnb.VARIANTS[key] for key in keys}
    monkeypatch.setattr(repro_rnb, "VARIANTS", variants)
    monkeypatch.setattr(reproduction, "QUICK_SETS", ("iris", "labor"))
    data = tmp_path / "datasets"
    for name in reproduction.QUICK_SETS:
        write_toy(data, name=name)
    published = tmp_path / "published"
    published.mkdir()
    with (published / "rnb_table3.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["dataset", "RNB", "CAWNB", "NB", "WANBIA"])
        writer.writerows(
            [name, 80, 80, 80, 80] for name in ("iris", "labor", "AVERAGE")
        )
    monkeypatch.setenv("STEELYARD_DATA", str(data))
    document, record = tmp_path / "reproduction.md", tmp_path / "figures.json"
    document.write_text("# Mine\n")
    words = ["rnb", "--quick", "--write", str(document), "--json", str(record)]
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert "| WANBIA, published solver | 80.00 |" in printed
    assert "What the leak is worth" in printed
    assert document.read_text().startswith("# Mine\n\n<!-- begin rnb -->")
    assert printed.strip() in document.read_text()
    figures = json.loads(record.read_text())
    assert figures["name"] == "rnb"
    assert {entry["data"] for entry in figures["measurements"]} == {"iris", "labor"}


# --------------------------------------------------------------------- the real sets


@needs_data
def test_naive_bayes_is_near_print_on_small_sets():
    names = ("iris", "zoo", "heart-statlog", "vote", "glass", "breast-w")
    report = reproduce_rnb(
        Path(FOLDER), published_figures(), names=names, keys=("NB", "NB, honest")
    )
    found = report.verdicts["NB"]
    assert abs(found["measured"] - found["published"]) < 1.5
    # Cut points that have seen the test rows are worth something.
    assert report.verdicts["NB, honest"]["measured"] < found["measured"]


@needs_data
def test_wanbia_and_cawnb_are_near_print_on_small_sets():
    report = reproduce_rnb(
        Path(FOLDER),
        published_figures(),
        names=("diabetes", "vote"),
        keys=("WANBIA, optimum", "CAWNB, published solver"),
    )
    for found in report.verdicts.values():
        assert abs(found["measured"] - found["published"]) < 1.5


@needs_data
def test_deleted_attributes_are_those_of_the_paper():
    for name, attributes in (("zoo", 16), ("splice", 60)):
        assert load_rnb_set(name, Path(FOLDER))[0].shape[1] == attributes


@needs_data
def test_every_binary_task_has_the_published_size():
    rows = read_published(published_figures(), "exp_table1")
    for task, row in zip(TASKS, rows, strict=True):
        X, y = load_task(task, Path(FOLDER))
        numbers = X.select_dtypes("number").shape[1]
        found = (len(X), numbers, X.shape[1] - numbers)
        printed = (row["instances"], row["continuous"], row["discrete"])
        assert found == tuple(map(int, printed)), task.name
        assert abs(100 * y.mean() - float(row["minority_percent"])) < 0.02, task.name


@needs_data
def test_every_problem_with_several_classes_has_the_published_classes():
    rows = read_published(published_figures(), "exp_table5")
    for task, row in zip(MULTICLASS, rows, strict=True):
        _, y = load_task(task, Path(FOLDER))
        assert len(np.unique(y)) == int(row["classes"]), task.name


@needs_data
def test_deviance_methods_are_near_print_on_small_tasks():
    names = ("Wholesale", "Wholesale, 3 classes")
    report = reproduce_exponential(Path(FOLDER), published_figures(), names=names)
    for acronym in ("DNB", "LNB", "GDNB"):
        assert report.verdicts[acronym] == {"reached": 1, "of": 1, "close": 1}
    several = [e for e in report.measurements if e.data == names[1]]
    assert {e.variant for e in several} == {"NB", "ENB", "DNB", "LNB", "GDNB"}
    assert all(abs(e.accuracy - 71.4) < 1 for e in several if e.variant != "NB")
    shares = [e.selected for e in report.measurements if e.selected is not None]
    assert len(shares) == 4 and all(0 < share <= 100 for share in shares)
