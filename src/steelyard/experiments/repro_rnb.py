"""Table 3 of the RNB paper (Wang, Ren & Bai, IEEE Access 2020): 33 data sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.experiments.protocols import (
    RNB_DELETED,
    cross_validate,
    load_dataset,
    prepare,
)
from steelyard.experiments.repro_report import (
    Measurement,
    Report,
    figure,
    markdown_table,
    measure_all,
    read_published,
    side_by_side,
)
from steelyard.presets import method

__all__ = ["QUICK_SETS", "VARIANTS", "Variant", "load_rnb_set", "reproduce_rnb"]

QUICK_SETS = ("iris", "labor", "lymphography", "zoo")
"""Small data sets for a quick look."""

TOLERANCE = 0.3
"""How far an average may lie from the published one."""

# Data sets that take longest, in this order: they start first.
_LARGE = ("letter", "audiology", "hypothyroid", "primary-tumor", "waveform-5000")


@dataclass(frozen=True)
class Variant:
    """A published column, and one way to compute it."""

    key: str
    column: str
    """The column of the published table."""

    settings: dict[str, Any] = field(default_factory=dict)
    protocol: str = "published"
    numeric: str = "mdl"


def _variants() -> dict[str, Variant]:
    capped: dict[str, Any] = {"solver": "published"}
    found = [Variant("NB", "NB"), Variant("NB, honest", "NB", {}, "honest")]
    for column in ("WANBIA", "CAWNB", "RNB"):
        found += [
            Variant(f"{column}, published solver", column, capped),
            Variant(f"{column}, optimum", column),
        ]
    better = Variant("RNB, better encoding", "RNB", capped, numeric="mdl-better")
    return {variant.key: variant for variant in [*found, better]}


VARIANTS = _variants()
"""What is measured, by name."""


def load_rnb_set(name: str, folder: Path) -> tuple[Any, NDArray[Any]]:
    """Read one of the 33 data sets, without the attribute that the paper deletes."""
    X, y = load_dataset(name, folder)
    return X.drop(columns=RNB_DELETED[name]) if name in RNB_DELETED else X, y


@lru_cache(maxsize=4)
def _prepared(
    name: str, folder: Path, protocol: str, numeric: str
) -> tuple[Any, NDArray[Any], dict[str, Any]]:
    X, y = load_rnb_set(name, folder)
    table, settings = prepare(X, y, protocol, numeric)
    return table, y, settings


def _measure(name: str, key: str, folder: Path, seed: int) -> Measurement:
    variant = VARIANTS[key]
    X, y, settings = _prepared(name, folder, variant.protocol, variant.numeric)
    classifier = method(variant.column, **settings, **variant.settings)
    result = cross_validate(classifier, X, y, seed=seed)
    return Measurement(name, key, result.accuracy, result.seconds, result.warnings)


def reproduce_rnb(
    data: Path,
    published: Path,
    *,
    names: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    n_jobs: int = 1,
    seed: int = 1,
) -> Report:
    """Measure the columns NB, WANBIA, CAWNB and RNB of Table 3.

    Parameters
    ----------
    data : Path
        Folder of data sets.
    published : Path
        Folder of published tables.
    names : sequence of str, default=None
        Data sets; all 33 if None.
    keys : sequence of str, default=None
        Names of ``VARIANTS``; all if None.
    n_jobs : int, default=1
        Processes. Figures do not depend on it.
    seed : int, default=1
        Seed of the folds.

    Returns
    -------
    Report
        Tables, figures, and whether averages are within 0.3 points.
    """
    printed = {row["dataset"]: row for row in read_published(published, "rnb_table3")}
    printed.pop("AVERAGE")
    names = list(printed) if names is None else list(names)
    keys = list(VARIANTS) if keys is None else list(keys)
    order = sorted(names, key=lambda n: _LARGE.index(n) if n in _LARGE else len(_LARGE))
    jobs = [(name, key, data, seed) for name in order for key in keys]
    found = measure_all(_measure, jobs, n_jobs)
    found.sort(key=lambda entry: (names.index(entry.data), keys.index(entry.variant)))
    return report_rnb(printed, names, keys, found)


def report_rnb(
    printed: dict[str, dict[str, str]],
    names: Sequence[str],
    keys: Sequence[str],
    found: list[Measurement],
) -> Report:
    """Compare measurements with the printed table."""
    measured = {
        key: {e.data: e.accuracy for e in found if e.variant == key} for key in keys
    }
    columns = {VARIANTS[key].column for key in keys}
    target = {c: {n: float(printed[n][c]) for n in names} for c in columns}

    rows, verdicts = [], {}
    for key in keys:
        column = VARIANTS[key].column
        ours = float(np.mean([measured[key][name] for name in names]))
        theirs = float(np.mean(list(target[column].values())))
        within = abs(ours - theirs) <= TOLERANCE
        judged = VARIANTS[key].protocol == "published"
        warned = [sum(e.warnings.values()) for e in found if e.variant == key]
        seconds = sum(e.seconds for e in found if e.variant == key)
        rows.append(
            [
                key,
                figure(theirs),
                figure(ours),
                figure(ours - theirs, signed=True),
                ("yes" if within else "no") if judged else "",
                str(sum(warned)),
                f"{seconds:.0f}",
            ]
        )
        verdicts[key] = {"published": theirs, "measured": ours, "within": within}
    parts = [
        f'Averages over {len(names)} data sets, in percent. "Within" means within '
        f"{TOLERANCE} points; warnings are counted over 10 folds of every data set "
        "(the cap of 100 iterations is one).",
        markdown_table(
            [
                "variant",
                "published",
                "measured",
                "difference",
                "within",
                "warnings",
                "seconds",
            ],
            rows,
        ),
    ]
    for title, suffix in (
        ("Weights at the optimum", ", optimum"),
        ("The published solver", ", published solver"),
    ):
        chosen = [
            (column, target[column], measured[f"{column}{suffix}"])
            for column in ("WANBIA", "CAWNB", "RNB")
            if f"{column}{suffix}" in measured
        ]
        if "NB" in measured and suffix == ", optimum":
            chosen.insert(0, ("NB", target["NB"], measured["NB"]))
        if chosen:
            parts += [f"#### {title}", side_by_side(names, chosen)]
    parts += _better(names, target, measured) + _leak(names, measured)
    return Report("rnb", "\n\n".join(parts), found, verdicts)


def _better(
    names: Sequence[str],
    target: dict[str, dict[str, float]],
    measured: dict[str, dict[str, float]],
) -> list[str]:
    """Show RNB with the finer cuts of Weka's better encoding."""
    key = "RNB, better encoding"
    if key not in measured:
        return []
    chosen = [("published solver,", target["RNB"], measured[key])]
    return ["#### RNB with the better encoding", side_by_side(names, chosen)]


def _leak(names: Sequence[str], measured: dict[str, dict[str, float]]) -> list[str]:
    """Show what preprocessing of the whole data set is worth."""
    pairs = [
        (column, measured[whole], measured[f"{column}, honest"])
        for column, whole in (
            ("NB", "NB"),
            ("WANBIA", "WANBIA, published solver"),
            ("CAWNB", "CAWNB, published solver"),
            ("RNB", "RNB, published solver"),
        )
        if whole in measured and f"{column}, honest" in measured
    ]
    if not pairs:
        return []
    header = ["data set"]
    for column, _, _ in pairs:
        header += [f"{column} whole", "in fold", "leak"]
    rows = []
    for name in [*names, "**average**"]:
        row = [name]
        for _, whole, fold in pairs:
            if name in whole:
                a, b = whole[name], fold[name]
            else:
                a, b = (float(np.mean(list(t.values()))) for t in (whole, fold))
            row += [figure(a), figure(b), figure(a - b, signed=True)]
        rows.append(row)
    return [
        "#### What the leak is worth",
        "Means, modes and cut points learned on the whole data set, or inside each "
        "training part (the published solver in both).",
        markdown_table(header, rows),
    ]
