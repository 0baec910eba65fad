"""ARFF files: what is read, what is refused, and with which words."""

import csv
import gzip
import os
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.io import arff as scipy_arff

from steelyard.io.arff import ArffError, parse_arff

HEADER = """% A comment, then a blank line.

@RELATION 'two words'
@Attribute length NUMERIC
@attribute colour {red, green, 'dark blue'}
@attribute note string
@DATA
"""


@pytest.fixture
def write(tmp_path):
    """Write bytes or text to a file and return its path."""

    def write(content, name="table.arff"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def read_arff(path, **options):
    return parse_arff(path.read_bytes(), str(path), **options)


def declared(frame):
    return [
        tuple(column.cat.categories) if column.dtype == "category" else None
        for _, column in frame.items()
    ]


def columns(path, **options):
    """Return cells by column, missing text as None."""
    _, frame, _ = read_arff(path, **options)
    return [
        column.tolist()
        if column.dtype == float
        else [None if pd.isna(cell) else cell for cell in column.tolist()]
        for _, column in frame.items()
    ]


def data_folder():
    folder = os.environ.get("STEELYARD_DATA")
    if not folder:
        pytest.skip("STEELYARD_DATA does not name a folder of ARFF files")
    return Path(folder)


# What is read.


def test_header_and_plain_rows(write):
    path = write(HEADER + "1.5,red,abc\n-2e3,green,x y\n")
    relation, frame, has_weights = read_arff(path)
    assert relation == "two words"
    assert list(frame) == ["length", "colour", "note"]
    assert declared(frame) == [None, ("red", "green", "dark blue"), None]
    assert not has_weights
    assert frame["length"].dtype == np.float64
    assert columns(path) == [
        [1.5, -2000.0],
        ["red", "green"],
        ["abc", "x y"],
    ]


def test_blanks_around_cells_comments_and_empty_lines_are_ignored(write):
    text = HEADER + "\n% note\n  1 , red ,  abc \n\n \t\n2,green,x % why\n%\n"
    assert columns(write(text)) == [[1, 2], ["red", "green"], ["abc", "x"]]


def test_percent_inside_a_word_is_part_of_the_value(write):
    assert columns(write(HEADER + "1,red,50%\n"))[2] == ["50%"]


def test_unquoted_question_mark_is_missing_and_quoted_is_text(write):
    assert np.isnan(columns(write(HEADER + "?,?,?\n"))[0][0])
    assert columns(write(HEADER + "?, ? ,?\n"))[1:] == [[None], [None]]
    assert columns(write(HEADER + "1,?,'?'\n"))[1:] == [[None], ["?"]]


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("'a, b'", "a, b"),
        ('"a, b"', "a, b"),
        (r"'it\'s'", "it's"),
        (r'"say \"no\""', 'say "no"'),
        ('"it\'s"', "it's"),
        (r"'a\\b'", r"a\b"),
        (r"'a\tb\n'", "a\tb\n"),
        (r"'50\%'", "50%"),
        (r"'\u00e9\101'", "éA"),
        ("'{x}'", "{x}"),
        ("''", ""),
        ("' x '", " x "),
        ("O'Brien", "O'Brien"),
        (r"a\b", r"a\b"),
        ("50 % of it", "50"),
    ],
)
def test_quotes_and_escapes(write, cell, text):
    rows = f"1,'dark blue',{cell}\n2,red,{cell}\n"
    assert columns(write(HEADER + rows))[2] == [text, text]


def test_quoted_names_and_declared_values(write):
    text = (
        "@relation r\n"
        "@attribute 'a b' numeric % first\n"
        "@attribute \"it's\"{'x, y', \"}\" ,?,'don\\'t'}\n"
        "@attribute\tclass\t{a}\n"
        "@data\n1,'x, y',a\n2,'}',a\n3,\"don't\",a\n4,'?',a\n5,?,a\n"
    )
    _, frame, _ = read_arff(write(text))
    assert list(frame) == ["a b", "it's", "class"]
    assert declared(frame)[1] == ("x, y", "}", "?", "don't")
    assert columns(write(text))[1] == ["x, y", "}", "don't", "?", None]


def test_tabs_separate_fields_as_commas_do(write):
    assert columns(write(HEADER + "1\tred\tabc\n2,\tgreen\t,x y\n")) == [
        [1, 2],
        ["red", "green"],
        ["abc", "x y"],
    ]


def test_sparse_rows_fill_in_zero_and_the_first_declared_value(write):
    text = (
        "@relation r\n@attribute a numeric\n@attribute b {first, second}\n"
        "@attribute c numeric\n@attribute d {u, 'v w'}\n"
        "@data\n{1 second, 2 7}\n{}\n{ 0 ? ,3 'v w' }\n1,first,2,u\n"
    )
    a, b, c, d = columns(write(text))
    assert np.array_equal(a, [0, 0, np.nan, 1], equal_nan=True)
    assert b == ["second", "first", "first", "first"]
    assert c == [7, 0, 0, 2]
    assert d == ["u", "u", "v w", "u"]


def test_instance_weights_are_noted(write):
    text = (
        "@relation r\n@attribute a numeric\n@attribute b {x, y}\n@data\n"
        "1,y,{2.5}\n2,x\n{0 3}, {0}\n4,'x' {5} % note\n"
    )
    _, frame, has_weights = read_arff(write(text))
    assert has_weights
    assert frame["a"].tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_line_endings_and_byte_order_mark(write, ending):
    text = "\ufeff" + HEADER + "1,red,abc\n2,green,x"
    assert columns(write(text.replace("\n", ending)))[0] == [1, 2]


def test_gzip_is_recognised_by_content(write):
    packed = gzip.compress((HEADER + "1,red,abc\n").encode())
    assert columns(write(packed, "t.arff.gz")) == [[1], ["red"], ["abc"]]
    assert columns(write(packed, "t.arff")) == [[1], ["red"], ["abc"]]


def test_no_rows_give_empty_columns(write):
    _, frame, _ = read_arff(write(HEADER))
    assert len(frame) == 0
    assert frame["length"].dtype == float


def test_other_encodings_are_read_on_request(write):
    path = write((HEADER + "1,red,\xe9t\xe9\n").encode("latin-1"))
    assert columns(path, encoding="latin-1")[2] == ["été"]


@given(
    st.lists(
        st.tuples(
            st.floats(allow_nan=False),
            st.sampled_from(["red", "green", "dark blue", None]),
            st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\r")),
        ),
        max_size=8,
    )
)
def test_what_is_written_with_quotes_is_read_back(tmp_path_factory, rows):
    def quote(text):
        if text is None:
            return "?"
        text = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
        return f"'{text}'"

    lines = [f"{x!r},{quote(colour)},{quote(note)}\n" for x, colour, note in rows]
    path = tmp_path_factory.getbasetemp() / f"quoted-{os.getpid()}.arff"
    path.write_bytes((HEADER + "".join(lines)).encode())
    expected = [list(column) for column in zip(*rows, strict=True)] or [[], [], []]
    assert columns(path) == expected


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["1", "-2.5", "1e9", "?"]),
            st.sampled_from(["red", "green", "?"]),
            st.sampled_from(["abc", "x y", "a_b", "?"]),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_reading_in_bulk_equals_reading_by_row(tmp_path_factory, rows):
    body = "".join(",".join(row) + "\n" for row in rows)
    folder = tmp_path_factory.getbasetemp()
    plain = folder / f"plain-{os.getpid()}.arff"
    plain.write_text(HEADER + body)
    # One quoted cell sends the whole file the slower way.
    quoted = folder / f"slow-{os.getpid()}.arff"
    quoted.write_text(HEADER + body + "7,red,'z'\n")
    for fast, slow in zip(columns(plain), columns(quoted), strict=True):
        assert [repr(cell) for cell in fast] == [repr(cell) for cell in slow[:-1]]


# What is refused.


@pytest.mark.parametrize(
    ("row", "line", "words"),
    [
        ("1,red", 9, "2 fields, but 3 attributes"),
        ("1,red,a,b", 9, "4 fields, but 3 attributes"),
        ("1,red,'a',b", 9, "4 fields, but 3 attributes"),
        ("1,rd,a", 9, "'rd' is not among the 3 declared.*Did you mean 'red'"),
        ("1,'rd','a'", 9, "'rd' is not among the 3 declared"),
        ("1,Red,a", 9, "'Red' is not among"),
        ("one,red,a", 9, "'one' is not a number, but 'length'"),
        ("1_000,red,a", 9, "'1_000' is not a number"),
        ("1_000,red,'a'", 9, "'1_000' is not a number"),
        (",red,a", 9, "an empty field.*\\?"),
        ("1,,a", 9, "an empty field"),
        ("1,red,", 9, "an empty field"),
        ("1,'red',", 9, "an empty field"),
        ("1,red,'a", 9, "a quote is not closed"),
        ("1,red,'a'b", 9, "text follows it"),
        ("1,red,a,{x}", 9, "weight .x. is not a number"),
        ("1,red,a,{-1}", 9, "weight .-1. is not a number"),
        ("1,red,a,{1} 2", 9, "unexpected text at the end"),
        ("{0 1", 9, "cannot read this sparse row"),
        ("{0 1,2  'a}", 9, "cannot read this sparse row"),
        ("{0 1, 0 2, 2 a}", 9, "position 0 is listed twice"),
        ("{3 1}", 9, "position 3.*end at 2"),
        ("{0 1}", 9, "leaves out 'note'"),
    ],
)
def test_bad_rows_are_refused_with_their_line(write, row, line, words):
    path = write(HEADER + "1,red,a\n" + row + "\n")
    with pytest.raises(ArffError, match=words) as caught:
        read_arff(path)
    assert caught.value.line == line
    assert str(path) in str(caught.value)


def test_line_numbers_count_comments_and_blank_lines(write):
    with pytest.raises(ArffError) as caught:
        read_arff(write(HEADER + "1,red,a\n\n% note\n1,red\n"))
    assert caught.value.line == 11


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", None, "no @data line"),
        ("@relation r\n@attribute a numeric\n", None, "no @data line"),
        ("a,b,c\n1,2,3\n", 1, "expected @relation.*'a,b,c'"),
        ("@relation\n", 1, "@relation without a name"),
        ("@attribute a numeric\n@data\n", 2, "before any @relation"),
        ("@relation r\n@data\n", 2, "before any @attribute"),
        ("@relation r\n@attribute a\n", 2, "'a' has the type ''"),
        ("@relation r\n@attribute a b numeric\n", 2, "quote a name"),
        ("@relation r\n@attribute 'a numeric\n", 2, "closing quote"),
        ("@relation r\n@attribute a date 'yyyy'\n", 2, "DATE, which is not"),
        ("@relation r\n@attribute a relational\n", 2, "RELATIONAL, which is not"),
        ("@relation r\n@attribute a {x, y\n", 2, "values of 'a' cannot be read"),
        ("@relation r\n@attribute a {x,,y}\n", 2, "values of 'a' cannot be read"),
        ("@relation r\n@attribute a {x, 'y}\n", 2, "values of 'a' cannot be read"),
        ("@relation r\n@attribute a {x, y, x}\n", 2, "the value 'x' twice"),
        ("@relation r\n@attribute a numeric {2}\n", 2, "Attribute weights"),
        (
            "@relation r\n@attribute a numeric\n@attribute a string\n",
            3,
            "'a' is declared twice",
        ),
    ],
)
def test_bad_headers_are_refused_with_their_line(write, text, line, words):
    with pytest.raises(ArffError, match=words) as caught:
        read_arff(write(text))
    assert caught.value.line == line


def test_wrong_encoding_names_the_offset_and_the_remedy(write):
    content = (HEADER + "1,red,\xe9t\xe9\n").encode("latin-1")
    offset = content.index(b"\xe9")
    words = f'0xe9 at offset {offset} is not utf-8.*encoding="latin-1"'
    with pytest.raises(ArffError, match=words) as caught:
        read_arff(write(content))
    assert caught.value.line == 8


@pytest.mark.parametrize("damage", ["cut", "flip"])
def test_damaged_gzip_is_refused(write, damage):
    packed = bytearray(gzip.compress((HEADER + "1,red,abc\n" * 500).encode()))
    if damage == "cut":
        packed = packed[:-20]
    else:
        packed[-6] ^= 0xFF
    with pytest.raises(ArffError, match="gzip data are truncated or damaged"):
        read_arff(write(bytes(packed), "t.arff.gz"))


def test_a_missing_file_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_arff(tmp_path / "none.arff")


def test_errors_survive_pickling():
    error = ArffError("a.arff", 3, "wrong.")
    assert str(pickle.loads(pickle.dumps(error))) == "a.arff, line 3: wrong."


@given(st.text(st.sampled_from("ab1?,'\"{}%\\ \t\n@"), max_size=40))
def test_any_data_section_is_read_or_refused(tmp_path_factory, body):
    path = tmp_path_factory.getbasetemp() / f"any-{os.getpid()}.arff"
    path.write_text(
        "@relation r\n@attribute n numeric\n@attribute s string\n@data\n" + body
    )
    try:
        read = columns(path)
    except ArffError:
        return
    assert len(read[0]) == len(read[1])


# Real files.


def test_every_data_set_agrees_with_the_manifest():
    folder = data_folder()
    with open(folder / "MANIFEST.csv", newline="", encoding="utf-8") as file:
        manifest = list(csv.DictReader(file))
    assert manifest
    for row in manifest:
        _, X, _ = read_arff(folder / row["file"])
        missing, n_rows = X.isna().any().any(), len(X)
        y = X.pop(next((n for n in X if n.lower() == "class"), X.columns[-1]))
        classes = y.cat.categories
        numeric = sum(values is None for values in declared(X))
        found = {
            "instances": n_rows,
            "attributes": X.shape[1],
            "numeric": numeric,
            "nominal": X.shape[1] - numeric,
            "classes": len(classes),
            "classes_present": y.nunique(),
            "has_missing": "Y" if missing else "N",
        }
        expected = {
            key: row[key] if key == "has_missing" else int(row[key]) for key in found
        }
        assert found == expected, row["name"]


@pytest.mark.parametrize("name", ["iris", "vote", "autos", "segment", "anneal"])
def test_same_cells_as_scipy(name):
    path = data_folder() / f"{name}.arff"
    _, frame, _ = read_arff(path)
    theirs, meta = scipy_arff.loadarff(path)
    assert list(frame) == meta.names()
    for column, label in zip(columns(path), meta.names(), strict=True):
        if frame[label].dtype != float:
            text = [None if cell == b"?" else cell.decode() for cell in theirs[label]]
            assert column == text
        else:
            np.testing.assert_array_equal(column, theirs[label])
