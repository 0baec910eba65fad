"""Models that between them use everything a file can hold, and how to compare two."""

from __future__ import annotations

import dataclasses
import json
import warnings

import numpy as np
import pandas as pd
import pytest

import steelyard as sy
from steelyard.losses import DevianceLoss
from steelyard.notices.record import LazySummary
from steelyard.persistence import files
from steelyard.proba import MEstimate
from steelyard.solvers import LBFGS


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


def fit_quietly(clf, X, y, **weights):
    """Fit in a few steps, without the warnings that they draw."""
    if "max_iter" in clf.get_params(deep=False):
        clf.set_params(max_iter=4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clf.fit(X, y, **weights)


@pytest.fixture(scope="session", name="fit_quietly")
def fit_quietly_fixture():
    return fit_quietly


@pytest.fixture(scope="session")
def learned_models():
    """Return a function that fits a model of each kind on the mixed table, once."""
    fitted = {}
    makers = {
        "attribute": lambda **s: sy.GeneralizedDevianceNB(calibrated=True, **s),
        "value": lambda **s: sy.ValueWeightedNB(loss=DevianceLoss(3.0), **s),
        "mixture": lambda **s: sy.RegularizedNB(bounds=(0.0, np.inf), **s),
        "pairs": lambda **s: sy.ExponentialNB(multiclass="one-vs-one", **s),
        "pairs of mixtures": lambda **s: sy.RegularizedNB(
            multiclass="one-vs-one", solver=LBFGS(max_iter=3), **s
        ),
    }

    def get(kind):
        if kind == "plain":
            fitted.setdefault(kind, mixed_model())
        elif kind not in fitted:
            clf = makers[kind](
                categorical_features=["text", "flag", "level"],
                numeric={"density": "gaussian", "grid": "gaussian-weka"},
            )
            fitted[kind] = fit_quietly(clf, *mixed_frame())
        return fitted[kind]

    return get


@pytest.fixture
def write_content(tmp_path):
    """Return a function that writes a content with a checksum that fits it."""

    def write(content, path=None, version=files.VERSION):
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


def same_values(a, b):
    """Whether two fitted values are the same to the last bit, whatever they hold."""
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and same_arrays(a, b)
    if isinstance(a, float):  # NumPy's numbers among them
        return isinstance(b, float) and float(a).hex() == float(b).hex()
    if type(a) is not type(b):
        return False
    if isinstance(a, LazySummary):
        return same_values(a.value, b.value)
    if dataclasses.is_dataclass(a):
        names = [field.name for field in dataclasses.fields(a)]
        return all(same_values(getattr(a, n), getattr(b, n)) for n in names)
    if isinstance(a, dict):
        return list(a) == list(b) and all(same_values(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same_values, a, b))
    return a == b


def _same_models(a, b):
    """Assert that two fitted classifiers are the same to the last bit."""
    assert type(a) is type(b)
    # Rows of a fit stay in memory.
    assert {*vars(a)} - {"_rows_at_hand"} == {*vars(b)} - {"_rows_at_hand"}
    for name in vars(a):
        if name.endswith("_") and name != "encoder_":
            assert same_values(getattr(a, name), getattr(b, name)), name
    assert [type(c) for c in a.classes_.tolist()] == [
        type(c) for c in b.classes_.tolist()
    ]
    assert same_values(a.encoder_.schema_, b.encoder_.schema_)
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
