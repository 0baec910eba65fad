"""Files as people have them, from the shell: what is said, refused and written."""

import numpy as np
import pandas as pd
import pytest

import steelyard as sy


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


def test_what_was_found_out_about_a_file_is_said(tmp_path, frame, run):
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
