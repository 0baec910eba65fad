"""What the exponential-loss paper alone measures in its figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from steelyard.experiments.data.sets import load_dataset
from steelyard.experiments.papers.engine import Run
from steelyard.experiments.papers.exponential import fit_all_rows
from steelyard.experiments.papers.layout import Values
from steelyard.experiments.papers.report import SEED
from steelyard.experiments.papers.simulated import NoisyLabels, two_groups
from steelyard.experiments.papers.tables import mean, table
from steelyard.experiments.protocols import find_protocol

__all__ = ["correlations", "dimensions", "noise", "noisy_methods"]


def correlations(run: Run, tasks: Sequence[str]) -> Values:
    """Figures 4 to 6: how strongly attributes depend on each other."""
    rows, matrices = [], {}
    for name in tasks:
        numbers = load_dataset(f"task:{name}", run.folder).table.select_dtypes("number")
        varied = numbers.loc[:, numbers.nunique() > 1]
        matrix = np.corrcoef(varied.to_numpy(dtype=np.float64).T)
        matrices[name] = matrix
        away = np.abs(matrix[~np.eye(len(matrix), dtype=bool)])
        row = {"task": name, "n": len(matrix), "mean": away.mean()}
        rows.append({**row, "max": away.max(), "above": 100 * np.mean(away > 0.5)})
    return {"rows": rows, "drawn": [matrices]}


def noisy_methods(run: Run) -> dict[str, Any]:
    """Train methods on labels of which some are wrong."""
    adapt = find_protocol(run.paper.protocol).adapt
    return {
        f"{name} {share} %": NoisyLabels(
            adapt(run.paper.classifier(name), 2), share / 100
        )
        for name in ("NB", *run.paper.shared["proposed"])
        for share in run.paper.shared["noise_shares"]
    }


def noise(run: Run) -> Values:
    """Figure 7: accuracy against the share of wrong labels."""
    shares, proposed = (run.paper.shared[key] for key in ("noise_shares", "proposed"))
    accuracies = run.accuracies("noise")
    panels = {}
    for task in next(iter(accuracies.values())):
        columns = {n: [f"{n} {s} %" for s in shares] for n in ("NB", *proposed)}
        curves = {n: [accuracies[c][task] for c in columns[n]] for n in columns}
        panels[task] = (shares, curves)
    rows = [
        [task, name, *(f"{x:.2f}" for x in (*y, y[0] - y[-1]))]
        for task, (_, curves) in panels.items()
        for name, y in curves.items()
    ]
    header = " | ".join(["task | method", *(f"{share} %" for share in shares), "fall"])
    return {
        **_noise_outcomes(run, [curves for _, curves in panels.values()]),
        "repeats": run.results("noise").settings["repeats"],
        "step": shares[1] - shares[0],
        "by_task": table(header, rows),
        "drawn": [panels],
    }


def _noise_outcomes(run: Run, curves: Sequence[Any]) -> Values:
    """Return average falls from no noise, and average levels."""
    shares, proposed = (run.paper.shared[key] for key in ("noise_shares", "proposed"))
    falls = []
    for i in (1, -1):
        fall = {n: mean(c[n][0] - c[n][i] for c in curves) for n in proposed}
        text = ", ".join(f"{name} -{fall[name]:.1f}" for name in proposed)
        most = run.judged(max(proposed, key=fall.__getitem__) == "ENB")
        falls.append({"share": shares[i], "text": text, "enb_most": most})
    level = {n: mean(mean(c[n]) for c in curves) for n in ("NB", *proposed)}
    best = sorted(proposed, key=lambda name: -level[name])
    return {
        "falls": falls,
        "levels": ", ".join(f"{name} {level[name]:.1f}" for name in best),
        "two_best": run.judged(set(best[:2]) == {"LNB", "GDNB"}),
        "nb_level": level["NB"],
        "nb_worst": run.judged(level["NB"] < level[best[-1]]),
    }


def dimensions(run: Run, step: int, n_train: int, n_test: int) -> Values:
    """Figure 8: test accuracy and the share of useful weights, by attributes."""
    import pandas as pd

    run.say(f"{run.paper.name}: dimensions")
    proposed, sizes = run.paper.shared["proposed"], list(range(2, 201, step))
    accuracy: dict[str, list[float]] = {name: [] for name in proposed}
    ratio: dict[str, list[float]] = {name: [] for name in proposed}
    for d in sizes:
        rng = np.random.default_rng([SEED, d])
        (X, y), (Z, z) = (two_groups(n, d, rng) for n in (n_train, n_test))
        columns = [f"{group}{i + 1}" for group in "AB" for i in range(d // 2)]
        X, Z = (pd.DataFrame(cells, columns=columns) for cells in (X, Z))
        for name in proposed:
            fitted = fit_all_rows(run, name, X, y)
            weights = fitted.attribute_weights_
            total = float(weights.sum())
            accuracy[name].append(100.0 * float(np.mean(fitted.predict(Z) == z)))
            ratio[name].append(float(weights[d // 2 :].sum()) / total if total else 0.5)
    rows = [
        [str(d), *(f"{accuracy[n][i]:.1f} / {ratio[n][i]:.3f}" for n in proposed)]
        for i, d in enumerate(sizes)
        if run.quick or d == 2 or d % 20 == 0
    ]
    judged = []
    for name in proposed:
        right, useful = min(accuracy[name]), min(ratio[name])
        enough = right >= 98.0 and useful >= 0.99
        entry = {"method": name, "right": right, "useful": useful, "enough": enough}
        judged.append(entry)
    panels = {
        "test accuracy (%)": (sizes, accuracy),
        "share of weight on useful attributes": (sizes, ratio),
    }
    by_size = table(" | ".join(["d", *proposed]), rows)
    values = {"by_size": by_size, "judged": judged, "drawn": [panels]}
    return {**values, "n_train": n_train, "n_test": n_test}
