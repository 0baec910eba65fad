"""Sessions and frames of Spark, for the tests beside this file."""

import os
import sys

import numpy as np
import pandas as pd
import pytest


@pytest.fixture(scope="module")
def spark():
    from pyspark.sql import SparkSession

    # Tests of exports have a session of their own settings, and of another Python.
    if (earlier := SparkSession.getActiveSession()) is not None:
        earlier.stop()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    made = SparkSession.builder.master("local[2,4]").appName("steelyard")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "3",
    }.items():
        made = made.config(name, value)
    session = made.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    n = 1_500
    a, b = rng.choice(list("abcd"), n), rng.integers(0, 3, n)
    x = rng.normal(size=n).round(2)
    score = (a == "a") + (b == 1) + x + rng.normal(size=n)
    frame = pd.DataFrame({"a": a, "b": b, "x": x, "w": rng.integers(0, 3, n)})
    return frame.assign(y=np.where(score > 1, "high", "low"))


@pytest.fixture(scope="module")
def frame(spark, table):
    return spark.createDataFrame(table).repartition(4).persist()
