"""Losses of class scores: values, gradients and second derivatives."""

from __future__ import annotations

from typing import Any

from steelyard._common.settings import resolve_part
from steelyard.exceptions import ParameterError
from steelyard.losses.base import (
    BrierLoss,
    DevianceLoss,
    ExponentialLoss,
    LogLoss,
    Loss,
)

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
    """Return the loss that a setting names, with the printed gradient if asked for."""
    loss = resolve_part(setting, Loss, LOSSES, "loss")
    if not published_gradient:
        return loss
    if not loss.is_squared_error:
        raise ParameterError(
            f"published_gradient=True cannot be used with {type(loss).__name__}: only "
            "the squared loss was printed with a truncated gradient. Use "
            "loss='brier', or leave published_gradient off."
        )
    return BrierLoss(published_gradient=True)
