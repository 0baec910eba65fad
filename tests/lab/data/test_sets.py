"""Data sets by name and by file."""

import gzip
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn import datasets

from steelyard.exceptions import ColumnError, ParameterError, TableError
from steelyard.io.dataset import DataSet
from steelyard.lab.data.datasets import (
    BUNDLED,
    dataset_group,
    expand_names,
    has_dataset,
    load_dataset,
)

FOLDER = os.environ.get("STEELYARD_DATA")
ARFF = """@relation weather
@attribute outlook {sunny,rainy,foggy}
@attribute heat numeric
@attribute play {yes,no}
@data
sunny,31.5,no
rainy,?,yes
sunny,20,yes
rainy,12,?
"""
MANIFEST = """name,file,instances,papers
weather,weather.arff,4,small|both
other,elsewhere.csv,3,both
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.delenv("STEELYARD_DATA", raising=False)
    (tmp_path / "weather.arff").write_text(ARFF)
    (tmp_path / "packed.arff.gz").write_bytes(gzip.compress(ARFF.encode()))
    (tmp_path / "elsewhere.csv").write_text("size,Class\n1.5,a\n2.5,b\n,b\n")
    (tmp_path / "MANIFEST.csv").write_text(MANIFEST)
    return tmp_path


@pytest.mark.parametrize("name", ["weather", "packed"])
def test_arff_by_name_has_kinds_declared_values_and_no_row_without_label(folder, name):
    data = load_dataset(name, folder)
    assert (data.name, len(data), data.target_name) == (name, 3, "play")
    assert data.target.tolist() == ["no", "yes", "yes"]
    assert data.classes.tolist() == ["no", "yes"]
    assert data.kinds == {"outlook": "categorical", "heat": "numeric"}
    assert data.declared == {"outlook": ("sunny", "rainy", "foggy")}
    assert data.description == "weather"
    assert list(data.table.index) == [0, 1, 2]


def test_manifest_says_which_file_a_name_means(folder):
    data = load_dataset("other", folder)
    assert (data.name, data.target_name) == ("other", "Class")
    assert data.target.tolist() == ["a", "b", "b"]
    assert data.table["size"].isna().sum() == 1


def test_environment_names_the_folder(folder, monkeypatch):
    monkeypatch.setenv("STEELYARD_DATA", str(folder))
    assert load_dataset("weather").name == "weather"


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz", ".parquet"])
def test_files_of_every_kind_give_the_same_table(tmp_path, suffix):
    frame = pd.DataFrame(
        {"kind": ["x", "y", None], "size": [1.0, None, 2.0], "sort": [1, 2, 1]}
    )
    path = tmp_path / f"my.data{suffix}"
    if suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ",")
    data = load_dataset(path, target="sort")
    assert data.name == "my.data"
    assert data.target.tolist() == [1, 2, 1] and data.target.dtype == np.int64
    assert data.kinds == {"kind": "categorical", "size": "numeric"}
    assert data.table.isna().sum().tolist() == [1, 1]


def test_whole_numbers_with_missing_values_stay_whole(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,label\n1,0\n2,\n3,1\n")
    data = load_dataset(path)
    assert data.target.tolist() == [0, 1] and data.target.dtype == np.int64


def test_file_without_an_obvious_target_asks_for_one(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("one,two\n1,2\n")
    with pytest.raises(ParameterError, match=r"name the one to predict.*one, two"):
        load_dataset(path)
    with pytest.raises(ColumnError, match=r"no column 'tow'\. Did you mean 'two'"):
        load_dataset(path, target="tow")


def test_file_that_is_absent_names_its_neighbours(folder):
    with pytest.raises(FileNotFoundError, match=r"no file.*Close: 'weather\.arff'"):
        load_dataset(folder / "weatherx.arff")
    with pytest.raises(FileNotFoundError, match="its folder does not exist"):
        load_dataset(folder / "no" / "weatherx.arff")


def test_file_of_no_known_kind_is_refused(tmp_path):
    path = tmp_path / "table.odt"
    path.write_text("")
    with pytest.raises(ParameterError, match=r"no known extension\. Known: \.arff"):
        load_dataset(path)


def test_unknown_name_says_where_it_looked_and_what_is_close(folder):
    with pytest.raises(FileNotFoundError) as error:
        load_dataset("whether", folder)
    text = str(error.value)
    assert repr(str(folder)) in text and "3 data sets" in text
    assert "breast_cancer" in text and "Close: 'weather'" in text


def test_unknown_name_without_a_folder_says_so(monkeypatch, tmp_path):
    monkeypatch.delenv("STEELYARD_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"not set.*Close: 'iris'"):
        load_dataset("iriss")


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_sets_need_no_folder(name, monkeypatch):
    monkeypatch.delenv("STEELYARD_DATA", raising=False)
    data = load_dataset(name)
    assert data.name == name and len(data.table) == len(data)
    assert data.description and not data.description.startswith("..")
    data.check()


def test_folder_comes_before_the_bundled_sets(folder):
    (folder / "iris.csv").write_text("a,class\n1,x\n2,y\n")
    assert len(load_dataset("iris", folder)) == 2
    assert len(load_dataset("sklearn:iris", folder)) == 150


def test_groups_are_the_words_of_the_manifest(folder):
    assert dataset_group("both", folder) == ["weather", "other"]
    assert dataset_group("small", folder) == ["weather"]
    assert len(dataset_group("tasks28")) == 28
    names = expand_names(["iris", "group:small", "group:both"], folder)
    assert names == ["iris", "weather", "other"]
    with pytest.raises(ParameterError, match=r"no group.*Groups: both, small, tasks28"):
        dataset_group("rnb33", folder)
    with pytest.raises(FileNotFoundError, match="Say 'group:both'"):
        load_dataset("both", folder)


def fetched(monkeypatch, answer):
    asked = []

    def fetch(**settings):
        asked.append(settings)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(datasets, "fetch_openml", fetch)
    return asked


def test_openml_by_name_version_and_number(monkeypatch):
    frame = pd.DataFrame({"a": [1.0, 2.0], "kind": pd.Categorical(["x", "y"])})
    bunch = SimpleNamespace(frame=frame, target_names=["kind"], DESCR="A set.\nMore.")
    asked = fetched(monkeypatch, bunch)
    data = load_dataset("openml:credit-g")
    assert (data.name, data.target.tolist()) == ("credit-g", ["x", "y"])
    assert data.description == "A set."
    load_dataset("openml:credit-g@3")
    load_dataset("openml:31")
    which = [{k: a.get(k) for k in ("name", "version", "data_id")} for a in asked]
    assert which == [
        {"name": "credit-g", "version": 1, "data_id": None},
        {"name": "credit-g", "version": 3, "data_id": None},
        {"name": None, "version": None, "data_id": 31},
    ]


def test_openml_without_a_network_is_a_clear_error(monkeypatch):
    fetched(monkeypatch, OSError("no route to host"))
    with pytest.raises(FileNotFoundError, match=r"OpenML.*no route to host.*network"):
        load_dataset("openml:credit-g")


def test_breast_cancer_is_also_the_set_of_the_papers(monkeypatch, tmp_path):
    monkeypatch.delenv("STEELYARD_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    data = load_dataset("wdbc")
    assert (len(data), data.classes.tolist()) == (569, ["B", "M"])
    assert load_dataset("task:Breast cancer").target.sum() == 212
    there = {n: has_dataset(n) for n in ("iris", "task:Breast cancer", "task:Car", "x")}
    assert there == {
        "iris": True,
        "task:Breast cancer": True,
        "task:Car": False,
        "x": 0,
    }
    assert len(dataset_group("rnb33")) == 33


def test_unknown_task_names_the_nearest():
    with pytest.raises(FileNotFoundError, match="Close: 'Letter'"):
        load_dataset("task:Leter")


@pytest.mark.parametrize(
    "table, target, says",
    [
        ({"a": [1, 2]}, ["x", "x"], "has 1 class"),
        ({}, ["x", "y"], "0 rows and 2 labels"),
        ({"a": [1, 2, 3]}, [0.5, 1.25, 2.0], "numbers with fractions"),
    ],
)
def test_data_that_cannot_be_learned_from_are_refused(table, target, says):
    with pytest.raises(TableError, match=says):
        DataSet("mine", pd.DataFrame(table), np.array(target)).check()


def test_table_without_columns_is_refused():
    with pytest.raises(TableError, match="no column besides"):
        DataSet("mine", pd.DataFrame(index=[0, 1]), np.array([0, 1])).check()


def test_fingerprint_depends_on_cells_names_and_labels_alone():
    code = (
        "from steelyard.lab.data import load_dataset;"
        "import sys; sys.stdout.write(load_dataset('sklearn:wine').fingerprint)"
    )
    elsewhere = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    data = load_dataset("sklearn:wine")
    assert data.fingerprint == elsewhere
    other = data.table.copy()
    other.iloc[3, 3] += 1
    changed = [
        DataSet("wine", other, data.target),
        DataSet("wine", data.table.rename(columns={"ash": "dust"}), data.target),
        DataSet("wine", data.table, data.target[::-1]),
    ]
    marks = {data.fingerprint, *(entry.fingerprint for entry in changed)}
    assert len(marks) == 4


@pytest.mark.skipif(not FOLDER, reason="STEELYARD_DATA is not set")
def test_small_data_sets_of_the_folder_are_as_its_manifest_says():
    manifest = pd.read_csv(f"{FOLDER}/MANIFEST.csv", dtype={"name": str})
    for entry in manifest[manifest["instances"] < 2000].itertuples():
        data = load_dataset(entry.name, FOLDER)
        data.check()
        assert len(data) == entry.instances, entry.name
        assert len(data.table.columns) == entry.attributes, entry.name
        assert len(data.classes) == entry.classes_present, entry.name
    task = load_dataset("task:Glass", FOLDER)
    assert task.classes.tolist() == [0, 1] and task.target.sum() == 70
