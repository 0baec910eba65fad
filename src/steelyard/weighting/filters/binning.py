"""Training rows in which every attribute has codes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from steelyard._common.threads import pieces, run, thread_count
from steelyard.model.training import TrainingSet
from steelyard.table.cells import bins_of
from steelyard.table.codes import CodeBlock, code_dtype
from steelyard.table.discretizers import MDLDiscretizer
from steelyard.table.schema import FeatureSchema, TableSchema


def with_bins(training: TrainingSet) -> TrainingSet:
    """Cut Gaussian attributes into bins by MDL, so that filters can count them.

    Missing numbers get code 0. The model knows nothing of these bins.
    """
    gaussian = training.schema.gaussian
    if not len(gaussian):
        return training
    training = training.place.here(training)
    codes = training.codes
    discretizer = MDLDiscretizer()

    def cut(g: int) -> tuple[FeatureSchema, CodeBlock]:
        j = int(gaussian[g])
        column = np.ascontiguousarray(codes.number_column(g))
        known = ~np.isnan(column)
        weights = None if training.weights is None else training.weights[known]
        feature = codes.schema.features[j]
        edges = np.empty(0)
        if known.any():
            edges = discretizer.column_edges(
                column[known],
                training.labels[known],
                training.n_classes,
                weights,
                column=(j, feature.name),
            )
        binned = FeatureSchema(
            feature.name, "binned", feature.cells, edges=tuple(edges.tolist())
        )
        cells = codes.workspace.zeros((codes.n_rows, 1), code_dtype(binned.n_codes))
        for rows in pieces(slice(0, codes.n_rows)):
            cells[rows, 0] = bins_of(binned, column[rows])
        return binned, CodeBlock(cells, gaussian[g : g + 1])

    features, blocks = list(codes.schema.features), list(codes.blocks)
    cuts = run(cut, range(len(gaussian)), thread_count(training.n_jobs))
    for j, (feature, block) in zip(gaussian.tolist(), cuts, strict=True):
        features[j] = feature
        blocks.append(block)
    schema = TableSchema(tuple(features))
    coded = replace(codes, schema=schema, blocks=tuple(blocks), numbers=())
    return replace(training, codes=coded)
