"""What can be edited of each column, as plain data for a page."""

from __future__ import annotations

from typing import Any

import numpy as np

from steelyard.control.card_rows import finest_views
from steelyard.control.edits import editable_model, middles_of, rows_of_codes
from steelyard.explain.views import views_of
from steelyard.fitting.shapes import resolve_shapes


def edit_steps(clf: Any) -> dict[str, Any]:
    """Return the steps in which ``edited`` changes each column.

    Parameters
    ----------
    clf : classifier
        A fitted classifier whose model is one sum.

    Returns
    -------
    dict
        For each position of a column that has them: ``edges`` of bins, a number in
        each (``middles``), training rows by step (``weights``), the code of missing
        cells, and ``must``, a shape with the position of its class. Columns that are
        scored by a density alone, and pairs, can be scaled or removed and are left out.
    """
    model = editable_model(clf)
    schema, steps = model.schema, {}
    finest = finest_views(schema)
    asked = resolve_shapes(getattr(clf, "constraints", None), schema, clf.classes_)
    shapes = {shape.column: [shape.kind, shape.target] for shape in asked.shapes}
    for column, views in enumerate(views_of(schema)[: schema.n_columns]):
        j = finest[schema.columns[views[0]]]
        feature = schema.features[j]
        if not feature.is_coded:
            continue
        codes = np.arange(1, feature.n_values - feature.missing_is_value + 1)
        places = int(schema.offsets[j]) + codes
        steps[str(column)] = {
            "edges": list(feature.edges),
            "middles": middles_of(clf, model, j)[codes - 1].tolist(),
            "weights": rows_of_codes(clf, model, places).tolist(),
            "missing": int(feature.missing_code),
            "must": shapes.get(schema.columns[j]),
        }
    return steps
