"""Starting kernels on a GPU, and what they share: memory, fixed-point sums, losses."""

from __future__ import annotations

import math
from functools import cache
from importlib import import_module
from types import FunctionType
from typing import Any

import numpy as np
from numba import cuda
from numba.core import config

from steelyard.kernels import losses
from steelyard.kernels.losses import DEVIANCE

SIMULATED = bool(config.ENABLE_CUDASIM)
"""Whether kernels run in the simulator, which is far slower: few threads do."""


def _load_compiler() -> None:
    """Load numba-cuda's compiler, whose 0.30 asks for a name NumPy 2.5 has dropped."""
    name = "row_stack"
    if SIMULATED or name in vars(np):
        return
    setattr(np, name, np.vstack)
    try:
        import_module("numba.cuda.np.arrayobj")
    finally:
        delattr(np, name)


_load_compiler()

THREADS = 32 if SIMULATED else 512
MAX_THREADS = 32 if SIMULATED else 1024
MIN_THREADS = 32 if SIMULATED else 256

# Shared memory in the simulator: little, so that tables are cut there too.
_SIMULATED_SHARED = 8192
_DEFAULT_SHARED = 48 * 1024
_MAX_SHARED_ATTRIBUTE = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_RESERVED = 1024

# Copies of a table that is gathered, in shared memory.
_MAX_COPIES = 8


@cache
def most_shared() -> int:
    """Bytes of shared memory that one block may have."""
    if SIMULATED:
        return _SIMULATED_SHARED
    return int(cuda.get_current_device().MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)


@cache
def _shared_of_multiprocessor() -> int:
    return int(cuda.get_current_device().MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)


@cache
def _multiprocessors() -> int:
    return 2 if SIMULATED else int(cuda.get_current_device().MULTIPROCESSOR_COUNT)


def blocks_for(shared: int, threads: int = THREADS, width: int = 1) -> int:
    """Blocks that fill the device, given the shared memory of each.

    Their number is a multiple of ``width``, and at most what runs in whole rounds: a
    few blocks more would need another round. At least two for each
    multiprocessor: with fewer numba warns.
    """
    if SIMULATED:
        return -(-2 // width) * width
    fit = _shared_of_multiprocessor() // (shared + _RESERVED)
    n_blocks = _multiprocessors() * max(2, min(2048 // threads, fit))
    return max(1, n_blocks // width) * width


def copies_for(n_bytes: int) -> int:
    """How many copies of a table fit a block, a power of two.

    Threads side by side use different ones: fewer wait for each other at a bank of
    shared memory.
    """
    copies = 1
    while copies < _MAX_COPIES and 2 * copies * n_bytes <= most_shared():
        copies *= 2
    return copies


def threads_for(shared: int) -> int:
    """Threads of a block, a power of two, given its shared memory: 1024 in all."""
    if SIMULATED:
        return THREADS
    fit = _shared_of_multiprocessor() // (shared + _RESERVED)
    return MAX_THREADS if fit < 2 else THREADS if fit < 4 else MIN_THREADS


def launch(kernel, blocks, shared, *args, threads: int = THREADS) -> None:
    """Run a kernel with a number of blocks, and bytes of shared memory for each."""
    if shared > _DEFAULT_SHARED and not SIMULATED:
        _allow_shared(kernel, tuple(map(kernel.typeof_pyval, args)))
    kernel[blocks, threads, 0, shared](*args)


@cache
def _allow_shared(kernel, types) -> None:
    """Allow a kernel more shared memory than the default."""
    from numba.cuda.cudadrv.driver import driver

    function = kernel.compile(types)._codelibrary.get_cufunc()
    n_bytes = most_shared()
    if hasattr(function, "kernel"):
        from cuda.bindings.driver import CUfunction_attribute

        attribute = CUfunction_attribute(_MAX_SHARED_ATTRIBUTE)
        device = cuda.get_current_device().id
        driver.cuKernelSetAttribute(attribute, n_bytes, function.handle, device)
    else:  # before numba-cuda was built on cuda.core
        driver.cuFuncSetAttribute(function.handle, _MAX_SHARED_ATTRIBUTE, n_bytes)


def kernel_of(registers: int):
    """Return a decorator for kernels with a limit of registers per thread.

    Fewer let more threads run at a time, which hides the latency of memory.
    """
    options = {} if SIMULATED else {"max_registers": registers}
    return lambda function: cuda.jit(**options)(function)


def simulated_module():
    """Return what functions on the device use of ``numba.cuda``, for the simulator."""
    from types import SimpleNamespace

    from numba.cuda.simulator.kernelapi import FakeCUDAAtomic

    def jit(**options):
        return lambda function: function

    return SimpleNamespace(atomic=FakeCUDAAtomic(), jit=jit)


def to_device(values):
    """Copy a NumPy array to the device."""
    return cuda.to_device(np.ascontiguousarray(values))


def empty(shape, dtype):
    """Return an array on the device, as its memory is."""
    return cuda.device_array(shape, dtype)


def zeros(shape, dtype):
    """Return an array of zeros on the device."""
    array = empty(shape, dtype)
    if array.size:
        fill(array.reshape(array.size), np.dtype(dtype).type(0))
    return array


def fill(array, value):
    """Put one value everywhere in an array of one dimension on the device."""
    launch(_fill, blocks_for(0), 0, array, value)


@cuda.jit
def _fill(array, value):
    for i in range(cuda.grid(1), array.size, cuda.gridsize(1)):
        array[i] = value


# The simulator swaps the module while a function runs, which is not safe for one that
# kernels of other modules call from many threads.
_device: Any = simulated_module() if SIMULATED else cuda

_LOW = 0xFFFFFFFF


@_device.jit(device=True, inline="always")
def to_units(x):
    """Return the whole number next to x."""
    return np.int64(math.floor(x + 0.5))


@_device.jit(device=True, inline="always")
def _carry(high, at, old, part, value):
    """Add the higher half of an int64, and what its lower half carries over."""
    carry = (np.uint64(old) + np.uint64(part)) >> np.uint64(32)
    rest = np.uint32((np.uint64(value >> 32) + carry) & np.uint64(_LOW))
    if rest != 0:
        _device.atomic.add(high, at, rest)


@_device.jit(device=True, inline="always")
def add_fixed(low, high, at, value):
    """Add an int64 to the number whose halves are low[at] and high[at], uint32."""
    part = np.uint32(value & _LOW)
    _carry(high, at, _device.atomic.add(low, at, part), part, value)


@_device.jit(device=True, inline="always")
def whole(low, high, at):
    """Return the int64 whose halves are low[at] and high[at]."""
    return (np.int64(np.int32(high[at])) << 32) + np.int64(low[at])


@_device.jit(device=True, inline="always")
def add_four(low, high, at0, at1, at2, at3, v0, v1, v2, v3):
    """Add four numbers at once: the lower halves first, so that no thread waits."""
    part0, part1 = np.uint32(v0 & _LOW), np.uint32(v1 & _LOW)
    part2, part3 = np.uint32(v2 & _LOW), np.uint32(v3 & _LOW)
    old0 = _device.atomic.add(low, at0, part0)
    old1 = _device.atomic.add(low, at1, part1)
    old2 = _device.atomic.add(low, at2, part2)
    old3 = _device.atomic.add(low, at3, part3)
    _carry(high, at0, old0, part0, v0)
    _carry(high, at1, old1, part1, v1)
    _carry(high, at2, old2, part2, v2)
    _carry(high, at3, old3, part3, v3)


@_device.jit(device=True, inline="always")
def byte(word, r):
    """Return byte r of a word."""
    return np.uint32((np.uint64(word) >> np.uint64(8 * r)) & np.uint64(255))


# ------------------------------------------------------------------------------- losses


def _for_device(kernel, **replaced):
    """Compile the text of a kernel for the device, with other functions inside."""
    function = kernel.py_func
    copied = FunctionType(function.__code__, {**function.__globals__, **replaced})
    return cuda.jit(device=True)(copied)


@cuda.jit(device=True)
def _exp(x):
    return math.exp(x)


_any_odds_loss = _for_device(losses.odds_loss, _exp=_exp)
_posterior = _for_device(losses.posterior, _exp=_exp)
_any_scores_loss = _for_device(losses.scores_loss, _exp=_exp, posterior=_posterior)


@cuda.jit(device=True)
def odds_loss(f, positive, kind, a):
    """Loss and slope of the log-odds f of the second class: two numbers."""
    if kind == DEVIANCE:
        s = 1.0 if positive else -1.0
        t = -a * s * f
        e = math.exp(-abs(t))
        q = (1.0 if t > 0.0 else e) / (1.0 + e)
        return max(t, 0.0) + math.log1p(e), -a * s * q
    return _any_odds_loss(f, positive, kind, a)


@cuda.jit(device=True)
def _exponentials(s, at, width, m, a):
    """Return the largest of some scores, and the sum of exp(a (s - it)).

    Scores begin at a position, with a stride of m.
    """
    top, total, k = s[at], 0.0, at
    for _ in range(1, width):
        k += m
        top = max(top, s[k])
    k = at
    for _ in range(width):
        total += math.exp(a * (s[k] - top))
        k += m
    return top, total


@cuda.jit(device=True)
def scores_loss(s, units, i, m, y, u, kind, a, scale):
    """Write the gradient of row i in units; return its loss and largest slope.

    Scores s (K * m,) are by class, and become gradients unless the loss is the
    deviance. Its exponentials are computed twice rather than kept: threads have no room
    for them.
    """
    width, step, total, largest = s.size // m, m, 0.0, 0.0
    at, true = np.uint64(i), np.uint64(i + y * m)
    m = np.uint64(m)
    z = s[true]
    if kind == DEVIANCE:
        top, norm = _exponentials(s, at, width, m, a)
        part = 1.0 / norm
        # The sum of the other classes keeps its digits if the true class has nearly
        # everything.
        others = 0.0
        for _ in range(width):
            if at != true:
                p = math.exp(a * (s[at] - top)) * part
                others += p
                largest = max(largest, p)
                units[at] = to_units(u * a * p * scale)
            at += m
        if others < 0.5:
            total = -u * math.log1p(-others)
        else:
            total = u * (a * (top - z) + math.log(norm))
        units[true] = to_units(-u * a * others * scale)
        return total, u * abs(a) * max(largest, others)
    row = s[i::step]
    total = _any_scores_loss(row, y, u, kind, a, 0.0)
    for c in range(width):
        # A loss that is not a number ends the step, whatever its gradient is.
        d = row[c] if row[c] == row[c] else 0.0
        largest = max(largest, abs(d))
        units[at] = to_units(d * scale)
        at += m
    return total, largest


@cuda.jit(device=True)
def mixture_loss(s, units, i, m, y, u, alpha, printed, scale):
    """Squared error of a mixture of two posteriors, s (2 K * m,), as ``scores_loss``.

    Returns the loss and its derivative with respect to alpha.
    """
    k = s.size // m // 2
    at, true = np.uint64(i), np.uint64(i + y * m)
    half, m = np.uint64(k * m), np.uint64(m)
    top_d, norm_d = _exponentials(s, at, k, m, 1.0)
    top_i, norm_i = _exponentials(s, at + half, k, m, 1.0)
    total, d_alpha, inner_d, inner_i = 0.0, 0.0, 0.0, 0.0
    for _ in range(k):
        p = math.exp(s[at] - top_d) / norm_d
        q = math.exp(s[at + half] - top_i) / norm_i
        r = alpha * p + (1.0 - alpha) * q - (1.0 if at == true else 0.0)
        total += 0.5 * u * r * r
        d_alpha += u * r * (p - q)
        inner_d += r * p
        inner_i += r * q
        at += m
    at = np.uint64(i)
    for _ in range(k):
        p = math.exp(s[at] - top_d) / norm_d
        q = math.exp(s[at + half] - top_i) / norm_i
        r = alpha * p + (1.0 - alpha) * q - (1.0 if at == true else 0.0)
        d = u * alpha * p * (r * (1.0 - p) if printed else r - inner_d)
        units[at] = to_units(d * scale)
        units[at + half] = to_units(u * (1.0 - alpha) * q * (r - inner_i) * scale)
        at += m
    return total, d_alpha
