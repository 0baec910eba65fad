"""Results that were never run, for what is drawn from results."""

import numpy as np
import pytest

from steelyard.lab.results import METRICS, Results


def _row(dataset, method, protocol, fold, accuracy):
    loss = 1.0 - accuracy
    row = {
        "dataset": dataset,
        "method": method,
        "protocol": protocol,
        "repeat": 0,
        "fold": fold,
        "status": "ok",
        "error": None,
        "n_train": 90,
        "n_test": 10,
        "fit_seconds": 0.1,
        "extra": {"alpha": 0.5},
    }
    good = {"accuracy", "balanced_accuracy", "f1", "auc"}
    return row | {name: accuracy if name in good else loss for name in METRICS}


@pytest.fixture
def make_results():
    """Return a function that makes results; earlier methods are better."""

    def make(
        methods=("RNB", "NB", "GNB"),
        n_datasets=6,
        n_folds=5,
        protocols=("honest",),
        failed=(),
        seed=0,
    ):
        rng = np.random.default_rng(seed)
        rows = []
        for protocol in protocols:
            for i in range(n_datasets):
                for fold in range(n_folds):
                    for j, method in enumerate(methods):
                        accuracy = 0.9 - 0.03 * j - 0.02 * i + rng.normal(0, 0.01)
                        accuracy += 0.02 * (protocol != "honest")
                        row = _row(f"set {i}", method, protocol, fold, accuracy)
                        if (i, method, fold) in failed:
                            row |= dict.fromkeys([*METRICS, "extra"])
                            row |= {"status": "error", "error": "ValueError: <no> & no"}
                        rows.append(row)
        return Results(rows, {"seed": seed})

    return make
