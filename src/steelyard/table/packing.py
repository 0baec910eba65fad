"""Small codes joined: fewer look-ups for each pass over the rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats, Ints
from steelyard._common.threads import row_blocks, run, thread_count
from steelyard.kernels import fitting, pairs, scoring
from steelyard.table.codes import CodeBlock, Codes
from steelyard.table.schema import TableSchema

# Joint codes have to fit one byte. With few rows large tables cost more than they save:
# a joint code is spread and folded back for each of its members, in a pass each about
# the cost of so many look-ups.
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

    lows: dict[int, int]
    """First code of each attribute that occurs: 1 where no cell is missing."""

    sizes: dict[int, int]
    """Number of codes of each attribute from there on."""

    offsets: Ints
    """Offsets of the attributes in the plain table."""

    @cached_property
    def starts(self) -> NDArray[np.uint64]:
        """First packed row of each group."""
        products = [self._product(group) for group in self.groups]
        return np.concatenate([[0], np.cumsum(products)[:-1]]).astype(np.uint64)

    @cached_property
    def members(self) -> NDArray[np.uint32]:
        """Plain rows of each packed row, shape (V', depth).

        Groups with fewer attributes are filled up with the row after the last, which is
        taken to be zero.
        """
        depth = max(map(len, self.groups))
        nothing = int(self.offsets[-1])
        parts = []
        for group in self.groups:
            joint = np.arange(self._product(group))
            rows = np.full((len(joint), depth), nothing, dtype=np.uint32)
            for k, j in enumerate(group):
                rows[:, k] = self.offsets[j] + self.digits(joint, group, j)
            parts.append(rows)
        return np.concatenate(parts)

    def digits(self, joint: NDArray[Any], group: tuple[int, ...], feature: int) -> Ints:
        """Codes of one attribute in joint codes of its group."""
        quotient = joint.astype(np.int64) // self.multiplier(group, feature)
        return quotient % self.sizes[feature] + self.lows[feature]

    def multiplier(self, group: tuple[int, ...], feature: int) -> int:
        """Say what one more code of an attribute adds to its joint code."""
        return self._product(group[: group.index(feature)])

    def share(
        self, codes: NDArray[Any], group: tuple[int, ...], feature: int
    ) -> NDArray[np.uint8]:
        """Say what codes of one attribute add to the joint code of its group."""
        digits = np.clip(codes - self.lows[feature], 0, self.sizes[feature] - 1)
        return (digits * self.multiplier(group, feature)).astype(np.uint8)

    def expand(self, table: Floats) -> Floats:
        """Turn a plain table (V, C) into a packed one (V', C)."""
        padded = np.concatenate([table, np.zeros((1, table.shape[1]))])
        out = np.zeros((len(self.members), table.shape[1]))
        scoring.gather(self.members, self._from_zero, padded, out)
        return out

    def collapse(self, packed: Floats) -> Floats:
        """Turn packed counts (V', C) into plain ones (V, C): transpose of expand."""
        out = np.zeros((int(self.offsets[-1]) + 1, packed.shape[1]))
        fitting.scatter(self.members, self._from_zero, packed, out)
        return out[:-1]

    @property
    def _from_zero(self) -> NDArray[np.uint64]:
        return np.zeros(self.members.shape[1], dtype=np.uint64)

    def likely_codes(self, by_code: Floats) -> NDArray[np.int32]:
        """Guess the most frequent joint code of each group, given counts (V,).

        Columns are taken to know nothing of each other.
        """
        likely = []
        for group in self.groups:
            joint = 0
            for j in group:
                best = by_code[self.offsets[j] : self.offsets[j + 1]].argmax()
                joint += int(self.share(np.array([best]), group, j)[0])
            likely.append(joint)
        return np.array(likely, dtype=np.int32)

    def _product(self, group: tuple[int, ...]) -> int:
        return prod(self.sizes[j] for j in group)


def pack_codes(
    codes: Codes, missing: NDArray[np.bool_], n_jobs: int | None = None
) -> tuple[Packing | None, NDArray[np.uint8]]:
    """Join the columns of an encoded table whose codes fit one byte.

    ``missing (d,)`` says in which attributes code 0 occurs. Returned are the packing,
    None where no column is that narrow, and the joint codes (n, g).
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
    """Say which columns whose codes fit one byte are joined; None without any."""
    if not features:
        return None
    lows = {j: 0 if missing[j] else 1 for j in features}
    sizes = {j: max(1, schema.features[j].n_codes - lows[j]) for j in features}
    most = max(_MAX_JOINT_CODES_OF_FEW_ROWS, n_rows // _MIN_ROWS_PER_CODE)
    groups = _groups(features, sizes, min(_MAX_JOINT_CODES, most), n_rows)
    return Packing(groups, lows, sizes, schema.offsets)


def _groups(
    features: list[int], sizes: dict[int, int], most: int, n_rows: int
) -> tuple[tuple[int, ...], ...]:
    """First fit, largest first: groups with at most so many joint codes.

    A group of m attributes and P joint codes costs ``n / m + a P`` for each attribute;
    one more has to lower that, unless there are next to no joint codes. Many attributes
    of a single code, such as bins by MDL of columns that say nothing, are spread.
    """
    is_spread = sum(sizes[j] == 1 for j in features) > _MAX_CONSTANTS
    groups: list[list[int]] = []
    # Joint codes of each group, and how many attributes it has.
    product, m = np.zeros((2, len(features)), dtype=np.int64)
    for j in sorted(features, key=lambda j: -sizes[j]):
        old, size = product[: len(groups)], m[: len(groups)]
        joint = old * sizes[j]
        added = _LOOK_UPS_PER_MEMBER * (joint - old) * size * (size + 1)
        fits = (joint <= most) & (added < n_rows)
        fits |= joint <= _MAX_JOINT_CODES_OF_FEW_ROWS
        g = int(fits.argmax()) if fits.any() else len(groups)
        if is_spread and sizes[j] == 1 and groups:
            g = int(size.argmin())
        if g == len(groups):
            groups.append([])
            product[g] = 1
        groups[g].append(j)
        product[g] *= sizes[j]
        m[g] += 1
    return tuple(map(tuple, groups))


def _pack_block(
    block: CodeBlock, packing: Packing, packed: NDArray[np.uint8], n_jobs: int | None
) -> None:
    """Add the joint codes of one block's columns to ``packed``."""
    parts = np.zeros((len(block.features), _MAX_JOINT_CODES), dtype=np.uint8)
    target = np.zeros(len(block.features), dtype=np.uint64)
    place = {j: g for g, group in enumerate(packing.groups) for j in group}
    for k, j in enumerate(block.features.tolist()):
        target[k] = place[j]
        code = np.arange(_MAX_JOINT_CODES)
        if block.look_up is not None:
            code = block.look_up[k]
        parts[k] = packing.share(code, packing.groups[place[j]], j)

    def pack(rows: slice) -> None:
        pairs.pack(block.values[rows], parts, target, packed[rows])

    for _ in run(pack, row_blocks(len(packed)), thread_count(n_jobs)):
        pass
