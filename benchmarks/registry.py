"""What a row of the benchmark table is, and the list of all rows.

A module of this package whose name starts with ``rows_`` registers its rows with the
decorator ``row`` and is picked up by itself.
"""

from __future__ import annotations

import fnmatch
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

__all__ = [
    "Case",
    "Row",
    "Seconds",
    "Skip",
    "Target",
    "all_rows",
    "at_least",
    "at_most",
    "no_target",
    "row",
    "select",
    "within_memory",
    "within_seconds",
]

MB = 1e6


class Skip(Exception):  # noqa: N818 - not an error
    """A row cannot run here; the message says why."""


class Seconds(float):
    """A candidate returns this where it took the time itself, in another process."""


@dataclass(frozen=True)
class Case:
    """The candidates of a row, on data that is ready.

    Where several peers do the same thing, each in its own favourite way, the quickest
    is compared.
    """

    ours: Callable[[], Any]
    peers: Mapping[str, Callable[[], Any]] = field(default_factory=dict)
    check: Callable[[dict[str, Any]], None] | None = None
    """Given what each candidate returned, on few rows, raises where they disagree."""

    allowed_mb: float | None = None
    """Memory that the row may take, for the target ``within_memory``."""

    confirm: Callable[[], None] | None = None
    """Called once on the data that are timed, raises where ours did not do its job."""

    units: Mapping[str, float] = field(default_factory=dict)
    """What the time of ours is divided by, for the note "… ns per cell"."""

    @property
    def candidates(self) -> dict[str, Callable[[], Any]]:
        return {"ours": self.ours, **self.peers}


@dataclass(frozen=True)
class Target:
    """What a row is judged by: a ratio of times, a time, or memory."""

    kind: str
    bound: float = 0.0

    def text(self, allowed_mb: float | None) -> str:
        return {
            "at least": f">= {self.bound:g} x",
            "at most": f"<= {self.bound:g} x",
            "seconds": f"<= {self.bound:g} s",
            "memory": f"<= {allowed_mb or 0:.0f} MB",
            "none": "-",
        }[self.kind]

    def ratio(self, ours: float, peer: float | None) -> float | None:
        """Return how often ours fits into the peer, or for "at most" the reverse."""
        if peer is None:
            return None
        return ours / peer if self.kind == "at most" else peer / ours

    def met(
        self, ours: float, ratio: float | None, mb: float | None, allowed: float | None
    ) -> bool | None:
        if self.kind == "seconds":
            return ours <= self.bound
        if self.kind == "memory":
            return None if mb is None or allowed is None else mb <= allowed
        if self.kind == "none" or ratio is None:
            return None
        return ratio >= self.bound if self.kind == "at least" else ratio <= self.bound


def at_least(times: float) -> Target:
    """Ours is at least so many times as fast as the peer."""
    return Target("at least", times)


def at_most(times: float) -> Target:
    """Ours takes at most so many times the time of the peer."""
    return Target("at most", times)


def within_seconds(seconds: float) -> Target:
    """Ours takes at most so long."""
    return Target("seconds", seconds)


within_memory = Target("memory")
"""Ours needs at most ``Case.allowed_mb`` above its input."""

no_target = Target("none")
"""Shown, not judged."""


@dataclass(frozen=True)
class Row:
    name: str
    target: Target
    build: Callable[[float], Case]
    """Makes the data, at a share of their full size, and the candidates."""

    rounds: int
    measures_memory: bool
    warm_up: bool


_ROWS: list[Row] = []


def row(
    name: str,
    target: Target,
    *,
    rounds: int = 5,
    memory: bool = True,
    warm_up: bool = True,
) -> Callable[[Callable[[float], Case]], Callable[[float], Case]]:
    """Register a function that builds the case of a row.

    Parameters
    ----------
    name : str
        What the row is called, sizes included.
    target : Target
        What it is judged by.
    rounds : int
        How often all candidates have their turn.
    memory : bool
        Whether peak memory means anything here: not for work in other processes.
    warm_up : bool
        Whether every candidate has a first run that is not timed.
    """

    def register(build: Callable[[float], Case]) -> Callable[[float], Case]:
        if any(known.name == name for known in _ROWS):
            raise ValueError(f"There are two rows named {name!r}.")
        _ROWS.append(Row(name, target, build, rounds, memory, warm_up))
        return build

    return register


def all_rows() -> list[Row]:
    """Load the modules that register rows; return all rows in their order."""
    import benchmarks

    for module in sorted(
        info.name for info in pkgutil.iter_modules(benchmarks.__path__)
    ):
        if module.startswith("rows_"):
            import_module(f"benchmarks.{module}")
    return list(_ROWS)


def select(rows: list[Row], pattern: str | None) -> list[Row]:
    """Rows whose name contains the pattern, or matches it where it has wildcards."""
    if pattern is None:
        return rows
    wild = pattern if any(c in pattern for c in "*?[") else f"*{pattern}*"
    return [r for r in rows if fnmatch.fnmatchcase(r.name.lower(), wild.lower())]
