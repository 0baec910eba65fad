"""Fits of Dask frames on two worker processes, against fits of the same table here."""

import os
import signal
import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

import dask  # noqa: E402
import dask.array as da  # noqa: E402

import steelyard as sy  # noqa: E402
from steelyard.exceptions import ColumnError, TableError  # noqa: E402

FEATURES = ["a", "b", "c", "x", "z"]
CUTS = [0, 150, 150, 400, 410, 700]
SUMS = (
    "NB GNB WANBIA-CLL WANBIA-MSE CAWNB-CLL CAVWNB-CLL RNB ENB DNB LNB GDNB MSE "
    "GRAWNB KLNB CFW DFWNB SHNB AODE"
).split()
# Their searches end where little is left to gain, not at one point.
WITHIN = {"RNB": 1e-6, "DNB": 1e-6, "MSE": 1e-6}
FETCHED = ["TAN", "SBC", "DTAWNB", "AUCNB", "DWNB", "BNB", "AIWNB-E"]


@pytest.fixture(scope="module")
def client():
    quiet = {
        "distributed.worker.memory.terminate": False,
        "distributed.nanny.pre-spawn-environ.OMP_NUM_THREADS": 1,
    }
    with (
        dask.config.set(quiet),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    n = CUTS[-1]
    a, b = rng.choice(list("abcd"), n), rng.integers(0, 3, n)
    x, z = rng.normal(size=n).round(2), rng.exponential(size=n).round(1)
    score = (a == "a") + (b == 1) + x + rng.normal(size=n)
    x[rng.random(n) < 0.1] = np.nan
    c = [None if k % 9 == 0 else f"v{k % 5}" for k in range(n)]
    frame = pd.DataFrame({"a": a, "b": b, "c": c, "x": x, "z": z})
    frame["y"] = np.where(score > 1.5, "high", np.where(score > 0.5, "middle", "low"))
    frame["w"] = rng.integers(0, 3, n)
    return frame


def in_parts(frame, cuts=CUTS):
    """Cut a frame into partitions: unequal ones, one of them empty."""
    parts = [dask.delayed(frame.iloc[lo:hi]) for lo, hi in pairwise(cuts)]
    return dd.from_delayed(parts, meta=frame.iloc[:0])


def made(name):
    clf = sy.method(name)
    seeded = "random_state" in clf.get_params()
    return clf.set_params(random_state=0) if seeded else clf


def quiet_fit(clf, *rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clf.fit(*rows)


def assert_same(there, here, frame, within=1e-10):
    np.testing.assert_array_equal(there.classes_, here.classes_)
    np.testing.assert_array_equal(there.counts_.by_code, here.counts_.by_code)
    assert there.encoder_.schema_ == here.encoder_.schema_
    p, q = (clf.predict_proba(frame[FEATURES]) for clf in (here, there))
    np.testing.assert_allclose(q, p, rtol=0, atol=within)


# ------------------------------------------------------------------------- equality


@pytest.mark.parametrize("name", [*SUMS, *FETCHED])
def test_a_method_learns_from_partitions_what_it_learns_from_the_table(
    name, client, table
):
    here = quiet_fit(made(name), table[FEATURES], table.y)
    there = quiet_fit(made(name), in_parts(table.drop(columns="w")), "y")
    assert_same(there, here, table, WITHIN.get(name, 1e-10))


@pytest.mark.parametrize("name", ["NB", "WANBIA-CLL", "SHNB", "LNB", "CFW", "DWNB"])
def test_weights_by_column_name(name, client, table):
    here = quiet_fit(made(name), table[FEATURES], table.y, table.w)
    there = quiet_fit(made(name), in_parts(table), "y", "w")
    # The solver stops at its tolerance, after sums in another order.
    assert_same(there, here, table, 1e-5 if name == "SHNB" else 1e-10)
    if hasattr(here, "instance_weights_"):
        found, wanted = there.instance_weights_, here.instance_weights_
        np.testing.assert_allclose(found, wanted, rtol=1e-10)


def test_a_partition_without_weight_keeps_its_rows_in_the_count(client, table):
    frame = table.assign(w=table.w.where(table.index >= CUTS[3], 0))
    here = quiet_fit(made("DWNB"), frame[FEATURES], frame.y, frame.w)
    there = quiet_fit(made("DWNB"), in_parts(frame), "y", "w")
    found, wanted = there.instance_weights_, here.instance_weights_
    np.testing.assert_allclose(found, wanted, rtol=1e-10)


def test_class_weights_and_densities(client, table):
    clf = sy.WeightedNB(numeric="gaussian", class_weight="balanced")
    here = quiet_fit(clone(clf), table[FEATURES], table.y)
    there = quiet_fit(clf, in_parts(table.drop(columns="w")), "y")
    p, q = (c.predict_proba(table[FEATURES]) for c in (here, there))
    np.testing.assert_allclose(q, p, rtol=0, atol=1e-10)


def test_strengths_are_compared_on_the_same_rows_of_a_long_table(client):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.integers(0, 3, (7000, 3)), columns=list("pqr"))
    frame["y"] = (frame.p + frame.q * frame.r + rng.normal(size=7000) > 2.5).astype(int)
    here = sy.ShrinkageNB().fit(frame[["p", "q", "r"]], frame.y)
    there = sy.ShrinkageNB().fit(in_parts(frame, [0, 1000, 5000, 7000]), "y")
    assert there.strength_path_ == here.strength_path_
    assert there.interactions_ and [p["columns"] for p in there.interactions_] == [
        p["columns"] for p in here.interactions_
    ]
    np.testing.assert_allclose(
        there.attribute_weights_, here.attribute_weights_, atol=1e-10
    )


@pytest.mark.parametrize("convert", [True, False])
def test_arrow_strings_and_categories(convert, client, table):
    frame = table.drop(columns="w").astype({"a": "category"})
    with dask.config.set({"dataframe.convert-string": convert}):
        rows = dd.from_pandas(frame, npartitions=3)
        there = sy.WeightedNB().fit(rows, "y")
    assert_same(there, sy.WeightedNB().fit(frame[FEATURES], frame.y), frame)


def test_frame_and_series_are_separate_arguments(client, table):
    rows = in_parts(table)
    there = sy.WeightedNB().fit(rows[FEATURES], rows["y"], rows["w"])
    here = sy.WeightedNB().fit(table[FEATURES], table.y, table.w)
    assert_same(there, here, table)


def test_arrays(client):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(600, 4)).round(1), rng.integers(0, 2, 600)
    there = sy.WeightedNB().fit(
        da.from_array(X, chunks=(250, 2)), da.from_array(y, chunks=250)
    )
    here = sy.WeightedNB().fit(X, y)
    np.testing.assert_allclose(
        there.attribute_weights_, here.attribute_weights_, atol=1e-10
    )
    lazy = there.predict_proba(da.from_array(X, chunks=(250, 2)))
    np.testing.assert_array_equal(lazy.compute(), there.predict_proba(X))
    assert lazy.shape == (600, 2)


# ----------------------------------------------------------------------- predictions


@pytest.mark.parametrize(
    "method",
    ["predict", "predict_proba", "predict_log_proba", "predict_joint_log_proba"],
)
def test_predictions_of_a_frame_are_lazy(method, client, table):
    clf = sy.NaiveBayes().fit(table[FEATURES], table.y)
    lazy = getattr(clf, method)(in_parts(table)[FEATURES])
    assert isinstance(lazy, da.Array)
    np.testing.assert_array_equal(lazy.compute(), getattr(clf, method)(table[FEATURES]))


# -------------------------------------------------------------------- lost and killed


def test_a_lost_worker_is_made_good(client, table, monkeypatch):
    from steelyard.scale.spread import SpreadPasses

    evaluate, passes = SpreadPasses.evaluate, []

    def after_a_loss(self, loss, effect):
        if len(passes) == 1:
            pids = client.run(os.getpid)
            os.kill(next(iter(pids.values())), signal.SIGKILL)
        passes.append(1)
        return evaluate(self, loss, effect)

    rows = in_parts(table.drop(columns="w"))
    clf = sy.WeightedNB(weighting="class-attribute", bounds=(0, 3))
    whole = clone(clf).fit(rows, "y")
    monkeypatch.setattr(SpreadPasses, "evaluate", after_a_loss)
    clf.fit(rows, "y")
    assert len(passes) > 2
    found, wanted = (c.class_attribute_weights_ for c in (clf, whole))
    np.testing.assert_array_equal(found, wanted)
    client.wait_for_workers(2, timeout=60)


def die(frame):
    if len(frame) == 10:
        os.kill(os.getpid(), signal.SIGKILL)
    return frame


@pytest.mark.parametrize("name", ["NB", "WANBIA-CLL"])
def test_500_partitions_are_worked_on_together(name, client, table):
    told = []
    here = made(name).fit(table[FEATURES], table["y"], table["w"])
    expected = here.predict_proba(table[FEATURES])
    for n_parts in (20, 500):
        cuts = np.linspace(0, 700, n_parts + 1).astype(int)
        with sy.watch(told.append):
            there = made(name).fit(in_parts(table, cuts), "y", "w")
        found = there.predict_proba(table[FEATURES])
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
    # Passes are told of wherever the rows are.
    assert any(at.step == "fit" for at in told) == (name != "NB")


def test_partitions_of_other_types_are_not_made_one():
    from steelyard.scale.parts import grouped

    frames = [pd.DataFrame({"a": [k, 2]}) for k in (1, 2, 3.5, 4.5)]
    one, other = grouped(7, frames, [], [])
    assert (one.number, other.number, one.labels) == (7, 9, None)
    assert [one.cells["a"].tolist(), other.cells["a"].tolist()] == [
        [1, 2, 2, 2],
        [3.5, 2, 4.5, 2],
    ]
    assert one.cells["a"].dtype.kind == "i"
    # Labels that do not fit are left to be refused by their partition.
    labels = [np.array([0, 1]), np.array([0]), np.array([1, 0]), np.array([0, 0])]
    assert [part.number for part in grouped(0, frames, labels, [])] == [0, 1, 2]


def test_workers_that_die_over_a_partition_get_a_message(client, table):
    rows = in_parts(table)
    rows = rows.map_partitions(die, meta=rows._meta)
    # One death suffices; all partitions that were waiting there are blamed for it.
    client.run_on_scheduler(allow_failures, n=0)
    with pytest.raises(TableError, match=r"died over partition \d of 5.*repartition"):
        sy.NaiveBayes().fit(rows, "y")
    client.run_on_scheduler(allow_failures, n=3)
    client.wait_for_workers(2, timeout=60)


def allow_failures(dask_scheduler, n):
    dask_scheduler.allowed_failures = n


# -------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("name", ["LWNB", "AIWNB-L"])
def test_methods_that_keep_all_rows_are_refused_unread(name, table):
    def read(frame):
        raise AssertionError("read")

    rows = dd.from_pandas(table, npartitions=2)
    rows = rows.map_partitions(read, meta=rows._meta)
    with pytest.raises(TableError, match="needs all rows on one machine"):
        sy.method(name).fit(rows, "y")


def test_wrong_inputs_are_refused_before_anything_is_read(client, table):
    rows, clf = in_parts(table), sy.NaiveBayes()
    with pytest.raises(ColumnError, match=r"no column 'yy'\. Did you mean 'y'"):
        clf.fit(rows, "yy")
    with pytest.raises(TableError, match="No target was given"):
        clf.fit(rows)
    with pytest.raises(TableError, match="y must be one as well"):
        clf.fit(rows, table.y)
    with pytest.raises(TableError, match="X has 5 partitions and y 2"):
        clf.fit(rows[FEATURES], dd.from_pandas(table.y, npartitions=2))
    with pytest.raises(TableError, match="which has no names"):
        clf.fit(da.ones((4, 2)), "y")
    with pytest.raises(TableError, match="two dimensions"):
        clf.fit(rows["a"], rows["y"])
    cut = [dd.from_pandas(table.iloc[:n], npartitions=2, sort=True) for n in (600, 700)]
    with pytest.raises(TableError, match="divided differently"):
        clf.fit(cut[0][FEATURES], cut[1]["y"])


def test_wrong_rows_are_named_by_their_partition(client, table):
    clf = sy.NaiveBayes()
    other = in_parts(table, [0, 150, 150, 400, 420, 700])
    with pytest.raises(TableError, match="Partition 3: X has 10 rows and y 20"):
        clf.fit(in_parts(table)[FEATURES], other["y"])
    frame = table.copy()
    frame.loc[405, "y"] = None
    with pytest.raises(TableError, match="partition 3: Input y contains NaN"):
        clf.fit(in_parts(frame), "y")
    frame = table.astype({"w": float})
    frame.loc[405, "w"] = -1.0
    with pytest.raises(TableError, match="partition 3"):
        clf.fit(in_parts(frame), "y", "w")
    with pytest.raises(TableError, match="no row to learn from"):
        clf.fit(in_parts(table.assign(w=0)), "y", "w")
    assert not hasattr(clf, "model_")


def test_cv_positions_are_refused(client, table):
    cv = [(np.arange(10), np.arange(10, 20))]
    with pytest.raises(ValueError, match="names rows by position"):
        sy.ShrinkageNB(cv=cv).fit(in_parts(table), "y")


def test_without_a_client_partitions_are_read_here(table, monkeypatch):
    import steelyard.scale.dask as scale

    monkeypatch.setattr(scale, "_client", lambda: None)
    rows = in_parts(table.drop(columns="w"))
    clf = sy.WeightedNB().fit(rows, "y")
    here = sy.WeightedNB().fit(table[FEATURES], table.y)
    np.testing.assert_array_equal(clf.attribute_weights_, here.attribute_weights_)
    with pytest.raises(TableError, match=r"distributed\.Client"):
        clf.fit(rows[FEATURES], rows["y"])
