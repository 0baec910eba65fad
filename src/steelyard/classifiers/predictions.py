"""Predictions: what every classifier does with a fitted model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from steelyard._common.devices import is_on_device
from steelyard.exceptions import ParameterError, TableError
from steelyard.io import as_source, is_dask
from steelyard.model.base import Model
from steelyard.table.codes import Codes
from steelyard.table.few_rows import encode_few
from steelyard.table.frames import as_table

if TYPE_CHECKING:
    from steelyard.io.scanning import Scan
    from steelyard.table.encoder import TableEncoder

_Predict = TypeVar("_Predict", bound=Callable[..., Any])


def where_rows_are(predict: _Predict) -> _Predict:
    """Predict a Dask collection lazily, and an array of a GPU where it is."""

    @wraps(predict)
    def predict_any(self: Predictions, X: Any) -> Any:
        if not is_dask(X) and not is_on_device(X):
            return predict(self, X)
        check_is_fitted(self)
        if is_on_device(X):
            from steelyard.scale.arrays import predict_there

            return predict_there(self, predict.__name__, X)
        from steelyard.scale.dask import predict_lazily

        return predict_lazily(self, predict.__name__, X)

    return cast(_Predict, predict_any)


class Predictions:
    """Classes and probabilities of rows, by ``model_`` and ``encoder_``."""

    if TYPE_CHECKING:
        model_: Any
        encoder_: TableEncoder
        n_jobs: int | None

    @where_rows_are
    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the most probable class of every row.

        Parameters
        ----------
        X : table of shape (n, d)
            A table with the columns of the training table, in any order if named. Of a
            Dask frame or array predictions, and probabilities as well, are a Dask array
            that is not yet computed.

        Returns
        -------
        ndarray of shape (n,)
            Classes. A tie goes to the class with the larger prior, then to the first.
        """
        codes = self._encode(X)
        return self._model.predict(codes, self.n_jobs)

    @where_rows_are
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Posterior probability of every class for every row.

        Parameters
        ----------
        X : table of shape (n, d)
            A table with the columns of the training table, in any order if named.

        Returns
        -------
        ndarray of shape (n, K)
            Probabilities in the order of ``classes_``.
        """
        codes = self._encode(X)
        return self._model.proba(codes, self.n_jobs)

    @where_rows_are
    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Logarithm of the posterior probability of every class for every row.

        Parameters
        ----------
        X : table of shape (n, d)
            A table with the columns of the training table, in any order if named.

        Returns
        -------
        ndarray of shape (n, K)
            Log-probabilities, exact where probabilities would underflow.
        """
        codes = self._encode(X)
        return self._model.log_proba(codes, self.n_jobs)

    def predict_chunks(
        self, rows: Any, method: str = "predict_proba"
    ) -> Iterator[NDArray[Any]]:
        """Predict rows that need not fit in memory, chunk by chunk.

        Parameters
        ----------
        rows : source of rows
            What ``steelyard.scan`` gives or takes; columns that the model does not know
            are not read.
        method : {"predict_proba", "predict", "predict_log_proba"}
            What is predicted.

        Yields
        ------
        ndarray of shape (m,) or (m, K)
            Predictions of some more rows, in their order.

        Examples
        --------
        >>> import pandas as pd, steelyard as sy
        >>> frame = pd.DataFrame({"sky": ["sun", "rain"] * 4, "play": [1, 0] * 4})
        >>> clf = sy.NaiveBayes().fit(sy.scan([frame, frame]), "play")
        >>> [part.tolist() for part in clf.predict_chunks([frame[:2]], "predict")]
        [[1, 0]]
        """
        check_is_fitted(self)
        allowed = ("predict_proba", "predict", "predict_log_proba")
        if method not in allowed:
            raise ParameterError(
                f"`method` must be one of {', '.join(map(repr, allowed))}. Got "
                f"{method!r}."
            )
        source = as_source(rows)
        if source is None:
            raise TableError(
                f"predict_chunks reads sources of rows; this is a table in memory. "
                f"Use {method}, or steelyard.scan for files."
            )
        return self._predicted(source, getattr(self, method))

    def _predicted(self, source: Scan, predict: Any) -> Iterator[NDArray[Any]]:
        names = getattr(self, "feature_names_in_", None)
        columns = source.features if names is None else [str(name) for name in names]
        with source:
            for chunk in source.chunks(columns, keep=False):
                yield predict(chunk.cells)

    @where_rows_are
    def predict_joint_log_proba(self, X: Any) -> NDArray[np.float64]:
        r"""Joint log-probability of every row with every class.

        .. math:: z_c(x) = \log \pi_c + \sum_j \log \theta_{j,x_j|c}

        Parameters
        ----------
        X : table of shape (n, d)
            A table with the columns of the training table, in any order if named.

        Returns
        -------
        ndarray of shape (n, K)
            Scores before they are normalised to probabilities.
        """
        codes = self._encode(X)
        return self._model.scores(codes, self.n_jobs)

    @property
    def _model(self) -> Model:
        return self.model_

    def _encode(self, X: Any) -> Codes:
        if "model_" not in vars(self):
            check_is_fitted(self)
        codes = encode_few(X, self.encoder_.schema_)
        return self.encoder_.encode(as_table(X, self)) if codes is None else codes
