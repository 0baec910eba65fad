"""Models that between them use everything a file can hold, and how to compare two."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import steelyard as sy
from steelyard.persistence import files
from steelyard.proba import MEstimate


def mixed_frame():
    """Return a table with every kind of column, and its labels."""
    rng = np.random.default_rng(20)
    n = 60
    number = np.round(rng.normal(size=n) * 3, 2)
    number[::7] = np.nan
    frame = pd.DataFrame(
        {
            "text": rng.choice(["a", "ä", "ж😀", "", 'q"uote\n'], n).astype(object),
            "flag": rng.integers(0, 2, n).astype(bool),
            "level": rng.integers(-3, 3, n),
            "cut": number,
            "density": rng.normal(1e3, 1e-3, n),
            "grid": rng.integers(0, 20, n).astype(float),
        }
    )
    frame.loc[3, "text"] = None
    frame.loc[5, "density"] = np.nan
    likely = frame["level"].to_numpy() + rng.normal(size=n) > 0
    y = np.where(likely, "yes", "no").astype(object)
    y[:5] = "perhaps"
    return frame, y


def mixed_model(**settings):
    settings = {
        "categorical_features": ["text", "flag", "level"],
        "numeric": {
            "cut": sy.FixedEdgesDiscretizer({"cut": [-1.5, 0.1, 2.0]}),
            "density": "gaussian",
            "grid": "gaussian-weka",
        },
        "smoothing": MEstimate(m=2.0),
        "class_weight": {"yes": 1.5, "perhaps": 3},
        **settings,
    }
    return sy.NaiveBayes(**settings).fit(*mixed_frame())


@pytest.fixture(scope="session")
def frame():
    return mixed_frame()[0]


@pytest.fixture(scope="session")
def model():
    """Return a fitted model with every kind of attribute."""
    return mixed_model()


@pytest.fixture(scope="session")
def small_model():
    """Return a model whose file is short, with a missing value and a density."""
    X = np.array([["a", 1.0], ["b", 2.0], [None, 4.0], ["a", None]], dtype=object)
    clf = sy.NaiveBayes(numeric="gaussian", missing="value")
    return clf.fit(X, [0, 1, 1, 0])


@pytest.fixture
def write_content(tmp_path):
    """Return a function that writes a content with a checksum that fits it."""

    def write(content, path=None, version=1):
        path = path or tmp_path / "made-up.json"
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        document = {
            "format": files.FORMAT,
            "version": version,
            "checksum": files._checksum(version, text),
            "content": content,
        }
        path.write_text(json.dumps(document))
        return path

    return write


def same_arrays(a, b):
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind in "UO":
        return a.dtype.kind == b.dtype.kind and a.tolist() == b.tolist()
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def _same_models(a, b):
    """Assert that two fitted classifiers are the same to the last bit."""
    assert type(a) is type(b)
    assert set(vars(a)) == set(vars(b))
    assert same_arrays(a.classes_, b.classes_)
    assert [type(c) for c in a.classes_.tolist()] == [
        type(c) for c in b.classes_.tolist()
    ]
    for one, other in zip(
        a.model_.schema.features, b.model_.schema.features, strict=True
    ):
        assert one == other
        assert list(map(type, one.values)) == list(map(type, other.values))
        assert repr(one) == repr(other)  # tells -0.0 from 0.0
    pairs = [
        (a.class_log_prior_, b.class_log_prior_),
        (a.class_count_, b.class_count_),
        (a.model_.log_prior, b.model_.log_prior),
        (a.model_.table, b.model_.table),
        *(
            (getattr(a.model_.gaussian, name), getattr(b.model_.gaussian, name))
            for name in ("mean", "deviation", "step")
        ),
        (a.counts_.by_class, b.counts_.by_class),
        (a.counts_.by_code, b.counts_.by_code),
        *(
            (getattr(a.counts_.moments, name), getattr(b.counts_.moments, name))
            for name in ("weight", "mean", "squares")
        ),
    ]
    for one, other in pairs:
        assert same_arrays(one, other)
    assert a.n_features_in_ == b.n_features_in_
    assert hasattr(a, "feature_names_in_") == hasattr(b, "feature_names_in_")
    if hasattr(a, "feature_names_in_"):
        assert same_arrays(a.feature_names_in_, b.feature_names_in_)
    assert a.encoder_.schema_ == b.encoder_.schema_
    assert set(vars(a.encoder_)) == set(vars(b.encoder_))


@pytest.fixture
def assert_same_models():
    return _same_models


@pytest.fixture
def through_a_file(tmp_path):
    """Return a function that saves a model and loads it again."""

    def save_and_load(clf):
        path = tmp_path / "model.json"
        clf.save(path)
        return sy.load(path)

    return save_and_load
