"""``explain``: the model as a whole, rows, pages and pictures."""

import json
import re

import numpy as np
import pytest

import steelyard as sy


def test_the_whole_model_is_shown(model, run):
    done = run("explain", model)
    assert done.status == 0
    lines = done.out.splitlines()
    for name in ("smoker", "age", "zip"):
        assert len([line for line in lines if line.startswith(f"{name} ")]) == 1
    for word in ("importance", "evidence", "rows", "for well"):
        assert word in done.out
    assert "(binned)" not in done.out
    assert "--column" in done.err


def test_details_are_shown_where_they_are_asked_for(model, run):
    out = run("explain", model, "--details").out
    for word in ("importance", "smoker (categorical)", "age (binned)", "for well"):
        assert word in out


def test_a_chosen_attribute_is_shown_alone(model, run):
    out = run("explain", model, "--column", "zip").out
    assert out.strip().startswith("zip (binned): evidence")
    for word in ("smoker", "importance", "NaiveBayes"):
        assert word not in out


def test_weights_are_details(tmp_path, csv, run):
    path = tmp_path / "m.json"
    options = ["--target", "ill", "--set", "strength=[2.5, 10.0, 2.5]", "-o", path]
    assert run("fit", csv, *options).status == 0
    out = run("explain", path).out
    assert "encoded as" not in out
    assert "0.000, " not in out
    details = run("explain", path, "--details").out
    assert "encoded as" in details
    assert "binned" in details


@pytest.mark.parametrize("method", ["CAWNB", "RNB", "BNB", "LWNB", "SPSS", "ENB"])
def test_every_kind_of_model_is_explained(tmp_path, csv, run, run_json, method):
    path = tmp_path / "m.json"
    options = ["--target", "ill", "--method", method, "-o", path]
    assert run("fit", csv, *options).status == 0
    assert run("explain", path).status == 0
    done = run("explain", path, csv, "--rows", 2, "--counterfactual")
    assert done.status == 0, done.err
    assert "row 2" in done.out
    assert run_json("explain", path)["attributes"]
    if method == "CAWNB":
        assert "Weights" in run("explain", path, "--details").out
    if method == "RNB":
        assert "alpha" in run("explain", path, "--details").out


def test_rows_are_explained_by_evidence_that_adds_up(csv, frame, model, run_json):
    found = run_json("explain", model, csv, "--rows", 4, "--counterfactual")
    parts = np.array(found["contributions"])
    assert parts.shape == (4, 3, 2)
    scores = np.array(found["base"]) + parts.sum(axis=1)
    table = frame.drop(columns="ill")[:4]
    assert np.allclose(scores, sy.load(model).predict_joint_log_proba(table))
    assert len(found["counterfactuals"]) == 4


def test_rows_are_shown_with_what_would_have_to_change(csv, model, run):
    done = run("explain", model, csv, "--rows", 2, "--counterfactual")
    assert done.out.count("evidence for") == 2
    assert done.out.count("sum") == 2
    assert "would win" in done.out
    assert "row 3" not in done.out


def test_a_page_and_a_picture_are_written(tmp_path, model, run):
    page, picture = tmp_path / "m.html", tmp_path / "m.png"
    done = run("explain", model, "--html", page, "--picture", picture)
    assert done.status == 0, done.err
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    # The model knows what it was fitted to.
    assert "<h1>ill: " in text
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_row_is_drawn_as_a_waterfall(tmp_path, csv, model, run):
    path = tmp_path / "row.svg"
    assert run("explain", model, csv, "--picture", path).status == 0
    assert "<svg" in path.read_text(encoding="utf-8")


def test_a_mixture_is_drawn_by_its_largest_part(tmp_path, csv, run):
    path = tmp_path / "rnb.json"
    run("fit", csv, "--target", "ill", "--method", "RNB", "-o", path)
    done = run("explain", path, "--picture", tmp_path / "m.svg")
    assert done.status == 0
    assert "The picture shows the" in done.err


def test_page_and_picture_are_written_both_or_not_at_all(tmp_path, csv, run, refused):
    path = tmp_path / "lazy.json"
    run("fit", csv, "--target", "ill", "--method", "LWNB", "-o", path)
    page, picture = tmp_path / "m.html", tmp_path / "m.svg"
    assert refused("explain", path, "--picture", picture, "--html", page)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--picture", "a.bmp"], ".png, .svg, .pdf"),
        (["--counterfactual"], "name a file of rows"),
        (["--column", "agee"], "Did you mean 'age'"),
        (["CSV", "--rows", "0"], "at least 1"),
        (["CSV", "--column", "age"], "whole model"),
        (["LACKING"], "no column 'age'"),
        (["--html", "MODEL"], "exists"),
        (["nothing.csv"], "There is no file"),
    ],
)
def test_explain_refuses(tmp_path, csv, frame, model, refused, arguments, message):
    lacking = tmp_path / "lacking.csv"
    frame.drop(columns="age").to_csv(lacking, index=False)
    places = {"CSV": csv, "MODEL": model, "LACKING": lacking}
    text = refused("explain", model, *(places.get(a, a) for a in arguments))
    assert message in text


def test_json_of_the_whole_model_is_one_document(model, run):
    done = run("explain", model, "--json")
    assert json.loads(done.out)["kind"] == "sum"


@pytest.fixture
def with_interactions(tmp_path, csv, frame):
    """Save a model with two interactions and return its path."""
    table, target = frame.drop(columns="ill"), frame["ill"]
    interactions = [("age", "smoker"), ("smoker", "zip")]
    clf = sy.ShrinkageNB(strength=(2.5, 10.0, 2.5), interactions=interactions).fit(
        table, target
    )
    path = tmp_path / "interactions.json"
    clf.save(path)
    return str(path)


def test_interactions_are_shown_or_split(
    tmp_path, csv, with_interactions, run, run_json
):
    whole = run("explain", with_interactions, "--column", "age × smoker")
    assert "age × smoker (interaction)" in whole.out
    assert "2 interactions" in run("explain", with_interactions).out
    shown = run("explain", with_interactions, csv, "--rows", 2, "--counterfactual")
    split = run("explain", with_interactions, csv, "--rows", 2, "--split-interactions")
    assert "age × smoker" in shown.out and "×" not in split.out
    sums = [
        np.array(found["base"]) + np.array(found["contributions"]).sum(axis=1)
        for found in (
            run_json("explain", with_interactions, csv),
            run_json("explain", with_interactions, csv, "--split-interactions"),
        )
    ]
    assert np.allclose(*sums, rtol=0, atol=1e-12)
    page, picture = tmp_path / "m.html", tmp_path / "m.png"
    files = ["--html", page, "--picture", picture]
    assert run("explain", with_interactions, *files).status == 0
    assert page.stat().st_size and picture.stat().st_size


def test_reasons_of_predictions_have_interactions_or_not(csv, with_interactions, run):
    shown = run("predict", with_interactions, csv, "--reasons", 5).out
    split = run(
        "predict", with_interactions, csv, "--reasons", 5, "--split-interactions"
    ).out
    assert "age × smoker = " in shown and "×" not in split


def test_splitting_interactions_needs_rows(with_interactions, refused):
    assert "name a file of rows" in refused(
        "explain", with_interactions, "--split-interactions"
    )


def test_columns_that_cannot_change_are_fixed(model, csv, run_json, refused):
    rows = (model, csv, "--rows", "8", "--counterfactual")
    found = run_json("explain", *rows, "--fixed", "age,zip")["counterfactuals"]
    changed = {change["attribute"] for one in found for change in one["changes"]}
    assert changed == {"smoker"}
    free = run_json("explain", *rows)["counterfactuals"]
    assert "age" in {change["attribute"] for one in free for change in one["changes"]}
    assert "--counterfactual" in refused("explain", model, csv, "--fixed", "age")
    assert "smokers" in refused("explain", *rows, "--fixed", "smokers")


def test_intervals_of_rows_are_beside_predictions_and_evidence(tmp_path, csv, run):
    path = tmp_path / "m.json"
    options = ["--target", "ill", "--set", "strength=[2.5, 10.0, 2.5]", "-o", path]
    assert run("fit", csv, *options).status == 0
    lines = run("predict", path, csv, "--intervals").out.splitlines()
    header = lines[0].split(",")
    ends = [name for name in header if name.startswith(("low_", "high_"))]
    assert len(ends) == 2 * sum(name.startswith("p_") for name in header)
    cells = dict(zip(header, lines[1].split(","), strict=True))
    name = next(name for name in header if name.startswith("p_"))
    low, high = (float(cells[name.replace("p", end, 1)]) for end in ("low", "high"))
    assert low < float(cells[name]) < high
    assert "90 % interval" in run("explain", path, csv, "--rows", 1).out


def test_a_model_without_intervals_says_so(model, csv, refused):
    assert "uncertainty=True" in refused("predict", model, csv, "--intervals")


def test_rows_of_a_file_are_put_into_the_page(model, csv, frame, tmp_path, run):
    page = tmp_path / "page.html"
    assert run("explain", model, csv, "--html", page, "--page-rows", 4).status == 0
    found = re.search(r'id="model">(.*?)</script>', page.read_text("utf-8"), re.S)
    rows = json.loads(found[1])["rows"]
    assert len(rows["cells"]) == len(rows["labels"]) == 4
    unlabelled = tmp_path / "new.csv"
    frame.drop(columns="ill").to_csv(unlabelled, index=False)
    options = ("--html", page, "--page-rows", 3, "--force")
    assert run("explain", model, unlabelled, *options).status == 0
    found = re.search(r'id="model">(.*?)</script>', page.read_text("utf-8"), re.S)
    assert "labels" not in json.loads(found[1])["rows"]


def test_rows_of_a_page_need_a_file_and_a_page(model, refused, tmp_path):
    error = refused("explain", model, "--html", tmp_path / "p.html", "--page-rows", 4)
    assert "name both" in error
