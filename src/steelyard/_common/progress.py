"""What is told to somebody who waits at a terminal: progress, and compiling."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from time import monotonic

before_compiling: Callable[[], None] | None = None
"""Called once, before a process compiles its first kernel; None to say nothing."""


watch: Watch | None = None
"""Who is told of the passes and steps of a fit; None where nobody asked."""

# So many seconds lie between two notes on passes.
_PAUSE = 0.2

Advance = Callable[..., None]
"""Called with a few words, and with how many steps are done (one) and are to do."""


class Watch:
    """What is told of a fit: its passes over the rows, and the steps of a search."""

    def __init__(self, advance: Advance) -> None:
        self._advance, self._told = advance, 0.0
        self.n_passes = self.n_steps = 0

    def passed(self) -> None:
        """Count a pass; of many only some are told."""
        self.n_passes += 1
        if (now := monotonic()) > self._told + _PAUSE:
            self._told = now
            self._advance(f"{self.n_passes:,} passes", 0)

    def step(self, what: str, most: int) -> None:
        """Tell that one of at most so many steps is done."""
        self.n_steps += 1
        self._advance(f"{self.n_passes:,} passes, {what}", 1, most)


@contextmanager
def watching(title: str, enabled: bool, stays: bool = True) -> Iterator[None]:
    """Show passes, steps and the time left of a fit, while a ``with`` block runs."""
    global watch
    if not enabled or watch is not None:
        yield
        return
    with progress(title, None, True, stays) as advance:
        watch = Watch(advance)
        try:
            yield
            watch.step("done", watch.n_steps + 1)
        finally:
            watch = None


@contextmanager
def progress(
    title: str, total: float | None, enabled: bool, stays: bool = True
) -> Iterator[Advance]:
    """Show how far a search has come, while a ``with`` block runs.

    ``total`` is how many steps there are at most, None where nobody knows. What is
    given is to be called after each step, with a few words on its outcome (may be
    empty). It draws a bar where rich is installed, otherwise a line per step.
    """
    if not enabled or watch is not None:
        yield lambda *_: None
        return
    try:
        from rich.console import Console
        from rich.progress import Progress, TextColumn
    except ImportError:
        yield partial(_print_step, title, count(1), total)
        return
    # Names of the user's are no markup.
    note = TextColumn("{task.fields[note]}", markup=False)
    columns = (*Progress.get_default_columns(), note)
    with Progress(*columns, console=Console(stderr=True), transient=not stays) as bar:
        task = bar.add_task(title, total=total, note="")

        def advance(note: str, steps: float = 1, most: int | None = None) -> None:
            bar.update(task, advance=steps, total=most, note=note)

        yield advance


def _print_step(
    title: str,
    counter: Iterator[int],
    total: float | None,
    note: str,
    steps: float = 1,
    most: int | None = None,
) -> None:
    if steps:
        of = "" if (total or most) is None else f"/{total or most}"
        line = f"{title} {next(counter)}{of} {note}".rstrip()
        print(line, file=sys.stderr, flush=True)  # noqa: T201
