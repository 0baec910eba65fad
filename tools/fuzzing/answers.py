"""What holds of the answers of any fitted model."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuzzing.case import WrongError


def check_answers(clf: Any, X: Any) -> np.ndarray[Any, Any]:
    """Return probabilities, all of them checked."""
    p, logs = clf.predict_proba(X), clf.predict_log_proba(X)
    if not (np.isfinite(p).all() and (p >= 0).all()):
        raise WrongError(f"probabilities {p[~np.isfinite(p).all(axis=1)][:2]}")
    if not np.allclose(p.sum(axis=1), 1.0):
        raise WrongError("probabilities that do not add up to one")
    if np.isnan(logs).any() or (logs > 1e-9).any():
        raise WrongError("logarithms that are no logarithms of probabilities")
    large = p > 1e-200
    if not np.allclose(np.exp(logs[large]), p[large], rtol=1e-6, atol=1e-9):
        raise WrongError("logarithms of other probabilities")
    labels = clf.predict(X)
    if not np.isin(labels, clf.classes_).all():
        raise WrongError("classes that there are not")
    chosen = p[np.arange(len(p)), np.searchsorted(clf.classes_, labels)]
    if not (chosen >= p.max(axis=1) - 1e-9).all():
        raise WrongError("a class that is not the likeliest")
    return np.asarray(p)
