"""Other libraries' classifiers for the same mixed tables, to compare with."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)
from sklearn.svm import LinearSVC

from steelyard._common.text import did_you_mean
from steelyard.classifiers.registry import _plain
from steelyard.exceptions import ParameterError
from steelyard.table.encoder import TableEncoder


def _columns(numbers: Any, values: Any) -> Any:
    return make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (values, make_column_selector(dtype_exclude="number")),
    )


def _discretized() -> list[Any]:
    return [TableEncoder(), OneHotEncoder(handle_unknown="ignore")]


def _one_hot() -> list[Any]:
    """Impute, scale numbers, and give each value a column."""
    numbers = make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler())
    values = make_pipeline(
        SimpleImputer(strategy="most_frequent", keep_empty_features=True),
        OneHotEncoder(handle_unknown="ignore"),
    )
    return [_columns(numbers, values)]


def _ordinal() -> list[Any]:
    """Encode values as ordinal numbers, which suffice for trees."""
    codes = OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=-2, encoded_missing_value=-1
    )
    return [_columns(SimpleImputer(keep_empty_features=True), codes)]


def _as_categories(X: Any) -> Any:
    """Convert columns that are not numeric: EBM takes text of digits for numbers."""
    names = X.select_dtypes(exclude="number").columns
    return X.astype(dict.fromkeys(names, "category"))


def _piped(
    steps: Callable[[], Sequence[Any]], classifier: Any, **defaults: Any
) -> Callable[..., Pipeline]:
    def make(**settings: Any) -> Pipeline:
        return make_pipeline(*steps(), classifier(**{**defaults, **settings}))

    return make


def _class_of(module: str, name: str) -> Callable[..., Any]:
    """Return what makes a classifier of a library that is loaded then."""
    return lambda **settings: getattr(import_module(module), name)(**settings)


class CatBoostTable(ClassifierMixin, BaseEstimator):
    """CatBoost on one thread, with its categorical columns declared."""

    def __init__(self, settings: dict[str, Any] | None = None) -> None:
        self.settings = settings

    def fit(self, X: Any, y: Any) -> CatBoostTable:
        """Learn from a frame; missing cells are a separate category."""
        quiet = {"verbose": False, "allow_writing_files": False, "thread_count": 1}
        settings = {**quiet, "random_seed": 0, **(self.settings or {})}
        self.model_ = import_module("catboost").CatBoostClassifier(**settings)
        self.model_.fit(self._texts(X), y, cat_features=self._categories(X))
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X: Any) -> Any:
        """Return the most probable classes."""
        return self.model_.predict(self._texts(X)).ravel()

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes."""
        return self.model_.predict_proba(self._texts(X))

    def _categories(self, X: Any) -> list[str]:
        return list(X.select_dtypes(exclude="number").columns)

    def _texts(self, X: Any) -> Any:
        columns = self._categories(X)
        return X.assign(
            **{c: X[c].astype(object).fillna("").astype(str) for c in columns}
        )


def _khiops(**settings: Any) -> Any:
    # It looks for its own program on the search path, which lacks the folder of an
    # environment that is not activated.
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    programs = str(Path(sys.executable).parent)
    if programs not in folders:
        os.environ["PATH"] = os.pathsep.join([programs, *folders])
    return import_module("khiops.sklearn").KhiopsClassifier(**settings)


BASELINES: dict[str, Callable[..., BaseEstimator]] = {
    # LIBLINEAR, L2-regularised L2-loss, primal, as in the CWNB paper.
    "SVM": _piped(_discretized, LinearSVC, dual=False),
    "LogisticRegression": _piped(_one_hot, LogisticRegression, max_iter=1000),
    "RandomForest": _piped(_ordinal, RandomForestClassifier, random_state=0),
    "HistGradientBoosting": _piped(
        _ordinal, HistGradientBoostingClassifier, random_state=0
    ),
}
"""What makes each baseline, by name; the last four only if installed."""

if find_spec("interpret") is not None:
    ebm = _class_of("interpret.glassbox", "ExplainableBoostingClassifier")
    BASELINES["EBM"] = _piped(
        lambda: [FunctionTransformer(_as_categories)], ebm, random_state=0, n_jobs=1
    )
if find_spec("lightgbm") is not None:
    lightgbm = _class_of("lightgbm", "LGBMClassifier")
    quiet = {"random_state": 0, "n_jobs": 1, "verbose": -1}
    BASELINES["LightGBM"] = _piped(_ordinal, lightgbm, **quiet)
if find_spec("catboost") is not None:
    BASELINES["CatBoost"] = lambda **settings: CatBoostTable(settings)
if find_spec("khiops") is not None:
    BASELINES["Khiops"] = _khiops


def baseline(name: str, **settings: Any) -> Any:
    """Return an unfitted classifier to compare with, by a name of ``BASELINES``.

    Case, ``-``, ``_`` and blanks of the name do not matter. Settings are those of
    the classifier at the end of the pipeline, which takes tables of numbers, text,
    categories and missing values.

    >>> baseline("svm", C=0.5)[-1]
    LinearSVC(C=0.5, dual=False)
    """
    by_name = {_plain(key): make for key, make in BASELINES.items()}
    make = by_name.get(_plain(name))
    if make is None:
        raise ParameterError(
            f"There is no baseline {name!r}.{did_you_mean(name, BASELINES)} "
            f"Baselines: {', '.join(BASELINES)}."
        )
    try:
        return make(**settings)
    except TypeError as error:
        raise ParameterError(f"{name} cannot be made like this: {error}.") from None
