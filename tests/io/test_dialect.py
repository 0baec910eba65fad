"""Files as people have them: separators, decimal commas, signs, encodings."""

import gzip
import io
import json
import sys
from argparse import Namespace

import numpy as np
import pandas as pd
import pytest

from steelyard import load
from steelyard.cli.run import main
from steelyard.exceptions import ParameterError
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


def written(tmp_path, text, encoding="utf-8", name="data.csv"):
    path = tmp_path / name
    path.write_bytes(text.encode(encoding))
    return path


def read(tmp_path, text, encoding="utf-8", **options):
    return whole(written(tmp_path, text, encoding), **options)


VALUES = np.array([0.5, 12.25, 1234.75, 1234567.5, -3.125, 980.0, 45.0])


def in_words(value, decimal, thousands):
    """Write a number by replacing the marks of Python's own format."""
    text = f"{value:,.3f}"
    return text.replace(",", "\0").replace(".", decimal).replace("\0", thousands)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize(
    ("decimal", "thousands"),
    [
        (".", ""),
        (".", ","),
        (",", ""),
        (",", "."),
        (",", " "),
        (",", "\u00a0"),
        (".", "'"),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "utf-16"])
def test_numbers_of_every_spelling_are_the_same(
    tmp_path, separator, decimal, thousands, encoding
):
    frame = pd.DataFrame(
        {
            "größe": [in_words(value, decimal, thousands) for value in VALUES],
            "text, or so": ["a", "b,c", "d;e", "é", "f|g", "h", "i j"],
        }
    )
    text = frame.to_csv(index=False, sep=separator)
    found, notes = read(tmp_path, text, encoding)
    assert found["größe"].tolist() == VALUES.tolist()
    assert found["text, or so"].tolist() == frame["text, or so"].tolist()
    told = " ".join(notes)
    assert ("decimal commas" in told) == (decimal == ",")
    assert ("cells between" in told) == (separator != ",")
    assert (f"encoding {encoding}" in told) == (encoding != "utf-8")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Three digits may be either: commas between semicolons are decimal marks.
        ("a;b\n1,250;x\n2,375;y\n", [1.25, 2.375]),
        ('a,b\n"1,250",x\n"2,375",y\n', [1250, 2375]),
        # Another column tells.
        ("a;b\n1.250;0,5\n2.375;0,7\n", [1250, 2375]),
        ("a;b\n1.250;x\n2.375;y\n", [1.25, 2.375]),
        # A leading zero is no thousand.
        ('a,b\n"0,125",x\n"2,375",y\n', [0.125, 2.375]),
    ],
)
def test_an_ambiguous_column_is_read_as_the_others_are(tmp_path, text, expected):
    assert read(tmp_path, text)[0]["a"].tolist() == expected


def test_a_column_with_points_in_a_file_of_commas_is_read_as_it_is(tmp_path):
    text = "a;b;c\n1,5;2.25;0,1\n2,5;3.5;0,2\n"
    assert read(tmp_path, text)[0]["b"].tolist() == [2.25, 3.5]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_column_with_commas_in_a_file_of_points_is_read_as_it_is(tmp_path, separator):
    cells = ["206,13", "0,125", "1,250", "7"] * 60
    lines = [
        f'"{cell}"{separator}{k / 8}{separator}{k}' for k, cell in enumerate(cells)
    ]
    text = "\n".join([separator.join("abc"), *lines])
    found, notes = read(tmp_path, text)
    assert found["a"].tolist() == [206.13, 0.125, 1.25, 7.0] * 60
    assert notes[-1] == "a: numbers, with decimal commas"
    found, _ = read(tmp_path, text, decimal=".")
    assert found["a"].tolist() == cells


def test_a_model_remembers_the_decimal_mark_of_a_column(tmp_path, capsys):
    rows = [f"{k % 9},{k % 7}50;{k % 5}.25;{'uv'[k % 2]}" for k in range(300)]
    path = written(tmp_path, "\n".join(["a;b;class", *rows]))
    model = str(tmp_path / "model.json")
    fit = ["fit", str(path), "--method", "NB", "--no-check", "-o", model]
    assert main(fit) == 0
    clf = load(model)
    assert clf.training_.reading["decimals"] == {"a": ","}
    new = written(tmp_path, "a;b\n1,250;1.25\n3,150;2.25\n", name="new.csv")
    expected = clf.predict_proba(pd.DataFrame({"a": [1.25, 3.15], "b": [1.25, 2.25]}))
    # A small file is predicted in a way of its own, unless a table is written.
    capsys.readouterr()
    assert main(["predict", model, str(new), "--json"]) == 0
    quick = json.loads(capsys.readouterr().out)["rows"]
    assert main(["predict", model, str(new), "-o", str(tmp_path / "out.parquet")]) == 0
    table = pd.read_parquet(tmp_path / "out.parquet")
    for found in (quick, table.to_numpy().tolist()):
        np.testing.assert_allclose([row[1:] for row in found], expected, atol=1e-12)


def test_the_decimal_mark_of_a_file_is_decided_once(tmp_path):
    # With either mark, another column has the say: it was read again and again.
    rows = [f"{k % 9 + 1},509;{k % 90},5;x" for k in range(250)]
    rows[0] = "1,509;1.5;x"
    found, _ = read(tmp_path, "\n".join(["a;b;c", *rows]))
    assert found["b"].isna().sum() <= 1


def test_options_override_what_was_found(tmp_path):
    text = "a;b\n1,250;x,y\n2,375;z,u\n"
    found, notes = read(tmp_path, text, decimal=".")
    assert found["a"].tolist() == [1250, 2375]
    found, _ = read(tmp_path, text, decimal=".", thousands="none")
    assert found["a"].tolist() == ["1,250", "2,375"]
    found, notes = read(tmp_path, "a;b\n1,5;x\n", separator=";", decimal=",")
    assert found["a"].tolist() == [1.5]
    assert notes == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"separator": ";;"}, "`separator` must be one character"),
        ({"decimal": "x"}, "`decimal` must be , or ."),
        ({"decimal": ",", "thousands": ","}, "must differ"),
        ({"encoding": "nix"}, "no encoding 'nix'"),
    ],
)
def test_marks_that_cannot_be_are_refused(tmp_path, options, message):
    with pytest.raises(ParameterError, match=message):
        open_files(written(tmp_path, "a,b\n1,2\n"), **options)


def test_single_quotes_are_found(tmp_path):
    found, notes = read(tmp_path, "a,b\n'x, y',1\n'z',2\n")
    assert found["a"].tolist() == ["x, y", "z"]
    assert "single quotes" in notes[0]
    found, notes = read(tmp_path, "a,b\n'tis,1\nit's,2\n")
    assert found["a"].tolist() == ["'tis", "it's"]


def test_one_column_of_commas_in_text_is_one_column(tmp_path):
    found, notes = read(tmp_path, 'name\n"Doe, J"\n"Roe, R"\n')
    assert found["name"].tolist() == ["Doe, J", "Roe, R"]
    assert notes == []


def test_letters_after_the_first_lines_decide_the_encoding(tmp_path):
    text = "a,b\n" + "1,x\n" * 100_000 + "2,ä\n"
    found, notes = read(tmp_path, text, "cp1252")
    assert found["b"].iloc[-1] == "ä"
    assert "cp1252" in notes[0]


def test_standard_input_and_gzip_are_looked_at_too(tmp_path, monkeypatch):
    text = "a;größe\n" + "x;1,5\n" * 100_000
    data = text.encode("cp1252")
    monkeypatch.setattr(sys, "stdin", Namespace(buffer=io.BytesIO(data)))
    assert whole("-")[0]["größe"].sum() == 150_000
    monkeypatch.setattr(sys, "stdin", Namespace(buffer=io.BytesIO(data)))
    parts = chunks("-", {"größe": "numbers"}, rows=30_000)
    assert sum(part["größe"].sum() for part, _ in parts) == 150_000
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(data))
    assert whole(path)[0]["größe"].sum() == 150_000


# --------------------------------------------------------------- signs and exceptions


def test_currency_and_percent_signs_are_left_out_and_mentioned(tmp_path):
    text = 'p,q,r\n"$1,250.50",12.5%,3 EUR\n-$3,7 %,-4 EUR\n$-2,1%,5\n'
    found, notes = read(tmp_path, text)
    assert found["p"].tolist() == [1250.5, -3, -2]
    assert found["q"].tolist() == [12.5, 7, 1]
    assert found["r"].tolist() == [3, -4, 5]
    assert notes[0].endswith("data.csv: thousands marked by ','")
    assert notes[1:] == [
        f"{name}: numbers, {sign!r} left out"
        for name, sign in (("p", "$"), ("q", "%"), ("r", "EUR"))
    ]


def test_amounts_that_do_not_compare_stay_text(tmp_path):
    found, notes = read(tmp_path, "a,b\n$1,5%\n€2,0.05\n$3,6%\n")
    assert found["a"].tolist() == ["$1", "€2", "$3"]
    assert found["b"].tolist() == ["5%", "0.05", "6%"]
    assert notes == []


def test_numbers_except_a_few_cells_are_numbers_and_the_cells_are_named(tmp_path):
    cells = [*(f"{k}.5" for k in range(96)), "unknown", "n/a", "unknown", "unknown"]
    text = "mass,b\n" + "".join(f"{cell},x\n" for cell in cells)
    found, notes = read(tmp_path, text, missing_values=[])
    assert found["mass"].sum() == sum(k + 0.5 for k in range(96))
    assert notes == [
        "mass: numbers, except 4 cells: 'unknown' (3), 'n/a' (1); treated as missing"
    ]
    kept = whole(tmp_path / "data.csv", ["mass"])[0]
    assert (kept["mass"] == "unknown").sum() == 3


@pytest.mark.parametrize(
    "cells",
    [
        # A count of dependents: its last value is a category.
        ["0", "1", "2"] * 30 + ["3+"] * 5,
        # Codes of diagnoses, of which some begin with a letter.
        [*map(str, range(200, 300)), *(f"V{k}" for k in range(10, 20))],
        ["A1", "12", "b", "13"],
    ],
)
def test_codes_that_are_mostly_digits_stay_text(tmp_path, cells):
    found, notes = read(tmp_path, "a,b\n" + "".join(f"{cell},x\n" for cell in cells))
    assert found["a"].tolist() == cells
    assert notes == []


def test_predictions_read_cells_as_the_fit_did(tmp_path):
    path = written(tmp_path, "a;b\n€ 1.250,50;1,5\nunknown;2,5\n")
    ((found, notes),) = chunks(path, {"a": "numbers", "b": "numbers"})
    assert found["a"].fillna(-1).tolist() == [1250.5, -1]
    assert found["b"].tolist() == [1.5, 2.5]
    assert "a: numbers, except 1 cell: 'unknown' (1); treated as missing" in notes()


def test_rows_whose_label_is_a_word_for_missing_are_left_out(tmp_path):
    path = written(tmp_path, "a,class\n1,x\n2,NA\n3,y\n4,?\n5,\n")
    data = read_dataset(path)
    assert data.target.tolist() == ["x", "y"]
    assert data.notes == ("dropped 3 rows without 'class'",)
    kept = read_dataset(path, missing_values=[])
    assert kept.target.tolist() == ["x", "NA", "y", "?"]


@pytest.mark.parametrize("other", ["{}", "{}.0"])
@pytest.mark.parametrize("is_known", [1.0, 0.4])
@pytest.mark.parametrize(
    "money", ["{:,.2f} €", "€ {:,.2f}", "{:,.2f} EUR", "{:,.0f} €", "{:,.2f}"]
)
def test_german_money_is_read_beside_whole_numbers(tmp_path, other, is_known, money):
    amounts = [875.0, 1234.5, 2345.75, 999.25, 12500.0, 33.1] * 10
    marks = str.maketrans(",.", ".,")
    lines = ["age;sum"]
    for k, amount in enumerate(amounts):
        cell = "NA" if k % 10 >= 10 * is_known else money.format(amount)
        lines.append(f"{other.format(20 + k)};{cell.translate(marks)}")
    path = tmp_path / "a.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    found, notes = whole(path)
    digits = 0 if ".0f" in money else 2
    known = found["sum"].notna()
    assert known.sum() == 60 * is_known
    expected = np.array([float(f"{amount:.{digits}f}") for amount in amounts])
    assert found["sum"][known].tolist() == expected[known].tolist()
    assert found["age"].tolist() == list(range(20, 80))
    assert "decimal commas, thousands marked by '.'" in notes[0]


@pytest.mark.parametrize(("separator", "decimal"), [(",", ","), (";", ".")])
def test_money_alone_is_as_in_the_model_s_file_of_one_separator(
    tmp_path, separator, decimal
):
    path = written(tmp_path, "a;b\n1.234 €;2\n")
    reader = open_files(path, like={"decimal": ".", "separator": separator})
    assert reader.dialect.decimal == decimal
