"""The study of tables that nothing was chosen on, with packages made here."""

from __future__ import annotations

import csv
import io
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "studies"))
import unseen_tables as study

FIELDS = ["name", "package", "file", "target", "drop", "options"]


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """Two packages of a table each, and a list that names them."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=120)
    frame = pd.DataFrame({"id": range(120), "a b": x, "c": rng.choice(["u", "v"], 120)})
    frame["score"] = np.where(x + rng.normal(size=120) > 0, 2, 0)
    # A rare class, which is left out, and a row without a label.
    texts = frame["score"].map({0: "no", 2: "yes"}).astype(object)
    texts[:4], texts[5] = "rare", None
    frame["answer"] = texts
    text = frame.to_csv(index=False).encode()
    with zipfile.ZipFile(tmp_path / "My_data-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("my/data.csv", text)
    with tarfile.open(tmp_path / "other-data-2.0.tar.gz", "w:gz") as archive:
        entry = tarfile.TarInfo("other-data-2.0/tables/data.csv")
        entry.size = len(text)
        archive.addfile(entry, io.BytesIO(text))
    entries = [
        ["first", "my.data==1.0", "my/data.csv", "answer", "id score", ""],
        [
            "second",
            "other-data==2.0",
            "tables/data.csv",
            "score",
            "id",
            "positive=True",
        ],
    ]
    path = tmp_path / "tables.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([FIELDS, *entries])
    monkeypatch.setattr(study, "TABLES", path)
    return tmp_path


def test_tables_are_read_without_rare_classes_and_dropped_columns(packages):
    first, second = study.read_tables(packages, None)
    assert list(first[1]) == ["a b", "c"]
    assert set(first[2]) == {"no", "yes"} and len(first[2]) == 115
    assert list(second[1]) == ["a b", "c", "answer"]
    assert set(second[2]) == {"False", "True"}


def test_methods_are_compared_on_the_same_folds_and_may_be_added(
    packages, tmp_path, capsys
):
    asked = [str(tmp_path / "run.jsonl"), "--packages", str(packages), "--jobs", "1"]
    study.main([*asked, "--methods", "NB", "GNB"])
    before = (tmp_path / "run-NB.jsonl").read_bytes()
    picture = tmp_path / "p.svg"
    methods = ["NB", "GNB", "LogisticRegression"]
    study.main([*asked, "--methods", *methods, "--picture", str(picture)])
    text = capsys.readouterr().out
    assert "NB against each method, log-loss" in text
    assert "| LogisticRegression |" in text
    assert (tmp_path / "run-NB.jsonl").read_bytes() == before
    assert picture.stat().st_size > 0


def test_an_unknown_table_is_named(packages):
    with pytest.raises(SystemExit, match="has no table third"):
        list(study.read_tables(packages, ["third"]))
