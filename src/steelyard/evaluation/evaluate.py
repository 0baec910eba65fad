"""Evaluation of a classifier: by cross-validation, or fitted on new rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.one_cell import by_spelling
from steelyard._common.progress import progress as show_progress
from steelyard.classifiers.fitted import answering_model
from steelyard.evaluation.metrics import thresholds
from steelyard.evaluation.result import Evaluation, MeasureTable
from steelyard.evaluation.shares import check_costs
from steelyard.exceptions import ParameterError, TableError
from steelyard.notices.check import NewRows
from steelyard.notices.notice import Notice
from steelyard.table.frames import split_column
from steelyard.table.labels import check_n_labels, encode_labels, labels_of_rows
from steelyard.table.rows import check_weights

__all__ = ["Evaluation", "MeasureTable", "evaluate", "evaluate_chunks", "thresholds"]

Ints = NDArray[np.intp]

_DEFAULT_FOLDS = 10


def evaluate(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    folds: int | None = None,
    seed: int = 1,
    positive: Any = None,
    costs: Any = None,
    by: Any = None,
    progress: bool = False,
) -> Evaluation:
    """Measure a method by cross-validation, or a fitted model on new rows.

    Parameters
    ----------
    estimator : classifier
        A fitted one is measured on the rows as it is, unless ``folds`` is given;
        another is cross-validated.
    X : table of shape (n, d)
        The rows.
    y : array-like of shape (n,)
        Their labels, none missing.
    sample_weight : array-like of shape (n,), default=None
        Row weights for the fits; measures do not use them.
    folds : int, default=None
        Stratified folds; 10 if None.
    seed : int, default=1
        Seed of the folds.
    positive : label, default=None
        With two classes the one that thresholds are for; the second if None.
    costs : pair, mapping or matrix, default=None
        Cost of a false alarm and of a miss, ``(1, 20)`` or ``{"fp": 1, "fn": 20}``, for
        the best threshold; or of all errors, true classes by decisions.
    by : str or array-like of shape (n,), default=None
        Groups to measure separately: cells, or the name of a column, which need not be
        one of a fitted model.
    progress : bool, default=False
        Whether to show progress on standard error.

    Returns
    -------
    Evaluation
        Measures, confusion, calibration, thresholds and groups; its ``repr`` shows
        them all.

    Examples
    --------
    >>> import steelyard as sy
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> result = evaluate(sy.NaiveBayes(), X, y, folds=5)
    >>> result.metrics["accuracy"] > 0.9
    True
    >>> result.confusion.sum(axis=1)
    array([50, 50, 50])
    >>> model = sy.NaiveBayes().fit(X[::2], y[::2])
    >>> print(evaluate(model, X[1::2], y[1::2]).tables()[0].title)
    75 rows
    >>> evaluate(model, X, y, by=X[:, 0] > 6).groups["True"]["rows"]
    61
    """
    from sklearn.utils.validation import _num_samples

    y = labels_of_rows(y, _num_samples(X))
    if folds is None and _is_fitted(estimator):
        if by is not None:
            X, by = grouped(X, by, getattr(estimator, "feature_names_in_", None))
        chunks = [(X, y) if by is None else (X, y, by)]
        return evaluate_chunks(estimator, chunks, positive=positive, costs=costs)
    costs = check_costs(costs)
    by = None if by is None else grouped(X, by)[1]
    folds = _DEFAULT_FOLDS if folds is None else folds
    predicted = cross_validated(estimator, X, y, sample_weight, folds, seed, progress)
    choices = folds, positive, costs, _notices_of(X, y), by
    return Evaluation.measured(*predicted, *choices)


def cross_validated(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    folds: int,
    seed: int,
    progress: bool = False,
) -> tuple[list[Any], list[Any], NDArray[np.intp], NDArray[np.intp], Any]:
    """Predict each row by a fit to the other folds.

    Returns the folds, each with its rows and which classes its fit has seen; all
    classes; true and predicted positions of classes; and probabilities, None if the
    classifier has none.
    """
    from sklearn.base import clone
    from sklearn.utils import _safe_indexing

    classes, codes = encode_labels(y)
    labels, true = classes[codes], codes.astype(np.intp)
    _check_folds(folds, true)
    sample_weight = check_weights(sample_weight, len(true))
    predicted = np.zeros(len(true), dtype=np.intp)
    proba = np.zeros((len(true), len(classes)))
    parts = []
    with show_progress("Cross-validating", folds, progress) as advance:
        for train, test in split_rows(labels, folds, seed):
            options = {}
            if sample_weight is not None:
                options["sample_weight"] = sample_weight[train]
            fitted = clone(estimator)
            fitted.fit(_safe_indexing(X, train), labels[train], **options)
            seen = np.searchsorted(classes, fitted.classes_)
            positions, chances = _predict(fitted, _safe_indexing(X, test))
            predicted[test] = seen[positions]
            if chances is not None:
                proba[np.ix_(test, seen)] = chances
            parts.append((test, np.isin(np.arange(len(classes)), seen)))
            advance(f"fold {len(parts)} of {folds} is done")
    whole = proba if hasattr(estimator, "predict_proba") else None
    return parts, classes.tolist(), true, predicted, whole


def evaluate_chunks(
    model: Any,
    chunks: Iterable[Sequence[Any]],
    *,
    positive: Any = None,
    costs: Any = None,
) -> Evaluation:
    """Measure a fitted model as ``evaluate`` does, on chunks of rows.

    Chunks are (X, y) or (X, y, by): tables, labels, and cells by which rows are
    grouped. Labels are compared as text, and 1.0 is the class 1 if there is one; those
    that are no class of the model count as wrong. Only predictions are kept in memory.
    """
    costs = check_costs(costs)
    classes = model.classes_.tolist()
    n_classes = len(classes)
    positions = {str(label): k for k, label in enumerate(classes)}
    true: list[int] = []
    groups: list[Any] = []
    predicted, proba = [], []
    rows = NewRows(model) if hasattr(model, "check") else None
    for X, y, *by in chunks:
        if len(y):
            groups += [cell for cells in by for cell in cells]
            if rows is not None:
                rows.add(X, y)
            names = label_names(y, positions)
            true += [positions.setdefault(name, len(positions)) for name in names]
            labels, probabilities = _predict(model, X, rows)
            check_n_labels(len(y), len(labels))
            predicted.append(labels)
            proba.append(probabilities)
    if not set(true) & set(range(n_classes)):
        shown = ", ".join(list(positions)[:n_classes][:8])
        raise TableError(f"No label is a class of the model: {shown}.")
    # Classes that training did not see have probability zero.
    extra = ((0, 0), (0, len(positions) - n_classes))
    whole = None if proba[0] is None else np.pad(np.vstack(proba), extra)
    parts = [(slice(None), np.arange(len(positions)) < n_classes)]
    classes += list(positions)[n_classes:]
    predictions = classes, np.array(true), np.concatenate(predicted), whole
    notices = [] if rows is None else rows.notices()
    choices: Any = None, positive, costs, notices, groups or None
    return Evaluation.measured(parts, *predictions, *choices)


def grouped(X: Any, by: Any, names: Any = None) -> tuple[Any, list[Any]]:
    """Return rows, and the cells by which they are grouped.

    ``by`` is cells or the name of a column, which is dropped from the rows if it is not
    among the ``names`` of a model's columns.
    """
    if not isinstance(by, str):
        return X, list(by.to_list() if hasattr(by, "to_list") else by)
    others, cells = split_column(X, by)
    return X if names is None or by in names else others, cells


def _notices_of(X: Any, y: Any) -> Sequence[Notice]:
    """Return the notices of a fit of naive Bayes to all rows."""
    from steelyard.classifiers.naive_bayes import NaiveBayes

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return NaiveBayes().fit(X, y).notices_
        except (TypeError, ValueError):
            # What another classifier learns from need not be a table.
            return []


def _is_fitted(estimator: Any) -> bool:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def split_rows(target: NDArray[Any], folds: int, seed: int) -> list[tuple[Ints, Ints]]:
    """Split rows into folds, each with about the same share of every class.

    If every class has fewer rows than there are folds, folds are not stratified.
    """
    from sklearn.model_selection import KFold, StratifiedKFold

    counts = np.unique(target, return_counts=True)[1]
    kind = StratifiedKFold if counts.max() >= folds else KFold
    splitter = kind(folds, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        # The run has warned of small classes, once for each data set.
        warnings.simplefilter("ignore", UserWarning)
        return list(splitter.split(np.zeros(len(target)), target))


def _check_folds(folds: int, true: NDArray[np.intp]) -> None:
    counts = np.bincount(true)
    if folds < 2:
        raise ParameterError(f"`folds` must be at least 2. Got {folds}.")
    if len(counts) < 2:
        raise TableError("All labels are of one class. At least two are needed.")
    if counts.max() < folds:
        raise TableError(
            f"{folds} folds need a class of at least {folds} rows; use "
            f"`folds={counts.max()}` or fewer."
        )
    if counts.min() < folds:
        small = f"{(counts < folds).sum()} of {len(counts)} classes have fewer rows"
        warnings.warn(f"{small} than folds", UserWarning, stacklevel=3)


def _predict(
    model: Any, X: Any, rows: NewRows | None = None
) -> tuple[NDArray[np.intp], Any]:
    """Return positions of the predicted classes, and probabilities if there are any.

    ``rows`` count those that are partly known.
    """
    place = {label: k for k, label in enumerate(model.classes_.tolist())}
    if rows is not None and rows.averages:
        rows.add_codes(answering_model(model), model._encode(X))
    predicted = np.array([place[label] for label in model.predict(X).tolist()])
    proba = model.predict_proba(X) if hasattr(model, "predict_proba") else None
    return predicted, proba


def label_names(y: Any, names: dict[str, int]) -> list[str]:
    """Return labels as text, spelt as the names of classes."""
    plain = by_spelling({name: name for name in names})
    return [_spelling(label, names, plain) for label in np.asarray(y).tolist()]


def _spelling(label: Any, names: dict[str, int], plain: dict[str, str]) -> str:
    """Return a label as text; 1.0 is the class 1 if there is one."""
    text = str(label)
    if text not in names:
        text = plain.get(text.strip(), text)
    try:
        shorter = f"{float(text):.15g}"
    except ValueError:
        return text
    return text if text in names or shorter not in names else shorter
