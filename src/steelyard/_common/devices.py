"""Devices: where a fit counts and passes over rows, and whether there is one."""

from __future__ import annotations

import re
import warnings
from functools import cache
from importlib import import_module
from typing import Any

from steelyard._common.checks import warn_user
from steelyard._common.settings import Check
from steelyard.exceptions import ParameterError

__all__ = ["DEVICE", "device_number", "has_device", "is_on_device", "use_device"]

_CUDA = re.compile(r"cuda(?::(\d+))?")

DEVICE = Check(
    "'cpu', 'cuda', 'cuda:' and a number, or 'auto'",
    lambda value: (
        isinstance(value, str)
        and (value in ("cpu", "auto") or _CUDA.fullmatch(value) is not None)
    ),
    ("cpu", "cuda", "auto"),
)


def has_device(name: str = "cuda") -> bool:
    """Whether a device can be used by ``device=name``.

    Parameters
    ----------
    name : str, default="cuda"
        "cpu", "cuda", or "cuda:1" for the second GPU.

    Returns
    -------
    bool
        False where the GPU, its driver or numba-cuda is missing.

    Examples
    --------
    >>> import steelyard as sy
    >>> sy.has_device("cpu")
    True
    """
    return name == "cpu" or not _lacks(device_number(name))


def device_number(name: str) -> int:
    """Return which GPU a name means."""
    found = _CUDA.fullmatch("cuda" if name == "auto" else name)
    if found is None:
        raise ParameterError(f"A device must be {DEVICE.text}. Got {name!r}.")
    return int(found[1] or 0)


def use_device(name: str) -> bool:
    """Make a device the current one; False for the CPU.

    "auto" is the first GPU, or the CPU where there is none, which is said once.
    """
    if name == "cpu":
        return False
    number = device_number(name)
    lacks = _lacks(number)
    if lacks and name == "auto":
        _say_once(lacks)
        return False
    if lacks:
        raise ParameterError(
            f"device={name!r} cannot be used: {lacks} Use device='cpu', or 'auto' to "
            "take a GPU where there is one."
        )
    import_module("numba.cuda").select_device(number)
    return True


@cache
def _say_once(lacks: str) -> None:
    warn_user(f"device='auto' uses the CPU: {lacks}", UserWarning)


@cache
def _lacks(number: int) -> str:
    """Say what a GPU needs and is not there; '' if nothing."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cuda = import_module("numba.cuda")
        if not cuda.is_available():
            return (
                "no GPU was found that CUDA can use. That takes an NVIDIA GPU, its "
                "driver, and numba-cuda: pip install 'steelyard[gpu]'."
            )
        n_devices = len(cuda.gpus)
    except Exception as error:
        return f"numba-cuda does not work here ({type(error).__name__}: {error})."
    if number >= n_devices:
        return f"there are {n_devices} GPUs, counted from 0."
    return ""


def is_on_device(array: Any) -> bool:
    """Whether something is an array in the memory of a GPU: of CuPy, PyTorch, numba."""
    # PyTorch has the attribute for all tensors, and raises for those on the CPU.
    try:
        return isinstance(getattr(array, "__cuda_array_interface__", None), dict)
    except (AttributeError, RuntimeError, TypeError):
        return False
