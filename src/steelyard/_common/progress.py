"""What is told to somebody who waits at a terminal: progress, and compiling."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

before_compiling: Callable[[], None] | None = None
"""Called once, before a process compiles its first kernel; None to say nothing."""


@contextmanager
def progress(
    title: str, total: int | None, enabled: bool
) -> Iterator[Callable[[str], None]]:
    """Show how far a search has come, while a ``with`` block runs.

    ``total`` is how many steps there are at most, None where nobody knows. What is
    given is to be called after each step, with a few words on its outcome (may be
    empty). It draws a bar where rich is installed, otherwise a line per step.
    """
    if not enabled:
        yield lambda note: None
        return
    try:
        from rich.console import Console
        from rich.progress import Progress, TextColumn
    except ImportError:
        steps = count(1)
        of = "" if total is None else f"/{total}"
        yield lambda note: print(  # noqa: T201
            f"{title} {next(steps)}{of} {note}".rstrip(), file=sys.stderr, flush=True
        )
        return
    columns = (*Progress.get_default_columns(), TextColumn("{task.fields[note]}"))
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=total, note="")
        yield lambda note: bar.update(task, advance=1, note=note)
