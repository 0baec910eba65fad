"""Measure how often intervals of probabilities cover the truth, on made tables.

``python studies/interval_coverage.py [TABLE ...] [--rows N ...] [--repeats R]`` makes
tables whose probabilities are known, fits the default, and prints the share of new
rows and classes whose interval covers the probability: of all rows, and of those with
a number beyond the 5 % and 95 % quantiles of its column, the tails. Beside it stand the
mean width, and the processor time that the intervals take of the fit. Figures are means
over R draws; ``--first S`` takes other ones, with seeds from S on. With ``--known 1 2``
only so many columns of new rows are known, and the truth is the mean over the others;
tables of independent numbers alone are taken. ``--real SET ...`` prints the mean width
of intervals on data sets of the folder ``STEELYARD_DATA`` beside that of refits to
bootstrap samples, with all choices made anew.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri, softmax

sys.path.insert(0, str(Path(__file__).resolve().parent))
import curves

import steelyard as sy
from steelyard._common.text import text_table

SIZES = (200, 1_000, 5_000, 20_000)
NEW_ROWS = 2_000

# Rows with some columns known, and draws of the others for each.
KNOWN_ROWS, KNOWN_DRAWS = 200, 2_000
INDEPENDENT = ("lines", "waves", "steps", "skewed", "pair", "three-classes")

# Rows of a real table that are learned from, and others; refits to bootstrap samples.
REAL_ROWS, NEW_REAL_ROWS, REFITS = 2_000, 300, 8

Floats = NDArray[np.float64]
Random = np.random.Generator


def _odds(odds: Floats) -> Floats:
    """Return scores of two classes with such log-odds."""
    return np.stack([np.zeros_like(odds), odds], axis=1)


def _numbers(random: Random, n: int, d: int) -> pd.DataFrame:
    return pd.DataFrame(random.normal(size=(n, d)), columns=[f"x{j}" for j in range(d)])


def lines(random: Random, n: int) -> tuple[pd.DataFrame, Floats]:
    """Three slopes, and three columns that say nothing."""
    X = _numbers(random, n, 6)
    return X, _odds(X.x0 - 0.7 * X.x1 + 0.4 * X.x2 - 0.5)


def waves(random: Random, n: int) -> tuple[pd.DataFrame, Floats]:
    """Make a wave, a parabola and a slope."""
    X = _numbers(random, n, 4)
    return X, _odds(1.5 * np.sin(2.0 * X.x0) + 0.4 * X.x1**2 + 0.5 * X.x2 - 0.4)


def steps(random: Random, n: int) -> tuple[pd.DataFrame, Floats]:
    """Two thresholds and a slope."""
    X = _numbers(random, n, 4)
    return X, _odds(1.5 * (X.x0 > 0.5) - (X.x1 < -0.3) + 0.5 * X.x2)


def skewed(random: Random, n: int) -> tuple[pd.DataFrame, Floats]:
    """Slopes of the logarithm of long-tailed numbers."""
    X = np.exp(_numbers(random, n, 3))
    return X, _odds(0.8 * np.log(X.x0) - 0.5 * np.log(X.x1))


def categories(random: Random, n: int) -> tuple[pd.DataFrame, Floats]:
    """Categories alone, 3 to 12 in a column."""
    fixed, odds, columns = np.random.default_rng(5), np.zeros(n), {}
    for j, size in enumerate((3, 5, 8, 12)):
        codes = random.integers(0, size, n)
        odds += fixed.normal(0.0, 0.8, size)[codes]
        columns[f"c{j}"] = np.array([f"v{v:02d}" for v in range(size)])[codes]
    return pd.DataFrame(columns), _odds(odds)


def mixed(random: Random, n: int) -> tuple[pd.DataFrame, Floats]:
    """Numbers and categories, and numbers that say the same."""
    X, scores = categories(random, n)
    correlated = _numbers(random, n, 4)
    correlated["x1"] = 0.9 * correlated.x0 + 0.44 * correlated.x1
    scores[:, 1] += correlated.x0 + np.sin(2.0 * correlated.x2)
    return pd.concat([X, correlated], axis=1), scores


def pair(random: Random, n: int) -> tuple[pd.DataFrame, Floats]:
    """Multiply two numbers, and add a slope."""
    X = _numbers(random, n, 4)
    return X, _odds(X.x0 * X.x1 + 0.6 * X.x2)


def three_classes(random: Random, n: int) -> tuple[pd.DataFrame, Floats]:
    """Three classes along slopes and a wave."""
    X = _numbers(random, n, 5)
    scores = np.zeros((n, 3))
    scores[:, 1] = X.x0 + 0.5 * X.x1
    scores[:, 2] = -0.5 * X.x0 + np.sin(2.0 * X.x2)
    return X, scores


def ten_classes(random: Random, n: int) -> tuple[pd.DataFrame, Floats]:
    """Ten classes along slopes, with categories."""
    X, fixed = _numbers(random, n, 5), np.random.default_rng(7)
    codes = random.integers(0, 6, n)
    scores = X.to_numpy() @ fixed.normal(0.0, 0.6, (5, 10))
    scores += fixed.normal(0.0, 0.6, (6, 10))[codes]
    return X.assign(kind=np.array(list("abcdef"))[codes]), scores


def zeros(random: Random, n: int) -> tuple[pd.DataFrame, Floats]:
    """Amounts of which four in five are zero, and a slope."""
    amounts = np.exp(random.normal(size=(n, 3))) * (random.random((n, 3)) < 0.2)
    X = pd.DataFrame(amounts, columns=["a0", "a1", "a2"]).assign(
        x=random.normal(size=n)
    )
    return X, _odds(1.2 * (X.a0 > 0) + 0.5 * np.log1p(X.a1) + 0.6 * X.x - 0.6)


def lumps(random: Random, n: int) -> tuple[pd.DataFrame, Floats]:
    """Numbers that are often one of a few round ones."""
    X = np.round(_numbers(random, n, 4) * 10.0, 1)
    is_round = random.random(X.shape) < 0.6
    X = X.mask(is_round, 10.0 * np.round(X / 10.0))
    return X, _odds(0.08 * X.x0 + np.sin(0.2 * X.x1) - 0.3)


def counts(random: Random, n: int) -> tuple[pd.DataFrame, Floats]:
    """Make counts of events, most of them small, with logarithmic slopes."""
    events = random.poisson((0.3, 1.0, 3.0, 10.0), (n, 4))
    X = pd.DataFrame(events, columns=[f"n{j}" for j in range(4)])
    return X, _odds(0.9 * X.n0 - np.log1p(X.n1) + 0.2 * X.n2 - 0.2)


def flags(random: Random, n: int) -> tuple[pd.DataFrame, Floats]:
    """Zeros and ones, some of them rare, and a slope."""
    shares = np.array([0.5, 0.3, 0.1, 0.03, 0.5, 0.2])
    X = pd.DataFrame(
        (random.random((n, 6)) < shares).astype(int),
        columns=[f"f{j}" for j in range(6)],
    ).assign(x=random.normal(size=n))
    return X, _odds(X.f0 - 0.8 * X.f1 + 1.2 * X.f2 + 1.5 * X.f3 + 0.5 * X.x - 0.5)


def long_tails(random: Random, n: int) -> tuple[pd.DataFrame, Floats]:
    """Incomes and debts over six powers of ten, and a threshold."""
    X = np.exp(2.5 * _numbers(random, n, 3))
    return X, _odds(0.3 * np.log(X.x0) - 1.2 * (X.x1 > 20.0))


def copies(random: Random, n: int) -> tuple[pd.DataFrame, Floats]:
    """Three columns that say nearly the same, and two others."""
    X = _numbers(random, n, 3)
    for j in range(2):
        X[f"copy{j}"] = X.x0 + 0.1 * random.normal(size=n)
    return X, _odds(0.8 * X.x0 + 0.5 * X.x1)


TABLES: dict[str, Callable[[Random, int], tuple[pd.DataFrame, Floats]]] = {
    made.__name__.replace("_", "-"): made
    for made in (
        *(lines, waves, steps, skewed, categories, mixed, pair),
        *(three_classes, ten_classes, zeros, lumps, counts, flags, long_tails, copies),
    )
}


class Coverage(NamedTuple):
    """How often intervals cover, how wide they are, and what they cost."""

    overall: float
    tails: float
    width: float
    share_of_fit: float


def in_tails(X: pd.DataFrame) -> NDArray[np.bool_]:
    """Return rows with a number beyond the 5 % or the 95 % quantile of its column."""
    numbers = X.select_dtypes("number")
    low, high = numbers.quantile(0.05), numbers.quantile(0.95)
    return ((numbers < low) | (numbers > high)).any(axis=1).to_numpy()


def made(name: str, n_rows: int, n_new: int, seed: int) -> tuple[Any, Any, Any, Any]:
    """Make a table: columns, classes, columns of new rows, and their true scores."""
    random = np.random.default_rng([seed, n_rows, len(name)])
    X, scores = TABLES[name](random, n_rows + n_new)
    share = softmax(scores[:n_rows], axis=1)
    y = (share.cumsum(axis=1) < random.random((n_rows, 1))).sum(axis=1)
    return X[:n_rows], y, X[n_rows:], scores[n_rows:]


def measure(name: str, n_rows: int, seed: int, level: float = 0.9) -> Coverage:
    """Fit a made table once; compare intervals of new rows with the truth."""
    X, y, new, scores = made(name, n_rows, NEW_ROWS, seed)
    taken = []
    for uncertainty in (False, True):
        clf, start = sy.ShrinkageNB(uncertainty=uncertainty), time.process_time()
        clf.fit(X, y)
        taken.append(time.process_time() - start)
    ends = clf.predict_interval(new, level)
    truth = softmax(scores, axis=1)[:, clf.classes_]
    cost = taken[1] / taken[0] - 1.0
    return _coverage(new, ends[..., 0], ends[..., 1], truth, cost)


def _coverage(
    new: pd.DataFrame, low: Floats, high: Floats, truth: Floats, cost: float
) -> Coverage:
    covers, tails = (low <= truth) & (truth <= high), in_tails(new)
    of_tails = float(covers[tails].mean()) if tails.any() else np.nan
    return Coverage(float(covers.mean()), of_tails, float((high - low).mean()), cost)


class Prescribed:
    """Stands for a random generator, of which numbers are already drawn."""

    def __init__(self, numbers: Floats) -> None:
        self.numbers = numbers

    def normal(self, size: tuple[int, int]) -> Floats:
        """Return the numbers."""
        return self.numbers


def measure_known(
    name: str, n_rows: int, n_known: int, seed: int, level: float = 0.9
) -> Coverage:
    """Compare intervals of partly known new rows with the truth given what is known."""
    X, y, new, _ = made(name, n_rows, KNOWN_ROWS, seed)
    clf, random = sy.ShrinkageNB().fit(X, y), np.random.default_rng(seed)
    # Columns were drawn as normal numbers, some of which were transformed.
    drawn = np.log(new.to_numpy()) if name == "skewed" else new.to_numpy()
    shown, truth = new.copy(), np.empty((len(new), len(clf.classes_)))
    for row in range(len(new)):
        numbers = random.normal(size=(KNOWN_DRAWS, new.shape[1]))
        known = random.permutation(new.shape[1])[:n_known]
        numbers[:, known] = drawn[row, known]
        _, scores = TABLES[name](cast(Any, Prescribed(numbers)), KNOWN_DRAWS)
        truth[row] = softmax(scores, axis=1).mean(axis=0)[clf.classes_]
        shown.iloc[row, np.setdiff1d(np.arange(new.shape[1]), known)] = np.nan
    ends = clf.predict_interval(shown, level)
    return _coverage(new, ends[..., 0], ends[..., 1], truth, 0.0)


def widths(name: str, level: float = 0.9) -> tuple[float, float]:
    """Return mean widths of intervals of a data set: ours, and those of refits."""
    X, y = curves.drawn(name, REAL_ROWS + NEW_REAL_ROWS)
    n_new = min(NEW_REAL_ROWS, len(X) // 4)
    new, X, y = X[:n_new], X[n_new:], y[n_new:]
    clf, random = sy.ShrinkageNB(interactions=None).fit(X, y), np.random.default_rng(0)
    ends = clf.predict_interval(new, level)
    odds: list[Floats] = []
    while len(odds) < REFITS:
        rows = random.integers(0, len(y), len(y))
        if len(np.unique(y[rows])) == len(clf.classes_):
            refit = sy.ShrinkageNB(interactions=None).fit(X.iloc[rows], y[rows])
            odds.append(logit(np.clip(refit.predict_proba(new), 1e-9, 1.0 - 1e-9)))
    half = ndtri(0.5 + level / 2.0) * np.std(odds, axis=0, ddof=1)
    middle = logit(np.clip(clf.predict_proba(new), 1e-9, 1.0 - 1e-9))
    refits = expit(middle + half) - expit(middle - half)
    return float((ends[..., 1] - ends[..., 0]).mean()), float(refits.mean())


def lines_of_real(names: Sequence[str], level: float) -> Iterator[list[str]]:
    """Yield a line for each data set: widths of intervals, of refits, their ratio."""
    for name in names:
        own, refits = widths(name, level)
        yield [name, "", f"{own:.3f}", f"{refits:.3f}", f"{own / refits:.2f}", ""]


def lines_of_known(
    names: Sequence[str],
    sizes: Sequence[int],
    known: Sequence[int],
    seeds: Sequence[int],
    level: float,
) -> Iterator[list[str]]:
    """Yield a line for each made table, number of rows and number of known columns."""
    for name in names:
        for n_rows in sizes:
            for k in known:
                each = [measure_known(name, n_rows, k, seed, level) for seed in seeds]
                mean = Coverage(*np.mean(each, axis=0))
                shares = [f"{100 * share:.1f}" for share in (mean.overall, mean.tails)]
                yield [name, f"{n_rows}, {k} known", *shares, f"{mean.width:.3f}", ""]


def lines_of(
    names: Sequence[str],
    sizes: Sequence[int],
    repeats: int,
    level: float,
    first: int = 0,
) -> Iterator[list[str]]:
    """Yield a line of the table for each made table and number of rows.

    Figures are means over draws, whose seeds go on from the first.
    """
    seeds = range(first, first + repeats)
    for name in names:
        for n_rows in sizes:
            each = [measure(name, n_rows, seed, level) for seed in seeds]
            mean = Coverage(*np.mean(each, axis=0))
            shares = [f"{100 * share:.1f}" for share in (mean.overall, mean.tails)]
            cost = f"{100 * mean.share_of_fit:.0f} %"
            yield [name, str(n_rows), *shares, f"{mean.width:.3f}", cost]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("tables", nargs="*", metavar="TABLE", default=list(TABLES))
    parser.add_argument("--rows", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="seed of the first draw")
    parser.add_argument("--level", type=float, default=0.9)
    parser.add_argument("--known", nargs="+", type=int, help="known columns")
    parser.add_argument("--real", nargs="+", metavar="SET", help="real data sets")
    asked = parser.parse_args(arguments)
    if asked.real:
        headers = ["set", "", "width", "of refits", "ratio", ""]
        rows = list(lines_of_real(asked.real, asked.level))
        print(text_table(headers, rows, [False, *[True] * 5]))
        return
    for name in set(asked.tables) - set(TABLES):
        parser.error(f"no table {name!r}; there are {', '.join(TABLES)}")
    settings = asked.tables, asked.rows, asked.repeats, asked.level
    if asked.known:
        names = [name for name in asked.tables if name in INDEPENDENT]
        seeds = range(asked.first, asked.first + asked.repeats)
        rows = list(lines_of_known(names, asked.rows, asked.known, seeds, asked.level))
    else:
        rows = list(lines_of(*settings, asked.first))
    headers = ["table", "rows", "covered %", "in tails %", "width", "of the fit"]
    print(text_table(headers, rows, [False, *[True] * 5]))


if __name__ == "__main__":
    main()
