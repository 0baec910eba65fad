"""Other class priors than those of the training rows."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats
from steelyard._common.text import did_you_mean
from steelyard.exceptions import ParameterError, check_fitted

_Clf = TypeVar("_Clf")


def with_prior(self: _Clf, prior: Any) -> _Clf:
    r"""Return a classifier for rows among which classes have other shares.

    .. math:: P'(c \mid x) \propto P(c \mid x)\, \frac{\pi'_c}{\pi_c}

    Exact if rows of a class look as they did and only its share differs. Naive
    Bayes models the rows within each class, so that this is its own formula, and
    the model is that of a fit with ``prior``. Methods that learn weights or, as the
    default does, the posterior itself, assume besides that their probabilities are
    calibrated at the shares :math:`\pi` of the training rows
    (``class_log_prior_``, with ``class_weight``): an error there is carried over.

    Parameters
    ----------
    prior : mapping from class to probability, or array-like of shape (K,)
        New priors, between 0 and 1. Classes that a mapping leaves out share the
        rest as before.

    Returns
    -------
    classifier
        A fitted copy, saved, loaded and exported like any other. This one stays as
        it is. Edits stay as well, and ``unedited()`` undoes them alone.

    References
    ----------
    M. Saerens, P. Latinne, C. Decaestecker (2002), "Adjusting the outputs of a
    classifier to new a priori probabilities", Neural Computation 14, 21-41.

    Examples
    --------
    >>> import steelyard as sy
    >>> X = [["high"], ["high"], ["low"], ["low"]]
    >>> clf = sy.NaiveBayes().fit(X, ["ill", "well", "well", "ill"])
    >>> clf.with_prior({"ill": 0.02}).predict_proba([["low"]])
    array([[0.02, 0.98]])
    """
    clf: Any = self
    check_fitted(clf)
    log_prior = np.log(new_prior(prior, clf.classes_, clf.class_log_prior_))
    model = clf.model_.simplified()
    if not model.takes_prior:
        raise ParameterError(
            f"{type(clf).__name__} cannot take other priors after its fit. "
            f"{model.note()} Fit with `class_weight` instead."
        )

    ratio = log_prior - clf.class_log_prior_

    def moved(start: Floats) -> Floats:
        # What a model adds to the prior, nothing for naive Bayes, to the bit.
        added = start * model.link_scale - clf.class_log_prior_
        return np.asarray((log_prior + added) / model.link_scale)

    made = copy(clf)
    made.model_ = replace(model, log_prior=moved(model.log_prior))
    if (moments := getattr(model, "marginal", None)) is not None:
        made.model_ = replace(made.model_, marginal=moments.with_ratio(ratio))
    made.class_log_prior_ = log_prior
    if hasattr(clf, "edits_"):
        # Each of them is undone to a model that has the new priors as well.
        made.edits_ = [
            replace(
                edit,
                log_prior=moved(edit.log_prior),
                marginal=edit.marginal and edit.marginal.with_ratio(ratio),
            )
            for edit in clf.edits_
        ]
    # They were those of rows with the other shares.
    made.training_ = clf.training_.without_scores()
    if hasattr(made, "kept_rows_"):
        del made.kept_rows_
    return made


def new_prior(given: Any, classes: NDArray[Any], log_prior: Floats) -> Floats:
    """Return a prior for each class, by those that are given and the old ones.

    Classes that a mapping does not name share what it leaves as they did before.

    >>> old = np.log([0.5, 0.3, 0.2])
    >>> new_prior({"ill": 0.1}, np.array(["ill", "well", "unclear"]), old).round(2)
    array([0.1 , 0.54, 0.36])
    """
    if not np.isfinite(log_prior).all():
        which = classes[~np.isfinite(log_prior)].tolist()[0]
        raise ParameterError(
            f"Class {which!r} has a prior of 0 in the model, so that nothing is known "
            "of its rows. Fit with rows of each class."
        )
    if not isinstance(given, Mapping):
        numbers = _numbers(given)
        if numbers.shape != classes.shape:
            raise ParameterError(
                f"A new prior is a mapping such as {{{classes.tolist()[-1]!r}: 0.02}}, "
                f"or {len(classes)} probabilities. Got {given!r}."
            )
        given = dict(zip(classes.tolist(), numbers.tolist(), strict=True))
    places = {str(label): k for k, label in enumerate(classes.tolist())}
    prior = np.full(len(classes), np.nan)
    for label, share in given.items():
        if str(label) not in places:
            raise ParameterError(
                f"{label!r} is not a class.{did_you_mean(str(label), places)} Classes: "
                f"{', '.join(list(places)[:8])}."
            )
        (number,) = _numbers([share])
        if not 0.0 < number < 1.0:
            raise ParameterError(
                f"The prior of {label!r} must be between 0 and 1, without the ends. "
                f"Got {share!r}."
            )
        prior[places[str(label)]] = number
    return _completed(prior, np.exp(log_prior))


def _completed(prior: Floats, old: Floats) -> Floats:
    """Share what is left among the classes that were not named."""
    is_open, total = np.isnan(prior), float(np.nansum(prior))
    if not is_open.any() and not np.isclose(total, 1.0):
        raise ParameterError(f"The priors must add up to 1. Got a sum of {total:.6g}.")
    if is_open.any() and total >= 1.0:
        raise ParameterError(
            f"The priors leave nothing for the classes that are not named: their sum "
            f"is {total:.6g}."
        )
    left = (1.0 - total) * old / old[is_open].sum() if is_open.any() else old
    return np.where(is_open, left, prior)


def _numbers(given: Any) -> Floats:
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"A prior must be a number. Got {given!r}.") from None
