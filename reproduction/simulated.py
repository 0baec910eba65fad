"""Generated data of the papers, and labels made wrong."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone

if TYPE_CHECKING:
    import pandas


def flip_labels(
    y: NDArray[Any], share: float, seed: Any
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Give a share of the rows the label of another class, each as likely.

    Their number is rounded half up. Returns the labels, and which of them are wrong.
    """
    rng = np.random.default_rng(seed)
    classes, codes = np.unique(y, return_inverse=True)
    rows = rng.choice(len(y), int(share * len(y) + 0.5), replace=False)
    away = rng.integers(1, len(classes), size=len(rows))
    codes = codes.copy()
    codes[rows] = (codes[rows] + away) % len(classes)
    wrong = np.zeros(len(y), dtype=bool)
    wrong[rows] = True
    return classes[codes], wrong


class NoisyLabels(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """A classifier trained on labels of which a share was made wrong.

    To the seed the rows add their own: other rows, other draws.
    """

    def __init__(
        self, estimator: Any, share: float = 0.0, random_state: int | None = None
    ) -> None:
        self.estimator = estimator
        self.share = share
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> NoisyLabels:
        """Make labels wrong and fit."""
        rows = zlib.crc32(np.ascontiguousarray(X.index).tobytes())
        seed = [self.random_state or 0, rows]
        noisy, _ = flip_labels(np.asarray(y), self.share, seed)
        self.estimator_ = clone(self.estimator).fit(X, noisy)
        self.classes_ = self.estimator_.classes_
        return self

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classifier."""
        return self.estimator_.predict_proba(X)

    def predict(self, X: Any) -> Any:
        """Return the classes that the classifier predicts."""
        return self.estimator_.predict(X)


def sum_of_attributes(
    n_rows: int, seed: int
) -> tuple[pandas.DataFrame, NDArray[np.int64]]:
    """Generate CWNB's toy data: six attributes of {0, 1, 2, 3}, label [sum >= 9].

    The attributes are categories, all four values declared.
    """
    import pandas as pd

    values = np.random.default_rng(seed).integers(4, size=(n_rows, 6))
    columns = {
        f"a{j}": pd.Categorical(values[:, j], categories=range(4)) for j in range(6)
    }
    return pd.DataFrame(columns), (values.sum(axis=1) >= 9).astype(np.int64)


def two_groups(
    n_rows: int, n_columns: int, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Generate ENB's simulation: the first half of the columns is noise, the other not.

    Both numbers are even. Each column is the one before in its half, with a little
    noise; half of the rows are of class 1, half of class -1.
    """
    half = n_columns // 2
    y = np.repeat([1, -1], n_rows // 2)
    steps = rng.normal(0.0, 0.1, size=(n_rows, 2, half))
    steps[:, 0, 0] = rng.normal(0.0, 2.0, size=n_rows)
    steps[:, 1, 0] = rng.normal(-1.5 * y, 0.5)
    return steps.cumsum(axis=2).reshape(n_rows, n_columns), y


def opposite_rows(
    n_rows: int, n_wrong: int, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.bool_]]:
    """Generate two groups in the plane, and a few rows with the label of the other.

    Returns cells, labels 0 and 1, and which rows are on the wrong side.
    """
    y = np.repeat([0, 1], n_rows)
    wrong = np.arange(2 * n_rows + n_wrong) >= 2 * n_rows
    side = np.concatenate([y, np.arange(n_wrong) % 2])
    labels = np.where(wrong, 1 - side, side)
    return rng.normal(4.0 * side[:, None] - 2.0, 1.0, (len(side), 2)), labels, wrong
