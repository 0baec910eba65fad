"""Fits of Spark frames on two threads, against fits of the same table here."""

import os
import subprocess
import sys
import tempfile

import numpy as np
import pytest

import steelyard as sy
from steelyard.exceptions import ColumnError, TableError

pytest.importorskip("pyspark")
pytestmark = [pytest.mark.engines, pytest.mark.filterwarnings("ignore")]
FEATURES = ["a", "b", "x"]


@pytest.mark.parametrize("name", ["NB", "WANBIA-CLL", "SHNB", "TAN"])
def test_a_method_learns_on_executors_what_it_learns_here(name, frame, table, spark):
    there = sy.method(name).fit(frame.select(*FEATURES, "y"), "y")
    rows = frame.toPandas()
    here = sy.method(name).fit(rows[FEATURES], rows["y"])
    proba = [clf.predict_proba(table[FEATURES]) for clf in (there, here)]
    np.testing.assert_allclose(*proba, rtol=0, atol=1e-10)
    assert there.target_name_ == "y"
    # The frame of this test is all that is still kept.
    assert spark.sparkContext._jsc.getPersistentRDDs().size() <= 1


def test_weights_by_name_and_many_partitions(frame):
    there = sy.method("WANBIA-CLL").fit(frame.repartition(500), "y", "w")
    rows = frame.toPandas()
    here = sy.method("WANBIA-CLL").fit(rows[FEATURES], rows["y"], rows["w"])
    proba = [clf.predict_proba(rows[FEATURES]) for clf in (there, here)]
    np.testing.assert_allclose(*proba, rtol=0, atol=1e-10)


def test_a_task_that_is_lost_is_made_good(frame, tmp_path):
    """A worker process that dies takes its task with it; Spark runs it again."""
    mark = tmp_path / "died"

    def dies_once(batches):
        if not mark.exists():
            mark.touch()
            os._exit(1)
        yield from batches

    rows = frame.select(*FEATURES, "y")
    shaky = rows.mapInArrow(dies_once, rows.schema)
    there, safe = sy.NaiveBayes().fit(shaky, "y"), sy.NaiveBayes().fit(rows, "y")
    assert mark.exists()
    np.testing.assert_array_equal(there.counts_.by_code, safe.counts_.by_code)


_EXECUTORS = """
import os, signal, sys
import numpy as np, pandas as pd, pyarrow as pa
from pyspark.sql import SparkSession
from sklearn.base import clone
import steelyard as sy

made = SparkSession.builder.master("local-cluster[2,1,700]")
for name, value in {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.executor.memory": "700m",
    "spark.default.parallelism": "4",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}.items():
    made = made.config(name, value)
spark = made.getOrCreate()
spark.sparkContext.setLogLevel("OFF")
table, killed = pd.read_pickle(sys.argv[1]), []
# Without a shuffle, which would change the order of rows when it is made again.
frame = spark.createDataFrame(table).persist()
assert frame.rdd.getNumPartitions() == 4
rows, names = frame.toPandas(), ["a", "b", "x"]

def executors():
    # A process of Python is a child of a daemon, which is one of the executor.
    def pid(batches):
        parent = open(f"/proc/{os.getppid()}/stat").read().rpartition(")")[2].split()[1]
        yield pa.record_batch({"pid": [int(parent)]})
    return {row.pid for row in frame.mapInArrow(pid, "pid long").collect()}

def kill(at):
    if at.step == "fit" and not killed:
        killed.append(sorted(executors())[0])
        os.kill(killed[0], signal.SIGKILL)

before = executors()
assert len(before) == 2
clf = sy.ShrinkageNB(interactions=None)
safe = clone(clf).fit(frame, "y").predict_proba(rows[names])
with sy.watch(kill):
    there = clone(clf).fit(frame, "y").predict_proba(rows[names])
assert killed and killed[0] not in executors()
np.testing.assert_array_equal(there, safe)
here = clf.fit(rows[names], rows["y"]).predict_proba(rows[names])
np.testing.assert_allclose(there, here, rtol=0, atol=1e-10)
spark.stop()
"""


def run_alone(program, *arguments):
    """Run a program in a process of its own: one process has one kind of session."""
    command = [sys.executable, "-W", "ignore", "-c", program, *map(str, arguments)]
    own = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        command, env={**os.environ, **own}, capture_output=True, text=True
    )
    assert not done.returncode, done.stderr[-3000:]


def test_an_executor_that_is_killed_is_made_good_to_the_bit(table, tmp_path):
    """Of two executors one is killed in the first pass of a fit."""
    table.drop(columns="w").to_pickle(tmp_path / "rows")
    run_alone(_EXECUTORS, tmp_path / "rows")


def test_predictions_are_columns_of_the_frame(frame):
    clf = sy.NaiveBayes().fit(frame.select(*FEATURES, "y"), "y")
    found = clf.predict_proba(frame).toPandas()
    proba = clf.predict_proba(found[FEATURES])
    np.testing.assert_array_equal(np.stack(found["probability"]), proba)
    assert found["prediction"].tolist() == clf.predict(found[FEATURES]).tolist()
    assert clf.predict(frame).columns == [*frame.columns, "prediction"]


def fits_and_predictions_agree(clf, frame, features):
    """Fit a frame and its rows in memory, and compare what both say of them."""
    there = clf.fit(frame, "y")
    rows = frame.toPandas()
    here = type(clf)(**clf.get_params()).fit(rows[features], rows["y"])
    assert list(there.feature_names_in_) == list(here.feature_names_in_)
    found = there.predict_proba(frame).toPandas()
    proba = here.predict_proba(found[features])
    np.testing.assert_allclose(np.stack(found["probability"]), proba, atol=1e-10)
    return there


@pytest.mark.parametrize("kind", ["TIMESTAMP", "TIMESTAMP_NTZ", "DATE"])
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_moments_are_those_of_the_clock_of_the_session(kind, zone, spark):
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        # One partition of three is empty.
        rows = (
            spark.range(0, 900, numPartitions=3)
            .where("id < 600")
            .selectExpr(
                f"CAST(timestamp_seconds(1704100000 + 13333 * id) AS {kind}) AS t",
                "IF(id * 13333 % 86400 < 50000, 'high', 'low') AS y",
            )
        )
        there = fits_and_predictions_agree(sy.NaiveBayes(), rows.persist(), ["t"])
        rows.unpersist()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    has_hours = "t.hour" in there.feature_names_in_
    assert has_hours == (kind != "DATE")


@pytest.mark.parametrize("name", ["NB", "WANBIA-CLL"])
def test_names_with_dots_and_backticks_are_those_of_columns(name, frame):
    odd = ["a.b", "c`d", "`x`.y z"]
    rows = frame.select(*FEATURES, "y").toDF(*odd, "y")
    fits_and_predictions_agree(sy.method(name), rows, odd)


@pytest.mark.parametrize("name", ["NB", "WANBIA-CLL"])
def test_a_frame_without_rows_is_refused_in_words(name, frame, spark):
    rows = frame.select(*FEATURES, "y")
    for empty in (rows.limit(0), rows.where("y = 'neither'")):
        with pytest.raises(TableError, match="There is no row to learn from"):
            sy.method(name).fit(empty, "y")
    assert spark.sparkContext._jsc.getPersistentRDDs().size() <= 1


def test_two_columns_of_one_name_are_refused(frame):
    with pytest.raises(ColumnError, match="two columns named 'a'"):
        sy.NaiveBayes().fit(frame.select("a", "a", "y"), "y")


@pytest.mark.parametrize("name", ["NB", "WANBIA-CLL"])
def test_all_work_runs_in_one_python_process_on_a_core(name, frame, monkeypatch):
    """One call of ``mapInArrow``, down to what is kept and is there already."""
    from steelyard.scale.spark import SparkParts

    calls, mapped = [], SparkParts._mapped

    def looked_at(self, *given):
        made = mapped(self, *given)
        plan = made._jdf.queryExecution().executedPlan().toString()
        calls.append(plan.partition("InMemoryTableScan")[0].count("MapInArrow"))
        return made

    monkeypatch.setattr(SparkParts, "_mapped", looked_at)
    rows = frame.select(*FEATURES, "y")
    sy.method(name).fit(rows, "y")
    assert calls and set(calls) == {1}


def test_wrong_frames_are_refused_and_leave_nothing(frame, spark):
    with pytest.raises(ColumnError, match="no column 'yy'"):
        sy.NaiveBayes().fit(frame, "yy")
    with pytest.raises(TableError, match="names of its columns"):
        sy.NaiveBayes().fit(frame, ["high"] * 1500)
    with pytest.raises(TableError, match="needs all rows on one machine"):
        sy.method("LWNB").fit(frame, "y")
    with pytest.raises(TableError, match="takes tables and scans"):
        sy.NaiveBayes().partial_fit(frame, "y")
    assert spark.sparkContext._jsc.getPersistentRDDs().size() <= 1


def test_an_error_of_an_executor_is_one_sentence_here(frame):
    rows = frame.select(*FEATURES, "y")
    unlabelled = rows.selectExpr(*FEATURES, "CAST(NULL AS STRING) AS y")
    with pytest.raises(TableError, match="partition 0: Input y contains NaN"):
        sy.NaiveBayes().fit(unlabelled, "y")
    infinite = rows.selectExpr("a", "b", "double('Infinity') AS x", "y")
    with pytest.raises(TableError, match="'x' holds an infinite number"):
        sy.NaiveBayes().fit(infinite, "y")


def test_other_types_in_one_partition_are_refused_by_the_frame(frame, spark):
    """A frame has one type for each column, whatever its partitions are made of."""
    rows = frame.select(*FEATURES, "y")
    mixed = rows.union(rows.selectExpr("a", "b", "a AS x", "y"))
    with pytest.raises(TableError, match=r"could not compute the frame: .*cast to"):
        sy.NaiveBayes().fit(mixed, "y")

    def other_type(batches):
        import pyarrow as pa

        for batch in batches:
            words = pa.array(["word"] * batch.num_rows)
            yield batch.set_column(2, "x", words)

    wrong = rows.mapInArrow(other_type, rows.schema)
    with pytest.raises(TableError, match="could not compute the frame"):
        sy.NaiveBayes().fit(wrong, "y")
    assert spark.sparkContext._jsc.getPersistentRDDs().size() <= 1


def test_nothing_is_left_behind_however_a_fit_ends(frame, spark, tmp_path, monkeypatch):
    from steelyard.scale import parts

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rows = frame.select(*FEATURES, "y")
    assert rows.count() == 1_500

    def is_clean():
        kept = spark.sparkContext._jsc.getPersistentRDDs().size()
        return kept <= 1 and not list(tmp_path.glob("steelyard*"))

    for name in ("WANBIA-CLL", "AODE"):
        sy.method(name).fit(rows, "y")
        assert is_clean()
    monkeypatch.setattr(parts, "take_rows", lambda *_: 1 / 0)
    with pytest.raises(TableError, match="frame: ZeroDivisionError: division by"):
        sy.method("SHNB").fit(rows, "y")
    assert is_clean()


_CONNECT = """
import sys
import numpy as np, pandas as pd
from pyspark.sql import SparkSession
import steelyard as sy
from steelyard.exceptions import ColumnError
from steelyard.scale import spark as scale

builder = SparkSession.builder.config("spark.ui.enabled", "false")
spark = builder.config("spark.driver.memory", "1g").remote("local[2]").getOrCreate()
assert "connect" in type(spark).__module__
table = pd.read_pickle(sys.argv[1])
frame = spark.createDataFrame(table).repartition(4).persist()
assert scale._n_partitions(frame) == 4
made, kept = scale.SparkGiven.__init__, []
scale.SparkGiven.__init__ = lambda self, X: (made(self, X), kept.append(self._kept))[0]
rows, names = frame.toPandas(), ["a", "b", "x"]
for name in ("NB", "SHNB"):
    there = sy.method(name).fit(frame, "y")
    here = sy.method(name).fit(rows[names], rows["y"])
    proba = [clf.predict_proba(rows[names]) for clf in (there, here)]
    np.testing.assert_allclose(*proba, rtol=0, atol=1e-10)
held = [part for parts in kept for part in parts]
assert held and not any(part.storageLevel.useMemory for part in held)
found = there.predict_proba(frame).toPandas()
proba = there.predict_proba(found[names])
np.testing.assert_array_equal(np.stack(found["probability"]), proba)
from steelyard.spark import SteelyardClassificationModel, SteelyardClassifier
stage = SteelyardClassifier(
    classifier=sy.NaiveBayes(), featuresCol=names, labelCol="y", handleInvalid="skip"
)
model = stage.fit(frame)
for _ in range(2):
    model.write().overwrite().save(sys.argv[1] + "-model")
again = SteelyardClassificationModel.load(sys.argv[1] + "-model")
found = again.transform(frame).toPandas()
expected = model.fitted.predict_proba(found[names])
np.testing.assert_array_equal([v.toArray() for v in found["probability"]], expected)
try:
    sy.NaiveBayes().fit(frame, "yy")
except ColumnError as error:
    assert "no column 'yy'" in str(error)
else:
    raise AssertionError("a column that is not there")
spark.stop()
"""


def test_a_session_of_spark_connect_learns_and_predicts(table, tmp_path):
    pytest.importorskip("grpc")
    table.drop(columns="w").to_pickle(tmp_path / "rows")
    run_alone(_CONNECT, tmp_path / "rows")


def test_pyspark_that_is_too_old_is_refused():
    class DataFrame:
        __module__ = "pyspark.sql.dataframe"
        columns = ("a", "y")

    with pytest.raises(TableError, match="is too old"):
        sy.NaiveBayes().fit(DataFrame(), "y")
