"""Reading files: kinds, formats, and what is wrong with them."""

import gzip
import io
import sys
from argparse import Namespace

import numpy as np
import pandas as pd
import pytest

from steelyard.exceptions import ColumnError, TableError
from steelyard.io.chunks import regroup
from steelyard.io.dataset import read_dataset
from steelyard.io.kinds import Recast
from steelyard.io.reader import whole_frame
from steelyard.io.recognise import open_files


def whole(path, text=(), numbers=(), **reading):
    """Return the table of a file, and what was said of it."""
    reader = Recast(open_files(path, **reading), text, numbers)
    return whole_frame(reader, reader.names), reader.notes


def chunks(path, expected, also=(), rows=20_000, **reading):
    """Yield frames as a model asks for them; the last has what was said."""
    reader = open_files(path, once=True, **reading)
    recast = Recast(reader, also, expected=expected)
    parts = regroup(recast.read([*expected, *also], rows), rows)
    for part in parts:
        yield part.cells.to_pandas(), lambda: recast.notes


@pytest.fixture
def frame():
    """Return a table with numbers, text and missing cells."""
    rng = np.random.default_rng(0)
    age = np.round(rng.normal(50, 8, 60), 1)
    return pd.DataFrame(
        {
            "age": np.where(rng.random(60) < 0.1, np.nan, age),
            "smoker": np.where(rng.random(60) < 0.5, "yes", "no"),
            "zip": rng.integers(1, 4, 60),
            "ill": np.where(rng.random(60) < 0.5, "sick", "well"),
        }
    )


def written(tmp_path, text, name="data.csv", encoding="utf-8"):
    path = tmp_path / name
    path.write_bytes(text.encode(encoding))
    return path


def read(tmp_path, text, text_columns=(), numbers=(), name="data.csv", **options):
    return whole(written(tmp_path, text, name), text_columns, numbers, **options)[0]


def kinds(frame):
    return {
        name: "numbers" if pd.api.types.is_numeric_dtype(frame[name]) else "text"
        for name in frame
    }


def test_numbers_stay_numbers_and_text_stays_text(tmp_path):
    frame = read(tmp_path, "a,b,c\n1,x,2.5\n2,,\n")
    assert kinds(frame) == {"a": "numbers", "b": "text", "c": "numbers"}
    assert frame["b"].isna().tolist() == [False, True]
    assert frame["c"].isna().tolist() == [False, True]


def test_words_for_a_missing_cell_are_missing_in_every_column(tmp_path):
    text = "a,country\n1,NA\nNA,SE\n?,N/A\n3,\n"
    frame = read(tmp_path, text)
    assert kinds(frame) == {"a": "numbers", "country": "text"}
    assert frame["a"].isna().tolist() == [False, True, True, False]
    assert frame["country"].fillna("-").tolist() == ["-", "SE", "-", "-"]
    kept = read(tmp_path, text, missing_values=[])
    assert kept["country"].fillna("-").tolist() == ["NA", "SE", "N/A", "-"]
    assert kept["a"].isna().tolist() == [False, True, True, False]


def test_missing_values_can_be_named(tmp_path):
    frame = read(
        tmp_path, "a,b\n-9,x\n2,unknown\n", missing_values=["-9", "unknown", "no"]
    )
    assert frame["a"].isna().tolist() == [True, False]
    assert frame["b"].isna().tolist() == [False, True]


def test_booleans_keep_their_spelling(tmp_path):
    frame = read(tmp_path, "a,b,n\nTRUE,true,1\nFALSE,,2\n")
    assert frame["a"].tolist() == ["TRUE", "FALSE"]
    assert frame["b"].iloc[0] == "true"
    assert kinds(frame) == {"a": "text", "b": "text", "n": "numbers"}


def test_kinds_can_be_overridden(tmp_path):
    text = "zip,score\n01234,1\n99999,x\n"
    frame = read(tmp_path, text, ["zip"])
    assert frame["zip"].tolist() == ["01234", "99999"]
    with pytest.raises(ColumnError, match=r"'score' .* row 2 has 'x'"):
        read(tmp_path, text, (), ["score"])
    frame = read(tmp_path, text, (), ["score"], missing_values=["x"])
    assert frame["score"].isna().tolist() == [False, True]


def test_every_format_gives_the_same_table(tmp_path, frame):
    plain = tmp_path / "a.csv"
    frame.to_csv(plain, index=False)
    frame.to_csv(tmp_path / "a.tsv", index=False, sep="\t")
    frame.to_csv(tmp_path / "a.csv.gz", index=False)
    frame.to_csv(tmp_path / "semi.csv", index=False, sep=";")
    frame.to_parquet(tmp_path / "a.parquet")
    plain.with_name("bom.csv").write_bytes(b"\xef\xbb\xbf" + plain.read_bytes())
    rows = (
        frame.astype(object).where(frame.notna(), "?").astype(str).agg(",".join, axis=1)
    )
    header = (
        "@relation r\n@attribute age numeric\n@attribute smoker {no,yes}\n"
        "@attribute zip numeric\n@attribute ill {sick,well}\n@data\n"
    )
    (tmp_path / "a.arff").write_text(header + "\n".join(rows) + "\n")
    with gzip.open(tmp_path / "a.arff.gz", "wb") as file:
        file.write((tmp_path / "a.arff").read_bytes())
    for name in ("a.csv", "a.tsv", "a.csv.gz", "bom.csv", "a.parquet", "a.arff"):
        found = whole(tmp_path / name)[0]
        for column in frame:
            left, right = found[column].astype(object), frame[column].astype(object)
            assert left.isna().equals(right.isna())
            assert left.dropna().tolist() == right.dropna().tolist(), (name, column)
    assert len(whole(tmp_path / "a.arff.gz")[0]) == len(frame)
    assert whole(tmp_path / "semi.csv", separator=";")[0].shape == frame.shape


@pytest.mark.parametrize("kind", ["csv", "parquet", "arff"])
def test_standard_input_is_a_file_too(tmp_path, frame, monkeypatch, kind):
    if kind == "parquet":
        buffer = io.BytesIO()
        frame.to_parquet(buffer)
        data = buffer.getvalue()
    elif kind == "csv":
        data = frame.assign(yes=True).to_csv(index=False).encode()
    else:
        data = b"@relation r\n@attribute age numeric\n@data\n" + b"1\n" * len(frame)
    monkeypatch.setattr(sys, "stdin", Namespace(buffer=io.BytesIO(data)))
    found = whole("-", format=kind)[0]
    assert len(found) == len(frame)


def test_other_encodings_can_be_named(tmp_path):
    path = written(tmp_path, "a,größe\nä,1\n", encoding="latin-1")
    assert list(whole(path, encoding="latin-1")[0]) == ["a", "größe"]


def test_a_column_without_a_name_is_left_out_and_mentioned(tmp_path):
    path = written(tmp_path, ",a,class\n0,1,x\n1,2,y\n2,1,x\n")
    data = read_dataset(path)
    assert list(data.table) == ["a"]
    assert data.notes == (f"{path}: dropped, because it has no name: column 1",)


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("a,b\n", "no rows"),
        ("a,b,a\n1,2,3\n", "two columns named 'a'"),
        ("a,b, a\n1,2,3\n", "two columns named 'a'"),
        ("a,b\n1,2\n1,2,3\n", "3 cells in line 3, and 2 columns"),
        ("a,b\n1,2,3\n1,2,3\n", "more cells in its rows than names"),
        ("a\0,b\n1,2\n", "zero bytes"),
    ],
)
def test_a_file_that_is_no_table_is_refused(tmp_path, text, message):
    with pytest.raises((TableError, ColumnError), match=message):
        read(tmp_path, text)
    if "no rows" not in message and "zero" not in message:
        with pytest.raises((TableError, ColumnError), match=message):
            list(chunks(tmp_path / "data.csv", {"a": "numbers"}))


def test_a_file_in_another_encoding_than_was_given_is_refused(tmp_path):
    path = written(tmp_path, "a,b\n1,ä\n", encoding="latin-1")
    for read_it in (
        lambda: whole(path, encoding="utf-8"),
        lambda: list(chunks(path, {"a": "numbers"}, ["b"], encoding="utf-8")),
    ):
        with pytest.raises(TableError, match=r"not utf-8 text .*0xe4.*`encoding`"):
            read_it()


@pytest.mark.parametrize(
    "name, message",
    [
        ("data.odt", r"no known extension.*`format`"),
        ("data.parquet.gz", "no known extension"),
        ("absent.csv", "There is no file"),
    ],
)
def test_an_unknown_file_is_refused(tmp_path, name, message):
    if name != "absent.csv":
        (tmp_path / name).write_text("a\n1\n")
    with pytest.raises((ValueError, OSError), match=message):
        open_files(tmp_path / name)


def test_a_broken_parquet_file_is_refused(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"nothing of the kind")
    with pytest.raises(TableError, match="not a Parquet file"):
        whole(tmp_path / "a.parquet")[0]


def test_a_broken_gzip_file_is_refused(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(b"a,b\n1,2\n")
    with pytest.raises(TableError, match="not compressed by gzip"):
        whole(tmp_path / "a.csv.gz")[0]
    packed = gzip.compress(b"a,b\n" + b"1,2\n" * 10_000)
    (tmp_path / "a.csv.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(TableError, match="cut short"):
        whole(tmp_path / "a.csv.gz")[0]


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_chunks_add_up_to_the_whole(tmp_path, frame, name):
    path = tmp_path / name
    write = {"a.csv": frame.to_csv, "a.parquet": frame.to_parquet}[name]
    write(path, index=False)
    expected = {"zip": "text", "age": "numbers", "smoker": "text"}
    parts = list(chunks(path, expected, ["ill"], rows=7))
    assert len(parts) == 9
    joined = pd.concat([part for part, _ in parts], ignore_index=True)
    assert np.array_equal(joined["age"], frame["age"], equal_nan=True)
    # The library takes numbers as the categories that they are the text of.
    assert joined["zip"].astype(str).tolist() == frame["zip"].astype(str).tolist()
    assert joined["ill"].tolist() == frame["ill"].tolist()


def test_few_texts_among_numbers_are_missing_and_counted_over_chunks(tmp_path):
    path = written(tmp_path, "a\n" + "1\n" * 25 + "many\n" + "1\n" * 5 + "many\n")
    parts, notes = zip(*chunks(path, {"a": "numbers"}, rows=10), strict=True)
    assert pd.concat(parts)["a"].isna().to_numpy().nonzero()[0].tolist() == [25, 31]
    told = ["a: numbers, except 2 cells: 'many' (2); treated as missing"]
    assert notes[-1]() == told


def test_a_column_of_text_in_place_of_numbers_is_refused_with_its_row(tmp_path):
    path = written(tmp_path, "a\n" + "1\n" * 20 + "3\n" + "many\n" * 9)
    with pytest.raises(ColumnError, match=r"'a' .* row 22 has 'many'"):
        list(chunks(path, {"a": "numbers"}, rows=10))


def test_booleans_of_a_model_are_read_from_their_words(tmp_path):
    path = written(tmp_path, "a,b\ntrue,x\nFalse,x\n,x\n1,x\n")
    ((found, _),) = chunks(path, {"a": "booleans"})
    assert found["a"].dropna().tolist() == [True, False, True]
    assert found["a"].isna().tolist() == [False, False, True, False]
    with pytest.raises(ColumnError, match="must hold true or false, not 'x'"):
        list(chunks(path, {"b": "booleans"}))


def test_booleans_with_missing_values_are_read_from_parquet(tmp_path):
    path = tmp_path / "a.parquet"
    pd.DataFrame({"a": [True, None, False]}).to_parquet(path)
    ((found, _),) = chunks(path, {"a": "booleans"})
    assert found["a"].dropna().tolist() == [True, False]
    assert found["a"].isna().tolist() == [False, True, False]


def test_numbers_are_read_to_the_last_digit(tmp_path):
    numbers = np.random.default_rng(0).normal(size=200)
    path = tmp_path / "a.csv"
    path.write_text("x\n" + "\n".join(map(repr, numbers.tolist())) + "\n")
    found, _ = whole(path)
    parts = pd.concat([frame for frame, _ in chunks(path, {"x": "numbers"}, rows=70)])
    assert found["x"].tolist() == parts["x"].tolist() == numbers.tolist()
