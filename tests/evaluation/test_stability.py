"""The population stability index, and when it is more than chance."""

import numpy as np
import pytest

from steelyard.evaluation.shares import compare_counts, stability_index


def reference(expected, actual):
    """The index as textbooks of scoring have it, for bins of which none is empty."""
    e, a = np.array(expected) / sum(expected), np.array(actual) / sum(actual)
    return sum((x - y) * np.log(x / y) for x, y in zip(a, e, strict=True))


def test_the_index_is_that_of_the_textbooks():
    rng = np.random.default_rng(0)
    for _ in range(50):
        expected, actual = rng.integers(1, 900, (2, rng.integers(2, 12)))
        found = stability_index(expected, actual)
        assert found == pytest.approx(reference(expected, actual), rel=1e-12)
    # Siddiqi (2006), a table of two scores: 0.0 for the same, symmetric otherwise.
    assert stability_index([10, 20, 70], [1, 2, 7]) == pytest.approx(0.0)
    assert stability_index([10, 90], [30, 70]) == pytest.approx(
        stability_index([30, 70], [10, 90])
    )


def test_an_empty_bin_counts_as_half_a_row_and_one_empty_in_both_not_at_all():
    found = stability_index([50, 50, 0], [40, 40, 20])
    e, a = [0.5, 0.5, 0.005], [0.4, 0.4, 0.2]
    assert found == pytest.approx(
        sum((x - y) * np.log(x / y) for x, y in zip(a, e, strict=True))
    )
    assert stability_index([5, 0, 5], [3, 0, 7]) == stability_index([5, 5], [3, 7])


def test_chance_is_what_resampling_says():
    rng = np.random.default_rng(1)
    shares = np.full(10, 0.1)
    names = list("abcdefghij")
    found = [
        compare_counts(
            rng.multinomial(400, shares), rng.multinomial(300, shares), names, 0.05
        )
        for _ in range(2000)
    ]
    psi = np.array([entry.psi for entry in found])
    assert psi.mean() == pytest.approx(np.mean([e.by_chance for e in found]), rel=0.1)
    assert 0.03 < np.mean([entry.psi > entry.limit for entry in found]) < 0.08


def test_groups_are_few_where_rows_are_few_and_rare_values_are_put_together():
    names = [f"v{k}" for k in range(30)]
    many = np.full(30, 100.0)
    assert len(compare_counts(many, many, names, 0.05).names) == 10
    few = compare_counts(many, np.r_[np.full(29, 2.0), 2.0], names, 0.05)
    assert len(few.names) == 3 and few.names[0] == "v0 … v9"
    rare = np.r_[500.0, 400.0, np.full(28, 3.0)]
    found = compare_counts(rare, rare, names, 0.05, ordered=False, missing=(9, 0))
    assert found.names == ["v0", "v1", "28 others", "(missing)"]
    assert sum(found.expected) == pytest.approx(1.0)
    assert found.actual[-1] == 0.0
    assert compare_counts(many, 0 * many, names, 0.05) is None


def test_a_function_may_name_groups():
    found = compare_counts(
        [100] * 40, [100] * 40, lambda own: f"{own[0]}-{own[-1]}", 0.05
    )
    assert found.names[0] == "0-3" and len(found.names) == 10
