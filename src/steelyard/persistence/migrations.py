"""What files of earlier releases hold otherwise, by the classes that changed since.

A class has the changes of the classes above it as well. Files of version 1, which
release 0.1 wrote, differ from those of version 2 in nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

# What filters had of an optimiser that they never used.
_OPTIMISER = (
    "weighting",
    "loss",
    "prior_weight",
    "bounds",
    "penalty",
    "lam",
    "center",
    "multiclass",
    "calibrated",
    "published_gradient",
    "solver",
    "tol",
    "max_iter",
)


class Changes(NamedTuple):
    """What has changed since files were written first."""

    added_settings: Mapping[str, Any] = {}
    """Settings that files may lack, and what they were then."""

    dropped_settings: tuple[str, ...] = ()
    """Settings that files may have, and that mean nothing now."""

    dropped_attributes: tuple[str, ...] = ()
    """Fitted attributes that files may have, and no fit gives."""

    dropped_models: tuple[str, ...] = ()
    """Kinds of models that files may have, and no fit gives."""


_CHANGES = {
    "NaiveBayes": Changes({"device": "cpu"}),
    "SolvedNB": Changes({"device": "cpu", "instances": None}),
    "ShrinkageNB": Changes({"resolutions": 1, "pairs": None}, ("overall",)),
    # A filter could be one of pairs of classes, and weigh the prior by one.
    "FilteredNB": Changes({}, _OPTIMISER, ("prior_weight_",), ("pairs",)),
    "HierarchicalWeighting": Changes({"by_pair": 2.5}),
    "OneTreeWeighting": Changes({"n_trees": 1, "share": None, "verbose": False}),
    "LBFGS": Changes({}, ("keeps_units",)),
}


def changes_of(kinds: Iterable[str]) -> Changes:
    """Return what has changed in a class, given by its name and those above it."""
    found = [_CHANGES[kind] for kind in kinds if kind in _CHANGES]
    added: dict[str, Any] = {}
    for changes in reversed(found):
        added |= changes.added_settings
    dropped = (
        tuple(name for changes in found for name in changes[k]) for k in range(1, 4)
    )
    return Changes(added, *dropped)
