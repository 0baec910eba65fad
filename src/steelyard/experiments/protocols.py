"""How papers prepared and split their data: whole-data or honest preprocessing.

Under the ``published`` protocol missing cells are filled in and cut points learned
once, on the whole data set, and only the classifier is cross-validated, as in the
papers: cut points have then seen the test rows. Under the ``honest`` protocol
everything is learned inside the training part of each fold.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from steelyard.classifier import BaseNB
from steelyard.experiments.arff import read_arff
from steelyard.table.encoder import TableEncoder

if TYPE_CHECKING:
    import pandas

__all__ = [
    "PROTOCOLS",
    "CrossValidation",
    "cross_validate",
    "data_folder",
    "discretize_whole",
    "load_dataset",
    "one_against_rest",
    "prepare",
]

PROTOCOLS = ("published", "honest")
"""Names of the protocols."""

_SUFFIXES = (".arff", ".arff.gz")


@dataclass(frozen=True)
class CrossValidation:
    """What one cross-validation of one classifier gave."""

    accuracies: tuple[float, ...]
    """Accuracy in each fold, from 0 to 1."""

    seconds: float
    """Time of all fits and predictions."""

    warnings: dict[str, int] = field(default_factory=dict)
    """How many warnings of each category were raised."""

    facts: tuple[Any, ...] = ()
    """What ``look`` found in the classifier fitted in each fold."""

    @property
    def accuracy(self) -> float:
        """Mean accuracy over the folds in percent, as papers print it."""
        return 100.0 * float(np.mean(self.accuracies))


def data_folder(path: str | os.PathLike[str] | None = None) -> Path:
    """Find the folder of data sets.

    Parameters
    ----------
    path : str or path, default=None
        The folder; the environment variable ``STEELYARD_DATA`` if None.

    Returns
    -------
    Path
        An existing folder.
    """
    chosen = path if path is not None else os.environ.get("STEELYARD_DATA")
    if not chosen:
        raise FileNotFoundError(
            "No folder of data sets is given: name one with --data, or in the "
            "environment variable STEELYARD_DATA."
        )
    folder = Path(chosen)
    if not folder.is_dir():
        raise FileNotFoundError(f"The folder of data sets {str(folder)!r} is absent.")
    return folder


def load_dataset(
    name: str, folder: str | os.PathLike[str] | None = None
) -> tuple[pandas.DataFrame, NDArray[Any]]:
    """Read a data set by its name.

    Parameters
    ----------
    name : str
        Name of the file without ``.arff`` or ``.arff.gz``.
    folder : str or path, default=None
        Where the files are; see ``data_folder``.

    Returns
    -------
    X : pandas.DataFrame
        The attributes; nominal ones are categories with all declared values.
    y : ndarray of shape (n,)
        The labels.
    """
    where = data_folder(folder)
    for suffix in _SUFFIXES:
        path = where / f"{name}{suffix}"
        if path.is_file():
            data = read_arff(path)
            target = data.target_name()
            frame = data.to_pandas()
            frame = frame[frame[target].notna()]
            return frame.drop(columns=target), np.asarray(frame[target], dtype=str)
    raise FileNotFoundError(f"The folder {str(where)!r} holds no data set {name!r}.")


def one_against_rest(y: NDArray[Any], label: str) -> NDArray[Any]:
    """Turn labels into two classes: one of them against all others.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Labels.
    label : str
        The class to tell from the others.

    Returns
    -------
    ndarray of shape (n,)
        1 where the label is that class, 0 elsewhere.
    """
    chosen = y == label
    if not chosen.any():
        raise ValueError(f"No row has the label {label!r}.")
    return chosen.astype(np.int64)


def discretize_whole(
    X: pandas.DataFrame, y: NDArray[Any], numeric: Any = "mdl", missing: str = "impute"
) -> pandas.DataFrame:
    """Fill in missing cells and cut numbers into bins, by the whole table.

    Parameters
    ----------
    X : pandas.DataFrame
        The attributes.
    y : ndarray of shape (n,)
        The labels, which supervised discretizers use.
    numeric : str, discretizer or mapping, default="mdl"
        How numbers are cut; see ``TableEncoder``.
    missing : {"impute", "value"}, default="impute"
        What to do with missing cells.

    Returns
    -------
    pandas.DataFrame
        Categories throughout. All values that a column declares, or bins that it was
        cut into, are declared, also those that no row holds.
    """
    import pandas as pd

    encoder = TableEncoder(numeric=numeric, missing=missing, cardinality="declared")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        codes = encoder.fit(X, y).transform(X).astype(np.int64)
    columns = {
        name: pd.Categorical.from_codes(
            codes[:, j] - 1, categories=range(1, feature.n_values + 1)
        )
        for j, (name, feature) in enumerate(
            zip(X.columns, encoder.schema_.features, strict=True)
        )
    }
    return pd.DataFrame(columns)


def prepare(
    X: pandas.DataFrame,
    y: NDArray[Any],
    protocol: str = "published",
    numeric: Any = "mdl",
) -> tuple[pandas.DataFrame, dict[str, Any]]:
    """Prepare a table for a protocol with mean or mode imputation and cut numbers.

    Parameters
    ----------
    X : pandas.DataFrame
        The attributes.
    y : ndarray of shape (n,)
        The labels.
    protocol : {"published", "honest"}, default="published"
        Whether preprocessing sees the whole table, or each training part alone.
    numeric : str, discretizer or mapping, default="mdl"
        How numbers are cut; see ``TableEncoder``.

    Returns
    -------
    X : pandas.DataFrame
        The table to cross-validate on.
    settings : dict
        The settings that a classifier needs with it.
    """
    if protocol == "published":
        return discretize_whole(X, y, numeric), {"cardinality": "declared"}
    if protocol == "honest":
        settings = {
            "numeric": numeric,
            "missing": "impute",
            "cardinality": "declared",
        }
        return X, settings
    raise ValueError(
        f"The protocol must be one of {', '.join(PROTOCOLS)}. Got {protocol!r} instead."
    )


def cross_validate(
    classifier: BaseNB,
    X: pandas.DataFrame,
    y: NDArray[Any],
    *,
    folds: int = 10,
    seed: int = 1,
    look: Callable[[BaseNB], Any] | None = None,
) -> CrossValidation:
    """Cross-validate a classifier once, on stratified and shuffled folds.

    Warnings are counted, not shown.

    Parameters
    ----------
    classifier : estimator
        A classifier; each fold fits it anew.
    X : pandas.DataFrame
        The attributes.
    y : ndarray of shape (n,)
        The labels.
    folds : int, default=10
        Number of folds.
    seed : int, default=1
        Seed of the folds: all methods see the same ones.
    look : callable, default=None
        Called with the classifier fitted in each fold; what it returns is kept.

    Returns
    -------
    CrossValidation
        Accuracy in each fold, time and warnings.
    """
    splitter = StratifiedKFold(folds, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        # Some classes have fewer rows than there are folds.
        warnings.simplefilter("ignore", UserWarning)
        splits = list(splitter.split(np.zeros(len(y)), y))
    accuracies, facts = [], []
    start = perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for train, test in splits:
            classifier.fit(X.iloc[train], y[train])
            predicted = classifier.predict(X.iloc[test])
            accuracies.append(float(np.mean(predicted == y[test])))
            if look is not None:
                facts.append(look(classifier))
    seconds = perf_counter() - start
    counted = Counter(entry.category.__name__ for entry in caught)
    return CrossValidation(tuple(accuracies), seconds, dict(counted), tuple(facts))
