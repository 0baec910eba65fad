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
    assert packing.members.shape[1] == 2
    table = np.random.default_rng(0).normal(size=(schema.n_codes, 2))
    packed = packing.expand(table)
    counts = np.random.default_rng(1).normal(size=packed.shape)
    # One is the transpose of the other.
    np.testing.assert_allclose(
        (packed * counts).sum(), (table * packing.collapse(counts)).sum()
    )


def test_few_constant_attributes_share_a_group():
    schema = _schema(10)
    every = list(range(len(schema)))
    packing = plan_packing(schema, every, np.zeros(len(schema), dtype=bool), 200)
    assert max(map(len, packing.groups)) == 10
