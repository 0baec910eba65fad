"""Spreadsheets, SPSS, Stata, Arrow and JSON: the same table from each."""

import datetime
import subprocess
import sys
import zipfile
import zlib
from decimal import Decimal

import numpy as np
import openpyxl
import pandas as pd
import pyreadstat
import pytest
from pandas.testing import assert_frame_equal, assert_series_equal

import steelyard as sy
from steelyard.cli.run import main
from steelyard.exceptions import ColumnError, ParameterError, TableError
from steelyard.io import formats
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
    return pd.DataFrame(
        {
            "age": [31.5, np.nan, 44.0, 28.0],
            "children": [0, 2, 1, 3],
            "city": ["Ulm", None, "Köln", "Ulm"],
            "label": ["no", "yes", "no", "yes"],
        }
    )


WRITERS = {
    "xlsx": lambda frame, path: frame.to_excel(path, index=False),
    "sav": lambda frame, path: pyreadstat.write_sav(frame, str(path)),
    "dta": lambda frame, path: frame.to_stata(path, write_index=False, version=118),
    "feather": lambda frame, path: frame.to_feather(path),
    "arrow": lambda frame, path: frame.to_feather(path, compression="uncompressed"),
}


@pytest.mark.parametrize("kind", WRITERS)
def test_the_table_is_that_of_a_csv_file(kind, frame, tmp_path):
    path, csv = tmp_path / f"data.{kind}", tmp_path / "data.csv"
    WRITERS[kind](frame, path)
    frame.to_csv(csv, index=False)
    data, expected = read_dataset(path), read_dataset(csv)
    # Stata and SPSS have empty texts in place of missing ones.
    table = data.table.replace({"city": {"": None}})
    for one in (table, expected.table):
        one["city"] = one["city"].astype(object).where(one["city"].notna(), None)
    assert_frame_equal(table, expected.table, check_dtype=False)
    assert data.target.tolist() == expected.target.tolist()
    wanted = {"age": "numbers", "city": "text"}
    ((chunk, _),) = chunks(path, wanted)
    assert list(chunk) == ["age", "city"]


def test_values_with_labels_are_categories(tmp_path):
    codes = pd.DataFrame({"sex": [1.0, 2.0, 1.0, np.nan], "age": [30.0, 99, 41, 25]})
    labels = {"sex": {1: "male", 2: "female"}, "age": {99: "refused"}}
    sav, dta = tmp_path / "d.sav", tmp_path / "d.dta"
    pyreadstat.write_sav(codes, str(sav), variable_value_labels=labels)
    pyreadstat.write_dta(codes, str(dta), variable_value_labels=labels)
    for path in (sav, dta):
        found, _ = whole(path)
        assert found["sex"].astype(object).tolist()[:3] == ["male", "female", "male"]
        assert found["sex"].isna().tolist() == [False, False, False, True]
        # One label among many numbers makes no names of them.
        assert found["age"].tolist() == [30, 99, 41, 25]


def test_cells_of_a_sheet_are_cleaned_as_those_of_text(tmp_path):
    path = tmp_path / "book.xlsx"
    mixed = [*range(28), "unknown", "n/a"]
    book = pd.DataFrame({"size": mixed, "code": [*(["a", 7] * 14), "b", None]})
    with pd.ExcelWriter(path) as writer:
        book.to_excel(writer, index=False, sheet_name="survey")
        book.to_excel(writer, index=False, sheet_name="old")
    found, notes = whole(path)
    assert found["size"].isna().sum() == 2 and found["size"].sum() == sum(range(28))
    assert found["code"].tolist()[:2] == ["a", "7"]
    assert notes[0].endswith("reading sheet 'survey', not 'old'")
    assert "'unknown'" in notes[1]


def test_a_file_of_another_format_than_its_ending_is_refused(tmp_path):
    for kind in WRITERS:
        path = tmp_path / f"data.{kind}"
        path.write_bytes(b"not a table at all, only some text" * 9)
        problem = "cannot be read as|is damaged, was cut short or is not an Arrow"
        with pytest.raises(TableError, match=f"data.{kind} ({problem})"):
            whole(path)


@pytest.mark.parametrize("kind, library", [("sav", "pyreadstat"), ("xlsx", "openpyxl")])
def test_what_is_lacking_is_named(kind, library, frame, tmp_path):
    path = tmp_path / f"data.{kind}"
    WRITERS[kind](frame, path)
    code = (
        f"import sys; sys.modules[{library!r}] = None\n"
        "from steelyard.cli import main\n"
        f"main(['fit', {str(path)!r}, '-o', 'x.json'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path
    )
    (line,) = done.stderr.splitlines()
    assert (
        f"is read by {library}," in line and "pip install 'steelyard[formats]'" in line
    )


# -------------------------------------------------------------------------------- dates

DAYS = ["2024-01-05", "2024-02-29", None, "2024-01-05"]
TIMES = ["2024-01-05 10:30:00", "2024-02-29 23:00:00", None, "2024-01-05 10:30:00"]


@pytest.mark.parametrize("texts", [DAYS, TIMES], ids=["dates", "times"])
@pytest.mark.parametrize("kind", ["csv", "parquet", "feather", "xlsx", "json"])
def test_dates_are_the_same_in_every_format(texts, kind, tmp_path):
    path = tmp_path / f"d.{kind}"
    dates = pd.to_datetime(pd.Series(texts))
    frame = pd.DataFrame({"day": dates, "label": [0, 1] * 2})
    if kind == "json":
        frame["day"] = texts
        frame.to_json(path, orient="records")
    else:
        write = {"csv": "to_csv", "xlsx": "to_excel"}.get(kind, f"to_{kind}")
        options = {"index": False} if kind in ("csv", "xlsx") else {}
        getattr(frame, write)(path, **options)
    found = read_dataset(path).table["day"].astype("datetime64[us]")
    assert_series_equal(found, dates, check_names=False)
    ((chunk, _),) = chunks(path, {"day": "text"})
    cells = chunk["day"].astype(object)
    assert cells.where(cells.notna(), None).tolist() == texts
    ((chunk, _),) = chunks(path, {"day": "dates"})
    assert chunk["day"].astype("datetime64[us]").tolist() == dates.tolist()


def test_a_target_of_dates_is_text(tmp_path):
    path = tmp_path / "d.parquet"
    day = datetime.date(2024, 1, 5)
    pd.DataFrame({"a": [0, 1], "class": [day, day]}).to_parquet(path)
    assert read_dataset(path).target.tolist() == ["2024-01-05"] * 2


# ------------------------------------------------------------- JSON and spreadsheets


@pytest.mark.parametrize(
    "name, text",
    [
        ("a.json", '[{"a": 1, "b": "x"}, {"a": null, "b": "y"}]'),
        ("a.json", '{"a": [1, null], "b": ["x", "y"]}'),
        ("a.json", '{"columns": ["a", "b"], "rows": [[1, "x"], [null, "y"]]}'),
        ("a.jsonl", '{"a": 1, "b": "x"}\n\n{"b": "y", "a": "NA"}\n'),
        ("a.ndjson", '{"a": "1", "b": "x", "tags": [1]}\n{"b": "y"}\n'),
    ],
)
def test_json_is_a_table(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    found, notes = whole(path)
    assert found["a"].fillna(-1).tolist() == [1, -1]
    assert found["b"].tolist() == ["x", "y"] and list(found) == ["a", "b"]
    assert notes == (["tags: nested values, dropped"] if "tags" in text else [])


@pytest.mark.parametrize("text", ['{"a": 3}', "3", "[1, 2]", "{", '[{"a": 1}'])
def test_json_that_is_no_table_is_refused(tmp_path, text):
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(TableError, match=r"a\.json (contains no|cannot be read as)"):
        whole(path)


@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
@pytest.mark.parametrize("big", ["1e400", "-1e5000", str(2**63), str(2**70)])
def test_whole_numbers_beyond_64_bits_are_floats_as_in_text(tmp_path, name, big):
    digits = f"{Decimal(big):f}"
    rows = [f'{{"a": {cell}, "b": {2**62 + 1}}}' for cell in (digits, 1)]
    text = "\n".join(rows) if name == "a.jsonl" else f"[{', '.join(rows)}]"
    (tmp_path / name).write_text(text)
    (tmp_path / "a.csv").write_text(f"a\n{digits}\n1\n")
    found, expected = whole(tmp_path / name)[0], whole(tmp_path / "a.csv")[0]
    assert found["a"].tolist() == expected["a"].tolist() == [float(digits), 1.0]
    assert found["b"].tolist() == [2**62 + 1] * 2


@pytest.fixture
def book(tmp_path):
    path = tmp_path / "book.xlsx"
    frame = pd.DataFrame({"size": [1, 2, 3], "kind": list("xyz"), "class": list("aba")})
    with pd.ExcelWriter(path) as writer:
        frame.to_excel(writer, sheet_name="2007", index=False, startrow=3)
        writer.sheets["2007"].cell(1, 1).value = "Penguins"
        frame.iloc[:, :2].to_excel(writer, sheet_name="2008", index=False)
    return path


def test_titles_of_a_sheet_are_left_out_and_mentioned(book):
    found, notes = whole(book)
    assert found["size"].tolist() == [1, 2, 3] and list(found)[2] == "class"
    assert notes[0].endswith("reading sheet '2007', not '2008'")
    assert notes[1].endswith("a line above the header is skipped, 'Penguins'")
    assert whole(book, skip=3)[0].equals(found)


@pytest.mark.parametrize("above", [["Loans"], ["Applicant", None, None, "Loan"]])
@pytest.mark.parametrize("share_missing", [0.0, 0.5])
def test_titles_are_found_in_a_sheet_as_in_text(tmp_path, above, share_missing):
    random = np.random.default_rng(0)
    cells = random.integers(0, 99, (40, 5)).astype(float)
    cells[random.random(cells.shape) < share_missing] = np.nan
    frame = pd.DataFrame(cells, columns=["age", "income", "years", "sum", "bad"])
    title = pd.DataFrame([above + [None] * (5 - len(above)), frame.columns])
    frame.columns = title.columns
    frame = pd.concat([title, frame])
    frame.to_excel(tmp_path / "a.xlsx", index=False, header=False)
    frame.to_csv(tmp_path / "a.csv", index=False, header=False)
    found, notes = whole(tmp_path / "a.xlsx")
    expected, _ = whole(tmp_path / "a.csv")
    assert found.columns.tolist() == ["age", "income", "years", "sum", "bad"]
    assert notes[-1].endswith(f"a line above the header is skipped, {above[0]!r}")
    np.testing.assert_array_equal(found.astype(float), expected.astype(float))


def test_cells_far_from_the_table_are_refused_and_empty_ones_are_not(tmp_path):
    book = openpyxl.Workbook()
    sheet = book.active
    for row in (["a", "class"], *([k, "uv"[k % 2]] for k in range(9))):
        sheet.append(row)
    far = sheet.cell(1048576, 16384)
    far.value = "x"
    book.save(tmp_path / "far.xlsx")
    message = "'Sheet' of .*far.xlsx has cells as far as row 1048576 and column 16384"
    with pytest.raises(TableError, match=message):
        whole(tmp_path / "far.xlsx")
    far.value = None
    book.save(tmp_path / "styled.xlsx")
    assert whole(tmp_path / "styled.xlsx")[0].shape == (9, 2)


def test_an_error_without_words_is_named(book, monkeypatch):
    def fails(*_, **__):
        raise MemoryError

    monkeypatch.setattr(pd, "read_excel", fails)
    with pytest.raises(TableError, match=r"cannot be read as xlsx: MemoryError$"):
        whole(book)


@pytest.mark.parametrize(
    "hidden", ["__MACOSX/._a.csv", ".DS_Store", "data/._a.csv", ".git/config"]
)
@pytest.mark.parametrize("name", ["a.zip", "a.csv.zip"])
def test_hidden_files_of_an_archive_are_not_counted(tmp_path, hidden, name):
    with zipfile.ZipFile(tmp_path / name, "w") as archive:
        archive.writestr("data/a.csv", "a,b\n1,x\n2,y\n")
        archive.writestr(hidden, "no table")
    assert whole(tmp_path / name)[0]["b"].tolist() == ["x", "y"]


def test_a_sheet_is_chosen_by_name(book):
    found, notes = whole(book, sheet="2008")
    assert list(found) == ["size", "kind"] and notes == []
    bare, notes = whole(book, sheet="2008", no_header=True)
    assert bare.shape == (4, 2) and list(bare) == ["x1", "x2"]
    with pytest.raises(TableError, match=r"no sheet '2009'.*Sheets: '2007', '2008'"):
        whole(book, sheet="2009")
    with pytest.raises(ColumnError, match="with `sheet`: '2007'"):
        read_dataset(book, sheet="2008", target="class")
    with pytest.raises(ParameterError, match="with `sheet`: '2007'"):
        read_dataset(book, sheet="2008")


# A sheet of 1.5, "a" and a date; 2, "b" and another, as Excel 97 has it.
XLS = (
    "78daed583d68144114fe66b2f74b72b7172f4222842360343129c4c626599568aa0bd1c65fd03b5d"
    "50a21b39047f0a8dc62b05c14a1121100b9ba88d3f68e15f612144b41004e14e4b2b41c122b9cd9b"
    "b7bbf1722ae44003d1f99679f3e6cd7c3b6ff7cdbcfd793d9d2a4ddc6d2ba306fd6840c58d215c65"
    "13546241c304f5bbae52833a4ac5d5585688452990e1101e35bd8aa818aa78972171c7784a12f848"
    "651f8e6368d4b1334b882dec434e281ffa480a5c274b02adec5533cb832c57b0bccd231fb3dcc496"
    "4b2cfb686c49ecc1b435d4bdd15fc5bb6407f725a0ce7b9f39efd9b21e2d78a956f1b9cbc21b1bc2"
    "e6c291dcd165d6d16e34621214d041dbb10baa9dc44dc481dd84de6cb67760a08434057b12dfdc0c"
    "f035d8d54f32dabeb47601b27f5f688ffcc61ea520d6daaf480318837b803749911274d8f0d6426e"
    "061db420c085d6c729b23bb9633655270fdb0e597254f27195d5390b980bb24013ef8e4692879064"
    "3dc57bc42437666e7d7993cd0f5bfbd932c699df7b3eac56eec0c579c52072827b1ae6653733d6b1"
    "bcc0675dc57a1bcb34f94a75e7708baf6c1be73117b9b793e6d9c0786bada9d2d7925efcbcfd417b"
    "f193d545fad460f94c7aea9d3541d71f23ef051fe3e8113de2da55858756500b3f977c60d9fa535e"
    "894ad3f7ddf51f8249ccaa9d4448b1f45aeaee88f996f4ef95628b1af65919675b0a7ba5375e305b"
    "dd1daf4f924fcf9e4b66cb5fb025b3e3fe6c5e640c9f2d997de38544bf6cc63d3594f2e10fc4a1a1"
    "a1a1a1a1a1a1a1f13f43f0dbaaf76e6ef8df0aeaed3fe2ffd799a552d1bf49fe59ecc0281d27e8a3"
    "722b1caa0b385dd7fa59899008ce2516c909fe172aeca4d90b18419efd18a97bfdd2d79ba8be9e45"
    "13cd3fb785ea9dbf528f9f7f79fe399b3ed29d"
)


def write_ods(path, rows):
    """Write a sheet of numbers, text and, last, dates, as OpenDocument has it."""
    kinds = {"float": "value", "date": "date-value"}
    lines = []
    for k, row in enumerate(rows):
        cells = ""
        for j, cell in enumerate(row):
            kind = "date" if k and j == 2 else "float" if k and not j else "string"
            value = f'office:{kinds[kind]}="{cell}"' if kind in kinds else ""
            cell = f'office:value-type="{kind}" {value}><text:p>{cell}</text:p>'
            cells += f"<table:table-cell {cell}</table:table-cell>"
        lines.append(f"<table:table-row>{cells}</table:table-row>")
    space = "urn:oasis:names:tc:opendocument:xmlns"
    names = "".join(
        f' xmlns:{x}="{space}:{x}:1.0"' for x in ("office", "table", "text")
    )
    table = f'<table:table table:name="a">{"".join(lines)}</table:table>'
    sheet = f"<office:spreadsheet>{table}</office:spreadsheet>"
    body = f"<office:body>{sheet}</office:body>"
    mime = "application/vnd.oasis.opendocument.spreadsheet"
    entry = f'<m:file-entry m:full-path="/" m:media-type="{mime}"/>'
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("mimetype", mime)
        file.writestr(
            "META-INF/manifest.xml",
            f'<m:manifest xmlns:m="{space}:manifest:1.0">{entry}</m:manifest>',
        )
        file.writestr(
            "content.xml",
            f"<office:document-content{names}>{body}</office:document-content>",
        )


@pytest.mark.filterwarnings("ignore:The .* engine is deprecated")
@pytest.mark.parametrize(
    "kind, engine", [("xls", "xlrd"), ("xls", "calamine"), ("ods", "calamine")]
)
def test_older_and_open_spreadsheets_are_read(tmp_path, monkeypatch, kind, engine):
    pytest.importorskip(formats._MODULES.get(engine, engine))
    path, days = tmp_path / f"a.{kind}", ["2024-01-05", "2024-02-29"]
    names = {"x": [1.5, 2.0], "name": ["a", "b"]}
    expected = pd.DataFrame({**names, "when": pd.to_datetime(days)})
    if kind == "xls":
        path.write_bytes(zlib.decompress(bytes.fromhex(XLS)))
    else:
        write_ods(path, [expected.columns, *zip(*names.values(), days, strict=True)])
    monkeypatch.setitem(formats._ENGINES, kind, [engine])
    found, _ = whole(path)
    assert_frame_equal(found.astype({"when": "M8[ns]"}), expected, check_dtype=False)


@pytest.mark.parametrize("kind", ["xls", "ods", "xlsx"])
def test_what_reads_a_spreadsheet_is_named(tmp_path, monkeypatch, kind):
    monkeypatch.setitem(formats._ENGINES, kind, ["nosuchreader"])
    (tmp_path / f"a.{kind}").write_bytes(b"")
    with pytest.raises(ModuleNotFoundError, match="nosuchreader, which is not inst"):
        whole(tmp_path / f"a.{kind}")


@pytest.mark.parametrize("kind", ["sav", "dta"])
def test_labels_of_variables_go_into_the_model_and_the_report(tmp_path, kind):
    path, out = tmp_path / f"a.{kind}", tmp_path / "m.json"
    frame = pd.DataFrame({"mass": [1.5, 2.5] * 9, "x": [1.0, 2] * 9, "y": [0, 1] * 9})
    labels = ["Body mass in g", "x", None]
    getattr(pyreadstat, f"write_{kind}")(frame, str(path), column_labels=labels)
    options = ["--target", "y", "--method", "NB", "--no-check", "-o", str(out)]
    assert main(["fit", str(path), *options]) == 0
    assert sy.load(out).training_.labels == {"mass": "Body mass in g"}


def test_the_report_shows_labels(tmp_path, capsys):
    path = tmp_path / "a.sav"
    frame = pd.DataFrame({"mass": [1.5, 2.5] * 9, "y": [0, 1] * 9})
    pyreadstat.write_sav(frame, str(path), column_labels=["Body mass in g", None])
    options = ["--target", "y", "--method", "NB", "--no-check"]
    assert main(["fit", str(path), *options, "-o", str(tmp_path / "m.json")]) == 0
    assert "Body mass in g" in capsys.readouterr().out
