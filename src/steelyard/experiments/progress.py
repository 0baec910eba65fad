"""What a comparison is doing, shown on the terminal while it runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any


class Progress:
    """A line with what runs, how many fits are left, and about how long they take.

    Nothing is shown where standard error is not a terminal, or without ``rich``. Tasks
    come in the order in which they start; `n_jobs` run at once.
    """

    def __init__(
        self,
        tasks: Sequence[Any],
        n_jobs: int,
        enabled: bool,
        console: Any = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        # Workers take tasks in order: the first that are not done are those that run. A
        # task that is run fit by fit is gone with the first of them.
        self._open = {task.key(""): task for task in tasks}
        self._n_jobs = n_jobs
        self._fits = sum(len(task.methods) for task in tasks)
        self._cost = sum(task.cost for task in tasks)
        self._fits_done = self._failed = 0
        self._cost_done = 0.0
        self._clock, self._start = clock, clock()
        self._bar = _bar(console) if enabled and tasks else None
        if self._bar is not None:
            self._line = self._bar.add_task("", total=self._cost, text=self.text())

    def __enter__(self) -> Progress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def done(self, task: Any, rows: Sequence[dict[str, Any]]) -> None:
        """Count a task as done."""
        self._open.pop(task.key(""), None)
        self._fits_done += len(rows)
        self._failed += sum(row["status"] != "ok" for row in rows)
        self._cost_done += task.cost
        if self._bar is not None:
            self._bar.update(self._line, completed=self._cost_done, text=self.text())

    def text(self) -> str:
        """Say how far the run is."""
        parts = [f"{self._fits_done} of {self._fits} fits"]
        if self._failed:
            parts.append(f"{self._failed} failed")
        if 0.0 < self._cost_done < self._cost:
            share = (self._cost - self._cost_done) / self._cost_done
            left = (self._clock() - self._start) * share
            parts.append(f"about {duration(left)} left")
        running = [task.label for task in self._open.values()][: self._n_jobs]
        if running:
            parts.append(f"running {', '.join(running)}")
        return " · ".join(parts)


def duration(seconds: float) -> str:
    """Write a time as people say it.

    Examples
    --------
    >>> duration(42), duration(200), duration(7_500)
    ('42 s', '3 min 20 s', '2 h 05 min')
    """
    whole = max(1, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def _bar(console: Any) -> Any:
    try:
        from rich import progress
        from rich.console import Console
    except ImportError:
        return None
    if console is None:
        if not sys.stderr.isatty():
            return None
        console = Console(stderr=True)
    return progress.Progress(
        progress.BarColumn(bar_width=24),
        progress.TaskProgressColumn(),
        progress.TextColumn("{task.fields[text]}", markup=False),
        console=console,
        transient=True,
        # The text changes with each task, not ten times a second.
        refresh_per_second=2,
    )
