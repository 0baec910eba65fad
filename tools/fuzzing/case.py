"""One case: its random numbers, and the checks that it fails."""

from __future__ import annotations

import contextlib
import io
import random
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from steelyard import exceptions
from steelyard.cli.run import main

OWN: tuple[type[Exception], ...] = (
    exceptions.TableError,
    exceptions.ParameterError,
    exceptions.ModelFileError,
)
"""Errors of the library's own, which are answers too."""


class WrongError(Exception):
    """What was found is neither an error of the library's own nor a valid answer."""


@dataclass
class Case:
    """A case that depends on a seed and a number alone."""

    rng: random.Random
    folder: Path
    about: str = ""
    """The method and the shape of it, for the line of a finding."""

    outcome: str = "refused"
    found: dict[str, str] = field(default_factory=dict)
    """By the name of a check that failed: what was wrong."""

    @property
    def noise(self) -> np.random.Generator:
        """Random arrays."""
        return np.random.default_rng(self.rng.randrange(2**32))

    @contextlib.contextmanager
    def check(self, name: str) -> Iterator[None]:
        """Run a check; whatever is raised there is a finding."""
        try:
            yield
        except WrongError as error:
            self.found.setdefault(name, str(error))
        except Exception as error:
            self.found.setdefault(name, said(error))


def said(error: BaseException) -> str:
    """Return class, message and place of an error, in one line."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    message = " ".join(str(error).split())[:160]
    place = f"{Path(where.filename).name}:{where.lineno}"
    return f"{type(error).__name__}: {message} ({place})"


def same(what: str, one: Any, other: Any, tolerance: float = 0.0) -> None:
    """Refuse numbers that differ."""
    one, other = np.asarray(one, dtype=float), np.asarray(other, dtype=float)
    if one.shape != other.shape:
        raise WrongError(f"{what}: shapes {one.shape} and {other.shape}")
    gap = np.abs(one - other).max(initial=0.0)
    if not gap <= tolerance:
        row = int(np.abs(one - other).max(axis=-1).argmax()) if one.ndim > 1 else 0
        raise WrongError(f"{what}: numbers differ by {gap:.3g}, first in row {row}")


def equal(what: str, one: Any, other: Any) -> None:
    """Refuse values that are not equal."""
    if one != other:
        shown = f"{_short(one)} and {_short(other)}"
        raise WrongError(f"{what}: {shown}")


def _short(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) < 90 else f"{text[:87]}..."


def own_error(attempt: Callable[[], Any]) -> tuple[Any, str | None]:
    """Return a result, or the class and message of an error of the library's own."""
    try:
        return attempt(), None
    except OWN as error:
        return None, f"{type(error).__name__}: {error}"


ALL_DIGITS = ("--digits", "17")
"""Options of a prediction that is compared: six digits are printed otherwise."""


def steelyard(*words: str) -> tuple[int, str, str]:
    """Run a command in this process: status, standard output and error."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main(list(words))
        except SystemExit as end:
            status = int(end.code or 0)
    return status, out.getvalue(), err.getvalue()
