"""Tables 2 to 5 and Figures 2 and 3 of the CWNB paper.

H. Zhang, L. Jiang, C. Li (2021), "Collaboratively weighted naive Bayes", Knowledge and
Information Systems. Ten equal-width bins and mean or mode imputation over the whole
data set, ten times stratified 10-fold cross-validation, the same folds for all methods.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np

from steelyard.classifiers.joint import JointWeightedNB
from steelyard.classifiers.registry import method
from steelyard.experiments.data.sets import dataset_group, load_dataset
from steelyard.experiments.papers.engine import Comparison, Paper, Run, Scale
from steelyard.experiments.papers.plots import draw_scatters
from steelyard.experiments.papers.report import SEED, Picture, Section, Verdict
from steelyard.experiments.papers.sections import (
    Panels,
    Tests,
    curve,
    fold_accuracies,
    rank_table,
    wilcoxon_table,
)
from steelyard.experiments.papers.simulated import flip_labels, sum_of_attributes
from steelyard.experiments.papers.tables import (
    averaged,
    differences,
    figures_table,
    mean,
    table,
)
from steelyard.experiments.protocols import find_protocol
from steelyard.experiments.statistics.two_methods import WilcoxonTest, corrected_t_test

__all__ = ["METHODS", "PAPER", "by_size"]

_PROTOCOL = "published-cwnb"
# The paper does not say how its weights are bounded: [0, 1], or from below alone.
_FREE = "CWNB, w ≥ 0"
_COMPARED = ("CWNB", "AIWNB-E", "DWNB", "WANBIA-CLL", "NB", "SVM")  # of Table 2
_VARIANTS = ("CWNB", "CWNB-R", "CWNB-I", "CWNB-RI")  # of Table 4
_MAX_QUICK_ROWS = 400

METHODS = {
    **{name: method(name) for name in (*_COMPARED, *_VARIANTS)},
    # The paper's naive Bayes is Weka's, which smooths by Laplace's rule.
    "NB": method("NB-Laplace"),
    _FREE: method("CWNB", bounds=(0, None)),
}
"""The paper's methods by name; SVM is the baseline of that name."""


def by_size(run: Run, names: Iterable[str]) -> list[str]:
    """Order data sets by their number of rows; a quick run has the small ones."""
    sizes = {name: len(load_dataset(name, run.folder)) for name in names}
    limit = _MAX_QUICK_ROWS if run.quick else np.inf
    return sorted((n for n in sizes if sizes[n] <= limit), key=sizes.__getitem__)


def _with_rows(run: Run, least: float, most: float) -> list[str]:
    """Name the data sets of the tables that have so many rows."""
    entries = run.results("tables").settings["datasets"]
    return [name for name, data in entries.items() if least <= data["rows"] <= most]


# --------------------------------------------------------------------- Tables 2 and 3

_TABLE2 = partial(
    rank_table,
    title="Table 2: accuracy and ranks",
    part="tables",
    methods=_COMPARED,
    shown=(*_COMPARED, _FREE),
    printed="cwnb_summary",
    counted=("cwnb_wins_significant", "cwnb_losses_significant"),
    intro="{n} data sets, {repeats} x stratified 10-fold; published figures are over "
    "60 sets. Significance is that of the corrected resampled t-test, two-tailed, 5 %.",
)


def _starred(run: Run, row: str, column: str, test: WilcoxonTest) -> str:
    return f"{test.p_value:.4f}" + (" *" if test.p_value <= 0.05 else "")


def _wins_of_cwnb(run: Run, tests: Tests) -> tuple[str, Verdict]:
    wins = sum(t.p_value <= 0.05 for (row, _), t in tests.items() if row == "CWNB")
    verdict = Verdict(
        "Table 3",
        "CWNB significantly better than all others",
        "5 of 5",
        f"{wins} of 5 at 5 %",
        run.judged(wins == 5),
        f"{len(run.names)} data sets here, 60 in the paper",
    )
    intro = "p of Wilcoxon's signed ranks over the data sets (zeros split); a star "
    return f"{intro}marks 5 %.", verdict


_TABLE3 = partial(
    wilcoxon_table,
    title="Table 3: Wilcoxon's test",
    rows=_COMPARED,
    forms={name: ("tables", name) for name in _COMPARED},
    zeros="split",
    cell=_starred,
    describe=_wins_of_cwnb,
)

# --------------------------------------------------------------------------- Figure 2

_MAX_SMALL = 1_000  # rows
# From the paper's text: on how many of the 20 large data sets of Figure 2 CWNB is
# better, and significantly so.
_PRINTED_LARGE = {
    "AIWNB-E": (17, 14),
    "DWNB": (17, 6),
    "WANBIA-CLL": (14, 11),
    "NB": (20, 16),
    "SVM": (10, 8),
}


def _figure2(run: Run) -> Section | None:
    """CWNB against the others on the larger data sets."""
    names = _with_rows(run, _MAX_SMALL + 1, np.inf)
    if not names:
        return None
    folds = fold_accuracies(run.results("tables").select(dataset=names), _COMPARED)
    test = corrected_t_test(folds[:, :1] - folds, np.full((len(names), 1), 1 / 9))
    ahead, significant = test.mean > 0, test.p_value <= 0.05
    rows = []
    for j, (name, printed) in enumerate(_PRINTED_LARGE.items(), 1):
        theirs = [100 * count / 20 for count in printed]
        masks = ahead[:, j], ahead[:, j] & significant[:, j]
        ours = [100 * int(mask.sum()) / len(names) for mask in masks]
        shares = [theirs[0], ours[0], theirs[1], ours[1]]
        rows.append([name, *(f"{share:.0f} %" for share in shares)])
    header = "competitor | CWNB better, published | measured | significantly, published"
    averages = 100 * folds.mean(axis=2)
    points, marks = (
        {name: array[:, j] for j, name in enumerate(_COMPARED) if j}
        for array in (averages, significant)
    )
    draw = partial(draw_scatters, "CWNB accuracy (%)", averages[:, 0], points, marks)
    alt = "CWNB against each competitor on large data sets"
    return Section.of(
        "Figure 2: large data sets",
        f"Shares of the {len(names)} data sets of more than {_MAX_SMALL:,} rows (20 in "
        "the paper). Filled points are significant.",
        table(f"{header} | measured", rows),
        pictures=[Picture("cwnb_large", alt, draw)],
    )


# --------------------------------------------------------------------- Tables 4 and 5

# Rounds of Table 5, from the paper's text: average, median, maximum.
_PRINTED_ROUNDS = {"CWNB-I": (3.70, 2.50, 22.04), "CWNB-RI": (3.74, 2.61, 22.64)}


def _tables4_5(run: Run) -> Section:
    """Compare the variants, and count rounds of the interactive ones."""
    accuracies = run.accuracies("tables")
    shown = {name: averaged(accuracies[name]) for name in _VARIANTS}
    rows, verdicts = [], []
    for name, printed in _PRINTED_ROUNDS.items():
        records = run.extras("tables", name, "rounds")
        rounds = {data: mean(values) for data, values in records.items()}
        shown[f"rounds {name[4:]}"] = averaged(rounds)
        values = np.array(list(rounds.values()))
        measured = [float(f(values)) for f in (np.mean, np.median, np.max)]
        pairs = zip(printed, measured, strict=True)
        rows.append([name, *(f"{x:.2f} | {y:.2f}" for x, y in pairs)])
        what = f"average rounds of {name}, within 1"
        texts = f"{printed[0]:.2f}", f"{measured[0]:.2f}"
        near = run.judged(abs(measured[0] - printed[0]) <= 1)
        verdicts.append(Verdict("Table 5", what, *texts, near, "other data sets"))
    averages = [mean(accuracies[name].values()) for name in _VARIANTS]
    spread = max(averages) - min(averages)
    what, text = "the variants are about equal", f"averages within {spread:.2f} points"
    verdicts.append(Verdict("Table 4", what, "yes (text)", text, spread < 1))
    header = "rounds | average published | measured | median published | measured | "
    return Section.of(
        "Tables 4 and 5: variants and rounds",
        "Rounds are means over the folds of a data set; the last round of a fit is the "
        "one that did not improve.",
        table(f"{header}maximum published | measured", rows),
        figures_table(shown),
        verdicts=verdicts,
    )


# --------------------------------------------------------------------------- Figure 3

_CONSISTENT = ("NB", "DWNB", "WANBIA-CLL", "CWNB", _FREE)
SIZES = Scale(
    full=(25, 50, 75, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000),
    quick=(25, 100, 1_000),
)
"""Numbers of rows that are generated for Figure 3."""

_MAX_DRAWS = Scale(full=10, quick=3)


def _draws(run: Run) -> dict[int, list[str]]:
    """Name the tables that are drawn of each size."""
    most = _MAX_DRAWS(run)
    return {
        n: [f"{n} rows, draw {k}" for k in range(min(most, max(2, 20_000 // n)))]
        for n in SIZES(run)
    }


def _generated(run: Run) -> list[tuple[str, Any, Any]]:
    return [
        (name, *sum_of_attributes(n, SEED + k))
        for n, names in _draws(run).items()
        for k, name in enumerate(names)
    ]


def _consistency(run: Run) -> Panels:
    accuracies, draws = run.accuracies("consistency"), _draws(run)
    curves = {
        method: [mean(accuracies[method][name] for name in draws[n]) for n in draws]
        for method in _CONSISTENT
    }
    title = "Six attributes of {0, 1, 2, 3}; label: sum at least 9"
    return {title: (list(draws), curves)}


def _consistency_table(run: Run, panels: Panels) -> str:
    ((_, curves),) = panels.values()
    rows = [
        [f"{n:,} | {len(names)}", *(f"{values[i]:.2f}" for values in curves.values())]
        for i, (n, names) in enumerate(_draws(run).items())
    ]
    return table(" | ".join(["rows | draws", *curves]), rows)


def _lead_over_nb(run: Run, panels: Panels) -> Iterable[Verdict]:
    ((sizes, curves),) = panels.values()
    lead = {n: curves["CWNB"][i] - curves["NB"][i] for i, n in enumerate(sizes)}
    ahead = all(gap > 0 for n, gap in lead.items() if 75 <= n < 10_000)
    yield Verdict(
        "Figure 3",
        "CWNB's lead over NB",
        "behind below 75 rows; about 5 from 75 to 500; 3 to 10,000; then 0 (text)",
        ", ".join(f"{n:,}: {gap:+.1f}" for n, gap in lead.items()),
        run.judged(lead[25] < 0 and ahead),
    )


_FIGURE3 = partial(
    curve,
    title="Figure 3: consistency",
    measure=_consistency,
    text=_consistency_table,
    verdicts=_lead_over_nb,
    picture="consistency",
    alt="Accuracy against generated rows",
    xlabel="generated rows",
    ylabel="accuracy in 10-fold cross-validation (%)",
    log=True,
)

# ------------------------------------------------------------------- beyond the paper

_MAX_JOINT_ROWS = 700
_FLIPPED_SETS = ("breast-w", "vote", "soybean", "segment", "kr-vs-kp", "splice")
_FLIPPED_SHARE, _FLIPPED_DRAWS = 0.05, 5


def _joint(run: Run) -> Section:
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
    return Section.of(
        "Beyond the paper: joint weights",
        "What the paper leaves for later: `JointWeightedNB`, on data sets of at most "
        f"{_MAX_JOINT_ROWS} rows. It is better than CWNB on {better} of them and worse "
        f"on {worse}.",
        figures_table(shown, formats),
    )


def _flips(run: Run) -> Section | None:
    """Look for wrong labels among the rows of largest weight."""
    protocol = find_protocol(_PROTOCOL)
    rows = []
    for name in (name for name in _FLIPPED_SETS if name in run.names):
        data = protocol.prepare(load_dataset(name, run.folder))
        shares = []
        for draw in range(_FLIPPED_DRAWS):
            noisy, wrong = flip_labels(data.target, _FLIPPED_SHARE, SEED + draw)
            # CWNB begins with the same rounds: its instance weights are these.
            fitted = protocol.adapt(METHODS["DWNB"], 2).fit(data.table, noisy)
            top = fitted.hardest_rows(int(wrong.sum()))
            shares.append(100.0 * float(wrong[top].mean()))
        n = len(data.target)
        rows.append(f"{name} | {n:,} | {int(wrong.sum())} | {mean(shares):.2f}")
    if not rows:
        return None
    return Section.of(
        "Beyond the paper: wrong labels",
        "Share in percent of the flipped rows that are among the top 5 % by weight "
        f"(DWNB, 15 rounds, fitted on all rows; mean of {_FLIPPED_DRAWS} draws). "
        "Chance would be 5.",
        table("data set | rows | flipped | found", rows),
    )


_JOINT = {"NB": METHODS["NB"], "CWNB": METHODS["CWNB"], "joint": JointWeightedNB()}
PAPER = Paper(
    name="cwnb",
    title="CWNB paper: Tables 2 to 5, Figures 2 and 3",
    minutes=45.0,
    scope=f"The data sets of at most {_MAX_QUICK_ROWS} rows, 1 x 10 folds instead of "
    "10 x 10, up to 1,000 generated rows.",
    data=lambda run: by_size(run, dataset_group("cwnb60", run.folder)),
    comparisons={
        "tables": Comparison(METHODS, _PROTOCOL, repeats=Scale(full=10, quick=1)),
        "consistency": Comparison(
            {name: METHODS[name] for name in _CONSISTENT}, _PROTOCOL, _generated
        ),
        "joint": Comparison(
            _JOINT, _PROTOCOL, lambda run: _with_rows(run, 0, _MAX_JOINT_ROWS)
        ),
    },
    sections=(_TABLE2, _TABLE3, _figure2, _tables4_5, _FIGURE3, _joint, _flips),
)
