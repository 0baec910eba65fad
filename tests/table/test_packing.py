"""Joint codes: many attributes of a single code do not make all of them deep."""

import numpy as np

from steelyard.table.packing import plan_packing
from steelyard.table.schema import FeatureSchema, TableSchema


def _schema(n_constant):
    wide = [FeatureSchema(None, "binned", "numbers", edges=tuple(range(59)))] * 50
    whole = [FeatureSchema(None, "binned", "numbers")] * n_constant
    return TableSchema(tuple(wide + whole))


def test_many_constant_attributes_are_spread_over_the_groups():
    schema = _schema(50)
    every = list(range(len(schema)))
    packing = plan_packing(schema, every, np.zeros(len(schema), dtype=bool), 200)
    assert max(map(len, packing.groups)) == 2
    table = np.random.default_rng(0).normal(size=(schema.n_codes, 2))
    packed = packing.expand(table)
    counts = np.random.default_rng(1).normal(size=packed.shape)
    # One is the transpose of the other.
    np.testing.assert_allclose(
        (packed * counts).sum(), (table * packing.collapse(counts)).sum()
    )


def test_a_row_of_joint_codes_is_the_sum_of_the_rows_of_its_members():
    sizes = (2, 3, 2, 1, 3, 7)
    edges = (tuple(range(size - 1)) for size in sizes)
    views = (FeatureSchema(None, "binned", "numbers", edges=own) for own in edges)
    schema = TableSchema(tuple(views))
    missing = np.array([True, False, True, False, False, True])
    packing = plan_packing(schema, [0, 1, 2, 3, 4, 5], missing, 10_000)
    assert max(map(len, packing.groups)) > 2
    table = np.random.default_rng(0).normal(size=(schema.n_codes, 3))
    ends = [*packing.starts[1:].tolist(), packing.n_codes]
    for start, end, group in zip(packing.starts, ends, packing.groups, strict=True):
        joint = np.arange(end - int(start))
        rows = [schema.offsets[j] + packing.digits(joint, j) for j in group]
        found = packing.expand(table)[int(start) : end]
        np.testing.assert_allclose(found, table[rows].sum(axis=0), atol=1e-12)
        digits = [packing.digits(joint, j)[None] for j in group]
        shares = [
            packing.share(own, [j])[0] for own, j in zip(digits, group, strict=True)
        ]
        np.testing.assert_array_equal(np.sum(shares, axis=0), joint)


def test_few_constant_attributes_share_a_group():
    schema = _schema(10)
    every = list(range(len(schema)))
    packing = plan_packing(schema, every, np.zeros(len(schema), dtype=bool), 200)
    assert max(map(len, packing.groups)) == 10
