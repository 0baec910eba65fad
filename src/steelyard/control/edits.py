"""Changes of a fitted model by hand: asked for in plain mappings, and recorded."""

from __future__ import annotations

import copy
import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from sklearn.isotonic import isotonic_regression

from steelyard._common.allowed import ANY, Check, number, word
from steelyard._common.allowed import listed as list_of
from steelyard._common.arrays import Floats, Ints
from steelyard._common.text import did_you_mean, listed
from steelyard.exceptions import ParameterError, check_fitted
from steelyard.explain.shared import (
    column_mean,
    evidence_of,
    position_of,
    typical_numbers,
)
from steelyard.fitting.shapes import resolve_shapes
from steelyard.model.edits import Edit, difference, undone
from steelyard.model.marginal import edited_moments
from steelyard.model.table_model import NBModel
from steelyard.table.labels import known_labels, labels_of_rows
from steelyard.table.schema import FeatureSchema

_DIRECTIONS = {"increasing": 1.0, "decreasing": -1.0}

_TWO = list_of(ANY, 2)
_TRUE = Check("true", lambda value: value is True)
_AMOUNT = number(-1e6, 1e6, "()").called("a number between -1e6 and 1e6")
_FINITE = number().called("a number that is finite")

_ACTIONS = {
    "set": _AMOUNT,
    "flatten": _TRUE,
    "interpolate": _TRUE,
    "monotone": word(*_DIRECTIONS).called("'increasing' or 'decreasing'"),
    "merge": _TRUE,
    "remove": _TRUE,
    "scale": _AMOUNT,
}
_OTHER_KEYS = {
    "column": ANY,
    "interaction": ANY,
    "class": ANY,
    "from": _FINITE,
    "to": _FINITE,
    "values": list_of(ANY, at_least=1).called("a list of one value or more"),
    "reason": ANY,
}


def edited(
    clf: Any,
    edits: Sequence[Mapping[str, Any]] | Mapping[str, Any],
    reason: str | None = None,
    recalibrate: tuple[Any, Any] | None = None,
    break_shapes: bool = False,
) -> Any:
    """Return a copy of a fitted classifier with some changes, each of them recorded.

    Evidence is that of ``explain_global``: relative to the average training row, in
    log-odds, for the second of two classes or the class that an edit names. Intervals
    of numbers are bins of the model: those whose middle is in the range are changed.

    Parameters
    ----------
    clf : classifier
        A fitted classifier whose model is one sum.
    edits : sequence of mappings
        One action each, on ``"column"`` or ``"interaction"`` (two columns):

        - ``{"column": "age", "from": 30, "to": 40, "set": 0.2}``;
        - the same with ``"flatten": True`` (to the mean over the training rows),
          ``"interpolate": True`` (a line between the first and the last bin) or
          ``"monotone": "increasing"`` or ``"decreasing"`` (the nearest such curve);
          without ``"from"`` or ``"to"`` there is no such end;
        - ``{"column": "purpose", "values": ["car", "radio"], "set": 0.0}`` or
          ``"merge": True``; None among values means missing cells;
        - ``{"column": "sex", "remove": True}``, ``{"interaction": ["a", "b"], "remove":
          True}``: it contributes nothing any more, and the mean score stays;
        - ``{"column": "age", "scale": 0.5}``: it contributes half as much.

        ``"class"`` names the class, ``"reason"`` the reason of this edit.
    reason : str, default=None
        Why; kept in the record.
    recalibrate : (X, y), default=None
        Rows on which the start of the sum is fitted again after the edits.
    break_shapes : bool, default=False
        Whether edits may break shapes that ``constraints`` give to columns.

    Returns
    -------
    classifier
        A copy; ``edits_`` lists all edits, ``unedited()`` goes back.

    Examples
    --------
    >>> import pandas as pd, steelyard as sy
    >>> X = pd.DataFrame({"sky": ["sun", "rain", "snow"] * 8, "wind": [1, 2, 3, 4] * 6})
    >>> clf = sy.NaiveBayes(categorical_features="all").fit(X, ["play", "stay"] * 12)
    >>> calm = clf.edited({"column": "wind", "values": [2, 4], "merge": True}, "noise")
    >>> calm.edits_[0].text
    'merge wind 2, 4 for stay'
    >>> bool((calm.unedited().predict_proba(X) == clf.predict_proba(X)).all())
    True
    """
    model = _editable_model(clf)
    requests: Any = [edits] if isinstance(edits, Mapping) else edits
    if isinstance(requests, str) or not isinstance(requests, Iterable):
        raise ParameterError(f"Edits must be a list of mappings. Got {requests!r}.")
    requests = list(requests)
    if not requests and recalibrate is None:
        raise ParameterError("There is no edit. Give a list of mappings.")
    if model.centre is None:
        model = replace(model, centre=np.zeros((len(model.schema), model.n_classes)))
    log = list(getattr(clf, "edits_", []))
    before: Any = clf.model_
    constraints = getattr(clf, "constraints", None)
    shapes = resolve_shapes(constraints, model.schema, clf.classes_)
    broken = set(shapes.broken(model))
    for edit in requests:
        new, change = _applied(clf, model, _checked(edit))
        newly = [shape for shape in shapes.broken(new) if shape not in broken]
        if newly and not break_shapes:
            raise ParameterError(
                f"After 'edit {change.text}' it is not true that {newly[0]}, which "
                "`constraints` ask for. Change the edit, or set `break_shapes=True`."
            )
        broken.update(newly)
        change = replace(change, text="; not any more: ".join([change.text, *newly]))
        if model.marginal is not None:
            j = model.schema.labels().index(change.attribute)
            new = replace(new, marginal=edited_moments(model, new, j, clf.counts_))
        why = edit.get("reason", reason)
        log.append(_record(before, new, change, edit, why, is_first=not log))
        model = before = new
    if recalibrate is not None:
        new, change = _recalibrated(clf, model, recalibrate)
        asked = {"recalibrate": True}
        log.append(_record(before, new, change, asked, reason, is_first=not log))
        model = new
    made = copy.copy(clf)
    made.model_, made.edits_ = model, log
    return made


def unedited(clf: Any) -> Any:
    """Return a copy of a classifier without its edits, to the bit."""
    check_fitted(clf)
    made = copy.copy(clf)
    for edit in reversed(getattr(clf, "edits_", [])):
        made.model_ = undone(made.model_, edit)
    if hasattr(clf, "edits_"):
        del made.edits_
    return made


@dataclass(frozen=True)
class _Change:
    """What an edit did, for the record."""

    attribute: str
    text: str
    values: Sequence[str] = ()
    before: Any = ()
    after: Any = ()


def _record(
    old: NBModel,
    new: NBModel,
    change: _Change,
    asked: Any,
    reason: Any,
    is_first: bool,
) -> Edit:
    plain = {key: value for key, value in asked.items() if key != "reason"}

    def as_plain(value: Any) -> Any:
        return value.item() if isinstance(value, np.generic) else list(value)

    return Edit(
        attribute=change.attribute,
        text=change.text,
        asked=json.dumps(plain, ensure_ascii=False, default=as_plain),
        reason=str(reason or ""),
        when=datetime.now(UTC).isoformat(timespec="seconds"),
        values=list(change.values),
        before=[float(x) for x in change.before],
        after=[float(x) for x in change.after],
        **difference(old, new),
        marginal=old.marginal if is_first else None,
    )


# ----------------------------------------------------------------------------- requests


def _checked(edit: Any) -> Mapping[str, Any]:
    """Raise an error for an invalid edit."""
    if not isinstance(edit, Mapping):
        raise ParameterError(f"An edit must be a mapping. Got {edit!r}.")
    checks = {**_ACTIONS, **_OTHER_KEYS}
    for key in edit:
        if key not in checks:
            hint = did_you_mean(str(key), (*_OTHER_KEYS, *_ACTIONS))
            raise ParameterError(
                f"An edit has no key {key!r}.{hint} Its keys are "
                f"{', '.join(_OTHER_KEYS)}, and one of {', '.join(_ACTIONS)}."
            )
    if len(_ACTIONS.keys() & edit.keys()) != 1:
        raise ParameterError(
            f"An edit needs one action of {', '.join(_ACTIONS)}. Got {dict(edit)!r}."
        )
    if ("column" in edit) == ("interaction" in edit):
        raise ParameterError(
            f"An edit needs 'column' or 'interaction'. Got {dict(edit)!r}."
        )
    for key, check in checks.items():
        if key in edit and not check.accepts(edit[key]):
            raise ParameterError(f"{key!r} must be {check.text}. Got {edit[key]!r}.")
    return edit


def _attribute_of(model: NBModel, edit: Mapping[str, Any]) -> tuple[str, int]:
    """Return the name and the position of the attribute of an edit."""
    schema = model.schema
    names = schema.labels()
    if "interaction" in edit:
        interaction = edit["interaction"]
        if not _TWO.accepts(interaction):
            raise ParameterError(
                f"'interaction' must be two columns. Got {interaction!r}."
            )
        first, second = interaction
        for j, feature in enumerate(schema.features):
            columns = [names[side.feature] for side in feature.sides]
            if columns in ([first, second], [second, first]):
                return names[j], j
        interactions = listed(names[schema.n_columns :]) or "none"
        raise ParameterError(
            f"There is no interaction {list(interaction)!r}. Interactions: "
            f"{interactions}."
        )
    column = edit["column"]
    if not isinstance(column, str) or column not in names:
        hint = did_you_mean(str(column), names)
        raise ParameterError(f"There is no column {column!r}.{hint}")
    return column, names.index(column)


def _class_of(clf: Any, edit: Mapping[str, Any]) -> int:
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


def _editable_model(clf: Any) -> NBModel:
    """Return the model of a fitted classifier; raise an error if it is not one sum."""
    check_fitted(clf)
    model = clf.model_
    if not isinstance(model, NBModel):
        raise ParameterError(
            f"{type(clf).__name__} is not one sum here, and cannot be edited. Use a "
            "method that is one sum, such as SHNB or WANBIA-CLL."
        )
    return model


def _middles_of(clf: Any, model: NBModel, j: int) -> Floats:
    """Return a number in each bin, within the range of the training rows if known."""
    feature = model.schema.features[j]
    if feature.kind != "binned":
        return np.arange(feature.n_values, dtype=np.float64)
    edges = np.array(feature.edges, dtype=np.float64)
    numbers = typical_numbers(edges)
    limits = clf.training_.ranges[j]
    if limits is not None and len(edges):
        if limits.low <= edges[0]:
            numbers[0] = (limits.low + edges[0]) / 2.0
        if limits.high > edges[-1]:
            numbers[-1] = (limits.high + edges[-1]) / 2.0
    return numbers


def _rows_of_codes(clf: Any, model: NBModel, positions: Ints) -> Floats:
    """Return the training rows of some codes; one each if the counts are missing."""
    counts = getattr(clf, "counts_", None)
    if counts is None or counts.schema != model.schema:
        return np.ones(len(positions))
    rows = counts.by_code[positions].sum(axis=1)
    return rows if rows.sum() > 0.0 else np.ones(len(positions))


def _rows_missing(clf: Any, model: NBModel, j: int) -> float:
    """Return the training rows whose cell is missing, but 0 if that is a step."""
    feature, counts = model.schema.features[j], getattr(clf, "counts_", None)
    is_step = 0 < feature.missing_code and not feature.missing_is_value
    if is_step or counts is None or counts.schema != model.schema:
        return 0.0
    position = int(model.schema.offsets[j]) + feature.missing_code
    return float(counts.by_code[position].sum())


# ------------------------------------------------------------------------------ actions


def _applied(
    clf: Any, model: NBModel, edit: Mapping[str, Any]
) -> tuple[NBModel, _Change]:
    """Return the changed model, and what was changed."""
    name, j = _attribute_of(model, edit)
    if "remove" in edit or "scale" in edit:
        for key in ("from", "to", "values", "class"):
            if key in edit:
                raise ParameterError(f"'remove' and 'scale' take no {key!r}.")
        factor = 0.0 if "remove" in edit else float(edit["scale"])
        text = f"remove {name}" if "remove" in edit else f"scale {name} by {factor:g}"
        return _scaled(model, j, factor), _Change(name, text)
    c = _class_of(clf, edit)
    if not model.schema.features[j].is_coded:
        raise ParameterError(
            f"Column {name!r} is scored by a density, which has no bins to change. "
            "Scale or remove it, or fit with bins, such as numeric='mdl'."
        )
    feature, start = model.schema.features[j], int(model.schema.offsets[j])
    codes = _codes_of(clf, model, j, name, edit)
    mean = evidence_of(column_mean(model, j)[None, :])[0, c]
    rows = model.table[start + codes]
    old = model.link_scale * (evidence_of(rows)[:, c] - mean)
    weights = _rows_of_codes(clf, model, start + codes)
    new = _changed(edit, old, weights, _middles_of(clf, model, j)[codes - 1])
    table = model.table.copy()
    table[start + codes, c] += (new - old) / model.link_scale
    labels = [model.schema.describe(j, int(code)) for code in codes]
    what = _in_words(edit, feature, codes, name)
    change = _Change(name, f"{what} for {clf.classes_[c]}", labels, old, new)
    return replace(model, table=table), change


def _scaled(model: NBModel, j: int, factor: float) -> NBModel:
    """Multiply the contributions of an attribute; the mean score stays."""
    schema, table = model.schema, model.table.copy()
    assert model.centre is not None
    centre, gaussian = model.centre.copy(), model.gaussian
    table[schema.offsets[j] : schema.offsets[j + 1]] *= factor
    if not schema.features[j].is_coded:
        factors = gaussian.factors.copy()
        factors[schema.gaussian.tolist().index(j)] *= factor
        gaussian = replace(gaussian, weight=factors)
    prior = model.log_prior + (1.0 - factor) * centre[j]
    centre[j] *= factor
    return replace(
        model, table=table, log_prior=prior, centre=centre, gaussian=gaussian
    )


def _codes_of(
    clf: Any, model: NBModel, j: int, name: str, edit: Mapping[str, Any]
) -> Ints:
    """Return the codes that an edit is about, in order."""
    feature = model.schema.features[j]
    if "values" in edit:
        if "from" in edit or "to" in edit:
            raise ParameterError("An edit has 'values', or 'from' and 'to'.")
        named = (_code(feature, name, value) for value in edit["values"])
        return np.array(list(dict.fromkeys(named)), dtype=int)
    if feature.sides:
        raise ParameterError("An interaction can be scaled or removed.")
    if feature.kind == "categorical":
        if "from" in edit or "to" in edit or not feature.ordered:
            raise ParameterError(f"Column {name!r} has categories: name its 'values'.")
        return np.arange(1, len(feature.values) + 1)
    numbers = _middles_of(clf, model, j)
    low, high = edit.get("from", -np.inf), edit.get("to", np.inf)
    codes = np.flatnonzero((numbers >= low) & (numbers <= high)) + 1
    if not len(codes):
        cuts = listed([f"{x:.6g}" for x in feature.edges]) or "none"
        raise ParameterError(
            f"No bin of {name!r} has its middle from {low:g} to {high:g}. Its cut "
            f"points are {cuts}."
        )
    return codes


def _code(feature: FeatureSchema, name: str, value: Any) -> int:
    if value is None and feature.missing_is_value:
        return feature.missing_code
    if value is None:
        raise ParameterError(
            f"Missing cells of {name!r} add nothing in this model, and have no "
            "evidence to set. Fit with missing='value'."
        )
    if feature.kind != "categorical":
        raise ParameterError(f"Column {name!r} has numbers: say 'from' and 'to'.")
    if not isinstance(value, Hashable) or value not in feature.code_of:
        hint = did_you_mean(str(value), map(str, feature.values))
        raise ParameterError(f"Column {name!r} has no value {value!r}.{hint}")
    return feature.code_of[value]


def _changed(
    edit: Mapping[str, Any], old: Floats, weights: Floats, numbers: Floats
) -> Floats:
    """Return the evidence that an edit asks for."""
    if "set" in edit:
        return np.full(len(old), float(edit["set"]))
    if "flatten" in edit or "merge" in edit:
        return np.full(len(old), float(np.average(old, weights=weights)))
    if "interpolate" in edit:
        return np.interp(numbers, numbers[[0, -1]], old[[0, -1]])
    sign = _DIRECTIONS[edit["monotone"]]
    fitted = isotonic_regression(sign * old, sample_weight=np.maximum(weights, 1e-9))
    return np.asarray(sign * fitted)


def _in_words(
    edit: Mapping[str, Any], feature: FeatureSchema, codes: Ints, name: str
) -> str:
    action = next(key for key in _ACTIONS if key in edit)
    values = ", ".join(map(str, edit.get("values", ())))
    if feature.kind == "binned" and "values" not in edit:
        values = feature.describe_merged(codes.tolist())
    text = f"{action} {name} {values}".rstrip()
    if action == "set":
        return f"{text} to {float(edit['set']):+g}"
    return f"{text} {edit['monotone']}" if action == "monotone" else text


def _recalibrated(
    clf: Any, model: NBModel, rows: tuple[Any, Any]
) -> tuple[NBModel, _Change]:
    """Fit the start of the sum again to some rows, by Newton steps."""
    if not _TWO.accepts(rows):
        raise ParameterError("`recalibrate` must be rows and their labels: (X, y).")
    X, y = rows
    codes = clf._encode(X)
    labels = known_labels(labels_of_rows(y, codes.n_rows), clf.classes_)
    truth = np.eye(model.n_classes)[labels]
    prior = model.log_prior.copy()
    for _ in range(50):
        p = replace(model, log_prior=prior).proba(codes)
        gradient = model.link_scale * (p - truth).sum(axis=0)
        curvature = np.diag(p.sum(axis=0)) - p.T @ p + 1e-6 * np.eye(len(prior))
        step = np.linalg.solve(model.link_scale**2 * curvature, gradient)
        prior -= np.clip(step - step.mean(), -2.0, 2.0)
        if np.abs(step - step.mean()).max() < 1e-10:
            break
    change = _Change("", f"intercept recalibrated on {codes.n_rows} rows")
    new = replace(model, log_prior=prior)
    if model.marginal is not None:
        moved = model.link_scale * (prior - model.log_prior)
        new = replace(new, marginal=model.marginal.with_ratio(moved))
    return new, change


def edit_steps(clf: Any) -> dict[str, Any]:
    """Return the steps in which ``edited`` changes columns, by the column's position.

    They are ``edges`` of bins, a number in each (``middles``), training rows by step
    (``weights``), the code of ``missing`` cells, training rows of these if they are no
    step (``rows_missing``), and ``must``, a shape with the position of its class, whose
    steps are at the ``fine`` edges. Columns scored by a density and interactions have
    none: these can be scaled or removed.
    """
    model = _editable_model(clf)
    schema, steps = model.schema, {}
    constraints = getattr(clf, "constraints", None)
    resolved = resolve_shapes(constraints, schema, clf.classes_).shapes
    shapes = {shape.column: shape for shape in resolved}
    for j in schema.without_interactions.coded.tolist():
        feature = schema.features[j]
        codes = np.arange(1, feature.n_values - feature.missing_is_value + 1)
        positions = int(schema.offsets[j]) + codes
        steps[str(j)] = {
            "edges": list(feature.edges),
            "middles": _middles_of(clf, model, j)[codes - 1].tolist(),
            "weights": _rows_of_codes(clf, model, positions).tolist(),
            "missing": int(feature.missing_code),
            "rows_missing": _rows_missing(clf, model, j),
            "must": None,
        }
        if shape := shapes.get(j):
            fine = (shape.steps(schema) - positions[0]).tolist()
            steps[str(j)] |= {"must": [shape.kind, shape.target], "fine": fine}
    return steps
