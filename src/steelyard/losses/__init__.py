"""Losses of class scores: values, gradients and second derivatives."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from steelyard.exceptions import ParameterError
from steelyard.losses.base import Loss
from steelyard.losses.brier import BrierLoss
from steelyard.losses.exponential import ExponentialLoss
from steelyard.losses.logarithmic import DevianceLoss, LogLoss

__all__ = [
    "LOSSES",
    "BrierLoss",
    "DevianceLoss",
    "ExponentialLoss",
    "LogLoss",
    "Loss",
    "resolve_loss",
]

LOSSES: dict[str, type[Loss]] = {
    "log": LogLoss,
    "brier": BrierLoss,
    "exponential": ExponentialLoss,
    "deviance": DevianceLoss,
}


def resolve_loss(setting: Any, published_gradient: bool = False) -> Loss:
    """Return the loss that a setting names.

    Parameters
    ----------
    setting : str or Loss
        "log", "brier", "exponential", "deviance", or a loss object.
    published_gradient : bool, default=False
        Whether the squared loss uses the truncated gradient that was printed.

    Returns
    -------
    Loss
        The loss.
    """
    if isinstance(setting, Loss):
        loss = setting
    elif isinstance(setting, str) and setting in LOSSES:
        loss = LOSSES[setting]()
    else:
        words = ", ".join(repr(name) for name in LOSSES)
        raise ParameterError(
            f"The 'loss' parameter must be one of {words}, or a Loss object. Got "
            f"{setting!r} instead."
        )
    if not published_gradient:
        return loss
    if not isinstance(loss, BrierLoss):
        raise ParameterError(
            f"published_gradient=True cannot be used with {type(loss).__name__}: only "
            "the squared loss was printed with a truncated gradient. Use "
            "loss='brier', or leave published_gradient off."
        )
    return BrierLoss(published_gradient=True)


def check_multiplier(owner: object, name: str) -> float:
    """Return a setting that must be a positive number."""
    value = getattr(owner, name)
    if isinstance(value, Real) and not isinstance(value, bool):
        number = float(value)
        if number > 0 and np.isfinite(number):
            return number
    raise ParameterError(
        f"The {name!r} parameter of {type(owner).__name__} must be a float in the "
        f"range (0, inf). Got {value!r} instead."
    )
