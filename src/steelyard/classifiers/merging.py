"""Models that are counts, of several tables, become that of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
from sklearn.base import clone

from steelyard._common.text import listed
from steelyard.classifiers.base.chunked import LearnsInChunks, refuse_edited
from steelyard.classifiers.base.estimator import BaseNB
from steelyard.exceptions import ColumnError, ParameterError, check_fitted
from steelyard.model.training import TrainingSet
from steelyard.proba.counts import places_in
from steelyard.table.codes import Codes
from steelyard.table.dates import dates_in
from steelyard.table.encoder import TableEncoder
from steelyard.table.labels import class_factors, class_places, united_classes
from steelyard.table.learning import with_values
from steelyard.table.ranges import added_ranges
from steelyard.table.schema import FeatureSchema, TableSchema

# Settings that decide how a model is made, and not which.
_OF_NO_MATTER = ("n_jobs", "device", "random_state")


def merge(*models: Any) -> Any:
    """Return the model of all tables that models were fitted to, without the tables.

    Counts add up: the result is that of one fit, to the bit for categories and equal
    cut points with whole row weights, and to rounding for densities. Categories and
    classes that only some models know are united. Nothing of single rows is needed, so
    that hospitals or branches can keep theirs.

    Parameters
    ----------
    *models : classifier
        Fitted ones, of the same method and settings, whose model is counts:
        ``NaiveBayes``, ``OneDependenceNB`` (AODE), ``GainRatioWeightedNB``,
        ``AUCWeightedNB``. Columns are matched by name. Cut points and imputed values
        must be equal: give them, with ``FixedEdgesDiscretizer``, or go on from one
        model with ``partial_fit``. Models with edits are refused: merge what
        ``unedited()`` gives, and edit the merged model.

    Returns
    -------
    classifier
        A fitted classifier; those that are merged stay as they are.

    Examples
    --------
    >>> import steelyard as sy
    >>> north = sy.NaiveBayes().fit([["a"], ["b"]], ["ill", "well"])
    >>> south = sy.NaiveBayes().fit([["c"], ["b"], ["c"]], ["ill", "well", "ill"])
    >>> both = sy.merge(north, south)
    >>> both.class_count_, both.encoder_.schema_.features[0].values
    (array([3., 2.]), ('a', 'b', 'c'))
    """
    if len(models) < 2:
        raise ParameterError("merge takes two models or more.")
    for clf in models:
        _check_mergeable(clf)
    first = models[0]
    _check_settings(models)
    encoder = copy(first.encoder_)
    encoder.schema_ = reduce(_joined, [clf.encoder_.schema_ for clf in models])
    _add_ranges(encoder, models)
    classes = united_classes([clf.classes_ for clf in models])
    recipe = first._recipe()
    counts = [
        clf.counts_.in_schema(encoder.schema_).in_classes(
            class_places(clf.classes_, classes), len(classes)
        )
        for clf in models
    ]
    total, factors = sum(counts[1:], start=counts[0]), None
    if recipe.class_weight is not None:
        factors = class_factors(recipe.class_weight, classes, total.by_class)
    codes = Codes(encoder.schema_, 0, ())
    nobody = classes, np.empty(0, dtype=np.uint32), None, recipe, factors
    training = TrainingSet(None, encoder, codes, *nobody, earlier=total)
    made = clone(first)
    made._learn_from(recipe, training, **made._from_earlier(models))
    if target_name := _common([getattr(clf, "target_name_", "") for clf in models]):
        made.target_name_ = target_name
    records = [clf.training_ for clf in models]
    made.training_ = replace(
        made.training_,
        reading=_common([record.reading for record in records]) or {},
        labels=_common([record.labels for record in records]) or {},
    )
    return made


def _common(values: Sequence[Any]) -> Any:
    """Return what all models have, None if they differ."""
    return values[0] if all(value == values[0] for value in values) else None


def _check_mergeable(clf: Any) -> None:
    """Refuse what is not fitted, and models that are more than counts."""
    name = type(clf).__name__
    if not isinstance(clf, BaseNB):
        raise ParameterError(f"merge takes fitted models of steelyard. Got {name}.")
    if not isinstance(clf, LearnsInChunks):
        raise ParameterError(
            f"{name} cannot be merged: its weights are learned from all rows at once. "
            "Fit it to both tables, for example with steelyard.scan([a, b]); or merge "
            "NaiveBayes, OneDependenceNB, GainRatioWeightedNB or AUCWeightedNB."
        )
    check_fitted(clf)
    refuse_edited(clf, "merging", "Merge")


def _check_settings(models: Sequence[Any]) -> None:
    first, *others = models
    settings = first.get_params(deep=False)
    for clf in others:
        if type(clf) is not type(first):
            raise ParameterError(
                f"Models of one method can be merged. Got {type(first).__name__} and "
                f"{type(clf).__name__}."
            )
        for name, value in clf.get_params(deep=False).items():
            if name not in _OF_NO_MATTER and repr(value) != repr(settings[name]):
                raise ParameterError(
                    f"Models with the same settings can be merged. `{name}` is "
                    f"{settings[name]!r} in one and {value!r} in another."
                )


# ----------------------------------------------------------------------------- schemas


def _joined(first: TableSchema, other: TableSchema) -> TableSchema:
    """Return a schema that has grown out of both."""
    names, other_names = first.names, other.names
    _check_date_parts(first, other)
    if (names is None) != (other_names is None) or len(first) != len(other):
        differ = f"{first.n_columns} and {other.n_columns} columns"
        if names is None or other_names is None:
            differ = "columns with names and columns without"
        raise ColumnError(f"The models were fitted to tables of {differ}.")
    if names is not None and sorted(names) != sorted(other_names or ()):
        only = sorted({*names} ^ {*(other_names or ())})
        raise ColumnError(
            "The models were fitted to tables of different columns. Only in one: "
            f"{listed(map(repr, only), 5)}."
        )
    places = places_in(first, other)
    pairs = zip(first.features, (other.features[k] for k in places), strict=True)
    labels = first.labels()
    joined = [_joined_feature(labels[j], *pair) for j, pair in enumerate(pairs)]
    return first if joined == [*first.features] else TableSchema(tuple(joined))


def _check_date_parts(first: TableSchema, other: TableSchema) -> None:
    """Refuse parts of dates that only one of two schemas has."""
    names, other_names = {*(first.names or ())}, {*(other.names or ())}
    dates = {**dates_in(first.features), **dates_in(other.features)}
    for name in sorted(names ^ other_names):
        date = dates.get(name, name)
        if date != name and date in names & other_names:
            what = name.removeprefix(f"{date}.")
            raise ColumnError(
                f"Only one of the models has the {what} of the dates in {date!r}: in "
                f"the rows of the other it was always the same. Give both tables a "
                f"column {name!r} with it, and fit again."
            )


def _joined_feature(
    label: str, mine: FeatureSchema, theirs: FeatureSchema
) -> FeatureSchema:
    """Return an attribute that has the values of both."""
    is_empty = "nothing" in (mine.cells, theirs.cells)
    if is_empty and mine.is_coded == theirs.is_coded:
        filled = theirs if mine.cells == "nothing" else mine
        # A column that was empty in one is what the other found in it.
        has_code = filled.is_coded and (mine.missing_is_value | theirs.missing_is_value)
        return replace(filled, missing_is_value=has_code)
    problem, advice = "", ""
    if (mine.kind, mine.cells) != (theirs.kind, theirs.cells):
        problem = f"holds {mine.cells} ({mine.kind}) in one model and {theirs.cells} "
        problem += f"({theirs.kind}) in another"
        advice = "Read both tables alike, or name it in `categorical_features`"
    elif (mine.edges, mine.step) != (theirs.edges, theirs.step):
        problem = "is cut at other points in one model than in another"
        advice = "Fit both with numeric=FixedEdgesDiscretizer(...) or numeric="
        advice += "'gaussian', or go on from one model with `partial_fit`"
    elif _imputed(mine) != _imputed(theirs):
        problem = f"has missing cells replaced by {_imputed(mine)} in one model and by "
        problem += f"{_imputed(theirs)} in another"
        advice = "Fit both with missing='skip' or missing='value'"
    elif mine.ordered != theirs.ordered or not _orders_agree(mine, theirs):
        problem = "has its categories in another order in one model than in another"
        advice = "Give both tables the same ordered type"
    if problem:
        raise ColumnError(f"Column {label} {problem}. {advice}.")
    has_code = mine.missing_is_value or theirs.missing_is_value
    grown = replace(mine, missing_is_value=has_code) if has_code else mine
    return with_values(grown, theirs.values, lambda: theirs.values)


def _imputed(feature: FeatureSchema) -> Any:
    """Return what replaces a missing cell: a value, or a number or bin."""
    if feature.fill is None or feature.kind != "categorical":
        return feature.fill
    return feature.values[int(feature.fill) - 1]


def _orders_agree(mine: FeatureSchema, theirs: FeatureSchema) -> bool:
    """Whether values that both have come in the same order."""
    common = [value for value in mine.values if value in theirs.code_of]
    return common == [value for value in theirs.values if value in mine.code_of]


def _add_ranges(encoder: TableEncoder, models: Sequence[Any]) -> None:
    """Set where the numbers of all tables lie."""
    names, in_order = encoder.schema_.names, []
    for clf in models:
        ranges, its_names = clf.encoder_.ranges_, clf.encoder_.schema_.names
        places = range(len(ranges)) if names is None else map(its_names.index, names)
        in_order.append([ranges[k] for k in places])
    encoder.ranges_ = reduce(added_ranges, in_order)
