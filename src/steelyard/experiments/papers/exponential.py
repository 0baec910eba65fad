"""What the exponential-loss paper alone measures in its tables."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from steelyard.experiments.data.sets import load_dataset
from steelyard.experiments.data.tasks import MULTICLASS, TASKS
from steelyard.experiments.papers.engine import Run
from steelyard.experiments.papers.filters import figures_of_one_fold
from steelyard.experiments.papers.layout import Values
from steelyard.experiments.papers.sections import accuracy_table, wilcoxon_table
from steelyard.experiments.papers.tables import Pair, mean, side_by_side
from steelyard.experiments.protocols import find_protocol
from steelyard.experiments.statistics.two_methods import wilcoxon_signed_rank

__all__ = [
    "all_tasks",
    "attributes_selected",
    "filters_beside",
    "same_outcomes",
    "task_names",
    "tasks_of_the_run",
]

_TASKS = {"binary": TASKS, "several": MULTICLASS}


def task_names(run: Run, group: str) -> list[str]:
    """Name the binary tasks, or those of several classes."""
    return [task.name for task in _TASKS[group]]


def all_tasks(run: Run) -> list[str]:
    """Name the tasks of both groups."""
    return [name for group in _TASKS for name in task_names(run, group)]


def tasks_of_the_run(run: Run, group: str) -> list[str]:
    """Name the data sets of a group as far as the run has them."""
    return [f"task:{name}" for name in task_names(run, group) if name in run.names]


def fit_all_rows(run: Run, name: str, X: Any, y: Any) -> Any:
    """Fit a method with the settings of the protocol for two classes."""
    protocol = find_protocol(run.paper.protocol)
    with warnings.catch_warnings():
        # Some tables are separable.
        warnings.simplefilter("ignore")
        return protocol.adapt(run.paper.classifier(name), 2).fit(X, y)


def filters_beside(
    run: Run, filters: Mapping[str, str], max_rows: int, **table: Any
) -> Values:
    """Table 2, with each filter in the form that is nearest to print.

    ``filters`` are their columns, with a note. Figures of tasks of more than
    ``max_rows`` rows look by chance as if they came from one fold.
    """
    values = accuracy_table(run, **table)
    printed = {entry["pair"].title: entry["pair"].theirs for entry in values["columns"]}
    gaussian, as_printed = run.forms("columns"), run.forms("as_printed")
    judged = []
    for column, note in filters.items():
        forms = {"bins": run.forms("bins")[column]}
        if gaussian[column] not in forms.values():
            forms["Gaussian"] = gaussian[column]
        if column in as_printed:
            forms[as_printed[column][1].partition(", ")[2]] = as_printed[column]
        texts, gaps = [], []
        for kind, (part, name) in forms.items():
            average = mean(run.accuracies(part)[name].values())
            gaps.append(average - printed[column])
            texts.append(f"{kind} {average:.2f} ({gaps[-1]:+.2f})")
        near = run.judged(min(map(abs, gaps)) <= table["tolerance"])
        entry = {"column": column, "theirs": printed[column], "near": near}
        judged.append({**entry, "ours": ", ".join(texts), "note": note})
    tables = [run.printed(f"exp_table{k}").values() for k in (1, 2)]
    counts = figures_of_one_fold(zip(*tables, strict=True), list(printed), max_rows)
    of_one_fold = ", ".join(f"{column} {count}" for column, count in counts.items())
    more = {"filters": judged, "of_one_fold": of_one_fold, "max_rows": max_rows}
    return {**values, **more}


def attributes_selected(
    run: Run, printed: str, methods: Sequence[str], min_weight: float
) -> Values:
    """Table 3: count weights above zero, in one model of all rows.

    The printed shares are multiples of one over the number of attributes.
    """
    run.say(f"{run.paper.name}: table3")
    tasks = [name for name in task_names(run, "binary") if name in run.names]
    shares: dict[str, dict[str, float]] = {name: {} for name in methods}
    n_attributes = {}
    for task in tasks:
        data = load_dataset(f"task:{task}", run.folder)
        n_attributes[task] = len(data.table.columns)
        for name in methods:
            fitted = fit_all_rows(run, name, data.table, data.target)
            is_selected = fitted.attribute_weights_ > min_weight
            shares[name][task] = 100.0 * float(np.mean(is_selected))
    cells = run.printed(printed)
    pairs = [
        Pair(name, {task: float(cells[task][name]) for task in tasks}, shares[name])
        for name in methods
    ]
    away = np.array(
        [abs(gap) / 100 * n_attributes[t] for p in pairs for t, gap in p.gaps.items()]
    )
    judged = [
        {"pair": pair, "near": run.judged(abs(pair.ours - pair.theirs) <= 2)}
        for pair in pairs
    ]
    return {
        "n": len(away),
        "same": (away < 0.5).sum(),
        "close": (away < 2.5).sum(),
        "by_task": side_by_side(tasks, pairs, first="task"),
        "judged": judged,
    }


def same_outcomes(run: Run, accuracies: str, **table: Any) -> Values:
    """Table 4: count pairs that the printed and the measured test tell apart alike."""
    values = wilcoxon_table(run, **table)
    printed, tests = run.printed(table["printed"]), values["tests"]
    pairs = run.pairs(accuracies, run.forms(*table["forms"]))
    scores = {name: list(published.values()) for name, published, _ in pairs}
    same, distances = 0, []
    for (row, column), test in tests.items():
        theirs = float(printed[row][column])
        from_print = wilcoxon_signed_rank(scores[row], scores[column], zeros="drop")
        distances.append(abs(from_print.p_value - theirs))
        ahead = [t.r_plus > t.r_minus for t in (from_print, test)]
        significant = [theirs <= 0.05, test.p_value <= 0.05]
        # Two tests agree where neither tells the methods apart, or both the same.
        same += not any(significant) or (all(significant) and ahead[0] == ahead[1])
    return {
        **values,
        "n_tests": len(tests),
        "same": same,
        "enough": run.judged(same >= 0.75 * len(tests)),
        "distance": mean(distances),
        "largest": max(distances),
    }
