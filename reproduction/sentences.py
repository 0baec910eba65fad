"""Sentences of the papers that have figures, each a row of the verdicts.

The file of a document has the words of each sentence, what is published and how it is
judged; the functions here have what is measured for them. Of a sentence for which
nothing was measured there is no row; one that nobody can test says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise, product
from typing import Any

import numpy as np

from reproduction.engine import Run, Values
from reproduction.exponential_loss import attributes_selected
from reproduction.report import SEED, Columns, mean
from steelyard.classifiers.spss import SPSSNaiveBayes
from steelyard.lab.data.datasets import TASKS, load_dataset
from steelyard.lab.statistics import corrected_t_test, wilcoxon_signed_rank

Sentence = Mapping[str, str]


def _filled(run: Run, sentences: Iterable[Sentence], values: Values) -> Values:
    """Fill in sentences; ``reached`` names the value that says whether one holds."""
    rows = []
    for sentence in sentences:
        row: dict[str, Any] = {"reached": None, "note": "", **sentence}
        try:
            row |= {key: text.format_map(values) for key, text in sentence.items()}
            if "reached" in sentence:
                holds = bool(values[sentence["reached"]])
                # A document without data sets has no part of them alone.
                row["reached"] = run.judged(holds) if run.paper.data else holds
        except KeyError:
            continue
        rows.append(row)
    return {"sentences": rows}


def _listed(figures: Mapping[str, Any], style: str = "+.2f") -> str:
    return ", ".join(f"{name} {figure:{style}}" for name, figure in figures.items())


def _near(ours: Mapping[str, float], theirs: Mapping[str, float], by: float) -> bool:
    return all(abs(ours[name] - theirs[name]) <= by + 1e-9 for name in theirs)


# ------------------------------------------------------------------------ RNB's paper


def rnb_sentences(
    run: Run,
    sentences: Sequence[Sentence],
    leads: Mapping[str, float],
    wins: Mapping[str, int],
    far_ahead: Sequence[str],
    surely_ahead: Sequence[str],
    large_ahead: Sequence[str],
    min_large: int,
) -> Values:
    """Test what the text says of Tables 2 to 6."""
    columns, summary = run.accuracies("table3"), run.summary("table3")
    others = [name for name in columns if name != "RNB"]
    averages = {name: mean(column.values()) for name, column in columns.items()}
    lead = {name: averages["RNB"] - averages[name] for name in others}
    best = max(averages, key=averages.__getitem__)
    gaps = {n: x - columns["CAWNB"][n] for n, x in columns["RNB"].items()}
    # The paper's test: one-sided at 5 %, folds taken as independent.
    first = summary.position("RNB")
    test = corrected_t_test(summary.folds[:, [first]] - summary.folds, 0.0)
    ahead = summary.means[:, [first]].round(9) > summary.means.round(9)
    is_significant = (test.mean > 0) & (test.p_value <= 0.1)
    places = {name: summary.position(name) for name in others}
    ours = {name: int(is_significant[:, j].sum()) for name, j in places.items()}
    data = [load_dataset(name, run.folder) for name in run.names]
    sizes = [len(d) for d in data]
    values: dict[str, Any] = {
        "n": len(run.names),
        "n_missing": sum(bool(d.table.isna().any(axis=None)) for d in data),
        "sizes": f"{min(sizes)} to {max(sizes)}",
        "size_as_printed": (min(sizes), max(sizes)) == (57, 20_000),
        "averages": f"RNB {averages['RNB']:.2f}; the highest is {best}'s, "
        f"{averages[best]:.2f}",
        "highest": best == "RNB",
        "leads": _listed({name: lead[name] for name in leads}),
        "leads_near": _near(lead, leads, 0.5),
        "lead": f"{lead['CAWNB']:+.2f}",
        "more_than_one": lead["CAWNB"] > 1,
        "wins": _listed({name: ours[name] for name in wins}, "d"),
        "wins_near": _near(ours, wins, 3),
        "wins_nb": ours["NB"],
        "half_nb": 2 * ours["NB"] > len(run.names),
        "ahead": 100 * float(ahead[:, list(places.values())].mean()),
        "n_ahead": int(ahead[:, places["CAWNB"]].sum()),
    }
    values["surely"] = sum(ours.values()) / max(1, ahead.sum()) * 100
    values["two_thirds"] = values["ahead"] > 100 * 2 / 3 and values["surely"] >= 50
    values["on_21"] = values["n_ahead"] == 21
    if set(far_ahead) <= set(gaps):
        values["far"] = _listed({name: gaps[name] for name in far_ahead})
        values["all_far"] = min(gaps[name] for name in far_ahead) > 5
    for key, names in (("surely", surely_ahead), ("large", large_ahead)):
        if set(names) <= set(gaps):
            rows = [summary.datasets.index(name) for name in names]
            masks = is_significant[rows, places["CAWNB"]]
            on = [name for name, is_on in zip(names, masks, strict=True) if is_on]
            values[f"{key}_on"] = ", ".join(on) or "none"
            values[f"{key}_all"] = len(on) == len(names)
    entries = run.results("table3").settings["datasets"]
    is_large = {n: entries[n]["rows"] / entries[n]["classes"] > min_large for n in gaps}
    groups = {
        word: [gap for name, gap in gaps.items() if is_large[name] == flag]
        for word, flag in (("small", False), ("large", True))
    }
    if all(groups.values()):
        gains = {word: mean(group) for word, group in groups.items()}
        values["gains"] = _listed(gains)
        values["more_on_small"] = gains["small"] > gains["large"]
    return _filled(run, sentences, values)


# ----------------------------------------------------------------------- CWNB's paper


def cwnb_sentences(
    run: Run, sentences: Sequence[Sentence], tally: Mapping[str, Sequence[int]]
) -> Values:
    """Test what the text says of Tables 2 to 5 and of Figure 3.

    Printed are on how many of 60 data sets CWNB is ahead, significantly so, and
    significantly behind; the first is not in print for all.
    """
    columns, summary = run.accuracies("tables"), run.summary("tables")
    means, wins = summary.means.round(9), summary.win_tie_loss
    first, n = summary.position("CWNB"), len(summary.datasets)
    entries = run.results("tables").settings["datasets"]
    is_large = np.array([entries[name]["rows"] > 1_000 for name in summary.datasets])
    values: dict[str, Any] = {"n": n, **_toy(), **_by_rows(run)}
    shares: dict[str, dict[str, float]] = {"large": {}, "small": {}}
    for name, theirs in tally.items():
        j = summary.position(name)
        is_ahead = means[:, first] > means[:, j]
        ours = [int(is_ahead.sum()), wins.wins[first, j], wins.losses[first, j]]
        pairs = zip(ours[-len(theirs) :], theirs, strict=True)
        near = all(abs(a / n - b / 60) <= 0.05 for a, b in pairs)
        values[name] = f"{ours[0]}, {ours[1]}, {ours[2]} of {n}"
        values[f"{name} near"] = near
        if is_large.any():
            shares["large"][name] = 100 * float(is_ahead[is_large].mean())
            shares["small"][name] = 100 * float(is_ahead[~is_large].mean())
    if is_large.any():
        by_method = {
            m: f"{x:.0f} and {shares['small'][m]:.0f} %"
            for m, x in shares["large"].items()
        }
        values["by_size"] = _listed(by_method, "")
        values["n_large"] = int(is_large.sum())
        # Of the others print has no number of sets ahead.
        values["more_on_large"] = all(
            shares["large"][name] > shares["small"][name]
            for name, theirs in tally.items()
            if len(theirs) == 3
        )
    if n > 1:
        scores = {name: list(columns[name].values()) for name in ("CWNB", *tally)}
        below = [
            name
            for name in tally
            for test in (wilcoxon_signed_rank(scores["CWNB"], scores[name]),)
            if test.p_value <= 0.1 and test.r_plus > test.r_minus
        ]
        values["at_10"] = f"{len(below)} of {len(tally)}: {', '.join(below) or 'none'}"
        values["all_at_10"] = len(below) == len(tally)
    seconds, ratios, more = run.seconds("tables"), {}, {}
    for name in ("CWNB-I", "CWNB-RI"):
        ratios[name] = seconds[name] / seconds["CWNB"]
        rounds = [mean(x) for x in run.extras("tables", name, "rounds").values()]
        more[name] = 100 * mean(x > 2 for x in rounds)
    values |= {
        "times": _listed(ratios, ".1f"),
        "three_times": all(abs(ratio - 3) <= 0.5 for ratio in ratios.values()),
        "more_rounds": _listed({m: f"{x:.0f} %" for m, x in more.items()}, ""),
        "half": all(40 <= share <= 60 for share in more.values()),
    }
    if run.paper.comparisons["optdigits"].data and run.has("optdigits"):
        digits = {m: x["optdigits"] for m, x in run.accuracies("optdigits").items()}
        values["digits"] = _listed(digits, ".2f")
        values["no_gain"] = max(digits.values()) - digits["CWNB"] < 1
    return _filled(run, sentences, values)


def _toy() -> Values:
    """Count the labels of all rows that the toy data can have."""
    sums = [sum(row) for row in product(range(4), repeat=6)]
    share = 100 * mean(total >= 9 for total in sums)
    return {"n_toy": f"{len(sums):,}", "toy": share, "balanced": abs(share - 50) <= 1}


def _by_rows(run: Run) -> Values:
    """Return CWNB's lead over NB by the number of generated rows."""
    columns = run.accuracies("consistency")
    curves: dict[str, dict[int, list[float]]] = {"NB": {}, "CWNB": {}}
    for method, curve in curves.items():
        for name, value in columns[method].items():
            curve.setdefault(int(name.partition(" ")[0]), []).append(value)
    averages = {
        m: {n: mean(x) for n, x in curve.items()} for m, curve in curves.items()
    }
    lead = {n: averages["CWNB"][n] - averages["NB"][n] for n in averages["NB"]}
    values: dict[str, Any] = {}
    for key, low, high in (
        ("few", 0, 74),
        ("some", 75, 500),
        ("many", 501, 9_999),
        ("most", 10_000, 10**9),
    ):
        part = {f"{n:,}:": gap for n, gap in lead.items() if low <= n <= high}
        if part:
            values[key], gaps = _listed(part, "+.1f"), list(part.values())
            values[f"{key}_as_printed"] = {
                "few": max(gaps) < 0,
                "some": abs(mean(gaps) - 5) <= 1,
                "many": abs(mean(gaps) - 3) <= 1,
                "most": max(map(abs, gaps)) < 1,
            }[key]
    rises = {
        method: sum(b > a for a, b in pairwise(x))
        for method, curve in averages.items()
        for x in ([curve[n] for n in sorted(curve)],)
    }
    steps = len(lead) - 1
    values["rises"] = _listed(
        {m: f"{k} of {steps} steps" for m, k in rises.items()}, ""
    )
    values["all_rise"] = min(rises.values()) == steps
    return values


# -------------------------------------------------------------- exponential-loss paper


def exponential_sentences(run: Run, sentences: Sequence[Sentence]) -> Values:
    """Test what the text says of Tables 1 to 5, on print's own figures as well."""
    tasks = [task.name for task in TASKS if task.name in run.names]
    cells, methods = run.printed("exp_table2"), list(run.forms("columns"))
    # The filters in the form that fits print best.
    forms = run.forms("columns", "as_printed", "best_on_bins")
    ours = {m: run.accuracies(part)[name] for m, (part, name) in forms.items()}
    theirs = {m: {t: float(cells[t][m]) for t in tasks} for m in methods}
    values: dict[str, Any] = {"n": len(tasks), **_sizes(run, tasks)}
    for key, columns in (("theirs", theirs), ("ours", ours)):
        found = _of_table_2(columns, tasks, run.paper.shared["proposed"])
        values |= {f"{key}_{name}": value for name, value in found.items()}
    # On other tables, by the printed accuracies and by ours.
    values |= _selected(run)
    several = run.printed("exp_table5")
    problems = [name for name in several if name in run.names]
    if problems:
        measured = {**run.accuracies("table5_nb"), **run.accuracies("table5")}
        gains = {
            m: mean(100 * (measured[m][p] / measured["NB"][p] - 1) for p in problems)
            for m in run.paper.shared["proposed"]
        }
        ahead = [
            p
            for p in problems
            if all(measured[m][p] > measured["NB"][p] for m in gains)
        ]
        values |= {
            "ri_several": _listed(gains, ".1f"),
            "ri_17_to_20": 16 < min(gains.values()) and max(gains.values()) < 21.3,
            "ri_order": gains["GDNB"] >= gains["DNB"] > gains["LNB"],
            "several_ahead": f"{len(ahead)} of {len(problems)}",
            "all_several": len(ahead) == len(problems),
        }
    if len(tasks) > 1:
        scores = {name: [ours[name][t] for t in tasks] for name in methods}
        rivals = [name for name in methods if name != "GDNB"]
        tests = {
            name: wilcoxon_signed_rank(scores["GDNB"], scores[name], zeros="drop")
            for name in rivals
        }
        not_ahead = [
            name
            for name, test in tests.items()
            if test.p_value > 0.05 or test.r_plus <= test.r_minus
        ]
        values["not_ahead"] = ", ".join(not_ahead) or "none"
        values["three_not_ahead"] = set(not_ahead) == {"CBFWNB", "MSE", "LNB"}
    return _filled(run, sentences, values)


def _sizes(run: Run, tasks: Sequence[str]) -> Values:
    """Return the ranges of Table 1."""
    data = {name: load_dataset(f"task:{name}", run.folder) for name in tasks}
    if not data:
        return {}
    rows = [len(d) for d in data.values()]
    widths = {name: d.table.shape[1] for name, d in data.items()}
    least = min(widths.values())
    small = [
        100 * np.unique(d.target, return_counts=True)[1].min() / len(d)
        for d in data.values()
    ]
    ranges = (min(rows), max(rows), least, max(widths.values()))
    return {
        "ranges": f"{min(rows):,} to {max(rows):,} rows, {least} to "
        f"{max(widths.values())} attributes, {min(small):.2f} to {max(small):.2f} %",
        "ranges_as_printed": ranges == (151, 28_056, 4, 64)
        and abs(min(small) - 2.53) < 0.011
        and abs(max(small) - 37.26) < 0.011,
        "narrowest": ", ".join(n for n, width in widths.items() if width == least),
        "wall_alone": [n for n in widths if widths[n] == least] == ["Wall 4L"],
    }


def _of_table_2(
    columns: Columns, tasks: Sequence[str], proposed: Sequence[str]
) -> dict[str, Any]:
    """Return what the text says of Table 2, for printed or measured accuracies."""
    plain, rest = columns["NB"], [m for m in columns if m not in ("NB", *proposed)]
    best = {t: max(columns[m][t] for m in proposed) for t in tasks}
    gain = {t: 100 * (best[t] / plain[t] - 1) for t in tasks}
    largest = sorted(tasks, key=lambda t: -gain[t])
    not_better = [t for t in tasks if round(best[t] - plain[t], 9) <= 0]
    highest = [
        t
        for t in tasks
        if columns["MSE"][t] >= max(column[t] for column in columns.values()) - 1e-9
    ]
    averages = {m: mean(columns[m][t] for t in tasks) for m in columns}
    learned = {m: averages[m] for m in proposed}
    others = [learned[m] for m in proposed if m != "ENB"]
    ri = {m: mean(100 * (columns[m][t] / plain[t] - 1) for t in tasks) for m in rest}
    order = sorted(ri, key=lambda m: -ri[m])
    found: dict[str, Any] = {
        "not_better": ", ".join(not_better) or "none",
        "only_wall": not_better == ["Wall 4L"],
        "mse_highest": len(highest),
        "mse_on_8": len(highest) == 8,
        "averages": _listed(learned, ".2f"),
        "enb_worst": learned["ENB"] < min(others),
        "spread": max(others) - min(others),
        "three_alike": max(others) - min(others) < 0.5 and learned["ENB"] < min(others),
        "order": ", ".join(["best of four", *order])
        if mean(gain.values()) > max(ri.values())
        else ", ".join([order[0], "best of four", *order[1:]]),
        "largest": ", ".join(f"{t} {gain[t]:.0f} %" for t in largest[:3]),
    }
    found["same_order"] = found["order"] == (
        "best of four, MSE, CBFWNB, SBC, DFWNB, KLNB, TreeNB"
    )
    three = {t: gain[t] for t in ("Steel", "Segment", "Wholesale") if t in gain}
    if len(three) == 3:
        found["three"] = _listed({t: f"{x:.0f} %" for t, x in three.items()}, "")
        found["three_gain"] = min(three.values()) > 10
    if "Steel" in tasks:
        steel = [plain["Steel"], columns["DNB"]["Steel"]]
        ratio = 100 * (steel[1] / steel[0] - 1)
        found["steel"] = f"NB {steel[0]:.2f}, DNB {steel[1]:.2f}, {ratio:+.2f} %"
        found["steel_near"] = abs(steel[0] - 66.66) <= 1 and abs(steel[1] - 93.6) <= 1
    if "Wall 4L" in tasks:
        better = [m for m in rest if columns[m]["Wall 4L"] >= plain["Wall 4L"]]
        found["not_worse"] = ", ".join(better) or "none"
        found["all_worse"] = not better
    if {"Nursery", "Car", "Letter"} <= set(tasks):
        better = [
            f"{m} on {t}"
            for m in ("KLNB", "TreeNB", "SBC")
            for t in ("Nursery", "Car", "Letter")
            if columns[m][t] >= plain[t]
        ]
        found["not_worse_rare"] = ", ".join(better) or "none"
        found["all_worse_rare"] = not better
    return found


def _selected(run: Run) -> Values:
    """Return which tasks keep all attributes, and what is left of mfeat-zer's."""
    methods = run.paper.shared["proposed"]
    shares = attributes_selected(run, "exp_table3", methods, 1e-6)["shares"]
    tasks = list(shares[methods[0]])
    whole = [t for t in tasks if min(shares[m][t] for m in methods) > 100 - 1e-9]
    values: dict[str, Any] = {
        "whole": ", ".join(whole) or "none",
        "whole_as_printed": whole == ["Nursery", "Car", "Wall 4R", "TAE"],
    }
    if "mfeat-zer" in tasks:
        left = {m: shares[m]["mfeat-zer"] for m in methods}
        values["zernike"] = _listed(left, ".1f")
        values["a_fifth"] = _near(left, dict.fromkeys(methods, 20.0), 5)
    return values


# --------------------------------------------------------------------- SPSS's manual


def spss_sentences(
    run: Run,
    sentences: Sequence[Sentence],
    sizes: Sequence[int],
    largest: Sequence[int],
) -> Values:
    """Test the figures of the manual's formulas: how far a search goes, rows drawn.

    Of tables of random bits with these numbers of predictors, two of them forced, the
    largest subset that is tried is counted.
    """
    rng, found = np.random.default_rng(SEED), []
    for n_predictors in sizes:
        table = rng.integers(0, 2, size=(60, n_predictors))
        labels = rng.integers(0, 2, size=60)
        fitted = SPSSNaiveBayes(forced=[0, 1]).fit(table, labels)
        found.append(fitted.selection_path_[-1]["size"])
    drawn = SPSSNaiveBayes().n_simulated
    values = {
        "sizes": ", ".join(map(str, sizes)),
        "printed": ", ".join(map(str, largest)),
        "found": ", ".join(map(str, found)),
        "same": found == list(largest),
        "drawn": f"{drawn:,}",
        "thousand": drawn == 1_000,
    }
    return _filled(run, sentences, values)
