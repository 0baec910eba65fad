"""What the reader of model files takes and refuses, value by value."""

import math

import numpy as np
import pytest

from steelyard.persistence.reader import (
    InvalidContentError,
    ObjectReader,
    float_list,
    pack,
    read_tagged,
    tagged_number,
)

pytestmark = pytest.mark.plain
EXACT = 2**53


def refuses(read, message):
    with pytest.raises(InvalidContentError, match=message):
        read()


def of(value):
    return ObjectReader({"key": value}, "here")


def test_a_place_that_must_be_an_object():
    for value in ([], "x", 1, None):
        refuses(
            lambda value=value: ObjectReader(value, "here"), "^here must be an object$"
        )
        refuses(lambda value=value: of(value).inner("key"), r"here\.key must be an obj")
    inner = of({"a": 1}).inner("key")
    assert inner.get("a") == 1
    refuses(lambda: inner.get("b"), r"^here\.key\.b is missing$")
    assert inner.has("a")
    assert not inner.has("b")


def test_keys_that_nobody_asked_for_are_refused():
    reader = ObjectReader({"a": 1, "b" * 60: 2}, "here")
    reader.get("a")
    refuses(reader.finish, f"^here has an unknown key '{'b' * 40}'$")
    reader.get("b" * 60)
    reader.finish()


def test_words_and_flags():
    assert of("x").text("key") == of("x").text("key", ["x", "y"]) == "x"
    for value, allowed in (("x", ["y"]), (1, None), (1, [1]), (None, ["x"])):
        read = lambda v=value, a=allowed: of(v).text("key", a)  # noqa: E731
        refuses(read, r"here\.key is not an allowed word")
    assert of(True).flag("key") is True
    assert of(False).flag("key") is False
    for value in (0, 1, None, "true"):
        refuses(lambda v=value: of(v).flag("key"), "must be true or false")


def test_numbers_within_a_range_that_has_its_ends():
    for value in (-1, -1.0, 0.5, 2, 2.0):
        assert of(value).number("key", -1.0, 2.0) == value
    for value in (-1.0000000000000002, 2.0000000000000004, -2, 3):
        refuses(lambda v=value: of(v).number("key", -1.0, 2.0), "from -1 to 2")
    for value in (True, "1", None, [1.0], math.nan, math.inf, EXACT + 1, -EXACT - 1):
        read = lambda v=value: of(v).number("key", -1e300, 1e300)  # noqa: E731
        refuses(read, "must hold finite numbers and nothing else")
    for value in (EXACT, -EXACT):
        assert of(value).number("key", -1e300, 1e300) == value


def test_one_end_of_a_range_is_enough_to_be_outside():
    for cells in ([0.0, 5.0], [-5.0, 0.0], [-5.0, 5.0]):
        refuses(lambda c=cells: of(c).floats("key", (2,), -1.0, 1.0), "from -1 to 1")
    assert of([]).floats("key", (0,), 1.0, -1.0).shape == (0,)


def test_whole_numbers():
    for value, low in ((0, 0), (3, 3), (EXACT, 0)):
        assert of(value).whole("key", low=low) == value
    assert of(0).whole("key") == 0
    for value, low in ((-1, 0), (2, 3), (EXACT + 1, 0), (1.0, 0), (True, 0)):
        read = lambda v=value, m=low: of(v).whole("key", low=m)  # noqa: E731
        refuses(read, f"must be a whole number from {low}")
    assert of([0, 2, 1]).wholes("key", 3, 3) == [0, 2, 1]
    for cells in ([0, 3], [-1, 0], [0, 1.0], [True, 0]):
        refuses(lambda c=cells: of(c).wholes("key", 2, 3), "from 0 to 2")
    refuses(lambda: of([0, 1]).wholes("key", 3, 3), r"shape \(3,\)")


def test_lists():
    assert of([1, "a"]).items("key") == [1, "a"]
    refuses(lambda: of({}).items("key"), "must be a list")
    found = of([5, 6]).entries("key", 2)
    assert [reader.get(key) for reader, key in found] == [5, 6]
    assert len(of([5, 6]).entries("key")) == 2
    for n in (1, 3):
        refuses(lambda n=n: of([5, 6]).entries("key", n), f"must hold {n} items")
    reader, key = found[1]
    refuses(lambda: reader.text(key), r"here\.key\.1 is not an allowed word")


def test_values_are_sorted_and_of_a_kind():
    for items in ([], ["a", "b"], [False, True], [-1.5, 2.0]):
        assert of(items).values("key", [str, bool, float]) == items
    refuses(lambda: of([1]).values("key", [str]), "of a wrong kind")
    for items in (["b", "a"], ["a", "a"], [1.0, 1.0]):
        refuses(lambda v=items: of(v).values("key", [str, float]), "must be sorted")
    for number in (math.inf, -math.inf, math.nan):
        refuses(lambda n=number: of([n]).values("key", [float]), "not finite")


def test_shapes():
    assert of([[1, 2, 3]]).floats("key", (1, 3), 0, 9).tolist() == [[1.0, 2.0, 3.0]]
    assert of([1, 2.5]).floats("key", (2,), 0, 9).tolist() == [1.0, 2.5]
    for cells in ([1, 2, 3], [[1, 2]], [[1, 2, 3], [1, 2, 3]], [[1, 2, 3, 4]], 5):
        refuses(lambda c=cells: of(c).floats("key", (1, 3), 0, 9), r"shape \(1, 3\)")


@pytest.mark.parametrize("mark, number", [("-inf", -math.inf), (None, math.nan)])
def test_special_numbers(mark, number):
    array = np.array([[0.5, number], [1.0, 0.0]])
    cells = float_list(array, (mark, number))
    assert cells == [[0.5, mark], [1.0, 0.0]]
    found = of(cells).floats("key", (2, 2), 0.0, 1.0, (mark, number))
    np.testing.assert_array_equal(found, array)
    other = of([[0.5, "x"], [1.0, 0.0]])
    refuses(lambda: other.floats("key", (2, 2), 0, 1, (mark, number)), "finite numbers")
    low = of([[-0.5, mark], [1.0, 0.0]])
    refuses(lambda: low.floats("key", (2, 2), 0, 1, (mark, number)), "from 0 to 1")
    # Without a special number the mark is none.
    refuses(lambda: of(cells).floats("key", (2, 2), 0, 1), "finite numbers")


def test_large_arrays_are_packed_and_small_ones_are_lists():
    small, large = np.arange(999.0), np.arange(1000.0)
    assert float_list(small) == small.tolist()
    assert float_list([small, small]) == [small.tolist()] * 2
    packed = float_list(large)
    assert set(packed) == {"float64"}
    flat = of(packed).floats("key", (1000,), 0, 999)
    np.testing.assert_array_equal(flat, large)
    found = of(packed).floats("key", (10, 100), 0, 999)
    np.testing.assert_array_equal(found, large.reshape(10, 100))
    assert found.tolist() == large.reshape(10, 100).tolist()
    refuses(lambda: of(packed).floats("key", (1000,), 0, 998), "from 0 to 998")
    refuses(lambda: of(packed).floats("key", (1001,), 0, 999), r"shape \(1001,\)")
    more = {**packed, "more": 1}
    refuses(lambda: of(more).floats("key", (1000,), 0, 999), "unknown key 'more'")
    large[3] = math.nan
    assert isinstance(float_list(large), list)
    # Where a number is special, no array is packed, and none is read so.
    mark = ("-inf", -math.inf)
    assert isinstance(float_list(np.arange(1000.0), mark), list)
    refuses(lambda: of(packed).floats("key", (1000,), 0, 999, mark), "shape")


def test_packed_numbers_are_finite():
    array = np.arange(1000.0)
    array[7] = math.inf
    packed = {"float64": pack(array.astype("<f8").tobytes())}
    refuses(lambda: of(packed).floats("key", (1000,), -9, 1e308), "finite numbers")


def test_numbers_that_json_does_not_know_are_tagged():
    assert tagged_number(0.5) == 0.5
    tagged = tagged_number(math.inf)
    assert tagged == {"number": "inf"}
    assert read_tagged(tagged, "here", ["inf"]) == math.inf
    refuses(lambda: read_tagged(tagged, "here", ["nan"]), r"here\.number is not an all")
    refuses(lambda: read_tagged({**tagged, "a": 1}, "here", ["inf"]), "unknown key")
