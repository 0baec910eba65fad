"""What is saved comes back to the last bit, and goes on learning as if never saved."""

from __future__ import annotations

import json
import time
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import steelyard as sy
from steelyard.exceptions import ParameterError
from steelyard.persistence.content import content_of, estimator_from
from steelyard.proba import Lidstone, MEstimate

pytestmark = pytest.mark.plain

LABELS = [0, 1, 1, 0, 1, 0, 0, 1]
NUMBERS = np.array([0.1, 0.7, -2.5, 3.25, 1e-17, 4.0, 1e9, -0.0])


def in_memory(clf):
    """Describe a model as text and build it again, without a file."""
    return estimator_from(json.loads(json.dumps(content_of(clf), allow_nan=False)))


@pytest.mark.parametrize("n_jobs", [None, 1, 2, -1])
def test_a_mixed_model_comes_back_to_the_last_bit(
    n_jobs, model, frame, through_a_file, assert_same_models
):
    model = clone(model).set_params(n_jobs=n_jobs).fit(frame, model.predict(frame))
    again = through_a_file(model)
    assert_same_models(model, again)
    for method in ("predict_proba", "predict_log_proba", "predict_joint_log_proba"):
        mine, its = getattr(model, method)(frame), getattr(again, method)(frame)
        assert mine.tobytes() == its.tobytes()
    assert model.predict(frame).tolist() == again.predict(frame).tolist()


@pytest.mark.parametrize("missing", ["skip", "impute", "value"])
def test_learning_goes_on_after_loading_as_without_saving(
    missing, frame, through_a_file, assert_same_models
):
    y = np.where(np.arange(len(frame)) % 3 == 0, "no", "yes")
    first, second = frame[:40], frame[40:].assign(text="new", level=77)
    clf = sy.NaiveBayes(
        categorical_features=["text", "flag", "level"],
        numeric={"density": "gaussian", "grid": "gaussian-weka"},
        missing=missing,
    )
    clf.partial_fit(first, y[:40], classes=["no", "yes", "perhaps"])
    again = through_a_file(clf)
    assert_same_models(clf, again)
    clf.partial_fit(second, y[40:])
    again.partial_fit(second, y[40:])
    assert_same_models(clf, again)
    assert clf.predict_proba(frame).tobytes() == again.predict_proba(frame).tobytes()


def test_a_loaded_model_can_be_cloned_and_fitted_again(
    model, frame, through_a_file, assert_same_models
):
    again = through_a_file(model)
    y = np.where(frame["flag"], "b", "a")
    refitted = clone(again).set_params(class_weight=None).fit(frame, y)
    assert_same_models(
        clone(model).set_params(class_weight=None).fit(frame, y), refitted
    )


@pytest.mark.parametrize(
    "column",
    [
        np.array(list("abcabcab")),
        np.array(["", "\x00b", "ж", "😀", "'", '"', "\\", "\n"], dtype=object),
        np.array(["\ud800", "\udfff", "a", None, "\ud800x", "a", "b", "b"], object),
        np.array([True, False] * 4),
        np.array([True, False, None, True] * 2, dtype=object),
        np.arange(-4, 4, dtype=np.int8),
        np.array([-(2**63), 2**63 - 1, 2**53 + 1, 0] * 2),
        np.array([0, 2**64 - 1, 2**63, 5] * 2, dtype=np.uint64),
        NUMBERS,
        NUMBERS.astype(np.float32),
        np.array([1.5, None, 1, True] * 2, dtype=object),
        np.array([1e300, -1e-300, 5e-324, np.nan] * 2),
        np.full(8, None),
        np.full(8, np.nan),
        np.zeros(8),
    ],
    ids=lambda column: f"{column.dtype}-{column[0]!a}"[:30],
)
@pytest.mark.parametrize("missing", ["skip", "impute", "value"])
def test_every_kind_of_category_comes_back(column, missing, assert_same_models):
    clf = sy.NaiveBayes(categorical_features="all", missing=missing)
    clf.fit(column[:, None], LABELS)
    again = in_memory(clf)
    assert_same_models(clf, again)
    X = column[::-1, None]
    assert clf.predict_proba(X).tobytes() == again.predict_proba(X).tobytes()


@pytest.mark.parametrize(
    "numeric",
    [
        "mdl",
        "mdl-better",
        "kononenko",
        "equal-width",
        "equal-width-merged",
        "equal-frequency",
        "gaussian",
        "gaussian-weka",
        sy.MDLDiscretizer(better_encoding=True),
        sy.EqualWidthDiscretizer(n_bins=3),
        sy.EqualFrequencyDiscretizer(n_bins=np.int64(2)),
        sy.FixedEdgesDiscretizer([0.5, 1.5]),
        sy.FixedEdgesDiscretizer([[0.5], np.array([-1.0, 1.0])]),
        {0: "gaussian", 1: sy.FixedEdgesDiscretizer(np.array([0.0]))},
        {np.int64(1): "equal-width"},
    ],
    ids=str,
)
@pytest.mark.parametrize("missing", ["skip", "impute", "value"])
def test_every_kind_of_numeric_column_comes_back(numeric, missing, assert_same_models):
    X = np.column_stack([NUMBERS, NUMBERS[::-1]])
    X[2, 0] = np.nan
    clf = sy.NaiveBayes(numeric=numeric, missing=missing).fit(X, LABELS)
    again = in_memory(clf)
    assert_same_models(clf, again)
    assert clf.predict_proba(X).tobytes() == again.predict_proba(X).tobytes()
    assert_same_models(clf, clone(again).fit(X, LABELS))


@pytest.mark.parametrize(
    "classes",
    [
        np.array([3, -7]),
        np.array([3, -7], dtype=np.int8),
        np.array([2**64 - 1, 0], dtype=np.uint64),
        np.array([True, False]),
        np.array([1.0, -0.0]),
        np.array([2.0, 3.0], dtype=np.float16),
        np.array([1e300, 2.0]),
        np.array(["b", "a"]),
        np.array(["bb", "a"], dtype="<U20"),
        np.array(["b", "a"], dtype=object),
        np.array(["😀", "\ud800"], dtype=object),
        np.array(["", "a\x00"], dtype=object),
        np.array([2, 1], dtype=object),
        np.array([2, 1.0], dtype=object),
        np.array([True, False], dtype=object),
        pd.Series([2, 1], dtype="Int64"),
        pd.Series(["b", "a"], dtype="category"),
        pl.Series(["b", "a"]),
        ["b", "a"],
    ],
    ids=lambda classes: f"{getattr(classes, 'dtype', 'list')}",
)
def test_every_kind_of_class_comes_back(classes, assert_same_models):
    X = np.array([["u"], ["v"]] * 2)
    if hasattr(classes, "to_list"):
        y = type(classes)(classes.to_list() * 2, dtype=classes.dtype)
    else:
        y = np.tile(np.asarray(classes), 2)
    clf = sy.NaiveBayes().fit(X, y)
    again = in_memory(clf)
    assert_same_models(clf, again)
    assert clf.predict(X).tolist() == again.predict(X).tolist()


@pytest.mark.parametrize("dtype", [">i2", np.longdouble])
def test_classes_of_types_that_depend_on_the_machine_become_common_ones(dtype):
    y = np.array([1, 2, 1, 2], dtype=dtype)
    clf = sy.NaiveBayes().fit(np.array([["u"], ["v"]] * 2), y)
    again = in_memory(clf)
    assert again.classes_.tolist() == [1, 2]
    assert again.classes_.dtype in (np.int16, np.float64)


@given(
    st.lists(
        st.text(st.characters(exclude_categories=()), max_size=8),
        min_size=1,
        max_size=6,
        unique=True,
    )
)
@settings(max_examples=60, deadline=None)
def test_any_names_and_values_come_back_or_are_refused(texts):
    cells = np.array([texts, texts], dtype=object)
    frame = pd.DataFrame(cells, columns=pd.Index(texts, dtype=object), dtype=object)
    clf = sy.NaiveBayes().fit(frame, [0, 1])
    text = json.dumps(content_of(clf))
    if any(json.loads(json.dumps(t)) != t for t in texts):
        return  # two halves of a surrogate pair: see below
    again = estimator_from(json.loads(text))
    assert again.feature_names_in_.tolist() == texts
    assert again.model_.schema == clf.model_.schema


def test_text_that_json_would_change_is_refused(tmp_path):
    halves = "\ud83d" + "\ude00"
    X = np.array([[halves], ["😀"]], dtype=object)
    clf = sy.NaiveBayes().fit(X, [0, 1])
    with pytest.raises(ParameterError, match="surrogate"):
        clf.save(tmp_path / "model.json")
    assert list(tmp_path.iterdir()) == []


@given(
    st.lists(
        st.floats(allow_nan=False, allow_infinity=False, width=64).filter(
            lambda x: abs(x) < 1e100
        ),
        min_size=4,
        max_size=8,
    ),
    st.lists(st.floats(1e-3, 1e3), min_size=8, max_size=8),
)
@settings(max_examples=60, deadline=None)
def test_every_float_comes_back(numbers, weights):
    X = np.array(numbers)[:, None]
    y = [0, 1] * (len(numbers) // 2) + [0] * (len(numbers) % 2)
    clf = sy.NaiveBayes(numeric="gaussian").fit(X, y, weights[: len(numbers)])
    again = in_memory(clf)
    for name in ("weight", "mean", "squares"):
        mine = getattr(clf.counts_.moments, name)
        assert mine.tobytes() == getattr(again.counts_.moments, name).tobytes()
    assert clf.predict_log_proba(X).tobytes() == again.predict_log_proba(X).tobytes()


def test_a_prior_of_zero_comes_back(through_a_file, assert_same_models):
    X = np.array([["u"], ["v"], ["u"]] * 2)
    clf = sy.NaiveBayes(prior=np.array([0.0, 0.25, 0.75])).fit(X, [0, 1, 2] * 2)
    again = through_a_file(clf)
    assert again.class_log_prior_[0] == -np.inf
    assert_same_models(clf, again)
    assert again.predict_proba(X)[:, 0].tolist() == [0.0] * 6


def test_a_class_that_was_only_announced_comes_back(assert_same_models):
    clf = sy.NaiveBayes(numeric="gaussian", prior="frequency")
    clf.partial_fit(NUMBERS[:, None], LABELS, classes=[0, 1, 2])
    assert_same_models(clf, in_memory(clf))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("smoothing", "kohavi"),
        ("smoothing", 2),
        ("smoothing", np.float32(0.1)),
        ("smoothing", Fraction(1, 3)),
        ("smoothing", np.longdouble(0.5)),
        ("smoothing", Lidstone(None)),
        ("smoothing", Lidstone(0.1)),
        ("smoothing", MEstimate(np.float64(3))),
        ("class_weight", "balanced"),
        ("class_weight", {0: 2, 1: 0.5}),
        ("class_weight", {np.int64(1): np.float32(0.25)}),
        ("prior", [0.25, 0.75]),
        ("prior", (0.25, 0.75)),
        ("prior", np.array([0.25, 0.75])),
        ("prior", pd.Series([0.25, 0.75])),
        ("prior", "frequency"),
        ("variance_floor", 0),
        ("variance_floor", np.float64(1e-3)),
        ("cardinality", "declared"),
        ("n_jobs", np.int64(2)),
        ("categorical_features", None),
        ("categorical_features", [0]),
        ("categorical_features", (0,)),
        ("categorical_features", {0}),
        ("categorical_features", frozenset([-2])),
        ("categorical_features", range(1)),
        ("categorical_features", np.array([0])),
        ("categorical_features", np.array([True, False])),
        ("categorical_features", [True, False]),
        ("categorical_features", pd.Index([0])),
        ("categorical_features", "all"),
    ],
    ids=str,
)
def test_every_kind_of_setting_comes_back(name, value, assert_same_models):
    X = np.column_stack([NUMBERS, NUMBERS[::-1]])
    clf = sy.NaiveBayes(**{name: value}).fit(X, LABELS)
    again = in_memory(clf)
    assert_same_models(clf, again)
    assert_same_models(clf, clone(again).fit(X, LABELS))


def test_settings_by_name_come_back(frame, assert_same_models):
    y = np.where(frame["flag"], 1, 0)
    clf = sy.NaiveBayes(
        categorical_features=pd.Index(["level"]),
        numeric={
            "cut": sy.FixedEdgesDiscretizer({"cut": (0.0, 1.0)}),
            "grid": "gaussian",
        },
    ).fit(frame.drop(columns="flag"), y)
    again = in_memory(clf)
    assert again.categorical_features == ["level"]
    assert again.numeric["cut"].edges == {"cut": (0.0, 1.0)}
    assert_same_models(clf, clone(again).fit(frame.drop(columns="flag"), y))


def test_booleans_that_became_numbers_in_a_later_chunk_come_back(assert_same_models):
    clf = sy.NaiveBayes(categorical_features="all")
    clf.partial_fit(np.array([[True], [False]]), [0, 1], classes=[0, 1])
    clf.partial_fit(np.array([[2.5], [1.0]]), [0, 1])
    assert_same_models(clf, in_memory(clf))


def test_an_unfitted_model_cannot_be_saved(tmp_path):
    with pytest.raises(NotFittedError):
        sy.NaiveBayes().save(tmp_path / "model.json")
    assert list(tmp_path.iterdir()) == []


def test_a_class_of_the_users_own_cannot_be_saved(tmp_path):
    class NaiveBayes(sy.NaiveBayes):
        pass

    clf = NaiveBayes().fit(NUMBERS[:, None], LABELS)
    with pytest.raises(ParameterError, match=r"cannot be saved.*pickle"):
        clf.save(tmp_path / "model.json")
    assert list(tmp_path.iterdir()) == []


def test_a_part_of_the_users_own_cannot_be_saved(tmp_path):
    class MDLDiscretizer(sy.MDLDiscretizer):
        pass

    clf = sy.NaiveBayes(numeric={0: MDLDiscretizer()}).fit(NUMBERS[:, None], LABELS)
    with pytest.raises(ParameterError, match=r"'numeric' holds a .*MDLDiscretizer"):
        clf.save(tmp_path / "model.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_jobs", 0),
        ("n_jobs", "two"),
        ("missing", "zero"),
        ("prior", [np.nan, 1.0]),
        ("smoothing", -1.0),
        ("numeric", {("a", "b"): "mdl"}),
        ("class_weight", {0: b"bytes"}),
        ("categorical_features", b"bytes"),
        ("variance_floor", np.inf),
    ],
    ids=str,
)
def test_a_model_that_could_not_be_loaded_is_not_saved(name, value, tmp_path):
    clf = sy.NaiveBayes().fit(NUMBERS[:, None], LABELS).set_params(**{name: value})
    with pytest.raises(ParameterError):
        clf.save(tmp_path / "model.json")
    assert list(tmp_path.iterdir()) == []


def test_equal_models_make_equal_files(tmp_path):
    for k, chosen in enumerate([{"a", "b", "c"}, {"c", "b", "a"}]):
        frame = pd.DataFrame(np.arange(12).reshape(4, 3), columns=list("abc"))
        clf = sy.NaiveBayes(categorical_features=chosen).fit(frame, [0, 1, 0, 1])
        clf.save(tmp_path / f"{k}.json")
    assert (tmp_path / "0.json").read_bytes() == (tmp_path / "1.json").read_bytes()


@pytest.mark.filterwarnings("ignore::steelyard.exceptions.IdentifierWarning")
def test_a_hundred_thousand_categories_are_saved_and_loaded_in_seconds(
    through_a_file, assert_same_models
):
    values = np.array([f"value {i}" for i in range(100_000)], dtype=object)
    clf = sy.NaiveBayes().fit(values[:, None], np.arange(100_000) % 3)
    start = time.perf_counter()
    again = through_a_file(clf)
    assert time.perf_counter() - start < 15  # about 1 second on an idle machine
    assert_same_models(clf, again)
