"""Files that are damaged, differ or change: an error names the file and the place."""

import gzip
import os
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import steelyard as sy
from steelyard.exceptions import ColumnError, ParameterError, TableError
from steelyard.io import as_source
from steelyard.io.paths import find_files
from steelyard.io.reader import whole_frame, whole_table
from steelyard.io.recognise import open_files
from steelyard.io.text import TextFiles

RNG = np.random.default_rng(0)
CELLS = pa.table(
    {
        "a": RNG.integers(0, 1000, 2000),
        "s": [f"value {k}" for k in RNG.integers(0, 50, 2000)],
        "y": RNG.integers(0, 2, 2000),
    }
)


def cells_of(source):
    return pa.concat_tables(chunk.cells for chunk in source.chunks())


def flip(path, position):
    data = bytearray(path.read_bytes())
    data[position // 8] ^= 1 << position % 8
    path.write_bytes(data)


# ----------------------------------------------------------------------------- damaged


@pytest.mark.parametrize("compression", ["zstd", "snappy", "none"])
def test_every_flipped_bit_is_found_in_a_file_with_checksums(compression, tmp_path):
    path = tmp_path / "rows.parquet"
    options = {"row_group_size": 500, "write_page_checksum": True}
    pq.write_table(CELLS, path, compression=compression, **options)
    sound = path.read_bytes()
    first, last = _data_bytes(path)
    for position in RNG.integers(8 * first, 8 * last, 20):
        path.write_bytes(sound)
        flip(path, int(position))
        try:
            # A bit of a header that nobody needs may be flipped without harm.
            assert cells_of(sy.scan(path)).equals(CELLS)
        except TableError as error:
            assert str(path) in str(error)
            assert "row group" in str(error) or "damaged" in str(error)


def _data_bytes(path):
    """Return where the pages of a file begin and end."""
    metadata = pq.ParquetFile(path).metadata
    groups = [metadata.row_group(k) for k in range(metadata.num_row_groups)]
    columns = [group.column(j) for group in groups for j in range(group.num_columns)]
    starts = [
        column.dictionary_page_offset or column.data_page_offset for column in columns
    ]
    ends = [
        start + column.total_compressed_size
        for start, column in zip(starts, columns, strict=True)
    ]
    return min(starts), max(ends)


def test_a_damaged_row_group_is_named(tmp_path):
    path = tmp_path / "rows.parquet"
    options = {
        "row_group_size": 500,
        "write_page_checksum": True,
        "compression": "none",
    }
    pq.write_table(CELLS, path, use_dictionary=False, **options)
    column = pq.ParquetFile(path).metadata.row_group(2).column(0)
    flip(path, 8 * (column.data_page_offset + column.total_compressed_size - 10))
    with pytest.raises(TableError, match=r"rows\.parquet is damaged in row group 2 \("):
        cells_of(sy.scan(path))
    rows = pyarrow.dataset.dataset(path)
    with pytest.raises(TableError, match="The data set cannot be read"):
        cells_of(as_source(rows))


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
@pytest.mark.parametrize("name", ["rows.parquet", "rows.feather"])
def test_files_that_were_cut_short_are_named(name, share, tmp_path):
    path = tmp_path / name
    if name == "rows.parquet":
        pq.write_table(CELLS, path)
    else:
        pyarrow.feather.write_feather(CELLS, path, chunksize=100)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(TableError, match=name):
        cells_of(sy.scan(path))


def test_what_is_no_table_is_refused(tmp_path):
    for name in ("a.parquet", "a.arrow"):
        (tmp_path / name).write_text("a,b\n1,2\n")
        with pytest.raises(TableError, match="is damaged, was cut short or is not a"):
            sy.scan(tmp_path / name)
    with pytest.raises(
        FileNotFoundError, match=r"no file '.*a\.parque'\. Close: 'a\.p"
    ):
        sy.scan(tmp_path / "a.parque")
    with pytest.raises(FileNotFoundError, match="its folder does not exist"):
        sy.scan(tmp_path / "b" / "a.parquet")
    with pytest.raises(TableError, match="No file matches"):
        sy.scan(tmp_path / "*.csv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(TableError, match=r"contains no \.csv, .*\.parquet"):
        sy.scan(tmp_path / "empty")
    (tmp_path / "a.odt").touch()
    with pytest.raises(
        ParameterError, match=r"a\.odt has no known extension.*`format`"
    ):
        sy.scan(tmp_path / "a.odt")
    with pytest.raises(TableError, match="list of files is empty"):
        sy.scan([])
    with pytest.raises(TableError, match="not on this machine"):
        sy.scan("s3://bucket/a.parquet")
    with pytest.raises(TableError, match="takes paths of files, lazy frames"):
        sy.scan(5)
    with pytest.raises(TableError, match="iterable of frames is empty"):
        sy.scan(iter([]))
    with pytest.raises(TableError, match="chunk 1 of the iterable is not a frame"):
        sy.scan(iter([np.ones((2, 2))]))
    (tmp_path / "a.csv").write_text("a\n1\n")
    with pytest.raises(TableError, match=r"several kinds \(arrow, csv, parquet\)"):
        sy.scan(tmp_path)


def test_a_file_without_rows_is_refused(tmp_path):
    pq.write_table(CELLS.slice(0, 0), tmp_path / "none.parquet")
    with pytest.raises(TableError, match=r"no rows in .*none\.parquet"):
        cells_of(sy.scan(tmp_path / "none.parquet"))
    with pytest.raises(TableError, match="no rows in the iterable"):
        cells_of(sy.scan([CELLS.slice(0, 0)]))
    pq.write_table(CELLS, tmp_path / "some.parquet")
    assert cells_of(sy.scan(tmp_path)).equals(CELLS)


def test_a_column_that_a_later_file_lacks_or_adds_is_named(tmp_path):
    pq.write_table(CELLS, tmp_path / "0.parquet")
    pq.write_table(CELLS.drop_columns(["s"]), tmp_path / "1.parquet")
    message = r"1\.parquet has no column 's' that .*0\.parquet has\. Its columns: a, y"
    with pytest.raises(ColumnError, match=message):
        sy.scan(tmp_path)
    pq.write_table(CELLS.append_column("t", CELLS["y"]), tmp_path / "1.parquet")
    message = r"1\.parquet has a column 't' that .*0\.parquet lacks\. .*`columns`"
    with pytest.raises(ColumnError, match=message):
        sy.scan(tmp_path)
    frames = [CELLS, CELLS.drop_columns(["s"])]
    with pytest.raises(ColumnError, match="chunk 2 of the iterable has no column 's'"):
        cells_of(sy.scan(frames))
    for k in "01":
        frame = CELLS.slice(0, 5).to_pandas()
        frame.drop(columns=["s"] if k == "1" else []).to_csv(tmp_path / f"{k}.csv")
    with pytest.raises(ColumnError, match=r"1\.csv has no column 's'"):
        sy.scan(tmp_path / "*.csv")


def test_two_columns_of_one_name_are_refused(tmp_path):
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])
    pq.write_table(twice, tmp_path / "a.parquet")
    for source in (tmp_path / "a.parquet", [twice]):
        with pytest.raises(ColumnError, match="two columns named 'a'"):
            sy.scan(source)


# ----------------------------------------------------------------------------- changed


@pytest.mark.parametrize("name", ["0.parquet", "1.parquet"])
def test_a_file_that_is_gone_or_written_again_between_passes_is_named(name, tmp_path):
    for k in "01":
        pq.write_table(CELLS, tmp_path / f"{k}.parquet")
    rows = sy.scan(tmp_path)
    cells_of(rows)
    pq.write_table(CELLS.slice(0, 100), tmp_path / name)
    with pytest.raises(
        TableError, match=rf"changed between two readings: .*{name} was"
    ):
        cells_of(rows)
    (tmp_path / name).unlink()
    with pytest.raises(
        TableError, match=rf"changed between two readings: .*{name} is g"
    ):
        cells_of(rows)


def test_a_file_of_the_same_size_written_again_is_noticed_by_its_time(tmp_path):
    pq.write_table(CELLS, tmp_path / "a.parquet")
    rows = sy.scan(tmp_path / "a.parquet")
    cells_of(rows)
    os.utime(tmp_path / "a.parquet", ns=(0, time.time_ns() + 10**9))
    with pytest.raises(TableError, match="changed between two readings"):
        cells_of(rows)


def test_a_data_set_with_another_number_of_rows_is_noticed(tmp_path):
    pq.write_table(CELLS, tmp_path / "a.parquet")
    rows = as_source(pyarrow.dataset.dataset(tmp_path))
    cells_of(rows)
    pq.write_table(CELLS.slice(0, 100), tmp_path / "a.parquet")
    with pytest.raises(
        TableError, match=r"it had 2,000 rows, and now 100|cannot be read"
    ):
        cells_of(rows)


def test_a_query_is_run_once_so_that_its_rows_cannot_change():
    seen = []

    class Frames:
        def __iter__(self):
            seen.append(1)
            yield pd.DataFrame({"a": [len(seen), 2]})

    with as_source(Frames()) as rows:
        assert cells_of(rows).equals(cells_of(rows))
    assert len(seen) == 1


# --------------------------------------------------------------------------------- CSV

CSV = {
    "numbers, text and words for a missing number": "a,b,c\n1,x,NA\n2,y,3.5\n,NA,?\n",
    "blanks around cells": 'a,b\n1, x\n+2 ,"a, b"\n 3 , \n',
    "blanks before quotes": 'a, "b"\n1, "x, y"\n2, "z"\n',
    "columns without a name": "a,,b\n1,2,3\n4,5,6\n",
    "words alone": "a,b\nNA,1\nnull,2\n",
    "hexadecimal numbers and booleans": "a,b\n0x10,TRUE\n1,False\n",
    "quoted numbers, quotes and lines in cells": 'a,b\n"1","x""y"\n2,"x\ny"\n',
    "empty lines": "a,b\n1,2\n\n3,4\n",
    "infinity and exponents": "a,b\ninf,1e3\n-2,2E-2\n",
    "leading zeros and large numbers": "a,b\n007,9007199254740993\n8,2\n",
    "carriage returns": "a,b\r\n1,x\r\n2,y\r\n",
    "a mark of byte order": "\ufeffa,b\n1,x\n2,y\n",
    "no newline at the end": "a,b\n1,x\n2,y",
    "an empty column": "a,b\n1,\n2,\n",
}


@pytest.mark.parametrize("text", CSV.values(), ids=CSV.keys())
def test_a_csv_file_gives_the_columns_of_the_command_line(text, tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(text.encode())
    reader = open_files(path)
    expected = whole_frame(reader, reader.names)
    found = cells_of(sy.scan(path))
    assert found.column_names == list(expected.columns)
    for name, cells in expected.items():
        known = [None if pd.isna(cell) else cell for cell in cells]
        assert found.column(name).to_pylist() == known
        assert isinstance(known[0], str) == pa.types.is_string(found.column(name).type)


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-16", "cp1252"])
def test_csv_files_of_other_encodings_separators_and_missing_cells(encoding, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("ä;b\n1;é\n-;ü\n", encoding=encoding)
    rows = sy.scan(path, separator=";", encoding=encoding, missing_values=["-"])
    assert cells_of(rows).to_pydict() == {"ä": [1, None], "b": ["é", "ü"]}
    path = tmp_path / "a.tsv"
    path.write_text("a\tb\n1,5\tx\n")
    assert cells_of(sy.scan(path)).to_pydict() == {"a": [1.5], "b": ["x"]}
    as_asked = sy.scan(path, decimal=".", thousands="none")
    assert cells_of(as_asked).to_pydict() == {"a": ["1,5"], "b": ["x"]}


def test_types_that_late_cells_change_hold_from_the_first_row_on(tmp_path):
    n = 300_000
    lines = [f"{k},{k % 7},0{k % 3},NA,{k},\n" for k in range(n)]
    (tmp_path / "a.csv").write_text(
        "a,b,c,d,e,f\n" + "".join(lines) + "oops,2.5,x,3,1,y\n"
    )
    (tmp_path / "b.csv").write_text("a,b,c,d,e,f\n1,1,1,1,late,\n")
    cells = cells_of(sy.scan(tmp_path / "a.csv"))
    # One cell in 300,000 makes no text of numbers.
    assert cells["a"].to_pylist() == [*range(n), None]
    assert cells["b"].to_pylist() == [*(k % 7 for k in range(n)), 2.5]
    assert cells["c"].to_pylist() == [*(f"0{k % 3}" for k in range(n)), "x"]
    assert cells["d"].to_pylist() == [*[None] * n, 3]
    assert cells["e"].type == pa.int64()
    assert cells["f"].to_pylist() == [*[None] * n, "y"]
    both = sy.scan(tmp_path)
    assert cells_of(both)["e"].to_pylist() == [*range(n), 1, None]
    assert "e: numbers, except 1 cell: 'late' (1); treated as missing" in both.notes


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'a,b\n1,"x\ny"\n3,4,5\n', "3 cells in line 4, and 2 columns"),
        (b'a, "b"\n1, "x"\n3, "4",5\n', "3 cells in line 3, and 2 columns"),
        (b'a,b\n1,"2\n3,4\n', "ends within a quoted cell, which begins with '2"),
        (b"a,a\n1,2\n", "two columns named 'a'"),
        (b"", "is empty. Its first line must contain the column names"),
        (b"a,b\n", "no rows in"),
        (b"a\0b,c\n1,2\n", "is not text: it contains zero bytes"),
    ],
)
def test_errors_of_a_csv_file_name_the_line(data, message, tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(data)
    with pytest.raises(TableError, match=message) as caught:
        cells_of(sy.scan(path))
    assert str(path) in str(caught.value)


def test_text_in_another_encoding_than_was_given_is_named_with_its_line(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"a,b\n1,2\n3,\xe9\n")
    said = r"is not utf-8 text \(line 3, byte 0xe9\).*`encoding`"
    with pytest.raises(TableError, match=said):
        cells_of(sy.scan(path, encoding="utf-8"))
    rows = sy.scan(path)
    assert cells_of(rows).to_pydict() == {"a": [1, 3], "b": ["2", "é"]}
    assert rows.notes == [f"{path}: encoding cp1252"]


@pytest.mark.parametrize("blocks", [2**22, 64])
def test_short_lines_have_missing_cells_and_long_ones_are_refused(tmp_path, blocks):
    path = tmp_path / "a.csv"
    path.write_bytes(b"a,b,c\n1,2,x\n\n   \n3\n4,5,y,,\n6,,\n")
    rows = TextFiles(find_files(path), {}, blocks)
    cells = whole_table(rows, rows.names).to_pydict()
    assert cells == {
        "a": [1, 3, 4, 6],
        "b": [2, None, 5, None],
        "c": ["x", None, "y", None],
    }
    said = "a line has fewer cells than there are names, line 5 first; the others"
    assert rows.notes == [f"{path}: {said} are treated as missing"]


def test_a_csv_file_rewritten_in_place_while_it_is_read_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    # Several blocks, of which two are read ahead.
    data = b"a,b\n" + b"12345678,xxxxxxxxxxxx\n" * 10**6
    path.write_bytes(data)

    def rewrite(reading):
        # In place: the reader goes on in the middle of another file.
        path.write_bytes(data.replace(b"x", b"y"))

    with (
        sy.watch(rewrite),
        pytest.raises(TableError, match=r"a\.csv.* was written again"),
    ):
        cells_of(sy.scan(path))


def test_packed_csv_files_that_are_damaged_are_named(tmp_path):
    path = tmp_path / "a.csv.gz"
    packed = gzip.compress(b"a,b\n" + b"".join(b"%d,2\n" % k for k in range(100_000)))
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(TableError, match=r"a\.csv\.gz was cut short or is damaged"):
        cells_of(sy.scan(path))
    path.write_text("a,b\n")
    with pytest.raises(TableError, match="is not compressed by gzip"):
        sy.scan(path)


def test_settings_that_make_no_sense_for_csv_files_are_refused(tmp_path):
    (tmp_path / "a.csv").write_text("a\n1\n")
    with pytest.raises(ParameterError, match="no encoding 'utf-7b'"):
        sy.scan(tmp_path / "a.csv", encoding="utf-7b")
    with pytest.raises(ParameterError, match="`separator` must be one character"):
        sy.scan(tmp_path / "a.csv", separator=";;")


# ------------------------------------------------------------------------------ killed


@pytest.mark.parametrize("when", ["copy", "read"])
def test_a_killed_process_leaves_nothing_after_the_next_start(when, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    code = f"""
import sys, time
import pandas as pd
import steelyard as sy
from steelyard.io import as_source

def stop(reading):
    if reading.step == {when!r}:
        print("ready", flush=True)
        time.sleep(60)

frames = (pd.DataFrame({{"a": range(300_000)}}) for _ in range(3))
with sy.watch(stop), as_source(sy.scan(frames, work_folder=sys.argv[1])) as rows:
    for chunk in rows.chunks(): pass
"""
    with subprocess.Popen(
        [sys.executable, "-c", code, str(work)], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.readline().strip() == b"ready"
        process.kill()
    assert len(list(work.glob("*/*.parquet"))) == 1
    with as_source(sy.scan([CELLS], work_folder=work)) as rows:
        next(rows.chunks())
        assert len(list(work.iterdir())) == 1
    assert list(work.iterdir()) == []


def test_a_full_disk_is_an_error_that_leaves_nothing(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    with pytest.raises(TableError, match="No space is left for temporary files in"):
        next(as_source(sy.scan([CELLS], work_folder=tmp_path)).chunks())
    assert list(tmp_path.iterdir()) == []
