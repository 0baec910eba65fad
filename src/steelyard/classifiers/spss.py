"""The procedure NAIVEBAYES of IBM SPSS Statistics."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from steelyard._common.checks import check_choice, warn_user
from steelyard.classifiers.base import BaseNB
from steelyard.classifiers.selection import (
    FeatureSelector,
    SelectionPath,
    feature_labels,
)
from steelyard.classifiers.usable import known_rows, rows_with_cells, with_target
from steelyard.exceptions import ParameterError, TableError
from steelyard.fitting.forward_search import (
    Likelihood,
    Search,
    Step,
    restricted,
    simulate,
)
from steelyard.model.table_model import NBModel
from steelyard.model.training import Training
from steelyard.proba.counts import Counts
from steelyard.table.codes import Codes
from steelyard.table.frames import as_table
from steelyard.table.labels import encode_labels
from steelyard.table.schema import TableSchema
from steelyard.table.treatments import column_positions

__all__ = ["SPSSNaiveBayes"]

SELECTIONS = ("forward", "none")
CRITERIA = ("auto", "test", "bic")
B_METHODS = ("auto", "exact", "simulate")
DIVISORS = ("all", "observed")


class SPSSNaiveBayes(FeatureSelector, BaseNB):
    r"""Naive Bayes with forward selection of predictors, as SPSS computes it.

    Starting from the forced predictors, each step adds the one with the largest average
    log-likelihood :math:`\bar l(J)` of the classes. Of the subsets on the way the one
    with the smallest criterion makes the final model: with test data

    .. math:: Q(J) = -\bar l_{test}(J)

    and without, the pseudo-BIC

    .. math:: Q(J) = -\bar l(J) + \frac{J \log n}{2 n}.

    Probabilities are :math:`\pi_c = (N_c + 1/n) / (n + q/n)` and
    :math:`\theta_{j,v|c} = (N_{jvc} + 1/n) / (N_c^{(j)} + n_j/n)`. Rows without a
    target, or without any known predictor, are left out; so are predictors with fewer
    than two observed categories. Other missing cells, and categories never seen, are
    skipped. Numbers are cut into ten bins of equal width, and empty bins are merged.

    Parameters
    ----------
    selection : {"forward", "none"}, default="forward"
        Whether to select predictors or use all of them.
    exact_size : int, default=None
        Select exactly so many predictors beyond the forced ones, whatever the
        criterion.
    max_size : int or "auto", default="auto"
        Select at most so many predictors beyond the forced ones. "auto" is
        :math:`\min\{100, \max(20, \lfloor J_0 / 5 \rfloor)\}` for :math:`J_0` usable
        predictors.
    forced : list of str or int, default=None
        Predictors, by name or position, in every subset.
    excluded : list of str or int, default=None
        Columns that are no predictors.
    criterion : {"auto", "test", "bic"}, default="auto"
        The likelihood of test data, the pseudo-BIC, or the first where there are test
        data.
    b_method : {"auto", "exact", "simulate"}, default="auto"
        Compute the second part of the likelihood, B(J), from the training rows or from
        rows drawn once from the model of all predictors; "auto" draws them where the
        scores of the training rows would need more than ``memory_limit``. Drawn rows
        give the entropy of the model, not that of the data.
    n_simulated : int, default=1000
        How many rows to draw.
    memory_limit : float, default=128
        Largest size of the scores for ``b_method="auto"``, in megabytes.
    divisor : {"all", "observed"}, default="all"
        Divide B(J) by the number of all rows, which makes A(J) + B(J) the average
        log-likelihood; or, as the manual has it, by that of the rows with a known
        cell among the predictors of the subset.
    select_only : bool, default=False
        Select predictors only: no error is computed and ``predict`` refuses.
    time_limit : float, default=None
        Seconds after which the search stops and keeps the best subset so far.
    verbose : bool, default=False
        Whether to show progress on standard error.
    categorical_features : {"auto", "all"} or list of str or int, default="auto"
        Which columns hold categories; see ``NaiveBayes``.
    numeric : str, discretizer or mapping, default="equal-width-merged"
        How numeric columns are cut into bins; see ``NaiveBayes``. Columns that a
        mapping leaves out are cut by "mdl"; densities are refused.
    smoothing : {"m-estimate", "laplace", "kohavi"}, float or Smoothing
        How counts become probabilities; default="kohavi" is the 1/n of the procedure.
    random_state : int, RandomState instance or None, default=None
        Seed of the drawn rows.
    n_jobs : int, default=None
        Threads. Results do not depend on it.

    Attributes
    ----------
    selected_features_ : list
        Names of the predictors of the final model, or positions where the table had no
        names, in the order of choice; forced ones come first.
    selection_path_ : SelectionPath
        One record per subset: size, predictor added, average log-likelihood, A, B,
        criterion, and whether it was chosen. Prints as a table.
    search_end_ : {"complete", "time limit", "interrupted"}
        How the search came to its end.
    error_ : float
        Share of wrongly classified rows: test rows where there are any, otherwise
        training rows.
    classes_, class_log_prior_, class_count_, counts_, model_, encoder_
        As in ``NaiveBayes``.

    Notes
    -----
    The empty subset is a candidate too, so that no predictor may be selected. Of equal
    criteria the smaller subset wins, of equal predictors the first column. A row counts
    as ``sample_weight`` rows, n being the total weight. Ctrl-C ends the search as the
    time limit does.

    References
    ----------
    IBM Corporation, "IBM SPSS Statistics Algorithms", chapter "Naive Bayes Algorithms".

    R. Natarajan, E. Pednault (2001), "Using simulated pseudo data to speed up
    statistical predictive modeling from massive data sets", SIAM International
    Conference on Data Mining.

    Examples
    --------
    >>> import numpy as np
    >>> from steelyard import SPSSNaiveBayes
    >>> rows = ["shhF", "shhT", "ohhF", "rmhF", "rcnF", "rcnT", "ocnT", "smhF", "scnF",
    ...         "rmnF", "smnT", "omhT", "ohnF", "rmhT"]
    >>> X = np.array([list(row) for row in rows])
    >>> clf = SPSSNaiveBayes().fit(X, list("nnyyynynyyyyyn"))
    >>> clf.selected_features_
    [0, 2]
    >>> clf.selection_path_
    Size  Added  Average log likelihood          A         B  Criterion  Chosen
       0                      -0.651761  -0.651761  0.000000   0.651761
       1  0                   -0.485656  -1.579048  1.093392   0.579908
       2  2                   -0.370133  -2.167037  1.796904   0.558637  *
       3  3                   -0.314443  -2.816601  2.502158   0.597200
       4  1                   -0.314124  -3.875385  3.561261   0.691132
    """

    missing = "skip"
    cardinality = "observed"
    prior = "smoothed"
    variance_floor = 1e-9
    class_weight = None

    counts_: Counts
    class_log_prior_: NDArray[np.float64]
    class_count_: NDArray[np.float64]
    selection_path_: SelectionPath
    search_end_: str
    error_: float

    def __init__(
        self,
        *,
        selection: str = "forward",
        exact_size: int | None = None,
        max_size: Any = "auto",
        forced: Any = None,
        excluded: Any = None,
        criterion: str = "auto",
        b_method: str = "auto",
        n_simulated: int = 1000,
        memory_limit: float = 128,
        divisor: str = "all",
        select_only: bool = False,
        time_limit: float | None = None,
        verbose: bool = False,
        categorical_features: Any = "auto",
        numeric: Any = "equal-width-merged",
        smoothing: Any = "kohavi",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.selection = selection
        self.exact_size = exact_size
        self.max_size = max_size
        self.forced = forced
        self.excluded = excluded
        self.criterion = criterion
        self.b_method = b_method
        self.n_simulated = n_simulated
        self.memory_limit = memory_limit
        self.divisor = divisor
        self.select_only = select_only
        self.time_limit = time_limit
        self.verbose = verbose
        self.categorical_features = categorical_features
        self.numeric = numeric
        self.smoothing = smoothing
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self,
        X: Any,
        y: Any,
        X_test: Any = None,
        y_test: Any = None,
        sample_weight: Any = None,
    ) -> SPSSNaiveBayes:
        """Select predictors and learn the final model.

        Parameters
        ----------
        X : table of shape (n, d)
            NumPy array, pandas, polars or pyarrow table.
        y : array-like of shape (n,)
            Labels. Rows whose label is missing are left out, with a warning.
        X_test : table of shape (n_test, d), default=None
            Test rows, for the criterion and the error.
        y_test : array-like of shape (n_test,), default=None
            Their labels.
        sample_weight : array-like of shape (n,), default=None
            Row weights; a weight of 2 equals the row twice, of 0 its absence.

        Returns
        -------
        SPSSNaiveBayes
            The fitted classifier.
        """
        estimation = self._estimation()
        self._check_settings(has_test=_both_or_none(X_test, y_test))
        rng = check_random_state(self.random_state)
        training = self._prepare(*with_target(X, y, sample_weight, self))
        counts = training.count(self.n_jobs)
        forced, candidates = self._predictors(counts)
        usable = known_rows(training, candidates)
        if usable is not training:
            training, counts = usable, usable.count(self.n_jobs)
        model = estimation.model(counts, training.classes)
        test = None
        if X_test is not None:
            test = self._test_rows(X_test, y_test, training, candidates)

        search = self._search(training, counts, model, test, rng)
        if self.selection == "none":
            forced = candidates
        n_steps = self._n_steps(len(forced), len(candidates))
        steps = search.run(forced, candidates, n_steps)
        criteria = [self._criterion_of(step, counts.total) for step in steps]
        # Of equal criteria the first, which is that of the smallest subset.
        best = int(np.argmin(criteria))
        if self.selection == "none" or self.exact_size is not None:
            best = len(steps) - 1

        selected = [feature for step in steps[: best + 1] for feature in step.added]
        model = restricted(model, selected)
        error = None
        if not self.select_only:
            error = self._error_of(model, training, test)
        self._adopt(training)
        labels = feature_labels(model.schema, range(len(model.schema)))
        self.selected_features_ = [labels[j] for j in selected]
        self.selection_path_ = SelectionPath(
            _record(step, labels, criteria[k], k == best)
            for k, step in enumerate(steps)
        )
        self.search_end_ = search.ended
        self.counts_ = counts
        self.class_count_ = counts.by_class
        self.class_log_prior_ = model.log_prior
        self.model_ = model
        if error is not None:
            self.error_ = error
        elif hasattr(self, "error_"):
            del self.error_
        return self

    # --------------------------------------------------------------------- settings

    def _check_settings(self, has_test: bool) -> None:
        check_choice(self, "selection", SELECTIONS)
        check_choice(self, "criterion", CRITERIA)
        check_choice(self, "b_method", B_METHODS)
        check_choice(self, "divisor", DIVISORS)
        for name in ("select_only", "verbose"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise self._complaint(name, "True or False")
        if self.exact_size is not None and not _is_whole(self.exact_size, 0):
            raise self._complaint("exact_size", "None or a whole number of at least 0")
        automatic = isinstance(self.max_size, str) and self.max_size == "auto"
        if not automatic and not _is_whole(self.max_size, 0):
            raise self._complaint("max_size", "'auto' or a whole number of at least 0")
        if not _is_whole(self.n_simulated, 1):
            raise self._complaint("n_simulated", "a whole number of at least 1")
        if not _is_amount(self.memory_limit):
            raise self._complaint("memory_limit", "a number of megabytes")
        if self.time_limit is not None and not _is_amount(self.time_limit):
            raise self._complaint("time_limit", "None or a number of seconds")
        if self.criterion == "test" and not has_test:
            raise ParameterError(
                "criterion='test' needs test data: call fit(X, y, X_test, y_test), or "
                "set criterion='bic'."
            )

    def _complaint(self, name: str, allowed: str) -> ParameterError:
        return ParameterError(
            f"The {name!r} parameter of SPSSNaiveBayes must be {allowed}. Got "
            f"{getattr(self, name)!r} instead."
        )

    def _n_steps(self, n_forced: int, n_candidates: int) -> int:
        """How many predictors may join the forced ones."""
        left = n_candidates - n_forced
        if self.selection == "none":
            return 0
        if self.exact_size is not None:
            if self.exact_size > left:
                raise ParameterError(
                    f"exact_size={self.exact_size} predictors cannot be selected: "
                    f"{left} usable ones are left beside {n_forced} forced ones. "
                    "Excluded columns and those with fewer than two observed "
                    "categories are not usable."
                )
            return int(self.exact_size)
        if isinstance(self.max_size, str):
            return min(100, max(20, n_candidates // 5), left)
        return min(int(self.max_size), left)

    def _criterion_of(self, step: Step, n: float) -> float:
        if step.test is not None and self.criterion != "bic":
            return -step.test
        return -step.log_likelihood + 0.5 * step.size * np.log(n) / n

    # ------------------------------------------------------------------------- rows

    def _predictors(self, counts: Counts) -> tuple[list[int], list[int]]:
        """Return the forced predictors, and all that can be used."""
        schema = counts.schema
        if schema.gaussian.size:
            raise ParameterError(
                "SPSSNaiveBayes needs categories: cut numbers into bins with "
                "numeric='equal-width-merged' or a discretizer, instead of densities."
            )
        forced = self._columns("forced", schema)
        excluded = self._columns("excluded", schema)
        both = [j for j in forced if j in excluded]
        if both:
            raise ParameterError(
                "`forced` and `excluded` both name "
                f"{feature_labels(schema, both)}. A column can be one of them."
            )
        parts = np.split(counts.by_code.sum(axis=1), schema.offsets[1:-1])
        observed = [np.count_nonzero(part[1:]) for part in parts]
        usable = [j for j in range(len(schema)) if observed[j] > 1]
        useless = [j for j in forced if j not in usable]
        if useless:
            warn_user(
                f"Forced predictors {feature_labels(schema, useless)} have fewer than "
                "two observed categories and are left out.",
                UserWarning,
            )
        candidates = [j for j in usable if j not in excluded]
        if not candidates:
            warn_user(
                "No column can be used as a predictor: all are excluded or have fewer "
                "than two observed categories. The model predicts the largest class.",
                UserWarning,
            )
        return [j for j in forced if j in usable], candidates

    def _columns(self, name: str, schema: TableSchema) -> list[int]:
        """Positions of the columns that a setting names, each once."""
        setting = getattr(self, name)
        if setting is None:
            return []
        if isinstance(setting, (str, bytes)) or not isinstance(setting, Iterable):
            raise self._complaint(name, "None or a list of names or positions")
        found = column_positions(setting, len(schema), schema.names, name)
        return list(dict.fromkeys(found))

    def _test_rows(
        self, X: Any, y: Any, training: Training, candidates: list[int]
    ) -> tuple[Codes, NDArray[np.uint32]]:
        X, y, _ = with_target(X, y, None, self)
        table = as_table(X, self)
        if len(y) != table.n_rows:
            raise TableError(
                f"X_test has {table.n_rows} rows, but y_test has {len(y)} labels."
            )
        codes = training.encoder.encode(table)
        classes, labels = encode_labels(y)
        known = training.classes.tolist()
        unknown = [value for value in classes.tolist() if value not in known]
        if unknown:
            raise TableError(
                f"y_test holds {unknown}, which are not among the classes {known} of "
                "the training rows. Leave those test rows out."
            )
        position = np.array([known.index(value) for value in classes.tolist()])
        kept = rows_with_cells(codes, candidates)
        if not kept.any():
            raise TableError(
                "No row of X_test has a known cell among the predictors. Leave X_test "
                "and y_test out, or check that categories are written alike."
            )
        return codes.take(kept), position[labels[kept]].astype(np.uint32)

    # ------------------------------------------------------------------------ model

    def _search(
        self,
        training: Training,
        counts: Counts,
        model: NBModel,
        test: tuple[Codes, NDArray[np.uint32]] | None,
        rng: np.random.RandomState,
    ) -> Search:
        megabytes = 8.0 * training.codes.n_rows * model.n_classes / 2**20
        too_large = self.b_method == "auto" and megabytes > float(self.memory_limit)
        if self.b_method == "simulate" or too_large:
            drawn = simulate(model, int(self.n_simulated), rng)
            rows = Likelihood(drawn, model, None, self.n_jobs)
        else:
            rows = Likelihood(training.codes, model, training.weights, self.n_jobs)
        return Search(
            counts,
            rows,
            None if test is None else Likelihood(test[0], model, None, self.n_jobs),
            None if test is None else test[1],
            self.divisor == "observed",
            self.time_limit,
            bool(self.verbose),
        )

    def _error_of(
        self,
        model: NBModel,
        training: Training,
        test: tuple[Codes, NDArray[np.uint32]] | None,
    ) -> float:
        codes, labels = (training.codes, training.labels) if test is None else test
        weights = training.weights if test is None else None
        numbered = replace(model, classes=np.arange(model.n_classes))
        wrong = numbered.predict(codes, self.n_jobs) != labels
        return float(np.average(wrong, weights=weights))

    def _encode(self, X: Any) -> Codes:
        codes = super()._encode(X)
        if self.select_only:
            raise ParameterError(
                "With select_only=True there is no final model to predict with. Use "
                "transform(X) for the selected columns, or fit with select_only=False."
            )
        return codes


def _both_or_none(X_test: Any, y_test: Any) -> bool:
    if (X_test is None) != (y_test is None):
        raise ParameterError(
            "Test data need both X_test and y_test; one of them is missing."
        )
    return X_test is not None


def _is_whole(value: Any, low: int) -> bool:
    whole = isinstance(value, Integral) and not isinstance(value, (bool, np.bool_))
    return whole and value >= low


def _is_amount(value: Any) -> bool:
    number = isinstance(value, Real) and not isinstance(value, (bool, np.bool_))
    return number and 0 < float(value) < np.inf


def _record(
    step: Step, labels: list[Any], criterion: float, chosen: bool
) -> dict[str, Any]:
    added: Any = [labels[j] for j in step.added]
    record = {
        "size": step.size,
        "added": added[0] if len(added) == 1 else added or None,
        "average_log_likelihood": step.log_likelihood,
        "a": step.a,
        "b": step.b,
    }
    if step.test is not None:
        record["test_log_likelihood"] = step.test
    return {**record, "criterion": float(criterion), "chosen": chosen}
