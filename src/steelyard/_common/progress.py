"""Progress of long searches, on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress"]


@contextmanager
def progress(
    title: str, total: int | None, enabled: bool
) -> Iterator[Callable[[str], None]]:
    """Show how far a search has come, while a ``with`` block runs.

    Parameters
    ----------
    title : str
        What is being done.
    total : int or None
        How many steps there are at most, None where nobody knows.
    enabled : bool
        Whether anything is shown.

    Yields
    ------
    callable
        To be called after each step, with a few words on its outcome (may be empty). A
        bar where rich is installed, otherwise a line per step.
    """
    if not enabled:
        yield lambda note: None
        return
    try:
        from rich.console import Console
        from rich.progress import Progress, TextColumn
    except ImportError:
        yield _lines(title, total)
        return
    columns = (*Progress.get_default_columns(), TextColumn("{task.fields[note]}"))
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=total, note="")
        yield lambda note: bar.update(task, advance=1, note=note)


def _lines(title: str, total: int | None) -> Callable[[str], None]:
    """Return a function that writes one line for each step."""
    done = 0

    def advance(note: str) -> None:
        nonlocal done
        done += 1
        of = "" if total is None else f"/{total}"
        sys.stderr.write(f"{title} {done}{of} {note}".rstrip() + "\n")
        sys.stderr.flush()

    return advance
