"""Arrays of CuPy or PyTorch in the memory of a GPU: they, and codes, stay there."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numba import cuda
from numpy.typing import NDArray

from steelyard._common.arrays import Floats, Ints, is_on_device
from steelyard.exceptions import ParameterError, TableError
from steelyard.fitting.recipe import Recipe, RowsHere
from steelyard.gpu.device_codes import ColumnPairs, DeviceCodes, bytes_to_device, padded
from steelyard.gpu.device_counts import DeviceNumbers, histograms
from steelyard.gpu.device_place import ArrayPlace, check_room
from steelyard.gpu.devices import use_device
from steelyard.kernels.cuda import gathering, passes, scattering
from steelyard.kernels.cuda.launching import (
    blocks_for,
    copies_for,
    empty,
    launch,
    most_shared,
    threads_for,
    to_device,
    zeros,
)
from steelyard.model.table_model import NBModel
from steelyard.model.training import TrainingSet
from steelyard.table.codes import Codes
from steelyard.table.encoder import TableEncoder
from steelyard.table.encoding import look_up_of
from steelyard.table.labels import check_two_classes, class_factors, encode_labels
from steelyard.table.rows import check_weights
from steelyard.table.schema import FeatureSchema, TableSchema

_KEPT_THERE = ("counts", "sums", "pairs")

# Cells of a joint table of two or more columns.
_MAX_JOINT = 1024

# Scores that are kept at a time, 128 MB of them.
_MAX_SCORES = 1 << 24


class ArrayRows(RowsHere):
    """A table of whole numbers on a device; its rows stay there, if they can."""

    def training(
        self, y: Any, sample_weight: Any, recipe: Recipe, owner: object
    ) -> TrainingSet:
        """Encode the rows on the device."""
        _check_recipe(recipe, owner)
        use_device(recipe.device)
        there = device_bytes(self.X)
        classes, labels = _labels(y, there.n_rows)
        check_two_classes(classes)
        weights = check_weights(_host(sample_weight), there.n_rows)
        encoder = recipe.encoding.encoder(recipe.n_jobs)
        encoder.schema_ = there.schema()
        encoder.n_features_in_ = len(encoder.schema_)
        encoder.ranges_ = [None] * len(encoder.schema_)
        codes = there.codes(encoder.schema_)
        place = ArrayPlace(codes, labels)
        training = TrainingSet(
            None,
            encoder,
            Codes(encoder.schema_, codes.n_rows, ()),
            classes,
            np.empty(0, dtype=np.uint32),
            weights,
            recipe,
            place=place,
        )
        if recipe.class_weight is not None:
            training = place.here(training)
            totals = training.given_counts.by_class
            factors = class_factors(recipe.class_weight, classes, totals)
            training = replace(training, class_factors=factors)
        stays = recipe.rows_needed in _KEPT_THERE
        return training if stays else place.here(training)

    def predicted(self, fitted: Any, method: str) -> Any:
        """Predict on the device; probabilities stay there, as its library's."""
        model = fitted._answering_model
        if not isinstance(model, NBModel) or len(model.schema.gaussian):
            raise ParameterError(
                f"A GPU does not predict with this {type(fitted).__name__}. Copy X to "
                "an array of NumPy."
            )
        if method not in ("predict", "predict_proba"):
            raise ParameterError(
                f"{method} of an array in the memory of a GPU is not there yet. Copy X "
                "to an array of NumPy."
            )
        there = device_bytes(self.X)
        codes = _known_codes(fitted.encoder_, there)
        _refuse_unknown(model, there, codes)
        out = _empty((codes.n_rows, model.n_classes), self.X)
        proba_on_device(model, codes, cuda.as_cuda_array(out))
        if method == "predict_proba":
            return out
        host = cuda.as_cuda_array(out).copy_to_host()[:, model.tie_order]
        return fitted.classes_[model.tie_order[host.argmax(axis=1)]]


def _check_recipe(recipe: Recipe, owner: object) -> None:
    """Refuse settings that are not for arrays on a device."""
    if recipe.device == "cpu":
        raise ParameterError(
            "X is in the memory of a GPU, and device='cpu'. Set device='cuda', where "
            f"{type(owner).__name__} has that setting, or copy X to an array of NumPy "
            "(X.get() of CuPy, X.cpu().numpy() of PyTorch)."
        )
    if recipe.encoding.categorical_features != "all":
        raise ParameterError(
            "Arrays in the memory of a GPU are tables of categories, one whole number "
            "for each. Set categorical_features='all', or copy X to an array of NumPy "
            "to have its numbers cut into bins."
        )


@dataclass(frozen=True)
class DeviceBytes:
    """A table of whole numbers as bytes by column on a device."""

    narrow: Any
    n_rows: int
    lows: Ints
    """What to add to each column."""

    is_bool: bool

    def schema(self) -> TableSchema:
        """Return the schema of categories that occur."""
        cells: Any = "booleans" if self.is_bool else "numbers"
        kind: Any = bool if self.is_bool else int
        features = []
        counted = histograms(self.narrow, self.n_rows)
        for low, counts in zip(self.lows.tolist(), counted, strict=True):
            values = tuple(kind(low + v) for v in np.flatnonzero(counts).tolist())
            features.append(FeatureSchema(None, "categorical", cells, values=values))
        return TableSchema(tuple(features))

    def codes(self, schema: TableSchema) -> DeviceCodes:
        """Return the codes by a schema."""
        dtype = np.dtype(bool if self.is_bool else np.uint8)
        codes = look_up_of(schema, dtype, self.lows)
        used = max(1, int(np.flatnonzero(codes.any(axis=0)).max(initial=0)) + 1)
        no_wide = np.empty(0, dtype=np.int64)
        features = np.arange(len(schema), dtype=np.int64)
        # New values may have any byte: they mean a missing cell.
        n_known = 256 if used > 128 else used
        meanings = tuple(row[:n_known] for row in codes)
        return DeviceCodes(
            schema, self.n_rows, self.narrow, features, meanings, None, no_wide
        )


def device_bytes(X: Any) -> DeviceBytes:
    """Take an array on a device as bytes by column, without a copy if it is that."""
    values = cuda.as_cuda_array(X)
    if values.ndim != 2 or not values.size:
        raise TableError(
            f"Expected a table of two dimensions with rows and columns, got shape "
            f"{tuple(values.shape)}."
        )
    if values.dtype.kind not in "biu":
        raise TableError(
            "Arrays in the memory of a GPU must hold whole numbers, not "
            f"{values.dtype}."
        )
    n_rows, n_columns = values.shape
    lows = np.zeros(n_columns, dtype=np.int64)
    is_bytes = values.dtype in (np.dtype(np.uint8), np.dtype(bool))
    # Columns one after the other, each of whole words.
    is_by_column = values.strides == (1, n_rows) and n_rows % 16 == 0
    if is_bytes and is_by_column:
        by_column = cuda.as_cuda_array(_BytesByColumn(values))
        return DeviceBytes(by_column, n_rows, lows, values.dtype.kind == "b")
    if not is_bytes:
        lows, highs = _extremes(values)
        if (highs - lows > 255).any():
            worst = int((highs - lows).argmax())
            raise TableError(
                f"Column {worst} has numbers from {lows[worst]} to {highs[worst]}. In "
                "the memory of a GPU a column may span 256 at most: copy X to an array "
                "of NumPy."
            )
    check_room(n_rows, n_columns)
    out = zeros((n_columns, padded(n_rows)), np.uint8)
    launch(scattering.narrow, blocks_for(0), 0, values, to_device(lows), out)
    return DeviceBytes(out, n_rows, lows, values.dtype.kind == "b")


class _BytesByColumn:
    """The memory of an array in column order, by column."""

    def __init__(self, values: Any) -> None:
        self._values = values  # so that the memory stays
        n_rows, n_columns = values.shape
        described = {"shape": (n_columns, n_rows), "typestr": "|u1", "strides": None}
        self.__cuda_array_interface__ = {**values.__cuda_array_interface__, **described}


def _extremes(values: Any) -> tuple[Ints, Ints]:
    most = np.iinfo(np.int64)
    lows = to_device(np.full(values.shape[1], most.max))
    highs = to_device(np.full(values.shape[1], most.min))
    blocks = max(1, blocks_for(0) // values.shape[1]), values.shape[1]
    launch(scattering.extremes, blocks, 0, values, lows, highs)
    return lows.copy_to_host(), highs.copy_to_host()


def _labels(y: Any, n_rows: int) -> tuple[NDArray[Any], Any]:
    """Return the classes, and their positions on the device, four rows to a word."""
    if y is None or len(y) != n_rows:
        n_labels = 0 if y is None else len(y)
        raise TableError(
            f"The table has {n_rows} rows, but there are {n_labels} labels."
        )
    if is_on_device(y) and cuda.as_cuda_array(y).dtype.kind in "biu":
        column = cuda.as_cuda_array(y).reshape(n_rows, 1)
        on_device = device_bytes(column)
        (values,) = (feature.values for feature in on_device.schema().features)
        classes = np.array(values, dtype=column.dtype)
        share = np.zeros((1, 256), dtype=np.uint8)
        share[0, classes.astype(np.int64) - on_device.lows[0]] = np.arange(len(classes))
        out = zeros((1, on_device.narrow.shape[1]), np.uint8)
        one = np.array([0], dtype=np.int32), np.array([0, 1], dtype=np.int32)
        plan = (to_device(share), *map(to_device, one), out)
        launch(scattering.pack, blocks_for(0), 0, on_device.narrow, *plan)
        return classes, out.view(np.uint32).reshape(out.size // 4)
    classes, labels = encode_labels(_host(y))
    if len(classes) > 256:
        raise TableError(f"There are {len(classes)} classes; a GPU takes 256 at most.")
    return classes, bytes_to_device(labels)


def _host(array: Any) -> Any:
    """Return an array of NumPy of one on a device; all else as it is."""
    return cuda.as_cuda_array(array).copy_to_host() if is_on_device(array) else array


def _known_codes(encoder: TableEncoder, given: DeviceBytes) -> DeviceCodes:
    schema = encoder.schema_
    if len(schema) != given.narrow.shape[0] or {f.kind for f in schema.features} != {
        "categorical"
    }:
        raise TableError(
            f"X has {given.narrow.shape[0]} columns of whole numbers; the model was "
            f"fitted to {encoder.n_features_in_} columns, which must all be categories."
        )
    # Values that the model has not seen may have any byte.
    codes = given.codes(schema)
    look_up = look_up_of(schema, np.dtype(np.uint8), given.lows)
    return replace(codes, meanings=tuple(look_up))


def _refuse_unknown(model: NBModel, given: DeviceBytes, codes: DeviceCodes) -> None:
    """Raise an error for categories never seen, if the model averages over them."""
    if model.marginal is None:
        return
    counted = histograms(given.narrow, given.n_rows)
    of_columns = zip(counted, codes.meanings, model.marginal.columns, strict=True)
    for j, (counts, meanings, is_averaged) in enumerate(of_columns):
        unseen = np.flatnonzero((counts > 0) & (meanings == 0))
        if is_averaged and unseen.size:
            raise TableError(
                f"Column {j} has the value {given.lows[j] + unseen[0]}, which training "
                "never saw. The model averages over what it may be, which a GPU does "
                "not: copy X to an array of NumPy, or set unknown='sum'."
            )


def _empty(shape: tuple[int, int], like: Any) -> Any:
    """Return an empty array of the same library as another, from its memory pool."""
    library = sys.modules.get(type(like).__module__.partition(".")[0])
    if library is not None and library.__name__ == "torch":
        return library.empty(shape, dtype=library.float64, device=like.device)
    if library is not None and library.__name__ == "cupy":
        return library.empty(shape)
    return cuda.device_array(shape)


def proba_on_device(model: NBModel, codes: DeviceCodes, out: Any = None) -> Any:
    """Posterior probabilities, (n, K) float64 on the device; in ``out`` if given."""
    if out is None:
        out = empty((codes.n_rows, model.n_classes), np.float64)
    is_narrow = codes.wide is None and codes.numbers is None
    if is_narrow and model.n_classes == 2 and np.isfinite(model.log_prior).all():
        tables = _trimmed(_spread(model.table[:, 1] - model.table[:, 0], codes), codes)
        pairs = ColumnPairs.of(np.array(list(map(len, tables))), 1, _MAX_JOINT)
        if 8 * int(pairs.places[-1]) <= most_shared():
            _logistic(model, codes, pairs, pairs.join(tables), out)
            return out
    _softmax(model, codes, out)
    return out


def _trimmed(tables: list[Floats], codes: DeviceCodes) -> list[Floats]:
    """Leave out stored values that mean nothing, all but the first after the others."""
    observed = (np.flatnonzero(stored).max(initial=0) for stored in codes.meanings)
    return [table[: last + 2] for table, last in zip(tables, observed, strict=True)]


def _spread(table: Floats, codes: DeviceCodes) -> list[Floats]:
    """Return the table of each column by its stored values."""
    offsets = codes.schema.offsets
    both = zip(codes.features.tolist(), codes.meanings, strict=True)
    return [table[offsets[j] + stored] for j, stored in both]


def _logistic(
    model: NBModel,
    codes: DeviceCodes,
    pairs: ColumnPairs,
    table: Floats,
    out: Any,
) -> None:
    plan = pairs.plan(codes.narrow.shape[1] // 4)
    shared = 8 * len(table)
    launch(
        gathering.logistic,
        blocks_for(shared),
        shared,
        *(codes.words, codes.n_rows, *plan),
        *(to_device(table), float(model.log_prior[1] - model.log_prior[0])),
        *(float(model.link_scale), out),
    )


def _softmax(model: NBModel, codes: DeviceCodes, out: Any) -> None:
    width = model.n_classes
    kernel, copies, shared, given = _gatherer(model, codes)
    threads = threads_for(shared)
    blocks = blocks_for(shared, threads, width)
    numbers = DeviceNumbers(codes.numbers, model.gaussian)
    factors = to_device(model.gaussian.factors)
    base, n_rows = to_device(model.log_prior), padded(codes.n_rows)
    most = padded(min(_MAX_SCORES // width, n_rows))
    for row in range(0, n_rows, most):
        size = min(most, n_rows - row)
        inside = min(size, codes.n_rows - row)
        scores = empty((width, size), np.float64)
        place = (np.uint32(copies), base, row // 4, size // 4, scores)
        launch(kernel, blocks, shared, *given, *place, threads=threads)
        if codes.wide is not None:
            wide = codes.wide, to_device(codes.wide_starts), to_device(model.table)
            launch(passes.gather_wide, blocks_for(0), 0, *wide, row, inside, scores)
        if codes.numbers is not None:
            numbers.add(factors, row, inside, scores)
        rows = (row, codes.n_rows, out)
        scale = float(model.link_scale)
        launch(gathering.softmax, blocks_for(0), 0, scores, scale, *rows)


def _gatherer(
    model: NBModel, codes: DeviceCodes
) -> tuple[Any, int, int, tuple[Any, ...]]:
    """Return a kernel, copies of its table, their bytes, and what it is given first."""
    # Without narrow columns there is one of zeros, which adds nothing.
    spread, words = _spread(model.table, codes), codes.words_or_zeros()
    tables = _trimmed(spread, codes) or [np.zeros((1, model.n_classes))]
    pairs = ColumnPairs.of(np.array(list(map(len, tables))), 1, _MAX_JOINT)
    n_bytes = 8 * int(pairs.places[-1])
    if n_bytes <= most_shared():
        plan, table = pairs.plan(words.size // len(tables)), pairs.join(tables)
        copies = copies_for(n_bytes)
        given = (words, *plan, to_device(table.T))
        return gathering.gather_pairs, copies, copies * n_bytes, given
    starts = np.cumsum([0, *map(len, spread)])[:-1].astype(np.uint32)
    given = (words, to_device(starts), to_device(np.concatenate(spread).T))
    return passes.gather_far, 1, 0, given
