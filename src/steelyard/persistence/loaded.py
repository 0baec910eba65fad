"""A model of a file that predicts, explains and exports, and learns no more.

It takes neither scikit-learn nor the class of its classifier, whose loading takes more
time than a file of the command line.
"""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np

from steelyard.classifiers.after_fit import FittedNB
from steelyard.persistence import ReadContent, load, read
from steelyard.persistence.codec import Sizes
from steelyard.persistence.fitted import ATTRIBUTES
from steelyard.persistence.models import build_model
from steelyard.table.by_schema import SchemaEncoder


class LoadedModel(FittedNB):
    """What a classifier can do once it is fitted, by its model and its schema."""

    def __init__(self, checked: ReadContent) -> None:
        schema = checked.model.schema
        sizes = Sizes(schema, checked.classes.to_array())
        self._checked, self.model_ = checked, build_model(checked.model, sizes)
        self.classes_, self.n_jobs = self.model_.classes, checked.settings["n_jobs"]
        self.encoder_: Any = SchemaEncoder()
        self.encoder_.schema_, self.encoder_.n_jobs = schema, self.n_jobs
        if schema.names is not None:
            self.feature_names_in_ = np.asarray(schema.names, dtype=object)

    def __getattr__(self, name: str) -> Any:
        """Build a fitted attribute when it is first asked for."""
        attributes = vars(self)["_checked"].attributes
        if name not in attributes:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        sizes = Sizes.of(self.model_)
        value = ATTRIBUTES[name].build(attributes[name], sizes)
        setattr(self, name, value)
        return value


def load_fitted(path: str | PathLike[str]) -> Any:
    """Read a model file for predictions, explanations and exports.

    Returns
    -------
    LoadedModel
        With the name of its classifier. That itself, where it reads cells in a way of
        its own.
    """
    checked = read(path)
    if checked.estimator == "SPSSNaiveBayes":
        return load(path)
    return type(checked.estimator, (LoadedModel,), {})(checked)
