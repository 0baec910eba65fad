"""Every kind of source gives the same rows in the same order, chunk by chunk."""

import gzip
import itertools
import subprocess
import sys
import threading

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import steelyard as sy
from steelyard.exceptions import ColumnError, ParameterError, TableError
from steelyard.io import as_source
from steelyard.io.chunks import MAX_BYTES, MAX_ROWS, read_ahead
from steelyard.table.frames import as_table

N = 1000


def made(n=N, start=0):
    rows = np.arange(start, start + n)
    return pa.table(
        {
            "sky": [None if k % 11 == 0 else f"value {k % 7}" for k in rows],
            "heat": [None if k % 13 == 0 else k / 4 for k in rows],
            "count": rows % 5,
            "place": pa.array([f"p{k % 3}" for k in rows]),
            "play": [("no", "yes")[k % 2] for k in rows],
            "weight": np.ones(n),
        }
    )


CELLS = made()


def read(source, **options):
    """Read a source twice; both readings have to give the same."""
    with as_source(source, **options) as rows:
        both = [pa.concat_tables(chunk.cells for chunk in rows.chunks()) for _ in "ab"]
    assert both[0].equals(both[1])
    return both[0].to_pydict()


def slices(step):
    return [CELLS.slice(start, step) for start in range(0, N, step)]


def parquet(folder, **options):
    pq.write_table(CELLS, folder / "rows.parquet", **options)
    return sy.scan(folder / "rows.parquet")


def one_group(folder):
    return parquet(folder, row_group_size=N)


def tiny_groups(folder):
    return parquet(folder, row_group_size=3)


def with_checksums(folder):
    return parquet(folder, row_group_size=100, write_page_checksum=True)


def feather(folder):
    pyarrow.feather.write_feather(CELLS, folder / "rows.feather", chunksize=70)
    return sy.scan(str(folder / "rows.feather"))


def arrow_stream(folder):
    with pa.ipc.new_stream(folder / "rows.arrow", CELLS.schema) as writer:
        writer.write_table(CELLS, 70)
    return sy.scan(str(folder / "rows.arrow"))


def many_files(folder):
    for k, part in enumerate(slices(130)):
        pq.write_table(part, folder / f"part-{k:03}.parquet")
    (folder / "_SUCCESS").touch()
    return sy.scan(folder)


def pattern(folder):
    many_files(folder)
    return sy.scan(f"{folder}/part-*.parquet")


def paths(folder):
    many_files(folder)
    return sy.scan(sorted(folder.glob("*.parquet")))


def csv_file(folder):
    pyarrow.csv.write_csv(CELLS, folder / "rows.csv")
    return sy.scan(folder / "rows.csv")


def packed_csv(folder):
    csv_file(folder)
    with gzip.open(folder / "rows.csv.gz", "wb") as file:
        file.write((folder / "rows.csv").read_bytes())
    return sy.scan(folder / "rows.csv.gz")


def lazy_frame(folder):
    many_files(folder)
    return pl.scan_parquet(folder / "*.parquet")


def dataset(folder):
    many_files(folder)
    return pyarrow.dataset.dataset(folder)


def query(folder):
    many_files(folder)
    return duckdb.sql(f"select * from '{folder}/*.parquet'")


def batches(folder):
    return CELLS.to_reader(90)


def pandas_frames(folder):
    return (part.to_pandas() for part in slices(90))


def polars_frames(folder):
    return [pl.from_arrow(part) for part in slices(90)]


def arrow_batches(folder):
    return iter(CELLS.to_batches(90))


SOURCES = [
    one_group,
    tiny_groups,
    with_checksums,
    feather,
    arrow_stream,
    many_files,
    pattern,
    paths,
    csv_file,
    packed_csv,
    lazy_frame,
    dataset,
    query,
    batches,
    pandas_frames,
    polars_frames,
    arrow_batches,
]


@pytest.mark.parametrize("make", SOURCES)
def test_every_source_gives_the_same_rows_in_the_same_order(make, tmp_path):
    assert read(make(tmp_path), y="play") == CELLS.to_pydict()


@pytest.mark.parametrize("make", SOURCES)
def test_a_source_knows_its_columns_and_roles(make, tmp_path):
    with as_source(make(tmp_path), "play", "weight") as rows:
        assert rows.names == CELLS.column_names
        assert (rows.target, rows.weight) == ("play", "weight")
        assert rows.features == ["sky", "heat", "count", "place"]
        chunk = next(rows.chunks(["count", "play"]))
        assert chunk.cells.column_names == ["count", "play"]
        assert chunk.table(["count"]).names == ["count"]
        for _ in rows.chunks():
            pass
        assert rows.n_rows == N
        assert rows.is_cheap and rows.is_repeatable


@pytest.mark.parametrize("method", ["NB", "WANBIA-CLL", "SHNB"])
def test_a_query_is_run_once(method):
    with duckdb.connect(config={"threads": 1}) as base:
        base.execute("create sequence counted")
        query = base.sql(
            "select nextval('counted') % 7 + sin(i) as x, i % 3 < 1 as y "
            "from range(3000) t(i)"
        )
        sy.method(method).fit(query, "y")
        (counted,) = base.execute("select currval('counted')").fetchone()
        assert counted == 3000


@pytest.mark.parametrize("make", SOURCES)
def test_the_last_reading_keeps_nothing_and_gives_the_same(make, tmp_path):
    with as_source(make(tmp_path)) as rows:
        cells = [chunk.cells for chunk in rows.chunks(keep=False)]
    assert pa.concat_tables(cells).to_pydict() == CELLS.to_pydict()


@pytest.mark.parametrize("make", SOURCES)
def test_nothing_is_left_after_success_error_and_interrupt(make, tmp_path, monkeypatch):
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / "data").mkdir()
    for error in (None, ValueError, KeyboardInterrupt):
        source = as_source(make(tmp_path / "data"))
        source.work_folder = work
        try:
            with source as rows:
                for _ in rows.chunks():
                    if error is not None:
                        raise error
        except (ValueError, KeyboardInterrupt):
            pass
        assert list(work.iterdir()) == []
    assert not [t for t in threading.enumerate() if "read-ahead" in t.name]


# ------------------------------------------------------------------------------ chunks


def test_large_row_groups_are_sliced_and_small_ones_joined(tmp_path):
    cells = pa.table({"a": np.arange(2 * MAX_ROWS + 5)})
    pq.write_table(cells, tmp_path / "one.parquet", row_group_size=len(cells))
    pq.write_table(cells, tmp_path / "tiny.parquet", row_group_size=1000)
    for name in ("one", "tiny"):
        chunks = list(sy.scan(tmp_path / f"{name}.parquet").chunks())
        sizes = [chunk.n_rows for chunk in chunks]
        assert sum(sizes) == len(cells)
        assert max(sizes) <= MAX_ROWS
        assert len(sizes) <= 4
        starts = [chunk.first_row for chunk in chunks]
        assert starts == [0, *itertools.accumulate(sizes)][:-1]
        assert pa.concat_tables(chunk.cells for chunk in chunks).equals(cells)


def test_chunks_of_wide_tables_have_fewer_rows(tmp_path):
    cells = pa.table({f"c{j}": np.zeros(40_000) for j in range(400)})
    pq.write_table(cells, tmp_path / "wide.parquet")
    chunks = list(sy.scan(tmp_path / "wide.parquet").chunks())
    assert len(chunks) > 1
    assert max(chunk.cells.nbytes for chunk in chunks) <= 1.05 * MAX_BYTES


def test_the_number_of_rows_in_a_chunk_can_be_given(tmp_path):
    pq.write_table(CELLS, tmp_path / "rows.parquet", row_group_size=150)
    rows = sy.scan(tmp_path / "rows.parquet", chunk_rows=64)
    sizes = [chunk.n_rows for chunk in rows.chunks()]
    assert max(sizes) <= 64 and sum(sizes) == N
    with pytest.raises(ParameterError, match="`chunk_rows` must be 1 or more"):
        sy.scan(tmp_path / "rows.parquet", chunk_rows=0)


@settings(max_examples=20, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 40), min_size=1, max_size=6),
    chunk=st.integers(1, 50),
    data=st.data(),
)
def test_a_row_knows_its_file_and_place_however_rows_are_cut(
    sizes, chunk, data, tmp_path_factory
):
    folder = tmp_path_factory.mktemp("places")
    origins = []
    for k, size in enumerate(sizes):
        path = folder / f"{k}.parquet"
        cells = pa.table({"a": np.arange(size)})
        group = data.draw(st.integers(1, 20))
        pq.write_table(cells, path, row_group_size=group)
        origins += [(str(path), row // group, row) for row in range(size)]
    if not origins:
        return
    seen = []
    for part in sy.scan(folder, chunk_rows=chunk).chunks():
        for row in range(part.n_rows):
            place = part.place_at(row)
            seen.append((place.name, place.group, place.row))
    assert seen == origins


def test_a_copy_knows_the_places_of_the_original_rows(tmp_path):
    for k in range(3):
        pyarrow.csv.write_csv(made(50, 50 * k), tmp_path / f"{k}.csv")
    [chunk] = sy.scan(tmp_path).chunks()
    assert chunk.place(0) == f"{tmp_path}/0.csv, row 1"
    assert chunk.place(137) == f"{tmp_path}/2.csv, row 38"
    [chunk] = sy.scan(made(50).to_pandas() for _ in range(3)).chunks()
    assert chunk.place(137) == "chunk 3 of the iterable, row 38"


def test_reading_ahead_gives_all_items_and_passes_errors_on():
    def failing():
        yield from range(5)
        raise KeyError("x")

    assert list(read_ahead(range(100))) == list(range(100))
    found = []
    with pytest.raises(KeyError):
        for item in read_ahead(failing()):
            found.append(item)
    assert found == [0, 1, 2, 3, 4]


def test_progress_reports_rows_and_bytes(tmp_path):
    pq.write_table(CELLS, tmp_path / "rows.parquet", row_group_size=100)
    size = (tmp_path / "rows.parquet").stat().st_size
    told = []
    scanned = sy.scan(tmp_path / "rows.parquet", chunk_rows=100)
    with sy.watch(told.append), as_source(scanned) as rows:
        list(rows.chunks())
    assert [entry.rows for entry in told] == list(range(100, N + 1, 100))
    assert {entry.total_rows for entry in told} == {N}
    assert {entry.total for entry in told} == {size}
    assert told[-1].done == pytest.approx(size, rel=0.05)
    assert told[-1].seconds_left is not None
    told.clear()
    with sy.watch(told.append), as_source(csv_file(tmp_path)) as rows:
        list(rows.chunks())
    assert [entry.step for entry in told] == ["copy", "read"]


# ------------------------------------------------------------------------------- types


def test_folders_name_columns(tmp_path):
    for year, zone in itertools.product((2023, 2024), ("east", "far west")):
        folder = tmp_path / f"year={year}" / f"zone={zone.replace(' ', '%20')}"
        folder.mkdir(parents=True)
        pq.write_table(made(10), folder / "0.parquet")
    rows = sy.scan(tmp_path, target="play")
    assert rows.features[-2:] == ["year", "zone"]
    cells = read(rows)
    assert cells["year"] == [2023] * 20 + [2024] * 20
    assert cells["zone"] == 2 * (["east"] * 10 + ["far west"] * 10)
    assert read(sy.scan(f"{tmp_path}/year=*/*/*.parquet")) == cells
    expected = pyarrow.dataset.dataset(tmp_path, partitioning="hive").to_table()
    assert sorted(cells["year"]) == sorted(expected.column("year").to_pylist())


def test_dictionaries_that_differ_between_groups_and_files_give_the_same_cells(
    tmp_path,
):
    parts = [["a", "b", "a"], ["c", None, "b"], ["d", "a", "d"]]
    for k, part in enumerate(parts):
        column = pa.array(part).dictionary_encode()
        if k == 1:
            column = column.cast(pa.dictionary(pa.int8(), pa.string()))
        pq.write_table(
            pa.table({"s": column, "y": [0, 1, 0]}), tmp_path / f"{k}.parquet"
        )
    rows = sy.scan(tmp_path)
    assert read(rows)["s"] == [*itertools.chain(*parts)]
    [chunk] = rows.chunks()
    factor = chunk.table(["s"]).columns[0].factor()
    values = [None if k < 0 else factor.values[k] for k in factor.indices]
    assert values == [*itertools.chain(*parts)]


def test_a_column_without_cells_in_some_files_has_the_type_of_the_others(tmp_path):
    empty = [
        pa.nulls(2),
        pa.nulls(2, pa.float64()),
        pa.nulls(2, pa.string()),
        pa.nulls(2, pa.bool_()),
    ]
    for column in (["a", "b"], [1, 2], [True, False]):
        for k, cells in enumerate([empty[0], column, *empty[1:]]):
            pq.write_table(
                pa.table({"a": cells, "y": [0, 1]}), tmp_path / f"{k}.parquet"
            )
        assert read(sy.scan(tmp_path))["a"] == [None, None, *column, *[None] * 6]
        frames = [empty[0], column, *empty[1:]]
        frames = [pa.table({"a": cells, "y": [0, 1]}) for cells in frames]
        assert read(iter(frames))["a"] == [None, None, *column, *[None] * 6]


def test_numbers_are_widened_and_columns_matched_by_name(tmp_path):
    pq.write_table(
        pa.table({"a": pa.array([1], pa.int8()), "y": [0]}), tmp_path / "0.pq"
    )
    pq.write_table(pa.table({"y": [1], "a": [2.5]}), tmp_path / "1.pq")
    pq.write_table(
        pa.table({"y": [1], "a": pa.array([3], pa.uint64())}), tmp_path / "2.pq"
    )
    assert read(sy.scan(tmp_path)) == {"a": [1.0, 2.5, 3.0], "y": [0, 1, 1]}
    frames = [pd.DataFrame({"a": [1]}), pd.DataFrame({"a": [2.5]})] * 3
    assert read(frames)["a"] == [1.0, 2.5] * 3


def test_whole_numbers_that_float64_cannot_hold_are_not_widened(tmp_path):
    pq.write_table(pa.table({"a": [2**53 + 1]}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"a": [2.5]}), tmp_path / "1.parquet")
    with pytest.raises(ColumnError, match=r"'a' holds whole .* above 2\^53 in .*0"):
        read(sy.scan(tmp_path))


def test_numbers_here_and_text_there_are_refused_with_an_example(tmp_path):
    pq.write_table(pa.table({"a": [1, 2]}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"a": [None, "oops"]}), tmp_path / "1.parquet")
    message = r"'a' holds numbers in .*0\.parquet \(such as 1\), and text in .*'oops'"
    with pytest.raises(ColumnError, match=message):
        list(sy.scan(tmp_path).chunks())
    frames = (pd.DataFrame({"a": cells}) for cells in ([1], [2], ["oops"]))
    message = r"numbers in chunk 1 of the iterable .* text in chunk 3 of the iterable"
    with pytest.raises(ColumnError, match=message):
        list(sy.scan(frames).chunks())


# ------------------------------------------------------------------------------- roles


def test_rows_without_a_target_are_an_error_that_names_the_first(tmp_path):
    play = CELLS.column("play").to_pylist()
    play[500] = play[777] = None
    cells = CELLS.set_column(4, "play", pa.array(play))
    pq.write_table(cells, tmp_path / "rows.parquet", row_group_size=400)
    with pytest.raises(TableError, match=r"2 of the 1,000 .*parquet, row 501\."):
        read(sy.scan(tmp_path / "rows.parquet", target="play"))
    rows = sy.scan(tmp_path / "rows.parquet", target="play", drop_missing_target=True)
    assert rows.n_rows is None
    kept = cells.filter(cells.column("play").is_valid())
    assert read(rows) == kept.to_pydict()
    [chunk] = rows.chunks(["heat"])
    assert (rows.n_rows, rows.n_dropped) == (N - 2, 2)
    assert chunk.place(499).endswith("row 500")
    assert chunk.place(500).endswith("row 502")
    assert chunk.place(900).endswith("row 903")


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (-1.5, r"'weight' of .*row 4 is -1\.5\. Weights must be finite and 0 or more"),
        (None, "row 4 is missing or not finite"),
        (np.inf, "row 4 is missing or not finite"),
    ],
)
def test_wrong_weights_are_named_with_their_place(weight, message, tmp_path):
    cells = pa.table({"a": range(5), "weight": [1.0, 1.0, 0.0, weight, 2.0]})
    pq.write_table(cells, tmp_path / "rows.parquet")
    with pytest.raises(TableError, match=message):
        read(sy.scan(tmp_path / "rows.parquet", weight="weight"))


def test_weights_that_are_text_or_all_zero_are_refused():
    frame = pd.DataFrame({"a": [1, 2], "w": ["x", "y"], "zero": [0, 0]})
    with pytest.raises(ColumnError, match="weights in column 'w' must be numbers"):
        read([frame], sample_weight="w")
    with pytest.raises(TableError, match="All sample weights are zero"):
        read([frame], sample_weight="zero")


def test_a_column_that_is_not_there_is_answered_with_the_nearest():
    with pytest.raises(ColumnError, match=r"no column 'plai'\. Did"):
        sy.scan([CELLS], target="plai")
    with pytest.raises(ColumnError, match="no column 'wait'"):
        sy.scan([CELLS], weight="wait")
    with pytest.raises(ColumnError, match="no column 'skies'"):
        sy.scan([CELLS], columns=["skies"])
    with pytest.raises(ColumnError, match="both target and weight"):
        sy.scan([CELLS], target="play", weight="play")
    with pytest.raises(ParameterError, match="list of names"):
        sy.scan([CELLS], columns="sky")


def test_columns_are_chosen_and_others_may_differ(tmp_path):
    pq.write_table(pa.table({"a": [1], "b": ["x"], "y": [0]}), tmp_path / "0.parquet")
    pq.write_table(
        pa.table({"a": [2], "b": [5], "z": [0], "y": [1]}), tmp_path / "1.pq"
    )
    rows = sy.scan(tmp_path, columns=["a"])
    assert read(rows, y="y") == {"a": [1, 2], "y": [0, 1]}
    assert rows.names == ["a"]


# ------------------------------------------------------------------------- recognition


IN_MEMORY = [
    CELLS,
    CELLS.to_pandas(),
    pl.from_arrow(CELLS),
    CELLS.to_batches()[0],
    np.ones((3, 2)),
    [[1, 2], [3, 4]],
    [],
    CELLS.to_pandas()["sky"],
    {"a": [1]},
    3,
]


@pytest.mark.parametrize("X", IN_MEMORY, ids=lambda X: type(X).__name__)
def test_tables_in_memory_are_no_sources(X):
    assert as_source(X, "play") is None


def test_arrays_beside_a_source_are_refused(tmp_path):
    rows = one_group(tmp_path)
    with pytest.raises(TableError, match="y cannot be an array: give the name"):
        as_source(rows, np.zeros(N))
    with pytest.raises(TableError, match="sample_weight cannot be an array: give the"):
        as_source(rows, "play", pd.Series(np.ones(N)))
    with pytest.raises(TableError, match=r"No target was given.*fit\(rows, 'name'\)"):
        as_source(rows, needs_target=True)


@pytest.mark.parametrize("kind", [str, lambda path: path])
def test_a_path_is_answered_with_a_hint_at_scan(kind, tmp_path):
    with pytest.raises(TableError, match=r"write sy\.scan\('.*rows\.parquet'\)"):
        as_source(kind(tmp_path / "rows.parquet"), "play")


def test_a_scan_serves_several_fits(tmp_path):
    rows = sy.scan(CELLS.to_pandas() for _ in "ab")
    assert len(read(rows, y="play")["sky"]) == 2 * N
    with pytest.raises(TableError, match="were read before, and cannot be read again"):
        read(rows, y="play")
    again = csv_file(tmp_path)
    assert read(again, y="play") == read(again, y="place")


def test_a_scan_says_what_it_is(tmp_path):
    rows = sy.scan(one_group(tmp_path)._reader.name, target="play", weight="weight")
    assert repr(rows) == (
        f"<scan of {tmp_path}/rows.parquet, 1,000 rows, target='play', weight='weight'>"
    )


def test_the_encoder_reads_the_same_table_from_a_chunk(tmp_path):
    names = ["sky", "heat", "count"]
    [chunk] = one_group(tmp_path).chunks()
    ours = sy.TableEncoder().fit(CELLS.select(names), CELLS["play"].to_pylist())
    codes = ours.transform(chunk.cells.select(names))
    assert np.array_equal(codes, ours.transform(CELLS.select(names)))
    assert chunk.table(names).n_columns == as_table(CELLS.select(names)).n_columns


def test_scanning_loads_pyarrow_and_nothing_else_does():
    code = (
        "import sys, steelyard as sy\n"
        "from steelyard.io import as_source\n"
        "assert as_source([[1, 2]]) is None\n"
        "print('pyarrow' in sys.modules, end=' ')\n"
        "sys.modules['pyarrow'] = None\n"
        "try: sy.scan('a.parquet')\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.startswith("False ")
    assert "steelyard[scale]" in done.stdout
