"""Encoded rows in files: what comes back, what is refused, and what is left behind."""

import errno
import os
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

from steelyard import TableEncoder
from steelyard._common import threads
from steelyard._common.files import WorkFolder
from steelyard.exceptions import TableError
from steelyard.table.codes import MEMORY
from steelyard.table.frames import as_table
from steelyard.table.storage import DiskWorkspace, Store


@pytest.fixture
def disk(tmp_path):
    """A workspace in which every array is in a file."""
    return DiskWorkspace(WorkFolder(tmp_path), small=0)


@pytest.fixture
def encoded():
    """Codes of categories, a column of 300 values, numbers, and labels."""
    rng = np.random.default_rng(0)
    n = 900
    X = np.empty((n, 4), dtype=object)
    X[:, 0] = rng.choice(["a", "b", None], n)
    X[:, 1] = [f"v{k % 300}" for k in range(n)]
    X[:, 2] = rng.integers(-50, 50, n)
    X[:, 3] = rng.normal(size=n)
    encoder = TableEncoder(numeric="gaussian").fit(X)
    return encoder.encode(as_table(X)), rng.integers(0, 3, n)


def filled(workspace, codes, labels, weights=None, cuts=(0, 1, 1, 400, 900), **options):
    store = Store(workspace, codes.schema, codes.n_rows, 3, **options)
    for lo, hi in pairwise(cuts):
        rows = slice(lo, hi)
        u = None if weights is None else weights[rows]
        store.append(codes.part(rows), labels[rows], u)
    return store.finish()


def assert_same(stored, codes):
    np.testing.assert_array_equal(stored.to_array(), codes.to_array())
    np.testing.assert_array_equal(
        stored.number_rows(slice(None)), codes.number_rows(slice(None))
    )


@pytest.mark.parametrize("in_memory", [False, True])
def test_rows_come_back_as_they_were_whatever_the_chunks(disk, encoded, in_memory):
    codes, labels = encoded
    rows = filled(MEMORY if in_memory else disk, codes, labels)
    assert_same(rows.codes, codes)
    np.testing.assert_array_equal(rows.labels, labels)
    assert rows.weights is None and rows.is_kept is None


def test_codes_are_stored_by_column_and_labels_are_bytes(disk, encoded):
    rows = filled(disk, *encoded)
    narrow, wide = rows.codes.blocks
    assert narrow.values.T.flags.c_contiguous and narrow.values.dtype == np.uint8
    assert wide.values.dtype == np.uint16 and rows.labels.dtype == np.uint8


def test_rows_of_weight_zero_are_left_out_and_remembered(disk, encoded):
    codes, labels = encoded
    weights = np.where(np.arange(900) % 7 == 3, 0.0, 2.5)
    rows = filled(disk, codes, labels, weights, has_weights=True)
    kept = weights != 0
    assert_same(rows.codes, codes.take(kept))
    np.testing.assert_array_equal(rows.is_kept, kept)
    np.testing.assert_array_equal(rows.weights, weights[kept])
    np.testing.assert_array_equal(rows.labels, labels[kept])


@pytest.mark.parametrize("cuts", [(0, 400), (0, 900, 900), (0, 900, 5)])
def test_another_number_of_rows_is_a_source_that_changed(disk, encoded, cuts):
    codes, labels = encoded
    store = Store(disk, codes.schema, 899 if cuts[-1] == 900 else 900, 3)
    with pytest.raises(TableError, match="changed between two readings"):
        for lo, hi in pairwise(cuts):
            rows = slice(0, hi) if lo > hi else slice(lo, hi)
            store.append(codes.part(rows), labels[rows])
        store.finish()


def test_what_is_taken_and_joined_is_in_files_too(disk, encoded):
    codes, labels = encoded
    stored = filled(disk, codes, labels).codes
    picked = np.flatnonzero(labels == 1)
    assert_same(stored.take(picked), codes.take(picked))
    assert_same(stored.take(labels == 1), codes.take(picked))
    assert is_mapped(stored.take(picked).blocks[0].values)
    np.testing.assert_array_equal(stored.by_column(), codes.to_array().T)


def is_mapped(array):
    while array is not None and not isinstance(array, np.memmap):
        array = array.base
    return array is not None


def test_small_arrays_stay_in_memory(tmp_path):
    workspace = DiskWorkspace(WorkFolder(tmp_path), small=800)
    assert not is_mapped(workspace.zeros(100, np.float64))
    assert is_mapped(workspace.zeros(101, np.float64))
    assert workspace.zeros((0, 5), np.uint8).shape == (0, 5)


def test_positions_and_rows_are_found_by_pieces(disk, monkeypatch):
    monkeypatch.setattr(threads, "PIECE_ROWS", 7)
    mask = np.random.default_rng(1).random(50) < 0.3
    found = disk.rows_where(50, mask.__getitem__)
    np.testing.assert_array_equal(found, np.flatnonzero(mask))
    table = np.arange(100.0).reshape(50, 2)
    np.testing.assert_array_equal(disk.take(table, found), table[mask])


def test_a_full_disk_is_an_error_and_leaves_nothing(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    workspace = DiskWorkspace(WorkFolder(tmp_path), small=0)
    monkeypatch.setattr(os, "posix_fallocate", refuse)
    with pytest.raises(TableError, match="No space is left"):
        workspace.zeros(10, np.float64)
    assert [path.name for path in workspace.folder.path.iterdir()] == ["lock"]


def test_files_are_out_of_sight_and_the_folder_goes_with_the_arrays(disk, encoded):
    folder = disk.folder.path
    rows = filled(disk, *encoded)
    if os.name == "posix":
        assert [path.name for path in folder.iterdir()] == ["lock"]
    assert rows.codes.workspace is disk and folder.exists()


def test_the_folder_goes_when_the_last_rows_do(tmp_path, encoded):
    rows = filled(DiskWorkspace(WorkFolder(tmp_path), small=0), *encoded)
    assert list(tmp_path.iterdir())
    weights = rows.codes.workspace.full(1000, 1.0)
    del rows
    assert not list(tmp_path.iterdir())
    assert weights.sum() == 1000


KILLED = """
import os, signal, sys
import numpy as np
from steelyard._common.files import WorkFolder
from steelyard.table.storage import DiskWorkspace
workspace = DiskWorkspace(WorkFolder(sys.argv[1]))
array = workspace.zeros(1 << 24, np.uint8)
array[:] = 1
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(os.name != "posix", reason="no SIGKILL")
def test_a_killed_process_leaves_no_rows_behind(tmp_path):
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path.name for path in left] == ["lock"]
    WorkFolder(tmp_path).close()
    assert not list(tmp_path.iterdir())
