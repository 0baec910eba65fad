"""What an edit may ask for: its keys, and the attribute and class that it names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steelyard._common.text import did_you_mean, listed
from steelyard.exceptions import ParameterError
from steelyard.explain.views import column_labels, position_of, views_of
from steelyard.model.table_model import NBModel

_WHERE = ("column", "pair", "class", "from", "to", "values", "reason")
ACTIONS = ("set", "flatten", "interpolate", "monotone", "merge", "remove", "scale")
DIRECTIONS = {"increasing": 1.0, "decreasing": -1.0}


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
    if ("column" in edit) == ("pair" in edit):
        raise ParameterError(f"An edit needs 'column' or 'pair'. Got {dict(edit)!r}.")
    (action,) = actions
    value = edit[action]
    if action in ("set", "scale"):
        if not _is_number(value) or not abs(value) < 1e6:
            raise ParameterError(f"{action!r} must be a number. Got {value!r}.")
    elif action == "monotone":
        if value not in DIRECTIONS:
            allowed = " or ".join(map(repr, DIRECTIONS))
            raise ParameterError(f"'monotone' must be {allowed}. Got {value!r}.")
    elif value is not True:
        raise ParameterError(f"{action!r} must be true. Got {value!r}.")
    for key in ("from", "to"):
        if not _is_number(edit.get(key, 0.0)):
            raise ParameterError(f"{key!r} must be a number. Got {edit[key]!r}.")
    return edit


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def attribute_of(model: NBModel, edit: Mapping[str, Any]) -> tuple[str, list[int]]:
    """Return the name of the attribute of an edit, and its views."""
    names = column_labels(model.schema)
    n_columns = model.schema.n_columns
    asked = edit.get("column")
    if "pair" in edit:
        pair = edit["pair"]
        if isinstance(pair, str) or len(pair) != 2:
            raise ParameterError(f"'pair' must be two columns. Got {pair!r}.")
        both = {" × ".join(pair), " × ".join(reversed(list(pair)))}
        found = [name for name in names[n_columns:] if name in both]
        if not found:
            known = listed(names[n_columns:]) or "none"
            raise ParameterError(f"There is no pair {list(pair)!r}. Pairs: {known}.")
        asked = found[0]
    if asked not in names:
        hint = did_you_mean(str(asked), names)
        raise ParameterError(f"There is no column {asked!r}.{hint}")
    return str(asked), views_of(model.schema)[names.index(asked)]


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
