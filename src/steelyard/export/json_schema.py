"""What a row of a model may be, as JSON Schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from steelyard._common.one_cell import DATE_FORM
from steelyard.exceptions import check_fitted
from steelyard.export.reading import columns_of

if TYPE_CHECKING:
    from steelyard.classifiers.base.estimator import BaseNB

# Values of a category that are listed.
_MAX_VALUES = 100

# Days by month; that only some years have 29 February is found when a date is read.
_ANY_DAY = "-[0-9]{2}-[0-9]{2}"
_DAY = (
    "-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|[12][0-9]))"
)

_TYPES = {"numbers": ["number"], "text": ["string"], "booleans": ["boolean"]}


def row_schema(clf: BaseNB) -> dict[str, Any]:
    """Return the JSON Schema of a row of a fitted model, for services and catalogues.

    Every column may be null or left out, which is a missing cell. Values of training
    are listed as examples, since others are allowed.

    Parameters
    ----------
    clf : classifier
        A fitted classifier.

    Returns
    -------
    dict
        An object with a property for each column, and no others.

    Examples
    --------
    >>> import pandas as pd, steelyard as sy
    >>> X = pd.DataFrame({"sky": ["sun", "rain"] * 4, "degrees": [21.0, 12.0] * 4})
    >>> schema = row_schema(sy.NaiveBayes().fit(X, ["play", "stay"] * 4))
    >>> schema["properties"]["degrees"]
    {'type': ['number', 'null'], 'description': 'from 12 to 21 in training'}
    >>> schema["properties"]["sky"]["examples"]
    ['rain', 'sun']
    """
    check_fitted(clf)
    schema = clf.encoder_.schema_
    properties: dict[str, dict[str, Any]] = {}
    ranges = clf.training_.ranges or [None] * schema.n_columns
    of_columns = zip(schema.features, columns_of(schema), ranges, strict=False)
    for feature, column, of_numbers in of_columns:
        if column.date:
            days = DATE_FORM.replace(_ANY_DAY, _DAY).strip(" *")
            properties[column.source] = {
                "type": ["string", "null"],
                "pattern": f"^{days}$",
                "description": "a date of ISO 8601, with or without a time",
            }
            continue
        types = _TYPES.get(column.cells, ["string", "number", "boolean"])
        entry: dict[str, Any] = {"type": [*types, "null"]}
        if feature.left_out:
            entry["description"] = "ignored: it looks like an identifier"
        elif column.kind == "category" and column.cells != "nothing":
            n_values = len(column.values)
            plural = "s" if n_values != 1 else ""
            entry["description"] = f"{n_values:,} value{plural} in training"
            entry["examples"] = list(column.values[:_MAX_VALUES])
        elif of_numbers is not None:
            ends = f"{of_numbers.low:.6g} to {of_numbers.high:.6g}"
            entry["description"] = f"from {ends} in training"
        properties[column.name] = entry
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Row of a {type(clf).__name__} model",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }
