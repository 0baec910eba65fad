"""Row blocks and the threads that work on them."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")

_MIN_ROWS = 1 << 14
_MIN_LOOK_UPS = 1 << 19
_MAX_BLOCKS = 16

# Rows that are processed at a time, so that memory is bounded in tables of any length.
PIECE_ROWS = 1 << 18


def thread_count(n_jobs: int | None) -> int:
    """Resolve ``n_jobs`` as scikit-learn does: None is one, -1 is all cores."""
    if n_jobs == 1 or (n_jobs is None and "joblib" not in sys.modules):
        return 1  # joblib's contexts, which may say otherwise, need it loaded
    from joblib import effective_n_jobs

    return int(effective_n_jobs(n_jobs))


@cache
def _blas() -> ThreadpoolController:
    """Libraries with thread pools, looked up once."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep matrix products to one thread inside a ``with`` block.

    The matrices here are small, and on a busy machine the threads of OpenBLAS wait for
    each other: a fit with 500 weights took 8.9 s with them and 1.4 s without. The limit
    is the process's: of several threads the first one sets it, the last one lifts it.
    """
    global _n_limited, _limit
    with _limiting:
        if not _n_limited:
            _limit = _blas().limit(limits=1, user_api="blas")
        _n_limited += 1
    try:
        yield
    finally:
        with _limiting:
            _n_limited -= 1
            if not _n_limited:
                _limit.restore_original_limits()


_limiting = threading.Lock()
_n_limited = 0
_limit: Any = None


def row_blocks(n_rows: int, n_columns: int = 0) -> list[slice]:
    """Cut ``n_rows`` into at most 16 contiguous blocks of nearly equal size.

    A block has at least 2^14 rows, or 2^19 look-ups if ``n_columns`` of each row are
    looked up. Their number is even, so that two threads end together. The cuts depend
    on the table alone, never on the number of threads: sums over blocks are added up in
    block order, so results do not depend on ``n_jobs``.
    """
    wide = n_rows * n_columns // _MIN_LOOK_UPS
    n_blocks = min(_MAX_BLOCKS, max(-(-n_rows // _MIN_ROWS), wide))
    n_blocks += n_blocks % 2 if n_blocks > 1 else 0
    size = max(64, -(-n_rows // (64 * max(n_blocks, 1))) * 64)
    return [slice(lo, min(lo + size, n_rows)) for lo in range(0, n_rows, size)]


def pieces(rows: slice) -> Iterator[slice]:
    """Cut a block of rows into pieces of at most 2^18, in order.

    Work on a block goes piece by piece. Like blocks, pieces depend on the number of
    rows alone, wherever these are kept.
    """
    for lo in range(rows.start, rows.stop, PIECE_ROWS):
        yield slice(lo, min(lo + PIECE_ROWS, rows.stop))


def run(
    function: Callable[[Item], Result], items: Iterable[Item], n_threads: int
) -> Iterator[Result]:
    """Yield ``function(item)`` in the order of the items, on ``n_threads`` threads."""
    items = list(items)
    if n_threads <= 1 or len(items) <= 1 or getattr(_inside, "pool", False):
        # Not `map`: a StopIteration raised by the function would end it quietly.
        for item in items:
            yield function(item)
        return

    def work(item: Item) -> Result:
        # Work that is handed out must not hand out work itself: all threads might wait.
        _inside.pool = True
        return function(item)

    yield from _pool(n_threads).map(work, items)


def run_blocks(
    function: Callable[[slice], object], n_rows: int, n_jobs: int | None
) -> None:
    """Call a function with each block of ``n_rows`` rows, on as many threads."""
    if 0 < n_rows <= _MIN_ROWS:
        function(slice(0, n_rows))
        return
    for _ in run(function, row_blocks(n_rows), thread_count(n_jobs)):
        pass


_inside = threading.local()


@cache
def _pool(n_threads: int) -> ThreadPoolExecutor:
    """Threads that stay: a fit asks for them dozens of times."""
    return ThreadPoolExecutor(n_threads, thread_name_prefix="steelyard")


# Threads do not survive a fork; the child makes new ones.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)
