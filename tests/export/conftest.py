"""Hostile tables, and models that were fitted to them."""

import functools
import json
import shutil
import subprocess
import warnings

import numpy as np
import pandas as pd
import pytest

import steelyard as sy

TEXTS = [
    "red",
    "",
    "it's",
    'a "quoted" one',
    "'); DROP TABLE t; --",
    "naïve Ünïcödé ☃",
    "two\nlines",
    "back\\slash $1 {x} </script>",
    "Red",
]
COLUMNS = [
    "colour",
    "size.of 'it'",
    'a "name"',
    "'); DROP TABLE t; --",
    "yes",
    "code",
    "same",
    "empty",
]


def hostile_table(n, n_classes, seed=0, gaps=0.1):
    """Text with quotes, accents and line breaks, numbers, booleans, whole numbers."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    y[:n_classes] = np.arange(n_classes)
    texts = np.array(TEXTS, dtype=object)
    told = np.where(rng.random(n) < 0.6, y % len(TEXTS), rng.integers(0, 9, n))
    codes = np.array([7, 1010, -3, 2**40, 0])
    by_column = [
        texts[told],
        y * 1.25 + rng.normal(size=n),
        np.round(rng.normal(size=n) * 3 + y % 2, 1),
        rng.integers(0, 40, n).astype(float),
        rng.random(n) < 0.2 + 0.5 * (y % 2),
        codes[np.where(rng.random(n) < 0.5, y % 5, rng.integers(0, 5, n))],
        np.full(n, 4.5),
        np.full(n, np.nan),
    ]
    X = pd.DataFrame(dict(zip(COLUMNS, by_column, strict=True)))
    for name in COLUMNS[:6]:
        X[name] = X[name].astype(object).where(rng.random(n) >= gaps, None)
    for name in COLUMNS[1:4]:
        X[name] = X[name].astype(float)
    return X, y


def hostile_rows(clf, n, n_classes, seed=1):
    """Rows with missing cells, unseen values, edges and their neighbours, outliers."""
    X, _ = hostile_table(n, n_classes, seed, gaps=0.15)
    rng = np.random.default_rng(seed)
    for name in COLUMNS[1:4]:
        edges = [
            e
            for f in clf.encoder_.schema_.features
            if f.name == name
            for e in (*f.edges, *(() if f.fill is None else (f.fill,)))
        ]
        near = [
            e
            for edge in edges
            for e in (np.nextafter(edge, s * np.inf) for s in (1, -1))
        ]
        odd = [*edges, *near, 0.0, -0.0, 1e6, -1e6, 1e300, -1e300, 5e-324]
        at = rng.choice(n, n // 5, replace=False)
        X.loc[at, name] = rng.choice(odd, len(at))
    for name, value in [("colour", "mauve"), ("colour", "red "), ("code", 4)]:
        X.loc[rng.choice(n, n // 20, replace=False), name] = value
    X.iloc[0] = None
    return X


LABELS = ["it's", 'a "b"', "'); DROP TABLE t; --", "x\ny", "é", "ok", "0"]


@functools.cache
def fitted(method, missing, n_classes, **settings):
    """A method that was fitted to a small hostile table."""
    X, y = hostile_table(140, n_classes, seed=n_classes)
    clf = sy.method(method, **dict(settings))
    if "missing" in clf.get_params():
        clf.set_params(missing=missing)
    if "categorical_features" in clf.get_params():
        clf.set_params(categorical_features=["colour", "yes", "code"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clf.fit(X, np.array(LABELS, dtype=object)[y])


@pytest.fixture(name="fitted", scope="session")
def fitted_fixture():
    return fitted


@pytest.fixture(name="hostile_table", scope="session")
def hostile_table_fixture():
    return hostile_table


@pytest.fixture(name="hostile_rows", scope="session")
def hostile_rows_fixture():
    return hostile_rows


@pytest.fixture
def run_node(node, tmp_path):
    """Run a program that reads ``data`` and ends with a call of ``answer``."""

    def run(code, data=None):
        (tmp_path / "in.json").write_text(json.dumps(data), encoding="utf-8")
        program = (
            "const fs = require('fs');"
            "const data = JSON.parse(fs.readFileSync('in.json', 'utf-8'));"
            "const answer = (out) => fs.writeFileSync('out.json', JSON.stringify(out));"
            f"{code}"
        )
        command = [node, "-e", program]
        subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
        return json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))

    return run


@pytest.fixture(scope="session")
def need_engine():
    """Skip a test if the engine of a format is not installed."""

    def need(kind):
        program = {"r": "Rscript", "h": "cc"}.get(kind)
        if program and shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
        if kind == "xlsx":
            pytest.importorskip("formulas")

    return need


@pytest.fixture
def run_r(need_engine, tmp_path):
    """Run lines of R, and return what they print."""
    need_engine("r")

    def run(code):
        (tmp_path / "run.R").write_text(code, encoding="ascii")
        command = ["Rscript", "run.R"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0 and not done.stderr, done.stderr
        return done.stdout

    return run


@pytest.fixture
def run_c(need_engine, tmp_path):
    """Compile and run the body of a program of C, and return what it prints."""
    need_engine("h")

    def run(body, *options):
        program = '#include <stdio.h>\n#include "model.h"\nint main(void) {\n%s}\n'
        (tmp_path / "main.c").write_text(program % body, encoding="ascii")
        compile_it = ["cc", "-std=c99", *options, "main.c", "-o", "main", "-lm"]
        done = subprocess.run(compile_it, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0 and not done.stderr, done.stderr
        command = [tmp_path / "main"]
        return subprocess.run(command, capture_output=True, check=True).stdout.decode()

    return run
