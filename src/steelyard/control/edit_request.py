"""What an edit may ask for: its keys, attribute and class, and the steps it is in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from steelyard._common.allowed import ANY, number
from steelyard._common.allowed import listed as list_of
from steelyard._common.arrays import Floats, Ints
from steelyard._common.text import did_you_mean, listed
from steelyard.exceptions import ParameterError, check_fitted
from steelyard.explain.shared import (
    position_of,
    typical_numbers,
)
from steelyard.fitting.shapes import resolve_shapes
from steelyard.model.table_model import NBModel

_WHERE = ("column", "interaction", "class", "from", "to", "values", "reason")
ACTIONS = ("set", "flatten", "interpolate", "monotone", "merge", "remove", "scale")
DIRECTIONS = {"increasing": 1.0, "decreasing": -1.0}

_AMOUNT = number(-1e6, 1e6, "()").called("a number between -1e6 and 1e6")
_NUMBER = number().called("a number that is finite")
TWO, _VALUES = list_of(ANY, 2), list_of(ANY, at_least=1)


def checked(edit: Any) -> Mapping[str, Any]:
    """Refuse what is no edit."""
    if not isinstance(edit, Mapping):
        raise ParameterError(f"An edit must be a mapping. Got {edit!r}.")
    for key in edit:
        if key not in (*_WHERE, *ACTIONS):
            hint = did_you_mean(str(key), (*_WHERE, *ACTIONS))
            raise ParameterError(
                f"An edit has no {key!r}.{hint} It has {', '.join(_WHERE)}, and one of "
                f"{', '.join(ACTIONS)}."
            )
    actions = [key for key in ACTIONS if key in edit]
    if len(actions) != 1:
        raise ParameterError(
            f"An edit needs one action of {', '.join(ACTIONS)}. Got {dict(edit)!r}."
        )
    if ("column" in edit) == ("interaction" in edit):
        raise ParameterError(
            f"An edit needs 'column' or 'interaction'. Got {dict(edit)!r}."
        )
    (action,) = actions
    value = edit[action]
    if action in ("set", "scale"):
        if not _AMOUNT.accepts(value):
            raise ParameterError(f"{action!r} must be {_AMOUNT.text}. Got {value!r}.")
    elif action == "monotone":
        if not isinstance(value, str) or value not in DIRECTIONS:
            allowed = " or ".join(map(repr, DIRECTIONS))
            raise ParameterError(f"'monotone' must be {allowed}. Got {value!r}.")
    elif value is not True:
        raise ParameterError(f"{action!r} must be true. Got {value!r}.")
    for key in ("from", "to"):
        if not _NUMBER.accepts(edit.get(key, 0.0)):
            raise ParameterError(f"{key!r} must be {_NUMBER.text}. Got {edit[key]!r}.")
    if "values" in edit and not _VALUES.accepts(edit["values"]):
        raise ParameterError(
            f"'values' must be a list of one value or more. Got {edit['values']!r}."
        )
    return edit


def attribute_of(model: NBModel, edit: Mapping[str, Any]) -> tuple[str, int]:
    """Return the name and the position of the attribute of an edit."""
    schema = model.schema
    names = schema.labels()
    if "interaction" in edit:
        interaction = edit["interaction"]
        if not TWO.accepts(interaction):
            raise ParameterError(
                f"'interaction' must be two columns. Got {interaction!r}."
            )
        first, second = interaction
        for j, feature in enumerate(schema.features):
            columns = [names[side.feature] for side in feature.sides]
            if columns in ([first, second], [second, first]):
                return names[j], j
        known = listed(names[schema.n_columns :]) or "none"
        raise ParameterError(
            f"There is no interaction {list(interaction)!r}. Interactions: {known}."
        )
    asked = edit["column"]
    if not isinstance(asked, str) or asked not in names:
        hint = did_you_mean(str(asked), names)
        raise ParameterError(f"There is no column {asked!r}.{hint}")
    return asked, names.index(asked)


def class_of(clf: Any, edit: Mapping[str, Any]) -> int:
    """Return the class whose evidence an edit is about."""
    classes = clf.classes_
    if "class" in edit:
        return position_of(edit["class"], classes)
    if len(classes) > 2:
        raise ParameterError(
            "With more than two classes an edit of evidence needs 'class', one of "
            f"{listed(classes.tolist())}."
        )
    return 1


def editable_model(clf: Any) -> NBModel:
    """Return the model of a fitted classifier, refused where it is not one sum."""
    check_fitted(clf)
    model = clf.model_
    if not isinstance(model, NBModel):
        raise ParameterError(
            f"{type(clf).__name__} is not one sum here, and cannot be edited. Use a "
            "method that is one sum, such as SHNB or WANBIA-CLL."
        )
    return model


def middles_of(clf: Any, model: NBModel, j: int) -> Floats:
    """Return a number in each bin, within the ends of the training rows if known."""
    feature = model.schema.features[j]
    if feature.kind != "binned":
        return np.arange(feature.n_values, dtype=np.float64)
    edges = np.array(feature.edges, dtype=np.float64)
    numbers = typical_numbers(edges)
    where = clf.training_.ranges[j]
    if where is not None and len(edges):
        if where.low <= edges[0]:
            numbers[0] = (where.low + edges[0]) / 2.0
        if where.high > edges[-1]:
            numbers[-1] = (where.high + edges[-1]) / 2.0
    return numbers


def rows_of_codes(clf: Any, model: NBModel, places: Ints) -> Floats:
    """Return the training rows of some codes; one each where none is known."""
    counts = getattr(clf, "counts_", None)
    if counts is None or counts.schema != model.schema:
        return np.ones(len(places))
    rows = counts.by_code[places].sum(axis=1)
    return rows if rows.sum() > 0.0 else np.ones(len(places))


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
        cells, and ``must``, a shape with the position of its class, whose steps are at
        the ``fine`` edges. Without columns
        scored by a density alone and interactions: these can be scaled or removed.
    """
    model = editable_model(clf)
    schema, steps = model.schema, {}
    asked = resolve_shapes(getattr(clf, "constraints", None), schema, clf.classes_)
    shapes = {shape.column: shape for shape in asked.shapes}
    for j in schema.without_interactions.coded.tolist():
        feature = schema.features[j]
        codes = np.arange(1, feature.n_values - feature.missing_is_value + 1)
        places = int(schema.offsets[j]) + codes
        steps[str(j)] = {
            "edges": list(feature.edges),
            "middles": middles_of(clf, model, j)[codes - 1].tolist(),
            "weights": rows_of_codes(clf, model, places).tolist(),
            "missing": int(feature.missing_code),
            "must": None,
        }
        if shape := shapes.get(j):
            fine = shape.steps(schema) - places[0]
            steps[str(j)] |= {
                "must": [shape.kind, shape.target],
                "fine": fine.tolist(),
            }
    return steps
