"""The procedure NAIVEBAYES of IBM SPSS Statistics."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import islice
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from steelyard._common.greedy import Subset, follow, search
from steelyard._common.settings import (
    COLUMN,
    FLAG,
    NONE,
    SEED,
    learned,
    listed,
    number,
    setting,
    whole,
    word,
)
from steelyard.classifiers.base.estimator import BaseNB
from steelyard.classifiers.base.selection import (
    FeatureSelector,
    RecordTable,
    selected,
)
from steelyard.exceptions import ParameterError, warn_user
from steelyard.fitting.fit import Fit
from steelyard.fitting.recipe import Recipe
from steelyard.fitting.search.forward_search import (
    AverageLikelihood,
    HeldOutRows,
    Likelihood,
    confusion,
    encode_test_rows,
    has_missing_cells,
    simulate,
    usable_predictors,
    with_known_cells,
)
from steelyard.model.table_model import NBModel
from steelyard.model.training import Encoding, TrainingSet
from steelyard.notices.notice import Notice
from steelyard.table.codes import Codes

__all__ = ["SPSSNaiveBayes"]

_AVERAGE = "average_log_likelihood"

# A classification table of more classes cannot be read.
_MAX_CLASSES = 20

_COLUMNS = (NONE | listed(COLUMN)).called("None or a list of names or positions")


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
    :math:`\bar l(J)` divides both of its sums by n; the manual divides one by the cases
    with a known cell in the subset, ``divisor="observed"``. Where that chooses other
    predictors, ``notices_`` says which; a search with a ``time_limit``, or by drawn
    rows, is not repeated to find out.

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
    >>> clf.classification_table_
    Sample    Observed  Predicted n  Predicted y  Percent correct
    training  n            4.000000     1.000000        80.000000
    training  y            1.000000     8.000000        88.888889
    """

    selection: str = setting(
        default="forward",
        allowed=word("forward", "none"),
        about="Whether to select predictors or use all of them.",
    )
    exact_size: int | None = setting(
        default=None,
        allowed=NONE | whole(0),
        about="Select exactly this many predictors beyond the forced ones, whatever "
        "the criterion.",
    )
    max_size: Any = setting(
        default="auto",
        allowed=word("auto") | whole(0),
        about='Select at most this many predictors beyond the forced ones. "auto" is '
        r":math:`\min\{100, \max(20, \lfloor J_0 / 5 \rfloor)\}` for :math:`J_0` "
        "usable predictors.",
    )
    forced: Any = setting(
        default=None,
        allowed=_COLUMNS,
        about="Predictors, by name or position, in every subset.",
    )
    excluded: Any = setting(
        default=None, allowed=_COLUMNS, about="Columns not used as predictors."
    )
    criterion: str = setting(
        default="auto",
        allowed=word("auto", "test", "bic"),
        about="The likelihood of test data, the pseudo-BIC, or the first if there are "
        "test data.",
    )
    b_method: str = setting(
        default="auto",
        allowed=word("auto", "exact", "simulate"),
        about="Compute the second part of the likelihood, B(J), from the training rows "
        'or from rows drawn once from the model of all predictors; "auto" draws them '
        "if the scores of the training rows would need more than ``memory_limit``. "
        "Drawn rows give the entropy of the model, not that of the data.",
    )
    n_simulated: int = setting(
        default=1000, allowed=whole(1), about="How many rows to draw."
    )
    memory_limit: float = setting(
        default=128,
        allowed=number(0.0, ends="()").called("a number of megabytes"),
        about='Largest size of the scores for ``b_method="auto"``, in megabytes.',
    )
    divisor: str = setting(
        default="all",
        allowed=word("all", "observed"),
        about="Divide B(J) by the number of all rows, which makes A(J) + B(J) the "
        "average log-likelihood; or, as the manual has it, by that of the rows with a "
        "known cell among the predictors of the subset.",
    )
    select_only: bool = setting(
        default=False,
        allowed=FLAG,
        about="Select predictors only: no error is computed and ``predict`` refuses.",
    )
    time_limit: float | None = setting(
        default=None,
        allowed=(NONE | number(0.0, ends="()")).called("None or a number of seconds"),
        about="Seconds after which the search stops and keeps the best subset so far.",
    )
    verbose: bool = setting(
        default=False,
        allowed=FLAG,
        about="Whether to show progress on standard error.",
    )
    numeric: Any = setting(default="equal-width-merged")
    smoothing: Any = setting(default="kohavi")
    random_state: Any = setting(
        default=None, allowed=SEED, about="Seed of the drawn rows."
    )

    selected_features_: list[Any] = learned(
        "list",
        "Names of the predictors of the final model, or positions if the table had "
        "no names, in the order of choice; forced ones come first.",
    )
    selection_path_: RecordTable = learned(
        "RecordTable",
        "One record per subset: size, predictor added, average log-likelihood, A, B, "
        "criterion, and whether it was chosen. Prints as a table.",
    )
    case_processing_: RecordTable = learned(
        "RecordTable",
        "For the training rows, and the test rows if there are any, how many were "
        "used, had no target, had no known predictor, or had a weight of zero, and "
        "how many were given.",
    )
    classification_table_: RecordTable = learned(
        "RecordTable",
        "For each class of the training rows, and of the test rows if there are any, "
        "the weight of the rows predicted to be of each class, and the percentage that "
        f"is right. Of at most {_MAX_CLASSES} classes.",
        optional=True,
    )
    search_end_: str = learned(
        '{"complete", "time limit", "interrupted"}',
        "How the search came to its end.",
    )
    error_: float = learned(
        "float",
        "Share of wrongly classified rows: of test rows if there are any, otherwise of "
        "training rows.",
        optional=True,
    )

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        X_test: Any = None,
        y_test: Any = None,
    ) -> Self:
        """Select predictors and learn the final model.

        Parameters
        ----------
        X : table of shape (n, d)
            NumPy array, pandas, polars or pyarrow table.
        y : array-like of shape (n,)
            Labels. Rows whose label is missing are left out, with a warning.
        sample_weight : array-like of shape (n,), default=None
            Row weights; a weight of 2 equals the row twice, of 0 its absence.
        X_test : table of shape (n_test, d), default=None
            Test rows, for the criterion and the error.
        y_test : array-like of shape (n_test,), default=None
            Their labels.

        Returns
        -------
        SPSSNaiveBayes
            The fitted classifier.
        """
        if (X_test is None) != (y_test is None):
            raise ParameterError(
                "Test data need both X_test and y_test; one of them is missing."
            )
        return self._learn(X, y, sample_weight, X_test=X_test, y_test=y_test)

    def _encoding(self) -> Encoding:
        return replace(super()._encoding(), skips_unlabelled=True)

    def _fit(
        self,
        recipe: Recipe,
        training: TrainingSet,
        X_test: Any = None,
        y_test: Any = None,
    ) -> Fit:
        if self.criterion == "test" and X_test is None:
            raise ParameterError(
                "criterion='test' needs test data: call fit(X, y, X_test=..., "
                "y_test=...), or set criterion='bic'."
            )
        forced, candidates = usable_predictors(
            training.given_counts, self.forced, self.excluded
        )
        given, training = training, with_known_cells(training, candidates)
        model = training.estimate(training.given_counts)
        test = None
        if X_test is not None:
            test = encode_test_rows(X_test, y_test, training, candidates, self)
        if self.selection == "none":
            forced = candidates
        arguments = training, model, forced, candidates, test
        path, best, end = self._choose(*arguments, self.divisor == "observed")
        named = {**selected(model.schema, path, best), "search_end_": end}
        if self._may_differ(training, candidates):
            other, chosen, _ = self._choose(*arguments, by_observed=True)
            subset = selected(model.schema, other, chosen)["selected_features_"]
            named["_observed_subset"] = subset
        model = model.restricted(list(path[best].members))
        named["case_processing_"] = _case_processing(given, training, test)
        if not self.select_only:
            named |= _classification(model, training, test)
        return Fit(model, model.log_prior, named, training=training)

    def _choose(
        self,
        training: TrainingSet,
        model: NBModel,
        forced: list[int],
        candidates: list[int],
        test: HeldOutRows | None,
        by_observed: bool,
    ) -> tuple[list[Subset], int, str]:
        """Return the subsets of a search, which is best, and how the search ended."""
        path, end = self._search(training, model, forced, candidates, by_observed)
        if test is not None:
            path = test.judged(path, model, self.n_jobs)
        path = [self._judged(step, training.given_counts.total) for step in path]
        # Of equal criteria the first, which is that of the smallest subset.
        best = int(np.argmin([step.facts["criterion"] for step in path]))
        if self.selection == "none" or self.exact_size is not None:
            best = len(path) - 1
        return path, best, end

    def _may_differ(self, training: TrainingSet, candidates: list[int]) -> bool:
        """Return whether to look for the subset that the manual's divisor chooses."""
        is_asked = self.divisor == "observed" or self.selection == "none"
        if is_asked or self.time_limit or self._draws_rows(training):
            return False
        return has_missing_cells(training.codes, candidates)

    def _draws_rows(self, training: TrainingSet) -> bool:
        megabytes = 8.0 * training.n_rows * training.n_classes / 2**20
        is_too_large = self.b_method == "auto" and megabytes > float(self.memory_limit)
        return self.b_method == "simulate" or is_too_large

    def _method_notices(self) -> list[Notice]:
        # The subset is part of the notice, not of the fitted model.
        manual = self.__dict__.pop("_observed_subset", self.selected_features_)
        if set(self.selected_features_) == set(manual):
            return []
        names = ", ".join(map(str, manual)) or "none"
        text = "the SPSS manual's divisor of B(J) would choose other predictors: "
        text += names
        advice = '`divisor="observed"` divides as the manual does'
        return [Notice("other-subset", text, advice=advice)]

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

    def _judged(self, step: Subset, n: float) -> Subset:
        """Add the criterion to the facts of a subset."""
        criterion = 0.5 * len(step.members) * np.log(n) / n
        criterion = -step.facts[_AVERAGE] + criterion
        if "test_log_likelihood" in step.facts and self.criterion != "bic":
            criterion = -step.facts["test_log_likelihood"]
        return replace(step, facts={**step.facts, "criterion": float(criterion)})

    def _search(
        self,
        training: TrainingSet,
        model: NBModel,
        forced: list[int],
        candidates: list[int],
        by_observed: bool,
    ) -> tuple[list[Subset], str]:
        """Return the initial subset and those after it, and how the search ended."""
        codes, weights = training.codes, training.sample_weight
        if self._draws_rows(training):
            rng = check_random_state(self.random_state)
            codes, weights = simulate(model, int(self.n_simulated), rng), None
        likelihood = AverageLikelihood(
            training.given_counts,
            Likelihood(codes, model, weights, self.n_jobs),
            by_observed,
            time.monotonic() + (self.time_limit or np.inf),
        )
        n_steps = self._n_steps(len(forced), len(candidates))
        start, extend = likelihood.start(forced), likelihood.extend
        steps = search(extend, start, candidates, least=-np.inf, ties=0.0)
        path, end = follow(
            islice(steps, n_steps + 1),
            "Forward selection",
            n_steps,
            bool(self.verbose),
            lambda path: f"log-likelihood {path[-1].facts[_AVERAGE]:.6f}",
        )
        if end != "complete":
            warn_user(
                f"The search for predictors ended early ({end}) with "
                f"{len(path[-1].members)} predictors; the best subset so far is kept.",
                UserWarning,
            )
        return path, end

    def _encode(self, X: Any, check: Any = None) -> Codes:
        codes = super()._encode(X, check)
        if self.select_only:
            raise ParameterError(
                "With select_only=True there is no final model to predict with. Use "
                "transform(X) for the selected columns, or fit with select_only=False."
            )
        return codes


def _case_processing(
    given: TrainingSet, used: TrainingSet, test: HeldOutRows | None
) -> RecordTable:
    """Count the rows that were used and left out."""
    kept = given.is_kept
    n_zero = 0 if kept is None else int(np.count_nonzero(~kept))
    samples = {"training": (used.n_rows, given.n_rows, given.n_unlabelled, n_zero)}
    if test is not None:
        samples["test"] = (test.codes.n_rows, test.n_labelled, test.n_unlabelled, 0)
    return RecordTable(
        {
            "sample": sample,
            "used": n_used,
            "without_target": n_unlabelled,
            "without_predictors": n_labelled - n_used,
            "of_weight_zero": n_zero,
            "total": n_labelled + n_unlabelled + n_zero,
        }
        for sample, (n_used, n_labelled, n_unlabelled, n_zero) in samples.items()
    )


def _classification(
    model: NBModel, training: TrainingSet, test: HeldOutRows | None
) -> dict[str, Any]:
    """Return the classification table and the error, of test rows if there are any."""
    weights, n_jobs = training.sample_weight, training.n_jobs
    counts = {"training": confusion(model, training, weights, n_jobs)}
    if test is not None:
        counts["test"] = confusion(model, test, None, n_jobs)
    last = list(counts.values())[-1]
    learned = {"error_": float((last.sum() - np.trace(last)) / last.sum())}
    if model.n_classes > _MAX_CLASSES:
        return learned
    labels = list(map(str, model.classes))
    records = [
        {
            "sample": sample,
            "observed": label,
            **{f"predicted {name}": n for name, n in zip(labels, row, strict=True)},
            "percent_correct": 100.0 * row[k] / sum(row) if sum(row) else None,
        }
        for sample, matrix in counts.items()
        for k, (label, row) in enumerate(zip(labels, matrix.tolist(), strict=True))
    ]
    return {**learned, "classification_table_": RecordTable(records)}
