"""Frames of few rows are encoded cell by cell, to the same codes and messages."""

import functools
import gc
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import steelyard as sy
from steelyard.classifiers import after_fit
from steelyard.table import few_rows


def table(n, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    X = pd.DataFrame(
        {
            "text": np.array(["a", "b", "", "it's"])[(y + rng.integers(0, 2, n)) % 4],
            "number": rng.normal(size=n) + y,
            "whole": rng.integers(0, 60, n),
            "flag": rng.random(n) < 0.3 + 0.2 * y,
            "code": np.array([7, 2**60, 2**60 + 1])[(y + rng.integers(0, 2, n)) % 3],
            "empty": np.full(n, np.nan),
            "many": [f"v{i}" for i in rng.permutation(np.arange(n) // 2)],
        }
    )
    return X, y


CATEGORIES = ["text", "flag", "code", "many"]
CASES = [(method, "skip") for method in ("SHNB", "RNB", "TAN", "SPSS", "LWNB")]
CASES += [(m, missing) for m in ("NB", "GNB") for missing in ("value", "impute")]


@functools.cache
def fit(method, missing):
    clf = sy.method(method)
    for name, value in [("missing", missing), ("categorical_features", CATEGORIES)]:
        if name in clf.get_params():
            clf.set_params(**{name: value})
    return clf.fit(*table(600))


def gaps(X):
    """Rows with missing and unseen cells."""
    X = X.astype(object)
    for k in range(X.shape[1]):
        X.iloc[k % len(X), k] = None
    X.iloc[0, 0] = "never"
    X.iloc[-1, 3] = np.nan
    X.iloc[0, 4] = 5
    return X


def frames(X):
    """The same rows in every library."""
    yield X
    yield X.convert_dtypes()
    yield X.astype(object)
    for part in (X, gaps(X)):
        cells = {name: part[name].tolist() for name in part}
        plain = {
            name: [None if c is None or c != c else c for c in of]
            for name, of in cells.items()
        }
        yield pl.DataFrame(plain, strict=False)
        yield pa.table(plain)
        yield pd.DataFrame(plain)
    yield gaps(X)


@pytest.fixture
def was_quick(monkeypatch):
    """What the quick path answered, call by call."""
    answers = []

    def recorded(X, schema):
        answers.append(few_rows.encode_few(X, schema))
        return answers[-1]

    monkeypatch.setattr(after_fit, "encode_few", recorded)
    return answers


def ordinary(monkeypatch, call, X):
    with monkeypatch.context() as patch:
        patch.setattr(after_fit, "encode_few", lambda X, schema: None)
        return call(X)


@pytest.mark.parametrize("method, missing", CASES)
def test_few_rows_are_predicted_as_many_are(method, missing, monkeypatch, was_quick):
    clf = fit(method, missing)
    rows, _ = table(40, seed=1)
    for n in (1, few_rows.MOST_ROWS):
        for X in frames(rows[:n]):
            expected = ordinary(monkeypatch, clf.predict_proba, X)
            assert clf.predict_proba(X).tobytes() == expected.tobytes()
    assert sum(codes is not None for codes in was_quick) >= len(was_quick) // 2


def test_edges_and_their_neighbours(monkeypatch, was_quick):
    clf = fit("NB", "skip")
    edges = clf.encoder_.schema_.features[1].edges
    rows, _ = table(1)
    for edge in edges:
        for x in (edge, np.nextafter(edge, -9), np.nextafter(edge, 9), -0.0, 1e300):
            X = rows.assign(number=x)
            expected = ordinary(monkeypatch, clf.predict_proba, X)
            assert clf.predict_proba(X).tobytes() == expected.tobytes()
    assert None not in was_quick


def wrong_frames():
    X, _ = table(1)
    yield X.assign(text=3)
    yield X.assign(number="warm")
    yield X.assign(number=np.inf)
    yield X.assign(flag="yes")
    yield X.assign(number=pd.Timestamp("2020-01-01"))
    yield X.assign(number=1j)
    yield X.assign(text=[["a"]])
    yield X.assign(text=b"a")
    yield X.rename(columns={"text": "Text"})
    yield X.assign(more=1)
    yield X.drop(columns="flag")
    yield X[:0]
    yield X.set_axis(range(7), axis=1).iloc[:, :5]
    yield X["text"]
    yield pl.DataFrame({name: [None] for name in X}).cast({"text": pl.Date})
    yield pa.table({name: pa.array([None], pa.binary()) for name in X})


@pytest.mark.parametrize("X", list(wrong_frames()))
def test_messages_are_those_of_the_ordinary_path(X, monkeypatch):
    clf = fit("NB", "skip")
    messages = []
    for quick in (few_rows.encode_few, lambda X, schema: None):
        monkeypatch.setattr(after_fit, "encode_few", quick)
        with pytest.raises((ValueError, TypeError, UserWarning)) as caught:
            clf.predict_proba(X)
        messages.append((caught.type, str(caught.value)))
    assert messages[0] == messages[1]


def test_unusual_frames_are_read_as_before(monkeypatch):
    clf = fit("NB", "skip")
    X, _ = table(1)
    unusual = [
        X[X.columns[::-1]],
        X.astype({"text": "category", "number": "float32", "whole": "Int64"}),
        X.assign(flag=1),
        X.assign(empty="something"),
        X.assign(whole=2**53 + 1, code=np.uint64(2**63)),
        pa.Table.from_pandas(X).to_batches()[0],
    ]
    for frame in unusual:
        expected = ordinary(monkeypatch, clf.predict_proba, frame)
        assert clf.predict_proba(frame).tobytes() == expected.tobytes()


def test_what_is_prepared_is_neither_pickled_nor_kept():
    X, y = table(300)
    clf, X = sy.NaiveBayes().fit(X[["text"]], y), X[["text"]][:1]
    gc.collect()
    before = len(few_rows._PREPARED)
    expected = clf.predict_proba(X)
    assert len(few_rows._PREPARED) == before + 1
    again = pickle.loads(pickle.dumps(clf))
    assert (again.predict_proba(X) == expected).all()
    del clf, again
    gc.collect()
    assert len(few_rows._PREPARED) <= before


def test_a_model_that_is_fitted_anew_is_read_anew():
    X, y = table(300)
    clf = sy.NaiveBayes().fit(X[["text"]], y)
    clf.predict_proba(X[["text"]][:1])
    clf.partial_fit(pd.DataFrame({"text": ["new"] * 50}), [2] * 50)
    assert clf.predict(pd.DataFrame({"text": ["new"]})).tolist() == [2]
