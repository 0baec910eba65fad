"""Progress of a fit: events for a function that watches, and bars in a terminal."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import count, pairwise
from time import monotonic
from typing import Any

from steelyard.exceptions import StoppedError

before_compiling: Callable[[], None] | None = None
"""Called once, before a process compiles its first kernel, if it is a function."""


current: Watch | None = None
"""Receives readings, passes and steps of fits; None if nothing watches."""

# Seconds between two updates for passes, or for chunks that were read.
_PAUSE = 0.2
# Number of last gains from which the passes left are estimated.
_LAST_GAINS = 4

Advance = Callable[..., None]
"""Called with a few words, and with how many steps are done (one) and are to do."""


@dataclass(frozen=True)
class FitProgress:
    """How far a fit has come: the argument of a function that watches it."""

    step: str
    """What is being done: "copy" (a slow source to a file), "read", "search" (for
    settings or columns, by steps) or "fit" (a pass over rows)."""

    n_passes: int
    """Passes over encoded rows so far, those over some of the rows included."""

    expected_passes: int | None
    """Estimate of all passes, by how the objective falls; None if unknown."""

    rows: int
    """Rows of this reading, or of all passes, so far."""

    objective: float | None
    """Value of the objective in the last pass, a sum over rows."""

    seconds: float
    """Seconds since the beginning."""

    seconds_left: float | None
    """Estimate of the seconds until this reading, search or solver ends, or None."""

    note: str = ""
    """A few words on the outcome of a step."""

    done: float = 0
    total: float | None = None
    """Amount done and total: bytes or rows of a reading, steps, or passes."""

    total_rows: int | None = None
    """Rows of a reading, None if unknown."""


Listener = Callable[[FitProgress], Any]


class Watch:
    """Reports readings, passes, and the steps of a search to its listeners."""

    def __init__(self) -> None:
        self.listeners: list[Listener] = []
        self.has_bar = False
        self.tol = 1e-8
        """Relative accuracy of the objective that the solver has to reach."""
        self.n_passes = 0
        self.n_steps: float = 0
        self._begun = self._since = monotonic()
        self._what, self._rows, self._most_rows = "", 0, 0
        self._values: list[float] = []

    def read(
        self, step: str, rows: int, n_bytes: int, of: tuple[int | None, int | None]
    ) -> None:
        """Report how many rows and bytes were read, of these totals."""
        if self._what != step or rows <= self._rows:
            self._what, self._since = step, monotonic()
        self._rows = rows
        done, total = (n_bytes, of[1]) if of[1] else (rows, of[0])
        fields = {"rows": rows, "total_rows": of[0]}
        self._report(step, **fields, done=done, total=total, left=_left(done, total))

    def passed(self, n_rows: int, objective: float) -> None:
        """Report a pass; those over most rows show how far the solver has come."""
        if self._what in ("copy", "read", ""):
            self._what, self._rows = "fit", 0
        self.n_passes += 1
        self._rows += n_rows
        left = None
        if n_rows >= self._most_rows:
            if n_rows > self._most_rows or not self._values:
                self._values, self._since = [], monotonic()
            self._most_rows = n_rows
            self._values.append(objective)
            left = passes_left(self._values, self.tol)
        fields: dict[str, Any] = {"rows": self._rows, "objective": objective}
        if left is not None:
            done = len(self._values)
            fields |= {"done": done, "total": done + left, "left": left / (done - 1)}
        self._report("fit", **fields)

    def step(self, note: str, total: float | None, n_steps: float = 1) -> None:
        """Report a finished step, of at most ``total``."""
        if self._what != "search":
            self._what, self._since = "search", self._begun
        self.n_steps += n_steps
        left = _left(self.n_steps, total)
        self._report("search", note=note, done=self.n_steps, total=total, left=left)

    def _report(self, step: str, *, left: float | None = None, **fields: Any) -> None:
        """Call all listeners; ``left`` is the remaining time over that so far."""
        now = monotonic()
        expected = None
        if step == "fit" and fields.get("total") is not None:
            expected = self.n_passes + fields["total"] - fields["done"]
        event = FitProgress(
            **{"step": step, "rows": self._rows, "objective": None, **fields},
            n_passes=self.n_passes,
            expected_passes=expected,
            seconds=now - self._begun,
            seconds_left=None if left is None else left * (now - self._since),
        )
        for listener in list(self.listeners):
            if listener(event) is True:
                raise StoppedError(
                    "The fit was stopped by the function that watched it. The "
                    "classifier is as it was before."
                )


def _left(done: float, total: float | None) -> float | None:
    """Return the remaining time over that so far, None if unknown."""
    return None if not total or not done else max(total - done, 0) / done


def passes_left(values: list[float], tol: float) -> int | None:
    """Estimate how many passes a solver still makes, from its last gains.

    Gains are taken to fall by a constant factor until they reach the accuracy.

    >>> passes_left([100.0, 90.0, 89.0, 88.9], 1e-6)
    4
    >>> passes_left([100.0, 90.0], 1e-6)
    """
    best, bests = math.inf, []
    for value in values:
        best = min(best, value)
        bests.append(best)
    gains = [a - b for a, b in pairwise(bests) if b < a][-_LAST_GAINS:]
    if len(gains) < 2:
        return None
    goal = tol * max(abs(best), 1e-300)
    factor = (gains[-1] / gains[0]) ** (1 / (len(gains) - 1))
    if gains[-1] <= goal:
        return 1
    if factor >= 1:
        return None
    return math.ceil(math.log(goal / gains[-1]) / math.log(factor))


@contextmanager
def watch(listener: Listener) -> Iterator[None]:
    """Call a function with the progress of fits while a ``with`` block runs.

    It is called with a ``FitProgress`` after each chunk of a source that is read, each
    pass over encoded rows and each step of a search, for every method and wherever
    the rows are. It may be called from several threads.

    Parameters
    ----------
    listener : callable
        If it returns True, the fit ends with ``StoppedError``, and the classifier stays
        as it was; so it does when it raises an error, and after Ctrl-C.

    Examples
    --------
    >>> import steelyard as sy
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> events = []
    >>> with sy.watch(events.append):
    ...     clf = sy.WeightedNB().fit(X, y)
    >>> events[-1].n_passes == len(events), events[-1].rows == 150 * len(events)
    (True, True)
    """
    if not callable(listener):
        raise TypeError(f"watch takes a function, not {type(listener).__name__}.")
    with _listening(listener):
        yield


@contextmanager
def _listening(listener: Listener) -> Iterator[Watch]:
    global current
    watch = Watch() if current is None else current
    before, current = current, watch
    watch.listeners.append(listener)
    try:
        yield watch
    finally:
        watch.listeners.remove(listener)
        current = before


@contextmanager
def watching(title: str, enabled: bool, stays: bool = True) -> Iterator[None]:
    """Show readings, passes, steps and the time left of a fit on standard error."""
    if not enabled or (current is not None and current.has_bar):
        yield
        return
    with _shown(title, stays) as show, _listening(show) as watch:
        watch.has_bar = True
        try:
            yield
            n_steps = watch.n_steps + 1
            fields = watch.n_passes, None, 0, None, 0.0, None, "done", n_steps, n_steps
            show(FitProgress("search", *fields))
        finally:
            watch.has_bar = False


@contextmanager
def _shown(title: str, stays: bool) -> Iterator[Listener]:
    """Draw a bar if rich is installed, otherwise print a line per step."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
    except ImportError:
        steps = count(1)

        def line(event: FitProgress) -> None:
            if event.step == "search":
                of = "" if event.total is None else f"/{event.total}"
                text = f"{title} {next(steps)}{of} {_note(event)}".rstrip()
                print(text, file=sys.stderr, flush=True)  # noqa: T201

        yield line
        return
    # Names of columns are no markup.
    note = TextColumn("{task.fields[note]}", markup=False)
    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), note
    console, drawn, read, n_times = Console(stderr=True), 0.0, ("", 0), 0
    with Progress(*columns, console=console, transient=not stays) as bar:
        task = bar.add_task(title, total=None, note="")

        def draw(event: FitProgress) -> None:
            nonlocal drawn, read, n_times
            if event.step in ("copy", "read"):
                is_new = event.step != read[0] or event.rows <= read[1]
                n_times += event.step == "read" and is_new
                read = event.step, event.rows
            if (now := monotonic()) < drawn + _PAUSE and event.step != "search":
                return
            drawn = now
            again = "Reading" if n_times == 1 else f"Reading again ({n_times})"
            what = {"copy": "Copying to a work file", "read": again}
            if event.total is not None:
                bar.update(task, completed=event.done, total=event.total)
            words = [_note(event)]
            if event.seconds_left is not None:
                words = [f"{timedelta(seconds=round(event.seconds_left))} left", *words]
            name = what.get(event.step, title)
            bar.update(task, description=name, note=" ".join(words))

        yield draw


def _note(event: FitProgress) -> str:
    if event.step in ("copy", "read"):
        return f"{event.rows:,} rows"
    passes = f"{event.n_passes:,} passes" if event.n_passes else ""
    text = event.note if event.objective is None else f"objective {event.objective:.6g}"
    return ", ".join(filter(None, (passes, text)))


@contextmanager
def progress(
    title: str, total: float | None, enabled: bool, stays: bool = True
) -> Iterator[Advance]:
    """Show how far a search has come, while a ``with`` block runs.

    ``total`` is the largest number of steps, None if unknown. Yields a function to call
    after each step, with a few words on its outcome (may be empty). It draws a bar if
    rich is installed, otherwise a line per step; if somebody watches fits, they are
    called instead.
    """
    with ExitStack() as stack:
        watch = Watch() if current is None else current
        if current is None and enabled:
            watch.listeners.append(stack.enter_context(_shown(title, stays)))

        def advance(note: str, steps: float = 1, most: float | None = None) -> None:
            watch.step(note, most or total, steps)

        yield advance
