"""What the RNB paper alone measures: its mixture, the optimum, finer cuts, a leak."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from steelyard.experiments.data.sets import DataSet, load_dataset
from steelyard.experiments.papers.engine import Run
from steelyard.experiments.papers.layout import Values
from steelyard.experiments.papers.tables import (
    averaged,
    differences,
    figures_table,
    mean,
    side_by_side,
)
from steelyard.experiments.protocols import discretize_whole

__all__ = [
    "few_weights",
    "finer_cuts",
    "leak",
    "mixtures",
    "other_settings",
    "printed_sets",
]


def printed_sets(run: Run, printed: str) -> list[str]:
    """Name the data sets of a printed table."""
    return [name for name in run.printed(printed) if name != "AVERAGE"]


def few_weights(run: Run, max_weights: int) -> list[str]:
    """Name the data sets with few class-specific weights."""
    data = [load_dataset(name, run.folder) for name in run.names]
    return [d.name for d in data if len(d.classes) * d.table.shape[1] <= max_weights]


def finer_cuts(run: Run) -> list[DataSet]:
    """Cut numbers by Weka's better encoding."""
    data = [load_dataset(name, run.folder) for name in run.names]
    # The protocol deletes what the paper does; codes are no longer cut.
    codes = [discretize_whole(d.table, d.target, "mdl-better") for d in data]
    return [replace(d, table=table) for d, table in zip(data, codes, strict=True)]


def mixtures(run: Run, part: str, min_large: int) -> Values:
    """Tables 5 and 6: the learned mixture against the number of rows per class."""
    lead = differences(*(run.accuracies(part)[name] for name in ("RNB", "CAWNB")))
    sizes = run.results(part).settings["datasets"]
    rows = []
    for name, alphas in run.extras(part, "RNB", "alpha").items():
        n, per_class = sizes[name]["rows"], sizes[name]["rows"] / sizes[name]["classes"]
        row = {"name": name, "rows": n, "per_class": per_class, "lead": lead[name]}
        rows.append({**row, "alpha": mean(alphas), "deviation": np.std(alphas)})
    points = np.array(
        [[row[k] for k in ("per_class", "alpha", "lead")] for row in rows]
    )
    is_large = points[:, 0] > min_large
    groups = []
    for word, group in (("small", points[~is_large]), ("large", points[is_large])):
        if len(group):
            alpha, ahead = f"{group[:, 1].mean():.3f}", group[:, 2].mean()
            entry = {"word": word, "n": len(group), "alpha": alpha, "lead": ahead}
            groups.append(entry)
    alphas = [float(group["alpha"]) for group in groups]
    return {
        "sets": rows,
        "groups": groups,
        "min_large": min_large,
        "averages": ", ".join(f"{g['word']} {g['alpha']}" for g in groups),
        "larger": alphas[1] > alphas[0] if len(alphas) == 2 else None,
        "drawn": [points, min_large],
    }


def other_settings(
    run: Run, printed: str, learned: Sequence[str], finer: Sequence[str]
) -> Values:
    """Fit to the optimum, and RNB on finer cuts."""
    few = list(run.accuracies("optimum")["RNB"])
    rows = [
        {"title": title, "pair": pair, "n": len(pair.measured)}
        for title, part, columns, names in (
            ("published solver", "table3", learned, few),
            ("optimum", "optimum", learned, few),
            ("better encoding", "better", finer, run.names),
        )
        for pair in run.pairs(printed, {c: (part, c) for c in columns}, names)
    ]
    ((_, target, _),) = run.pairs(printed, {"RNB": ("table3", "RNB")})
    variants = {"RNB, optimum:": "optimum", "RNB, better encoding:": "better"}
    pairs = [(t, target, run.accuracies(part)["RNB"]) for t, part in variants.items()]
    return {"rows": rows, "by_set": side_by_side(run.names, pairs)}


def leak(run: Run, part: str) -> Values:
    """Compare whole-data preprocessing with preprocessing inside each fold."""
    protocols = run.results(part).settings["protocols"]
    whole, fold = (averaged(run.accuracies(part, name)["NB"]) for name in protocols)
    columns = {"whole": whole, "in fold": fold, "leak": differences(whole, fold)}
    return {"by_set": figures_table(columns, {"leak": "+.2f"})}
