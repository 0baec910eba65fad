"""steelyard methods: the table of methods, and all about one."""

import inspect
import re

import pytest
from sklearn.datasets import load_iris

import steelyard
from steelyard.cli import methods
from steelyard.cli.reproduce import PAPERS
from steelyard.lab.protocols import PROTOCOLS


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


def test_methods_are_found_by_a_word_of_their_papers_and_classes(run_json, refused):
    found = [row["acronym"] for row in run_json("methods", "kim")]
    assert found == ["ENB", "DNB", "LNB", "GDNB", "MSE", "AUCNB"]
    assert [r["acronym"] for r in run_json("methods", "RegularizedNB")] == ["RNB"]
    assert "There is no method 'magic'" in refused("methods", "magic")


def test_methods_marks_the_default(run):
    lines = [line for line in run("methods").out.splitlines() if "(default)" in line]
    assert len(lines) == 1
    assert "SHNB" in lines[0]


def test_methods_describes_one(run, run_json, refused):
    out = run("methods", "rnb").out
    assert out.startswith("Method: RNB\n\nLearns: class-specific and shared")
    for part in (
        "\\hat P = \\alpha P^D + (1 - \\alpha) P^I",
        "*Errata:*",
        "Defaults: bounds=(0.0, 1.0)",
        'As published: sy.method("RNB", solver="published", missing="impute"',
        'protocol="published-rnb"',
        "doi = {10.1109/ACCESS.2020.3044946}",
    ):
        assert part in out
    words = run_json("methods", "RNB")["compare"]
    command, _, rest = words.partition("; ")
    assert rest == "the tables of its paper, steelyard reproduce rnb --quick"
    assert command.endswith("--methods RNB,NB --protocol published-rnb")
    command = command.replace("iris wine", "iris").split()
    assert "RNB" in run(*command[1:], "--folds", "2").out
    known = run_json("methods", "TAN")["as published"]
    assert known == 'sy.method("TAN"), as far as is known; see what is left open'
    assert run_json("methods", "SHNB")["as published"] == "not a published method"
    assert run_json("methods", "kl nb")["method"] == "GRAWNB, KLNB"
    assert "Did you mean 'CAWNB'" in refused("methods", "CAWBN")


@pytest.mark.parametrize("entry", steelyard.methods(), ids=lambda entry: entry.acronym)
def test_each_method_has_a_model_references_and_settings_that_exist(entry):
    facts = methods.facts_of(entry)
    assert len(facts["model"]) > 200
    assert (facts["bibtex"] == "none") == (entry.family == "ours")
    settings, protocol = methods.as_published(
        entry, methods.read_document("methods.md")
    )
    classifier = eval(f"entry.create({settings})", {"entry": entry})
    assert protocol in ("", *PROTOCOLS)
    if settings:
        if entry.class_name not in ("NaiveBayes", "WeightedNB"):
            # The docstring says where the preset differs from its paper.
            about = " ".join(inspect.getdoc(type(classifier)).split())
            keys = re.findall(r"(\w+)=", settings)
            assert any(f"{key}=" in about for key in keys), entry.acronym
        X, y = load_iris(return_X_y=True)
        classifier.fit(X[::5], y[::5]).predict(X)


def test_papers_whose_tables_are_measured_are_those_of_the_command():
    papers = {entry.paper for entry in steelyard.methods()}
    assert set(methods._REPEATED) <= papers
    assert sorted(methods._REPEATED.values()) == sorted(PAPERS)


def test_references_and_settings_as_published_are_of_methods():
    acronyms = {entry.acronym for entry in steelyard.methods()}
    bib = methods.read_document("references.bib")
    keywords = ", ".join(re.findall(r"keywords = {(.*)}", bib)).split(", ")
    assert set(keywords) <= acronyms
    page = methods.read_document("methods.md")
    table = page.split("## As published", 1)[1].split("\n## ", 1)[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert set(re.findall("`(.*?)`", "".join(rows))) <= acronyms
