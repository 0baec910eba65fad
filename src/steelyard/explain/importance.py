"""One number for every column, as selectors of scikit-learn ask for."""

from __future__ import annotations

from typing import Any

import numpy as np

from steelyard.explain.overall import explain_global
from steelyard.explain.views import Floats


def column_importance(clf: Any) -> Floats:
    """Return the importance of every column; of a pair either side has half."""
    whole = explain_global(clf)
    if whole.importance is None:
        raise AttributeError(
            f"{type(clf).__name__} has no feature_importances_ without rows: "
            "explain_global(X).importance takes them over the rows of X."
        )
    schema = clf.encoder_.schema_
    out = np.array(whole.importance[: schema.n_columns])
    pairs = (feature.sides for feature in schema.features if feature.sides)
    for amount, sides in zip(whole.importance[len(out) :], pairs, strict=True):
        for side in sides:
            out[schema.columns[side.feature]] += amount / 2.0
    return out
