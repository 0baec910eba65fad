"""Fit one Spark frame by steelyard and by classifiers of MLlib, and print what it took.

    python studies/spark_beside_mllib.py
    python studies/spark_beside_mllib.py --rows 1000000 --partitions 200 --methods NB

A table has 12 columns of numbers and 18 of text, of 2 to 2,000 values, and one cell of
20 is missing. Rows are Parquet files, one for each partition, which are read and kept
before time is taken. Each method has a process and a session of its own, two cores and
a driver of 2 GB, and fits 2,000 rows first, so that Java and Python have started.
Processor time and private memory are those of Java and all Python processes together.
Methods of steelyard are fitted to the same rows in memory too. Methods that have not
ended after ``--minutes`` are left out. Needs psutil and Java.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil
from sklearn.metrics import log_loss

import steelyard as sy

PAGE = Path(__file__).parents[1] / "docs" / "dask.md"
NUMBERS = [f"n{k}" for k in range(12)]
TEXTS = [f"t{k}" for k in range(18)]
SIZES = (2, 5, 20, 200, 2000)
OURS, MLLIB = ("NB", "WANBIA-CLL", "SHNB"), ("NaiveBayes", "Logistic", "GBT")
NAMES = {
    "NB": "`NaiveBayes`",
    "WANBIA-CLL": "`WANBIA-CLL`",
    "SHNB": "`ShrinkageNB`, the default",
    "NaiveBayes": "MLlib `NaiveBayes`, of ten bins",
    "Logistic": "MLlib `LogisticRegression`",
    "GBT": "MLlib `GBTClassifier`",
}
N_NEW = 20_000


def rows(n: int, part: int) -> pd.DataFrame:
    """Make the rows of one partition, which have a truth in common with all others."""
    truth, rng = np.random.default_rng(0), np.random.default_rng([1, part])
    cells: dict[str, Any] = {}
    z = np.full(n, -0.5)
    for k, name in enumerate(NUMBERS):
        x = rng.normal(size=n).round(2)
        z += (0.5, -0.4, 0.3, 0.0)[k % 4] * (x if k < 8 else np.abs(x) - 0.8)
        cells[name] = np.where(rng.random(n) < 0.05, np.nan, x)
    for k, name in enumerate(TEXTS):
        size = SIZES[k % len(SIZES)]
        at = np.minimum(rng.geometric(3 / (size + 2), n) - 1, size - 1)
        effects = truth.normal(0, 0.4 if k < 9 else 0.1, size)
        z += effects[at]
        words = np.array([f"value {v}" for v in range(size)], dtype=object)
        cells[name] = words[at]
        cells[name][rng.random(n) < 0.05] = None
    z += 0.8 * (cells["t0"] == "value 0") * (np.nan_to_num(cells["n0"]) > 0)
    is_yes = rng.random(n) < 1.0 / (1.0 + np.exp(-z))
    return pd.DataFrame({**cells, "label": is_yes.astype(float)})


def pipeline(name: str) -> Any:
    """Return a classifier of MLlib behind what it needs."""
    from pyspark.ml import Pipeline
    from pyspark.ml import classification as ml
    from pyspark.ml import feature as of

    def named(end: str, columns: list[str]) -> list[str]:
        return [f"{column}_{end}" for column in columns]

    texts, numbers = named("i", TEXTS), named("f", NUMBERS)
    keep: dict[str, Any] = {"handleInvalid": "keep"}
    stages: list[Any] = [of.StringIndexer(inputCols=TEXTS, outputCols=texts, **keep)]
    stages.append(of.Imputer(inputCols=NUMBERS, outputCols=numbers))
    if name == "NaiveBayes":
        bins: dict[str, Any] = {
            "numBucketsArray": [10] * len(NUMBERS),
            "outputCols": named("b", NUMBERS),
        }
        stages.append(of.QuantileDiscretizer(inputCols=numbers, **bins, **keep))
        texts, numbers = texts + bins["outputCols"], []
    if name != "GBT":
        vectors = named("v", texts)
        stages.append(of.OneHotEncoder(inputCols=texts, outputCols=vectors, **keep))
        texts = vectors
    assembled = of.VectorAssembler(inputCols=numbers + texts, outputCol="features")
    classifiers = {
        "NaiveBayes": ml.NaiveBayes(),
        "Logistic": ml.LogisticRegression(maxIter=50, regParam=1e-4),
        "GBT": ml.GBTClassifier(maxBins=max(SIZES) + 2, seed=0),
    }
    return Pipeline(stages=[*stages, assembled, classifiers[name]])


def session() -> Any:
    """Start Spark on two cores, with a partition for each file."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    made = SparkSession.builder.master("local[2]").appName("beside MLlib")
    for name, value in {
        "spark.driver.memory": "2g",
        "spark.driver.maxResultSize": "0",
        "spark.ui.enabled": "false",
        "spark.sql.files.openCostInBytes": str(2**27),
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }.items():
        made = made.config(name, value)
    started = made.getOrCreate()
    started.sparkContext.setLogLevel("OFF")
    return started


def measured(run: Callable[[], Any]) -> tuple[Any, float, float, float]:
    """Run a function; return its result, processor time, and peaks of memory.

    Seconds are of this process and all that it started, ended ones too. Memory is what
    no other process has, in MB, of Java and of Python.
    """
    here, done, peaks = psutil.Process(), threading.Event(), [0.0, 0.0]

    def family() -> list[psutil.Process]:
        return [here, *here.children(recursive=True)]

    def used() -> float:
        times = [process.cpu_times() for process in family()]
        return sum(
            t.user + t.system + t.children_user + t.children_system for t in times
        )

    def watch() -> None:
        while not done.wait(0.5):
            now = [0.0, 0.0]
            for process in family():
                try:
                    private = process.memory_full_info().uss / 1e6
                    now["java" not in process.name()] += private
                except psutil.Error:
                    continue
            peaks[:] = map(max, peaks, now)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    before = used()
    result = run()
    seconds = used() - before
    done.set()
    thread.join()
    return result, seconds, *peaks


def fitted(name: str, folder: str) -> dict[str, Any]:
    """Fit a method in this process, and return what it took and how well it does."""
    spark = session()
    frame = spark.read.parquet(f"{folder}/rows").persist()
    few = spark.read.parquet(f"{folder}/few").persist()
    new = pd.read_parquet(f"{folder}/new.parquet")
    frame.count(), few.count()
    X, y = new[NUMBERS + TEXTS], new["label"]
    if name in MLLIB:
        pipeline(name).fit(few)
        model, *took = measured(lambda: pipeline(name).fit(frame))
        scored = model.transform(spark.createDataFrame(new)).select("probability")
        proba = np.array([row[0].toArray() for row in scored.collect()])
        gap = None
    else:
        sy.method(name).fit(few, "label")
        model, *took = measured(lambda: sy.method(name).fit(frame, "label"))
        # In the order of Spark's partitions, which is not that of files.
        proba, train = model.predict_proba(X), frame.toPandas()
        here = sy.method(name).fit(train[NUMBERS + TEXTS], train["label"])
        gap = float(np.abs(here.predict_proba(X) - proba).max())
    spark.stop()
    figures = dict(zip(("seconds", "java", "python"), took, strict=True))
    return {**figures, "loss": log_loss(y, proba), "gap": gap}


def line(name: str, found: dict[str, Any]) -> str:
    """Return a line of the table."""
    numbers = f"{found['seconds']:,.0f} | {found['java']:,.0f} | {found['python']:,.0f}"
    gap = "" if found["gap"] is None else f"{found['gap']:.0e}"
    return f"| {NAMES[name]} | {numbers} | {found['loss']:.4f} | {gap} |"


def main() -> None:
    """Print a table, and write it into the page if asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000, metavar="N")
    parser.add_argument("--partitions", type=int, default=20, metavar="N")
    parser.add_argument("--methods", nargs="+", default=[*OURS, *MLLIB])
    parser.add_argument("--minutes", type=float, default=60.0, metavar="N")
    parser.add_argument("--write", action="store_true", help="put it into docs/dask.md")
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.folder:
        print(json.dumps(fitted(arguments.methods[0], arguments.folder)))
        return
    table = [
        "| method | processor time, s | Java, MB | Python, MB | log-loss | in memory |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    with tempfile.TemporaryDirectory() as folder:
        each = arguments.rows // arguments.partitions
        for name, n_rows, parts in (
            ("rows", each, range(arguments.partitions)),
            ("few", 1_000, range(2)),
        ):
            (Path(folder) / name).mkdir()
            for k in parts:
                rows(n_rows, k).to_parquet(f"{folder}/{name}/{k:05d}.parquet")
        rows(N_NEW, 10**6).to_parquet(f"{folder}/new.parquet")
        print("\n".join(table), flush=True)
        for name in arguments.methods:
            command = [sys.executable, __file__, "--folder", folder, "--methods", name]
            limit = 60.0 * arguments.minutes
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
                try:
                    answer = run.communicate(timeout=limit)[0]
                except subprocess.TimeoutExpired:
                    for process in psutil.Process(run.pid).children(recursive=True):
                        process.kill()
                    run.kill()
            if run.returncode:
                print(f"{name} failed, or took too long", file=sys.stderr)
                continue
            table.append(line(name, json.loads(answer.splitlines()[-1])))
            print(table[-1], flush=True)
    if arguments.write:
        page, text = PAGE.read_text(encoding="utf-8"), "\n".join(table)
        marks = r"(?s)(<!-- mllib -->\n\n).*?(\n\n<!-- end -->)"
        page = re.sub(marks, lambda match: f"{match[1]}{text}{match[2]}", page)
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
