"""What the exponential-loss paper alone measures, with its filters as it ran them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier

from reproduction.engine import MissingDataError, Run, Values
from reproduction.report import (
    SEED,
    ColumnPair,
    mean,
    side_by_side,
    table,
)
from reproduction.sections import accuracy_table, wilcoxon_table
from reproduction.simulated import NoisyLabels, opposite_rows, two_groups
from steelyard._common.settings import setting, whole
from steelyard.classifiers.weighted import WeightedNB
from steelyard.lab.data.datasets import MULTICLASS, TASKS, load_dataset
from steelyard.lab.protocols import find_protocol
from steelyard.lab.statistics import wilcoxon_signed_rank
from steelyard.losses import resolve_loss
from steelyard.model.training import TrainingSet
from steelyard.proba import GaussianTable
from steelyard.weighting.base import LogProbs, Start
from steelyard.weighting.filters.correlation import GainRatioWeighting, with_bins
from steelyard.weighting.filters.information import gain_ratios
from steelyard.weighting.filters.trees import OneTreeWeighting, depth_weights

_TASKS = {"binary": TASKS, "several": MULTICLASS}


class RawGainRatios(GainRatioWeighting):
    """KLNB's weights before they are made to add up to the number of attributes.

    They are small, so that the prior decides: where the paper prints the share of the
    larger class for KLNB, so do they.
    """

    def _filter(self, training: TrainingSet) -> NDArray[np.float64]:
        return gain_ratios(training.count())


class NumberTree(OneTreeWeighting):
    """TreeNB's weights from a tree that is grown on numbers instead of their bins."""

    smallest_leaf: int = setting(
        default=20,
        allowed=whole(1),
        about="Fewest training rows in a leaf, in place of pruning.",
    )

    def start_from(
        self, training: TrainingSet, evidence: LogProbs, gaussian: GaussianTable
    ) -> Start:
        """Return weights by the depth at which attributes are first tested."""
        inputs, owner = self._inputs(with_bins(training))
        schema = training.schema
        for g, j in enumerate(schema.gaussian):
            inputs[:, owner == j] = training.codes.number_column(g)[:, None]
        tree = DecisionTreeClassifier(
            criterion="entropy", min_samples_leaf=self.smallest_leaf, random_state=0
        )
        tree.fit(inputs, training.labels, sample_weight=training.weights)
        return self._start(depth_weights(tree.tree_, owner, len(schema)))


raw_gain_ratios = partial(WeightedNB, weighting=RawGainRatios(), solver="fixed")
"""KLNB as the paper seems to have run it."""

number_tree = partial(WeightedNB, weighting=NumberTree(), solver="fixed")
"""TreeNB as the paper seems to have run it."""

_ONE_TREE = OneTreeWeighting(random_state=0)
one_tree = partial(WeightedNB, weighting=_ONE_TREE, solver="fixed")
"""TreeNB with the seed of the reports."""


def task_names(run: Run, *, groups: Sequence[str]) -> list[str]:
    """Name the binary tasks, those of several classes, or both."""
    return [task.name for group in groups for task in _TASKS[group]]


def tasks_of_the_run(run: Run, group: str) -> list[str]:
    """Name the data sets of a group as far as the run has them."""
    return [f"task:{task.name}" for task in _TASKS[group] if task.name in run.names]


def fit_all_rows(run: Run, name: str, X: Any, y: Any) -> Any:
    """Fit a method with the settings of the protocol for two classes."""
    protocol = find_protocol(run.paper.protocol)
    with warnings.catch_warnings():
        # Some tables are separable.
        warnings.simplefilter("ignore")
        return protocol.adapt(run.paper.classifier(name), 2).fit(X, y)


def filters_beside(
    run: Run,
    filters: Mapping[str, str],
    max_rows: int,
    best_forms: Sequence[str],
    **spec: Any,
) -> Values:
    """Table 2, with each filter in the form that is nearest to print.

    ``filters`` are their columns, with a note; ``best_forms`` what comes nearest to
    print, column by column. Figures of tasks of more than
    ``max_rows`` rows look by chance as if they came from one fold.
    """
    values = accuracy_table(run, **spec)
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
        near = run.judged(min(map(abs, gaps)) <= spec["tolerance"])
        entry = {"column": column, "theirs": printed[column], "near": near}
        judged.append({**entry, "ours": ", ".join(texts), "note": note})
    tables = [run.printed(f"exp_table{k}").values() for k in (1, 2)]
    counts = _figures_of_one_fold(zip(*tables, strict=True), list(printed), max_rows)
    of_one_fold = ", ".join(f"{column} {count}" for column, count in counts.items())
    best = accuracy_table(
        run, **{**spec, "forms": best_forms, "groups": (), "judged": ()}
    )
    judgement = {"filters": judged, "of_one_fold": of_one_fold, "max_rows": max_rows}
    judgement["best_forms"] = best["columns"]
    return {**values, **judgement}


def _figures_of_one_fold(
    tasks: Iterable[tuple[Mapping[str, str], Mapping[str, str]]],
    columns: Sequence[str],
    max_rows: int,
) -> dict[str, int]:
    """Count printed figures that are multiples of one over the rows of a single fold.

    Tasks are rows of the tables of sizes and of accuracies; those of more than
    ``max_rows`` rows, of which chance makes many look so, are left out.

    Examples
    --------
    >>> rows = [({"instances": "151"}, {"A": "86.67", "B": "86"})]
    >>> _figures_of_one_fold(rows, "AB", 2_500)
    {'A': 1, 'B': 0}
    """
    counts = dict.fromkeys(columns, 0)
    for size, printed in tasks:
        n = int(size["instances"])
        if n > max_rows:
            continue
        for column in columns:
            value = float(printed[column])
            nearest = (100 * round(value * m / 100) / m for m in {n // 10, -(-n // 10)})
            counts[column] += min(abs(value - x) for x in nearest) <= 0.0051
    return counts


def relative_improvement(
    run: Run,
    accuracies: str,
    forms: Sequence[str],
    without: Sequence[str],
    printed: Mapping[str, float],
) -> Values:
    """Figure 3: average improvement over NB, in percent of its accuracy."""
    pairs = run.pairs(accuracies, run.forms(*forms))
    tasks = list(pairs[0].measured)
    kept = [task for task in tasks if task not in without] or tasks
    columns = [
        (_improvements(pairs, side, used), used)
        for side, used in (
            ("published", tasks),
            ("measured", tasks),
            ("measured", kept),
        )
    ]
    averages = [{n: mean(ri.values()) for n, ri in side.items()} for side, _ in columns]
    rows = [
        {
            "method": name,
            "printed": f"{printed[name]:.2f}" if name in printed else "",
            "theirs": averages[0][name],
            "ours": averages[1][name],
            "rest": averages[2][name],
        }
        for name in averages[0]
    ]
    best = rows[-1]
    known = {n: averages[1][n] - printed[n] for n in averages[1] if n in printed}
    bars = {
        word: {row["method"]: row[key] for row in rows}
        for word, key in (("printed accuracies", "theirs"), ("measured", "ours"))
    }
    others = [averages[1][name] for name in averages[1] if name in printed][:-1]
    return {
        "rows": rows,
        "n": len(tasks),
        "left_out": ", ".join(without),
        "n_printed": len(known),
        "same": sum(abs(gap) <= 1 for gap in known.values()),
        "away": ", ".join(f"{n} {g:+.1f}" for n, g in known.items() if abs(g) > 1),
        "best": best["ours"],
        "best_rest": best["rest"],
        "best_theirs": best["theirs"],
        "largest": run.judged(averages[1]["best of four"] > max(others)),
        "drawn": [bars],
    }


def _improvements(
    pairs: Sequence[ColumnPair], side: str, tasks: Sequence[str]
) -> dict[str, dict[str, float]]:
    """Return improvements over NB by method and task, that of the best of four last."""
    columns = {pair.title: getattr(pair, side) for pair in pairs}
    plain = columns.pop("NB")
    by_method = {
        name: {t: 100 * (column[t] - plain[t]) / plain[t] for t in tasks}
        for name, column in columns.items()
    }
    four = [by_method[name] for name in ("ENB", "DNB", "LNB", "GDNB")]
    return {**by_method, "best of four": {t: max(ri[t] for ri in four) for t in tasks}}


def cell_improvements(
    run: Run,
    accuracies: str,
    printed: str,
    forms: Sequence[str],
    within: float,
    first: str = "task",
) -> Values:
    """Compare the improvement over NB of each task and method with the printed one.

    It is the accuracy's difference to NB's in percent of NB's.
    """
    columns_of = run.pairs(accuracies, run.forms(*forms))
    measured = {pair.title: pair.measured for pair in columns_of}
    plain, cells = measured.pop("NB"), run.printed(printed)
    pairs = [
        ColumnPair(
            name,
            {task: float(cells[task][name]) for task in column},
            {t: 100 * (x - plain[t]) / plain[t] for t, x in column.items()},
        )
        for name, column in measured.items()
    ]
    gaps = [gap for pair in pairs for gap in pair.gaps.values()]
    return {
        "by_task": side_by_side(list(plain), pairs, first=first),
        "n": len(gaps),
        "same": sum(abs(gap) <= within for gap in gaps),
    }


def loss_curves(run: Run, proposed: Mapping[str, str]) -> Values:
    """Figure 1: the losses by the margin, for a row with equal prior odds."""
    margins = np.linspace(-2, 2, 81)
    curves = {
        name: [_loss_of_margin(loss, margin) for margin in margins]
        for loss, name in proposed.items()
    }
    enb, dnb, lnb = (np.array(curves[name]) for name in ("ENB", "DNB", "LNB"))
    away = np.abs(margins) > 1e-9
    lower = np.sign(dnb - lnb)[away] == -np.sign(margins)[away]
    above = bool((enb > np.maximum(dnb, lnb)).all())
    return {
        "words": "yes" if above and lower.all() else "no",
        "as_printed": above and bool(lower.all()),
        "drawn": [{"loss by margin": (margins.tolist(), curves)}],
    }


def _loss_of_margin(loss: str, margin: float) -> float:
    """Return the loss of one row of the second class with these log-odds."""
    scores = np.array([[0.0, margin]])
    value = resolve_loss(loss).value_and_gradient(scores, np.array([1]), np.ones(1))[0]
    return float(value)


def five_wrong(run: Run, methods: Sequence[str], draws: int, n_rows: int) -> Values:
    """Figure 2: how much of all loss five rows on the wrong side have."""
    shares: dict[str, list[float]] = {name: [] for name in methods}
    for draw in range(draws):
        X, y, wrong = opposite_rows(n_rows, 5, np.random.default_rng([SEED, draw]))
        for name in methods:
            fitted = fit_all_rows(run, name, X, y)
            margin = (
                np.where(y == 1, 1, -1) * np.diff(fitted.predict_log_proba(X))[:, 0]
            )
            losses = {
                "ENB": np.exp(-margin),
                "DNB": np.logaddexp(0, -2 * margin),
                "LNB": np.logaddexp(0, -margin),
            }[name]
            shares[name].append(100 * float(losses[wrong].sum() / losses.sum()))
    rows = [
        {
            "method": name,
            "theirs": "below 60 %" if name == "ENB" else "above 70 %",
            "ours": mean(values),
            "least": min(values),
            "largest": max(values),
        }
        for name, values in shares.items()
    ]
    enb, *others = (mean(values) for values in shares.values())
    text = ", ".join(f"{row['method']} {row['ours']:.0f} %" for row in rows)
    least = enb < min(others)
    values = {"rows": rows, "draws": draws, "n_rows": n_rows, "text": text}
    is_strict = enb < 60 and min(others) > 70
    return {**values, "enb_least": least, "as_printed": is_strict}


def attributes_selected(
    run: Run, printed: str, methods: Sequence[str], min_weight: float
) -> Values:
    """Table 3: count weights above zero, in one model of all rows.

    The printed shares are multiples of one over the number of attributes.
    """
    shares, n_attributes = run.once(
        ("attributes", *methods, min_weight),
        lambda: _shares_selected(run, methods, min_weight),
    )
    tasks = list(n_attributes)
    cells = run.printed(printed)
    columns = {name: name.partition(",")[0] for name in shares}
    pairs = [
        ColumnPair(name, {t: float(cells[t][columns[name]]) for t in tasks}, measured)
        for name, measured in shares.items()
    ]
    away = np.array(
        [abs(gap) / 100 * n_attributes[t] for p in pairs for t, gap in p.gaps.items()]
    )
    judged = [
        {
            "pair": pair,
            "near": run.judged(abs(pair.ours - pair.theirs) <= 2),
            "n": len(pair.gaps),
            "same": sum(abs(g) * n_attributes[t] < 50 for t, g in pair.gaps.items()),
            "away": ", ".join(
                f"{t} {g:+.0f}"
                for t, g in pair.gaps.items()
                if abs(g) * n_attributes[t] >= 50
            ),
        }
        for pair in pairs
    ]
    return {
        "n": len(away),
        "same": (away < 0.5).sum(),
        "close": (away < 2.5).sum(),
        "by_task": side_by_side(tasks, pairs, first="task"),
        "judged": judged,
        "shares": shares,
    }


def _shares_selected(
    run: Run, methods: Sequence[str], min_weight: float
) -> tuple[dict[str, dict[str, float]], dict[str, int]]:
    """Return shares of weights above zero by method and task, and widths by task."""
    run.say(f"{run.paper.name}: table3")
    tasks = [task.name for task in TASKS if task.name in run.names]
    shares: dict[str, dict[str, float]] = {name: {} for name in methods}
    n_attributes = {}
    for task in tasks:
        data = load_dataset(f"task:{task}", run.folder)
        n_attributes[task] = len(data.table.columns)
        for name in methods:
            fitted = fit_all_rows(run, name, data.table, data.target)
            is_selected = fitted.attribute_weights_ > min_weight
            shares[name][task] = 100.0 * float(np.mean(is_selected))
    return shares, n_attributes


def same_outcomes(run: Run, accuracies: str, **spec: Any) -> Values:
    """Table 4: count pairs that the printed and the measured test tell apart alike."""
    values = wilcoxon_table(run, **spec)
    printed, tests = run.printed(spec["printed"]), values["tests"]
    pairs = run.pairs(accuracies, run.forms(*spec["forms"]))
    scores = {name: list(published.values()) for name, published, _ in pairs}
    differ, distances = [], []
    for (row, column), test in tests.items():
        theirs = float(printed[row][column])
        from_print = wilcoxon_signed_rank(scores[row], scores[column], zeros="drop")
        distances.append(abs(from_print.p_value - theirs))
        ahead = [t.r_plus > t.r_minus for t in (from_print, test)]
        significant = [theirs <= 0.05, test.p_value <= 0.05]
        # Two tests agree where neither tells the methods apart, or both the same.
        if any(significant) and not (all(significant) and ahead[0] == ahead[1]):
            differ.append(f"{row}-{column}")
    same = len(tests) - len(differ)
    return {
        **values,
        "n_tests": len(tests),
        "same": same,
        "differ": ", ".join(differ),
        "enough": run.judged(same >= 0.75 * len(tests)),
        "distance": mean(distances),
        "largest": max(distances),
    }


# ----------------------------------------------------------------------------- figures


def correlations(run: Run, tasks: Sequence[str]) -> Values:
    """Figures 4 to 6: how strongly attributes depend on each other."""
    rows, matrices = [], {}
    tasks = [name for name in tasks if run.has(name)]
    if not tasks:
        raise MissingDataError
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
    shown = [i for i, share in enumerate(shares) if share % 5 == 0]
    rows = [
        [task, name, *(f"{x:.2f}" for x in (*(y[i] for i in shown), y[0] - y[-1]))]
        for task, (_, curves) in panels.items()
        for name, y in curves.items()
    ]
    titles = [f"{shares[i]} %" for i in shown]
    header = " | ".join(["task | method", *titles, "fall"])
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
    for i in (min(5, len(shares) - 2), -1):
        fall = {n: mean(c[n][0] - c[n][i] for c in curves) for n in proposed}
        text = ", ".join(f"{name} {-fall[name]:+.1f}" for name in proposed)
        most = run.judged(max(proposed, key=fall.__getitem__) == "ENB")
        falls.append({"share": shares[i], "text": text, "enb_most": most})
    last = {n: mean(c[n][0] - c[n][-1] for c in curves) for n in ("NB", *proposed)}
    order = sorted(last, key=last.__getitem__)
    level = {n: mean(mean(c[n]) for c in curves) for n in ("NB", *proposed)}
    best = sorted(proposed, key=lambda name: -level[name])
    return {
        "falls": falls,
        "last": ", ".join(f"{name} {-last[name]:+.1f}" for name in order),
        "most": shares[-1],
        "two_least": run.judged(set(order[:2]) == {"LNB", "GDNB"}),
        "nb_most": run.judged(order[-1] == "NB"),
        "levels": ", ".join(f"{name} {level[name]:.1f}" for name in best),
        "two_best": run.judged(set(best[:2]) == {"LNB", "GDNB"}),
        "nb_level": level["NB"],
        "nb_worst": run.judged(level["NB"] < level[best[-1]]),
    }


def weights_by_dimension(
    run: Run, start: int, step: int, n_train: int, n_test: int
) -> tuple[list[int], dict[str, list[float]], dict[str, list[float]]]:
    """Return numbers of attributes, test accuracies, and shares of useful weights.

    Weights begin at ``start``: 1, as Algorithm 1 says, or 0.
    """
    return run.once(
        ("dimensions", start),
        lambda: _weights_by_dimension(run, start, step, n_train, n_test),
    )


def _weights_by_dimension(
    run: Run, start: int, step: int, n_train: int, n_test: int
) -> tuple[list[int], dict[str, list[float]], dict[str, list[float]]]:
    import pandas as pd

    methods, sizes = run.paper.shared["proposed"], list(range(2, 201, step))
    accuracy: dict[str, list[float]] = {name: [] for name in methods}
    ratio: dict[str, list[float]] = {name: [] for name in methods}
    for d in sizes:
        rng = np.random.default_rng([SEED, d])
        (X, y), (Z, z) = (two_groups(n, d, rng) for n in (n_train, n_test))
        columns = [f"{group}{i + 1}" for group in "AB" for i in range(d // 2)]
        X, Z = (pd.DataFrame(cells, columns=columns) for cells in (X, Z))
        for name in methods:
            fitted = fit_all_rows(run, f"{name}, from {start}", X, y)
            weights = fitted.attribute_weights_
            total = float(weights.sum())
            accuracy[name].append(100.0 * float(np.mean(fitted.predict(Z) == z)))
            ratio[name].append(float(weights[d // 2 :].sum()) / total if total else 0.5)
    return sizes, accuracy, ratio


def dimensions(run: Run, step: int, n_train: int, n_test: int) -> Values:
    """Figure 8: test accuracy and the share of useful weights, by attributes."""
    run.say(f"{run.paper.name}: dimensions")
    proposed = run.paper.shared["proposed"]
    sizes, accuracy, ratio = weights_by_dimension(run, 1, step, n_train, n_test)
    rows = [
        [str(d), *(f"{accuracy[n][i]:.1f} / {ratio[n][i]:.3f}" for n in proposed)]
        for i, d in enumerate(sizes)
        if run.quick or d == 2 or d % 20 == 0
    ]
    right, useful = ({n: min(x[n]) for n in proposed} for x in (accuracy, ratio))
    judged = {
        "right": ", ".join(f"{n} {x:.1f} %" for n, x in right.items()),
        "useful": ", ".join(f"{n} {x:.3f}" for n, x in useful.items()),
        "all_right": min(right.values()) >= 98,
        "all_useful": min(useful.values()) >= 0.99,
    }
    panels = {
        "test accuracy (%)": (sizes, accuracy),
        "share of weight on useful attributes": (sizes, ratio),
    }
    by_size = table(" | ".join(["d", *proposed]), rows)
    values = {"by_size": by_size, **judged, "drawn": [panels]}
    return {**values, "n_train": n_train, "n_test": n_test}
