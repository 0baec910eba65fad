"""A number as the target: refused, declared, or cut into classes."""

import numpy as np
import pandas as pd
import pytest

from steelyard.exceptions import ParameterError, TableError
from steelyard.io.dataset import cut, cut_as, read_dataset


@pytest.mark.parametrize("n_bins", [2, 5, 12])
def test_classes_have_about_as_many_rows_each_and_sort_by_value(n_bins):
    values = np.random.default_rng(0).lognormal(10, 1, 1000)
    labels = cut(values, n_bins)
    names, counts = np.unique(labels, return_counts=True)
    assert len(names) == n_bins
    assert counts.max() - counts.min() <= 10
    highest = [values[labels == name].max() for name in names]
    lowest = [values[labels == name].min() for name in names]
    assert all(a < b for a, b in zip(highest, lowest[1:], strict=False))


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e9])
def test_names_say_the_bounds_so_that_other_rows_are_cut_the_same(scale):
    values = scale * np.random.default_rng(1).normal(size=300)
    labels = cut(values, 4)
    assert np.array_equal(cut_as(values, np.unique(labels)), labels)
    first, *_, last = np.unique(labels)
    assert np.array_equal(labels == first, values <= float(first.split()[-1]))
    assert np.array_equal(labels == last, values > float(last.split()[-1]))


def test_numbers_that_are_mostly_equal_give_the_classes_that_they_can():
    assert {*cut([0] * 90 + [1, 2, 3] * 3, 10)} == {"1: ≤ 0", "2: > 0"}
    with pytest.raises(ParameterError, match="most of them are equal"):
        cut([1] * 10, 2)
    with pytest.raises(ParameterError, match="`bins` must be 2 or more"):
        cut([1, 2], 1)


@pytest.mark.parametrize("target", [np.arange(60), np.arange(60) / 7])
def test_a_number_as_the_target_is_refused_unless_cut_or_declared(tmp_path, target):
    path = tmp_path / "a.csv"
    pd.DataFrame({"a": range(60), "price": target}).to_csv(path, index=False)
    data = read_dataset(path, target="price")
    with pytest.raises(TableError, match=r"has numbers .*60 values.*`bins=5`"):
        data.check_target()
    read_dataset(path, target="price", categorical=["price"]).check_target()
    cut_data = read_dataset(path, target="price", bins=5)
    cut_data.check_target()
    assert len(cut_data.classes) == 5


def test_few_whole_numbers_and_declared_ones_of_arff_are_classes(tmp_path):
    path = tmp_path / "a.csv"
    pd.DataFrame({"a": range(60), "y": np.arange(60) % 7}).to_csv(path, index=False)
    read_dataset(path, target="y").check_target()
    values = ",".join(map(str, range(60)))
    rows = "\n".join(f"{k},{k}" for k in range(60))
    head = f"@relation r\n@attribute a numeric\n@attribute y {{{values}}}\n@data\n"
    (tmp_path / "a.arff").write_text(head + rows)
    read_dataset(tmp_path / "a.arff", target="y").check_target()
    with pytest.raises(ParameterError, match="`bins` are for numbers"):
        read_dataset(tmp_path / "a.arff", target="y", bins=3)
