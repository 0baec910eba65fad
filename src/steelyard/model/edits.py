"""A record of changes by hand to a model that is a sum, and how they are undone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from steelyard._common.arrays import Floats
from steelyard.model.marginal import Marginal
from steelyard.model.table_model import NBModel


@dataclass(frozen=True, eq=False)
class Edit:
    """One change of a model that is a sum, with all that undoing it needs."""

    attribute: str
    """The column, or interaction; empty for the intercept."""

    text: str
    """What was done, in words."""

    asked: str
    """What was asked for, as JSON."""

    reason: str
    when: str
    """Date and time, UTC."""

    values: list[str]
    """The values that were changed."""

    before: list[float]
    """Contribution of each of them before, in log-odds."""

    after: list[float]
    """The same after it."""

    places: list[int]
    """Flat positions of the entries of the model's table that were changed."""

    table: list[float]
    """These entries before the edit."""

    log_prior: Floats
    """The log prior before the edit."""

    centre: Floats | None
    """Means over the training rows before the edit; None if there are none."""

    factors: Floats | None
    """Factors of densities before the edit; None if all were one."""

    marginal: Marginal | None = None
    """Moments before the first edit of a model, None for later ones."""

    def __str__(self) -> str:
        """Return one line: what was done, why and when."""
        why = f" ({self.reason})" if self.reason else ""
        return f"{self.text}{why}, {self.when}"


def difference(old: NBModel, new: NBModel) -> dict[str, Any]:
    """Return the entries of the old model that an undo restores."""
    places = np.flatnonzero((old.table != new.table).ravel())
    return {
        "places": places.tolist(),
        "table": old.table.ravel()[places].tolist(),
        "log_prior": old.log_prior,
        "centre": old.centre,
        "factors": old.gaussian.weight,
    }


def undone(model: NBModel, edit: Edit) -> NBModel:
    """Return the model as it was before an edit, to the bit."""
    table = model.table.copy()
    table.ravel()[edit.places] = edit.table
    return replace(
        model,
        table=table,
        log_prior=edit.log_prior,
        centre=edit.centre,
        gaussian=replace(model.gaussian, weight=edit.factors),
        marginal=edit.marginal or model.marginal,
    )
