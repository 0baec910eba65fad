"""How data are prepared before classifiers see them: honestly, or as papers did.

Under the protocol ``honest`` everything is learned inside the training part of each
fold. Under the ``published`` ones missing values are imputed and cut points learned
once, on the whole data set, and only the classifier is cross-validated, as in the
papers: test rows leak into the cut points.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from steelyard._common.text import did_you_mean
from steelyard.classifiers.base.estimator import BaseNB
from steelyard.classifiers.naive_bayes import NaiveBayes
from steelyard.classifiers.presets import LogisticNB
from steelyard.exceptions import ParameterError
from steelyard.io.dataset import DataSet
from steelyard.lab.data.datasets import standardize
from steelyard.table.encoder import TableEncoder

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Prepared:
    """A data set as a protocol hands it to classifiers.

    Those with Gaussian densities take the same table with its numbers.
    """

    table: pandas.DataFrame
    numbers: pandas.DataFrame
    target: NDArray[Any]

    def table_for(self, estimator: Any) -> pandas.DataFrame:
        """Return the table that a classifier is to see."""
        numeric = getattr(estimator, "numeric", None)
        gaussian = isinstance(numeric, str) and numeric.startswith("gaussian")
        return self.numbers if gaussian else self.table


@dataclass(frozen=True)
class Protocol:
    """How a data set is prepared, and which settings classifiers get with it.

    `several` are further settings for more than two classes; `plain` replaces
    ``NaiveBayes`` if the paper's differs from it.
    """

    name: str
    about: str
    prepare: Callable[[DataSet], Prepared]
    settings: Mapping[str, Any] = field(default_factory=dict)
    several: Mapping[str, Any] = field(default_factory=dict)
    plain: BaseNB | None = None

    def adapt(self, estimator: Any, n_classes: int) -> Any:
        """Return a copy of a classifier with the protocol's settings.

        Naive Bayes classifiers take those settings that they have; others stay as
        they are.
        """
        copy = clone(estimator)
        if not isinstance(copy, BaseNB):
            return copy
        if self.plain is not None and isinstance(copy, NaiveBayes):
            return clone(self.plain)
        wanted = {**self.settings, **(self.several if n_classes > 2 else {})}
        names = copy.get_params(deep=False)
        return copy.set_params(**{k: v for k, v in wanted.items() if k in names})


def _discretized(
    numeric: str, deleted: Mapping[str, str]
) -> Callable[[DataSet], Prepared]:
    def prepare(data: DataSet) -> Prepared:
        table = data.table
        if data.name in deleted:
            table = table.drop(columns=deleted[data.name])
        codes = discretize_whole(table, data.target, numeric)
        return Prepared(codes, fill_whole(table), data.target)

    return prepare


def _standardized(data: DataSet) -> Prepared:
    table = standardize(data.table)
    return Prepared(table, table, data.target)


# "Two irrelevant attributes are deleted" before the RNB paper's experiments (section
# IV.A). The CWNB paper uses the same files without a word; the third is of the kind.
RNB_DELETED = {"splice": "Instance_name", "zoo": "animal"}
CWNB_DELETED = {**RNB_DELETED, "colic.orig": "Hospital_Number"}

PROTOCOLS = {
    protocol.name: protocol
    for protocol in (
        Protocol(
            "honest",
            "the table as it is; everything is learned inside each training part",
            lambda data: Prepared(data.table, data.table, data.target),
        ),
        Protocol(
            "published-rnb",
            "mean or mode imputation and MDL cuts by the whole data set",
            _discretized("mdl", RNB_DELETED),
            {"cardinality": "declared"},
        ),
        Protocol(
            "published-cwnb",
            "mean or mode imputation and ten bins of equal width by the whole data set",
            _discretized("equal-width", CWNB_DELETED),
            {"cardinality": "declared"},
        ),
        Protocol(
            "published-exponential",
            "Gaussian densities with the sample variance, Laplace's rule for values, "
            "priors by frequency, one model per pair of classes",
            _standardized,
            {
                "numeric": "gaussian",
                "variance": "sample",
                "smoothing": "laplace",
                "prior": "frequency",
            },
            {"multiclass": "one-vs-one"},
            # Naive Bayes itself has no setting for the sample variance.
            plain=LogisticNB(solver="fixed"),
        ),
    )
}
"""The protocols by name."""


def find_protocol(name: str) -> Protocol:
    """Return a protocol by its name, or raise an error with all names."""
    if name not in PROTOCOLS:
        raise ParameterError(
            f"There is no protocol {name!r}.{did_you_mean(name, PROTOCOLS)} "
            f"Protocols: {', '.join(PROTOCOLS)}."
        )
    return PROTOCOLS[name]


def discretize_whole(
    X: pandas.DataFrame, y: NDArray[Any], numeric: Any = "mdl"
) -> pandas.DataFrame:
    """Fill in missing values and cut numbers into bins, by the whole table.

    `numeric` is that of ``TableEncoder``; supervised discretizers use the labels. All
    columns of the frame are categories, with every value that a column declares, or
    bin that it was cut into, whether a row has it or not.
    """
    import pandas as pd

    encoder = TableEncoder(numeric=numeric, missing="impute", cardinality="declared")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        codes = encoder.fit(X, y).transform(X).astype(np.int64)
    values = [range(1, feature.n_values + 1) for feature in encoder.schema_.features]
    columns = {
        name: pd.Categorical.from_codes(column - 1, categories=categories)
        for name, column, categories in zip(X.columns, codes.T, values, strict=True)
    }
    return pd.DataFrame(columns)


def fill_whole(X: pandas.DataFrame) -> pandas.DataFrame:
    """Fill in missing values by the mean or the most frequent value of each column.

    A column without any value stays as it is. Of values that are equally frequent the
    first declared is taken.
    """
    filled = X.copy()
    numbers = set(X.select_dtypes("number"))
    for name in X.columns[X.isna().any() & X.notna().any()]:
        if name in numbers:
            value = X[name].mean()
        else:
            counts = X[name].value_counts(sort=False)
            value = counts.index[int(np.argmax(counts))]
        filled[name] = X[name].fillna(value)
    return filled
