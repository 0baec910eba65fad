"""What would have to change for another class to win."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats, Ints
from steelyard._common.text import probability_text, text_table
from steelyard.explain.row_cells import NumberSteps, RowCells, number_label
from steelyard.explain.shared import PlainData, number_text, typical_numbers
from steelyard.explain.value_tables import gaussian_points
from steelyard.model.base import TwoArrays
from steelyard.table.summary.whole_column import NumberRange


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
                f"No change of the values that may change lets {self.target} win; its "
                f"probability goes from {p} to {q} at most by this search."
            )
        if not self.changes:
            return f"{self.target} wins as it is, with probability {p}."
        lines = [
            [change.attribute, change.before, change.after, f"{change.gain:+.2f}"]
            for change in self.changes
        ]
        headers = ["attribute", "from", "to", "log-odds"]
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
    number is searched from what it is outward, in the steps that its column has.
    """
    winner = int(model.winners(row.encoded())[0])
    targets = [c for c in range(model.n_classes) if c != winner]
    steps = [
        None if where is None else NumberSteps.of(where, label)
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
        more = row.with_numbers(column, np.array([number]))
        return _Candidates(
            RowCells(
                row.schema,
                np.concatenate([self.rows.codes, more.codes]),
                np.concatenate([self.rows.numbers, more.numbers]),
            ),
            np.append(self.column, column),
            [*self.labels, number_text(number)],
            np.append(self.distance, 0.0),
        )

    def changed(self, cells: RowCells, positions: Ints) -> RowCells:
        """Make one of some changes in each row."""
        is_changed = np.arange(len(cells.schema)) == self.column[positions][:, None]
        return RowCells(
            cells.schema,
            np.where(is_changed, self.rows.codes[positions], cells.codes),
            np.where(is_changed, self.rows.numbers[positions], cells.numbers),
        ).joined()


def _candidates(
    model: Any, row: RowCells, fixed: set[int], steps: list[NumberSteps | None]
) -> _Candidates:
    schema = row.schema
    made = [RowCells(schema, row.codes[:0], row.numbers[:0])]
    owner, labels, distance = [], [], [np.zeros(0)]
    # Pairs change with their columns.
    for column in range(schema.n_columns):
        if column in fixed:
            continue
        feature, now = schema.features[column], row.codes[0, column]
        if not row.takes_numbers(column):
            values = np.arange(1, feature.n_values - feature.missing_is_value + 1)
            values = values[values != now]
            rows = RowCells(
                schema,
                np.repeat(row.codes, len(values), axis=0),
                np.repeat(row.numbers, len(values), axis=0),
            )
            rows.codes[:, column] = values
            labels += [feature.describe(int(code)) for code in values]
            is_ordered = feature.kind == "binned" and now > 0
            distance.append(np.abs(values - now) * float(is_ordered))
        else:
            tried = _column_numbers(model, column, steps[column])
            rows = row.with_numbers(column, tried)
            write = number_text if feature.is_fine else number_label
            labels += [write(x) for x in tried.tolist()]
            own = steps[column]
            now = np.nan if own is None else own.now
            distance.append(np.nan_to_num(np.abs(tried - now)))
        made.append(rows)
        owner += [column] * len(rows.codes)
    codes = np.concatenate([rows.codes for rows in made])
    numbers = np.concatenate([rows.numbers for rows in made])
    rows = RowCells(schema, codes, numbers).joined()
    columns = np.array(owner, dtype=np.int64)
    return _Candidates(rows, columns, labels, np.concatenate(distance))


def _column_numbers(model: Any, column: int, steps: NumberSteps | None) -> Floats:
    """Numbers of one column to try: in every bin, or along its density.

    None lies where no training row did, and none has more digits than it needs.
    """
    feature, where = model.schema.features[column], None
    if steps is not None:
        where = steps.where
    if feature.is_coded:
        numbers = np.unique(typical_numbers(np.array(feature.edges)))
    else:
        numbers = np.unique(_numbers_to_try(model, column, where))
    if steps is None:
        return numbers
    return np.union1d(steps.rounded(numbers), [steps.where.low, steps.where.high])


def _numbers_to_try(model: Any, j: int, where: NumberRange | None) -> Floats:
    """Numbers of a Gaussian attribute, from its range or from training rows."""
    plain = model.first_sum()
    if plain is not None:
        step = model.schema.features[j].step
        return gaussian_points(plain.density(j), step, where)
    numbers = model.numbers[model.schema.gaussian.tolist().index(j)]
    known = numbers[~np.isnan(numbers)]
    shares = np.linspace(0, 1, 61)
    return np.unique(np.quantile(known, shares)) if len(known) else known


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
    state: _Search, max_changes: int | None, steps: list[NumberSteps | None]
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


def _nearer(state: _Search, k: int, steps: NumberSteps | None) -> _Search:
    """Make one of the changes as small as suffices."""
    candidates, column = state.candidates, int(state.candidates.column[state.steps[k]])
    others = state.moved(state.steps[:k] + state.steps[k + 1 :])
    same = np.flatnonzero(candidates.column == column)
    margins, distance = others.tried(same)[0], candidates.distance[same]
    enough = np.flatnonzero(margins > 0.0)
    order = np.lexsort((margins[enough], distance[enough]))
    chosen = int(same[enough[order[0]]])
    if state.row.takes_numbers(column) and steps is not None:

        def found(numbers: Floats) -> Floats:
            cells = others.cells.with_numbers(column, numbers)
            return numbers[others._margins(cells)[0] > 0.0]

        number = steps.nearest(found)
        if number is not None and abs(number - steps.now) < candidates.distance[chosen]:
            candidates = candidates.and_number(state.row, column, number)
            chosen = len(candidates.labels) - 1
    made = (*state.steps[:k], chosen, *state.steps[k + 1 :])
    return replace(state, candidates=candidates, steps=made)


def _least_changes(state: _Search) -> int | None:
    """Return a lower bound on the number of changes, None where there is none.

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
