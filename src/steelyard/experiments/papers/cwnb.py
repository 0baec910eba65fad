"""What the CWNB paper alone measures: large sets, rounds, consistency, wrong labels.

H. Zhang, L. Jiang, C. Li (2021), "Collaboratively weighted naive Bayes", Knowledge and
Information Systems. Ten equal-width bins and mean or mode imputation over the whole
data set, ten times stratified 10-fold cross-validation, the same folds for all methods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from steelyard.classifiers.joint import JointWeightedNB
from steelyard.experiments.data.sets import dataset_group, load_dataset
from steelyard.experiments.papers.engine import Run
from steelyard.experiments.papers.layout import Values
from steelyard.experiments.papers.report import SEED
from steelyard.experiments.papers.sections import fold_accuracies
from steelyard.experiments.papers.simulated import flip_labels, sum_of_attributes
from steelyard.experiments.papers.tables import (
    averaged,
    differences,
    figures_table,
    mean,
    table,
)
from steelyard.experiments.protocols import find_protocol
from steelyard.experiments.statistics.two_methods import corrected_t_test

__all__ = [
    "JointWeightedNB",
    "by_size",
    "consistency",
    "flips",
    "generated",
    "joint",
    "large_sets",
    "sets_of_at_most",
    "variants",
]


def by_size(
    run: Run, group: str | Sequence[str], max_rows: float = np.inf
) -> list[str]:
    """Order a group of data sets, or some by name, by their number of rows."""
    names = dataset_group(group, run.folder) if isinstance(group, str) else group
    sizes = {name: len(load_dataset(name, run.folder)) for name in names}
    return sorted((n for n in sizes if sizes[n] <= max_rows), key=sizes.__getitem__)


def sets_of_at_most(run: Run, max_rows: int) -> list[str]:
    """Name the data sets of the tables that have at most so many rows."""
    entries = run.results("tables").settings["datasets"]
    return [name for name, data in entries.items() if data["rows"] <= max_rows]


def large_sets(
    run: Run, max_small: int, n_printed: int, printed: Mapping[str, Sequence[int]]
) -> Values | None:
    """Figure 2: CWNB against the others on the larger data sets.

    Printed are on how many data sets CWNB is better, and significantly so.
    """
    results, small = run.results("tables"), sets_of_at_most(run, max_small)
    names = [name for name in results.datasets if name not in small]
    if not names:
        return None
    folds = fold_accuracies(results.select(dataset=names), ["CWNB", *printed])
    test = corrected_t_test(folds[:, :1] - folds, np.full((len(names), 1), 1 / 9))
    ahead, is_significant = test.mean > 0, test.p_value <= 0.05
    averages = 100 * folds.mean(axis=2)
    rows, points, marks = [], {}, {}
    for j, (name, counts) in enumerate(printed.items(), 1):
        masks = ahead[:, j], ahead[:, j] & is_significant[:, j]
        theirs = [100 * count / n_printed for count in counts]
        ours = [100 * int(mask.sum()) / len(names) for mask in masks]
        rows.append({"method": name, "theirs": theirs, "ours": ours})
        points[name], marks[name] = averages[:, j], is_significant[:, j]
    drawn = ["CWNB accuracy (%)", averages[:, 0], points, marks]
    return {"rows": rows, "n": len(names), "max_small": max_small, "drawn": drawn}


def variants(
    run: Run, methods: Sequence[str], printed: Mapping[str, Sequence[float]]
) -> Values:
    """Tables 4 and 5: compare the variants, and count rounds of interactive ones.

    Printed are average, median and maximum of the rounds.
    """
    accuracies = run.accuracies("tables")
    shown = {name: averaged(accuracies[name]) for name in methods}
    rows = []
    for name, theirs in printed.items():
        records = run.extras("tables", name, "rounds")
        rounds = {data: mean(values) for data, values in records.items()}
        shown[f"rounds {name[4:]}"] = averaged(rounds)
        values = np.array(list(rounds.values()))
        ours = [float(f(values)) for f in (np.mean, np.median, np.max)]
        near = run.judged(abs(ours[0] - theirs[0]) <= 1)
        rows.append({"method": name, "theirs": theirs, "ours": ours, "near": near})
    averages = [mean(accuracies[name].values()) for name in methods]
    spread = max(averages) - min(averages)
    return {
        "rows": rows,
        "by_set": figures_table(shown),
        "spread": spread,
        "equal": spread < 1,
    }


# --------------------------------------------------------------------------- Figure 3


def _draws(run: Run) -> dict[int, list[str]]:
    """Name the tables that are drawn of each size."""
    most = run.paper.shared["max_draws"]
    return {
        n: [f"{n} rows, draw {k}" for k in range(min(most, max(2, 20_000 // n)))]
        for n in run.paper.shared["sizes"]
    }


def generated(run: Run) -> list[tuple[str, Any, Any]]:
    """Draw tables of several sizes."""
    return [
        (name, *sum_of_attributes(n, SEED + k))
        for n, names in _draws(run).items()
        for k, name in enumerate(names)
    ]


def consistency(run: Run, panel: str) -> Values:
    """Figure 3: accuracy against the number of generated rows."""
    accuracies, draws = run.accuracies("consistency"), _draws(run)
    curves = {
        method: [mean(accuracies[method][name] for name in draws[n]) for n in draws]
        for method in accuracies
    }
    rows = [
        [f"{n:,} | {len(names)}", *(f"{values[i]:.2f}" for values in curves.values())]
        for i, (n, names) in enumerate(draws.items())
    ]
    lead = {n: curves["CWNB"][i] - curves["NB"][i] for i, n in enumerate(draws)}
    is_ahead = all(gap > 0 for n, gap in lead.items() if 75 <= n < 10_000)
    return {
        "by_size": table(" | ".join(["rows | draws", *curves]), rows),
        "lead": ", ".join(f"{n:,}: {gap:+.1f}" for n, gap in lead.items()),
        "as_printed": run.judged(lead[25] < 0 and is_ahead),
        "drawn": [{panel: (list(draws), curves)}],
    }


# ------------------------------------------------------------------- beyond the paper


def joint(run: Run) -> Values:
    """Compare weights of one objective with weights learned in turn."""
    results, accuracies = run.results("joint"), run.accuracies("joint")
    seconds = results.settings["folds"] * results.matrix("fit_seconds")[:, -1]
    took = dict(zip(results.datasets, seconds.tolist(), strict=True))
    shown = {name: averaged(column) for name, column in accuracies.items()}
    shown["joint - CWNB"] = differences(shown["joint"], shown["CWNB"])
    shown["seconds of 10 joint fits"] = averaged(took)
    gaps = differences(accuracies["joint"], accuracies["CWNB"]).values()
    better, worse = (sum(round(s * gap, 9) > 0 for gap in gaps) for s in (1, -1))
    formats = {"joint - CWNB": "+.2f", "seconds of 10 joint fits": ".1f"}
    by_set = figures_table(shown, formats)
    return {"by_set": by_set, "better": better, "worse": worse}


def flips(run: Run, data: Sequence[str], share: float, draws: int) -> Values | None:
    """Look for wrong labels among the rows of largest weight."""
    protocol = find_protocol(run.paper.protocol)
    rows = []
    for name in (name for name in data if name in run.names):
        prepared = protocol.prepare(load_dataset(name, run.folder))
        shares = []
        for draw in range(draws):
            noisy, wrong = flip_labels(prepared.target, share, SEED + draw)
            # CWNB begins with the same rounds: its instance weights are these.
            classifier = protocol.adapt(run.paper.classifier("DWNB"), 2)
            top = classifier.fit(prepared.table, noisy).hardest_rows(int(wrong.sum()))
            shares.append(100.0 * float(wrong[top].mean()))
        row = {"name": name, "n": len(wrong), "flipped": int(wrong.sum())}
        rows.append({**row, "found": mean(shares)})
    return {"rows": rows, "draws": draws} if rows else None
