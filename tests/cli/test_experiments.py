"""``methods``, ``demo``, ``compare`` and ``reproduce``."""

import csv as csv_module
import re
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

import steelyard
from reproduction import documents
from steelyard.cli import experiments
from steelyard.cli.experiments import PAPERS
from steelyard.lab.data.datasets import load_dataset


def test_methods_lists_every_method(run, run_json, monkeypatch):
    rows = run_json("methods")
    assert rows == steelyard.methods().rows()
    monkeypatch.setenv("COLUMNS", "200")  # so that no cell is broken into lines
    out = run("methods").out
    assert all(row["acronym"] in out and row["paper"] in out for row in rows)


def test_methods_of_a_family(run_json, refused):
    families = {row["family"] for row in run_json("methods", "--family", "filter")}
    assert families == {"filters"}
    assert "Families: both, dependent attributes, filters" in refused(
        "methods", "--family", "magic"
    )


def test_demo_shows_results_and_evidence_within_80_columns(tmp_path, monkeypatch, run):
    monkeypatch.setenv("COLUMNS", "80")
    page = tmp_path / "p.html"
    done = run("demo", "--page", page)
    assert (done.status, done.err) == (0, "")
    text = done.out
    assert str(page) in text
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    text = text[: text.index("Its page")]
    assert max(map(len, text.splitlines())) <= 80
    for word in (
        "breast cancer",
        "wine",
        "iris",
        "accuracy",
        "log-loss",
        "average row",
    ):
        assert word in text
    for word in ("SHNB, default", "NB", "WANBIA-CLL", "CAWNB-CLL", "sklearn GNB"):
        assert len(re.findall(rf" {word} ", text)) == 3
    assert len(re.findall(r"\d\d\.\d %  ", text[: text.index("fits")])) == 18
    # No cell is broken over two lines.
    assert "od280/od315 of diluted wines" in text
    # The evidence adds up to what it says.
    table = text[text.index("attribute ") :]
    amounts = [float(found) for found in re.findall(r" ([+-]\d+\.\d\d)", table)]
    assert sum(amounts[:-1]) == pytest.approx(amounts[-1], abs=0.08)


def test_methods_marks_the_default(run):
    lines = [line for line in run("methods").out.splitlines() if "(default)" in line]
    assert len(lines) == 1
    assert "SHNB" in lines[0]


def test_the_page_of_the_demo_is_in_a_new_folder(tmp_path, monkeypatch, run_json):
    monkeypatch.setattr(
        experiments, "classifiers", lambda: {"NB": steelyard.method("NB")}
    )
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    mine = tmp_path / "mine.txt"
    mine.write_text("mine")
    (tmp_path / "steelyard-demo.html").symlink_to(mine)
    page = Path(run_json("demo")["page"])
    assert page.parent.parent == tmp_path and page.is_file()
    assert mine.read_text() == "mine"


def test_demo_as_json(tmp_path, monkeypatch, run_json):
    monkeypatch.setattr(
        experiments, "classifiers", lambda: {"NB": steelyard.method("NB")}
    )
    found = run_json("demo", "--page", tmp_path / "p.html")
    assert len(found["scores"]) == 3
    evidence = found["evidence"]
    total = evidence["prior"] + sum(item[2] for item in evidence["items"])
    assert total == pytest.approx(evidence["total"])


# ------------------------------------------------------------------------------ compare

QUICK = ["--folds", "2", "--jobs", "1"]


def test_compare_runs_files_and_names_with_several_methods(tmp_path, csv, run):
    reports = [f"--{name}={tmp_path / name}" for name in ("html", "markdown", "latex")]
    arguments = ["compare", csv, "sklearn:iris", "--methods", "NB,gnb", *QUICK]
    arguments += ["--target", "ill", "--control", "gnb"]
    done = run(*arguments, *reports, "--csv", tmp_path / "csv")
    assert done.status == 0, done.err
    for word in ("data", "iris", "NB", "GNB", "accuracy"):
        assert word in done.out
    assert "<html" in (tmp_path / "html").read_text(encoding="utf-8")
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
        (["CSV"], "say which to predict with --target"),
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
        (["iris", "--html", "CSV"], "exists"),
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


# ---------------------------------------------------------------------------- reproduce


# Papers are beside ``src``: the command does not know them from a wheel.
of_a_checkout = pytest.mark.skipif(
    not (Path(steelyard.__file__).parents[2] / "reproduction").is_dir(),
    reason="steelyard is not installed from these sources",
)


@pytest.fixture
def calls(monkeypatch):
    """Record how reproductions are asked for, and return a short one."""
    found = []

    def reproduce(name, data, published, **options):
        found.append((name, data, options))
        return SimpleNamespace(
            to_markdown=lambda level: "# Table 3", as_dict=lambda: {"name": name}
        )

    monkeypatch.setattr(documents, "reproduce", reproduce)
    return found


def test_every_paper_of_the_library_can_be_asked_for():
    assert PAPERS == documents.PAPERS


@of_a_checkout
def test_reproduce_prints_and_writes_the_report(tmp_path, calls, run, run_json):
    path = tmp_path / "report.md"
    done = run("reproduce", "rnb", "--quick", "--data", "here", "--markdown", path)
    assert (done.status, done.out) == (0, "# Table 3\n")
    assert path.read_text(encoding="utf-8") == "# Table 3"
    name, data, options = calls[0]
    assert (name, data, options["quick"]) == ("rnb", "here", True)
    assert run_json("reproduce", "cwnb") == {"name": "cwnb"}


@of_a_checkout
def test_reproduce_refuses(tmp_path, monkeypatch, csv, refused):
    assert "invalid choice" in refused("reproduce", "nobody")
    monkeypatch.delenv("STEELYARD_DATA", raising=False)
    assert "STEELYARD_DATA" in refused("reproduce", "rnb")
    assert "absent" in refused("reproduce", "rnb", "--data", tmp_path / "no")
    assert "exists" in refused("reproduce", "rnb", "--markdown", csv)
