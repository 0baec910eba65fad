"""Where to decide for a class: precision, recall and cost by threshold."""

from __future__ import annotations

from typing import Any

__all__ = ["threshold_tables"]

_SHOWN = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def threshold_tables(
    positive: Any, proba: Any, costs: tuple[float, float] | None = None
) -> dict[str, Any]:
    """Decide for a class wherever its probability reaches a threshold.

    Parameters
    ----------
    positive : array of shape (n,)
        Whether each row is of the class.
    proba : array of shape (n,)
        Its probability.
    costs : pair of float, default=None
        Cost of a false alarm and of a miss.

    Returns
    -------
    dict
        ``table`` for nine thresholds, ``best_f1``, and ``best_cost``, which is None
        without costs. Of thresholds that are equally good the largest is taken.

    Examples
    --------
    >>> import numpy as np
    >>> found = threshold_tables(np.array([0, 0, 1, 1]), np.array([0.1, 0.4, 0.3, 0.8]))
    >>> found["best_f1"]["threshold"], round(found["best_f1"]["f1"], 3)
    (0.3, 0.8)
    """
    import numpy as np

    positive = np.asarray(positive, dtype=bool)
    proba = np.asarray(proba, dtype=np.float64)
    order = np.argsort(-proba, kind="stable")
    levels = -proba[order]
    hits = np.concatenate([[0], np.cumsum(positive[order])])
    total = int(positive.sum())

    def at(threshold: float) -> dict[str, float]:
        chosen = int(np.searchsorted(levels, -threshold, side="right"))
        hit = int(hits[chosen])
        entry = {
            "threshold": float(threshold),
            "precision": hit / chosen if chosen else 0.0,
            "recall": hit / total if total else 0.0,
            "f1": 2 * hit / (chosen + total) if chosen + total else 0.0,
        }
        if costs is not None:
            entry["cost"] = costs[0] * (chosen - hit) + costs[1] * (total - hit)
        return entry

    # The number of rows chosen at each distinct probability, and none at all.
    distinct = np.unique(proba)[::-1]
    chosen = np.searchsorted(levels, -distinct, side="right")
    hit = hits[chosen]
    best_f1 = at(distinct[np.argmax(2 * hit / (chosen + total))])
    best_cost = None
    if costs is not None:
        loss = costs[0] * (chosen - hit) + costs[1] * (total - hit)
        # Above 1 no row is chosen.
        none = costs[1] * total < loss.min()
        best_cost = at(float(np.nextafter(1, 2)) if none else distinct[np.argmin(loss)])
    return {
        "table": [at(threshold) for threshold in _SHOWN],
        "best_f1": best_f1,
        "best_cost": best_cost,
    }
