"""Sums in fixed point: 64-bit whole numbers as two 32-bit halves in shared memory.

Additions of whole numbers are exact in any order. Two additions of 32 bits with a carry
are 2.4 times as fast in shared memory as one of 64 (13 against 5.3 ms a pass over
100,000,000 rows of 25 joint codes on an H200).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import cuda as _cuda

from steelyard.kernels.cuda.launching import SIMULATED, simulated_module

# The simulator swaps the module while a function runs, which is not safe for one that
# kernels of other modules call from many threads.
cuda: Any = simulated_module() if SIMULATED else _cuda

_LOW = 0xFFFFFFFF


@cuda.jit(device=True, inline="always")
def to_units(x):
    """Return the whole number next to x."""
    return np.int64(math.floor(x + 0.5))


@cuda.jit(device=True, inline="always")
def _carry(high, at, old, part, value):
    """Add the higher half of an int64, and what its lower half carries over."""
    carry = (np.uint64(old) + np.uint64(part)) >> np.uint64(32)
    rest = np.uint32((np.uint64(value >> 32) + carry) & np.uint64(_LOW))
    if rest != 0:
        cuda.atomic.add(high, at, rest)


@cuda.jit(device=True, inline="always")
def add_fixed(low, high, at, value):
    """Add an int64 to the number whose halves are low[at] and high[at], uint32."""
    part = np.uint32(value & _LOW)
    _carry(high, at, cuda.atomic.add(low, at, part), part, value)


@cuda.jit(device=True, inline="always")
def whole(low, high, at):
    """Return the int64 whose halves are low[at] and high[at]."""
    return (np.int64(np.int32(high[at])) << 32) + np.int64(low[at])


@cuda.jit(device=True, inline="always")
def add_four(low, high, at0, at1, at2, at3, v0, v1, v2, v3):
    """Add four numbers at once: the lower halves first, so that none waits."""
    part0, part1 = np.uint32(v0 & _LOW), np.uint32(v1 & _LOW)
    part2, part3 = np.uint32(v2 & _LOW), np.uint32(v3 & _LOW)
    old0 = cuda.atomic.add(low, at0, part0)
    old1 = cuda.atomic.add(low, at1, part1)
    old2 = cuda.atomic.add(low, at2, part2)
    old3 = cuda.atomic.add(low, at3, part3)
    _carry(high, at0, old0, part0, v0)
    _carry(high, at1, old1, part1, v1)
    _carry(high, at2, old2, part2, v2)
    _carry(high, at3, old3, part3, v3)


@cuda.jit(device=True, inline="always")
def byte(word, r):
    """Return byte r of a word."""
    return np.uint32((np.uint64(word) >> np.uint64(8 * r)) & np.uint64(255))
