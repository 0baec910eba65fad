"""Whether there is a GPU, and rows that are on one."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any

from steelyard.exceptions import ParameterError, warn_user
from steelyard.fitting.recipe import DEVICE, RowsHere
from steelyard.model.training import TrainingSet


def has_device(name: str = "cuda") -> bool:
    """Whether a device can be used by ``device=name``.

    Parameters
    ----------
    name : str, default="cuda"
        "cpu", "cuda", or "cuda:1" for the second GPU.

    Returns
    -------
    bool
        False if the GPU, its driver or numba-cuda is missing.

    Examples
    --------
    >>> import steelyard as sy
    >>> sy.has_device("cpu")
    True
    """
    return name == "cpu" or not _lacks(device_number(name))


def device_number(name: str) -> int:
    """Return which GPU a name means."""
    if not DEVICE.accepts(name):
        raise ParameterError(f"A device must be {DEVICE.text}. Got {name!r}.")
    return int(name.partition(":")[2] or 0)


def use_device(name: str) -> bool:
    """Make a device the current one; False for the CPU.

    "auto" is the first GPU, or the CPU without one, with a warning once.
    """
    if name == "cpu":
        return False
    number = device_number(name)
    lacks = _lacks(number)
    if lacks and name == "auto":
        _warn_once(lacks)
        return False
    if lacks:
        raise ParameterError(
            f"device={name!r} cannot be used: {lacks} Use device='cpu', or 'auto' to "
            "take a GPU if there is one."
        )
    import_module("numba.cuda").select_device(number)
    return True


@cache
def _warn_once(lacks: str) -> None:
    warn_user(f"device='auto' uses the CPU: {lacks}", UserWarning)


@cache
def _lacks(number: int) -> str:
    """Return what is missing for the use of a GPU; '' if nothing."""
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


def rows_of(X: Any) -> RowsHere:
    """Return the rows of an array that is in the memory of a device."""
    from steelyard.gpu.arrays import ArrayRows

    return ArrayRows(X)


def placed(training: TrainingSet, device: str) -> TrainingSet:
    """Return training rows on the device that a setting names."""
    is_elsewhere = not training.place.is_here or not training.n_rows
    if is_elsewhere or not use_device(device):
        return training
    from steelyard.gpu.device_place import DevicePlace, refusal

    lacks = refusal(training)
    if lacks and device != "auto":
        raise ParameterError(f"device={device!r}: {lacks} Use device='cpu'.")
    if lacks:
        warn_user(f"device='auto' uses the CPU: {lacks}", UserWarning)
        return training
    return replace(training, place=DevicePlace())
