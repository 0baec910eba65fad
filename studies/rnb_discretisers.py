"""Try ways of cutting numbers that RNB's authors may have used, one after the other.

``python studies/rnb_discretisers.py [SET ...] [--out DIR]`` cross-validates RNB with
its published solver on the paper's data sets that have numbers (letter, which takes
longer than the others together, and those without numbers if they are named), and
prints how far each way of cutting is from Table 3. The paper cuts by Fayyad and Irani's
MDL, "fine-tuned to reduce the information loss", and says no more. Data come from the
folder ``STEELYARD_DATA``; with ``--out`` an interrupted run goes on.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import steelyard as sy
from steelyard._common.text import markdown_table
from steelyard.io.dataset import DataSet
from steelyard.lab.data.datasets import load_dataset
from steelyard.lab.protocols import RNB_DELETED, discretize_whole, fill_whole

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from reproduction.documents import read_paper
from reproduction.engine import Run

Floats = NDArray[np.float64]
Cuts = Callable[[Floats, NDArray[np.int64]], Floats]

# Shares of Fayyad and Irani's bar that a gain has to pass.
BARS = (2.0, 1.0, 0.75, 0.5, 0.25, 0.1, 0.0)


def share_by_rows(n_range: int, n_rows: int) -> float:
    """Return the share in the program that RNB's authors published.

    https://github.com/shellpower96/Regularized-Naive-Bayes computes it, and then sets
    it back to 1.

    Examples
    --------
    >>> [round(share_by_rows(10, n), 2) for n in (150, 1_000, 5_000, 20_000)]
    [0.52, 0.62, 0.92, 1.0]
    """
    return float(1 / (1 + np.exp(-n_rows / 2000)))


def share_by_range(n_range: int, n_rows: int) -> float:
    """Return the share in the same authors' next program, "SADD".

    Examples
    --------
    >>> [round(share_by_range(n, 1_000), 2) for n in (1_000, 500, 10)]
    [0.73, 0.62, 0.5]
    """
    return float(1 / (1 + np.exp(-n_range / n_rows)))


def entropy(counts: Floats) -> Floats:
    """Return the entropy in bits of each row of counts.

    Examples
    --------
    >>> entropy(np.array([[2.0, 2.0], [4.0, 0.0]])).tolist()
    [1.0, 0.0]
    """
    shares = counts / counts.sum(axis=1, keepdims=True)
    logs = np.log2(shares, where=shares > 0, out=np.zeros_like(shares))
    return np.asarray(-(shares * logs).sum(axis=1) + 0.0)


def mdl_cuts(
    values: Floats,
    classes: NDArray[np.int64],
    *,
    bar: float | Callable[[int, int], float] = 1.0,
    correction: bool = True,
    candidates: str = "rows",
    duplicates: bool = True,
    at_least_one: bool = False,
) -> Floats:
    """Cut by Fayyad and Irani's rule, written out; variants by their settings.

    ``bar`` multiplies what a gain has to pass, or is a function of the rows of the
    range and of all rows that says by how much; ``correction`` is the term of the
    numbers of classes; ``candidates`` are counted by rows, by distinct values, or not
    at all. Without ``duplicates`` equal pairs of value and class count once. With
    ``at_least_one`` the best cut of a column is taken whatever it gains.

    Examples
    --------
    >>> numbers = np.array([1.0, 2.0, 3.0, 8.0, 9.0, 10.0] * 3)
    >>> mdl_cuts(numbers, (numbers > 5).astype(int))
    array([5.5])
    """
    if not duplicates:
        pairs = np.unique(np.column_stack([values, classes]), axis=0)
        values, classes = pairs[:, 0], pairs[:, 1].astype(np.int64)
    order = np.argsort(values, kind="stable")
    values, hot = values[order], np.eye(int(classes.max()) + 1)[classes[order]]
    found: list[float] = []
    ranges = [(0, len(values))]
    while ranges:
        first, end = ranges.pop()
        v, n = values[first:end], end - first
        places = np.flatnonzero(v[1:] != v[:-1]) + 1
        if not len(places):
            continue
        counts = hot[first:end].cumsum(axis=0)
        whole, left = counts[-1:], counts[places - 1]
        right = whole - left
        parts = entropy(left), entropy(right)
        mean = (places * parts[0] + (n - places) * parts[1]) / n
        best = int(np.argmin(mean.round(12)))
        (h,) = entropy(whole)
        k, *ks = (int((c > 0).sum()) for c in (whole[0], left[best], right[best]))
        delta = np.log2(3.0**k - 2) - (
            k * h - ks[0] * parts[0][best] - ks[1] * parts[1][best]
        )
        bits = {"rows": np.log2(n - 1), "distinct": np.log2(len(places)), "none": 0.0}
        share = bar(n, len(values)) if callable(bar) else bar
        needed = share * (bits[candidates] + (delta if correction else 0.0)) / n
        forced = at_least_one and not found
        if h - mean[best] > max(needed, 1e-12) or forced:
            cut = first + int(places[best])
            found.append(float(values[cut - 1] + values[cut]) / 2)
            ranges += [(first, cut), (cut, end)]
            at_least_one = False
    return np.sort(found)


def cut_whole(data: DataSet, cuts: Cuts, binary: bool = False) -> DataSet:
    """Fill in missing cells and cut numbers by all rows, as the RNB paper did.

    With ``binary`` each cut point is a column of its own (Weka's option -D).
    """
    table = fill_whole(data.table)
    classes = np.unique(data.target, return_inverse=True)[1]
    columns: dict[str, Any] = {}
    for name in table:
        column = table[name]
        if not pd.api.types.is_numeric_dtype(column):
            columns[name] = column
            continue
        numbers = column.to_numpy(dtype=np.float64)
        found = cuts(numbers, classes)
        codes = np.searchsorted(found, numbers, side="left")
        if binary and len(found):
            for i in range(len(found)):
                columns[f"{name} > cut {i}"] = pd.Categorical(
                    codes > i, categories=[False, True]
                )
        else:
            columns[name] = pd.Categorical(codes, categories=range(len(found) + 1))
    return replace(data, table=pd.DataFrame(columns))


def as_numbers(data: DataSet) -> DataSet:
    """Replace categories by their places among the declared ones.

    The authors' program wants all columns as numbers, and cuts them all.
    """
    table = fill_whole(data.table)
    for name in table.columns.difference(table.select_dtypes("number").columns):
        codes = table[name].astype("category").cat.codes
        table[name] = codes.astype(np.float64)
    return replace(data, table=table)


def ways() -> dict[str, Cuts | str]:
    """Return what is tried: rules on the whole table, or settings of the library."""
    rules: dict[str, Cuts | str] = {
        "MDL, whole table (as reproduced)": mdl_cuts,
        "MDL, inside the fold": "mdl",
        "Weka's better encoding (-E), whole table": "mdl-better",
        "Weka's better encoding (-E), inside the fold": "mdl-better in fold",
        "Kononenko's MDL (-K), whole table": "kononenko",
        "a binary column for each cut point (-D)": "binary",
        "candidates counted by distinct values": partial(
            mdl_cuts, candidates="distinct"
        ),
        "without the term of the classes": partial(mdl_cuts, correction=False),
        "without the term of the candidates": partial(mdl_cuts, candidates="none"),
        "equal pairs of value and class once": partial(mdl_cuts, duplicates=False),
        "at least one cut in each column": partial(mdl_cuts, at_least_one=True),
    }
    bars = (bar for bar in BARS if bar != 1.0)
    for word, bar in (("n", share_by_rows), ("range", share_by_range)):
        rules[f"bar by {word}, from the authors' programs"] = partial(mdl_cuts, bar=bar)
    rules["bar by n, and categories cut as numbers"] = "numbers"
    rules |= {f"bar times {bar:g}": partial(mdl_cuts, bar=bar) for bar in bars}
    return rules


def accuracies(
    way: str, rule: Cuts | str, data: Sequence[DataSet], out: Path | None
) -> dict[str, float]:
    """Cross-validate RNB on data sets that are cut in one way, in percent."""
    settings: dict[str, Any] = {"solver": "published"}
    protocol = "published-rnb"
    if rule in ("mdl", "mdl-better in fold"):
        numeric = str(rule).removesuffix(" in fold")
        settings |= {"numeric": numeric, "missing": "impute", "cardinality": "declared"}
        protocol = "honest"
        # The other protocol deletes what the paper does.
        data = [
            replace(d, table=d.table.drop(columns=RNB_DELETED.get(d.name, [])))
            for d in data
        ]
    elif rule == "numbers":
        cuts: Cuts = partial(mdl_cuts, bar=share_by_rows)
        data = [cut_whole(as_numbers(d), cuts) for d in data]
    elif isinstance(rule, str) and rule != "binary":
        from steelyard.table.discretizers.mdl import MDLDiscretizer

        konon = MDLDiscretizer(criterion="kononenko")
        numeric = {"kononenko": konon}.get(rule, rule)
        codes = [discretize_whole(d.table, d.target, numeric) for d in data]
        data = [replace(d, table=t) for d, t in zip(data, codes, strict=True)]
    else:
        cuts = mdl_cuts if isinstance(rule, str) else rule
        data = [cut_whole(d, cuts, rule == "binary") for d in data]
    name = "".join(c if c.isalnum() else "-" for c in way)
    results = sy.compare(
        {"RNB": sy.method("RNB", **settings)},
        list(data),
        protocol=protocol,
        journal=None if out is None else out / f"{name}.jsonl",
        n_jobs=1,
        progress=False,
    )
    values = 100 * results.matrix("accuracy")[:, 0]
    return dict(zip(results.datasets, values.tolist(), strict=True))


def row(
    way: str, measured: Mapping[str, float], printed: Mapping[str, float]
) -> list[str]:
    """Return the cells of a way: averages, distance, and the sets of largest gaps."""
    gaps = np.array([measured[name] - printed[name] for name in printed])
    near = int((np.abs(gaps) <= 1).sum())
    worst = sorted(printed, key=lambda n: measured[n] - printed[n])[:5]
    return [
        way,
        f"{np.mean([measured[name] for name in printed]):.2f}",
        f"{gaps.mean():+.2f}",
        f"{np.abs(gaps).mean():.2f}",
        f"{near} of {len(gaps)}",
        ", ".join(f"{name} {measured[name] - printed[name]:+.1f}" for name in worst),
    ]


def main(words: Sequence[str] | None = None) -> None:
    """Print the table of what was tried."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*")
    parser.add_argument("--out", type=Path)
    about = "try ways whose names have this in them alone"
    parser.add_argument("--only", default="", metavar="TEXT", help=about)
    options = parser.parse_args(words)
    table3 = Run(read_paper("rnb"), None, progress=False).printed("rnb_table3")
    names = options.sets or [name for name in table3 if name != "letter"]
    data = [load_dataset(name) for name in names if name != "AVERAGE"]
    data = sorted(
        (d for d in data if options.sets or "numeric" in d.kinds.values()), key=len
    )
    printed = {d.name: float(table3[d.name]["RNB"]) for d in data}
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
    average = np.mean(list(printed.values()))
    rows = [["print", f"{average:.2f}", "", "", "", ""]]
    found: dict[str, dict[str, float]] = {}
    for way, rule in ways().items():
        if options.only not in way:
            continue
        found[way] = accuracies(way, rule, data, options.out)
        rows.append(row(way, found[way], printed))
        print(*rows[-1][:5], sep="  ", file=sys.stderr, flush=True)
    header = ["cuts", "average", "difference", "mean distance", "within a point"]
    header.append("furthest below print")
    if options.only:
        print(markdown_table(header, rows))
        return
    base = next(iter(found))
    tuned = [found[w] for w in (base, *(w for w in found if w.startswith("bar times")))]
    best = {name: max(way[name] for way in tuned) for name in printed}
    near = {
        name: min((way[name] for way in tuned), key=lambda x: abs(x - printed[name]))
        for name in printed
    }
    rows.append(row("the bar that is best on the test rows of each set", best, printed))
    rows.append(row("the bar that is nearest to print on each set", near, printed))
    print(markdown_table(header, rows))
    if len(printed) > 1:
        print(*halves(found, printed), sep="\n\n")


def halves(
    found: Mapping[str, Mapping[str, float]], printed: Mapping[str, float]
) -> list[str]:
    """Choose the way nearest to print on half of the sets, and judge it on the others.

    Every other set by name is of the same half.
    """
    names, first = sorted(printed), next(iter(found))

    def distance(way: str, half: Sequence[str]) -> float:
        return float(np.mean([abs(found[way][n] - printed[n]) for n in half]))

    texts = []
    for chosen, judged in ((names[::2], names[1::2]), (names[1::2], names[::2])):
        best = min(found, key=partial(distance, half=chosen))
        texts.append(
            f"Nearest to print on {len(chosen)} sets: {best}. On the other "
            f"{len(judged)} its mean distance is {distance(best, judged):.2f}; that of "
            f"{first} is {distance(first, judged):.2f}."
        )
    return texts


if __name__ == "__main__":
    main()
