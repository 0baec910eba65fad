"""steelyard compare: methods on the same folds."""

import csv as csv_module

import pytest

import steelyard
from steelyard.lab.data.datasets import load_dataset

QUICK = ["--folds", "2", "--jobs", "1"]


def test_compare_runs_files_and_names_with_several_methods(tmp_path, csv, run):
    reports = [f"--{name}={tmp_path / name}" for name in ("markdown", "latex")]
    arguments = ["compare", csv, "sklearn:iris", "--methods", "NB,gnb", *QUICK]
    arguments += ["--target", "ill", "--control", "gnb"]
    done = run(*arguments, *reports, "--csv", tmp_path / "csv")
    assert done.status == 0, done.err
    for word in ("data", "iris", "NB", "GNB", "accuracy"):
        assert word in done.out
    markdown = (tmp_path / "markdown").read_text(encoding="utf-8")
    assert "| iris |" in markdown and "GNB against each method" in markdown
    assert r"\begin{table}" in (tmp_path / "latex").read_text(encoding="utf-8")
    with open(tmp_path / "csv", newline="") as file:
        lines = list(csv_module.DictReader(file))
    assert {line["method"] for line in lines} == {"NB", "GNB"}


def test_compare_as_json_has_every_fit(csv, run_json):
    found = run_json("compare", csv, "--target", "ill", "--methods", "NB", *QUICK)
    assert len(found["fits"]) == 2
    assert found["settings"]["folds"] == 2


def test_compare_goes_on_from_its_journal(tmp_path, csv, run_json, refused):
    arguments = ["compare", csv, "--target", "ill", "--methods", "NB", "--jobs", "1"]
    journal = ["--journal", tmp_path / "run.jsonl"]
    first = run_json(*arguments, "--folds", "2", *journal)
    assert run_json(*arguments, "--folds", "2", *journal)["fits"] == first["fits"]
    assert refused(*arguments, "--folds", "3", *journal)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["iriss"], "Close: 'iris'"),
        (["CSV"], "name the one to predict with --target"),
        (["CSV", "--target", "il"], "Did you mean 'ill'"),
        (["ONE", "--target", "ill"], "1 class"),
        (["TWICE"], "two columns named 'age'"),
        (["iris", "--methods", "NB,RNBB"], "Did you mean 'RNB'?"),
        (["iris", "--protocol", "dishonest"], "no protocol"),
        (["iris", "--metric", "luck"], "no metric"),
        (["iris", "--control", "RNB"], "--control RNB is not among the methods"),
        (["iris", "--control", "RNBB"], "Did you mean 'RNB'?"),
        (["iris", "--folds", "1"], "at least 2"),
        (["iris", "--journal", "nowhere/run.jsonl"], "no folder"),
        (["iris", "--markdown", "CSV"], "exists"),
        (["group:none", "--data", "nowhere"], "absent"),
    ],
)
def test_compare_refuses(tmp_path, csv, frame, refused, arguments, message):
    one, twice = tmp_path / "one.csv", tmp_path / "twice.csv"
    frame.assign(ill="sick").to_csv(one, index=False)
    twice.write_text("age,age,class\n1,2,a\n3,4,b\n")
    places = {"CSV": csv, "ONE": one, "TWICE": twice}
    assert message in refused("compare", *(places.get(a, a) for a in arguments))


CELLS = """height,country,tall,ill,class
1.9,NA,TRUE,?,a
NA,SE,FALSE,yes,b
1.7,null,TRUE,no,a
,,,None,b
1.6,SE,FALSE,yes,
"""


def test_a_file_gives_the_same_table_in_python_and_in_the_shell(tmp_path, run_json):
    path = tmp_path / "data.csv"
    path.write_text(CELLS)
    arguments = ["compare", path, "--methods", "NB", "--folds", 2, "--jobs", 1]
    shell = run_json(*arguments)
    python = steelyard.compare("NB", path, folds=2, n_jobs=1, progress=False)
    assert shell["settings"]["datasets"] == python.settings["datasets"]
    table = load_dataset(path).table
    assert table["country"].fillna("-").tolist() == ["-", "SE", "-", "-"]
    assert table["tall"].fillna("-").tolist() == ["TRUE", "FALSE", "TRUE", "-"]
    assert table["height"].isna().tolist() == [False, True, False, True]


def test_a_small_class_is_a_warning_and_the_run_goes_on(tmp_path, frame, run):
    frame.loc[0, "ill"] = "rare"
    path = tmp_path / "rare.csv"
    frame.to_csv(path, index=False)
    done = run("compare", path, "--target", "ill", "--methods", "NB", *QUICK)
    assert done.status == 0
    assert "steelyard: warning: The data set 'rare' has 1 class of fewer" in done.err
