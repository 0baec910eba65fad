"""A model keeps how its file was read; options for files that do not tell."""

import bz2
import gzip
import io
import json
import lzma
import zipfile

import numpy as np
import pyarrow as pa
import pytest

import steelyard as sy
from steelyard.exceptions import ModelFileError

RNG = np.random.default_rng(0)
ROWS = [
    (
        f"{RNG.normal(3750 + 1500 * (k % 2), 200):,.0f}".replace(",", "."),
        f"{RNG.normal(39 + 8 * (k % 2), 2):.1f}".replace(".", ","),
        f"{k % 28 + 1:02d}/{k % 12 + 1:02d}/2024",
        f"{k % 40} mm",
        "AG"[k % 2],
    )
    for k in range(60)
]
NAMES = "mass;bill;day;depth;species\n"
GERMAN = NAMES + "".join(";".join(row) + "\n" for row in ROWS)
PLAIN = ["--target", "species", "--method", "NB", "--no-check"]


@pytest.fixture
def model(tmp_path, run):
    """Return a model of a German file, with or without dates."""

    def fit(*options):
        (tmp_path / "german.csv").write_text(GERMAN)
        out = tmp_path / "m.json"
        done = run(
            "fit", tmp_path / "german.csv", *PLAIN, *options, "-o", out, "--force"
        )
        assert done.status == 0, done.err
        return out

    return fit


def rows_of(done):
    assert done.status == 0, done.err
    return [row[1:] for row in json.loads(done.out)["rows"]]


def test_a_model_knows_how_its_file_was_read(model):
    reading = sy.load(model()).training_.reading
    assert reading["separator"] == ";" and reading["decimal"] == ","
    assert reading["dates"] == {"day": "dmy"} and reading["units"] == {"depth": "mm"}
    streamed = sy.NaiveBayes().fit(sy.scan(model().parent / "german.csv"), "species")
    of_fit = {"missing_values", "file", "sha256"}
    marks = {name: reading[name] for name in reading if name not in of_fit}
    assert marks == {
        name: mark
        for name, mark in streamed.training_.reading.items()
        if name not in of_fit
    }


@pytest.mark.parametrize("more", [[], ["--reasons", "1"]], ids=["quick", "ordinary"])
def test_an_ambiguous_row_is_read_as_the_training_file_was(model, tmp_path, run, more):
    path, whole = model("--drop", "day"), tmp_path / "whole.csv"
    whole.write_text("mass;bill;depth\n5250;45,0;7\n")
    (expected,) = rows_of(run("predict", path, whole, "--json"))
    for cells in ("5.250;45;7 mm", "5.250;45;7", '"5.250";"45";"7mm"'):
        new = tmp_path / "new.csv"
        new.write_text(f"mass;bill;depth\n{cells}\n")
        (found,) = rows_of(run("predict", path, new, "--json", *more))
        assert found[:2] == expected


@pytest.mark.parametrize("more", [[], ["--reasons", "1"]], ids=["quick", "ordinary"])
def test_a_file_that_contradicts_the_model_is_reported(model, tmp_path, run, more):
    path, new = model("--drop", "day"), tmp_path / "new.csv"
    new.write_text("mass,bill,depth\n5250,45.5,7\n")
    told = "new.csv: decimal points (the file of the model had commas)\n"
    assert run("predict", path, new, *more).err.endswith(told)
    assert run("explain", path, new).err.endswith(told)
    test = tmp_path / "test.csv"
    test.write_text("mass,bill,depth,species\n5250,45.5,7,G\n")
    assert told[8:-1] in run("evaluate", path, test).err
    # What is asked for is no contradiction.
    assert "model had" not in run("predict", path, new, "--decimal", ".", *more).err


def test_another_unit_is_no_number(model, tmp_path, run):
    path, new = model("--drop", "day"), tmp_path / "new.csv"
    new.write_text("mass;bill;depth\n5.250;45;7 mm\n5.250;45;8 mm\n5.250;45;7 cm\n")
    done = run("predict", path, new)
    assert "depth: numbers, except 1 cell: '7 cm' (1); treated as missing" in done.err


def test_the_order_of_dates_is_the_model_s(model, tmp_path, run):
    path = model()
    for text in ("01/02/2024", "2024-02-01", "1 Feb 2024"):
        new = tmp_path / "new.csv"
        new.write_text(f"mass;bill;day;depth\n5.250;45;{text};7\n")
        found = rows_of(run("predict", path, new, "--json"))
        if text == "01/02/2024":
            expected = found
        assert found == expected
    new.write_text("mass;bill;day;depth\n5.250;45;soon;7\n")
    told = "day: dates, except 1 cell: 'soon' (1); treated as missing"
    assert told in run("predict", path, new).err


def test_missing_words_are_kept(tmp_path, run):
    path, out = tmp_path / "a.csv", tmp_path / "m.json"
    path.write_text("a,b,species\n" + "1,x,A\n2,nix,G\n" * 20)
    done = run("fit", path, *PLAIN, "--missing-values", "nix", "-o", out)
    assert done.status == 0, done.err
    (tmp_path / "new.csv").write_text("a,b\n1,nix\n1,\n")
    first, second = rows_of(run("predict", out, tmp_path / "new.csv", "--json"))
    assert first == second


# --------------------------------------------------------------------------- options

TEXT = "a,b,species\n" + "".join(f"{k}.5,x{k % 3},{'AG'[k % 2]}\n" for k in range(30))


@pytest.mark.parametrize(
    "text, options, said",
    [
        ("About\nthis, and that,\n" + TEXT, ["--skip", "2"], ""),
        ("# one\n" + TEXT + "# sum, of, all, rows\n", ["--comment", "#"], ""),
        ("About, 2024\n\n" + TEXT, [], "a line above the header is skipped"),
    ],
)
def test_what_is_above_a_table_is_left_out(tmp_path, run, text, options, said):
    path, out = tmp_path / "a.csv", tmp_path / "m.json"
    path.write_text(text)
    done = run("fit", path, *PLAIN, *options, "-o", out)
    assert done.status == 0 and said in done.err, done.err
    assert sy.load(out).feature_names_in_.tolist() == ["a", "b"]


def test_columns_without_names_are_numbered(tmp_path, run):
    path, out = tmp_path / "a.csv", tmp_path / "m.json"
    path.write_text(TEXT.partition("\n")[2])
    done = run("fit", path, *PLAIN, "-o", out)
    assert "If its first line holds no names" not in done.err and done.status == 2
    done = run("fit", path, "--target", "x3", *PLAIN[2:], "--no-header", "-o", out)
    assert done.status == 0 and "columns are called x1 to x3" in done.err
    assert len(rows_of(run("predict", out, path, "--no-header", "--json"))) == 30
    path.write_text("1,2,3\n4,5,6\n")
    done = run("fit", path, *PLAIN, "-o", out, "--force")
    assert "If its first line has no names, set --no-header." in done.err


@pytest.mark.parametrize("option", [["--skip", "-1"], ["--skip", "x"]])
def test_options_that_make_no_sense_are_refused(tmp_path, run, option):
    (tmp_path / "a.csv").write_text(TEXT)
    done = run("fit", tmp_path / "a.csv", *PLAIN, *option, "-o", tmp_path / "m.json")
    assert done.status == 2 and "--skip" in done.err


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_the_encoding_is_hinted_at(tmp_path, run, encoding):
    path, out = tmp_path / "a.csv", tmp_path / "m.json"
    path.write_bytes(TEXT.encode(encoding))
    done = run("fit", path, *PLAIN, "-o", out)
    assert f"say so with --encoding={encoding}" in done.err
    done = run("fit", path, *PLAIN, "--encoding", encoding, "-o", out)
    assert done.status == 0, done.err


# ---------------------------------------------------------------------------- packed


def zipped(data, *names):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in names:
            archive.writestr(name, data)
    return packed.getvalue()


PACKED = {
    "a.csv.gz": gzip.compress,
    "a.csv.bz2": bz2.compress,
    "a.csv.xz": lzma.compress,
    "a.csv.zst": lambda data: pa.compress(data, "zstd", asbytes=True),
    "a.csv.zip": lambda data: zipped(data, "a.csv"),
    "a.zip": lambda data: zipped(data, "folder/b.csv", "__MACOSX/b.csv"),
    "a.txt": lambda data: data.replace(b",", b"|"),
}


@pytest.mark.parametrize("name", PACKED)
def test_packed_files_are_read_everywhere(tmp_path, run, name):
    path, plain, out = tmp_path / name, tmp_path / "plain.csv", tmp_path / "m.json"
    plain.write_text(TEXT)
    path.write_bytes(PACKED[name](TEXT.encode()))
    done = run("fit", path, *PLAIN, "-o", out)
    assert done.status == 0, done.err
    assert rows_of(run("predict", out, path, "--json")) == rows_of(
        run("predict", out, plain, "--json")
    )
    with sy.scan(path) as rows:
        assert sum(chunk.n_rows for chunk in rows.chunks()) == 30


@pytest.mark.parametrize("name", [*PACKED][:6])
def test_packed_files_that_are_none_are_refused(tmp_path, run, name):
    path = tmp_path / name
    for data in (b"no such file at all", PACKED[name](TEXT.encode())[:-40]):
        path.write_bytes(data)
        done = run("fit", path, *PLAIN, "-o", tmp_path / "m.json")
        assert done.status == 2 and name in done.err
        assert len(done.err.splitlines()) == 1


def test_archives_of_several_files_are_refused(tmp_path, run):
    path = tmp_path / "a.zip"
    path.write_bytes(zipped(TEXT, "a.csv", "b.csv"))
    done = run("fit", path, *PLAIN, "-o", tmp_path / "m.json")
    assert "contains 2 files, but only one can be read" in done.err


# ------------------------------------------------------------------------------ JSON


@pytest.mark.parametrize(
    "arguments",
    [
        ["predict", "absent.json", "absent.csv", "--json"],
        ["evaluate", "absent.csv", "--json"],
        ["evaluate", "--json", "absent.csv", "--folds", "x"],
        ["fit", "--json", "--nonsense"],
    ],
)
def test_errors_are_json_where_that_is_asked_for(run, tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    done = run(*arguments)
    assert done.status == 2 and done.out == ""
    assert list(json.loads(done.err)) == ["error"]


# -------------------------------------------------------------------- model files


@pytest.mark.parametrize(
    "changes",
    [
        {"separator": ";;"},
        {"thousands": "a long one"},
        {"decimal": "x"},
        {"missing_values": [1]},
        {"dates": {"day": "ydm"}},
        {"units": {"depth": 3}},
        {"more": 1},
    ],
)
def test_a_reading_that_cannot_be_is_refused(model, changes):
    from steelyard.persistence import files

    path = model()
    document = json.loads(path.read_text())
    document["content"]["fitted"]["training_"]["reading"].update(changes)
    text = files._canonical(document["content"])
    document["checksum"] = files._checksum(document["version"], text)
    path.write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match="reading"):
        sy.load(path)
