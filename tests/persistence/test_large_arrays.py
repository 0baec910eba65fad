"""Large arrays are bytes in a text: exact, small, and as little trusted as lists."""

from __future__ import annotations

import base64
import copy
import json
import tracemalloc
import zlib
from types import SimpleNamespace

import numpy as np
import pytest

import steelyard as sy
from steelyard.exceptions import ModelFileError
from steelyard.persistence import codec, files
from steelyard.persistence.reader import (
    InvalidContentError,
    ObjectReader,
    float_list,
    pack,
    unpack,
)

pytestmark = pytest.mark.plain


@pytest.fixture(scope="module")
def table():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    y = rng.integers(0, 30, 900)
    codes = (y[:, None] + rng.integers(0, 40, (900, 3))) % 50
    return pd.DataFrame(codes, columns=["a", "b", "c"]).astype(str), y


@pytest.fixture(scope="module")
def model(table):
    return sy.NaiveBayes().fit(*table)


@pytest.fixture(scope="module")
def document(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / "model.json"
    model.save(path)
    return json.loads(path.read_text(encoding="ascii"))


def written(content, path):
    text = files._canonical(content)
    checksum = files._checksum(files.VERSION, text)
    document = {"format": files.FORMAT, "version": files.VERSION}
    document |= {"checksum": checksum, "content": content}
    path.write_text(json.dumps(document), encoding="ascii")
    return path


def with_table(document, text, **more):
    content = copy.deepcopy(document["content"])
    content["model"]["table"] = {"float64": text, **more}
    return content


def test_numbers_come_back_to_the_last_bit():
    rng = np.random.default_rng(0)
    numbers = np.concatenate(
        [rng.normal(size=999) * 10.0 ** rng.integers(-300, 300, 999), [-0.0, 5e-324]]
    )
    raw = numbers.tobytes()
    assert unpack(pack(raw), len(numbers)) == raw


def test_a_large_table_is_text_of_its_bytes_and_predicts_the_same(
    model, table, document, tmp_path
):
    stored = document["content"]["model"]["table"]
    planes = np.frombuffer(
        zlib.decompress(base64.b64decode(stored["float64"])), dtype=np.uint8
    )
    by_hand = np.ascontiguousarray(planes.reshape(8, -1).T).view("<f8").ravel()
    np.testing.assert_array_equal(by_hand, model.model_.table.ravel())
    again = sy.load(written(document["content"], tmp_path / "again.json"))
    same = again.predict_proba(table[0]) == model.predict_proba(table[0])
    assert same.all()


def test_lists_in_their_place_are_the_same_model(model, table, document, tmp_path):
    content = copy.deepcopy(document["content"])
    content["model"]["table"] = model.model_.table.tolist()
    listed = written(content, tmp_path / "lists.json")
    packed = written(document["content"], tmp_path / "packed.json")
    np.testing.assert_array_equal(
        sy.load(listed).model_.table, sy.load(packed).model_.table
    )
    row = table[0].iloc[0].to_dict()
    scorers = [sy.load(path).scorer() for path in (listed, packed)]
    assert scorers[0].answer(row) == scorers[1].answer(row)


def packed_numbers(*numbers):
    return pack(np.array(numbers, dtype="<f8").tobytes())


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e101])
def test_numbers_that_no_list_may_hold_are_refused(value, model, document, tmp_path):
    numbers = model.model_.table.ravel().copy()
    numbers[7] = value
    content = with_table(document, packed_numbers(*numbers))
    with pytest.raises(ModelFileError, match=r"model\.table must hold"):
        sy.load(written(content, tmp_path / "model.json"))


def test_texts_that_are_not_the_numbers_are_refused(model, document, tmp_path):
    good = document["content"]["model"]["table"]["float64"]
    size = model.model_.table.size
    bomb = base64.b64encode(zlib.compress(bytes(8 * size), 9)).decode()
    texts = ["", "é", "=", good[:-8], good + "AAAA", good[4:], bomb]
    texts += [packed_numbers(*np.ones(size - 1)), packed_numbers(*np.ones(size + 1))]
    contents = [with_table(document, text) for text in texts]
    contents += [with_table(document, text) for text in (None, 1, [good], {"a": good})]
    contents.append(with_table(document, good, shape=[1]))
    for content in contents:
        with pytest.raises(ModelFileError, match=r"model\.table"):
            sy.load(written(content, tmp_path / "model.json"))


def test_a_short_text_sets_no_memory_aside():
    text = base64.b64encode(zlib.compress(bytes(1 << 27), 9)).decode()
    tracemalloc.start()
    try:
        for n_numbers in (1 << 24, 1 << 62):
            with pytest.raises(ValueError, match="too short"):
                unpack(text, n_numbers)
        assert tracemalloc.get_traced_memory()[1] < 4 * len(text)
    finally:
        tracemalloc.stop()


ROUNDED = {
    "few decimals": np.round(np.random.default_rng(0).normal(size=(3, 40)), 3),
    "many numbers": np.round(np.random.default_rng(0).normal(size=(3, 900)), 4),
    "any numbers": np.random.default_rng(0).normal(size=(3, 4)),
    "large numbers": np.array([[1e30, 0.5], [2.0, 3.0]]),
    "zeros with a sign": np.array([[-0.0, 2.0], [0.0, -1.0]]),
    "none": np.empty((2, 0)),
}


@pytest.mark.parametrize("name", ROUNDED)
def test_rounded_numbers_are_kept_to_the_bit(name):
    values, shape = ROUNDED[name], ROUNDED[name].shape[1:]
    field = codec.rounded("x", -1e100, 1e100, is_repeated=True)
    text = json.dumps({"values": field.describe(values)})
    sizes = SimpleNamespace(shape=lambda axes: shape)
    read = field.read(ObjectReader(json.loads(text), "file"), "values", sizes)
    assert read.tobytes() == values.tobytes()
    if name == "many numbers":
        assert len(text) < 0.5 * len(json.dumps(float_list(values)))


@pytest.mark.parametrize(
    "value",
    [
        {"n": 0, "divisor": 1.0, "numbers": []},
        {"n": 1, "divisor": 0.0, "numbers": [[1, 2]]},
        {"n": 1, "divisor": 1e300, "numbers": [[1, 2]]},
        {"n": 1, "divisor": 10.0, "numbers": [[1, 2, 3]]},
        {"n": 1, "divisor": 10.0, "numbers": [[1, 21]]},
        {"n": 1, "divisor": 10.0, "numbers": [[1, 2]], "more": 1},
        {"n": 10**12, "divisor": 10.0, "numbers": {"float64": "eAED"}},
        [[1.0, 2.0]],
    ],
)
def test_rounded_numbers_of_another_form_are_refused(value):
    field = codec.rounded("x", -2.0, 2.0, is_repeated=True)
    sizes = SimpleNamespace(shape=lambda axes: (2,))
    with pytest.raises(InvalidContentError, match=r"file\.values"):
        field.read(ObjectReader({"values": value}, "file"), "values", sizes)
