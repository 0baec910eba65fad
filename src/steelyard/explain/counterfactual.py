"""What would have to change for another class to win."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats, Ints
from steelyard._common.text import probability_text, six_digits, text_table
from steelyard.explain.row_cells import RowCells
from steelyard.explain.shared import PlainData, number_text, typical_numbers
from steelyard.explain.value_tables import gaussian_points
from steelyard.model.base import TwoArrays
from steelyard.table.ranges import NumberRange


@dataclass(frozen=True)
class Change(PlainData):
    """One attribute that would have another value."""

    attribute: str
    before: str
    after: str
    gain: float
    """How much it adds to the log-odds of the target against its best rival."""


@dataclass(frozen=True, repr=False)
class Counterfactual(PlainData):
    """The changes that let a class win.

    Attributes
    ----------
    target : str
        The class that should win.
    found : bool
        Whether it does after the changes.
    changes : tuple of Change
        By falling effect.
    is_minimal : bool
        Whether it is proven that fewer changes do not suffice: for any sum of two
        classes, and wherever a bound for several classes is reached. Numbers are
        searched on a grid.
    before, after : ndarray of shape (K,)
        Posterior probabilities without and with the changes.
    """

    target: str
    found: bool
    changes: tuple[Change, ...]
    is_minimal: bool
    classes: NDArray[Any]
    before: Floats
    after: Floats

    def __repr__(self) -> str:
        """List the changes as text."""
        c = self.classes.astype(str).tolist().index(self.target)
        p, q = (probability_text(proba[c]) for proba in (self.before, self.after))
        if not self.found:
            return (
                f"No allowed change lets {self.target} win; its "
                f"probability goes from {p} to {q} at most by this search."
            )
        if not self.changes:
            return f"{self.target} wins as it is, with probability {p}."
        lines = [
            [change.attribute, change.before, change.after, f"{change.gain:+.2f}"]
            for change in self.changes
        ]
        headers = ["column", "from", "to", "log-odds"]
        return (
            f"{self.target} would win, with probability {q} instead of {p} "
            f"({'fewest' if self.is_minimal else 'found'} changes: {len(lines)})\n"
            f"{text_table(headers, lines, [False, False, False, True])}"
        )


def counterfactual(
    model: Any,
    row: RowCells,
    labels: list[str],
    target: int | None,
    fixed: set[int],
    max_changes: int | None,
    ranges: list[NumberRange | None],
) -> Counterfactual:
    """Search the fewest changes of one row after which a class wins.

    Each step makes the change that brings the target furthest ahead of its best rival.
    For a sum and two classes these are the largest gains in order, and no smaller set
    suffices. Then each change, the last one first, is made as small as it can be: a
    number is searched from its value outward, in steps of the digits of its column.
    """
    winner = int(model.winners(row.encoded())[0])
    targets = [c for c in range(model.n_classes) if c != winner]
    steps = [
        None if where is None else _NumberSteps.of(where, label)
        for where, label in zip(ranges, labels, strict=False)
    ]
    candidates = _candidates(model, row, fixed, steps)
    starts = [
        _Search(model, row, c, candidates)
        for c in (targets if target is None else [target])
    ]
    best = min(
        (s if s.target == winner else _search(s, max_changes, steps) for s in starts),
        key=lambda s: (not s.wins, len(s.steps) if s.wins else 0, -s.proba[s.target]),
    )
    names = row.schema.labels()
    margins = [best.moved(best.steps[:k]).margin for k in range(len(best.steps) + 1)]
    changes = []
    for k, (before, after) in zip(best.steps, pairwise(margins), strict=True):
        column, value = best.candidates.column[k], best.candidates.labels[k]
        changes.append(Change(names[column], labels[column], value, after - before))
    least = _least_changes(best)
    is_minimal = least is not None and best.wins and len(best.steps) <= least
    name, wins = str(model.classes[best.target]), best.wins or best.target == winner
    posteriors = (model.classes, best.moved(()).proba, best.proba)
    return Counterfactual(name, wins, tuple(changes), is_minimal, *posteriors)


@dataclass(frozen=True)
class _NumberSteps:
    """The numbers that a column may have: within its range, in steps of its digits."""

    where: NumberRange
    now: float
    """The number of the row; the middle of the column if that is missing."""

    digits: int
    """Digits after the point."""

    @classmethod
    def of(cls, where: NumberRange, label: str) -> _NumberSteps:
        """Return the steps of a column, given the label of the cell of the row."""
        try:
            now, numbers = float(label), [where.low, where.high, float(label)]
        except ValueError:
            now, numbers = float(np.median(where.points)), [where.low, where.high]
        texts = [f"{x:.9f}".rstrip("0") for x in numbers]
        digits = max(len(text.partition(".")[2]) for text in texts)
        # Numbers that were computed have as many digits as they need to differ.
        return cls(where, now, digits if digits < 5 else max(cls._finest(where), 0))

    @staticmethod
    def _finest(where: NumberRange) -> int:
        """Return the digits that steps of a thousandth of the range need."""
        wide = where.high - where.low or 1.0
        return int(np.ceil(3.0 - np.log10(wide))) if np.isfinite(wide) else 0

    def rounded(self, numbers: Floats, digits: int | None = None) -> Floats:
        """Return the nearest numbers that the column may have, increasing."""
        digits = self.digits if digits is None else digits
        return self.where.clipped(np.unique(np.round(numbers, digits)))

    def nearest(self, winners: Callable[[Floats], Floats]) -> float | None:
        """Return the number nearest to the present one of those that win.

        First in coarse steps over the whole range, then finer ones on the way back.
        """
        best, digits = None, min(self.digits, self._finest(self.where))
        low, high = self.where.low, self.where.high
        while digits <= self.digits:
            step = 10.0**-digits
            numbers = np.arange(np.floor(low / step), np.ceil(high / step) + 1.0) * step
            numbers = winners(self.rounded(numbers, digits))
            if not len(numbers):
                break
            best = float(numbers[np.argmin(np.abs(numbers - self.now))])
            low, high = sorted((best, best + np.sign(self.now - best) * step))
            digits += 1
        return best


@dataclass(frozen=True)
class _Candidates:
    """Every single change that may be made to a row."""

    rows: RowCells
    """The row once for each change, with that change made."""

    column: Ints
    labels: list[str]
    distance: Floats
    """How far the new value is from that of the row; 0 for categories."""

    def and_number(self, row: RowCells, column: int, number: float) -> _Candidates:
        """Return the candidates with one more, a number of a column."""
        changed = row.with_numbers(column, np.array([number]))
        return _Candidates(
            _stacked([self.rows, changed]),
            np.append(self.column, column),
            [*self.labels, _number_label(row, column, number)],
            np.append(self.distance, 0.0),
        )

    def changed(self, cells: RowCells, positions: Ints) -> RowCells:
        """Return the rows, each with the change at its position made."""
        is_changed = np.arange(len(cells.schema)) == self.column[positions][:, None]
        return RowCells(
            cells.schema,
            np.where(is_changed, self.rows.codes[positions], cells.codes),
            np.where(is_changed, self.rows.numbers[positions], cells.numbers),
        ).joined()


def _stacked(parts: list[RowCells]) -> RowCells:
    return RowCells(
        parts[0].schema,
        np.concatenate([rows.codes for rows in parts]),
        np.concatenate([rows.numbers for rows in parts]),
    )


def _number_label(row: RowCells, column: int, number: float) -> str:
    """Write a number so that it reads back as itself, if it is not a date."""
    is_fine = row.schema.features[column].is_fine
    return row.number_label(column, number, number_text if is_fine else six_digits)


def _candidates(
    model: Any, row: RowCells, fixed: set[int], steps: list[_NumberSteps | None]
) -> _Candidates:
    made = [row.repeated(0)]
    owner, labels, distance = [], [], [np.zeros(0)]
    # Interactions change with their columns.
    for column in range(row.schema.n_columns):
        if column in fixed:
            continue
        feature, now = row.schema.features[column], row.codes[0, column]
        if not row.takes_numbers(column):
            values = np.arange(1, feature.n_values - feature.missing_is_value + 1)
            values = values[values != now]
            rows = row.repeated(len(values))
            rows.codes[:, column] = values
            labels += [feature.describe(int(code)) for code in values]
            is_ordered = feature.kind == "binned" and now > 0
            distance.append(np.abs(values - now) * float(is_ordered))
        else:
            of_column = steps[column]
            tried = _column_numbers(model, column, of_column)
            rows = row.with_numbers(column, tried)
            labels += [_number_label(row, column, x) for x in tried.tolist()]
            now = np.nan if of_column is None else of_column.now
            distance.append(np.nan_to_num(np.abs(tried - now)))
        made.append(rows)
        owner += [column] * len(rows.codes)
    columns = np.array(owner, dtype=np.int64)
    rows = _stacked(made).joined()
    return _Candidates(rows, columns, labels, np.concatenate(distance))


def _column_numbers(model: Any, column: int, steps: _NumberSteps | None) -> Floats:
    """Return numbers of one column to try: in every bin, or along its density.

    They are within the range of the training rows, with no more digits than needed.
    """
    feature, plain = model.schema.features[column], model.first_sum()
    where = None if steps is None else steps.where
    if feature.is_coded:
        numbers = typical_numbers(np.array(feature.edges))
    elif plain is not None:
        numbers = gaussian_points(plain.density(column), feature.step, where)
    else:
        of_rows = model.numbers[model.schema.gaussian.tolist().index(column)]
        observed = of_rows[~np.isnan(of_rows)]
        shares = np.linspace(0, 1, 61)
        numbers = np.quantile(observed, shares) if len(observed) else observed
    if steps is None:
        return np.unique(numbers)
    return np.union1d(steps.rounded(numbers), [steps.where.low, steps.where.high])


@dataclass(frozen=True)
class _Search:
    """A row with some changes made, and how far its target is ahead."""

    model: Any
    row: RowCells
    target: int
    candidates: _Candidates
    steps: tuple[int, ...] = ()
    """Positions of the changes among the candidates."""

    @cached_property
    def cells(self) -> RowCells:
        cells = self.row
        for k in self.steps:
            cells = self.candidates.changed(cells, np.array([k]))
        return cells

    @cached_property
    def place(self) -> tuple[float, float]:
        """How far the target is ahead, and what to go by in a tie."""
        margins, guides = self._margins(self.cells)
        return float(margins[0]), float(guides[0])

    @property
    def margin(self) -> float:
        return self.place[0]

    @property
    def wins(self) -> bool:
        return self.margin > 0.0

    @property
    def proba(self) -> Floats:
        return np.asarray(self.model.proba(self.cells.encoded()))[0]

    def tried(self, positions: Ints) -> TwoArrays:
        """Margins and guides after each of some further changes."""
        return self._margins(self.candidates.changed(self.cells, positions))

    def moved(self, steps: tuple[int, ...]) -> _Search:
        return replace(self, steps=steps)

    def _margins(self, cells: RowCells) -> TwoArrays:
        """Log-odds of the target against its best rival, and what to go by in a tie.

        The latter is the sum of the margins of voters, zero for other models.
        """
        codes = cells.encoded()
        guide = np.zeros(codes.n_rows)
        for voter in self.model.parts() if self.model.kind == "votes" else ():
            gaps = _gaps(voter.model.log_proba(codes), self.target)
            guide += voter.share * np.nan_to_num(gaps)
        return _gaps(self.model.log_proba(codes), self.target), guide


def _gaps(logs: Floats, target: int) -> Floats:
    rivals = np.delete(logs, target, axis=1).max(axis=1)
    with np.errstate(invalid="ignore"):
        gap = logs[:, target] - rivals
    return np.where(np.isnan(gap), -np.inf, gap)


def _search(
    state: _Search, max_changes: int | None, steps: list[_NumberSteps | None]
) -> _Search:
    """Make the best change until the target wins; then do as little as suffices."""
    columns = state.candidates.column
    if max_changes is None:
        max_changes = state.row.schema.n_columns
    while not state.wins and len(state.steps) < max_changes:
        free = np.flatnonzero(~np.isin(columns, columns[list(state.steps)]))
        if not free.size:
            break
        margins, guides = state.tried(free)
        # Votes do not move before a voter changes its mind; what leads there counts.
        best = int(np.lexsort((guides, margins))[-1])
        if not (margins[best], guides[best]) > state.place:
            break
        state = state.moved((*state.steps, int(free[best])))
    if not state.wins:
        return state
    # Later changes may have made earlier ones needless.
    for step in state.steps:
        fewer = state.moved(tuple(s for s in state.steps if s != step))
        if fewer.wins:
            state = fewer
    for k in reversed(range(len(state.steps))):
        state = _nearer(state, k, steps[columns[state.steps[k]]])
    return state


def _nearer(state: _Search, k: int, steps: _NumberSteps | None) -> _Search:
    """Make one of the changes as small as suffices."""
    candidates, column = state.candidates, int(state.candidates.column[state.steps[k]])
    others = state.moved(state.steps[:k] + state.steps[k + 1 :])
    same = np.flatnonzero(candidates.column == column)
    margins, distance = others.tried(same)[0], candidates.distance[same]
    enough = np.flatnonzero(margins > 0.0)
    order = np.lexsort((margins[enough], distance[enough]))
    chosen = int(same[enough[order[0]]])
    if state.row.takes_numbers(column) and steps is not None:

        def winners(numbers: Floats) -> Floats:
            cells = others.cells.with_numbers(column, numbers)
            return numbers[others._margins(cells)[0] > 0.0]

        number = steps.nearest(winners)
        if number is not None and abs(number - steps.now) < candidates.distance[chosen]:
            candidates = candidates.and_number(state.row, column, number)
            chosen = len(candidates.labels) - 1
    made = (*state.steps[:k], chosen, *state.steps[k + 1 :])
    return replace(state, candidates=candidates, steps=made)


def _least_changes(state: _Search) -> int | None:
    """Return a lower bound on the number of changes, None if there is none.

    Against a single rival the largest gains in order are best; the hardest rival needs
    as many, and so do all together. With interactions the gains do not add up.
    """
    model, target, column = state.model, state.target, state.candidates.column
    if not model.is_sum:
        return None
    if model.schema.is_interaction.any():
        return 1
    (now,), after = (
        model.contributions(cells.encoded())
        for cells in (state.row, state.candidates.rows)
    )
    scores = model.log_prior + now.sum(axis=0)
    change = after[np.arange(len(column)), column] - now[column]
    least = 0
    for rival in range(model.n_classes):
        if rival == target or scores[target] > scores[rival]:
            continue
        gains = np.zeros(len(now))
        np.maximum.at(gains, column, change[:, target] - change[:, rival])
        reached = scores[target] - scores[rival] + np.cumsum(np.sort(gains)[::-1])
        enough = np.flatnonzero(reached > 0.0)
        if not enough.size:
            return None
        least = max(least, int(enough[0]) + 1)
    return least
