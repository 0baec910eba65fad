"""Compiling kernels: only once there is enough work for it.

Loading numba and its tables takes as long as a small fit, and compiling takes seconds.
Kernels that a first fit or prediction needs run as plain Python on few cells, or on
more in NumPy, with the same bits: the interpreter, NumPy and numba use the same
additions and the same libm.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from functools import update_wrapper
from time import thread_time
from typing import Any

import numpy as np

from steelyard._common import progress
from steelyard.exceptions import warn_user

# Cells of all arrays up to which a kernel may run as plain Python, or in NumPy, and
# seconds that a process spends so before kernels are compiled: about the time to load
# numba.
PLAIN_CELLS = 8192
NUMPY_CELLS = 1 << 18
SECONDS = 0.3

# Types in which the interpreter computes as numba does. Not the narrow floats, which
# NumPy keeps where numba widens them.
_EXACT = frozenset("?BHILQilqd")

# Nobody calls a kernel from C, and a wrapper for that takes a tenth of the compiling.
_OPTIONS = {"cache": True, "nogil": True, "no_cfunc_wrapper": True}


class _Thread(threading.local):
    """Whether a kernel of this thread runs plain; then so do those it calls."""

    is_plain = False


_thread = _Thread()
_making = threading.RLock()
_spent = 0.0


class Kernel:
    """A loop over arrays that numba compiles on first use and keeps on disk.

    The attributes are those by which numba recognises a function that it can call from
    other kernels, or write out in their place.
    """

    def __init__(self, function: Callable[..., Any], plain: int, **options: Any):
        update_wrapper(self, function)
        self.py_func = function
        self.targetoptions = {"inline": "never", **options}
        self._options = options
        self._plain = plain
        self._form = function
        self._compiled: Any = None

    def in_numpy(self, form: Callable[..., Any]) -> Callable[..., Any]:
        """Register a form of the loop in NumPy, for use until it is compiled.

        It takes cells of any type, and raises if its bits would differ.
        """
        self._form = form
        return form

    @property
    def compiled(self) -> Any:
        """The function as numba compiles it."""
        if self._compiled is None:
            with _making:
                if self._compiled is None:
                    compiling = _njit()(**_OPTIONS, **self._options)
                    self._compiled = _with_sound_cache(compiling(self.py_func))
        return self._compiled

    @property
    def _numba_type_(self) -> Any:
        return self.compiled._numba_type_

    def __call__(self, *args: Any) -> Any:
        """Run compiled, or in Python if that is less work."""
        if _thread.is_plain:
            return self._form(*args)
        any_type = self._form is not self.py_func
        if self._compiled is None and _is_small(args, self._plain, any_type):
            done, result = self._try_plain(args)
            if done:
                return result
        return self.compiled(*args)

    def _try_plain(self, args: tuple[Any, ...]) -> tuple[bool, Any]:
        """Run in Python or NumPy; after an exception, restore the arrays.

        Errors, overflow and division by zero are left to the compiled form.
        """
        global _spent
        before = [arg.copy("K") if isinstance(arg, np.ndarray) else arg for arg in args]
        start = thread_time()
        _thread.is_plain = True
        try:
            with np.errstate(over="raise", divide="raise", invalid="ignore"):
                return True, self._form(*args)
        except (ArithmeticError, ValueError, TypeError, IndexError):
            for arg, old in zip(args, before, strict=True):
                if isinstance(arg, np.ndarray) and arg.tobytes() != old.tobytes():
                    arg[...] = old
            return False, None
        finally:
            _thread.is_plain = False
            _spent += thread_time() - start


def _is_small(args: tuple[Any, ...], limit: int, any_type: bool = False) -> bool:
    """Whether arguments have at most ``limit`` cells, of types with equal results."""
    if not limit or _spent > SECONDS:
        return False
    cells = 0
    for arg in args:
        if isinstance(arg, np.ndarray):
            if not (any_type or arg.dtype.char in _EXACT):
                return False
            cells += arg.size
    return cells <= limit


def _with_sound_cache(compiled: Any) -> Any:
    """Compile a function again if its file in numba's cache is damaged."""
    from numba.core.caching import NullCache

    cache: Any = getattr(compiled, "_cache", None)
    load = getattr(cache, "load_overload", None)
    if load is None:  # numba is disabled
        return compiled

    def load_or_compile(*args: Any) -> Any:
        try:
            return load(*args)
        except Exception as error:
            # Of whatever kind: it comes from unpickling the file.
            compiled._cache = NullCache()
            _warn_of_damage(cache.cache_path, type(error).__name__)
            return None

    cache.load_overload = load_or_compile
    return compiled


@functools.cache
def _warn_of_damage(folder: str, error: str) -> None:
    warn_user(
        f"Compiled kernels in {folder} are damaged ({error}) and are compiled again, "
        "each time. Delete the folder.",
        RuntimeWarning,
    )


def _njit() -> Any:
    """Load numba; the first compilation is reported if somebody watches."""
    from numba import njit

    if progress.before_compiling is not None:
        from numba.core import event

        report, progress.before_compiling = progress.before_compiling, None

        class Once(event.Listener):
            def on_start(self, _: Any) -> None:
                event.unregister("numba:compile", self)
                report()

            def on_end(self, _: Any) -> None:
                pass

        event.register("numba:compile", Once())
    return njit


def kernel(*, plain: int = 0, **options: Any) -> Callable[[Callable[..., Any]], Kernel]:
    """Make a kernel of a function, which may run uncompiled on up to ``plain`` cells.

    Only for kernels whose work grows with the cells of their arrays: PLAIN_CELLS as
    they are, NUMPY_CELLS with a form ``in_numpy``.
    """
    return lambda function: Kernel(function, plain, **options)
