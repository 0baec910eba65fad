"""What was changed by hand in a model: the record, and the way back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from steelyard._common.arrays import Floats
from steelyard.model.table_model import NBModel


@dataclass(frozen=True, eq=False)
class Edit:
    """One change of a model that is a sum, with all that undoing it needs."""

    attribute: str
    """The column, or pair of columns; empty for the start of the sum."""

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
    """Evidence of each of them before, in log-odds."""

    after: list[float]
    """The same after it."""

    places: list[int]
    """Entries of the table of the model that were changed, counted along its rows."""

    table: list[float]
    """What these entries were."""

    log_prior: Floats
    """What the log prior was."""

    centre: Floats | None
    """What the means over the training rows were; None if there were none."""

    factors: Floats | None
    """What the factors of densities were; None if there were none."""

    def __str__(self) -> str:
        """Say in one line what was done, why and when."""
        why = f" ({self.reason})" if self.reason else ""
        return f"{self.text}{why}, {self.when}"


def difference(old: NBModel, new: NBModel) -> dict[str, Any]:
    """Return what undoing takes: the entries of the old model."""
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
    )
