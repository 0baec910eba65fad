"""What can be edited of each column, as plain data for a page."""

from __future__ import annotations

from typing import Any

import numpy as np

from steelyard._common.checks import check_fitted
from steelyard.control.card_rows import finest_views
from steelyard.control.edits import middles_of, rows_of_codes
from steelyard.exceptions import ParameterError
from steelyard.explain.views import views_of
from steelyard.model.table_model import NBModel, centred_model


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
        each (``middles``), training rows by step (``weights``), and the code of
        missing cells. Columns that are scored by a density alone, and pairs, can be
        scaled or removed and are left out.
    """
    check_fitted(clf)
    model = centred_model(clf)
    if not isinstance(model, NBModel):
        raise ParameterError(
            f"{type(clf).__name__} is not one sum here, and cannot be edited. Use a "
            "method that is one sum, such as SHNB or WANBIA-CLL."
        )
    schema, steps = model.schema, {}
    finest = finest_views(schema)
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
        }
    return steps
