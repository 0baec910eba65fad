"""Cut points from cells of numbers: exact for few, close and order-free for many."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.table.discretizers.mdl import MDLDiscretizer
from steelyard.table.discretizers.unsupervised import (
    EqualFrequencyDiscretizer,
    EqualWidthDiscretizer,
)
from steelyard.table.encoder import TableEncoder
from steelyard.table.frames import as_table
from steelyard.table.summary import number_cells
from steelyard.table.summary.number_cells import (
    CellsByValue,
    NumberCells,
    Rereading,
)
from steelyard.table.summary.table_summary import TableSummary

N = 200_000
RNG = np.random.default_rng(15)


def cluster_and_tails(n):
    """Nine tenths within 1e6 ± 3, the rest over forty orders of magnitude."""
    tails = 10.0 ** RNG.uniform(-20, 20, n) * RNG.choice([-1, 1], n)
    return np.where(RNG.random(n) < 0.9, RNG.uniform(1e6 - 3, 1e6 + 3, n), tails)


DISTRIBUTIONS = {
    "normal": RNG.normal(size=N),
    "lognormal": RNG.lognormal(0, 1, N),
    "far from zero": RNG.normal(1e8, 1, N),
    "uniform": RNG.random(N),
    "prices": RNG.lognormal(3, 1, N).round(2),
    "whole": RNG.integers(18, 85, N).astype(float),
    "zero-inflated": np.where(RNG.random(N) < 0.6, 0.0, RNG.lognormal(1, 2, N)),
    "cluster and tails": cluster_and_tails(N),
}
IS_EXACT = ("prices", "whole")


def classes_of(numbers):
    """Draw two classes whose odds go up and down with the number."""
    rank = np.argsort(np.argsort(numbers)) / len(numbers)
    return (np.random.default_rng(1).random(len(numbers)) < _odds(rank)).astype(int)


def _odds(rank):
    return 0.5 + 0.45 * np.sin(9 * rank)


def streamed(numbers, y, rows, numeric="mdl"):
    """Return the edges of a column read in chunks, and what is known of them."""
    encoder = TableEncoder(numeric=numeric)
    chunks = np.array_split(rows, 7)
    summary = TableSummary(encoder)
    for chunk in chunks:
        summary.take_in(as_table(numbers[chunk, None]), y[chunk])
    again = summary.second_reading()
    if again is not None:
        for chunk in chunks:
            again.take_in(as_table(numbers[chunk, None]), y[chunk])
        summary.refine(again)
    edges = np.array(summary.fitted().schema_.features[0].edges)
    return edges, summary.cut_points_are_exact, again is not None


def summary_of(table, y, weights, encoder):
    """Return the summary of one chunk."""
    summary = TableSummary(encoder)
    summary.take_in(table, y, weights)
    return summary


def shift_of(by_value):
    """Return how many bits of a key a cell leaves open."""
    return by_value._settle()[2]


def held(by_value):
    """Return what cells hold, to be compared."""
    cells = by_value.cells()
    return shift_of(by_value), [
        part.tolist() for part in (cells.low, cells.high, cells.mass)
    ]


def log_loss(edges, numbers, y):
    """Return the log-loss of the class shares of each bin, on the rows themselves."""
    bins = np.searchsorted(edges, numbers)
    counts = np.zeros((len(edges) + 1, 2))
    np.add.at(counts, (bins, y), 1.0)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    return -np.log(shares[bins, y]).mean()


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_cut_points_of_a_stream_separate_the_classes_as_well(name):
    numbers = DISTRIBUTIONS[name]
    y = classes_of(numbers)
    exact = MDLDiscretizer().fit(numbers[:, None], y).edges_[0]
    edges, is_exact, _ = streamed(numbers, y, np.arange(N))
    assert is_exact or name not in IS_EXACT
    if is_exact:
        np.testing.assert_array_equal(edges, exact)
    # Nearly all are: a cut may lie a few numbers beside.
    assert np.isin(edges, exact).mean() > 0.9
    assert log_loss(edges, numbers, y) < log_loss(exact, numbers, y) + 3e-6
    shuffled, _, _ = streamed(numbers, y, np.random.default_rng(2).permutation(N))
    np.testing.assert_array_equal(edges, shuffled)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_bins_of_equal_frequency_are_those_of_memory(name):
    numbers = DISTRIBUTIONS[name]
    y = np.arange(N) % 2
    edges, _, _ = streamed(numbers, y, np.arange(N), "equal-frequency")
    exact = EqualFrequencyDiscretizer().fit(numbers[:, None]).edges_[0]
    np.testing.assert_array_equal(edges, exact)


def test_numbers_that_are_close_together_are_read_again(monkeypatch):
    others = [name for name in DISTRIBUTIONS if name != "cluster and tails"]
    for name in others:
        y = np.arange(N) % 2
        assert not streamed(DISTRIBUTIONS[name], y, np.arange(N))[2], name
    # As with 65,536 cells and millions of rows.
    monkeypatch.setattr(number_cells, "_MAX_CELLS", 1 << 12)
    monkeypatch.setattr(number_cells, "_MAX_REREAD_BYTES", 0)
    numbers = DISTRIBUTIONS["cluster and tails"]
    y = classes_of(numbers)
    edges, _, was_read_again = streamed(numbers, y, np.arange(N))
    assert was_read_again
    assert np.count_nonzero(np.abs(edges - 1e6) < 3) > 3
    exact = MDLDiscretizer().fit(numbers[:, None], y).edges_[0]
    assert log_loss(edges, numbers, y) < log_loss(exact, numbers, y) + 1e-3
    shuffled, _, _ = streamed(numbers, y, np.random.default_rng(2).permutation(N))
    np.testing.assert_array_equal(edges, shuffled)
    summary = summary_of(as_table(numbers[:, None]), y, None, TableEncoder())
    once = np.array(summary.fitted().schema_.features[0].edges)
    assert log_loss(once, numbers, y) > log_loss(exact, numbers, y) + 0.05


def test_cut_points_are_exact_if_a_second_reading_has_room(monkeypatch):
    monkeypatch.setattr(number_cells, "_MAX_CELLS", 1 << 12)
    for name, numbers in DISTRIBUTIONS.items():
        y = classes_of(numbers)
        edges, is_exact, _ = streamed(numbers, y, np.arange(N))
        exact = MDLDiscretizer().fit(numbers[:, None], y).edges_[0]
        assert is_exact, name
        np.testing.assert_array_equal(edges, exact, err_msg=name)


def test_second_readings_of_parts_add_up(monkeypatch):
    monkeypatch.setattr(number_cells, "_MAX_CELLS", 1 << 12)
    monkeypatch.setattr(number_cells, "_MAX_REREAD_BYTES", 0)
    numbers = DISTRIBUTIONS["cluster and tails"]
    y = classes_of(numbers)
    summary = summary_of(as_table(numbers[:, None]), y, None, TableEncoder())
    chunks = np.array_split(np.arange(N), 3)
    parts = []
    for chunk in chunks:
        part = summary.second_reading()
        assert part.columns == [0]
        part.take_in(as_table(numbers[chunk, None]), y[chunk])
        parts.append(part)
    summary.refine(parts[2] + (parts[0] + parts[1]))
    edges = summary.fitted().schema_.features[0].edges
    assert list(edges) == streamed(numbers, y, np.arange(N))[0].tolist()


def test_a_second_reading_finds_its_columns_by_name():
    ranges = {1: (np.array([1.0]), np.array([2.0]))}
    again = Rereading(ranges, ["a", "b"], np.array([0, 1]))
    frame = pytest.importorskip("pandas").DataFrame({"b": [0.5, 1.0, 1.5, np.nan, 3.0]})
    again.take_in(as_table(frame), np.array([0, 1, 0, 1, 1]), np.array([1, 2, 3, 4, 5]))
    cells = again.tables[1].cells()
    assert again.columns == ["b"]
    assert cells.low.tolist() == [1.0, 1.5]
    assert cells.mass.tolist() == [[0.0, 2.0], [3.0, 0.0]]
    assert 0 not in again.tables


_FLOATS = st.floats(allow_nan=True, allow_infinity=False, width=64)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(_FLOATS, st.integers(0, 2)), min_size=1), st.integers(0, 99))
def test_few_numbers_are_counted_one_by_one(rows, seed):
    numbers = np.array([x for x, _ in rows])
    labels = np.array([c for _, c in rows], dtype=np.uint32)
    table, other = CellsByValue(3), CellsByValue(3)
    cut = seed % len(rows)
    table.add(numbers[:cut], labels[:cut], None)
    other.add(numbers[cut:], labels[cut:], None)
    merged = table + other
    known = ~np.isnan(numbers)
    values = np.unique(numbers[known])
    cells = merged.cells()
    np.testing.assert_array_equal(cells.low, values)
    np.testing.assert_array_equal(cells.high, values)
    expected = [
        [np.count_nonzero(labels[numbers == v] == c) for c in range(3)] for v in values
    ]
    assert cells.mass.tolist() == expected
    assert held(merged) == held(other + table)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.sampled_from([4, 16]))
def test_prefixes_are_the_longest_that_leave_few_enough_cells(seed, most):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(number_cells, "_MAX_CELLS", most)
        patch.setattr(number_cells, "_FIRST_CELLS", 2)
        rng = np.random.default_rng(seed)
        numbers = rng.normal(size=200).round(rng.integers(0, 12)) + 0.0
        labels = rng.integers(0, 2, 200).astype(np.uint32)
        parts = np.split(rng.permutation(200), np.sort(rng.integers(0, 200, 3)))
        tables = [CellsByValue(2) for _ in parts]
        for table, rows in zip(tables, parts, strict=True):
            table.add(numbers[rows], labels[rows], None)
        a, b, c, d = tables
        merged = (a + b) + (c + d)
        assert held(merged) == held(a + (d + (c + b)))
        one = CellsByValue(2)
        one.add(numbers, labels, None)
        assert held(one) == held(merged)
        keys = _sorted_keys(numbers)
        n_prefixes = [len({key >> s for key in keys}) for s in range(64)]
        assert shift_of(one) == next(s for s in range(64) if n_prefixes[s] <= most)
        assert len(one.cells().low) == n_prefixes[shift_of(one)]
        cells = one.cells()
        assert (cells.high[:-1] < cells.low[1:]).all()
        for low, high, mass in zip(cells.low, cells.high, cells.mass, strict=True):
            inside = (numbers >= low) & (numbers <= high)
            assert mass.tolist() == np.bincount(labels[inside], minlength=2).tolist()


def _sorted_keys(numbers):
    """Return whole numbers that sort like the numbers: their bits, flipped."""
    bits = (int(b) for b in numbers.view(np.uint64))
    return [(1 << 64) - 1 - b if b >> 63 else b | 1 << 63 for b in bits]


def test_many_classes_have_fewer_cells():
    numbers = np.random.default_rng(0).random(30_000)
    table = CellsByValue(2)
    table.add(numbers, np.zeros(30_000, np.uint32), None)
    assert len(table.cells().low) == 30_000
    spread = table.with_classes(np.array([3, 40]), 41)
    assert len(spread.cells().low) <= 1 << 14
    cells = spread.cells()
    assert cells.mass[:, 3].sum() == 30_000
    assert cells.mass.sum() == 30_000


def test_a_number_is_added_to_its_cell_or_between_two():
    ends = np.array([1.0, 4.0]), np.array([2.0, 4.0])
    cells = NumberCells(*ends, np.ones((2, 1)))
    assert cells.with_number(1.5, np.ones(1)).mass.tolist() == [[2.0], [1.0]]
    assert cells.with_number(4.0, np.ones(1)).mass.tolist() == [[1.0], [2.0]]
    assert cells.with_number(3.0, np.ones(1)).low.tolist() == [1.0, 3.0, 4.0]
    assert cells.with_number(9.0, np.ones(1)).high.tolist() == [2.0, 4.0, 9.0]


def test_equal_width_takes_the_range_and_merges_by_the_ends_of_cells():
    numbers = DISTRIBUTIONS["normal"]
    y = np.arange(N) % 2
    for empty, numeric in (("keep", "equal-width"), ("merge", "equal-width-merged")):
        exact = EqualWidthDiscretizer(empty=empty).fit(numbers[:, None]).edges_[0]
        edges, _, _ = streamed(numbers, y, np.arange(N), numeric)
        np.testing.assert_array_equal(edges, exact)
