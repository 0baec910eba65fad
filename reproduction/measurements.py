"""What the papers on RNB and CWNB and the manual of SPSS alone measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from reproduction.engine import Run, Values
from reproduction.report import (
    SEED,
    averaged,
    differences,
    figures_table,
    mean,
    side_by_side,
    table,
)
from reproduction.simulated import flip_labels, sum_of_attributes
from steelyard.classifiers.spss import SPSSNaiveBayes
from steelyard.io.dataset import DataSet
from steelyard.lab.data.datasets import catalogue, load_dataset
from steelyard.lab.protocols import discretize_whole, find_protocol
from steelyard.lab.statistics import corrected_t_test

_KEYS = {"l": "average_log_likelihood", "Q": "criterion", "A": "a", "B": "b"}


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


def by_size(
    run: Run, group: str | Sequence[str], max_rows: float = np.inf
) -> list[str]:
    """Order a group of data sets, or some by name, by their number of rows."""
    sizes = {
        row["name"]: int(row["instances"])
        for row in catalogue()
        if (
            group in row["papers"].split("|")
            if isinstance(group, str)
            else row["name"] in group
        )
    }
    return sorted((n for n in sizes if sizes[n] <= max_rows), key=sizes.__getitem__)


def sets_of_at_most(run: Run, max_rows: int) -> list[str]:
    """Name the data sets of the tables that have at most so many rows."""
    entries = run.results("tables").settings["datasets"]
    return [name for name, data in entries.items() if data["rows"] <= max_rows]


def large_names(run: Run, group: str | None = None) -> list[str]:
    """Name the large data sets of one group or of all: a paper's, or some by name."""
    large = run.paper.shared["large"]
    groups = large["groups"] if group is None else {group: large["groups"][group]}
    small = by_size(run, "cwnb60", large["min_rows"])
    names: list[str] = []
    for members in groups.values():
        names += by_size(run, members) if isinstance(members, str) else members
    return [name for name in names if name not in small]


def large_sets(run: Run, counted: Sequence[str]) -> Values | None:
    """Figure 2: CWNB against the others on the larger data sets, by group.

    The groups that are ``counted`` stand for the paper's sets.
    """
    large = run.paper.shared["large"]
    printed, n_printed = large["printed"], large["n_printed"]
    summary = run.summary("large", ["CWNB", *printed])
    test = corrected_t_test(summary.folds[:, :1] - summary.folds, 1 / 9)
    ahead, is_significant = test.mean > 0, test.p_value <= 0.05
    members = {
        key: [name for name in large_names(run, key) if name in summary.datasets]
        for key in large["groups"]
    }
    members["both"] = [name for key in counted for name in members[key]]
    chosen = {
        key: [i for i, name in enumerate(summary.datasets) if name in names]
        for key, names in members.items()
    }
    if not all(chosen.values()):
        return None
    rows, points, marks, gaps = [], {}, {}, {}
    distances: dict[str, list[float]] = {key: [] for key in chosen}
    averages = 100 * summary.folds.mean(axis=2)
    drawn = chosen["both"]
    for j, (name, counts) in enumerate(printed.items(), 1):
        masks = ahead[:, j], ahead[:, j] & is_significant[:, j]
        theirs = [100 * count / n_printed for count in counts]
        shares = {
            key: [100 * float(mask[places].mean()) for mask in masks]
            for key, places in chosen.items()
        }
        rows.append({"method": name, "theirs": theirs, **shares})
        gaps[name] = shares["both"][0] - theirs[0]
        gaps[f"{name}, significantly"] = shares["both"][1] - theirs[1]
        points[name], marks[name] = averages[drawn, j], is_significant[drawn, j]
        for key, ours in shares.items():
            distances[key] += [abs(a - b) for a, b in zip(ours, theirs, strict=True)]
    far = {key: gap for key, gap in gaps.items() if abs(gap) > 100 / n_printed + 1e-9}
    return {
        "rows": rows,
        "n": {key: len(places) for key, places in chosen.items()},
        "names": {key: ", ".join(names) for key, names in members.items()},
        "distances": {key: mean(values) for key, values in distances.items()},
        "repeats": run.results("large").settings["repeats"],
        "min_rows": large["min_rows"],
        "n_figures": len(gaps),
        "near": len(gaps) - len(far),
        "away": ", ".join(f"{key} {gap:+.0f}" for key, gap in far.items()),
        "drawn": ["CWNB accuracy (%)", averages[drawn, 0], points, marks],
    }


def variants(
    run: Run,
    methods: Sequence[str],
    printed: Mapping[str, Sequence[float]],
    printed_wins: Mapping[str, Sequence[int]],
) -> Values:
    """Tables 4 and 5: compare the variants, and count rounds of interactive ones.

    Printed are average, median and maximum of the rounds, and on how many data sets the
    first method is significantly better and worse than a variant.
    """
    accuracies, seconds = run.accuracies("tables"), run.seconds("tables")
    tally = run.summary("tables", methods).win_tie_loss
    times = [
        {
            "method": name,
            "theirs": " / ".join(map(str, printed_wins.get(name, ("", "")))),
            "ours": f"{tally.wins[0, j]} / {tally.losses[0, j]}" if j else " / ",
            "seconds": seconds[name],
            "ratio": seconds[name] / seconds[methods[0]],
        }
        for j, name in enumerate(methods)
    ]
    wins = [
        (printed_wins[name], (tally.wins[0, j], tally.losses[0, j]))
        for j, name in enumerate(methods)
        if name in printed_wins
    ]
    shown = {name: averaged(accuracies[name]) for name in methods}
    rows = []
    for name, theirs in printed.items():
        records = run.extras("tables", name, "rounds")
        rounds = {data: mean(values) for data, values in records.items()}
        shown[f"rounds {name[4:]}"] = averaged(rounds)
        values = np.array(list(rounds.values()))
        ours = [float(f(values)) for f in (np.mean, np.median, np.max)]
        row = {"method": name, "theirs": theirs, "ours": ours, "n": len(theirs)}
        near = run.judged(abs(ours[0] - theirs[0]) <= 1)
        same = sum(np.abs(np.subtract(ours, theirs)) <= 1)
        rows.append({**row, "near": near, "same": same})
    averages = [mean(accuracies[name].values()) for name in methods]
    spread = max(averages) - min(averages)
    return {
        "rows": rows,
        "times": times,
        "n_wins": 2 * len(wins),
        "same_wins": int(np.equal(*np.swapaxes(wins, 0, 1)).sum()),
        "by_set": figures_table(shown),
        "spread": spread,
        "equal": run.judged(spread < 1),
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


def worked_by_hand(
    run: Run,
    columns: Sequence[str],
    days: Sequence[str],
    order: Sequence[str],
    n_selected: int,
    figures: Mapping[str, float],
) -> Values:
    """Put the path on the weather data beside figures worked out by hand.

    A day is a letter for the value of each column, and one for the label.
    """
    import pandas as pd

    cells = [day.split() for day in days]
    table = pd.DataFrame([list(values) for values, _ in cells], columns=columns)
    fitted = SPSSNaiveBayes().fit(table, [label for _, label in cells])
    path = fitted.selection_path_
    rows = [
        {"key": key, "theirs": value, "ours": path[int(key[2])][_KEYS[key[0]]]}
        for key, value in figures.items()
    ]
    largest = max(abs(row["ours"] - row["theirs"]) for row in rows)
    ours = [record["added"] for record in path[1:]]
    subset, selected = order[:n_selected], fitted.selected_features_
    return {
        "path": path,
        "rows": rows,
        "n": len(rows),
        "largest": largest,
        "close": largest < 1e-5,
        "orders": [", ".join(names) for names in (order, ours)],
        "same_order": list(order) == ours,
        "subsets": [", ".join(names) for names in (subset, selected)],
        "same_subset": list(subset) == selected,
    }


def samples(run: Run, names: Sequence[str]) -> list[Values]:
    """Follow the path on data sets, by the pseudo-BIC and by test rows."""
    return [_sample(name) for name in names]


def _sample(name: str) -> dict[str, Any]:
    data = load_dataset(name)
    train, test, labels, truth = train_test_split(
        data.table, data.target, test_size=0.3, random_state=SEED, stratify=data.target
    )
    tested = SPSSNaiveBayes().fit(train, labels, X_test=test, y_test=truth)
    drawn = SPSSNaiveBayes(b_method="simulate", random_state=SEED)
    models = {
        "pseudo-BIC": SPSSNaiveBayes().fit(train, labels),
        "test rows": tested,
        "pseudo-BIC, B(J) of 1,000 drawn rows": drawn.fit(train, labels),
        "all predictors": SPSSNaiveBayes(selection="none").fit(train, labels),
    }
    rows = [
        {
            "title": title,
            "n": len(fitted.selected_features_),
            "train_error": 100 * np.mean(fitted.predict(train) != labels),
            "test_error": 100 * np.mean(fitted.predict(test) != truth),
        }
        for title, fitted in models.items()
    ]
    values = {"name": data.name, "rows": rows, "steps": _steps(tested.selection_path_)}
    return {**values, "n_train": len(train), "n_test": len(test)}


def _steps(path: Sequence[Mapping[str, Any]]) -> str:
    """Lay out the steps of a search for predictors."""
    rows = [
        [
            f"{value:.6f}" if isinstance(value, float) else str(value or "")
            for value in {**step, "chosen": "yes" if step["chosen"] else ""}.values()
        ]
        for step in path
    ]
    return table(" | ".join(key.replace("_", " ") for key in path[0]), rows)
