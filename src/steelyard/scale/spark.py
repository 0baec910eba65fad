"""Fits and predictions of Spark frames, whose partitions stay on the executors.

Only ``DataFrame.mapInArrow`` is used, which Spark Connect has as well. A part is a row
``(k, held)`` of a frame: the number of its partition, and an object, pickled.
"""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from steelyard.exceptions import TableError
from steelyard.fitting.recipe import Recipe, RowsHere
from steelyard.io.paths import check_distinct, find_column
from steelyard.model.training import TrainingSet
from steelyard.scale import parts as work
from steelyard.scale.spread import (
    MAX_PARTS,
    SpreadColumns,
    refuse_all_rows,
    spread_training,
)
from steelyard.table.dates import date_of_part

_SCHEMA = "k int, held binary"
# Objects of a worker that garbage collection may visit after each task.
_MAX_COLLECTED = 20_000
_ARROW = pa.schema([("k", pa.int32()), ("held", pa.binary())])


class SparkParts:
    """Objects on executors, one for each partition, in the order of partitions.

    They are what ``start`` makes of the batches of a frame (a number and an object of
    each partition), after some steps from one object to the next. All runs in one call
    of ``mapInArrow``: Spark starts a Python process on each core for every further one.
    Spark makes those of a lost executor again, from the frame. ``kept`` lists frames to
    let go when the fit ends; with ``is_kept`` results stay on the executors.
    """

    def __init__(
        self,
        frame: Any,
        kept: list[Any],
        start: Callable[[Any], Iterator[tuple[int, Any]]],
        steps: tuple[Callable[..., Any], ...] = (),
        is_kept: bool = False,
    ) -> None:
        self._frame, self._kept, self._is_kept = frame, kept, is_kept
        self._start, self._steps = start, steps

    def _mapped(
        self,
        function: Callable[..., Any],
        given: Sequence[Any] | None = None,
        frame: Any = None,
    ) -> Any:
        start, steps = self._start, self._steps
        frame = self._frame if frame is None else frame

        def work_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for k, held in start(batches):
                last = function
                if given is not None:
                    last = partial(_call, function, (given[k],))
                try:
                    for step in (*steps, last):
                        # What was refused stays so.
                        if isinstance(held, TableError):
                            break
                        held = step(held)
                except TableError as error:
                    held = error
                yield _row(k, held)
            _freeze_loaded()

        return frame.mapInArrow(work_on, _SCHEMA)

    def then(self, function: Callable[..., Any], *arguments: Any) -> SparkParts:
        """Apply a function to each; results of kept parts are kept."""
        step = partial(_call, function, arguments)
        if self._is_kept:
            return self._keep(step)
        settings = (self._frame, self._kept, self._start)
        return SparkParts(*settings, (*self._steps, step))

    def _keep(self, function: Callable[..., Any]) -> SparkParts:
        """Apply a function to each; results are kept until the fit ends."""
        frame = self._mapped(function).persist()
        self._kept.append(frame)
        # Made now: otherwise the first use makes it in a second process.
        with _computing():
            frame.count()
        return SparkParts(frame, self._kept, _unpickled, is_kept=True)

    def encode(self, roles: work.Roles, coding: Any) -> SparkParts:
        """Return rows as codes, which are kept on the executors until the fit ends."""
        return self._keep(partial(work.encode, roles=roles, coding=coding))

    def each(
        self, function: Callable[..., Any], given: Sequence[Any] | None = None
    ) -> list[Any]:
        """Apply a function to each, and to what is given for it; return a list."""
        with _computing():
            frame = _in_few_tasks(self._frame) if self._is_kept else self._frame
            made = self._mapped(function, given, frame).collect()
        rows = sorted(made, key=lambda row: row.k)
        result = [pickle.loads(row.held) for row in rows]
        for error in result:
            if isinstance(error, TableError):
                raise error
        return result

    def sum(self, function: Callable[..., Any], together: bool = False) -> Any:
        """Return the sum of a function over all, in order; None of no partitions."""
        return reduce(work.add, self.each(function), None)

    def tree_sum(self) -> Any:
        """Return the sum of all."""
        return self.sum(work.same)

    def one_by_one(self, function: Callable[..., Any]) -> Iterator[Any]:
        """Yield a function of each, in order, of which few are in memory at once."""
        # Partitions come in their order.
        with _computing():
            for row in self._mapped(function).toLocalIterator():
                yield pickle.loads(row.held)

    def shared(self, value: Any) -> Any:
        """Return the value; it travels with each task."""
        return value


def _in_few_tasks(frame: Any) -> Any:
    """Return a kept frame with a task for each core, where its partitions are.

    The order of partitions is another one. Spark Connect does not tell the cores.
    """
    from pyspark.errors import PySparkException

    try:
        return frame.coalesce(frame.sparkSession.sparkContext.defaultParallelism)
    except (AttributeError, PySparkException):
        return frame


def _freeze_loaded() -> None:
    """Leave loaded modules and kernels out of garbage collection, in a worker.

    Spark collects after every task. Over all that NumPy, pandas and Numba are made of
    that took nine tenths of the time of a fit of weights.
    """
    if len(gc.get_objects()) > _MAX_COLLECTED:
        gc.collect()
        gc.freeze()


def _call(function: Any, arguments: tuple[Any, ...], held: Any) -> Any:
    return function(held, *arguments)


def _unpickled(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, Any]]:
    """Yield the number and object of each row of a frame of parts."""
    for batch in batches:
        for row in batch.to_pylist():
            yield row["k"], pickle.loads(row["held"])


@contextmanager
def _computing() -> Iterator[None]:
    """Raise an error with the cause in one sentence, in place of a stack trace."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        lines = str(error).partition("JVM stacktrace")[0].strip().splitlines()
        in_python = any(line.startswith("Traceback") for line in lines)
        cause = lines[-1 if in_python else 0] if lines else type(error).__name__
        raise TableError(
            f"Spark could not compute the frame: {cause.strip()[:500]} Does df.count() "
            "compute it? The error above this one has all that Spark says."
        ) from error


def _row(k: int, value: Any) -> pa.RecordBatch:
    return pa.record_batch([[k], [pickle.dumps(value, 5)]], schema=_ARROW)


# ------------------------------------------------------------------------------ frames


class SparkGiven(RowsHere):
    """A Spark frame, on the executors of its session."""

    def __init__(self, X: Any) -> None:
        super().__init__(X)
        self._kept: list[Any] = []

    def __exit__(self, *_: object) -> None:
        for frame in self._kept:
            frame.unpersist()

    def training(
        self, y: Any, sample_weight: Any, recipe: Recipe, owner: object
    ) -> TrainingSet:
        """Encode the rows where they are."""
        refuse_all_rows(recipe, owner, "a Spark frame")
        _check_version(self.X)
        columns = list(self.X.columns)
        check_distinct(columns, "The Spark frame")
        if not isinstance(y, str) or not isinstance(sample_weight, str | None):
            raise TableError(
                "X is a Spark frame, so y and sample_weight must be names of its "
                "columns: fit(df, 'label', 'weight')."
            )
        target = find_column(y, columns, "The Spark frame")
        weight = None
        if sample_weight is not None:
            weight = find_column(sample_weight, columns, "The Spark frame")
        with _computing():
            vectors = vector_names(self.X)
        features = [
            part
            for name in columns
            if name not in (target, weight)
            for part in vectors.get(name, [name])
        ]
        roles_of = [name for name in (target, weight) if name is not None]
        check_distinct(
            [*features, *roles_of], "The Spark frame, with its vectors as columns,"
        )
        skips = recipe.encoding.skips_unlabelled
        roles = work.Roles(features, target, weight, skips)
        rows = SpreadColumns(partial(_partitions, self.X, self._kept, vectors), roles)
        return spread_training(rows, recipe, recipe.rows_needed, weight is not None)

    def predicted(self, fitted: Any, method: str) -> Any:
        """Return the frame with predictions, or probabilities besides, added."""
        if method not in ("predict", "predict_proba"):
            raise TableError(
                f"{method} is not there for Spark frames. Use predict or predict_proba."
            )
        probability = "probability" if method == "predict_proba" else None
        return scored(fitted, self.X, "prediction", probability)


rows_of = SparkGiven


def _check_version(frame: Any) -> None:
    if not hasattr(frame, "mapInArrow"):
        import pyspark

        raise TableError(
            f"PySpark {pyspark.__version__} is too old: its frames have no mapInArrow. "
            "Install PySpark 3.5 or newer, or write Parquet and use sy.scan."
        )


def _partitions(frame: Any, kept: list[Any], vectors: VectorNames) -> SparkParts:
    """Return the partitions of a frame, coalesced if they are many."""
    names = list(frame.columns)

    def unpack(group: work.Group) -> work.Group:
        return [
            part._replace(cells=_without_vectors(part.cells, vectors)) for part in group
        ]

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, Any]]:
        import pandas as pd
        from pyspark import TaskContext

        context = TaskContext.get()
        k = 0 if context is None else context.partitionId()
        result = list(batches)
        cells = pd.DataFrame(columns=names)
        if result:
            cells = pa.Table.from_batches(result).rename_columns(names).to_pandas()
        yield k, [work.Partition(cells, None, None, k)]

    # By position: mapInArrow would read a name with a dot as that of a nested column.
    frame = frame.select(*_readable(names, vectors))
    frame = frame.toDF(*(f"c{k}" for k in range(len(names))))
    # Coalescing goes by location and changes the order, so not of few partitions.
    if _n_partitions(frame) > 4 * MAX_PARTS:
        frame = frame.coalesce(4 * MAX_PARTS)
    return SparkParts(frame, kept, read, (unpack,))


def _n_partitions(frame: Any) -> int:
    """Return the number of partitions; in Spark Connect by a job that reads no rows."""

    def one(_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield _row(0, None)

    try:
        return int(frame.rdd.getNumPartitions())
    except (AttributeError, NotImplementedError):  # Connect has no RDDs
        with _computing():
            return int(frame.mapInArrow(one, _SCHEMA).count())


def quoted(name: str) -> str:
    """Return the name of a column as Spark takes any, with dots and backticks.

    Examples
    --------
    >>> quoted("a.b"), quoted("a`b")
    ('`a.b`', '`a``b`')
    """
    doubled = name.replace("`", "``")
    return f"`{doubled}`"


# ----------------------------------------------------------------------------- vectors

VectorNames = dict[str, list[str]]
"""Columns of vectors, and the names of the columns that their numbers are."""


def vector_names(frame: Any, learned: Sequence[str] = ()) -> VectorNames:
    """Return the columns of vectors, whose numbers are called as Spark ML does.

    Those of ``VectorAssembler`` have the names of what was assembled, others are
    ``features_0``, ``features_1`` … as many as a model has ``learned``, or else as the
    first row has.
    """
    from pyspark.ml.linalg import VectorUDT

    result = {}
    for field in frame.schema.fields:
        if not isinstance(field.dataType, VectorUDT):
            continue
        about = field.metadata.get("ml_attr", {})
        size = about.get("num_attrs")
        if size is None and learned:
            size = next(k for k in count() if f"{field.name}_{k}" not in learned)
        if size is None:
            column = frame.select(quoted(field.name))
            first = column.where(column[quoted(field.name)].isNotNull()).first()
            size = 0 if first is None else len(first[0])
        names = [f"{field.name}_{k}" for k in range(size)]
        for attributes in about.get("attrs", {}).values():
            for one in attributes:
                names[one["idx"]] = one.get("name", names[one["idx"]])
        result[field.name] = names
    return result


def array_of(cell: Any) -> Any:
    """Return a column of vectors as arrays, which Arrow has."""
    from pyspark.ml.functions import vector_to_array
    from pyspark.sql.functions import when

    return when(cell.isNotNull(), vector_to_array(cell))


def _readable(names: Iterable[str], vectors: VectorNames) -> list[Any]:
    from pyspark.sql.functions import col

    cells = {name: col(quoted(name)) for name in names}
    return [
        array_of(cell).alias(name) if name in vectors else cell
        for name, cell in cells.items()
    ]


def _without_vectors(cells: Any, vectors: VectorNames) -> Any:
    """Return a frame of pandas with a column of numbers for each of a vector."""
    import pandas as pd

    for name, names in vectors.items():
        rows = cells[name].to_numpy()
        known = np.flatnonzero([row is not None for row in rows])
        for row in rows[known]:
            if len(row) != len(names):
                raise TableError(
                    f"Column {name!r} holds a vector of {len(row)} numbers, and "
                    f"{len(names)} are expected. All its vectors must have one size."
                )
        numbers = np.full((len(rows), len(names)), np.nan)
        if len(known):
            numbers[known] = np.stack(rows[known])
        columns = pd.DataFrame(numbers, columns=names, index=cells.index)
        cells = pd.concat([cells.drop(columns=name), columns], axis=1)
    return cells


# ------------------------------------------------------------------------- predictions


def type_of_labels(classes: NDArray[Any]) -> str:
    """Return the type in Spark of a column of classes."""
    of_kind = {"i": "bigint", "u": "bigint", "f": "double", "b": "boolean"}
    return of_kind.get(classes.dtype.kind, "string")


def scored(
    fitted: Any, frame: Any, prediction: str, probability: str | None = None
) -> Any:
    """Return a Spark frame with predictions added, lazily, and probabilities if named.

    Parameters
    ----------
    fitted : classifier
        A fitted one.
    frame : pyspark.sql.DataFrame
        Rows with the columns of training, and others.
    prediction : str
        Name of the column of classes.
    probability : str, default=None
        Name of a column of arrays, a probability for each of ``classes_``.

    Returns
    -------
    pyspark.sql.DataFrame
        The frame with one or two columns more.
    """

    def answers(cells: Any) -> dict[str, Any]:
        label, proba = fitted._answers(cells, "predict", "predict_proba")
        return {"c": label, "p": list(proba)}

    outputs = {prediction: ("c", type_of_labels(fitted.classes_))}
    if probability is not None:
        outputs[probability] = ("p", "array<double>")
    vectors = {
        name: parts
        for name, parts in vector_names(frame, fitted.encoder_.schema_.names).items()
        if {*parts}.isdisjoint(frame.columns)
    }
    return with_answers(fitted, frame, answers, outputs, vectors)


def with_answers(
    fitted: Any,
    frame: Any,
    answers: Callable[[Any], dict[str, Any]],
    outputs: dict[str, tuple[str, str]],
    vectors: VectorNames,
) -> Any:
    """Return a Spark frame with columns that a model answers its rows with, lazily.

    Parameters
    ----------
    fitted : classifier
        A fitted one, whose columns are read.
    frame : pyspark.sql.DataFrame
        Rows with the columns of training, and others.
    answers : callable
        From a frame of pandas to lists by key, one item a row.
    outputs : dict
        Names of the new columns, and the key and type of each.
    vectors : dict
        Columns of vectors, and what their numbers are called.
    """
    from pyspark.sql.functions import col, pandas_udf, struct

    _check_version(frame)
    learned = fitted.encoder_.schema_.names or ()
    vectors = {
        name: parts
        for name, parts in vectors.items()
        if not {*parts}.isdisjoint(learned)
    }
    of_vectors = {part for parts in vectors.values() for part in parts}
    columns = [*frame.columns, *of_vectors]
    whole = (name if name in columns else date_of_part(name) for name in learned)
    names = [*dict.fromkeys(whole)]
    for name in names:
        find_column(name, columns, "The Spark frame")
    read = [*(name for name in names if name not in of_vectors), *vectors]

    def score(cells: Any) -> Any:
        import pandas as pd

        answer = answers(_without_vectors(cells, vectors)[names])
        return pd.DataFrame({key: answer[key] for key, _ in outputs.values()})

    score.__annotations__ = {}
    fields = ", ".join(f"{key} {kind}" for key, kind in outputs.values())
    cells = struct(*_readable(read, vectors))
    result = frame.withColumn("__steelyard", pandas_udf(score, fields)(cells))
    for name, (key, _) in outputs.items():
        result = result.withColumn(name, col(f"__steelyard.{key}"))
    return result.drop("__steelyard")
