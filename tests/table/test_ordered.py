"""Categories with an order keep it: in the schema, in chunks, in files."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat
import pytest

import steelyard as sy
from steelyard.exceptions import ModelFileError
from steelyard.io.dataset import read_dataset

ORDER = ["low", "mid", "high", "never"]
CELLS = ["high", "low", None, "mid", "low", "high"] * 4
LABELS = ["x", "y"] * 12


def arrow(cells):
    positions = [None if cell is None else ORDER.index(cell) for cell in cells]
    indices = pa.array(positions, pa.int8())
    return pa.DictionaryArray.from_arrays(indices, pa.array(ORDER), ordered=True)


KIND = pd.CategoricalDtype(ORDER, ordered=True)
TABLES = {
    "pandas": pd.DataFrame({"grade": pd.Series(CELLS, dtype=KIND)}),
    "polars": pl.DataFrame({"grade": pl.Series(CELLS, dtype=pl.Enum(ORDER))}),
    "pyarrow": pa.table({"grade": arrow(CELLS)}),
    "pandas arrow": pd.DataFrame(
        {"grade": pd.Series(pd.arrays.ArrowExtensionArray(arrow(CELLS)))}
    ),
}


def feature(clf):
    (found,) = clf.encoder_.schema_.features
    return found


@pytest.mark.parametrize("name", TABLES)
def test_values_are_in_their_order(name):
    clf = sy.NaiveBayes().fit(TABLES[name], LABELS)
    assert feature(clf).values == ("low", "mid", "high") and feature(clf).ordered
    declared = sy.NaiveBayes(cardinality="declared").fit(TABLES[name], LABELS)
    assert feature(declared).values == tuple(ORDER)
    plain = sy.NaiveBayes().fit(pd.DataFrame({"grade": CELLS}), LABELS)
    assert (
        feature(plain).values == ("high", "low", "mid") and not feature(plain).ordered
    )
    other = TABLES["pandas"][:5]
    assert np.array_equal(clf.predict_proba(other), plain.predict_proba(other))


@pytest.mark.parametrize("name", TABLES)
def test_chunks_agree_on_the_order(name):
    def labelled(table):
        if isinstance(table, pd.DataFrame):
            return table.assign(label=LABELS)
        if isinstance(table, pl.DataFrame):
            return table.with_columns(label=pl.Series(LABELS))
        return table.append_column("label", pa.array(LABELS))

    table = labelled(TABLES[name])
    clf = sy.NaiveBayes().fit(sy.scan([table[:10], table[10:]]), "label")
    assert feature(clf).values == ("low", "mid", "high") and feature(clf).ordered


def test_parquet_keeps_the_order(tmp_path):
    table = TABLES["pyarrow"].append_column("label", pa.array(LABELS))
    pq.write_table(table, tmp_path / "a.parquet")
    clf = sy.NaiveBayes().fit(sy.scan(tmp_path / "a.parquet"), "label")
    assert feature(clf).values == ("low", "mid", "high")
    frame = read_dataset(tmp_path / "a.parquet", target="label").table
    assert frame["grade"].cat.ordered


def test_ordinal_variables_of_spss_have_an_order(tmp_path):
    path = tmp_path / "a.sav"
    frame = pd.DataFrame({"grade": [3.0, 1, 2, 3], "kind": [1.0, 2, 1, 2]})
    labels = dict(enumerate(ORDER, 1))
    pyreadstat.write_sav(
        frame.assign(label=[0, 1] * 2),
        str(path),
        variable_value_labels={"grade": labels, "kind": labels},
        variable_measure={"grade": "ordinal", "kind": "nominal"},
    )
    table = read_dataset(path, target="label").table
    assert table["grade"].cat.categories.tolist() == ["low", "mid", "high"]
    assert table["grade"].cat.ordered and not table["kind"].cat.ordered


def test_new_values_come_after_those_in_order():
    clf = sy.NaiveBayes().partial_fit(TABLES["pandas"], LABELS, classes=["x", "y"])
    more = pd.DataFrame({"grade": ["never", "ever", "mid"]})
    clf.partial_fit(more, ["x", "y", "x"])
    assert feature(clf).values == ("low", "mid", "high", "ever", "never")
    assert clf.counts_.by_code.sum() == 24 + 3


def test_a_model_file_keeps_the_order(tmp_path):
    path = tmp_path / "m.json"
    clf = sy.NaiveBayes().fit(TABLES["pandas"], LABELS)
    clf.save(path)
    again = sy.load(path)
    assert feature(again) == feature(clf)
    table = TABLES["pandas"]
    assert np.array_equal(again.predict_proba(table), clf.predict_proba(table))


@pytest.mark.parametrize(
    "changes",
    [
        {"values": ["low", "mid", "low"]},
        {"ordered": False},
        {"ordered": 1},
        {"values": [], "ordered": True},
    ],
)
def test_an_order_that_is_none_is_refused(tmp_path, changes):
    from steelyard.persistence import files

    path = tmp_path / "m.json"
    sy.NaiveBayes().fit(TABLES["pandas"], LABELS).save(path)
    document = json.loads(path.read_text())
    document["content"]["features"][0].update(changes)
    text = files._canonical(document["content"])
    document["checksum"] = files._checksum(document["version"], text)
    path.write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match=r"values|ordered|shape"):
        sy.load(path)
