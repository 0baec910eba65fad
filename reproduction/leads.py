"""What print hides: explanations of printed figures, tested where they can be.

A lead is a sentence with what it was found on, and what it was tested on; the file of
the document has the words, the functions here what is measured for them. A lead that
was tested on figures it was not found on is marked as tested, another as a guess.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import wilcoxon
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.naive_bayes import GaussianNB

from reproduction.engine import MissingDataError, Run, Values
from reproduction.exponential_loss import attributes_selected, weights_by_dimension
from reproduction.measurements import large_sets
from reproduction.report import mean
from steelyard.classifiers import registry
from steelyard.classifiers.presets import LogisticNB
from steelyard.lab.data.datasets import MULTICLASS, TASKS
from steelyard.lab.protocols import find_protocol
from steelyard.solvers import LBFGS

Lead = Mapping[str, str]

raw_floor = GaussianNB
"""Gaussian densities whose least variance is a share of the table's largest."""


def from_zero(method: str, **settings: Any) -> Any:
    """Return a method whose weights begin at zero instead of one."""
    return registry.method(method, solver=LBFGS(start=0.0), **settings)


class WithoutConstants(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """A classifier without the numbers that do not vary within a class of training."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any) -> WithoutConstants:
        """Leave columns out and fit."""
        numbers = X.select_dtypes("number")
        varied = numbers.groupby(np.asarray(y)).nunique().gt(1).all()
        self.dropped_ = list(varied.index[~varied])
        self.estimator_ = clone(self.estimator).fit(X.drop(columns=self.dropped_), y)
        self.classes_ = self.estimator_.classes_
        return self

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classifier."""
        return self.estimator_.predict_proba(X.drop(columns=self.dropped_))

    def predict(self, X: Any) -> Any:
        """Return the classes that the classifier predicts."""
        return self.estimator_.predict(X.drop(columns=self.dropped_))


def without_constants(method: str, n_classes: int = 2, **settings: Any) -> Any:
    """Return a method of the exponential-loss paper without such columns."""
    protocol = find_protocol("published-exponential")
    base = LogisticNB(solver="fixed") if method == "NB" else registry.method(method)
    return WithoutConstants(protocol.adapt(base.set_params(**settings), n_classes))


def _written(run: Run, leads: Sequence[Lead], values: Values) -> Values:
    """Fill in the outcomes of leads, as far as what they need was measured."""
    rows = []
    for lead in leads:
        row = {"shown_by": f"`steelyard reproduce {run.paper.name}`", **lead}
        try:
            rows.append({key: text.format_map(values) for key, text in row.items()})
        except KeyError:
            continue
    if not rows:
        raise MissingDataError
    return {"leads": rows}


def _holds(*outcomes: bool) -> str:
    """Return how a lead is marked, by its outcomes on what it was not found on."""
    if all(outcomes):
        return "tested, holds"
    return "tested, in part" if any(outcomes) else "tested, does not hold"


def _distance(run: Run, part: str, method: str, names: Iterable[str]) -> float:
    """Return how far accuracies are from Table 2 on average, in points."""
    printed, ours = run.printed("exp_table2"), run.accuracies(part)[method]
    column = method.partition(",")[0]
    return mean(abs(ours[name] - float(printed[name][column])) for name in names)


# ------------------------------------------------------------------------ RNB's paper


def rnb_leads(run: Run, leads: Sequence[Lead], found_on: Sequence[str]) -> Values:
    """Count where print is ahead, and try the printed gradient."""
    cells = run.printed("rnb_table3")
    sets = [name for name in cells if name != "AVERAGE"]
    gaps = [float(cells[n]["RNB"]) - float(cells[n]["CAWNB"]) for n in sets]
    values: dict[str, Any] = {
        "ahead": sum(gap > 0 for gap in gaps),
        "ties": ", ".join(n for n, gap in zip(sets, gaps, strict=True) if gap == 0),
    }
    results = run.results("table3")
    several = [
        name
        for name, entry in results.settings["datasets"].items()
        if entry["classes"] > 2 and name not in found_on
    ]
    for key, names in (("seen", found_on), ("unseen", several)):
        if not set(names) <= set(results.datasets) or not names:
            continue
        for column in ("RNB", "CAWNB"):
            for word, part, method in (
                ("right", "table3", column),
                ("printed", "gradient", f"{column}, printed gradient"),
            ):
                ours = run.accuracies(part)[method]
                away = mean(abs(ours[n] - float(cells[n][column])) for n in names)
                values[f"{key}_{column}_{word}"] = away
        values[f"n_{key}"] = len(names)
    if "n_unseen" in values:
        values["gradient"] = "tested: " + ", ".join(
            f"{'holds' if right > printed else 'does not hold'} for {column}"
            for column in ("CAWNB", "RNB")
            for printed, right in (
                [values[f"unseen_{column}_{word}"] for word in ("printed", "right")],
            )
        )
    return _written(run, leads, values)


# ----------------------------------------------------------------------- CWNB's paper


def cwnb_leads(run: Run, leads: Sequence[Lead], printed: Sequence[float]) -> Values:
    """Count rounds on optdigits, and compare the large sets of Figure 2 with print.

    Of the repeats on optdigits the lead saw the first alone.
    """
    values: dict[str, Any] = {"n_unseen": 0}
    near = []
    if run.has("optdigits"):
        results = run.results("optdigits")
        for method, theirs in zip(("CWNB-I", "CWNB-RI"), printed, strict=True):
            rows = results.select(method=method).rows
            for key, chosen in (
                ("seen", [r for r in rows if r["repeat"] == 0]),
                ("unseen", [r for r in rows if r["repeat"] > 0]),
            ):
                if chosen:
                    rounds = mean(r["extra"]["rounds"] for r in chosen)
                    values[f"{key}_{method}"] = f"{rounds:.2f} (print {theirs})"
                    near += [abs(rounds - theirs) <= 1] if key == "unseen" else []
        values["n_unseen"] = results.settings["repeats"] - 1
    if near:
        values["maxima"] = _holds(*near)
    return _written(run, leads, {**values, **_large_sets(run)})


def _large_sets(run: Run) -> Values:
    """Return how far Figure 2 is from print on groups of large data sets."""
    try:
        found = large_sets(run, ["weka", "guessed"])
    except MissingDataError:
        return {}
    if found is None:
        return {}
    distances = found["distances"]
    marked = _holds(distances["further"] < distances["weka"])
    return {"n": found["n"], "distances": distances, "large_marked": marked}


# -------------------------------------------------------------- exponential-loss paper


def exponential_leads(
    run: Run,
    leads: Sequence[Lead],
    stopped_on: Sequence[str],
    left_out_on: Sequence[str],
    misprint: Mapping[str, Any],
) -> Values:
    """Test what may be behind printed figures, on others than suggested it."""
    table5 = run.printed("exp_table5").values()
    gains = {
        name: mean(100 * (float(row[name]) / float(row["NB"]) - 1) for row in table5)
        for name in run.paper.shared["proposed"]
    }
    values: dict[str, Any] = {**_misprint(run, **misprint), **_raw_floor(run)}
    values["ri_several"] = ", ".join(f"{n} {ri:.2f} %" for n, ri in gains.items())
    tasks = [task.name for task in TASKS if task.name in run.names]
    if set(stopped_on) < set(tasks):
        rest = [name for name in tasks if name not in stopped_on]
        for key, names in (("seen", stopped_on), ("unseen", rest)):
            values[f"{key}_optimum"] = _distance(run, "table2", "ENB", names)
            values[f"{key}_stopped"] = _distance(run, "stopped", "ENB, stopped", names)
            values[f"n_{key}"] = len(names)
        nearer = values["unseen_stopped"] < values["unseen_optimum"]
        values["stopped"] = _holds(nearer)
    if set(left_out_on) <= set(tasks) and run.has("Yeast, 10 classes"):
        values |= _left_out(run, left_out_on)
    columns = run.paper.shared["proposed"]
    if tasks:
        for key, words in (("ones", ""), ("zero", ", from 0")):
            methods = [f"{name}{words}" for name in columns]
            shares = attributes_selected(run, "exp_table3", methods, 1e-6)
            values[f"shares_{key}"], values["n_shares"] = shares["same"], shares["n"]
    return _written(run, leads, {**values, **_from_zero(run)})


def _misprint(run: Run, task: str, method: str, accuracy: float) -> Values:
    """Compare Table 2's brackets with its accuracies, and its tests with Table 4."""
    cells, brackets = run.printed("exp_table2"), run.printed("exp_table2_ri")
    methods = [name for name in next(iter(brackets.values())) if name in cells[task]]
    methods = [name for name in methods if name not in ("no", "dataset")]
    disagree = [
        f"{column} on {name}"
        for name, row in cells.items()
        for column in methods
        for gain in (100 * (float(row[column]) / float(row["NB"]) - 1),)
        if abs(gain - float(brackets[name][column])) > 0.0151
    ]
    columns = {m: [float(row[m]) for row in cells.values()] for m in ("NB", *methods)}
    right = {**columns, method: list(columns[method])}
    right[method][list(cells).index(task)] = accuracy
    printed = run.printed("exp_table4")
    tests = [(a, b) for a in printed for b in columns if a != b]
    settings = {"zero_method": "wilcox", "correction": False, "method": "asymptotic"}
    away = {
        key: [
            abs(wilcoxon(scores[a], scores[b], **settings)[1] - float(printed[a][b]))
            for a, b in tests
        ]
        for key, scores in (("as_printed", columns), ("put_right", right))
    }
    return {
        **{key: sum(gap < 1e-4 for gap in gaps) for key, gaps in away.items()},
        "largest": f"{max(away['put_right']):.5f}",
        "n_tests": len(tests),
        "n_cells": len(cells) * len(methods),
        "disagree": ", ".join(disagree),
    }


def _raw_floor(run: Run, found_on: str = "steel-plates-faults") -> Values:
    """Compare NB whose least variance is the table's with Table 5."""
    try:
        ours = run.accuracies("raw_floor")["raw floor"]
    except MissingDataError:
        return {}
    tasks = {task.file: task.name for task in MULTICLASS}
    printed = run.printed("exp_table5")
    theirs = {name: float(printed[tasks[name]]["NB"]) for name in ours}
    texts = [f"{name} {x:.1f} (print {theirs[name]:.1f})" for name, x in ours.items()]
    unseen = [name for name in ours if name != found_on]
    marked = _holds(*(abs(ours[name] - theirs[name]) <= 1 for name in unseen))
    return {"raw_floor": ", ".join(texts), "floor": marked}


def _left_out(run: Run, seen: Sequence[str]) -> Values:
    """Compare methods without columns constant within a class with Tables 2 and 5."""
    printed = {**run.printed("exp_table2"), **run.printed("exp_table5")}
    whole = run.accuracies("table2")
    plain = {**whole["NB"], **run.accuracies("table5_nb")["NB"]}
    parts = run.accuracies("constants"), run.accuracies("constants_several")
    without = {**parts[0]["NB, left out"], **parts[1]["NB, left out, several"]}
    texts: dict[bool, list[str]] = {True: [], False: []}
    outcomes = []
    for name, value in without.items():
        theirs = float(printed[name]["NB"])
        text = f"{name} {value:.1f} (print {theirs:.1f}, with them {plain[name]:.1f})"
        texts[name in seen].append(text)
        if name not in seen:
            outcomes.append(abs(value - theirs) <= abs(plain[name] - theirs))
    pairs = [
        [abs(x[name] - float(printed[name][method])) for x in (ours, whole[method])]
        for method in run.paper.shared["proposed"]
        for ours in (parts[0][f"{method}, left out"],)
        for name in parts[0]["NB, left out"]
    ]
    nearer = sum(ours < theirs - 1e-9 for ours, theirs in pairs)
    further = sum(ours > theirs + 1e-9 for ours, theirs in pairs)
    return {
        "nb_seen": ", ".join(texts[True]),
        "nb_unseen": ", ".join(texts[False]),
        "nearer": nearer,
        "further": further,
        "n_learned": len(pairs),
        "left_out": _holds(*outcomes, nearer > further),
    }


def _from_zero(run: Run) -> Values:
    """Repeat Figure 8 with weights that begin at zero."""
    spec = {"step": 22 if run.quick else 2, "n_train": 100, "n_test": 1_000}
    sizes, accuracy, ratio = weights_by_dimension(run, 0, **spec)
    _, _, from_one = weights_by_dimension(run, 1, **spec)
    ratios, ones = (np.array(list(found.values())) for found in (ratio, from_one))
    return {
        "n_sizes": len(sizes),
        "ratio_mean": float(ratios.mean()),
        "ratio_least": float(ratios.min()),
        "ratio_ones": float(ones.mean()),
        "near_one": int((ratios >= 0.99).all(axis=0).sum()),
        "right_least": min(map(min, accuracy.values())),
        "from_zero": _holds(bool((ratios >= 0.99).all()), ratios.mean() > ones.mean()),
    }
