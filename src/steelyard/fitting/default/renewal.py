"""Cut points and pairs that are chosen again while learning goes on."""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import replace

import numpy as np

from steelyard._common.arrays import Floats, Ints
from steelyard.fitting.default.column_pairs import ColumnPair, coded_views, sides
from steelyard.fitting.default.kept_rows import Continued, codes_of, moved_codes
from steelyard.model.training import TrainingSet
from steelyard.proba.counts import count
from steelyard.table.by_schema import bins_of
from steelyard.table.schema import FeatureSchema, TableSchema


def recut(training: TrainingSet, sample: TrainingSet) -> TrainingSet:
    """Return kept rows and a chunk without pairs, with the cut points of a sample."""
    schema = _recut(training, sample)
    return _coded(training, schema, list(range(len(schema))))


def renewed(
    training: TrainingSet, alone: TrainingSet, pairs: list[ColumnPair]
) -> TrainingSet:
    """Return kept rows and a chunk with other cut points and pairs of columns.

    The cut points are those of ``alone``. What was counted of bins that change
    is divided among new ones as these rows are; a new pair is counted in them.
    """
    old, plain = training.schema, training.schema.without_pairs
    known = {
        tuple(old.columns[side.feature] for side in f.sides): j
        for j, f in enumerate(old.features)
        if f.sides
    }
    views, new = coded_views(alone.schema), alone.schema.features
    found, sources = [], list(range(len(plain)))
    for pair in pairs:
        if pair[0] not in views or pair[1] not in views:
            continue
        j = known.get(pair)
        own = () if j is None else old.features[j].sides
        same = [new[side.feature] == old.features[side.feature] for side in own]
        a, b = own if own and all(same) else sides(alone, [pair])[0]
        found.append((a, b))
        sources.append(-1 if j is None else j)
    return _coded(training, alone.schema.with_pairs(found), sources)


def _recut(training: TrainingSet, sample: TrainingSet) -> TableSchema:
    """Return the schema without pairs, with the cut points of a sample."""
    plain, place = training.schema.without_pairs, training.place
    assert isinstance(place, Continued)
    if not any(own is not None for own in place.numbers):
        return plain
    with warnings.catch_warnings():
        # What there is to say of columns was said of the first chunk.
        warnings.simplefilter("ignore")
        rows = np.arange(sample.n_rows)
        new = sample.re_encoded(rows, sample.sample_weight).schema

    def renew(column: int, old: FeatureSchema, new: FeatureSchema) -> FeatureSchema:
        is_known = place.numbers[column] is not None
        if is_known and old.kind == new.kind == "binned" and old.edges != new.edges:
            return replace(old, edges=new.edges, fill=new.fill)
        return old

    if plain.columns != new.columns:
        return plain
    features = zip(plain.columns, plain.features, new.features, strict=True)
    return TableSchema(tuple(renew(*entry) for entry in features))


def _coded(
    training: TrainingSet, schema: TableSchema, sources: list[int]
) -> TrainingSet:
    """Return the rows by another schema, with what is known of all earlier rows.

    ``sources`` says which attribute each one was before, -1 for none.
    """
    place, old, k = training.place, training.codes, training.n_classes
    assert isinstance(place, Continued)
    encoder = copy(training.encoder)
    encoder.schema_ = schema
    plain, before = schema.without_pairs, old.schema.without_pairs
    columns, features = [], zip(plain.features, before.features, strict=True)
    same = [a == b for a, b in features]
    kept = moved_codes(old, before)
    for j in plain.coded.tolist():
        numbers = None if same[j] else place.numbers[plain.columns[j]]
        feature = plain.features[j]
        columns.append(kept.column(j) if numbers is None else bins_of(feature, numbers))
    numbers = [kept.number_column(g) for g in range(kept.n_numbers)]
    codes = codes_of(plain, kept.n_rows, columns, numbers)
    if schema.is_pair.any():
        codes = codes.with_pairs(schema, training.n_jobs)
    assert training.sample_weight is not None, "those of kept rows"
    rows = training.labels, training.sample_weight
    by_code = count(codes, *rows, k, training.n_jobs).by_code
    table = np.zeros_like(by_code)
    for j, source in enumerate(sources):
        part = slice(*schema.offsets[j : j + 2])
        if not schema.features[j].is_coded:
            continue
        if source < 0:
            of_rows = np.maximum(by_code[part].sum(axis=0), 1e-300)
            by_code[part] *= place.counts.by_class / of_rows
            continue
        earlier = slice(*old.schema.offsets[source : source + 2])
        amounts = place.counts.by_code[earlier], place.rest.table[earlier]
        if schema.features[j] != old.schema.features[source]:
            both = old.column(source), codes.column(j)
            amounts = _divided(*amounts, *both, *rows, part.stop - part.start)
        by_code[part], table[part] = amounts
    counts = replace(place.counts, schema=schema, by_code=by_code)
    rest = replace(place.rest, table=table)
    place = Continued(counts, rest, place.numbers)
    return replace(training, encoder=encoder, codes=codes, place=place)


def _divided(
    counts: Floats,
    rest: Floats,
    old: Ints,
    new: Ints,
    labels: Ints,
    weights: Floats,
    n_new: int,
) -> tuple[Floats, Floats]:
    """Divide counts and a linear term by old codes among new ones, as rows are."""
    shape = len(counts), n_new, counts.shape[1]
    flat = np.ravel_multi_index((old, new, labels), shape)
    mass = np.bincount(flat, weights, minlength=np.prod(shape)).reshape(shape)
    # A code of no row goes where its nearest neighbour goes; none is nearest to 0.
    pooled = mass.sum(axis=2)
    pooled[0, 0] += not pooled[0].any()
    present = np.flatnonzero(pooled.any(axis=1))
    distance = np.abs(np.arange(len(counts))[:, None] - present)
    pooled = pooled[present[distance.argmin(axis=1)]]
    pooled /= pooled.sum(axis=1, keepdims=True)
    within = mass.sum(axis=1)
    # One, where all rows are kept.
    factor = np.divide(counts, within, out=np.zeros_like(counts), where=within > 0)
    out = (mass * factor[:, None, :]).sum(axis=0)
    return out + pooled.T @ np.where(within > 0, 0.0, counts), pooled.T @ rest
