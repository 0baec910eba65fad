"""How kernels are started, on a device or in numba's simulator of one."""

from __future__ import annotations

from functools import cache
from importlib import import_module

import numpy as np
from numba import cuda
from numba.core import config

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
MANY_THREADS = 32 if SIMULATED else 1024
FEW_THREADS = 32 if SIMULATED else 256

# What the simulator pretends to have: little, so that tables are cut there too.
_SIMULATED_SHARED = 8192
_DEFAULT_SHARED = 48 * 1024
_MAX_SHARED_ATTRIBUTE = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_RESERVED = 1024


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
    few blocks more would have a round of their own. At least two for each
    multiprocessor: with fewer numba warns.
    """
    if SIMULATED:
        return -(-2 // width) * width
    fit = _shared_of_multiprocessor() // (shared + _RESERVED)
    n_blocks = _multiprocessors() * max(2, min(2048 // threads, fit))
    return max(1, n_blocks // width) * width


def copies_for(n_bytes: int, most: int) -> int:
    """How many copies of a table fit a block, a power of two.

    Threads side by side use different ones: fewer wait for each other at a bank of
    shared memory.
    """
    copies = 1
    while copies < most and 2 * copies * n_bytes <= most_shared():
        copies *= 2
    return copies


def threads_for(shared: int) -> int:
    """Threads of a block, a power of two, given its shared memory: 1024 in all."""
    if SIMULATED:
        return THREADS
    fit = _shared_of_multiprocessor() // (shared + _RESERVED)
    return MANY_THREADS if fit < 2 else THREADS if fit < 4 else FEW_THREADS


def launch(kernel, blocks, shared, *args, threads: int = THREADS) -> None:
    """Run a kernel with so many blocks, and bytes of shared memory for each."""
    if shared > _DEFAULT_SHARED and not SIMULATED:
        _allow_shared(kernel, tuple(map(kernel.typeof_pyval, args)))
    kernel[blocks, threads, 0, shared](*args)


@cache
def _allow_shared(kernel, types) -> None:
    """Let a kernel have more shared memory than it may by default."""
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
    """Return a decorator for kernels whose threads have so many registers at most.

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
