"""Rows in memory maps, read by pieces: the same bits as in memory, in little memory."""

import os
import subprocess
import sys
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone

import steelyard as sy
from steelyard._common import threads
from steelyard._common.files import WorkFolder
from steelyard.fitting.rows import _by_row
from steelyard.model.base import NEEDS
from steelyard.model.streamed import Coding
from steelyard.table.storage import DiskWorkspace, Store

METHODS = [*(entry.acronym for entry in sy.methods()), "JointWeightedNB"]


@pytest.fixture(scope="module")
def table():
    """Three classes; categories, two numbers with holes, and weights."""
    import pandas as pd

    rng = np.random.default_rng(0)
    n = 500
    y = rng.integers(0, 3, n)
    X = pd.DataFrame(
        {f"c{j}": (rng.integers(0, 4 + j, n) * (1 + (y > j % 2))) for j in range(3)}
    ).astype(str)
    X["u"] = (rng.normal(size=n) + y).round(2)
    X["v"] = rng.normal(size=n) - y
    X.loc[::17, "u"] = np.nan
    X.loc[::13, "c1"] = None
    return X, y, np.where(np.arange(n) % 5 == 0, 0.0, rng.uniform(0.5, 3.0, n))


def made(name, **settings):
    clf = sy.JointWeightedNB() if name == "JointWeightedNB" else sy.method(name)
    few = {"random_state": 0, "generations": 5, "max_rounds": 4}
    known = {k: v for k, v in few.items() if k in clf.get_params()}
    return clf.set_params(**known, **settings)


class Elsewhere:
    """Columns that are not in memory, from which rows can be read."""

    def __init__(self, table):
        self.take = table.take


def stored(training, folder, chunk=170):
    """Put encoded rows into files, chunk by chunk."""
    workspace = DiskWorkspace(WorkFolder(folder), small=0)
    u = training.sample_weight
    shape = training.schema, training.n_rows, training.n_classes
    store = Store(workspace, *shape, has_weights=u is not None)
    for lo in range(0, training.n_rows, chunk):
        rows = slice(lo, min(lo + chunk, training.n_rows))
        weights = None if u is None else u[rows]
        store.append(training.codes.part(rows), training.labels[rows], weights)
    known = training.encoder, training.classes, training.class_factors
    rows = Coding(*known, training.preparation).training(store.finish())
    return replace(rows, table=Elsewhere(training.table))


def both_ways(clf, X, y, u, folder):
    """Fit in memory and from files; return what both learned."""
    there = clone(clf)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf.fit(X, y, u)
        recipe = there._recipe()
        training = stored(recipe.encode(X, y, u, there), folder)
        there._learn_from(recipe, training)
    return clf, there


def assert_same_bits(here, there, X):
    np.testing.assert_array_equal(there.predict_proba(X), here.predict_proba(X))
    np.testing.assert_array_equal(there.counts_.by_code, here.counts_.by_code)
    for name in ("attribute_weights_", "class_attribute_weights_", "votes_"):
        if hasattr(here, name):
            learned = getattr(there, name), getattr(here, name)
            np.testing.assert_array_equal(*learned)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", METHODS)
def test_every_method_learns_the_same_bits_from_files(
    name, weighted, table, tmp_path, monkeypatch
):
    # Blocks of so few rows are cut too, as those of long tables are.
    monkeypatch.setattr(threads, "PIECE_ROWS", 192)
    X, y, u = table
    settings = {"class_weight": "balanced"} if weighted else {}
    clf = made(name)
    clf.set_params(**{k: v for k, v in settings.items() if k in clf.get_params()})
    here, there = both_ways(clf, X, y, u if weighted else None, tmp_path)
    assert_same_bits(here, there, X)
    if weighted and hasattr(there, "instance_weights_"):
        own = [fit.instance_weights_[: len(y)] for fit in (there, here)]
        np.testing.assert_array_equal(own[0], own[1][u != 0])


@pytest.mark.parametrize("numeric", ["mdl", "gaussian", ("mdl", "equal-frequency")])
def test_encodings_and_inner_folds_are_the_same(numeric, table, tmp_path):
    X, y, u = table
    here, there = both_ways(sy.ShrinkageNB(numeric=numeric), X, y, u, tmp_path)
    assert_same_bits(here, there, X)
    assert here.strength_path_ == there.strength_path_


def test_positions_of_folds_are_refused_for_rows_elsewhere(table, tmp_path):
    X, y, _ = table
    clf = sy.ShrinkageNB(cv=[(np.arange(400), np.arange(400, 500))])
    recipe = clf._recipe()
    training = stored(recipe.encode(X, y), tmp_path)
    with pytest.raises(ValueError, match="by position"):
        clf._fit(recipe, training)


@pytest.mark.parametrize("name", ["NB", "WANBIA-CLL", "RNB", "ENB", "DWNB", "SNB"])
def test_pieces_change_sums_in_the_last_digits_alone(name, table, monkeypatch):
    X, y, _ = table
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = made(name).fit(X, y)
        monkeypatch.setattr(threads, "PIECE_ROWS", 64)
        parts = made(name).fit(X, y)
    np.testing.assert_array_equal(parts.counts_.by_code, whole.counts_.by_code)
    p, q = parts.predict_proba(X), whole.predict_proba(X)
    np.testing.assert_allclose(p, q, rtol=0, atol=1e-6)


def test_what_methods_keep_of_rows_is_known_and_in_the_docs():
    from pathlib import Path

    page = Path(__file__).parents[2].joinpath("docs", "methods.md").read_text("utf-8")
    lines = [line for line in page.splitlines() if line.startswith('| "')]
    listed = {
        acronym: line.split('"')[1]
        for line in lines
        for acronym in line.split("|")[2].replace("`", "").replace(" ", "").split(",")
    }
    assert listed == {name: made(name).rows_needed for name in METHODS}
    assert set(listed.values()) == set(NEEDS)


def test_instance_weights_ask_for_numbers_of_each_row():
    assert sy.WeightedNB().rows_needed == "sums"
    assert sy.WeightedNB(instances="discriminative").rows_needed == "per-row"
    assert sy.WeightedNB(weighting="trees").rows_needed == "codes"


LIMITED = """
import resource, sys
import numpy as np
import steelyard as sy
from steelyard._common import threads
from steelyard._common.files import WorkFolder
from steelyard.fitting.rows import _by_row
from steelyard.model.streamed import Coding
from steelyard.table.storage import Store
from steelyard.table.storage import DiskWorkspace

threads.PIECE_ROWS = 1 << 14
folder, n_rows, n_chunk = sys.argv[1], int(sys.argv[2]), 1 << 16
rng = np.random.default_rng(0)
y = rng.integers(0, 3, n_chunk)
X = rng.integers(0, 6, (n_chunk, 12))
X[:, ::3] = (X[:, ::3] + y[:, None]) % 7
X = X.astype(np.uint8)

def fit(name, n_rows):
    clf = sy.method(name, categorical_features="all", n_jobs=2)
    recipe = clf._recipe()
    chunk = recipe.encode(X, y)
    workspace = DiskWorkspace(WorkFolder(folder), small=1 << 16)
    store = Store(workspace, chunk.schema, n_rows, 3)
    for _ in range(0, n_rows, n_chunk):
        store.append(chunk.codes, chunk.labels)
    coding = Coding(chunk.encoder, chunk.classes, None, chunk.preparation)
    training = coding.training(store.finish())
    clf._publish(training, clf._fit(recipe, training))

names = "NB", "WANBIA-CLL", "RNB", "DWNB", "ENB", "CFW"
for name in names:  # compiled, and threads started, before memory is short
    fit(name, n_chunk)
lines = open("/proc/self/status").read().splitlines()
used, = (int(line.split()[1]) << 10 for line in lines if line.startswith("VmData"))
limit = used + (int(sys.argv[3]) << 20)
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
for name in names:
    fit(name, n_rows)
print("done")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA counts maps on Linux")
@pytest.mark.parametrize("times", [1, 8])
def test_eight_times_the_rows_need_no_more_memory(times, tmp_path):
    # A number for each row is 1 MB, and 8 MB for eight times the rows.
    n_rows = times << 17
    run = [sys.executable, "-c", LIMITED, str(tmp_path), str(n_rows), "6"]
    done = subprocess.run(run, capture_output=True, text=True, env=os.environ)
    assert done.stdout == "done\n", done.stderr[-2000:]


def test_wide_codes_by_column_are_copied_to_files_where_the_others_are(tmp_path):
    """Codes of several pairs of more than 256 values stand column by column."""
    codes = SimpleNamespace(workspace=DiskWorkspace(WorkFolder(tmp_path), small=0))
    values = np.asfortranarray(np.arange(600, dtype=np.uint16).reshape(300, 2))
    by_row = _by_row(values, codes)
    assert by_row.flags.c_contiguous and isinstance(by_row.base, np.memmap)
    np.testing.assert_array_equal(by_row, values)
    assert _by_row(by_row, codes) is by_row
