"""A file that ``save`` did not write gives one class of error, whatever is in it."""

from __future__ import annotations

import contextlib
import copy
import json
import random
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import steelyard as sy
from steelyard.exceptions import ModelFileError, ParameterError, TableError
from steelyard.persistence import content, files
from steelyard.persistence.content import content_of, estimator_from
from steelyard.persistence.reader import InvalidContentError, ObjectReader

pytestmark = pytest.mark.plain

FUZZ = settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def saved(clf, path):
    clf.save(path)
    return path.read_bytes()


def predicts(clf, frame):
    """Assert that a model from a strange file predicts probabilities, or explains."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            proba = clf.predict_proba(frame)
            labels = clf.predict(frame)
        except TableError:
            return  # other columns than this table's
    assert np.isfinite(proba).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert np.isin(labels, clf.classes_).all()


# --------------------------------------------------------------------- damaged as text


def test_every_truncation_is_refused(small_model, tmp_path):
    path = tmp_path / "model.json"
    data = saved(small_model, path)
    # Without its last byte, a line end, the document is whole.
    for length in range(len(data) - 1):
        path.write_bytes(data[:length])
        with pytest.raises(ModelFileError):
            sy.load(path)
    path.write_bytes(data[:-1])
    sy.load(path)


def test_changed_bytes_are_refused_or_change_nothing(
    small_model, tmp_path, assert_same_models
):
    path = tmp_path / "model.json"
    data = saved(small_model, path)
    rng = random.Random(5)
    for _ in range(1000):
        edited = bytearray(data)
        for _ in range(rng.choice([1, 1, 1, 2, 5])):
            edited[rng.randrange(len(edited))] = rng.randrange(256)
        path.write_bytes(bytes(edited))
        try:
            again = sy.load(path)
        except ModelFileError:
            continue
        # 0.50 for 0.5, or a blank: another spelling of the same model.
        assert_same_models(small_model, again)


@given(st.binary(max_size=300))
@FUZZ
def test_arbitrary_bytes_are_refused(tmp_path, data):
    path = tmp_path / "model.json"
    path.write_bytes(data)
    with pytest.raises(ModelFileError):
        sy.load(path)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "null",
        "NaN",
        '"steelyard model"',
        "[" * 100_000,
        "[" * 900 + "]" * 900,
        '{"a":' * 100_000,
        "1" * 10_000,
        "[1e999]",
        '{"format": "steelyard model"}',
        '{"format": "steelyard model", "version": true}',
        '{"format": "steelyard model", "version": 1.0}',
        '{"format": "steelyard model", "version": 0}',
        '{"format": "steelyard model", "version": 1}',
        '{"format": "steelyard model", "version": 1, "content": {}, "checksum": []}',
        '{"format": "steelyard model", "format": "steelyard model"}',
        "\ufeff{}",
        "import os",
    ],
    ids=lambda text: text[:30],
)
def test_text_that_is_no_model_is_refused(text, tmp_path):
    path = tmp_path / "model.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ModelFileError, match=r"model\.json"):
        sy.load(path)


def test_a_newer_version_is_refused_with_advice(small_model, write_content):
    path = write_content(content_of(small_model), version=2)
    with pytest.raises(ModelFileError, match=r"version 2.*reads version 1.*Upgrade"):
        sy.load(path)


def test_the_checksum_knows_the_version(small_model, write_content):
    path = write_content(content_of(small_model), version=2)
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "version": 1}))
    with pytest.raises(ModelFileError, match="checksum"):
        sy.load(path)


def test_further_entries_of_the_document_are_refused(small_model, tmp_path):
    path = tmp_path / "model.json"
    document = json.loads(saved(small_model, path))
    path.write_text(json.dumps({**document, "note": "hello"}))
    with pytest.raises(ModelFileError, match="other entries"):
        sy.load(path)


def test_an_edited_number_is_refused(small_model, tmp_path):
    path = tmp_path / "model.json"
    document = json.loads(saved(small_model, path))
    document["content"]["model"]["table"][1][0] += 1e-15
    path.write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match="checksum"):
        sy.load(path)


def test_white_space_and_order_of_keys_are_free(
    small_model, tmp_path, assert_same_models
):
    path = tmp_path / "model.json"
    document = json.loads(saved(small_model, path))
    turned = {key: document[key] for key in reversed(document)}
    path.write_text(json.dumps(turned, indent=4))
    assert_same_models(small_model, sy.load(path))


def test_a_file_that_is_not_there_is_an_ordinary_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        sy.load(tmp_path / "nothing.json")


# ----------------------------------------------------- made up, with a fitting checksum

ODD = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    255,
    2**31,
    2**53 + 1,
    2**63,
    10**400,
    -(10**4000),
    0.0,
    -0.0,
    0.5,
    -1.5,
    5e-324,
    1e-300,
    1e100,
    1e300,
    -1e308,
    float("nan"),
    float("inf"),
    float("-inf"),
    "",
    "-inf",
    "inf",
    "os.system",
    "NaiveBayes",
    "__import__('os').system('true')",
    "object",
    "<U1000000000",
    "int8",
    "str",
    "text",
    "numbers",
    "categorical",
    "gaussian",
    "gaussian-weka",
    "binned",
    "\ud800",
    "sum",
    "mixture",
    "pairs",
    "WeightedNB",
    "RegularizedNB",
    [],
    [[]],
    [None],
    [0.0, 0.0],
    [1, 0],
    [0, 1],
    ["a", "b"],
    {},
    {"mapping": []},
    {"mapping": [[1, 2], [1, 3]]},
    {"mapping": [[[], 1]]},
    {"mapping": 3},
    {"mapping": [], "part": "MEstimate"},
    {"part": "os.system", "settings": {}},
    {"part": "MEstimate", "settings": {}},
    {"part": "MEstimate", "settings": {"m": "x"}},
    {"part": "MDLDiscretizer", "settings": {"criterion": 1, "x": 2}},
    {"part": "FixedEdgesDiscretizer", "settings": {"edges": 3, "n_jobs": None}},
    {"part": "NaiveBayes", "settings": {}},
    {"part": "LBFGS", "settings": {}},
    {"part": "DevianceLoss", "settings": {"multiplier": 0}},
    {"part": "DevianceLoss", "settings": {"multiplier": 2}},
    {"part": "AttributeWeighting", "settings": {"prior_weight": 1}},
    {"part": "Newton", "settings": {"tol": 1e-3, "max_iter": 10**400}},
    {"tuple": []},
    {"tuple": [0, {"number": "inf"}]},
    {"tuple": 3},
    {"tuple": [], "mapping": []},
    {"number": "inf"},
    {"number": "-inf"},
    {"number": "nan"},
    {"number": "1"},
    {"number": 1},
    {"number": "inf", "tuple": []},
    {"columns": [], "rows": [[]]},
    {"__class__": "os.system"},
]
KINDS = ["plain", "attribute", "value", "mixture", "pairs", "pairs of mixtures"]


def nested(depth):
    value = 0
    for _ in range(depth):
        value = [value]
    return value


def places(value, path=()):
    """Yield the way to every node of a document."""
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, (*path, key))
    elif isinstance(value, list):
        for k, item in enumerate(value):
            yield from places(item, (*path, k))


@st.composite
def descents(draw, value):
    """Draw the way to a node, so that small sections are found as often as tables."""
    path = ()
    while isinstance(value, (dict, list)) and value:
        if path and draw(st.integers(0, 3)) == 0:
            break
        keys = sorted(value) if isinstance(value, dict) else range(len(value))
        path = (*path, draw(st.sampled_from(keys)))
        value = value[path[-1]]
    return path


@st.composite
def mutations(draw, content):
    """Change a document in one to three places."""
    changed = copy.deepcopy(content)
    for _ in range(draw(st.integers(1, 3))):
        anywhere = st.sampled_from(list(places(changed)))
        where = draw(anywhere | descents(changed) | descents(changed))
        if not where:
            continue
        parent = changed
        for key in where[:-1]:
            parent = parent[key]
        key = where[-1]
        kind = draw(st.sampled_from(["replace", "replace", "delete", "copy", "swap"]))
        if kind == "replace":
            odd = st.sampled_from(ODD) | st.builds(nested, st.integers(1, 60))
            odd = odd | st.text(max_size=3) | st.integers() | st.floats()
            # A copy: the next change may be made inside of it.
            parent[key] = copy.deepcopy(draw(odd))
        elif kind == "delete":
            del parent[key]
        elif kind == "copy" and isinstance(parent, list):
            parent.insert(key, copy.deepcopy(parent[key]))
        elif kind == "copy":
            parent[key + "x"] = copy.deepcopy(parent[key])
        elif isinstance(parent, list):
            parent[key], parent[0] = parent[0], parent[key]
        else:
            other = draw(st.sampled_from(sorted(parent)))
            parent[key], parent[other] = parent[other], parent[key]
    return changed


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@FUZZ
def test_a_changed_structure_is_refused_or_predicts(
    kind, learned_models, frame, write_content, data
):
    content = data.draw(mutations(content_of(learned_models(kind))))
    try:
        clf = sy.load(write_content(content))
    except ModelFileError as error:
        assert error.__cause__ is None, "only the reader's own checks refuse a file"
        return
    predicts(clf, frame)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@FUZZ
def test_the_reader_itself_finds_what_is_wrong(kind, learned_models, frame, data):
    """Without the net that ``load`` spreads under it."""
    content = data.draw(mutations(content_of(learned_models(kind))))
    try:
        clf = estimator_from(content)
    except InvalidContentError as error:
        assert str(error).startswith("content")
        return
    predicts(clf, frame)


def test_every_odd_value_in_every_place_is_refused_or_predicts(small_model):
    content = content_of(small_model)
    rows = np.array([["a", 1.0], ["b", 1e6], [None, None]], dtype=object)
    for where in list(places(content))[1:]:
        parent = content
        for key in where[:-1]:
            parent = parent[key]
        kept = parent[where[-1]]
        for odd in ODD:
            parent[where[-1]] = odd
            try:
                clf = estimator_from(content)
            except InvalidContentError:
                continue
            predicts(clf, rows)
        parent[where[-1]] = kept


@pytest.mark.parametrize("setting", sorted(sy.NaiveBayes().get_params()))
def test_odd_settings_are_refused_at_once_or_when_learning_goes_on(
    setting, model, frame
):
    labels = model.predict(frame)
    content = content_of(model)
    for odd in ODD:
        content["settings"][setting] = odd
        try:
            clf = estimator_from(content)
        except InvalidContentError as error:
            assert "content.settings" in str(error)
            continue
        predicts(clf, frame[:3])
        with contextlib.suppress(ParameterError):  # as from any classifier
            clf.partial_fit(frame, labels)
            predicts(clf, frame[:3])


@pytest.mark.parametrize("depth", [10, 400, 5000])
@pytest.mark.parametrize("where", ["settings", "features", "model", "fitted"])
def test_deep_nesting_is_refused(where, depth, model, tmp_path):
    path = tmp_path / "model.json"
    content = content_of(model)
    text = json.dumps({**content, where: "HERE"}, separators=(",", ":"), sort_keys=True)
    deep = "[" * depth + "]" * depth
    if where == "settings":
        deep = json.dumps({**content["settings"], "numeric": "HERE"}, sort_keys=True)
        deep = deep.replace('"HERE"', "[" * depth + "]" * depth).replace(" ", "")
    text = text.replace('"HERE"', deep)
    path.write_text(
        f'{{"format": "{files.FORMAT}", "version": 1, "content": {text}, '
        f'"checksum": "{files._checksum(1, text)}"}}'
    )
    with pytest.raises(ModelFileError):
        sy.load(path)


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("<U1000000000", ["a", "b"]),
        ("str", ["a" * 10_000, *(f"b{i:05d}" for i in range(10_000))]),
        ("str", ["a", "a\x00"]),
        ("str", [0, 1]),
        ("int8", [0, 300]),
        ("uint8", [-1, 0]),
        ("int64", [0, 2**63]),
        ("int64", [0, 1.0]),
        ("int64", [False, True]),
        ("bool", [0, 1]),
        ("float16", [0.0, 1e300]),
        ("float16", [2048.0, 2049.0]),
        ("float64", [1, 2]),
        ("object", ["a", 1]),
        ("object", [None, 1]),
        ("object", [[], []]),
        ("object", [0, False]),
        ("object", ["b", "a"]),
        ("object", ["a", "a"]),
        ("object", ["a"]),
        ("object", []),
        ("datetime64", [0, 1]),
        ("O", ["a", "b"]),
        (None, ["a", "b"]),
    ],
    ids=lambda value: repr(value)[:25],
)
def test_classes_that_do_not_fit_their_type_are_refused(dtype, values, small_model):
    content = content_of(small_model)
    content["classes"] = {"dtype": dtype, "values": values}
    with pytest.raises(InvalidContentError, match=r"content\.classes"):
        estimator_from(content)


@pytest.mark.parametrize(
    ("feature", "changes"),
    [
        (0, {"values": ["b", "a"]}),
        (0, {"values": ["a", "a"]}),
        (0, {"values": ["a", 1]}),
        (0, {"values": "ab"}),
        (0, {"cells": "numbers"}),
        (0, {"cells": "nothing"}),
        (0, {"kind": "gaussian"}),
        (0, {"edges": [1.0]}),
        (0, {"fill": 0}),
        (0, {"fill": 1}),  # beside a code of its own for missing cells
        (0, {"step": 0.5}),
        (0, {"name": 3}),
        (0, {"name": "one name only"}),
        (0, {"more": 1}),
        (1, {"cells": "text"}),
        (1, {"kind": "binned", "edges": [1.0, 1.0]}),
        (1, {"kind": "binned", "edges": [2.0, 1.0]}),
        (1, {"kind": "binned", "edges": [2**60, 2**60 + 1]}),
        (1, {"kind": "binned", "edges": [10**400]}),
        (1, {"kind": "binned", "edges": [True]}),
        (1, {"kind": "gaussian-weka"}),
        (1, {"step": 0.5}),
        (1, {"missing_is_value": True}),
        (1, {"missing_is_value": 0}),
        (1, {"fill": "1"}),
        (1, {"fill": 10**400}),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_an_attribute_that_makes_no_sense_is_refused(feature, changes, small_model):
    content = content_of(small_model)
    content["features"][feature].update(changes)
    with pytest.raises(InvalidContentError, match=r"content\.features"):
        estimator_from(content)


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("model", "log_prior"), ["-inf", "-inf"]),
        (("model", "log_prior"), [1e101, 0.0]),
        (("model", "log_prior"), ["inf", 0.0]),
        (("model", "log_prior"), [0.0]),
        (("model", "table"), []),
        (("model", "table", 1, 0), "-inf"),
        (("model", "table", 1, 0), -1e200),
        (("model", "table", 1, 0), True),
        (("model", "gaussian", "deviation"), [[0.0, 1.0]]),
        (("model", "gaussian", "deviation"), [[-1.0, 1.0]]),
        (("model", "gaussian", "deviation"), [[5e-324, 1.0]]),
        (("model", "gaussian", "deviation"), [[1e151, 1.0]]),
        (("model", "gaussian", "mean"), [[1e151, 0.0]]),
        (("model", "gaussian", "mean"), [[0.0]]),
        (("model", "gaussian", "mean"), [0.0, 0.0]),
        (("fitted", "counts_", "by_class"), [-1.0, 1.0]),
        (("fitted", "counts_", "by_code", 0), [0.0]),
        (("fitted", "counts_", "by_class"), [1e151, 1.0]),
        (("fitted", "counts_", "by_code", 1, 0), 1e151),
        (("fitted", "counts_", "mean"), [[1e151, 1.0]]),
        (("fitted", "counts_", "squares"), [[1e301, 1.0]]),
        (("fitted", "counts_", "weight"), [[1e-300, 1e-300]]),
        (("fitted", "counts_", "squares"), [[-1.0, 1.0]]),
        (("fitted", "counts_", "weight"), [["1", 1.0]]),
        (("fitted", "target_name_"), 3),
        (("fitted", "training_", "ranges"), []),
        (("fitted", "training_", "ranges", 0), 1.0),
        (("fitted", "training_", "ranges", 0), {"low": 2.0}),
        (("fitted", "training_", "ranges", 1), {"low": 0.0}),
        (("fitted", "class_count_"), [[1.0], [1.0]]),
        (("fitted", "class_count_"), {"0": 1.0, "1": 1.0}),
        (("fitted", "class_log_prior_"), ["-inf", "-inf"]),
        (("fitted", "class_log_prior_"), [0.0, None]),
        (("fitted", "attribute_weights_"), [1.0, 1.0]),  # not of this class
        (("fitted", "objective_"), 1.0),
        (("model", "link_scale"), 0.0),
        (("model", "link_scale"), -1.0),
        (("model", "link_scale"), 1e51),
        (("model", "link_scale"), "inf"),
        (("model", "kind"), "pairs"),
        (("model", "kind"), "mixture"),
        (("model", "kind"), None),
        (("model", "gaussian", "weight"), []),
        (("model", "gaussian", "weight"), [[1.0, 1e51]]),
        (("model", "gaussian", "weight"), [[1.0, True]]),
    ],
    ids=repr,
)
def test_numbers_of_a_wrong_shape_or_range_are_refused(where, value, small_model):
    content = content_of(small_model)
    parent = content
    for key in where[:-1]:
        parent = parent[key]
    parent[where[-1]] = value
    with pytest.raises(InvalidContentError, match=rf"content\.{where[0]}"):
        estimator_from(content)


def test_whatever_else_goes_wrong_is_the_same_error(small_model, tmp_path, monkeypatch):
    path = tmp_path / "model.json"
    small_model.save(path)
    for error in (RecursionError, OverflowError, MemoryError, KeyError, TypeError):

        def fail(content, error=error):
            raise error("by the test")

        monkeypatch.setattr(content, "estimator_from", fail)
        with pytest.raises(ModelFileError, match=error.__name__):
            sy.load(path)


def test_whole_numbers_of_one_hash_are_compared_in_order():
    # In a set each would be compared with all others: half an hour.
    values = [k * (2**61 - 1) for k in range(100_000)]
    assert ObjectReader({"a": values}, "content").values("a", [int]) == values
    values[-1] = values[-2]
    with pytest.raises(InvalidContentError, match="must be sorted, without repetition"):
        ObjectReader({"a": values}, "content").values("a", [int])


def test_a_long_text_does_not_flood_the_message(small_model, write_content):
    content = content_of(small_model)
    content["x" * 100_000] = 1
    with pytest.raises(ModelFileError) as caught:
        sy.load(write_content(content))
    assert len(str(caught.value)) < 1000
