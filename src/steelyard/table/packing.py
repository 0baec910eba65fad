"""Small codes joined: fewer look-ups for each pass over the rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from heapq import heapify, heapreplace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats, Ints
from steelyard._common.threads import run_blocks
from steelyard.kernels import pairs
from steelyard.table.codes import CodeBlock, Codes
from steelyard.table.schema import TableSchema

# Joint codes have to fit one byte. With few rows large tables cost more than they save:
# a joint code is spread and folded back for each of its members, in a pass each about
# the cost of as many look-ups.
_MAX_JOINT_CODES = 256
_MIN_ROWS_PER_CODE = 8
_MAX_JOINT_CODES_OF_FEW_ROWS = 16
_LOOK_UPS_PER_MEMBER = 4

# Attributes of a single code that may share a group. All packed rows have room for the
# members of the largest group.
_MAX_CONSTANTS = 16


@dataclass(frozen=True)
class Packing:
    """Attributes joined into groups whose joint code fits one byte.

    The joint code of attributes a, b, … is ``a + b * size_a + …``; a row of the packed
    table is the sum of the rows of its members. Two attributes of ten values take one
    look-up instead of two.
    """

    groups: tuple[tuple[int, ...], ...]
    """Attributes in each group."""

    lows: Ints
    """First code of each attribute that occurs: 1 if no cell is missing."""

    sizes: Ints
    """Number of codes of each attribute from there on."""

    offsets: Ints
    """Offsets of the attributes in the plain table."""

    @cached_property
    def strides(self) -> Ints:
        """What one more code of each attribute adds to its joint code, shape (d,)."""
        strides, sizes = np.ones(len(self.sizes), dtype=np.int64), self.sizes
        for group in self.groups:
            for before, j in pairwise(group):
                strides[j] = strides[before] * sizes[before]
        return strides

    @cached_property
    def places(self) -> Ints:
        """Group of each attribute, shape (d,)."""
        places = np.zeros(len(self.sizes), dtype=np.int64)
        for g, group in enumerate(self.groups):
            places[list(group)] = g
        return places

    @cached_property
    def _products(self) -> Ints:
        """Joint codes of each group."""
        last = [group[-1] for group in self.groups]
        return self.strides[last] * self.sizes[last]

    @cached_property
    def starts(self) -> NDArray[np.uint64]:
        """First packed row of each group."""
        return (np.cumsum(self._products) - self._products).astype(np.uint64)

    @property
    def n_codes(self) -> int:
        """How many rows a packed table has."""
        return int(self._products.sum())

    @cached_property
    def _members(self) -> Ints:
        """Attributes, group by group, as kernels read them: shape (a, 5)."""
        of = np.array([j for group in self.groups for j in group])
        sizes, strides, groups = self.sizes[of], self.strides[of], self.places[of]
        firsts, starts = self.offsets[of] + self.lows[of], self.starts[groups]
        repeats = self._products[groups] // (strides * sizes)
        columns = firsts, sizes, strides, starts.astype(np.int64), repeats
        return np.stack(columns, axis=1)

    def digits(self, joint: NDArray[Any], feature: int) -> Ints:
        """Codes of one attribute in joint codes of its group."""
        quotient = joint.astype(np.int64) // self.strides[feature]
        return quotient % self.sizes[feature] + self.lows[feature]

    def share(self, codes: NDArray[Any], features: Any) -> NDArray[np.uint8]:
        """Return what single codes of attributes add to the joint codes."""
        by_row = self.lows, self.sizes - 1, self.strides
        low, last, stride = (row[features, None] for row in by_row)
        digits = np.minimum(np.maximum(codes - low, 0), last)
        return (digits * stride).astype(np.uint8)

    def expand(self, table: Floats) -> Floats:
        """Turn a plain table (V, C) into a packed one (V', C)."""
        out = np.zeros((self.n_codes, table.shape[1]))
        pairs.expand(self._members, np.ascontiguousarray(table), out)
        return out

    def collapse(self, packed: Floats) -> Floats:
        """Turn packed counts (V', C) into plain ones (V, C): transpose of expand."""
        out = np.zeros((int(self.offsets[-1]), packed.shape[1]))
        pairs.collapse(self._members, np.ascontiguousarray(packed), out)
        return out

    def likely_codes(self, by_code: Floats) -> NDArray[np.int32]:
        """Guess the most frequent joint code of each group, given counts (V,).

        Columns are taken to be independent.
        """
        likely = []
        for group in self.groups:
            joint = 0
            for j in group:
                best = by_code[self.offsets[j] : self.offsets[j + 1]].argmax()
                joint += int(self.share(np.array([[best]]), [j])[0, 0])
            likely.append(joint)
        return np.array(likely, dtype=np.int32)


def pack_codes(
    codes: Codes, missing: NDArray[np.bool_], n_jobs: int | None = None
) -> tuple[Packing | None, NDArray[np.uint8]]:
    """Join the columns of an encoded table whose codes fit one byte.

    ``missing (d,)`` marks attributes in which code 0 occurs. Returned are the packing,
    None if no column is that narrow, and the joint codes (n, g).
    """
    narrow = [block for block in codes.blocks if block.values.dtype == np.uint8]
    features = [int(j) for block in narrow for j in block.features]
    packing = plan_packing(codes.schema, features, missing, codes.n_rows)
    n_groups = 0 if packing is None else len(packing.groups)
    packed = codes.workspace.zeros((codes.n_rows, n_groups), np.uint8)
    if packing is not None:
        for block in narrow:
            _pack_block(block, packing, packed, n_jobs)
    return packing, packed


def plan_packing(
    schema: TableSchema, features: list[int], missing: NDArray[np.bool_], n_rows: int
) -> Packing | None:
    """Return which columns whose codes fit one byte are joined; None without any."""
    if not features:
        return None
    lows = np.where(missing, 0, 1)
    sizes = np.maximum(np.diff(schema.offsets) - lows, 1)
    most = max(_MAX_JOINT_CODES_OF_FEW_ROWS, n_rows // _MIN_ROWS_PER_CODE)
    groups = _groups(features, sizes.tolist(), min(_MAX_JOINT_CODES, most), n_rows)
    return Packing(groups, lows, sizes, schema.offsets)


def _groups(
    features: list[int], sizes: list[int], most: int, n_rows: int
) -> tuple[tuple[int, ...], ...]:
    """First fit, largest first: groups with a limited number of joint codes.

    A group of m attributes and P joint codes costs ``n / m + a P`` for each attribute;
    one more has to lower that, unless there are next to no joint codes. Many attributes
    of a single code, such as bins by MDL of irrelevant columns, are spread.
    """
    groups: list[list[int]] = []
    product: list[int] = []
    """Joint codes of each group."""

    def fits(g: int, size: int) -> bool:
        joint, m = product[g] * size, len(groups[g])
        if joint <= _MAX_JOINT_CODES_OF_FEW_ROWS:
            return True
        added = _LOOK_UPS_PER_MEMBER * (joint - product[g]) * m * (m + 1)
        return joint <= most and added < n_rows

    constant = [j for j in features if sizes[j] == 1]
    is_spread = len(constant) > _MAX_CONSTANTS
    g = last = 0
    for j in sorted(features, key=lambda j: -sizes[j]):
        if is_spread and sizes[j] == 1:
            break
        # What was too full for an attribute is so for the next one of its size.
        g, last = g if sizes[j] == last else 0, sizes[j]
        while g < len(groups) and not fits(g, last):
            g += 1
        if g == len(groups):
            groups.append([])
            product.append(1)
        groups[g].append(j)
        product[g] *= last
    if is_spread:
        groups = groups or [[]]
        shortest = [(len(group), g) for g, group in enumerate(groups)]
        heapify(shortest)
        for j in constant:
            m, g = shortest[0]
            groups[g].append(j)
            heapreplace(shortest, (m + 1, g))
    return tuple(map(tuple, groups))


def _pack_block(
    block: CodeBlock, packing: Packing, packed: NDArray[np.uint8], n_jobs: int | None
) -> None:
    """Add the joint codes of one block's columns to ``packed``."""
    codes = np.arange(_MAX_JOINT_CODES) if block.look_up is None else block.look_up
    parts = packing.share(codes, block.features)
    target = packing.places[block.features].astype(np.uint64)

    def pack(rows: slice) -> None:
        pairs.pack(block.values[rows], parts, target, packed[rows])

    run_blocks(pack, len(packed), n_jobs)
