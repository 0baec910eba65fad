"""What a model keeps of its file: labels of columns, cells that are missing."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

import steelyard as sy
from steelyard.cli.run import main

LABELS = {"mass": "Body mass in g", "sex": "Sex of the bird", "kind": "Species"}


@pytest.fixture
def spss(tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat")
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, 80)
    frame = pd.DataFrame(
        {
            "mass": (3500 + 900 * kind + rng.normal(0, 200, 80)).round(),
            "sex": rng.integers(1, 3, 80).astype(float),
            "kind": np.array(["Adelie", "Gentoo"])[kind],
        }
    )
    path = tmp_path / "birds.sav"
    values = {"sex": {1.0: "female", 2.0: "male"}}
    pyreadstat.write_sav(
        frame, str(path), column_labels=LABELS, variable_value_labels=values
    )
    return path


def models(path, tmp_path):
    """Yield a model of a stream, and one of a file from the shell."""
    yield sy.ShrinkageNB(interactions=[("mass", "sex")]).fit(sy.scan(path), "kind")
    saved = tmp_path / "m.json"
    command = ["fit", str(path), "--target", "kind", "-o", str(saved), "--no-check"]
    assert main([*command, "--set", "strength=(1,4,1)"]) == 0
    yield sy.load(saved)


def test_labels_of_spss_are_shown(spss, tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    for clf in models(spss, tmp_path):
        assert clf.training_.labels == LABELS
        whole = clf.explain_global()
        assert "Body mass in g" in repr(whole) and "mass" in whole.attributes
        assert "Body mass in g" in whole._repr_html_()
        assert whole.table("sex").labels[-2:] == ["female", "male"]
        row = pd.DataFrame({"mass": [4000.0], "sex": ["male"]})
        evidence = clf.explain_local(row).evidence()
        assert "Sex of the bird" in repr(evidence)
        assert {item.attribute for item in evidence.items} >= {"mass", "sex"}
        clf.to_html(tmp_path / "page.html")
        page = (tmp_path / "page.html").read_text("utf-8")
        assert '"title": "Body mass in g"' in page.replace('":"', '": "')
        assert "Species: Adelie or Gentoo?" in page
        drawn = whole.plot().ax_
        texts = [text.get_text() for text in drawn.get_yticklabels()]
        assert any("Body mass in g" in text for text in texts)
        matplotlib.pyplot.close("all")


def test_more_rows_keep_labels_and_reading(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a;b;y\n" + "1,5;u;n\n2,5;v;y\n" * 10)
    clf = sy.NaiveBayes().fit(sy.scan(path), "y")
    before = clf.training_.reading
    assert before["decimal"] == ","
    clf.training_ = dataclasses.replace(clf.training_, labels={"a": "Age"})
    clf.partial_fit(pd.DataFrame({"a": [1.5], "b": ["u"]}), ["n"])
    assert clf.training_.reading == before and clf.target_name_ == "y"
    assert clf.training_.labels == {"a": "Age"}


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_cells_that_are_missing_in_a_column_are_so_in_new_files(tmp_path, kind, capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(20, 80, 60), "b": rng.normal(size=60)})
    frame.loc[::6, "age"] = -999
    data, new, model = (tmp_path / f"{n}.{kind}" for n in ("data", "new", "m"))
    full = frame.assign(y=np.where(frame["age"] > 50, "y", "n"))
    write = full.to_csv if kind == "csv" else full.to_parquet
    write(data, index=False)
    command = ["fit", str(data), "--target", "y", "--method", "NB", "--no-check"]
    options = ["--missing-values", "age=-999", "-o", str(model)]
    assert main([*command, *options]) == 0
    clf = sy.load(model)
    assert clf.training_.reading["missing_by_column"] == {"age": ["-999"]}
    for age in (-999, None):
        row = pd.DataFrame({"age": [age, 30], "b": [0.0, 1.0]})
        row.to_csv(new, index=False) if kind == "csv" else row.to_parquet(new)
        capsys.readouterr()
        assert main(["predict", str(model), str(new)]) == 0
        out, err = capsys.readouterr()
        assert "noticed" not in err
        if age == -999:
            expected = out
    assert out == expected
