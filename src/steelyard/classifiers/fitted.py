"""What a fitted classifier does: predict, explain, save and export."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import is_elsewhere
from steelyard.classifiers import facade
from steelyard.exceptions import ParameterError, TableError, check_fitted
from steelyard.io import as_source
from steelyard.table.codes import Codes
from steelyard.table.dates import date_of_part
from steelyard.table.encoding import SchemaEncoder
from steelyard.table.frames import as_table

if TYPE_CHECKING:
    from steelyard.io.scanning import Scan
    from steelyard.notices.check import NewRows
    from steelyard.notices.notice import Notice
    from steelyard.notices.record import TrainingRecord
    from steelyard.table.encoder import TableEncoder

# What a model is asked by each way to predict.
_QUESTIONS = {
    "predict": "predict",
    "predict_proba": "proba",
    "predict_log_proba": "log_proba",
    "predict_joint_log_proba": "scores",
}


def answering_model(clf: Any) -> Any:
    """Return the model that answers for a classifier, by its setting ``unknown``."""
    model = clf.model_
    return model.summed if getattr(clf, "unknown", None) == "sum" else model


class FittedNB:
    """What follows from a fitted model.

    Predictions are made by ``model_`` and ``encoder_``; what other folders do with a
    model is in ``facade``.
    """

    if TYPE_CHECKING:
        model_: Any
        encoder_: TableEncoder
        training_: TrainingRecord
        n_jobs: int | None

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
        return self._answer(X, "predict")

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
        return self._answer(X, "predict_proba")

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Logarithm of the posterior probability of every class for every row.

        Parameters
        ----------
        X : table of shape (n, d)
            A table with the columns of the training table, in any order if named.

        Returns
        -------
        ndarray of shape (n, K)
            Log-probabilities, exact even if probabilities would underflow.
        """
        return self._answer(X, "predict_log_proba")

    def predict_interval(self, X: Any, level: float = 0.9) -> NDArray[np.float64]:
        r"""Low and high of the probability of every class for every row.

        .. math:: \sigma\bigl(\operatorname{logit} p_c(x) \pm z \sqrt{v_c(x)}\bigr)

        with the variance :math:`v_c` of the log-odds of a class against the others:
        that of Laplace's approximation, and of what strengths, counts and bins leave
        open (`steelyard.model.uncertainty`). An interval is of the probability, not of
        the class of one row. It knows nothing of interactions that the model does not
        have, nor of ``constraints``: the probability in it keeps a shape, its ends need
        not, if rows are few.

        Parameters
        ----------
        X : table of shape (n, d)
            A table with the columns of the training table, in any order if named.
        level : float, default=0.9
            How often intervals are meant to cover, between 0 and 1.

        Returns
        -------
        ndarray of shape (n, K, 2)
            Low and high, in the order of ``classes_``.

        References
        ----------
        D. MacKay (1992), "The evidence framework applied to classification networks",
        Neural Computation 4, 720-736.

        Examples
        --------
        >>> import steelyard as sy
        >>> from sklearn.datasets import load_breast_cancer
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> clf = sy.ShrinkageNB().fit(X[:, :3], y)
        >>> clf.predict_interval(X[40:41, :3])[0, 1].round(1)
        array([0.3, 0.9])
        """
        check_fitted(self)
        if not isinstance(level, Real) or not 0.0 < float(level) < 1.0:
            raise ParameterError(f"`level` must be between 0 and 1. Got {level!r}.")
        uncertainty = getattr(self, "uncertainty_", None)
        if uncertainty is None or hasattr(self, "edits_"):
            raise ParameterError(
                f"This {type(self).__name__} holds no uncertainty. Fit ShrinkageNB "
                "with uncertainty=True, loss='log' and without columns that are "
                "densities or slopes. Edited models have none."
            )
        codes = self._encode(X)
        model = self._answering_model
        log_proba = model.log_proba(codes, self.n_jobs)
        intervals: NDArray[np.float64]
        intervals = uncertainty.intervals(codes, log_proba, level, model)
        return intervals

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
        check_fitted(self)
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
        columns = source.features
        if names is not None:
            # Of dates there is one column, whatever parts the model has.
            present = {*source.names}
            columns = [n if n in present else date_of_part(n) for n in map(str, names)]
            columns = list(dict.fromkeys(columns))
        with source:
            for chunk in source.chunks(columns, keep=False):
                yield predict(chunk.cells)

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
        return self._answer(X, "predict_joint_log_proba")

    def _answer(self, X: Any, method: str) -> Any:
        """Predict rows in memory, on a GPU or in a cluster, without moving them."""
        if "model_" not in vars(self):
            check_fitted(self)
        if is_elsewhere(X):
            from steelyard.fitting.recipe import rows_of

            return rows_of(X).predicted(self, method)
        (answer,) = self._answers(X, method)
        return answer

    @property
    def _answering_model(self) -> Any:
        return answering_model(self)

    def _answers(
        self, X: Any, *methods: str, check: NewRows | None = None
    ) -> list[Any]:
        """Predict rows here in several ways, for which they are encoded once.

        ``check`` looks at them on the way.
        """
        codes = self._encode(X, check)
        model = self._answering_model
        if check is not None:
            check.add_codes(model, codes)
        asked = [getattr(model, _QUESTIONS[method]) for method in methods]
        return [ask(codes, self.n_jobs) for ask in asked]

    def _encode(self, X: Any, check: NewRows | None = None) -> Codes:
        if "model_" not in vars(self):
            check_fitted(self)
        table = as_table(X, self)
        look = None if check is None else check.watch(table)
        return self.encoder_.encode(table, look)

    def check(self, X: Any, y: Any = None) -> list[Notice]:
        """Return notices about new rows, compared with those of training.

        Values that training never saw, with the nearest one that it did; numbers far
        beyond those of training; columns that are missing, renamed or empty, and what
        the model does about their cells. With labels, for rows to evaluate on: rows
        that were learned from, repeated rows and unknown classes.

        Parameters
        ----------
        X : table of shape (n, d), or source of rows
            The rows. A table that ``predict`` would refuse is looked at all the same.
        y : array-like of shape (n,), default=None
            Their labels, none missing.

        Returns
        -------
        list of Notice
            Worst first, each with ``.column``, the number of ``.rows``, a ``.text``
            and ``.advice``.

        Examples
        --------
        >>> import pandas as pd, steelyard as sy
        >>> X = pd.DataFrame({"sky": ["sun", "rain"] * 4, "degrees": [21.0, 12.0] * 4})
        >>> clf = sy.NaiveBayes().fit(X, ["play", "stay"] * 4)
        >>> for notice in clf.check(pd.DataFrame({"sky": ["Sun"], "degrees": [210]})):
        ...     print(notice.column, "|", notice.text)
        sky | the row has a value that training never saw: 'Sun' (near 'sun')
        degrees | the row has a number outside the training range (12 to 21), up to 210
        """
        from steelyard.notices.check import NewRows

        check_fitted(self)
        rows, source = NewRows(self), as_source(X)
        if source is None:
            rows.add(X, y)
        else:
            with source:
                for chunk in source.chunks(source.features, keep=False):
                    rows.add(chunk.cells)
        return rows.notices()

    @property
    def notices_(self) -> list[Notice]:
        """What is suspicious about the training rows, worst first."""
        return self.training_.notices

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Mean absolute evidence of each column over the training rows, shape (d,).

        That of an interaction is divided between its columns, half and half. For
        ``SelectFromModel``, ``RFE`` and the like.
        """
        return self._column_importance()

    # What other folders do with a model.
    _column_importance = facade.column_importance
    drift = facade.drift
    save = facade.save
    explain_global = facade.explain_global
    explain_local = facade.explain_local
    to_html = facade.to_html
    page = facade.page
    plot = facade.plot
    export = facade.export
    scorer = facade.scorer
    scorecard = facade.scorecard
    edited = facade.edited
    unedited = facade.unedited


class LoadedModel(FittedNB):
    """A model of a file that predicts, explains and exports, and learns no more.

    It takes neither scikit-learn nor the class of its classifier, whose loading takes
    more time than a file of the command line. Fitted attributes are built when they
    are first asked for, each by a function in ``build``.
    """

    def __init__(
        self, model: Any, n_jobs: int | None, build: Mapping[str, Callable[[], Any]]
    ) -> None:
        self._build, self.model_, self.n_jobs = build, model, n_jobs
        self.classes_, schema = model.classes, model.schema
        self.encoder_: Any = SchemaEncoder()
        self.encoder_.schema_, self.encoder_.n_jobs = schema, n_jobs
        if schema.names is not None:
            self.feature_names_in_ = np.asarray(schema.names, dtype=object)

    def __getattr__(self, name: str) -> Any:
        build = vars(self)["_build"]
        if name not in build:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        setattr(self, name, value := build[name]())
        return value
