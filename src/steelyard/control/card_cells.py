"""Cells of a card: which to merge, their values in log-odds, and whole points.

The card is fitted to the model's probabilities, not to labels, so that few rows do not
make it worse than the model, and columns take over the contributions of interactions
and of merged cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np

from steelyard._common.arrays import Floats, Ints

# Ridge penalty that draws a cell to the mean evidence of the model: the curvature of
# four rows of even odds. The start is free but for rounding errors.
_RIDGE, _RIDGE_OF_START = 1.0, 1e-9

_MAX_ITERATIONS, _TOLERANCE = 50, 1e-8

# Partly known rows that the points of unknown cells are fitted to, and cells of them;
# the largest share of cells that is hidden in a row, and the seed.
_PARTLY_KNOWN_ROWS, _PARTLY_KNOWN_CELLS = 20_000, 4_000_000
_MAX_HIDDEN, _SEED = 0.7, 0

# Share of the cells that are merged before values are fitted again.
_MERGED_SHARE = 0.05

# Cells before a first fit: of all columns at most, and of a column on a card of few
# cells.
_MAX_FIRST_CELLS, _MIN_CELLS_OF_COLUMN = 1000, 16


@dataclass(frozen=True)
class CardColumn:
    """The codes of one column, or interaction, and the cells they are merged to."""

    attribute: int
    """Position of the attribute that has the codes."""

    codes: Ints
    """Code of each row, shape (n,)."""

    groups: Ints
    """Cell of each code, from 1 on without a gap; 0 for codes without points."""

    evidence: Floats
    """Evidence of each code in the model, in log-odds."""

    in_line: bool
    """Whether only neighbouring codes may be merged."""

    single_codes: Ints
    """Codes, such as that of missing cells, that are never merged with others."""

    direction: int = 0
    """1 if evidence never falls from code to code, -1 if it never rises, both up to the
    code where it turns: a card keeps that."""

    turn: int = 0
    """The code where evidence turns; 0 for none."""

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return int(self.groups.max(initial=0))

    def weights(self) -> Floats:
        """Return the number of rows of each code, a little more than 0."""
        rows = np.bincount(self.codes, minlength=len(self.groups))
        return rows.astype(np.float64) + 1e-3

    def means(self) -> Floats:
        """Return the mean evidence of each cell over the rows, shape (n_cells,)."""
        weights, n = self.weights(), self.n_cells + 1
        total = np.bincount(self.groups, weights * self.evidence, n)
        return np.asarray(total[1:] / np.bincount(self.groups, weights, n)[1:])

    def mergeable(self) -> Ints:
        """Return the cells that may be merged, without those of single codes."""
        single = self.groups[self.single_codes]
        return np.setdiff1d(np.arange(1, self.n_cells + 1), single)

    def neighbours(self, values: Floats) -> Iterator[tuple[int, int]]:
        """Yield the cells that may become one; of categories, those of like values."""
        cells = self.mergeable()
        if not self.in_line:
            cells = cells[np.argsort(values[cells - 1], kind="stable")]
        yield from zip(cells[:-1].tolist(), cells[1:].tolist(), strict=True)

    def merged(self, a: int, b: int) -> CardColumn:
        """Return the column with two cells as one; with b = 0 a has no more points."""
        low, high = (0, a) if b == 0 else (min(a, b), max(a, b))
        groups = np.where(self.groups == high, low, self.groups)
        return replace(self, groups=groups - (groups > high))

    def opposed_neighbours(self, values: Floats) -> Iterator[tuple[int, int]]:
        """Yield neighbours whose values go against the direction of the model."""
        if not self.direction:
            return
        for a, b in self.neighbours(values):
            last = int(np.flatnonzero(self.groups == a)[-1])
            has_turned = self.turn and last >= self.turn
            way = -self.direction if has_turned else self.direction
            if way * (values[b - 1] - values[a - 1]) < 0:
                yield a, b


@dataclass(frozen=True)
class CardFit:
    """Columns of a card, and the values of their cells in log-odds."""

    columns: tuple[CardColumn, ...]
    target: Floats
    """Probability of the class in the model, of each row, shape (n,)."""

    values: Floats
    """The start, then the cells of the columns, shape (1 + cells,)."""

    curvature: Floats
    """Second derivatives of the loss in the values."""

    loss: float
    """Mean cross-entropy to the target."""

    @property
    def n_cells(self) -> int:
        """Number of cells of all columns."""
        return len(self.values) - 1

    def by_column(self, values: Any = None) -> list[Any]:
        """Return the values of the cells of each column."""
        ends = np.cumsum([column.n_cells for column in self.columns])
        values = self.values if values is None else values
        return np.split(values[1:], ends[:-1]) if len(ends) else []


def design(columns: Sequence[CardColumn], n_rows: int) -> Any:
    """Return a sparse matrix of ones: for each row the start, and its cells."""
    from scipy.sparse import csr_array

    offset, rows, positions = 1, [np.arange(n_rows)], [np.zeros(n_rows, dtype=np.int64)]
    for column in columns:
        cells = column.groups[column.codes]
        with_cell = np.flatnonzero(cells)
        rows.append(with_cell)
        positions.append(cells[with_cell] + (offset - 1))
        offset += column.n_cells
    ones = np.concatenate(rows), np.concatenate(positions)
    return csr_array((np.ones(len(ones[0])), ones), shape=(n_rows, offset))


def cross_entropy(odds: Floats, target: Floats) -> float:
    """Return the mean cross-entropy of log-odds to probabilities."""
    return float(np.mean(np.logaddexp(0.0, odds) - target * odds))


def fitted(columns: Sequence[CardColumn], target: Floats, start: Floats) -> CardFit:
    """Return the values of cells that come nearest to the target, by Newton steps."""
    rows = design(columns, len(target))
    drawn_to = np.concatenate([start[:1], *(column.means() for column in columns)])
    ridge = np.full(len(start), _RIDGE)
    ridge[0] = _RIDGE_OF_START
    values, n = start, len(target)

    def loss_at(at: Floats) -> float:
        penalty = 0.5 * float(ridge @ (at - drawn_to) ** 2)
        return n * cross_entropy(rows @ at, target) + penalty

    for _ in range(_MAX_ITERATIONS):
        p = 1.0 / (1.0 + np.exp(-(rows @ values)))
        gradient = rows.T @ (p - target) + ridge * (values - drawn_to)
        scaled = rows.multiply((p * (1.0 - p))[:, None]).tocsr()
        curvature = (rows.T @ scaled).toarray() + np.diag(ridge)
        step = np.linalg.solve(curvature, gradient)
        gain, now, size = float(gradient @ step), loss_at(values), 1.0
        while loss_at(values - size * step) > now and size > 1e-6:
            size /= 2.0
        values = values - size * step
        if gain < _TOLERANCE * n:
            break
    loss = cross_entropy(rows @ values, target)
    return CardFit(tuple(columns), target, values, curvature, loss)


def merged_fit(
    columns: Sequence[CardColumn],
    target: Floats,
    max_bins: int,
    max_cells: int,
    max_loss: float,
) -> CardFit:
    """Return a card of few cells; the merges that cost least come first.

    Merges go on while a column has more than ``max_bins`` cells or all columns more
    than ``max_cells``, and as long as the loss grows by no more than ``max_loss``.
    """
    max_of_column = min(2 * max_bins, max(max_cells, _MIN_CELLS_OF_COLUMN))
    fit = _refitted(_at_first(list(columns), max_of_column), target)
    limit = fit.loss + max_loss
    while merges := _merges(fit, max_bins, max_cells, limit):
        tried, is_needed = _after(fit, merges), merges[0][0] == -np.inf
        if not is_needed and tried.loss > limit:
            tried = _after(fit, merges[:1])
            if tried.loss > limit:
                return fit
        fit = tried
    return fit


def pooled(fit: CardFit, values: Any) -> CardFit | None:
    """Return a card without cells that go against the model; None if there are none."""
    merges = [
        (-np.inf, k, a, b)
        for k, (column, of_cells) in enumerate(
            zip(fit.columns, fit.by_column(values), strict=True)
        )
        for a, b in list(column.opposed_neighbours(of_cells))[:1]
    ]
    return _after(fit, merges) if merges else None


Merge = tuple[float, int, int, int]
"""Its cost, -inf if it has to be; the column, and the two cells."""


def _merges(fit: CardFit, max_bins: int, max_cells: int, limit: float) -> list[Merge]:
    """Return merges of a round, the cheapest first; one at most of each column."""
    costs = sorted(_costs(fit))
    over = {k for k, c in enumerate(fit.columns) if len(c.mergeable()) > max_bins}
    needed = [m for m in costs if m[0] == -np.inf or m[1] in over]
    if needed:
        return [(-np.inf, *rest) for _, *rest in _one_each(needed)]  # type: ignore[misc]
    cheapest = _one_each(costs[: max(int(_MERGED_SHARE * fit.n_cells), 1)])
    n_over = fit.n_cells - max_cells
    if n_over > 0:
        return [(-np.inf, *rest) for _, *rest in cheapest[:n_over]]  # type: ignore[misc]
    room = (limit - fit.loss) * len(fit.target)
    within = np.cumsum([merge[0] for merge in cheapest]) <= room
    return [merge for merge, fits in zip(cheapest, within, strict=True) if fits]


def _one_each(merges: Sequence[Merge]) -> list[Merge]:
    """Return the first merge of each column."""
    return list({merge[1]: merge for merge in reversed(merges)}.values())[::-1]


def _costs(fit: CardFit) -> list[Merge]:
    """Return costs of merges, if all other values follow: Wald's statistic, halved."""
    inverse = np.linalg.inv(fit.curvature)
    merges: list[Merge] = []
    offset = 0
    by_column = zip(fit.columns, fit.by_column(), strict=True)
    for k, (column, values) in enumerate(by_column):
        against = set(column.opposed_neighbours(values))
        for a, b in column.neighbours(values):
            i, j = offset + a, offset + b
            variance = inverse[i, i] + inverse[j, j] - 2.0 * inverse[i, j]
            cost = float((values[a - 1] - values[b - 1]) ** 2 / (2.0 * variance))
            merges.append((-np.inf if (a, b) in against else cost, k, a, b))
        if column.n_cells == 1:
            cost = float(values[0] ** 2 / (2.0 * inverse[offset + 1, offset + 1]))
            merges.append((cost, k, 1, 0))
        offset += column.n_cells
    return merges


def _after(fit: CardFit, merges: Sequence[Merge]) -> CardFit:
    """Return the card with some cells merged, fitted again."""
    columns = list(fit.columns)
    for _, k, a, b in merges:
        columns[k] = columns[k].merged(a, b)
    return _refitted([column for column in columns if column.n_cells], fit.target)


def _refitted(columns: Sequence[CardColumn], target: Floats) -> CardFit:
    return fitted(columns, target, _start(columns, target))


def _start(columns: Sequence[CardColumn], target: Floats) -> Floats:
    """Return the mean evidence of the cells, and the start that fits it."""
    means = [column.means() for column in columns]
    values = np.concatenate([[0.0], *means])
    rows = design(columns, len(target))
    rate = float(target.mean().clip(1e-6, 1.0 - 1e-6))
    values[0] = np.log(rate / (1.0 - rate)) - float(np.mean(rows @ values))
    return values


def _at_first(columns: list[CardColumn], most: int) -> list[CardColumn]:
    """Return columns of at most ``most`` cells each, by the evidence of the codes."""
    most = max(min(most, _MAX_FIRST_CELLS // max(len(columns), 1)), 2)
    return [_ward(column, most) for column in columns]


def _ward(column: CardColumn, most: int) -> CardColumn:
    """Merge the codes of a column, the most similar first (Ward's method).

    Cells stay in order, since the mean of two neighbours lies between their values: a
    heap has the cost of each two neighbours. The first of equal costs comes first.
    """
    cells = column.mergeable()
    n_merges = len(cells) - most
    if n_merges <= 0:
        return column
    means = column.means()
    if not column.in_line:
        cells = cells[np.argsort(means[cells - 1], kind="stable")]
    rows = np.bincount(column.groups, column.weights())[cells].tolist()
    values, n = means[cells - 1].tolist(), len(cells)
    before, after = [*range(-1, n - 1)], [*range(1, n + 1)]

    def entry(a: int) -> tuple[float, int, int]:
        b = after[a]
        share = rows[a] * rows[b] / (rows[a] + rows[b])
        return share * (values[a] - values[b]) ** 2, a, changes[a] + changes[b]

    # Of each cell the number of its merges, and the cell that it went into.
    changes, into = [0] * n, [*range(n)]
    heap = [entry(a) for a in range(n - 1)]
    heapify(heap)
    while n_merges:
        _, a, when = heappop(heap)
        b = after[a]
        if into[a] != a or b == n or when != changes[a] + changes[b]:
            continue
        total = rows[a] + rows[b]
        values[a] = (rows[a] * values[a] + rows[b] * values[b]) / total
        rows[a], into[b], after[a] = total, a, after[b]
        changes[a] += changes[b] + 1
        if after[a] < n:
            before[after[a]] = a
            heappush(heap, entry(a))
        if before[a] >= 0:
            heappush(heap, entry(before[a]))
        n_merges -= 1
    # A cell has the position of the first code in it.
    first = np.arange(column.n_cells + 1)
    for a in range(n):
        into[a] = into[into[a]]
    for merged in np.split(cells, np.flatnonzero(np.diff(into)) + 1):
        first[merged] = merged.min()
    positions = np.unique(first, return_inverse=True)[1]
    return replace(column, groups=positions[column.groups])


# ------------------------------------------------------------------------ unknown cells


def unknown_values(
    fit: CardFit, values: Floats, averaged: Sequence[tuple[int, ...]]
) -> Floats:
    """Return what unknown cells of columns should add to log-odds, shape (columns,).

    Some cells of the rows are hidden, a share that differs from row to row; the values
    that suit these rows best come nearest to the probabilities of whole rows. The means
    of the cells do not: then a row of which little is known is answered as surely as a
    whole one. ``values`` are the start and the values of cells. ``averaged`` has the
    columns of the table that each column of the card reads; none if its unknown cells
    have a separate meaning, which stays 0.
    """
    from scipy.optimize import minimize

    n, random = len(fit.target), np.random.default_rng(_SEED)
    limit = _PARTLY_KNOWN_CELLS // len(fit.columns)
    rows = np.resize(np.arange(n), min(_PARTLY_KNOWN_ROWS, limit))
    if n > len(rows):
        rows = np.linspace(0, n - 1, len(rows)).astype(np.int64)
    shares = _MAX_HIDDEN * random.random(len(rows))
    names = sorted({name for names in averaged for name in names})
    hidden = {name: random.random(len(rows)) < shares for name in names}
    of_known = np.full(len(rows), values[0])
    is_unknown = np.zeros((len(rows), len(fit.columns)))
    by_column = zip(fit.columns, fit.by_column(values), averaged, strict=True)
    for k, (column, of_cells, of_table) in enumerate(by_column):
        cells = column.groups[column.codes[rows]]
        for name in of_table:
            cells = np.where(hidden[name], 0, cells)
        of_known += np.concatenate([[0.0], of_cells])[cells]
        if of_table:
            is_unknown[:, k] = cells == 0
    target = fit.target[rows]

    def loss(unknown: Floats) -> tuple[float, Floats]:
        odds = of_known + is_unknown @ unknown
        slope = 1.0 / (1.0 + np.exp(-odds)) - target
        penalty = _RIDGE / len(rows)
        return (
            cross_entropy(odds, target) + 0.5 * penalty * float(unknown @ unknown),
            is_unknown.T @ slope / len(rows) + penalty * unknown,
        )

    start = np.zeros(len(fit.columns))
    return np.asarray(minimize(loss, start, jac=True, method="L-BFGS-B").x)


# ------------------------------------------------------------------------- whole points


def rounded(values: Floats, curvature: Floats) -> Ints:
    r"""Return whole numbers that keep a loss with given second derivatives.

    The loss grows by :math:`\tfrac12 (z - v)^\top H (z - v)`. Values are rounded one
    after the other, those that matter most first; those that are left make up for each
    error as far as they can. Then numbers go up or down by one while that helps, from
    there and from the nearest numbers; the better of the two is taken.

    >>> import numpy as np
    >>> rounded(np.array([0.4, 0.45]), np.array([[1.0, 0.9], [0.9, 1.0]])).tolist()
    [0, 1]
    """
    order = np.argsort(-np.diag(curvature), kind="stable")
    inverse = np.linalg.inv(curvature[np.ix_(order, order)])
    # Its factor has, row by row, how what is left makes up for an error.
    factor = np.linalg.cholesky(inverse).T
    wanted = values[order].astype(np.float64)
    for i in range(len(wanted)):
        error = (wanted[i] - np.round(wanted[i])) / factor[i, i]
        wanted[i] = np.round(wanted[i])
        wanted[i + 1 :] -= error * factor[i, i + 1 :]
    whole = np.empty_like(wanted)
    whole[order] = wanted
    candidates = [_improved(z, values, curvature) for z in (whole, np.round(values))]
    return min(candidates, key=lambda z: float((z - values) @ curvature @ (z - values)))


def _improved(whole: Floats, values: Floats, curvature: Floats) -> Ints:
    """Step up or down by one, the best first, while the loss falls."""
    half = np.diag(curvature) / 2.0
    slope = curvature @ (whole - values)
    for _ in range(20 * len(values)):
        gains = np.abs(slope) - half
        i = int(np.argmax(gains))
        if gains[i] <= 1e-12 * half[i]:
            break
        step = -np.sign(slope[i])
        whole[i] += step
        slope += step * curvature[:, i]
    return whole.astype(np.int64)
