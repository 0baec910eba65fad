"""Spreadsheets, SPSS, Stata and Arrow: the same table from each; dates are names."""

import datetime
import subprocess
import sys

import numpy as np
import pandas as pd
import pyreadstat
import pytest
from pandas.testing import assert_frame_equal

from steelyard.exceptions import TableError
from steelyard.experiments.data import read_dataset
from steelyard.io.chunks import regroup
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
    assert notes[0].endswith("the sheet 'survey' is read, and not 'old'")
    assert "'unknown'" in notes[1]


def test_what_is_no_such_file_is_said(tmp_path):
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
    assert repr(library) in line and "pip install 'steelyard[formats]'" in line


# -------------------------------------------------------------------------------- dates

DAYS = ["2024-01-05", "2024-02-29", None, "2024-01-05"]
TIMES = ["2024-01-05 10:30:00", "2024-02-29 23:00:00", None, "2024-01-05 10:30:00"]


@pytest.mark.parametrize("texts", [DAYS, TIMES], ids=["dates", "times"])
@pytest.mark.parametrize("kind", ["csv", "parquet", "feather", "xlsx"])
def test_dates_are_the_same_names_in_every_format(texts, kind, tmp_path):
    path = tmp_path / f"d.{kind}"
    frame = pd.DataFrame({"day": pd.to_datetime(pd.Series(texts)), "label": [0, 1] * 2})
    write = {"csv": "to_csv", "xlsx": "to_excel"}.get(kind, f"to_{kind}")
    getattr(frame, write)(path, **({"index": False} if kind in ("csv", "xlsx") else {}))
    data = read_dataset(path)
    found = data.table["day"].astype(object)
    assert found.where(found.notna(), None).tolist() == texts
    assert data.notes[0].startswith("day: dates, taken as names, such as '2024-01-05")
    ((chunk, _),) = chunks(path, {"day": "text"})
    cells = chunk["day"].astype(object)
    assert cells.where(cells.notna(), None).tolist() == texts


def test_dates_without_times_are_names_in_parquet(tmp_path):
    path = tmp_path / "d.parquet"
    day = datetime.date(2024, 1, 5)
    pd.DataFrame({"day": [day, None], "label": [0, 1]}).to_parquet(path)
    day = read_dataset(path).table["day"].astype(object)
    assert day.where(day.notna(), None).tolist() == ["2024-01-05", None]
